/* Fetching rows by id from their owners into a buffer: the step that a gather consists of, and a mini-batch's last one.
 *
 *   ids, piece by piece -> owner (book) -> [address order] -> one link op per owner -> done
 *                                                             rows, or spans of neighbouring rows
 */
#ifndef GW_CLIENT_ROWS_GATHER_H
#define GW_CLIENT_ROWS_GATHER_H

#include "client/engine/fan_in.h"
#include "client/link/link.h"
#include "client/state/client.h"
#include "core/memory/vec.h"

struct gw_pull;

/* Reused from call to call; allocates only while it grows. Belongs to an engine's jobs. */
struct gw_gather_op {
	struct gw_engine *engine;
	/* Called once, in the engine, perhaps from within start. The error text is set for a failure. */
	void (*done)(struct gw_gather_op *op, gw_status status);
	void *owner;
	/* Its own: */
	struct gw_vec owners, remote, rows, spans, seen, copies, sorting;
	struct gw_link_op *link_ops; /* of pieces and owners, as they were posted */
	struct gw_pull *pulls;       /* of the link ops, for rows that change; or NULL */
	uint64_t link_op_count, link_op_room, pull_room;
	uint64_t *cursors; /* [num_parts] */
	uint64_t copy_count, seen_slots;
	uint8_t *out;
	uint64_t row_bytes;
	struct gw_fan_in reads;
};

gw_status gw_gather_op_init(struct gw_gather_op *op, struct gw_engine *engine);
void gw_gather_op_free(struct gw_gather_op *op);
/* Gives back the memory of its lists if that is more than so many bytes. Not while it runs. */
void gw_gather_op_trim(struct gw_gather_op *op, size_t bytes);

/* Fetches n rows: row ids[i] lands at out + i * row_bytes, which lies in the buffer. unique: there are no duplicates to
 * look for. ids and the buffer stay the caller's until done. GW_RANGE names the first id that is no row. job: the
 * operation that it is a step of. */
void gw_gather_op_start(struct gw_gather_op *op, struct gw_job *job, const struct gw_rows *rows, const int64_t *ids,
			uint64_t n, struct gw_buffer *buffer, uint8_t *out, bool unique);

/* Whether it has begun and not ended. */
static inline bool gw_gather_op_is_open(const struct gw_gather_op *op)
{
	return op->reads.open > 0;
}

/* Makes it end soon; done is still called. */
void gw_gather_op_cancel(struct gw_gather_op *op);

#endif
