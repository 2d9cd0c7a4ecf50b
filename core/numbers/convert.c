/* Conversions: see convert.h.
 *
 *   from --to_float--> float32 --final--> to      a step that changes nothing is left out; with both, in blocks
 *   int8_row           row by row, with its scale and offset as to_float
 *   to int8_row        row by row, in double
 */
#include "core/numbers/convert.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "core/numbers/convert_private.h"
#include "core/numbers/dtype.h"
#include "core/numbers/half.h"
#include "core/numbers/vectors.h"

#define BLOCK 256u /* numbers between two steps: they stay in the first cache */

static const struct gw_convert_loops *loops(void)
{
	switch (gw_vectors_used()) {
#ifdef __x86_64__
	case GW_VECTORS_AVX2:
		return &gw_convert_avx2;
	case GW_VECTORS_AVX512:
		return &gw_convert_avx512;
#endif
	default:
		return &gw_convert_plain;
	}
}

static bool is_real(gw_dtype dtype)
{
	return dtype == GW_FLOAT16 || dtype == GW_BFLOAT16 || dtype == GW_FLOAT32 || dtype == GW_FLOAT64;
}

bool gw_convert_is_possible(gw_dtype from, gw_dtype to)
{
	if (from == to)
		return true;
	if (from == GW_UINT32)
		return to == GW_INT64;
	return (is_real(from) || from == GW_INT8_ROW) && (is_real(to) || to == GW_INT8_ROW);
}

uint64_t gw_int8_row_bytes(uint64_t numbers)
{
	return GW_INT8_ROW_HEAD + (numbers + 3) / 4 * 4;
}

static uint64_t row_bytes(gw_dtype dtype, uint64_t numbers)
{
	return dtype == GW_INT8_ROW ? gw_int8_row_bytes(numbers) : numbers * gw_dtype_bytes(dtype);
}

struct gw_conversion gw_conversion_of(gw_dtype from, gw_dtype to, uint64_t numbers)
{
	const struct gw_convert_loops *use = loops();
	struct gw_conversion made = {.from = from,
				     .to = to,
				     .numbers = numbers,
				     .from_bytes = row_bytes(from, numbers),
				     .to_bytes = row_bytes(to, numbers)};
	assert(gw_convert_is_possible(from, to));
	if (from == to || to == GW_INT8_ROW)
		return made;
	if (from == GW_UINT32)
		made.final = use->uint32_to_int64;
	else if (from == GW_FLOAT16)
		made.to_float = use->float16_to_float;
	else if (from == GW_BFLOAT16)
		made.to_float = use->bfloat16_to_float;
	else if (from == GW_FLOAT64)
		made.to_float = to == GW_FLOAT32 ? use->float64_to_float : use->float64_to_odd_float;
	if (to == GW_FLOAT16)
		made.final = use->float_to_float16;
	else if (to == GW_BFLOAT16)
		made.final = use->float_to_bfloat16;
	else if (to == GW_FLOAT64)
		made.final = use->float_to_float64;
	return made;
}

static void convert_numbers(const struct gw_conversion *c, const uint8_t *from, uint8_t *to, uint64_t n)
{
	float block[BLOCK];
	const uint64_t in = gw_dtype_bytes(c->from), out = gw_dtype_bytes(c->to);
	if (!c->to_float || !c->final) {
		(c->to_float ? c->to_float : c->final)(from, to, n);
		return;
	}
	for (uint64_t at = 0; at < n; at += BLOCK) {
		uint64_t count = n - at < BLOCK ? n - at : BLOCK;
		c->to_float(from + at * in, block, count);
		c->final(block, to + at * out, count);
	}
}

/* ---- int8_row ---- */

static void unpack_row(const struct gw_conversion *c, const struct gw_convert_loops *use, const uint8_t *from,
		       uint8_t *to)
{
	float block[BLOCK], head[2];
	const uint64_t out = gw_dtype_bytes(c->to);
	memcpy(head, from, sizeof(head));
	if (!c->final) {
		use->int8_to_float((const int8_t *)from + GW_INT8_ROW_HEAD, to, c->numbers, head[0], head[1]);
		return;
	}
	for (uint64_t at = 0; at < c->numbers; at += BLOCK) {
		uint64_t count = c->numbers - at < BLOCK ? c->numbers - at : BLOCK;
		use->int8_to_float((const int8_t *)from + GW_INT8_ROW_HEAD + at, block, count, head[0], head[1]);
		c->final(block, to + at * out, count);
	}
}

static inline __attribute__((always_inline)) double real_at(gw_dtype dtype, const uint8_t *numbers, uint64_t i)
{
	uint16_t half;
	float single;
	double value;
	if (dtype == GW_FLOAT64) {
		memcpy(&value, numbers + i * sizeof(value), sizeof(value));
		return value;
	}
	if (dtype == GW_FLOAT32) {
		memcpy(&single, numbers + i * sizeof(single), sizeof(single));
		return (double)single;
	}
	memcpy(&half, numbers + i * sizeof(half), sizeof(half));
	return (double)(dtype == GW_FLOAT16 ? gw_float_of_float16(half) : gw_float_of_bfloat16(half));
}

double gw_convert_number(gw_dtype dtype, const void *numbers, uint64_t i)
{
	return real_at(dtype, numbers, i);
}

static uint64_t first_fault(gw_dtype dtype, const uint8_t *numbers, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		if (!(fabs(real_at(dtype, numbers, i)) <= (double)FLT_MAX))
			return i;
	}
	return n;
}

uint64_t gw_convert_first_fault(gw_dtype dtype, const void *numbers, uint64_t n)
{
	return dtype == GW_FLOAT32   ? first_fault(GW_FLOAT32, numbers, n)
	       : dtype == GW_FLOAT64 ? first_fault(GW_FLOAT64, numbers, n)
				     : first_fault(dtype, numbers, n);
}

struct packing {
	float scale, offset;
	double inverse; /* 1 / scale, or 0 */
};

static inline double unpacked(const struct packing *p, int q)
{
	float product = p->scale * (float)q, sum = product + p->offset;
	return (double)sum;
}

/* The number of steps from the offset to the value. The sum rounds to a whole number, ties to even. */
static inline int steps_to(const struct packing *p, double value)
{
	const double whole = 0x1.8p52, q = (value - (double)p->offset) * p->inverse + whole - whole;
	return q < -128 ? -128 : q > 127 ? 127 : (int)q;
}

/* For a value that the nearest step moves by more than `most`: next to a tie of float64, and next to the largest
 * float32, where a step may be infinite. */
static __attribute__((noinline)) bool look_around(const struct packing *p, double value, double most, int *q)
{
	for (int other = *q > -127 ? *q - 2 : -128; other <= 127 && other <= *q + 2; other++) {
		if (fabs(unpacked(p, other) - value) <= most) {
			*q = other;
			return true;
		}
	}
	return false;
}

/* Whether no number moves by more than scale / 2. */
static inline __attribute__((always_inline)) bool pack(const struct packing *p, gw_dtype dtype, const uint8_t *from,
						       uint64_t n, int8_t *to)
{
	const double most = (double)p->scale / 2;
	bool near = true;
	for (uint64_t i = 0; i < n; i++) {
		double value = real_at(dtype, from, i);
		int q = steps_to(p, value);
		if (!(fabs(unpacked(p, q) - value) <= most))
			near = look_around(p, value, most, &q) && near;
		to[i] = (int8_t)q;
	}
	return near;
}

/* scale * q and the sum are exact for every q, because all of them are multiples of `unit` that float32 holds. */
static struct packing exact_packing(double low, double high)
{
	int exponent;
	const double size = fabs(low) > fabs(high) ? fabs(low) : fabs(high), scale = (high - low) / 254;
	(void)frexp(size, &exponent);
	double unit = ldexp(1, exponent - FLT_MANT_DIG + 1);
	(void)frexp(scale, &exponent);
	const double fine = ldexp(1, exponent - 16), least = ldexp(1, -148);
	unit = unit < least ? least : unit;
	/* Rounded down, the largest numbers stay in reach: 127 * 2^-15 is far below 1/2. */
	const double rounded = fine >= unit ? floor(scale / fine) * fine : ceil(scale / unit) * unit;
	const double offset = rint((low / 2 + high / 2) / unit) * unit;
	return (struct packing){(float)rounded, (float)offset, 1 / rounded};
}

static inline __attribute__((always_inline)) void pack_row(gw_dtype dtype, const uint8_t *from, uint64_t n, uint8_t *to)
{
	double low = real_at(dtype, from, 0), high = low;
	for (uint64_t i = 1; i < n; i++) {
		double value = real_at(dtype, from, i);
		low = value < low ? value : low;
		high = value > high ? value : high;
	}
	struct packing p = {0, (float)low, 0};
	int8_t *numbers = (int8_t *)to + GW_INT8_ROW_HEAD;
	if (low < high) {
		double scale = (high - low) / 255;
		p = (struct packing){(float)scale, (float)(low + 128 * scale), 0};
		p.inverse = p.scale > 0 ? 1 / (double)p.scale : 0;
	}
	if (!pack(&p, dtype, from, n, numbers) && low < high) {
		p = exact_packing(low, high);
		pack(&p, dtype, from, n, numbers);
	}
	memcpy(to, &p.scale, sizeof(p.scale));
	memcpy(to + sizeof(p.scale), &p.offset, sizeof(p.offset));
	memset(numbers + n, 0, gw_int8_row_bytes(n) - GW_INT8_ROW_HEAD - n);
}

static void pack_rows(const struct gw_conversion *c, const uint8_t *from, uint8_t *to, uint64_t rows)
{
	for (uint64_t row = 0; row < rows; row++, from += c->from_bytes, to += c->to_bytes) {
		if (c->from == GW_FLOAT32)
			pack_row(GW_FLOAT32, from, c->numbers, to);
		else if (c->from == GW_FLOAT64)
			pack_row(GW_FLOAT64, from, c->numbers, to);
		else
			pack_row(c->from, from, c->numbers, to);
	}
}

void gw_convert_rows(const struct gw_conversion *c, const void *from, void *to, uint64_t rows)
{
	const uint8_t *in = from;
	uint8_t *out = to;
	if (c->from == c->to) {
		memmove(to, from, rows * c->from_bytes);
	} else if (c->to == GW_INT8_ROW) {
		pack_rows(c, in, out, rows);
	} else if (c->from == GW_INT8_ROW) {
		const struct gw_convert_loops *use = loops();
		for (uint64_t row = 0; row < rows; row++, in += c->from_bytes, out += c->to_bytes)
			unpack_row(c, use, in, out);
	} else {
		convert_numbers(c, in, out, rows * c->numbers);
	}
}
