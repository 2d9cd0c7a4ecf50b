/* Loading: every driver gives the bytes of the files, and every damage is named. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/files/load_job.h"
#include "core/files/staging.h"
#include "core/memory/alloc.h"
#include "core/numbers/digest.h"
#include "test/support/alloc_fault.h"
#include "test/support/load_bed.h"
#include "test/support/many.h"
#include "test/support/scratch.h"

/* ---- the drivers ---- */

static void test_drivers(void **state)
{
	struct load_bed *f = *state;
	static const enum gw_load_driver drivers[] = {GW_LOAD_AUTO, GW_LOAD_URING, GW_LOAD_PREAD};
	static const unsigned depths[] = {0, 1, 3}, pieces[] = {0, 4096 * 4, GW_DIGEST_CHUNK};
	for (uint32_t run = 0; run < 3 * 3 * 3 * 2; run += gw_many_step()) {
		const struct gw_load_options options = {.driver = drivers[run % 3],
							.queue_depth = depths[run / 3 % 3],
							.piece_bytes = pieces[run / 9 % 3],
							.buffered = run / 27 == 1,
							.verify_threads = run % 4};
		struct gw_load_stats stats;
		memset(gw_arena_base(f->arena), 0xee, gw_arena_bytes(f->arena));
		gw_status status = gw_load(f->arena, f->items, LOAD_BED_ITEMS, &options, &stats);
		if (status == GW_UNSUPPORTED && options.driver == GW_LOAD_URING)
			continue; /* a kernel without io_uring */
		assert_int_equal(status, GW_OK);
		assert_true(load_bed_holds(f));
		uint64_t total = 0;
		for (int i = 0; i < LOAD_BED_ITEMS; i++)
			total += load_bed_sizes[i];
		assert_int_equal(stats.bytes, total);
		assert_true(stats.ns > 0);
		assert_int_equal(stats.files_direct + stats.files_buffered, LOAD_BED_ITEMS);
		if (options.buffered)
			assert_int_equal(stats.files_direct, 0);
		if (options.driver == GW_LOAD_PREAD)
			assert_string_equal(stats.driver, "pread");
	}
}

static void test_nothing_to_load(void **state)
{
	struct load_bed *f = *state;
	struct gw_load_stats stats;
	assert_int_equal(gw_load(f->arena, NULL, 0, NULL, &stats), GW_OK);
	assert_int_equal(stats.bytes, 0);
	assert_int_equal(gw_load(f->arena, f->items, 1, NULL, NULL), GW_OK);
}

/* Payloads at any offset of a file; where O_DIRECT is impossible, the read is buffered. */
static void test_unaligned_offsets(void **state)
{
	struct load_bed *f = *state;
	for (int i = 0; i < LOAD_BED_ITEMS; i++) {
		f->items[i].file_offset = 80 + (uint64_t)i;
		load_bed_write(f->paths[i], f->items[i].file_offset, f->payloads[i], load_bed_sizes[i]);
	}
	for (int driver = GW_LOAD_AUTO; driver <= GW_LOAD_PREAD; driver += GW_LOAD_PREAD) {
		const struct gw_load_options options = {.driver = (enum gw_load_driver)driver};
		struct gw_load_stats stats;
		memset(gw_arena_base(f->arena), 0xee, gw_arena_bytes(f->arena));
		assert_int_equal(gw_load(f->arena, f->items, LOAD_BED_ITEMS, &options, &stats), GW_OK);
		assert_true(load_bed_holds(f));
		assert_int_equal(stats.files_buffered, LOAD_BED_ITEMS);
	}
}

static void test_file_longer_than_payload(void **state)
{
	struct load_bed *f = *state;
	for (int i = 0; i < LOAD_BED_ITEMS; i++) {
		FILE *file = fopen(f->paths[i], "a");
		for (int k = 0; k < 9000; k++)
			fputc('x', file);
		fclose(file);
	}
	for (int driver = GW_LOAD_AUTO; driver <= GW_LOAD_PREAD; driver += GW_LOAD_PREAD) {
		const struct gw_load_options options = {.driver = (enum gw_load_driver)driver};
		memset(gw_arena_base(f->arena), 0xee, gw_arena_bytes(f->arena));
		assert_int_equal(gw_load(f->arena, f->items, LOAD_BED_ITEMS, &options, NULL), GW_OK);
		assert_true(load_bed_holds(f));
	}
}

static void test_tmpfs(void **state)
{
	(void)state;
	if (access("/dev/shm", W_OK))
		skip();
	struct load_bed *f = load_bed_make("/dev/shm");
	for (int driver = GW_LOAD_AUTO; driver <= GW_LOAD_PREAD; driver += GW_LOAD_PREAD) {
		const struct gw_load_options options = {.driver = (enum gw_load_driver)driver};
		memset(gw_arena_base(f->arena), 0xee, gw_arena_bytes(f->arena));
		assert_int_equal(gw_load(f->arena, f->items, LOAD_BED_ITEMS, &options, NULL), GW_OK);
		assert_true(load_bed_holds(f));
	}
	load_bed_drop(f);
}

/* Pieces are cut at the end of a slice: an array across two slices. */
static void test_across_slices(void **state)
{
	struct load_bed *f = *state;
	load_bed_arena(f, GW_ARENA_SLICE_MAX + (16 << 20));
	uint64_t slice = gw_arena_slice_bytes(f->arena);
	assert_true(gw_arena_bytes(f->arena) > gw_arena_slice_bytes(f->arena));
	struct gw_load_item item = f->items[6];
	item.arena_offset = slice - 3 * (uint64_t)4096;
	for (int driver = GW_LOAD_AUTO; driver <= GW_LOAD_PREAD; driver += GW_LOAD_PREAD) {
		const struct gw_load_options options = {.driver = (enum gw_load_driver)driver};
		assert_int_equal(gw_load(f->arena, &item, 1, &options, NULL), GW_OK);
		assert_memory_equal(gw_arena_base(f->arena) + item.arena_offset, f->payloads[6], item.bytes);
		memset(gw_arena_base(f->arena) + item.arena_offset, 0, item.bytes);
	}
}

/* ---- damage ---- */

static void expect(struct load_bed *f, gw_status wanted, const char *first, const char *second, const char *third)
{
	for (int driver = GW_LOAD_AUTO; driver <= GW_LOAD_PREAD; driver += GW_LOAD_PREAD) {
		const struct gw_load_options options = {.driver = (enum gw_load_driver)driver};
		assert_int_equal(gw_load(f->arena, f->items, LOAD_BED_ITEMS, &options, NULL), wanted);
		assert_non_null(strstr(gw_last_error(), first));
		assert_non_null(strstr(gw_last_error(), second));
		assert_non_null(strstr(gw_last_error(), third));
		assert_null(strchr(gw_last_error(), '\n'));
	}
}

static void test_edited_byte(void **state)
{
	struct load_bed *f = *state;
	static const struct {
		int item;
		uint64_t at;
		const char *chunk;
	} edits[] = {{1, 0, "chunk 0 "}, {6, GW_DIGEST_CHUNK, "chunk 1 "}, {6, 2 * GW_DIGEST_CHUNK + 4094, "chunk 2 "}};
	for (size_t i = 0; i < sizeof(edits) / sizeof(*edits); i++) {
		int item = edits[i].item;
		int file = open(f->paths[item], O_RDWR);
		uint8_t byte = (uint8_t)(f->payloads[item][edits[i].at] ^ 1);
		assert_int_equal(pwrite(file, &byte, 1, (off_t)(LOAD_BED_HEADER + edits[i].at)), 1);
		expect(f, GW_DIGEST, f->paths[item], f->keys[item], edits[i].chunk);
		byte ^= 1;
		assert_int_equal(pwrite(file, &byte, 1, (off_t)(LOAD_BED_HEADER + edits[i].at)), 1);
		close(file);
	}
	assert_int_equal(gw_load(f->arena, f->items, LOAD_BED_ITEMS, NULL, NULL), GW_OK);
	assert_true(load_bed_holds(f));
}

static void test_not_verified(void **state)
{
	struct load_bed *f = *state;
	f->digests[6][0] ^= 1;
	expect(f, GW_DIGEST, f->paths[6], f->keys[6], "chunk 0 ");
	f->items[6].digests = NULL;
	assert_int_equal(gw_load(f->arena, f->items, LOAD_BED_ITEMS, NULL, NULL), GW_OK);
}

static void test_truncated(void **state)
{
	struct load_bed *f = *state;
	static const struct {
		int item;
		uint64_t less;
	} cuts[] = {{7, 1}, {4, 4096}, {3, 4097}};
	for (size_t i = 0; i < sizeof(cuts) / sizeof(*cuts); i++) {
		int item = cuts[i].item;
		assert_int_equal(
			truncate(f->paths[item], (off_t)(LOAD_BED_HEADER + load_bed_sizes[item] - cuts[i].less)), 0);
		expect(f, GW_FORMAT, f->paths[item], f->keys[item], "truncated");
	}
	assert_int_equal(truncate(f->paths[0], 100), 0); /* also if all bytes of the payload are there */
	expect(f, GW_FORMAT, f->paths[0], f->keys[0], "truncated");
}

static void cut_file(void *context, uint64_t done, uint64_t total)
{
	const char *path = context;
	(void)done;
	(void)total;
	assert_int_equal(truncate(path, LOAD_BED_HEADER + 5 * 4096 + 100), 0);
}

/* A file becomes shorter after some of it was read: in the middle of a block, far from the payload's end. */
static void test_cut_while_read(void **state)
{
	struct load_bed *f = *state;
	for (int driver = GW_LOAD_AUTO; driver <= GW_LOAD_PREAD; driver += GW_LOAD_PREAD) {
		const struct gw_load_options options = {.driver = (enum gw_load_driver)driver,
							.queue_depth = 1,
							.piece_bytes = 4 * 4096,
							.progress = cut_file,
							.progress_context = f->paths[6]};
		load_bed_write(f->paths[6], LOAD_BED_HEADER, f->payloads[6], load_bed_sizes[6]);
		assert_int_equal(gw_load(f->arena, &f->items[6], 1, &options, NULL), GW_FORMAT);
		assert_non_null(strstr(gw_last_error(), f->paths[6]));
		assert_non_null(strstr(gw_last_error(), "cut short"));
	}
}

static void test_missing_file(void **state)
{
	struct load_bed *f = *state;
	assert_int_equal(unlink(f->paths[5]), 0);
	expect(f, GW_NOT_FOUND, f->paths[5], f->keys[5], "No such file");
	assert_int_equal(mkdir(f->paths[5], 0755), 0);
	expect(f, GW_FORMAT, f->paths[5], f->keys[5], "no regular file");
	assert_int_equal(rmdir(f->paths[5]), 0);
	assert_int_equal(mkfifo(f->paths[5], 0644), 0);
	expect(f, GW_FORMAT, f->paths[5], f->keys[5], "no regular file");
}

static void test_bad_arguments(void **state)
{
	struct load_bed *f = *state;
	struct gw_load_item item = f->items[4];
	item.arena_offset = 512;
	assert_int_equal(gw_load(f->arena, &item, 1, NULL, NULL), GW_INVALID);
	item.arena_offset = gw_arena_bytes(f->arena) - (1 << 20);
	assert_int_equal(gw_load(f->arena, &item, 1, NULL, NULL), GW_INVALID);
	item.arena_offset = UINT64_MAX - 4095;
	assert_int_equal(gw_load(f->arena, &item, 1, NULL, NULL), GW_INVALID);
	item = f->items[4];
	item.file_offset = UINT64_MAX - 4095;
	assert_int_equal(gw_load(f->arena, &item, 1, NULL, NULL), GW_FORMAT);
	static const unsigned pieces[] = {1000, 4097, 3 << 20, 8 << 20};
	for (size_t i = 0; i < 4; i++) {
		const struct gw_load_options options = {.piece_bytes = pieces[i]};
		assert_int_equal(gw_load(f->arena, f->items, LOAD_BED_ITEMS, &options, NULL), GW_INVALID);
	}
}

/* ---- progress, memory ---- */

struct seen {
	uint64_t last, total;
	unsigned calls;
	bool backwards;
};

static void see_progress(void *context, uint64_t done, uint64_t total)
{
	struct seen *seen = context;
	seen->backwards = seen->backwards || done < seen->last;
	seen->last = done;
	seen->total = total;
	seen->calls++;
}

static void test_progress(void **state)
{
	struct load_bed *f = *state;
	for (int driver = GW_LOAD_AUTO; driver <= GW_LOAD_PREAD; driver += GW_LOAD_PREAD) {
		struct seen seen = {0};
		const struct gw_load_options options = {
			.driver = (enum gw_load_driver)driver, .progress = see_progress, .progress_context = &seen};
		struct gw_load_stats stats;
		assert_int_equal(gw_load(f->arena, f->items, LOAD_BED_ITEMS, &options, &stats), GW_OK);
		assert_true(seen.calls > 0);
		assert_false(seen.backwards);
		assert_int_equal(seen.last, stats.bytes);
		assert_int_equal(seen.total, stats.bytes);
	}
}

struct shortage {
	struct load_bed *fixture;
	struct gw_load_options options;
};

static gw_status load_body(void *context)
{
	struct shortage *shortage = context;
	return gw_load(shortage->fixture->arena, shortage->fixture->items, LOAD_BED_ITEMS, &shortage->options, NULL);
}

static void test_memory_shortage(void **state)
{
	for (int driver = GW_LOAD_AUTO; driver <= GW_LOAD_PREAD; driver += GW_LOAD_PREAD) {
		struct shortage shortage = {.fixture = *state, .options = {.driver = (enum gw_load_driver)driver}};
		assert_true(gw_fault_each(load_body, &shortage) >= 2);
		assert_true(gw_fault_each_from(load_body, &shortage) >= 2);
	}
}

static void test_leaves_nothing(void **state)
{
	struct load_bed *f = *state;
	int before = dup(0);
	close(before);
	f->items[6].digests = NULL;
	for (int i = 0; i < 4; i++)
		assert_int_equal(gw_load(f->arena, f->items, LOAD_BED_ITEMS, NULL, NULL), GW_OK);
	f->digests[4][0] ^= 1;
	expect(f, GW_DIGEST, f->paths[4], f->keys[4], "chunk 0 ");
	unlink(f->paths[7]);
	f->digests[4][0] ^= 1;
	expect(f, GW_NOT_FOUND, f->paths[7], f->keys[7], "open");
	int after = dup(0);
	close(after);
	assert_int_equal(before, after);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, load_bed_set_up, load_bed_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_drivers),           TEST(test_nothing_to_load),
		TEST(test_unaligned_offsets), TEST(test_file_longer_than_payload),
		cmocka_unit_test(test_tmpfs), TEST(test_across_slices),
		TEST(test_edited_byte),       TEST(test_not_verified),
		TEST(test_truncated),         TEST(test_cut_while_read),
		TEST(test_missing_file),      TEST(test_bad_arguments),
		TEST(test_progress),          TEST(test_memory_shortage),
		TEST(test_leaves_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
