/* Floyd's algorithm in lanes (pick.h), written once over vector operations. Each file that defines the operations
 * includes it.
 *
 * The includer defines TARGET (an attribute), WIDTH (lanes per vector), vec, and vec_load, vec_store, vec_set, vec_add,
 * vec_xor, vec_min, vec_max, vec_multiply, vec_less, vec_equal (these two return a bit per lane), and vec_choose (bits,
 * if set, if not).
 */
#include "sampler/lanes/wide.h"

#define INLINE static inline __attribute__((always_inline)) TARGET

/* One Philox block of each lane's instance: gw_philox_in() of rng.h. */
INLINE void philox(vec block, vec instance_low, vec instance_high, vec group, uint64_t key, vec words[4])
{
	const vec m0 = vec_set(0xD2511F53u), m1 = vec_set(0xCD9E8D57u);
	vec c0 = block, c1 = instance_low, c2 = instance_high, c3 = group, high0, high1;
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

/* A bit for each lane whose pick is among the first n. */
INLINE uint32_t find(const struct gw_wide *wide, uint32_t lane, uint32_t n, vec pick)
{
	const vec zero = vec_set(0);
	vec nearest = vec_set(UINT32_MAX);
	for (uint32_t i = 0; i < n; i++)
		nearest = vec_min(nearest, vec_xor(vec_load(wide->picks[i] + lane), pick));
	return vec_equal(nearest, zero);
}

/* The picks of one vector of lanes, in the order drawn. Returns a bit for each lane with a rejected draw. */
INLINE uint32_t draw_all(struct gw_wide *wide, uint32_t lane, uint64_t key, uint32_t fanout, bool replace)
{
	vec low = vec_load(wide->instance_low + lane), high = vec_load(wide->instance_high + lane);
	vec group = vec_load(wide->group + lane);
	vec bound = vec_add(vec_load(wide->degree + lane), vec_set(replace ? 0 : 1 - fanout));
	const vec step = vec_set(replace ? 0 : 1);
	uint32_t redo = 0;
	for (uint32_t j = 0; j < fanout; j += 4) {
		vec words[4], pick;
		philox(vec_set(j / 4), low, high, group, key, words);
		for (uint32_t i = j; i < j + 4 && i < fanout; i++) {
			redo |= vec_less(vec_multiply(words[i - j], bound, &pick), bound);
			if (!replace) /* Floyd: a repeated pick is replaced by the last position, bound - 1 */
				pick = vec_choose(find(wide, lane, i, pick), vec_add(bound, vec_set(UINT32_MAX)), pick);
			vec_store(wide->picks[i] + lane, pick);
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

INLINE uint32_t draw_lanes(struct gw_wide *wide, uint64_t key, uint32_t fanout, bool replace,
			   const struct gw_network *network)
{
	uint32_t redo = 0;
	for (uint32_t lane = 0; lane < GW_WIDE_LANES; lane += WIDTH) {
		redo |= draw_all(wide, lane, key, fanout, replace) << lane;
		sort_all(wide, lane, network);
	}
	return redo;
}
