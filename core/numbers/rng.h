/* Counter-based random numbers: draw i of an instance under a key, without state or order.
 *
 * Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011). One block gives
 * four 32-bit words; draw i is word i % 4 of block i / 4. The counter is {block, instance low, instance high, group}.
 * The Philox key is the 64 bits of gw_draw_key(). Integers only: every machine computes the same bytes.
 *
 * A group distinguishes the draws of one instance in one batch: those of two walkers at one node, for example. Without
 * groups it is 0.
 */
#ifndef GW_NUMBERS_RNG_H
#define GW_NUMBERS_RNG_H

#include <stdbool.h>
#include <stdint.h>

/* The sampler's version. Raise it with any change to the draws of neighbours. Orders have a version of their own. */
#define GW_SAMPLER_VERSION 1u

/* A bijective 64-bit mixer (splitmix64's finalizer). */
static inline uint64_t gw_mix64(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ull;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

/* The purpose of a draw. It is part of the key, so that two purposes never share numbers. Never change a number:
 * another one gives other negatives, orders, graphs and initial values of rows. The numbers of random walks (2) and
 * LABOR (5) are reserved; the library does not use them. */
enum gw_draw_kind {
	GW_DRAW_NEIGHBOURS = 1,
	GW_DRAW_WALK = 2,
	GW_DRAW_NEGATIVE = 3,
	GW_DRAW_SHUFFLE = 4,
	GW_DRAW_LABOR = 5,
	GW_DRAW_GENERATE = 6,
	GW_DRAW_INITIAL = 7
};

#define GW_DRAW_OUT_HOP 0x800000u /* added to the hop for draws from lists of out-edges */

/* key = mix(seed, stream, kind, hop, edge type). */
static inline uint64_t gw_draw_key(uint64_t seed, uint64_t stream, enum gw_draw_kind kind, uint32_t hop,
				   uint32_t edge_type)
{
	uint64_t key = gw_mix64(seed + 0x9e3779b97f4a7c15ull);
	key = gw_mix64(key ^ (stream + 0xd1b54a32d192ed03ull));
	key = gw_mix64(key ^ (((uint64_t)kind << 56) | ((uint64_t)(hop & 0xffffffu) << 32) | edge_type));
	return key;
}

struct gw_words {
	uint32_t word[4];
};

/* Philox4x32-10 itself: a bijection of the counter for each key. */
static inline struct gw_words gw_philox4x32(struct gw_words counter, uint64_t key)
{
	uint32_t c0 = counter.word[0], c1 = counter.word[1], c2 = counter.word[2], c3 = counter.word[3];
	uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
	for (int round = 0; round < 10; round++) {
		uint64_t p0 = 0xD2511F53ull * c0, p1 = 0xCD9E8D57ull * c2;
		c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
		c1 = (uint32_t)p1;
		c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
		c3 = (uint32_t)p0;
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
	return (struct gw_words){{c0, c1, c2, c3}};
}

/* One block of four words for an instance in a group. */
static inline struct gw_words gw_philox_in(uint64_t key, uint64_t instance, uint32_t group, uint32_t block)
{
	return gw_philox4x32((struct gw_words){{block, (uint32_t)instance, (uint32_t)(instance >> 32), group}}, key);
}

static inline struct gw_words gw_philox(uint64_t key, uint64_t instance, uint32_t block)
{
	return gw_philox_in(key, instance, 0, block);
}

/* An instance's draws in order, for code that rejects draws and so does not know i in advance. */
struct gw_draws {
	uint64_t key, instance;
	struct gw_words words;
	uint32_t group;
	uint32_t next; /* the number of the next draw */
};

static inline struct gw_draws gw_draws_begin(uint64_t key, uint64_t instance)
{
	return (struct gw_draws){.key = key, .instance = instance};
}

/* Draws of an instance in a group, from draw 4 * block on. */
static inline struct gw_draws gw_draws_begin_in(uint64_t key, uint64_t instance, uint32_t group, uint32_t block)
{
	return (struct gw_draws){.key = key, .instance = instance, .group = group, .next = 4 * block};
}

static inline uint32_t gw_draw32(struct gw_draws *draws)
{
	uint32_t at = draws->next++ & 3;
	if (at == 0)
		draws->words = gw_philox_in(draws->key, draws->instance, draws->group, (draws->next - 1) >> 2);
	return draws->words.word[at];
}

/* Uniform in [0, bound), without bias: Lemire's multiplication with rejection (ACM TOMACS 29(1), 2019). bound > 0. */
static inline uint32_t gw_draw_below(struct gw_draws *draws, uint32_t bound)
{
	uint64_t product = (uint64_t)gw_draw32(draws) * bound;
	if ((uint32_t)product < bound) {
		uint32_t floor = -bound % bound;
		while ((uint32_t)product < floor)
			product = (uint64_t)gw_draw32(draws) * bound;
	}
	return (uint32_t)(product >> 32);
}

/* A keyed permutation of [0, n): from position to id in O(1), without a table. n <= 2^62.
 *
 * With random keys, as those of gw_draw_key are, it is a uniform order: each order of few ids is equally likely, and of
 * more ids each place, pair of places, difference of neighbours, and parity. A million keys show no deviation
 * (test/oracle/test_shuffle_law.c). */
#define GW_PERMUTATION_ROUNDS  12u
#define GW_PERMUTATION_VERSION 2u /* raise it with any change to the orders: states of shuffled loaders have it */

struct gw_permutation {
	uint64_t n, left_mask, right_mask;
	uint64_t keys[GW_PERMUTATION_ROUNDS];
	uint32_t right_bits;
	bool exchanges; /* the first two positions */
};

struct gw_permutation gw_permutation_begin(uint64_t key, uint64_t n);
uint64_t gw_permutation_at(const struct gw_permutation *permutation, uint64_t position); /* position < n */

#endif
