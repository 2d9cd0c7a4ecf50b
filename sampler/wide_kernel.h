/* The drawing of lanes, written once over the operations of a vector; included by each file that defines them.
 *
 * The includer defines TARGET (an attribute), WIDTH (lanes per vector), vec, and vec_load, vec_store, vec_set, vec_add,
 * vec_xor, vec_min, vec_max, vec_multiply, vec_less, vec_equal (the last two return a bit per lane).
 */
#include "sampler/wide.h"

#define INLINE static inline __attribute__((always_inline)) TARGET

/* One Philox block of a vector of instances: gw_philox() of rng.h. */
INLINE void philox(vec instance_low, vec instance_high, uint64_t key, uint32_t block, vec words[4])
{
	const vec m0 = vec_set(0xD2511F53u), m1 = vec_set(0xCD9E8D57u);
	vec c0 = vec_set(block), c1 = instance_low, c2 = instance_high, c3 = vec_set(0), high0, high1;
	uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
	for (int round = 0; round < 10; round++) {
		vec low0 = vec_multiply(c0, m0, &high0), low1 = vec_multiply(c2, m1, &high1);
		c0 = vec_xor(vec_xor(high1, c1), vec_set(k0));
		c1 = low1;
		c2 = vec_xor(vec_xor(high0, c3), vec_set(k1));
		c3 = low0;
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
	words[0] = c0;
	words[1] = c1;
	words[2] = c2;
	words[3] = c3;
}

/* The draws of one vector of lanes, in order; a bit for each lane that met a rejection. */
INLINE uint32_t draw_all(struct gw_wide *wide, uint32_t lane, uint64_t key, uint32_t fanout, bool replace)
{
	vec low = vec_load(wide->instance_low + lane), high = vec_load(wide->instance_high + lane);
	vec bound = vec_add(vec_load(wide->degree + lane), vec_set(replace ? 0 : 1 - fanout));
	const vec step = vec_set(replace ? 0 : 1);
	uint32_t redo = 0;
	for (uint32_t j = 0; j < fanout; j += 4) {
		vec words[4], pick;
		philox(low, high, key, j / 4, words);
		for (uint32_t i = 0; i < 4 && j + i < fanout; i++) {
			redo |= vec_less(vec_multiply(words[i], bound, &pick), bound);
			vec_store(wide->picks[j + i] + lane, pick);
			bound = vec_add(bound, step);
		}
	}
	return redo;
}

INLINE void sort_all(struct gw_wide *wide, uint32_t lane, const struct gw_network *network)
{
	for (uint32_t i = 0; i < network->count; i++) {
		uint32_t *low = wide->picks[network->pairs[i].low] + lane;
		uint32_t *high = wide->picks[network->pairs[i].high] + lane;
		vec a = vec_load(low), b = vec_load(high);
		vec_store(low, vec_min(a, b));
		vec_store(high, vec_max(a, b));
	}
}

INLINE uint32_t find_repeats(const struct gw_wide *wide, uint32_t lane, uint32_t fanout)
{
	uint32_t redo = 0;
	vec before = vec_load(wide->picks[0] + lane);
	for (uint32_t j = 1; j < fanout; j++) {
		vec pick = vec_load(wide->picks[j] + lane);
		redo |= vec_equal(before, pick);
		before = pick;
	}
	return redo;
}

INLINE uint32_t draw_lanes(struct gw_wide *wide, uint64_t key, uint32_t fanout, bool replace,
			   const struct gw_network *network)
{
	uint32_t redo = 0;
	for (uint32_t lane = 0; lane < GW_WIDE_LANES; lane += WIDTH) {
		uint32_t bits = draw_all(wide, lane, key, fanout, replace);
		sort_all(wide, lane, network);
		if (!replace)
			bits |= find_repeats(wide, lane, fanout);
		redo |= bits << lane;
	}
	return redo;
}
