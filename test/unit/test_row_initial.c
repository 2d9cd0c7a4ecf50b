/* Initial values of rows: 16-bit numbers compared with their definition, and random values compared with the
 * mathematical library and with recorded bytes, which must never change on any machine. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/digest.h"
#include "core/numbers/dtype.h"
#include "core/numbers/half.h"
#include "core/numbers/rng.h"
#include "core/rows/initial.h"
#include "test/support/chi_square.h"

#define SAMPLES 40000u

/* A 16-bit number by its definition, with 5 or 8 exponent bits. */
static double half_value(uint16_t bits, int exponent_bits)
{
	int fraction_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
	int exponent = (bits & 0x7fff) >> fraction_bits, fraction = bits & ((1 << fraction_bits) - 1);
	double size = exponent == 0 ? ldexp(fraction, 1 - bias - fraction_bits)
				    : ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
	if (exponent == (1 << exponent_bits) - 1)
		size = fraction ? NAN : INFINITY;
	return bits & 0x8000 ? -size : size;
}

static void halves_become_floats(void **state)
{
	(void)state;
	for (uint32_t bits = 0; bits < 65536; bits++) {
		double half = half_value((uint16_t)bits, 5), brain = half_value((uint16_t)bits, 8);
		float single = gw_float_of_float16((uint16_t)bits), wide = gw_float_of_bfloat16((uint16_t)bits);
		assert_true(isnan(half) ? isnan(single) : (double)single == half && !signbit(single) == !signbit(half));
		assert_true(isnan(brain) ? isnan(wide) : (double)wide == brain && !signbit(wide) == !signbit(brain));
		if (!isnan(half))
			assert_int_equal(gw_float16_of_float(single), bits);
		if (!isnan(brain))
			assert_int_equal(gw_bfloat16_of_float(wide), bits);
	}
	assert_true(isnan(gw_float_of_float16(gw_float16_of_float(NAN))));
	assert_true(isnan(gw_float_of_bfloat16(gw_bfloat16_of_float(gw_float_of_bits(0x7f800001)))));
	assert_true(isnan(gw_float_of_float16(gw_float16_of_float(gw_float_of_bits(0xff800001)))));
}

/* The nearest number, ties to even; infinity above the middle between the largest number and the next. */
static void check_rounding(float value, uint16_t rounded, int exponent_bits)
{
	double size = fabs((double)value), at = half_value(rounded & 0x7fff, exponent_bits);
	double beyond = ldexp(1, 1 << (exponent_bits - 1)); /* infinity counts as this number when rounding */
	assert_int_equal(rounded >> 15, signbit(value) ? 1 : 0);
	if (isinf(at))
		at = beyond;
	if ((rounded & 0x7fff) > 0) {
		double below = half_value((uint16_t)((rounded & 0x7fff) - 1), exponent_bits);
		assert_true(at - size < size - below || (at - size == size - below && !(rounded & 1)));
	}
	if (at < beyond) {
		double above = half_value((uint16_t)((rounded & 0x7fff) + 1), exponent_bits);
		if (isinf(above))
			above = beyond;
		assert_true(size - at < above - size || (size - at == above - size && !(rounded & 1)));
	}
}

static void floats_are_rounded_to_the_nearest(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 200000; i++) {
		uint32_t word = gw_philox(5, i, 0).word[0];
		/* Half of them near ties; exponents around float16's. */
		uint32_t exponent = 90 + word % 64,
			 bits = (word & 0x80000000u) | exponent << 23 | (word >> 7 & 0x7fffff);
		if (i % 2)
			bits = (bits & ~0x1fffu) | (0x1000u - 1 + i / 2 % 3);
		float value = gw_float_of_bits(bits);
		check_rounding(value, gw_float16_of_float(value), 5);
		bits = i % 2 ? (word & 0xffff0000u) | (0x8000u - 1 + i / 2 % 3) : word;
		value = gw_float_of_bits(bits);
		if (isfinite(value))
			check_rounding(value, gw_bfloat16_of_float(value), 8);
	}
}

static const double turns = 0x1.921fb54442d18p+2;

/* The definition in initial.h, with the mathematical library's functions. */
static double expected_value(const struct gw_row_initial *initial, uint64_t id, uint32_t column)
{
	uint64_t key = gw_draw_key(initial->seed, 0, GW_DRAW_INITIAL, 0, 0);
	struct gw_words words = gw_philox(key, id, column / 4);
	if (initial->how == GW_INITIAL_UNIFORM)
		return initial->low + (initial->high - initial->low) * ldexp(words.word[column % 4], -32);
	uint32_t pair = column % 4 / 2 * 2;
	double radius = sqrt(-2 * log(ldexp((double)words.word[pair] + 1, -32)));
	double angle = turns * ldexp(words.word[pair + 1], -32);
	return initial->low + initial->high * radius * (column % 2 ? sin(angle) : cos(angle));
}

static void random_values_by_definition(void **state)
{
	(void)state;
	static const struct gw_row_initial kinds[] = {
		{.how = GW_INITIAL_UNIFORM, .low = -0.5, .high = 3, .seed = 1},
		{.how = GW_INITIAL_NORMAL, .low = 0, .high = 1, .seed = 2},
		{.how = GW_INITIAL_NORMAL, .low = 7, .high = 0.25, .seed = 3},
	};
	for (size_t kind = 0; kind < 3; kind++) {
		double sum = 0, squares = 0;
		for (uint64_t row = 0; row < SAMPLES / 10; row++) {
			double doubles[10];
			float floats[10];
			assert_int_equal(gw_row_initial_write(&kinds[kind], GW_FLOAT64, 10, row, doubles), GW_OK);
			assert_int_equal(gw_row_initial_write(&kinds[kind], GW_FLOAT32, 10, row, floats), GW_OK);
			for (uint32_t i = 0; i < 10; i++) {
				assert_true(fabs(doubles[i] - expected_value(&kinds[kind], row, i)) < 1e-13 * 10);
				assert_true(floats[i] == (float)doubles[i]);
				sum += doubles[i];
				squares += doubles[i] * doubles[i];
			}
		}
		double mean = sum / SAMPLES, deviation = sqrt(squares / SAMPLES - mean * mean);
		bool normal = kinds[kind].how == GW_INITIAL_NORMAL;
		double true_mean = normal ? kinds[kind].low : 1.25, spread = normal ? kinds[kind].high : 3.5 / sqrt(12);
		assert_true(fabs(mean - true_mean) < 5 * spread / sqrt(SAMPLES));
		assert_true(fabs(deviation / spread - 1) < 0.02);
	}
}

static uint32_t eighth_of(enum gw_initial how, double value)
{
	double below = how == GW_INITIAL_UNIFORM ? value : erfc(-value / sqrt(2)) / 2;
	return (uint32_t)(8 * below);
}

/* Columns of a row, neighbouring rows, and rows under neighbouring seeds are independent: all pairs of eighths are
 * equally likely. */
static void values_do_not_depend_on_each_other(void **state)
{
	(void)state;
	enum { COLUMNS = 6, ROWS = 6000 };
	static const char *const what[] = {"values of two columns", "values of two rows", "values of two seeds"};
	for (int how = GW_INITIAL_UNIFORM; how <= GW_INITIAL_NORMAL; how++) {
		for (uint32_t column = 0; column < COLUMNS; column++) {
			uint32_t counts[3][64] = {{0}}, last = 0;
			for (uint64_t row = 0; row < ROWS; row++) {
				double values[COLUMNS], others[COLUMNS];
				struct gw_row_initial initial = {.how = (enum gw_initial)how, .high = 1, .seed = 11};
				gw_row_initial_write(&initial, GW_FLOAT64, COLUMNS, row, values);
				initial.seed++;
				gw_row_initial_write(&initial, GW_FLOAT64, COLUMNS, row, others);
				uint32_t here = eighth_of(initial.how, values[column]);
				counts[0][here * 8 + eighth_of(initial.how, values[(column + 1) % COLUMNS])]++;
				counts[1][here * 8 + last] += row > 0;
				counts[2][here * 8 + eighth_of(initial.how, others[column])]++;
				last = here;
			}
			for (int i = 0; i < 3; i++)
				assert_equally_likely(counts[i], 64, what[i], column);
		}
	}
}

/* The extremes of random words: no logarithm of zero, every quarter of the circle. */
static void words_at_the_ends(void **state)
{
	(void)state;
	/* Rows with extreme words cannot be chosen; a million rows come near enough. */
	struct gw_row_initial initial = {.how = GW_INITIAL_NORMAL, .high = 1};
	double least = 0, most = 0;
	for (uint64_t row = 0; row < 250000; row++) {
		double values[4];
		gw_row_initial_write(&initial, GW_FLOAT64, 4, row, values);
		for (int i = 0; i < 4; i++) {
			assert_true(isfinite(values[i]));
			least = fmin(least, values[i]);
			most = fmax(most, values[i]);
		}
	}
	assert_true(least < -4.2 && least > -6.7 && most > 4.2 && most < 6.7);
}

static void uniform_values_stay_below_the_end(void **state)
{
	(void)state;
	static const double ranges[][2] = {{0, 1}, {-1, 0}, {-2, -1}, {1, 1.0078125}, {-1, 1}, {-0x1p-24, 0}};
	static const gw_dtype dtypes[] = {GW_FLOAT16, GW_BFLOAT16, GW_FLOAT32, GW_FLOAT64};
	for (size_t range = 0; range < sizeof(ranges) / sizeof(ranges[0]); range++) {
		for (size_t d = 0; d < 4; d++) {
			struct gw_row_initial initial = {
				.how = GW_INITIAL_UNIFORM, .low = ranges[range][0], .high = ranges[range][1]};
			for (uint64_t row = 0; row < 2000; row++) {
				uint64_t word = 0;
				double value;
				float single;
				gw_row_initial_write(&initial, dtypes[d], 1, row, &word);
				memcpy(&single, &word, 4);
				memcpy(&value, &word, 8);
				if (dtypes[d] == GW_FLOAT16 || dtypes[d] == GW_BFLOAT16)
					value = half_value((uint16_t)word, d == 0 ? 5 : 8);
				else if (dtypes[d] == GW_FLOAT32)
					value = (double)single;
				assert_true(value >= initial.low && value < initial.high);
			}
		}
	}
}

static uint64_t shuffled(const void *context, uint64_t row)
{
	return ((const uint64_t *)context)[row];
}

/* A row's initial value depends on its original id, not on its place. */
static void partitions_begin_alike(void **state)
{
	(void)state;
	uint64_t ids[100];
	struct gw_permutation order = gw_permutation_begin(9, 100);
	for (uint64_t i = 0; i < 100; i++)
		ids[i] = gw_permutation_at(&order, i) + (1ull << 40);
	for (int how = GW_INITIAL_UNIFORM; how <= GW_INITIAL_NORMAL; how++) {
		struct gw_row_initial here = {.how = (enum gw_initial)how, .high = 1, .seed = 4};
		struct gw_row_initial there = here;
		there.original = shuffled;
		there.context = ids;
		for (uint64_t i = 0; i < 100; i++) {
			float a[7], b[7];
			gw_row_initial_write(&here, GW_FLOAT32, 7, ids[i], a);
			gw_row_initial_write(&there, GW_FLOAT32, 7, i, b);
			assert_memory_equal(a, b, sizeof(a));
		}
	}
}

static uint64_t digest_of(enum gw_initial how, gw_dtype dtype)
{
	struct gw_row_initial initial = {.how = how, .low = -0.75, .high = 1.5, .seed = 0x5eed};
	static uint8_t rows[500][9 * 8];
	memset(rows, 0, sizeof(rows));
	for (uint64_t row = 0; row < 500; row++)
		gw_row_initial_write(&initial, dtype, 9, row, rows[row]);
	return gw_digest(rows, sizeof(rows));
}

static void bytes_never_change(void **state)
{
	(void)state;
	static const struct {
		enum gw_initial how;
		gw_dtype dtype;
		uint64_t digest;
	} known[] = {
		{GW_INITIAL_UNIFORM, GW_FLOAT64, 0x5fa4e38d229f1157ull},
		{GW_INITIAL_UNIFORM, GW_FLOAT32, 0x393733a9f1089ddaull},
		{GW_INITIAL_UNIFORM, GW_FLOAT16, 0x8c5bdea807b9ef28ull},
		{GW_INITIAL_UNIFORM, GW_BFLOAT16, 0x9cf93726a1380ff2ull},
		{GW_INITIAL_NORMAL, GW_FLOAT64, 0xec6265db2559318eull},
		{GW_INITIAL_NORMAL, GW_FLOAT32, 0xc2f5bc2bcc969d1aull},
		{GW_INITIAL_NORMAL, GW_FLOAT16, 0xc8131ee0688bdb20ull},
		{GW_INITIAL_NORMAL, GW_BFLOAT16, 0x8f3ef30463dd9af7ull},
	};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		assert_int_equal(digest_of(known[i].how, known[i].dtype), known[i].digest);
}

static void what_no_row_can_begin_with(void **state)
{
	(void)state;
	static const struct {
		enum gw_initial how;
		gw_dtype dtype;
		double low, high;
		gw_status status;
	} cases[] = {
		{GW_INITIAL_ZERO, GW_INT8_ROW, 0, 0, GW_UNSUPPORTED},
		{GW_INITIAL_CONSTANT, GW_UINT8, 255, 0, GW_OK},
		{GW_INITIAL_CONSTANT, GW_UINT8, 256, 0, GW_INVALID},
		{GW_INITIAL_CONSTANT, GW_INT8, -128, 0, GW_OK},
		{GW_INITIAL_CONSTANT, GW_INT8, -129, 0, GW_INVALID},
		{GW_INITIAL_CONSTANT, GW_INT16, -0x1p15, 0, GW_OK},
		{GW_INITIAL_CONSTANT, GW_INT16, 0x1p15, 0, GW_INVALID},
		{GW_INITIAL_CONSTANT, GW_INT64, -0x1p63, 0, GW_OK},
		{GW_INITIAL_CONSTANT, GW_INT64, 0x1p63, 0, GW_INVALID},
		{GW_INITIAL_CONSTANT, GW_BOOL, 2, 0, GW_INVALID},
		{GW_INITIAL_CONSTANT, GW_INT32, 0.5, 0, GW_INVALID},
		{GW_INITIAL_CONSTANT, GW_INT32, NAN, 0, GW_INVALID},
		{GW_INITIAL_CONSTANT, GW_FLOAT16, NAN, 0, GW_OK},
		{GW_INITIAL_CONSTANT, GW_FLOAT16, -65519, 0, GW_OK},
		{GW_INITIAL_CONSTANT, GW_FLOAT16, 65520, 0, GW_INVALID},
		{GW_INITIAL_CONSTANT, GW_FLOAT16, INFINITY, 0, GW_OK},
		{GW_INITIAL_CONSTANT, GW_BFLOAT16, 3.39e38, 0, GW_OK},
		{GW_INITIAL_CONSTANT, GW_BFLOAT16, -3.4e38, 0, GW_INVALID},
		{GW_INITIAL_CONSTANT, GW_FLOAT32, 3.4e38, 0, GW_OK},
		{GW_INITIAL_CONSTANT, GW_FLOAT32, -3.5e38, 0, GW_INVALID},
		{GW_INITIAL_CONSTANT, GW_FLOAT64, 1e308, 0, GW_OK},
		{GW_INITIAL_UNIFORM, GW_FLOAT16, 0, 65504, GW_OK},
		{GW_INITIAL_UNIFORM, GW_FLOAT16, -66000, 0, GW_INVALID},
		{GW_INITIAL_UNIFORM, GW_FLOAT32, 0, 1e39, GW_INVALID},
		{GW_INITIAL_NORMAL, GW_FLOAT16, 5000, 9000, GW_OK},
		{GW_INITIAL_NORMAL, GW_FLOAT16, -5600, 9000, GW_INVALID},
		{GW_INITIAL_NORMAL, GW_FLOAT64, 0, 1e308, GW_INVALID},
		{GW_INITIAL_UNIFORM, GW_INT64, 0, 1, GW_UNSUPPORTED},
		{GW_INITIAL_UNIFORM, GW_FLOAT32, 1, 1, GW_INVALID},
		{GW_INITIAL_UNIFORM, GW_FLOAT32, 0, INFINITY, GW_INVALID},
		{GW_INITIAL_UNIFORM, GW_FLOAT32, -1.5e308, 1.5e308, GW_INVALID},
		{GW_INITIAL_NORMAL, GW_FLOAT32, NAN, 1, GW_INVALID},
		{GW_INITIAL_NORMAL, GW_FLOAT32, 0, -1, GW_INVALID},
		{GW_INITIAL_NORMAL, GW_FLOAT32, 0, 0, GW_OK},
		{(enum gw_initial)5, GW_FLOAT32, 0, 0, GW_INVALID},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gw_row_initial initial = {.how = cases[i].how, .low = cases[i].low, .high = cases[i].high};
		assert_int_equal(gw_row_initial_check(&initial, cases[i].dtype), cases[i].status);
	}
	struct gw_row_initial initial = {.how = GW_INITIAL_CONSTANT, .low = -3};
	int64_t words[2];
	int16_t halves[3];
	int8_t bytes[3];
	gw_row_initial_write(&initial, GW_INT64, 2, 0, words);
	gw_row_initial_write(&initial, GW_INT8, 3, 0, bytes);
	gw_row_initial_write(&initial, GW_INT16, 3, 0, halves);
	assert_true(halves[0] == -3 && halves[2] == -3);
	assert_true(words[0] == -3 && words[1] == -3 && bytes[0] == -3 && bytes[2] == -3);
}

static void constants_that_are_not_finite(void **state)
{
	(void)state;
	static const double constants[] = {INFINITY, -INFINITY, NAN};
	for (int i = 0; i < 3; i++) {
		struct gw_row_initial initial = {.how = GW_INITIAL_CONSTANT, .low = constants[i]};
		double twice, single;
		float once;
		uint16_t half, brain;
		gw_row_initial_write(&initial, GW_FLOAT64, 1, 0, &twice);
		gw_row_initial_write(&initial, GW_FLOAT32, 1, 0, &once);
		gw_row_initial_write(&initial, GW_FLOAT16, 1, 0, &half);
		gw_row_initial_write(&initial, GW_BFLOAT16, 1, 0, &brain);
		single = (double)once;
		assert_true(i == 2 ? isnan(twice) && isnan(once) && isnan(gw_float_of_float16(half)) &&
					     isnan(gw_float_of_bfloat16(brain))
				   : twice == constants[i] && single == constants[i] &&
					     (double)gw_float_of_float16(half) == constants[i] &&
					     (double)gw_float_of_bfloat16(brain) == constants[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(halves_become_floats),        cmocka_unit_test(floats_are_rounded_to_the_nearest),
		cmocka_unit_test(random_values_by_definition), cmocka_unit_test(values_do_not_depend_on_each_other),
		cmocka_unit_test(words_at_the_ends),           cmocka_unit_test(uniform_values_stay_below_the_end),
		cmocka_unit_test(partitions_begin_alike),      cmocka_unit_test(bytes_never_change),
		cmocka_unit_test(what_no_row_can_begin_with),  cmocka_unit_test(constants_that_are_not_finite),
	};
	return cmocka_run_group_tests_name("row initial", tests, NULL, NULL);
}
