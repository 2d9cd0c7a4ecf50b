/* Draws by weight equal the law, whatever the run, the rounds, the vectors and the dtype; bad input is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/dtype.h"
#include "core/numbers/rng.h"
#include "sampler/columns.h"
#include "sampler/lanes/wide.h"
#include "test/support/alloc_fault.h"
#include "test/support/weighted_bed.h"

#define ALL GW_FANOUT_ALL

static void compare_with_law(const struct weighted_bed *bed, const struct gw_draw *draw, uint32_t length)
{
	struct weighted_driven driven = {0};
	uint64_t *positions = weighted_alloc(weighted_bed_bounds(bed, draw) * sizeof(uint64_t)), *expected;
	expected = weighted_alloc((bed->edges + (1 << 12)) * sizeof(uint64_t));
	assert_int_equal(draw->kind->check(draw), GW_OK);
	for (uint64_t at = 0; at < bed->n; at += length) {
		uint32_t n = (uint32_t)(bed->n - at < length ? bed->n - at : length);
		assert_int_equal(weighted_drive(&driven, bed, draw, at, n, positions), GW_OK);
		for (uint32_t i = 0; i < n; i++) {
			struct slow_list list = weighted_bed_list(bed, at + i);
			uint64_t count = slow_weighted(&draw->rule, bed->vertices[at + i],
						       bed->grouped ? bed->groups[at + i] : 0, &list, expected);
			assert_int_equal(driven.run.counts[i], count);
			for (uint64_t j = 0; j < count; j++)
				assert_int_equal(positions[driven.run.lists.starts[i] + j],
						 bed->indptr[at + i] + bed->shift + expected[j]);
		}
	}
	weighted_driven_free(&driven);
	free(positions);
	free(expected);
}

/* ---- equal to the law ---- */

static const gw_dtype dtypes[] = {GW_UINT8, GW_UINT16, GW_UINT32,  GW_UINT64,   GW_INT8,    GW_INT16,
				  GW_INT32, GW_INT64,  GW_FLOAT16, GW_BFLOAT16, GW_FLOAT32, GW_FLOAT64};
#define DTYPES (sizeof(dtypes) / sizeof(dtypes[0]))

/* A weight of one of several laws, which a list keeps: equal, even, with zeros, spread over 200 powers of two, all
 * zero, one heavy edge. */
static double some_weight(uint64_t law, uint64_t random, uint64_t i)
{
	double unit = (double)(random >> 11) * 0x1p-53;
	switch (law % 6) {
	case 0:
		return 3;
	case 1:
		return 100 * unit;
	case 2:
		return random % 3 ? 0 : 1 + 9 * unit;
	case 3:
		return ldexp(unit, (int)(random % 200) - 100);
	case 4:
		return 0;
	default:
		return i == 1 ? 1e12 : 1 + unit;
	}
}

/* Lists whose degrees lie at and around everything that decides. */
static void make_mixed(struct weighted_bed *bed, uint64_t n, int32_t fanout, gw_dtype dtype, uint64_t seed)
{
	uint64_t k = fanout > 0 ? (uint64_t)fanout : 3, *degrees = weighted_alloc(n * sizeof(uint64_t));
	const uint64_t around[] = {0, 1, k - 1, k, k + 1, 2 * k, 4 * k + 15, 4 * k + 16, 4 * k + 17, 6 * k + 20, 130};
	for (uint64_t i = 0; i < n; i++) {
		uint64_t random = gw_mix64(seed * 100003 + i);
		degrees[i] = random % 3 ? around[random / 3 % 11] : random / 3 % 70;
	}
	weighted_bed_begin(bed, n, degrees, dtype);
	for (uint64_t i = 0; i < n; i++) {
		bed->vertices[i] = gw_mix64(seed + i) >> (i % 3 * 16);
		bed->groups[i] = (uint32_t)gw_mix64(i * 7 + seed);
		for (uint64_t e = bed->indptr[i]; e < bed->indptr[i + 1]; e++)
			slow_weight_set(dtype, bed->weights, e,
					some_weight(gw_mix64(i + seed), gw_mix64(e * 31 + seed), e - bed->indptr[i]));
	}
	free(degrees);
}

static const int32_t fanouts[] = {0, 1, 2, 3, 5, 10, 15, 31, 32, 33, 64, 65, 150, ALL};
#define FANOUTS (sizeof(fanouts) / sizeof(fanouts[0]))

static void every_draw_is_the_law(void **state)
{
	(void)state;
	static const uint32_t lengths[] = {256, 1, 7, 100};
	uint64_t seed = 0;
	for (size_t f = 0; f < FANOUTS; f++) {
		for (size_t d = 0; d < DTYPES; d++, seed++) {
			struct weighted_bed bed;
			make_mixed(&bed, fanouts[f] > 40 ? 40 : 120, fanouts[f], dtypes[d], seed);
			for (int table = 0; table < 2; table++) {
				if (table)
					weighted_bed_table(&bed);
				for (int replace = 0; replace < 2; replace++) {
					bed.grouped = (seed + (uint64_t)replace) % 2;
					struct gw_draw draw = weighted_bed_draw(&bed, fanouts[f], replace);
					for (int at_hand = 0; at_hand < 2; at_hand++) {
						bed.at_hand = at_hand;
						bed.shift = seed % 2 ? 0 : 1ull << 40;
						compare_with_law(&bed, &draw,
								 lengths[(seed + (uint64_t)(table + at_hand)) % 4]);
					}
				}
			}
			weighted_bed_free(&bed);
		}
	}
}

static void vectors_do_not_show_in_draws(void **state)
{
	(void)state;
	for (enum gw_vectors vectors = GW_VECTORS_OFF; vectors < GW_VECTORS_COUNT; vectors++) {
		if (!gw_vectors_set(vectors))
			continue;
		for (int32_t fanout = 1; fanout < 40; fanout += 6) {
			struct weighted_bed bed;
			make_mixed(&bed, 150, fanout, GW_FLOAT32, (uint64_t)fanout);
			weighted_bed_table(&bed);
			for (int i = 0; i < 4; i++) {
				struct gw_draw draw = weighted_bed_draw(&bed, fanout, i % 2);
				bed.at_hand = i / 2;
				compare_with_law(&bed, &draw, GW_RUN_MAX);
			}
			weighted_bed_free(&bed);
		}
	}
	gw_vectors_set(GW_VECTORS_AUTO);
}

static void long_lists_are_the_law(void **state)
{
	(void)state;
	const uint64_t degrees[] = {5000, 63, 64, 65, 128, 4097, 20000};
	for (uint64_t kind = 0; kind < 6; kind++) {
		struct weighted_bed bed;
		weighted_bed_begin(&bed, 7, degrees, GW_FLOAT64);
		for (uint64_t e = 0; e < bed.edges; e++)
			slow_weight_set(GW_FLOAT64, bed.weights, e, some_weight(kind, gw_mix64(e + kind), e % 777));
		for (int table = 0; table < 2; table++) {
			if (table)
				weighted_bed_table(&bed);
			for (int i = 0; i < 6; i++) {
				static const int32_t some[] = {10, 50, 1000};
				struct gw_draw draw = weighted_bed_draw(&bed, some[i / 2], i % 2);
				bed.at_hand = (kind + (uint64_t)i / 2) % 2;
				if (draw.rule.fanout == 1000 && !table && kind != 3)
					continue; /* the law's linear scans take long */
				compare_with_law(&bed, &draw, 4);
			}
		}
		weighted_bed_free(&bed);
	}
}

static void groups_change_draws(void **state)
{
	(void)state;
	enum { N = 200 };
	uint64_t degrees[N];
	for (int i = 0; i < N; i++)
		degrees[i] = 100;
	struct weighted_bed bed;
	weighted_bed_begin(&bed, N, degrees, GW_FLOAT32);
	for (uint64_t e = 0; e < bed.edges; e++)
		slow_weight_set(GW_FLOAT32, bed.weights, e, 1 + (double)(e % 100 % 7));
	memset(bed.vertices, 0, N * sizeof(uint64_t));
	for (int table = 0; table < 2; table++) {
		if (table)
			weighted_bed_table(&bed);
		for (int replace = 0; replace < 2; replace++) {
			struct gw_draw draw = weighted_bed_draw(&bed, 5, replace);
			struct weighted_driven driven = {0};
			uint64_t plain[N * 5], zero[N * 5], apart[N * 5];
			memset(bed.groups, 0, N * sizeof(uint32_t));
			bed.grouped = false;
			assert_int_equal(weighted_drive(&driven, &bed, &draw, 0, N, plain), GW_OK);
			bed.grouped = true;
			assert_int_equal(weighted_drive(&driven, &bed, &draw, 0, N, zero), GW_OK);
			assert_memory_equal(plain, zero, sizeof(plain));
			for (uint32_t i = 0; i < N; i++)
				bed.groups[i] = i;
			assert_int_equal(weighted_drive(&driven, &bed, &draw, 0, N, apart), GW_OK);
			assert_memory_equal(plain, apart, 5 * sizeof(plain[0]));
			int equal = 0;
			for (uint64_t i = 1; i < N; i++) {
				int same = 0;
				for (uint64_t j = 0; j < 5; j++) {
					assert_int_equal(plain[5 * i + j] - 100 * i, plain[j]);
					same += apart[5 * i + j] - 100 * i == plain[j];
				}
				equal += same == 5;
			}
			assert_int_equal(equal, 0);
			weighted_driven_free(&driven);
		}
	}
	weighted_bed_free(&bed);
}

/* ---- edges of no weight, bad input, shortage ---- */

static void no_weight_is_no_pick(void **state)
{
	(void)state;
	static const double none[20] = {0}, few[20] = {[3] = 1, [17] = 1e-20};
	for (int table = 0; table < 2; table++) {
		for (int i = 0; i < 8; i++) {
			static const int32_t some[] = {2, 5, 30, ALL};
			struct weighted_bed bed;
			struct weighted_driven driven = {0};
			uint64_t positions[64];
			weighted_bed_repeat(&bed, 1, GW_FLOAT64, none, 20);
			if (table)
				weighted_bed_table(&bed);
			struct gw_draw draw = weighted_bed_draw(&bed, some[i / 2], i % 2);
			assert_int_equal(weighted_drive(&driven, &bed, &draw, 0, 1, positions), GW_OK);
			assert_int_equal(driven.run.counts[0], 0);
			weighted_bed_free(&bed);
			weighted_bed_repeat(&bed, 1, GW_FLOAT64, few, 20);
			if (table)
				weighted_bed_table(&bed);
			assert_int_equal(weighted_drive(&driven, &bed, &draw, 0, 1, positions), GW_OK);
			bool repeats = draw.rule.replace && draw.rule.fanout != ALL;
			assert_int_equal(driven.run.counts[0], repeats ? draw.rule.fanout : 2);
			for (uint32_t j = 0; j < driven.run.counts[0]; j++)
				assert_true(positions[j] == 3 || (positions[j] == 17 && (repeats || j == 1)));
			weighted_driven_free(&driven);
			weighted_bed_free(&bed);
		}
	}
}

static void bad_weights_name_the_edge(void **state)
{
	(void)state;
	const uint64_t degrees[] = {3, 100};
	struct gw_node_type ntypes[] = {{.name = "a"}, {.name = "b"}};
	struct gw_edge_type relation = {.name = "r", .src = 0, .dst = 1};
	const struct gw_graph_meta meta = {.ntypes = ntypes, .etypes = &relation};
	const struct gw_column_names names = {.meta = &meta, .of = {[GW_COLUMN_WEIGHT] = "w"}};
	static const char named[] = "weight \"w\" of a:r:b, in the list of vertex 41: edge 60: ";
	const float bad[] = {-1, NAN, INFINITY, -INFINITY};
	struct weighted_driven driven = {0};
	uint64_t positions[200];
	for (int i = 0; i < 4; i++) {
		struct weighted_bed bed;
		weighted_bed_begin(&bed, 2, degrees, GW_FLOAT32);
		bed.vertices[1] = 41;
		for (int e = 0; e < 103; e++)
			((float *)bed.weights)[e] = 1;
		((float *)bed.weights)[63] = bad[i];
		for (int32_t fanout = ALL; fanout < 110; fanout += 111) {
			struct gw_draw draw = weighted_bed_draw(&bed, fanout == ALL ? ALL : 10, false);
			draw.names = &names;
			assert_int_equal(weighted_drive(&driven, &bed, &draw, 0, 2, positions), GW_RANGE);
			assert_non_null(strstr(gw_last_error(), named));
			bed.at_hand = true;
			bed.shift = 1000;
			assert_int_equal(weighted_drive(&driven, &bed, &draw, 0, 2, positions), GW_RANGE);
			assert_non_null(strstr(gw_last_error(), named));
			bed.at_hand = false;
			bed.shift = 0;
		}
		weighted_bed_free(&bed);
	}
	weighted_driven_free(&driven);
}

static void damaged_tables_are_refused(void **state)
{
	(void)state;
	uint64_t degrees[20];
	for (int i = 0; i < 20; i++)
		degrees[i] = i < 10 ? 30 : 300;
	struct weighted_driven driven = {0};
	uint64_t positions[20 * 40];
	for (int i = 0; i < 8; i++) {
		struct weighted_bed bed;
		weighted_bed_begin(&bed, 20, degrees, GW_UINT8);
		bed.at_hand = i >= 4;
		memset(bed.weights, 1, bed.edges);
		weighted_bed_table(&bed);
		for (uint64_t e = bed.indptr[15]; e < bed.indptr[16]; e++) {
			bed.table[2 * e] = 0;
			bed.table[2 * e + 1] = 300; /* the first past the list */
		}
		struct gw_draw draw = weighted_bed_draw(&bed, i % 4 < 2 ? 5 : 40, i % 2);
		assert_int_equal(weighted_drive(&driven, &bed, &draw, 0, 20, positions), GW_RANGE);
		assert_non_null(strstr(gw_last_error(), "vertex 15: "));
		weighted_bed_free(&bed);
	}
	weighted_driven_free(&driven);
}

static void lists_too_long_to_draw_are_refused(void **state)
{
	(void)state;
	struct weighted_bed bed;
	const uint64_t degree = 4;
	struct weighted_driven driven = {0};
	uint64_t positions[4];
	weighted_bed_begin(&bed, 1, &degree, GW_FLOAT32);
	weighted_bed_table(&bed);
	bed.vertices[0] = 9;
	bed.indptr[1] = 1ull << 32;
	for (int i = 0; i < 4; i++) {
		struct gw_draw draw = weighted_bed_draw(&bed, 3, i % 2);
		draw.forms[GW_COLUMN_ALIAS].entry_bytes = i < 2 ? 8 : 0;
		assert_int_equal(weighted_drive(&driven, &bed, &draw, 0, 1, positions), GW_RANGE);
		assert_non_null(strstr(gw_last_error(), "vertex 9: "));
		draw.rule.fanout = 0;
		assert_int_equal(weighted_drive(&driven, &bed, &draw, 0, 1, positions), GW_OK);
		assert_int_equal(driven.run.counts[0], 0);
	}
	weighted_driven_free(&driven);
	weighted_bed_free(&bed);
}

static void columns_are_checked(void **state)
{
	(void)state;
	struct gw_draw draw = {.kind = &gw_sample_weighted};
	assert_int_equal(draw.kind->check(&draw), GW_UNSUPPORTED);
	draw.forms[GW_COLUMN_ALIAS] = (struct gw_column_form){8, GW_UINT32};
	assert_int_equal(draw.kind->check(&draw), GW_UNSUPPORTED);
	draw.forms[GW_COLUMN_WEIGHT] = (struct gw_column_form){1, GW_INT8_ROW};
	assert_int_equal(draw.kind->check(&draw), GW_UNSUPPORTED);
	draw.forms[GW_COLUMN_WEIGHT] = (struct gw_column_form){12, GW_FLOAT32};
	assert_int_equal(draw.kind->check(&draw), GW_UNSUPPORTED);
	draw.forms[GW_COLUMN_WEIGHT] = (struct gw_column_form){4, GW_FLOAT32};
	assert_int_equal(draw.kind->check(&draw), GW_OK);
	draw.forms[GW_COLUMN_ALIAS].entry_bytes = 0;
	assert_int_equal(draw.kind->check(&draw), GW_OK);
}

struct shortage {
	const struct weighted_bed *bed;
	struct gw_draw draw;
};

static gw_status draw_in_short_memory(void *context)
{
	static uint64_t positions[40 * 1000];
	const struct shortage *shortage = context;
	struct weighted_driven driven = {0};
	gw_status status =
		weighted_drive(&driven, shortage->bed, &shortage->draw, 0, (uint32_t)shortage->bed->n, positions);
	weighted_driven_free(&driven);
	return status;
}

static void weighted_shortage_is_an_error(void **state)
{
	(void)state;
	static const int32_t some[] = {3, 40, 200};
	for (int table = 0; table < 3; table++) {
		for (int i = 0; i < 6; i++) {
			struct weighted_bed bed;
			make_mixed(&bed, 40, some[i / 2], GW_FLOAT32, (uint64_t)i);
			if (table)
				weighted_bed_table(&bed);
			struct shortage shortage = {&bed, weighted_bed_draw(&bed, some[i / 2], i % 2)};
			bed.at_hand = table == 2;
			unsigned long faults = gw_fault_each(draw_in_short_memory, &shortage);
			/* a few draws with replacement from tables at hand need no memory */
			assert_true(faults >= 3 || (bed.at_hand && shortage.draw.rule.replace));
			weighted_bed_free(&bed);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_draw_is_the_law),      cmocka_unit_test(vectors_do_not_show_in_draws),
		cmocka_unit_test(long_lists_are_the_law),     cmocka_unit_test(groups_change_draws),
		cmocka_unit_test(no_weight_is_no_pick),       cmocka_unit_test(bad_weights_name_the_edge),
		cmocka_unit_test(damaged_tables_are_refused), cmocka_unit_test(lists_too_long_to_draw_are_refused),
		cmocka_unit_test(columns_are_checked),        cmocka_unit_test(weighted_shortage_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
