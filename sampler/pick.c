/* One list's picks, from the definition: draws in order, each answered by Floyd's rule, the result ascending.
 *
 * Floyd's step j draws t in [0, degree - fanout + j]; a t that was picked before is replaced by degree - fanout + j,
 * which exceeds all that was picked so far. So a small pick is an insertion into a sorted array whose duplicates
 * append; a large one marks a bitmap, which yields the order by itself, or, of a huge list, fills a hash set and sorts.
 * All three give the same positions. The wide path (wide.h) must agree with this file byte by byte. Fails when memory
 * for large fanouts is short, and on a list too long to be drawn from by 32 bits.
 */
#include "sampler/pick.h"

#include <string.h>

#include "sampler/lists.h"

#define SMALL_PICKS   64  /* sorted by insertion up to this */
#define BITMAP_SPREAD 256 /* positions per pick up to which a bitmap beats a hash set and a sort */
#define RADIX_BITS    11
#define RADIX_PASSES  3
#define EMPTY         UINT32_MAX /* no position: degrees are below 2^32 */

void gw_pick_scratch_free(struct gw_pick_scratch *scratch)
{
	gw_vec_free(&scratch->seen);
	gw_vec_free(&scratch->sorted);
	gw_vec_free(&scratch->wide);
}

gw_status gw_pick_rule_check(const struct gw_pick_rule *rule)
{
	if (rule->fanout < GW_FANOUT_ALL || rule->fanout > GW_FANOUT_MAX)
		return gw_fail(GW_INVALID, "fanout %d: give -1 for all or 0 to %d", rule->fanout, GW_FANOUT_MAX);
	return GW_OK;
}

static void floyd_by_insertion(struct gw_draws *draws, uint32_t degree, uint32_t fanout, uint64_t *out)
{
	for (uint32_t j = 0; j < fanout; j++) {
		uint32_t last = degree - fanout + j;
		uint32_t pick = gw_draw_below(draws, last + 1);
		uint32_t at = j;
		while (at && out[at - 1] > pick)
			at--;
		if (at && out[at - 1] == pick) {
			out[j] = last;
			continue;
		}
		memmove(out + at + 1, out + at, (j - at) * sizeof(*out));
		out[at] = pick;
	}
}

static gw_status floyd_by_bitmap(struct gw_draws *draws, uint32_t degree, uint32_t fanout, struct gw_vec *seen,
				 uint64_t *out)
{
	size_t words = (size_t)degree / 64 + 1;
	if (gw_vec_reserve(seen, words * sizeof(uint64_t)))
		return GW_NO_MEMORY;
	uint64_t *bits = seen->data;
	memset(bits, 0, words * sizeof(*bits));
	for (uint32_t j = 0; j < fanout; j++) {
		uint32_t last = degree - fanout + j;
		uint32_t pick = gw_draw_below(draws, last + 1);
		if (bits[pick / 64] >> (pick % 64) & 1)
			pick = last;
		bits[pick / 64] |= 1ull << (pick % 64);
	}
	for (size_t word = 0; word < words; word++) {
		for (uint64_t rest = bits[word]; rest; rest &= rest - 1)
			*out++ = word * 64 + (uint64_t)__builtin_ctzll(rest);
	}
	return GW_OK;
}

/* Sorts n values, by radix from the lowest digit; spare has room for n. Returns whichever of the two holds the result.
 */
static uint32_t *sort_values(uint32_t *values, uint32_t *spare, uint32_t n)
{
	for (uint32_t pass = 0; pass < RADIX_PASSES; pass++) {
		uint32_t starts[1 << RADIX_BITS] = {0}, shift = pass * RADIX_BITS, sum = 0;
		for (uint32_t i = 0; i < n; i++)
			starts[values[i] >> shift & ((1 << RADIX_BITS) - 1)]++;
		for (uint32_t digit = 0; digit < 1 << RADIX_BITS; digit++) {
			uint32_t count = starts[digit];
			starts[digit] = sum;
			sum += count;
		}
		for (uint32_t i = 0; i < n; i++)
			spare[starts[values[i] >> shift & ((1 << RADIX_BITS) - 1)]++] = values[i];
		uint32_t *swap = values;
		values = spare;
		spare = swap;
	}
	return values;
}

/* True if the value was not in the set; slots are a power of two, at most half of them used. */
static bool set_add(uint32_t *set, uint32_t mask, uint32_t value)
{
	uint32_t slot = (uint32_t)(value * 0x9e3779b1u) & mask;
	while (set[slot] != EMPTY) {
		if (set[slot] == value)
			return false;
		slot = (slot + 1) & mask;
	}
	set[slot] = value;
	return true;
}

static gw_status floyd_by_set(struct gw_draws *draws, uint32_t degree, uint32_t fanout, struct gw_pick_scratch *scratch,
			      uint64_t *out)
{
	uint32_t slots = 2 * SMALL_PICKS;
	while (slots < 2 * fanout)
		slots *= 2;
	if (gw_vec_reserve(&scratch->seen, slots * sizeof(uint32_t)) ||
	    gw_vec_reserve(&scratch->sorted, 2 * (size_t)fanout * sizeof(uint32_t)))
		return GW_NO_MEMORY;
	uint32_t *set = scratch->seen.data, *values = scratch->sorted.data;
	memset(set, 0xff, slots * sizeof(*set));
	for (uint32_t j = 0; j < fanout; j++) {
		uint32_t last = degree - fanout + j;
		uint32_t pick = gw_draw_below(draws, last + 1);
		if (!set_add(set, slots - 1, pick)) {
			pick = last;
			set_add(set, slots - 1, pick);
		}
		values[j] = pick;
	}
	values = sort_values(values, values + fanout, fanout);
	for (uint32_t j = 0; j < fanout; j++)
		out[j] = values[j];
	return GW_OK;
}

static gw_status with_replacement(struct gw_draws *draws, uint32_t degree, uint32_t fanout, struct gw_vec *sorted,
				  uint64_t *out)
{
	if (fanout <= SMALL_PICKS) {
		for (uint32_t j = 0; j < fanout; j++) {
			uint32_t pick = gw_draw_below(draws, degree);
			uint32_t at = j;
			for (; at && out[at - 1] > pick; at--)
				out[at] = out[at - 1];
			out[at] = pick;
		}
		return GW_OK;
	}
	if (gw_vec_reserve(sorted, 2 * (size_t)fanout * sizeof(uint32_t)))
		return GW_NO_MEMORY;
	uint32_t *values = sorted->data;
	for (uint32_t j = 0; j < fanout; j++)
		values[j] = gw_draw_below(draws, degree);
	values = sort_values(values, values + fanout, fanout);
	for (uint32_t j = 0; j < fanout; j++)
		out[j] = values[j];
	return GW_OK;
}

gw_status gw_pick(const struct gw_pick_rule *rule, uint64_t instance, uint64_t degree, struct gw_pick_scratch *scratch,
		  uint64_t *out)
{
	uint64_t count = gw_pick_count(rule, degree);
	if (count == degree && !(rule->replace && rule->fanout != GW_FANOUT_ALL)) {
		for (uint64_t i = 0; i < count; i++)
			out[i] = i;
		return GW_OK;
	}
	if (count == 0)
		return GW_OK;
	if (degree > UINT32_MAX)
		return gw_fail(GW_RANGE, "a list of %llu entries: at most 2^32 - 1 can be drawn from",
			       (unsigned long long)degree);
	struct gw_draws draws = gw_draws_begin(rule->key, instance);
	uint32_t entries = (uint32_t)degree, fanout = (uint32_t)count;
	if (rule->replace)
		return with_replacement(&draws, entries, fanout, &scratch->sorted, out);
	if (fanout <= SMALL_PICKS) {
		floyd_by_insertion(&draws, entries, fanout, out);
		return GW_OK;
	}
	if (entries / BITMAP_SPREAD <= fanout)
		return floyd_by_bitmap(&draws, entries, fanout, &scratch->seen, out);
	return floyd_by_set(&draws, entries, fanout, scratch, out);
}
