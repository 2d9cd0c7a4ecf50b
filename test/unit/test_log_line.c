/* The forms of a line of the log: a strict JSON parser reads back any message; a text line is one line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "core/errors/log_line.h"
#include "core/numbers/rng.h"

#define BYTES 300

static const struct timespec when = {.tv_sec = 1795615402, .tv_nsec = 123999999};
#define WHEN "2026-11-25T14:03:22.123Z"

/* Decodes by the table of well-formed sequences in the Unicode standard (table 3-7), to compare with the code's
 * arithmetic. Returns the bytes of a sequence, or 0. */
static unsigned sequence(const unsigned char *at)
{
	static const struct {
		unsigned char first_low, first_high, second_low, second_high;
		unsigned bytes;
	} rows[] = {{0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
		    {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
		    {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
	if (at[0] < 0x80)
		return 1;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (at[0] < rows[i].first_low || at[0] > rows[i].first_high)
			continue;
		bool is_valid = at[1] >= rows[i].second_low && at[1] <= rows[i].second_high;
		for (unsigned j = 2; is_valid && j < rows[i].bytes; j++)
			is_valid = at[j] >= 0x80 && at[j] <= 0xbf;
		return is_valid ? rows[i].bytes : 0;
	}
	return 0;
}

/* The message with U+FFFD for each byte outside valid sequences. */
static void repair(char *out, const char *message)
{
	for (const unsigned char *at = (const unsigned char *)message; *at;) {
		unsigned bytes = sequence(at);
		memcpy(out, bytes ? (const char *)at : "\xef\xbf\xbd", bytes ? bytes : 3);
		out += bytes ? bytes : 3;
		at += bytes ? bytes : 1;
	}
	*out = 0;
}

static void check_json(const char *message)
{
	char line[GW_LOG_LINE_BYTES(BYTES)], expected[3 * BYTES + 1];
	json_error_t error;
	gw_log_line_json(line, &when, "warn", message);
	assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
	for (const char *at = line; at[1]; at++)
		assert_true((unsigned char)*at >= ' ');
	json_t *read = json_loads(line, JSON_REJECT_DUPLICATES, &error);
	assert_non_null(read);
	assert_int_equal(json_object_size(read), 3);
	repair(expected, message);
	assert_string_equal(json_string_value(json_object_get(read, "message")), expected);
	assert_string_equal(json_string_value(json_object_get(read, "level")), "warn");
	assert_string_equal(json_string_value(json_object_get(read, "time")), WHEN);
	json_decref(read);
}

static void check_text(const char *message)
{
	char line[GW_LOG_LINE_BYTES(BYTES)];
	gw_log_line_text(line, &when, "error", message);
	assert_int_equal(strlen(line), strlen(WHEN " error ") + strlen(message) + 1);
	assert_int_equal(strncmp(line, WHEN " error ", strlen(WHEN " error ")), 0);
	for (const char *at = line; at[1]; at++)
		assert_true((unsigned char)*at >= ' ' && *at != 0x7f);
	assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
}

static void known_messages(void **state)
{
	(void)state;
	static const char *const messages[] = {"",
					       "plain",
					       "a \"quoted\\ name\"",
					       "line\r\nerror: forged\t\b\f\x1b[2J\x7f",
					       "Z\xc3\xbcrich \xe2\x82\xac \xf0\x9f\x92\xa1 \xc2\x85",
					       "cut \xe2\x82",
					       "latin \xfc, overlong \xc0\xaf \xe0\x80\xaf, surrogate \xed\xa0\x80",
					       "too high \xf4\x90\x80\x80 \xf5\x80\x80\x80 \xff"};
	for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		check_json(messages[i]);
		check_text(messages[i]);
	}
}

static void random_messages(void **state)
{
	(void)state;
	static const unsigned char special[] = "\"\\\n\r\t\x1b\x7f\xc2\x80\xbf\xe0\xed\xef\xf0\xf4\xff ab";
	struct gw_draws draws = gw_draws_begin(30, 0);
	for (unsigned round = 0; round < 50000; round++) {
		char message[BYTES + 1];
		uint32_t bytes = gw_draw_below(&draws, round % 16 == 0 ? BYTES : 8);
		for (size_t i = 0; i < bytes; i++)
			message[i] = gw_draw_below(&draws, 2)
					     ? (char)special[gw_draw_below(&draws, sizeof(special) - 1)]
					     : (char)(1 + gw_draw_below(&draws, 255));
		message[bytes] = 0;
		check_json(message);
		check_text(message);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_messages),
		cmocka_unit_test(random_messages),
	};
	return cmocka_run_group_tests_name("log lines", tests, NULL, NULL);
}
