/* Weights as integers: see weights.h.
 *
 *   weight ─▶ mantissa * 2^exponent ─▶ the list's greatest exponent ─▶ mantissa, shifted to it
 *
 * The code takes the bit patterns of floats apart by integers. Each loop is compiled for each dtype.
 */
#include "core/graph/weights.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#define WEIGHT_BITS 63
#define INLINE      static inline __attribute__((always_inline))

/* A weight as mantissa * 2^exponent. */
struct decoded {
	uint64_t mantissa;
	int exponent;
};

/* Decodes an IEEE 754 number of the given widths; false for negatives (except -0), NaN and infinity. */
INLINE bool decode_float(uint64_t bits, int mantissa_bits, int exponent_bits, struct decoded *out)
{
	uint64_t fraction = bits & ((1ull << mantissa_bits) - 1);
	uint64_t exponent = bits >> mantissa_bits & ((1ull << exponent_bits) - 1);
	bool negative = bits >> (mantissa_bits + exponent_bits) & 1;
	int bias = (1 << (exponent_bits - 1)) - 1;
	out->mantissa = exponent ? fraction | 1ull << mantissa_bits : fraction;
	out->exponent = (exponent ? (int)exponent : 1) - bias - mantissa_bits;
	return exponent != (1ull << exponent_bits) - 1 && (!negative || out->mantissa == 0);
}

/* Weight i; false if it is negative, NaN or infinite. */
INLINE bool decode_weight(gw_dtype dtype, uint32_t bytes, const void *weights, uint64_t i, struct decoded *out)
{
	uint64_t bits = 0;
	memcpy(&bits, (const uint8_t *)weights + i * bytes, bytes); /* little-endian, as all data of a graph */
	switch (dtype) {
	case GW_FLOAT16:
		return decode_float(bits, 10, 5, out);
	case GW_BFLOAT16:
		return decode_float(bits, 7, 8, out);
	case GW_FLOAT32:
		return decode_float(bits, 23, 8, out);
	case GW_FLOAT64:
		return decode_float(bits, 52, 11, out);
	default:
		*out = (struct decoded){bits, 0};
		return dtype == GW_UINT8 || dtype == GW_UINT16 || dtype == GW_UINT32 || dtype == GW_UINT64 ||
		       !(bits >> (8 * bytes - 1));
	}
}

/* The exponent of a weight's most significant bit, plus 1. */
INLINE int top_of(const struct decoded *weight)
{
	return weight->exponent + 64 - __builtin_clzll(weight->mantissa);
}

INLINE uint64_t shift_weight(const struct decoded *weight, int top)
{
	if (weight->mantissa == 0) /* if all weights are 0, `top` is no exponent */
		return 0;
	int shift = weight->exponent - (top - WEIGHT_BITS);
	if (shift >= 0)
		return weight->mantissa << shift; /* below 2^63, because `top` is the greatest */
	uint64_t scaled = shift > -64 ? weight->mantissa >> -shift : 0;
	return scaled ? scaled : 1;
}

static __attribute__((cold)) gw_status bad_weight(uint64_t edge)
{
	return gw_fail(GW_RANGE,
		       "edge %" PRIu64
		       ": its weight is negative, infinite or not a number: weights are finite and 0 or more",
		       edge);
}

INLINE gw_status scale_as(gw_dtype dtype, uint32_t bytes, const void *weights, uint64_t n, uint64_t first,
			  uint64_t *out)
{
	struct decoded weight;
	int top = INT32_MIN;
	for (uint64_t i = 0; i < n; i++) {
		if (!decode_weight(dtype, bytes, weights, i, &weight))
			return bad_weight(first + i);
		if (weight.mantissa && top_of(&weight) > top)
			top = top_of(&weight);
	}
	for (uint64_t i = 0; i < n; i++) {
		decode_weight(dtype, bytes, weights, i, &weight);
		out[i] = shift_weight(&weight, top);
	}
	return GW_OK;
}

INLINE gw_status positive_as(gw_dtype dtype, uint32_t bytes, const void *weights, uint64_t n, uint64_t first,
			     uint64_t *positions, uint64_t *count)
{
	struct decoded weight;
	uint64_t found = 0;
	for (uint64_t i = 0; i < n; i++) {
		if (!decode_weight(dtype, bytes, weights, i, &weight))
			return bad_weight(first + i);
		positions[found] = i;
		found += weight.mantissa != 0;
	}
	*count = found;
	return GW_OK;
}

/* Returns call(), compiled for the dtype. */
#define FOR_DTYPE(dtype, call, ...)                                                                                    \
	switch (dtype) {                                                                                               \
	case GW_BOOL:                                                                                                  \
	case GW_UINT8:                                                                                                 \
		return call(GW_UINT8, 1, __VA_ARGS__);                                                                 \
	case GW_UINT16:                                                                                                \
		return call(GW_UINT16, 2, __VA_ARGS__);                                                                \
	case GW_UINT32:                                                                                                \
		return call(GW_UINT32, 4, __VA_ARGS__);                                                                \
	case GW_UINT64:                                                                                                \
		return call(GW_UINT64, 8, __VA_ARGS__);                                                                \
	case GW_INT8:                                                                                                  \
		return call(GW_INT8, 1, __VA_ARGS__);                                                                  \
	case GW_INT16:                                                                                                 \
		return call(GW_INT16, 2, __VA_ARGS__);                                                                 \
	case GW_INT32:                                                                                                 \
		return call(GW_INT32, 4, __VA_ARGS__);                                                                 \
	case GW_INT64:                                                                                                 \
		return call(GW_INT64, 8, __VA_ARGS__);                                                                 \
	case GW_FLOAT16:                                                                                               \
		return call(GW_FLOAT16, 2, __VA_ARGS__);                                                               \
	case GW_BFLOAT16:                                                                                              \
		return call(GW_BFLOAT16, 2, __VA_ARGS__);                                                              \
	case GW_FLOAT32:                                                                                               \
		return call(GW_FLOAT32, 4, __VA_ARGS__);                                                               \
	case GW_FLOAT64:                                                                                               \
		return call(GW_FLOAT64, 8, __VA_ARGS__);                                                               \
	default:                                                                                                       \
		return gw_weights_check(dtype);                                                                        \
	}

gw_status gw_weights_check(gw_dtype dtype)
{
	if ((unsigned)dtype >= GW_DTYPE_COUNT || dtype == GW_INT8_ROW)
		return gw_fail(GW_UNSUPPORTED, "weights of dtype %s: use a number type", gw_dtype_name(dtype));
	return GW_OK;
}

gw_status gw_weights_scale(gw_dtype dtype, const void *weights, uint64_t n, uint64_t first,
			   uint64_t *out){FOR_DTYPE(dtype, scale_as, weights, n, first, out)}

gw_status gw_weights_positive(gw_dtype dtype, const void *weights, uint64_t n, uint64_t first, uint64_t *positions,
			      uint64_t *count)
{
	FOR_DTYPE(dtype, positive_as, weights, n, first, positions, count)
}
