/* Negatives equal their definition word by word, and are uniform (chi-square at fixed seeds). Excluded edges are
 * compared with a list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sampler/exclude.h"
#include "sampler/negatives.h"
#include "test/support/alloc_fault.h"
#include "test/support/chi_square.h"

static uint32_t word_at(uint64_t key, uint64_t instance, uint64_t i)
{
	return gw_philox(key, instance, (uint32_t)(i / 4)).word[i % 4];
}

static void draws_are_those_of_the_definition(void **state)
{
	(void)state;
	/* A power of two rejects no word: attempt a is the top bits of word a, or of words 2a and 2a + 1. */
	for (uint64_t slot = 0; slot < 20; slot++) {
		for (uint64_t j = 0; j < 3; j++) {
			for (uint32_t attempt = 0; attempt < 6; attempt++) {
				uint64_t instance = slot << 32 | j, key = 77 + slot;
				assert_int_equal(gw_negative_draw(key, slot, j, attempt, 1u << 10),
						 word_at(key, instance, attempt) >> 22);
				uint64_t high = word_at(key, instance, 2ull * attempt);
				assert_int_equal(gw_negative_draw(key, slot, j, attempt, 1ull << 40),
						 (high << 32 | word_at(key, instance, 2ull * attempt + 1)) >> 24);
			}
		}
	}
	for (uint32_t attempt = 0; attempt < 3; attempt++)
		assert_int_equal(gw_negative_draw(1, UINT32_MAX, UINT32_MAX, attempt, 1), 0);
}

/* Chi-square of counts compared with equal shares, in standard deviations above its mean. */
static double excess(const uint32_t *counts, uint64_t bins, uint64_t draws)
{
	double expected = (double)draws / (double)bins, sum = 0;
	for (uint64_t i = 0; i < bins; i++)
		sum += ((double)counts[i] - expected) * ((double)counts[i] - expected) / expected;
	double freedom = (double)bins - 1;
	return (sum - freedom) * (sum - freedom) / (2 * freedom);
}

static void every_node_is_as_likely(void **state)
{
	(void)state;
	enum { BINS = 97, SLOTS = 3000, EACH = 5 };
	static const uint64_t bounds[] = {BINS, BINS * 50000001ull, BINS * 0x100000001ull};
	for (size_t b = 0; b < 3; b++) {
		for (uint32_t attempt = 0; attempt < 3; attempt++) {
			uint32_t counts[BINS] = {0};
			for (uint64_t slot = 0; slot < SLOTS; slot++) {
				for (uint64_t j = 0; j < EACH; j++) {
					uint64_t drawn = gw_negative_draw(123, slot, j, attempt, bounds[b]);
					assert_true(drawn < bounds[b]);
					counts[drawn / (bounds[b] / BINS)]++;
				}
			}
			assert_true(excess(counts, BINS, SLOTS * EACH) < 16); /* four standard deviations */
		}
	}
}

/* Of few nodes, all pairs are equally likely. */
static void draws_do_not_depend_on_each_other(void **state)
{
	(void)state;
	enum { BOUND_MAX = 16, SLOTS = 10000 };
	static const uint64_t bounds[] = {2, 3, 5, 8, BOUND_MAX};
	static const char *const what[] = {"negatives of an edge", "negatives of two edges", "attempts",
					   "negatives of two batches", "negatives of two edge types"};
	for (size_t b = 0; b < sizeof(bounds) / sizeof(bounds[0]); b++) {
		const uint64_t bound = bounds[b];
		uint32_t counts[5][BOUND_MAX * BOUND_MAX] = {{0}};
		for (uint64_t slot = 0; slot < SLOTS; slot++) {
			uint64_t stream = slot / 100, key = gw_draw_key(3, stream, GW_DRAW_NEGATIVE, 0, 0);
			const uint64_t other[] = {
				gw_negative_draw(key, slot, 1, 0, bound), gw_negative_draw(key, slot + 1, 0, 0, bound),
				gw_negative_draw(key, slot, 0, 1, bound),
				gw_negative_draw(gw_draw_key(3, stream + 1, GW_DRAW_NEGATIVE, 0, 0), slot, 0, 0, bound),
				gw_negative_draw(gw_draw_key(3, stream, GW_DRAW_NEGATIVE, 0, 1), slot, 0, 0, bound)};
			uint64_t drawn = gw_negative_draw(key, slot, 0, 0, bound);
			for (int i = 0; i < 5; i++)
				counts[i][drawn * bound + other[i]]++;
		}
		for (int i = 0; i < 5; i++)
			assert_equally_likely(counts[i], bound * bound, what[i], bound);
	}
}

/* --- Exclusion. --- */

struct entry {
	bool by_ends;
	uint32_t etype;
	uint64_t first, second;
};

static void exclusion_knows_what_was_added(void **state)
{
	(void)state;
	enum { ENTRIES = 300, TYPES = 3, RANGE = 40 };
	struct gw_exclude exclude = {0};
	struct entry entries[ENTRIES];
	for (uint64_t round = 0; round < 3; round++) {
		uint32_t n = round == 2 ? 0 : ENTRIES;
		assert_int_equal(gw_exclude_clear(&exclude, TYPES, n), GW_OK);
		for (uint32_t i = 0; i < n; i++) {
			uint64_t word = gw_mix64(i + round * 1000);
			/* Type 1 has entries of edges only, type 2 has no entries. */
			struct entry entry = {.by_ends = word % 2 && i % 2 == 0,
					      .etype = i % 2,
					      .first = word / 8 % RANGE,
					      .second = word / 1024 % RANGE};
			if (entry.by_ends)
				gw_exclude_add_ends(&exclude, entry.etype, entry.first, entry.second);
			else
				gw_exclude_add_edge(&exclude, entry.etype, entry.first);
			entries[i] = entry;
		}
		for (uint32_t t = 0; t < TYPES; t++)
			assert_int_equal(gw_exclude_concerns(&exclude, t), n && t < 2);
		for (uint64_t ask = 0; ask < 5000; ask++) {
			uint64_t word = gw_mix64(ask + 77), edge = word % RANGE, src = word / 64 % RANGE,
				 dst = word / 4096 % RANGE;
			uint32_t etype = (uint32_t)(word >> 40) % TYPES;
			bool expected = false;
			for (uint32_t i = 0; i < n; i++) {
				const struct entry *e = &entries[i];
				expected |= e->etype == etype &&
					    (e->by_ends ? e->first == src && e->second == dst : e->first == edge);
			}
			assert_int_equal(gw_exclude_has(&exclude, etype, edge, src, dst), expected);
		}
	}
	assert_false(gw_exclude_concerns(NULL, 0));
	assert_false(gw_exclude_concerns(&exclude, TYPES));
	gw_exclude_free(&exclude);
}

static gw_status clear_once(void *context)
{
	(void)context;
	struct gw_exclude exclude = {0};
	gw_status status = gw_exclude_clear(&exclude, 3, 100);
	gw_exclude_free(&exclude);
	return status;
}

static void short_memory_is_an_error(void **state)
{
	(void)state;
	assert_true(gw_fault_each(clear_once, NULL) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(draws_are_those_of_the_definition), cmocka_unit_test(every_node_is_as_likely),
		cmocka_unit_test(draws_do_not_depend_on_each_other), cmocka_unit_test(exclusion_knows_what_was_added),
		cmocka_unit_test(short_memory_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
