/* The bed of import's tests. */
#include "test/support/import_bed.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "test/support/scratch.h"

struct import_bed import_bed;

static void default_options(struct import_bed *bed)
{
	memset(&bed->options, 0, sizeof(bed->options));
	bed->options.words = bed->words;
	bed->options.out = bed->out;
	bed->options.name = "graph";
	bed->options.build.quiet = true;
	bed->options.build.threads = 2;
	strcpy(bed->options.text.comments, "#%");
}

int import_bed_set_up(void **state)
{
	(void)state;
	memset(&import_bed, 0, sizeof(import_bed));
	gw_scratch_make_in_memory("import", import_bed.root);
	snprintf(import_bed.out, sizeof(import_bed.out), "%s/out", import_bed.root);
	default_options(&import_bed);
	return 0;
}

static void close_graph(struct import_bed *bed)
{
	gw_part_close(bed->part);
	gw_meta_destroy(bed->meta);
	bed->part = NULL;
	bed->meta = NULL;
	assert_int_equal(gw_remove_tree(bed->out), GW_OK);
}

int import_bed_tear_down(void **state)
{
	(void)state;
	close_graph(&import_bed);
	assert_int_equal(gw_remove_tree(import_bed.root), GW_OK);
	return 0;
}

void import_bed_reset(struct import_bed *bed)
{
	close_graph(bed);
	default_options(bed);
}

static void path_of(const struct import_bed *bed, const char *name, char path[256])
{
	snprintf(path, 256, "%s/%s", bed->root, name);
}

void import_bed_file(const struct import_bed *bed, const char *name, const void *data, size_t bytes)
{
	char path[256];
	path_of(bed, name, path);
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	if (bytes)
		assert_int_equal(fwrite(data, 1, bytes, file), bytes);
	assert_int_equal(fclose(file), 0);
}

void import_bed_text(const struct import_bed *bed, const char *name, const char *text)
{
	import_bed_file(bed, name, text, strlen(text));
}

void import_bed_gzip(const struct import_bed *bed, const char *name, const void *data, size_t bytes)
{
	char path[256];
	path_of(bed, name, path);
	gzFile file = gzopen(path, "wb1");
	assert_non_null(file);
	assert_int_equal(bytes ? gzwrite(file, data, (unsigned)bytes) : 0, bytes);
	assert_int_equal(gzclose(file), Z_OK);
}

void import_bed_npy(const struct import_bed *bed, const char *name, gw_dtype dtype, uint32_t ndim,
		    const uint64_t *shape, const void *data)
{
	uint8_t header[GW_NPY_HEADER_BYTES];
	uint64_t bytes = gw_dtype_bytes(dtype);
	for (uint32_t i = 0; i < ndim; i++)
		bytes *= shape[i];
	assert_int_equal(gw_npy_format(dtype, ndim, shape, header), GW_OK);
	char path[256];
	path_of(bed, name, path);
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(header, 1, sizeof(header), file), sizeof(header));
	if (bytes)
		assert_int_equal(fwrite(data, 1, bytes, file), bytes);
	assert_int_equal(fclose(file), 0);
}

void import_bed_word(struct import_bed *bed, enum gw_import_kind kind, const char *format, ...)
{
	char text[512];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments); /* NOLINT(clang-analyzer-valist.Uninitialized) */
	va_end(arguments);
	assert_true(bed->options.num_words < BED_WORDS_MAX);
	char *out = bed->texts[bed->options.num_words];
	size_t used = 0, root = strlen(bed->root);
	for (const char *at = text; *at; at++) {
		assert_true(used + root + 2 < sizeof(bed->texts[0]));
		if (*at == '@') {
			memcpy(out + used, bed->root, root);
			used += root;
			out[used++] = '/';
		} else {
			out[used++] = *at;
		}
	}
	out[used] = '\0';
	bed->words[bed->options.num_words++] = (struct gw_import_word){.kind = kind, .text = out};
}

static void assert_nothing_left(const struct import_bed *bed)
{
	DIR *folder = opendir(bed->root);
	assert_non_null(folder);
	for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
		if (strncmp(entry->d_name, "out", 3) == 0)
			fail_msg("left behind: %s", entry->d_name);
	}
	closedir(folder);
}

gw_status import_bed_import(struct import_bed *bed)
{
	gw_status status = gw_import_run(&bed->options, &bed->stats, bed->name);
	if (status != GW_OK)
		assert_nothing_left(bed);
	return status;
}

void import_bed_open(struct import_bed *bed)
{
	struct gw_part_options options = {.mapped = true};
	if (import_bed_import(bed) != GW_OK || gw_meta_read(bed->out, &bed->meta) != GW_OK ||
	    gw_part_open(bed->meta, 0, &options, &bed->part) != GW_OK || gw_part_check(bed->part, 1) != GW_OK)
		fail_msg("%s", gw_last_error());
}

void import_bed_fails(struct import_bed *bed, gw_status status, const char *a, const char *b, const char *c)
{
	const char *const parts[] = {a, b, c};
	gw_status got = import_bed_import(bed);
	if (got != status)
		fail_msg("status %d instead of %d: %s", got, status, gw_last_error());
	for (int i = 0; i < 3 && parts[i]; i++) {
		if (!strstr(gw_last_error(), parts[i]))
			fail_msg("no \"%s\" in \"%s\"", parts[i], gw_last_error());
	}
	assert_null(strchr(gw_last_error(), '\n'));
	import_bed_reset(bed);
}

bool import_bed_has(const struct import_bed *bed, const char *key)
{
	return gw_part_array(bed->part, key) != NULL;
}

const void *import_bed_array(const struct import_bed *bed, const char *key)
{
	const struct gw_array *array = gw_part_array(bed->part, key);
	if (!array)
		fail_msg("no array \"%s\"", key);
	return array ? array->data : NULL;
}

uint64_t import_bed_rows(const struct import_bed *bed, const char *key)
{
	import_bed_array(bed, key);
	return gw_part_array(bed->part, key)->rows;
}

bool import_bed_string_is(const struct import_bed *bed, const char *key, uint64_t i, const char *text)
{
	char name[256];
	snprintf(name, sizeof(name), "%s.offsets", key);
	const uint64_t *offsets = import_bed_array(bed, name);
	assert_true(i + 1 < import_bed_rows(bed, name));
	snprintf(name, sizeof(name), "%s.bytes", key);
	const char *bytes = import_bed_array(bed, name);
	return offsets[i + 1] - offsets[i] == strlen(text) && memcmp(bytes + offsets[i], text, strlen(text)) == 0;
}

struct oracle_edge {
	uint64_t src, dst, row;
	int64_t key;
};

static int compare_edges(const void *left, const void *right)
{
	const struct oracle_edge *a = left, *b = right;
	if (a->dst != b->dst)
		return a->dst < b->dst ? -1 : 1;
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	if (a->src != b->src)
		return a->src < b->src ? -1 : 1;
	return a->row < b->row ? -1 : 1;
}

/* Edges that all have an original id of their own: the way back leads to each. */
static void check_inverse(const struct import_bed *bed, const char *orig_id, const uint32_t *rows, uint64_t count)
{
	char name[280];
	snprintf(name, sizeof(name), "%s.inverse", orig_id);
	const uint32_t *inverse = import_bed_array(bed, name);
	assert_int_equal(import_bed_rows(bed, name), count);
	for (uint64_t at = 0; at < count; at++)
		assert_int_equal(inverse[rows[at]], at);
}

void import_bed_check_edges(const struct import_bed *bed, const char *etype, uint64_t count, const uint64_t *src,
			    const uint64_t *dst, const int64_t *key, bool orig_id)
{
	uint32_t number;
	assert_int_equal(gw_meta_etype(bed->meta, etype, &number), GW_OK);
	const struct gw_adjacency *adjacency = gw_part_adjacency(bed->part, number);
	struct oracle_edge *expected = calloc(count + 1, sizeof(*expected));
	char name[256];
	snprintf(name, sizeof(name), "edge/%s/orig_id", bed->meta->etypes[number].folder);
	const uint32_t *rows = orig_id ? import_bed_array(bed, name) : NULL;
	for (uint64_t i = 0; i < count; i++)
		expected[i] = (struct oracle_edge){.src = src[i], .dst = dst[i], .row = i, .key = key ? key[i] : 0};
	qsort(expected, count, sizeof(*expected), compare_edges);
	assert_int_equal(adjacency->edges, count);
	uint64_t at = 0;
	for (uint64_t v = 0; v < adjacency->rows; v++) {
		uint64_t begin, end;
		gw_adjacency_list(adjacency, v, &begin, &end);
		assert_int_equal(begin, at);
		for (; at < end; at++) {
			assert_true(at < count);
			assert_int_equal(expected[at].dst, v);
			assert_int_equal(expected[at].src, gw_load_id(adjacency->indices, adjacency->index_bytes, at));
			if (rows)
				assert_int_equal(expected[at].row, rows[at]);
		}
	}
	assert_int_equal(at, count);
	free(expected);
	if (rows)
		check_inverse(bed, name, rows, count);
}

const char *import_bed_real_data(void)
{
	static char path[4096];
	const char *given = getenv("GRAPHWIRE_TEST_DATA"), *ci = getenv("CI");
	if (given)
		return given;
	char here[2048];
	assert_non_null(getcwd(here, sizeof(here)));
	for (;;) {
		snprintf(path, sizeof(path), "%s/shared/data", here);
		if (access(path, R_OK) == 0)
			return path;
		char *slash = strrchr(here, '/');
		if (!slash || slash == here)
			break;
		*slash = '\0';
	}
	if (ci && strcmp(ci, "true") == 0)
		fail_msg("no shared/data above this folder, and GRAPHWIRE_TEST_DATA is not set");
	return NULL;
}
