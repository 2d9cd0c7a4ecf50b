/* The real graphs of the test data, imported and partitioned into 2, 3 and 8 parts: the union of the parts is the
 * graph. */
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
#include "test/support/partition_oracle.h"
#include "test/support/real_graphs.h"
#include "test/support/scratch.h"
#include "tools/partition/plan.h"
#include "tools/tools.h"

static void import(const char *file, const char *graph)
{
	char out[128], path[4096];
	snprintf(out, sizeof(out), "%s", graph);
	snprintf(path, sizeof(path), "%s", file);
	char *argv[] = {"import", strstr(file, ".tsv") ? "--triples" : "--from", path, "--quiet", "--out", out, NULL};
	assert_int_equal(gw_tool_import(6, argv), 0);
}

/* METIS's figure equals a plain count: parallel edges count each, loops are never cut. */
static void partition(const struct gw_part *part, const char *in, const char *out, uint32_t parts,
		      enum gw_plan_method method)
{
	struct gw_plan plan = {.parts = parts, .trainers = 1, .method = method};
	struct gw_assignment assignment = {0};
	struct gw_plan_quality quality = {0};
	struct gw_split_stats stats;
	struct gw_oracle_result result;
	gw_status status = gw_assignment_make(&plan, part, &assignment);
	if (status == GW_OK)
		status = gw_assign(&plan, part, &assignment);
	if (status == GW_OK)
		status = gw_plan_quality_measure(&plan, part, &assignment, &quality);
	if (status == GW_OK)
		status = gw_split(&plan, part, &assignment, out, true, &stats);
	if (status != GW_OK)
		fail_msg("%s", gw_last_error());
	gw_oracle_check(in, out, &result);
	assert_int_equal(result.edges_cut, quality.edges_cut);
	assert_int_equal(result.edges, quality.edges);
	if (method == GW_PLAN_METIS) {
		assert_true(assignment.has_objective);
		assert_int_equal(assignment.objective, result.edges_cut);
		assert_true((double)result.edges_cut < 0.8 * (double)result.edges * (parts - 1) / parts);
		assert_true(gw_plan_balance(result.nodes, parts) < 1.04);
	}
	gw_plan_quality_free(&quality);
	gw_assignment_free(&assignment);
}

static void check_graph(void **state)
{
	char root[64], file[4096], in[64], out[64];
	if (!real_graph_file(*state, file, sizeof(file)))
		skip();
	gw_scratch_make_in_memory("partition", root);
	snprintf(in, sizeof(in), "%s/graph", root);
	snprintf(out, sizeof(out), "%s/parts", root);
	import(file, in);
	struct gw_graph_meta *meta = NULL;
	struct gw_part_options options = {.mapped = true};
	struct gw_part *part = NULL;
	if (gw_meta_read(in, &meta) || gw_part_open(meta, 0, &options, &part))
		fail_msg("%s", gw_last_error());
	for (uint32_t parts = 2; parts <= 8; parts += parts == 2 ? 1 : 5)
		partition(part, in, out, parts, GW_PLAN_METIS);
	partition(part, in, out, 3, GW_PLAN_RANDOM);
	gw_part_close(part);
	gw_meta_destroy(meta);
	assert_int_equal(gw_remove_tree(root), GW_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(check_graph, "cora/cora.npz"),
		cmocka_unit_test_prestate(check_graph, "facebook/facebook.npz"),
#if REAL_GRAPHS_ALL
		cmocka_unit_test_prestate(check_graph, "fb15k-237/train.tsv.gz"),
		cmocka_unit_test_prestate(check_graph, "ego-twitter/edges.npz"),
		cmocka_unit_test_prestate(check_graph, "cnr-2000/edges.npz"),
#endif
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
