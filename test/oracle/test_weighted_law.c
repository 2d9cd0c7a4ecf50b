/* Draws by weight have the chances of their law: exact ones for lists of up to 8 edges, and classes of edges of a hub.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/support/chi_square.h"
#include "test/support/weighted_bed.h"

/* Cells that are expected fewer than five times are one cell; a cell that cannot occur must not. */
static void assert_distributed(const uint64_t *counts, const long double *chances, size_t cells, uint64_t total)
{
	double sum = 0, rare_expected = 0, rare = 0, freedom = -1;
	for (size_t i = 0; i < cells; i++) {
		double expected = (double)(chances[i] * (long double)total), count = (double)counts[i];
		if (chances[i] == 0)
			assert_int_equal(counts[i], 0);
		if (expected < 5) {
			rare_expected += expected;
			rare += count;
			continue;
		}
		sum += (count - expected) * (count - expected) / expected;
		freedom++;
	}
	if (rare_expected >= 5) {
		sum += (rare - rare_expected) * (rare - rare_expected) / rare_expected;
		freedom++;
	} else {
		assert_true(rare < 20);
	}
	if (freedom >= 1 && sum > chi_square_limit(freedom, ONCE_IN_10_000))
		fail_msg("chi-square %.1f with %.0f degrees of freedom: the limit is %.1f", sum, freedom,
			 chi_square_limit(freedom, ONCE_IN_10_000));
}

/* The chance of each set of k edges under successive sampling, by enumeration of all orders. */
static void set_chances(const long double *weights, uint32_t n, int k, long double *chances)
{
	memset(chances, 0, sizeof(*chances) << n);
	chances[0] = 1;
	for (uint32_t set = 0; set < 1u << n; set++) {
		long double rest = 0;
		for (uint32_t i = 0; i < n; i++)
			rest += set >> i & 1 ? 0 : weights[i];
		if (__builtin_popcount(set) >= k || rest == 0)
			continue;
		for (uint32_t i = 0; i < n; i++) {
			if (!(set >> i & 1))
				chances[set | 1u << i] += chances[set] * weights[i] / rest;
		}
		chances[set] = 0;
	}
}

static void check_sets(const double *weights, uint32_t n, int32_t fanout, gw_dtype dtype)
{
	enum { LISTS = 10000 };
	uint64_t scaled[8], single[8] = {0}, *sets = weighted_alloc(sizeof(uint64_t) << n);
	long double exact[8], chances[256], total = 0;
	for (int table = 0; table < 2; table++) {
		struct weighted_bed bed;
		weighted_bed_repeat(&bed, LISTS, dtype, weights, n);
		slow_weights(dtype, bed.weights, n, scaled);
		total = 0;
		for (uint32_t i = 0; i < n; i++)
			total += exact[i] = (long double)scaled[i];
		if (table)
			weighted_bed_table(&bed);
		for (int replace = 0; replace < 2; replace++) {
			struct gw_draw draw = weighted_bed_draw(&bed, fanout, replace);
			struct weighted_driven driven = {0};
			uint64_t *positions = weighted_alloc(GW_RUN_MAX * 8 * sizeof(uint64_t)), picks = 0;
			memset(sets, 0, sizeof(uint64_t) << n);
			memset(single, 0, sizeof(single));
			for (uint64_t at = 0; at < LISTS; at += 250) {
				assert_int_equal(weighted_drive(&driven, &bed, &draw, at, 250, positions), GW_OK);
				for (uint32_t i = 0; i < 250; i++) {
					uint32_t set = 0;
					for (uint32_t j = 0; j < driven.run.counts[i]; j++, picks++) {
						uint64_t edge = positions[driven.run.lists.starts[i] + j] % n;
						set |= 1u << edge;
						single[edge]++;
					}
					sets[set]++;
				}
			}
			if (replace) {
				for (uint32_t i = 0; i < n; i++)
					chances[i] = exact[i] / total;
				assert_distributed(single, chances, n, picks);
			} else {
				set_chances(exact, n, fanout, chances);
				assert_distributed(sets, chances, 1u << n, LISTS);
			}
			weighted_driven_free(&driven);
			free(positions);
		}
		weighted_bed_free(&bed);
	}
	free(sets);
}

static void small_lists_follow_the_weights(void **state)
{
	(void)state;
	static const double cases[][8] = {{1, 2, 3, 4, 5, 6, 7, 8},   {1, 1, 1, 1, 1, 1, 1, 1},
					  {0, 1, 0, 2, 0, 3, 0, 0},   {1e-30, 1e30, 1e-10, 1, 1e10, 0, 1, 1},
					  {100, 1, 1, 1, 1, 1, 1, 1}, {0.1, 0.2, 0.3, 0.25, 0.15, 5, 0.01, 2}};
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		for (int32_t fanout = 1; fanout <= 7; fanout += 2) {
			check_sets(cases[c], 8, fanout, c % 2 ? GW_FLOAT64 : GW_FLOAT32);
			check_sets(cases[c], 5, fanout < 5 ? fanout : 4, GW_FLOAT64);
		}
	}
}

/* The table cannot tell the light edges from weight 0: the exact draws pick them. */
static void heavy_edges_leave_light_ones(void **state)
{
	(void)state;
	static const double heavy[] = {1e12, 1, 1, 1}, uneven[] = {1, 1e14, 2, 3, 0};
	for (int32_t fanout = 1; fanout <= 4; fanout++) {
		check_sets(heavy, 4, fanout, GW_FLOAT32);
		check_sets(heavy, 4, fanout, GW_INT64);
		check_sets(uneven, 5, fanout, GW_FLOAT64);
	}
	/* Always the heavy edge, and two light ones. */
	struct weighted_bed bed;
	weighted_bed_repeat(&bed, 200, GW_FLOAT32, heavy, 4);
	weighted_bed_table(&bed);
	struct gw_draw draw = weighted_bed_draw(&bed, 3, false);
	struct weighted_driven driven = {0};
	uint64_t positions[600];
	assert_int_equal(weighted_drive(&driven, &bed, &draw, 0, 200, positions), GW_OK);
	for (uint64_t i = 0; i < 200; i++) {
		assert_int_equal(driven.run.counts[i], 3);
		assert_int_equal(positions[3 * i], 4 * i);
	}
	assert_int_equal(driven.rounds, 2); /* table, weights */
	weighted_driven_free(&driven);
	weighted_bed_free(&bed);
}

/* A hub of three classes of weights. With replacement, a class's picks are binomial; without, their number follows from
 * the numbers of edges that remain in each class. */
enum { HUB = 100000, CLASSES = 3 };

static int hub_class(uint64_t edge)
{
	return edge % 5000 == 77 ? 2 : edge % 100 == 3 ? 1 : 0;
}

static const double hub_weights[CLASSES] = {1, 100, 10000};

/* chances[c]: of c picks of class 2 among k, without replacement. */
static void hub_chances(const uint64_t *sizes, uint32_t k, long double *chances)
{
	static long double now[64][64], next[64][64]; /* [picks of class 1][of class 2] */
	memset(now, 0, sizeof(now));
	now[0][0] = 1;
	for (uint32_t j = 0; j < k; j++) {
		memset(next, 0, sizeof(next));
		for (uint32_t a = 0; a <= j; a++) {
			for (uint32_t b = 0; a + b <= j; b++) {
				long double w0 = (long double)(sizes[0] - (j - a - b)) * hub_weights[0];
				long double w1 = (long double)(sizes[1] - a) * hub_weights[1];
				long double w2 = b < sizes[2] ? (long double)(sizes[2] - b) * hub_weights[2] : 0;
				long double sum = w0 + w1 + w2, chance = now[a][b];
				next[a][b] += chance * w0 / sum;
				next[a + 1][b] += chance * w1 / sum;
				next[a][b + 1] += chance * w2 / sum;
			}
		}
		memcpy(now, next, sizeof(now));
	}
	for (uint32_t b = 0; b <= k; b++) {
		chances[b] = 0;
		for (uint32_t a = 0; a <= k; a++)
			chances[b] += now[a][b];
	}
}

static void hubs_follow_the_weights(void **state)
{
	(void)state;
	enum { FANOUT = 30, LISTS = 3000, CELLS = 50 };
	const uint64_t degree = HUB;
	struct weighted_bed bed;
	weighted_bed_begin(&bed, 1, &degree, GW_FLOAT32);
	uint64_t sizes[CLASSES] = {0};
	for (uint64_t e = 0; e < HUB; e++) {
		slow_weight_set(GW_FLOAT32, bed.weights, e, hub_weights[hub_class(e)]);
		sizes[hub_class(e)]++;
	}
	long double sum = 0, chances[FANOUT + 1], cells[CELLS] = {0};
	for (int c = 0; c < CLASSES; c++)
		sum += (long double)sizes[c] * hub_weights[c];
	for (uint64_t e = 0; e < HUB; e++)
		cells[e * CELLS / HUB] += hub_weights[hub_class(e)] / sum;
	for (int table = 0; table < 2; table++) {
		uint64_t lists = table ? LISTS : 200; /* the weights of 10^5 edges are read for each */
		if (table)
			weighted_bed_table(&bed);
		for (int replace = 0; replace < 2; replace++) {
			struct gw_draw draw = weighted_bed_draw(&bed, FANOUT, replace);
			struct weighted_driven driven = {0};
			uint64_t positions[FANOUT], heavy[FANOUT + 1] = {0}, spread[CELLS] = {0};
			for (uint64_t v = 0; v < lists; v++) {
				uint32_t of_class = 0;
				bed.vertices[0] = v;
				assert_int_equal(weighted_drive(&driven, &bed, &draw, 0, 1, positions), GW_OK);
				assert_int_equal(driven.run.counts[0], FANOUT);
				for (int j = 0; j < FANOUT; j++) {
					of_class += hub_class(positions[j]) == 2;
					spread[positions[j] * CELLS / HUB]++;
				}
				heavy[of_class]++;
			}
			if (replace) {
				assert_distributed(spread, cells, CELLS, lists * FANOUT);
			} else {
				hub_chances(sizes, FANOUT, chances);
				assert_distributed(heavy, chances, FANOUT + 1, lists);
			}
			weighted_driven_free(&driven);
		}
	}
	weighted_bed_free(&bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_lists_follow_the_weights),
		cmocka_unit_test(heavy_edges_leave_light_ones),
		cmocka_unit_test(hubs_follow_the_weights),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
