/* The loops of conversions, compiled for each width of vectors. from and to may share memory as gw_convert_rows says:
 * each loop reads the numbers of a step before it writes them. */
#ifndef GW_NUMBERS_CONVERT_PRIVATE_H
#define GW_NUMBERS_CONVERT_PRIVATE_H

#include "core/numbers/convert.h"

struct gw_convert_loops {
	gw_convert_numbers float16_to_float, bfloat16_to_float, float64_to_float, float_to_float16, float_to_bfloat16,
		float_to_float64, uint32_to_int64;
	/* Rounds to odd: the last bit is set where bits are lost, so that a later rounding is as if it were the only
	 * one. */
	gw_convert_numbers float64_to_odd_float;
	void (*int8_to_float)(const int8_t *from, void *to, uint64_t n, float scale, float offset);
};

extern const struct gw_convert_loops gw_convert_plain, gw_convert_avx2, gw_convert_avx512;

#endif
