/* Exact draws from one list in proportion to its weights, in integers. Internal to the weighted kind (weighted.c).
 *
 *   begin ─▶ drop, drop … (edges that are picked already) ─▶ sum ─▶ draw [─▶ take], draw [─▶ take] …
 *
 * The sums need O(n) time; a draw and a removal need O(log n). The memory is 8 bytes for each edge, and 16 bytes for 64
 * edges.
 */
#ifndef GW_SAMPLER_KINDS_WEIGHTED_EXACT_H
#define GW_SAMPLER_KINDS_WEIGHTED_EXACT_H

#include "core/errors/status.h"
#include "core/graph/picks.h"
#include "core/numbers/dtype.h"
#include "core/numbers/rng.h"

struct gw_exact {
	uint64_t *weights;       /* [n]: integers (core/graph/weights.h) */
	unsigned __int128 *sums; /* [blocks + 1]: a Fenwick tree of the sums of blocks, from 1 */
	unsigned __int128 total;
	uint64_t n, blocks, positive; /* positive: how many weights are not 0 */
};

/* weights: [n], n < 2^32, at any alignment, of a dtype that passes gw_weights_check(). Uses scratch->weights and
 * scratch->sums until the last draw. GW_RANGE as gw_weights_scale, with the edge's position in the list; GW_NO_MEMORY.
 */
gw_status gw_exact_begin(struct gw_exact *exact, gw_dtype dtype, const void *weights, uint64_t n,
			 struct gw_pick_scratch *scratch);
/* Sets a weight to 0, before gw_exact_sum. */
void gw_exact_drop(struct gw_exact *exact, uint64_t position);
gw_status gw_exact_sum(struct gw_exact *exact, struct gw_pick_scratch *scratch); /* GW_NO_MEMORY */
/* A position in proportion to its weight; total must not be 0. weighted.c states the words that a draw takes. */
uint64_t gw_exact_draw(const struct gw_exact *exact, struct gw_draws *draws);
/* Sets the weight of a drawn position to 0. */
void gw_exact_take(struct gw_exact *exact, uint64_t position);

#endif
