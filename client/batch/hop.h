/* One hop over several owners. It gets the neighbours in one of four modes; the result has the same bytes in each.
 *
 *   begin, want ... -> start
 *   nodes -> owners (book) -+-> in memory:  picked from the lists: of this process by take, mapped ones by start
 *                           +-> by reads:   degree records -> rounds of columns -> positions -> neighbours, in spans;
 *                           |               what is on the owner's disk, by requests for entries (entries.h)
 *                           +-> by request: rows -> the owner's picks (protocol/sample_call.h)
 *   all answered -> done -> take: the next nodes' edges, merged in the order of the nodes
 *
 * A hop draws from in-lists or from out-lists. The frontiers of mini-batches (batch_hop.c) and lists of edges
 * (client/queries/neighbours.c) use hops.
 */
#ifndef GW_CLIENT_BATCH_HOP_H
#define GW_CLIENT_BATCH_HOP_H

#include "client/batch/edge_columns.h"
#include "client/engine/fan_in.h"
#include "client/state/client.h"
#include "core/memory/vec.h"
#include "sampler/blocks/blocks.h"

#define GW_HOP_RUN 512 /* nodes per take: few enough that prefetched data stays in the cache */

struct gw_hop_share;  /* the nodes of one type at one owner */
struct gw_hop_source; /* the picks of one edge type at one owner */

/* Reused from hop to hop and from batch to batch. */
struct gw_hop {
	struct gw_engine *engine;
	/* Called once, in the engine, perhaps before start returns. The error text is set on failure. */
	void (*done)(struct gw_hop *hop, gw_status status);
	void *owner;
	/* Private: */
	struct gw_hop_share *shares;   /* [num_ntypes][num_parts] */
	struct gw_hop_source *sources; /* [num_etypes][num_parts] */
	struct gw_vec *owners;         /* [num_ntypes]: uint32_t by node */
	bool *is_split;                /* [num_ntypes]: its nodes are split by owner */
	enum gw_direction direction;
	struct gw_vec counts, edges, neighbours; /* merged */
	struct gw_fan_in answers;                /* of shares and sources */
};

gw_status gw_hop_init(struct gw_hop *hop, struct gw_engine *engine);
void gw_hop_free(struct gw_hop *hop);

void gw_hop_begin(struct gw_hop *hop, enum gw_direction direction);

/* Requests edges of a type that end at the frontier's nodes (in-lists) or start there (out-lists), picked by the draw.
 * columns: those that the draw reads; NULL for a uniform one. The nodes are valid global ids. For edge types with the
 * same node type at this end, pass the same frontier. */
gw_status gw_hop_want(struct gw_hop *hop, uint32_t etype, const struct gw_draw *draw,
		      const struct gw_edge_columns *columns, const struct gw_frontier *frontier);

/* job: the operation that the hop is a step of. */
void gw_hop_start(struct gw_hop *hop, struct gw_job *job);

/* Edges of some nodes, in the order of the nodes. Valid until the next take. */
struct gw_hop_edges {
	uint64_t count;
	const uint32_t *counts;     /* [n]: of each node */
	const uint64_t *positions;  /* [count]: global edge ids minus start; NULL: the draw has no_edge_ids */
	const uint64_t *neighbours; /* [count]: global ids of the edges' other ends, as a peer sent them: unchecked */
	uint64_t start;
};

/* After `done`: the edges of the next nodes, at most GW_HOP_RUN. next: these nodes again, in memory that adding edges
 * does not move; next->first: their place in the frontier of gw_hop_want. */
gw_status gw_hop_take(struct gw_hop *hop, uint32_t etype, const struct gw_frontier *next, struct gw_hop_edges *edges);

/* Makes the hop end soon; `done` is still called. */
void gw_hop_cancel(struct gw_hop *hop);

#endif
