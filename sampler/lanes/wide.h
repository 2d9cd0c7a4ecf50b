/* Draws for sixteen lists at once, one per lane. Internal to the sampler.
 *
 * In the common case no draw is rejected and no position occurs twice; Floyd's picks are then just the sorted draws. A
 * lane where either happens is left to gw_pick(). So the result equals gw_pick()'s by construction, for every width of
 * vectors.
 */
#ifndef GW_SAMPLER_LANES_WIDE_H
#define GW_SAMPLER_LANES_WIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/numbers/vectors.h"

#define GW_WIDE_LANES 16
#define GW_WIDE_PICKS 32 /* the largest fanout of the wide path */

struct gw_wide {
	/* Input, one list per lane: the instance's halves, its group, and a degree of at least fanout, at least 1 and
	 * below 2^32. */
	uint32_t instance_low[GW_WIDE_LANES], instance_high[GW_WIDE_LANES], group[GW_WIDE_LANES], degree[GW_WIDE_LANES];
	/* Output: each lane's picks, ascending. */
	uint32_t picks[GW_WIDE_PICKS][GW_WIDE_LANES];
} __attribute__((aligned(64)));

/* The exchanges that sort any n values. */
struct gw_network {
	uint32_t n, count;
	struct {
		uint8_t low, high;
	} pairs[191]; /* enough for 32 values */
};

void gw_network_make(struct gw_network *network, uint32_t n); /* n <= GW_WIDE_PICKS */

/* Draws fanout (1 to GW_WIDE_PICKS) picks in each lane; the network sorts fanout values. Returns a bit for each lane
 * that gw_pick() must draw instead. */
typedef uint32_t (*gw_wide_draw)(struct gw_wide *wide, uint64_t key, uint32_t fanout, bool replace,
				 const struct gw_network *network);
gw_wide_draw gw_wide_function(void); /* of the vectors in use; NULL: gw_pick() handles every list */

uint32_t gw_wide_four(struct gw_wide *wide, uint64_t key, uint32_t fanout, bool replace,
		      const struct gw_network *network);
uint32_t gw_wide_avx2(struct gw_wide *wide, uint64_t key, uint32_t fanout, bool replace,
		      const struct gw_network *network);
uint32_t gw_wide_avx512(struct gw_wide *wide, uint64_t key, uint32_t fanout, bool replace,
			const struct gw_network *network);

#endif
