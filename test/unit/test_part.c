/* Parts opened in both modes: every array and list equals the source, and every damage is named. */
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

#include "core/files/staging.h"
#include "core/graph/alias.h"
#include "core/graph/npy.h"
#include "core/graph/part.h"
#include "core/graph/part_lists.h"
#include "core/memory/alloc.h"
#include "core/numbers/digest.h"
#include "test/support/alloc_fault.h"
#include "test/support/graph_fixture.h"
#include "test/support/part_files.h"

/* Replaces libc's pread, which reads headers and digests: the n-th call fails with EIO. */
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
				part_open(meta, p, mapped, &part);
				check_lists(&fixture, part);
				gw_part_close(part);
			}
		}
		gw_meta_destroy(meta);
		gw_fixture_end(&fixture);
	}
}

/* --- positions ---------------------------------------------------------------------------------------------------- */

static void test_layout(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	struct gw_graph_meta *meta;
	struct gw_part *part, *mapped;
	gw_fixture_begin(&fixture, 9, 500, 3);
	gw_fixture_write(&fixture);
	assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
	part_open(meta, 2, false, &part);
	part_open(meta, 2, true, &mapped);
	assert_ptr_equal(gw_part_meta(part), meta);
	assert_int_equal(gw_part_number(part), 2);
	assert_null(gw_part_arena(mapped));
	uint64_t end = 0, bytes = 0;
	uint32_t count = 0;
	for (const struct gw_array *a; (a = gw_part_array_at(part, count)); count++) {
		const struct gw_array *b = gw_part_array_at(mapped, count);
		assert_ptr_equal(a->meta, &meta->parts[2].arrays[count]); /* in the JSON's order */
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

static void test_transposes_have_every_edge_once_under_its_source(void **state)
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
		part_open(meta, p, true, &part);
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

static void damage(const struct gw_graph_meta *meta, const char *folder, const struct gw_array_meta *array)
{
	struct part_file npy = {0}, xxh = {0};
	char name[256];
	part_file_take(&npy, folder, array->file);
	snprintf(name, sizeof(name), "%.*s.xxh", (int)strlen(array->file) - 4, array->file);
	part_file_take(&xxh, folder, name);

	if (npy.bytes > GW_NPY_HEADER_BYTES) {
		npy.data[npy.bytes - 1] ^= 1;
		part_file_put(&npy, npy.bytes);
		part_expect_fault(meta, GW_DIGEST, npy.path, array->key, "0");
		npy.data[npy.bytes - 1] ^= 1;
		part_file_put(&npy, npy.bytes - 1);
		part_expect_fault(meta, GW_FORMAT, npy.path, array->key, "truncated");
		part_file_put(&npy, npy.bytes);

		xxh.data[3] ^= 0x80;
		part_file_put(&xxh, xxh.bytes);
		part_expect_fault(meta, GW_DIGEST, xxh.path, array->key, "digest");
		xxh.data[3] ^= 0x80;
		part_file_put(&xxh, xxh.bytes - 1);
		part_expect_fault(meta, GW_FORMAT, xxh.path, array->key, "bytes long");
		part_file_put(&xxh, xxh.bytes);
	}
	npy.data[npy.bytes] = 0;
	part_file_put(&npy, npy.bytes + 1);
	part_expect_fault(meta, GW_FORMAT, npy.path, array->key, "follow its payload");
	part_file_put(&npy, 100);
	part_expect_fault(meta, GW_FORMAT, npy.path, array->key, "header");
	part_file_put(&npy, 0);
	part_expect_fault(meta, GW_FORMAT, npy.path, array->key, "npy");
	unlink(npy.path);
	part_expect_fault(meta, GW_NOT_FOUND, npy.path, array->key, "");
	part_file_put(&npy, npy.bytes);
	unlink(xxh.path);
	part_expect_fault(meta, GW_NOT_FOUND, xxh.path, array->key, "");
	part_file_put(&xxh, xxh.bytes);

	/* a well-formed header that differs from the JSON */
	uint64_t shape[GW_DIMS_MAX];
	memcpy(shape, array->shape, sizeof(shape));
	shape[array->ndim - 1]++;
	assert_int_equal(gw_npy_format(array->dtype, array->ndim, shape, npy.data), GW_OK);
	part_file_put(&npy, npy.bytes);
	part_expect_fault(meta, GW_FORMAT, npy.path, array->key, "dimension");
	gw_dtype other = array->dtype == GW_FLOAT64 ? GW_FLOAT32 : GW_FLOAT64;
	assert_int_equal(gw_npy_format(other, array->ndim, array->shape, npy.data), GW_OK);
	part_file_put(&npy, npy.bytes);
	part_expect_fault(meta, GW_FORMAT, npy.path, array->key, "float");
	assert_int_equal(gw_npy_format(array->dtype, array->ndim, array->shape, npy.data), GW_OK);
	part_file_put(&npy, npy.bytes);
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
	part_open(meta, 0, false, &part); /* all repaired */
	gw_part_close(part);
	gw_meta_destroy(meta);
	gw_fixture_end(&fixture);
}

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
	part_expect_fault(meta, GW_DIGEST, "indices.xxh", "edge/paper__cites__paper/indices", "another graph");
	snprintf(command, sizeof(command), "cp -r %s/part0 %s/", theirs.folder, ours.folder);
	assert_int_equal(system(command), 0);
	part_expect_fault(meta, GW_DIGEST, ".xxh", "edge/", "another graph");
	gw_meta_destroy(meta);
	gw_fixture_end(&ours);
	gw_fixture_end(&theirs);
}

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
	alarm(60); /* ends the test if an open blocks */
	for (int f = 0; f < 2; f++) {
		snprintf(path, sizeof(path), "%s/part0/node/paper/%s", fixture.folder, files[f]);
		assert_int_equal(unlink(path), 0);
		assert_int_equal(mkfifo(path, 0600), 0);
		part_expect_fault(meta, GW_FORMAT, path, "node/paper/indptr", "regular file");
		unlink(path);
		assert_int_equal(mkdir(path, 0700), 0);
		part_expect_fault(meta, GW_FORMAT, path, "node/paper/indptr", "regular file");
		rmdir(path);
		assert_int_equal(symlink("/dev/zero", path), 0);
		part_expect_fault(meta, GW_FORMAT, path, "node/paper/indptr", "regular file");
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
	struct part_file npy = {0};
	gw_fixture_begin(&fixture, 2, 60, 1);
	gw_fixture_write(&fixture);
	assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
	part_file_take(&npy, fixture.folder, "part0/node/paper/feat.npy");
	npy.data[GW_NPY_HEADER_BYTES] ^= 1;
	part_file_put(&npy, npy.bytes);
	free(npy.data);
	part_expect_fault(meta, GW_DIGEST, "feat.npy", "node/paper/feat", "0");
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

/* --- Lists of other parts, in the memory of one part (core/graph/part_lists.h). --- */

#define LIST_PARTS 3

struct with_lists {
	const struct gw_graph_meta *meta;
	struct gw_part *parts[LIST_PARTS]; /* [0]: whole */
};

static gw_status open_with_lists(struct with_lists *with)
{
	struct gw_part_options options = {.arena = {.name = "test", .huge = GW_HUGE_OFF}};
	for (uint32_t p = 1; p < LIST_PARTS; p++)
		options.room += gw_part_lists_bytes(with->meta, p, NULL, NULL);
	gw_status status = gw_part_open(with->meta, 0, &options, &with->parts[0]);
	options = (struct gw_part_options){.only_lists = true};
	for (uint32_t p = 1; p < LIST_PARTS && status == GW_OK; p++) {
		options.into = gw_part_arena(with->parts[0]);
		status = gw_part_open(with->meta, p, &options, &with->parts[p]);
	}
	return status;
}

static void close_with_lists(struct with_lists *with)
{
	for (uint32_t p = LIST_PARTS; p-- > 0;) {
		gw_part_close(with->parts[p]);
		with->parts[p] = NULL;
	}
}

static gw_status open_lists_in_need(void *context)
{
	gw_status status = open_with_lists(context);
	close_with_lists(context);
	return status;
}

/* Every array of the lists has its bytes, and no other array is loaded or looked for. */
static void test_lists_of_other_parts(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	struct with_lists with = {0};
	struct gw_graph_meta *meta;
	gw_fixture_give_times(true);
	gw_fixture_begin(&fixture, 2, 200, LIST_PARTS);
	gw_fixture_write(&fixture);
	gw_fixture_give_times(false);
	assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
	with.meta = meta;
	struct gw_part *whole[LIST_PARTS];
	for (uint32_t p = 0; p < LIST_PARTS; p++)
		part_open(meta, p, false, &whole[p]);
	for (uint32_t p = 1; p < LIST_PARTS; p++) {
		for (uint32_t i = 0; i < meta->parts[p].count; i++) {
			char path[512];
			snprintf(path, sizeof(path), "%s/%s", fixture.folder, meta->parts[p].arrays[i].file);
			if (!gw_array_is_of_lists(meta, &meta->parts[p].arrays[i]))
				assert_int_equal(unlink(path), 0);
		}
	}
	assert_int_equal(open_with_lists(&with), GW_OK);
	uint32_t held = 0, weights = 0, rows = 0;
	for (uint32_t p = 1; p < LIST_PARTS; p++) {
		assert_ptr_equal(gw_part_arena(with.parts[p]), gw_part_arena(with.parts[0]));
		for (uint32_t i = 0; i < meta->parts[p].count; i++) {
			const struct gw_array *got = gw_part_array_at(with.parts[p], i);
			const struct gw_array *expected = gw_part_array_at(whole[p], i);
			rows += got->apart;
			if (got->apart)
				continue;
			held++;
			weights += strstr(got->meta->key, "weight") != NULL;
			assert_ptr_equal(got->data, gw_arena_base(gw_part_arena(with.parts[0])) + got->offset);
			assert_memory_equal(got->data, expected->data, gw_array_meta_bytes(got->meta));
		}
	}
	assert_int_equal(weights, 2 * 2); /* the weights and their tables */
	assert_true(held > 2 * 10 && rows > 2 * 10);
	uint64_t offset, room = gw_arena_bytes(gw_part_arena(with.parts[0]));
	assert_int_equal(gw_arena_take(gw_part_arena(with.parts[0]), room, 1, &offset), GW_NO_MEMORY);
	close_with_lists(&with);
	assert_true(gw_fault_each(open_lists_in_need, &with) > 50);
	for (uint32_t p = 0; p < LIST_PARTS; p++)
		gw_part_close(whole[p]);
	gw_meta_destroy(meta);
	gw_fixture_end(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_transposes_have_every_edge_once_under_its_source),
		cmocka_unit_test(test_damaged_files),
		cmocka_unit_test(test_files_of_another_graph),
		cmocka_unit_test(test_no_regular_files),
		cmocka_unit_test(test_skip_verify),
		cmocka_unit_test(test_memory_short),
		cmocka_unit_test(test_failing_reads),
		cmocka_unit_test(test_lists_of_other_parts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
