/* Loads by io_uring: one thread keeps many reads in flight, directly into the arena.
 *
 *   cursor over items and pieces -> a free read -> submitted -> completed -> its chunk is complete -> verifiers
 *
 * Buffers (the arena's slices) and files are registered if the kernel allows it. Without registered buffers, every read
 * pins its pages again. A read that is short, or that the file system refuses with O_DIRECT, is submitted again,
 * buffered if necessary. After the first failure the loader submits nothing more and waits for the reads in flight, so
 * nothing writes to the arena after the return. If the kernel refuses the very first submission, pread does the load.
 */
#include <string.h>
#include <time.h>

#include "core/errors/log.h"
#include "core/files/load_job.h"
#include "core/memory/alloc.h"
#include "core/system/uring.h"

#define FILE_SLOTS       64u /* registered files at once */
#define FILE_SLOT_PIECES 8u  /* a file of fewer pieces is not worth registering */
#define NO_SLOT          UINT32_MAX
#define TRIES_MAX        1000u /* submissions of one read that the kernel answers with "try again" */

/* One read in flight. */
struct read {
	size_t item;
	uint64_t at; /* the next payload byte to read */
	uint64_t begin, end;
	uint32_t next_free;
	uint32_t tries; /* tries that the kernel answered with "try again" */
	bool direct;    /* as submitted; the file may have been switched to buffered afterwards */
};

/* An item's file, from its first read to its last. */
struct file {
	struct gw_load_file file;
	uint64_t bytes_left; /* of the payload, not read yet */
	uint32_t slot;
	bool open;
};

struct loader {
	struct gw_load_job *job;
	struct gw_arena *arena;
	struct gw_verifier *verifier;
	struct io_uring ring;
	bool buffers; /* registered */
	uint32_t first_slice;
	bool file_slots[FILE_SLOTS]; /* in use */
	bool files_registered;
	struct read *reads;
	uint32_t free_read; /* head of the list of free reads; `depth` ends the list */
	uint32_t in_flight, unsubmitted;
	bool started; /* the kernel has accepted a read */
	struct file *files;
	uint32_t *chunk_left; /* [units]: bytes of each chunk that are not read yet */
	size_t item;          /* the cursor: the next piece to read */
	uint64_t at;
};

/* ---- setting up ---- */

static gw_status make_ring(struct loader *loader)
{
	static const unsigned flags[] = {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, 0};
	int error = -EINVAL;
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags) && error == -EINVAL; i++) {
		struct io_uring_params parameters = {.flags = flags[i]};
		error = gw_uring_init(loader->job->options.queue_depth, &loader->ring, &parameters);
	}
	if (error)
		return gw_fail_errno(GW_UNSUPPORTED, -error, "io_uring is refused (%s)",
				     gw_uring_remedy(-error, gw_uring_switch("")));
	return GW_OK;
}

/* A failure costs only speed. */
static gw_status register_buffers(struct loader *loader)
{
	const struct gw_load_job *job = loader->job;
	uint64_t low = UINT64_MAX, high = 0;
	for (size_t i = 0; i < job->count; i++) {
		const struct gw_load_item *item = &job->items[i];
		if (item->bytes == 0)
			continue;
		uint64_t last = item->arena_offset + item->bytes - 1;
		low = item->arena_offset < low ? item->arena_offset : low;
		high = last > high ? last : high;
	}
	if (low > high)
		return GW_OK;
	loader->first_slice = (uint32_t)(low / job->slice_bytes);
	uint32_t count = (uint32_t)(high / job->slice_bytes) - loader->first_slice + 1;
	struct iovec *slices = gw_calloc(count, sizeof(*slices));
	if (!slices)
		return GW_NO_MEMORY;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t begin = (loader->first_slice + i) * job->slice_bytes;
		uint64_t left = gw_arena_bytes(loader->arena) - begin;
		slices[i].iov_base = job->base + begin;
		slices[i].iov_len = left < job->slice_bytes ? left : job->slice_bytes;
	}
	int error = io_uring_register_buffers(&loader->ring, slices, count);
	loader->buffers = error == 0;
	if (error)
		gw_log(GW_LOG_INFO, "load: buffers not registered: %s%s", strerror(-error),
		       error == -ENOMEM ? " (locked memory: ulimit -l unlimited)" : "");
	gw_free(slices);
	return GW_OK;
}

static void register_files(struct loader *loader)
{
	int none[FILE_SLOTS];
	memset(none, -1, sizeof(none));
	loader->files_registered = io_uring_register_files(&loader->ring, none, FILE_SLOTS) == 0;
}

static gw_status load_uring_allocate(struct loader *loader)
{
	const struct gw_load_job *job = loader->job;
	uint32_t depth = job->options.queue_depth;
	loader->reads = gw_calloc(depth, sizeof(*loader->reads));
	loader->files = gw_calloc(job->count ? job->count : 1, sizeof(*loader->files));
	loader->chunk_left = gw_calloc(job->first_unit[job->count] + 1, sizeof(*loader->chunk_left));
	if (!loader->reads || !loader->files || !loader->chunk_left)
		return GW_NO_MEMORY;
	for (uint32_t i = 0; i < depth; i++)
		loader->reads[i].next_free = i + 1;
	return GW_OK;
}

/* ---- files ---- */

static void take_slot(struct loader *loader, struct file *file)
{
	for (uint32_t i = 0; i < FILE_SLOTS && loader->files_registered; i++) {
		if (loader->file_slots[i])
			continue;
		if (io_uring_register_files_update(&loader->ring, i, &file->file.fd, 1) == 1) {
			loader->file_slots[i] = true;
			file->slot = i;
		}
		return;
	}
}

static gw_status start_item(struct loader *loader, size_t item)
{
	struct gw_load_job *job = loader->job;
	struct file *file = &loader->files[item];
	gw_status status = gw_load_file_open(job, item, &file->file);
	if (status != GW_OK)
		return status;
	file->open = true;
	file->slot = NO_SLOT;
	file->bytes_left = job->items[item].bytes;
	if (file->bytes_left >= (uint64_t)FILE_SLOT_PIECES * job->options.piece_bytes)
		take_slot(loader, file);
	for (uint64_t chunk = 0; chunk < gw_digest_count(file->bytes_left); chunk++)
		loader->chunk_left[job->first_unit[item] + chunk] =
			(uint32_t)gw_load_chunk_bytes(&job->items[item], chunk);
	return GW_OK;
}

static void end_item(struct loader *loader, size_t item)
{
	struct file *file = &loader->files[item];
	if (!file->open)
		return;
	if (file->slot != NO_SLOT) {
		int none = -1;
		io_uring_register_files_update(&loader->ring, file->slot, &none, 1);
		loader->file_slots[file->slot] = false;
	}
	gw_load_file_close(&file->file);
	file->open = false;
}

/* ---- reads ---- */

/* A free submission entry always exists, because there are as many entries as reads. */
static void queue_read(struct loader *loader, uint32_t number)
{
	struct gw_load_job *job = loader->job;
	struct read *read = &loader->reads[number];
	struct file *file = &loader->files[read->item];
	struct io_uring_sqe *sqe = io_uring_get_sqe(&loader->ring);
	uint64_t file_at = job->items[read->item].file_offset + read->at;
	uint8_t *to = gw_load_address(job, read->item, read->at);
	unsigned bytes = (unsigned)gw_load_request(&file->file, read->end - read->at);
	read->direct = file->file.direct;
	/* after a refusal, file.fd is a new descriptor, but the slot still has the first one */
	bool fixed = file->slot != NO_SLOT && file->file.direct_fd < 0;
	int fd = fixed ? (int)file->slot : file->file.fd;
	if (loader->buffers) {
		uint64_t slice = (uint64_t)(to - job->base) / job->slice_bytes;
		io_uring_prep_read_fixed(sqe, fd, to, bytes, file_at, (int)(slice - loader->first_slice));
	} else {
		io_uring_prep_read(sqe, fd, to, bytes, file_at);
	}
	if (fixed)
		sqe->flags |= IOSQE_FIXED_FILE;
	io_uring_sqe_set_data64(sqe, number);
	loader->unsubmitted++;
}

/* GW_END after the last piece. */
static gw_status find_piece(struct loader *loader)
{
	struct gw_load_job *job = loader->job;
	while (loader->item < job->count) {
		struct file *file = &loader->files[loader->item];
		gw_status status = loader->at == 0 ? start_item(loader, loader->item) : GW_OK;
		if (status != GW_OK)
			return status;
		if (loader->at < job->items[loader->item].bytes)
			return GW_OK;
		if (job->items[loader->item].bytes == 0) {
			gw_load_file_count(job, &file->file);
			end_item(loader, loader->item);
		}
		loader->item++;
		loader->at = 0;
	}
	return GW_END;
}

static gw_status fill_queue(struct loader *loader)
{
	struct gw_load_job *job = loader->job;
	while (loader->free_read < job->options.queue_depth) {
		gw_status status = find_piece(loader);
		if (status != GW_OK)
			return status == GW_END ? GW_OK : status;
		uint32_t number = loader->free_read;
		struct read *read = &loader->reads[number];
		loader->free_read = read->next_free;
		read->item = loader->item;
		read->begin = read->at = loader->at;
		read->tries = 0;
		loader->at += gw_load_piece(job, loader->item, loader->at);
		read->end = loader->at;
		queue_read(loader, number);
	}
	return GW_OK;
}

static void finish_read(struct loader *loader, uint32_t number)
{
	struct gw_load_job *job = loader->job;
	struct read *read = &loader->reads[number];
	struct file *file = &loader->files[read->item];
	uint64_t bytes = read->end - read->begin, chunk = read->begin / GW_DIGEST_CHUNK;
	if (read->end == job->items[read->item].bytes)
		gw_load_clear_tail(job, read->item);
	uint32_t *chunk_left = &loader->chunk_left[job->first_unit[read->item] + chunk];
	*chunk_left -= (uint32_t)bytes;
	if (*chunk_left == 0)
		gw_verifier_add(loader->verifier, read->item, chunk);
	file->bytes_left -= bytes;
	if (file->bytes_left == 0) {
		gw_load_file_count(job, &file->file);
		end_item(loader, read->item);
	}
	atomic_fetch_add_explicit(&job->bytes_done, bytes, memory_order_relaxed);
	read->next_free = loader->free_read;
	loader->free_read = number;
}

/* result: bytes, or a negative errno value. */
static gw_status complete_read(struct loader *loader, uint32_t number, int result)
{
	struct gw_load_job *job = loader->job;
	struct read *read = &loader->reads[number];
	struct gw_load_file *file = &loader->files[read->item].file;
	if (result == 0)
		return gw_load_truncated(job, read->item, read->at);
	uint64_t got = result > 0 ? (uint64_t)result : 0;
	if (read->at + got >= read->end) {
		finish_read(loader, number);
		return GW_OK;
	}
	read->at += got;
	bool refused = result == -EINVAL || result == -EOPNOTSUPP || got % GW_LOAD_BLOCK;
	bool put_off = (result == -EINTR || result == -EAGAIN) && ++read->tries < TRIES_MAX;
	if (result < 0 && !put_off && !(refused && read->direct))
		return gw_load_read_failed(job, read->item, read->at, -result);
	gw_status status = refused ? gw_load_file_refuse(job, read->item, file) : GW_OK;
	if (status == GW_OK)
		queue_read(loader, number);
	return status;
}

/* ---- the loop ---- */

static gw_status load_uring_submit(struct loader *loader)
{
	int result = io_uring_submit_and_wait(&loader->ring, 1);
	if (result >= 0) {
		loader->unsubmitted -= (uint32_t)result;
		loader->in_flight += (uint32_t)result;
		loader->started |= result > 0;
		return GW_OK;
	}
	bool passing = result == -EINTR || ((result == -EAGAIN || result == -EBUSY) && loader->in_flight > 0);
	if (passing)
		return GW_OK;
	return gw_fail_errno(loader->started ? GW_IO : GW_UNSUPPORTED, -result, "io_uring refuses reads");
}

static gw_status load_uring_reap(struct loader *loader)
{
	gw_status status = GW_OK;
	struct io_uring_cqe *cqe;
	while (status == GW_OK && io_uring_peek_cqe(&loader->ring, &cqe) == 0) {
		uint32_t number = (uint32_t)io_uring_cqe_get_data64(cqe);
		int result = cqe->res;
		io_uring_cqe_seen(&loader->ring, cqe);
		loader->in_flight--;
		status = complete_read(loader, number, result);
	}
	return status;
}

/* After a failure: waits for all reads, because nothing may write to the arena after the return. */
static void load_uring_drain(struct loader *loader)
{
	struct io_uring_cqe *cqe;
	while (loader->in_flight > 0) {
		if (io_uring_wait_cqe(&loader->ring, &cqe)) {
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
			continue;
		}
		io_uring_cqe_seen(&loader->ring, cqe);
		loader->in_flight--;
	}
}

static gw_status load_uring_run(struct loader *loader)
{
	for (;;) {
		gw_status status = fill_queue(loader);
		if (status != GW_OK || (loader->in_flight == 0 && loader->unsubmitted == 0))
			return status;
		status = load_uring_submit(loader);
		if (status == GW_OK)
			status = load_uring_reap(loader);
		if (status != GW_OK || gw_verifier_failed(loader->verifier))
			return status;
		gw_load_progress(loader->job);
	}
}

gw_status gw_load_uring(struct gw_load_job *job, struct gw_arena *arena, const char **driver)
{
	struct loader loader = {.job = job, .arena = arena};
	gw_status status = make_ring(&loader);
	if (status != GW_OK)
		return status;
	status = load_uring_allocate(&loader);
	if (status == GW_OK)
		status = register_buffers(&loader);
	if (status == GW_OK)
		status = gw_verifier_create(job, &loader.verifier);
	if (status == GW_OK) {
		register_files(&loader);
		status = load_uring_run(&loader);
		load_uring_drain(&loader);
	}
	*driver = loader.buffers ? "io_uring, registered buffers" : "io_uring";
	for (size_t i = 0; i < job->count && loader.files; i++)
		end_item(&loader, i);
	char text[GW_ERROR_TEXT_MAX];
	memcpy(text, gw_last_error(), sizeof(text));
	gw_status verified = gw_verifier_finish(loader.verifier, status != GW_OK);
	gw_uring_exit(&loader.ring);
	gw_free(loader.chunk_left);
	gw_free(loader.files);
	gw_free(loader.reads);
	return status != GW_OK ? gw_fail_text(status, text) : verified;
}
