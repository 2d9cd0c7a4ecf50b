/* The disk's thread.
 *
 *   inbox -> queue -> active reads -> the next block of all of them, by address -> in the cache: rows are copied
 *                                            ^                                   -> in flight: the rows wait for it
 *                                            |                                   -> else: a frame, and a read
 *                                            `-- a bounded number of blocks, then finished reads: rows are copied
 *
 * A round goes through the files once, as an elevator does: a read that arrives in the middle begins with the blocks
 * ahead, and ends with those that the round has passed. No read waits for longer than a round. The number of blocks in
 * flight, of reads that are visited and of rows' records that wait is bounded; what exceeds a bound is visited later.
 *
 * Errors: see disk.h. A read that fails is over when none of its blocks is in flight.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/errors/log.h"
#include "core/files/disk_private.h"

#define VISITS    256u  /* blocks between two looks at finished reads */
#define TRIES_MAX 1000u /* submissions of a read that the kernel answers with "try again" */
#define SHORT_MAX 3u    /* reads of a block that end inside it: then the file ends there */

static void disk_add(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_relaxed);
}

static uint64_t row_begins(const struct gw_disk_read *read, uint32_t row)
{
	return read->array->item.file_offset + read->rows[row] * read->array->layout.step;
}

static uint64_t disk_key(const struct gw_disk_array *array, uint64_t block)
{
	return array->number << DISK_KEY_SHIFT | block;
}

/* --- reads --- */

static void disk_read_end(struct gw_disk_read *read)
{
	pthread_mutex_lock(&read->lock);
	atomic_store_explicit(&read->ended, true, memory_order_release);
	if (!read->freed && read->over)
		read->over(read->context);
	pthread_mutex_unlock(&read->lock);
	gw_disk_read_unref(read);
}

static void disk_read_look(struct gw_disk_read *read)
{
	if (read->visited && read->waits == 0)
		disk_read_end(read);
}

static void disk_read_fail(struct gw_disk_read *read, gw_status status, const char *text)
{
	if (read->status != GW_OK)
		return;
	read->status = status;
	snprintf(read->text, sizeof(read->text), "%s", text);
}

/* The rows of a read that lie in a block, from `first` on: the end of their list. */
static uint32_t rows_in_block(const struct gw_disk_read *read, uint64_t block)
{
	uint32_t end = read->at;
	while (end < read->end && row_begins(read, end) < (block + 1) * DISK_BLOCK)
		end++;
	return end;
}

/* Copies the pieces of rows that lie in a block. */
static void copy_pieces(struct gw_disk_read *read, uint32_t first, uint32_t end, uint64_t block, const uint8_t *data)
{
	const uint64_t row_bytes = read->array->layout.row_bytes, begin = block * DISK_BLOCK;
	pthread_mutex_lock(&read->lock);
	if (read->freed)
		end = first;
	for (uint32_t i = first; i < end; i++) {
		uint64_t row = row_begins(read, i), from = row > begin ? row : begin;
		uint64_t to = row + row_bytes < begin + DISK_BLOCK ? row + row_bytes : begin + DISK_BLOCK;
		memcpy(read->out + read->to[i] * row_bytes + (from - row), data + (from - begin), to - from);
	}
	pthread_mutex_unlock(&read->lock);
}

/* Where a round stands, the read begins. */
static void disk_read_enter(struct gw_disk *disk, struct gw_disk_read *read)
{
	uint64_t number = disk->sweep >> DISK_KEY_SHIFT, block = disk->sweep & ((1ull << DISK_KEY_SHIFT) - 1);
	uint32_t low = 0, high = read->array->number == number ? read->count : 0;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (row_begins(read, middle) / DISK_BLOCK < block)
			low = middle + 1;
		else
			high = middle;
	}
	read->start = read->at = low == read->count ? 0 : low;
	read->end = read->count;
	read->visited = read->count == 0;
	read->block = read->visited ? 0 : row_begins(read, read->at) / DISK_BLOCK;
	if (read->visited)
		disk_read_end(read);
	else
		disk->active[disk->active_count++] = read;
}

/* The read's rows in its block are copied, or wait: finds its next block. */
static void disk_read_advance(struct gw_disk_read *read, uint32_t rows_end)
{
	const uint64_t next = (read->block + 1) * DISK_BLOCK;
	while (read->at < rows_end && row_begins(read, read->at) + read->array->layout.row_bytes <= next)
		read->at++;
	uint64_t least = read->block + 1;
	if (read->at == read->end && read->end == read->count && read->start > 0) {
		read->at = 0;
		read->end = read->start;
		least = 0;
	}
	if (read->at == read->end) {
		read->visited = true;
		return;
	}
	uint64_t block = row_begins(read, read->at) / DISK_BLOCK;
	read->block = block > least ? block : least;
}

/* --- reads of blocks --- */

static void disk_io_submit(struct gw_disk *disk, struct disk_io *io)
{
	const struct gw_disk_array *array = io->array;
	uint32_t end = io->single ? io->at + 1 : io->count;
	io->direct = array->file.direct;
	io->fd = array->file.fd;
	io->iov = io->room + io->at;
	io->parts = end - io->at;
	io->file_at = (io->block + io->at) * DISK_BLOCK;
	disk_add(&disk->counts.reads, 1);
	disk->driver->submit(disk, io);
}

static void disk_grow_end(struct gw_disk *disk)
{
	if (disk->growing)
		disk_io_submit(disk, disk->growing);
	disk->growing = NULL;
}

/* The read that a block joins: the one before it if they are adjacent, else a new one. NULL: all are in flight. */
static struct disk_io *disk_io_for(struct gw_disk *disk, struct gw_disk_array *array, uint64_t block)
{
	struct disk_io *io = disk->growing;
	if (io && io->array == array && io->block + io->count == block && io->count < DISK_MERGE)
		return io;
	disk_grow_end(disk);
	io = disk->free_ios;
	if (!io)
		return NULL;
	disk->free_ios = io->next;
	disk->ios_open++;
	io->array = array;
	io->block = block;
	io->count = io->at = io->tries = 0;
	io->single = false;
	return disk->growing = io;
}

static void disk_io_free(struct gw_disk *disk, struct disk_io *io)
{
	io->next = disk->free_ios;
	disk->free_ios = io;
	disk->ios_open--;
}

static void add_wait(struct gw_disk *disk, struct disk_frame *frame, struct gw_disk_read *read, uint32_t rows_end)
{
	uint32_t number = disk->free_wait;
	struct disk_wait *wait = &disk->waits[number];
	disk->free_wait = wait->next;
	*wait = (struct disk_wait){.read = read, .first = read->at, .end = rows_end, .next = frame->waits};
	frame->waits = number;
	read->waits++;
}

/* Visits the read's next block. False: something must finish before. */
static bool disk_visit(struct gw_disk *disk, struct gw_disk_read *read)
{
	const uint64_t key = disk_key(read->array, read->block);
	uint32_t frame = gw_disk_cache_find(&disk->cache, key);
	bool here = frame != DISK_NONE && disk->cache.frames[frame].state == DISK_VALID;
	if (!here && disk->free_wait == DISK_NONE)
		return false;
	if (frame == DISK_NONE) {
		bool room = disk->cache.reading < disk->cache.reading_max;
		struct disk_io *io = room ? disk_io_for(disk, read->array, read->block) : NULL;
		if (!io)
			return false;
		frame = gw_disk_cache_claim(&disk->cache, key);
		io->frames[io->count] = frame;
		io->room[io->count++] = (struct iovec){gw_disk_frame(&disk->cache, frame), DISK_BLOCK};
		disk_add(&disk->counts.misses, 1);
	} else {
		disk->cache.frames[frame].used = true;
		disk_add(&disk->counts.hits, 1);
	}
	disk->sweep = key;
	uint32_t rows_end = rows_in_block(read, read->block);
	if (here)
		copy_pieces(read, read->at, rows_end, read->block, gw_disk_frame(&disk->cache, frame));
	else
		add_wait(disk, &disk->cache.frames[frame], read, rows_end);
	disk_read_advance(read, rows_end);
	return true;
}

/* The active read whose next block comes first in the round. */
static uint32_t disk_next(const struct gw_disk *disk)
{
	uint32_t best = 0;
	uint64_t least = UINT64_MAX;
	for (uint32_t i = 0; i < disk->active_count; i++) {
		uint64_t ahead = disk_key(disk->active[i]->array, disk->active[i]->block) - disk->sweep;
		if (ahead < least) {
			least = ahead;
			best = i;
		}
	}
	return best;
}

/* Nobody waits for the rest of the read. */
static bool disk_read_is_vain(struct gw_disk_read *read)
{
	if (read->status != GW_OK)
		return true;
	pthread_mutex_lock(&read->lock);
	bool vain = read->freed;
	pthread_mutex_unlock(&read->lock);
	return vain;
}

/* True: there is more to visit now. */
static bool disk_visit_some(struct gw_disk *disk)
{
	bool more = true;
	for (uint32_t visits = 0; visits < VISITS && more; visits++) {
		while (disk->active_count < DISK_ACTIVE && disk->queue) {
			struct gw_disk_read *read = disk->queue;
			disk->queue = read->next;
			if (!disk->queue)
				disk->queue_end = &disk->queue;
			disk_read_enter(disk, read);
		}
		if (disk->active_count == 0)
			return false;
		uint32_t i = disk_next(disk);
		struct gw_disk_read *read = disk->active[i];
		if (disk_read_is_vain(read))
			read->visited = true;
		else
			more = disk_visit(disk, read);
		if (read->visited) {
			disk->active[i] = disk->active[--disk->active_count];
			disk_read_look(read);
		}
	}
	return more;
}

/* --- completions --- */

/* Text of the failure of the next block of `io`, which this thread's error text gets. */
static gw_status disk_io_error(const struct disk_io *io)
{
	const struct gw_disk_array *array = io->array;
	struct stat info;
	if (io->result < 0)
		return gw_load_read_failed(&array->job, 0, io->file_at - array->item.file_offset, -io->result);
	uint64_t end = io->file_at + (uint64_t)io->result;
	if (fstat(io->fd, &info) == 0 && (uint64_t)info.st_size < end)
		end = (uint64_t)info.st_size;
	return gw_load_truncated(&array->job, 0, end - array->item.file_offset);
}

/* The next block of `io` has arrived or failed: serves the rows that wait for it. */
static void disk_io_settle(struct gw_disk *disk, struct disk_io *io, gw_status status)
{
	uint32_t number = io->frames[io->at];
	struct disk_frame *frame = &disk->cache.frames[number];
	char text[GW_ERROR_TEXT_MAX];
	if (status != GW_OK)
		disk_add(&disk->counts.errors, 1);
	for (uint32_t at = frame->waits, next; at != DISK_NONE; at = next) {
		struct disk_wait *wait = &disk->waits[at];
		struct gw_disk_read *read = wait->read;
		next = wait->next;
		if (status == GW_OK) {
			copy_pieces(read, wait->first, wait->end, io->block + io->at,
				    gw_disk_frame(&disk->cache, number));
		} else {
			snprintf(text, sizeof(text), "row %llu: %.900s", (unsigned long long)read->rows[wait->first],
				 gw_last_error());
			disk_read_fail(read, status, text);
		}
		wait->next = disk->free_wait;
		disk->free_wait = at;
		read->waits--;
		disk_read_look(read);
	}
	frame->waits = DISK_NONE;
	gw_disk_cache_settle(&disk->cache, number, status == GW_OK);
	io->at++;
	io->tries = 0;
}

/* What the file has of the blocks that were asked for. */
static uint64_t disk_io_wanted(const struct disk_io *io)
{
	uint64_t file_end = io->array->item.file_offset + io->array->item.bytes;
	uint64_t end = io->file_at + io->parts * DISK_BLOCK;
	return (end < file_end ? end : file_end) - io->file_at;
}

static void disk_io_failed(struct gw_disk *disk, struct disk_io *io)
{
	int error = -io->result;
	if ((error == EINTR || error == EAGAIN) && ++io->tries < TRIES_MAX)
		return;
	gw_status status = GW_OK;
	if ((error == EINVAL || error == EOPNOTSUPP) && io->direct) {
		bool first = io->array->file.direct;
		status = gw_load_file_refuse(&io->array->job, 0, &io->array->file);
		if (status == GW_OK && first)
			gw_log(GW_LOG_WARN, "%s: its file system refuses O_DIRECT: rows are read buffered",
			       io->array->path);
		if (status == GW_OK)
			return;
	} else if (!io->single && io->parts > 1) {
		io->single = true;
		return;
	} else {
		status = disk_io_error(io);
	}
	disk_io_settle(disk, io, status);
}

/* The driver's result: settles blocks, and reads the rest again. */
static void disk_io_finish(struct gw_disk *disk, struct disk_io *io)
{
	if (io->result < 0) {
		disk_io_failed(disk, io);
	} else {
		uint64_t got = (uint64_t)io->result, wanted = disk_io_wanted(io);
		uint64_t whole = got >= wanted ? io->parts : got / DISK_BLOCK;
		disk_add(&disk->counts.bytes, got);
		if (whole == 0 && ++io->tries >= SHORT_MAX)
			disk_io_settle(disk, io, disk_io_error(io));
		for (uint64_t i = 0; i < whole; i++)
			disk_io_settle(disk, io, GW_OK);
	}
	if (io->at < io->count)
		disk_io_submit(disk, io);
	else
		disk_io_free(disk, io);
}

/* --- the loop --- */

static void disk_take_inbox(struct gw_disk *disk)
{
	if (!atomic_load_explicit(&disk->filled, memory_order_acquire))
		return;
	pthread_mutex_lock(&disk->lock);
	atomic_store_explicit(&disk->filled, false, memory_order_relaxed);
	if (disk->inbox) {
		*disk->queue_end = disk->inbox;
		disk->queue_end = disk->inbox_end;
		disk->inbox = NULL;
		disk->inbox_end = &disk->inbox;
	}
	pthread_mutex_unlock(&disk->lock);
}

/* Sleeps only if nothing has arrived since the last look. */
static void disk_wait(struct gw_disk *disk, bool may_sleep)
{
	if (may_sleep) {
		atomic_store(&disk->sleeps, true);
		may_sleep = !atomic_load(&disk->filled);
	}
	disk->driver->wait(disk, may_sleep);
	atomic_store_explicit(&disk->sleeps, false, memory_order_relaxed);
}

/* Reports the driver's state to gw_disk_create. A ring belongs to the thread that makes it. */
static gw_status disk_open_driver(struct gw_disk *disk)
{
	const struct disk_driver *wanted = disk->options.driver == GW_LOAD_PREAD ? &gw_disk_pread : &gw_disk_uring;
	disk->driver = wanted;
	gw_status status = wanted->open(disk);
	if (status == GW_UNSUPPORTED && disk->options.driver == GW_LOAD_AUTO) {
		gw_log(GW_LOG_INFO, "rows on disk are read by pread in threads: %s", gw_last_error());
		disk->driver = &gw_disk_pread;
		status = disk->driver->open(disk);
	}
	if (status != GW_OK)
		disk->driver = NULL;
	pthread_mutex_lock(&disk->lock);
	disk->started = true;
	disk->start_status = status;
	snprintf(disk->start_text, sizeof(disk->start_text), "%s", gw_last_error());
	pthread_cond_signal(&disk->start);
	pthread_mutex_unlock(&disk->lock);
	return status;
}

void *gw_disk_thread(void *opaque)
{
	struct gw_disk *disk = opaque;
	if (disk_open_driver(disk) != GW_OK)
		return NULL;
	for (;;) {
		disk_take_inbox(disk);
		bool more = disk_visit_some(disk);
		disk_grow_end(disk);
		bool idle = disk->active_count == 0 && !disk->queue && disk->ios_open == 0;
		if (idle && atomic_load(&disk->stop))
			break;
		disk_wait(disk, !more);
		while (disk->finished) {
			struct disk_io *io = disk->finished;
			disk->finished = io->next;
			disk_io_finish(disk, io);
		}
	}
	disk->driver->shut(disk);
	return NULL;
}
