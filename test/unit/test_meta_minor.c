/* The versions of the graph's JSON: possible additions of a newer minor version, missing keys of an older one, and
 * every changed bit of the text is detected. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/graph/json.h"
#include "core/graph/meta.h"
#include "core/memory/alloc.h"
#include "core/numbers/rng.h"
#include "test/support/alloc_fault.h"
#include "test/support/graph_fixture.h"

#define MINOR  "\"minor\": 1,"
#define FLIPS  4000 /* of the larger text, at random positions */
#define DIGITS 16

/* The caller frees it. */
static char *replaced(const char *text, const char *from, const char *to)
{
	size_t count = 0, length = strlen(from);
	for (const char *at = text; (at = strstr(at, from)); at += length)
		count++;
	assert_true(count > 0);
	char *out = malloc(strlen(text) + count * (strlen(to) + 1) + 1), *end = out;
	for (const char *at = text, *next; at; at = next) {
		next = strstr(at, from);
		end += sprintf(end, "%.*s%s", next ? (int)(next - at) : (int)strlen(at), at, next ? to : "");
		next = next ? next + length : NULL;
	}
	return out;
}

static char *sealed(char *text)
{
	assert_true(gw_json_digest_set(text, strlen(text)));
	return text;
}

static gw_status parsed(const char *text, struct gw_graph_meta **meta)
{
	return gw_meta_parse(text, strlen(text), "some.json", meta);
}

static void expect_refusal(const char *text, gw_status status, const char *says)
{
	struct gw_graph_meta *meta;
	gw_status found = parsed(text, &meta);
	if (found != status || !strstr(gw_last_error(), says) || strchr(gw_last_error(), '\n'))
		fail_msg("%s: %s; expected: %s, %s", gw_status_text(found), found ? gw_last_error() : "",
			 gw_status_text(status), says);
	assert_null(meta);
}

static char *small_json(void)
{
	static const char *const keys[] = {"node/_N/indptr", "edge/_N___E___N/indices"};
	struct gw_graph_meta *meta;
	char *text;
	assert_int_equal(gw_meta_create("small", 1, 1, 1, &meta), GW_OK);
	strcpy(meta->ntypes[0].name, "_N");
	strcpy(meta->etypes[0].name, "_E");
	meta->ntypes[0].count = meta->ntypes[0].starts[1] = 4;
	meta->etypes[0].count = meta->etypes[0].starts[1] = 7;
	assert_int_equal(gw_meta_finish(meta), GW_OK);
	for (int i = 0; i < 2; i++) {
		char key[64], file[64];
		struct gw_array_meta array = {
			.key = key, .file = file, .dtype = GW_UINT32, .ndim = i ? 1 : 2, .digest = 5};
		strcpy(key, keys[i]);
		snprintf(file, sizeof(file), "part0/%s.npy", key);
		array.shape[0] = i ? 7 : 5;
		array.shape[1] = i ? 0 : 1;
		assert_int_equal(gw_meta_add_array(meta, 0, &array), GW_OK);
	}
	assert_int_equal(gw_meta_digest(meta, &meta->graph_id), GW_OK);
	assert_int_equal(gw_meta_print(meta, &text), GW_OK);
	gw_meta_destroy(meta);
	return text;
}

/* --- Every bit. --- */

static void check_flip(char *text, size_t bytes, size_t bit)
{
	struct gw_graph_meta *meta;
	text[bit / 8] ^= (char)(1 << bit % 8);
	gw_status status = gw_meta_parse(text, bytes, "some.json", &meta);
	if (status != GW_FORMAT && status != GW_DIGEST && status != GW_VERSION)
		fail_msg("bit %zu of byte %zu: %s", bit % 8, bit / 8, gw_status_text(status));
	text[bit / 8] ^= (char)(1 << bit % 8);
}

static void a_flipped_bit_is_noticed(void **state)
{
	(void)state;
	struct gw_graph_meta *meta;
	char *small = small_json();
	assert_int_equal(parsed(small, &meta), GW_OK);
	gw_meta_destroy(meta);
	size_t bytes = strlen(small);
	for (size_t bit = 0; bit < 8 * bytes; bit++)
		check_flip(small, bytes, bit);
	gw_free(small);
	bytes = strlen(gw_fixture_json);
	for (uint64_t i = 0; i < FLIPS; i++)
		check_flip(gw_fixture_json, bytes, gw_mix64(i) % (8 * bytes));
	assert_int_equal(parsed(gw_fixture_json, &meta), GW_OK);
	gw_meta_destroy(meta);
}

/* Edits that mean the same to a JSON reader are edits too. */
static void the_digest_is_of_all_bytes(void **state)
{
	(void)state;
	char *spaced = replaced(gw_fixture_json, "\n}\n", "\n}\n\n");
	expect_refusal(spaced, GW_DIGEST, "json_digest");
	free(spaced);
	char *renamed = replaced(gw_fixture_json, "\"fixture\"", "\"fixtures\"");
	expect_refusal(renamed, GW_DIGEST, "json_digest");
	struct gw_graph_meta *meta;
	assert_int_equal(parsed(sealed(renamed), &meta), GW_OK); /* the graph is the same */
	assert_string_equal(meta->graph_name, "fixtures");
	gw_meta_destroy(meta);
	free(renamed);
}

static void a_digest_is_there_once(void **state)
{
	(void)state;
	static const struct {
		const char *from, *to, *says;
	} edits[] = {
		{"\"json_digest\": \"", "\"json_dig\\u0065st\": \"", "there is no \"json_digest\""},
		{"\"json_digest\": \"", "\"json_digest\":\"", "there is no \"json_digest\""},
		{"\"json_digest\": \"", "\"json_digest\": \"0", "there is no \"json_digest\""},
		{"\"json_digest\": ", "\"note\": {\"json_digest\": \"0000000000000000\"}, \"json_digest\": ", "twice"},
	};
	for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
		char *text = replaced(gw_fixture_json, edits[i].from, edits[i].to);
		expect_refusal(text, GW_FORMAT, edits[i].says);
		assert_false(gw_json_digest_set(text, strlen(text)));
		free(text);
		/* Whatever the text's version is. */
		char *older = replaced(gw_fixture_json, MINOR, ""),
		     *again = replaced(older, edits[i].from, edits[i].to);
		expect_refusal(again, GW_FORMAT, "json_digest");
		free(older);
		free(again);
	}
}

/* --- Versions. --- */

/* As version 0.1 wrote it; the caller frees it. */
static char *of_minor_0(void)
{
	char digest[64], *at = strstr(gw_fixture_json, "\"json_digest\"");
	assert_non_null(at);
	snprintf(digest, sizeof(digest), " %.*s\n", (int)strcspn(at, "\n"), at);
	char *without = replaced(gw_fixture_json, digest, ""), *older = replaced(without, " " MINOR "\n", "");
	free(without);
	return older;
}

static void version_0_1_is_read(void **state)
{
	(void)state;
	char *older = of_minor_0(), *again;
	struct gw_graph_meta *meta, *now;
	assert_int_equal(parsed(older, &meta), GW_OK);
	assert_int_equal(parsed(gw_fixture_json, &now), GW_OK);
	assert_int_equal(meta->minor, 0);
	assert_int_equal(meta->graph_id, now->graph_id);
	assert_int_equal(gw_meta_print(meta, &again), GW_OK);
	assert_string_equal(again, older);
	gw_free(again);
	gw_meta_destroy(meta);
	gw_meta_destroy(now);
	/* A text of minor version 1 must have a digest. */
	char *missing = replaced(older, "\"graph_name\"", MINOR " \"graph_name\"");
	expect_refusal(missing, GW_FORMAT, "json_digest");
	free(missing);
	free(older);
}

/* Possible additions of a newer minor version, for arrays in both parts. The current version refuses them. */
static const struct {
	const char *from, *to, *says;
} additions[] = {
	{"\"num_parts\": 2", "\"num_parts\": 2, \"halo\": {\"hops\": [1, 2]}", "halo"},
	{"\"num_parts\": 2", "\"num_parts\": 2, \"part-7\": 1", "part-7"},
	{"\"shape\":[20,5]", "\"shape\":[20,5],\"order\":\"C\"", "besides"},
	{"\"node/venue/x\": {", "\"cluster/venue/x\": {\"level\": 3}, \"node/venue/x\": {", "cluster/venue/x"},
	{"\"node/venue/x\": {", "\"node/venue/z\": 5, \"node/venue/x\": {", "node/venue/z"},
	{"\"node/venue/x\": {",
	 "\"node/venue/z\": {\"file\": \"z.npy\", \"dtype\": \"float8\", \"shape\": [1], "
	 "\"digest\": \"0123456789abcdef\"}, \"node/venue/x\": {",
	 "float8"},
	{"\"node/venue/x\": {",
	 "\"node/venue/z\": {\"file\": \"z.npy\", \"dtype\": \"int8\", \"shape\": [7, 1, 1, 1, 1, 2], "
	 "\"digest\": \"0123456789abcdef\"}, \"node/venue/x\": {",
	 "dimensions"},
	{"\"node/venue/x\": {",
	 "\"edge/paper__cites__paper/out/far\": {\"file\": \"z.npy\", \"dtype\": \"int8\", \"shape\": [7], "
	 "\"digest\": \"0123456789abcdef\"}, \"node/venue/x\": {",
	 "transposed"},
	{"\"node/venue/x\": {",
	 "\"node/venue/test_mask\": {\"file\": \"z.npy\", \"dtype\": \"float64\", \"shape\": [1], "
	 "\"digest\": \"0123456789abcdef\"}, \"node/venue/x\": {",
	 "test_mask"},
};
#define ADDITIONS (sizeof(additions) / sizeof(additions[0]))

static void a_newer_minor_version_is_read(void **state)
{
	(void)state;
	struct gw_graph_meta *now, *meta, *again;
	char *text, *all = replaced(gw_fixture_json, MINOR, "\"minor\": 70000,");
	assert_int_equal(parsed(gw_fixture_json, &now), GW_OK);
	for (size_t i = 0; i < ADDITIONS; i++) {
		char *added = sealed(replaced(gw_fixture_json, additions[i].from, additions[i].to));
		expect_refusal(added, GW_FORMAT, additions[i].says);
		char *newer = sealed(replaced(added, MINOR, "\"minor\": 6,"));
		if (parsed(newer, &meta) != GW_OK)
			fail_msg("%s: %s", additions[i].says, gw_last_error());
		gw_meta_destroy(meta);
		free(newer);
		free(added);
		if (i != 1 && i < 5) { /* additions to the same key exclude each other */
			char *both = replaced(all, additions[i].from, additions[i].to);
			free(all);
			all = both;
		}
	}
	assert_int_equal(parsed(sealed(all), &meta), GW_OK);
	assert_int_equal(meta->minor, 70000);
	assert_int_equal(meta->graph_id, now->graph_id);
	for (uint32_t p = 0; p < 2; p++) {
		assert_int_equal(meta->parts[p].count, now->parts[p].count);
		for (uint32_t i = 0; i < now->parts[p].count; i++)
			assert_string_equal(meta->parts[p].arrays[i].key, now->parts[p].arrays[i].key);
	}
	/* A server sends its clients a text of what it knows about the graph, which they can parse. */
	assert_int_equal(gw_meta_print(meta, &text), GW_OK);
	assert_int_equal(parsed(text, &again), GW_OK);
	assert_int_equal(again->minor, 70000);
	assert_int_equal(again->graph_id, now->graph_id);
	gw_meta_destroy(again);
	/* A copy has the current version, since it has only what this program knows. */
	assert_int_equal(gw_meta_copy(meta, &again), GW_OK);
	assert_int_equal(again->minor, 1);
	gw_meta_destroy(again);
	gw_meta_destroy(meta);
	gw_meta_destroy(now);
	gw_free(text);
	free(all);
}

static void a_newer_minor_version_is_checked(void **state)
{
	(void)state;
	static const struct {
		const char *from, *to, *says;
	} edits[] = {
		{"\"edge/paper__cites__paper/indices\"", "\"edge/paper__cites__paper/indicez\"",
		 "cites__paper/indices"},
		{"\"dtype\":\"uint32\"", "\"dtype\":\"uint40\"", "there is no"},
		{"[\"time:year\",\"src\"]", "[\"degree\",\"src\"]", "order"},
		{"\"num_nodes\": 64", "\"num_nodes\": 65", "num_nodes"},
		{"\"minor\": 6", "\"minor\": -2", "minor"},
		{"\"minor\": 6", "\"minor\": \"3\"", "minor"},
		{"\"minor\": 6", "\"minor\": 4294967296", "minor"},
	};
	char *newer = replaced(gw_fixture_json, MINOR, "\"minor\": 6,");
	expect_refusal(newer, GW_DIGEST, "json_digest");
	for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
		char *text = sealed(replaced(newer, edits[i].from, edits[i].to));
		expect_refusal(text, GW_FORMAT, edits[i].says);
		if (i < 4)
			expect_refusal(text, GW_FORMAT, "minor version 6, newer than this program's");
		free(text);
	}
	free(newer);
}

/* The fixture with a unit; the caller frees it. */
static char *with_unit(uint32_t minor)
{
	struct gw_graph_meta *meta;
	char *text;
	assert_int_equal(parsed(gw_fixture_json, &meta), GW_OK);
	meta->minor = minor;
	assert_int_equal(gw_meta_set_unit(meta, "node/paper/label", GW_UNIT_S), GW_OK);
	assert_int_equal(gw_meta_set_unit(meta, "edge/paper__cites__paper/year", GW_UNIT_DAY), GW_OK);
	assert_int_equal(gw_meta_set_unit(meta, "node/paper/label", GW_UNIT_MS), GW_OK);
	assert_int_equal(gw_meta_digest(meta, &meta->graph_id), GW_OK);
	assert_int_equal(gw_meta_print(meta, &text), GW_OK);
	gw_meta_destroy(meta);
	return text;
}

static void units_of_times(void **state)
{
	(void)state;
	static const struct {
		const char *from, *to, *says;
	} faults[] = {
		{"\"ms\"", "\"minute\"", "a unit is"},
		{"\"ms\"", "5", "a unit is"},
		{"\"ms\"", "\"us\"", "graph_id"},
		{"\"units\": {", "\"units\": {\"node/paper/feat\": \"s\",", "no array of int64 or int32"},
		{"\"units\": {", "\"units\": {\"node/paper/none\": \"s\",", "no array of int64 or int32"},
		{"\"units\": {", "\"units\": {\"node/cluster/x\": \"s\",", "no node type"},
		{"\"minor\": 4", "\"minor\": 3", "units"},
	};
	struct gw_graph_meta *plain, *meta;
	char *text = with_unit(GW_FORMAT_MINOR_TIMES), *book;
	assert_int_equal(parsed(gw_fixture_json, &plain), GW_OK);
	assert_int_equal(parsed(text, &meta), GW_OK);
	assert_int_equal(gw_meta_unit(meta, "node/paper/label"), GW_UNIT_MS);
	assert_int_equal(gw_meta_unit(meta, "edge/paper__cites__paper/year"), GW_UNIT_DAY);
	assert_int_equal(gw_meta_unit(meta, "node/paper/feat"), GW_UNIT_NONE);
	assert_true(meta->graph_id != plain->graph_id);
	assert_int_equal(gw_meta_print_book(meta, &book), GW_OK);
	gw_meta_destroy(meta);
	assert_int_equal(gw_meta_parse_book(book, strlen(book), "book", &meta), GW_OK);
	assert_int_equal(gw_meta_unit(meta, "node/paper/label"), GW_UNIT_MS);
	gw_meta_destroy(meta);
	gw_free(book);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		char *fault = sealed(replaced(text, faults[i].from, faults[i].to));
		gw_status status = strcmp(faults[i].says, "graph_id") == 0 ? GW_DIGEST : GW_FORMAT;
		expect_refusal(fault, status, faults[i].says);
		free(fault);
	}
	/* A newer version may have other units, and units of arrays that are unknown here. */
	char *newer = replaced(text, "\"minor\": 4", "\"minor\": 6");
	char *more =
		sealed(replaced(newer, "\"units\": {", "\"units\": {\"node/paper/none\": \"s\",\"node/venue/x\": 7,"));
	assert_int_equal(parsed(more, &meta), GW_OK);
	assert_int_equal(gw_meta_unit(meta, "node/paper/label"), GW_UNIT_MS);
	gw_meta_destroy(meta);
	gw_meta_destroy(plain);
	free(newer);
	free(more);
	gw_free(text);
}

/* The fixture with narrow rows that were others; the caller frees it. */
static char *with_originals(void)
{
	struct gw_graph_meta *meta;
	char *text;
	assert_int_equal(parsed(gw_fixture_json, &meta), GW_OK);
	meta->minor = GW_FORMAT_MINOR_ORIGINALS;
	assert_int_equal(gw_meta_set_original(meta, "node/author/q", GW_FLOAT64, 4), GW_OK);
	assert_int_equal(gw_meta_set_original(meta, "node/author/half", GW_FLOAT64, 0), GW_OK);
	assert_int_equal(gw_meta_set_original(meta, "node/author/half", GW_FLOAT32, 0), GW_OK);
	assert_int_equal(gw_meta_set_original(meta, "node/author/q", GW_FLOAT32, 3), GW_OK);
	assert_int_equal(gw_meta_digest(meta, &meta->graph_id), GW_OK);
	assert_int_equal(gw_meta_print(meta, &text), GW_OK);
	gw_meta_destroy(meta);
	return text;
}

static void check_originals(const struct gw_graph_meta *meta)
{
	const struct gw_array_meta *half = gw_meta_array(meta, 0, "node/author/half");
	const struct gw_array_meta *packed = gw_meta_array(meta, 0, "node/author/q");
	const struct gw_array_meta *wide = gw_meta_array(meta, 0, "node/paper/feat");
	assert_int_equal(gw_meta_original(meta, half)->dtype, GW_FLOAT32);
	assert_int_equal(gw_meta_original(meta, packed)->dtype, GW_FLOAT32);
	assert_int_equal(gw_meta_original(meta, packed)->columns, 3);
	assert_null(gw_meta_original(meta, wide));
	assert_int_equal(gw_meta_row_numbers(meta, packed), 3);
	assert_int_equal(gw_meta_row_numbers(meta, wide), wide->shape[1]);
	assert_int_equal(gw_meta_row_numbers(meta, half), half->shape[1] * half->shape[2]);
}

static void narrow_rows_and_what_they_were(void **state)
{
	(void)state;
	static const struct {
		const char *from, *to, *says;
	} faults[] = {
		{"\"columns\":3", "\"columns\":5", "no array of float16"},
		{"\"columns\":3", "\"columns\":0", "originals"},
		{"\"columns\":3", "\"columns\":-1", "columns"},
		{"\"columns\":3", "\"rows\":3", "besides dtype and columns"},
		{",\"columns\":3", "", "no array of float16"},
		{"\"columns\":3", "\"columns\":2", "graph_id"},
		{"{\"dtype\":\"float32\"}", "{\"dtype\":\"float64\"}", "graph_id"},
		{"{\"dtype\":\"float32\"}", "{\"dtype\":\"bfloat16\"}", "no array of float16"},
		{"{\"dtype\":\"float32\"}", "{\"dtype\":\"int8_row\"}", "no array of float16"},
		{"{\"dtype\":\"float32\"}", "{\"dtype\":\"int32\"}", "no array of float16"},
		{"{\"dtype\":\"float32\"}", "{\"dtype\":\"float32\",\"columns\":4}", "no array of float16"},
		{"{\"dtype\":\"float32\"}", "\"float32\"", "not an object"},
		{"\"originals\": {", "\"originals\": {\"node/paper/feat\": {\"dtype\":\"float64\"},",
		 "no array of float16"},
		{"\"originals\": {", "\"originals\": {\"node/paper/none\": {\"dtype\":\"float64\"},",
		 "no array of float16"},
		{"\"minor\": 5", "\"minor\": 4", "minor version 5"},
	};
	struct gw_graph_meta *plain, *meta;
	char *text = with_originals(), *book;
	assert_int_equal(parsed(gw_fixture_json, &plain), GW_OK);
	assert_int_equal(parsed(text, &meta), GW_OK);
	check_originals(meta);
	assert_true(meta->graph_id != plain->graph_id);
	assert_int_equal(gw_meta_print_book(meta, &book), GW_OK);
	gw_meta_destroy(meta);
	assert_int_equal(gw_meta_parse_book(book, strlen(book), "book", &meta), GW_OK);
	assert_int_equal(meta->num_originals, 2);
	gw_meta_destroy(meta);
	gw_free(book);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		char *fault = sealed(replaced(text, faults[i].from, faults[i].to));
		gw_status status = strcmp(faults[i].says, "graph_id") == 0 ? GW_DIGEST : GW_FORMAT;
		expect_refusal(fault, status, faults[i].says);
		free(fault);
	}
	/* A newer version may know other forms. */
	char *newer = replaced(text, "\"minor\": 5", "\"minor\": 6");
	char *more = sealed(replaced(newer, "\"originals\": {",
				     "\"originals\": {\"node/paper/none\": {\"dtype\":\"float64\"},\"node/venue/x\": 7,"
				     "\"node/paper/feat\": {\"dtype\":\"float64\", \"shape\":[1]},"));
	assert_int_equal(parsed(more, &meta), GW_OK);
	check_originals(meta);
	gw_meta_destroy(meta);
	gw_meta_destroy(plain);
	free(newer);
	free(more);
	gw_free(text);
}

static void a_newer_major_version_is_refused(void **state)
{
	(void)state;
	char *next = replaced(gw_fixture_json, "graphwire-1", "graphwire-2"),
	     *text = replaced(next, "\"num_parts\"", "\"parts\"");
	expect_refusal(next, GW_VERSION,
		       "graphwire-2\"; this program reads graphwire-1: take the Graphwire that wrote it");
	expect_refusal(text, GW_VERSION, "build the graph again");
	free(next);
	free(text);
}

static gw_status read_newer(void *text)
{
	struct gw_graph_meta *meta;
	gw_status status = parsed(text, &meta);
	gw_meta_destroy(meta);
	return status;
}

static void memory_short(void **state)
{
	(void)state;
	char *newer = replaced(gw_fixture_json, MINOR, "\"minor\": 6,");
	char *added = sealed(replaced(newer, additions[3].from, additions[3].to));
	assert_true(gw_fault_each(read_newer, added) > 100);
	free(newer);
	free(added);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_flipped_bit_is_noticed),
		cmocka_unit_test(the_digest_is_of_all_bytes),
		cmocka_unit_test(a_digest_is_there_once),
		cmocka_unit_test(version_0_1_is_read),
		cmocka_unit_test(a_newer_minor_version_is_read),
		cmocka_unit_test(a_newer_minor_version_is_checked),
		cmocka_unit_test(units_of_times),
		cmocka_unit_test(narrow_rows_and_what_they_were),
		cmocka_unit_test(a_newer_major_version_is_refused),
		cmocka_unit_test(memory_short),
	};
	return cmocka_run_group_tests(tests, gw_fixture_json_set_up, gw_fixture_json_tear_down);
}
