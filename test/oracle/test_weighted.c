/* Draws by weight: equal to the law whatever the run, the vectors and the dtype; distributed as the weights; errors. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/graph/alias.h"
#include "sampler/draw.h"
#include "sampler/pick.h"
#include "sampler/wide.h"
#include "test/support/alloc_fault.h"
#include "test/support/slow_weighted.h"

#define ALL GW_FANOUT_ALL

/* Lists one after the other, as a part stores them. */
struct bed {
	uint64_t n, edges;
	uint64_t *indptr, *vertices;
	uint32_t *groups, *table; /* table: NULL if the edge type has none */
	gw_dtype dtype;
	void *weights;
	bool grouped, at_hand; /* at_hand: the driver offers the columns */
};

static void *must_alloc(size_t bytes)
{
	void *memory = calloc(1, bytes + 1);
	assert_non_null(memory);
	return memory;
}

static void bed_begin(struct bed *bed, uint64_t n, const uint64_t *degrees, gw_dtype dtype)
{
	*bed = (struct bed){.n = n, .dtype = dtype};
	bed->indptr = must_alloc((n + 1) * sizeof(uint64_t));
	bed->vertices = must_alloc(n * sizeof(uint64_t));
	bed->groups = must_alloc(n * sizeof(uint32_t));
	for (uint64_t i = 0; i < n; i++) {
		bed->indptr[i + 1] = bed->indptr[i] + degrees[i];
		bed->vertices[i] = i;
	}
	bed->edges = bed->indptr[n];
	bed->weights = must_alloc(bed->edges * gw_dtype_bytes(dtype));
}

static void bed_make_table(struct bed *bed)
{
	bed->table = must_alloc(bed->edges * 8);
	assert_int_equal(gw_alias_build(bed->indptr, bed->n, bed->dtype, bed->weights, 1, bed->table), GW_OK);
}

static void bed_free(struct bed *bed)
{
	free(bed->indptr);
	free(bed->vertices);
	free(bed->groups);
	free(bed->table);
	free(bed->weights);
}

static struct slow_list list_of(const struct bed *bed, uint64_t list)
{
	return (struct slow_list){
		.n = bed->indptr[list + 1] - bed->indptr[list],
		.dtype = bed->dtype,
		.weights = (uint8_t *)bed->weights + bed->indptr[list] * gw_dtype_bytes(bed->dtype),
		.table = bed->table ? bed->table + 2 * bed->indptr[list] : NULL,
	};
}

static struct gw_draw draw_of(const struct bed *bed, int32_t fanout, bool replace)
{
	struct gw_draw draw = {.rule = {.key = 78, .fanout = fanout, .replace = replace}, .kind = &gw_sample_weighted};
	draw.forms[GW_COLUMN_WEIGHT] = (struct gw_column_form){gw_dtype_bytes(bed->dtype), bed->dtype};
	if (bed->table)
		draw.forms[GW_COLUMN_ALIAS] = (struct gw_column_form){8, GW_UINT32};
	return draw;
}

/* A run with its memory: a driver over arrays. What a round asks for is copied to blocks of exactly its size, at odd
 * addresses. */
struct driven {
	struct gw_draw_run run;
	struct gw_pick_scratch scratch;
	struct gw_vec needs, next, got, bytes;
	uint64_t asked, rounds; /* needs and rounds so far */
};

static void driven_free(struct driven *driven)
{
	gw_pick_scratch_free(&driven->scratch);
	gw_vec_free(&driven->needs);
	gw_vec_free(&driven->next);
	gw_vec_free(&driven->got);
	gw_vec_free(&driven->bytes);
}

static gw_status bring(struct driven *driven, const struct bed *bed, const struct gw_draw *draw)
{
	struct gw_draw_run *run = &driven->run;
	struct gw_vec asked = driven->next;
	uint64_t bytes = 0;
	driven->next = driven->needs;
	driven->needs = asked;
	const struct gw_need *needs = driven->needs.data;
	for (uint64_t i = 0; i < run->next_count; i++) {
		assert_true(needs[i].count > 0 && needs[i].list < run->lists.n);
		assert_true(needs[i].first + needs[i].count <= run->lists.degrees[needs[i].list]);
		assert_false(run->done[needs[i].list]);
		bytes += needs[i].count * draw->forms[needs[i].column].entry_bytes + 1;
	}
	if (gw_vec_reserve(&driven->got, run->next_count * sizeof(void *)) != GW_OK ||
	    gw_vec_reserve(&driven->bytes, bytes + 1) != GW_OK)
		return GW_NO_MEMORY;
	uint8_t *to = (uint8_t *)driven->bytes.data + 1;
	for (uint64_t i = 0; i < run->next_count; i++) {
		uint64_t size = draw->forms[needs[i].column].entry_bytes;
		const uint8_t *column = needs[i].column == GW_COLUMN_WEIGHT ? bed->weights : (uint8_t *)bed->table;
		((const void **)driven->got.data)[i] = to;
		memcpy(to, column + (run->lists.begins[needs[i].list] + needs[i].first) * size, needs[i].count * size);
		to += needs[i].count * size + 1;
	}
	driven->asked += run->next_count;
	run->needs = needs;
	run->got = driven->got.data;
	run->need_count = run->next_count;
	return GW_OK;
}

/* Draws from lists [at, at + n) of the bed. positions has room for the bounds. */
static gw_status drive(struct driven *driven, const struct bed *bed, const struct gw_draw *draw, uint64_t at,
		       uint32_t n, uint64_t *positions)
{
	struct gw_draw_run *run = &driven->run;
	const struct gw_columns columns = {{[GW_COLUMN_ALIAS] = bed->table, [GW_COLUMN_WEIGHT] = bed->weights}};
	const struct gw_draw_columns at_hand = {.all = &columns};
	memset(run, 0xee, sizeof(*run));
	run->lists.n = n;
	run->lists.vertices = bed->vertices + at;
	run->lists.groups = bed->grouped ? bed->groups + at : NULL;
	run->scratch = &driven->scratch;
	run->next = &driven->next;
	run->next_count = 0;
	run->element_bytes = 0;
	run->at_hand = bed->at_hand ? &at_hand : NULL;
	run->lists.starts[0] = 0;
	for (uint32_t i = 0; i < n; i++) {
		run->lists.begins[i] = bed->indptr[at + i];
		run->lists.degrees[i] = bed->indptr[at + i + 1] - bed->indptr[at + i];
		run->lists.starts[i + 1] = run->lists.starts[i] + gw_draw_bound(draw, run->lists.degrees[i]);
		run->counts[i] = 0;
		run->done[i] = false;
	}
	gw_status status = draw->kind->round(draw, run, 0, positions);
	for (uint32_t number = 1; status == GW_AGAIN; number++) {
		assert_true(number <= 3);
		status = bring(driven, bed, draw);
		run->next_count = 0;
		if (status == GW_OK)
			status = draw->kind->round(draw, run, number, positions);
		driven->rounds++;
	}
	for (uint32_t i = 0; status == GW_OK && i < n; i++)
		assert_true(run->done[i]);
	return status;
}

static uint64_t bounds_of(const struct bed *bed, const struct gw_draw *draw)
{
	uint64_t sum = 0;
	for (uint64_t i = 0; i < bed->n; i++)
		sum += gw_draw_bound(draw, bed->indptr[i + 1] - bed->indptr[i]);
	return sum;
}

/* Draws from all lists in runs of `length`, and compares with the law. */
static void compare_with_law(const struct bed *bed, const struct gw_draw *draw, uint32_t length)
{
	struct driven driven = {0};
	uint64_t *positions = must_alloc(bounds_of(bed, draw) * sizeof(uint64_t)), *expected;
	expected = must_alloc((bed->edges + (1 << 12)) * sizeof(uint64_t));
	assert_int_equal(draw->kind->check(draw), GW_OK);
	for (uint64_t at = 0; at < bed->n; at += length) {
		uint32_t n = (uint32_t)(bed->n - at < length ? bed->n - at : length);
		assert_int_equal(drive(&driven, bed, draw, at, n, positions), GW_OK);
		for (uint32_t i = 0; i < n; i++) {
			struct slow_list list = list_of(bed, at + i);
			uint64_t count = slow_weighted(&draw->rule, bed->vertices[at + i],
						       bed->grouped ? bed->groups[at + i] : 0, &list, expected);
			assert_int_equal(driven.run.counts[i], count);
			for (uint64_t j = 0; j < count; j++)
				assert_int_equal(positions[driven.run.lists.starts[i] + j],
						 bed->indptr[at + i] + expected[j]);
		}
	}
	driven_free(&driven);
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
static void make_mixed(struct bed *bed, uint64_t n, int32_t fanout, gw_dtype dtype, uint64_t seed)
{
	uint64_t k = fanout > 0 ? (uint64_t)fanout : 3, *degrees = must_alloc(n * sizeof(uint64_t));
	const uint64_t around[] = {0, 1, k - 1, k, k + 1, 2 * k, 4 * k + 15, 4 * k + 16, 4 * k + 17, 6 * k + 20, 130};
	for (uint64_t i = 0; i < n; i++) {
		uint64_t random = gw_mix64(seed * 100003 + i);
		degrees[i] = random % 3 ? around[random / 3 % 11] : random / 3 % 70;
	}
	bed_begin(bed, n, degrees, dtype);
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
			struct bed bed;
			make_mixed(&bed, fanouts[f] > 40 ? 40 : 120, fanouts[f], dtypes[d], seed);
			for (int table = 0; table < 2; table++) {
				if (table)
					bed_make_table(&bed);
				for (int replace = 0; replace < 2; replace++) {
					bed.grouped = (seed + (uint64_t)replace) % 2;
					struct gw_draw draw = draw_of(&bed, fanouts[f], replace);
					for (int at_hand = 0; at_hand < 2; at_hand++) {
						bed.at_hand = at_hand;
						compare_with_law(&bed, &draw,
								 lengths[(seed + (uint64_t)(table + at_hand)) % 4]);
					}
				}
			}
			bed_free(&bed);
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
			struct bed bed;
			make_mixed(&bed, 150, fanout, GW_FLOAT32, (uint64_t)fanout);
			bed_make_table(&bed);
			for (int i = 0; i < 4; i++) {
				struct gw_draw draw = draw_of(&bed, fanout, i % 2);
				bed.at_hand = i / 2;
				compare_with_law(&bed, &draw, GW_RUN_MAX);
			}
			bed_free(&bed);
		}
	}
	gw_vectors_set(GW_VECTORS_AUTO);
}

/* Long lists: many blocks of exact sums, and entries one by one. */
static void long_lists_are_the_law(void **state)
{
	(void)state;
	const uint64_t degrees[] = {5000, 63, 64, 65, 128, 4097, 20000};
	for (uint64_t kind = 0; kind < 6; kind++) {
		struct bed bed;
		bed_begin(&bed, 7, degrees, GW_FLOAT64);
		for (uint64_t e = 0; e < bed.edges; e++)
			slow_weight_set(GW_FLOAT64, bed.weights, e, some_weight(kind, gw_mix64(e + kind), e % 777));
		for (int table = 0; table < 2; table++) {
			if (table)
				bed_make_table(&bed);
			for (int i = 0; i < 6; i++) {
				static const int32_t some[] = {10, 50, 1000};
				struct gw_draw draw = draw_of(&bed, some[i / 2], i % 2);
				bed.at_hand = (kind + (uint64_t)i / 2) % 2;
				if (draw.rule.fanout == 1000 && !table && kind != 3)
					continue; /* the law's linear scans take long */
				compare_with_law(&bed, &draw, 4);
			}
		}
		bed_free(&bed);
	}
}

static void groups_change_draws(void **state)
{
	(void)state;
	enum { N = 200 };
	uint64_t degrees[N];
	for (int i = 0; i < N; i++)
		degrees[i] = 100;
	struct bed bed;
	bed_begin(&bed, N, degrees, GW_FLOAT32);
	for (uint64_t e = 0; e < bed.edges; e++)
		slow_weight_set(GW_FLOAT32, bed.weights, e, 1 + (double)(e % 100 % 7));
	memset(bed.vertices, 0, N * sizeof(uint64_t));
	for (int table = 0; table < 2; table++) {
		if (table)
			bed_make_table(&bed);
		for (int replace = 0; replace < 2; replace++) {
			struct gw_draw draw = draw_of(&bed, 5, replace);
			struct driven driven = {0};
			uint64_t plain[N * 5], zero[N * 5], apart[N * 5];
			memset(bed.groups, 0, N * sizeof(uint32_t));
			bed.grouped = false;
			assert_int_equal(drive(&driven, &bed, &draw, 0, N, plain), GW_OK);
			bed.grouped = true;
			assert_int_equal(drive(&driven, &bed, &draw, 0, N, zero), GW_OK);
			assert_memory_equal(plain, zero, sizeof(plain));
			for (uint32_t i = 0; i < N; i++)
				bed.groups[i] = i;
			assert_int_equal(drive(&driven, &bed, &draw, 0, N, apart), GW_OK);
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
			driven_free(&driven);
		}
	}
	bed_free(&bed);
}

/* ---- distributed as the weights ---- */

/* The value that chi-square exceeds once in 10,000 (Wilson and Hilferty). Seeds are fixed: a pass stays a pass. */
static double limit_of(double freedom)
{
	double a = 2 / (9 * freedom), root = 1 - a + 3.719 * sqrt(a);
	return freedom * root * root * root;
}

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
	if (freedom >= 1 && sum > limit_of(freedom))
		fail_msg("chi-square %.1f with %.0f degrees of freedom: the limit is %.1f", sum, freedom,
			 limit_of(freedom));
}

/* n equal lists with the given weights, as instances 0, 1, ... */
static void bed_repeat(struct bed *bed, uint64_t n, gw_dtype dtype, const double *weights, uint64_t degree)
{
	uint64_t *degrees = must_alloc(n * sizeof(uint64_t));
	for (uint64_t i = 0; i < n; i++)
		degrees[i] = degree;
	bed_begin(bed, n, degrees, dtype);
	for (uint64_t e = 0; e < bed->edges; e++)
		slow_weight_set(dtype, bed->weights, e, weights[e % degree]);
	free(degrees);
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
	enum { LISTS = 24000 };
	uint64_t scaled[8], single[8] = {0}, *sets = must_alloc(sizeof(uint64_t) << n);
	long double exact[8], chances[256], total = 0;
	for (int table = 0; table < 2; table++) {
		struct bed bed;
		bed_repeat(&bed, LISTS, dtype, weights, n);
		slow_weights(dtype, bed.weights, n, scaled);
		total = 0;
		for (uint32_t i = 0; i < n; i++)
			total += exact[i] = (long double)scaled[i];
		if (table)
			bed_make_table(&bed);
		for (int replace = 0; replace < 2; replace++) {
			struct gw_draw draw = draw_of(&bed, fanout, replace);
			struct driven driven = {0};
			uint64_t *positions = must_alloc(GW_RUN_MAX * 8 * sizeof(uint64_t)), picks = 0;
			memset(sets, 0, sizeof(uint64_t) << n);
			memset(single, 0, sizeof(single));
			for (uint64_t at = 0; at < LISTS; at += 250) {
				assert_int_equal(drive(&driven, &bed, &draw, at, 250, positions), GW_OK);
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
			driven_free(&driven);
			free(positions);
		}
		bed_free(&bed);
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
	struct bed bed;
	bed_repeat(&bed, 200, GW_FLOAT32, heavy, 4);
	bed_make_table(&bed);
	struct gw_draw draw = draw_of(&bed, 3, false);
	struct driven driven = {0};
	uint64_t positions[600];
	assert_int_equal(drive(&driven, &bed, &draw, 0, 200, positions), GW_OK);
	for (uint64_t i = 0; i < 200; i++) {
		assert_int_equal(driven.run.counts[i], 3);
		assert_int_equal(positions[3 * i], 4 * i);
	}
	assert_int_equal(driven.rounds, 2); /* table, weights */
	driven_free(&driven);
	bed_free(&bed);
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
	enum { FANOUT = 30, LISTS = 4000, CELLS = 50 };
	const uint64_t degree = HUB;
	struct bed bed;
	bed_begin(&bed, 1, &degree, GW_FLOAT32);
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
		uint64_t lists = table ? LISTS : 300; /* the weights of 10^5 edges are read for each */
		if (table)
			bed_make_table(&bed);
		for (int replace = 0; replace < 2; replace++) {
			struct gw_draw draw = draw_of(&bed, FANOUT, replace);
			struct driven driven = {0};
			uint64_t positions[FANOUT], heavy[FANOUT + 1] = {0}, spread[CELLS] = {0};
			for (uint64_t v = 0; v < lists; v++) {
				uint32_t of_class = 0;
				bed.vertices[0] = v;
				assert_int_equal(drive(&driven, &bed, &draw, 0, 1, positions), GW_OK);
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
			driven_free(&driven);
		}
	}
	bed_free(&bed);
}

/* ---- edges of no weight, bad input, shortage ---- */

static void no_weight_is_no_pick(void **state)
{
	(void)state;
	static const double none[20] = {0}, few[20] = {[3] = 1, [17] = 1e-20};
	for (int table = 0; table < 2; table++) {
		for (int i = 0; i < 8; i++) {
			static const int32_t some[] = {2, 5, 30, ALL};
			struct bed bed;
			struct driven driven = {0};
			uint64_t positions[64];
			bed_repeat(&bed, 1, GW_FLOAT64, none, 20);
			if (table)
				bed_make_table(&bed);
			struct gw_draw draw = draw_of(&bed, some[i / 2], i % 2);
			assert_int_equal(drive(&driven, &bed, &draw, 0, 1, positions), GW_OK);
			assert_int_equal(driven.run.counts[0], 0);
			bed_free(&bed);
			bed_repeat(&bed, 1, GW_FLOAT64, few, 20);
			if (table)
				bed_make_table(&bed);
			assert_int_equal(drive(&driven, &bed, &draw, 0, 1, positions), GW_OK);
			bool repeats = draw.rule.replace && draw.rule.fanout != ALL;
			assert_int_equal(driven.run.counts[0], repeats ? draw.rule.fanout : 2);
			for (uint32_t j = 0; j < driven.run.counts[0]; j++)
				assert_true(positions[j] == 3 || (positions[j] == 17 && (repeats || j == 1)));
			driven_free(&driven);
			bed_free(&bed);
		}
	}
}

static void bad_weights_name_the_edge(void **state)
{
	(void)state;
	const uint64_t degrees[] = {3, 100};
	const float bad[] = {-1, NAN, INFINITY, -INFINITY};
	struct driven driven = {0};
	uint64_t positions[200];
	for (int i = 0; i < 4; i++) {
		struct bed bed;
		bed_begin(&bed, 2, degrees, GW_FLOAT32);
		bed.vertices[1] = 41;
		for (int e = 0; e < 103; e++)
			((float *)bed.weights)[e] = 1;
		((float *)bed.weights)[63] = bad[i];
		for (int32_t fanout = ALL; fanout < 110; fanout += 111) {
			struct gw_draw draw = draw_of(&bed, fanout == ALL ? ALL : 10, false);
			assert_int_equal(drive(&driven, &bed, &draw, 0, 2, positions), GW_RANGE);
			assert_non_null(strstr(gw_last_error(), "vertex 41: edge 63: "));
		}
		bed_free(&bed);
	}
	driven_free(&driven);
}

static void damaged_tables_are_refused(void **state)
{
	(void)state;
	uint64_t degrees[20];
	for (int i = 0; i < 20; i++)
		degrees[i] = i < 10 ? 30 : 300;
	struct driven driven = {0};
	uint64_t positions[20 * 40];
	for (int i = 0; i < 8; i++) {
		struct bed bed;
		bed_begin(&bed, 20, degrees, GW_UINT8);
		bed.at_hand = i >= 4;
		memset(bed.weights, 1, bed.edges);
		bed_make_table(&bed);
		for (uint64_t e = bed.indptr[15]; e < bed.indptr[16]; e++) {
			bed.table[2 * e] = 0;
			bed.table[2 * e + 1] = 300; /* the first past the list */
		}
		struct gw_draw draw = draw_of(&bed, i % 4 < 2 ? 5 : 40, i % 2);
		assert_int_equal(drive(&driven, &bed, &draw, 0, 20, positions), GW_RANGE);
		assert_non_null(strstr(gw_last_error(), "vertex 15: "));
		bed_free(&bed);
	}
	driven_free(&driven);
}

static void lists_too_long_to_draw_are_refused(void **state)
{
	(void)state;
	struct bed bed;
	const uint64_t degree = 4;
	struct driven driven = {0};
	uint64_t positions[4];
	bed_begin(&bed, 1, &degree, GW_FLOAT32);
	bed_make_table(&bed);
	bed.vertices[0] = 9;
	bed.indptr[1] = 1ull << 32;
	for (int i = 0; i < 4; i++) {
		struct gw_draw draw = draw_of(&bed, 3, i % 2);
		draw.forms[GW_COLUMN_ALIAS].entry_bytes = i < 2 ? 8 : 0;
		assert_int_equal(drive(&driven, &bed, &draw, 0, 1, positions), GW_RANGE);
		assert_non_null(strstr(gw_last_error(), "vertex 9: "));
		draw.rule.fanout = 0;
		assert_int_equal(drive(&driven, &bed, &draw, 0, 1, positions), GW_OK);
		assert_int_equal(driven.run.counts[0], 0);
	}
	driven_free(&driven);
	bed_free(&bed);
}

static void columns_are_checked(void **state)
{
	(void)state;
	struct gw_draw draw = {.kind = &gw_sample_weighted};
	assert_int_equal(draw.kind->check(&draw), GW_UNSUPPORTED);
	draw.forms[GW_COLUMN_ALIAS] = (struct gw_column_form){8, GW_UINT32};
	assert_int_equal(draw.kind->check(&draw), GW_UNSUPPORTED);
	draw.forms[GW_COLUMN_WEIGHT] = (struct gw_column_form){1, GW_BOOL};
	assert_int_equal(draw.kind->check(&draw), GW_UNSUPPORTED);
	draw.forms[GW_COLUMN_WEIGHT] = (struct gw_column_form){12, GW_FLOAT32};
	assert_int_equal(draw.kind->check(&draw), GW_UNSUPPORTED);
	draw.forms[GW_COLUMN_WEIGHT] = (struct gw_column_form){4, GW_FLOAT32};
	assert_int_equal(draw.kind->check(&draw), GW_OK);
	draw.forms[GW_COLUMN_ALIAS].entry_bytes = 0;
	assert_int_equal(draw.kind->check(&draw), GW_OK);
}

struct shortage {
	const struct bed *bed;
	struct gw_draw draw;
};

static gw_status draw_in_short_memory(void *context)
{
	static uint64_t positions[40 * 1000];
	const struct shortage *shortage = context;
	struct driven driven = {0};
	gw_status status = drive(&driven, shortage->bed, &shortage->draw, 0, (uint32_t)shortage->bed->n, positions);
	driven_free(&driven);
	return status;
}

static void weighted_shortage_is_an_error(void **state)
{
	(void)state;
	static const int32_t some[] = {3, 40, 200};
	for (int table = 0; table < 3; table++) {
		for (int i = 0; i < 6; i++) {
			struct bed bed;
			make_mixed(&bed, 40, some[i / 2], GW_FLOAT32, (uint64_t)i);
			if (table)
				bed_make_table(&bed);
			struct shortage shortage = {&bed, draw_of(&bed, some[i / 2], i % 2)};
			bed.at_hand = table == 2;
			unsigned long faults = gw_fault_each(draw_in_short_memory, &shortage);
			/* a few draws with replacement from tables at hand need no memory */
			assert_true(faults >= 3 || (bed.at_hand && shortage.draw.rule.replace));
			bed_free(&bed);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_draw_is_the_law),
		cmocka_unit_test(vectors_do_not_show_in_draws),
		cmocka_unit_test(long_lists_are_the_law),
		cmocka_unit_test(groups_change_draws),
		cmocka_unit_test(small_lists_follow_the_weights),
		cmocka_unit_test(heavy_edges_leave_light_ones),
		cmocka_unit_test(hubs_follow_the_weights),
		cmocka_unit_test(no_weight_is_no_pick),
		cmocka_unit_test(bad_weights_name_the_edge),
		cmocka_unit_test(damaged_tables_are_refused),
		cmocka_unit_test(lists_too_long_to_draw_are_refused),
		cmocka_unit_test(columns_are_checked),
		cmocka_unit_test(weighted_shortage_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
