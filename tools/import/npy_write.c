/* See npy_write.h. Fails if the disk does. */
#include "tools/import/npy_write.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

gw_status gw_import_npy_write(const char *path, gw_dtype dtype, uint32_t ndim, const uint64_t *shape, const void *data)
{
	uint8_t header[GW_NPY_HEADER_BYTES];
	uint64_t count = 1;
	gw_status status = gw_npy_format(dtype, ndim, shape, header);
	if (status != GW_OK)
		return status;
	for (uint32_t d = 0; d < ndim; d++)
		count *= shape[d];
	FILE *file = fopen(path, "wbe");
	if (!file)
		return gw_fail_errno(GW_IO, errno, "%s", path);
	bool written = fwrite(header, sizeof(header), 1, file) == 1 &&
		       fwrite(data, gw_dtype_bytes(dtype), count, file) == count;
	int error = errno;
	if (fclose(file) != 0 && written) {
		error = errno;
		written = false;
	}
	if (written)
		return GW_OK;
	unlink(path);
	return gw_fail_errno(GW_IO, error, "%s: write", path);
}
