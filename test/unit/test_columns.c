/* What a rule names: every set of columns, its kind or the line that refuses it, the keys of the arrays, and their
 * forms. A kind of this test draws by time, so that the table has more than weights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sampler/columns.h"

static struct gw_node_type ntypes[] = {{.name = "a"}, {.name = "b"}};
static struct gw_edge_type relation = {.name = "r", .folder = "a__r__b", .src = 0, .dst = 1};
static const struct gw_graph_meta meta = {.ntypes = ntypes, .etypes = &relation, .num_ntypes = 2, .num_etypes = 1};

static const struct gw_sampling_kind by_time = {
	.name = "by time",
	.how = "by time",
	.number = 900,
	.columns = GW_COLUMN_BIT(GW_COLUMN_TIME) | GW_COLUMN_BIT(GW_COLUMN_IDS),
};

static struct gw_column_names names_of(const char *weight, const char *mask, const char *time)
{
	const struct gw_edge_rule rule = {.weight = weight, .mask = mask, .time = time};
	const struct gw_column_names names = gw_column_names_of(&meta, 0, &rule);
	const struct gw_edge_rule again = gw_column_names_rule(&names);
	assert_ptr_equal(again.weight, weight);
	assert_ptr_equal(again.mask, mask);
	assert_ptr_equal(again.time, time);
	return names;
}

static void sets_of_columns_have_a_kind(void **state)
{
	(void)state;
	static const struct {
		const char *weight, *mask, *time;
		const struct gw_sampling_kind *kind, *with_time; /* without and with the kind that draws by time */
		const char *says, *says_with_time;
	} cases[] = {
		{NULL, NULL, NULL, &gw_sample_uniform, &gw_sample_uniform, NULL, NULL},
		{"w", NULL, NULL, &gw_sample_weighted, &gw_sample_weighted, NULL, NULL},
		{NULL, "m", NULL, NULL, NULL, "the rule's mask is not supported", "the rule's mask is not supported"},
		{NULL, NULL, "t", NULL, &by_time, "the rule's time is not supported", NULL},
		{"w", "m", NULL, NULL, NULL, "the rule's mask is not supported", "the rule's mask is not supported"},
		{"w", NULL, "t", NULL, NULL, "the rule's time is not supported",
		 "the rule has weight \"w\", time \"t\" together"},
		{NULL, "m", "t", NULL, NULL, "the rule's mask is not supported", "the rule's mask is not supported"},
		{"w", "m", "t", NULL, NULL, "the rule's mask is not supported", "the rule's mask is not supported"},
	};
	for (int timed = 0; timed < 2; timed++) {
		gw_sampling_kind_try(timed ? &by_time : NULL);
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			const struct gw_column_names names = names_of(cases[i].weight, cases[i].mask, cases[i].time);
			const struct gw_sampling_kind *kind, *expected = timed ? cases[i].with_time : cases[i].kind;
			const char *says = timed ? cases[i].says_with_time : cases[i].says;
			assert_int_equal(gw_sampling_kind_of(&names, &kind), says ? GW_UNSUPPORTED : GW_OK);
			assert_ptr_equal(kind, expected);
			if (!says)
				continue;
			assert_non_null(strstr(gw_last_error(), "edge type a:r:b: "));
			assert_non_null(strstr(gw_last_error(), says));
			assert_non_null(strstr(gw_last_error(), ": this version samples uniformly or by weight"));
			assert_int_equal(strstr(gw_last_error(), " or by time") != NULL, timed);
		}
	}
	gw_sampling_kind_try(NULL);
}

static void names_have_a_length(void **state)
{
	(void)state;
	char text[GW_NAME_MAX + 2];
	memset(text, 'n', sizeof(text));
	for (size_t length = 0; length <= GW_NAME_MAX + 1; length++) {
		text[length] = 0;
		const struct gw_column_names names = names_of("w", NULL, text);
		bool good = length > 0 && length <= GW_NAME_MAX;
		assert_int_equal(gw_column_names_check(&names), good ? GW_OK : GW_INVALID);
		if (!good)
			assert_non_null(strstr(gw_last_error(), "edge type a:r:b: the rule's time names no feature"));
		text[length] = 'n';
	}
}

static void columns_have_keys(void **state)
{
	(void)state;
	const char *const expected[GW_COLUMN_COUNT] = {[GW_COLUMN_WEIGHT] = "edge/a__r__b/w",
						       [GW_COLUMN_ALIAS] = "edge/a__r__b/w.alias",
						       [GW_COLUMN_TIME] = "edge/a__r__b/t"};
	const struct gw_column_names names = names_of("w", NULL, "t");
	char key[GW_COLUMN_KEY_MAX], text[GW_COLUMN_NAMES_TEXT], advice[GW_COLUMN_ADVICE];
	for (uint32_t c = 0; c < GW_COLUMN_COUNT; c++) {
		const char *found = gw_column_key(&names, c, key);
		assert_int_equal(found != NULL, expected[c] != NULL);
		if (found)
			assert_string_equal(found, expected[c]);
		assert_int_equal(gw_column_advice(&names, c, advice) != NULL, c == GW_COLUMN_ALIAS);
	}
	assert_string_equal(gw_column_names_text(&names, NULL, text), "weight \"w\", time \"t\"");
	assert_string_equal(gw_column_names_text(&names, "feature", text), "feature \"w\", feature \"t\"");
}

static void forms_are_those_of_the_arrays(void **state)
{
	(void)state;
	const struct gw_array_meta numbers = {.dtype = GW_FLOAT32, .ndim = 1, .shape = {9}},
				   pairs = {.dtype = GW_UINT32, .ndim = 2, .shape = {9, 2}},
				   codes = {.dtype = GW_INT8_ROW, .ndim = 2, .shape = {9, 4}};
	const struct gw_column_names names = names_of("w", NULL, NULL);
	const struct gw_array_meta *arrays[GW_COLUMN_COUNT] = {[GW_COLUMN_WEIGHT] = &numbers};
	for (int table = 0; table < 2; table++) {
		struct gw_column_form forms[GW_COLUMN_COUNT] = {{0}};
		arrays[GW_COLUMN_ALIAS] = table ? &pairs : NULL;
		assert_int_equal(gw_column_forms(&names, &gw_sample_weighted, arrays, forms), GW_OK);
		for (uint32_t c = 0; c < GW_COLUMN_COUNT; c++) {
			uint32_t bytes = c == GW_COLUMN_WEIGHT ? 4 : c == GW_COLUMN_ALIAS && table ? 8 : 0;
			assert_int_equal(forms[c].entry_bytes, bytes);
			if (bytes)
				assert_int_equal(forms[c].dtype, arrays[c]->dtype);
		}
		arrays[GW_COLUMN_WEIGHT] = NULL;
		assert_int_equal(gw_column_forms(&names, &gw_sample_weighted, arrays, forms), GW_NOT_FOUND);
		assert_non_null(strstr(gw_last_error(), "edge type a:r:b has no feature \"w\" to draw its edges by"));
		arrays[GW_COLUMN_WEIGHT] = &codes;
		assert_int_equal(gw_column_forms(&names, &gw_sample_weighted, arrays, forms), GW_UNSUPPORTED);
		assert_non_null(strstr(gw_last_error(), "edge type a:r:b, feature \"w\": "));
		arrays[GW_COLUMN_WEIGHT] = &numbers;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sets_of_columns_have_a_kind),
		cmocka_unit_test(names_have_a_length),
		cmocka_unit_test(columns_have_keys),
		cmocka_unit_test(forms_are_those_of_the_arrays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
