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
		assert_ptr_equal(gw_scan_fixed(good[i].text, end_of(good[i].text), good[i].digits, &value),
				 end_of(good[i].text));
		assert_true(value == good[i].value);
	}
	static const char *const bad[] = {"", ".", "-", "-.", "9223372036854775807"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_null(gw_scan_fixed(bad[i], end_of(bad[i]), 3, &value));
	const char *exponent = "1e5"; /* stops there: the caller sees that the field continues */
	assert_ptr_equal(gw_scan_fixed(exponent, end_of(exponent), 0, &value), exponent + 1);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids),         cmocka_unit_test(eight_digits), cmocka_unit_test(whole_numbers),
		cmocka_unit_test(fixed_point), cmocka_unit_test(real_numbers),
	};
	return cmocka_run_group_tests_name("parse_number", tests, NULL, NULL);
}
