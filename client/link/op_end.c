/* See op_end.h. */
#include "client/link/op_end.h"

#include "client/link/link_trace.h"
#include "core/system/clock.h"

void gw_link_op_end(struct gw_link *link, struct gw_link_op *op, gw_status status,
		    const struct gw_completion *completion)
{
	struct gw_link_counts *counts = &link->counts;
	const bool good = status == GW_OK || status == GW_AGAIN; /* GW_AGAIN: some rows of a read were torn */
	if (op->form == GW_LINK_REQUEST) {
		gw_link_count(&counts->by_scheme[link->scheme].requests, 1);
		gw_link_count(&counts->by_scheme[link->scheme].sent_bytes, op->request_bytes);
		gw_link_count(&counts->by_scheme[link->scheme].received_bytes,
			      status == GW_OK && completion ? completion->reply_bytes : 0);
	} else {
		gw_link_count(&counts->by_scheme[link->scheme].reads, 1);
		gw_link_count(&counts->by_scheme[link->scheme].read_bytes, good ? gw_link_op_bytes(op) : 0);
	}
	gw_link_count(&counts->by_scheme[link->scheme].errors, !good && status != GW_CANCELLED);
	gw_latency_count(&counts->waits[link->scheme], gw_now_ns() - op->begun_ns);
	uint64_t began = op->traced ? gw_link_trace_op_end(op, completion) : 0;
	link->ops_open--;
	op->done(op, status, completion); /* the op's memory may be gone then */
	if (began)
		gw_link_trace_landed(link, began);
}
