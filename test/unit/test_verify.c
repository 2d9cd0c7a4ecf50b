/* graphwire verify and inspect as commands: the exit status, one line on stderr that names the error, JSON on stdout.
 */
#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "test/support/graph_fixture.h"
#include "tools/tools.h"

#define TEXT_MAX 65536

static char output[TEXT_MAX], errors[TEXT_MAX];

static void read_text(const char *path, char text[TEXT_MAX])
{
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	text[fread(text, 1, TEXT_MAX - 1, file)] = '\0';
	fclose(file);
	unlink(path);
}

/* Runs a command in a separate process, since wrong usage ends the process. */
static int run(int (*tool)(int, char **), const char *folder, const char *first, const char *second)
{
	char out[128], err[128];
	char *argv[] = {(char *)"tool", (char *)folder, (char *)first, (char *)second, NULL};
	int argc = folder ? first ? second ? 4 : 3 : 2 : 1, status;
	snprintf(out, sizeof(out), "/tmp/gw-verify-out-%d", (int)getpid());
	snprintf(err, sizeof(err), "/tmp/gw-verify-err-%d", (int)getpid());
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		dup2(open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
		dup2(open(err, O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
		exit(tool(argc, argv));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	read_text(out, output);
	read_text(err, errors);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int lines(const char *text)
{
	int count = 0;
	for (; *text; text++)
		count += *text == '\n';
	return count;
}

static void flip_byte(const struct gw_fixture *fixture, const char *file, long at)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", fixture->folder, file);
	FILE *f = fopen(path, "r+b");
	assert_non_null(f);
	fseek(f, at, SEEK_SET);
	int byte = fgetc(f);
	fseek(f, at, SEEK_SET);
	fputc(byte ^ 1, f);
	fclose(f);
}

static json_t *parse_output(void)
{
	json_t *root = json_loads(output, 0, NULL);
	if (!root)
		fail_msg("not JSON: %s", output);
	assert_int_equal(lines(output), 1);
	return root;
}

static void test_verify(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, 4, 100, 3);
	gw_fixture_write(&fixture);
	assert_int_equal(run(gw_tool_verify, fixture.folder, "--quiet", NULL), 0);
	assert_string_equal(output, "");
	assert_string_equal(errors, "");
	assert_int_equal(run(gw_tool_verify, fixture.folder, "--part=2", NULL), 0);
	assert_non_null(strstr(output, "part 2 of fixture"));
	assert_int_equal(run(gw_tool_verify, fixture.folder, "--json", "--quiet"), 0);
	json_t *root = parse_output();
	assert_true(json_is_true(json_object_get(root, "verified")));
	assert_int_equal(json_integer_value(json_object_get(root, "parts")), 3);
	json_decref(root);

	/* two damaged parts: two lines, each with its file; the third part is intact */
	flip_byte(&fixture, "part0/node/paper/feat.npy", 4096 + 17);
	flip_byte(&fixture, "part2/edge/paper__cites__paper/indices.npy", 4096 + 3);
	assert_int_equal(run(gw_tool_verify, fixture.folder, "--json", "--quiet"), 1);
	assert_int_equal(lines(errors), 2);
	assert_non_null(strstr(errors, "part 0: "));
	assert_non_null(strstr(errors, "part0/node/paper/feat.npy: node/paper/feat: chunk 0"));
	assert_non_null(strstr(errors, "part2/edge/paper__cites__paper/indices.npy"));
	root = parse_output();
	assert_true(json_is_false(json_object_get(root, "verified")));
	assert_non_null(strstr(json_string_value(json_object_get(root, "error")), "feat.npy"));
	json_decref(root);
	assert_int_equal(run(gw_tool_verify, fixture.folder, "--part=1", "--quiet"), 0);
	assert_int_equal(run(gw_tool_verify, fixture.folder, "--part=2", "--quiet"), 1);

	char part[128];
	snprintf(part, sizeof(part), "%s/part1", fixture.folder);
	assert_int_equal(gw_remove_tree(part), GW_OK);
	assert_int_equal(run(gw_tool_verify, fixture.folder, "--part=1", "--quiet"), 1);
	assert_non_null(strstr(errors, "No such file"));
	gw_fixture_end(&fixture);
}

/* Only the inverse of original ids is wrong, which a loader does not check. */
static void test_invalid_inverse(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, 4, 100, 1);
	for (int wrong = 0; wrong < 2; wrong++) {
		struct gw_writer *writer;
		uint64_t rows = fixture.edges[FIXTURE_CITES].count;
		uint32_t *ids = calloc(rows, sizeof(*ids));
		for (uint32_t i = 0; i < rows; i++)
			ids[i] = (uint32_t)rows - 1 - i;
		assert_int_equal(gw_writer_open(fixture.folder, fixture.schema, true, &writer), GW_OK);
		assert_int_equal(gw_fixture_fill(&fixture, writer), GW_OK);
		assert_int_equal(
			gw_writer_array(writer, 0, "edge/paper__cites__paper/orig_id", GW_UINT32, 1, &rows, ids),
			GW_OK);
		ids[0] -= (uint32_t)wrong;
		assert_int_equal(gw_writer_array(writer, 0, "edge/paper__cites__paper/orig_id.inverse", GW_UINT32, 1,
						 &rows, ids),
				 GW_OK);
		free(ids);
		assert_int_equal(gw_writer_commit(writer, NULL), GW_OK);
		assert_int_equal(run(gw_tool_verify, fixture.folder, "--quiet", NULL), wrong);
		assert_int_equal(lines(errors), wrong);
		assert_int_equal(strstr(errors, "orig_id.inverse: row 0 names an edge with another") != NULL, wrong);
	}
	gw_fixture_end(&fixture);
}

/* A dense index of ids that leads to nodes, but not to those that have the ids: in both parts. */
static void test_index_of_other_nodes(void **state)
{
	(void)state;
	struct gw_graph_meta *schema;
	char root[64], folder[96];
	gw_test_folder(root);
	snprintf(folder, sizeof(folder), "%s/g", root);
	for (int wrong = 0; wrong < 2; wrong++) {
		struct gw_writer *writer;
		const int64_t ids[2][2] = {{3, 0}, {2, 1}};
		const uint64_t two = 2;
		assert_int_equal(gw_meta_create("g", 2, 1, 0, &schema), GW_OK);
		strcpy(schema->ntypes[0].name, "n");
		schema->ntypes[0].count = schema->ntypes[0].starts[2] = 4;
		schema->ntypes[0].starts[1] = 2;
		assert_int_equal(gw_meta_finish(schema), GW_OK);
		assert_int_equal(gw_writer_open(folder, schema, true, &writer), GW_OK);
		gw_meta_destroy(schema);
		gw_writer_set_minor(writer, GW_FORMAT_MINOR_IDS);
		const uint32_t nodes[2][2] = {{1, 3}, {2, (uint32_t)wrong}};
		for (uint32_t p = 0; p < 2; p++) {
			assert_int_equal(gw_writer_array(writer, p, "node/n/orig_id", GW_INT64, 1, &two, ids[p]),
					 GW_OK);
			assert_int_equal(
				gw_writer_array(writer, p, "node/n/orig_id.inverse", GW_UINT32, 1, &two, nodes[p]),
				GW_OK);
		}
		assert_int_equal(gw_writer_commit(writer, NULL), GW_OK);
		assert_int_equal(run(gw_tool_verify, folder, "--quiet", NULL), wrong);
		assert_int_equal(strstr(errors, "node type n: the index of its original ids") != NULL, wrong);
	}
	assert_int_equal(gw_remove_tree(root), GW_OK);
}

static void test_inverse_over_parts(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, 4, 100, 2);
	const uint64_t *starts = fixture.schema->etypes[FIXTURE_CITES].starts, edges = starts[2];
	for (int wrong = 0; wrong < 2; wrong++) {
		struct gw_writer *writer;
		uint32_t *ids = calloc(edges, sizeof(*ids));
		for (uint32_t i = 0; i < edges; i++)
			ids[i] = (uint32_t)edges - 1 - i; /* its own inverse */
		assert_int_equal(gw_writer_open(fixture.folder, fixture.schema, true, &writer), GW_OK);
		gw_writer_set_minor(writer, GW_FORMAT_MINOR_IDS);
		assert_int_equal(gw_fixture_fill(&fixture, writer), GW_OK);
		for (uint32_t p = 0; p < 2; p++) {
			uint64_t rows = starts[p + 1] - starts[p];
			assert_int_equal(gw_writer_array(writer, p, "edge/paper__cites__paper/orig_id", GW_UINT32, 1,
							 &rows, ids + starts[p]),
					 GW_OK);
		}
		ids[edges - 1] += (uint32_t)wrong;
		for (uint32_t p = 0; p < 2; p++) {
			uint64_t first = edges * p / 2, rows = edges * (p + 1) / 2 - first;
			assert_int_equal(gw_writer_array(writer, p, "edge/paper__cites__paper/orig_id.inverse",
							 GW_UINT32, 1, &rows, ids + first),
					 GW_OK);
		}
		free(ids);
		assert_int_equal(gw_writer_commit(writer, NULL), GW_OK);
		assert_int_equal(run(gw_tool_verify, fixture.folder, "--quiet", NULL), wrong);
		assert_int_equal(strstr(errors, "its orig_id.inverse does not lead to its edges") != NULL, wrong);
	}
	gw_fixture_end(&fixture);
}

/* Each part is valid by itself, but a reverse type has other edges: only the check of the whole graph finds it. */
static void test_invalid_reverse(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, 4, 100, 2);
	struct gw_fixture_edges *edges = &fixture.edges[FIXTURE_WRITTEN_BY];
	uint64_t at = 0; /* the first edge whose source can change within the order */
	while (edges->src[at] == 0 || (at > 0 && edges->dst[at - 1] == edges->dst[at]))
		at++;
	edges->src[at]--;
	gw_fixture_write(&fixture);
	assert_int_equal(run(gw_tool_verify, fixture.folder, "--quiet", NULL), 1);
	assert_non_null(strstr(errors, "author__writes__paper: its reverse paper__written-by__author"));
	assert_int_equal(run(gw_tool_verify, fixture.folder, "--part=0", "--quiet"), 0);
	gw_fixture_end(&fixture);
}

static void test_usage(void **state)
{
	(void)state;
	assert_int_equal(run(gw_tool_verify, NULL, NULL, NULL), 2);
	assert_non_null(strstr(errors, "name the JSON or the folder"));
	assert_int_equal(run(gw_tool_verify, "a", "b", NULL), 2);
	assert_int_equal(run(gw_tool_verify, "a", "--part=x", NULL), 2);
	assert_int_equal(run(gw_tool_verify, "a", "--what", NULL), 2);
	assert_int_equal(run(gw_tool_verify, "--help", NULL, NULL), 0);
	assert_non_null(strstr(output, "Examples:"));
	assert_int_equal(run(gw_tool_verify, "/nowhere/at/all", NULL, NULL), 1);
	assert_int_equal(lines(errors), 1);
	assert_int_equal(run(gw_tool_verify, "/nowhere/at/all", "--json", NULL), 1);
	json_decref(parse_output());
	assert_int_equal(run(gw_tool_verify, "/nowhere/\xff", "--json", NULL), 1); /* a name that is not UTF-8 */
	json_decref(parse_output());
	assert_int_equal(run(gw_tool_inspect, NULL, NULL, NULL), 2);
	assert_int_equal(run(gw_tool_inspect, "a", "--deep", "--shallow"), 2);
	assert_int_equal(run(gw_tool_inspect, "--help", NULL, NULL), 0);
	assert_int_equal(run(gw_tool_inspect, "/nowhere/at/all", NULL, NULL), 1);
	assert_int_equal(lines(errors), 1);
}

static void test_inspect(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, 4, 100, 3);
	gw_fixture_write(&fixture);
	assert_int_equal(run(gw_tool_inspect, fixture.folder, NULL, NULL), 0);
	assert_non_null(strstr(output, "fixture: "));
	assert_non_null(strstr(output, "paper:cites:paper"));
	assert_non_null(strstr(output, "100 x 5"));
	assert_int_equal(run(gw_tool_inspect, fixture.folder, "--json", NULL), 0);
	json_t *root = parse_output();
	for (uint32_t t = 0; t < GW_FIXTURE_ETYPES; t++) {
		const struct gw_graph_meta *meta = fixture.schema;
		const struct gw_edge_type *type = &meta->etypes[t];
		const struct gw_fixture_edges *edges = &fixture.edges[t];
		uint64_t cut = 0, most = 0;
		for (uint64_t e = 0; e < edges->count; e++) {
			uint32_t p = 0, q = 0; /* owners, by linear search */
			while (edges->src[e] >= meta->ntypes[type->src].starts[p + 1])
				p++;
			while (edges->dst[e] >= meta->ntypes[type->dst].starts[q + 1])
				q++;
			cut += p != q;
		}
		for (uint64_t v = 0; v < meta->ntypes[type->dst].count; v++) {
			uint64_t degree = edges->indptr[v + 1] - edges->indptr[v];
			most = degree > most ? degree : most;
		}
		char text[GW_EDGE_FOLDER_MAX + 1];
		json_t *object =
			json_object_get(json_object_get(root, "edge_types"), gw_meta_etype_text(meta, t, text));
		assert_int_equal(json_integer_value(json_object_get(object, "edges")), edges->count);
		assert_int_equal(json_integer_value(json_object_get(object, "cut")), cut);
		assert_int_equal(json_integer_value(json_object_get(object, "degree_max")), most);
	}
	assert_int_equal(json_array_size(json_object_get(root, "parts")), 3);
	json_decref(root);
	assert_int_equal(run(gw_tool_inspect, fixture.folder, "--json", "--shallow"), 0);
	root = parse_output();
	assert_null(json_object_get(json_object_get(json_object_get(root, "edge_types"), "paper:cites:paper"), "cut"));
	json_decref(root);
	/* a host with one part of three */
	char part[128];
	snprintf(part, sizeof(part), "%s/part1", fixture.folder);
	assert_int_equal(gw_remove_tree(part), GW_OK);
	assert_int_equal(run(gw_tool_inspect, fixture.folder, NULL, NULL), 0);
	assert_non_null(strstr(output, "not all parts"));
	assert_int_equal(run(gw_tool_inspect, fixture.folder, "--deep", NULL), 1);
	gw_fixture_end(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verify),
		cmocka_unit_test(test_invalid_reverse),
		cmocka_unit_test(test_invalid_inverse),
		cmocka_unit_test(test_index_of_other_nodes),
		cmocka_unit_test(test_inverse_over_parts),
		cmocka_unit_test(test_usage),
		cmocka_unit_test(test_inspect),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
