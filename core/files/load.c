/* gw_load: checks the items, picks a driver, and logs the result.
 *
 *   check items -> io_uring, else pread -> statistics and one line of log
 *
 * Fails on the first file that is missing, short, unreadable or damaged.
 */
#include "core/files/load.h"

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
	atomic_store(&job->files_direct, 0); /* empty arrays may have been counted as direct */
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
		gw_log(GW_LOG_INFO,
		       "load: %u of %zu files read buffered: the file system refuses O_DIRECT, for example for %s",
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
