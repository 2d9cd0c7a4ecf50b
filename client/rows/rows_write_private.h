/* Structures shared by rows_write.c, which splits calls, and row_lanes.c, which sends the shares. */
#ifndef GW_CLIENT_ROWS_ROWS_WRITE_PRIVATE_H
#define GW_CLIENT_ROWS_ROWS_WRITE_PRIVATE_H

#include "client/engine/ticket.h"
#include "client/rows/rows_write.h"
#include "client/rows/tensor_handles.h"

/* The rows of a call that one owner writes: rows order[at] to order[end - 1]. */
struct gw_write_share {
	struct gw_write_share *next; /* in the lane */
	struct gw_write_call *call;
	uint64_t at, end; /* at: the first row that no request carries yet */
	uint32_t carried; /* open requests that carry its rows */
	bool queued, begun;
};

struct gw_write_call {
	struct gw_ticket ticket;               /* first: the job */
	const struct gw_tensor_handle *handle; /* NULL: a flush, or a numbered call */
	const int64_t *ids;
	uint64_t n;
	const uint8_t *rows; /* values, or gradients */
	uint64_t row_bytes;  /* bytes of one value row or gradient */
	bool is_push;
	struct gw_optimizer optimizer;
	uint16_t op; /* of a numbered call; 0: none */
	const void *request;
	uint32_t request_bytes;
	uint64_t *number; /* receives the reply; NULL: the reply is empty */
	uint64_t *keys;   /* [n]: row numbers at the owner, ascending; in an update each row once */
	uint32_t *order;
	uint32_t open;                  /* queued shares, plus functions that still use the call */
	gw_status status;               /* the first failure; its text is in the job */
	struct gw_write_share shares[]; /* [num_parts] */
};

static inline bool gw_write_is_flush(const struct gw_write_call *call)
{
	return !call->handle && !call->op;
}

/* Queues the shares of a call that was split. Its job ends with the last share, perhaps before this returns. */
void gw_row_lanes_take(struct gw_row_lanes *lanes, struct gw_write_call *call);
void gw_row_lanes_cancel(struct gw_row_lanes *lanes, struct gw_write_call *call);

#endif
