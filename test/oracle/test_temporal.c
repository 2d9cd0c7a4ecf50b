/* Draws by time equal the law, by both drivers, with a fence and without: exactly the eligible edges, exactly their
 * number, exactly the last ones; uniform by enumeration of sets and by chi-square. Damaged times are refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "sampler/columns.h"
#include "test/support/alloc_fault.h"
#include "test/support/chi_square.h"
#include "test/support/temporal_bed.h"

#define ALL GW_FANOUT_ALL

static const gw_dtype dtypes[] = {GW_INT32, GW_INT64, GW_FLOAT32, GW_FLOAT64};
static const struct gw_sampling_kind *const kinds[] = {&gw_sample_temporal, &gw_sample_last};

/* --- Beds. --- */

/* Few times, so that they tie with each other and with the seeds'; now and then the ends of the type. */
static struct gw_time some_time(gw_dtype dtype, uint64_t random)
{
	bool real = gw_time_is_real(dtype);
	if (random % 50 == 0 && real)
		return temporal_real(random / 50 % 2 ? INFINITY : -INFINITY);
	if (random % 50 == 0)
		return temporal_whole(dtype == GW_INT32 ? (random / 50 % 2 ? INT32_MAX : INT32_MIN)
							: (random / 50 % 2 ? INT64_MAX : INT64_MIN));
	if (random % 50 == 1 && real)
		return temporal_real(-0.0);
	int64_t whole = (int64_t)(random / 50 % 10) - 4;
	return real ? temporal_real((double)whole / 2) : temporal_whole(whole);
}

/* Whole columns have seeds between their times, too, where the law has no strict ends. */
static struct gw_time seed_time(gw_dtype dtype, uint64_t random, bool between)
{
	if (between && random % 3 == 0)
		return temporal_real((double)(random / 3 % 20) / 2 - 4.25);
	return some_time(dtype, random / 3);
}

enum ends { NO_ENDS, ENDS, OTHER_ENDS };

struct variant {
	gw_dtype dtype;
	enum ends ends;
	bool sorted, strict, windowed;
};

static void make_bed(struct temporal_bed *bed, const struct variant *variant, const uint64_t *degrees, uint64_t n,
		     uint64_t seed)
{
	bool real = gw_time_is_real(variant->dtype);
	temporal_bed_begin(bed, n, degrees, variant->dtype);
	bed->strict = variant->strict;
	bed->windowed = variant->windowed;
	for (uint64_t e = 0; e < bed->edges; e++) {
		uint64_t random = gw_mix64(e * 31 + seed);
		bool none = real && !variant->sorted && random % 40 == 2;
		temporal_set(variant->dtype, bed->times, e,
			     none ? temporal_real(NAN) : some_time(variant->dtype, random));
	}
	if (variant->ends) {
		const gw_dtype others[] = {[GW_INT32] = GW_INT64,
					   [GW_INT64] = GW_INT32,
					   [GW_FLOAT32] = GW_FLOAT64,
					   [GW_FLOAT64] = GW_FLOAT32};
		gw_dtype dtype = variant->ends == ENDS ? variant->dtype : others[variant->dtype];
		temporal_bed_ends(bed, dtype);
		for (uint64_t e = 0; e < bed->edges; e++) {
			uint64_t random = gw_mix64(e * 77 + seed);
			temporal_set(dtype, bed->ends, e,
				     real && random % 5 == 0 ? temporal_real(NAN) : some_time(dtype, random));
		}
	}
	if (variant->sorted)
		temporal_bed_sort(bed);
	for (uint32_t g = 0; g < TEMPORAL_SEEDS; g++) {
		bool between = !variant->strict || !variant->ends;
		bed->until[g] = seed_time(variant->dtype, gw_mix64(seed * 3 + g), between);
		bed->from[g] = seed_time(variant->dtype, gw_mix64(seed * 5 + g), true);
	}
}

static void with_each_variant(void (*body)(const struct variant *variant, uint64_t seed))
{
	for (uint64_t i = 0; i < 4 * 3 * 8; i++) {
		const struct variant variant = {.dtype = dtypes[i % 4],
						.ends = (enum ends)(i / 4 % 3),
						.sorted = i / 12 & 1,
						.strict = i / 12 & 2,
						.windowed = i / 12 & 4};
		body(&variant, i);
	}
}

/* --- Equal to the law. --- */

#define LISTS 90
#define ASKED 300 /* lists of a draw: two runs */

/* Degrees at and around everything that decides: the fanout, a line, a block of a fence. */
static void make_degrees(uint64_t *degrees, uint64_t seed)
{
	static const uint64_t around[] = {0, 1, 2, 4, 5, 6, 7, 8, 9, 17, 32, 33, 63, 64, 65, 66, 127, 128, 129, 200};
	for (uint64_t i = 0; i < LISTS; i++)
		degrees[i] = around[gw_mix64(seed + i) % (sizeof(around) / sizeof(around[0]))];
	degrees[3] = 777;
}

static void compare_with_law(struct temporal_bed *bed, const struct gw_draw *draw, uint64_t seed)
{
	uint64_t vertices[ASKED], expected[2000];
	uint32_t groups[ASKED];
	struct gw_picks picks[2] = {{0}};
	const uint64_t *positions[2];
	for (uint64_t i = 0; i < ASKED; i++) {
		vertices[i] = i < 3 ? 3 : gw_mix64(seed + i) % LISTS;
		groups[i] = (uint32_t)(gw_mix64(seed * 7 + i) % TEMPORAL_SEEDS);
	}
	for (int d = 0; d < 2; d++) {
		assert_int_equal(temporal_drive(bed, draw, vertices, groups, ASKED, d, &picks[d], NULL), GW_OK);
		assert_int_equal(picks[d].dst_count, ASKED);
		positions[d] = picks[d].positions.data;
	}
	for (uint64_t i = 0; i < ASKED; i++) {
		uint64_t count = temporal_law(bed, draw, vertices[i], groups[i], expected);
		for (int d = 0; d < 2; d++) {
			assert_int_equal(((const uint32_t *)picks[d].counts.data)[i], count);
			for (uint64_t j = 0; j < count; j++)
				assert_int_equal(*positions[d]++, expected[j]);
		}
	}
	gw_picks_free(&picks[0]);
	gw_picks_free(&picks[1]);
}

static void check_law(const struct variant *variant, uint64_t seed)
{
	static const int32_t fanouts[] = {0, 1, 3, 10, 33, 100, 700, ALL};
	struct temporal_bed bed;
	uint64_t degrees[LISTS];
	make_degrees(degrees, seed);
	make_bed(&bed, variant, degrees, LISTS, seed);
	for (uint64_t f = seed % 3; f < sizeof(fanouts) / sizeof(fanouts[0]); f += 3) {
		for (uint64_t k = 0; k < 4; k++) {
			struct gw_draw draw = temporal_bed_draw(&bed, kinds[k / 2], fanouts[f], k % 2);
			compare_with_law(&bed, &draw, seed * 100 + f);
		}
	}
	temporal_bed_free(&bed);
}

static void every_draw_is_the_law(void **state)
{
	(void)state;
	with_each_variant(check_law);
}

/* --- The law is uniform. --- */

/* Lists of one vertex for many groups: all see the same edges. Counts how often each set of ranks is picked, or with
 * replacement each rank. */
static void count_picks(struct temporal_bed *bed, const struct gw_draw *draw, uint64_t vertex, uint64_t draws,
			uint32_t *sets, uint32_t *ranks)
{
	enum { GROUPS = 4000 };
	static int64_t from[GROUPS], until[GROUPS];
	static uint64_t vertices[GROUPS], eligible[1000];
	static uint32_t groups[GROUPS];
	struct gw_draw grouped = *draw;
	uint64_t m = temporal_eligible(bed, vertex, 0, eligible);
	for (uint64_t at = 0; at < draws; at += GROUPS) {
		for (uint32_t g = 0; g < GROUPS; g++) {
			from[g] = bed->from_keys[0];
			until[g] = bed->until_keys[0];
			vertices[g] = vertex;
			groups[g] = g;
		}
		grouped.rule.key = draw->rule.key + at;
		grouped.groups = (struct gw_groups){.count = GROUPS, .from = from, .until = until};
		struct gw_picks picks = {0};
		assert_int_equal(temporal_drive(bed, &grouped, vertices, groups, GROUPS, at / GROUPS % 2, &picks, NULL),
				 GW_OK);
		const uint64_t *positions = picks.positions.data;
		for (uint32_t g = 0; g < GROUPS; g++) {
			uint32_t set = 0;
			for (uint32_t j = 0; j < ((const uint32_t *)picks.counts.data)[g]; j++, positions++) {
				uint64_t rank = 0;
				while (rank < m && eligible[rank] != *positions)
					rank++;
				assert_true(rank < m);
				set |= 1u << rank % 32;
				ranks[rank]++;
			}
			if (sets)
				sets[set]++;
		}
		gw_picks_free(&picks);
	}
}

/* A list of `degree` edges, of which every third is too late for group 0, and the first ones too early. */
static void uniform_bed(struct temporal_bed *bed, uint64_t degree, bool sorted)
{
	const uint64_t degrees[] = {13, degree};
	temporal_bed_begin(bed, 2, degrees, GW_INT64);
	for (uint64_t e = 0; e < degree; e++)
		temporal_set(GW_INT64, bed->times, 13 + e,
			     temporal_whole(e % 3 == 2       ? 200
					    : e < degree / 6 ? 1
							     : 50 + (int64_t)(e % 7)));
	bed->windowed = true;
	bed->from[0] = temporal_whole(50);
	bed->until[0] = temporal_whole(56);
	if (sorted)
		temporal_bed_sort(bed);
}

static void sets_are_equally_likely(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 12; i++) {
		uint32_t sets[1 << 6] = {0}, ranks[6] = {0}, cells = 0;
		struct temporal_bed bed;
		uint64_t eligible[12];
		uniform_bed(&bed, 12, i & 1);
		uint64_t m = temporal_eligible(&bed, 1, 0, eligible);
		assert_int_equal(m, 6);
		int32_t fanout = 1 + (int32_t)(i / 4) * 2;
		struct gw_draw draw = temporal_bed_draw(&bed, &gw_sample_temporal, fanout, i & 2);
		count_picks(&bed, &draw, 1, 24000, sets, ranks);
		assert_equally_likely(ranks, m, "ranks", m);
		for (uint32_t set = 0; set < 1 << 6 && !(i & 2); set++) {
			if (__builtin_popcount(set) == fanout)
				sets[cells++] = sets[set];
			else
				assert_int_equal(sets[set], 0);
		}
		if (!(i & 2))
			assert_equally_likely(sets, cells, "sets", m);
		temporal_bed_free(&bed);
	}
}

static void long_lists_are_uniform(void **state)
{
	(void)state;
	static const uint64_t degrees[] = {61, 130, 900};
	for (uint32_t i = 0; i < 12; i++) {
		static const int32_t fanouts[] = {5, 40};
		static uint32_t ranks[1000];
		static uint64_t eligible[1000];
		struct temporal_bed bed;
		uniform_bed(&bed, degrees[i / 4], i & 1);
		uint64_t m = temporal_eligible(&bed, 1, 0, eligible);
		memset(ranks, 0, sizeof(ranks));
		struct gw_draw draw =
			temporal_bed_draw(&bed, &gw_sample_temporal,
					  fanouts[i & 2 ? 1 : 0] < (int32_t)m ? fanouts[i & 2 ? 1 : 0] : 5, i & 2);
		count_picks(&bed, &draw, 1, 8000, NULL, ranks);
		assert_equally_likely(ranks, m, "edges", degrees[i / 4]);
		temporal_bed_free(&bed);
	}
}

/* The same vertex for two seeds of one time gets independent draws; for one seed it gets the same draw again. */
static void groups_draw_apart(void **state)
{
	(void)state;
	enum { N = 200 };
	for (int sorted = 0; sorted < 2; sorted++) {
		struct temporal_bed bed;
		struct gw_picks picks = {0};
		uint64_t vertices[N];
		uint32_t groups[N], equal = 0;
		uniform_bed(&bed, 200, sorted);
		for (uint32_t g = 1; g < TEMPORAL_SEEDS; g++) {
			bed.from[g] = bed.from[0];
			bed.until[g] = bed.until[0];
		}
		for (uint32_t i = 0; i < N; i++) {
			vertices[i] = 1;
			groups[i] = i % TEMPORAL_SEEDS;
		}
		struct gw_draw draw = temporal_bed_draw(&bed, &gw_sample_temporal, 6, false);
		assert_int_equal(temporal_drive(&bed, &draw, vertices, groups, N, false, &picks, NULL), GW_OK);
		assert_int_equal(picks.edge_count, N * 6);
		const uint64_t *positions = picks.positions.data;
		for (uint32_t i = 1; i < N; i++) {
			uint32_t same = 0;
			for (uint32_t j = 0; j < 6; j++)
				same += positions[i * 6 + j] == positions[j];
			if (groups[i] == 0)
				assert_int_equal(same, 6);
			else
				equal += same == 6;
		}
		assert_int_equal(equal, 0);
		gw_picks_free(&picks);
		temporal_bed_free(&bed);
	}
}

/* Groups without bounds see every edge whose time is a number; of edges with ends, those that never end. */
static void groups_may_have_no_bounds(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 64; i++) {
		const gw_dtype dtype = dtypes[i % 4];
		const bool real = gw_time_is_real(dtype), ends = i & 4;
		const uint64_t degree = 12, vertex = 0;
		const uint32_t group = 1;
		struct temporal_bed bed;
		struct gw_picks picks = {0};
		temporal_bed_begin(&bed, 1, &degree, dtype);
		if (ends)
			temporal_bed_ends(&bed, dtype);
		for (uint64_t e = 0; e < degree; e++) {
			temporal_set(dtype, bed.times, e,
				     real && e % 3 == 1 ? temporal_real(NAN) : temporal_whole((int64_t)e));
			if (ends)
				temporal_set(dtype, bed.ends, e,
					     real && e % 2 ? temporal_real(NAN) : temporal_whole(99));
		}
		struct gw_draw draw = temporal_bed_draw(&bed, kinds[i / 8 % 2], ALL, false);
		draw.groups = (struct gw_groups){.count = 2, .strict_ends = i & 16};
		assert_int_equal(temporal_drive(&bed, &draw, &vertex, &group, 1, i & 32, &picks, NULL), GW_OK);
		const uint64_t *positions = picks.positions.data;
		uint64_t count = 0;
		for (uint64_t e = 0; e < degree; e++) {
			if ((real && e % 3 == 1) || (ends && !(real && e % 2)))
				continue;
			assert_true(count < picks.edge_count);
			assert_int_equal(positions[count++], e);
		}
		assert_int_equal(picks.edge_count, count);
		gw_picks_free(&picks);
		temporal_bed_free(&bed);
	}
}

/* --- What is refused. --- */

static void columns_are_checked(void **state)
{
	(void)state;
	for (size_t k = 0; k < 2; k++) {
		struct gw_draw draw = {.kind = kinds[k]};
		struct gw_column_form *time = &draw.forms[GW_COLUMN_TIME], *end = &draw.forms[GW_COLUMN_END];
		assert_int_equal(draw.kind->check(&draw), GW_UNSUPPORTED);
		assert_non_null(strstr(gw_last_error(), "needs one time for each edge"));
		for (gw_dtype of_time = 0; of_time < GW_DTYPE_COUNT; of_time++) {
			bool good = of_time == GW_INT32 || of_time == GW_INT64 || of_time == GW_FLOAT32 ||
				    of_time == GW_FLOAT64;
			*time = (struct gw_column_form){gw_dtype_bytes(of_time), of_time};
			*end = (struct gw_column_form){0};
			assert_int_equal(draw.kind->check(&draw), good ? GW_OK : GW_UNSUPPORTED);
			time->entry_bytes *= 2;
			assert_int_equal(draw.kind->check(&draw), GW_UNSUPPORTED);
			time->entry_bytes /= 2;
			for (size_t e = 0; e < 4 && good; e++) {
				*end = (struct gw_column_form){gw_dtype_bytes(dtypes[e]), dtypes[e]};
				bool same = gw_time_is_real(of_time) == gw_time_is_real(dtypes[e]);
				assert_int_equal(draw.kind->check(&draw), same ? GW_OK : GW_UNSUPPORTED);
				if (!same)
					assert_non_null(strstr(gw_last_error(), "give whole numbers for both"));
			}
			*end = (struct gw_column_form){1, GW_UINT8};
			assert_int_equal(draw.kind->check(&draw), GW_UNSUPPORTED);
		}
	}
}

/* --- Memory that is short. --- */

struct shortage {
	const struct temporal_bed *bed;
	const struct gw_draw *draw;
	bool by_reads;
};

static gw_status draw_in_short_memory(void *context)
{
	const struct shortage *shortage = context;
	uint64_t vertices[40];
	uint32_t groups[40];
	struct gw_picks picks = {0};
	for (uint32_t i = 0; i < 40; i++) {
		vertices[i] = i;
		groups[i] = i % TEMPORAL_SEEDS;
	}
	gw_status status =
		temporal_drive(shortage->bed, shortage->draw, vertices, groups, 40, shortage->by_reads, &picks, NULL);
	gw_picks_free(&picks);
	return status;
}

static void check_shortage(const struct variant *variant, uint64_t seed)
{
	static const int32_t fanouts[] = {3, 100};
	struct temporal_bed bed;
	uint64_t degrees[LISTS];
	if (variant->dtype != GW_INT64 || variant->windowed || variant->strict)
		return;
	make_degrees(degrees, seed);
	make_bed(&bed, variant, degrees, LISTS, seed);
	for (int i = 0; i < 16; i++) {
		struct gw_draw draw = temporal_bed_draw(&bed, kinds[i & 1], fanouts[i & 2 ? 1 : 0], i & 4);
		struct shortage shortage = {&bed, &draw, i & 8};
		assert_true(gw_fault_each(draw_in_short_memory, &shortage) >= 3);
	}
	temporal_bed_free(&bed);
}

static void temporal_shortage_is_an_error(void **state)
{
	(void)state;
	with_each_variant(check_shortage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_draw_is_the_law),         cmocka_unit_test(sets_are_equally_likely),
		cmocka_unit_test(long_lists_are_uniform),        cmocka_unit_test(groups_draw_apart),
		cmocka_unit_test(groups_may_have_no_bounds),     cmocka_unit_test(columns_are_checked),
		cmocka_unit_test(temporal_shortage_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
