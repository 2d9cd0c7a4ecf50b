/* Refusals of graphwire partition: each in one line that names the reason, before any write. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "core/memory/alloc.h"
#include "test/support/partition_run.h"
#include "tools/tools.h"

static void test_refusals(void **state)
{
	struct gw_fixture fixture;
	char out[128], absent[128], broken[160], path[200];
	const char *two[] = {"--num-parts=2", NULL};
	(void)state;
	partition_begin(&fixture, 3, 200);
	snprintf(out, sizeof(out), "%s/parts", fixture.root);
	snprintf(absent, sizeof(absent), "%s/absent", fixture.root);

	partition_expect_error(&fixture, absent, out, two, 1, "absent");
	const char *little[] = {"--num-parts=2", "--memory=1k", NULL};
	partition_expect_error(&fixture, fixture.folder, out, little, 1, "use --method lp or --method random");
	partition_expect_error(&fixture, fixture.folder, fixture.folder, two, 1, "--replace");
	snprintf(broken, sizeof(broken), "%s/no/such/place", fixture.root);
	partition_expect_error(&fixture, fixture.folder, broken, two, 1, "no/such");
	assert_int_equal(access(out, F_OK), -1);

	partition_run_ok(fixture.root, fixture.folder, out, two);
	snprintf(path, sizeof(path), "%s/again", fixture.root);
	partition_expect_error(&fixture, out, path, two, 1, "2 parts");
	assert_int_equal(access(path, F_OK), -1);

	snprintf(broken, sizeof(broken), "%s/broken.json", fixture.root);
	FILE *file = fopen(broken, "w");
	fputs("{\"format\": 7", file);
	fclose(file);
	partition_expect_error(&fixture, broken, path, two, 1, "broken.json");

	snprintf(broken, sizeof(broken), "%s/part0/node/paper/feat.npy", fixture.folder);
	assert_int_equal(truncate(broken, 4100), 0);
	partition_expect_error(&fixture, fixture.folder, path, two, 1, "feat.npy");
	assert_int_equal(access(path, F_OK), -1);
	gw_fixture_end(&fixture);
}

static void test_narrow_rows(void **state)
{
	static const struct {
		const char *words[4];
		const char *told;
	} cases[] = {
		{{"--store=size=float16"}, "has a feature \"size\"; rows that can be narrow: "},
		{{"--store=author:feat=float16"}, "author has no feature \"feat\""},
		{{"--store=paper:writes:author:feat=float16"}, "has no feature \"feat\""},
		{{"--store=indptr=float16"}, "no node type or edge type"},
		{{"--store=label=float16"}, "\"label\" of paper: labels stay"},
		{{"--store=train_mask=float16"}, "\"train_mask\" of paper: it is of bool"},
		{{"--store=x=bfloat16"}, "\"x\" of venue: it is of uint16"},
		{{"--store=q=float16"}, "\"q\" of author: it is of int8_row"},
		{{"--store=half=float16"},
		 "\"half\" of author: a row of 4 takes 8 bytes as bfloat16, and 8 as float16"},
		{{"--store=half=int8_row"}, "\"half\" of author: an int8_row is made of rows of one dimension"},
		{{"--store=weight=float16"}, "\"weight\" of paper:cites:paper: weights are drawn by"},
		{{"--store=year=float16"}, "\"year\" of paper:cites:paper: times are compared"},
		{{"--store=feat=float16", "--store=feat=bfloat16"}, "two types are given, float16 and bfloat16"},
		{{"--store=paper:feat=float16", "--store=paper:feat=int8_row"}, "two types are given"},
	};
	struct gw_fixture fixture;
	char out[128], narrow[128];
	(void)state;
	partition_begin(&fixture, 3, 200);
	snprintf(out, sizeof(out), "%s/parts", fixture.root);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *words[] = {"--num-parts=2", "--method=random", cases[i].words[0], cases[i].words[1], NULL};
		partition_expect_error(&fixture, fixture.folder, out, words, 1, cases[i].told);
		assert_int_equal(access(out, F_OK), -1);
	}
	/* Rows that were stored narrow keep their type, and what they were. */
	const char *one[] = {"--num-parts=1", "--store=feat=float16", "--store=paper:feat=bfloat16", NULL};
	const char *again[] = {"--num-parts=2", "--method=random", "--store=feat=bfloat16", NULL};
	const char *other[] = {"--num-parts=2", "--method=random", "--store=feat=float16", "--replace", NULL};
	struct gw_graph_meta *meta;
	snprintf(narrow, sizeof(narrow), "%s/narrow", fixture.root);
	partition_run_ok(fixture.root, fixture.folder, narrow, one);
	partition_run_ok(fixture.root, narrow, out, again);
	partition_expect_error(&fixture, narrow, out, other, 1, "\"feat\" of paper: it is stored as bfloat16 already");
	assert_int_equal(gw_meta_read(out, &meta), GW_OK);
	for (uint32_t p = 0; p < 2; p++) {
		const struct gw_array_meta *array = gw_meta_array(meta, p, "node/paper/feat");
		assert_int_equal(array->dtype, GW_BFLOAT16);
		assert_int_equal(gw_meta_original(meta, array)->dtype, GW_FLOAT32);
	}
	assert_int_equal(meta->num_originals, 1);
	gw_meta_destroy(meta);
	gw_fixture_end(&fixture);
}

/* --replace removes only graphs and empty folders, and never the input. */
static void test_replace(void **state)
{
	struct gw_fixture fixture;
	char out[128], note[160];
	const char *words[] = {"--num-parts=2", "--method=random", "--replace", NULL};
	(void)state;
	partition_begin(&fixture, 3, 20);
	snprintf(out, sizeof(out), "%s/out", fixture.root);
	snprintf(note, sizeof(note), "%s/out/notes.json", fixture.root);
	assert_int_equal(mkdir(out, 0777), 0);
	partition_run_ok(fixture.root, fixture.folder, out, words);
	partition_run_ok(fixture.root, fixture.folder, out, words);
	assert_int_equal(gw_remove_tree(out), GW_OK);
	assert_int_equal(mkdir(out, 0777), 0);
	FILE *file = fopen(note, "w");
	fputs("{\"mine\": 1}", file);
	fclose(file);
	partition_expect_error(&fixture, fixture.folder, out, words, 1, "only a graph is replaced");
	assert_int_equal(access(note, F_OK), 0);
	partition_expect_error(&fixture, fixture.folder, note, words, 1, "not a folder");
	partition_expect_error(&fixture, fixture.folder, fixture.folder, words, 1, "another --out");
	snprintf(out, sizeof(out), "%s/", fixture.folder);
	partition_expect_error(&fixture, fixture.folder, out, words, 1, "another --out");
	gw_fixture_end(&fixture);
}

/* A graph of which only the JSON exists: too many nodes for METIS are refused before any array is opened. */
static void declare_huge(const char *folder, uint64_t nodes, uint64_t edges)
{
	struct gw_graph_meta *meta;
	char path[200], *text;
	assert_int_equal(mkdir(folder, 0777), 0);
	assert_int_equal(gw_meta_create("huge", 1, 1, 1, &meta), GW_OK);
	strcpy(meta->ntypes[0].name, "_N");
	strcpy(meta->etypes[0].name, "_E");
	meta->ntypes[0].count = meta->ntypes[0].starts[1] = nodes;
	meta->etypes[0].count = meta->etypes[0].starts[1] = edges;
	assert_int_equal(gw_meta_finish(meta), GW_OK);
	char indices[GW_EDGE_FOLDER_MAX + 32];
	snprintf(indices, sizeof(indices), "edge/%s/indices", meta->etypes[0].folder);
	struct gw_array_meta arrays[] = {{.key = (char[]){"node/_N/indptr"},
					  .file = (char[]){"part0/indptr.npy"},
					  .dtype = GW_UINT32,
					  .ndim = 2,
					  .shape = {nodes + 1, 1}},
					 {.key = indices,
					  .file = (char[]){"part0/indices.npy"},
					  .dtype = GW_UINT32,
					  .ndim = 1,
					  .shape = {edges}}};
	for (int i = 0; i < 2; i++)
		assert_int_equal(gw_meta_add_array(meta, 0, &arrays[i]), GW_OK);
	assert_int_equal(gw_meta_digest(meta, &meta->graph_id), GW_OK);
	assert_int_equal(gw_meta_print(meta, &text), GW_OK);
	snprintf(path, sizeof(path), "%s/huge.json", folder);
	FILE *file = fopen(path, "w");
	fputs(text, file);
	fclose(file);
	gw_free(text);
	gw_meta_destroy(meta);
}

static void test_too_big_for_metis(void **state)
{
	static const uint64_t sizes[][2] = {{3000000000, 10}, {10, 3000000000}, {INT32_MAX, 0}, {1, INT32_MAX}};
	const char *metis[] = {"--num-parts=2", NULL}, *random[] = {"--num-parts=2", "--method=random", NULL};
	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct gw_fixture fixture;
		char graph[128], out[128];
		partition_begin(&fixture, 3, 20);
		snprintf(graph, sizeof(graph), "%s/huge", fixture.root);
		snprintf(out, sizeof(out), "%s/parts", fixture.root);
		declare_huge(graph, sizes[i][0], sizes[i][1]);
		partition_expect_error(&fixture, graph, out, metis, 1, "use --method lp or --method random");
		partition_expect_error(&fixture, graph, out, random, 1, ".npy"); /* which opens the arrays */
		gw_fixture_end(&fixture);
	}
}

/* argp exits on wrong usage, so this runs in a separate process. */
static void test_usage(void **state)
{
	static const char *const wrong[][4] = {{"--num-parts=0"},
					       {"--num-parts=70000"},
					       {"--num-parts=two"},
					       {"--method=metis"},
					       {"--num-parts=2", "--method=magic"},
					       {"--num-parts=60000", "--num-trainers-per-machine=2"},
					       {"--num-parts=2", "--objtype=both"},
					       {"--num-parts=2", "another"},
					       {"--num-parts=2", "--store=feat"},
					       {"--num-parts=2", "--store=paper:cites:feat=float16"},
					       {"--num-parts=2", "--store=:feat=float16"},
					       {"--num-parts=2", "--store==float16"},
					       {"--num-parts=2", "--store=feat=float32"},
					       {"--num-parts=2", "--store=feat=int8"}};
	struct gw_fixture fixture;
	(void)state;
	partition_begin(&fixture, 3, 20);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char out[128];
		int status;
		snprintf(out, sizeof(out), "%s/parts", fixture.root);
		fflush(NULL);
		pid_t child = fork();
		if (child == 0)
			_exit(partition_run(fixture.root, fixture.folder, out, wrong[i]));
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 2);
		assert_int_equal(access(out, F_OK), -1);
	}
	gw_fixture_end(&fixture);
}

static void test_train_mask_absent(void **state)
{
	struct gw_fixture fixture;
	char graph[128], out[128];
	char *generate[] = {"generate", "rmat", "--quiet", "--scale=5", "--out", graph, NULL};
	const char *words[] = {"--num-parts=2", "--balance-train", NULL};
	(void)state;
	partition_begin(&fixture, 3, 20);
	snprintf(graph, sizeof(graph), "%s/rmat", fixture.root);
	snprintf(out, sizeof(out), "%s/parts", fixture.root);
	assert_int_equal(gw_tool_generate(6, generate), 0);
	partition_expect_error(&fixture, graph, out, words, 1, "train_mask");
	gw_fixture_end(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusals), cmocka_unit_test(test_narrow_rows),
		cmocka_unit_test(test_replace),  cmocka_unit_test(test_too_big_for_metis),
		cmocka_unit_test(test_usage),    cmocka_unit_test(test_train_mask_absent),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
