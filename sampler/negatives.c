/* See negatives.h. For a bound below 2^32 a draw takes one word of the generator, above it two words. Both use
 * multiplication with rejection, so that all nodes are equally likely. */
#include "sampler/negatives.h"

#include <assert.h>

/* Uniform in [0, bound), as gw_draw_below, for bounds of more than 32 bits. */
static uint64_t draw_wide(struct gw_draws *draws, uint64_t bound)
{
	const uint64_t floor = -bound % bound;
	for (;;) {
		uint64_t high = gw_draw32(draws);
		unsigned __int128 product = (unsigned __int128)(high << 32 | gw_draw32(draws)) * bound;
		if ((uint64_t)product >= floor)
			return (uint64_t)(product >> 64);
	}
}

uint64_t gw_negative_draw(uint64_t key, uint64_t slot, uint64_t j, uint32_t attempt, uint64_t bound)
{
	assert(bound > 0 && slot <= UINT32_MAX && j <= UINT32_MAX);
	struct gw_draws draws = gw_draws_begin(key, slot << 32 | j);
	uint64_t drawn;
	do
		drawn = bound > UINT32_MAX ? draw_wide(&draws, bound) : gw_draw_below(&draws, (uint32_t)bound);
	while (attempt-- > 0);
	return drawn;
}
