/* Command-line values: what is taken, what is refused and how the refusal reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/options.h"

static void long_options_take_both_dashes(void **state)
{
	(void)state;
	char a[] = "gra_phwire", b[] = "--num_parts=my_dir", c[] = "--edge_factor", d[] = "some_value", e[] = "-x_y",
	     f[] = "--", g[] = "--after_end";
	char *argv[] = {a, b, c, d, e, f, g, NULL};
	gw_options_normalize(7, argv);
	assert_string_equal(a, "gra_phwire");
	assert_string_equal(b, "--num-parts=my_dir");
	assert_string_equal(c, "--edge-factor");
	assert_string_equal(d, "some_value");
	assert_string_equal(e, "-x_y");
	assert_string_equal(g, "--after_end");
}

static void whole_numbers(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t value;
	} good[] = {
		{"0", 0},
		{"64", 64},
		{"10k", 10000},
		{"3M", 3000000},
		{"2Gi", 2ull << 30},
		{"1T", 1000000000000},
		{"5Ki", 5 << 10},
		{"18446744073709551615", UINT64_MAX},
		{"007", 7},
		{"1Ti", 1ull << 40},
	};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		uint64_t value = 99;
		assert_int_equal(gw_parse_u64(good[i].text, 0, UINT64_MAX, &value), GW_OK);
		assert_true(value == good[i].value);
	}
	static const char *const bad[] = {"",    "-1",   "+1",   " 1",  "1 ",    "k",
					  "1.5", "0x10", "10kk", "1ki", "12abc", "1e3"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint64_t value = 99;
		assert_int_equal(gw_parse_u64(bad[i], 0, UINT64_MAX, &value), GW_INVALID);
		assert_int_equal(value, 99);
		assert_non_null(strstr(gw_last_error(), bad[i]));
	}
	static const char *const out[] = {"18446744073709551616", "99999999999999999999999", "20000000T", "3", "101"};
	for (size_t i = 0; i < sizeof(out) / sizeof(out[0]); i++) {
		uint64_t value = 99;
		assert_int_equal(gw_parse_u64(out[i], 4, 100, &value), GW_RANGE);
		assert_int_equal(value, 99);
		assert_non_null(strstr(gw_last_error(), "from 4 to 100"));
	}
}

static void real_numbers(void **state)
{
	(void)state;
	double value = 0;
	assert_int_equal(gw_parse_double("0.25", 0, 1, &value), GW_OK);
	assert_true(value == 0.25);
	assert_int_equal(gw_parse_double("-1e-3", -1, 1, &value), GW_OK);
	assert_int_equal(gw_parse_double("1.01", 0, 1, &value), GW_RANGE);
	static const char *const bad[] = {"", "x", "0.5x", "nan", "inf", " 1", "1,5", "1e999"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(gw_parse_double(bad[i], -1e308, 1e308, &value), GW_INVALID);
}

static void choices(void **state)
{
	(void)state;
	static const char *const methods[] = {"metis", "random", "stream", NULL};
	int which = -1;
	assert_int_equal(gw_parse_choice("random", methods, &which), GW_OK);
	assert_int_equal(which, 1);
	assert_int_equal(gw_parse_choice("rand", methods, &which), GW_INVALID);
	assert_int_equal(which, 1);
	assert_non_null(strstr(gw_last_error(), "\"rand\""));
	assert_non_null(strstr(gw_last_error(), "metis, random, stream"));
}

static void texts(void **state)
{
	(void)state;
	char text[GW_UNIT_TEXT_MAX];
	assert_string_equal(gw_text_bytes(text, 0), "0 B");
	assert_string_equal(gw_text_bytes(text, 1023), "1023 B");
	assert_string_equal(gw_text_bytes(text, 1024), "1.00 KiB");
	assert_string_equal(gw_text_bytes(text, 1.5 * (1 << 30)), "1.50 GiB");
	assert_string_equal(gw_text_bytes(text, 1048575), "1.00 MiB");
	assert_string_equal(gw_text_bytes(text, 123.4 * 1048576), "123 MiB");
	assert_string_equal(gw_text_count(text, 999), "999");
	assert_string_equal(gw_text_count(text, 2300000), "2.30 M");
	assert_string_equal(gw_text_count(text, 45600), "45.6 k");
	assert_string_equal(gw_text_duration(text, 12e-6), "12 us");
	assert_string_equal(gw_text_duration(text, 0.3456), "346 ms");
	assert_string_equal(gw_text_duration(text, 0.99951), "1.0 s");
	assert_string_equal(gw_text_duration(text, 12.34), "12.3 s");
	assert_string_equal(gw_text_duration(text, 125), "2 min 05 s");
	assert_string_equal(gw_text_duration(text, 7261), "2 h 01 min");
}

static error_t parse_scale(int key, char *text, struct argp_state *state)
{
	if (key == 's' && strcmp(text, "many") == 0)
		argp_error(state, "scale \"%s\" is no number", text);
	return key == 's' ? 0 : ARGP_ERR_UNKNOWN;
}

/* What a process whose command line has this argument writes to stderr before it ends with status 2. */
static void wrong_usage(const char *argument, char text[512])
{
	static const struct argp_option options[] = {{"scale", 's', "N", 0, "size", 0}, {0}};
	static const struct argp argp = {options, parse_scale, NULL, "A command.", NULL, NULL, NULL};
	int fds[2], status;
	assert_int_equal(pipe(fds), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		char name[] = "graphwire generate", copy[64];
		snprintf(copy, sizeof(copy), "%s", argument);
		char *argv[] = {name, copy, NULL};
		dup2(fds[1], STDERR_FILENO);
		gw_options_parse(&argp, 2, argv, NULL);
		_exit(0);
	}
	close(fds[1]);
	size_t used = 0;
	for (ssize_t n; used < 511 && (n = read(fds[0], text + used, 511 - used)) > 0;)
		used += (size_t)n;
	text[used] = '\0';
	close(fds[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 2);
}

static void wrong_usage_is_one_line(void **state)
{
	(void)state;
	static const char *const arguments[][2] = {
		{"--shape=3", "--shape"},
		{"--scale=many", "scale \"many\" is no number"},
		{"--scale", "requires an argument"},
		{"-q", "'q'"},
		{"extra", "Too many arguments"},
	};
	for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++) {
		char text[512];
		wrong_usage(arguments[i][0], text);
		assert_non_null(strstr(text, arguments[i][1]));
		assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
		assert_ptr_equal(strstr(text, "graphwire generate: "), text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_usage_is_one_line),
		cmocka_unit_test(long_options_take_both_dashes),
		cmocka_unit_test(whole_numbers),
		cmocka_unit_test(real_numbers),
		cmocka_unit_test(choices),
		cmocka_unit_test(texts),
	};
	return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
