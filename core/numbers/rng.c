/* The keyed permutation: a Feistel network over a power of four, walked along its cycle until it lands below n.
 *
 * The network is a bijection of [0, 4^half_bits). A walk that starts below n ends below n, and two walks never meet, so
 * the walk is a bijection of [0, n). Since 4^half_bits < 4 n, a walk takes fewer than four steps on average. Integers
 * only.
 */
#include "core/numbers/rng.h"

#include <assert.h>

#define FEISTEL_ROUNDS 4u

struct gw_permutation gw_permutation_begin(uint64_t key, uint64_t n)
{
	assert(n <= 1ull << 62);
	uint32_t half_bits = 1;
	while (n > 1ull << (2 * half_bits))
		half_bits++;
	return (struct gw_permutation){.n = n, .key = key, .half_bits = half_bits};
}

uint64_t gw_permutation_at(const struct gw_permutation *permutation, uint64_t position)
{
	assert(position < permutation->n);
	const uint32_t bits = permutation->half_bits;
	const uint64_t half = (1ull << bits) - 1;
	uint64_t at = position;
	do {
		uint64_t left = at >> bits, right = at & half;
		for (uint64_t round = 0; round < FEISTEL_ROUNDS; round++) {
			uint64_t next = left ^ (gw_mix64(permutation->key + (round << 56) + gw_mix64(right)) & half);
			left = right;
			right = next;
		}
		at = left << bits | right;
	} while (at >= permutation->n);
	return at;
}
