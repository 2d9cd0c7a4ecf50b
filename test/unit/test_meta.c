/* The graph's JSON: printed and parsed without changes; and every error in it is one line that names the key. */
#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "core/graph/json.h"
#include "core/memory/alloc.h"
#include "test/support/alloc_fault.h"
#include "test/support/graph_fixture.h"
#include "test/support/scratch.h"

/* --- names and types ---------------------------------------------------------------------------------------------- */

static void test_names(void **state)
{
	(void)state;
	static const char *const fine[] = {"a", "feat", "A.b_c+d-9", "...", "_N"};
	static const char *const bad[] = {"", ".", "..", "a/b", "a b", "a:b", "\xc3\xa9", "a\n", "../x", "a\\b"};
	char longest[GW_NAME_MAX + 2];
	memset(longest, 'x', sizeof(longest));
	longest[GW_NAME_MAX + 1] = '\0';
	assert_int_equal(gw_name_check("feature", longest), GW_INVALID);
	longest[GW_NAME_MAX] = '\0';
	assert_int_equal(gw_name_check("feature", longest), GW_OK);
	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
		assert_int_equal(gw_name_check("feature", fine[i]), GW_OK);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(gw_name_check("feature", bad[i]), GW_INVALID);
		assert_non_null(strstr(gw_last_error(), "feature"));
	}
	for (int c = 1; c < 256; c++) {
		char name[2] = {(char)c, '\0'};
		bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
			    c == '+' || c == '-';
		assert_int_equal(gw_name_check("x", name), fits ? GW_OK : GW_INVALID);
	}
}

/* Two node types, three edge types, two parts. Each case below breaks it in one place. */
static struct gw_graph_meta *small(void)
{
	struct gw_graph_meta *meta;
	assert_int_equal(gw_meta_create("g", 2, 2, 3, &meta), GW_OK);
	strcpy(meta->ntypes[0].name, "a");
	strcpy(meta->ntypes[1].name, "b");
	for (int t = 0; t < 2; t++) {
		meta->ntypes[t].count = meta->ntypes[t].starts[2] = 10;
		meta->ntypes[t].starts[1] = 4;
	}
	for (uint32_t t = 0; t < 3; t++) {
		snprintf(meta->etypes[t].name, sizeof(meta->etypes[t].name), "e%u", t);
		meta->etypes[t].count = meta->etypes[t].starts[2] = 6;
		meta->etypes[t].dst = t == 1;
		meta->etypes[t].src = t != 1;
	}
	return meta;
}

static void test_finish(void **state)
{
	(void)state;
	struct gw_graph_meta *meta = small();
	meta->etypes[2].out_column = meta->etypes[1].out_column = 7; /* any number: a flag */
	meta->etypes[1].reverse = 2;
	assert_int_equal(gw_meta_finish(meta), GW_OK);
	assert_int_equal(gw_meta_finish(meta), GW_OK); /* a second call gives the same result */
	assert_string_equal(meta->etypes[1].folder, "a__e1__b");
	assert_int_equal(meta->ntypes[0].columns, 2);
	assert_int_equal(meta->ntypes[0].column_edge_types[1], 2);
	assert_int_equal(meta->etypes[2].column, 1);
	assert_int_equal(meta->ntypes[1].out_columns, 1);
	assert_int_equal(meta->ntypes[1].out_column_edge_types[0], 2);
	assert_int_equal(meta->etypes[2].out_column, 0);
	assert_int_equal(meta->etypes[0].out_column, GW_TYPE_NONE);
	uint32_t t;
	assert_int_equal(gw_meta_etype(meta, "b:e2:a", &t), GW_OK);
	assert_int_equal(t, 2);
	assert_int_equal(gw_meta_etype(meta, "e1", &t), GW_OK);
	assert_int_equal(t, 1);
	assert_int_equal(gw_meta_etype(meta, "a:e2:b", &t), GW_NOT_FOUND);
	assert_non_null(strstr(gw_last_error(), "b:e0:a a:e1:b b:e2:a"));
	assert_int_equal(gw_meta_ntype(meta, "b", &t), GW_OK);
	assert_int_equal(gw_meta_ntype(meta, "c", &t), GW_NOT_FOUND);
	assert_non_null(strstr(gw_last_error(), "a b"));
	strcpy(meta->etypes[1].name, "e2");
	assert_int_equal(gw_meta_finish(meta), GW_OK);
	assert_int_equal(gw_meta_etype(meta, "e2", &t), GW_NOT_FOUND); /* ambiguous */
	assert_non_null(strstr(gw_last_error(), "src:e2:dst"));
	gw_meta_destroy(meta);
}

static void test_finish_refuses(void **state)
{
	(void)state;
	for (int fault = 0;; fault++) {
		struct gw_graph_meta *meta = small();
		const char *text = "";
		switch (fault) {
		case 0:
			strcpy(meta->ntypes[1].name, "a");
			text = "\"a\"";
			break;
		case 1:
			strcpy(meta->ntypes[1].name, "../b");
			text = "../b";
			break;
		case 2:
			meta->ntypes[0].starts[0] = 1;
			text = "\"a\"";
			break;
		case 3:
			meta->ntypes[1].starts[1] = 11;
			text = "\"b\"";
			break;
		case 4:
			meta->ntypes[1].count = 9;
			text = "\"b\"";
			break;
		case 5:
			meta->etypes[1].src = 2;
			text = "e1";
			break;
		case 6: /* two types with the same folder name */
			strcpy(meta->ntypes[0].name, "x__y");
			strcpy(meta->ntypes[1].name, "x");
			strcpy(meta->etypes[0].name, "z");
			strcpy(meta->etypes[1].name, "y__z");
			meta->etypes[0].src = meta->etypes[0].dst = meta->etypes[1].dst = 0;
			meta->etypes[1].src = 1;
			text = "folder";
			break;
		case 7:
			meta->etypes[0].reverse = 3;
			text = "reverse";
			break;
		case 8:
			meta->etypes[0].reverse = 2; /* b:e2:a does not reverse b:e0:a */
			text = "reverse";
			break;
		case 9:
			meta->etypes[0].order = GW_ORDER_TIME_SRC;
			text = "time";
			break;
		case 10:
			meta->etypes[0].relations = 4;
			text = "relation";
			break;
		case 11:
			meta->etypes[2].starts[1] = 7;
			text = "e2";
			break;
		case 12:
			meta->ntypes[0].count = meta->ntypes[0].starts[2] = UINT64_MAX;
			text = "\"a\"";
			break;
		case 13:
			strcpy(meta->etypes[0].time_name, "when");
			text = "when";
			break;
		case 14: /* an array cannot be a time column and another array of the format */
		case 15:
		case 16:
		case 17:
			meta->etypes[0].order = GW_ORDER_TIME_SRC;
			strcpy(meta->etypes[0].time_name,
			       (const char *[]){"indices", "w.alias", "s.offsets", "orig_id"}[fault - 14]);
			text = meta->etypes[0].time_name;
			break;
		default:
			gw_meta_destroy(meta);
			assert_int_equal(fault, 18);
			return;
		}
		assert_int_equal(gw_meta_finish(meta), GW_INVALID);
		if (!strstr(gw_last_error(), text))
			fail_msg("fault %d: %s", fault, gw_last_error());
		gw_meta_destroy(meta);
	}
}

static void test_create_refuses(void **state)
{
	(void)state;
	struct gw_graph_meta *meta;
	assert_int_equal(gw_meta_create("g", 0, 1, 1, &meta), GW_INVALID);
	assert_null(meta);
	assert_int_equal(gw_meta_create("g", GW_PARTS_MAX + 1, 1, 1, &meta), GW_INVALID);
	assert_int_equal(gw_meta_create("g", 1, 0, 1, &meta), GW_INVALID);
	assert_int_equal(gw_meta_create("g", 1, 1, GW_TYPES_MAX + 1, &meta), GW_INVALID);
	assert_int_equal(gw_meta_create("g/h", 1, 1, 1, &meta), GW_INVALID);
}

/* --- the JSON ----------------------------------------------------------------------------------------------------- */

static void test_round_trip(void **state)
{
	(void)state;
	struct gw_graph_meta *meta;
	char *again;
	if (gw_meta_parse(gw_fixture_json, strlen(gw_fixture_json), "good.json", &meta) != GW_OK)
		fail_msg("%s", gw_last_error());
	assert_int_equal(gw_meta_print(meta, &again), GW_OK);
	assert_string_equal(gw_fixture_json, again);
	assert_int_equal(meta->num_parts, 2);
	assert_int_equal(meta->etypes[FIXTURE_WRITES].reverse, FIXTURE_WRITTEN_BY);
	assert_int_equal(meta->etypes[FIXTURE_WRITES].out_column, 0);
	assert_int_equal(meta->etypes[FIXTURE_CITES].order, GW_ORDER_TIME_SRC);
	assert_string_equal(meta->etypes[FIXTURE_CITES].time_name, "year");
	assert_int_equal(meta->etypes[FIXTURE_KNOWS].relations, 7);
	const struct gw_array_meta *array = gw_meta_array(meta, 1, "node/paper/feat");
	assert_non_null(array);
	assert_int_equal(array->dtype, GW_FLOAT32);
	assert_int_equal(array->shape[0], 20);
	assert_int_equal(array->shape[1], 5);
	assert_string_equal(array->file, "part1/node/paper/feat.npy");
	assert_null(gw_meta_array(meta, 1, "node/paper/none"));
	uint64_t id;
	assert_int_equal(gw_meta_digest(meta, &id), GW_OK);
	assert_int_equal(id, meta->graph_id);
	gw_free(again);
	gw_meta_destroy(meta);
}

static void test_dgl_keys(void **state)
{
	(void)state;
	json_t *root = json_loads(gw_fixture_json, 0, NULL), *range;
	json_int_t begin, end;
	assert_string_equal(json_string_value(json_object_get(root, "graph_name")), "fixture");
	assert_int_equal(json_integer_value(json_object_get(root, "num_nodes")), 40 + 21 + 3);
	assert_int_equal(json_integer_value(json_object_get(root, "num_edges")), 240 + 240 + 240 + 126);
	assert_int_equal(json_integer_value(json_object_get(root, "num_parts")), 2);
	assert_string_equal(json_string_value(json_object_get(root, "part_method")), "none");
	range = json_array_get(json_object_get(json_object_get(root, "node_map"), "paper"), 1);
	assert_int_equal(json_unpack(range, "[I,I]", &begin, &end), 0);
	assert_int_equal(begin, 20);
	assert_int_equal(end, 40);
	assert_true(json_is_array(json_object_get(json_object_get(root, "edge_map"), "paper:cites:paper")));
	assert_int_equal(json_integer_value(json_object_get(json_object_get(root, "ntypes"), "author")), 1);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(root, "etypes"), "author:knows:author")),
			 3);
	assert_true(json_is_object(json_object_get(root, "part-0")));
	assert_true(json_is_object(json_object_get(root, "part-1")));
	json_decref(root);
}

static char *replace_first(const char *text, const char *from, const char *to)
{
	const char *at = strstr(text, from);
	if (!at)
		fail_msg("the JSON has no %s", from);
	char *out = malloc(strlen(text) + strlen(to) + 1);
	sprintf(out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
	gw_json_digest_set(out, strlen(out)); /* the digest is not the error */
	return out;
}

static void test_edits(void **state)
{
	(void)state;
	static const struct {
		gw_status status;
		const char *from, *to, *says; /* says: part of the error */
	} edits[] = {
		/* not JSON, not ours */
		{GW_FORMAT, "{", "", "line"},
		{GW_FORMAT, "\n}\n", "", "line"},
		{GW_FORMAT, "\n}\n", "\n}}\n", "line"},
		{GW_FORMAT, "\"graphwire-1\",", "\"graphwire-1\"", "line"},
		{GW_VERSION, "graphwire-1", "graphwire-2", "graphwire-2"},
		{GW_FORMAT, "\"format\"", "\"fromat\"", "format"},
		{GW_FORMAT, "\"format\": \"graphwire-1\"", "\"format\": 1", "format"},
		/* keys that are missing, unknown, repeated, of another type */
		{GW_FORMAT, "\"graph_name\": \"fixture\",", "", "graph_name"},
		{GW_FORMAT, "\"graph_name\": \"fixture\"", "\"graph_name\": \"a b\"", "a b"},
		{GW_FORMAT, "\"graph_name\": \"fixture\"", "\"graph_name\": \"..\"", ".."},
		{GW_FORMAT, "\"graph_name\": \"fixture\"", "\"graph_name\": [\"fixture\"]", "graph_name"},
		{GW_FORMAT, "\"part_method\": \"none\"", "\"part_method\": \"\\u0000\"", "line"},
		{GW_FORMAT, "\"num_parts\": 2", "\"num_parts\": 2, \"halo\": 1", "halo"},
		{GW_FORMAT, "\"num_parts\": 2", "\"num_parts\": 2, \"num_parts\": 2", "duplicate"},
		{GW_FORMAT, "\"num_parts\": 2", "\"num_parts\": 2.0", "num_parts"},
		{GW_FORMAT, "\"num_parts\": 2", "\"num_parts\": -2", "num_parts"},
		{GW_FORMAT, "\"num_parts\": 2", "\"num_parts\": 0", "part-0"},
		{GW_FORMAT, "\"num_parts\": 2", "\"num_parts\": 70000", "num_parts"},
		{GW_FORMAT, "\"num_parts\": 2", "\"num_parts\": 99999999999999999999", "line"},
		{GW_FORMAT, "\"num_nodes\": 64", "\"num_nodes\": 65", "num_nodes"},
		{GW_FORMAT, "\"num_edges\": 846", "\"num_edges\": 845", "num_edges"},
		{GW_FORMAT, "\"num_nodes\": 64", "\"num_nodes\": \"64\"", "num_nodes"},
		/* parts: missing, too many, with wrong names */
		{GW_FORMAT, "\"num_parts\": 2", "\"num_parts\": 3", "3 parts"},
		{GW_FORMAT, "\"num_parts\": 2", "\"num_parts\": 1", "part-1"},
		{GW_FORMAT, "\"part-1\"", "\"part-01\"", "part-01"},
		{GW_FORMAT, "\"part-1\"", "\"part-0\"", "duplicate"},
		{GW_FORMAT, "\"part-1\"", "\"part-2\"", "part-2"},
		/* types */
		{GW_FORMAT, "\"author\": 1", "\"author\": 0", "same number"},
		{GW_FORMAT, "\"author\": 1", "\"author\": 3", "author"},
		{GW_FORMAT, "\"author\": 1", "\"../author\": 1", "../author"},
		{GW_FORMAT, "\"venue\": 2", "\"venue\": 2, \"x\": 3", "node_map"},
		{GW_FORMAT, "\"author:writes:paper\": 0", "\"author:writes\": 0", "author:writes"},
		{GW_FORMAT, "\"author:writes:paper\": 0", "\"author:writes:paper:x\": 0", "paper:x"},
		{GW_FORMAT, "\"author:writes:paper\": 0", "\"author:writes:book\": 0", "book"},
		{GW_FORMAT, "\"author:writes:paper\": 0", "\"author::paper\": 0", "author::paper"},
		{GW_FORMAT, "\"author:writes:paper\": 0", "\"author:writes:paper\": 1", "same number"},
		/* ranges */
		{GW_FORMAT, "\"venue\": [[0,1],[1,3]]", "\"venue\": [[0,1],[2,3]]", "venue"},
		{GW_FORMAT, "\"venue\": [[0,1],[1,3]]", "\"venue\": [[1,1],[1,3]]", "venue"},
		{GW_FORMAT, "\"venue\": [[0,1],[1,3]]", "\"venue\": [[0,3],[3,1]]", "venue"},
		{GW_FORMAT, "\"venue\": [[0,1],[1,3]]", "\"venue\": [[0,1]]", "venue"},
		{GW_FORMAT, "\"venue\": [[0,1],[1,3]]", "\"venue\": [[0,1,1],[1,3]]", "venue"},
		{GW_FORMAT, "\"venue\": [[0,1],[1,3]]", "\"venue\": [[0,1],7]", "venue"},
		{GW_FORMAT, "\"venue\": [[0,1],[1,3]]", "\"venue\": [[0,1],[1,\"3\"]]", "venue"},
		{GW_FORMAT, "\"venue\": [[0,1],[1,3]]", "\"street\": [[0,1],[1,3]]", "venue"},
		{GW_FORMAT, "\"venue\": [[0,1],[1,3]]", "\"venue\": [[0,1],[1,9223372036854775807]]", "venue"},
		/* columns, order, relations, reverse, transpose */
		{GW_FORMAT, "\"paper\": [\"author:writes:paper\",\"paper:cites:paper\"]",
		 "\"paper\": [\"paper:cites:paper\",\"author:writes:paper\"]", "indptr_columns"},
		{GW_FORMAT, "\"paper\": [\"author:writes:paper\",", "\"paper\": [", "indptr_columns"},
		{GW_FORMAT, "\"paper\": [\"author:writes:paper\",",
		 "\"papers\": [], \"paper\": [\"author:writes:paper\",", "no node type \"papers\""},
		{GW_FORMAT, "\"transpose\": [\"author:writes:paper\"]",
		 "\"transpose\": [\"author:writes:paper\",\"author:writes:paper\"]", "occurs twice"},
		{GW_FORMAT, "[\"time:year\",\"src\"]", "[\"time:year\"]", "order"},
		{GW_FORMAT, "[\"time:year\",\"src\"]", "[\"time:../y\",\"src\"]", "order"},
		{GW_FORMAT, "[\"time:year\",\"src\"]", "[\"time:weight.alias\",\"src\"]", "uses that name itself"},
		{GW_FORMAT, "[\"time:year\",\"src\"]", "[\"rel\",\"src\"]", "cites"},
		{GW_FORMAT, "[\"time:year\",\"src\"]", "[\"time:month\",\"src\"]", "month"},
		{GW_FORMAT, "[\"time:year\",\"src\"]", "[]", "order"},
		{GW_FORMAT, "[\"time:year\",\"src\"]", "3", "order"},
		{GW_FORMAT, "\"author:knows:author\": 7}", "\"author:knows:author\": 0}", "knows"},
		{GW_FORMAT, "\"author:knows:author\": 7}", "\"author:knows:author\": 4294967296}", "relations"},
		{GW_FORMAT, "\"author:knows:author\": 7}", "\"author:likes:author\": 7}", "likes"},
		{GW_FORMAT, "\"author:writes:paper\": \"paper:written-by:author\"",
		 "\"author:writes:paper\": \"paper:cites:paper\"", "reverse"},
		{GW_FORMAT, "\"transpose\": [\"author:writes:paper\"]", "\"transpose\": [\"writes\"]", "transpose"},
		{GW_FORMAT, "\"transpose\": [\"author:writes:paper\"]", "\"transpose\": []", "out"},
		{GW_FORMAT, "\"transpose\": [\"author:writes:paper\"]", "\"transpose\": [\"paper:cites:paper\"]",
		 "out"},
		/* arrays: names and files */
		{GW_FORMAT, "\"node/venue/x\": {", "\"node/venue/../x\": {", "node/venue/../x"},
		{GW_FORMAT, "\"node/venue/x\": {", "\"node/venue/..\": {", "node/venue/.."},
		{GW_FORMAT, "\"node/venue/x\": {", "\"node/venue/val_mask\": {", "val_mask\": its dtype cannot be"},
		{GW_FORMAT, "\"node/venue/x\": {", "\"node/venue\": {", "node/venue"},
		{GW_FORMAT, "\"node/venue/x\": {", "\"node/street/x\": {", "street"},
		{GW_FORMAT, "\"node/venue/x\": {", "\"thing/venue/x\": {", "thing"},
		{GW_FORMAT, "\"node/venue/x\": {", "\"node/venue/y\": {", "node/venue/"},
		{GW_FORMAT, "\"part0/node/venue/x.npy\"", "\"/etc/passwd.npy\"", "/etc/passwd"},
		{GW_FORMAT, "\"part0/node/venue/x.npy\"", "\"../x.npy\"", "../x.npy"},
		{GW_FORMAT, "\"part0/node/venue/x.npy\"", "\"part0/../../x.npy\"", "part0/../../x.npy"},
		{GW_FORMAT, "\"part0/node/venue/x.npy\"", "\"part0//x.npy\"", "part0//x.npy"},
		{GW_FORMAT, "\"part0/node/venue/x.npy\"", "\"./x.npy\"", "./x.npy"},
		{GW_FORMAT, "\"part0/node/venue/x.npy\"", "\"part0/x.txt\"", "part0/x.txt"},
		{GW_FORMAT, "\"part0/node/venue/x.npy\"", "\".npy\"", ".npy"},
		{GW_FORMAT, "\"part0/node/venue/x.npy\"", "\"part0/x\\n.npy\"", "file"},
		{GW_FORMAT, "\"part0/node/venue/x.npy\"", "7", "file"},
		/* arrays: dtype, shape, digest */
		{GW_FORMAT, "\"dtype\":\"bfloat16\"", "\"dtype\":\"complex64\"", "complex64"},
		{GW_FORMAT, "\"dtype\":\"bfloat16\"", "\"dtype\":\"float16\"", "half"},
		{GW_FORMAT, "\"shape\":[20,5]", "\"shape\":[21,5]", "feat"},
		{GW_FORMAT, "\"shape\":[20,5]", "\"shape\":[20,6]", "feat"},
		{GW_FORMAT, "\"shape\":[20,5]", "\"shape\":[20,0]", "feat"},
		{GW_FORMAT, "\"shape\":[20,5]", "\"shape\":[]", "shape"},
		{GW_FORMAT, "\"shape\":[20,5]", "\"shape\":[20,1,1,1,5]", "shape"},
		{GW_FORMAT, "\"shape\":[20,5]", "\"shape\":[20,-5]", "shape"},
		{GW_FORMAT, "\"shape\":[20,5]", "\"shape\":[20,9000000000000000000]", "feat"},
		{GW_FORMAT, "\"shape\":[20,5]", "\"shape\":\"20,5\"", "shape"},
		{GW_FORMAT, "\"shape\":[20,5],", "", "shape"},
		{GW_FORMAT, "\"shape\":[20,5],", "\"shape\":[20,5],\"order\":\"C\",", "besides"},
		{GW_FORMAT, "\"digest\":\"", "\"digest\":\"g", "digest"},
		{GW_FORMAT, "\"graph_id\": \"", "\"graph_id\": \"0", "graph_id"},
		{GW_FORMAT, "\"graph_id\": \"", "\"graph_id\": \"zzzz", "graph_id"},
	};
	int faults = 0;
	for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
		char *text = replace_first(gw_fixture_json, edits[i].from, edits[i].to);
		struct gw_graph_meta *meta;
		gw_status status = gw_meta_parse(text, strlen(text), "some.json", &meta);
		if (status != edits[i].status || !strstr(gw_last_error(), edits[i].says) ||
		    strncmp(gw_last_error(), "some.json: ", 11) != 0 || strchr(gw_last_error(), '\n')) {
			print_error("%s -> %s: %s: %s\n", edits[i].from, edits[i].to, gw_status_text(status),
				    gw_last_error());
			faults++;
		}
		assert_null(meta);
		free(text);
	}
	assert_int_equal(faults, 0);
}

/* Counts in a short text allocate no memory before they are checked. */
static size_t bytes_taken;

static void *count_bytes(size_t bytes)
{
	bytes_taken += bytes;
	return malloc(bytes);
}

static void *count_more_bytes(void *old, size_t bytes)
{
	bytes_taken += bytes;
	return realloc(old, bytes);
}

static void test_empty_claims(void **state)
{
	(void)state;
	static const struct gw_allocator counting = {count_bytes, count_more_bytes, free};
	char text[65536];
	size_t used = (size_t)snprintf(text, sizeof(text),
				       "{\"format\":\"graphwire-1\",\"graph_name\":\"g\",\"part_method\":\"x\","
				       "\"num_parts\":65536,\"etypes\":{},\"edge_map\":{}");
	for (int map = 0; map < 2; map++) {
		used += (size_t)snprintf(text + used, sizeof(text) - used, ",\"%s\":{", map ? "node_map" : "ntypes");
		for (int t = 0; t < 1000; t++)
			used += (size_t)snprintf(text + used, sizeof(text) - used,
						 map ? "%s\"t%d\":[]" : "%s\"t%d\":%d", t ? "," : "", t, t);
		used += (size_t)snprintf(text + used, sizeof(text) - used, "}");
	}
	used += (size_t)snprintf(text + used, sizeof(text) - used, "}");
	struct gw_graph_meta *meta;
	gw_allocator_set(&counting);
	gw_status status = gw_meta_parse(text, used, "some.json", &meta);
	gw_allocator_set(NULL);
	assert_int_equal(status, GW_FORMAT);
	assert_non_null(strstr(gw_last_error(), "some.json: \"node_map\": \"t0\" has 0 ranges"));
	assert_true(bytes_taken < 4 * used);
}

static void test_huge_texts(void **state)
{
	(void)state;
	const size_t bytes = 4u << 20;
	static const char fills[] = {'[', '{', '9', '"', ' ', '\0'};
	char *text = malloc(bytes);
	for (size_t i = 0; i < sizeof(fills); i++) {
		struct gw_graph_meta *meta;
		memset(text, fills[i], bytes);
		assert_int_equal(gw_meta_parse(text, bytes, "some.json", &meta), GW_FORMAT);
		assert_null(meta);
		memcpy(text, "{\"num_parts\":", 13);
		assert_int_equal(gw_meta_parse(text, bytes, "some.json", &meta), GW_FORMAT);
		assert_null(strchr(gw_last_error(), '\n'));
	}
	free(text);
}

/* Edits that keep the text well-formed and valid are detected by the id, if the text's own digest was recomputed. */
static void test_id(void **state)
{
	(void)state;
	struct gw_graph_meta *meta;
	char *edited = replace_first(gw_fixture_json, "\"digest\":\"", "\"digest\":\""),
	     *digest = strstr(edited, "\"digest\":\"");
	digest[10] = digest[10] == '0' ? '1' : '0';
	assert_int_equal(gw_meta_parse(edited, strlen(edited), "some.json", &meta), GW_DIGEST);
	assert_non_null(strstr(gw_last_error(), "json_digest"));
	assert_true(gw_json_digest_set(edited, strlen(edited)));
	assert_int_equal(gw_meta_parse(edited, strlen(edited), "some.json", &meta), GW_DIGEST);
	assert_non_null(strstr(gw_last_error(), "graph_id"));
	free(edited);
	char *renamed = replace_first(gw_fixture_json, "\"graph_name\": \"fixture\"", "\"graph_name\": \"other\"");
	assert_int_equal(gw_meta_parse(renamed, strlen(renamed), "some.json", &meta), GW_OK); /* only a name */
	gw_meta_destroy(meta);
	free(renamed);
}

static void test_every_cut(void **state)
{
	(void)state;
	size_t bytes = strlen(gw_fixture_json);
	for (size_t cut = 0; cut < bytes - 2; cut += cut < 200 ? 1 : 61) {
		struct gw_graph_meta *meta;
		char *block = malloc(cut + 1); /* exactly these bytes, without a terminator */
		memcpy(block, gw_fixture_json, cut);
		char *exact = realloc(block, cut ? cut : 1);
		assert_int_equal(gw_meta_parse(exact, cut, "cut.json", &meta), GW_FORMAT);
		free(exact);
	}
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

static gw_status parse_and_print(void *context)
{
	struct gw_graph_meta *meta, *copy = NULL;
	char *text = NULL;
	(void)context;
	gw_status status = gw_meta_parse(gw_fixture_json, strlen(gw_fixture_json), "good.json", &meta);
	if (status == GW_OK)
		status = gw_meta_print(meta, &text);
	if (status == GW_OK)
		status = gw_meta_copy(meta, &copy);
	gw_meta_destroy(copy);
	gw_meta_destroy(meta);
	gw_free(text);
	return status;
}

static void test_memory_short(void **state)
{
	(void)state;
	assert_true(gw_fault_each(parse_and_print, NULL) > 100);
}

/* jansson's own allocations, which do not use our hook. */
static long json_allocations_left;

static void *json_allocate(size_t bytes)
{
	return json_allocations_left-- > 0 ? malloc(bytes) : NULL;
}

static void test_memory_short_in_jansson(void **state)
{
	(void)state;
	struct gw_graph_meta *whole;
	assert_int_equal(gw_meta_parse(gw_fixture_json, strlen(gw_fixture_json), "good.json", &whole), GW_OK);
	json_set_alloc_funcs(json_allocate, free);
	for (long n = 0, done = 0; done < 2; n = n < 50 ? n + 1 : n + 37) {
		struct gw_graph_meta *meta;
		char *text;
		done = 0;
		json_allocations_left = n;
		gw_status status = gw_meta_parse(gw_fixture_json, strlen(gw_fixture_json), "good.json", &meta);
		assert_true(status == GW_OK || status == GW_NO_MEMORY || status == GW_FORMAT);
		if (status == GW_OK) {
			gw_meta_destroy(meta);
			done++;
		}
		json_allocations_left = n;
		status = gw_meta_print(whole, &text);
		assert_true(status == GW_OK || status == GW_NO_MEMORY);
		if (status == GW_OK) { /* complete, or no text */
			assert_string_equal(text, gw_fixture_json);
			gw_free(text);
			done++;
		}
	}
	json_set_alloc_funcs(malloc, free);
	gw_meta_destroy(whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_finish),
		cmocka_unit_test(test_finish_refuses),
		cmocka_unit_test(test_create_refuses),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_dgl_keys),
		cmocka_unit_test(test_edits),
		cmocka_unit_test(test_id),
		cmocka_unit_test(test_every_cut),
		cmocka_unit_test(test_memory_short),
		cmocka_unit_test(test_memory_short_in_jansson),
		cmocka_unit_test(test_empty_claims),
		cmocka_unit_test(test_huge_texts),
	};
	return cmocka_run_group_tests(tests, gw_fixture_json_set_up, gw_fixture_json_tear_down);
}
