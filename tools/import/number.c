/* Parses signed, fixed-point and real numbers in text. A number out of range gives NULL, like text that is not a
 * number. */
#include "tools/import/number.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REAL_TEXT_MAX 127     /* bytes handed to strtod if the fast path cannot decide */
#define EXPONENT_MAX  1000000 /* larger ones count as this: more than the digits of a field can balance */
#define COARSE_FROM   0x1p24  /* a float32 above it is an even number */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Adds a digit to a magnitude, which must stay below 2^63. 2^63 itself is allowed, for INT64_MIN. */
static bool push_digit(uint64_t *magnitude, uint32_t digit)
{
	return !__builtin_mul_overflow(*magnitude, 10, magnitude) &&
	       !__builtin_add_overflow(*magnitude, digit, magnitude) && *magnitude <= 1ull << 63;
}

static bool apply_sign(uint64_t magnitude, bool negative, int64_t *value)
{
	if (magnitude == 1ull << 63 && !negative)
		return false;
	*value = (int64_t)(negative ? 0 - magnitude : magnitude);
	return true;
}

const char *gw_scan_int(const char *p, const char *end, int64_t *value)
{
	bool negative = p < end && *p == '-';
	p += negative || (p < end && *p == '+');
	if (p == end || !is_digit(*p))
		return NULL;
	uint64_t magnitude = 0;
	for (; p < end && is_digit(*p); p++) {
		if (!push_digit(&magnitude, (uint32_t)(*p - '0')))
			return NULL;
	}
	return apply_sign(magnitude, negative, value) ? p : NULL;
}

const char *gw_scan_fixed(const char *p, const char *end, uint32_t digits, bool cut, int64_t *value)
{
	bool negative = p < end && *p == '-', any = false;
	p += negative || (p < end && *p == '+');
	uint64_t magnitude = 0;
	for (; p < end && is_digit(*p); p++, any = true) {
		if (!push_digit(&magnitude, (uint32_t)(*p - '0')))
			return NULL;
	}
	uint32_t kept = 0;
	if (p < end && *p == '.') {
		for (p++; p < end && is_digit(*p); p++, any = true) {
			if (kept < digits && !push_digit(&magnitude, (uint32_t)(*p - '0')))
				return NULL;
			if (kept == digits && !cut && *p != '0')
				return NULL;
			kept += kept < digits;
		}
	}
	for (; kept < digits; kept++) {
		if (!push_digit(&magnitude, 0))
			return NULL;
	}
	return any && apply_sign(magnitude, negative, value) ? p : NULL;
}

static const char *scan_real_slowly(const char *p, const char *end, double *value)
{
	char copy[REAL_TEXT_MAX + 1];
	size_t bytes = (size_t)(end - p) < REAL_TEXT_MAX ? (size_t)(end - p) : REAL_TEXT_MAX;
	memcpy(copy, p, bytes);
	copy[bytes] = '\0';
	char *stop;
	*value = strtod(copy, &stop);
	return stop == copy || stop - copy == REAL_TEXT_MAX ? NULL : p + (stop - copy);
}

/* If it is complete. */
static const char *scan_exponent(const char *p, const char *end, int *exponent)
{
	if (p == end || (*p != 'e' && *p != 'E'))
		return p;
	const char *at = p + 1;
	bool negative = at < end && *at == '-';
	at += negative || (at < end && *at == '+');
	if (at == end || !is_digit(*at))
		return p;
	int value = 0;
	for (; at < end && is_digit(*at); at++)
		value = value < EXPONENT_MAX ? value * 10 + (*at - '0') : value;
	*exponent += negative ? -value : value;
	return at;
}

const char *gw_scan_real(const char *p, const char *end, double *value)
{
	static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
					1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
	const char *start = p;
	if (p < end && (*p == ' ' || (*p >= '\t' && *p <= '\r')))
		return NULL; /* strtod would skip leading blanks */
	bool negative = p < end && *p == '-';
	p += negative || (p < end && *p == '+');
	uint64_t mantissa = 0;
	int exponent = 0, digits = 0;
	for (; p < end && is_digit(*p); p++) {
		mantissa = digits < 18 ? mantissa * 10 + (uint32_t)(*p - '0') : mantissa;
		digits += digits <= 18; /* a field may have more digits than an int can count */
	}
	if (p < end && *p == '.') {
		for (p++; p < end && is_digit(*p); p++) {
			mantissa = digits < 18 ? mantissa * 10 + (uint32_t)(*p - '0') : mantissa;
			exponent -= digits <= 18;
			digits += digits <= 18;
		}
	}
	if (digits == 0 || digits > 18)
		return scan_real_slowly(start, end, value);
	p = scan_exponent(p, end, &exponent);
	/* Both operands are exact, so one operation rounds correctly (Clinger: "How to read floating point numbers
	 * accurately", PLDI 1990). */
	if (mantissa >= 1ull << 53 || exponent < -22 || exponent > 22)
		return scan_real_slowly(start, end, value);
	double magnitude = exponent < 0 ? (double)mantissa / powers[-exponent] : (double)mantissa * powers[exponent];
	*value = negative ? -magnitude : magnitude;
	return p;
}

/* Pushes zeros behind the digits of a magnitude. */
static bool push_zeros(uint64_t *magnitude, int64_t zeros)
{
	for (; zeros > 0 && *magnitude; zeros--) {
		if (!push_digit(magnitude, 0))
			return false;
	}
	return true;
}

const char *gw_scan_whole(const char *p, const char *end, int64_t *value)
{
	bool negative = p < end && *p == '-', any = false, fraction = false;
	p += negative || (p < end && *p == '+');
	uint64_t magnitude = 0;
	int64_t zeros = 0, scale = 0; /* the number is magnitude * 10^(zeros + scale) */
	for (; p < end && (is_digit(*p) || (*p == '.' && !fraction)); p++) {
		if (*p == '.') {
			fraction = true;
			continue;
		}
		any = true;
		scale -= fraction;
		if (*p == '0') {
			zeros++;
			continue;
		}
		if (!push_zeros(&magnitude, zeros) || !push_digit(&magnitude, (uint32_t)(*p - '0')))
			return NULL;
		zeros = 0;
	}
	int exponent = 0;
	if (!any)
		return NULL;
	p = scan_exponent(p, end, &exponent);
	scale += zeros + exponent;
	if (magnitude && (scale < 0 || !push_zeros(&magnitude, scale)))
		return NULL;
	return apply_sign(magnitude, negative, value) ? p : NULL;
}

/* Whether a number from p to stop, written without an exponent, equals this float32, which is beyond COARSE_FROM. */
static bool is_exactly(const char *p, const char *stop, float value)
{
	char digits[FLT_MAX_10_EXP + 16];
	p += *p == '-' || *p == '+';
	while (p < stop && *p == '0')
		p++;
	const char *point = p;
	while (point < stop && is_digit(*point))
		point++;
	for (const char *at = point; at < stop; at++) {
		if (*at != '0' && *at != '.')
			return false;
	}
	int count = snprintf(digits, sizeof(digits), "%.0f", (double)fabsf(value));
	return count == point - p && memcmp(digits, p, (size_t)count) == 0;
}

/* Whether a number from p to stop has a digit other than 0 before its exponent. */
static bool is_nonzero(const char *p, const char *stop)
{
	for (; p < stop && *p != 'e' && *p != 'E'; p++) {
		if (*p >= '1' && *p <= '9')
			return true;
	}
	return false;
}

static bool has_exponent(const char *p, const char *stop)
{
	while (p < stop && *p != 'e' && *p != 'E')
		p++;
	return p < stop;
}

/* Rounds the text once. A double that lies between two float32 may have been rounded to their middle. */
static float round_to_float(const char *p, const char *stop, double real)
{
	uint64_t bits;
	memcpy(&bits, &real, sizeof(bits));
	bool middle = (bits & 0x1fffffffu) == 0x10000000u;
	if ((!middle && fabs(real) >= (double)FLT_MIN) || stop - p > REAL_TEXT_MAX)
		return (float)real;
	char copy[REAL_TEXT_MAX + 1];
	memcpy(copy, p, (size_t)(stop - p));
	copy[stop - p] = '\0';
	return strtof(copy, NULL);
}

static enum gw_float_fault narrow_real(const char *p, const char *stop, double real, float *value)
{
	const char *word = p + (*p == '-' || *p == '+');
	if (isnan(real))
		return GW_FLOAT_MISSING;
	if (*word == 'i' || *word == 'I') {
		*value = (float)real;
		return GW_FLOAT_FITS;
	}
	*value = round_to_float(p, stop, real);
	if (isinf(*value))
		return GW_FLOAT_LARGE;
	if (fpclassify(*value) == FP_ZERO && is_nonzero(p, stop))
		return GW_FLOAT_SMALL;
	if (fabs(real) >= COARSE_FROM && !has_exponent(p, stop) && !is_exactly(p, stop, *value))
		return GW_FLOAT_COARSE;
	return GW_FLOAT_FITS;
}

const char *gw_scan_float(const char *p, const char *end, float *value, enum gw_float_fault *fault)
{
	double real;
	const char *stop = gw_scan_real(p, end, &real);
	*fault = stop ? narrow_real(p, stop, real, value) : GW_FLOAT_FITS;
	return *fault == GW_FLOAT_FITS ? stop : NULL;
}
