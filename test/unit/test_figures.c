/* The table of figures: each one is in the answer by its own name, with its own value, and in the form of its unit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/figures.h"

static void *field_of(void *values, const struct gw_figure *figure)
{
	return (char *)values + figure->offset;
}

static void fill_with_different_values(void *values, char texts[][16])
{
	for (uint32_t i = 0; gw_figures[i].name; i++) {
		snprintf(texts[i], 16, "text %u", i);
		const char *text = texts[i];
		double seconds = i + 0.5;
		uint64_t number = 1000 + i;
		if (gw_figures[i].kind == GW_FIGURE_TEXT)
			memcpy(field_of(values, &gw_figures[i]), &text, sizeof(text));
		else if (gw_figures[i].unit == GW_FIGURE_SECONDS)
			memcpy(field_of(values, &gw_figures[i]), &seconds, sizeof(seconds));
		else
			memcpy(field_of(values, &gw_figures[i]), &number, sizeof(number));
	}
}

static void each_row_is_a_figure_of_its_own(void **state)
{
	(void)state;
	void *values = calloc(1, gw_figures_bytes);
	char texts[64][16];
	assert_non_null(values);
	fill_with_different_values(values, texts);
	json_t *answer = gw_figures_json(gw_figures, values);
	free(values);
	assert_non_null(answer);
	uint32_t count = 0;
	for (; gw_figures[count].name; count++) {
		const struct gw_figure *figure = &gw_figures[count];
		const json_t *value = json_object_get(answer, figure->name);
		if (figure->kind == GW_FIGURE_TEXT)
			assert_string_equal(json_string_value(value), texts[count]);
		else if (figure->unit == GW_FIGURE_SECONDS)
			assert_true(json_real_value(value) == count + 0.5);
		else
			assert_int_equal(json_integer_value(value), 1000 + count);
		assert_true(figure->help && *figure->help);
		assert_true(!figure->column == !figure->where);
		assert_true(!(figure->where & GW_FIGURE_IN_STAT) || figure->width);
	}
	assert_int_equal(json_object_size(answer), count);
	json_decref(answer);
}

static const struct gw_figure *figure_named(const char *name)
{
	const struct gw_figure *figure = gw_figures;
	while (figure->name && strcmp(figure->name, name) != 0)
		figure++;
	assert_non_null(figure->name);
	return figure;
}

static void shows(const char *name, const char *json, const char *text)
{
	char shown[GW_FIGURE_TEXT_MAX];
	json_t *answer = json_loads(json, 0, NULL);
	assert_non_null(answer);
	assert_string_equal(gw_figure_text(figure_named(name), answer, shown), text);
	json_decref(answer);
}

static void forms_of_units(void **state)
{
	(void)state;
	shows("part", "{\"part\": 1, \"parts\": 2}", "1/2");
	shows("connections", "{\"connections\": 12345}", "12345");
	shows("read_ranges", "{\"read_ranges\": 1500}", "1.50 k");
	shows("bytes", "{\"bytes\": 1536}", "1.50 KiB");
	shows("uptime_s", "{\"uptime_s\": 61}", "1 min 01 s");
	shows("graph", "{\"graph\": \"g\"}", "g");
}

/* The answer comes from another program. */
static void answers_that_lie(void **state)
{
	(void)state;
	char shown[GW_FIGURE_TEXT_MAX], wanted[GW_FIGURE_TEXT_MAX];
	shows("graph", "{}", "-");
	shows("graph", "{\"graph\": 7}", "-");
	shows("graph", "{\"graph\": \"a\\u001b[2Jb\\n\"}", "a?[2Jb?");
	shows("errors", "{\"errors\": \"many\"}", "0");
	shows("part", "{\"part\": []}", "0/0");
	json_t *answer =
		json_pack("{s:s}", "graph", "0123456789012345678901234567890123456789012345678901234567890123456789");
	memset(wanted, 0, sizeof(wanted));
	for (size_t i = 0; i + 1 < sizeof(wanted); i++)
		wanted[i] = (char)('0' + i % 10);
	assert_string_equal(gw_figure_text(figure_named("graph"), answer, shown), wanted);
	json_decref(answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_row_is_a_figure_of_its_own),
		cmocka_unit_test(forms_of_units),
		cmocka_unit_test(answers_that_lie),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
