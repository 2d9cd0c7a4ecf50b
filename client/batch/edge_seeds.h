/* Seeds that are edges of one type: finds the ends of the edges from their ids, and draws their negatives.
 *
 *   places of pairs -> the ends that the spec lists; or
 *   edge ids -> their ends; at the same time the ends of the edges that reverse_ids names (edges_op.h)
 *            -> [GW_EXCLUDE_REVERSE_IDS: each reverse must lead the other way, or the batch fails]
 *            -> negatives drawn (sampler/negatives.h) [-> among the nodes that exist at the edge's time (existing.h)]
 *            -> [no_true_edges: negatives that are edges are drawn again ...] -> done
 */
#ifndef GW_CLIENT_BATCH_EDGE_SEEDS_H
#define GW_CLIENT_BATCH_EDGE_SEEDS_H

#include "client/batch/edges_op.h"
#include "client/batch/existing.h"

#define GW_NEGATIVES_MAX (1u << 24) /* of one mini-batch */

/* Reused from batch to batch. */
struct gw_edge_seeds_op {
	struct gw_edge_seeds spec;
	uint64_t key;       /* key for drawing the negatives */
	const int64_t *ids; /* [count] */
	uint64_t count;
	const void *times; /* [count]: of the edges, int64_t or double (real_times); NULL: none */
	bool real_times;
	const struct gw_node_times *exist; /* negatives exist by these times; NULL: by none */
	struct gw_job *job;                /* the operation that this is a step of */
	/* Called once, in the engine, perhaps before start returns. The error text is set on failure. */
	void (*done)(struct gw_edge_seeds_op *op, gw_status status);
	void *owner;
	/* Results: the first `count` elements of asked.src and of asked.dst, and the negatives of each edge. */
	struct gw_edges_op asked;
	struct gw_vec negatives; /* int64_t [count * negatives_each] */
	uint64_t true_edges;
	/* Private: */
	bool open;              /* started and not done */
	struct gw_vec kept_ids; /* int64_t: a copy of the list to draw from */
	struct gw_fan_in ends;
	struct gw_vec with_reverses; /* int64_t [2 * count]: the edges, then their reverses */
	struct gw_edges_op reverses; /* if the reverses have another type than the edges */
	struct gw_existing existing;
	struct gw_vec pending;  /* uint32_t: numbers of the negatives that are being drawn */
	struct gw_vec src, dst; /* int64_t: the ends of these negatives */
	uint64_t pending_count;
	uint32_t attempt;
};

gw_status gw_edge_seeds_op_init(struct gw_edge_seeds_op *op, struct gw_engine *engine);
void gw_edge_seeds_op_free(struct gw_edge_seeds_op *op);

/* The number of ids that seeds may have: edges of the type, or pairs. */
uint64_t gw_edge_seeds_bound(const struct gw_graph_meta *meta, const struct gw_edge_seeds *spec);

/* gw_edge_seeds_check checks the fields of a spec of edges. gw_edge_seeds_check_ids checks its lists of ids, in time
 * linear in their length. GW_INVALID, GW_RANGE, GW_UNSUPPORTED. */
gw_status gw_edge_seeds_check(const struct gw_client *client, const struct gw_edge_seeds *spec);
gw_status gw_edge_seeds_check_ids(const struct gw_client *client, const struct gw_edge_seeds *spec);
/* Adds the number of negatives of `count` edges to *total, the sum over all types. Fails with GW_LIMIT if a mini-batch
 * may not have so many negatives. */
gw_status gw_edge_seeds_check_count(const struct gw_edge_seeds *spec, uint64_t count, uint64_t *total);

/* The node type of the negatives. */
uint32_t gw_edge_seeds_type_drawn(const struct gw_graph_meta *meta, const struct gw_edge_seeds *spec);

/* Copies the list of ids that negatives are drawn from, so that the caller need not keep the list. */
gw_status gw_edge_seeds_op_keep_ids(struct gw_edge_seeds_op *op);

void gw_edge_seeds_op_start(struct gw_edge_seeds_op *op);
/* Makes the op end soon if it has started; `done` is still called. */
void gw_edge_seeds_op_cancel(struct gw_edge_seeds_op *op);

#endif
