/* The writer: refusals by the schema; and the graph appears completely or not at all: when memory is short, when
 * writes and fsyncs fail one by one, after an abort. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "core/graph/npy.h"
#include "core/graph/part.h"
#include "core/numbers/convert.h"
#include "core/numbers/rng.h"
#include "test/support/alloc_fault.h"
#include "test/support/graph_fixture.h"

/* Replaces libc's calls that fail on a full disk: the n-th call fails with ENOSPC. */
static _Atomic long calls_left = -1; /* -1: no failure. Several threads sync files. */

static bool call_fails(void)
{
	long left = atomic_load(&calls_left);
	do {
		if (left < 0)
			return false;
	} while (!atomic_compare_exchange_weak(&calls_left, &left, left - 1));
	if (left > 0)
		return false;
	errno = ENOSPC;
	return true;
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the C library's begin with "__" */
ssize_t write(int fd, const void *data, size_t bytes)
{
	return call_fails() ? -1 : syscall(SYS_write, fd, data, bytes);
}

int fsync(int fd)
{
	return call_fails() ? -1 : (int)syscall(SYS_fsync, fd);
}

static int entries(const char *folder)
{
	DIR *directory = opendir(folder);
	int count = 0;
	assert_non_null(directory);
	for (struct dirent *entry; (entry = readdir(directory));)
		count += entry->d_name[0] != '.';
	closedir(directory);
	return count;
}

static struct gw_writer *begin(const struct gw_fixture *fixture)
{
	struct gw_writer *writer;
	if (gw_writer_open(fixture->folder, fixture->schema, false, &writer) != GW_OK)
		fail_msg("%s", gw_last_error());
	return writer;
}

static void test_nothing_before_commit(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	uint64_t first, second;
	gw_fixture_begin(&fixture, 1, 30, 2);
	struct gw_writer *writer = begin(&fixture);
	assert_int_equal(gw_fixture_fill(&fixture, writer), GW_OK);
	assert_int_equal(access(fixture.folder, F_OK), -1);
	assert_int_equal(gw_writer_commit(writer, &first), GW_OK);
	assert_int_equal(entries(fixture.root), 1);
	assert_int_equal(entries(fixture.folder), 3); /* the JSON and two parts */

	assert_int_equal(gw_writer_open(fixture.folder, fixture.schema, false, &writer), GW_EXISTS);
	assert_null(writer);
	assert_int_equal(gw_writer_open(fixture.folder, fixture.schema, true, &writer), GW_OK);
	assert_int_equal(gw_fixture_fill(&fixture, writer), GW_OK);
	gw_writer_abort(writer);
	assert_int_equal(entries(fixture.root), 1); /* the old graph, unchanged */
	assert_int_equal(gw_writer_open(fixture.folder, fixture.schema, true, &writer), GW_OK);
	assert_int_equal(gw_fixture_fill(&fixture, writer), GW_OK);
	assert_int_equal(gw_writer_commit(writer, &second), GW_OK);
	assert_int_equal(first, second); /* the same arrays, the same id */
	assert_int_equal(entries(fixture.root), 1);
	gw_writer_abort(NULL);
	gw_fixture_end(&fixture);
}

/* Pieces of rows become what a conversion of all rows makes of them, and the JSON says what they were. */
static void rows_are_stored_narrow(void **state)
{
	(void)state;
	static const gw_dtype stored[] = {GW_FLOAT16, GW_BFLOAT16, GW_INT8_ROW};
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, 4, 4000, 1);
	for (size_t s = 0; s < sizeof(stored) / sizeof(stored[0]); s++) {
		const struct gw_conversion c = gw_conversion_of(GW_FLOAT32, stored[s], 5);
		const uint64_t rows = fixture.schema->ntypes[0].count, shape[] = {rows, 5};
		float *data = calloc(rows * 5, sizeof(*data));
		uint8_t *expected = malloc(rows * c.to_bytes);
		struct gw_npy_file file;
		struct gw_array_stream *stream;
		assert_true(data && expected && rows > 3000); /* more than are converted at a time */
		for (uint64_t i = 0; i < rows * 5; i++)
			data[i] = (float)gw_mix64(i) * 0x1p-60f - 7;
		struct gw_writer *writer = begin(&fixture);
		assert_int_equal(gw_writer_store(writer, "node/paper/feat", GW_FLOAT32, 5, stored[s]), GW_OK);
		assert_int_equal(gw_writer_begin(writer, 0, "node/paper/feat", GW_FLOAT32, 2, shape, &stream), GW_OK);
		for (uint64_t at = 0, piece; at < rows; at += piece) {
			piece = at % 977 + 1 < rows - at ? at % 977 + 1 : rows - at;
			assert_int_equal(gw_writer_append(stream, data + at * 5, piece * 20), GW_OK);
		}
		assert_int_equal(gw_writer_end(stream), GW_OK);
		gw_convert_rows(&c, data, expected, rows);
		assert_int_equal(gw_writer_map(writer, 0, "node/paper/feat", &file), GW_OK);
		assert_memory_equal(file.data, expected, rows * c.to_bytes);
		gw_npy_close(&file);
		const struct gw_graph_meta *meta = gw_writer_meta(writer);
		const struct gw_array_meta *array = gw_meta_array(meta, 0, "node/paper/feat");
		assert_int_equal(meta->minor, GW_FORMAT_MINOR_ORIGINALS);
		assert_int_equal(array->dtype, stored[s]);
		assert_int_equal(gw_meta_original(meta, array)->dtype, GW_FLOAT32);
		assert_int_equal(gw_meta_row_numbers(meta, array), 5);
		gw_writer_abort(writer);
		free(data);
		free(expected);
	}
	gw_fixture_end(&fixture);
}

static void narrow_rows_are_checked(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	struct gw_writer *writer;
	struct gw_array_stream *stream;
	float data[30 * 5] = {0};
	gw_fixture_begin(&fixture, 4, 30, 1);
	const uint64_t shape[] = {30, 5}, other[] = {30, 6};
	const float bad[] = {NAN, INFINITY, -INFINITY};
	for (int i = 0; i < 3; i++) {
		writer = begin(&fixture);
		data[17 * 5 + 2] = bad[i];
		assert_int_equal(gw_writer_store(writer, "node/paper/feat", GW_FLOAT32, 5, GW_INT8_ROW), GW_OK);
		assert_int_equal(gw_writer_array(writer, 0, "node/paper/feat", GW_FLOAT32, 2, shape, data), GW_RANGE);
		assert_non_null(strstr(gw_last_error(), "node/paper/feat: row 17, column 2 is "));
		assert_int_equal(gw_writer_commit(writer, NULL), GW_INVALID);
	}
	writer = begin(&fixture);
	assert_int_equal(gw_writer_store(writer, "node/paper/feat", GW_FLOAT32, 5, GW_FLOAT16), GW_OK);
	assert_int_equal(gw_writer_begin(writer, 0, "node/paper/feat", GW_FLOAT32, 2, other, &stream), GW_INVALID);
	assert_int_equal(gw_writer_begin(writer, 0, "node/paper/feat", GW_FLOAT16, 2, shape, &stream), GW_INVALID);
	assert_int_equal(gw_writer_begin(writer, 0, "node/paper/feat", GW_FLOAT32, 2, shape, &stream), GW_OK);
	assert_int_equal(gw_writer_append(stream, data, 30), GW_INVALID);
	gw_writer_drop(stream);
	gw_writer_abort(writer);
	gw_fixture_end(&fixture);
}

static void test_id_distinguishes_graphs(void **state)
{
	(void)state;
	uint64_t ids[3];
	for (uint64_t seed = 0; seed < 3; seed++) {
		struct gw_fixture fixture;
		gw_fixture_begin(&fixture, seed, 30, 2);
		struct gw_writer *writer = begin(&fixture);
		assert_int_equal(gw_fixture_fill(&fixture, writer), GW_OK);
		assert_int_equal(gw_writer_commit(writer, &ids[seed]), GW_OK);
		gw_fixture_end(&fixture);
	}
	assert_true(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]);
}

/* The fixture's part 0 has 15 papers, 8 authors of 16. */
static void test_schema(void **state)
{
	(void)state;
	static const struct {
		uint32_t part;
		const char *key;
		gw_dtype dtype;
		uint32_t ndim;
		uint64_t shape[4];
		const char *says;
	} cases[] = {
		{2, "node/paper/feat", GW_FLOAT32, 1, {15}, "2 parts"},
		{0, "node/paper/feat", GW_FLOAT32, 1, {16}, "16 rows"},
		{0, "node/paper/feat", GW_FLOAT32, 0, {15}, "dimensions"},
		{0, "node/paper/feat", GW_FLOAT32, 2, {15, 0}, "dimension 1"},
		{0, "node/paper/feat", GW_DTYPE_COUNT, 1, {15}, "dtype"},
		{0, "node/paper/feat", GW_INT8_ROW, 2, {15, 13}, "int8_row"},
		{0, "node/paper/feat", GW_INT8_ROW, 1, {15}, "int8_row"},
		{0, "node/paper/feat", GW_INT8_ROW, 2, {15, 8}, "int8_row"},
		{0, "node/paper/..", GW_FLOAT32, 1, {15}, "node/paper/.."},
		{0, "node/paper/a/b", GW_FLOAT32, 1, {15}, "a/b"},
		{0, "node/paper/", GW_FLOAT32, 1, {15}, "node/paper/"},
		{0, "node/paper", GW_FLOAT32, 1, {15}, "node/paper"},
		{0, "node/book/feat", GW_FLOAT32, 1, {15}, "node/book/feat"},
		{0, "../x", GW_FLOAT32, 1, {15}, "../x"},
		{0, "", GW_FLOAT32, 1, {15}, "starts with"},
		{0, "edge/writes/indices", GW_UINT32, 1, {90}, "edge/writes"},
		{0, "node/paper/orig_id", GW_FLOAT32, 1, {15}, "dtype"},
		{0, "node/paper/orig_id", GW_INT64, 2, {15, 1}, "dimensions"},
		{0, "node/paper/orig_id.offsets", GW_UINT64, 1, {15}, "15 rows"},
		{0, "node/paper/orig_id.bytes", GW_INT8, 1, {15}, "dtype"},
		{0, "node/paper/indptr", GW_UINT32, 2, {16, 3}, "columns"},
		{0, "node/paper/indptr", GW_UINT32, 2, {15, 2}, "rows"},
		{0, "node/paper/indptr", GW_INT32, 2, {16, 2}, "dtype"},
		{0, "node/paper/indptr", GW_UINT32, 1, {16}, "dimensions"},
		{0, "node/venue/indptr", GW_UINT32, 2, {2, 1}, "no edge type"},
		{0, "node/paper/out_indptr", GW_UINT32, 2, {16, 1}, "transposed"},
		{0, "edge/author__writes__paper/indices", GW_UINT32, 1, {1}, "rows"},
		{0, "edge/author__writes__paper/indices", GW_INT64, 1, {90}, "dtype"},
		{0, "edge/author__writes__paper/orig_id", GW_UINT64, 1, {90}, "dtype"},
		{0, "edge/author__writes__paper/orig_id.inverse", GW_UINT32, 1, {90}, "one part"},
		{0, "edge/author__knows__author/rel", GW_INT32, 1, {1}, "dtype"},
		{0, "edge/paper__cites__paper/year", GW_FLOAT32, 1, {1}, "dtype"},
		{0, "edge/paper__cites__paper/weight.alias", GW_UINT32, 1, {1}, "dimensions"},
		{0, "edge/paper__cites__paper/out/eid", GW_UINT64, 1, {1}, "transposed"},
		{0, "edge/author__writes__paper/out/weight", GW_UINT64, 1, {1}, "indices and eid"},
		{0, "edge/author__writes__paper/out/eid", GW_UINT32, 1, {1}, "dtype"},
	};
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, 1, 30, 2);
	struct gw_writer *writer = begin(&fixture);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gw_array_stream *stream;
		gw_status status = gw_writer_begin(writer, cases[i].part, cases[i].key, cases[i].dtype, cases[i].ndim,
						   cases[i].shape, &stream);
		if (status != GW_INVALID || stream || !strstr(gw_last_error(), cases[i].says))
			fail_msg("%s: %s: %s", cases[i].key, gw_status_text(status), gw_last_error());
	}
	uint64_t shape[2] = {15, 1ull << 40};
	struct gw_array_stream *stream;
	assert_int_equal(gw_writer_begin(writer, 0, "node/paper/feat", GW_FLOAT32, 2, shape, &stream), GW_LIMIT);
	assert_int_equal(gw_writer_commit(writer, NULL), GW_INVALID); /* a writer that has failed cannot commit */
	assert_int_equal(entries(fixture.root), 0);
	gw_fixture_end(&fixture);
}

/* Masks of several splits raise the minor version of the graph, and only of this graph. */
static void test_masks_of_splits(void **state)
{
	(void)state;
	for (uint32_t ndim = 1; ndim <= 2; ndim++) {
		struct gw_fixture fixture;
		struct gw_graph_meta *meta;
		gw_fixture_begin(&fixture, 1, 30, 2);
		struct gw_writer *writer = begin(&fixture);
		for (uint32_t part = 0; part < 2; part++) {
			const uint64_t *starts = fixture.schema->ntypes[0].starts;
			uint64_t shape[2] = {starts[part + 1] - starts[part], 3};
			bool mask[3 * 64] = {0};
			assert_int_equal(
				gw_writer_array(writer, part, "node/paper/val_mask", GW_BOOL, ndim, shape, mask),
				GW_OK);
		}
		assert_int_equal(gw_fixture_fill(&fixture, writer), GW_OK);
		assert_int_equal(gw_writer_commit(writer, NULL), GW_OK);
		assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
		assert_int_equal(meta->minor, ndim == 1 ? 1 : GW_FORMAT_MINOR_SPLITS);
		assert_int_equal(gw_meta_array(meta, 1, "node/paper/val_mask")->ndim, ndim);
		gw_meta_destroy(meta);
		gw_fixture_end(&fixture);
	}
}

static void test_bytes_must_fit(void **state)
{
	(void)state;
	for (int fault = 0; fault < 4; fault++) {
		struct gw_fixture fixture;
		struct gw_array_stream *stream, *again;
		uint64_t shape = 2;
		const uint16_t data[3] = {1, 2, 3};
		gw_fixture_begin(&fixture, 1, 30, 1);
		fixture.schema->ntypes[2].count = fixture.schema->ntypes[2].starts[1] = 2;
		struct gw_writer *writer = begin(&fixture);
		assert_int_equal(gw_writer_begin(writer, 0, "node/venue/x", GW_UINT16, 1, &shape, &stream), GW_OK);
		assert_int_equal(gw_writer_append(stream, data, 1), GW_OK);
		if (fault == 0) {
			assert_int_equal(gw_writer_end(stream), GW_INVALID);
			assert_non_null(strstr(gw_last_error(), "node/venue/x: 1 bytes came, its shape has 4"));
		} else if (fault == 1) {
			assert_int_equal(gw_writer_append(stream, data, 4), GW_INVALID);
			assert_int_equal(gw_writer_end(stream), GW_INVALID);
		} else if (fault == 2) {
			assert_int_equal(gw_writer_append(stream, (const char *)data + 1, 3), GW_OK);
			assert_int_equal(gw_writer_end(stream), GW_OK);
			assert_int_equal(gw_writer_begin(writer, 0, "node/venue/x", GW_UINT16, 1, &shape, &again),
					 GW_EXISTS);
			assert_null(again);
		} else {
			gw_writer_drop(stream);
		}
		assert_int_equal(gw_writer_commit(writer, NULL), GW_INVALID);
		assert_int_equal(entries(fixture.root), 0);
		gw_fixture_end(&fixture);
	}
}

static void test_commit_wants_all(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, 1, 30, 2);
	struct gw_writer *writer = begin(&fixture);
	assert_int_equal(gw_writer_commit(writer, NULL), GW_INVALID);
	assert_non_null(strstr(gw_last_error(), "part 0: there is no \"node/paper/indptr\""));
	/* a feature that only one part has */
	writer = begin(&fixture);
	assert_int_equal(gw_fixture_fill(&fixture, writer), GW_OK);
	uint64_t rows = 15;
	uint8_t data[15] = {0};
	assert_int_equal(gw_writer_array(writer, 1, "node/paper/more", GW_UINT8, 1, &rows, data), GW_OK);
	assert_int_equal(gw_writer_commit(writer, NULL), GW_INVALID);
	assert_non_null(strstr(gw_last_error(), "node/paper/more"));
	/* one of two dtypes */
	writer = begin(&fixture);
	assert_int_equal(gw_fixture_fill(&fixture, writer), GW_OK);
	assert_int_equal(gw_writer_array(writer, 1, "node/paper/more", GW_UINT8, 1, &rows, data), GW_OK);
	assert_int_equal(gw_writer_array(writer, 0, "node/paper/more", GW_INT8, 1, &rows, data), GW_OK);
	assert_int_equal(gw_writer_commit(writer, NULL), GW_INVALID);
	assert_non_null(strstr(gw_last_error(), "node/paper/more"));
	/* ids that are both text and numbers; a table of names that differs between parts */
	writer = begin(&fixture);
	assert_int_equal(gw_fixture_fill(&fixture, writer), GW_OK);
	for (uint32_t p = 0; p < 2; p++) {
		const int64_t ids[15] = {0};
		assert_int_equal(gw_writer_array(writer, p, "node/paper/orig_id", GW_INT64, 1, &rows, ids), GW_OK);
	}
	assert_int_equal(gw_writer_commit(writer, NULL), GW_INVALID);
	assert_non_null(strstr(gw_last_error(), "not both"));
	for (int fault = 0; fault < 3; fault++) {
		const uint64_t three[4] = {0, 1, 2, 3};
		writer = begin(&fixture);
		assert_int_equal(gw_fixture_fill(&fixture, writer), GW_OK);
		assert_int_equal(gw_writer_strings(writer, 0, "node/paper/label.names", three, 3, "abc"), GW_OK);
		assert_int_equal(gw_writer_strings(writer, 1, "node/paper/label.names", three, fault == 1 ? 2 : 3,
						   fault == 2 ? "abd" : "abc"),
				 GW_OK);
		if (fault == 0) {
			gw_writer_abort(writer);
			continue;
		}
		assert_int_equal(gw_writer_commit(writer, NULL), GW_INVALID);
		assert_non_null(strstr(gw_last_error(), "node/paper/label.names."));
	}
	/* offsets without bytes; a stream that is not ended */
	writer = begin(&fixture);
	assert_int_equal(gw_fixture_fill(&fixture, writer), GW_OK);
	uint64_t offsets[16] = {0}, count = 16;
	assert_int_equal(gw_writer_array(writer, 0, "node/paper/s.offsets", GW_UINT64, 1, &count, offsets), GW_OK);
	assert_int_equal(gw_writer_commit(writer, NULL), GW_INVALID);
	assert_non_null(strstr(gw_last_error(), "node/paper/s.bytes"));
	writer = begin(&fixture);
	struct gw_array_stream *stream;
	assert_int_equal(gw_writer_begin(writer, 0, "node/paper/more", GW_UINT8, 1, &rows, &stream), GW_OK);
	gw_writer_drop(stream);
	assert_int_equal(gw_writer_commit(writer, NULL), GW_INVALID);
	assert_int_equal(entries(fixture.root), 0);
	gw_fixture_end(&fixture);
}

/* Finds an array's file before the commit, by its name under the only temporary folder. */
static void staged(const struct gw_fixture *fixture, const char *file, char path[512])
{
	DIR *directory = opendir(fixture->root);
	path[0] = '\0';
	for (struct dirent *entry; (entry = readdir(directory));) {
		if (entry->d_name[0] != '.')
			snprintf(path, 512, "%s/%.200s/%s", fixture->root, entry->d_name, file);
	}
	closedir(directory);
}

static gw_dtype written_dtype(const struct gw_fixture *fixture, const char *file)
{
	char path[512];
	struct gw_npy_file npy;
	staged(fixture, file, path);
	if (gw_npy_open(path, &npy) != GW_OK)
		fail_msg("%s", gw_last_error());
	gw_dtype dtype = npy.npy.dtype;
	gw_npy_close(&npy);
	return dtype;
}

/* 2^32 - 1 itself means "no edge", so it is the first value that takes 8 bytes. */
static void test_narrowest_type(void **state)
{
	(void)state;
	static const uint64_t tops[] = {UINT32_MAX - 1, UINT32_MAX, 1ull << 32};
	for (size_t i = 0; i < 3; i++) {
		struct gw_fixture fixture;
		gw_fixture_begin(&fixture, 1, 30, 1);
		struct gw_graph_meta *meta = fixture.schema;
		meta->ntypes[0].count = meta->ntypes[0].starts[1] = 1;
		meta->etypes[FIXTURE_CITES].count = meta->etypes[FIXTURE_CITES].starts[1] = 3;
		struct gw_writer *writer = begin(&fixture);
		const uint64_t first[2] = {0, 5}, second[2] = {0, tops[i]}, ids[3] = {0, 1, tops[i] - 1};
		const uint64_t *columns[2] = {first, second};
		assert_int_equal(gw_writer_indptr(writer, 0, "node/paper/indptr", 1, 2, columns), GW_OK);
		assert_int_equal(gw_writer_ids(writer, 0, "edge/paper__cites__paper/indices", ids, 3, tops[i]), GW_OK);
		gw_dtype wide = i == 0 ? GW_UINT32 : GW_UINT64;
		assert_int_equal(written_dtype(&fixture, "part0/node/paper/indptr.npy"), wide);
		assert_int_equal(written_dtype(&fixture, "part0/edge/paper__cites__paper/indices.npy"), wide);
		gw_writer_abort(writer);
		gw_fixture_end(&fixture);
	}
}

static void test_ids_out_of_range(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, 1, 30, 1);
	fixture.schema->etypes[FIXTURE_CITES].count = fixture.schema->etypes[FIXTURE_CITES].starts[1] = 3;
	struct gw_writer *writer = begin(&fixture);
	const uint64_t ids[3] = {0, 30, 1};
	assert_int_equal(gw_writer_ids(writer, 0, "edge/paper__cites__paper/indices", ids, 3, 30), GW_RANGE);
	assert_non_null(strstr(gw_last_error(), "edge/paper__cites__paper/indices: entry 1 is 30"));
	gw_writer_abort(writer);
	assert_int_equal(entries(fixture.root), 0);
	gw_fixture_end(&fixture);
}

/* Large arrays in odd pieces, by several threads at once, have the written bytes. */
struct job {
	struct gw_writer *writer;
	char key[32];
	uint32_t number;
	gw_status status;
};

#define BIG_ROWS 3000000u /* 12 MB: several buffers, several digests */

static uint32_t big_value(uint32_t number, uint64_t i)
{
	return (uint32_t)i * 2654435761u + number;
}

static void *write_big(void *context)
{
	struct job *job = context;
	struct gw_array_stream *stream;
	uint64_t rows = BIG_ROWS, at = 0;
	uint32_t *data = malloc(BIG_ROWS * sizeof(*data));
	for (uint64_t i = 0; i < BIG_ROWS; i++)
		data[i] = big_value(job->number, i);
	job->status = gw_writer_begin(job->writer, 0, job->key, GW_UINT32, 1, &rows, &stream);
	for (size_t piece = 1; job->status == GW_OK && at < 4 * rows; piece = piece * 5 + job->number) {
		size_t bytes = piece < 4 * rows - at ? piece : 4 * rows - at;
		job->status = gw_writer_append(stream, (const char *)data + at, bytes);
		at += bytes;
	}
	if (job->status == GW_OK)
		job->status = gw_writer_end(stream);
	free(data);
	return NULL;
}

static void test_streams_in_parallel(void **state)
{
	(void)state;
	struct gw_graph_meta *meta;
	char root[64], folder[96];
	gw_test_folder(root);
	snprintf(folder, sizeof(folder), "%s/g", root);
	assert_int_equal(gw_meta_create("g", 1, 1, 0, &meta), GW_OK);
	strcpy(meta->ntypes[0].name, "n");
	meta->ntypes[0].count = meta->ntypes[0].starts[1] = BIG_ROWS;
	assert_int_equal(gw_meta_finish(meta), GW_OK);
	struct job jobs[3];
	pthread_t threads[3];
	struct gw_writer *writer;
	assert_int_equal(gw_writer_open(folder, meta, false, &writer), GW_OK);
	gw_meta_destroy(meta);
	for (uint32_t i = 0; i < 3; i++) {
		jobs[i] = (struct job){.writer = writer, .number = i + 1};
		snprintf(jobs[i].key, sizeof(jobs[i].key), "node/n/f%u", i);
		assert_int_equal(pthread_create(&threads[i], NULL, write_big, &jobs[i]), 0);
	}
	for (uint32_t i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(jobs[i].status, GW_OK);
	}
	assert_int_equal(gw_writer_commit(writer, NULL), GW_OK);
	struct gw_part_options options = {.mapped = true};
	struct gw_part *part;
	assert_int_equal(gw_meta_read(folder, &meta), GW_OK);
	if (gw_part_open(meta, 0, &options, &part) != GW_OK)
		fail_msg("%s", gw_last_error());
	for (uint32_t f = 0; f < 3; f++) {
		const uint32_t *data = (const uint32_t *)gw_part_array(part, jobs[f].key)->data;
		for (uint64_t i = 0; i < BIG_ROWS; i++) {
			if (data[i] != big_value(f + 1, i))
				fail_msg("%s differs at %lu", jobs[f].key, (unsigned long)i);
		}
	}
	gw_part_close(part);
	gw_meta_destroy(meta);
	assert_int_equal(gw_remove_tree(root), GW_OK);
}

static gw_status write_graph(void *context)
{
	const struct gw_fixture *fixture = context;
	struct gw_writer *writer;
	gw_status status = gw_writer_open(fixture->folder, fixture->schema, true, &writer);
	if (status != GW_OK)
		return status;
	status = gw_fixture_fill(fixture, writer);
	if (status == GW_OK)
		return gw_writer_commit(writer, NULL);
	gw_writer_abort(writer);
	return status;
}

static void test_memory_short(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, 1, 8, 1);
	assert_true(gw_fault_each(write_graph, &fixture) > 100);
	assert_int_equal(entries(fixture.root), 1); /* from the last run, which met no fault */
	gw_fixture_end(&fixture);
}

static void check_whole(const struct gw_fixture *fixture)
{
	struct gw_graph_meta *meta;
	struct gw_part *part;
	struct gw_part_options options = {.mapped = true};
	assert_int_equal(entries(fixture->root), 1);
	assert_int_equal(gw_meta_read(fixture->folder, &meta), GW_OK);
	assert_int_equal(gw_part_open(meta, 0, &options, &part), GW_OK);
	gw_part_close(part);
	gw_meta_destroy(meta);
	assert_int_equal(gw_remove_tree(fixture->folder), GW_OK);
}

static void test_no_space(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, 1, 8, 1);
	long n = 0;
	for (;; n++) {
		calls_left = n;
		gw_status status = write_graph(&fixture);
		bool hit = calls_left < 0;
		calls_left = -1;
		if (!hit) {
			assert_int_equal(status, GW_OK);
			break;
		}
		if (status != GW_NO_SPACE || !strstr(gw_last_error(), "No space left"))
			fail_msg("call %ld: %s: %s", n, gw_status_text(status), gw_last_error());
		/* no graph, or a complete one if only the parent's fsync failed */
		if (entries(fixture.root) > 0)
			check_whole(&fixture);
	}
	assert_true(n > 60); /* header, payload and digests of each array, and as many fsyncs */
	gw_fixture_end(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_before_commit),
		cmocka_unit_test(rows_are_stored_narrow),
		cmocka_unit_test(narrow_rows_are_checked),
		cmocka_unit_test(test_id_distinguishes_graphs),
		cmocka_unit_test(test_schema),
		cmocka_unit_test(test_masks_of_splits),
		cmocka_unit_test(test_bytes_must_fit),
		cmocka_unit_test(test_commit_wants_all),
		cmocka_unit_test(test_narrowest_type),
		cmocka_unit_test(test_ids_out_of_range),
		cmocka_unit_test(test_streams_in_parallel),
		cmocka_unit_test(test_memory_short),
		cmocka_unit_test(test_no_space),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
