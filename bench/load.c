/* graphwire bench load: loads a partition's files into memory with digests verified, against a bare read of the same
 * bytes.
 *
 *   write random files into a temporary folder -> read and compare once -> bare loop and gw_load alternately -> report
 *
 * The files have the form of a partition's arrays: 4096 bytes of header, then the payload. O_DIRECT bypasses the page
 * cache. Both loops read into the same memory. The bare loop's time excludes making its ring and registering its
 * buffers; gw_load's time includes these. Fails if the folder's file system has no O_DIRECT or no room.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bare_read.h"
#include "bench/bench.h"
#include "core/files/load.h"
#include "core/files/staging.h"
#include "core/memory/alloc.h"
#include "core/memory/memory.h"
#include "core/numbers/digest.h"
#include "core/system/clock.h"
#include "core/system/parallel.h"
#include "core/system/progress.h"

#define HEADER_BYTES 4096u
#define FILES_MAX    1024u
#define SIZE_USUAL   (2ull << 30)

struct load_arguments {
	struct gw_bench bench;
	const char *folder;
	uint64_t bytes, files;
	struct gw_load_options load;
	/* in use while the benchmark runs */
	struct gw_staging *staging;
	struct gw_arena *arena;
	char **paths;
	uint64_t *digests; /* the digests of all files, file by file */
	struct gw_load_item *items;
	struct gw_bare_file *bare;
	uint64_t file_bytes; /* payload of each */
	double cpu_seconds;  /* processor time of all measured loads */
	const char *driver;
};

/* ---- options ---- */

static const char *const drivers[] = {"auto", "uring", "pread", NULL};

static gw_status load_take_piece(void *input, char *text)
{
	uint64_t bytes = 0;
	gw_status status = gw_parse_u64(text, 4096, GW_DIGEST_CHUNK, &bytes);
	if (status == GW_OK && (bytes % 4096 || GW_DIGEST_CHUNK % bytes))
		status = gw_fail(GW_INVALID, "%.64s is not a multiple of 4096 that divides 4Mi", text);
	((struct load_arguments *)input)->load.piece_bytes = (unsigned)bytes;
	return status;
}

#define A struct load_arguments
static const struct gw_option table[] = {
	{"folder", "DIR", "make the files in DIR, which must be on a disk (default /var/tmp)", 0,
	 GW_OPTION_TEXT(A, folder)},
	{"size", "BYTES", "bytes to load (default 2Gi)", 0, GW_OPTION_NUMBER(A, bytes, 1 << 20, 1ull << 44)},
	{"files", "N", "number of files (default 8)", 0, GW_OPTION_NUMBER(A, files, 1, FILES_MAX)},
	{"piece", "BYTES", "bytes of one read, a multiple of 4096 that divides 4Mi (default 1Mi)", 0,
	 GW_OPTION_CALL(load_take_piece)},
	{"depth", "N", "reads in flight (default 64)", 0, GW_OPTION_NUMBER(A, load.queue_depth, 1, 4096)},
	{"verify-threads", "N", "threads that verify digests (default: processors - 1)", 0,
	 GW_OPTION_NUMBER(A, load.verify_threads, 1, 64)},
	{"driver", "NAME", "auto, uring or pread (default auto)", 0, GW_OPTION_CHOICE(A, load.driver, drivers)},
	{0},
};
#undef A

/* ---- input ---- */

static void load_fill(uint64_t *words, size_t count, uint64_t seed)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15ull + 1;
	for (size_t i = 0; i < count; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		words[i] = x;
	}
}

static gw_status load_write_all(int fd, const char *path, const void *data, size_t bytes)
{
	for (const uint8_t *next = data; bytes > 0;) {
		ssize_t written = write(fd, next, bytes);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return gw_fail_errno(GW_IO, errno, "write %s", path);
		next += written;
		bytes -= (size_t)written;
	}
	return GW_OK;
}

/* The digests of the chunks go to digests. */
static gw_status write_file(const struct load_arguments *a, uint64_t number, uint64_t *digests, uint64_t *buffer,
			    struct gw_progress *progress)
{
	const char *path = a->paths[number];
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return gw_fail_errno(GW_IO, errno, "make %s", path);
	memset(buffer, 'h', HEADER_BYTES);
	gw_status status = load_write_all(fd, path, buffer, HEADER_BYTES);
	for (uint64_t at = 0; at < a->file_bytes && status == GW_OK; at += GW_DIGEST_CHUNK) {
		uint64_t left = a->file_bytes - at, bytes = left < GW_DIGEST_CHUNK ? left : GW_DIGEST_CHUNK;
		load_fill(buffer, bytes / 8, number << 32 | at / GW_DIGEST_CHUNK);
		digests[at / GW_DIGEST_CHUNK] = gw_digest(buffer, bytes);
		status = load_write_all(fd, path, buffer, bytes);
		gw_progress_update(progress, number * a->file_bytes + at);
	}
	if (status == GW_OK && fdatasync(fd))
		status = gw_fail_errno(GW_IO, errno, "write %s", path);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
	return status;
}

static gw_status write_files(struct load_arguments *a)
{
	uint64_t *buffer = gw_malloc(GW_DIGEST_CHUNK);
	if (!buffer)
		return GW_NO_MEMORY;
	struct gw_progress progress;
	gw_progress_begin(&progress, "writing the input", "B", a->files * a->file_bytes);
	gw_status status = GW_OK;
	for (uint64_t i = 0; i < a->files && status == GW_OK; i++)
		status = write_file(a, i, a->digests + i * gw_digest_count(a->file_bytes), buffer, &progress);
	gw_progress_end(&progress, a->files * a->file_bytes);
	gw_free(buffer);
	return status;
}

static gw_status describe_files(struct load_arguments *a)
{
	uint64_t chunks = gw_digest_count(a->file_bytes);
	a->paths = gw_calloc(a->files, sizeof(*a->paths));
	a->digests = gw_calloc(a->files * chunks, sizeof(*a->digests));
	a->items = gw_calloc(a->files, sizeof(*a->items));
	a->bare = gw_calloc(a->files, sizeof(*a->bare));
	if (!a->paths || !a->digests || !a->items || !a->bare)
		return GW_NO_MEMORY;
	for (uint64_t i = 0; i < a->files; i++) {
		a->paths[i] = gw_format("%s/array%llu.npy", gw_staging_path(a->staging), (unsigned long long)i);
		if (!a->paths[i])
			return GW_NO_MEMORY;
		uint64_t offset;
		gw_status status = gw_arena_take(a->arena, a->file_bytes, GW_ARENA_ALIGN, &offset);
		if (status != GW_OK)
			return status;
		a->items[i] = (struct gw_load_item){.path = a->paths[i],
						    .key = "input",
						    .file_offset = HEADER_BYTES,
						    .bytes = a->file_bytes,
						    .arena_offset = offset,
						    .digests = a->digests + i * chunks};
		a->bare[i] = (struct gw_bare_file){.path = a->paths[i],
						   .file_offset = HEADER_BYTES,
						   .bytes = a->file_bytes,
						   .to = gw_arena_base(a->arena) + offset};
	}
	return GW_OK;
}

static gw_status make_input(struct load_arguments *a)
{
	char *name = gw_format("%s/graphwire-bench-load", a->folder);
	if (!name)
		return GW_NO_MEMORY;
	gw_status status = gw_staging_begin(name, false, &a->staging);
	gw_free(name);
	const struct gw_arena_options pages = {.name = "bench-load", .numa = GW_NUMA_SPREAD, .shareable = true};
	if (status == GW_OK)
		status = gw_arena_create(a->files * a->file_bytes, &pages, &a->arena);
	if (status == GW_OK)
		status = describe_files(a);
	return status != GW_OK ? status : write_files(a);
}

/* ---- measurement ---- */

static gw_status load_measure_bare(void *context, double *figure)
{
	struct load_arguments *a = context;
	double seconds;
	int error = gw_bare_read(a->bare, a->files, a->load.queue_depth, a->load.piece_bytes, gw_arena_base(a->arena),
				 gw_arena_bytes(a->arena), gw_arena_slice_bytes(a->arena), &seconds);
	if (error)
		return gw_fail_errno(GW_IO, -error,
				     "the bare loop cannot read %s with io_uring and O_DIRECT: try another --folder",
				     gw_staging_path(a->staging));
	*figure = (double)(a->files * a->file_bytes) / seconds * 1e-9;
	return GW_OK;
}

static gw_status measure_load(void *context, double *figure)
{
	struct load_arguments *a = context;
	struct gw_load_stats stats;
	double cpu = gw_bench_cpu_seconds();
	uint64_t begin = gw_now_ns();
	gw_status status = gw_load(a->arena, a->items, a->files, &a->load, &stats);
	if (status != GW_OK)
		return status;
	*figure = (double)stats.bytes / (double)(gw_now_ns() - begin);
	a->cpu_seconds += gw_bench_cpu_seconds() - cpu;
	a->driver = stats.driver;
	return GW_OK;
}

/* The digests are computed here. */
static gw_status load_compare(const struct load_arguments *a, const char *reader)
{
	for (uint64_t i = 0; i < a->files; i++) {
		for (uint64_t at = 0; at < a->file_bytes; at += GW_DIGEST_CHUNK) {
			uint64_t left = a->file_bytes - at, bytes = left < GW_DIGEST_CHUNK ? left : GW_DIGEST_CHUNK;
			if (gw_digest(a->bare[i].to + at, bytes) != a->items[i].digests[at / GW_DIGEST_CHUNK])
				return gw_fail(GW_DIGEST, "%s read wrong bytes of %s at %llu", reader, a->paths[i],
					       (unsigned long long)at);
		}
	}
	return GW_OK;
}

/* The memory is cleared before. */
static gw_status load_verify(struct load_arguments *a)
{
	double figure;
	memset(gw_arena_base(a->arena), 0, gw_arena_bytes(a->arena));
	gw_status status = load_measure_bare(a, &figure);
	if (status == GW_OK)
		status = load_compare(a, "the bare loop");
	memset(gw_arena_base(a->arena), 0, gw_arena_bytes(a->arena));
	if (status == GW_OK)
		status = measure_load(a, &figure);
	if (status == GW_OK)
		status = load_compare(a, "gw_load");
	a->cpu_seconds = 0;
	return status;
}

static void load_report(struct load_arguments *a, const struct gw_bench_series *ceilings,
			const struct gw_bench_series *values)
{
	char title[96], each[GW_UNIT_TEXT_MAX], note[160];
	double wall = 0, total = (double)(a->files * a->file_bytes) * 1e-9;
	for (unsigned i = 0; i < values->count; i++)
		wall += total / values->values[i];
	double processors = a->cpu_seconds / wall;
	double ratio = gw_bench_series_median(values) / gw_bench_series_median(ceilings);
	snprintf(title, sizeof(title), "%llu x %s, verified", (unsigned long long)a->files,
		 gw_text_bytes(each, (double)a->file_bytes));
	snprintf(note, sizeof(note), "%s; %.2f of %u processors busy: %s", a->driver, processors, gw_processors(),
		 ratio > 0.9                          ? "the disk is the limit"
		 : processors > 0.9 * gw_processors() ? "the processors are the limit"
						      : "neither the disk nor the processors were full");
	const struct gw_bench_result result = {.title = title,
					       .unit = "GB/s",
					       .values = values,
					       .ceilings = ceilings,
					       .verified = true,
					       .note = note,
					       .fields = {{"bytes", .number = total * 1e9},
							  {"piece_bytes", .number = a->load.piece_bytes},
							  {"queue_depth", .number = a->load.queue_depth},
							  {"verify_threads", .number = a->load.verify_threads},
							  {"cpu", .number = processors},
							  {"driver", .text = a->driver}}};
	gw_bench_report(&a->bench, &result);
}

static void clean_up(struct load_arguments *a)
{
	gw_staging_abort(a->staging);
	gw_arena_destroy(a->arena);
	for (uint64_t i = 0; i < a->files && a->paths; i++)
		gw_free(a->paths[i]);
	gw_free(a->paths);
	gw_free(a->digests);
	gw_free(a->items);
	gw_free(a->bare);
}

static gw_status load_run(struct load_arguments *a)
{
	static struct gw_bench_series ceilings, values; /* 8 KB each */
	ceilings.count = values.count = 0;
	gw_status status = gw_bench_open(&a->bench);
	if (status == GW_OK)
		status = make_input(a);
	if (status == GW_OK)
		status = load_verify(a);
	if (status == GW_OK)
		status = gw_bench_alternate(&a->bench, load_measure_bare, measure_load, a, &ceilings, &values);
	if (status == GW_OK)
		load_report(a, &ceilings, &values);
	clean_up(a);
	gw_status closed = gw_bench_close(&a->bench);
	return status != GW_OK ? status : closed;
}

/* The default size: 2 GiB, or a quarter of the memory if that is less. */
static uint64_t usual_bytes(void)
{
	struct gw_memory memory;
	gw_memory_read("", -1, &memory);
	return memory.available / 4 < SIZE_USUAL ? memory.available / 4 : SIZE_USUAL;
}

int gw_bench_load(int argc, char **argv)
{
	static const char doc[] = "Measure how fast a partition's files load into memory, with digests verified, "
				  "against a bare io_uring O_DIRECT read of the same bytes.\vExamples:\n"
				  "  graphwire bench load\n"
				  "  graphwire bench load --size 16Gi --folder /data --json load.json\n";
	static const struct gw_options options = {.table = table,
						  .common = gw_bench_options,
						  .common_offset = offsetof(struct load_arguments, bench),
						  .doc = doc};
	struct load_arguments a = {.bench = {.name = "load"},
				   .folder = "/var/tmp",
				   .files = 8,
				   .load = {.queue_depth = 64, .piece_bytes = 1 << 20}};
	gw_options_parse(&options, argc, argv, &a);
	if (a.bytes == 0)
		a.bytes = usual_bytes();
	if (a.load.verify_threads == 0)
		a.load.verify_threads = gw_processors() > 1 ? gw_processors() - 1 : 1;
	a.file_bytes = a.bytes / a.files / 4096 * 4096;
	if (a.file_bytes == 0)
		a.file_bytes = 4096;
	gw_status status = load_run(&a);
	return gw_exit_status("graphwire bench load", status);
}
