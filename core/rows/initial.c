/* Initial values: constants and random numbers, converted to the row's dtype.
 *
 *   check -> for each row: zero | the constant | four columns a block of random words | copy
 *
 * Every step rounds as IEEE 754 requires. The build disables contraction to fused multiply-add in this layer, because
 * it would give other bytes on processors that have it. Fails for values outside of the dtype's range.
 */
#include "core/rows/initial.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "core/numbers/dtype.h"
#include "core/numbers/half.h"
#include "core/numbers/rng.h"

#define INITIAL_LN2   0x1.62e42fefa39efp-1
#define INITIAL_TAU   0x1.921fb54442d18p+2 /* 2 pi */
#define INITIAL_REACH 6.6605               /* the farthest normal number, in deviations from the mean: sqrt(64 ln 2) */

static bool initial_is_float(gw_dtype dtype)
{
	return dtype == GW_FLOAT32 || dtype == GW_FLOAT64 || dtype == GW_FLOAT16 || dtype == GW_BFLOAT16;
}

static bool initial_integer_fits(gw_dtype dtype, double value)
{
	static const struct {
		double min, end;
	} ranges[GW_DTYPE_COUNT] = {
		[GW_UINT8] = {0, 0x1p8},        [GW_INT8] = {-0x1p7, 0x1p7},    [GW_BOOL] = {0, 2},
		[GW_UINT16] = {0, 0x1p16},      [GW_INT32] = {-0x1p31, 0x1p31}, [GW_UINT32] = {0, 0x1p32},
		[GW_INT64] = {-0x1p63, 0x1p63}, [GW_UINT64] = {0, 0x1p64},      [GW_INT16] = {-0x1p15, 0x1p15},
	};
	return value == trunc(value) && value >= ranges[dtype].min && value < ranges[dtype].end;
}

/* After rounding. */
static bool initial_float_fits(gw_dtype dtype, double value)
{
	float single = (float)value;
	if (dtype == GW_FLOAT64)
		return isfinite(value);
	if (dtype == GW_FLOAT16)
		single = gw_float_of_float16(gw_float16_of_float(single));
	if (dtype == GW_BFLOAT16)
		single = gw_float_of_bfloat16(gw_bfloat16_of_float(single));
	return isfinite(single);
}

static gw_status initial_check_random(const struct gw_row_initial *initial, gw_dtype dtype)
{
	double low = initial->low, high = initial->high;
	if (!initial_is_float(dtype))
		return gw_fail(GW_UNSUPPORTED, "initial values: random ones are floating-point numbers, and this is %s",
			       gw_dtype_name(dtype));
	if (!isfinite(low) || !isfinite(high) || !isfinite(high - low))
		return gw_fail(GW_INVALID, "initial values: %g and %g: not finite", low, high);
	if (initial->how == GW_INITIAL_UNIFORM && low >= high)
		return gw_fail(GW_INVALID, "initial values: the range from %g up to below %g is empty", low, high);
	if (initial->how == GW_INITIAL_NORMAL && high < 0)
		return gw_fail(GW_INVALID, "initial values: a standard deviation of %g", high);
	if (initial->how == GW_INITIAL_NORMAL) {
		low = initial->low - INITIAL_REACH * initial->high;
		high = initial->low + INITIAL_REACH * initial->high;
	}
	if (!initial_float_fits(dtype, low) || !initial_float_fits(dtype, high))
		return gw_fail(GW_INVALID, "initial values from %g to %g: more than %s holds", low, high,
			       gw_dtype_name(dtype));
	return GW_OK;
}

gw_status gw_row_initial_check(const struct gw_row_initial *initial, gw_dtype dtype)
{
	if ((unsigned)dtype >= GW_DTYPE_COUNT || dtype == GW_INT8_ROW)
		return gw_fail(GW_UNSUPPORTED, "rows that change cannot be %s", gw_dtype_name(dtype));
	switch (initial->how) {
	case GW_INITIAL_ZERO:
	case GW_INITIAL_COPY:
		return GW_OK;
	case GW_INITIAL_CONSTANT:
		if (!initial_is_float(dtype) && !initial_integer_fits(dtype, initial->low))
			return gw_fail(GW_INVALID, "initial values: %g is no %s", initial->low, gw_dtype_name(dtype));
		if (initial_is_float(dtype) && isfinite(initial->low) && !initial_float_fits(dtype, initial->low))
			return gw_fail(GW_INVALID, "initial values: %g is more than %s holds", initial->low,
				       gw_dtype_name(dtype));
		return GW_OK;
	case GW_INITIAL_UNIFORM:
	case GW_INITIAL_NORMAL:
		return initial_check_random(initial, dtype);
	default:
		return gw_fail(GW_INVALID, "initial values: unknown kind %d", (int)initial->how);
	}
}

/* ln(n / 2^32) for 1 <= n <= 2^32: n = m * 2^e with m in [0.70, 1.42), ln m = 2 atanh((m - 1) / (m + 1)). */
static double initial_log(uint64_t n)
{
	int exponent = 63 - __builtin_clzll(n);
	double m = (double)n / (double)(1ull << exponent);
	if (m > 1.4142135623730951) {
		m = m / 2;
		exponent++;
	}
	double s = (m - 1) / (m + 1), square = s * s, sum = 0;
	for (int k = 21; k >= 1; k -= 2) /* s^2 < 0.0295: the omitted terms are below 1e-17 */
		sum = sum * square + 1.0 / k;
	return (double)(exponent - 32) * INITIAL_LN2 + 2 * s * sum;
}

/* Cosine and sine of 2 pi turn / 2^32. The nearest quarter is split off; the rest is at most pi / 4. */
static void initial_angle(uint32_t turn, double *cosine, double *sine)
{
	uint32_t quarter = (turn + 0x20000000u) >> 30;
	double angle = (double)(int32_t)(turn - (quarter << 30)) * 0x1p-32 * INITIAL_TAU;
	double square = angle * angle, c = 1, s = 1;
	for (int k = 18; k >= 2; k -= 2) { /* both series, smallest terms first; the omitted terms are below 1e-17 */
		c = 1 - square / (double)((k - 1) * k) * c;
		s = 1 - square / (double)(k * (k + 1)) * s;
	}
	s = s * angle;
	*cosine = quarter == 0 ? c : quarter == 1 ? -s : quarter == 2 ? -c : s;
	*sine = quarter == 0 ? s : quarter == 1 ? c : quarter == 2 ? -s : -c;
}

static void initial_random(const struct gw_row_initial *initial, struct gw_words words, double out[4])
{
	if (initial->how == GW_INITIAL_UNIFORM) {
		for (int i = 0; i < 4; i++)
			out[i] = initial->low + (initial->high - initial->low) * ((double)words.word[i] * 0x1p-32);
		return;
	}
	for (int i = 0; i < 4; i += 2) {
		double cosine, sine, radius = sqrt(-2 * initial_log((uint64_t)words.word[i] + 1));
		initial_angle(words.word[i + 1], &cosine, &sine);
		out[i] = initial->low + initial->high * (radius * cosine);
		out[i + 1] = initial->low + initial->high * (radius * sine);
	}
}

/* Rounds to the dtype. If the result reaches `end` (the end of a uniform range; NaN: no end), it writes the next
 * smaller number of the dtype. */
static void initial_put_float(gw_dtype dtype, double value, double end, uint8_t *to)
{
	float single = (float)value;
	switch (dtype) {
	case GW_FLOAT64:
		if (value >= end)
			value = nextafter(end, -INFINITY);
		memcpy(to, &value, sizeof(value));
		return;
	case GW_FLOAT32:
		if ((double)single >= end)
			single = nextafterf(single, -INFINITY);
		memcpy(to, &single, sizeof(single));
		return;
	default: {
		bool brain = dtype == GW_BFLOAT16;
		uint16_t half = brain ? gw_bfloat16_of_float(single) : gw_float16_of_float(single);
		double rounded = (double)(brain ? gw_float_of_bfloat16(half) : gw_float_of_float16(half));
		if (rounded >= end) /* the next smaller number: the bits decrease above zero and increase below it */
			half = (half & 0x7fffu) == 0 ? 0x8001u : (uint16_t)(half & 0x8000u ? half + 1 : half - 1);
		memcpy(to, &half, sizeof(half));
	}
	}
}

static void initial_put_integer(gw_dtype dtype, double value, uint8_t *to)
{
	/* Both conversions give 64 bits, whose lower bytes are the value in narrower types. */
	uint64_t bits = value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value;
	memcpy(to, &bits, gw_dtype_bytes(dtype)); /* little-endian, like all machines that Graphwire supports */
}

static void initial_fill_constant(const struct gw_row_initial *initial, gw_dtype dtype, uint64_t columns, uint8_t *to)
{
	uint8_t element[8];
	size_t bytes = gw_dtype_bytes(dtype);
	if (initial_is_float(dtype))
		initial_put_float(dtype, initial->low, NAN, element);
	else
		initial_put_integer(dtype, initial->low, element);
	for (uint64_t i = 0; i < columns; i++)
		memcpy(to + i * bytes, element, bytes);
}

gw_status gw_row_initial_write(const struct gw_row_initial *initial, gw_dtype dtype, uint64_t columns, uint64_t row,
			       void *payload)
{
	size_t bytes = gw_dtype_bytes(dtype);
	if (initial->how == GW_INITIAL_ZERO) {
		memset(payload, 0, columns * bytes);
		return GW_OK;
	}
	if (initial->how == GW_INITIAL_COPY)
		return initial->copy(initial->context, row, payload);
	if (initial->how == GW_INITIAL_CONSTANT) {
		initial_fill_constant(initial, dtype, columns, payload);
		return GW_OK;
	}
	uint64_t key = gw_draw_key(initial->seed, 0, GW_DRAW_INITIAL, 0, 0);
	uint64_t id = initial->original ? initial->original(initial->context, row) : row;
	double end = initial->how == GW_INITIAL_UNIFORM ? initial->high : NAN, values[4];
	for (uint64_t column = 0; column < columns; column++) {
		if (column % 4 == 0)
			initial_random(initial, gw_philox(key, id, (uint32_t)(column / 4)), values);
		initial_put_float(dtype, values[column % 4], end, (uint8_t *)payload + column * bytes);
	}
	return GW_OK;
}
