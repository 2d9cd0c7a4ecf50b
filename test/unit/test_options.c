/* Command-line values: accepted values, refused values, and the text of the refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/errors/options.h"

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
		{"1.1T", 1100000000000},
		{"0.5Ki", 512},
		{"1.0009765625Ki", 1025},
	};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		uint64_t value = 99;
		assert_int_equal(gw_parse_u64(good[i].text, 0, UINT64_MAX, &value), GW_OK);
		assert_true(value == good[i].value);
	}
	static const char *const bad[] = {"",     "-1",     "+1",      " 1",    "1 ",
					  "k",    "1.5",    "1.0",     "1.",    ".5k",
					  "1.k",  "1.5.5k", "1.0001k", "0.3Ki", "1.00000000000000000000k",
					  "0x10", "10kk",   "1ki",     "12abc", "1e3"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint64_t value = 99;
		assert_int_equal(gw_parse_u64(bad[i], 0, UINT64_MAX, &value), GW_INVALID);
		assert_int_equal(value, 99);
		assert_non_null(strstr(gw_last_error(), bad[i]));
	}
	static const char *const out[] = {"18446744073709551616",
					  "99999999999999999999999",
					  "20000000T",
					  "18446744073709551.616k",
					  "0.003k",
					  "101"};
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
	assert_int_equal(gw_parse_double("1e-400", 0, 1, &value), GW_RANGE); /* it would become 0 */
	assert_int_equal(gw_parse_double("0e-400", 0, 1, &value), GW_OK);
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
	assert_string_equal(gw_text_count(text, 999400), "999 k");
	assert_string_equal(gw_text_count(text, 999505), "1.00 M");
	assert_string_equal(gw_text_count(text, 2300000), "2.30 M");
	assert_string_equal(gw_text_count(text, 45600), "45.6 k");
	assert_string_equal(gw_text_duration(text, 12e-6), "12 us");
	assert_string_equal(gw_text_duration(text, 0.9994e-3), "999 us");
	assert_string_equal(gw_text_duration(text, 0.9997e-3), "1 ms");
	assert_string_equal(gw_text_duration(text, 0.3456), "346 ms");
	assert_string_equal(gw_text_duration(text, 0.99951), "1.0 s");
	assert_string_equal(gw_text_duration(text, 12.34), "12.3 s");
	assert_string_equal(gw_text_duration(text, 125), "2 min 05 s");
	assert_string_equal(gw_text_duration(text, 7261), "2 h 01 min");
}

/* ---- tables ---- */

struct shared {
	bool quiet;
	const char *out;
};

struct values {
	uint32_t small;
	uint64_t large;
	int64_t timeout_ms;
	double share;
	bool flag;
	const char *text, *chosen, *graph;
	enum { RED, GREEN } colour;
	char calls[64];
	struct shared shared;
};

static gw_status take_call(void *input, char *text)
{
	struct values *values = input;
	if (strcmp(text, "bad") == 0)
		return gw_fail(GW_INVALID, "\"%s\" is bad", text);
	size_t used = strlen(values->calls);
	snprintf(values->calls + used, sizeof(values->calls) - used, "%s", text);
	return GW_OK;
}

static gw_status check_values(void *input)
{
	const struct values *values = input;
	return values->flag && values->small ? gw_fail(GW_INVALID, "--flag or --small, not both") : GW_OK;
}

static const char *const colours[] = {"red", "green", NULL};

static const struct gw_option table[] = {
	{.help = "Numbers:", .group = 1},
	{"small", "N", "32 bits", 1, GW_OPTION_NUMBER(struct values, small, 1, 4096, .letter = 's')},
	{"large", "N", "64 bits", 1, GW_OPTION_NUMBER(struct values, large, 0, UINT64_MAX)},
	{"time-out", "MS", "64 bits, signed", 1, GW_OPTION_NUMBER(struct values, timeout_ms, 1, 1000)},
	{"share", "S", "real", 1, GW_OPTION_REAL(struct values, share, 0, 1)},
	{"flag", NULL, "a flag", 2, GW_OPTION_FLAG(struct values, flag)},
	{"text", "T", "a text", 2, GW_OPTION_TEXT(struct values, text)},
	{"colour", "C", "an index", 2, GW_OPTION_CHOICE(struct values, colour, colours)},
	{"green", NULL, "a number", 2, GW_OPTION_VALUE(struct values, colour, GREEN)},
	{"chosen", "C", "one of them", 2, GW_OPTION_CHOICE(struct values, chosen, colours)},
	{"call", "X", "by a function", 2, GW_OPTION_CALL(take_call)},
	{"single", "T", "at most one", 2, GW_OPTION_CALL(take_call, .once = true)},
	{0},
};

static const struct gw_option shared_table[] = {
	{"quiet", NULL, "errors only", 9, GW_OPTION_FLAG(struct shared, quiet)},
	{"out", "FOLDER", "where it goes", 9, GW_OPTION_TEXT(struct shared, out, .missing = "where shall it go?")},
	{0},
};

static const struct gw_options one_graph = {.table = table,
					    .common = shared_table,
					    .common_offset = offsetof(struct values, shared),
					    .argument = "GRAPH",
					    .argument_to = GW_OPTION_TEXT(struct values, graph),
					    .argument_missing = "which graph?",
					    .doc = "A command.\vIts end.",
					    .check = check_values};

#define WORDS_MAX 20

/* The words must outlive the values. */
static void parse_line(const struct gw_options *options, char *line, struct values *values)
{
	char name[] = "graphwire generate", *argv[WORDS_MAX] = {name}, *rest = NULL;
	int argc = 1;
	for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		assert_true(argc < WORDS_MAX - 1);
		argv[argc++] = word;
	}
	gw_options_parse(options, argc, argv, values);
}

static void values_reach_their_fields(void **state)
{
	(void)state;
	struct values v = {.share = 0.5};
	char line[] = "--small=4Ki --large 18446744073709551615 g --time_out 1k --text=a_b --colour green --chosen=red "
		      "--quiet --out=o";
	parse_line(&one_graph, line, &v);
	assert_int_equal(v.small, 4096);
	assert_true(v.large == UINT64_MAX);
	assert_int_equal(v.timeout_ms, 1000);
	assert_true(v.share == 0.5); /* an option that is not given keeps its value */
	assert_false(v.flag);
	assert_string_equal(v.text, "a_b");
	assert_int_equal(v.colour, GREEN);
	assert_string_equal(v.chosen, "red");
	assert_string_equal(v.graph, "g");
	assert_true(v.shared.quiet);
	assert_string_equal(v.shared.out, "o");
}

static void the_last_counts_and_calls_add_up(void **state)
{
	(void)state;
	struct values v = {0};
	char line[] = "-s 1 -s2 --call a --call=b --share 1 --share=0.25 g --out x --out y";
	parse_line(&one_graph, line, &v);
	assert_int_equal(v.small, 2);
	assert_string_equal(v.calls, "ab");
	assert_true(v.share == 0.25);
	assert_string_equal(v.shared.out, "y");
	static const struct gw_options many = {
		.table = table, .argument = "X...", .argument_to = GW_OPTION_CALL(take_call)};
	struct values w = {0};
	char none[] = "--flag", some[] = "x -- --flag";
	parse_line(&many, none, &w);
	assert_true(w.flag);
	w.flag = false;
	char greener[] = "--green", redder[] = "--green --colour red";
	parse_line(&many, greener, &w);
	assert_int_equal(w.colour, GREEN);
	parse_line(&many, redder, &w);
	assert_int_equal(w.colour, RED);
	parse_line(&many, some, &w);
	assert_string_equal(w.calls, "x--flag");
	assert_false(w.flag);
}

static int run_line(const struct gw_options *options, const char *line, int stream, char *text, size_t bytes)
{
	int fds[2], status;
	assert_int_equal(pipe(fds), 0);
	fflush(NULL);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		char copy[128];
		struct values v = {0};
		snprintf(copy, sizeof(copy), "%s", line);
		dup2(fds[1], stream);
		parse_line(options, copy, &v);
		_exit(99);
	}
	close(fds[1]);
	size_t used = 0;
	for (ssize_t n; used < bytes - 1 && (n = read(fds[0], text + used, bytes - 1 - used)) > 0;)
		used += (size_t)n;
	text[used] = '\0';
	close(fds[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void wrong_usage_is_one_line(void **state)
{
	(void)state;
	static const struct gw_options no_argument = {.table = table, .argument_missing = "inputs are named by --text"};
	static const struct {
		const struct gw_options *options;
		const char *line, *said;
	} lines[] = {
		{&one_graph, "--shape=3", "--shape"},
		{&one_graph, "--small=many g --out o", "--small: \"many\" is not a whole number"},
		{&one_graph, "--small=0 g --out o", "--small: 0 is out of range: from 1 to 4096"},
		{&one_graph, "--small=4097 g --out o", "from 1 to 4096"},
		{&one_graph, "--time-out=-1 g --out o", "--time-out"},
		{&one_graph, "--share=1.5 g --out o", "--share: 1.5 is out of range"},
		{&one_graph, "--colour=blue g --out o", "--colour: \"blue\" is not one of: red, green"},
		{&one_graph, "--single a g --single=b --out o", "--single: \"b\": one T is enough"},
		{&one_graph, "--call=bad g --out o", "--call: \"bad\" is bad"},
		{&one_graph, "--small", "requires an argument"},
		{&one_graph, "--flag=1", "doesn't allow an argument"},
		{&one_graph, "-q", "'q'"},
		{&one_graph, "--out o", "GRAPH is missing: which graph?"},
		{&one_graph, "g h --out o", "\"h\": one GRAPH is enough"},
		{&one_graph, "g", "--out FOLDER is missing: where shall it go?"},
		{&one_graph, "g --out o --flag --small 1", "--flag or --small, not both"},
		{&no_argument, "x", "\"x\": inputs are named by --text"},
	};
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char text[512];
		assert_int_equal(run_line(lines[i].options, lines[i].line, STDERR_FILENO, text, sizeof(text)), 2);
		assert_non_null(strstr(text, lines[i].said));
		assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
		assert_ptr_equal(strstr(text, "graphwire generate: "), text);
	}
}

static void help_lists_all_rows(void **state)
{
	(void)state;
	char text[8192];
	assert_int_equal(run_line(&one_graph, "--help", STDOUT_FILENO, text, sizeof(text)), 0);
	static const char *const parts[] = {"GRAPH",         "A command.", "Its end.",    "Numbers:",
					    "-s, --small=N", "--flag",     "errors only", "--out=FOLDER"};
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		assert_non_null(strstr(text, parts[i]));
}

/* ---- lists ---- */

static void lists_of_numbers(void **state)
{
	(void)state;
	int32_t numbers[3] = {7, 7, 7};
	uint32_t count = 9;
	assert_int_equal(gw_parse_list("15,-1,5", -1, 100, 3, numbers, &count), GW_OK);
	assert_int_equal(count, 3);
	assert_memory_equal(numbers, ((int32_t[]){15, -1, 5}), sizeof(numbers));
	static const char *const bad[] = {"",   ",",   "1,", ",1",  "1,,2", "1 ,2",
					  " 1", "1;2", "x",  "101", "-2",   "99999999999999999999"};
	count = 9;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(gw_parse_list(bad[i], -1, 100, 3, numbers, &count), GW_INVALID);
		assert_non_null(strstr(gw_last_error(), bad[i]));
	}
	assert_int_equal(gw_parse_list("1,2,3,4", -1, 100, 3, numbers, &count), GW_LIMIT);
	assert_int_equal(count, 9);
}

static void lists_of_names(void **state)
{
	(void)state;
	const char *names[2];
	uint32_t count = 9;
	char one[] = "a:1", two[] = "a:1,[::1]:2", three[] = "a,b,c", gap[] = "a,,b", end[] = "a,", none[] = "";
	assert_int_equal(gw_split_list(one, 2, names, &count), GW_OK);
	assert_int_equal(count, 1);
	assert_int_equal(gw_split_list(two, 2, names, &count), GW_OK);
	assert_int_equal(count, 2);
	assert_string_equal(names[0], "a:1");
	assert_string_equal(names[1], "[::1]:2");
	assert_int_equal(gw_split_list(three, 2, names, &count), GW_LIMIT);
	assert_int_equal(gw_split_list(gap, 2, names, &count), GW_INVALID);
	assert_int_equal(gw_split_list(end, 2, names, &count), GW_INVALID);
	assert_int_equal(gw_split_list(none, 2, names, &count), GW_INVALID);
	assert_int_equal(count, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_reach_their_fields),
		cmocka_unit_test(the_last_counts_and_calls_add_up),
		cmocka_unit_test(wrong_usage_is_one_line),
		cmocka_unit_test(help_lists_all_rows),
		cmocka_unit_test(lists_of_numbers),
		cmocka_unit_test(lists_of_names),
		cmocka_unit_test(long_options_take_both_dashes),
		cmocka_unit_test(whole_numbers),
		cmocka_unit_test(real_numbers),
		cmocka_unit_test(choices),
		cmocka_unit_test(texts),
	};
	return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
