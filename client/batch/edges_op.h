/* Asking the owners of edges: ends of edges, how many edges pairs have, and which. The step that a lone call consists
 * of, and that a mini-batch of edges begins with.
 *
 *   ids or pairs -> owners (book) -+-> lists in memory or mapped: looked up at once (sampler/lookup.h)
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

/* Reused from call to call; allocates only while it grows. Belongs to an engine's jobs. */
struct gw_edges_op {
	struct gw_engine *engine;
	/* Called once, in the engine, perhaps from within start. The error text is set for a failure. */
	void (*done)(struct gw_edges_op *op, gw_status status);
	void *owner;
	/* Results, once done: GW_EDGE_ENDS: int64_t src[n], dst[n]; else uint64_t counts[n], and of GW_EDGE_IDS the
	 * edge ids of all pairs, pair after pair, ascending. */
	struct gw_vec src, dst, counts, ids;
	uint64_t id_count;
	/* Its own: */
	enum gw_edge_ask ask;
	uint32_t etype;
	const int64_t *questions[2]; /* edge ids; or sources and destinations */
	uint64_t n;
	struct gw_edges_share *shares; /* [num_parts] */
	struct gw_fan_in answers;
};

gw_status gw_edges_op_init(struct gw_edges_op *op, struct gw_engine *engine);
void gw_edges_op_free(struct gw_edges_op *op);

/* Asks, as a step of a job. first, second: edge ids and NULL for GW_EDGE_ENDS; sources and destinations else; they stay
 * the caller's until done. GW_RANGE names the first question that is about no edge or no node. */
void gw_edges_op_start(struct gw_edges_op *op, struct gw_job *job, enum gw_edge_ask ask, uint32_t etype,
		       const int64_t *first, const int64_t *second, uint64_t n);

/* Makes it end soon, if it is under way; done is still called. */
void gw_edges_op_cancel(struct gw_edges_op *op);

#endif
