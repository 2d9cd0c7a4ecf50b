/* Loads by pread, for kernels and containers that refuse io_uring.
 *
 *   threads take chunks in order -> read piece by piece -> verify at once, while the chunk is in the cache
 *
 * Blocking reads need many threads to keep a disk busy, so the loader starts more threads than processors.
 */
#include <errno.h>
#include <unistd.h>

#include "core/files/load_job.h"
#include "core/memory/alloc.h"
#include "core/system/parallel.h"

#define READERS_MAX 16u

/* A thread's open file. The thread takes chunks in order, so the file seldom changes. */
struct load_reader {
	size_t item;
	bool open;
	struct gw_load_file file;
};

struct readers {
	struct gw_load_job *job;
	struct load_reader *readers;
};

static size_t find_item(const struct gw_load_job *job, uint64_t unit)
{
	size_t low = 0, high = job->count;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		if (job->first_unit[middle] <= unit)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static gw_status open_for(struct gw_load_job *job, struct load_reader *reader, size_t item)
{
	if (reader->open && reader->item == item)
		return GW_OK;
	if (reader->open)
		gw_load_file_close(&reader->file);
	reader->open = false;
	reader->item = item;
	gw_status status = gw_load_file_open(job, item, &reader->file);
	reader->open = status == GW_OK;
	return status;
}

/* [at, end) is within one piece. */
static gw_status read_piece(struct gw_load_job *job, struct load_reader *reader, uint64_t at, uint64_t end)
{
	struct gw_load_file *file = &reader->file;
	while (at < end) {
		uint64_t file_at = job->items[reader->item].file_offset + at;
		ssize_t got = pread(file->fd, gw_load_address(job, reader->item, at), gw_load_request(file, end - at),
				    (off_t)file_at);
		if (got < 0 && errno == EINTR)
			continue;
		bool refused = file->direct && ((got < 0 && (errno == EINVAL || errno == EOPNOTSUPP)) ||
						(got > 0 && at + (uint64_t)got < end && got % (ssize_t)GW_LOAD_BLOCK));
		if (got < 0 && !refused)
			return gw_load_read_failed(job, reader->item, at, errno);
		if (got == 0)
			return gw_load_truncated(job, reader->item, at);
		at += got > 0 ? (uint64_t)got : 0;
		gw_status status = refused ? gw_load_file_refuse(job, reader->item, file) : GW_OK;
		if (status != GW_OK)
			return status;
	}
	return GW_OK;
}

static gw_status read_unit(struct readers *all, uint64_t unit, unsigned thread)
{
	struct gw_load_job *job = all->job;
	struct load_reader *reader = &all->readers[thread];
	size_t number = find_item(job, unit);
	const struct gw_load_item *item = &job->items[number];
	gw_status status = open_for(job, reader, number);
	uint64_t chunk = unit - job->first_unit[number];
	uint64_t begin = chunk * GW_DIGEST_CHUNK, end = begin + gw_load_chunk_bytes(item, chunk);
	for (uint64_t at = begin; status == GW_OK && at < end;) {
		uint64_t bytes = gw_load_piece(job, number, at);
		status = read_piece(job, reader, at, at + bytes);
		at += bytes;
	}
	if (status != GW_OK)
		return status;
	if (end == item->bytes)
		gw_load_clear_tail(job, number);
	if (chunk == 0)
		gw_load_file_count(job, &reader->file);
	if (end > begin)
		status = gw_load_verify(job, number, chunk);
	atomic_fetch_add(&job->bytes_done, end - begin);
	if (thread == 0)
		gw_load_progress(job);
	return status;
}

static gw_status read_units(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	gw_status status = GW_OK;
	for (uint64_t unit = begin; unit < end && status == GW_OK; unit++)
		status = read_unit(context, unit, thread);
	return status;
}

gw_status gw_load_pread(struct gw_load_job *job, const char **driver)
{
	*driver = "pread";
	unsigned threads = job->options.queue_depth < READERS_MAX ? job->options.queue_depth : READERS_MAX;
	struct readers all = {.job = job, .readers = gw_calloc(threads, sizeof(*all.readers))};
	if (!all.readers)
		return GW_NO_MEMORY;
	gw_status status = gw_parallel_for(threads, job->first_unit[job->count], 1, read_units, &all);
	for (unsigned i = 0; i < threads; i++) {
		if (all.readers[i].open)
			gw_load_file_close(&all.readers[i].file);
	}
	gw_free(all.readers);
	if (status == GW_OK)
		gw_load_progress(job);
	return status;
}
