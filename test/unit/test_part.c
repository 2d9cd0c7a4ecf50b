/* Parts opened both ways: every array and list is what was written, and whatever is damaged is named. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/alloc.h"
#include "core/base/digest.h"
#include "core/base/staging.h"
#include "core/graph/alias.h"
#include "core/graph/npy.h"
#include "core/graph/part.h"
#include "test/support/alloc_fault.h"
#include "test/support/graph_fixture.h"

/* pread taken over from libc: the n-th call fails with EIO. Headers and digests are read by it. */
static _Atomic long reads_left = -1; /* -1: none fails */

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the C library's begin with "__" */
ssize_t pread(int fd, void *data, size_t bytes, off_t offset)
{
	if (reads_left >= 0 && reads_left-- == 0) {
		errno = EIO;
		return -1;
	}
	return syscall(SYS_pread64, fd, data, bytes, offset);
}

static void open_part(const struct gw_graph_meta *meta, uint32_t number, bool mapped, struct gw_part **part)
{
	struct gw_part_options options = {.mapped = mapped, .arena = {.name = "test", .huge = GW_HUGE_OFF}};
	if (gw_part_open(meta, number, &options, part) != GW_OK)
		fail_msg("%s", gw_last_error());
}

/* Every list of every part is the slice of the whole graph's. */
static void check_lists(const struct gw_fixture *fixture, const struct gw_part *part)
{
	const struct gw_graph_meta *meta = gw_part_meta(part);
	uint32_t p = gw_part_number(part);
	for (uint32_t t = 0; t < meta->num_etypes; t++) {
		const struct gw_fixture_edges *edges = &fixture->edges[t];
		const struct gw_adjacency *a = gw_part_adjacency(part, t);
		const uint64_t *starts = meta->ntypes[meta->etypes[t].dst].starts;
		assert_int_equal(a->rows, starts[p + 1] - starts[p]);
		assert_int_equal(a->dst_start, starts[p]);
		assert_int_equal(a->edge_start, edges->indptr[starts[p]]);
		for (uint64_t row = 0; row < a->rows; row++) {
			uint64_t from, to;
			gw_adjacency_list(a, row, &from, &to);
			assert_int_equal(from + a->edge_start, edges->indptr[starts[p] + row]);
			assert_int_equal(to + a->edge_start, edges->indptr[starts[p] + row + 1]);
			for (uint64_t i = from; i < to; i++)
				assert_int_equal(gw_load_id(a->indices, a->index_bytes, i),
						 edges->src[a->edge_start + i]);
		}
	}
}

static void test_round_trip(void **state)
{
	(void)state;
	for (uint32_t parts = 1; parts <= 4; parts++) {
		struct gw_fixture fixture;
		struct gw_graph_meta *meta;
		gw_fixture_begin(&fixture, 7, 301, parts);
		gw_fixture_write(&fixture);
		if (gw_meta_read(fixture.folder, &meta) != GW_OK)
			fail_msg("%s", gw_last_error());
		for (uint32_t p = 0; p < parts; p++) {
			for (int mapped = 0; mapped < 2; mapped++) {
				struct gw_part *part;
				open_part(meta, p, mapped, &part);
				check_lists(&fixture, part);
				gw_part_close(part);
			}
		}
		gw_meta_destroy(meta);
		gw_fixture_end(&fixture);
	}
}

/* --- what lies where ---------------------------------------------------------------------------------------------- */

static void test_layout(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	struct gw_graph_meta *meta;
	struct gw_part *part, *mapped;
	gw_fixture_begin(&fixture, 9, 500, 3);
	gw_fixture_write(&fixture);
	assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
	open_part(meta, 2, false, &part);
	open_part(meta, 2, true, &mapped);
	assert_ptr_equal(gw_part_meta(part), meta);
	assert_int_equal(gw_part_number(part), 2);
	assert_null(gw_part_arena(mapped));
	uint64_t end = 0, bytes = 0;
	uint32_t count = 0;
	for (const struct gw_array *a; (a = gw_part_array_at(part, count)); count++) {
		const struct gw_array *b = gw_part_array_at(mapped, count);
		assert_ptr_equal(a->meta, &meta->parts[2].arrays[count]); /* the JSON's order */
		assert_ptr_equal(gw_part_array(part, a->meta->key), a);
		assert_true(a->offset >= end && a->offset - end < GW_ARENA_ALIGN && a->offset % GW_ARENA_ALIGN == 0);
		assert_ptr_equal(a->data, gw_arena_base(gw_part_arena(part)) + a->offset);
		assert_int_equal(a->rows * a->row_bytes, gw_array_meta_bytes(a->meta));
		assert_memory_equal(a->data, b->data, a->rows * a->row_bytes);
		end = a->offset + a->rows * a->row_bytes;
		bytes += a->rows * a->row_bytes;
	}
	assert_int_equal(count, meta->parts[2].count);
	assert_int_equal(gw_part_load_stats(part)->bytes, bytes);
	assert_null(gw_part_array(part, "node/paper/none"));
	gw_part_close(part);
	gw_part_close(mapped);
	gw_part_close(NULL);
	assert_int_equal(gw_part_open(meta, 3, NULL, &part), GW_RANGE);
	assert_null(part);
	gw_meta_destroy(meta);
	gw_fixture_end(&fixture);
}

/* Through the transposed lists of all parts, every edge is met once and from its source. */
static void test_transpose(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	struct gw_graph_meta *meta;
	gw_fixture_begin(&fixture, 5, 200, 3);
	gw_fixture_write(&fixture);
	assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
	const struct gw_fixture_edges *edges = &fixture.edges[FIXTURE_WRITES];
	uint8_t *seen = gw_calloc(edges->count, 1);
	for (uint32_t p = 0; p < 3; p++) {
		struct gw_part *part;
		open_part(meta, p, true, &part);
		assert_null(gw_part_out_adjacency(part, FIXTURE_CITES));
		const struct gw_adjacency *a = gw_part_out_adjacency(part, FIXTURE_WRITES);
		for (uint64_t row = 0; row < a->rows; row++) {
			uint64_t from, to;
			gw_adjacency_list(a, row, &from, &to);
			for (uint64_t i = from; i < to; i++) {
				assert_int_equal(edges->src[a->eid[i]], a->dst_start + row);
				assert_int_equal(edges->dst[a->eid[i]], gw_load_id(a->indices, a->index_bytes, i));
				assert_int_equal(seen[a->eid[i]]++, 0);
			}
		}
		gw_part_close(part);
	}
	assert_null(memchr(seen, 0, edges->count));
	gw_free(seen);
	gw_meta_destroy(meta);
	gw_fixture_end(&fixture);
}

/* --- damaged files ------------------------------------------------------------------------------------------------ */

struct file {
	char path[256];
	size_t bytes;
	uint8_t *data;
};

static void take_file(struct file *file, const char *folder, const char *name)
{
	snprintf(file->path, sizeof(file->path), "%s/%s", folder, name);
	FILE *f = fopen(file->path, "rb");
	if (!f)
		fail_msg("no file %s", file->path);
	fseek(f, 0, SEEK_END);
	file->bytes = (size_t)ftell(f);
	rewind(f);
	file->data = malloc(file->bytes + 1);
	assert_int_equal(fread(file->data, 1, file->bytes, f), file->bytes);
	fclose(f);
}

static void put_file(const struct file *file, size_t bytes)
{
	FILE *f = fopen(file->path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(file->data, 1, bytes, f), bytes);
	fclose(f);
}

/* Opens part 0 both ways; both must fail so, naming file and key in one line. */
static void expect_fault(const struct gw_graph_meta *meta, gw_status wanted, const char *file, const char *key,
			 const char *says)
{
	for (int mapped = 0; mapped < 2; mapped++) {
		struct gw_part_options options = {.mapped = mapped, .arena = {.name = "test", .huge = GW_HUGE_OFF}};
		struct gw_part *part;
		gw_status status = gw_part_open(meta, 0, &options, &part);
		const char *text = gw_last_error();
		if (status != wanted || !strstr(text, file) || !strstr(text, key) || !strstr(text, says) ||
		    strchr(text, '\n'))
			fail_msg("%s, wanted %s with %s, %s, %s: %s", gw_status_text(status), gw_status_text(wanted),
				 file, key, says, text);
		assert_null(part);
	}
}

static void damage(const struct gw_graph_meta *meta, const char *folder, const struct gw_array_meta *array)
{
	struct file npy = {0}, xxh = {0};
	char name[256];
	take_file(&npy, folder, array->file);
	snprintf(name, sizeof(name), "%.*s.xxh", (int)strlen(array->file) - 4, array->file);
	take_file(&xxh, folder, name);

	if (npy.bytes > GW_NPY_HEADER_BYTES) {
		npy.data[npy.bytes - 1] ^= 1;
		put_file(&npy, npy.bytes);
		expect_fault(meta, GW_DIGEST, npy.path, array->key, "0");
		npy.data[npy.bytes - 1] ^= 1;
		put_file(&npy, npy.bytes - 1);
		expect_fault(meta, GW_FORMAT, npy.path, array->key, "truncated");
		put_file(&npy, npy.bytes);

		xxh.data[3] ^= 0x80;
		put_file(&xxh, xxh.bytes);
		expect_fault(meta, GW_DIGEST, xxh.path, array->key, "digest");
		xxh.data[3] ^= 0x80;
		put_file(&xxh, xxh.bytes - 1);
		expect_fault(meta, GW_FORMAT, xxh.path, array->key, "bytes long");
		put_file(&xxh, xxh.bytes);
	}
	npy.data[npy.bytes] = 0;
	put_file(&npy, npy.bytes + 1);
	expect_fault(meta, GW_FORMAT, npy.path, array->key, "follow its payload");
	put_file(&npy, 100);
	expect_fault(meta, GW_FORMAT, npy.path, array->key, "header");
	put_file(&npy, 0);
	expect_fault(meta, GW_FORMAT, npy.path, array->key, "npy");
	unlink(npy.path);
	expect_fault(meta, GW_NOT_FOUND, npy.path, array->key, "");
	put_file(&npy, npy.bytes);
	unlink(xxh.path);
	expect_fault(meta, GW_NOT_FOUND, xxh.path, array->key, "");
	put_file(&xxh, xxh.bytes);

	/* a header that is well-formed, but not what the JSON says */
	uint64_t shape[GW_DIMS_MAX];
	memcpy(shape, array->shape, sizeof(shape));
	shape[array->ndim - 1]++;
	assert_int_equal(gw_npy_format(array->dtype, array->ndim, shape, npy.data), GW_OK);
	put_file(&npy, npy.bytes);
	expect_fault(meta, GW_FORMAT, npy.path, array->key, "dimension");
	gw_dtype other = array->dtype == GW_FLOAT64 ? GW_FLOAT32 : GW_FLOAT64;
	assert_int_equal(gw_npy_format(other, array->ndim, array->shape, npy.data), GW_OK);
	put_file(&npy, npy.bytes);
	expect_fault(meta, GW_FORMAT, npy.path, array->key, "float");
	assert_int_equal(gw_npy_format(array->dtype, array->ndim, array->shape, npy.data), GW_OK);
	put_file(&npy, npy.bytes);
	free(npy.data);
	free(xxh.data);
}

static void test_damaged_files(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	struct gw_graph_meta *meta;
	struct gw_part *part;
	gw_fixture_begin(&fixture, 2, 60, 2);
	gw_fixture_write(&fixture);
	assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
	for (uint32_t i = 0; i < meta->parts[0].count; i++)
		damage(meta, fixture.folder, &meta->parts[0].arrays[i]);
	open_part(meta, 0, false, &part); /* all mended again */
	gw_part_close(part);
	gw_meta_destroy(meta);
	gw_fixture_end(&fixture);
}

/* Files of another graph with the same shapes, digests and all; then a whole part of it. */
static void test_files_of_another_graph(void **state)
{
	(void)state;
	struct gw_fixture ours, theirs;
	struct gw_graph_meta *meta;
	char command[512];
	gw_fixture_begin(&ours, 2, 60, 1);
	gw_fixture_begin(&theirs, 3, 60, 1);
	gw_fixture_write(&ours);
	gw_fixture_write(&theirs);
	assert_int_equal(gw_meta_read(ours.folder, &meta), GW_OK);
	snprintf(command, sizeof(command),
		 "cp %s/part0/edge/paper__cites__paper/indices.* %s/part0/edge/paper__cites__paper/", theirs.folder,
		 ours.folder);
	assert_int_equal(system(command), 0);
	expect_fault(meta, GW_DIGEST, "indices.xxh", "edge/paper__cites__paper/indices", "another graph");
	snprintf(command, sizeof(command), "cp -r %s/part0 %s/", theirs.folder, ours.folder);
	assert_int_equal(system(command), 0);
	expect_fault(meta, GW_DIGEST, ".xxh", "edge/", "another graph");
	gw_meta_destroy(meta);
	gw_fixture_end(&ours);
	gw_fixture_end(&theirs);
}

/* --- numbers that make no sense, under digests that fit ----------------------------------------------------------- */

/* Writes bytes into an array's payload and makes every digest, the graph's id included, agree with them. */
static void forge(const char *folder, const char *key, uint64_t at, const void *bytes, size_t count)
{
	struct gw_graph_meta *meta;
	struct file npy = {0}, xxh = {0}, json = {0};
	char name[256], *text;
	assert_int_equal(gw_meta_read(folder, &meta), GW_OK);
	struct gw_array_meta *array = (struct gw_array_meta *)gw_meta_array(meta, 0, key);
	assert_non_null(array);
	take_file(&npy, folder, array->file);
	snprintf(name, sizeof(name), "%.*s.xxh", (int)strlen(array->file) - 4, array->file);
	take_file(&xxh, folder, name);
	take_file(&json, folder, "fixture.json");
	assert_true(GW_NPY_HEADER_BYTES + at + count <= npy.bytes && npy.bytes < GW_DIGEST_CHUNK);
	memcpy(npy.data + GW_NPY_HEADER_BYTES + at, bytes, count);
	uint64_t digest = gw_digest(npy.data + GW_NPY_HEADER_BYTES, npy.bytes - GW_NPY_HEADER_BYTES);
	memcpy(xxh.data, &digest, sizeof(digest));
	array->digest = gw_digest(&digest, sizeof(digest));
	assert_int_equal(gw_meta_digest(meta, &meta->graph_id), GW_OK);
	assert_int_equal(gw_meta_print(meta, &text), GW_OK);
	put_file(&npy, npy.bytes);
	put_file(&xxh, xxh.bytes);
	FILE *f = fopen(json.path, "w");
	fputs(text, f);
	fclose(f);
	gw_free(text);
	free(npy.data);
	free(xxh.data);
	free(json.data);
	gw_meta_destroy(meta);
}

#define U32(...) 4, (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__})
#define U64(...) 8, (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__})
#define U8(...)  1, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

static void test_senseless_numbers(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, 2, 60, 1);
	/* the first lists with at least two edges, to put their entries out of order */
	uint64_t pair[GW_FIXTURE_ETYPES];
	for (uint32_t t = 0; t < GW_FIXTURE_ETYPES; t++) {
		const uint64_t *indptr = fixture.edges[t].indptr;
		uint64_t row = 0;
		while (indptr[row + 1] - indptr[row] < 2)
			row++;
		pair[t] = indptr[row];
	}
	const struct {
		const char *key;
		uint64_t element; /* from here on */
		size_t width;
		const void *bytes;
		size_t count;
		gw_status status;
		const char *says;
	} cases[] = {
		{"node/paper/indptr", 0, U32(1), GW_FORMAT, "row 0, column 0"},
		{"node/paper/indptr", 1, U32(1), GW_FORMAT, "row 0, column 1"},
		{"node/paper/indptr", 2 * 7, U32(UINT32_MAX), GW_FORMAT, "row 6, column 0"},
		{"node/paper/indptr", 2 * 60 + 1, U32(0), GW_FORMAT, "row 60, column 1"},
		{"node/author/out_indptr", 0, U32(1), GW_FORMAT, "row 0, column 0"},
		{"node/author/out_indptr", 5, U32(UINT32_MAX), GW_FORMAT, "row 4, column 0"},
		{"edge/author__writes__paper/indices", 5, U32(31), GW_RANGE, "position 5: id 31"},
		{"edge/author__writes__paper/indices", 359, U32(UINT32_MAX), GW_RANGE, "position 359"},
		{"edge/author__writes__paper/indices", pair[0], U32(30, 0), GW_FORMAT, "order"},
		{"edge/paper__cites__paper/indices", 0, U32(60), GW_RANGE, "position 0"},
		{"edge/paper__cites__paper/year", pair[2], U64(INT64_MAX), GW_FORMAT, "order"},
		{"edge/paper__cites__paper/year", pair[2], U64(5, -5ull), GW_FORMAT, "order"},
		{"edge/author__knows__author/rel", 3, U8(7), GW_RANGE, "position 3: relation 7 of 7"},
		{"edge/author__knows__author/rel", pair[3], U8(6, 0), GW_FORMAT, "order"},
		{"edge/paper__cites__paper/weight.alias", 1, U32(100000), GW_RANGE, "position 0: alias 100000"},
		{"edge/paper__cites__paper/weight.alias", 2 * pair[2] + 3, U32(GW_ALIAS_NONE), GW_RANGE, "alias"},
		{"node/paper/train_mask", 9, U8(2), GW_RANGE, "byte 9 is 2"},
		{"node/paper/orig_id.offsets", 0, U64(1), GW_FORMAT, "runs from 1"},
		{"node/paper/orig_id.offsets", 60, U64(1), GW_FORMAT, "to 1,"},
		{"node/paper/orig_id.offsets", 4, U64(UINT64_MAX), GW_FORMAT, "entry 3"},
		{"edge/author__writes__paper/out/indices", 2, U32(60), GW_RANGE, "position 2: id 60"},
		{"edge/author__writes__paper/out/eid", 2, U64(360), GW_RANGE, "position 2: edge 360"},
		{"edge/author__writes__paper/out/eid", 0, U64(359), GW_FORMAT, "position 0: edge 359 does not go"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gw_graph_meta *meta;
		char file[128];
		gw_fixture_write(&fixture);
		forge(fixture.folder, cases[i].key, cases[i].element * cases[i].width, cases[i].bytes, cases[i].count);
		assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
		/* list order is told of the ids, whichever of the keys broke it */
		bool order = strcmp(cases[i].says, "order") == 0;
		snprintf(file, sizeof(file), "part0/%s.npy", cases[i].key);
		expect_fault(meta, cases[i].status, order ? "/indices.npy" : file, order ? "edge/" : cases[i].key,
			     cases[i].says);
		struct gw_part *part;
		struct gw_part_options trusting = {.mapped = true, .skip_checks = true};
		assert_int_equal(gw_part_open(meta, 0, &trusting, &part), GW_OK);
		assert_int_equal(gw_part_check(part, 3), cases[i].status); /* with any number of threads */
		gw_part_close(part);
		gw_meta_destroy(meta);
		assert_int_equal(gw_remove_tree(fixture.folder), GW_OK);
	}
	gw_fixture_end(&fixture);
}

/* Two edges of a transposed list that changed places, ids and destinations alike: nothing but the order tells. */
static void test_transposed_order(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	struct gw_graph_meta *meta;
	struct gw_part *part;
	gw_fixture_begin(&fixture, 2, 60, 1);
	gw_fixture_write(&fixture);
	assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
	open_part(meta, 0, true, &part);
	const struct gw_adjacency *a = gw_part_out_adjacency(part, FIXTURE_WRITES);
	uint64_t from, to, row = 0;
	do
		gw_adjacency_list(a, row++, &from, &to);
	while (to - from < 2 || gw_load_id(a->indices, 4, from) == gw_load_id(a->indices, 4, from + 1));
	const uint32_t ids[2] = {((const uint32_t *)a->indices)[from + 1], ((const uint32_t *)a->indices)[from]};
	const uint64_t eid[2] = {a->eid[from + 1], a->eid[from]};
	gw_part_close(part);
	gw_meta_destroy(meta);
	forge(fixture.folder, "edge/author__writes__paper/out/indices", from * 4, ids, sizeof(ids));
	forge(fixture.folder, "edge/author__writes__paper/out/eid", from * 8, eid, sizeof(eid));
	assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
	expect_fault(meta, GW_FORMAT, "out/indices.npy", "edge/author__writes__paper/out/indices", "order");
	gw_meta_destroy(meta);
	gw_fixture_end(&fixture);
}

/* A list from which nothing can be drawn says so in every word. */
static void test_list_without_weight(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	struct gw_graph_meta *meta;
	struct gw_part *part;
	uint32_t none[2 * 64];
	gw_fixture_begin(&fixture, 2, 60, 1);
	const uint64_t *indptr = fixture.edges[FIXTURE_CITES].indptr;
	uint64_t row = 0;
	while (indptr[row + 1] - indptr[row] < 2 || indptr[row + 1] - indptr[row] > 64)
		row++;
	uint64_t edges = indptr[row + 1] - indptr[row];
	for (uint32_t threshold = 0; threshold < 2; threshold++) {
		for (uint64_t i = 0; i < edges; i++) {
			none[2 * i] = i + 1 == edges ? threshold : 0;
			none[2 * i + 1] = GW_ALIAS_NONE;
		}
		gw_fixture_write(&fixture);
		forge(fixture.folder, "edge/paper__cites__paper/weight.alias", indptr[row] * 8, none, edges * 8);
		assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
		if (threshold == 0) {
			open_part(meta, 0, true, &part);
			gw_part_close(part);
		} else {
			expect_fault(meta, GW_RANGE, "weight.alias.npy", "weight.alias", "threshold 1");
		}
		gw_meta_destroy(meta);
		assert_int_equal(gw_remove_tree(fixture.folder), GW_OK);
	}
	gw_fixture_end(&fixture);
}

/* Pipes, folders and devices where files should be: refused, and not waited for. */
static void test_no_regular_files(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	struct gw_graph_meta *meta;
	char path[256];
	gw_fixture_begin(&fixture, 2, 60, 1);
	gw_fixture_write(&fixture);
	assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
	static const char *const files[] = {"indptr.xxh", "indptr.npy"};
	alarm(60); /* an open that waits for a writer ends the test */
	for (int f = 0; f < 2; f++) {
		snprintf(path, sizeof(path), "%s/part0/node/paper/%s", fixture.folder, files[f]);
		assert_int_equal(unlink(path), 0);
		assert_int_equal(mkfifo(path, 0600), 0);
		expect_fault(meta, GW_FORMAT, path, "node/paper/indptr", "regular file");
		unlink(path);
		assert_int_equal(mkdir(path, 0700), 0);
		expect_fault(meta, GW_FORMAT, path, "node/paper/indptr", "regular file");
		rmdir(path);
		assert_int_equal(symlink("/dev/zero", path), 0);
		expect_fault(meta, GW_FORMAT, path, "node/paper/indptr", "regular file");
	}
	alarm(0);
	gw_meta_destroy(meta);
	gw_fixture_end(&fixture);
}

static void test_skip_verify(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	struct gw_graph_meta *meta;
	struct gw_part *part;
	struct file npy = {0};
	gw_fixture_begin(&fixture, 2, 60, 1);
	gw_fixture_write(&fixture);
	assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
	take_file(&npy, fixture.folder, "part0/node/paper/feat.npy");
	npy.data[GW_NPY_HEADER_BYTES] ^= 1;
	put_file(&npy, npy.bytes);
	free(npy.data);
	expect_fault(meta, GW_DIGEST, "feat.npy", "node/paper/feat", "0");
	for (int mapped = 0; mapped < 2; mapped++) {
		struct gw_part_options options = {
			.mapped = mapped, .skip_verify = true, .arena = {.name = "test", .huge = GW_HUGE_OFF}};
		assert_int_equal(gw_part_open(meta, 0, &options, &part), GW_OK);
		gw_part_close(part);
	}
	gw_meta_destroy(meta);
	gw_fixture_end(&fixture);
}

struct opening {
	const struct gw_graph_meta *meta;
	struct gw_part_options options;
};

static gw_status open_and_close(void *context)
{
	struct opening *opening = context;
	struct gw_part *part;
	gw_status status = gw_part_open(opening->meta, 0, &opening->options, &part);
	assert_true((status == GW_OK) == (part != NULL));
	gw_part_close(part);
	return status;
}

static void test_memory_short(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	struct gw_graph_meta *meta;
	gw_fixture_begin(&fixture, 2, 20, 1);
	gw_fixture_write(&fixture);
	assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
	for (int mapped = 0; mapped < 2; mapped++) {
		struct opening opening = {meta, {.mapped = mapped, .arena = {.name = "test", .huge = GW_HUGE_OFF}}};
		assert_true(gw_fault_each(open_and_close, &opening) > 50);
	}
	gw_meta_destroy(meta);
	gw_fixture_end(&fixture);
}

static void test_failing_reads(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	struct gw_graph_meta *meta;
	gw_fixture_begin(&fixture, 2, 20, 1);
	gw_fixture_write(&fixture);
	assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
	long n = 0;
	for (;; n++) {
		struct opening opening = {meta, {.mapped = true}};
		reads_left = n;
		gw_status status = open_and_close(&opening);
		bool hit = reads_left < 0;
		reads_left = -1;
		if (!hit) {
			assert_int_equal(status, GW_OK);
			break;
		}
		assert_int_equal(status, GW_IO);
		assert_non_null(strstr(gw_last_error(), fixture.folder));
		assert_non_null(strstr(gw_last_error(), "Input/output error"));
	}
	assert_true(n >= 2 * (long)meta->parts[0].count); /* a header and digests of each array */
	gw_meta_destroy(meta);
	gw_fixture_end(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_transpose),
		cmocka_unit_test(test_damaged_files),
		cmocka_unit_test(test_files_of_another_graph),
		cmocka_unit_test(test_senseless_numbers),
		cmocka_unit_test(test_transposed_order),
		cmocka_unit_test(test_list_without_weight),
		cmocka_unit_test(test_no_regular_files),
		cmocka_unit_test(test_skip_verify),
		cmocka_unit_test(test_memory_short),
		cmocka_unit_test(test_failing_reads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
