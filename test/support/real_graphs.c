/* Edge lists out of .npz files and gzipped triples, by the plainest means that read them. */
#include "test/support/real_graphs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "tools/import/npz.h"

#define PATH_BYTES 4096
#define LINE_BYTES 512

static bool find_data(char *path)
{
	const char *set = getenv("GRAPHWIRE_TEST_DATA");
	if (set) {
		snprintf(path, PATH_BYTES, "%s", set);
		return access(path, R_OK) == 0;
	}
	char up[PATH_BYTES / 2] = "..";
	for (int depth = 0; depth < 8; depth++, strcat(up, "/..")) {
		snprintf(path, PATH_BYTES, "%s/shared/data", up);
		if (access(path, R_OK) == 0)
			return true;
	}
	return false;
}

static uint64_t *read_ids(const struct gw_npz *npz, const char *name, uint64_t *count)
{
	struct gw_npy_file file;
	if (gw_npz_read(npz, name, &file))
		fail_msg("%s", gw_last_error());
	*count = file.npy.ndim ? file.npy.shape[0] : 1;
	uint64_t *ids = malloc((*count + 1) * sizeof(*ids));
	assert_non_null(ids);
	for (uint64_t i = 0; i < *count; i++) {
		if (file.npy.dtype == GW_INT32)
			ids[i] = (uint64_t)((const int32_t *)file.data)[i];
		else
			ids[i] = (uint64_t)((const int64_t *)file.data)[i];
	}
	gw_npy_close(&file);
	return ids;
}

static void load_npz(const char *path, struct real_graph *out)
{
	struct gw_npz *npz;
	if (gw_npz_open(path, &npz))
		fail_msg("%s", gw_last_error());
	uint64_t count;
	out->src = read_ids(npz, "src", &out->edges);
	out->dst = read_ids(npz, "dst", &count);
	assert_int_equal(count, out->edges);
	for (uint64_t i = 0; i < out->edges; i++) {
		uint64_t larger = out->src[i] > out->dst[i] ? out->src[i] : out->dst[i];
		out->nodes = larger >= out->nodes ? larger + 1 : out->nodes;
	}
	gw_npz_close(npz);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Texts become their places among the different ones in order. Returns how many differ. */
static uint64_t number_texts(char *const *texts, uint64_t count, uint64_t *numbers)
{
	char **sorted = malloc((count + 1) * sizeof(*sorted));
	assert_non_null(sorted);
	memcpy(sorted, texts, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), by_text);
	uint64_t unique = 0;
	for (uint64_t i = 0; i < count; i++) {
		if (i == 0 || strcmp(sorted[i], sorted[unique - 1]) != 0)
			sorted[unique++] = sorted[i];
	}
	for (uint64_t i = 0; i < count; i++)
		numbers[i] = (uint64_t)((char **)bsearch(&texts[i], sorted, unique, sizeof(*sorted), by_text) - sorted);
	free(sorted);
	return unique;
}

/* Lines of head, relation, tail; a list holds the heads of its tail. */
static void load_triples(const char *path, struct real_graph *out)
{
	enum { TRIPLES_MAX = 400000 };
	gzFile file = gzopen(path, "rb");
	if (!file)
		fail_msg("cannot open %s", path);
	char **entities = malloc(2 * TRIPLES_MAX * sizeof(*entities)), line[LINE_BYTES];
	char **relations = malloc(TRIPLES_MAX * sizeof(*relations));
	uint64_t *numbers = malloc(2 * TRIPLES_MAX * sizeof(*numbers)), n = 0;
	assert_true(entities && relations && numbers);
	while (gzgets(file, line, sizeof(line))) {
		char *rest = NULL, *head = strtok_r(line, "\t", &rest), *relation = strtok_r(NULL, "\t", &rest);
		char *tail = strtok_r(NULL, "\r\n", &rest);
		assert_true(head && relation && tail && n < TRIPLES_MAX);
		entities[2 * n] = strdup(head);
		entities[2 * n + 1] = strdup(tail);
		relations[n++] = strdup(relation);
	}
	gzclose(file);
	out->edges = n;
	out->src = malloc((n + 1) * sizeof(uint64_t));
	out->dst = malloc((n + 1) * sizeof(uint64_t));
	out->rel = malloc((n + 1) * sizeof(uint32_t));
	assert_true(out->src && out->dst && out->rel);
	out->nodes = number_texts(entities, 2 * n, numbers);
	for (uint64_t i = 0; i < n; i++) {
		out->src[i] = numbers[2 * i];
		out->dst[i] = numbers[2 * i + 1];
	}
	out->relations = number_texts(relations, n, numbers);
	for (uint64_t i = 0; i < n; i++) {
		out->rel[i] = (uint32_t)numbers[i];
		free(entities[2 * i]);
		free(entities[2 * i + 1]);
		free(relations[i]);
	}
	free(entities);
	free(relations);
	free(numbers);
}

bool real_graph_file(const char *relative, char *path, size_t room)
{
	char folder[PATH_BYTES];
	const char *ci = getenv("CI");
	if (!find_data(folder)) {
		if (ci && strcmp(ci, "true") == 0)
			fail_msg("no test data: set GRAPHWIRE_TEST_DATA");
		return false;
	}
	return snprintf(path, room, "%s/%s", folder, relative) < (int)room;
}

bool real_graph_load(const char *name, struct real_graph *out)
{
	static const char *const files[][2] = {
		{"cora", "cora/cora.npz"},
		{"facebook", "facebook/facebook.npz"},
		{"cnr-2000", "cnr-2000/edges.npz"},
		{"ego-twitter", "ego-twitter/edges.npz"},
		{"fb15k-237", "fb15k-237/train.tsv.gz"},
	};
	char folder[PATH_BYTES], path[PATH_BYTES + 64];
	memset(out, 0, sizeof(*out));
	if (!find_data(folder)) {
		const char *ci = getenv("CI");
		if (ci && strcmp(ci, "true") == 0)
			fail_msg("no test data: set GRAPHWIRE_TEST_DATA");
		return false;
	}
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (strcmp(files[i][0], name) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, files[i][1]);
		if (strstr(path, ".tsv.gz"))
			load_triples(path, out);
		else
			load_npz(path, out);
		return true;
	}
	fail_msg("no graph is called %s", name);
	return false;
}

void real_graph_free(struct real_graph *graph)
{
	free(graph->src);
	free(graph->dst);
	free(graph->rel);
	memset(graph, 0, sizeof(*graph));
}
