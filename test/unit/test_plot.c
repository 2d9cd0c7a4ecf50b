/* Plots: well-formed XML for every input, valid numbers, readable ticks. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/plot.h"

#define POINTS 4
static const double sizes[POINTS] = {8, 64, 512, 4096};

/* The caller frees the text. */
static char *draw(const struct gw_plot *plot)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *to = open_memstream(&text, &bytes);
	assert_non_null(to);
	gw_plot_write(plot, to);
	assert_int_equal(ferror(to), 0);
	assert_int_equal(fclose(to), 0);
	return text;
}

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == ':';
}

/* Reads attributes to the end of a tag: name="value", each value closed and without '<'. */
static const char *read_attributes(const char *at)
{
	for (;;) {
		while (*at == ' ' || *at == '\n')
			at++;
		if (*at == '/' || *at == '>' || *at == '?')
			return at;
		assert_true(is_name(*at));
		while (is_name(*at))
			at++;
		assert_true(at[0] == '=' && at[1] == '"');
		for (at += 2; *at != '"'; at++)
			assert_true(*at && *at != '<');
		at++;
	}
}

static void check_well_formed(const char *at)
{
	char open[16][32];
	int depth = 0, roots = 0;
	assert_memory_equal(at, "<?xml ", 6);
	at = strstr(read_attributes(at + 5), "?>") + 2;
	for (; *at; at++) {
		if (*at == '&')
			assert_true(!strncmp(at, "&lt;", 4) || !strncmp(at, "&gt;", 4) || !strncmp(at, "&amp;", 5) ||
				    !strncmp(at, "&quot;", 6));
		assert_true(*at != '>');
		if (*at != '<') {
			assert_true(depth > 0 || *at == '\n');
			continue;
		}
		char name[32] = "";
		bool end = at[1] == '/';
		at += end ? 2 : 1;
		for (size_t i = 0; is_name(*at) && i + 1 < sizeof(name); i++)
			name[i] = *at++;
		assert_true(name[0]);
		if (end) {
			assert_true(depth > 0);
			assert_string_equal(open[--depth], name);
			assert_true(*at == '>');
			continue;
		}
		roots += depth == 0;
		at = read_attributes(at);
		if (at[0] == '/') {
			at++;
		} else {
			assert_true(depth < 16);
			memcpy(open[depth++], name, sizeof(name));
		}
		assert_true(*at == '>');
	}
	assert_int_equal(depth, 0);
	assert_int_equal(roots, 1);
}

static char *checked(const struct gw_plot *plot)
{
	char *text = draw(plot);
	check_well_formed(text);
	assert_null(strstr(text, "nan"));
	assert_null(strstr(text, "inf"));
	assert_null(strstr(text, "href"));
	return text;
}

static unsigned count(const char *text, const char *what)
{
	unsigned n = 0;
	while ((text = strstr(text, what))) {
		text++;
		n++;
	}
	return n;
}

static struct gw_plot plot_of(const struct gw_plot_panel *panel, unsigned points)
{
	return (struct gw_plot){.title = "t",
				.x_label = "x",
				.x_unit = GW_PLOT_BYTES,
				.x = sizes,
				.points = points,
				.panels = panel,
				.panel_count = 1};
}

static void test_lines(void **state)
{
	(void)state;
	const double slow[POINTS] = {20e-6, 21e-6, 25e-6, 1.5e-3}, fast[POINTS] = {300e-9, 310e-9, 400e-9, 1e-6};
	const struct gw_plot_line lines[] = {{.name = "slow", .hue = 0, .y = slow},
					     {.name = "slow", .hue = 0, .y = fast, .dashed = true},
					     {.name = "fast", .hue = 1, .y = fast}};
	const struct gw_plot_panel panel = {.title = "p", .unit = GW_PLOT_SECONDS, .lines = lines, .line_count = 3};
	const struct gw_plot plot = plot_of(&panel, POINTS);
	char *text = checked(&plot);
	assert_int_equal(count(text, "<circle "), 3 * POINTS);
	assert_int_equal(count(text, "<path "), 3);
	assert_int_equal(count(text, "stroke-dasharray"), 1);
	assert_int_equal(count(text, ">slow</text>"), 1); /* one entry for both of its lines */
	assert_int_equal(count(text, ">fast</text>"), 1);
	assert_int_equal(count(text, ">8 B</text>"), 1);
	assert_int_equal(count(text, ">4 KiB</text>"), 1);
	assert_int_equal(count(text, ">100 ns</text>"), 1);
	assert_int_equal(count(text, ">10 \u00b5s</text>"), 1);
	assert_int_equal(count(text, ">10 ms</text>"), 1); /* the decade above the largest */
	assert_int_equal(count(text, "slow, 4 KiB: 1.5 ms"), 1);
	free(text);
}

/* A larger value is drawn higher: twice as many decades, twice as high. */
static void test_places(void **state)
{
	(void)state;
	const double y[3] = {1e3, 1e4, 1e6};
	const struct gw_plot_line line = {.name = "l", .y = y};
	const struct gw_plot_panel panel = {.title = "p", .unit = GW_PLOT_COUNT, .lines = &line, .line_count = 1};
	const struct gw_plot plot = plot_of(&panel, 3);
	char *text = checked(&plot);
	double at[3];
	const char *circle = text;
	for (int i = 0; i < 3; i++) {
		circle = strstr(circle, "cy=\"");
		assert_non_null(circle);
		at[i] = strtod(circle += 4, NULL);
	}
	assert_true(at[0] > at[1] && at[1] > at[2]);
	assert_true(fabs((at[1] - at[2]) / (at[0] - at[1]) - 2) < 0.02);
	free(text);
}

/* Values without a place on a logarithmic axis are left out, and the lines break there. */
static void test_odd_values(void **state)
{
	(void)state;
	const double odd[POINTS] = {NAN, 0, -1, INFINITY}, broken[POINTS] = {5, 0, 5, 5};
	const struct gw_plot_line lines[] = {{.name = "odd", .hue = 2, .y = odd}, {.name = "broken", .y = broken}};
	for (unsigned n = 0; n <= 2; n++) {
		const struct gw_plot_panel panel = {
			.title = "p", .unit = GW_PLOT_COUNT, .lines = lines, .line_count = n};
		const struct gw_plot plot = plot_of(&panel, POINTS);
		char *text = checked(&plot);
		assert_int_equal(count(text, "<circle "), n == 2 ? 3 : 0);
		assert_int_equal(count(text, ">odd</text>"), 0);
		free(text);
	}
}

static void test_one_point(void **state)
{
	(void)state;
	const double values[] = {1e-12, 1, 3, 9.99, 10, 1e300};
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		for (int unit = GW_PLOT_BYTES; unit <= GW_PLOT_COUNT; unit++) {
			const struct gw_plot_line line = {.name = "l", .y = &values[i]};
			const struct gw_plot_panel panel = {
				.title = "p", .unit = (enum gw_plot_unit)unit, .lines = &line, .line_count = 1};
			const struct gw_plot plot = plot_of(&panel, 1);
			char *text = checked(&plot);
			assert_int_equal(count(text, "<circle "), 1);
			free(text);
		}
}

static void test_many_decades_have_few_ticks(void **state)
{
	(void)state;
	const double y[2] = {1e-200, 1e200};
	const struct gw_plot_line line = {.name = "l", .y = y};
	const struct gw_plot_panel panel = {.title = "p", .unit = GW_PLOT_COUNT, .lines = &line, .line_count = 1};
	const struct gw_plot plot = plot_of(&panel, 2);
	char *text = checked(&plot);
	assert_true(count(text, "class=\"g\"") < 64);
	free(text);
}

static void test_names_are_escaped(void **state)
{
	(void)state;
	const double y[POINTS] = {1, 2, 3, 4};
	const struct gw_plot_line line = {.name = "<a & \"b\">\n", .y = y};
	const struct gw_plot_panel panel = {.title = "&&<", .unit = GW_PLOT_COUNT, .lines = &line, .line_count = 1};
	struct gw_plot plot = plot_of(&panel, POINTS);
	plot.title = "\"</svg>";
	char *text = checked(&plot);
	assert_int_equal(count(text, "&lt;a &amp; &quot;b&quot;&gt;"), POINTS + 1);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_odd_values),
		cmocka_unit_test(test_one_point),
		cmocka_unit_test(test_many_decades_have_few_ticks),
		cmocka_unit_test(test_names_are_escaped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
