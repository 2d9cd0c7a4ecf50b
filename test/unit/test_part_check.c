/* Invalid numbers with correct digests: each is found and named, with any number of threads. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "core/graph/alias.h"
#include "core/graph/npy.h"
#include "core/graph/times.h"
#include "core/memory/alloc.h"
#include "core/numbers/digest.h"
#include "test/support/graph_fixture.h"
#include "test/support/part_files.h"
#include "test/support/partition_run.h"
#include "tools/builder/builder.h"
#include "tools/verify_times.h"

static void forge(const char *folder, const char *key, uint64_t at, const void *bytes, size_t count)
{
	part_forge(folder, "fixture.json", 0, key, at, bytes, count);
}

#define U32(...) 4, (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__})
#define U64(...) 8, (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__})
#define U8(...)  1, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

static void test_senseless_numbers(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, 2, 60, 1);
	/* the first lists with at least two edges, whose entries the cases swap */
	uint64_t pair[GW_FIXTURE_ETYPES];
	for (uint32_t t = 0; t < GW_FIXTURE_ETYPES; t++) {
		const uint64_t *indptr = fixture.edges[t].indptr;
		uint64_t row = 0;
		while (indptr[row + 1] - indptr[row] < 2)
			row++;
		pair[t] = indptr[row];
	}
	const struct {
		const char *key;
		uint64_t element; /* from here on */
		size_t width;
		const void *bytes;
		size_t count;
		gw_status status;
		const char *says;
	} cases[] = {
		{"node/paper/indptr", 0, U32(1), GW_FORMAT, "row 0, column 0"},
		{"node/paper/indptr", 1, U32(1), GW_FORMAT, "row 0, column 1"},
		{"node/paper/indptr", 2 * 7, U32(UINT32_MAX), GW_FORMAT, "row 6, column 0"},
		{"node/paper/indptr", 2 * 60 + 1, U32(0), GW_FORMAT, "row 60, column 1"},
		{"node/author/out_indptr", 0, U32(1), GW_FORMAT, "row 0, column 0"},
		{"node/author/out_indptr", 5, U32(UINT32_MAX), GW_FORMAT, "row 4, column 0"},
		{"edge/author__writes__paper/indices", 5, U32(31), GW_RANGE, "position 5: id 31"},
		{"edge/author__writes__paper/indices", 359, U32(UINT32_MAX), GW_RANGE, "position 359"},
		{"edge/author__writes__paper/indices", pair[0], U32(30, 0), GW_FORMAT, "order"},
		{"edge/paper__cites__paper/indices", 0, U32(60), GW_RANGE, "position 0"},
		{"edge/paper__cites__paper/year", pair[2], U64(INT64_MAX), GW_FORMAT, "order"},
		{"edge/paper__cites__paper/year", pair[2], U64(5, -5ull), GW_FORMAT, "order"},
		{"edge/author__knows__author/rel", 3, U8(7), GW_RANGE, "position 3: relation 7 of 7"},
		{"edge/author__knows__author/rel", pair[3], U8(6, 0), GW_FORMAT, "order"},
		{"edge/paper__cites__paper/weight.alias", 1, U32(100000), GW_RANGE, "position 0: alias 100000"},
		{"edge/paper__cites__paper/weight.alias", 2 * pair[2] + 3, U32(GW_ALIAS_NONE), GW_RANGE, "alias"},
		{"node/paper/train_mask", 9, U8(2), GW_RANGE, "byte 9 is 2"},
		{"node/paper/orig_id.offsets", 0, U64(1), GW_FORMAT, "runs from 1"},
		{"node/paper/orig_id.offsets", 60, U64(1), GW_FORMAT, "to 1,"},
		{"node/paper/orig_id.offsets", 4, U64(UINT64_MAX), GW_FORMAT, "entry 3"},
		{"edge/author__writes__paper/out/indices", 2, U32(60), GW_RANGE, "position 2: id 60"},
		{"edge/author__writes__paper/out/eid", 2, U64(360), GW_RANGE, "position 2: edge 360"},
		{"edge/author__writes__paper/out/eid", 0, U64(359), GW_FORMAT, "position 0: edge 359 does not go"},
		{"node/author/orig_id.index", 0, U64(UINT64_MAX), GW_FORMAT, "row 0: its key belongs to another"},
		{"node/author/orig_id.index", 1, U64(31), GW_RANGE, "row 0: node 31 of 31"},
		{"node/paper/orig_id.index", 2, U64(60), GW_RANGE, "row 0: node 60 of 60"},
		{"node/paper/orig_id.buckets", 0, U32(1), GW_FORMAT, "runs from 1"},
		{"node/paper/orig_id.buckets", 16, U32(59), GW_FORMAT, "runs from 0 to 59"},
		{"node/paper/orig_id.buckets", 3, U32(UINT32_MAX), GW_FORMAT, "row 2: the bucket is"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gw_graph_meta *meta;
		char file[128];
		gw_fixture_write(&fixture);
		forge(fixture.folder, cases[i].key, cases[i].element * cases[i].width, cases[i].bytes, cases[i].count);
		assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
		/* an error of list order names the ids, whichever key is wrong */
		bool order = strcmp(cases[i].says, "order") == 0;
		snprintf(file, sizeof(file), "part0/%s.npy", cases[i].key);
		part_expect_fault(meta, cases[i].status, order ? "/indices.npy" : file, order ? "edge/" : cases[i].key,
				  cases[i].says);
		struct gw_part *part;
		struct gw_part_options trusting = {.mapped = true, .skip_checks = true};
		assert_int_equal(gw_part_open(meta, 0, &trusting, &part), GW_OK);
		assert_int_equal(gw_part_check(part, 3), cases[i].status); /* with any number of threads */
		gw_part_close(part);
		gw_meta_destroy(meta);
		assert_int_equal(gw_remove_tree(fixture.folder), GW_OK);
	}
	gw_fixture_end(&fixture);
}

/* Only the order is wrong. */
static void test_transposed_order(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	struct gw_graph_meta *meta;
	struct gw_part *part;
	gw_fixture_begin(&fixture, 2, 60, 1);
	gw_fixture_write(&fixture);
	assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
	part_open(meta, 0, true, &part);
	const struct gw_adjacency *a = gw_part_out_adjacency(part, FIXTURE_WRITES);
	uint64_t from, to, row = 0;
	do
		gw_adjacency_list(a, row++, &from, &to);
	while (to - from < 2 || gw_load_id(a->indices, 4, from) == gw_load_id(a->indices, 4, from + 1));
	const uint32_t ids[2] = {((const uint32_t *)a->indices)[from + 1], ((const uint32_t *)a->indices)[from]};
	const uint64_t eid[2] = {a->eid[from + 1], a->eid[from]};
	gw_part_close(part);
	gw_meta_destroy(meta);
	forge(fixture.folder, "edge/author__writes__paper/out/indices", from * 4, ids, sizeof(ids));
	forge(fixture.folder, "edge/author__writes__paper/out/eid", from * 8, eid, sizeof(eid));
	assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
	part_expect_fault(meta, GW_FORMAT, "out/indices.npy", "edge/author__writes__paper/out/indices", "order");
	gw_meta_destroy(meta);
	gw_fixture_end(&fixture);
}

/* In a list of which no edge can be drawn, every alias word must say so. */
static void test_list_without_weight(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	struct gw_graph_meta *meta;
	struct gw_part *part;
	uint32_t none[2 * 64];
	gw_fixture_begin(&fixture, 2, 60, 1);
	const uint64_t *indptr = fixture.edges[FIXTURE_CITES].indptr;
	uint64_t row = 0;
	while (indptr[row + 1] - indptr[row] < 2 || indptr[row + 1] - indptr[row] > 64)
		row++;
	uint64_t edges = indptr[row + 1] - indptr[row];
	for (uint32_t threshold = 0; threshold < 2; threshold++) {
		for (uint64_t i = 0; i < edges; i++) {
			none[2 * i] = i + 1 == edges ? threshold : 0;
			none[2 * i + 1] = GW_ALIAS_NONE;
		}
		gw_fixture_write(&fixture);
		forge(fixture.folder, "edge/paper__cites__paper/weight.alias", indptr[row] * 8, none, edges * 8);
		assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
		if (threshold == 0) {
			part_open(meta, 0, true, &part);
			gw_part_close(part);
		} else {
			part_expect_fault(meta, GW_RANGE, "weight.alias.npy", "weight.alias", "threshold 1");
		}
		gw_meta_destroy(meta);
		assert_int_equal(gw_remove_tree(fixture.folder), GW_OK);
	}
	gw_fixture_end(&fixture);
}

/* Of times there are the fence of "year" and an index of "label"; more arrays are added by name. */
static gw_status write_times(const struct gw_fixture *fixture, const char *more, gw_dtype dtype, uint64_t rows,
			     const void *data, uint32_t minor)
{
	const struct gw_time_index index = {.ntype = 0, .name = "label"};
	struct gw_writer *writer;
	uint64_t bytes = 0;
	assert_int_equal(gw_writer_open(fixture->folder, fixture->schema, false, &writer), GW_OK);
	gw_writer_set_minor(writer, minor);
	assert_int_equal(gw_fixture_fill(fixture, writer), GW_OK);
	gw_status status = minor < GW_FORMAT_MINOR_TIMES ? GW_OK : gw_times_write(writer, &index, 1, 2, &bytes);
	assert_int_equal(status, GW_OK);
	if (more)
		status = gw_writer_array(writer, 0, more, dtype, 1, &rows, data);
	if (status == GW_OK)
		return gw_writer_commit(writer, NULL);
	gw_writer_abort(writer);
	return status;
}

static void test_forged_times(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, 2, 200, 1);
	const struct {
		const char *key;
		uint64_t element;
		size_t width;
		const void *bytes;
		size_t count;
		gw_status status;
		const char *says;
	} cases[] = {
		{"edge/paper__cites__paper/year.fence", 18, U64(21), GW_FORMAT,
		 "entry 18: not the key of the time at "
		 "position 1152"},
		{"edge/paper__cites__paper/year.fence", 0, U64(-21ull), GW_FORMAT, "entry 0"},
		{"node/paper/label.times", 100, U64(INT64_MAX), GW_FORMAT, "entry 100: not the key"},
		{"node/paper/label.times_nodes", 7, U32(200), GW_RANGE, "entry 7: row 200 of 200"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gw_graph_meta *meta;
		struct gw_part *part;
		char file[128];
		assert_int_equal(write_times(&fixture, NULL, 0, 0, NULL, GW_FORMAT_MINOR_TIMES), GW_OK);
		assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
		assert_int_equal(meta->minor, GW_FORMAT_MINOR_TIMES);
		part_open(meta, 0, true, &part);
		gw_part_close(part);
		gw_meta_destroy(meta);
		forge(fixture.folder, cases[i].key, cases[i].element * cases[i].width, cases[i].bytes, cases[i].count);
		assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
		snprintf(file, sizeof(file), "part0/%s.npy", cases[i].key);
		part_expect_fault(meta, cases[i].status, file, cases[i].key, cases[i].says);
		gw_meta_destroy(meta);
		assert_int_equal(gw_remove_tree(fixture.folder), GW_OK);
	}
	gw_fixture_end(&fixture);
}

/* Two entries exchanged, and one entry twice: keys and rows fit one another. */
static void test_forged_order_of_nodes(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	struct gw_graph_meta *meta;
	struct gw_part *part;
	gw_fixture_begin(&fixture, 2, 200, 1);
	assert_int_equal(write_times(&fixture, NULL, 0, 0, NULL, GW_FORMAT_MINOR_TIMES), GW_OK);
	assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
	part_open(meta, 0, true, &part);
	int64_t keys[2];
	uint32_t rows[2];
	memcpy(keys, gw_part_array(part, "node/paper/label.times")->data + 9 * sizeof(keys[0]), sizeof(keys));
	memcpy(rows, gw_part_array(part, "node/paper/label.times_nodes")->data + 9 * sizeof(rows[0]), sizeof(rows));
	gw_part_close(part);
	gw_meta_destroy(meta);
	for (int twice = 0; twice < 2; twice++) {
		int64_t forged_keys[2] = {keys[1], keys[twice]};
		uint32_t forged_rows[2] = {rows[1], rows[twice]};
		forge(fixture.folder, "node/paper/label.times", 9 * sizeof(keys[0]), forged_keys, sizeof(forged_keys));
		forge(fixture.folder, "node/paper/label.times_nodes", 9 * sizeof(rows[0]), forged_rows,
		      sizeof(forged_rows));
		assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
		part_expect_fault(meta, GW_FORMAT, "label.times_nodes.npy", "label.times_nodes",
				  "entry 10: out of order");
		gw_meta_destroy(meta);
	}
	gw_fixture_end(&fixture);
}

/* Lists by real numbers: their order, -0.0 among them, and no NaN. */
static void test_real_times(void **state)
{
	(void)state;
	static const char key[] = "edge/_N___E___N/t";
	static const uint64_t src[] = {0, 1, 2, 3, 0}, dst[] = {1, 1, 1, 1, 1};
	static const double t[] = {2.5, -0.0, -1e300, 0.0, -1.5}, nan[] = {(double)NAN}, low[] = {-3};
	static const char *const times[] = {"t"};
	struct gw_builder_edges edges = {.count = 5, .src = src, .dst = dst};
	struct gw_builder_array array = {.name = "t", .dtype = GW_FLOAT64, .ndim = 1, .shape = {5}, .data = t};
	struct gw_builder_options options = {.quiet = true, .replace = true, .times = times, .num_times = 1};
	struct gw_graph_meta *meta;
	struct gw_part *part;
	char root[64], folder[96];
	gw_test_folder(root);
	snprintf(folder, sizeof(folder), "%s/graph", root);
	for (int forged = 0; forged < 3; forged++) {
		struct gw_builder *builder;
		uint32_t ntype, etype;
		assert_int_equal(gw_builder_create("fixture", &builder), GW_OK);
		assert_int_equal(gw_builder_ntype(builder, "_N", &ntype), GW_OK);
		gw_builder_ntype_count(builder, ntype, 4);
		assert_int_equal(gw_builder_etype(builder, ntype, "_E", ntype, &edges, &etype), GW_OK);
		assert_int_equal(gw_builder_edge_array(builder, etype, &array), GW_OK);
		assert_int_equal(gw_builder_write(builder, folder, &options, NULL), GW_OK);
		gw_builder_destroy(builder);
		if (forged)
			forge(folder, key, 4 * sizeof(double), forged == 1 ? nan : low, sizeof(double));
		assert_int_equal(gw_meta_read(folder, &meta), GW_OK);
		if (forged == 1) {
			part_expect_fault(meta, GW_RANGE, "t.npy", key, "position 4: a time is no number");
		} else if (forged == 2) {
			part_expect_fault(meta, GW_FORMAT, "indices.npy", "edge/_N___E___N", "out of the list's order");
		} else {
			const double sorted[] = {-1e300, -1.5, -0.0, 0.0, 2.5};
			part_open(meta, 0, true, &part);
			assert_memory_equal(gw_part_array(part, key)->data, sorted, sizeof(sorted));
			gw_part_close(part);
		}
		gw_meta_destroy(meta);
	}
	assert_int_equal(gw_remove_tree(root), GW_OK);
}

/* Times with a unit, by which no list is sorted: a missing one is refused by the writer, and by the loader. */
static void test_missing_times(void **state)
{
	(void)state;
	static const char key[] = "edge/_N___E___N/t";
	static const uint64_t ends[] = {0, 1, 2, 3, 0};
	static const int64_t lacking[] = {1, INT64_MIN, 3, 4, 5}, all[] = {1, -2, 3, 4, 5};
	struct gw_builder_edges edges = {.count = 5, .src = ends, .dst = ends};
	struct gw_builder_array array = {
		.name = "t", .dtype = GW_INT64, .ndim = 1, .shape = {5}, .data = lacking, .unit = GW_UNIT_S};
	struct gw_builder_options options = {.quiet = true, .replace = true};
	char root[64], folder[96];
	gw_test_folder(root);
	snprintf(folder, sizeof(folder), "%s/graph", root);
	for (int complete = 0; complete < 2; complete++) {
		struct gw_builder *builder;
		uint32_t ntype, etype;
		array.data = complete ? all : lacking;
		assert_int_equal(gw_builder_create("fixture", &builder), GW_OK);
		assert_int_equal(gw_builder_ntype(builder, "_N", &ntype), GW_OK);
		gw_builder_ntype_count(builder, ntype, 4);
		assert_int_equal(gw_builder_etype(builder, ntype, "_E", ntype, &edges, &etype), GW_OK);
		assert_int_equal(gw_builder_edge_array(builder, etype, &array), GW_OK);
		assert_int_equal(gw_builder_write(builder, folder, &options, NULL), complete ? GW_OK : GW_RANGE);
		gw_builder_destroy(builder);
	}
	for (int forged = 0; forged < 2; forged++) {
		struct gw_graph_meta *meta;
		struct gw_part *part;
		assert_int_equal(gw_meta_read(folder, &meta), GW_OK);
		if (forged) {
			part_expect_fault(meta, GW_RANGE, "t.npy", key, "entry 4: no time (NaT)");
		} else {
			part_open(meta, 0, true, &part);
			gw_part_close(part);
			forge(folder, key, 4 * sizeof(int64_t), &lacking[1], sizeof(int64_t));
		}
		gw_meta_destroy(meta);
	}
	assert_int_equal(gw_remove_tree(root), GW_OK);
}

/* All times of sources are right, or one is not. */
static void test_times_of_sources(void **state)
{
	(void)state;
	static const char key[] = "edge/paper__cites__paper/label.source";
	struct gw_fixture fixture;
	struct gw_graph_meta *meta;
	struct gw_part *part;
	int64_t times[1200];
	gw_fixture_begin(&fixture, 2, 200, 1);
	const struct gw_fixture_edges *cites = &fixture.edges[FIXTURE_CITES];
	assert_int_equal(cites->count, 1200);
	gw_fixture_write(&fixture);
	assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
	part_open(meta, 0, true, &part);
	const int64_t *labels = (const int64_t *)gw_part_array(part, "node/paper/label")->data;
	for (uint64_t i = 0; i < cites->count; i++)
		times[i] = labels[cites->src[i]];
	gw_part_close(part);
	gw_meta_destroy(meta);
	for (int wrong = 0; wrong < 2; wrong++) {
		assert_int_equal(gw_remove_tree(fixture.folder), GW_OK);
		times[1199] ^= wrong;
		assert_int_equal(write_times(&fixture, key, GW_INT64, 1200, times, GW_FORMAT_MINOR_TIMES), GW_OK);
		assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
		gw_status status = gw_verify_source_times(meta, 2);
		assert_int_equal(status, wrong ? GW_FORMAT : GW_OK);
		if (wrong && !strstr(gw_last_error(), "position 1199: not the time of its source"))
			fail_msg("%s", gw_last_error());
		gw_meta_destroy(meta);
	}
	gw_fixture_end(&fixture);
}

/* A graph of an older version that has a feature of such a name, and lists by time, keeps both, and gets no fence. */
static void test_partition_of_older_names(void **state)
{
	(void)state;
	static const uint64_t zeros[1024];
	struct gw_fixture fixture;
	struct gw_graph_meta *meta;
	char out[128];
	const char *words[] = {"--num-parts=2", "--method=random", NULL, NULL};
	gw_fixture_begin(&fixture, 2, 60, 1);
	snprintf(out, sizeof(out), "%s/parts", fixture.root);
	assert_int_equal(write_times(&fixture, "edge/paper__cites__paper/x.fence", GW_FLOAT32, 360, zeros, 0), GW_OK);
	partition_run_ok(fixture.root, fixture.folder, out, words);
	assert_int_equal(gw_meta_read(out, &meta), GW_OK);
	assert_int_equal(meta->minor, 2);
	assert_non_null(gw_meta_array(meta, 1, "edge/paper__cites__paper/x.fence"));
	assert_null(gw_meta_array(meta, 1, "edge/paper__cites__paper/year.fence"));
	gw_meta_destroy(meta);
	words[2] = "--time=label";
	snprintf(out, sizeof(out), "%s/other", fixture.root);
	partition_expect_error(&fixture, fixture.folder, out, words, 1, "ends in .source, .fence");
	gw_fixture_end(&fixture);
}

/* A sorted graph of an older version gets a fence when it is partitioned. */
static void test_partition_of_older_order(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	struct gw_graph_meta *meta;
	struct gw_part *part;
	char out[128];
	const char *words[] = {"--num-parts=2", "--method=random", NULL};
	gw_fixture_begin(&fixture, 2, 60, 1);
	snprintf(out, sizeof(out), "%s/parts", fixture.root);
	assert_int_equal(write_times(&fixture, NULL, 0, 0, NULL, 0), GW_OK);
	partition_run_ok(fixture.root, fixture.folder, out, words);
	assert_int_equal(gw_meta_read(out, &meta), GW_OK);
	assert_int_equal(meta->minor, GW_FORMAT_MINOR_TIMES);
	assert_non_null(gw_meta_array(meta, 1, "edge/paper__cites__paper/year.fence"));
	for (uint32_t p = 0; p < 2; p++) {
		part_open(meta, p, true, &part);
		gw_part_close(part);
	}
	gw_meta_destroy(meta);
	gw_fixture_end(&fixture);
}

/* Arrays that no times are behind. In older minor versions their names are the user's. */
static void test_times_of_nothing(void **state)
{
	(void)state;
	static const struct {
		const char *key;
		gw_dtype dtype;
		uint64_t rows;
		const char *says;
	} cases[] = {
		{"edge/author__writes__paper/year.fence", GW_INT64, 6, "not sorted by this time"},
		{"edge/paper__cites__paper/yea.fence", GW_INT64, 6, "not sorted by this time"},
		{"edge/paper__cites__paper/label.source", GW_INT32, 360, "no feature \"label\" of this dtype"},
		{"edge/paper__cites__paper/label.source", GW_INT64, 6, "6 rows"},
		{"edge/paper__cites__paper/label.source", GW_UINT64, 360, "dtype cannot be uint64"},
		{"edge/author__writes__paper/label.source", GW_INT64, 360, "node type \"author\" has no feature"},
		{"edge/paper__cites__paper/feat.source", GW_FLOAT32, 360, "no feature \"feat\" of this dtype"},
		{"node/author/x.times", GW_INT64, 31, "\"x\" is no feature of times"},
		{"node/author/orig_id.times", GW_INT64, 31, "without \"orig_id.times_nodes\""},
		{"node/author/orig_id.times_nodes", GW_UINT32, 31, "without \"orig_id.times\""},
		{"node/paper/feat.times", GW_INT64, 60, "\"feat\" is no feature of times"},
	};
	static const uint64_t zeros[1024];
	struct gw_fixture fixture;
	struct gw_graph_meta *meta;
	gw_fixture_begin(&fixture, 2, 60, 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		gw_status status = write_times(&fixture, cases[i].key, cases[i].dtype, cases[i].rows, zeros,
					       GW_FORMAT_MINOR_TIMES);
		if (status != GW_INVALID || !strstr(gw_last_error(), cases[i].says))
			fail_msg("%s: %s: %s", cases[i].key, gw_status_text(status), gw_last_error());
	}
	assert_int_equal(write_times(&fixture, "node/author/x.times", GW_INT64, 31, zeros, GW_FORMAT_MINOR_SPLITS),
			 GW_OK);
	assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
	assert_int_equal(meta->minor, GW_FORMAT_MINOR_SPLITS);
	gw_meta_destroy(meta);
	gw_fixture_end(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_senseless_numbers),
		cmocka_unit_test(test_transposed_order),
		cmocka_unit_test(test_list_without_weight),
		cmocka_unit_test(test_forged_times),
		cmocka_unit_test(test_forged_order_of_nodes),
		cmocka_unit_test(test_times_of_nothing),
		cmocka_unit_test(test_missing_times),
		cmocka_unit_test(test_times_of_sources),
		cmocka_unit_test(test_partition_of_older_names),
		cmocka_unit_test(test_partition_of_older_order),
		cmocka_unit_test(test_real_times),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
