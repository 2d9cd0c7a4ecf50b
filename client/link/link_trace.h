/* What the trace shows of a link: its connections, and the requests and reads in flight, each as a line of its own.
 * link->traced and op->traced are 0 while the trace is off, and the functions are then not called. */
#ifndef GW_CLIENT_LINK_LINK_TRACE_H
#define GW_CLIENT_LINK_LINK_TRACE_H

#include "client/link/link_ops.h"
#include "core/system/trace.h"

/* An op is posted. Returns its number, or 0. */
uint64_t gw_link_trace_op(const struct gw_link_op *op) __attribute__((cold));
/* The op has ended; its `done` runs next. Returns the time, for gw_link_trace_landed, which ends the span of `done`. */
uint64_t gw_link_trace_op_end(const struct gw_link_op *op, const struct gw_completion *completion)
	__attribute__((cold));
void gw_link_trace_landed(const struct gw_link *link, uint64_t began) __attribute__((cold));

/* An attempt to connect begins, ends; the connection is lost. Connect returns the attempt's number, or 0. */
uint64_t gw_link_trace_connect(const struct gw_link *link) __attribute__((cold));
void gw_link_trace_connected(struct gw_link *link, bool open) __attribute__((cold));
void gw_link_trace_lost(const struct gw_link *link) __attribute__((cold));

#endif
