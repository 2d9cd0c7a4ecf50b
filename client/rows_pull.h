/* Reading rows that change by asking their owners for them: the way of a gather that every transport has. */
#ifndef GW_CLIENT_ROWS_PULL_H
#define GW_CLIENT_ROWS_PULL_H

#include "client/gather.h"

/* A pull for each of the gather's reads. GW_NO_MEMORY. */
gw_status gw_pulls_room(struct gw_gather_op *gather);
void gw_pulls_free(struct gw_gather_op *gather);

/* Begins one: `op`, one of the gather's reads, whose done tells the end, asks a part for the rows that the gather has
 * listed for it from `first` on, op->count of them: their numbers in gather->remote, where they go in gather->rows. The
 * op carries one request after another; cancelled, it ends. */
void gw_pull_start(struct gw_gather_op *gather, struct gw_link_op *op, uint64_t birth, uint32_t part, uint64_t first);

#endif
