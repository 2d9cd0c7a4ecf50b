/* Prepares a mini-batch whose seeds are edges of one type or several: finds the lists of nodes to sample from, and the
 * edges that sampling must exclude.
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
	/* Called once, in the engine, perhaps before start returns. The error text is set on failure. */
	void (*done)(struct gw_batch_edges *edges, gw_status status);
	void *owner;
	uint32_t type_count; /* 0: the seeds are nodes */
	bool real_times;     /* the times of the seeds are double; else int64_t */
	/* Results: the seeds, the exclusions, and the views in the mini-batch. */
	struct gw_vec lists; /* struct gw_seeds [list_count] */
	uint32_t list_count;
	struct gw_vec negative_times[2]; /* of all types: until, from; 8 bytes each */
	struct gw_exclude exclude;
	struct gw_vec views; /* struct gw_edge_batch [type_count] */
	/* Private: */
	struct gw_edge_seeds_op **types; /* [capacity] */
	uint32_t capacity;
	const struct gw_seeds *seeds; /* [type_count] */
	struct gw_fan_in asking;
};

void gw_batch_edges_init(struct gw_batch_edges *edges, struct gw_engine *engine);
void gw_batch_edges_free(struct gw_batch_edges *edges);

/* Copies the edge specs. The caller still owns the arrays that they point to, until keep_ids copies the ids. */
gw_status gw_batch_edges_take(struct gw_batch_edges *edges, const struct gw_edge_seeds *specs, uint32_t count);
gw_status gw_batch_edges_keep_ids(struct gw_batch_edges *edges);

/* lists: [type_count]: the edges of each type; the caller owns them. */
void gw_batch_edges_start(struct gw_batch_edges *edges, struct gw_job *job, uint64_t seed, uint64_t stream,
			  const struct gw_seeds *lists);
/* Makes the step end soon; `done` is still called. */
void gw_batch_edges_cancel(struct gw_batch_edges *edges);

/* The edge views of the mini-batch, [type_count]. seed_rows: the rows of the seeds, list after list. */
const struct gw_edge_batch *gw_batch_edges_show(struct gw_batch_edges *edges, const uint32_t *seed_rows);

#endif
