/* Queries to the owners of edges: the ends of edges, or the number or the ids of the edges between two nodes. A single
 * call consists of this step alone; a mini-batch of edges begins with it.
 *
 *   ids or pairs -> owners (book) -+-> lists in memory or mapped: looked up at once (sampler/lookup.h)
 *                                  +-> lists on the owner's disk: searched by rounds of entries (list_search.h)
 *                                  +-> else calls of bounded size, one after another for each owner
 *                                      (protocol/edge_call.h)
 *   all answered -> results in the order of the questions -> done
 */
#ifndef GW_CLIENT_BATCH_EDGES_OP_H
#define GW_CLIENT_BATCH_EDGES_OP_H

#include "client/engine/fan_in.h"
#include "client/link/link.h"
#include "client/state/client.h"
#include "core/memory/vec.h"
#include "protocol/edge_call.h"

struct gw_edges_share; /* the questions of one owner */

/* Reused from call to call; allocates only to grow. Belongs to the jobs of one engine. */
struct gw_edges_op {
	struct gw_engine *engine;
	/* Called once, in the engine, perhaps before start returns. The error text is set on failure. */
	void (*done)(struct gw_edges_op *op, gw_status status);
	void *owner;
	/* Results, valid in `done`. GW_EDGE_ENDS: int64_t src[n], dst[n]. Otherwise uint64_t counts[n]; for GW_EDGE_IDS
	 * also the edge ids of all pairs, pair after pair, ascending. */
	struct gw_vec src, dst, counts, ids;
	uint64_t id_count;
	/* Private: */
	enum gw_edge_ask ask;
	uint32_t etype;
	const int64_t *questions[2]; /* edge ids; or sources and destinations */
	uint64_t n;
	struct gw_edges_share *shares; /* [num_parts] */
	struct gw_fan_in answers;
};

gw_status gw_edges_op_init(struct gw_edges_op *op, struct gw_engine *engine);
void gw_edges_op_free(struct gw_edges_op *op);

/* Starts the queries, as a step of a job. first, second: edge ids and NULL for GW_EDGE_ENDS; else sources and
 * destinations. The caller owns both arrays, and keeps them until `done`. GW_RANGE names the first question whose edge
 * or node does not exist. */
void gw_edges_op_start(struct gw_edges_op *op, struct gw_job *job, enum gw_edge_ask ask, uint32_t etype,
		       const int64_t *first, const int64_t *second, uint64_t n);

/* Makes the op end soon if it has started; `done` is still called. */
void gw_edges_op_cancel(struct gw_edges_op *op);

#endif
