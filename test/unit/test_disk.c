/* Rows on disk: every driver, cache and list of rows gives the bytes of the file, and each damage fails the rows that
 * it touches, and names them. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/files/disk.h"
#include "test/support/alloc_fault.h"
#include "test/support/many.h"
#include "test/support/sandbox.h"
#include "test/support/scratch.h"

#define HEADER 4096u

struct bed {
	char folder[64], path[128];
	uint64_t rows, row_bytes, step;
	uint8_t *payload;
	struct gw_disk *disk;
	struct gw_disk_array *array;
	uint64_t seed;
};

static uint64_t below(struct bed *bed, uint64_t n)
{
	bed->seed = bed->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (bed->seed >> 33) % n;
}

static void bed_write(struct bed *bed, uint64_t rows, uint64_t row_bytes)
{
	bed->rows = rows;
	bed->row_bytes = bed->step = row_bytes;
	free(bed->payload);
	bed->payload = malloc(rows * row_bytes + 1);
	for (uint64_t i = 0; i < rows * row_bytes; i++)
		bed->payload[i] = (uint8_t)below(bed, 256);
	FILE *file = fopen(bed->path, "w");
	assert_non_null(file);
	char header[HEADER] = "header";
	assert_int_equal(fwrite(header, 1, HEADER, file), HEADER);
	assert_int_equal(fwrite(bed->payload, 1, rows * row_bytes, file), rows * row_bytes);
	assert_int_equal(fclose(file), 0);
}

static gw_status bed_add(struct bed *bed)
{
	const struct gw_load_item item = {.path = bed->path,
					  .key = "node/paper/feat",
					  .file_offset = HEADER,
					  .bytes = (bed->rows - 1) * bed->step + bed->row_bytes};
	return gw_disk_add(bed->disk, &item, (struct gw_disk_layout){bed->row_bytes, bed->step}, &bed->array);
}

/* The same bytes as overlapping rows. */
static void bed_overlap(struct bed *bed, uint64_t step)
{
	bed->rows = (bed->rows - 1) * (bed->row_bytes / step) + 1;
	bed->step = step;
}

static void bed_open(struct bed *bed, const struct gw_disk_options *options)
{
	assert_int_equal(gw_disk_create(options, &bed->disk), GW_OK);
	assert_int_equal(bed_add(bed), GW_OK);
}

static void bed_close(struct bed *bed)
{
	gw_disk_destroy(bed->disk);
	bed->disk = NULL;
}

static int set_up(void **state)
{
	struct bed *bed = calloc(1, sizeof(*bed));
	snprintf(bed->folder, sizeof(bed->folder), "/tmp/gw-test-disk-XXXXXX");
	gw_scratch_make(bed->folder);
	snprintf(bed->path, sizeof(bed->path), "%s/feat.npy", bed->folder);
	bed->seed = 1;
	*state = bed;
	return 0;
}

static int tear_down(void **state)
{
	struct bed *bed = *state;
	bed_close(bed);
	unlink(bed->path);
	rmdir(bed->folder);
	free(bed->payload);
	free(bed);
	return 0;
}

/* A read that the test waits for. */
struct waited {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool over;
};

static void note_over(void *context)
{
	struct waited *waited = context;
	pthread_mutex_lock(&waited->lock);
	waited->over = true;
	pthread_cond_signal(&waited->cond);
	pthread_mutex_unlock(&waited->lock);
}

static gw_status read_rows(const struct bed *bed, const uint64_t *rows, uint32_t count, uint8_t *out)
{
	struct waited waited = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
	const struct gw_disk_rows what = {
		.array = bed->array, .rows = rows, .count = count, .out = out, .over = note_over, .context = &waited};
	struct gw_disk_read *read;
	gw_status status = gw_disk_read_start(bed->disk, &what, &read);
	if (status != GW_OK)
		return status;
	pthread_mutex_lock(&waited.lock);
	while (!waited.over)
		pthread_cond_wait(&waited.cond, &waited.lock);
	pthread_mutex_unlock(&waited.lock);
	status = gw_disk_read_status(read);
	assert_int_not_equal(status, GW_AGAIN);
	gw_disk_read_free(read);
	return status;
}

static void assert_rows(const struct bed *bed, const uint64_t *rows, uint32_t count, const uint8_t *out)
{
	for (uint32_t i = 0; i < count; i++)
		assert_memory_equal(out + i * bed->row_bytes, bed->payload + rows[i] * bed->step, bed->row_bytes);
}

/* Random rows, with duplicates and runs. */
static void check_random(struct bed *bed, uint32_t count)
{
	uint64_t *rows = malloc((count + 1) * sizeof(*rows));
	uint8_t *out = malloc(count * bed->row_bytes + 1);
	for (uint32_t i = 0; i < count; i++)
		rows[i] = i && below(bed, 3) == 0 ? (rows[i - 1] + 1) % bed->rows : below(bed, bed->rows);
	out[count * bed->row_bytes] = 0xee;
	assert_int_equal(read_rows(bed, rows, count, out), GW_OK);
	assert_rows(bed, rows, count, out);
	assert_int_equal(out[count * bed->row_bytes], 0xee);
	free(rows);
	free(out);
}

static void all_forms_give_the_bytes(void **state)
{
	struct bed *bed = *state;
	static const uint64_t sizes[] = {1, 3, 100, 512, 4096, 5000, 200000, 24, 9000};
	static const enum gw_load_driver drivers[] = {GW_LOAD_URING, GW_LOAD_PREAD};
	static const uint64_t caches[] = {GW_DISK_CACHE_MIN, 2ull << 20, 16ull << 20};
	static const uint32_t depths[] = {1, 3, 128};
	for (uint32_t s = 0; s < 9; s++) {
		bed_write(bed, s == 6 ? 30 : (6u << 20) / (sizes[s] < 100 ? 100 : sizes[s]) + 7, sizes[s]);
		if (s > 6)
			bed_overlap(bed, sizes[s] / 2);
		for (uint32_t form = s % 5; form < 2 * 3 * 3; form += 5) {
			const struct gw_disk_options options = {.driver = drivers[form % 2],
								.cache_bytes = caches[form / 2 % 3],
								.queue_depth = depths[form / 6],
								.buffered = form % 5 == 4};
			if (gw_disk_create(&options, &bed->disk) != GW_OK)
				continue; /* a kernel without io_uring */
			assert_int_equal(bed_add(bed), GW_OK);
			check_random(bed, 0);
			check_random(bed, 1);
			check_random(bed, s == 6 ? 20 : 1000);
			check_random(bed, s == 6 ? 20 : 1000);
			struct gw_disk_counts counts;
			gw_disk_counts(bed->disk, &counts);
			assert_int_equal(counts.rows, s == 6 ? 41 : 2001);
			assert_int_equal(counts.row_bytes, counts.rows * bed->row_bytes);
			assert_true(counts.reads > 0 && counts.reads <= counts.misses);
			assert_int_equal(counts.errors, 0);
			bed_close(bed);
		}
	}
}

/* What is in the cache is not read again, and a file larger than the cache is. */
static void cache_keeps_what_fits(void **state)
{
	struct bed *bed = *state;
	struct gw_disk_counts first, second;
	bed_write(bed, 4096, 512);
	uint64_t *rows = malloc(4096 * sizeof(*rows));
	uint8_t *out = malloc(4096ull * 512);
	for (uint64_t i = 0; i < 4096; i++)
		rows[i] = i;
	for (int large = 0; large < 2; large++) {
		const struct gw_disk_options options = {.cache_bytes = large ? 8 << 20 : GW_DISK_CACHE_MIN};
		bed_open(bed, &options);
		assert_int_equal(read_rows(bed, rows, 4096, out), GW_OK);
		assert_rows(bed, rows, 4096, out);
		gw_disk_counts(bed->disk, &first);
		assert_int_equal(first.misses, 512);
		assert_int_equal(first.hits, 0);
		assert_int_equal(first.bytes, 4096ull * 512);
		assert_true(first.reads <= 64); /* adjacent blocks are read together */
		assert_int_equal(read_rows(bed, rows, 4096, out), GW_OK);
		gw_disk_counts(bed->disk, &second);
		if (large)
			assert_int_equal(second.misses, 512);
		else
			assert_true(second.misses >= 512 + 512 - 256);
		bed_close(bed);
	}
	free(rows);
	free(out);
}

struct caller {
	struct bed *bed;
	pthread_t thread;
	uint64_t seed;
};

static void *call_often(void *opaque)
{
	struct caller *caller = opaque;
	struct bed own = *caller->bed;
	own.seed = caller->seed;
	for (uint32_t i = 0; i < gw_many(16); i++)
		check_random(&own, 1 + (uint32_t)below(&own, 700));
	return NULL;
}

/* In a cache that holds a part of what they need. */
static void many_callers(void **state)
{
	struct bed *bed = *state;
	struct caller callers[40]; /* more than are visited at a time */
	bed_write(bed, 5000, 1000);
	for (int pread = 0; pread < 2; pread++) {
		const struct gw_disk_options options = {.cache_bytes = GW_DISK_CACHE_MIN,
							.driver = pread ? GW_LOAD_PREAD : GW_LOAD_AUTO};
		bed_open(bed, &options);
		for (int i = 0; i < 40; i++) {
			callers[i] = (struct caller){.bed = bed, .seed = (uint64_t)i + 77};
			assert_int_equal(pthread_create(&callers[i].thread, NULL, call_often, &callers[i]), 0);
		}
		for (int i = 0; i < 40; i++)
			pthread_join(callers[i].thread, NULL);
		bed_close(bed);
	}
}

/* --- faults --- */

static void bad_arguments(void **state)
{
	struct bed *bed = *state;
	uint64_t row = 10;
	uint8_t out[8];
	const struct gw_disk_options small = {.cache_bytes = GW_DISK_CACHE_MIN - 1};
	assert_int_equal(gw_disk_create(&small, &bed->disk), GW_INVALID);
	const struct gw_disk_options large = {.cache_bytes = 1ull << 60};
	assert_int_equal(gw_disk_create(&large, &bed->disk), GW_NO_MEMORY);
	assert_non_null(strstr(gw_last_error(), "a smaller cache"));
	const struct gw_disk_options deep = {.queue_depth = 5000};
	assert_int_equal(gw_disk_create(&deep, &bed->disk), GW_INVALID);
	bed_write(bed, 10, 8);
	bed_open(bed, NULL);
	assert_int_equal(read_rows(bed, &row, 1, out), GW_RANGE);
	assert_non_null(strstr(gw_last_error(), "row 10 of 10"));
	bed->rows++;
	assert_int_equal(bed_add(bed), GW_FORMAT);
	assert_non_null(strstr(gw_last_error(), "truncated"));
	unlink(bed->path);
	assert_int_equal(bed_add(bed), GW_NOT_FOUND);
	assert_int_equal(mkdir(bed->path, 0700), 0);
	assert_int_equal(bed_add(bed), GW_FORMAT);
	rmdir(bed->path);
	bed_close(bed);
}

/* The file is cut while it is open: rows before the cut arrive, rows behind it fail, with the byte where it ends. */
static void truncated_file(void **state)
{
	struct bed *bed = *state;
	for (int pread = 0; pread < 2; pread++) {
		const struct gw_disk_options options = {.driver = pread ? GW_LOAD_PREAD : GW_LOAD_AUTO,
							.cache_bytes = GW_DISK_CACHE_MIN};
		bed_write(bed, 1000, 100);
		bed_open(bed, &options);
		uint64_t rows[] = {600, 5}, last = 999, first = 3;
		uint8_t out[200];
		char text[64];
		assert_int_equal(truncate(bed->path, HEADER + 50050), 0);
		assert_int_equal(read_rows(bed, rows, 2, out), GW_FORMAT);
		snprintf(text, sizeof(text), "ends at byte %u of", HEADER + 50050);
		if (!strstr(gw_last_error(), text))
			fail_msg("%s", gw_last_error());
		assert_non_null(strstr(gw_last_error(), "row 600"));
		assert_non_null(strstr(gw_last_error(), bed->path));
		assert_int_equal(read_rows(bed, &last, 1, out), GW_FORMAT);
		assert_int_equal(read_rows(bed, &first, 1, out), GW_OK);
		assert_rows(bed, &first, 1, out);
		struct gw_disk_counts counts;
		gw_disk_counts(bed->disk, &counts);
		assert_int_equal(counts.errors, 2);
		bed_close(bed);
	}
}

/* A file that is replaced keeps its bytes while it is open. */
static void replaced_file(void **state)
{
	struct bed *bed = *state;
	const struct gw_disk_options options = {.cache_bytes = GW_DISK_CACHE_MIN};
	bed_write(bed, 1000, 100);
	bed_open(bed, &options);
	char other[160];
	snprintf(other, sizeof(other), "%s.new", bed->path);
	FILE *file = fopen(other, "w");
	assert_true(file && fputs("another file", file) >= 0 && fclose(file) == 0);
	assert_int_equal(rename(other, bed->path), 0);
	check_random(bed, 500);
	bed_close(bed);
}

/* Puts another file in the place of the one that the disk has open. */
static void swap_descriptor(const struct bed *bed, int by)
{
	struct stat wanted, found;
	assert_int_equal(stat(bed->path, &wanted), 0);
	for (int fd = 3; fd < 256; fd++) {
		if (fstat(fd, &found) != 0 || found.st_ino != wanted.st_ino || found.st_dev != wanted.st_dev)
			continue;
		assert_int_equal(dup2(by, fd), fd);
		return;
	}
	fail_msg("the file is not open");
}

/* A medium with bad sectors. /proc/self/mem stands for the file: its bytes are this process's memory, and a page that
 * is not mapped gives EIO. A read that reaches into such a page is short. Only rows in bad blocks fail. */
static void bad_sectors(void **state)
{
	struct bed *bed = *state;
	const uint64_t blocks = 64, begin = 16; /* blocks of the file; the first ones are below the least address */
	for (int pread = 0; pread < 2; pread++) {
		const struct gw_disk_options options = {.driver = pread ? GW_LOAD_PREAD : GW_LOAD_AUTO,
							.cache_bytes = GW_DISK_CACHE_MIN};
		bed_write(bed, (blocks - 1) * 4, 1024);
		uint8_t *memory =
			mmap((void *)(uintptr_t)(begin * 4096), (blocks - begin) * 4096, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (memory == MAP_FAILED)
			skip(); /* vm.mmap_min_addr is larger here */
		memcpy(memory, bed->payload + (begin - 1) * 4096, (blocks - begin) * 4096);
		assert_int_equal(munmap(memory + 10ull * 4096, 2 * 4096), 0);
		int mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
		assert_true(mem >= 0);
		bed_open(bed, &options);
		swap_descriptor(bed, mem);
		uint64_t all[252], bad = (begin + 10 - 1) * 4;
		uint8_t *out = malloc(252ull * 1024);
		uint32_t good = 0;
		for (uint64_t i = (begin - 1) * 4; i < bed->rows; i++) {
			if (i < bad || i >= bad + 8)
				all[good++] = i;
		}
		assert_int_equal(read_rows(bed, all, good, out), GW_OK);
		assert_rows(bed, all, good, out);
		/* the whole run of blocks in one read, which is short at the bad ones */
		bed_close(bed);
		bed_open(bed, &options);
		swap_descriptor(bed, mem);
		for (uint32_t i = 0; i < 20; i++)
			all[i] = bad - 16 + i;
		assert_int_equal(read_rows(bed, all, 20, out), GW_IO);
		char text[128];
		snprintf(text, sizeof(text),
			 "row %llu: %s (node/paper/feat): read at byte %llu: ", (unsigned long long)bad, bed->path,
			 (unsigned long long)((begin + 10) * 4096));
		assert_non_null(strstr(gw_last_error(), text));
		assert_int_equal(read_rows(bed, all, 16, out), GW_OK);
		assert_rows(bed, all, 16, out);
		assert_int_equal(read_rows(bed, all + 16, 1, out), GW_IO);
		struct gw_disk_counts counts;
		gw_disk_counts(bed->disk, &counts);
		assert_int_equal(counts.errors, 2);
		bed_close(bed);
		close(mem);
		munmap(memory, (blocks - begin) * 4096);
		free(out);
	}
}

/* A caller that goes: nothing is written to its memory afterwards, and the disk serves others. */
static void freed_reads(void **state)
{
	struct bed *bed = *state;
	bed_write(bed, 20000, 700);
	const struct gw_disk_options options = {.cache_bytes = GW_DISK_CACHE_MIN};
	bed_open(bed, &options);
	uint64_t *rows = malloc(20000 * sizeof(*rows));
	for (uint64_t i = 0; i < 20000; i++)
		rows[i] = i;
	for (uint32_t k = 0; k < gw_many(64); k++) {
		uint8_t *out = calloc(20000, 700);
		const struct gw_disk_rows what = {.array = bed->array, .rows = rows, .count = 20000, .out = out};
		struct gw_disk_read *read;
		assert_int_equal(gw_disk_read_start(bed->disk, &what, &read), GW_OK);
		for (uint32_t i = 0; i < k % 8; i++)
			sched_yield();
		gw_disk_read_free(read);
		free(out); /* the address sanitizer sees a write after this */
	}
	check_random(bed, 500);
	free(rows);
	/* reads that nobody waits for do not keep a disk from its end */
	uint64_t row = 1;
	uint8_t out[700];
	const struct gw_disk_rows what = {.array = bed->array, .rows = &row, .count = 1, .out = out};
	struct gw_disk_read *read;
	assert_int_equal(gw_disk_read_start(bed->disk, &what, &read), GW_OK);
	gw_disk_read_free(read);
	bed_close(bed);
}

static int open_and_report(void *context)
{
	struct bed *bed = context;
	const struct gw_disk_options options = {.cache_bytes = GW_DISK_CACHE_MIN};
	if (gw_disk_create(&options, &bed->disk) != GW_OK || bed_add(bed) != GW_OK)
		return 100;
	uint64_t rows[] = {7, 3};
	uint8_t out[2000];
	if (read_rows(bed, rows, 2, out) != GW_OK ||
	    memcmp(out, bed->payload + 7 * bed->row_bytes, bed->row_bytes) != 0)
		return 101;
	bool pread = strcmp(gw_disk_driver(bed->disk), "pread") == 0;
	bed_close(bed);
	return pread ? 1 : 2;
}

static void refusing_kernels(void **state)
{
	struct bed *bed = *state;
	bed_write(bed, 1000, 1000);
	static const long calls[] = {SYS_io_uring_setup, SYS_io_uring_enter};
	for (int i = 0; i < 2; i++) {
		const struct sandbox_rule rule = {.call = calls[i], .error = EPERM};
		assert_int_equal(sandbox_run(&rule, 1, false, open_and_report, bed), 1);
	}
	const struct sandbox_rule direct = {
		.call = SYS_openat, .argument = 2, .bits = O_DIRECT, .value = O_DIRECT, .error = EINVAL};
	int ran = sandbox_run(&direct, 1, false, open_and_report, bed);
	assert_true(ran == 1 || ran == 2);
}

static gw_status open_and_read(void *context)
{
	struct bed *bed = context;
	uint64_t rows[] = {7, 3};
	uint8_t out[200];
	const struct gw_disk_options options = {.cache_bytes = GW_DISK_CACHE_MIN};
	gw_status status = gw_disk_create(&options, &bed->disk);
	if (status == GW_OK)
		status = bed_add(bed);
	if (status == GW_OK)
		status = read_rows(bed, rows, 2, out);
	bed_close(bed);
	return status;
}

static void memory_runs_out(void **state)
{
	bed_write(*state, 1000, 100);
	assert_true(gw_fault_each(open_and_read, *state) > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_forms_give_the_bytes),
		cmocka_unit_test(cache_keeps_what_fits),
		cmocka_unit_test(many_callers),
		cmocka_unit_test(bad_arguments),
		cmocka_unit_test(truncated_file),
		cmocka_unit_test(replaced_file),
		cmocka_unit_test(bad_sectors),
		cmocka_unit_test(freed_reads),
		cmocka_unit_test(refusing_kernels),
		cmocka_unit_test(memory_runs_out),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
