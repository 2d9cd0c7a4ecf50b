/* Picks from long lists, by the rules of pick.c, such that the work can pause at any entry.
 *
 *   complete list:      nothing to draw
 *   with replacement:   draw ─▶ sort (three passes of count and scatter) ─▶ take
 *   many of the list:   clear a bitmap ─▶ draw into it ─▶ take the bits
 *   few of the list:    clear a set ─▶ draw, through the set ─▶ sort ─▶ take
 *
 * gw_pick() runs the same steps without a pause. Only gw_pick_long_begin can fail: if memory runs out, or for a list
 * that is too long (gw_pick).
 */
#include "sampler/pick_long.h"

#include <string.h>

#define BITMAP_SPREAD 256 /* up to this many positions per pick, a bitmap is faster than a hash set and a sort */
#define SLOTS_MIN     128
#define RADIX_PASSES  3
#define DIGITS        (1u << GW_PICK_RADIX_BITS)
#define EMPTY         UINT32_MAX /* never a position, because degrees are below 2^32 */
#define MIN(a, b)     ((a) < (b) ? (a) : (b))

static uint64_t words_of(const struct gw_pick_long *pick)
{
	return (uint64_t)pick->degree / 64 + 1;
}

static gw_status pick_long_reserve(struct gw_pick_long *pick)
{
	struct gw_pick_scratch *scratch = pick->scratch;
	size_t seen = 0;
	if (pick->bitmap) {
		seen = words_of(pick) * sizeof(uint64_t);
	} else if (!pick->replace) {
		pick->slots = SLOTS_MIN;
		while (pick->slots < 2 * pick->fanout)
			pick->slots *= 2;
		seen = pick->slots * sizeof(uint32_t);
	}
	if (gw_vec_reserve(&scratch->seen, seen))
		return GW_NO_MEMORY;
	if (pick->bitmap)
		return GW_OK;
	if (gw_vec_reserve(&scratch->sorted, 2 * (size_t)pick->fanout * sizeof(uint32_t)))
		return GW_NO_MEMORY;
	pick->values = scratch->sorted.data;
	pick->spare = pick->values + pick->fanout;
	return GW_OK;
}

gw_status gw_pick_long_begin(struct gw_pick_long *pick, const struct gw_pick_rule *rule, uint64_t instance,
			     uint32_t group, uint64_t degree, struct gw_pick_scratch *scratch)
{
	uint64_t count = gw_pick_count(rule, degree);
	pick->draws = gw_draws_begin_in(rule->key, instance, group, 0);
	pick->scratch = scratch;
	pick->at = pick->pass = 0;
	pick->whole = count == 0 || rule->fanout == GW_FANOUT_ALL || (!rule->replace && count == degree);
	pick->stage = GW_PICK_DONE;
	if (pick->whole)
		return GW_OK;
	if (degree > UINT32_MAX)
		return gw_fail(GW_RANGE, "a list of %llu entries: at most 2^32 - 1 can be drawn from",
			       (unsigned long long)degree);
	pick->degree = (uint32_t)degree;
	pick->fanout = (uint32_t)count;
	pick->replace = rule->replace;
	pick->bitmap = !rule->replace && pick->degree / BITMAP_SPREAD <= pick->fanout;
	pick->stage = rule->replace ? GW_PICK_DRAW : GW_PICK_CLEAR;
	pick->word = 0;
	return pick_long_reserve(pick);
}

/* Each step continues at `at` for `n` entries, and returns the number of entries of the stage. */

static uint64_t pick_long_clear(struct gw_pick_long *pick, uint64_t at, uint64_t n)
{
	uint64_t end = pick->bitmap ? words_of(pick) : pick->slots / 2;
	uint64_t *words = pick->scratch->seen.data;
	memset(words + at, pick->bitmap ? 0 : 0xff, MIN(n, end - at) * sizeof(*words));
	return end;
}

/* Returns true if the value was not in the set. The number of slots is a power of two; at most half of them are
 * used. */
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

static void draw_bits(struct gw_pick_long *pick, uint32_t at, uint32_t end)
{
	uint64_t *bits = pick->scratch->seen.data;
	struct gw_draws draws = pick->draws;
	for (uint32_t j = at; j < end; j++) {
		uint32_t last = pick->degree - pick->fanout + j;
		uint32_t drawn = gw_draw_below(&draws, last + 1);
		if (bits[drawn / 64] >> (drawn % 64) & 1)
			drawn = last;
		bits[drawn / 64] |= 1ull << (drawn % 64);
	}
	pick->draws = draws;
}

static void draw_set(struct gw_pick_long *pick, uint32_t at, uint32_t end)
{
	uint32_t *set = pick->scratch->seen.data;
	struct gw_draws draws = pick->draws;
	for (uint32_t j = at; j < end; j++) {
		uint32_t last = pick->degree - pick->fanout + j;
		uint32_t drawn = gw_draw_below(&draws, last + 1);
		if (!set_add(set, pick->slots - 1, drawn)) {
			drawn = last;
			set_add(set, pick->slots - 1, drawn);
		}
		pick->values[j] = drawn;
	}
	pick->draws = draws;
}

static void draw_repeats(struct gw_pick_long *pick, uint32_t at, uint32_t end)
{
	struct gw_draws draws = pick->draws;
	for (uint32_t j = at; j < end; j++)
		pick->values[j] = gw_draw_below(&draws, pick->degree);
	pick->draws = draws;
}

static uint64_t pick_long_draw(struct gw_pick_long *pick, uint64_t at, uint64_t n)
{
	uint64_t end = MIN(at + n, (uint64_t)pick->fanout);
	if (pick->bitmap)
		draw_bits(pick, (uint32_t)at, (uint32_t)end);
	else if (pick->replace)
		draw_repeats(pick, (uint32_t)at, (uint32_t)end);
	else
		draw_set(pick, (uint32_t)at, (uint32_t)end);
	return pick->fanout;
}

static uint64_t count_digits(struct gw_pick_long *pick, uint64_t at, uint64_t n)
{
	uint64_t end = MIN(at + n, (uint64_t)pick->fanout);
	uint32_t shift = pick->pass * GW_PICK_RADIX_BITS, *starts = pick->starts;
	if (at == 0)
		memset(starts, 0, sizeof(pick->starts));
	for (uint64_t i = at; i < end; i++)
		starts[pick->values[i] >> shift & (DIGITS - 1)]++;
	for (uint32_t digit = 0, sum = 0; end == pick->fanout && digit < DIGITS; digit++) {
		uint32_t count = starts[digit];
		starts[digit] = sum;
		sum += count;
	}
	return pick->fanout;
}

static uint64_t pick_long_scatter(struct gw_pick_long *pick, uint64_t at, uint64_t n)
{
	uint64_t end = MIN(at + n, (uint64_t)pick->fanout);
	uint32_t shift = pick->pass * GW_PICK_RADIX_BITS, *starts = pick->starts;
	const uint32_t *values = pick->values;
	uint32_t *spare = pick->spare;
	for (uint64_t i = at; i < end; i++)
		spare[starts[values[i] >> shift & (DIGITS - 1)]++] = values[i];
	return pick->fanout;
}

static enum gw_pick_stage stage_next(struct gw_pick_long *pick)
{
	if (pick->stage == GW_PICK_CLEAR)
		return GW_PICK_DRAW;
	if (pick->stage == GW_PICK_DRAW)
		return pick->bitmap ? GW_PICK_DONE : GW_PICK_COUNT;
	if (pick->stage == GW_PICK_COUNT)
		return GW_PICK_SCATTER;
	uint32_t *sorted = pick->spare;
	pick->spare = pick->values;
	pick->values = sorted;
	return ++pick->pass < RADIX_PASSES ? GW_PICK_COUNT : GW_PICK_DONE;
}

bool gw_pick_long_run(struct gw_pick_long *pick, uint64_t budget)
{
	static uint64_t (*const steps[])(struct gw_pick_long *, uint64_t, uint64_t) = {
		[GW_PICK_CLEAR] = pick_long_clear,
		[GW_PICK_DRAW] = pick_long_draw,
		[GW_PICK_COUNT] = count_digits,
		[GW_PICK_SCATTER] = pick_long_scatter,
	};
	while (pick->stage != GW_PICK_DONE && budget) {
		uint64_t end = steps[pick->stage](pick, pick->at, budget), done = MIN(budget, end - pick->at);
		budget -= done;
		pick->at += done;
		if (pick->at < end)
			return false;
		pick->stage = stage_next(pick);
		pick->at = 0;
	}
	if (pick->stage != GW_PICK_DONE)
		return false;
	return true;
}

void gw_pick_long_take(struct gw_pick_long *pick, uint64_t *out, uint64_t n)
{
	if (pick->whole) {
		for (uint64_t i = 0; i < n; i++)
			out[i] = pick->at++;
	} else if (pick->bitmap) {
		const uint64_t *words = pick->scratch->seen.data;
		for (uint64_t i = 0; i < n; i++) {
			while (!pick->word)
				pick->word = words[pick->at++];
			out[i] = (pick->at - 1) * 64 + (uint64_t)__builtin_ctzll(pick->word);
			pick->word &= pick->word - 1;
		}
	} else {
		for (uint64_t i = 0; i < n; i++)
			out[i] = pick->values[pick->at++];
	}
}
