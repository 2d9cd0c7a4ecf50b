/* Edges that sampling keeps out of every mini-batch: validation and test edges.
 *
 *   gw_held_out_open: lists of ids and of ends -> checked -> one table (sampler/exclude.h), which never changes
 *   a spec names the object -> its batches look up every edge that they draw (sampler/blocks/blocks.h)
 */
#ifndef GW_CLIENT_BATCH_HELD_OUT_H
#define GW_CLIENT_BATCH_HELD_OUT_H

#include <stdatomic.h>

#include "client/state/client.h"
#include "sampler/exclude.h"

struct gw_held_out {
	struct gw_exclude edges;
	uint64_t graph_id;
	atomic_uint users; /* the caller, the loaders and the tickets */
};

/* Adds a user, who calls gw_held_out_close; returns the object. NULL is allowed. */
struct gw_held_out *gw_held_out_share(struct gw_held_out *held_out);

/* GW_INVALID unless the object was made for this client's graph. NULL is allowed. */
gw_status gw_held_out_check(const struct gw_client *client, const struct gw_held_out *held_out);

#endif
