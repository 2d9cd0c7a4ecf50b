/* Conversions of rows, beside the numbers' definitions in double arithmetic: all 16-bit numbers, float32 and float64 of
 * all sizes, NaN, rows of every length, in memory of their own and in the output's, by every width of vectors. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/convert.h"
#include "core/numbers/dtype.h"
#include "core/numbers/rng.h"
#include "core/numbers/vectors.h"

#define FOR_EACH_WIDTH(vectors)                                                                                        \
	for (enum gw_vectors vectors = GW_VECTORS_OFF; vectors < GW_VECTORS_COUNT; vectors++)                          \
		if (gw_vectors_set(vectors))

static const gw_dtype reals[] = {GW_FLOAT16, GW_BFLOAT16, GW_FLOAT32, GW_FLOAT64};

struct real_form {
	int exponent_bits, fraction_bits;
};

static struct real_form form_of(gw_dtype dtype)
{
	return dtype == GW_FLOAT16    ? (struct real_form){5, 10}
	       : dtype == GW_BFLOAT16 ? (struct real_form){8, 7}
	       : dtype == GW_FLOAT32  ? (struct real_form){8, 23}
				      : (struct real_form){11, 52};
}

static uint64_t bits_at(gw_dtype dtype, const void *numbers, uint64_t i)
{
	uint64_t bits = 0;
	uint32_t bytes = gw_dtype_bytes(dtype);
	memcpy(&bits, (const uint8_t *)numbers + i * bytes, bytes);
	return bits;
}

/* By the definition of binary floating-point numbers. */
static double value_of(gw_dtype dtype, uint64_t bits)
{
	struct real_form form = form_of(dtype);
	uint64_t fraction = bits & ((1ull << form.fraction_bits) - 1);
	int exponent = (int)(bits >> form.fraction_bits & ((1ull << form.exponent_bits) - 1));
	int bias = (1 << (form.exponent_bits - 1)) - 1;
	double size = exponent == 0 ? ldexp((double)fraction, 1 - bias - form.fraction_bits)
				    : ldexp((double)(fraction | 1ull << form.fraction_bits),
					    exponent - bias - form.fraction_bits);
	if (exponent == (1 << form.exponent_bits) - 1)
		size = fraction ? (double)NAN : (double)INFINITY;
	return bits >> (form.exponent_bits + form.fraction_bits) & 1 ? -size : size;
}

/* The number of this type that is nearest to a value that is not NaN, ties to even. */
static uint64_t nearest(gw_dtype dtype, double value)
{
	struct real_form form = form_of(dtype);
	int exponent, bias = (1 << (form.exponent_bits - 1)) - 1;
	uint64_t sign = (uint64_t)(signbit(value) != 0) << (form.exponent_bits + form.fraction_bits);
	uint64_t infinite = ((1ull << form.exponent_bits) - 1) << form.fraction_bits;
	if (isinf(value))
		return sign | infinite;
	(void)frexp(value, &exponent);
	int least = exponent - 1 < 1 - bias ? 1 - bias : exponent - 1;
	/* whole units of the last bit; the scaling is exact, and rint() is the only rounding */
	double units = rint(ldexp(fabs(value), form.fraction_bits - least));
	uint64_t whole = (uint64_t)units;
	uint64_t bits = whole == 0 ? 0 : whole + ((uint64_t)(least + bias - 1) << form.fraction_bits);
	return sign | (bits > infinite ? infinite : bits);
}

static uint64_t quiet(gw_dtype from, uint64_t bits, gw_dtype to)
{
	struct real_form a = form_of(from), b = form_of(to);
	uint64_t sign = bits >> (a.exponent_bits + a.fraction_bits) & 1;
	uint64_t fraction = bits & ((1ull << a.fraction_bits) - 1);
	fraction = a.fraction_bits > b.fraction_bits ? fraction >> (a.fraction_bits - b.fraction_bits)
						     : fraction << (b.fraction_bits - a.fraction_bits);
	if (!(from == GW_BFLOAT16 && to == GW_FLOAT32)) /* which keeps all bits */
		fraction |= 1ull << (b.fraction_bits - 1);
	return sign << (b.exponent_bits + b.fraction_bits) | ((1ull << b.exponent_bits) - 1) << b.fraction_bits |
	       fraction;
}

static uint64_t expected(gw_dtype from, uint64_t bits, gw_dtype to)
{
	double value = value_of(from, bits);
	if (from == to)
		return bits;
	if (!isnan(value))
		return nearest(to, value);
	/* one step to float32, one from it */
	return from == GW_FLOAT32 || to == GW_FLOAT32 ? quiet(from, bits, to)
						      : quiet(GW_FLOAT32, quiet(from, bits, GW_FLOAT32), to);
}

static void check(gw_dtype from, const void *numbers, uint64_t n)
{
	uint8_t *out = malloc(n * 8);
	assert_non_null(out);
	for (size_t t = 0; t < sizeof(reals) / sizeof(reals[0]); t++) {
		const gw_dtype to = reals[t];
		FOR_EACH_WIDTH(vectors)
		{
			struct gw_conversion conversion = gw_conversion_of(from, to, 1);
			gw_convert_rows(&conversion, numbers, out, n);
			for (uint64_t i = 0; i < n; i++) {
				uint64_t bits = bits_at(from, numbers, i), found = bits_at(to, out, i);
				if (found != expected(from, bits, to))
					fail_msg("%s %llx -> %s by %s: %llx, not %llx", gw_dtype_name(from),
						 (unsigned long long)bits, gw_dtype_name(to), gw_vectors_name(vectors),
						 (unsigned long long)found,
						 (unsigned long long)expected(from, bits, to));
			}
		}
	}
	gw_vectors_set(GW_VECTORS_AUTO);
	free(out);
}

static void all_halves(void **state)
{
	(void)state;
	static uint16_t halves[65536];
	for (uint32_t i = 0; i < 65536; i++)
		halves[i] = (uint16_t)i;
	check(GW_FLOAT16, halves, 65536);
	check(GW_BFLOAT16, halves, 65536);
}

/* Random bits have all exponents. Around each number of 16 bits and each middle between two of them, numbers that round
 * down, up and to even. */
static void floats_of_all_sizes(void **state)
{
	(void)state;
	enum { COUNT = 3 << 17 };
	uint32_t *singles = malloc(COUNT * sizeof(*singles));
	struct gw_draws draws = gw_draws_begin(1, 2);
	assert_non_null(singles);
	for (uint32_t i = 0; i < COUNT; i++) {
		uint32_t half = i / 6 & 0xffff, step = i % 6, near[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
		singles[i] = i < COUNT / 2 ? gw_draw32(&draws) : half << 16 | near[step];
		if (i % 7 == 0) /* the same around float16's numbers */
			singles[i] = (uint32_t)nearest(GW_FLOAT32, value_of(GW_FLOAT16, half)) +
				     (near[step] >> 3 & 0x1fff) - (step > 2 ? 0 : 1);
		if (i % 11 == 0) /* and their middles; denormal numbers of float16 have wider steps */
			singles[i] = (uint32_t)nearest(GW_FLOAT32, (value_of(GW_FLOAT16, half & 0x7bff) +
								    value_of(GW_FLOAT16, (half & 0x7bff) + 1)) /
									   2) +
				     step - 2;
	}
	check(GW_FLOAT32, singles, COUNT);
	free(singles);
}

/* Among them the middles between two numbers of 16 bits plus or minus less than float32 shows: rounded twice, they
 * would become the wrong one of the two. */
static void doubles_round_once(void **state)
{
	(void)state;
	enum { COUNT = 1 << 18 };
	uint64_t *doubles = malloc(COUNT * sizeof(*doubles));
	struct gw_draws draws = gw_draws_begin(3, 4);
	assert_non_null(doubles);
	for (uint32_t i = 0; i < COUNT; i++) {
		uint32_t half = gw_draw32(&draws) & 0x7bff;
		gw_dtype near = i & 1 ? GW_FLOAT16 : GW_BFLOAT16;
		double middle = (value_of(near, half) + value_of(near, half + 1)) / 2;
		uint64_t bits = (uint64_t)gw_draw32(&draws) << 32 | gw_draw32(&draws);
		doubles[i] = bits;
		if (i % 4 == 1) /* of float32's sizes, and somewhat beyond */
			doubles[i] = (bits & 0x800fffffffffffffu) | (uint64_t)(865 + bits % 300) << 52;
		else if (i % 4 > 1)
			doubles[i] = nearest(GW_FLOAT64, middle) + bits % 3 - 1;
	}
	check(GW_FLOAT64, doubles, COUNT);
	free(doubles);
}

static void whole_numbers_widen(void **state)
{
	(void)state;
	uint32_t narrow[67];
	int64_t wide[67];
	for (uint32_t i = 0; i < 67; i++)
		narrow[i] = UINT32_MAX - i * 0x3000000u;
	FOR_EACH_WIDTH(vectors)
	{
		struct gw_conversion conversion = gw_conversion_of(GW_UINT32, GW_INT64, 67);
		gw_convert_rows(&conversion, narrow, wide, 1);
		for (uint32_t i = 0; i < 67; i++)
			assert_int_equal(wide[i], narrow[i]);
	}
	gw_vectors_set(GW_VECTORS_AUTO);
	assert_true(gw_convert_is_possible(GW_INT32, GW_INT32));
	assert_false(gw_convert_is_possible(GW_INT32, GW_INT64));
	assert_false(gw_convert_is_possible(GW_UINT32, GW_FLOAT32));
	assert_false(gw_convert_is_possible(GW_FLOAT32, GW_INT8));
}

/* Rows of every length, in memory at any address, that is the output's or not. Nothing is written beyond them. */
static void rows_in_place(void **state)
{
	(void)state;
	static const gw_dtype from[] = {GW_FLOAT16, GW_BFLOAT16, GW_FLOAT32, GW_FLOAT64, GW_INT8_ROW, GW_UINT32};
	static const gw_dtype to[] = {GW_FLOAT16, GW_BFLOAT16, GW_FLOAT32, GW_FLOAT64, GW_INT64};
	struct gw_draws draws = gw_draws_begin(5, 6);
	for (uint64_t numbers = 1; numbers < 600; numbers += numbers < 70 ? 1 : 131) {
		const uint64_t rows = 1 + gw_draw_below(&draws, 5), at = gw_draw_below(&draws, 8);
		for (size_t f = 0; f < sizeof(from) / sizeof(from[0]); f++) {
			for (size_t t = 0; t < sizeof(to) / sizeof(to[0]); t++) {
				if (!gw_convert_is_possible(from[f], to[t]))
					continue;
				FOR_EACH_WIDTH(vectors)
				{
					struct gw_conversion c = gw_conversion_of(from[f], to[t], numbers);
					const uint64_t room = gw_conversion_room(&c, rows), in = rows * c.from_bytes,
						       out = rows * c.to_bytes;
					uint8_t *rows_in = malloc(in), *apart = malloc(out),
						*same = malloc(at + room + 8);
					assert_true(rows_in && apart && same);
					for (uint64_t i = 0; i < in; i++)
						rows_in[i] = (uint8_t)gw_draw32(&draws);
					memset(same, 0xa5, at + room + 8);
					memcpy(same + at + gw_conversion_start(&c, rows), rows_in, in);
					gw_convert_rows(&c, rows_in, apart, rows);
					gw_convert_rows(&c, same + at + gw_conversion_start(&c, rows), same + at, rows);
					assert_memory_equal(same + at, apart, out);
					for (uint64_t i = 0; i < at + 8; i++)
						assert_int_equal(same[i < at ? i : room + i], 0xa5);
					free(rows_in);
					free(apart);
					free(same);
				}
			}
		}
	}
	gw_vectors_set(GW_VECTORS_AUTO);
}

static float unpacked(const uint8_t *row, uint64_t i)
{
	float head[2];
	memcpy(head, row, sizeof(head));
	volatile float product = head[0] * (float)(int8_t)row[8 + i]; /* two roundings */
	return product + head[1];
}

static void check_packed(gw_dtype dtype, const void *numbers, uint64_t n)
{
	struct gw_conversion pack = gw_conversion_of(dtype, GW_INT8_ROW, n);
	uint8_t *row = malloc(pack.to_bytes);
	float *wide = malloc(n * sizeof(*wide)), scale;
	double low = INFINITY, high = -INFINITY;
	assert_int_equal(gw_convert_first_fault(dtype, numbers, n), n);
	gw_convert_rows(&pack, numbers, row, 1);
	memcpy(&scale, row, sizeof(scale));
	for (uint64_t i = 0; i < n; i++) {
		double value = value_of(dtype, bits_at(dtype, numbers, i));
		if (!(fabs((double)unpacked(row, i) - value) <= (double)scale / 2 ||
		      (scale == 0 && unpacked(row, i) == (float)value)))
			fail_msg("%s: number %llu, %a, becomes %a with scale %a", gw_dtype_name(dtype),
				 (unsigned long long)i, value, (double)unpacked(row, i), (double)scale);
		low = value < low ? value : low;
		high = value > high ? value : high;
	}
	/* hardly coarser than 254 steps, and than the distance of float32's numbers there */
	double most = (high - low) / 254 * 1.0001, size = fabs(low) > fabs(high) ? fabs(low) : fabs(high);
	double coarse = size * 0x1p-22 > 0x1p-147 ? size * 0x1p-22 : 0x1p-147;
	assert_true((double)scale <= most + coarse);
	for (uint64_t i = 8 + n; i < pack.to_bytes; i++)
		assert_int_equal(row[i], 0);
	FOR_EACH_WIDTH(vectors)
	{
		struct gw_conversion conversion = gw_conversion_of(GW_INT8_ROW, GW_FLOAT32, n);
		gw_convert_rows(&conversion, row, wide, 1);
		for (uint64_t i = 0; i < n; i++)
			assert_true(wide[i] == unpacked(row, i));
		for (size_t t = 0; t < sizeof(reals) / sizeof(reals[0]); t++) {
			uint64_t other[512];
			conversion = gw_conversion_of(GW_INT8_ROW, reals[t], n);
			gw_convert_rows(&conversion, row, other, 1);
			for (uint64_t i = 0; i < n; i++)
				assert_int_equal(bits_at(reals[t], other, i), nearest(reals[t], (double)wide[i]));
		}
	}
	gw_vectors_set(GW_VECTORS_AUTO);
	free(row);
	free(wide);
}

static void packed_rows_stay_near(void **state)
{
	(void)state;
	struct gw_draws draws = gw_draws_begin(7, 8);
	double numbers[300];
	float singles[300];
	uint16_t halves[300];
	for (uint32_t round = 0; round < 6000; round++) {
		uint64_t n = 1 + gw_draw_below(&draws, 299);
		/* ranges and offsets of all sizes, also such that float32 has few numbers between them */
		double scale = ldexp(1, (int)gw_draw_below(&draws, 276) - 149);
		double middle = round % 3 ? scale * ldexp(1, (int)gw_draw_below(&draws, 40) - 8) : 0;
		middle = middle > 1e38 ? 1e38 : middle;
		for (uint64_t i = 0; i < n; i++) {
			double random = (double)(int32_t)gw_draw32(&draws) / 0x1p31;
			numbers[i] = middle + (round % 5 == 0 && gw_draw_below(&draws, 4) ? 0 : random * scale);
			singles[i] = (float)numbers[i];
			halves[i] = (uint16_t)nearest(GW_BFLOAT16, numbers[i]);
			singles[i] = round % 7 ? singles[i] : (float)value_of(GW_BFLOAT16, halves[i]);
		}
		check_packed(GW_FLOAT64, numbers, n);
		check_packed(GW_FLOAT32, singles, n);
		check_packed(GW_BFLOAT16, halves, n);
	}
	const float extremes[][4] = {{FLT_MAX, -FLT_MAX, 0, 1},
				     {FLT_MAX, FLT_MAX, 3e38f, FLT_MAX},
				     {-FLT_MAX, nextafterf(-FLT_MAX, 0), 0x1p-149f, -FLT_MAX},
				     {0x1p-149f, 0, 0x1p-149f, 0x1p-148f},
				     {FLT_MAX, nextafterf(FLT_MAX, 0), FLT_MAX, FLT_MAX},
				     {16777216, 16777218, 16777220, 16777222},
				     {0, -0.0f, 0, 0}};
	for (size_t i = 0; i < sizeof(extremes) / sizeof(extremes[0]); i++)
		check_packed(GW_FLOAT32, extremes[i], 4);
}

static void equal_numbers_stay_exact(void **state)
{
	(void)state;
	static const float values[] = {0, 1, 0.1f, -3.3e38f, 0x1p-149f, FLT_MAX};
	for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
		float row[13], back[13];
		uint8_t packed[24];
		for (int i = 0; i < 13; i++)
			row[i] = values[v];
		struct gw_conversion pack = gw_conversion_of(GW_FLOAT32, GW_INT8_ROW, 13);
		struct gw_conversion unpack = gw_conversion_of(GW_INT8_ROW, GW_FLOAT32, 13);
		assert_int_equal(pack.to_bytes, 24);
		gw_convert_rows(&pack, row, packed, 1);
		gw_convert_rows(&unpack, packed, back, 1);
		assert_memory_equal(back, row, sizeof(row));
	}
}

static void faults_are_found(void **state)
{
	(void)state;
	float singles[5] = {1, FLT_MAX, -FLT_MAX, 0, 0x1p-149f};
	double doubles[3] = {1e-300, 3.4028234663852886e38, 3.5e38};
	uint16_t halves[2] = {0x7bff, 0x7c00};
	assert_int_equal(gw_convert_first_fault(GW_FLOAT32, singles, 5), 5);
	singles[3] = INFINITY;
	assert_int_equal(gw_convert_first_fault(GW_FLOAT32, singles, 5), 3);
	singles[2] = NAN;
	assert_int_equal(gw_convert_first_fault(GW_FLOAT32, singles, 5), 2);
	assert_int_equal(gw_convert_first_fault(GW_FLOAT64, doubles, 3), 2);
	assert_int_equal(gw_convert_first_fault(GW_FLOAT16, halves, 2), 1);
	assert_int_equal(gw_convert_first_fault(GW_BFLOAT16, halves, 2), 2);
	assert_true(gw_convert_number(GW_BFLOAT16, halves, 1) == value_of(GW_BFLOAT16, 0x7c00));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_halves),
		cmocka_unit_test(floats_of_all_sizes),
		cmocka_unit_test(doubles_round_once),
		cmocka_unit_test(whole_numbers_widen),
		cmocka_unit_test(rows_in_place),
		cmocka_unit_test(packed_rows_stay_near),
		cmocka_unit_test(equal_numbers_stay_exact),
		cmocka_unit_test(faults_are_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
