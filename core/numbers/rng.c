/* The keyed permutation: a Feistel network over 2^bits numbers, walked along its cycle until it lands below n (Black
 * and Rogaway: "Ciphers with arbitrary finite domains", CT-RSA 2002).
 *
 *   key -> keys of the rounds, and one bit
 *   position -> the first two exchanged, if the bit is set -> left and right half -> rounds -> below n? the id
 *
 * The network is a bijection of [0, 2^bits). A walk that starts below n ends below n, and two walks never meet, so the
 * walk is a bijection of [0, n). Integers only.
 *
 * The rounds: after r of them, chances of pairs deviate by about 2^(-bits r / 4). Four rounds over 2^4 numbers show
 * after a few hundred orders. Twelve rounds over 2^6 or more do not show after a million.
 *
 * The bit: a round over halves of two bits or more is an even permutation, and so is the network. Without the bit, a
 * list of 2^bits ids would get the even orders only, and other lists more of one parity than of the other. An exchange
 * of two positions, in half of the keys, makes both parities equally likely, whatever their shares were.
 */
#include "core/numbers/rng.h"

#include <assert.h>

#define BITS_MIN   6u /* walks of n < 2^5 take 2^6 / n steps on average, others fewer than two */
#define KEY_STRIDE 0x9e3779b97f4a7c15ull

struct gw_permutation gw_permutation_begin(uint64_t key, uint64_t n)
{
	assert(n <= 1ull << 62);
	uint32_t bits = BITS_MIN;
	while (n > 1ull << bits)
		bits++;
	struct gw_permutation permutation = {.n = n,
					     .right_bits = bits / 2,
					     .left_mask = (1ull << (bits - bits / 2)) - 1,
					     .right_mask = (1ull << bits / 2) - 1};
	for (uint32_t round = 0; round < GW_PERMUTATION_ROUNDS; round++)
		permutation.keys[round] = gw_mix64(key += KEY_STRIDE);
	permutation.exchanges = n > 1 && (gw_mix64(key + KEY_STRIDE) & 1);
	return permutation;
}

uint64_t gw_permutation_at(const struct gw_permutation *permutation, uint64_t position)
{
	assert(position < permutation->n);
	const uint64_t *keys = permutation->keys;
	uint64_t at = position < 2 ? position ^ permutation->exchanges : position;
	do {
		uint64_t left = at >> permutation->right_bits, right = at & permutation->right_mask;
		for (uint32_t round = 0; round < GW_PERMUTATION_ROUNDS; round += 2) {
			left ^= gw_mix64(keys[round] + right) & permutation->left_mask;
			right ^= gw_mix64(keys[round + 1] + left) & permutation->right_mask;
		}
		at = left << permutation->right_bits | right;
	} while (at >= permutation->n);
	return at;
}
