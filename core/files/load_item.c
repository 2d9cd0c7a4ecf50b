/* Steps that both drivers share: opens an item's file, cuts its payload into pieces, and compares its digests.
 *
 * Fails if the file is missing, short, unreadable, not regular or damaged. Each error names the file and the key.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/files/load_job.h"

static int load_open(const char *path, int flags)
{
	/* O_NONBLOCK: opening a pipe of that name must not block. The flag is cleared before the first read: on some
	 * file systems io_uring would answer reads with EAGAIN instead of waiting for the disk. */
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
		file->fd = load_open(item->path, O_DIRECT);
		if (file->fd < 0 && (errno == EINVAL || errno == EOPNOTSUPP)) {
			file->direct = false;
			atomic_store(&job->refused, item->path);
		}
	}
	if (!file->direct)
		file->fd = load_open(item->path, 0);
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
		return GW_OK; /* another read has already switched the file to buffered */
	int fd = load_open(item->path, 0);
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
		       "%s (%s): chunk %llu (bytes %llu to %llu of the file) has digest %016llx, not %016llx: "
		       "the file was damaged or edited: copy or build it again",
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
