/* Seeds that are edges of one type: from edge ids to the ends of the edges, and to their negatives.
 *
 *   edge ids -> their ends, and those of what reverse_ids names, at once (client/batch/edges_op.h)
 *            -> [GW_EXCLUDE_REVERSE_IDS: each reverse leads the other way, or the batch fails]
 *            -> negatives drawn (sampler/negatives.h)
 *            -> [no_true_edges: are they edges? those that are: drawn again ...] -> done
 */
#ifndef GW_CLIENT_BATCH_EDGE_SEEDS_H
#define GW_CLIENT_BATCH_EDGE_SEEDS_H

#include "client/batch/edges_op.h"

#define GW_NEGATIVES_MAX (1u << 24) /* of one mini-batch */

/* Reused from batch to batch. */
struct gw_edge_seeds_op {
	struct gw_edge_seeds spec;
	uint64_t key;       /* that negatives are drawn by */
	const int64_t *ids; /* [count] */
	uint64_t count;
	struct gw_job *job; /* the operation that it is a step of */
	/* Called once, in the engine, perhaps from within start. The error text is set for a failure. */
	void (*done)(struct gw_edge_seeds_op *op, gw_status status);
	void *owner;
	/* Results: the first src[count] and dst[count] of `asked`, and the negatives of each edge. */
	struct gw_edges_op asked;
	struct gw_vec negatives; /* int64_t [count * negatives_each] */
	uint64_t true_edges;
	/* Its own: */
	bool open;              /* started, and not done */
	struct gw_vec kept_ids; /* int64_t: the copy of a list to draw from */
	struct gw_fan_in ends;
	struct gw_vec with_reverses; /* int64_t [2 * count]: the edges, then their reverses */
	struct gw_edges_op reverses; /* those of another type than the edges' */
	struct gw_vec pending;       /* uint32_t: numbers of the negatives that are asked about */
	struct gw_vec src, dst;      /* int64_t: their pairs */
	uint64_t pending_count;
	uint32_t attempt;
};

gw_status gw_edge_seeds_op_init(struct gw_edge_seeds_op *op, struct gw_engine *engine);
void gw_edge_seeds_op_free(struct gw_edge_seeds_op *op);

/* Whether a spec of edges can be followed; and, which takes as long as its lists are, whether these can. GW_INVALID,
 * GW_RANGE, GW_UNSUPPORTED. */
gw_status gw_edge_seeds_check(const struct gw_client *client, const struct gw_edge_seeds *spec);
gw_status gw_edge_seeds_check_ids(const struct gw_client *client, const struct gw_edge_seeds *spec);
/* Whether so many edges have no more negatives than a mini-batch may have, beside *total of other types, which they are
 * added to. GW_LIMIT. */
gw_status gw_edge_seeds_check_count(const struct gw_edge_seeds *spec, uint64_t count, uint64_t *total);

/* The node type that negatives are of. */
uint32_t gw_edge_seeds_type_drawn(const struct gw_graph_meta *meta, const struct gw_edge_seeds *spec);

/* Keeps the list to draw from, where it is not the caller's to keep. */
gw_status gw_edge_seeds_op_keep_ids(struct gw_edge_seeds_op *op);

void gw_edge_seeds_op_start(struct gw_edge_seeds_op *op);
/* Makes it end soon, if it is under way; done is still called. */
void gw_edge_seeds_op_cancel(struct gw_edge_seeds_op *op);

#endif
