/* Converts single numbers from float16 and bfloat16 to float32 and back, in integers. The rules, and rows of numbers:
 * convert.h. */
#ifndef GW_NUMBERS_HALF_H
#define GW_NUMBERS_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t gw_float_bits(float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static inline float gw_float_of_bits(uint32_t bits)
{
	float value;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

static inline float gw_float_of_bfloat16(uint16_t half)
{
	return gw_float_of_bits((uint32_t)half << 16);
}

static inline uint16_t gw_bfloat16_of_float(float value)
{
	uint32_t bits = gw_float_bits(value);
	if ((bits & 0x7fffffffu) > 0x7f800000u)
		return (uint16_t)(bits >> 16 | 0x40u);
	return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

static inline float gw_float_of_float16(uint16_t half)
{
	uint32_t sign = (uint32_t)(half & 0x8000u) << 16, exponent = half >> 10 & 31u, fraction = half & 1023u;
	if (exponent == 31)
		return gw_float_of_bits(sign | 0x7f800000u | (fraction ? 0x400000u : 0) | fraction << 13);
	if (exponent > 0)
		return gw_float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
	/* fraction * 2^-24: exact in float32. */
	float value = (float)fraction * 0x1p-24f;
	return gw_float_of_bits(sign | gw_float_bits(value));
}

static inline uint16_t gw_float16_of_float(float value)
{
	uint32_t bits = gw_float_bits(value), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
	if (size > 0x7f800000u)
		return (uint16_t)(sign | 0x7e00u | (size >> 13 & 0x3ffu));
	if (size >= 0x477ff000u) /* 65520 and more become infinite */
		return (uint16_t)(sign | 0x7c00u);
	if (size >= 0x38800000u) { /* 2^-14: normal in float16; a carry out of the fraction raises the exponent */
		size -= 112u << 23;
		return (uint16_t)(sign | (size + 0xfffu + (size >> 13 & 1)) >> 13);
	}
	if (size < 0x33000000u) /* below half of 2^-24 */
		return (uint16_t)sign;
	uint32_t fraction = (size & 0x7fffffu) | 0x800000u, shift = 126u - (size >> 23);
	uint32_t half = fraction >> shift, rest = fraction & ((1u << shift) - 1), middle = 1u << (shift - 1);
	return (uint16_t)(sign | (half + (rest > middle || (rest == middle && (half & 1)))));
}

#endif
