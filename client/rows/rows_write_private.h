/* What the files of writing share: rows_write.c, which deals calls out; and row_lanes.c, which sends them. */
#ifndef GW_CLIENT_ROWS_ROWS_WRITE_PRIVATE_H
#define GW_CLIENT_ROWS_ROWS_WRITE_PRIVATE_H

#include "client/engine/ticket.h"
#include "client/rows/rows_write.h"
#include "client/rows/tensor_handles.h"

/* What one owner is to write of a call: rows order[at] to order[end] of it. */
struct gw_write_share {
	struct gw_write_share *next; /* in the lane */
	struct gw_write_call *call;
	uint64_t at, end; /* at: the first that no request carries yet */
	uint32_t carried; /* requests under way with rows of it */
	bool queued, begun;
};

struct gw_write_call {
	struct gw_ticket ticket;               /* first: the job */
	const struct gw_tensor_handle *handle; /* NULL: a flush, or a request */
	const int64_t *ids;
	uint64_t n;
	const uint8_t *rows; /* values, or gradients */
	uint64_t row_bytes;  /* of one of them */
	bool is_push;
	struct gw_optimizer optimizer;
	uint16_t op; /* of a request to one owner; 0: none */
	const void *request;
	uint32_t request_bytes;
	uint64_t *number; /* takes its reply; NULL: that is empty */
	uint64_t *keys;   /* [n]: rows of the owner, ascending; of an update each once */
	uint32_t *order;
	uint32_t open;                  /* shares that are queued, and who holds it besides */
	gw_status status;               /* once it has failed, with the job's text */
	struct gw_write_share shares[]; /* [num_parts] */
};

static inline bool gw_write_is_flush(const struct gw_write_call *call)
{
	return !call->handle && !call->op;
}

/* Queues the shares of a call that was dealt out; its job ends with the last of them, perhaps before this returns. */
void gw_row_lanes_take(struct gw_row_lanes *lanes, struct gw_write_call *call);
void gw_row_lanes_cancel(struct gw_row_lanes *lanes, struct gw_write_call *call);

#endif
