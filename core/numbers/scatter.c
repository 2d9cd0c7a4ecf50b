/* A Feistel network of four rounds over 4^half_bits numbers, walked along its cycle until it lands below n, as the
 * permutation's (rng.c). Since 4^half_bits < 4 n, a walk takes fewer than four steps on average. */
#include "core/numbers/scatter.h"

#include <assert.h>

#include "core/numbers/rng.h"

#define SCATTER_ROUNDS 4u

struct gw_scatter gw_scatter_begin(uint64_t key, uint64_t n)
{
	assert(n <= 1ull << 62);
	uint32_t half_bits = 1;
	while (n > 1ull << (2 * half_bits))
		half_bits++;
	return (struct gw_scatter){.n = n, .key = key, .half_bits = half_bits};
}

uint64_t gw_scatter_at(const struct gw_scatter *scatter, uint64_t number)
{
	assert(number < scatter->n);
	const uint32_t bits = scatter->half_bits;
	const uint64_t half = (1ull << bits) - 1;
	uint64_t at = number;
	do {
		uint64_t left = at >> bits, right = at & half;
		for (uint64_t round = 0; round < SCATTER_ROUNDS; round++) {
			uint64_t next = left ^ (gw_mix64(scatter->key + (round << 56) + gw_mix64(right)) & half);
			left = right;
			right = next;
		}
		at = left << bits | right;
	} while (at >= scatter->n);
	return at;
}
