/* What a rule names: every set of columns, its kind or the line that refuses it, the keys of the arrays, and their
 * forms. A kind of this test draws by a mask, which no kind of the table does. */
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

/* Another kind of the columns of gw_sample_weighted. */
static const struct gw_sampling_kind tried = {
	.name = "tried",
	.how = "by mask",
	.number = 900,
	.columns = GW_COLUMN_BIT(GW_COLUMN_WEIGHT) | GW_COLUMN_BIT(GW_COLUMN_MASK) | GW_COLUMN_BIT(GW_COLUMN_IDS),
	.optional = GW_COLUMN_BIT(GW_COLUMN_WEIGHT),
};

static struct gw_column_names names_of(const struct gw_edge_rule *rule)
{
	const struct gw_column_names names = gw_column_names_of(&meta, 0, rule);
	const struct gw_edge_rule again = gw_column_names_rule(&names);
	assert_ptr_equal(again.weight, rule->weight);
	assert_ptr_equal(again.mask, rule->mask);
	assert_ptr_equal(again.time, rule->time);
	assert_ptr_equal(again.end, rule->end);
	assert_int_equal(again.pick, rule->pick);
	return names;
}

/* What the rule's columns and its pick must give, by the documentation of gw_edge_rule. mask: whether a kind has it. */
static gw_status kind_expected(const struct gw_edge_rule *rule, bool mask, const struct gw_sampling_kind **kind,
			       const char **says)
{
	bool last = rule->pick == GW_PICK_LAST, timed = rule->time || rule->end || last;
	*kind = NULL;
	if (rule->pick != GW_PICK_UNIFORM && !last)
		*says = "the rule's pick is 7: give";
	else if (rule->end && !rule->time)
		*says = "the rule has an end and no time";
	else if (last && !rule->time)
		*says = "the rule picks the last edges and has no time";
	else if (rule->mask && !mask)
		*says = "the rule's mask is not supported: this version samples uniformly or by weight or by time";
	else if (timed && (rule->weight || rule->mask))
		*says = " together: this version samples uniformly or by weight or by time or by the last times";
	else
		*says = NULL;
	if (*says)
		return rule->pick > GW_PICK_LAST || (timed && !rule->time) ? GW_INVALID : GW_UNSUPPORTED;
	*kind = last           ? &gw_sample_last
		: rule->time   ? &gw_sample_temporal
		: rule->mask   ? &tried
		: rule->weight ? &gw_sample_weighted
			       : &gw_sample_uniform;
	return GW_OK;
}

static void sets_of_columns_have_a_kind(void **state)
{
	(void)state;
	static const enum gw_edge_pick picks[] = {GW_PICK_UNIFORM, GW_PICK_LAST, 7};
	for (uint32_t set = 0; set < 6 << 4; set++) {
		const struct gw_edge_rule rule = {.weight = set & 1 ? "w" : NULL,
						  .mask = set & 2 ? "m" : NULL,
						  .time = set & 4 ? "t" : NULL,
						  .end = set & 8 ? "e" : NULL,
						  .pick = picks[(set >> 4) % 3]};
		bool mask = set >> 4 >= 3;
		const struct gw_column_names names = names_of(&rule);
		const struct gw_sampling_kind *kind, *expected;
		const char *says;
		gw_sampling_kind_try(mask ? &tried : NULL);
		gw_status status = kind_expected(&rule, mask, &expected, &says);
		assert_int_equal(gw_sampling_kind_of(&names, &kind), status);
		assert_ptr_equal(kind, expected);
		if (!says)
			continue;
		assert_non_null(strstr(gw_last_error(), "edge type a:r:b: "));
		assert_non_null(strstr(gw_last_error(), says));
		if (status == GW_UNSUPPORTED)
			assert_int_equal(strstr(gw_last_error(), " or by mask") != NULL, mask);
	}
	gw_sampling_kind_try(NULL);
}

static void names_have_a_length(void **state)
{
	(void)state;
	char text[GW_COLUMN_NAME_MAX + 2];
	memset(text, 'n', sizeof(text));
	for (size_t length = 0; length <= GW_COLUMN_NAME_MAX + 1; length++) {
		text[length] = 0;
		const struct gw_edge_rule rule = {.weight = "w", .time = text};
		const struct gw_column_names names = names_of(&rule);
		bool good = length > 0 && length <= GW_COLUMN_NAME_MAX;
		assert_int_equal(gw_column_names_check(&names), good ? GW_OK : GW_INVALID);
		if (!good)
			assert_non_null(strstr(gw_last_error(), "edge type a:r:b: the rule's time names no feature"));
		text[length] = 'n';
	}
}

static void columns_have_keys(void **state)
{
	(void)state;
	static const struct gw_edge_rule rule = {.weight = "w", .time = "t", .end = "e"},
					 of_source = {.time = "t.source"};
	const char *const expected[GW_COLUMN_COUNT] = {
		[GW_COLUMN_WEIGHT] = "edge/a__r__b/w", [GW_COLUMN_ALIAS] = "edge/a__r__b/w.alias",
		[GW_COLUMN_TIME] = "edge/a__r__b/t",   [GW_COLUMN_FENCE] = "edge/a__r__b/t.fence",
		[GW_COLUMN_END] = "edge/a__r__b/e",
	};
	struct gw_edge_type sorted = relation, by_source = relation;
	sorted.order = by_source.order = GW_ORDER_TIME_SRC;
	strcpy(sorted.time_name, "t");
	strcpy(by_source.time_name, "t.source");
	const struct gw_graph_meta sorted_meta = {.ntypes = ntypes, .etypes = &sorted, .minor = GW_FORMAT_MINOR_TIMES},
				   by_source_meta = {
					   .ntypes = ntypes, .etypes = &by_source, .minor = GW_FORMAT_MINOR_TIMES};
	struct gw_column_names names = names_of(&rule), sources = names_of(&of_source);
	char key[GW_COLUMN_KEY_MAX], text[GW_COLUMN_NAMES_TEXT], advice[GW_COLUMN_ADVICE];
	assert_null(gw_column_key(&names, GW_COLUMN_FENCE, key)); /* the lists are not sorted */
	names.meta = sources.meta = &sorted_meta;
	assert_null(gw_column_key(&sources, GW_COLUMN_FENCE, key)); /* not by this time */
	const struct gw_graph_meta older = {.ntypes = ntypes, .etypes = &sorted, .minor = GW_FORMAT_MINOR_TIMES - 1};
	names.meta = &older;
	assert_null(gw_column_key(&names, GW_COLUMN_FENCE, key)); /* a feature with a fence's name */
	names.meta = &sorted_meta;
	sources.meta = &by_source_meta;
	for (uint32_t c = 0; c < GW_COLUMN_COUNT; c++) {
		const char *found = gw_column_key(&names, c, key);
		assert_int_equal(found != NULL, expected[c] != NULL);
		if (found)
			assert_string_equal(found, expected[c]);
		assert_int_equal(gw_column_advice(&names, c, advice) != NULL,
				 c == GW_COLUMN_ALIAS || c == GW_COLUMN_FENCE);
	}
	assert_string_equal(gw_column_names_text(&names, NULL, text), "weight \"w\", time \"t\", end \"e\"");
	assert_string_equal(gw_column_names_text(&names, "feature", text),
			    "feature \"w\", feature \"t\", feature \"e\"");
	assert_string_equal(gw_column_key(&sources, GW_COLUMN_TIME, key), "edge/a__r__b/t.source");
	assert_string_equal(gw_column_key(&sources, GW_COLUMN_FENCE, key), "edge/a__r__b/t.source.fence");
}

/* The advice names the option of "graphwire partition", whatever the length of a name. */
static void advice_names_an_option(void **state)
{
	(void)state;
	char longest[GW_COLUMN_NAME_MAX + 1], advice[GW_COLUMN_ADVICE];
	memset(longest, 'n', sizeof(longest));
	longest[GW_COLUMN_NAME_MAX] = 0;
	const struct gw_edge_rule rule = {.weight = "w", .time = longest};
	const struct gw_column_names names = names_of(&rule);
	assert_string_equal(
		gw_column_advice(&names, GW_COLUMN_ALIAS, advice),
		"a draw by \"w\" reads a whole list, because no alias table exists; partition the graph with "
		"--weight w to make one");
	const char *text = gw_column_advice(&names, GW_COLUMN_FENCE, advice);
	assert_non_null(strstr(text, "because no fence of times exists; partition the graph with --time n"));
	assert_string_equal(text + strlen(text) - strlen("n to make one"), "n to make one");
	static const struct gw_edge_rule of_source = {.time = "t.source"};
	const struct gw_column_names sources = names_of(&of_source);
	assert_non_null(strstr(gw_column_advice(&sources, GW_COLUMN_FENCE, advice), "a draw by \"t.source\" reads"));
	assert_non_null(strstr(advice, "--time t.source to make one"));
}

static void forms_are_those_of_the_arrays(void **state)
{
	(void)state;
	const struct gw_array_meta numbers = {.dtype = GW_FLOAT32, .ndim = 1, .shape = {9}},
				   pairs = {.dtype = GW_UINT32, .ndim = 2, .shape = {9, 2}},
				   codes = {.dtype = GW_INT8_ROW, .ndim = 2, .shape = {9, 4}};
	static const struct gw_edge_rule rule = {.weight = "w"};
	const struct gw_column_names names = names_of(&rule);
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
		cmocka_unit_test(advice_names_an_option),
		cmocka_unit_test(forms_are_those_of_the_arrays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
