/* One array of a checkpoint, written or read from end to end in pieces: an .npy with a header of 4096 bytes, and beside
 * it, in an .xxh, the digests of each 4 MiB, as in a partition (docs/FORMAT.md). */
#ifndef GW_TENSORS_ARRAY_FILE_H
#define GW_TENSORS_ARRAY_FILE_H

#include "core/errors/status.h"
#include "core/numbers/dtype.h"
#include "tensors/write_behind.h"

struct gw_array_out;
struct gw_array_in;

/* Creates <path>.npy, over an older one; its chunks are written by `writer`, which several arrays may share in one
 * thread, two chunks of memory each. GW_IO, GW_NO_SPACE, GW_NO_MEMORY. */
gw_status gw_array_out_begin(struct gw_write_behind *writer, const char *path, gw_dtype dtype, uint32_t ndim,
			     const uint64_t *shape, struct gw_array_out **out);
gw_status gw_array_out_append(struct gw_array_out *array, const void *data, size_t bytes);
/* Writes the digests, whose own is *digest, and frees it, in any case. GW_INVALID: not as many bytes as its shape has.
 */
gw_status gw_array_out_end(struct gw_array_out *array, uint64_t *digest);
void gw_array_out_drop(struct gw_array_out *array); /* gives it up; NULL is allowed */

/* Opens <path>.npy, which must be what is said, of this digest, and no longer. GW_FORMAT, GW_DIGEST, GW_NOT_FOUND. */
gw_status gw_array_in_open(const char *path, gw_dtype dtype, uint32_t ndim, const uint64_t *shape, uint64_t digest,
			   struct gw_array_in **out);
/* The next bytes, verified: GW_DIGEST names the chunk that is not what was written. */
gw_status gw_array_in_read(struct gw_array_in *array, void *data, size_t bytes);
void gw_array_in_close(struct gw_array_in *array); /* NULL is allowed */

#endif
