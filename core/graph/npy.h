/* NumPy's .npy container, version 1.0 and 2.0, C order, little-endian.
 *
 * Graphwire writes a header padded to 4096 bytes, so that O_DIRECT can read the payload; it reads any padding.
 */
#ifndef GW_GRAPH_NPY_H
#define GW_GRAPH_NPY_H

#include "core/errors/status.h"
#include "core/numbers/dtype.h"
#include "core/numbers/time_unit.h"

#define GW_NPY_HEADER_BYTES 4096u

struct gw_npy {
	gw_dtype dtype;
	enum gw_time_unit unit; /* of datetime64, whose dtype is GW_INT64 */
	uint32_t ndim;          /* 0: a scalar */
	uint64_t shape[GW_DIMS_MAX];
	uint64_t data_offset; /* offset of the payload in the file */
	uint64_t data_bytes;
};

/* Parses the first `bytes` bytes of a file. Never reads past them, and never trusts a length in the header. GW_FORMAT,
 * or GW_UNSUPPORTED (Fortran order, objects, big-endian, more than GW_DIMS_MAX dimensions). */
gw_status gw_npy_parse(const void *header, size_t bytes, struct gw_npy *out);

/* Writes a header of 4096 bytes. */
gw_status gw_npy_format(gw_dtype dtype, uint32_t ndim, const uint64_t *shape, uint8_t header[GW_NPY_HEADER_BYTES]);

/* A file mapped read-only (core/files/filemap.h); or a member of an .npz, inflated into memory. For the tools. */
struct gw_npy_file {
	struct gw_npy npy;
	const void *data; /* [npy.data_bytes]: the payload */
	void *mapping;
	size_t mapping_bytes;
};

/* GW_NOT_FOUND; GW_FORMAT, also if the file is shorter than its header requires (names both lengths). */
gw_status gw_npy_open(const char *path, struct gw_npy_file *out);
/* The same for an open file, which the caller closes. path is for error texts. */
gw_status gw_npy_open_fd(int fd, const char *path, struct gw_npy_file *out);
void gw_npy_close(struct gw_npy_file *file);

#endif
