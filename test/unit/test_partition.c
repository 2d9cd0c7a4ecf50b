/* graphwire partition, end to end: what it writes is the input again, for graphs with everything the format has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
		gw_fixture_begin(&fixture, seed, seed == 1 ? 17 : 300 * seed, 1);
		gw_fixture_write(&fixture);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_union_is_the_input),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
