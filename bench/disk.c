/* graphwire bench disk: random rows of a file on disk, against bare random reads of as many blocks.
 *
 *   a file of random rows -> lists of random rows: their bytes are compared -> rows through core/files/disk.h and a
 * bare loop of io_uring with O_DIRECT, alternately, with as many reads in flight, of the same file -> report
 *
 * The figure is the blocks that were read from the file in a second. Hits in the cache do not count: a cache of the
 * least size has hardly any. fio gives a second ceiling, where it is installed.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/fio.h"
#include "core/files/disk.h"
#include "core/memory/alloc.h"
#include "core/memory/arena.h"
#include "core/numbers/rng.h"
#include "core/system/clock.h"
#include "core/system/futex.h"
#include "core/system/uring.h"

#define BLOCK      4096u
#define READS_OPEN 4u /* as a loader's batches in progress */

struct disk_arguments {
	struct gw_bench bench;
	const char *folder;
	uint64_t bytes, row_bytes, cache, depth, rows, seconds;
	/* in use while the benchmark runs */
	char *path;
	struct gw_disk *disk;
	struct gw_disk_array *array;
	uint64_t row_count, seed;
	uint64_t *numbers;
	uint8_t *out[READS_OPEN];
	struct gw_arena *blocks;
	int fd;
};

#define A struct disk_arguments
static const struct gw_option table[] = {
	{"folder", "DIR", "where the file is written, and removed (default .)", 0, GW_OPTION_TEXT(A, folder)},
	{"bytes", "N", "of the file (default 1Gi)", 0, GW_OPTION_NUMBER(A, bytes, 1 << 20, 1ull << 44)},
	{"row-bytes", "N", "bytes of a row (default 512)", 0, GW_OPTION_NUMBER(A, row_bytes, 8, 1 << 24)},
	{"cache", "N", "bytes of the cache (default 1Mi)", 0,
	 GW_OPTION_NUMBER(A, cache, GW_DISK_CACHE_MIN, 1ull << 40)},
	{"depth", "N", "reads in flight (default 128)", 0, GW_OPTION_NUMBER(A, depth, 1, 4096)},
	{"rows", "N", "rows of a request (default 8192)", 0, GW_OPTION_NUMBER(A, rows, 1, 1 << 20)},
	{"seconds", "N", "of a measurement (default 2)", 0, GW_OPTION_NUMBER(A, seconds, 1, 3600)},
	{0},
};
#undef A

static uint64_t disk_word(uint64_t row, uint64_t word)
{
	return gw_mix64(row * 4096 + word);
}

static gw_status disk_write(const struct disk_arguments *a)
{
	FILE *file = fopen(a->path, "w");
	uint64_t words = a->row_bytes / 8;
	uint64_t *row = gw_calloc(1, a->row_bytes);
	bool good = file && row;
	for (uint64_t i = 0; i < a->row_count && good; i++) {
		for (uint64_t w = 0; w < words; w++)
			row[w] = disk_word(i, w);
		good = fwrite(row, a->row_bytes, 1, file) == 1;
	}
	good = good && fflush(file) == 0 && fsync(fileno(file)) == 0;
	int error = errno;
	if (file && fclose(file) != 0)
		good = false;
	gw_free(row);
	return good ? GW_OK : gw_fail_errno(GW_IO, error, "%s", a->path);
}

/* One list of rows at place `number`. */
static gw_status disk_ask(struct disk_arguments *a, uint32_t number, void (*over)(void *), void *context,
			  struct gw_disk_read **read)
{
	uint64_t *rows = a->numbers + number * a->rows;
	for (uint64_t i = 0; i < a->rows; i++)
		rows[i] = gw_mix64(a->seed++) % a->row_count;
	const struct gw_disk_rows what = {.array = a->array,
					  .rows = rows,
					  .count = (uint32_t)a->rows,
					  .out = a->out[number],
					  .over = over,
					  .context = context};
	return gw_disk_read_start(a->disk, &what, read);
}

static void disk_note(void *ended)
{
	atomic_fetch_add((_Atomic uint32_t *)ended, 1);
	gw_futex_wake(ended, 1);
}

static gw_status disk_wait_for(struct gw_disk_read *read, _Atomic uint32_t *ended)
{
	gw_status status;
	for (;;) {
		uint32_t seen = atomic_load(ended);
		status = gw_disk_read_status(read);
		if (status != GW_AGAIN)
			break;
		gw_futex_wait(ended, seen, GW_NO_DEADLINE);
	}
	gw_disk_read_free(read);
	return status;
}

static gw_status disk_verify(struct disk_arguments *a)
{
	_Atomic uint32_t ended = 0;
	struct gw_disk_read *read;
	gw_status status = disk_ask(a, 0, disk_note, &ended, &read);
	if (status == GW_OK)
		status = disk_wait_for(read, &ended);
	for (uint64_t i = 0; i < a->rows && status == GW_OK; i++) {
		for (uint64_t w = 0; w < a->row_bytes / 8 && status == GW_OK; w++) {
			uint64_t word;
			memcpy(&word, a->out[0] + i * a->row_bytes + w * 8, sizeof(word));
			if (word != disk_word(a->numbers[i], w))
				status = gw_fail(GW_INVALID, "row %llu has other bytes",
						 (unsigned long long)a->numbers[i]);
		}
	}
	return status;
}

static gw_status disk_rows_rate(void *context, double *figure)
{
	struct disk_arguments *a = context;
	struct gw_disk_read *reads[READS_OPEN] = {NULL};
	_Atomic uint32_t ended = 0;
	struct gw_disk_counts before, after;
	gw_disk_counts(a->disk, &before);
	const uint64_t begin = gw_now_ns(), until = begin + a->seconds * GW_NS_PER_SECOND;
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < READS_OPEN && status == GW_OK; i++)
		status = disk_ask(a, i, disk_note, &ended, &reads[i]);
	for (uint32_t i = 0; status == GW_OK && gw_now_ns() < until; i = (i + 1) % READS_OPEN) {
		status = disk_wait_for(reads[i], &ended);
		reads[i] = NULL;
		if (status == GW_OK)
			status = disk_ask(a, i, disk_note, &ended, &reads[i]);
	}
	gw_disk_counts(a->disk, &after);
	*figure = (double)(after.misses - before.misses) / ((double)(gw_now_ns() - begin) * 1e-9) * 1e-3;
	for (uint32_t i = 0; i < READS_OPEN; i++) {
		gw_status last = reads[i] ? disk_wait_for(reads[i], &ended) : GW_OK;
		status = status == GW_OK ? last : status;
	}
	return status;
}

/* Reads of random blocks: the next one begins when one ends. */
static gw_status bare_blocks_rate(void *context, double *figure)
{
	struct disk_arguments *a = context;
	struct io_uring ring;
	struct io_uring_params parameters = {0};
	int error = gw_uring_init((unsigned)a->depth, &ring, &parameters);
	if (error)
		return gw_fail_errno(GW_UNSUPPORTED, -error, "io_uring");
	const uint64_t blocks = a->row_count * a->row_bytes / BLOCK, begin = gw_now_ns();
	const uint64_t until = begin + a->seconds * GW_NS_PER_SECOND;
	uint64_t done = 0, open = 0, counted = 0, end = 0;
	uint32_t next = 0;
	gw_status status = GW_OK;
	for (bool more = true; status == GW_OK && (more || open);) {
		for (; more && open < a->depth; open++, next = (next + 1) % (uint32_t)a->depth) {
			struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
			io_uring_prep_read(sqe, a->fd, gw_arena_base(a->blocks) + (uint64_t)next * BLOCK, BLOCK,
					   gw_mix64(a->seed++) % blocks * BLOCK);
		}
		io_uring_submit_and_wait(&ring, 1);
		struct io_uring_cqe *cqe;
		while (io_uring_peek_cqe(&ring, &cqe) == 0) {
			if (cqe->res != (int)BLOCK)
				status = gw_fail_errno(GW_IO, cqe->res < 0 ? -cqe->res : EIO, "%s", a->path);
			io_uring_cqe_seen(&ring, cqe);
			open--;
			done++;
		}
		if (more && gw_now_ns() >= until) {
			more = false;
			counted = done;
			end = gw_now_ns();
		}
	}
	gw_uring_exit(&ring);
	*figure = (double)counted / ((double)(end - begin) * 1e-9) * 1e-3;
	return status;
}

static gw_status disk_measure(struct disk_arguments *a)
{
	static struct gw_bench_series ceilings, values;
	char title[96];
	double fio = 0;
	gw_status status = gw_bench_alternate(&a->bench, bare_blocks_rate, disk_rows_rate, a, &ceilings, &values);
	if (status == GW_OK &&
	    gw_bench_fio_read(a->path, BLOCK, (unsigned)a->depth, (unsigned)a->seconds, &fio) != GW_OK)
		fprintf(stderr, "graphwire bench disk: without fio's figure: %s\n", gw_last_error());
	if (status != GW_OK)
		return status;
	snprintf(title, sizeof(title), "rows of %llu bytes", (unsigned long long)a->row_bytes);
	gw_bench_report(&a->bench, &(struct gw_bench_result){.title = title,
							     .unit = "k blocks/s",
							     .values = &values,
							     .ceilings = &ceilings,
							     .verified = true,
							     .fields = {{"depth", .number = (double)a->depth},
									{"cache_bytes", .number = (double)a->cache},
									{"file_bytes", .number = (double)a->bytes},
									{"fio", .number = fio},
									{"driver", .text = gw_disk_driver(a->disk)}}});
	if (fio > 0)
		fprintf(a->bench.table, "  fio reads %.1f k blocks/s; the ratio to it is %.2f\n", fio,
			gw_bench_series_median(&values) / fio);
	return GW_OK;
}

static gw_status disk_prepare(struct disk_arguments *a)
{
	const struct gw_disk_options options = {.cache_bytes = a->cache, .queue_depth = (uint32_t)a->depth};
	a->row_bytes = a->row_bytes / 8 * 8;
	a->row_count = a->bytes / a->row_bytes;
	if (a->row_count == 0)
		return gw_fail(GW_INVALID, "--bytes %" PRIu64 ": less than one row of %" PRIu64 " bytes", a->bytes,
			       a->row_bytes);
	const struct gw_load_item item = {.path = a->path, .key = "rows", .bytes = a->row_count * a->row_bytes};
	a->numbers = gw_calloc(READS_OPEN * a->rows, sizeof(*a->numbers));
	for (uint32_t i = 0; i < READS_OPEN; i++) {
		a->out[i] = gw_malloc(a->rows * a->row_bytes);
		if (!a->out[i] || !a->numbers)
			return GW_NO_MEMORY;
	}
	gw_status status = disk_write(a);
	if (status == GW_OK)
		status = gw_arena_create(a->depth * BLOCK, NULL, &a->blocks);
	a->fd = status == GW_OK ? open(a->path, O_RDONLY | O_DIRECT | O_CLOEXEC) : -1;
	if (status == GW_OK && a->fd < 0)
		status = gw_fail_errno(GW_IO, errno, "%s, with O_DIRECT", a->path);
	if (status == GW_OK)
		status = gw_disk_create(&options, &a->disk);
	return status == GW_OK
		       ? gw_disk_add(a->disk, &item, (struct gw_disk_layout){a->row_bytes, a->row_bytes}, &a->array)
		       : status;
}

static gw_status disk_run(struct disk_arguments *a)
{
	a->path = gw_format("%s/.graphwire-bench-disk-%ld", a->folder, (long)getpid());
	if (!a->path)
		return GW_NO_MEMORY;
	gw_status status = gw_bench_open(&a->bench);
	if (status == GW_OK)
		status = disk_prepare(a);
	if (status == GW_OK)
		status = disk_verify(a);
	if (status == GW_OK)
		status = disk_measure(a);
	struct gw_error_kept kept;
	gw_error_keep(&kept);
	gw_disk_destroy(a->disk);
	gw_arena_destroy(a->blocks);
	if (a->fd >= 0)
		close(a->fd);
	unlink(a->path);
	gw_error_restore(&kept);
	gw_status closed = gw_bench_close(&a->bench);
	return status == GW_OK ? closed : status;
}

int gw_bench_disk(int argc, char **argv)
{
	static const struct gw_options options = {
		.table = table,
		.common = gw_bench_options,
		.common_offset = offsetof(struct disk_arguments, bench),
		.doc = "Measure random rows that stay on disk, against bare random reads with O_DIRECT.\v"
		       "Examples:\n  graphwire bench disk --folder /data --bytes 8Gi\n"
		       "  graphwire bench disk --row-bytes 4096 --depth 256\n"};
	struct disk_arguments a = {.bench = {.name = "disk"},
				   .folder = ".",
				   .bytes = 1ull << 30,
				   .row_bytes = 512,
				   .cache = GW_DISK_CACHE_MIN,
				   .depth = 128,
				   .rows = 8192,
				   .seconds = 2,
				   .fd = -1};
	gw_options_parse(&options, argc, argv, &a);
	gw_status status = disk_run(&a);
	for (uint32_t i = 0; i < READS_OPEN; i++)
		gw_free(a.out[i]);
	gw_free(a.numbers);
	gw_free(a.path);
	return gw_exit_status("graphwire bench disk", status);
}
