/* Memory that receives replies: the slab of an engine.
 *
 * Registering memory is expensive where it pins pages, and a device supports a limited number of memory regions. The
 * slab therefore registers few, large chunks with the engine's transports.
 *
 *   receive buffer: a block, a power of two ─▶ of a chunk with room
 *                                           ─▶ or of a new chunk, as large as all chunks before it together
 *                                              (2 MiB at first, at most 64 MiB, or the block's size if that is larger)
 *
 * A receive buffer grows and is reused. Growing discards its contents. The slab frees a chunk when its last buffer is
 * freed, except the first chunk. Only the thread that runs the engine may use a slab. Functions fail if memory runs
 * out, or if a transport cannot register a chunk.
 */
#ifndef GW_CLIENT_STATE_RECV_BUFFER_H
#define GW_CLIENT_STATE_RECV_BUFFER_H

#include <stddef.h>
#include <stdint.h>

#include "core/errors/status.h"
#include "transport/transport.h"

struct gw_slab_chunk;

struct gw_slab {
	struct gw_poll_group *group;
	struct gw_slab_chunk *chunks;
	uint64_t bytes; /* of all chunks */
};

/* Users only read these fields; gw_recv_buffer_reserve changes them. A zero-initialized buffer is empty. */
struct gw_recv_buffer {
	uint8_t *data;
	size_t capacity;          /* bytes */
	struct gw_buffer *buffer; /* the chunk's registration */
	struct gw_slab_chunk *chunk;
};

void gw_slab_open(struct gw_slab *slab, struct gw_poll_group *group);
/* No operation may still write to a receive buffer. Chunks with buffers that were not freed are kept, so these buffers
 * stay readable. */
void gw_slab_close(struct gw_slab *slab);

/* Makes the buffer at least `bytes` long. No read may be open on it. On failure the buffer is unchanged, or empty. */
gw_status gw_recv_buffer_reserve(struct gw_recv_buffer *recv, struct gw_slab *slab, size_t bytes);
void gw_recv_buffer_free(struct gw_recv_buffer *recv);

/* The buffer's offset in its registered chunk. */
static inline uint64_t gw_recv_buffer_start(const struct gw_recv_buffer *recv)
{
	return (uint64_t)(recv->data - recv->buffer->base);
}

#endif
