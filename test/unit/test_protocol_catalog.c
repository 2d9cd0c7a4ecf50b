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
#include "test/support/meta_same.h"

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
	return gw_catalog_print(real.part, 3, GW_CATALOG_WITH_BOOK, false, &real.text) == GW_OK ? 0 : -1;
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
	assert_true(catalog.graph_id == real.meta->graph_id);
	assert_string_equal(catalog.graph_name, real.meta->graph_name);
	assert_true(catalog.book->graph_id == real.meta->graph_id);
	assert_int_equal(catalog.book->parts[0].count + catalog.book->parts[1].count, 0);
	const struct gw_array *array;
	uint32_t count = 0;
	for (; (array = gw_part_array_at(real.part, count)); count++) {
		const struct gw_catalog_array *place = gw_catalog_find(&catalog, array->meta->key);
		assert_non_null(place);
		assert_int_equal(place->region, 3);
		assert_true(place->offset == array->offset);
		assert_string_equal(place->meta->key, array->meta->key);
		assert_int_equal(place->meta->dtype, array->meta->dtype);
		assert_int_equal(place->meta->ndim, array->meta->ndim);
		assert_memory_equal(place->meta->shape, array->meta->shape, sizeof(array->meta->shape));
		assert_true(place->meta->digest == array->meta->digest);
	}
	assert_int_equal(catalog.count, count);
	assert_null(gw_catalog_find(&catalog, "node/paper/no-such"));
	gw_catalog_free(&catalog);
	gw_catalog_free(&catalog); /* empty: no effect */
}

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
		assert_null(catalog.book);
		assert_null(catalog.own.arrays);
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
EDIT(edit_name_gone, json_object_del(root, "graph_name"))
EDIT(edit_name_escape, json_object_set_new(root, "graph_name", json_string("a\x1b[31m")))
EDIT(edit_name_other, json_object_set_new(root, "graph_name", json_string("other")))
EDIT(edit_id_gone, json_object_del(root, "graph_id"))
EDIT(edit_id_other, json_object_set_new(root, "graph_id", json_string("0123456789abcdef")))
EDIT(edit_id_number, json_object_set_new(root, "graph_id", json_integer(7)))
EDIT(edit_book_digest_gone, json_object_del(root, "book_digest"))
EDIT(edit_book_digest_other, json_object_set_new(root, "book_digest", json_string("0123456789abcdef")))
EDIT(edit_book_object, json_object_set_new(root, "book", json_object()))
EDIT(edit_book_empty, json_object_set_new(root, "book", json_string("")))
EDIT(edit_book_other, json_object_set_new(root, "book", json_string("{\"format\": \"graphwire-1\"}")))
EDIT(edit_book_whole, char *text; assert_int_equal(gw_meta_print(real.meta, &text), GW_OK);
     json_object_set_new(root, "book", json_string(text)); gw_free(text))
EDIT(edit_arrays_gone, json_object_del(root, "arrays"))
EDIT(edit_arrays_object, json_object_set_new(root, "arrays", json_object()))
EDIT(edit_one_twice, json_array_set(json_object_get(root, "arrays"), 1, first(root)))
EDIT(edit_order, json_array_append(json_object_get(root, "arrays"), first(root)))
EDIT(edit_key_nul, json_array_set_new(first(root), 0, json_stringn("node/paper/indptr\0x", 19)))
EDIT(edit_key_number, json_array_set_new(first(root), 0, json_integer(7)))
EDIT(edit_region_negative, json_array_set_new(first(root), 1, json_integer(-3)))
EDIT(edit_disk_offset, json_array_set_new(first(root), 1, json_integer(-2));
     json_array_set_new(first(root), 2, json_integer(4096)))
EDIT(edit_region_huge, json_array_set_new(first(root), 1, json_integer(1ll << 33)))
EDIT(edit_offset_negative, json_array_set_new(first(root), 2, json_integer(-4096)))
EDIT(edit_offset_real, json_array_set_new(first(root), 2, json_real(1.5)))
EDIT(edit_dtype_other, json_array_set_new(first(root), 3, json_string("complex64")))
EDIT(edit_dtype_number, json_array_set_new(first(root), 3, json_integer(3)))
EDIT(edit_shape_empty, json_array_set_new(first(root), 4, json_array()))
EDIT(edit_shape_long,
     json_array_set_new(first(root), 4,
			json_pack("[iiiiiiiiiiiiiiiii]", 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)))
EDIT(edit_shape_negative, json_array_set_new(first(root), 4, json_pack("[i]", -1)))
EDIT(edit_shape_overflow, json_array_set_new(first(root), 4, json_pack("[II]", (json_int_t)1 << 61, (json_int_t)8)))
EDIT(edit_shape_zero, json_array_set_new(first(root), 4, json_pack("[ii]", 1, 0)))
EDIT(edit_shape_text, json_array_set_new(first(root), 4, json_string("1")))
EDIT(edit_digest_short, json_array_set_new(first(root), 5, json_string("abc")))
EDIT(edit_digest_number, json_array_set_new(first(root), 5, json_integer(7)))
EDIT(edit_entry_short, json_array_remove(first(root), 5))
EDIT(edit_entry_long, json_array_append_new(first(root), json_integer(1)))
EDIT(edit_entry_text, json_array_set_new(json_object_get(root, "arrays"), 0, json_string("x")))

static void edits_are_refused(void **state)
{
	(void)state;
	static void (*const edits[])(json_t * root) = {
		edit_part_high,         edit_part_negative,   edit_part_huge,
		edit_part_text,         edit_part_gone,       edit_name_gone,
		edit_name_escape,       edit_name_other,      edit_id_gone,
		edit_id_other,          edit_id_number,       edit_book_digest_gone,
		edit_book_digest_other, edit_book_object,     edit_book_empty,
		edit_book_other,        edit_book_whole,      edit_arrays_gone,
		edit_arrays_object,     edit_one_twice,       edit_order,
		edit_key_nul,           edit_key_number,      edit_region_negative,
		edit_region_huge,       edit_offset_negative, edit_offset_real,
		edit_dtype_other,       edit_dtype_number,    edit_shape_empty,
		edit_shape_long,        edit_shape_negative,  edit_shape_overflow,
		edit_shape_zero,        edit_shape_text,      edit_digest_short,
		edit_digest_number,     edit_entry_short,     edit_entry_long,
		edit_entry_text,        edit_disk_offset,
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

static void parse_real(struct gw_catalog *catalog)
{
	assert_int_equal(gw_catalog_parse(real.text, strlen(real.text), catalog), GW_OK);
}

static void places_are_compared(void **state)
{
	(void)state;
	struct gw_catalog a, b;
	parse_real(&a);
	parse_real(&b);
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
	b.arrays[0].on_disk = true;
	assert_false(gw_catalog_same_places(&a, &b));
	b.arrays[0].on_disk = false;
	b.part = 0;
	assert_false(gw_catalog_same_places(&a, &b));
	b.part = 1;
	b.graph_id++;
	assert_false(gw_catalog_same_places(&a, &b));
	b.graph_id--;
	b.book_digest++;
	assert_false(gw_catalog_same_places(&a, &b));
	b.book_digest--;
	b.own.arrays[0].digest++;
	assert_false(gw_catalog_same_places(&a, &b));
	b.own.arrays[0].digest--;
	assert_true(gw_catalog_same_places(&a, &b));
	gw_catalog_free(&a);
	gw_catalog_free(&b);
}

/* --- Catalogs of all parts give the graph. --- */

static char *text_of_part(uint32_t number, enum gw_catalog_form form)
{
	struct gw_part *part;
	char *text;
	assert_int_equal(gw_part_open(real.meta, number, NULL, &part), GW_OK);
	assert_int_equal(gw_catalog_print(part, 0, form, false, &text), GW_OK);
	gw_part_close(part);
	return text;
}

static void parse_both(struct gw_catalog catalogs[2])
{
	for (uint32_t p = 0; p < 2; p++) {
		char *text = text_of_part(p, p == 0 ? GW_CATALOG_WITH_BOOK : GW_CATALOG_OWN);
		assert_int_equal(gw_catalog_parse(text, strlen(text), &catalogs[p]), GW_OK);
		assert_true((catalogs[p].book != NULL) == (p == 0));
		gw_free(text);
	}
}

static void catalogs_join_to_the_graph(void **state)
{
	(void)state;
	struct gw_catalog catalogs[2];
	uint64_t digest;
	parse_both(catalogs);
	struct gw_graph_meta *graph = catalogs[0].book;
	catalogs[0].book = NULL;
	assert_int_equal(gw_meta_book_digest(real.meta, &digest), GW_OK);
	assert_int_equal(gw_meta_check_whole(graph), GW_INVALID); /* no arrays yet */
	for (int again = 0; again < 2; again++) {
		for (uint32_t p = 0; p < 2; p++) {
			assert_int_equal(gw_catalog_join(&catalogs[p], graph, digest), GW_OK);
			assert_ptr_equal(catalogs[p].arrays[0].meta, &graph->parts[p].arrays[0]);
			assert_null(catalogs[p].own.arrays);
		}
		assert_int_equal(gw_meta_check_whole(graph), GW_OK);
		assert_true(meta_same(graph, real.meta));
	}
	for (uint32_t p = 0; p < 2; p++)
		gw_catalog_free(&catalogs[p]);
	gw_meta_destroy(graph);
}

static void spoil(struct gw_catalog *catalog, uint32_t which)
{
	struct gw_array_meta *array = &catalog->own.arrays[which / 6 % catalog->own.count];
	switch (which % 6) {
	case 0:
		array->shape[0]++;
		break;
	case 1:
		array->shape[array->ndim - 1]++;
		break;
	case 2:
		array->digest ^= 1ull << which % 64;
		break;
	case 3:
		array->dtype = array->dtype == GW_UINT32 ? GW_UINT64 : GW_UINT32;
		break;
	case 4:
		array->key[strlen(array->key) - 1]++;
		break;
	default:
		array->ndim++;
		array->shape[array->ndim - 1] = 1;
		break;
	}
}

static void no_array_of_another_graph_joins(void **state)
{
	(void)state;
	uint64_t digest;
	assert_int_equal(gw_meta_book_digest(real.meta, &digest), GW_OK);
	for (uint32_t which = 0; which < 6 * real.meta->parts[1].count; which++) {
		struct gw_catalog catalogs[2];
		parse_both(catalogs);
		spoil(&catalogs[1], which);
		assert_int_equal(gw_catalog_join(&catalogs[1], real.meta, digest), GW_PROTOCOL);
		assert_non_null(strstr(gw_last_error(), "another graph under the id"));
		struct gw_graph_meta *graph = catalogs[0].book;
		catalogs[0].book = NULL;
		assert_int_equal(gw_catalog_join(&catalogs[0], graph, digest), GW_OK);
		assert_int_equal(gw_catalog_join(&catalogs[1], graph, digest), GW_OK);
		assert_int_not_equal(gw_meta_check_whole(graph), GW_OK);
		for (uint32_t p = 0; p < 2; p++)
			gw_catalog_free(&catalogs[p]);
		gw_meta_destroy(graph);
	}
	struct gw_catalog catalog;
	parse_real(&catalog);
	catalog.graph_id++;
	assert_int_equal(gw_catalog_join(&catalog, real.meta, digest), GW_PROTOCOL);
	catalog.graph_id--;
	assert_int_equal(gw_catalog_join(&catalog, real.meta, digest + 1), GW_PROTOCOL);
	catalog.part = 2;
	assert_int_equal(gw_catalog_join(&catalog, real.meta, digest), GW_PROTOCOL);
	catalog.part = 0;
	assert_int_equal(gw_catalog_join(&catalog, real.meta, digest), GW_PROTOCOL);
	gw_catalog_free(&catalog);
}

/* --- Lists of other parts. --- */

static char *text_of_lists(void)
{
	struct gw_part *part;
	char *text;
	assert_int_equal(gw_part_open(real.meta, 1, NULL, &part), GW_OK);
	assert_int_equal(gw_catalog_lists_print(&part, 1, 3, &text), GW_OK);
	gw_part_close(part);
	return text;
}

static void expect_no_lists(const char *text, const char *says)
{
	struct gw_catalog_lists lists;
	assert_int_equal(gw_catalog_lists_parse(text, strlen(text), 2, 0, &lists), GW_PROTOCOL);
	if (!strstr(gw_last_error(), says))
		fail_msg("wanted \"%s\": %s", says, gw_last_error());
	assert_null(lists.parts);
}

static void lists_are_parsed(void **state)
{
	(void)state;
	struct gw_catalog_lists lists;
	struct gw_catalog catalog;
	char *text = text_of_lists(), *own;
	assert_int_equal(gw_catalog_lists_parse(text, strlen(text), 2, 0, &lists), GW_OK);
	assert_int_equal(lists.count, 1);
	assert_int_equal(lists.parts[0].part, 1);
	assert_int_equal(lists.parts[0].count, real.meta->parts[1].count);
	for (uint32_t i = 0; i < lists.parts[0].count; i++) {
		assert_true(gw_array_meta_same(lists.parts[0].arrays[i].meta, &real.meta->parts[1].arrays[i]));
		assert_int_equal(lists.parts[0].arrays[i].region, 3);
	}
	gw_catalog_lists_free(&lists);
	for (size_t bytes = 0; bytes < strlen(text); bytes++) {
		assert_int_equal(gw_catalog_lists_parse(text, bytes, 2, 0, &lists), GW_PROTOCOL);
		assert_null(lists.parts);
	}
	assert_int_equal(gw_catalog_lists_parse(text, strlen(text), 2, 1, &lists), GW_PROTOCOL); /* its own part */
	gw_free(text);
	expect_no_lists("{\"lists\": 3}", "no list");
	expect_no_lists("{\"lists\": [{\"part\": 1}]}", "catalog of lists");
	expect_no_lists("{\"lists\": [{\"part\": 2, \"arrays\": []}]}", "part 2 is unknown");
	expect_no_lists("{\"lists\": [{\"part\": 1, \"arrays\": [[1]]}]}", "arrays[0]");
	expect_no_lists("{\"lists\": [{\"part\": 1, \"arrays\": []}, {\"part\": 1, \"arrays\": []}]}", "fewer than 2");
	/* A server says that it holds some; an older one does not. */
	for (int holds = 0; holds < 2; holds++) {
		assert_int_equal(gw_catalog_print(real.part, 0, GW_CATALOG_OWN, holds, &own), GW_OK);
		assert_int_equal(gw_catalog_parse(own, strlen(own), &catalog), GW_OK);
		assert_int_equal(catalog.holds_lists, holds);
		gw_catalog_free(&catalog);
		gw_free(own);
	}
}

static gw_status parse_lists_in_need(void *context)
{
	struct gw_catalog_lists lists;
	gw_status status = gw_catalog_lists_parse(context, strlen(context), 2, 0, &lists);
	if (status == GW_OK)
		gw_catalog_lists_free(&lists);
	return status;
}

static gw_status print_lists_in_need(void *context)
{
	struct gw_part *parts[] = {context};
	char *text;
	gw_status status = gw_catalog_lists_print(parts, 1, 0, &text);
	assert_true((status == GW_OK) == (text != NULL));
	gw_free(text);
	return status;
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
	gw_status status = gw_catalog_print(real.part, 0, GW_CATALOG_WITH_BOOK, false, &text);
	assert_true((status == GW_OK) == (text != NULL));
	gw_free(text);
	return status;
}

static void shortage_is_reported(void **state)
{
	(void)state;
	assert_true(gw_fault_each(parse_in_need, NULL) > 10);
	assert_true(gw_fault_each(print_in_need, NULL) >= 1);
	char *text = text_of_lists();
	assert_true(gw_fault_each(parse_lists_in_need, text) > 10);
	assert_true(gw_fault_each(print_lists_in_need, real.part) >= 1);
	gw_free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_printed_is_parsed),
		cmocka_unit_test(edits_are_refused),
		cmocka_unit_test(a_text_cut_anywhere_is_refused),
		cmocka_unit_test(places_are_compared),
		cmocka_unit_test(catalogs_join_to_the_graph),
		cmocka_unit_test(no_array_of_another_graph_joins),
		cmocka_unit_test(lists_are_parsed),
		cmocka_unit_test(shortage_is_reported),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
