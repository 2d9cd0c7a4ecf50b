/* gw_load: checks what is asked for, picks a driver, tells what came of it. And what both drivers need: opening files,
 * cutting payloads into pieces, comparing digests.
 *
 *   check items -> io_uring, else pread -> statistics and one line of log
 *
 * Fails on the first file that is missing, short, unreadable or damaged.
 */
#include "core/files/load.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/errors/log.h"
#include "core/errors/options.h"
#include "core/files/load_job.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "core/system/parallel.h"

#define DEPTH_USUAL  64u
#define DEPTH_MAX    4096u
#define PIECE_USUAL  (1u << 20)
#define VERIFIER_MAX 64u

/* ---- files ---- */

static int open_file(const char *path, int flags)
{
	/* O_NONBLOCK: a pipe by that name must not hold us up. It must go before anything is read: where a file system
	 * heeds it, io_uring answers reads with EAGAIN instead of waiting for the disk. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
	if (fd >= 0 && fcntl(fd, F_SETFL, flags)) {
		int error = errno;
		close(fd);
		errno = error;
		return -1;
	}
	return fd;
}

static gw_status load_check_file(const struct gw_load_item *item, int fd)
{
	struct stat info;
	if (fstat(fd, &info))
		return gw_fail_errno(GW_IO, errno, "%s (%s)", item->path, item->key);
	if (!S_ISREG(info.st_mode))
		return gw_fail(GW_FORMAT, "%s (%s): no regular file", item->path, item->key);
	if ((uint64_t)info.st_size < item->file_offset + item->bytes)
		return gw_fail(GW_FORMAT,
			       "%s (%s): truncated: %llu bytes long, should have %llu: copy or build it again",
			       item->path, item->key, (unsigned long long)info.st_size,
			       (unsigned long long)(item->file_offset + item->bytes));
	return GW_OK;
}

gw_status gw_load_file_open(struct gw_load_job *job, size_t number, struct gw_load_file *file)
{
	const struct gw_load_item *item = &job->items[number];
	*file = (struct gw_load_file){.fd = -1, .direct_fd = -1};
	file->direct = !job->options.buffered && item->file_offset % GW_LOAD_BLOCK == 0;
	if (file->direct) {
		file->fd = open_file(item->path, O_DIRECT);
		if (file->fd < 0 && (errno == EINVAL || errno == EOPNOTSUPP)) {
			file->direct = false;
			atomic_store(&job->refused, item->path);
		}
	}
	if (!file->direct)
		file->fd = open_file(item->path, 0);
	if (file->fd < 0)
		return gw_fail_errno(errno == ENOENT || errno == ENOTDIR ? GW_NOT_FOUND : GW_IO, errno, "open %s (%s)",
				     item->path, item->key);
	gw_status status = load_check_file(item, file->fd);
	if (status != GW_OK)
		gw_load_file_close(file);
	return status;
}

gw_status gw_load_file_refuse(struct gw_load_job *job, size_t number, struct gw_load_file *file)
{
	const struct gw_load_item *item = &job->items[number];
	if (!file->direct)
		return GW_OK; /* another read has seen to it */
	int fd = open_file(item->path, 0);
	if (fd < 0)
		return gw_fail_errno(GW_IO, errno, "open %s (%s)", item->path, item->key);
	file->direct_fd = file->fd;
	file->fd = fd;
	file->direct = false;
	atomic_store(&job->refused, item->path);
	return GW_OK;
}

void gw_load_file_close(struct gw_load_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	if (file->direct_fd >= 0)
		close(file->direct_fd);
	*file = (struct gw_load_file){.fd = -1, .direct_fd = -1};
}

void gw_load_file_count(struct gw_load_job *job, const struct gw_load_file *file)
{
	atomic_fetch_add(file->direct ? &job->files_direct : &job->files_buffered, 1);
}

/* ---- pieces ---- */

uint64_t gw_load_piece(const struct gw_load_job *job, size_t number, uint64_t at)
{
	const struct gw_load_item *item = &job->items[number];
	uint64_t bytes = job->options.piece_bytes - at % job->options.piece_bytes;
	uint64_t to_slice_end = job->slice_bytes - (item->arena_offset + at) % job->slice_bytes;
	if (bytes > to_slice_end)
		bytes = to_slice_end;
	return bytes < item->bytes - at ? bytes : item->bytes - at;
}

void gw_load_clear_tail(const struct gw_load_job *job, size_t number)
{
	uint64_t bytes = job->items[number].bytes;
	memset(gw_load_address(job, number, bytes), 0, (GW_LOAD_BLOCK - bytes % GW_LOAD_BLOCK) % GW_LOAD_BLOCK);
}

gw_status gw_load_truncated(const struct gw_load_job *job, size_t number, uint64_t at)
{
	const struct gw_load_item *item = &job->items[number];
	return gw_fail(GW_FORMAT, "%s (%s): cut short while it was read: ends at byte %llu of %llu", item->path,
		       item->key, (unsigned long long)(item->file_offset + at),
		       (unsigned long long)(item->file_offset + item->bytes));
}

gw_status gw_load_read_failed(const struct gw_load_job *job, size_t number, uint64_t at, int error)
{
	const struct gw_load_item *item = &job->items[number];
	return gw_fail_errno(GW_IO, error, "%s (%s): read at byte %llu", item->path, item->key,
			     (unsigned long long)(item->file_offset + at));
}

gw_status gw_load_verify(const struct gw_load_job *job, size_t number, uint64_t chunk)
{
	const struct gw_load_item *item = &job->items[number];
	if (!item->digests)
		return GW_OK;
	uint64_t begin = chunk * GW_DIGEST_CHUNK, bytes = gw_load_chunk_bytes(item, chunk);
	uint64_t found = gw_digest(gw_load_address(job, number, begin), bytes);
	if (found == item->digests[chunk])
		return GW_OK;
	return gw_fail(GW_DIGEST,
		       "%s (%s): chunk %llu (bytes %llu to %llu of the file) has digest %016llx, not %016llx: the file "
		       "was damaged or edited: copy or build it again",
		       item->path, item->key, (unsigned long long)chunk,
		       (unsigned long long)(item->file_offset + begin),
		       (unsigned long long)(item->file_offset + begin + bytes - 1), (unsigned long long)found,
		       (unsigned long long)item->digests[chunk]);
}

void gw_load_progress(struct gw_load_job *job)
{
	if (job->options.progress)
		job->options.progress(job->options.progress_context, atomic_load(&job->bytes_done), job->bytes_total);
}

/* ---- the load ---- */

static gw_status check_item(const struct gw_arena *arena, const struct gw_load_item *item)
{
	uint64_t capacity = gw_arena_bytes(arena), end;
	if (__builtin_add_overflow(item->file_offset, item->bytes, &end) || end > INT64_MAX)
		return gw_fail(GW_FORMAT, "%s (%s): %llu bytes at %llu belong to no file", item->path, item->key,
			       (unsigned long long)item->bytes, (unsigned long long)item->file_offset);
	uint64_t room = (item->bytes + GW_LOAD_BLOCK - 1) / GW_LOAD_BLOCK * GW_LOAD_BLOCK;
	if (item->arena_offset % GW_LOAD_BLOCK || item->arena_offset > capacity || room > capacity - item->arena_offset)
		return gw_fail(GW_INVALID, "%s (%s): no room for %llu bytes at %llu of an arena of %llu", item->path,
			       item->key, (unsigned long long)item->bytes, (unsigned long long)item->arena_offset,
			       (unsigned long long)capacity);
	return GW_OK;
}

static gw_status set_options(struct gw_load_job *job, const struct gw_load_options *options)
{
	if (options)
		job->options = *options;
	struct gw_load_options *o = &job->options;
	if (o->queue_depth == 0)
		o->queue_depth = DEPTH_USUAL;
	if (o->queue_depth > DEPTH_MAX)
		o->queue_depth = DEPTH_MAX;
	if (o->piece_bytes == 0)
		o->piece_bytes = PIECE_USUAL;
	if (o->piece_bytes % GW_LOAD_BLOCK || GW_DIGEST_CHUNK % o->piece_bytes)
		return gw_fail(GW_INVALID, "load: pieces of %u bytes: must be a multiple of 4096 that divides 4 MiB",
			       o->piece_bytes);
	if (o->verify_threads == 0)
		o->verify_threads = gw_processors() > 1 ? gw_processors() - 1 : 1;
	if (o->verify_threads > VERIFIER_MAX)
		o->verify_threads = VERIFIER_MAX;
	return GW_OK;
}

static gw_status set_up(struct gw_load_job *job, const struct gw_arena *arena, const struct gw_load_options *options)
{
	gw_status status = set_options(job, options);
	if (status != GW_OK)
		return status;
	job->base = gw_arena_base(arena);
	job->slice_bytes = gw_arena_slice_bytes(arena);
	job->first_unit = gw_calloc(job->count + 1, sizeof(*job->first_unit));
	if (!job->first_unit)
		return GW_NO_MEMORY;
	for (size_t i = 0; i < job->count; i++) {
		status = check_item(arena, &job->items[i]);
		if (status != GW_OK)
			return status;
		uint64_t chunks = gw_digest_count(job->items[i].bytes);
		job->first_unit[i + 1] = job->first_unit[i] + (chunks ? chunks : 1);
		job->bytes_total += job->items[i].bytes;
	}
	return GW_OK;
}

static gw_status run_driver(struct gw_load_job *job, struct gw_arena *arena, const char **driver)
{
	if (job->options.driver == GW_LOAD_PREAD)
		return gw_load_pread(job, driver);
	gw_status status = gw_load_uring(job, arena, driver);
	if (status != GW_UNSUPPORTED || job->options.driver == GW_LOAD_URING)
		return status;
	gw_log(GW_LOG_INFO, "load: reading by pread: %s", gw_last_error());
	atomic_store(&job->files_direct, 0); /* empty arrays may have been counted */
	atomic_store(&job->files_buffered, 0);
	return gw_load_pread(job, driver);
}

static void log_load(struct gw_load_job *job, const struct gw_load_stats *stats)
{
	char bytes[GW_UNIT_TEXT_MAX], time[GW_UNIT_TEXT_MAX], rate[GW_UNIT_TEXT_MAX];
	double seconds = (double)stats->ns * 1e-9;
	gw_log(GW_LOG_INFO, "load: %s of %zu arrays in %s, %s/s (%s)", gw_text_bytes(bytes, (double)stats->bytes),
	       job->count, gw_text_duration(time, seconds),
	       gw_text_bytes(rate, seconds > 0 ? (double)stats->bytes / seconds : 0), stats->driver);
	const char *refused = atomic_load(&job->refused);
	if (refused)
		gw_log(GW_LOG_INFO, "load: %u of %zu files read buffered: the file system refuses O_DIRECT, as for %s",
		       stats->files_buffered, job->count, refused);
}

gw_status gw_load(struct gw_arena *arena, const struct gw_load_item *items, size_t count,
		  const struct gw_load_options *options, struct gw_load_stats *stats)
{
	struct gw_load_job job = {.items = items, .count = count};
	uint64_t begin = gw_now_ns();
	const char *driver = "none";
	gw_status status = set_up(&job, arena, options);
	if (status == GW_OK)
		status = run_driver(&job, arena, &driver);
	gw_free(job.first_unit);
	if (status != GW_OK)
		return status;
	struct gw_load_stats result = {.bytes = job.bytes_total,
				       .ns = gw_now_ns() - begin,
				       .driver = driver,
				       .files_direct = atomic_load(&job.files_direct),
				       .files_buffered = atomic_load(&job.files_buffered)};
	log_load(&job, &result);
	if (stats)
		*stats = result;
	return GW_OK;
}
