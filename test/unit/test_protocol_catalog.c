/* The catalog: a client parses what a server prints, and refuses every edit with a reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "core/memory/alloc.h"
#include "protocol/catalog.h"
#include "test/support/alloc_fault.h"
#include "test/support/graph_fixture.h"

static struct {
	struct gw_fixture fixture;
	struct gw_graph_meta *meta;
	struct gw_part *part;
	char *text; /* of part 1 of 2 */
} real;

static int begin(void **state)
{
	(void)state;
	gw_fixture_begin(&real.fixture, 71, 100, 2);
	gw_fixture_write(&real.fixture);
	if (gw_meta_read(real.fixture.folder, &real.meta) != GW_OK ||
	    gw_part_open(real.meta, 1, NULL, &real.part) != GW_OK)
		return -1;
	return gw_catalog_print(real.part, 3, &real.text) == GW_OK ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	gw_free(real.text);
	gw_part_close(real.part);
	gw_meta_destroy(real.meta);
	gw_fixture_end(&real.fixture);
	return 0;
}

static void what_is_printed_is_parsed(void **state)
{
	(void)state;
	struct gw_catalog catalog;
	assert_int_equal(gw_catalog_parse(real.text, strlen(real.text), &catalog), GW_OK);
	assert_int_equal(catalog.part, 1);
	assert_true(catalog.meta->graph_id == real.meta->graph_id);
	const struct gw_array *array;
	uint32_t count = 0;
	for (; (array = gw_part_array_at(real.part, count)); count++) {
		const struct gw_catalog_array *place = gw_catalog_find(&catalog, array->meta->key);
		assert_non_null(place);
		assert_int_equal(place->region, 3);
		assert_true(place->offset == array->offset);
	}
	assert_int_equal(catalog.count, count);
	assert_null(gw_catalog_find(&catalog, "node/paper/no-such"));
	gw_catalog_free(&catalog);
	gw_catalog_free(&catalog); /* empty: no effect */
}

/* Parses the real text with an edit. */
static gw_status parse_edited(void (*edit)(json_t *root))
{
	json_t *root = json_loads(real.text, 0, NULL);
	assert_non_null(root);
	edit(root);
	char *text = json_dumps(root, JSON_ENCODE_ANY);
	json_decref(root);
	size_t bytes = strlen(text);
	char *exact = malloc(bytes); /* no zero behind it */
	memcpy(exact, text, bytes);  /* NOLINT(bugprone-not-null-terminated-result): that is the point */
	free(text);
	struct gw_catalog catalog;
	gw_status status = gw_catalog_parse(exact, bytes, &catalog);
	if (status == GW_OK) {
		gw_catalog_free(&catalog);
	} else {
		assert_null(catalog.meta);
		assert_null(catalog.arrays);
		assert_non_null(strstr(gw_last_error(), "catalog"));
	}
	free(exact);
	return status;
}

static json_t *first(json_t *root)
{
	return json_array_get(json_object_get(root, "arrays"), 0);
}

#define EDIT(name, code)                                                                                               \
	static void name(json_t *root)                                                                                 \
	{                                                                                                              \
		code;                                                                                                  \
	}
EDIT(edit_nothing, (void)root)
EDIT(edit_part_high, json_object_set_new(root, "part", json_integer(2)))
EDIT(edit_part_negative, json_object_set_new(root, "part", json_integer(-1)))
EDIT(edit_part_huge, json_object_set_new(root, "part", json_integer(1ll << 32)))
EDIT(edit_part_text, json_object_set_new(root, "part", json_string("1")))
EDIT(edit_part_gone, json_object_del(root, "part"))
EDIT(edit_graph_gone, json_object_del(root, "graph"))
EDIT(edit_graph_object, json_object_set_new(root, "graph", json_object()))
EDIT(edit_graph_empty, json_object_set_new(root, "graph", json_string("")))
EDIT(edit_graph_other, json_object_set_new(root, "graph", json_string("{\"format\": \"graphwire-1\"}")))
EDIT(edit_arrays_gone, json_object_del(root, "arrays"))
EDIT(edit_arrays_object, json_object_set_new(root, "arrays", json_object()))
EDIT(edit_arrays_empty, json_object_set_new(root, "arrays", json_array()))
EDIT(edit_one_less, json_array_remove(json_object_get(root, "arrays"), 2))
EDIT(edit_one_more, json_array_append(json_object_get(root, "arrays"), first(root)))
EDIT(edit_one_twice, json_array_set(json_object_get(root, "arrays"), 1, first(root)))
EDIT(edit_key_unknown, json_array_set_new(first(root), 0, json_string("node/paper/other")))
EDIT(edit_key_nul, json_array_set_new(first(root), 0, json_stringn("node/paper/indptr\0x", 19)))
EDIT(edit_key_number, json_array_set_new(first(root), 0, json_integer(7)))
EDIT(edit_region_negative, json_array_set_new(first(root), 1, json_integer(-2)))
EDIT(edit_region_huge, json_array_set_new(first(root), 1, json_integer(1ll << 33)))
EDIT(edit_offset_negative, json_array_set_new(first(root), 2, json_integer(-4096)))
EDIT(edit_offset_real, json_array_set_new(first(root), 2, json_real(1.5)))
EDIT(edit_entry_short, json_array_remove(first(root), 2))
EDIT(edit_entry_text, json_array_set_new(json_object_get(root, "arrays"), 0, json_string("x")))

static void edits_are_refused(void **state)
{
	(void)state;
	static void (*const edits[])(json_t * root) = {
		edit_part_high,     edit_part_negative,   edit_part_huge,   edit_part_text,   edit_part_gone,
		edit_graph_gone,    edit_graph_object,    edit_graph_empty, edit_graph_other, edit_arrays_gone,
		edit_arrays_object, edit_arrays_empty,    edit_one_less,    edit_one_more,    edit_one_twice,
		edit_key_unknown,   edit_key_nul,         edit_key_number,  edit_region_huge, edit_region_negative,
		edit_offset_real,   edit_offset_negative, edit_entry_short, edit_entry_text,
	};
	assert_int_equal(parse_edited(edit_nothing), GW_OK);
	for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
		gw_status status = parse_edited(edits[i]);
		if (status != GW_PROTOCOL)
			fail_msg("edit %zu: %s: %s", i, gw_status_text(status), gw_last_error());
	}
}

static void a_text_cut_anywhere_is_refused(void **state)
{
	(void)state;
	size_t bytes = strlen(real.text);
	for (size_t n = 0; n < bytes; n += 1 + bytes / 500) {
		struct gw_catalog catalog;
		char *exact = malloc(n ? n : 1);
		memcpy(exact, real.text, n);
		assert_int_equal(gw_catalog_parse(exact, n, &catalog), GW_PROTOCOL);
		free(exact);
	}
}

static void places_are_compared(void **state)
{
	(void)state;
	struct gw_catalog a, b;
	assert_int_equal(gw_catalog_parse(real.text, strlen(real.text), &a), GW_OK);
	assert_int_equal(gw_catalog_parse(real.text, strlen(real.text), &b), GW_OK);
	assert_true(gw_catalog_same_places(&a, &b));
	b.arrays[b.count - 1].offset += 4096;
	assert_false(gw_catalog_same_places(&a, &b));
	b.arrays[b.count - 1].offset -= 4096;
	b.arrays[0].region++;
	assert_false(gw_catalog_same_places(&a, &b));
	b.arrays[0].region--;
	b.arrays[0].changes = true;
	assert_false(gw_catalog_same_places(&a, &b));
	b.arrays[0].changes = false;
	b.part = 0;
	assert_false(gw_catalog_same_places(&a, &b));
	b.part = 1;
	b.meta->graph_id++;
	assert_false(gw_catalog_same_places(&a, &b));
	gw_catalog_free(&a);
	gw_catalog_free(&b);
}

static gw_status parse_in_need(void *context)
{
	(void)context;
	struct gw_catalog catalog;
	gw_status status = gw_catalog_parse(real.text, strlen(real.text), &catalog);
	if (status == GW_OK)
		gw_catalog_free(&catalog);
	return status;
}

static gw_status print_in_need(void *context)
{
	(void)context;
	char *text;
	gw_status status = gw_catalog_print(real.part, 0, &text);
	assert_true((status == GW_OK) == (text != NULL));
	gw_free(text);
	return status;
}

static void shortage_is_reported(void **state)
{
	(void)state;
	assert_true(gw_fault_each(parse_in_need, NULL) > 10);
	assert_true(gw_fault_each(print_in_need, NULL) >= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_printed_is_parsed),      cmocka_unit_test(edits_are_refused),
		cmocka_unit_test(a_text_cut_anywhere_is_refused), cmocka_unit_test(places_are_compared),
		cmocka_unit_test(shortage_is_reported),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
