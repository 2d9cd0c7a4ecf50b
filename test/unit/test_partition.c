/* graphwire partition, end to end: what it writes is the input again, for graphs with everything the format has. */
#include <dirent.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "core/base/alloc.h"
#include "core/base/staging.h"
#include "core/graph/part.h"
#include "test/support/alloc_fault.h"
#include "test/support/graph_fixture.h"
#include "test/support/partition_oracle.h"
#include "tools/plan.h"
#include "tools/tools.h"

#define WORDS_MAX 24

static void begin(struct gw_fixture *fixture, uint64_t seed, uint64_t scale)
{
	gw_fixture_begin(fixture, seed, scale, 1);
	gw_fixture_write(fixture);
}

/* Runs the command with its output in files of the folder; the words end with NULL. Returns its exit status. */
static int run(const char *root, const char *in, const char *out, const char *const *words)
{
	char text[WORDS_MAX + 4][256], path[300];
	char *argv[WORDS_MAX + 5];
	int argc = 0;
	const char *first[] = {"partition", in, "--out", out};
	for (int i = 0; i < 4; i++)
		snprintf(text[argc++], sizeof(text[0]), "%s", first[i]);
	for (int i = 0; words[i]; i++)
		snprintf(text[argc++], sizeof(text[0]), "%s", words[i]);
	for (int i = 0; i < argc; i++)
		argv[i] = text[i];
	argv[argc] = NULL;
	fflush(NULL);
	int saved[2] = {dup(1), dup(2)};
	snprintf(path, sizeof(path), "%s/stdout", root);
	assert_non_null(freopen(path, "w", stdout));
	snprintf(path, sizeof(path), "%s/stderr", root);
	assert_non_null(freopen(path, "w", stderr));
	int status = gw_tool_partition(argc, argv);
	fflush(NULL);
	dup2(saved[0], 1);
	dup2(saved[1], 2);
	close(saved[0]);
	close(saved[1]);
	return status;
}

static void read_text(const char *root, const char *name, char *text, size_t room)
{
	char path[300];
	snprintf(path, sizeof(path), "%s/%s", root, name);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	text[fread(text, 1, room - 1, file)] = '\0';
	fclose(file);
}

static void run_ok(const char *root, const char *in, const char *out, const char *const *words)
{
	char text[2048];
	if (run(root, in, out, words) != 0) {
		read_text(root, "stderr", text, sizeof(text));
		fail_msg("%s", text);
	}
}

/* The report's cut is what the parts themselves say. */
static void check_report(const char *root, const struct gw_oracle_result *result)
{
	char text[16384];
	read_text(root, "stdout", text, sizeof(text));
	json_t *report = json_loads(text, 0, NULL);
	assert_non_null(report);
	assert_int_equal(json_integer_value(json_object_get(report, "edges")), result->edges);
	assert_int_equal(json_integer_value(json_object_get(report, "edges_cut")), result->edges_cut);
	json_t *nodes = json_object_get(report, "nodes_per_part"), *edges = json_object_get(report, "edges_per_part");
	json_t *train = json_object_get(report, "train_per_part");
	for (uint32_t p = 0; p < result->parts && p < 16; p++) {
		assert_int_equal(json_integer_value(json_array_get(nodes, p)), result->nodes[p]);
		assert_int_equal(json_integer_value(json_array_get(edges, p)), result->part_edges[p]);
		assert_int_equal(json_integer_value(json_array_get(train, p)), result->train[p]);
	}
	char id[17];
	snprintf(id, sizeof(id), "%016llx", (unsigned long long)result->graph_id);
	assert_string_equal(json_string_value(json_object_get(report, "graph_id")), id);
	json_decref(report);
}

static void test_union_is_the_input(void **state)
{
	static const char *const counts[] = {"1", "2", "3", "8"};
	static const char *const methods[] = {"metis", "random"};
	(void)state;
	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct gw_fixture fixture;
		char out[128];
		begin(&fixture, seed, seed == 1 ? 17 : 300 * seed);
		snprintf(out, sizeof(out), "%s/parts", fixture.root);
		for (int c = 0; c < 4; c++) {
			for (int m = 0; m < 2; m++) {
				const char *words[] = {"--num_parts",
						       counts[c],
						       "--method",
						       methods[m],
						       "--replace",
						       "--json",
						       seed % 2 ? "--balance-train" : "--threads=3",
						       NULL};
				struct gw_oracle_result result;
				run_ok(fixture.root, fixture.folder, out, words);
				gw_oracle_check(fixture.folder, out, &result);
				check_report(fixture.root, &result);
				assert_int_equal(result.parts, atoi(counts[c]));
			}
		}
		gw_fixture_end(&fixture);
	}
}

/* Digest of everything that was written, from the JSON. */
static uint64_t graph_id(const char *folder)
{
	struct gw_graph_meta *meta;
	if (gw_meta_read(folder, &meta))
		fail_msg("%s", gw_last_error());
	uint64_t id = meta->graph_id;
	gw_meta_destroy(meta);
	return id;
}

static void test_same_bytes(void **state)
{
	static const char *const methods[] = {"metis", "random"};
	struct gw_fixture fixture;
	char out[128];
	(void)state;
	begin(&fixture, 5, 700);
	snprintf(out, sizeof(out), "%s/parts", fixture.root);
	for (int m = 0; m < 2; m++) {
		uint64_t first = 0, other;
		for (int threads = 1; threads <= 8; threads += threads < 3 ? 1 : 5) {
			char option[32];
			snprintf(option, sizeof(option), "--threads=%d", threads);
			const char *words[] = {"--num-parts=3", "--method",  methods[m],        "--seed=9",
					       option,          "--replace", "--balance-edges", NULL};
			run_ok(fixture.root, fixture.folder, out, words);
			first = threads == 1 ? graph_id(out) : first;
			assert_true(graph_id(out) == first);
		}
		const char *words[] = {"--num-parts=3", "--method", methods[m], "--seed=10", "--replace", NULL};
		run_ok(fixture.root, fixture.folder, out, words);
		other = graph_id(out);
		assert_true(other != first);
	}
	gw_fixture_end(&fixture);
}

/* Largest part over the mean. */
static double balance(const uint64_t *counts, uint32_t parts)
{
	uint64_t sum = 0, most = 0;
	for (uint32_t p = 0; p < parts; p++) {
		sum += counts[p];
		most = counts[p] > most ? counts[p] : most;
	}
	return (double)most * parts / (double)sum;
}

static void test_balance(void **state)
{
	struct gw_fixture fixture;
	struct gw_oracle_result result;
	char out[128];
	(void)state;
	begin(&fixture, 6, 4000);
	snprintf(out, sizeof(out), "%s/parts", fixture.root);

	const char *plain[] = {"--num-parts=4", "--replace", NULL};
	run_ok(fixture.root, fixture.folder, out, plain);
	gw_oracle_check(fixture.folder, out, &result);
	assert_true(balance(result.nodes, 4) < 1.05);
	uint64_t cut = result.edges_cut;

	const char *train[] = {"--num-parts=4", "--balance-train", "--balance-edges", "--replace", NULL};
	run_ok(fixture.root, fixture.folder, out, train);
	gw_oracle_check(fixture.folder, out, &result);
	assert_true(balance(result.nodes, 4) < 1.10);
	assert_true(balance(result.train, 4) < 1.10);
	assert_true(balance(result.part_edges, 4) < 1.15);

	const char *types[] = {"--num-parts=4", "--balance_ntypes", "--replace", NULL};
	run_ok(fixture.root, fixture.folder, out, types);
	gw_oracle_check(fixture.folder, out, &result);
	for (uint32_t t = 0; t < GW_FIXTURE_NTYPES; t++) {
		uint64_t *nodes = result.ntype_nodes[t], sum = nodes[0] + nodes[1] + nodes[2] + nodes[3];
		for (uint32_t p = 0; p < 4; p++)
			assert_true((double)nodes[p] < 1.05 * (double)sum / 4 + 1);
	}

	const char *random[] = {"--num-parts=4", "--method=random", "--balance-train", "--replace", NULL};
	run_ok(fixture.root, fixture.folder, out, random);
	gw_oracle_check(fixture.folder, out, &result);
	for (uint32_t p = 1; p < 4; p++) {
		assert_in_range(result.nodes[p] + 1, result.nodes[0], result.nodes[0] + 2);
		assert_in_range(result.train[p] + 1, result.train[0], result.train[0] + 2);
	}
	assert_true(cut < result.edges_cut); /* METIS cuts less than chance */
	gw_fixture_end(&fixture);
}

static void test_objective_vol(void **state)
{
	struct gw_fixture fixture;
	struct gw_oracle_result result;
	char out[128];
	(void)state;
	begin(&fixture, 8, 500);
	snprintf(out, sizeof(out), "%s/parts", fixture.root);
	const char *words[] = {"--num-parts=4", "--objtype=vol", "--json", NULL};
	run_ok(fixture.root, fixture.folder, out, words);
	gw_oracle_check(fixture.folder, out, &result);
	check_report(fixture.root, &result);
	gw_fixture_end(&fixture);
}

/* trainer_id is part * trainers + trainer, on nodes and, by their destination, on edges. */
static void test_trainers(void **state)
{
	struct gw_fixture fixture;
	struct gw_graph_meta *meta;
	struct gw_part_options options = {.mapped = true};
	char out[128];
	(void)state;
	begin(&fixture, 9, 600);
	snprintf(out, sizeof(out), "%s/parts", fixture.root);
	const char *words[] = {"--num_parts", "2", "--num_trainers_per_machine", "3", NULL};
	run_ok(fixture.root, fixture.folder, out, words);
	struct gw_oracle_result result;
	gw_oracle_check(fixture.folder, out, &result);
	assert_int_equal(gw_meta_read(out, &meta), GW_OK);
	for (uint32_t p = 0; p < 2; p++) {
		struct gw_part *part;
		uint64_t seen[3] = {0};
		assert_int_equal(gw_part_open(meta, p, &options, &part), GW_OK);
		const struct gw_array *nodes = gw_part_array(part, "node/paper/trainer_id");
		const struct gw_array *edges = gw_part_array(part, "edge/paper__cites__paper/trainer_id");
		assert_non_null(nodes);
		assert_non_null(edges);
		const int64_t *of_node = (const int64_t *)nodes->data, *of_edge = (const int64_t *)edges->data;
		const struct gw_adjacency *a = gw_part_adjacency(part, FIXTURE_CITES);
		for (uint64_t row = 0; row < a->rows; row++) {
			uint64_t from, to;
			gw_adjacency_list(a, row, &from, &to);
			assert_int_equal(of_node[row] / 3, p);
			seen[of_node[row] % 3]++;
			for (uint64_t i = from; i < to; i++)
				assert_int_equal(of_edge[i], of_node[row]);
		}
		for (int i = 0; i < 3; i++)
			assert_true(seen[i] > 0);
		gw_part_close(part);
	}
	gw_meta_destroy(meta);
	gw_fixture_end(&fixture);
}

/* More parts than nodes, and so many that lists are sorted another way: all of them are partitionings. */
static void test_extremes(void **state)
{
	static const char *const counts[] = {"2", "5", "40"};
	static const char *const methods[] = {"metis", "random"};
	(void)state;
	for (uint64_t scale = 2; scale <= 21; scale += 19) {
		struct gw_fixture fixture;
		char out[128];
		begin(&fixture, scale, scale);
		snprintf(out, sizeof(out), "%s/parts", fixture.root);
		for (int c = 0; c < 3; c++) {
			for (int m = 0; m < 2; m++) {
				const char *words[] = {"--num-parts", counts[c],   "--method",
						       methods[m],    "--replace", NULL};
				struct gw_oracle_result result;
				run_ok(fixture.root, fixture.folder, out, words);
				gw_oracle_check(fixture.folder, out, &result);
			}
		}
		gw_fixture_end(&fixture);
	}

	struct gw_fixture fixture;
	struct gw_oracle_result result;
	char out[128];
	const char *many[] = {"--num-parts=300", "--method=random", NULL};
	begin(&fixture, 5, 400);
	snprintf(out, sizeof(out), "%s/parts", fixture.root);
	run_ok(fixture.root, fixture.folder, out, many);
	gw_oracle_check(fixture.folder, out, &result);
	gw_fixture_end(&fixture);
}

static void expect_error(struct gw_fixture *fixture, const char *in, const char *out, const char *const *words,
			 int status, const char *told)
{
	char text[4096];
	assert_int_equal(run(fixture->root, in, out, words), status);
	read_text(fixture->root, "stderr", text, sizeof(text));
	if (!strstr(text, told))
		fail_msg("\"%s\" does not tell of \"%s\"", text, told);
	assert_non_null(strchr(text, '\n'));
	assert_string_equal(strchr(text, '\n'), "\n"); /* one line */
}

static void test_refusals(void **state)
{
	struct gw_fixture fixture;
	char out[128], absent[128], broken[160], path[200];
	const char *two[] = {"--num-parts=2", NULL};
	(void)state;
	begin(&fixture, 3, 200);
	snprintf(out, sizeof(out), "%s/parts", fixture.root);
	snprintf(absent, sizeof(absent), "%s/absent", fixture.root);

	expect_error(&fixture, absent, out, two, 1, "absent");
	const char *little[] = {"--num-parts=2", "--memory=1k", NULL};
	expect_error(&fixture, fixture.folder, out, little, 1, "--method random");
	expect_error(&fixture, fixture.folder, fixture.folder, two, 1, "--replace");
	snprintf(broken, sizeof(broken), "%s/no/such/place", fixture.root);
	expect_error(&fixture, fixture.folder, broken, two, 1, "no/such");
	assert_int_equal(access(out, F_OK), -1);

	run_ok(fixture.root, fixture.folder, out, two);
	snprintf(path, sizeof(path), "%s/again", fixture.root);
	expect_error(&fixture, out, path, two, 1, "2 parts");
	assert_int_equal(access(path, F_OK), -1);

	snprintf(broken, sizeof(broken), "%s/broken.json", fixture.root);
	FILE *file = fopen(broken, "w");
	fputs("{\"format\": 7", file);
	fclose(file);
	expect_error(&fixture, broken, path, two, 1, "broken.json");

	snprintf(broken, sizeof(broken), "%s/part0/node/paper/feat.npy", fixture.folder);
	assert_int_equal(truncate(broken, 4100), 0);
	expect_error(&fixture, fixture.folder, path, two, 1, "feat.npy");
	assert_int_equal(access(path, F_OK), -1);
	gw_fixture_end(&fixture);
}

/* --replace takes away graphs and empty folders only, and never what is being read. */
static void test_replace(void **state)
{
	struct gw_fixture fixture;
	char out[128], note[160];
	const char *words[] = {"--num-parts=2", "--method=random", "--replace", NULL};
	(void)state;
	begin(&fixture, 3, 20);
	snprintf(out, sizeof(out), "%s/out", fixture.root);
	snprintf(note, sizeof(note), "%s/out/notes.json", fixture.root);
	assert_int_equal(mkdir(out, 0777), 0);
	run_ok(fixture.root, fixture.folder, out, words);
	run_ok(fixture.root, fixture.folder, out, words);
	assert_int_equal(gw_remove_tree(out), GW_OK);
	assert_int_equal(mkdir(out, 0777), 0);
	FILE *file = fopen(note, "w");
	fputs("{\"mine\": 1}", file);
	fclose(file);
	expect_error(&fixture, fixture.folder, out, words, 1, "only a graph is replaced");
	assert_int_equal(access(note, F_OK), 0);
	expect_error(&fixture, fixture.folder, note, words, 1, "no folder");
	expect_error(&fixture, fixture.folder, fixture.folder, words, 1, "another --out");
	snprintf(out, sizeof(out), "%s/", fixture.folder);
	expect_error(&fixture, fixture.folder, out, words, 1, "another --out");
	gw_fixture_end(&fixture);
}

/* A graph of which only the JSON is there: what METIS cannot number is refused before anything else is looked at. */
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
		begin(&fixture, 3, 20);
		snprintf(graph, sizeof(graph), "%s/huge", fixture.root);
		snprintf(out, sizeof(out), "%s/parts", fixture.root);
		declare_huge(graph, sizes[i][0], sizes[i][1]);
		expect_error(&fixture, graph, out, metis, 1, "use --method random");
		expect_error(&fixture, graph, out, random, 1, ".npy"); /* which looks for the arrays */
		gw_fixture_end(&fixture);
	}
}

/* Wrong usage ends in argp's exit, so in a process of its own. */
static void test_usage(void **state)
{
	static const char *const wrong[][4] = {{"--num-parts=0"},
					       {"--num-parts=70000"},
					       {"--num-parts=two"},
					       {"--method=metis"},
					       {"--num-parts=2", "--method=magic"},
					       {"--num-parts=60000", "--num-trainers-per-machine=2"},
					       {"--num-parts=2", "--objtype=both"},
					       {"--num-parts=2", "another"}};
	struct gw_fixture fixture;
	(void)state;
	begin(&fixture, 3, 20);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char out[128];
		int status;
		snprintf(out, sizeof(out), "%s/parts", fixture.root);
		fflush(NULL);
		pid_t child = fork();
		if (child == 0)
			_exit(run(fixture.root, fixture.folder, out, wrong[i]));
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
	begin(&fixture, 3, 20);
	snprintf(graph, sizeof(graph), "%s/rmat", fixture.root);
	snprintf(out, sizeof(out), "%s/parts", fixture.root);
	assert_int_equal(gw_tool_generate(6, generate), 0);
	expect_error(&fixture, graph, out, words, 1, "train_mask");
	gw_fixture_end(&fixture);
}

/* A disk of 256 KiB, where this process may make one; else no file may grow past 64 KiB. Either way: one line, and
 * nothing left behind. */
static void fill_disk(struct gw_fixture *fixture)
{
	char out[128], told[4096];
	const char *words[] = {"--num-parts=2", NULL};
	snprintf(out, sizeof(out), "%s/disk", fixture->root);
	bool disk = mkdir(out, 0700) == 0 && unshare(CLONE_NEWNS) == 0 &&
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
		    mount("tmpfs", out, "tmpfs", 0, "size=256k") == 0;
	struct rlimit limit = {65536, 65536};
	if (!disk) {
		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &limit);
	}
	snprintf(out, sizeof(out), "%s/disk/parts", fixture->root);
	int status = run(fixture->root, fixture->folder, out, words);
	read_text(fixture->root, "stderr", told, sizeof(told));
	snprintf(out, sizeof(out), "%s/disk", fixture->root);
	DIR *folder = opendir(out);
	int left = 0;
	for (struct dirent *entry; folder && (entry = readdir(folder));)
		left += entry->d_name[0] != '.';
	_exit(status == 1 && folder && left == 0 && strstr(told, disk ? "No space left" : "too large") ? 0 : 1);
}

static void test_no_space(void **state)
{
	struct gw_fixture fixture;
	int status;
	(void)state;
	begin(&fixture, 3, 8000);
	fflush(NULL);
	pid_t child = fork();
	if (child == 0)
		fill_disk(&fixture);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	gw_fixture_end(&fixture);
}

struct faulty {
	struct gw_part *part;
	struct gw_plan plan;
	struct gw_assignment assignment;
	const char *out;
};

static gw_status assign(struct faulty *f)
{
	gw_status status = gw_assignment_make(&f->plan, f->part, &f->assignment);
	if (status)
		return status;
	return f->plan.method == GW_PLAN_METIS ? gw_assign_metis(&f->plan, f->part, &f->assignment)
					       : gw_assign_random(&f->plan, f->part, &f->assignment);
}

static gw_status assign_and_measure(void *context)
{
	struct faulty *f = context;
	struct gw_plan_quality quality = {0};
	gw_status status = assign(f);
	if (!status)
		status = gw_plan_quality_measure(&f->plan, f->part, &f->assignment, &quality);
	gw_plan_quality_free(&quality);
	gw_assignment_free(&f->assignment);
	return status;
}

static gw_status split(void *context)
{
	struct faulty *f = context;
	struct gw_split_stats stats;
	gw_status status = gw_split(&f->plan, f->part, &f->assignment, f->out, false, &stats);
	if (status)
		assert_int_equal(access(f->out, F_OK), -1);
	else
		assert_int_equal(gw_remove_tree(f->out), GW_OK);
	return status;
}

/* Assigning and splitting each by itself: a split has a thousand allocations, and METIS need not run for each. */
static void test_memory_short(void **state)
{
	struct gw_fixture fixture;
	struct gw_graph_meta *meta;
	struct gw_part_options options = {.mapped = true};
	char out[128];
	(void)state;
	begin(&fixture, 4, 40);
	snprintf(out, sizeof(out), "%s/parts", fixture.root);
	assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
	struct faulty f = {
		.out = out,
		.plan = {.parts = 2, .trainers = 2, .balance_train = true, .balance_edges = true, .threads = 1}};
	assert_int_equal(gw_part_open(meta, 0, &options, &f.part), GW_OK);
	for (int method = 0; method < 2; method++) {
		f.plan.method = (enum gw_plan_method)method;
		assert_true(gw_fault_each(assign_and_measure, &f) > 10);
	}
	assert_int_equal(assign(&f), GW_OK);
	assert_true(gw_fault_each(split, &f) > 500);
	gw_assignment_free(&f.assignment);
	gw_part_close(f.part);
	gw_meta_destroy(meta);
	gw_fixture_end(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_union_is_the_input),
		cmocka_unit_test(test_same_bytes),
		cmocka_unit_test(test_balance),
		cmocka_unit_test(test_objective_vol),
		cmocka_unit_test(test_trainers),
		cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_replace),
		cmocka_unit_test(test_too_big_for_metis),
		cmocka_unit_test(test_usage),
		cmocka_unit_test(test_train_mask_absent),
		cmocka_unit_test(test_no_space),
		cmocka_unit_test(test_memory_short),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
