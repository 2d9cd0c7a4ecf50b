/* The seeds of a mini-batch of edges: from edge ids to lists of nodes, and to what must not be sampled.
 *
 *   edge ids -> their ends (client/edges_op.h) -> negatives drawn (sampler/negatives.h)
 *            -> [no_true_edges: are they edges? those that are: drawn again ...]
 *            -> seeds: sources, destinations, negatives; exclusions (sampler/exclude.h) -> done
 */
#ifndef GW_CLIENT_BATCH_EDGES_H
#define GW_CLIENT_BATCH_EDGES_H

#include "client/edges_op.h"
#include "sampler/exclude.h"

#define GW_NEGATIVES_MAX (1u << 24) /* of one mini-batch */

/* Reused from batch to batch. */
struct gw_batch_edges {
	struct gw_edge_seeds spec;
	uint64_t key;       /* that negatives are drawn by */
	const int64_t *ids; /* [count] */
	uint64_t count;
	struct gw_job *job; /* the operation that it is a step of */
	/* Called once, in the engine, perhaps from within start. The error text is set for a failure. */
	void (*done)(struct gw_batch_edges *edges, gw_status status);
	void *owner;
	/* Results: the seeds, in this order; what is excluded; what the mini-batch shows, but for its rows. */
	struct gw_seeds lists[3];
	uint32_t list_count;
	struct gw_exclude exclude;
	struct gw_edge_batch view;
	/* Its own: */
	struct gw_edges_op op;
	struct gw_vec kept_ids;  /* int64_t: the copy of a list to draw from */
	struct gw_vec negatives; /* int64_t [count * negatives_each] */
	struct gw_vec pending;   /* uint32_t: numbers of the negatives that are asked about */
	struct gw_vec src, dst;  /* int64_t: their pairs */
	uint64_t pending_count;
	uint32_t attempt;
};

gw_status gw_batch_edges_init(struct gw_batch_edges *edges, struct gw_engine *engine);
void gw_batch_edges_free(struct gw_batch_edges *edges);

/* Whether a spec of edges can be followed; and, which takes as long as its lists are, whether these can. GW_INVALID,
 * GW_RANGE, GW_UNSUPPORTED. */
gw_status gw_edge_seeds_check(const struct gw_client *client, const struct gw_edge_seeds *spec);
gw_status gw_edge_seeds_check_ids(const struct gw_client *client, const struct gw_edge_seeds *spec);
/* Whether so many edges have no more negatives than a mini-batch may have. GW_LIMIT. */
gw_status gw_edge_seeds_check_count(const struct gw_edge_seeds *spec, uint64_t count);

/* Keeps the list to draw from, where it is not the caller's to keep. */
gw_status gw_batch_edges_keep_ids(struct gw_batch_edges *edges);

void gw_batch_edges_start(struct gw_batch_edges *edges);
/* Makes it end soon; done is still called. */
void gw_batch_edges_cancel(struct gw_batch_edges *edges);

/* The seeds are numbered: their rows, list after list. */
void gw_batch_edges_show(struct gw_batch_edges *edges, const uint32_t *seed_rows);

#endif
