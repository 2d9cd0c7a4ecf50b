/* One load in progress: the state that drivers and verifiers share. Internal to core/files. */
#ifndef GW_FILES_LOAD_JOB_H
#define GW_FILES_LOAD_JOB_H

#include <stdatomic.h>

#include "core/files/load.h"
#include "core/numbers/digest.h"

#define GW_LOAD_BLOCK 4096ull /* O_DIRECT's granularity of offsets, addresses and lengths */

struct gw_load_job {
	uint8_t *base; /* of the arena */
	uint64_t slice_bytes;
	const struct gw_load_item *items;
	size_t count;
	/* [count + 1]: number of units before each item. A unit is a chunk, or an item without bytes */
	uint64_t *first_unit;
	uint64_t bytes_total;
	struct gw_load_options options; /* with the defaults filled in */
	_Atomic uint64_t bytes_done;
	atomic_uint files_direct, files_buffered;
	_Atomic(const char *) refused; /* path of a file whose file system refused O_DIRECT, or NULL */
};

/* The open file of an item. */
struct gw_load_file {
	int fd, direct_fd; /* direct_fd: stays open after a refusal, for reads in flight; -1: none */
	bool direct;
};

/* In these functions, `number` is an item's number in the job.
 *
 * Opens the item's file, with O_DIRECT where that works. Checks that the file is regular and long enough. */
gw_status gw_load_file_open(struct gw_load_job *job, size_t number, struct gw_load_file *file);

/* Switches the file to buffered reads. */
gw_status gw_load_file_refuse(struct gw_load_job *job, size_t number, struct gw_load_file *file);

void gw_load_file_close(struct gw_load_file *file);

/* Counts the file as read with or without O_DIRECT. */
void gw_load_file_count(struct gw_load_job *job, const struct gw_load_file *file);

/* The error for a payload that ends at byte `at`, although its file was long enough when opened. */
gw_status gw_load_truncated(const struct gw_load_job *job, size_t number, uint64_t at);
gw_status gw_load_read_failed(const struct gw_load_job *job, size_t number, uint64_t at, int error);

/* The address of payload byte `at` of an item. */
static inline uint8_t *gw_load_address(const struct gw_load_job *job, size_t item, uint64_t at)
{
	return job->base + job->items[item].arena_offset + at;
}

/* How many bytes to read at payload byte `at`: to the end of its piece, its slice or the payload. */
uint64_t gw_load_piece(const struct gw_load_job *job, size_t number, uint64_t at);

/* The length to request from the kernel for `bytes` at the end of a payload: O_DIRECT needs full blocks. */
static inline uint64_t gw_load_request(const struct gw_load_file *file, uint64_t bytes)
{
	return file->direct ? (bytes + GW_LOAD_BLOCK - 1) / GW_LOAD_BLOCK * GW_LOAD_BLOCK : bytes;
}

/* Zeroes the bytes past the payload's end that reads of full blocks have written. */
void gw_load_clear_tail(const struct gw_load_job *job, size_t number);

static inline uint64_t gw_load_chunk_bytes(const struct gw_load_item *item, uint64_t chunk)
{
	uint64_t left = item->bytes - chunk * GW_DIGEST_CHUNK;
	return left < GW_DIGEST_CHUNK ? left : GW_DIGEST_CHUNK;
}

/* Compares a chunk in memory with its digest; GW_OK if the item has no digests. */
gw_status gw_load_verify(const struct gw_load_job *job, size_t number, uint64_t chunk);

void gw_load_progress(struct gw_load_job *job);

/* Threads that verify chunks while others are read. */
struct gw_verifier;
gw_status gw_verifier_create(const struct gw_load_job *job, struct gw_verifier **out);
/* Queues a chunk that has been read; if the queue is full, the caller verifies it. */
void gw_verifier_add(struct gw_verifier *verifier, size_t item, uint64_t number);
bool gw_verifier_failed(struct gw_verifier *verifier);
/* Waits until all chunks are verified (after a failure, or with `abandon`: until the threads stop), and frees the
 * verifier. NULL is allowed. Returns the first failure, with its text. */
gw_status gw_verifier_finish(struct gw_verifier *verifier, bool abandon);

/* The drivers. gw_load_uring returns GW_UNSUPPORTED, before it has read anything, if the kernel refuses io_uring or its
 * reads. */
gw_status gw_load_uring(struct gw_load_job *job, struct gw_arena *arena, const char **driver);
gw_status gw_load_pread(struct gw_load_job *job, const char **driver);

#endif
