/* The builder: refusals before and during the write; and a complete graph that opens again, also when memory is short.
 * test_import and test_rmat check the contents of lists. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "core/graph/part.h"
#include "test/support/alloc_fault.h"
#include "test/support/graph_fixture.h"
#include "tools/builder/builder.h"

#define NODES 5u
#define EDGES 7u

static const uint64_t src[EDGES] = {0, 1, 2, 3, 4, 0, 0}, dst[EDGES] = {1, 2, 3, 4, 0, 1, 3};
static const int64_t times[EDGES] = {5, -3, 5, INT64_MIN, INT64_MAX, 2, 0};
static const uint32_t relations[EDGES] = {2, 0, 1, 2, 2, 0, 1};
static const float weights[EDGES] = {1, 0.5f, 0, 3, 2, 4, 0};
static const uint64_t name_offsets[4] = {0, 3, 3, 7};

static struct gw_builder *start(uint32_t *ntype)
{
	struct gw_builder *builder;
	assert_int_equal(gw_builder_create("g", &builder), GW_OK);
	assert_int_equal(gw_builder_ntype(builder, "n", ntype), GW_OK);
	gw_builder_ntype_count(builder, *ntype, NODES);
	return builder;
}

static gw_status write_to(struct gw_builder *builder, const char *folder)
{
	const struct gw_builder_options options = {.threads = 2, .quiet = true, .replace = true};
	return gw_builder_write(builder, folder, &options, NULL);
}

static struct gw_builder_edges plain(void)
{
	return (struct gw_builder_edges){.count = EDGES, .src = src, .dst = dst};
}

static void expect_no_graph(struct gw_builder *builder, gw_status wanted, const char *says)
{
	char root[64], folder[96];
	gw_test_folder(root);
	snprintf(folder, sizeof(folder), "%s/g", root);
	gw_status status = write_to(builder, folder);
	if (status != wanted || !strstr(gw_last_error(), says))
		fail_msg("%s: %s", gw_status_text(status), gw_last_error());
	DIR *directory = opendir(root);
	for (const struct dirent *entry; (entry = readdir(directory));)
		assert_true(entry->d_name[0] == '.');
	closedir(directory);
	gw_builder_destroy(builder);
	assert_int_equal(gw_remove_tree(root), GW_OK);
}

static void test_too_many_nodes(void **state)
{
	(void)state;
	static const uint64_t counts[] = {1ull << 40, (1ull << 61) + 1, (1ull << 62) + 1, INT64_MAX - 1, UINT64_MAX};
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		uint32_t ntype;
		struct gw_builder *builder = start(&ntype);
		gw_builder_ntype_count(builder, ntype, counts[i]);
		expect_no_graph(builder, GW_LIMIT, "node type \"n\"");
	}
}

static void test_values_out_of_range(void **state)
{
	(void)state;
	for (int fault = 0; fault < 4; fault++) {
		uint32_t ntype, etype;
		struct gw_builder *builder = start(&ntype);
		struct gw_builder_edges edges = plain();
		float bad_weights[EDGES] = {1, 1, 1, 1, 1, 1, 1};
		uint64_t bad_src[EDGES] = {0, 1, NODES, 0, 0, 0, 0};
		if (fault == 0)
			edges.src = bad_src;
		if (fault == 1) {
			edges.rel = relations;
			edges.relations = 2; /* one of them is 2 */
		}
		assert_int_equal(gw_builder_etype(builder, ntype, "e", ntype, &edges, &etype), GW_OK);
		if (fault >= 2) {
			bad_weights[4] = fault == 2 ? strtof("nan", NULL) : -1;
			struct gw_builder_array array = {
				.name = "w", .dtype = GW_FLOAT32, .ndim = 1, .shape = {EDGES}, .data = bad_weights};
			array.weight = true;
			assert_int_equal(gw_builder_edge_array(builder, etype, &array), GW_OK);
		}
		expect_no_graph(builder, GW_RANGE,
				(const char *[]){"edge 2", "relation 2 of 2", "weight \"w\"", "weight \"w\""}[fault]);
	}
}

static void test_refusals(void **state)
{
	(void)state;
	uint32_t ntype, etype;
	struct gw_builder *builder = start(&ntype);
	struct gw_builder_edges edges = plain();
	edges.time = times;
	edges.time_name = "when";
	edges.rel = relations;
	edges.relations = 3;
	assert_int_equal(gw_builder_etype(builder, ntype, "e", ntype, &edges, &etype), GW_UNSUPPORTED);
	edges.rel = NULL;
	assert_int_equal(gw_builder_etype(builder, ntype, "e", ntype, &edges, &etype), GW_OK);
	assert_int_equal(gw_builder_etype(builder, ntype, "e", ntype, &edges, &etype), GW_EXISTS);
	assert_int_equal(gw_builder_etype(builder, ntype, "e:f", ntype, &edges, &etype), GW_INVALID);
	/* names that the format or the type itself uses: refused at once, not after the sorting */
	static const char *const taken[] = {"indices", "orig_id",   "orig_id.inverse", "rel",    "when",
					    "../x",    "x.offsets", "x.bytes",         "x.alias"};
	struct gw_builder_array array = {.dtype = GW_UINT8, .ndim = 1, .shape = {EDGES}, .data = weights};
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		array.name = taken[i];
		assert_int_equal(gw_builder_edge_array(builder, etype, &array), GW_INVALID);
		assert_non_null(strstr(gw_last_error(), taken[i]));
	}
	array.name = "indptr";
	assert_int_equal(gw_builder_node_array(builder, ntype, &array), GW_INVALID);
	array.name = "x";
	assert_int_equal(gw_builder_node_array(builder, ntype, &array), GW_OK);
	assert_int_equal(gw_builder_node_array(builder, ntype, &array), GW_EXISTS);
	/* strings of edges are not supported */
	assert_int_equal(gw_builder_edge_strings(builder, etype, "label", 3, name_offsets, "abcdefg"), GW_INVALID);
	expect_no_graph(builder, GW_INVALID, "7 rows, but there are 5 nodes");
}

static gw_status write_all_kinds(void *context)
{
	uint32_t ntype, etype;
	struct gw_builder *builder;
	struct gw_builder_edges timed = plain(), fused = plain();
	struct gw_builder_array weight = {
		.name = "w", .dtype = GW_FLOAT32, .ndim = 1, .shape = {EDGES}, .data = weights, .weight = true};
	timed.time = times;
	timed.time_name = "when";
	timed.reverse = timed.transpose = true;
	fused.rel = relations;
	fused.relations = 3;
	fused.transpose = true;
	gw_status status = gw_builder_create("g", &builder);
	if (status == GW_OK)
		status = gw_builder_ntype(builder, "n", &ntype);
	if (status == GW_OK) {
		gw_builder_ntype_count(builder, ntype, NODES);
		status = gw_builder_etype(builder, ntype, "timed", ntype, &timed, &etype);
	}
	if (status == GW_OK)
		status = gw_builder_edge_array(builder, etype, &weight);
	if (status == GW_OK)
		status = gw_builder_mirror(builder, &fused);
	if (status == GW_OK)
		status = gw_builder_etype(builder, ntype, "fused", ntype, &fused, &etype);
	if (status == GW_OK)
		status = gw_builder_edge_strings(builder, etype, "rel.names", 3, name_offsets, "onethree");
	if (status == GW_OK)
		status = write_to(builder, context);
	gw_builder_destroy(builder);
	return status;
}

static void test_all_kinds(void **state)
{
	(void)state;
	char root[64], folder[96];
	struct gw_graph_meta *meta = NULL;
	struct gw_part *part = NULL;
	const struct gw_part_options options = {.mapped = true};
	gw_test_folder(root);
	snprintf(folder, sizeof(folder), "%s/g", root);
	assert_true(gw_fault_each(write_all_kinds, folder) > 100);
	if (gw_meta_read(folder, &meta) != GW_OK || gw_part_open(meta, 0, &options, &part) != GW_OK)
		fail_msg("%s", gw_last_error());
	uint32_t etype;
	assert_int_equal(gw_meta_etype(meta, "n:fused:n", &etype), GW_OK);
	assert_int_equal(meta->etypes[etype].count, 2 * EDGES);
	/* each edge, and each reversed edge, has its own relation, found by the input row in orig_id */
	const uint32_t *rows = (const uint32_t *)gw_part_array(part, "edge/n__fused__n/orig_id")->data;
	const uint8_t *rel = gw_part_array(part, "edge/n__fused__n/rel")->data;
	for (uint32_t i = 0; i < 2 * EDGES; i++)
		assert_int_equal(rel[i], relations[rows[i]]);
	gw_part_close(part);
	gw_meta_destroy(meta);
	assert_int_equal(gw_remove_tree(root), GW_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_too_many_nodes),
		cmocka_unit_test(test_values_out_of_range),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_all_kinds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
