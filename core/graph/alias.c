/* Alias tables by Vose's method on exact integers.
 *
 *   weights of a list -> mantissas at one common exponent (63 bits) -> mass = weight * n, mean = sum of weights ->
 *   small columns topped up by large ones -> threshold = floor(mass * 2^32 / mean)
 *
 * Masses are integers whose sum is n * mean, so rounding leaves no remainder: a remaining column has exactly the mean.
 * Each threshold is rounded once, downward. The column's edge thereby loses a probability of less than 2^-32 / n, which
 * the column's alias gains. So each edge's probability is exact to within 2^-32. The code takes the bit patterns of
 * floats apart by integers, so no floating-point operation decides anything.
 */
#include "core/graph/alias.h"

#include <inttypes.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/numbers/dtype.h"
#include "core/system/parallel.h"

#define WEIGHT_BITS 63 /* weight < 2^63, n < 2^32: mass < 2^95, mass * 2^32 < 2^127 */
#define GRAIN       4096u

typedef unsigned __int128 wide;

/* A weight as mantissa * 2^exponent. */
struct decoded {
	uint64_t mantissa;
	int exponent;
};

struct alias_scratch {
	wide *mass;
	uint32_t *stack; /* small columns from the start, large columns from the end */
	uint64_t room;
};

struct alias_build {
	const uint64_t *indptr;
	gw_dtype dtype;
	const void *weights;
	uint32_t *table;
	struct alias_scratch *scratch; /* one for each thread */
};

/* Decodes an IEEE 754 number of the given widths; false for negatives (except -0), NaN and infinity. */
static bool decode_float(uint64_t bits, int mantissa_bits, int exponent_bits, struct decoded *out)
{
	uint64_t fraction = bits & ((1ull << mantissa_bits) - 1);
	uint64_t exponent = bits >> mantissa_bits & ((1ull << exponent_bits) - 1);
	bool negative = bits >> (mantissa_bits + exponent_bits) & 1;
	int bias = (1 << (exponent_bits - 1)) - 1;
	if (exponent == (1ull << exponent_bits) - 1)
		return false;
	out->mantissa = exponent ? fraction | 1ull << mantissa_bits : fraction;
	out->exponent = (exponent ? (int)exponent : 1) - bias - mantissa_bits;
	return !negative || out->mantissa == 0;
}

static bool decode_signed(int64_t value, struct decoded *out)
{
	*out = (struct decoded){(uint64_t)value, 0};
	return value >= 0;
}

static bool decode_unsigned(uint64_t value, struct decoded *out)
{
	*out = (struct decoded){value, 0};
	return true;
}

static bool alias_decode(gw_dtype dtype, const void *weights, uint64_t i, struct decoded *out)
{
	switch (dtype) {
	case GW_UINT8:
		return decode_unsigned(((const uint8_t *)weights)[i], out);
	case GW_UINT16:
		return decode_unsigned(((const uint16_t *)weights)[i], out);
	case GW_UINT32:
		return decode_unsigned(((const uint32_t *)weights)[i], out);
	case GW_UINT64:
		return decode_unsigned(((const uint64_t *)weights)[i], out);
	case GW_INT8:
		return decode_signed(((const int8_t *)weights)[i], out);
	case GW_INT16:
		return decode_signed(((const int16_t *)weights)[i], out);
	case GW_INT32:
		return decode_signed(((const int32_t *)weights)[i], out);
	case GW_INT64:
		return decode_signed(((const int64_t *)weights)[i], out);
	case GW_FLOAT16:
		return decode_float(((const uint16_t *)weights)[i], 10, 5, out);
	case GW_BFLOAT16:
		return decode_float(((const uint16_t *)weights)[i], 7, 8, out);
	case GW_FLOAT32:
		return decode_float(((const uint32_t *)weights)[i], 23, 8, out);
	default:
		return decode_float(((const uint64_t *)weights)[i], 52, 11, out);
	}
}

static int top_bit(uint64_t value)
{
	return 64 - __builtin_clzll(value);
}

/* Scales the list's weights to one exponent, so that the largest weight is just below 2^63. Writes them to mass, and
 * their sum to *sum. */
static gw_status scale_weights(const struct alias_build *build, uint64_t from, uint64_t n, wide *mass, wide *sum)
{
	struct decoded weight;
	int top = INT32_MIN;
	for (uint64_t i = 0; i < n; i++) {
		if (!alias_decode(build->dtype, build->weights, from + i, &weight))
			return gw_fail(GW_RANGE,
				       "edge %" PRIu64
				       ": its weight is negative, infinite or not a number: weights are finite and 0 "
				       "or more",
				       from + i);
		if (weight.mantissa && weight.exponent + top_bit(weight.mantissa) > top)
			top = weight.exponent + top_bit(weight.mantissa);
	}
	*sum = 0;
	for (uint64_t i = 0; i < n; i++) {
		alias_decode(build->dtype, build->weights, from + i, &weight);
		uint64_t scaled = 0;
		int shift = weight.mantissa ? weight.exponent - (top - WEIGHT_BITS) : 0;
		if (shift >= 0)
			scaled = weight.mantissa << shift; /* below 2^63, because `top` is the greatest exponent */
		else if (shift > -64)
			scaled = weight.mantissa >> -shift;
		mass[i] = scaled;
		*sum += scaled;
	}
	return GW_OK;
}

/* Vose's method: each small column keeps its own mass, and a large column fills it up to the mean. */
static void pair_columns(wide *mass, uint32_t *stack, uint64_t n, wide mean, uint32_t *table)
{
	uint64_t small = 0, large = n; /* stack[0, small) and stack[large, n) */
	for (uint64_t i = 0; i < n; i++) {
		mass[i] *= n;
		if (mass[i] < mean)
			stack[small++] = (uint32_t)i;
		else
			stack[--large] = (uint32_t)i;
	}
	while (small > 0) { /* masses sum to n * mean, so a large column exists */
		uint32_t low = stack[--small], high = stack[large];
		table[2 * (uint64_t)low] = (uint32_t)((mass[low] << 32) / mean);
		table[2 * (uint64_t)low + 1] = high;
		mass[high] -= mean - mass[low];
		if (mass[high] < mean) {
			large++;
			stack[small++] = high;
		}
	}
	for (; large < n; large++) { /* mass is exactly the mean */
		table[2 * (uint64_t)stack[large]] = UINT32_MAX;
		table[2 * (uint64_t)stack[large] + 1] = stack[large];
	}
}

static gw_status alias_grow(struct alias_scratch *scratch, uint64_t n)
{
	if (n <= scratch->room)
		return GW_OK;
	uint64_t room = n + n / 2;
	gw_free(scratch->mass);
	gw_free(scratch->stack);
	scratch->mass = gw_calloc(room, sizeof(*scratch->mass));
	scratch->stack = gw_calloc(room, sizeof(*scratch->stack));
	scratch->room = scratch->mass && scratch->stack ? room : 0;
	return scratch->room ? GW_OK : GW_NO_MEMORY;
}

static gw_status build_list(const struct alias_build *build, uint64_t row, struct alias_scratch *scratch)
{
	uint64_t from = build->indptr[row], n = build->indptr[row + 1] - from;
	uint32_t *table = build->table + 2 * from;
	wide sum = 0;
	if (n == 0)
		return GW_OK;
	if (n >= UINT32_MAX)
		return gw_fail(GW_LIMIT, "list %" PRIu64 ": %" PRIu64 " edges are too many for an alias table", row, n);
	gw_status status = alias_grow(scratch, n);
	if (status == GW_OK)
		status = scale_weights(build, from, n, scratch->mass, &sum);
	if (status != GW_OK)
		return status;
	if (sum > 0) {
		pair_columns(scratch->mass, scratch->stack, n, sum, table);
		return GW_OK;
	}
	for (uint64_t i = 0; i < n; i++) {
		table[2 * i] = 0;
		table[2 * i + 1] = GW_ALIAS_NONE;
	}
	return GW_OK;
}

static gw_status build_body(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	struct alias_build *build = context;
	gw_status status = GW_OK;
	for (uint64_t row = begin; status == GW_OK && row < end; row++)
		status = build_list(build, row, &build->scratch[thread]);
	return status;
}

gw_status gw_alias_build(const uint64_t *indptr, uint64_t rows, gw_dtype dtype, const void *weights, unsigned threads,
			 uint32_t *table)
{
	struct alias_build build = {indptr, dtype, weights, table, NULL};
	if ((unsigned)dtype >= GW_DTYPE_COUNT || dtype == GW_BOOL || dtype == GW_INT8_ROW)
		return gw_fail(GW_UNSUPPORTED, "weights of dtype %s: use a number type", gw_dtype_name(dtype));
	threads = threads ? threads : gw_processors();
	build.scratch = gw_calloc(threads, sizeof(*build.scratch));
	if (!build.scratch)
		return GW_NO_MEMORY;
	gw_status status = gw_parallel_for(threads, rows, GRAIN, build_body, &build);
	for (unsigned t = 0; t < threads; t++) {
		gw_free(build.scratch[t].mass);
		gw_free(build.scratch[t].stack);
	}
	gw_free(build.scratch);
	return status;
}
