/* Picks: legal, uniform, equal to the definition whatever the fanout, the degree and the width of vectors. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sampler/lanes/wide.h"
#include "sampler/pick.h"
#include "test/support/alloc_fault.h"
#include "test/support/chi_square.h"
#include "test/support/slow_sample.h"
#include "test/support/uniform_picks.h"

#define DEGREE_MAX UINT32_MAX /* of a list that is drawn from */

static const int32_t fanouts[] = {0, 1, 2, 3, 5, 10, 15, 16, 31, 32, 33, 63, 64, 65, 100, 400, 2000, GW_FANOUT_ALL};
#define FANOUTS (sizeof(fanouts) / sizeof(fanouts[0]))

/* ---- equal to the definition ---- */

/* Degrees at and around everything that decides: the fanout, the switch from bitmap to set, the end of 32 bits. */
static size_t degrees_around(int32_t fanout, uint64_t *degrees)
{
	uint64_t k = fanout > 0 ? (uint64_t)fanout : 7;
	const uint64_t all[] = {
		0,         1,      2,       k - 1,   k,       k + 1,    k + 2,          2 * k,
		3 * k,     64 * k, 255 * k, 256 * k, 257 * k, 4097 * k, DEGREE_MAX / 2, DEGREE_MAX / 4 * 3,
		DEGREE_MAX};
	size_t count = fanout == GW_FANOUT_ALL ? 13 : sizeof(all) / sizeof(all[0]);
	memcpy(degrees, all, count * sizeof(*all));
	return count;
}

static void one_list_is_the_definition(void **state)
{
	(void)state;
	struct gw_pick_scratch scratch = {0};
	for (size_t f = 0; f < FANOUTS * 2; f++) {
		uint64_t degrees[32];
		size_t count = degrees_around(fanouts[f / 2], degrees);
		for (size_t d = 0; d < count; d++) {
			struct gw_pick_rule rule = {.key = f + 1, .fanout = fanouts[f / 2], .replace = f & 1};
			uint64_t n = gw_pick_count(&rule, degrees[d]);
			uint64_t *got = malloc((n + 1) * sizeof(*got)), *expected = malloc((n + 1) * sizeof(*got));
			assert_non_null(got);
			assert_non_null(expected);
			for (uint64_t instance = 0; instance < (n < 100 ? 8 : 1); instance++) {
				uint64_t vertex = instance << 31; /* both halves of the instance count */
				got[n] = 0x5555;
				assert_int_equal(gw_pick(&rule, vertex, degrees[d], &scratch, got), GW_OK);
				assert_int_equal(got[n], 0x5555);
				assert_int_equal(slow_pick(&rule, vertex, degrees[d], expected), n);
				assert_memory_equal(got, expected, n * sizeof(*got));
				for (uint64_t i = 0; i < n; i++) {
					assert_true(got[i] < degrees[d]);
					assert_true(i == 0 || got[i - 1] < got[i] ||
						    (rule.replace && got[i - 1] == got[i]));
				}
			}
			free(got);
			free(expected);
		}
	}
	gw_pick_scratch_free(&scratch);
}

#define LISTS 700 /* several runs, the last of them short */

struct records {
	uint64_t vertices[LISTS], begins[LISTS], ends[LISTS];
};

/* Lists of all kinds side by side: empty, short, as long as the fanout, long, and long enough that draws are rejected.
 */
static void make_records(struct records *records, int32_t fanout, uint64_t seed)
{
	struct gw_draws draws = gw_draws_begin(seed, 4);
	for (uint32_t i = 0; i < LISTS; i++) {
		uint64_t degrees[32];
		uint32_t count = (uint32_t)degrees_around(fanout, degrees);
		uint64_t degree = degrees[gw_draw_below(&draws, count)];
		if (gw_draw_below(&draws, 3) == 0)
			degree = gw_draw_below(&draws, 60); /* where positions come up twice */
		if (fanout == GW_FANOUT_ALL)
			degree %= 300;
		records->vertices[i] = (uint64_t)gw_draw32(&draws) << 20;
		records->begins[i] = (uint64_t)gw_draw32(&draws) << 10;
		records->ends[i] = records->begins[i] + degree;
	}
}

static void check_records(const struct records *records, const struct gw_pick_rule *rule, const struct gw_picks *picks)
{
	uint64_t at = 0;
	assert_int_equal(picks->dst_count, LISTS);
	for (uint32_t i = 0; i < LISTS; i++) {
		uint64_t expected[2000], degree = records->ends[i] - records->begins[i];
		uint64_t n = slow_pick(rule, records->vertices[i], degree, expected);
		assert_int_equal(((uint32_t *)picks->counts.data)[i], n);
		for (uint64_t j = 0; j < n; j++)
			assert_int_equal(((uint64_t *)picks->positions.data)[at + j], records->begins[i] + expected[j]);
		at += n;
	}
	assert_int_equal(picks->edge_count, at);
}

static void vectors_do_not_show(void **state)
{
	(void)state;
	struct gw_picks picks = {0};
	unsigned widths = 0;
	for (enum gw_vectors vectors = GW_VECTORS_OFF; vectors < GW_VECTORS_COUNT; vectors++) {
		if (!gw_vectors_set(vectors))
			continue;
		assert_int_equal(gw_vectors_used(), vectors);
		widths++;
		for (int32_t fanout = GW_FANOUT_ALL; fanout <= GW_WIDE_PICKS + 2; fanout++) {
			for (int replace = 0; replace < 2; replace++) {
				struct gw_pick_rule rule = {
					.key = gw_draw_key(1, 2, GW_DRAW_NEIGHBOURS, 3, (uint32_t)fanout),
					.fanout = fanout,
					.replace = replace,
				};
				struct records records;
				make_records(&records, fanout, (uint64_t)fanout + 9);
				assert_int_equal(uniform_from_records(&picks, &rule, records.vertices, records.begins,
								      records.ends, LISTS),
						 GW_OK);
				check_records(&records, &rule, &picks);
			}
		}
	}
	assert_true(widths >= 1);
	gw_vectors_set(GW_VECTORS_AUTO);
	gw_picks_free(&picks);
}

static void environment_names_vectors(void **state)
{
	(void)state;
	const char *before = getenv("GRAPHWIRE_VECTORS");
	char *kept = before ? strdup(before) : NULL;
	unsetenv("GRAPHWIRE_VECTORS");
	gw_vectors_set(GW_VECTORS_AUTO);
	enum gw_vectors widest = gw_vectors_used();
	for (enum gw_vectors vectors = GW_VECTORS_OFF; vectors < GW_VECTORS_COUNT; vectors++) {
		bool have = gw_vectors_set(vectors);
		assert_true(have == (vectors <= widest));
		setenv("GRAPHWIRE_VECTORS", gw_vectors_name(vectors), 1);
		gw_vectors_set(GW_VECTORS_AUTO);
		assert_int_equal(gw_vectors_used(), have ? vectors : widest);
		assert_true((gw_wide_function() == NULL) == (vectors == GW_VECTORS_OFF));
	}
	setenv("GRAPHWIRE_VECTORS", "sideways", 1);
	gw_vectors_set(GW_VECTORS_AUTO);
	assert_int_equal(gw_vectors_used(), widest);
	if (kept)
		setenv("GRAPHWIRE_VECTORS", kept, 1);
	else
		unsetenv("GRAPHWIRE_VECTORS");
	gw_vectors_set(GW_VECTORS_AUTO);
	free(kept);
}

/* Every 0-1 sequence sorted means that every sequence is (the 0-1 principle); for 32 values, samples of them. */
static void networks_sort(void **state)
{
	(void)state;
	for (uint32_t n = 0; n <= GW_WIDE_PICKS; n++) {
		struct gw_network network;
		gw_network_make(&network, n);
		uint32_t tries = n <= 16 ? 1u << n : 100000;
		for (uint32_t t = 0; t < tries; t++) {
			uint32_t bits = n <= 16 ? t : (uint32_t)gw_mix64(t) >> (32 - n);
			uint32_t ones = (uint32_t)__builtin_popcount(bits);
			for (uint32_t i = 0; i < network.count; i++) {
				uint32_t low = network.pairs[i].low, high = network.pairs[i].high;
				assert_true(low < high && high < n);
				if (bits >> low & ~bits >> high & 1)
					bits ^= 1u << low | 1u << high;
			}
			uint64_t sorted = ((1ull << ones) - 1) << (n - ones);
			assert_true(bits == sorted);
		}
	}
}

/* ---- uniform ---- */

static void assert_uniform(const uint64_t *counts, const double *expected, size_t cells, double scale)
{
	double sum = 0;
	for (size_t i = 0; i < cells; i++)
		sum += ((double)counts[i] - expected[i]) * ((double)counts[i] - expected[i]) / expected[i];
	sum *= scale;
	double limit = chi_square_limit((double)cells - 1, ONCE_IN_10_000);
	if (sum > limit)
		fail_msg("chi-square %.1f for %zu cells: the limit is %.1f", sum, cells, limit);
}

/* How often each position is picked, over instances drawn side by side as the sampler does it. Without replacement the
 * counts spread less than a multinomial's, by (degree - fanout) / (degree - 1). */
static void positions_are_uniform(void **state)
{
	(void)state;
	static const struct {
		uint64_t degree;
		int32_t fanout;
		uint64_t lists;
	} cases[] = {{2, 1, 40000},    {20, 5, 40000},   {50, 15, 20000},  {1000, 10, 20000},  {100, 32, 10000},
		     {120, 60, 10000}, {1000, 400, 500}, {1000, 900, 500}, {60000, 100, 5000}, {33, 32, 20000}};
	for (size_t c = 0; c < 2 * sizeof(cases) / sizeof(cases[0]); c++) {
		uint64_t degree = cases[c / 2].degree, cells = degree > 1000 ? 100 : degree;
		bool replace = c & 1;
		struct gw_pick_rule rule = {.key = 77 + c, .fanout = cases[c / 2].fanout, .replace = replace};
		uint64_t counts[1000] = {0};
		struct gw_picks picks = {0};
		for (uint64_t at = 0; at < cases[c / 2].lists; at += 100) {
			uint64_t vertices[100], begins[100] = {0}, ends[100];
			for (uint64_t i = 0; i < 100; i++) {
				vertices[i] = at + i;
				ends[i] = degree;
			}
			assert_int_equal(uniform_from_records(&picks, &rule, vertices, begins, ends, 100), GW_OK);
			for (uint64_t i = 0; i < picks.edge_count; i++)
				counts[((uint64_t *)picks.positions.data)[i] * cells / degree]++;
		}
		uint64_t lists = cases[c / 2].lists;
		double expected[1000], total = (double)lists * rule.fanout;
		for (uint64_t i = 0; i < cells; i++)
			expected[i] = total / (double)cells;
		double scale = replace ? 1 : (double)(degree - 1) / (double)(degree - (uint64_t)rule.fanout);
		assert_uniform(counts, expected, cells, scale);
		gw_picks_free(&picks);
	}
}

/* Whole sets: with 3 of 7 each of the 35 sets, hence each pair and each position, is equally likely. */
static void sets_are_uniform(void **state)
{
	(void)state;
	enum { LISTS_DRAWN = 70000, DEGREE = 7 };
	uint64_t by_mask[1 << DEGREE] = {0}, counts[35];
	double expected[35];
	struct gw_pick_rule rule = {.key = 5, .fanout = 3};
	struct gw_pick_scratch scratch = {0};
	for (uint64_t vertex = 0; vertex < LISTS_DRAWN; vertex++) {
		uint64_t picks[3];
		assert_int_equal(gw_pick(&rule, vertex, DEGREE, &scratch, picks), GW_OK);
		by_mask[1 << picks[0] | 1 << picks[1] | 1 << picks[2]]++;
	}
	size_t cells = 0;
	for (uint32_t mask = 0; mask < 1 << DEGREE; mask++) {
		if (__builtin_popcount(mask) == 3) {
			counts[cells] = by_mask[mask];
			expected[cells++] = LISTS_DRAWN / 35.0;
		}
	}
	assert_int_equal(cells, 35);
	assert_uniform(counts, expected, cells, 1);
	gw_pick_scratch_free(&scratch);
}

/* Pairs of picks: without replacement each pair is equally likely; with it, two different ones are twice as likely as
 * one twice. */
static void pairs_are_uniform(void **state)
{
	(void)state;
	enum { LISTS_DRAWN = 60000, DEGREE = 12 };
	for (int replace = 0; replace < 2; replace++) {
		uint64_t counts[DEGREE * DEGREE] = {0};
		double expected[DEGREE * DEGREE];
		struct gw_pick_rule rule = {.key = 6, .fanout = 2, .replace = replace};
		struct gw_pick_scratch scratch = {0};
		size_t cells = 0, cell[DEGREE][DEGREE];
		for (int a = 0; a < DEGREE; a++) {
			for (int b = replace ? a : a + 1; b < DEGREE; b++) {
				cell[a][b] = cells;
				double share = replace ? (a == b ? 1.0 : 2.0) / (DEGREE * DEGREE)
						       : 2.0 / (DEGREE * (DEGREE - 1));
				expected[cells++] = LISTS_DRAWN * share;
			}
		}
		for (uint64_t vertex = 0; vertex < LISTS_DRAWN; vertex++) {
			uint64_t picks[2];
			assert_int_equal(gw_pick(&rule, vertex, DEGREE, &scratch, picks), GW_OK);
			counts[cell[picks[0]][picks[1]]]++;
		}
		assert_uniform(counts, expected, cells, 1);
		gw_pick_scratch_free(&scratch);
	}
}

/* Neighbouring instances, hops, edge types and streams say nothing about each other. */
static void instances_and_keys_are_independent(void **state)
{
	(void)state;
	enum { LISTS_DRAWN = 32000, DEGREE = 8 };
	struct gw_pick_scratch scratch = {0};
	for (int what = 0; what < 5; what++) {
		uint64_t counts[DEGREE * DEGREE] = {0};
		double expected[DEGREE * DEGREE];
		for (uint64_t v = 0; v < LISTS_DRAWN; v++) {
			struct gw_pick_rule a = {.key = gw_draw_key(1, 1, GW_DRAW_NEIGHBOURS, 0, 0), .fanout = 1},
					    b = a;
			b.key = gw_draw_key(1 + (what == 1), 1 + (what == 2), GW_DRAW_NEIGHBOURS, what == 3, what == 4);
			uint64_t first, second;
			assert_int_equal(gw_pick(&a, v, DEGREE, &scratch, &first), GW_OK);
			assert_int_equal(gw_pick(&b, v + (what == 0), DEGREE, &scratch, &second), GW_OK);
			counts[first * DEGREE + second]++;
		}
		for (int i = 0; i < DEGREE * DEGREE; i++)
			expected[i] = (double)LISTS_DRAWN / (DEGREE * DEGREE);
		assert_uniform(counts, expected, DEGREE * DEGREE, 1);
	}
	gw_pick_scratch_free(&scratch);
}

/* ---- bad input ---- */

static void lists_too_long_are_refused(void **state)
{
	(void)state;
	struct gw_picks picks = {0};
	const uint64_t vertex = 9, begin = 5, end = begin + (1ull << 32);
	struct gw_pick_rule rule = {.key = 1, .fanout = 3};
	uint64_t out[3];
	for (rule.fanout = 1; rule.fanout < 40; rule.fanout += 38) {
		for (int replace = 0; replace < 2; replace++) {
			rule.replace = replace;
			assert_int_equal(gw_pick(&rule, vertex, end - begin, &picks.scratch, out), GW_RANGE);
			assert_int_equal(uniform_from_records(&picks, &rule, &vertex, &begin, &end, 1), GW_RANGE);
		}
	}
	rule.fanout = 0;
	assert_int_equal(uniform_from_records(&picks, &rule, &vertex, &begin, &end, 1), GW_OK);
	assert_int_equal(picks.edge_count, 0);
	rule.fanout = GW_FANOUT_ALL; /* no uint32_t counts it */
	assert_int_equal(uniform_from_records(&picks, &rule, &vertex, &begin, &end, 1), GW_RANGE);
	gw_picks_free(&picks);
}

static void bad_records_and_rules_are_refused(void **state)
{
	(void)state;
	struct gw_picks picks = {0};
	const uint64_t vertices[] = {4, 5}, begins[] = {0, 10}, ends[] = {3, 9};
	struct gw_pick_rule rule = {.key = 1, .fanout = 3};
	assert_int_equal(uniform_from_records(&picks, &rule, vertices, begins, ends, 1), GW_OK);
	assert_int_equal(uniform_from_records(&picks, &rule, vertices, begins, ends, 2), GW_RANGE);
	assert_non_null(strstr(gw_last_error(), "vertex 5"));
	static const int32_t bad[] = {-2, INT32_MIN, GW_FANOUT_MAX + 1, INT32_MAX};
	for (int i = 0; i < 4; i++) {
		rule.fanout = bad[i];
		assert_int_equal(uniform_from_records(&picks, &rule, vertices, begins, ends, 1), GW_INVALID);
	}
	gw_picks_free(&picks);
}

/* A part that owns [100, 104) of two columns; its second column is used. */
static void memory_is_read_and_checked(void **state)
{
	(void)state;
	const uint32_t indptr[] = {0, 0, 9, 3, 9, 3, 9, 5, 9, 6}, indices[] = {7, 8, 9, 20, 21, 30};
	struct gw_adjacency a = {
		.indptr = indptr,
		.indices = indices,
		.rows = 4,
		.edges = 6,
		.columns = 2,
		.column = 1,
		.indptr_bytes = 4,
		.index_bytes = 4,
		.dst_start = 100,
		.edge_start = 1000,
	};
	struct gw_picks picks = {0};
	struct gw_pick_rule rule = {.key = 1, .fanout = GW_FANOUT_ALL};
	const uint64_t vertices[] = {103, 100, 101, 102, 100};
	assert_int_equal(uniform_from_memory(&picks, &a, &rule, vertices, 5), GW_OK);
	const uint32_t counts[] = {1, 3, 0, 2, 3};
	const uint64_t positions[] = {5, 0, 1, 2, 3, 4, 0, 1, 2}, neighbours[] = {30, 7, 8, 9, 20, 21, 7, 8, 9};
	assert_int_equal(picks.dst_count, 5);
	assert_int_equal(picks.edge_count, 9);
	assert_memory_equal(picks.counts.data, counts, sizeof(counts));
	assert_memory_equal(picks.positions.data, positions, sizeof(positions));
	assert_memory_equal(picks.neighbours.data, neighbours, sizeof(neighbours));
	static const uint64_t outside[] = {99, 104, 0, UINT64_MAX};
	for (int i = 0; i < 4; i++) {
		const uint64_t pair[] = {102, outside[i]};
		assert_int_equal(uniform_from_memory(&picks, &a, &rule, pair, 2), GW_RANGE);
		assert_non_null(strstr(gw_last_error(), "[100, 104)"));
	}
	a.edges = 5;
	assert_int_equal(uniform_from_memory(&picks, &a, &rule, vertices, 1), GW_RANGE);
	gw_picks_free(&picks);
}

static gw_status pick_once(void *context)
{
	static struct records records;
	const struct gw_pick_rule *rule = context;
	make_records(&records, rule->fanout, 3);
	struct gw_picks picks = {0};
	gw_status status = uniform_from_records(&picks, rule, records.vertices, records.begins, records.ends, LISTS);
	if (status == GW_OK)
		check_records(&records, rule, &picks);
	gw_picks_free(&picks);
	return status;
}

static void memory_shortage_is_an_error(void **state)
{
	(void)state;
	static const int32_t some[] = {1, 15, 400};
	for (int i = 0; i < 6; i++) {
		struct gw_pick_rule rule = {.key = 1, .fanout = some[i / 2], .replace = i & 1};
		assert_true(gw_fault_each(pick_once, &rule) >= 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_list_is_the_definition), cmocka_unit_test(vectors_do_not_show),
		cmocka_unit_test(environment_names_vectors),  cmocka_unit_test(networks_sort),
		cmocka_unit_test(positions_are_uniform),      cmocka_unit_test(sets_are_uniform),
		cmocka_unit_test(pairs_are_uniform),          cmocka_unit_test(instances_and_keys_are_independent),
		cmocka_unit_test(lists_too_long_are_refused), cmocka_unit_test(bad_records_and_rules_are_refused),
		cmocka_unit_test(memory_is_read_and_checked), cmocka_unit_test(memory_shortage_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
