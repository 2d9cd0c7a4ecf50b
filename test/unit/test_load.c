/* Loading: every driver and every fallback gives the bytes of the files; every damage is named. */
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

#include "core/base/alloc.h"
#include "core/base/digest.h"
#include "core/base/load_job.h"
#include "core/base/staging.h"
#include "test/support/alloc_fault.h"
#include "test/support/sandbox.h"
#include "test/support/scratch.h"

#define HEADER 4096u
#define ITEMS  8

/* Payload sizes at every edge: none, one byte, a block, a piece, a chunk, several slices of the arena. */
static const uint64_t sizes[ITEMS] = {
	0, 1, 4096, 4097, (1 << 20) + 17, GW_DIGEST_CHUNK, 2 * GW_DIGEST_CHUNK + 4095, GW_DIGEST_CHUNK + (1 << 20)};

struct fixture {
	char folder[64];
	char paths[ITEMS][128];
	char keys[ITEMS][32];
	uint8_t *payloads[ITEMS];
	uint64_t *digests[ITEMS];
	struct gw_load_item items[ITEMS];
	struct gw_arena *arena;
};

static void fill(uint8_t *bytes, uint64_t count, uint64_t seed)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15ull + 1;
	for (uint64_t i = 0; i < count; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		bytes[i] = (uint8_t)(x >> 56);
	}
}

static void write_file(const char *path, uint64_t offset, const uint8_t *payload, uint64_t bytes)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	for (uint64_t i = 0; i < offset; i++)
		fputc('h', file);
	assert_int_equal(fwrite(payload, 1, bytes, file), bytes);
	assert_int_equal(fclose(file), 0);
}

static void make_arena(struct fixture *f, uint64_t bytes)
{
	const struct gw_arena_options options = {.name = "load", .huge = GW_HUGE_TRY, .numa = GW_NUMA_SPREAD};
	gw_arena_destroy(f->arena);
	assert_int_equal(gw_arena_create(bytes, &options, &f->arena), GW_OK);
	if (bytes < GW_ARENA_SLICE_MAX)
		memset(gw_arena_base(f->arena), 0xee, gw_arena_bytes(f->arena));
}

static struct fixture *make_fixture(const char *root)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char folder[sizeof(f->folder)];
	snprintf(folder, sizeof(folder), "%s/gw-test-load-XXXXXX", root);
	gw_scratch_make(folder);
	memcpy(f->folder, folder, sizeof(folder));
	uint64_t offset = 0;
	for (int i = 0; i < ITEMS; i++) {
		snprintf(f->paths[i], sizeof(f->paths[i]), "%s/array%d.npy", folder, i);
		snprintf(f->keys[i], sizeof(f->keys[i]), "node/paper/array%d", i);
		f->payloads[i] = malloc(sizes[i] + 1);
		fill(f->payloads[i], sizes[i], (uint64_t)i);
		write_file(f->paths[i], HEADER, f->payloads[i], sizes[i]);
		f->digests[i] = calloc(gw_digest_count(sizes[i]) + 1, sizeof(uint64_t));
		for (uint64_t c = 0; c < gw_digest_count(sizes[i]); c++) {
			uint64_t left = sizes[i] - c * GW_DIGEST_CHUNK;
			f->digests[i][c] = gw_digest(f->payloads[i] + c * GW_DIGEST_CHUNK,
						     left < GW_DIGEST_CHUNK ? left : GW_DIGEST_CHUNK);
		}
		f->items[i] = (struct gw_load_item){.path = f->paths[i],
						    .key = f->keys[i],
						    .file_offset = HEADER,
						    .bytes = sizes[i],
						    .arena_offset = offset,
						    .digests = f->digests[i]};
		offset += (sizes[i] + 4095) / 4096 * 4096 + 4096; /* a block between them, which must stay as it is */
	}
	make_arena(f, offset);
	chmod(f->folder, 0755);
	return f;
}

static void drop_fixture(struct fixture *f)
{
	for (int i = 0; i < ITEMS; i++) {
		free(f->payloads[i]);
		free(f->digests[i]);
	}
	gw_arena_destroy(f->arena);
	assert_int_equal(gw_remove_tree(f->folder), GW_OK);
	free(f);
}

static int set_up(void **state)
{
	*state = make_fixture("/tmp");
	return 0;
}

static int tear_down(void **state)
{
	drop_fixture(*state);
	return 0;
}

/* The payloads are there, the tails of their last blocks hold no rest of a file, the gaps between are untouched. */
static bool holds(const struct fixture *f)
{
	for (int i = 0; i < ITEMS; i++) {
		const uint8_t *at = gw_arena_base(f->arena) + f->items[i].arena_offset;
		if (memcmp(at, f->payloads[i], sizes[i]) != 0)
			return false;
		uint64_t end = (sizes[i] + 4095) / 4096 * 4096;
		for (uint64_t k = sizes[i]; k < end; k++) {
			if (at[k] != 0 && at[k] != 0xee)
				return false;
		}
		for (uint64_t k = end; k < end + 4096; k++) {
			if (at[k] != 0xee)
				return false;
		}
	}
	return true;
}

/* ---- the drivers ---- */

static void test_drivers(void **state)
{
	struct fixture *f = *state;
	static const enum gw_load_driver drivers[] = {GW_LOAD_AUTO, GW_LOAD_URING, GW_LOAD_PREAD};
	static const unsigned depths[] = {0, 1, 3}, pieces[] = {0, 4096 * 4, GW_DIGEST_CHUNK};
	for (int run = 0; run < 3 * 3 * 3 * 2; run++) {
		const struct gw_load_options options = {.driver = drivers[run % 3],
							.queue_depth = depths[run / 3 % 3],
							.piece_bytes = pieces[run / 9 % 3],
							.buffered = run / 27 == 1,
							.verify_threads = (unsigned)run % 4};
		struct gw_load_stats stats;
		memset(gw_arena_base(f->arena), 0xee, gw_arena_bytes(f->arena));
		gw_status status = gw_load(f->arena, f->items, ITEMS, &options, &stats);
		if (status == GW_UNSUPPORTED && options.driver == GW_LOAD_URING)
			continue; /* a kernel without io_uring */
		assert_int_equal(status, GW_OK);
		assert_true(holds(f));
		uint64_t total = 0;
		for (int i = 0; i < ITEMS; i++)
			total += sizes[i];
		assert_int_equal(stats.bytes, total);
		assert_true(stats.ns > 0);
		assert_int_equal(stats.files_direct + stats.files_buffered, ITEMS);
		if (options.buffered)
			assert_int_equal(stats.files_direct, 0);
		if (options.driver == GW_LOAD_PREAD)
			assert_string_equal(stats.driver, "pread");
	}
}

static void test_nothing_to_load(void **state)
{
	struct fixture *f = *state;
	struct gw_load_stats stats;
	assert_int_equal(gw_load(f->arena, NULL, 0, NULL, &stats), GW_OK);
	assert_int_equal(stats.bytes, 0);
	assert_int_equal(gw_load(f->arena, f->items, 1, NULL, NULL), GW_OK);
}

/* Payloads at any offset of a file: read buffered where O_DIRECT cannot. */
static void test_unaligned_offsets(void **state)
{
	struct fixture *f = *state;
	for (int i = 0; i < ITEMS; i++) {
		f->items[i].file_offset = 80 + (uint64_t)i;
		write_file(f->paths[i], f->items[i].file_offset, f->payloads[i], sizes[i]);
	}
	for (int driver = GW_LOAD_AUTO; driver <= GW_LOAD_PREAD; driver += GW_LOAD_PREAD) {
		const struct gw_load_options options = {.driver = (enum gw_load_driver)driver};
		struct gw_load_stats stats;
		memset(gw_arena_base(f->arena), 0xee, gw_arena_bytes(f->arena));
		assert_int_equal(gw_load(f->arena, f->items, ITEMS, &options, &stats), GW_OK);
		assert_true(holds(f));
		assert_int_equal(stats.files_buffered, ITEMS);
	}
}

/* Bytes of the file that follow the payload do not stay in the arena. */
static void test_file_longer_than_payload(void **state)
{
	struct fixture *f = *state;
	for (int i = 0; i < ITEMS; i++) {
		FILE *file = fopen(f->paths[i], "a");
		for (int k = 0; k < 9000; k++)
			fputc('x', file);
		fclose(file);
	}
	for (int driver = GW_LOAD_AUTO; driver <= GW_LOAD_PREAD; driver += GW_LOAD_PREAD) {
		const struct gw_load_options options = {.driver = (enum gw_load_driver)driver};
		memset(gw_arena_base(f->arena), 0xee, gw_arena_bytes(f->arena));
		assert_int_equal(gw_load(f->arena, f->items, ITEMS, &options, NULL), GW_OK);
		assert_true(holds(f));
	}
}

static void test_tmpfs(void **state)
{
	(void)state;
	if (access("/dev/shm", W_OK))
		skip();
	struct fixture *f = make_fixture("/dev/shm");
	for (int driver = GW_LOAD_AUTO; driver <= GW_LOAD_PREAD; driver += GW_LOAD_PREAD) {
		const struct gw_load_options options = {.driver = (enum gw_load_driver)driver};
		memset(gw_arena_base(f->arena), 0xee, gw_arena_bytes(f->arena));
		assert_int_equal(gw_load(f->arena, f->items, ITEMS, &options, NULL), GW_OK);
		assert_true(holds(f));
	}
	drop_fixture(f);
}

/* Pieces that would straddle a slice are cut there: an array over the border between two slices. */
static void test_across_slices(void **state)
{
	struct fixture *f = *state;
	make_arena(f, GW_ARENA_SLICE_MAX + (16 << 20));
	uint64_t slice = gw_arena_slice_bytes(f->arena);
	assert_true(gw_arena_slice_count(f->arena) >= 2);
	struct gw_load_item item = f->items[6];
	item.arena_offset = slice - 3 * (uint64_t)4096;
	for (int driver = GW_LOAD_AUTO; driver <= GW_LOAD_PREAD; driver += GW_LOAD_PREAD) {
		const struct gw_load_options options = {.driver = (enum gw_load_driver)driver};
		assert_int_equal(gw_load(f->arena, &item, 1, &options, NULL), GW_OK);
		assert_memory_equal(gw_arena_base(f->arena) + item.arena_offset, f->payloads[6], item.bytes);
		memset(gw_arena_base(f->arena) + item.arena_offset, 0, item.bytes);
	}
}

/* ---- fallbacks, in a child whose kernel refuses ---- */

enum { RAN_URING_FIXED = 1, RAN_URING, RAN_PREAD, RAN_BUFFERED = 8, RAN_WRONG = 32, RAN_FAILED = 64 };

static int load_and_tell(void *context)
{
	struct fixture *f = context;
	struct gw_load_stats stats;
	gw_status status = gw_load(f->arena, f->items, ITEMS, NULL, &stats);
	if (status)
		return RAN_FAILED + (int)status;
	if (!holds(f))
		return RAN_WRONG;
	int ran = strcmp(stats.driver, "pread") == 0      ? RAN_PREAD
		  : strcmp(stats.driver, "io_uring") == 0 ? RAN_URING
							  : RAN_URING_FIXED;
	return ran + (stats.files_buffered == ITEMS ? RAN_BUFFERED : 0);
}

/* The driver that loaded what it should; a failure's status could pass for one. */
static int driver_of(int ran)
{
	assert_in_range(ran, RAN_URING_FIXED, RAN_WRONG - 1);
	return ran & 7;
}

static void test_no_io_uring(void **state)
{
	static const int errors[] = {EPERM, ENOSYS, ENOMEM};
	for (int i = 0; i < 3; i++) {
		const struct sandbox_rule rule = {.call = SYS_io_uring_setup, .error = errors[i]};
		assert_int_equal(driver_of(sandbox_run(&rule, 1, false, load_and_tell, *state)), RAN_PREAD);
	}
}

/* A profile that lets a ring be made, but not used. */
static void test_io_uring_without_reads(void **state)
{
	const struct sandbox_rule rule = {.call = SYS_io_uring_enter, .error = EPERM};
	assert_int_equal(driver_of(sandbox_run(&rule, 1, false, load_and_tell, *state)), RAN_PREAD);
	struct fixture *f = *state;
	f->items[0].path = "/nowhere"; /* what is wrong with a file is told all the same */
	assert_int_equal(sandbox_run(&rule, 1, false, load_and_tell, f), RAN_FAILED + GW_NOT_FOUND);
}

/* Reads of what is opened wait for the disk; O_NONBLOCK would have io_uring answer EAGAIN on some file systems. */
static void test_files_are_read_blocking(void **state)
{
	struct fixture *f = *state;
	struct gw_load_job job = {.items = f->items, .count = ITEMS};
	for (int buffered = 0; buffered < 2; buffered++) {
		struct gw_load_file file;
		job.options.buffered = buffered;
		assert_int_equal(gw_load_file_open(&job, 4, &file), GW_OK);
		int flags = fcntl(file.fd, F_GETFL);
		assert_int_equal(flags & O_NONBLOCK, 0);
		assert_int_equal(!!(flags & O_DIRECT), file.direct);
		if (file.direct) {
			assert_int_equal(gw_load_file_refuse(&job, 4, &file), GW_OK);
			assert_int_equal(fcntl(file.fd, F_GETFL) & (O_NONBLOCK | O_DIRECT), 0);
		}
		gw_load_file_close(&file);
	}
}

static int demand_uring(void *context)
{
	struct fixture *f = context;
	const struct gw_load_options options = {.driver = GW_LOAD_URING};
	gw_status status = gw_load(f->arena, f->items, ITEMS, &options, NULL);
	return status == GW_UNSUPPORTED && strstr(gw_last_error(), "io_uring") ? 0 : 1;
}

static void test_io_uring_demanded_but_refused(void **state)
{
	const struct sandbox_rule rule = {.call = SYS_io_uring_setup, .error = EPERM};
	assert_int_equal(sandbox_run(&rule, 1, false, demand_uring, *state), 0);
}

static void test_no_registered_buffers(void **state)
{
	const struct sandbox_rule rule = {
		.call = SYS_io_uring_register, .argument = 1, .bits = ~0u, .value = 0, .error = ENOMEM};
	int driver = driver_of(sandbox_run(&rule, 1, false, load_and_tell, *state));
	assert_true(driver == RAN_URING || driver == RAN_PREAD);
}

static void test_no_registration_at_all(void **state)
{
	const struct sandbox_rule rule = {.call = SYS_io_uring_register, .error = EINVAL};
	int driver = driver_of(sandbox_run(&rule, 1, false, load_and_tell, *state));
	assert_true(driver == RAN_URING || driver == RAN_PREAD);
}

/* The real thing: an ordinary user with no locked memory. */
static void test_locked_memory_limit(void **state)
{
	assert_in_range(driver_of(sandbox_run(NULL, 0, true, load_and_tell, *state)), RAN_URING_FIXED, RAN_PREAD);
}

static void test_open_refuses_o_direct(void **state)
{
	const struct sandbox_rule rules[2] = {
		{.call = SYS_openat, .argument = 2, .bits = O_DIRECT, .value = O_DIRECT, .error = EINVAL},
		{.call = SYS_io_uring_setup, .error = EPERM}};
	int ran = sandbox_run(rules, 1, false, load_and_tell, *state);
	assert_true(ran == RAN_URING_FIXED + RAN_BUFFERED || ran == RAN_URING + RAN_BUFFERED ||
		    ran == RAN_PREAD + RAN_BUFFERED);
	assert_int_equal(sandbox_run(rules, 2, false, load_and_tell, *state), RAN_PREAD + RAN_BUFFERED);
}

static int pread_and_tell(void *context)
{
	struct fixture *f = context;
	const struct gw_load_options options = {.driver = GW_LOAD_PREAD};
	struct gw_load_stats stats;
	gw_status status = gw_load(f->arena, &f->items[1], 1, &options, &stats);
	if (status)
		return RAN_FAILED + (int)status;
	if (memcmp(gw_arena_base(f->arena) + f->items[1].arena_offset, f->payloads[1], sizes[1]) != 0)
		return RAN_WRONG;
	return stats.files_buffered == 1 ? RAN_BUFFERED : 0;
}

/* A file system that lets a file be opened with O_DIRECT and then refuses to read it: reads of whole blocks fail here,
 * so a file of one byte can be read buffered only. */
static void test_reading_refuses_o_direct(void **state)
{
	const struct sandbox_rule rule = {
		.call = SYS_pread64, .argument = 2, .bits = 4095, .value = 0, .error = EINVAL};
	assert_int_equal(sandbox_run(&rule, 1, false, pread_and_tell, *state), RAN_BUFFERED);
}

static void test_read_error(void **state)
{
	static const int errors[] = {EIO, ENOMEM};
	static const gw_status statuses[] = {GW_IO, GW_NO_MEMORY};
	for (int i = 0; i < 2; i++) {
		const struct sandbox_rule rule = {.call = SYS_pread64, .error = errors[i]};
		assert_int_equal(sandbox_run(&rule, 1, false, pread_and_tell, *state), RAN_FAILED + (int)statuses[i]);
	}
}

/* ---- damage ---- */

static void expect(struct fixture *f, gw_status wanted, const char *first, const char *second, const char *third)
{
	for (int driver = GW_LOAD_AUTO; driver <= GW_LOAD_PREAD; driver += GW_LOAD_PREAD) {
		const struct gw_load_options options = {.driver = (enum gw_load_driver)driver};
		assert_int_equal(gw_load(f->arena, f->items, ITEMS, &options, NULL), wanted);
		assert_non_null(strstr(gw_last_error(), first));
		assert_non_null(strstr(gw_last_error(), second));
		assert_non_null(strstr(gw_last_error(), third));
		assert_null(strchr(gw_last_error(), '\n'));
	}
}

static void test_edited_byte(void **state)
{
	struct fixture *f = *state;
	static const struct {
		int item;
		uint64_t at;
		const char *chunk;
	} edits[] = {{1, 0, "chunk 0 "}, {6, GW_DIGEST_CHUNK, "chunk 1 "}, {6, 2 * GW_DIGEST_CHUNK + 4094, "chunk 2 "}};
	for (size_t i = 0; i < sizeof(edits) / sizeof(*edits); i++) {
		int item = edits[i].item;
		int file = open(f->paths[item], O_RDWR);
		uint8_t byte = (uint8_t)(f->payloads[item][edits[i].at] ^ 1);
		assert_int_equal(pwrite(file, &byte, 1, (off_t)(HEADER + edits[i].at)), 1);
		expect(f, GW_DIGEST, f->paths[item], f->keys[item], edits[i].chunk);
		byte ^= 1;
		assert_int_equal(pwrite(file, &byte, 1, (off_t)(HEADER + edits[i].at)), 1);
		close(file);
	}
	assert_int_equal(gw_load(f->arena, f->items, ITEMS, NULL, NULL), GW_OK);
	assert_true(holds(f));
}

/* Without digests nothing is compared. */
static void test_not_verified(void **state)
{
	struct fixture *f = *state;
	f->digests[6][0] ^= 1;
	expect(f, GW_DIGEST, f->paths[6], f->keys[6], "chunk 0 ");
	f->items[6].digests = NULL;
	assert_int_equal(gw_load(f->arena, f->items, ITEMS, NULL, NULL), GW_OK);
}

static void test_truncated(void **state)
{
	struct fixture *f = *state;
	static const struct {
		int item;
		uint64_t less;
	} cuts[] = {{7, 1}, {4, 4096}, {3, 4097}};
	for (size_t i = 0; i < sizeof(cuts) / sizeof(*cuts); i++) {
		int item = cuts[i].item;
		assert_int_equal(truncate(f->paths[item], (off_t)(HEADER + sizes[item] - cuts[i].less)), 0);
		expect(f, GW_FORMAT, f->paths[item], f->keys[item], "truncated");
	}
	assert_int_equal(truncate(f->paths[0], 100), 0); /* even where no byte of payload is missing */
	expect(f, GW_FORMAT, f->paths[0], f->keys[0], "truncated");
}

static void cut_file(void *context, uint64_t done, uint64_t total)
{
	const char *path = context;
	(void)done;
	(void)total;
	assert_int_equal(truncate(path, HEADER + 5 * 4096 + 100), 0);
}

/* A file that becomes shorter when some of it has been read: in the middle of a block, far from the payload's end. */
static void test_cut_while_read(void **state)
{
	struct fixture *f = *state;
	for (int driver = GW_LOAD_AUTO; driver <= GW_LOAD_PREAD; driver += GW_LOAD_PREAD) {
		const struct gw_load_options options = {.driver = (enum gw_load_driver)driver,
							.queue_depth = 1,
							.piece_bytes = 4 * 4096,
							.progress = cut_file,
							.progress_context = f->paths[6]};
		write_file(f->paths[6], HEADER, f->payloads[6], sizes[6]);
		assert_int_equal(gw_load(f->arena, &f->items[6], 1, &options, NULL), GW_FORMAT);
		assert_non_null(strstr(gw_last_error(), f->paths[6]));
		assert_non_null(strstr(gw_last_error(), "cut short"));
	}
}

static void test_missing_file(void **state)
{
	struct fixture *f = *state;
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
	struct fixture *f = *state;
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
		assert_int_equal(gw_load(f->arena, f->items, ITEMS, &options, NULL), GW_INVALID);
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
	struct fixture *f = *state;
	for (int driver = GW_LOAD_AUTO; driver <= GW_LOAD_PREAD; driver += GW_LOAD_PREAD) {
		struct seen seen = {0};
		const struct gw_load_options options = {
			.driver = (enum gw_load_driver)driver, .progress = see_progress, .progress_context = &seen};
		struct gw_load_stats stats;
		assert_int_equal(gw_load(f->arena, f->items, ITEMS, &options, &stats), GW_OK);
		assert_true(seen.calls > 0);
		assert_false(seen.backwards);
		assert_int_equal(seen.last, stats.bytes);
		assert_int_equal(seen.total, stats.bytes);
	}
}

struct shortage {
	struct fixture *fixture;
	struct gw_load_options options;
};

static gw_status load_body(void *context)
{
	struct shortage *shortage = context;
	return gw_load(shortage->fixture->arena, shortage->fixture->items, ITEMS, &shortage->options, NULL);
}

static void test_memory_shortage(void **state)
{
	for (int driver = GW_LOAD_AUTO; driver <= GW_LOAD_PREAD; driver += GW_LOAD_PREAD) {
		struct shortage shortage = {.fixture = *state, .options = {.driver = (enum gw_load_driver)driver}};
		assert_true(gw_fault_each(load_body, &shortage) >= 2);
		assert_true(gw_fault_each_from(load_body, &shortage) >= 2);
	}
}

/* No descriptor stays open, after success and after failure. */
static void test_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	int before = dup(0);
	close(before);
	f->items[6].digests = NULL;
	for (int i = 0; i < 4; i++)
		assert_int_equal(gw_load(f->arena, f->items, ITEMS, NULL, NULL), GW_OK);
	f->digests[4][0] ^= 1;
	expect(f, GW_DIGEST, f->paths[4], f->keys[4], "chunk 0 ");
	unlink(f->paths[7]);
	f->digests[4][0] ^= 1;
	expect(f, GW_NOT_FOUND, f->paths[7], f->keys[7], "open");
	int after = dup(0);
	close(after);
	assert_int_equal(before, after);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_drivers),
		TEST(test_nothing_to_load),
		TEST(test_unaligned_offsets),
		TEST(test_file_longer_than_payload),
		cmocka_unit_test(test_tmpfs),
		TEST(test_across_slices),
		TEST(test_no_io_uring),
		TEST(test_io_uring_without_reads),
		TEST(test_files_are_read_blocking),
		TEST(test_io_uring_demanded_but_refused),
		TEST(test_no_registered_buffers),
		TEST(test_no_registration_at_all),
		TEST(test_locked_memory_limit),
		TEST(test_open_refuses_o_direct),
		TEST(test_reading_refuses_o_direct),
		TEST(test_read_error),
		TEST(test_edited_byte),
		TEST(test_not_verified),
		TEST(test_truncated),
		TEST(test_cut_while_read),
		TEST(test_missing_file),
		TEST(test_bad_arguments),
		TEST(test_progress),
		TEST(test_memory_shortage),
		TEST(test_leaves_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
