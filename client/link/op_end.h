/* The end of a link op: it is counted, shown in the trace, and then its caller gets it. */
#ifndef GW_CLIENT_LINK_OP_END_H
#define GW_CLIENT_LINK_OP_END_H

#include "client/link/link_ops.h"

/* Counts the op, then reports its end: calls `done`. */
void gw_link_op_end(struct gw_link *link, struct gw_link_op *op, gw_status status,
		    const struct gw_completion *completion);

#endif
