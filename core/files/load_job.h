/* One load in progress: what its drivers and verifiers share. Internal to core/files. */
#ifndef GW_FILES_LOAD_JOB_H
#define GW_FILES_LOAD_JOB_H

#include <stdatomic.h>

#include "core/files/load.h"
#include "core/numbers/digest.h"

#define GW_LOAD_BLOCK 4096ull /* O_DIRECT's unit of offsets, addresses and lengths */

struct gw_load_job {
	uint8_t *base; /* the arena's */
	uint64_t slice_bytes;
	const struct gw_load_item *items;
	size_t count;
	uint64_t *first_unit; /* [count + 1]: units before each item. A unit is a chunk, or an item without bytes */
	uint64_t bytes_total;
	struct gw_load_options options; /* with the defaults filled in */
	_Atomic uint64_t bytes_done;
	atomic_uint files_direct, files_buffered;
	_Atomic(const char *) refused; /* a path that refused O_DIRECT, or NULL */
};

/* A file that an item is read from. */
struct gw_load_file {
	int fd, direct_fd; /* direct_fd: what reads by O_DIRECT may still use after a refusal; -1: none */
	bool direct;
};

/* Functions take an item by its number in the job.
 *
 * Opens the item's file, with O_DIRECT where that works, and checks that it is a regular file and long enough. */
gw_status gw_load_file_open(struct gw_load_job *job, size_t number, struct gw_load_file *file);

/* From now on the file is read buffered. */
gw_status gw_load_file_refuse(struct gw_load_job *job, size_t number, struct gw_load_file *file);

void gw_load_file_close(struct gw_load_file *file);

/* Counts the file as read, directly or not. */
void gw_load_file_count(struct gw_load_job *job, const struct gw_load_file *file);

/* The payload ends at byte `at` of the item though its file was long enough when opened. */
gw_status gw_load_truncated(const struct gw_load_job *job, size_t number, uint64_t at);
gw_status gw_load_read_failed(const struct gw_load_job *job, size_t number, uint64_t at, int error);

/* Where payload byte `at` of an item lies in memory. */
static inline uint8_t *gw_load_address(const struct gw_load_job *job, size_t item, uint64_t at)
{
	return job->base + job->items[item].arena_offset + at;
}

/* Bytes to read at payload byte `at`: to the end of its piece, its slice or the payload. */
uint64_t gw_load_piece(const struct gw_load_job *job, size_t number, uint64_t at);

/* What to ask the kernel for, to get `bytes` at the end of a payload: whole blocks for O_DIRECT. */
static inline uint64_t gw_load_request(const struct gw_load_file *file, uint64_t bytes)
{
	return file->direct ? (bytes + GW_LOAD_BLOCK - 1) / GW_LOAD_BLOCK * GW_LOAD_BLOCK : bytes;
}

/* Whole blocks bring bytes past the payload's end: back to zero with them. */
void gw_load_clear_tail(const struct gw_load_job *job, size_t number);

static inline uint64_t gw_load_chunk_bytes(const struct gw_load_item *item, uint64_t chunk)
{
	uint64_t left = item->bytes - chunk * GW_DIGEST_CHUNK;
	return left < GW_DIGEST_CHUNK ? left : GW_DIGEST_CHUNK;
}

/* Compares a chunk in memory with its digest; GW_OK where the item has none. */
gw_status gw_load_verify(const struct gw_load_job *job, size_t number, uint64_t chunk);

void gw_load_progress(struct gw_load_job *job);

/* Threads that verify chunks while others are being read. */
struct gw_verifier;
gw_status gw_verifier_create(const struct gw_load_job *job, struct gw_verifier **out);
/* Hands over a chunk that has been read; does it itself where the queue is full. */
void gw_verifier_add(struct gw_verifier *verifier, size_t item, uint64_t number);
bool gw_verifier_failed(struct gw_verifier *verifier);
/* Waits until all is verified (or, after a failure or with `abandon`, just for the threads to stop) and frees. NULL is
 * allowed. Returns the first failure, with its text. */
gw_status gw_verifier_finish(struct gw_verifier *verifier, bool abandon);

/* The drivers. gw_load_uring: GW_UNSUPPORTED (nothing read yet) where the kernel refuses io_uring, or its reads. */
gw_status gw_load_uring(struct gw_load_job *job, struct gw_arena *arena, const char **driver);
gw_status gw_load_pread(struct gw_load_job *job, const char **driver);

#endif
