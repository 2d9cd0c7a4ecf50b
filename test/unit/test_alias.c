/* Alias tables: the chances they imply are the weights' shares, to within 2^-32, in exact arithmetic. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/graph/alias.h"
#include "core/memory/alloc.h"
#include "core/numbers/rng.h"
#include "test/support/alloc_fault.h"

typedef unsigned __int128 wide;

/* The definition in core/graph/alias.h. */
static uint32_t pick_by_alias(const uint32_t *list, uint32_t column, uint32_t word)
{
	return word < list[2 * (uint64_t)column] ? column : list[2 * (uint64_t)column + 1];
}

/* The chance of entry i in units of 1 / (n * 2^32): its own threshold and what other columns leave to it. */
static uint64_t *implied(const uint32_t *table, uint64_t n)
{
	uint64_t *chance = calloc(n, sizeof(*chance));
	for (uint64_t c = 0; c < n; c++) {
		uint32_t threshold = table[2 * c], alias = table[2 * c + 1];
		assert_true(alias < n);
		chance[c] += threshold;
		chance[alias] += (1ull << 32) - threshold;
	}
	return chance;
}

/* |chance / (n 2^32) - w / sum| < 2^-32, multiplied out: |chance * sum - w * n * 2^32| < n * sum. */
static void check_integers(const uint32_t *table, const uint64_t *weights, uint64_t n)
{
	wide sum = 0;
	for (uint64_t i = 0; i < n; i++)
		sum += weights[i];
	uint64_t *chance = implied(table, n);
	for (uint64_t i = 0; i < n; i++) {
		wide got = chance[i] * sum, wanted = ((wide)weights[i] * n) << 32;
		wide error = got > wanted ? got - wanted : wanted - got;
		assert_true(error < n * sum);
		if (weights[i] == 0)
			assert_true(chance[i] == 0);
	}
	free(chance);
}

static void test_integer_weights(void **state)
{
	(void)state;
	for (uint64_t n = 1; n < 3000; n = n * 3 / 2 + 1) {
		for (int kind = 0; kind < 6; kind++) {
			uint64_t *weights = calloc(n, 8), indptr[2] = {0, n};
			uint32_t *table = calloc(n, 8);
			for (uint64_t i = 0; i < n; i++) {
				uint64_t random = gw_mix64(n * 7919 + i * 6 + (uint64_t)kind);
				weights[i] = kind == 0   ? 1
					     : kind == 1 ? random % 10
					     : kind == 2 ? random >> (20 + random % 40)
					     : kind == 3 ? (uint64_t)(i == n / 2)
					     : kind == 4 ? (i == 0 ? (uint64_t)1 << 40 : 1)
							 : random >> 24;
			}
			weights[n - 1] += kind == 1; /* not all zero */
			assert_int_equal(gw_alias_build(indptr, 1, GW_UINT64, weights, 1, table), GW_OK);
			check_integers(table, weights, n);
			free(weights);
			free(table);
		}
	}
}

/* Floats against the same check in long double, whose own error is far below 2^-32. */
static void test_float_weights(void **state)
{
	(void)state;
	enum { N = 1500 };
	static double weights[N];
	static float narrow[N];
	static uint32_t table[2 * N];
	uint64_t indptr[2] = {0, N};
	for (int kind = 0; kind < 4; kind++) {
		long double sum = 0, narrow_sum = 0;
		for (uint64_t i = 0; i < N; i++) {
			uint64_t random = gw_mix64(i * 4 + (uint64_t)kind);
			double unit = (double)(random >> 11) / 9007199254740992.0;
			weights[i] = kind == 0   ? unit
				     : kind == 1 ? ldexp(unit, (int)(random % 60) - 30)
				     : kind == 2 ? ldexp(unit, -1060) /* subnormal */
						 : (i % 3 ? unit : 0);
			narrow[i] = (float)ldexp(weights[i], kind == 2 ? 920 : 0);
			sum += weights[i];
			narrow_sum += narrow[i];
		}
		for (int is_float = 0; is_float < 2; is_float++) {
			assert_int_equal(gw_alias_build(indptr, 1, is_float ? GW_FLOAT32 : GW_FLOAT64,
							is_float ? (void *)narrow : (void *)weights, 1, table),
					 GW_OK);
			uint64_t *chance = implied(table, N);
			for (uint64_t i = 0; i < N; i++) {
				long double share = is_float ? narrow[i] / narrow_sum : weights[i] / sum;
				long double got = (long double)chance[i] / N / 4294967296.0L;
				assert_true(fabsl(got - share) < 1.0000001L / 4294967296.0L);
			}
			free(chance);
		}
	}
}

static void test_other_dtypes(void **state)
{
	(void)state;
	const uint64_t indptr[2] = {0, 4};
	const uint64_t wanted[4] = {1, 2, 0, 5};
	const uint8_t u8[] = {1, 2, 0, 5};
	const int8_t i8[] = {1, 2, 0, 5};
	const uint16_t u16[] = {1, 2, 0, 5}, half[] = {0x3c00, 0x4000, 0x8000, 0x4500}, /* 1, 2, -0, 5 */
		brain[] = {0x3f80, 0x4000, 0, 0x40a0};
	const int16_t i16[] = {1, 2, 0, 5};
	const int32_t i32[] = {1, 2, 0, 5};
	const uint32_t u32[] = {1, 2, 0, 5};
	const int64_t i64[] = {1, 2, 0, 5};
	const struct {
		gw_dtype dtype;
		const void *weights;
	} cases[] = {{GW_UINT8, u8},   {GW_INT8, i8},   {GW_UINT16, u16},   {GW_INT16, i16},      {GW_INT32, i32},
		     {GW_UINT32, u32}, {GW_INT64, i64}, {GW_FLOAT16, half}, {GW_BFLOAT16, brain}, {GW_UINT64, wanted}};
	uint32_t table[8], first[8];
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(gw_alias_build(indptr, 1, cases[i].dtype, cases[i].weights, 1, table), GW_OK);
		check_integers(table, wanted, 4);
		if (i == 0)
			memcpy(first, table, sizeof(table));
		assert_memory_equal(first, table, sizeof(table)); /* the same weights, the same bytes */
	}
	const bool flags[] = {true, false, true, true};
	const uint8_t zero_or_one[] = {1, 0, 1, 1};
	assert_int_equal(gw_alias_build(indptr, 1, GW_UINT8, zero_or_one, 1, first), GW_OK);
	assert_int_equal(gw_alias_build(indptr, 1, GW_BOOL, flags, 1, table), GW_OK);
	assert_memory_equal(first, table, sizeof(table));
	assert_int_equal(gw_alias_build(indptr, 1, GW_INT8_ROW, u8, 1, table), GW_UNSUPPORTED);
}

/* A weight of 2^-100 of another is not 0: an edge that only it leaves over is drawn. */
static void test_tiny_weights(void **state)
{
	(void)state;
	const uint64_t indptr[4] = {0, 2, 4, 5};
	const double weights[5] = {1e30, 1e-30, 0, 1e-30, 5e-324};
	uint32_t table[10];
	assert_int_equal(gw_alias_build(indptr, 3, GW_FLOAT64, weights, 1, table), GW_OK);
	assert_int_equal(pick_by_alias(table, 0, 0), 0);
	assert_int_equal(pick_by_alias(table, 1, 0), 0); /* below 2^-32: the heavy edge takes the column */
	for (uint32_t column = 0; column < 2; column++) {
		assert_int_equal(pick_by_alias(table + 4, column, 0), 1);
		assert_int_equal(pick_by_alias(table + 4, column, UINT32_MAX), 1);
	}
	assert_int_equal(pick_by_alias(table + 8, 0, UINT32_MAX), 0);
}

static void test_threads_and_picks(void **state)
{
	(void)state;
	enum { ROWS = 20000 };
	uint64_t *indptr = calloc(ROWS + 1, 8);
	for (uint64_t row = 0; row < ROWS; row++)
		indptr[row + 1] = indptr[row] + gw_mix64(row) % 13;
	uint64_t edges = indptr[ROWS];
	float *weights = calloc(edges, 4);
	uint32_t *one = calloc(edges, 8), *many = calloc(edges, 8);
	for (uint64_t i = 0; i < edges; i++)
		weights[i] = (float)(gw_mix64(i) % 100) / 7;
	for (uint64_t i = indptr[5]; i < indptr[6]; i++)
		weights[i] = 0;
	assert_int_equal(gw_alias_build(indptr, ROWS, GW_FLOAT32, weights, 1, one), GW_OK);
	for (unsigned threads = 2; threads < 9; threads += 3) {
		memset(many, 0xee, edges * 8);
		assert_int_equal(gw_alias_build(indptr, ROWS, GW_FLOAT32, weights, threads, many), GW_OK);
		assert_memory_equal(one, many, edges * 8);
	}
	assert_true(indptr[6] > indptr[5]);
	for (uint64_t i = indptr[5]; i < indptr[6]; i++)
		assert_int_equal(one[2 * i + 1], GW_ALIAS_NONE);
	for (uint64_t row = 6; row < 200; row++) {
		uint32_t n = (uint32_t)(indptr[row + 1] - indptr[row]);
		for (uint32_t c = 0; c < n; c++) {
			const uint32_t *list = one + 2 * indptr[row];
			if (list[2 * c + 1] == GW_ALIAS_NONE)
				continue;
			assert_true(weights[indptr[row] + pick_by_alias(list, c, 0)] > 0);
			assert_true(weights[indptr[row] + pick_by_alias(list, c, UINT32_MAX)] > 0);
		}
	}
	free(indptr);
	free(weights);
	free(one);
	free(many);
}

static void test_bad_weights(void **state)
{
	(void)state;
	const uint64_t indptr[3] = {0, 2, 4};
	const float bad[] = {-1.0f, NAN, INFINITY, -INFINITY};
	uint32_t table[8];
	for (size_t i = 0; i < 4; i++) {
		float weights[4] = {1, 2, 3, bad[i]};
		assert_int_equal(gw_alias_build(indptr, 2, GW_FLOAT32, weights, 1, table), GW_RANGE);
		assert_non_null(strstr(gw_last_error(), "edge 3:"));
	}
	const int8_t negative[4] = {1, -1, 2, 3};
	assert_int_equal(gw_alias_build(indptr, 2, GW_INT8, negative, 1, table), GW_RANGE);
	assert_non_null(strstr(gw_last_error(), "edge 1:"));
}

static gw_status build_one(void *context)
{
	const uint64_t indptr[3] = {0, 2, 4};
	const float weights[4] = {1, 2, 3, 4};
	return gw_alias_build(indptr, 2, GW_FLOAT32, weights, 1, context);
}

static void test_memory_short(void **state)
{
	(void)state;
	uint32_t table[8];
	assert_true(gw_fault_each(build_one, table) >= 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_integer_weights),   cmocka_unit_test(test_float_weights),
		cmocka_unit_test(test_other_dtypes),      cmocka_unit_test(test_tiny_weights),
		cmocka_unit_test(test_threads_and_picks), cmocka_unit_test(test_bad_weights),
		cmocka_unit_test(test_memory_short),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
