/* Parses numbers in text, without a call for each digit, a copy or a locale. */
#ifndef GW_TOOLS_IMPORT_NUMBER_H
#define GW_TOOLS_IMPORT_NUMBER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Parses digits from p up to end. Returns the place after them, or NULL if there are no digits or the value exceeds
 * 2^63 - 2. */
static inline const char *gw_scan_id(const char *p, const char *end, uint64_t *value)
{
	const char *start = p;
	uint64_t v = 0;
	while (p < end) {
		uint32_t digit = (uint32_t)(unsigned char)*p - '0';
		if (digit > 9)
			break;
		v = v * 10 + digit;
		p++;
	}
	/* 18 digits cannot overflow. More digits, mostly leading zeros, take the checked path. */
	if (p - start > 18) {
		unsigned __int128 wide = 0;
		for (const char *at = start; at < p; at++) {
			wide = wide * 10 + (uint32_t)(*at - '0');
			if (wide > INT64_MAX - 1)
				return (const char *)0;
		}
		v = (uint64_t)wide;
	}
	*value = v;
	return p == start ? (const char *)0 : p;
}

/* The same for digits whose next 8 bytes are readable, p to p + 8: up to 8 digits without a loop (the method of D.
 * Lemire, "Quickly parsing eight digits", 2018). *digits is their number; 0: no digit; 8: more may follow.
 * Little-endian, like the format. */
static inline uint64_t gw_scan_eight(const char *p, unsigned *digits)
{
	uint64_t text;
	memcpy(&text, p, sizeof(text));
	uint64_t t = text ^ 0x3030303030303030ull;
	/* The top bit of a byte is set if the byte is not a digit. A carry spoils only bytes after the first such
	 * byte. */
	uint64_t others = ((t + 0x7676767676767676ull) | t) & 0x8080808080808080ull;
	*digits = others ? (unsigned)__builtin_ctzll(others) / 8 : 8;
	if (*digits == 0)
		return 0;
	t <<= 64 - 8 * *digits; /* zeros before the digits */
	t = (t * 2561 >> 8) & 0x00ff00ff00ff00ffull;
	t = (t * 6553601 >> 16) & 0x0000ffff0000ffffull;
	return t * 42949672960001ull >> 32;
}

/* Parses a signed whole number, over all of int64_t. Returns as gw_scan_id does, and so do the next four. */
const char *gw_scan_int(const char *p, const char *end, int64_t *value);

/* The same for a whole number in any decimal form: 10, 10.0, 1e1. */
const char *gw_scan_whole(const char *p, const char *end, int64_t *value);

/* A decimal number times 10^digits (digits 0 to 18). cut: drops further digits; else they must be zeros. No exponent.
 */
const char *gw_scan_fixed(const char *p, const char *end, uint32_t digits, bool cut, int64_t *value);

/* A real number, correctly rounded, with exponent, "nan", "inf". */
const char *gw_scan_real(const char *p, const char *end, double *value);

/* Why a number in text is no float32. */
enum gw_float_fault {
	GW_FLOAT_FITS,
	GW_FLOAT_MISSING, /* nan */
	GW_FLOAT_LARGE,   /* it would become inf */
	GW_FLOAT_SMALL,   /* it would become 0 */
	GW_FLOAT_COARSE,  /* beyond 2^24, written without an exponent, and not exact */
};

/* A real number as a float32. Rounds to nearest, ties to even; "inf" is kept. Returns NULL for every fault, and then
 * sets *fault if the text is a number. */
const char *gw_scan_float(const char *p, const char *end, float *value, enum gw_float_fault *fault);

#endif
