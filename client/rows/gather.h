/* Fetches rows by id from their owners into a buffer: the only step of a gather, and the last step of a mini-batch.
 *
 *   ids, all rows in this process's reach -> one pass that copies them, slice by slice (local_rows.h) -> done
 *   ids, piece by piece -> owner (book) -> [address order] -> one link op per owner -> done
 *                                                             rows, or spans of adjacent rows
 *   ids of both kinds   -> first the second way, for the rows out of reach; then the first way, for the others. Rows
 *                          out of reach of which there are copies near (near_rows.h) are copied too
 *   a batch of a loader with look-ahead -> of the rows out of reach, those that earlier batches have fetched are copied
 *                                          from the loader's window (row_window.h)
 *
 * Rows may be converted: the first way converts them as it copies, the others when all rows have landed.
 */
#ifndef GW_CLIENT_ROWS_GATHER_H
#define GW_CLIENT_ROWS_GATHER_H

#include "client/engine/engine.h"
#include "client/engine/fan_in.h"
#include "client/link/link.h"
#include "client/rows/local_rows.h"
#include "client/rows/near_rows.h"
#include "client/rows/row_lists.h"
#include "client/rows/row_window.h"
#include "client/state/client.h"
#include "client/state/recv_buffer.h"
#include "core/memory/vec.h"
#include "core/numbers/convert.h"

struct gw_pull;

/* Where rows go. */
struct gw_landing {
	struct gw_buffer *buffer;        /* of `rows`. NULL: the gather finds the buffer, or registers the memory, if a
					    transport needs that */
	uint8_t *rows;                   /* rows land here as they are stored */
	struct gw_conversion conversion; /* to_bytes 0: they stay */
	uint8_t *out; /* where they are converted to; may share their memory as gw_convert_rows() allows */
};

/* Where a gather with a window is. */
enum gw_gather_stage {
	GW_GATHER_PLAIN,   /* it has no window, or needs none */
	GW_GATHER_DIVIDED, /* its turn to plan has not come */
	GW_GATHER_PLANNED, /* the rows that it fetches have not all been kept */
	GW_GATHER_COPIES,  /* rows of the window have not all been copied */
};

/* Reused from call to call; allocates only to grow. Belongs to the jobs of one engine. */
struct gw_gather_op {
	struct gw_engine *engine;
	/* Called once, in the engine, perhaps before start returns. The error text is set on failure. */
	void (*done)(struct gw_gather_op *op, gw_status status);
	void *owner;
	/* The batch's part of a window: the caller sets its window, or NULL, and its number. The rows do not change. */
	struct gw_window_share share;
	bool counts; /* only finds the rows elsewhere: those of divided.elsewhere, when it is done */
	/* Private: */
	struct gw_row_lists lists;
	struct gw_vec spans, sorting, here, elsewhere, near_list;
	struct gw_link_op *link_ops; /* of pieces and owners, in the order of posting */
	struct gw_pull *pulls;       /* one per link op, for mutable rows; or NULL */
	uint64_t link_op_count, link_op_room, pull_room;
	uintptr_t *origins; /* [num_parts], of local rows */
	struct gw_divided_rows divided;
	bool *was_here;      /* [num_parts]: which parts could be addressed when the rows were divided */
	bool divides;        /* the rows are divided */
	uint32_t only_owner; /* of all rows elsewhere; or UINT32_MAX */
	uint64_t here_at;    /* rows of divided.here before this one are copied */
	struct gw_near_rows near;
	uint64_t near_count, near_at; /* of near_list; those before near_at are copied */
	struct gw_rows from;          /* what the caller asked for */
	const int64_t *ids;
	uint64_t n, at; /* rows before `at` are where they stay */
	bool unique;
	struct gw_landing to;
	uint64_t row_bytes;    /* as stored */
	struct gw_buffer *own; /* registered for this gather, or NULL */
	enum gw_gather_stage stage;
	bool parked;       /* another thread continues it */
	uint64_t fetched;  /* rows of its plan that it fetches */
	uint64_t ahead_at; /* rows of the stage before this one are done */
	uint64_t missing;  /* rows that the window does not have after all, behind those of divided.elsewhere */
	struct gw_job_slice slice;
	struct gw_fan_in reads;
};

gw_status gw_gather_op_init(struct gw_gather_op *op, struct gw_engine *engine);
void gw_gather_op_free(struct gw_gather_op *op);
/* Frees the memory of the op's lists if they take more than this many bytes. Do not call it while the gather runs. */
void gw_gather_op_trim(struct gw_gather_op *op, size_t bytes);

/* Fetches n rows: row ids[i] is the i-th. unique: the ids have no duplicates. The caller owns ids, the memory and the
 * buffer, and keeps them until `done`. GW_RANGE names the first id that is not a row. job: the operation that the
 * gather is a step of. */
void gw_gather_op_start(struct gw_gather_op *op, struct gw_job *job, const struct gw_rows *rows, const int64_t *ids,
			uint64_t n, const struct gw_landing *to, bool unique);

/* A receive buffer, in which the rows stay as they are stored. */
static inline struct gw_landing gw_landing_in(const struct gw_recv_buffer *received)
{
	return (struct gw_landing){.buffer = received->buffer, .rows = received->data};
}

/* Whether the gather has begun and not ended. */
static inline bool gw_gather_op_is_open(const struct gw_gather_op *op)
{
	return op->reads.open > 0;
}

/* Makes the gather end soon; `done` is still called. */
void gw_gather_op_cancel(struct gw_gather_op *op);

#endif
