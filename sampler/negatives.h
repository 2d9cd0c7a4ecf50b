/* Negatives: nodes drawn for the edges of a batch, in place of one of their ends.
 *
 * Negative j of the edge in a slot of the batch is draw number `attempt` of the instance (slot, j). The draw is uniform
 * below the number of candidates. If the caller rejects a negative, it takes the next attempt. A pure function of its
 * arguments. */
#ifndef GW_SAMPLER_NEGATIVES_H
#define GW_SAMPLER_NEGATIVES_H

#include "core/numbers/rng.h"

#define GW_NEGATIVE_ATTEMPTS 16u /* after this many attempts, the last negative is kept */

/* key: gw_draw_key(seed, stream, GW_DRAW_NEGATIVE, 0, edge type); slot and j below 2^32, bound > 0. */
uint64_t gw_negative_draw(uint64_t key, uint64_t slot, uint64_t j, uint32_t attempt, uint64_t bound);

#endif
