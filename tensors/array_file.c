/* Arrays of a checkpoint.
 *
 *   out: header -> append: a chunk of 4 MiB is filled -> digested and written while the next one is filled ->
 *     end: the digests in a file next to it, and their digest for the JSON
 *   in:  header, digests, lengths checked -> a chunk of 4 MiB is read and verified -> returned in pieces
 *
 * Chunks bypass the page cache where the file system allows it. A checkpoint is rarely read soon after, and copying it
 * into the cache took most of the processor time. Reads return only verified bytes. Fails if a file cannot be read or
 * written; a full disk is GW_NO_SPACE.
 */
#include "tensors/array_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/files/regular.h"
#include "core/graph/npy.h"
#include "core/memory/alloc.h"
#include "core/memory/vec.h"
#include "core/numbers/digest.h"

#define PAGE 4096u /* alignment that O_DIRECT requires of memory and file offsets */

struct gw_array_out {
	char *path; /* without extension */
	struct gw_digester *digester;
	uint64_t bytes_wanted, bytes_got;
	int fd;
	struct gw_write_behind *writer; /* the caller's */
	/* One chunk is filled while the writer may write the other one. */
	struct gw_vec memory; /* huge pages: each small page adds cost to a write that bypasses the page cache */
	uint8_t *chunks[2];   /* inside `memory`, page-aligned */
	uint32_t filling;
	size_t chunk_bytes, used;
};

struct gw_array_in {
	char *path;
	int fd;
	uint64_t bytes, done; /* of payload; done: chunks that were read completely */
	uint64_t *digests;
	uint8_t *chunk;
	size_t chunk_bytes, at;
};

static uint64_t array_bytes(gw_dtype dtype, uint32_t ndim, const uint64_t *shape)
{
	uint64_t bytes = gw_dtype_bytes(dtype);
	for (uint32_t i = 0; i < ndim; i++)
		bytes *= shape[i];
	return bytes;
}

static gw_status array_create(const char *path, const char *ending, int *fd)
{
	char *name = gw_format("%s%s", path, ending);
	if (!name)
		return GW_NO_MEMORY;
	*fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
	gw_status status = *fd < 0 ? gw_fail_errno(GW_IO, errno, "%s: cannot create", name) : GW_OK;
	gw_free(name);
	return status;
}

/* A full disk may be reported only by close. */
static gw_status array_close(const char *path, int fd, gw_status status)
{
	if (close(fd) < 0 && status == GW_OK)
		return gw_fail_errno(GW_IO, errno, "%s: cannot write", path);
	return status;
}

void gw_array_out_drop(struct gw_array_out *array)
{
	struct gw_error_kept kept;
	if (!array)
		return;
	gw_error_keep(&kept);
	if (array->memory.data) /* the writer may be using the chunks */
		(void)gw_write_behind_flush(array->writer);
	if (array->fd >= 0)
		close(array->fd);
	gw_vec_free(&array->memory);
	gw_digester_destroy(array->digester);
	gw_free(array->path);
	gw_free(array);
	gw_error_restore(&kept);
}

/* Lets complete chunks bypass the page cache, where the file system allows it. */
static void array_pass_cache(const struct gw_array_out *array, bool pass)
{
	int flags = fcntl(array->fd, F_GETFL);
	if (flags >= 0)
		(void)fcntl(array->fd, F_SETFL, pass ? flags | O_DIRECT : flags & ~O_DIRECT);
}

/* Allocates two page-aligned chunks, no longer than the array. */
static gw_status array_make_chunks(struct gw_array_out *array)
{
	array->chunk_bytes = GW_DIGEST_CHUNK;
	if (array->bytes_wanted < GW_DIGEST_CHUNK)
		array->chunk_bytes = ((size_t)array->bytes_wanted / PAGE + 1) * PAGE;
	if (gw_vec_reserve(&array->memory, 2 * array->chunk_bytes + PAGE) != GW_OK)
		return GW_NO_MEMORY;
	array->chunks[0] = (uint8_t *)array->memory.data + (PAGE - (uintptr_t)array->memory.data % PAGE) % PAGE;
	array->chunks[1] = array->chunks[0] + array->chunk_bytes;
	return GW_OK;
}

gw_status gw_array_out_begin(struct gw_write_behind *writer, const char *path, gw_dtype dtype, uint32_t ndim,
			     const uint64_t *shape, struct gw_array_out **out)
{
	uint8_t header[GW_NPY_HEADER_BYTES];
	struct gw_array_out *array = gw_calloc(1, sizeof(*array));
	*out = NULL;
	if (!array)
		return GW_NO_MEMORY;
	array->fd = -1;
	array->writer = writer;
	array->bytes_wanted = array_bytes(dtype, ndim, shape);
	array->path = gw_strdup(path);
	gw_status status = array->path ? gw_digester_create(&array->digester) : GW_NO_MEMORY;
	if (status == GW_OK)
		status = gw_npy_format(dtype, ndim, shape, header);
	if (status == GW_OK)
		status = array_create(path, ".npy", &array->fd);
	if (status == GW_OK)
		status = gw_write_all(path, array->fd, header, sizeof(header));
	if (status == GW_OK)
		status = array_make_chunks(array);
	if (status == GW_OK)
		array_pass_cache(array, true);
	if (status != GW_OK) {
		gw_array_out_drop(array);
		return status;
	}
	*out = array;
	return GW_OK;
}

static gw_status array_put_chunk(struct gw_array_out *array)
{
	const struct gw_write_chunk chunk = {.path = array->path,
					     .fd = array->fd,
					     .data = array->chunks[array->filling],
					     .bytes = array->used,
					     .digester = array->digester};
	array->filling ^= 1;
	array->used = 0;
	return gw_write_behind_put(array->writer, &chunk);
}

gw_status gw_array_out_append(struct gw_array_out *array, const void *data, size_t bytes)
{
	gw_status status = GW_OK;
	array->bytes_got += bytes;
	for (size_t at = 0; at < bytes && status == GW_OK;) {
		size_t piece = array->chunk_bytes - array->used;
		piece = piece < bytes - at ? piece : bytes - at;
		memcpy(array->chunks[array->filling] + array->used, (const uint8_t *)data + at, piece);
		array->used += piece;
		at += piece;
		if (array->used == array->chunk_bytes)
			status = array_put_chunk(array);
	}
	return status;
}

/* The remaining bytes are not a whole number of pages, so they go through the page cache. */
static gw_status array_put_rest(struct gw_array_out *array)
{
	gw_status status = gw_write_behind_flush(array->writer);
	if (status != GW_OK || array->used == 0)
		return status;
	array_pass_cache(array, false);
	status = array_put_chunk(array);
	return status == GW_OK ? gw_write_behind_flush(array->writer) : status;
}

static gw_status array_out_end(struct gw_array_out *array, uint64_t *digest)
{
	const uint64_t *digests;
	uint64_t count;
	if (array->bytes_got != array->bytes_wanted)
		return gw_fail(GW_INVALID, "%s: %llu bytes were written, but its shape has %llu", array->path,
			       (unsigned long long)array->bytes_got, (unsigned long long)array->bytes_wanted);
	gw_status status = array_put_rest(array);
	status = array_close(array->path, array->fd, status);
	array->fd = -1;
	if (status == GW_OK)
		status = gw_digester_finish(array->digester, &digests, &count);
	if (status == GW_OK)
		status = array_create(array->path, ".xxh", &array->fd);
	if (status != GW_OK)
		return status;
	size_t bytes = (size_t)count * sizeof(*digests);
	*digest = gw_digest(digests, bytes);
	status = array_close(array->path, array->fd, gw_write_all(array->path, array->fd, digests, bytes));
	array->fd = -1;
	return status;
}

gw_status gw_array_out_end(struct gw_array_out *array, uint64_t *digest)
{
	gw_status status = array_out_end(array, digest);
	gw_array_out_drop(array);
	return status;
}

/* --- Reading. --- */

void gw_array_in_close(struct gw_array_in *array)
{
	if (!array)
		return;
	if (array->fd >= 0)
		close(array->fd);
	gw_free(array->path);
	gw_free(array->digests);
	gw_free(array->chunk);
	gw_free(array);
}

/* The caller closes *fd in any case. */
static gw_status array_open(const char *path, uint64_t bytes, int *fd)
{
	uint64_t length;
	gw_status status = gw_regular_open(path, fd, &length);
	if (status == GW_OK && length != bytes)
		status = gw_fail(GW_FORMAT, "%s: a file of %llu bytes; it should have %llu", path,
				 (unsigned long long)length, (unsigned long long)bytes);
	return status;
}

static gw_status array_read_digests(struct gw_array_in *array, const char *path, uint64_t digest)
{
	size_t bytes = (size_t)gw_digest_count(array->bytes) * sizeof(*array->digests);
	char *name = gw_format("%s.xxh", path);
	array->digests = gw_malloc(bytes);
	int fd = -1;
	gw_status status = name && array->digests ? array_open(name, bytes, &fd) : GW_NO_MEMORY;
	if (status == GW_OK)
		status = gw_regular_read_all(fd, name, (char *)array->digests, bytes);
	if (status == GW_OK && gw_digest(array->digests, bytes) != digest)
		status = gw_fail(GW_DIGEST,
				 "%s: not the digests that were written: the file is damaged or of another save", name);
	if (fd >= 0)
		close(fd);
	gw_free(name);
	return status;
}

static gw_status array_read_header(struct gw_array_in *array, gw_dtype dtype, uint32_t ndim, const uint64_t *shape)
{
	uint8_t header[GW_NPY_HEADER_BYTES] = {0}, expected[GW_NPY_HEADER_BYTES];
	gw_status status = array_open(array->path, GW_NPY_HEADER_BYTES + array->bytes, &array->fd);
	if (status == GW_OK)
		status = gw_regular_read_all(array->fd, array->path, (char *)header, sizeof(header));
	if (status == GW_OK)
		status = gw_npy_format(dtype, ndim, shape, expected);
	if (status == GW_OK && memcmp(header, expected, sizeof(header)) != 0)
		status = gw_fail(GW_FORMAT, "%s: an array of another dtype or shape", array->path);
	return status;
}

gw_status gw_array_in_open(const char *path, gw_dtype dtype, uint32_t ndim, const uint64_t *shape, uint64_t digest,
			   struct gw_array_in **out)
{
	*out = NULL;
	struct gw_array_in *array = gw_calloc(1, sizeof(*array));
	if (!array)
		return GW_NO_MEMORY;
	array->fd = -1;
	array->bytes = array_bytes(dtype, ndim, shape);
	array->path = gw_format("%s.npy", path);
	array->chunk = gw_malloc(array->bytes < GW_DIGEST_CHUNK ? array->bytes : GW_DIGEST_CHUNK);
	gw_status status = array->path && array->chunk ? GW_OK : GW_NO_MEMORY;
	if (status == GW_OK)
		status = array_read_header(array, dtype, ndim, shape);
	if (status == GW_OK)
		status = array_read_digests(array, path, digest);
	if (status != GW_OK) {
		gw_array_in_close(array);
		return status;
	}
	*out = array;
	return GW_OK;
}

static gw_status array_next_chunk(struct gw_array_in *array)
{
	uint64_t left = array->bytes - array->done;
	if (left == 0)
		return gw_fail(GW_RANGE, "%s: nothing is left to read", array->path);
	array->chunk_bytes = left < GW_DIGEST_CHUNK ? (size_t)left : GW_DIGEST_CHUNK;
	array->at = 0;
	gw_status status = gw_regular_read_all(array->fd, array->path, (char *)array->chunk, array->chunk_bytes);
	uint64_t number = array->done / GW_DIGEST_CHUNK;
	if (status == GW_OK && gw_digest(array->chunk, array->chunk_bytes) != array->digests[number])
		status =
			gw_fail(GW_DIGEST, "%s: chunk %llu (bytes %llu to %llu of the payload) is not what was written",
				array->path, (unsigned long long)number, (unsigned long long)array->done,
				(unsigned long long)(array->done + array->chunk_bytes));
	array->done += array->chunk_bytes;
	return status;
}

gw_status gw_array_in_read(struct gw_array_in *array, void *data, size_t bytes)
{
	for (size_t got = 0; got < bytes;) {
		gw_status status = array->at == array->chunk_bytes ? array_next_chunk(array) : GW_OK;
		if (status != GW_OK)
			return status;
		size_t piece = array->chunk_bytes - array->at;
		if (piece > bytes - got)
			piece = bytes - got;
		memcpy((uint8_t *)data + got, array->chunk + array->at, piece);
		array->at += piece;
		got += piece;
	}
	return GW_OK;
}
