/* Memory that replies land in: an engine's slab, which is registered with its transports in few, large pieces, since
 * registering is expensive where it pins pages, and a device holds only so many memory regions.
 *
 *   landing: a block of a power of two ─▶ of a chunk with room ─▶ or of a new chunk, as large as all before it together
 *            (2 MiB at first, 64 MiB at most, or as large as the block), registered whole
 *
 * A landing grows, and is kept from use to use; contents do not survive growth. A chunk is given back when its last
 * landing is, but for the first. Belongs to the thread that runs the engine. Fails for want of memory, and where a
 * transport cannot register a chunk.
 */
#ifndef GW_CLIENT_STATE_LANDING_H
#define GW_CLIENT_STATE_LANDING_H

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

/* Read-only for users: grown by gw_recv_buffer_reserve alone. Zero-initialized is empty. */
struct gw_recv_buffer {
	uint8_t *data;
	size_t capacity;          /* bytes */
	struct gw_buffer *buffer; /* the chunk's */
	struct gw_slab_chunk *chunk;
};

void gw_slab_open(struct gw_slab *slab, struct gw_poll_group *group);
/* Nothing may be under way into a landing. Those that were not freed stay readable, as does their chunk. */
void gw_slab_close(struct gw_slab *slab);

/* Makes it at least `bytes` long. No read may be open on it. On failure it is as it was, or empty. */
gw_status gw_recv_buffer_reserve(struct gw_recv_buffer *landing, struct gw_slab *slab, size_t bytes);
void gw_recv_buffer_free(struct gw_recv_buffer *landing);

/* Where it begins in its buffer. */
static inline uint64_t gw_recv_buffer_start(const struct gw_recv_buffer *landing)
{
	return (uint64_t)(landing->data - landing->buffer->base);
}

#endif
