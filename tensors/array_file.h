/* One array of a checkpoint, written or read from beginning to end in pieces: an .npy file with a header of 4096 bytes.
 * An .xxh file next to it contains the digest of each 4 MiB, as in a partition (docs/FORMAT.md). */
#ifndef GW_TENSORS_ARRAY_FILE_H
#define GW_TENSORS_ARRAY_FILE_H

#include "core/errors/status.h"
#include "core/numbers/dtype.h"
#include "tensors/write_behind.h"

struct gw_array_out;
struct gw_array_in;

/* Creates <path>.npy and replaces an older file. `writer` writes its chunks; several arrays may share a writer in one
 * thread. Each array uses two chunks of memory. GW_IO, GW_NO_SPACE, GW_NO_MEMORY. */
gw_status gw_array_out_begin(struct gw_write_behind *writer, const char *path, gw_dtype dtype, uint32_t ndim,
			     const uint64_t *shape, struct gw_array_out **out);
gw_status gw_array_out_append(struct gw_array_out *array, const void *data, size_t bytes);
/* Writes the digests and returns their digest in *digest. Frees the array in any case. GW_INVALID: the number of bytes
 * does not match the shape. */
gw_status gw_array_out_end(struct gw_array_out *array, uint64_t *digest);
void gw_array_out_drop(struct gw_array_out *array); /* frees the array without finishing its file; NULL is allowed */

/* Opens <path>.npy, which must have this dtype, shape and digest, and no further bytes. GW_FORMAT, GW_DIGEST,
 * GW_NOT_FOUND. */
gw_status gw_array_in_open(const char *path, gw_dtype dtype, uint32_t ndim, const uint64_t *shape, uint64_t digest,
			   struct gw_array_in **out);
/* Returns the next bytes, verified. GW_DIGEST names the chunk that differs from what was written. */
gw_status gw_array_in_read(struct gw_array_in *array, void *data, size_t bytes);
void gw_array_in_close(struct gw_array_in *array); /* NULL is allowed */

#endif
