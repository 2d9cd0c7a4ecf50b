/* The seeds of a mini-batch of edges, of one type or of several: lists of nodes, and what must not be sampled.
 *
 *   edge ids of each type -> ends and negatives (client/batch/edge_seeds.h), all types at once
 *                         -> seeds, type by type: sources, destinations, negatives; exclusions (sampler/exclude.h)
 *                         -> done
 */
#ifndef GW_CLIENT_BATCH_BATCH_EDGES_H
#define GW_CLIENT_BATCH_BATCH_EDGES_H

#include "client/batch/edge_seeds.h"
#include "sampler/exclude.h"

/* Reused from batch to batch. */
struct gw_batch_edges {
	struct gw_engine *engine;
	/* Called once, in the engine, perhaps from within start. The error text is set for a failure. */
	void (*done)(struct gw_batch_edges *edges, gw_status status);
	void *owner;
	uint32_t type_count; /* 0: the seeds are nodes */
	/* Results: the seeds; what is excluded; what the mini-batch shows. */
	struct gw_vec lists; /* struct gw_seeds [list_count] */
	uint32_t list_count;
	struct gw_exclude exclude;
	struct gw_vec views; /* struct gw_edge_batch [type_count] */
	/* Its own: */
	struct gw_edge_seeds_op **types; /* [capacity] */
	uint32_t capacity;
	struct gw_fan_in asking;
};

void gw_batch_edges_init(struct gw_batch_edges *edges, struct gw_engine *engine);
void gw_batch_edges_free(struct gw_batch_edges *edges);

/* Takes what a spec says about its edges; what that points to stays the caller's, until it is kept. */
gw_status gw_batch_edges_take(struct gw_batch_edges *edges, const struct gw_edge_seeds *specs, uint32_t count);
gw_status gw_batch_edges_keep_ids(struct gw_batch_edges *edges);

/* lists: [type_count]: the edges of each type, which stay the caller's. */
void gw_batch_edges_start(struct gw_batch_edges *edges, struct gw_job *job, uint64_t seed, uint64_t stream,
			  const struct gw_seeds *lists);
/* Makes it end soon; done is still called. */
void gw_batch_edges_cancel(struct gw_batch_edges *edges);

/* The seeds are numbered: their rows, list after list. The mini-batch's view: [type_count]. */
const struct gw_edge_batch *gw_batch_edges_show(struct gw_batch_edges *edges, const uint32_t *seed_rows);

#endif
