/* Weights as integers: every dtype against numbers in long double, the rounding, the refusals. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/graph/weights.h"
#include "core/numbers/rng.h"
#include "test/support/slow_weighted.h"

static const gw_dtype dtypes[] = {GW_UINT8, GW_UINT16, GW_UINT32,  GW_UINT64,   GW_INT8,    GW_INT16,
				  GW_INT32, GW_INT64,  GW_FLOAT16, GW_BFLOAT16, GW_FLOAT32, GW_FLOAT64};
#define DTYPES (sizeof(dtypes) / sizeof(dtypes[0]))

/* Random bits are numbers of all magnitudes, subnormal ones included; negative and infinite ones become 0. */
static void weights_are_the_numbers(void **state)
{
	(void)state;
	enum { N = 300 };
	for (size_t d = 0; d < DTYPES; d++) {
		uint32_t bytes = gw_dtype_bytes(dtypes[d]);
		for (uint64_t round = 0; round < 20; round++) {
			uint64_t stored[N + 1], scaled[N], expected[N];
			uint8_t *weights = (uint8_t *)stored, *odd = weights + 1;
			for (uint64_t i = 0; i < N; i++) {
				uint64_t random = gw_mix64(round * 1000 + i) >> (round % 5 * 3);
				memcpy(weights + i * bytes, &random, bytes);
				long double value = slow_weight(dtypes[d], weights, i);
				if (!(value >= 0) || isinf(value))
					memset(weights + i * bytes, 0, bytes);
			}
			slow_weights(dtypes[d], weights, N, expected);
			memmove(odd, weights, N * bytes); /* at any alignment */
			assert_int_equal(gw_weights_scale(dtypes[d], odd, N, 0, scaled), GW_OK);
			assert_memory_equal(scaled, expected, sizeof(scaled));
			uint64_t positions[N], count = 0;
			assert_int_equal(gw_weights_positive(dtypes[d], odd, N, 0, positions, &count), GW_OK);
			for (uint64_t i = 0, at = 0; i < N; i++) {
				if (expected[i])
					assert_int_equal(positions[at++], i);
				assert_true(i + 1 < N || at == count);
			}
		}
	}
}

static void the_largest_has_63_bits(void **state)
{
	(void)state;
	uint64_t scaled[3];
	const double floats[] = {1, 0.75, 3};
	assert_int_equal(gw_weights_scale(GW_FLOAT64, floats, 3, 0, scaled), GW_OK);
	assert_true(scaled[2] == 3ull << 61 && scaled[0] == 1ull << 61 && scaled[1] == 3ull << 59);
	const uint64_t integers[] = {UINT64_MAX, 1, 3};
	assert_int_equal(gw_weights_scale(GW_UINT64, integers, 3, 0, scaled), GW_OK);
	assert_true(scaled[0] == UINT64_MAX >> 1 && scaled[1] == 1 && scaled[2] == 1); /* rounded down, but not to 0 */
	const double apart[] = {1e300, 5e-324, 0};
	assert_int_equal(gw_weights_scale(GW_FLOAT64, apart, 3, 0, scaled), GW_OK);
	assert_true(scaled[0] >> 62 == 1 && scaled[1] == 1 && scaled[2] == 0);
	const double none[] = {0, -0.0, 0};
	assert_int_equal(gw_weights_scale(GW_FLOAT64, none, 3, 0, scaled), GW_OK);
	assert_true(scaled[0] == 0 && scaled[1] == 0 && scaled[2] == 0);
	assert_int_equal(gw_weights_scale(GW_FLOAT64, NULL, 0, 0, NULL), GW_OK);
}

static void faults_name_the_edge(void **state)
{
	(void)state;
	uint64_t scaled[2];
	const double floats[] = {-1, -5e-324, (double)NAN, (double)INFINITY, -(double)INFINITY};
	for (size_t i = 0; i < 5; i++) {
		const double weights[2] = {1, floats[i]};
		assert_int_equal(gw_weights_scale(GW_FLOAT64, weights, 2, 70, scaled), GW_RANGE);
		assert_non_null(strstr(gw_last_error(), "edge 71: "));
		uint64_t count;
		assert_int_equal(gw_weights_positive(GW_FLOAT64, weights, 2, 80, scaled, &count), GW_RANGE);
		assert_non_null(strstr(gw_last_error(), "edge 81: "));
	}
	for (size_t d = 0; d < DTYPES; d++) {
		bool is_signed =
			dtypes[d] == GW_INT8 || dtypes[d] == GW_INT16 || dtypes[d] == GW_INT32 || dtypes[d] == GW_INT64;
		const uint64_t bits[2] = {UINT64_MAX, UINT64_MAX}; /* -1, NaN or the greatest number */
		bool is_float = gw_dtype_numpy(dtypes[d])[1] == 'f' || dtypes[d] == GW_BFLOAT16;
		assert_int_equal(gw_weights_scale(dtypes[d], bits, 2, 0, scaled),
				 is_signed || is_float ? GW_RANGE : GW_OK);
	}
	assert_int_equal(gw_weights_scale(GW_BOOL, "\1", 2, 0, scaled), GW_OK); /* a mask: 1 and 0 */
	assert_true(scaled[0] == 1ull << 62 && scaled[1] == 0);
	assert_int_equal(gw_weights_scale(GW_INT8_ROW, "\1", 1, 0, scaled), GW_UNSUPPORTED);
	assert_int_equal(gw_weights_check((gw_dtype)99), GW_UNSUPPORTED);
	assert_int_equal(gw_weights_check(GW_FLOAT16), GW_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(weights_are_the_numbers),
		cmocka_unit_test(the_largest_has_63_bits),
		cmocka_unit_test(faults_name_the_edge),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
