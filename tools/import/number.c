/* Parses signed, fixed-point and real numbers in text. A number out of range gives NULL, like text that is not a
 * number. */
#include "tools/import/number.h"

#include <stdlib.h>
#include <string.h>

#define REAL_TEXT_MAX 127 /* bytes handed to strtod if the fast path cannot decide */

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

const char *gw_scan_fixed(const char *p, const char *end, uint32_t digits, int64_t *value)
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

/* Reads the exponent after 'e', if it is complete. */
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
		value = value < 10000 ? value * 10 + (*at - '0') : value;
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
