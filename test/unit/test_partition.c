/* graphwire partition from end to end: the parts together are the input, for graphs with every feature of the format.
 */
#include <dirent.h>
#include <errno.h>
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

#include "core/files/staging.h"
#include "core/graph/part.h"
#include "core/memory/alloc.h"
#include "test/support/alloc_fault.h"
#include "test/support/graph_fixture.h"
#include "test/support/many.h"
#include "test/support/partition_oracle.h"
#include "test/support/partition_run.h"
#include "tools/partition/plan.h"
#include "tools/tools.h"

#if defined(__SANITIZE_THREAD__) /* the second one has threads */
#define SEEDS 2
#else
#define SEEDS 3
#endif

static void check_reported_cut(const char *root, const struct gw_oracle_result *result)
{
	char text[16384];
	partition_text(root, "stdout", text, sizeof(text));
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
	static const char *const methods[] = {"metis", "random", "lp"};
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct gw_fixture fixture;
		char out[128];
		partition_begin(&fixture, seed, seed == 1 ? 17 : 300 * seed);
		snprintf(out, sizeof(out), "%s/parts", fixture.root);
		for (int c = 0; c < 4; c++) {
			for (int m = 0; m < 3; m++) {
				const char *words[] = {"--num_parts",
						       counts[c],
						       "--method",
						       methods[m],
						       "--replace",
						       "--json",
						       seed % 2 ? "--balance-train" : "--threads=3",
						       NULL};
				struct gw_oracle_result result;
				partition_run_ok(fixture.root, fixture.folder, out, words);
				gw_oracle_check(fixture.folder, out, &result);
				check_reported_cut(fixture.root, &result);
				assert_int_equal(result.parts, atoi(counts[c]));
			}
		}
		gw_fixture_end(&fixture);
	}
}

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
	static const char *const methods[] = {"metis", "random", "lp"};
	struct gw_fixture fixture;
	char out[128];
	(void)state;
	partition_begin(&fixture, 5, 700);
	snprintf(out, sizeof(out), "%s/parts", fixture.root);
	for (int m = 0; m < 3; m++) {
		uint64_t first = 0, other;
		for (int threads = 1; threads <= 8; threads += threads < 3 ? 1 : 5) {
			char option[32];
			snprintf(option, sizeof(option), "--threads=%d", threads);
			const char *words[] = {"--num-parts=3", "--method",  methods[m],        "--seed=9",
					       option,          "--replace", "--balance-edges", NULL};
			partition_run_ok(fixture.root, fixture.folder, out, words);
			first = threads == 1 ? graph_id(out) : first;
			assert_true(graph_id(out) == first);
		}
		const char *words[] = {"--num-parts=3", "--method", methods[m], "--seed=10", "--replace", NULL};
		partition_run_ok(fixture.root, fixture.folder, out, words);
		other = graph_id(out);
		assert_true(other != first);
	}
	gw_fixture_end(&fixture);
}

/* The largest part divided by the mean. */
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
	partition_begin(&fixture, 6, 4000);
	snprintf(out, sizeof(out), "%s/parts", fixture.root);

	const char *plain[] = {"--num-parts=4", "--replace", NULL};
	partition_run_ok(fixture.root, fixture.folder, out, plain);
	gw_oracle_check(fixture.folder, out, &result);
	assert_true(balance(result.nodes, 4) < 1.05);
	uint64_t cut = result.edges_cut;

	const char *train[] = {"--num-parts=4", "--balance-train", "--balance-edges", "--replace", NULL};
	partition_run_ok(fixture.root, fixture.folder, out, train);
	gw_oracle_check(fixture.folder, out, &result);
	assert_true(balance(result.nodes, 4) < 1.10);
	assert_true(balance(result.train, 4) < 1.10);
	assert_true(balance(result.part_edges, 4) < 1.15);

	const char *types[] = {"--num-parts=4", "--balance_ntypes", "--replace", NULL};
	partition_run_ok(fixture.root, fixture.folder, out, types);
	gw_oracle_check(fixture.folder, out, &result);
	for (uint32_t t = 0; t < GW_FIXTURE_NTYPES; t++) {
		uint64_t *nodes = result.ntype_nodes[t], sum = nodes[0] + nodes[1] + nodes[2] + nodes[3];
		for (uint32_t p = 0; p < 4; p++)
			assert_true((double)nodes[p] < 1.05 * (double)sum / 4 + 1);
	}

	const char *random[] = {"--num-parts=4", "--method=random", "--balance-train", "--replace", NULL};
	partition_run_ok(fixture.root, fixture.folder, out, random);
	gw_oracle_check(fixture.folder, out, &result);
	for (uint32_t p = 1; p < 4; p++) {
		assert_in_range(result.nodes[p] + 1, result.nodes[0], result.nodes[0] + 2);
		assert_in_range(result.train[p] + 1, result.train[0], result.train[0] + 2);
	}
	assert_true(cut < result.edges_cut); /* METIS cuts less than a random partition */
	gw_fixture_end(&fixture);
}

static void test_objective_vol(void **state)
{
	struct gw_fixture fixture;
	struct gw_oracle_result result;
	char out[128];
	(void)state;
	partition_begin(&fixture, 8, 500);
	snprintf(out, sizeof(out), "%s/parts", fixture.root);
	const char *words[] = {"--num-parts=4", "--objtype=vol", "--json", NULL};
	partition_run_ok(fixture.root, fixture.folder, out, words);
	gw_oracle_check(fixture.folder, out, &result);
	check_reported_cut(fixture.root, &result);
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
	partition_begin(&fixture, 9, 600);
	snprintf(out, sizeof(out), "%s/parts", fixture.root);
	const char *words[] = {"--num_parts", "2", "--num_trainers_per_machine", "3", NULL};
	partition_run_ok(fixture.root, fixture.folder, out, words);
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

/* More parts than nodes, and so many parts that lists are sorted by another algorithm: all are valid partitions. */
static void test_extremes(void **state)
{
	static const char *const counts[] = {"2", "5", "40"};
	static const char *const methods[] = {"metis", "random", "lp"};
	(void)state;
	for (uint64_t scale = 2; scale <= 21; scale += 19) {
		struct gw_fixture fixture;
		char out[128];
		partition_begin(&fixture, scale, scale);
		snprintf(out, sizeof(out), "%s/parts", fixture.root);
		for (int c = 0; c < 3; c++) {
			for (int m = 0; m < 3; m++) {
				const char *words[] = {"--num-parts", counts[c],   "--method",
						       methods[m],    "--replace", NULL};
				struct gw_oracle_result result;
				partition_run_ok(fixture.root, fixture.folder, out, words);
				gw_oracle_check(fixture.folder, out, &result);
			}
		}
		gw_fixture_end(&fixture);
	}

	struct gw_fixture fixture;
	struct gw_oracle_result result;
	char out[128], parts[32];
	const char *many[] = {parts, "--method=random", NULL};
	snprintf(parts, sizeof(parts), "--num-parts=%u", gw_many(300));
	partition_begin(&fixture, 5, 400);
	snprintf(out, sizeof(out), "%s/parts", fixture.root);
	partition_run_ok(fixture.root, fixture.folder, out, many);
	gw_oracle_check(fixture.folder, out, &result);
	gw_fixture_end(&fixture);
}

/* A disk of 256 KiB if this process may create one; else a limit of 64 KiB per file. Either way one line is printed,
 * and no file stays. */
static void fill_disk(struct gw_fixture *fixture, const char *method)
{
	char out[128], told[4096];
	const char *words[] = {"--num-parts=2", "--method", method, NULL};
	snprintf(out, sizeof(out), "%s/disk", fixture->root);
	bool disk = (mkdir(out, 0700) == 0 || errno == EEXIST) && unshare(CLONE_NEWNS) == 0 &&
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
		    mount("tmpfs", out, "tmpfs", 0, "size=256k") == 0;
	struct rlimit limit = {65536, 65536};
	if (!disk) {
		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &limit);
	}
	snprintf(out, sizeof(out), "%s/disk/parts", fixture->root);
	int status = partition_run(fixture->root, fixture->folder, out, words);
	partition_text(fixture->root, "stderr", told, sizeof(told));
	snprintf(out, sizeof(out), "%s/disk", fixture->root);
	DIR *folder = opendir(out);
	int left = 0;
	for (struct dirent *entry; folder && (entry = readdir(folder));)
		left += entry->d_name[0] != '.';
	bool full =
		disk ? strstr(told, "No space left") || strstr(told, "do not fit") : strstr(told, "too large") != NULL;
	_exit(status == 1 && folder && left == 0 && full ? 0 : 1);
}

static void test_no_space(void **state)
{
	struct gw_fixture fixture;
	int status;
	(void)state;
	partition_begin(&fixture, 3, 8000);
	for (int m = 0; m < 2; m++) {
		fflush(NULL);
		pid_t child = fork();
		if (child == 0)
			fill_disk(&fixture, m ? "lp" : "metis");
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
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
	return status == GW_OK ? gw_assign(&f->plan, f->part, &f->assignment) : status;
}

static gw_status assign_and_measure(void *context)
{
	struct faulty *f = context;
	struct gw_plan_quality quality = {0};
	gw_status status = assign(f);
	if (status == GW_OK)
		status = gw_plan_quality_measure(&f->plan, f->part, &f->assignment, &quality);
	gw_plan_quality_free(&quality);
	gw_assignment_free(&f->assignment);
	return status;
}

static gw_status find_weights(void *context)
{
	static const char *const word = "weight";
	struct faulty *f = context;
	return gw_plan_weights_find(&word, 1, f->part, 1, &f->plan.weights);
}

static gw_status find_and_free(void *context)
{
	struct faulty *f = context;
	gw_status status = find_weights(context);
	gw_plan_weights_free(&f->plan.weights);
	return status;
}

static gw_status split(void *context)
{
	struct faulty *f = context;
	struct gw_split_stats stats;
	gw_status status = gw_split(&f->plan, f->part, &f->assignment, f->out, false, &stats);
	if (status != GW_OK)
		assert_int_equal(access(f->out, F_OK), -1);
	else
		assert_int_equal(gw_remove_tree(f->out), GW_OK);
	return status;
}

/* A text of the parts of all nodes. */
static void write_given(const struct gw_graph_meta *meta, const char *path)
{
	FILE *file = fopen(path, "w");
	for (uint32_t t = 0; t < meta->num_ntypes; t++) {
		for (uint64_t v = 0; v < meta->ntypes[t].count; v++)
			fprintf(file, "%llu\n", (unsigned long long)(v % 2));
	}
	assert_int_equal(fclose(file), 0);
}

/* Assignment and split are separate: a split has a thousand allocations, and METIS need not run for each. */
static void test_memory_short(void **state)
{
	struct gw_fixture fixture;
	struct gw_graph_meta *meta;
	struct gw_part_options options = {.mapped = true};
	char out[128], given[128];
	const char *const words[] = {given};
	(void)state;
	partition_begin(&fixture, 4, 40);
	snprintf(given, sizeof(given), "%s/given.txt", fixture.root);
	snprintf(out, sizeof(out), "%s/parts", fixture.root);
	assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
	struct faulty f = {.out = out,
			   .plan = {.out = out,
				    .parts = 2,
				    .trainers = 2,
				    .balance_train = true,
				    .balance_edges = true,
				    .threads = 1}};
	assert_int_equal(gw_part_open(meta, 0, &options, &f.part), GW_OK);
	write_given(meta, given);
	f.plan.given = words;
	f.plan.given_count = 1;
	static const enum gw_plan_method methods[] = {GW_PLAN_GIVEN, GW_PLAN_METIS, GW_PLAN_LP, GW_PLAN_RANDOM};
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		f.plan.method = methods[i];
		assert_true(gw_fault_each(assign_and_measure, &f) > 10);
	}
	assert_int_equal(assign(&f), GW_OK);
	assert_true(gw_fault_each(split, &f) > 500); /* moves the table of the input */
	assert_true(gw_fault_each(find_and_free, &f) > 0);
	assert_int_equal(find_weights(&f), GW_OK);
	assert_true(gw_fault_each(split, &f) > 500); /* makes it anew */
	gw_plan_weights_free(&f.plan.weights);
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
		cmocka_unit_test(test_no_space),
		cmocka_unit_test(test_memory_short),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
