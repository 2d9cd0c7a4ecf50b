/* One hop of a mini-batch over several owners: three ways to the neighbours, the same bytes from each.
 *
 *   frontier -> owners (book) -+-> in memory:  picked from the mapped lists while the block is built
 *                              +-> by reads:   degree records -> positions (pure) -> neighbours, in spans
 *                              +-> by request: rows -> the owner's picks (protocol/sample_call.h)
 *   all there -> merged in the order of the frontier -> gw_blocks_add
 */
#ifndef GW_CLIENT_HOP_H
#define GW_CLIENT_HOP_H

#include "client/client.h"
#include "client/fan_in.h"
#include "core/base/vec.h"
#include "sampler/blocks.h"

struct gw_hop_share;  /* the frontier of one node type at one owner */
struct gw_hop_source; /* the picks of one edge type at one owner */

/* Reused from hop to hop and batch to batch. */
struct gw_hop {
	struct gw_engine *engine;
	struct gw_blocks *blocks;
	/* Called once, in the engine, perhaps from within start. The error text is set for a failure. */
	void (*done)(struct gw_hop *hop, gw_status status);
	void *owner;
	/* Its own: */
	struct gw_hop_share *shares;             /* [num_ntypes][num_parts] */
	struct gw_hop_source *sources;           /* [num_etypes][num_parts] */
	struct gw_vec *owners;                   /* [num_ntypes]: uint32_t by destination */
	bool *is_split;                          /* [num_ntypes]: its frontier is split by owner */
	struct gw_vec counts, edges, neighbours; /* merged */
	struct gw_fan_in answers;                /* of shares and sources */
};

gw_status gw_hop_init(struct gw_hop *hop, struct gw_engine *engine, struct gw_blocks *blocks);
void gw_hop_free(struct gw_hop *hop);

/* Samples the current hop of blocks (after gw_blocks_hop_begin, before gw_blocks_hop_end) for the edge types whose
 * fanouts [num_etypes] are not 0. job: the operation that it is a step of. */
void gw_hop_start(struct gw_hop *hop, struct gw_job *job, const int32_t *fanouts);

/* Makes it end soon; done is still called. */
void gw_hop_cancel(struct gw_hop *hop);

#endif
