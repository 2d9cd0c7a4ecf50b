/* Numbers in text compared with strtoull, strtod and exact arithmetic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "tools/import/number.h"

static const char *end_of(const char *text)
{
	return text + strlen(text);
}

static void ids(void **state)
{
	(void)state;
	uint64_t value;
	const char *text = "0012,";
	assert_ptr_equal(gw_scan_id(text, end_of(text), &value), text + 4);
	assert_int_equal(value, 12);
	static const char *const good[] = {"0",
					   "9",
					   "18446744",
					   "999999999999999999",
					   "9223372036854775806",
					   "00000000000000000000000009223372036854775806"};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_ptr_equal(gw_scan_id(good[i], end_of(good[i]), &value), end_of(good[i]));
		assert_true(value == strtoull(good[i], NULL, 10));
	}
	static const char *const bad[] = {"",
					  "x",
					  "-1",
					  "+1",
					  " 1",
					  "9223372036854775807",
					  "18446744073709551616",
					  "99999999999999999999999999999999999999999999999999"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_null(gw_scan_id(bad[i], end_of(bad[i]), &value));
	static const char digits[] = "123";
	assert_ptr_equal(gw_scan_id(digits, digits + 2, &value), digits + 2); /* never past the end */
}

/* Up to eight digits at once: every length, followed by every byte. */
static void eight_digits(void **state)
{
	(void)state;
	for (unsigned length = 0; length <= 8; length++) {
		for (unsigned next = 0; next < 256; next++) {
			if (next >= '0' && next <= '9')
				continue;
			char text[16];
			struct gw_words words = gw_philox(6, length * 256 + next, 0);
			memcpy(text, words.word, sizeof(text)); /* random bytes after the first non-digit */
			for (unsigned i = 0; i < length; i++)
				text[i] = (char)('0' + words.word[i % 4] % 10 * (i + 3) % 10);
			text[length] = (char)next;
			char plain[9] = "";
			memcpy(plain, text, length);
			unsigned digits;
			assert_int_equal(gw_scan_eight(text, &digits), strtoull(plain, NULL, 10));
			assert_int_equal(digits, length);
		}
	}
}

static void whole_numbers(void **state)
{
	(void)state;
	int64_t value;
	static const struct {
		const char *text;
		int64_t value;
	} good[] = {{"-5", -5}, {"+7", 7}, {"9223372036854775807", INT64_MAX}, {"-9223372036854775808", INT64_MIN}};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_ptr_equal(gw_scan_int(good[i].text, end_of(good[i].text), &value), end_of(good[i].text));
		assert_true(value == good[i].value);
	}
	static const char *const bad[] = {
		"", "-", "+", "--1", "9223372036854775808", "-9223372036854775809", "99999999999999999999"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_null(gw_scan_int(bad[i], end_of(bad[i]), &value));
}

static void fixed_point(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint32_t digits;
		int64_t value;
	} good[] = {{"1289241911.72836", 0, 1289241911},
		    {"1289241911.72836", 3, 1289241911728},
		    {"1289241911.7", 3, 1289241911700},
		    {"-1.999", 2, -199},
		    {"5", 9, 5000000000},
		    {".5", 1, 5},
		    {"5.", 1, 50},
		    {"-0.001", 3, -1}};
	int64_t value;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_ptr_equal(gw_scan_fixed(good[i].text, end_of(good[i].text), good[i].digits, true, &value),
				 end_of(good[i].text));
		assert_true(value == good[i].value);
	}
	static const char *const whole[] = {"5", "5.", "5.0", "5.000000000000000000000000"};
	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
		assert_ptr_equal(gw_scan_fixed(whole[i], end_of(whole[i]), 0, false, &value), end_of(whole[i]));
		assert_true(value == 5);
	}
	static const char *const further[] = {"5.1", "5.0000000000000000001"};
	for (size_t i = 0; i < sizeof(further) / sizeof(further[0]); i++)
		assert_null(gw_scan_fixed(further[i], end_of(further[i]), 0, false, &value));
	static const char *const bad[] = {"", ".", "-", "-.", "9223372036854775807"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_null(gw_scan_fixed(bad[i], end_of(bad[i]), 3, true, &value));
	const char *exponent = "1e5"; /* stops there: the caller sees that the field continues */
	assert_ptr_equal(gw_scan_fixed(exponent, end_of(exponent), 0, true, &value), exponent + 1);
}

static void check_real(const char *text)
{
	double value;
	char *stop;
	double expected = strtod(text, &stop);
	const char *got = gw_scan_real(text, end_of(text), &value);
	if (stop == text) {
		assert_null(got);
		return;
	}
	uint64_t bits, expected_bits; /* compared as bits: NaN, and the sign of 0 */
	memcpy(&bits, &value, sizeof(bits));
	memcpy(&expected_bits, &expected, sizeof(expected_bits));
	if (got != stop || bits != expected_bits)
		fail_msg("\"%s\": %.17g instead of %.17g", text, value, expected);
}

static void real_numbers(void **state)
{
	(void)state;
	static const char *const texts[] = {"0",
					    "-0",
					    "1",
					    "+1.5",
					    "-2.25e3",
					    "1e22",
					    "1e23",
					    "1e-22",
					    "1e-23",
					    "123456789012345678",
					    "0.1",
					    "9007199254740993",
					    "1e400",
					    "-1e-400",
					    ".5",
					    "5.",
					    "",
					    ".",
					    "-",
					    "e5",
					    "1e",
					    "1e+",
					    "1ex",
					    "nan",
					    "-inf",
					    "1.7976931348623157e308",
					    "4.9e-324",
					    "0.000000000000000000000000000001",
					    "1234567890123456789012"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		check_real(texts[i]);
	for (uint64_t i = 0; i < 200000; i++) { /* the formats of common programs */
		struct gw_words words = gw_philox(4, i, 0);
		char text[64];
		double value;
		uint64_t bits = words.word[0] | (uint64_t)words.word[1] << 32;
		memcpy(&value, &bits, sizeof(value));
		if (value != value)
			continue;
		switch (words.word[2] % 4) {
		case 0:
			snprintf(text, sizeof(text), "%.17g", value);
			break;
		case 1:
			snprintf(text, sizeof(text), "%.6f", (double)(int32_t)words.word[0] / 1000);
			break;
		case 2:
			snprintf(text, sizeof(text), "%llue%d", (unsigned long long)bits % 100000000000000000ull,
				 (int)(words.word[3] % 60) - 30);
			break;
		default:
			snprintf(text, sizeof(text), "%g", (double)words.word[0]);
		}
		check_real(text);
	}
}

static void whole_numbers_of_any_form(void **state)
{
	(void)state;
	int64_t value;
	for (uint64_t i = 0; i < 100000; i++) {
		struct gw_words words = gw_philox(7, i, 0);
		char digits[32], text[128];
		uint64_t bits = words.word[0] | (uint64_t)words.word[1] << 32;
		int64_t expected = (int64_t)bits >> words.word[2] % 64;
		snprintf(digits, sizeof(digits), "%lld", (long long)expected);
		int length = (int)strlen(digits), sign = digits[0] == '-', shift = (int)(words.word[3] % 24);
		int kept = length - sign > shift ? length - shift : sign; /* digits before the point */
		switch (words.word[2] / 64 % 4) {
		case 0:
			snprintf(text, sizeof(text), "%s%s", digits, i % 2 ? ".000" : "");
			break;
		case 1: { /* 12345 as 12.345e3 */
			static const char zeros[] = "000000000000000000000000";
			snprintf(text, sizeof(text), "%.*s.%.*s%sE+%d", kept, digits, shift - (length - kept), zeros,
				 digits + kept, shift);
			break;
		}
		case 2:
			snprintf(text, sizeof(text), "%s%0*de-%d", digits, shift + 1, 0, shift + 1);
			break;
		default:
			snprintf(text, sizeof(text), "%s.%0*de0", digits, shift + 1, 0);
		}
		if (gw_scan_whole(text, end_of(text), &value) != end_of(text) || value != expected)
			fail_msg("\"%s\" is not %lld", text, (long long)expected);
	}
	static const char *const bad[] = {"",
					  ".",
					  "1.5",
					  "1e-1",
					  "9223372036854775808",
					  "9223372036854775807.0000000000000000000000000000000000001",
					  "1e19",
					  "1e999999999999",
					  "1e-999999999999",
					  "inf",
					  "nan",
					  "0x10"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (gw_scan_whole(bad[i], end_of(bad[i]), &value) == end_of(bad[i]))
			fail_msg("\"%s\" is a whole number", bad[i]);
	}
	const char *zero = "0e999999";
	assert_ptr_equal(gw_scan_whole(zero, end_of(zero), &value), end_of(zero));
	assert_true(value == 0);
}

static enum gw_float_fault fault_of(const char *text, float *value)
{
	enum gw_float_fault fault;
	const char *stop = gw_scan_float(text, end_of(text), value, &fault);
	if ((stop != NULL) != (fault == GW_FLOAT_FITS) || (stop && stop != end_of(text)))
		fail_msg("\"%s\" ends elsewhere", text);
	return fault;
}

/* Texts in the neighbourhood of float32 and of the middles between them, compared with strtof, which rounds once. */
static void floats_are_rounded_once(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 200000; i++) {
		struct gw_words words = gw_philox(8, i, 0);
		uint32_t bits = words.word[0] & 0x7fffffff;
		float below, above, value;
		if (bits >= 0x7f7fffff)
			continue;
		memcpy(&below, &bits, sizeof(below));
		bits++;
		memcpy(&above, &bits, sizeof(above));
		double places[] = {(double)below, ((double)below + (double)above) / 2, 0};
		places[2] = places[1] * (1 + 0x1p-52);
		static const int digits[] = {8, 16, 17, 25, 60};
		char text[160];
		snprintf(text, sizeof(text), "%.*e", digits[words.word[1] % 5], places[words.word[2] % 3]);
		if (words.word[3] % 2) { /* just above the text's number, below the next double */
			char *exponent = strchr(text, 'e'), tail[16];
			snprintf(tail, sizeof(tail), "%s", exponent);
			snprintf(exponent, 80, "%s%s", "00000000000000000000001", tail);
		}
		float expected = strtof(text, NULL);
		enum gw_float_fault fault = fault_of(text, &value);
		if (fault != GW_FLOAT_FITS || memcmp(&value, &expected, sizeof(value)) != 0)
			fail_msg("\"%s\": %a instead of %a (%d)", text, (double)value, (double)expected, (int)fault);
	}
}

/* Plain numbers of up to 38 digits, compared with exact arithmetic: they fit if float32 holds them. */
static void whole_floats_are_exact(void **state)
{
	(void)state;
	uint64_t fit = 0;
	for (uint64_t i = 0; i < 100000; i++) {
		struct gw_words words = gw_philox(9, i, 0);
		uint32_t kept = 20 + words.word[3] % 10, shift = words.word[2] % 97;
		unsigned __int128 number = (unsigned __int128)(words.word[0] >> (32 - kept)) << shift, rest = number;
		char text[64], *at = text + sizeof(text);
		*--at = '\0';
		if (i % 2) {
			*--at = '0';
			*--at = '.';
		}
		do {
			*--at = (char)('0' + (int)(rest % 10));
			rest /= 10;
		} while (rest);
		float value, expected = (float)number;
		bool exact = (unsigned __int128)expected == number;
		enum gw_float_fault fault = fault_of(at, &value);
		if (fault != (exact ? GW_FLOAT_FITS : GW_FLOAT_COARSE) || (exact && memcmp(&value, &expected, 4) != 0))
			fail_msg("\"%s\": fault %d", at, (int)fault);
		fit += exact;
	}
	assert_in_range(fit, 20000, 90000);
}

static void floats_that_do_not_fit(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		enum gw_float_fault fault;
	} texts[] = {{"nan", GW_FLOAT_MISSING},
		     {"-NaN", GW_FLOAT_MISSING},
		     {"inf", GW_FLOAT_FITS},
		     {"-Infinity", GW_FLOAT_FITS},
		     {"1e39", GW_FLOAT_LARGE},
		     {"-1e400", GW_FLOAT_LARGE},
		     {"3.4028235e38", GW_FLOAT_FITS},
		     {"3.4028236e38", GW_FLOAT_LARGE},
		     {"1e-50", GW_FLOAT_SMALL},
		     {"-1e-400", GW_FLOAT_SMALL},
		     {"1e-45", GW_FLOAT_FITS},
		     {"0.0e-400", GW_FLOAT_FITS},
		     {"-0", GW_FLOAT_FITS},
		     {"16777216", GW_FLOAT_FITS},
		     {"16777217", GW_FLOAT_COARSE},
		     {"16777216.0000000000000001", GW_FLOAT_COARSE},
		     {"-16777217.0", GW_FLOAT_COARSE},
		     {"16777216.5", GW_FLOAT_COARSE},
		     {"00016777218", GW_FLOAT_FITS},
		     {"16777218.0000000000000000000000000000000001", GW_FLOAT_COARSE},
		     {"1.6777217e7", GW_FLOAT_FITS},
		     {"", GW_FLOAT_FITS},
		     {"x", GW_FLOAT_FITS}};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		enum gw_float_fault fault;
		float value;
		gw_scan_float(texts[i].text, end_of(texts[i].text), &value, &fault);
		if (fault != texts[i].fault)
			fail_msg("\"%s\": fault %d", texts[i].text, (int)fault);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids),
		cmocka_unit_test(eight_digits),
		cmocka_unit_test(whole_numbers),
		cmocka_unit_test(fixed_point),
		cmocka_unit_test(real_numbers),
		cmocka_unit_test(whole_numbers_of_any_form),
		cmocka_unit_test(floats_are_rounded_once),
		cmocka_unit_test(whole_floats_are_exact),
		cmocka_unit_test(floats_that_do_not_fit),
	};
	return cmocka_run_group_tests_name("parse_number", tests, NULL, NULL);
}
