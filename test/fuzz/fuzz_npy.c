/* Any bytes as the start of an .npy file: refused, or a shape that formats to a header with the same meaning. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "core/graph/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gw_npy npy, again;
	if (gw_npy_parse(data, size, &npy) != GW_OK) {
		assert(gw_last_error()[0] != '\0' && !strchr(gw_last_error(), '\n'));
		return 0;
	}
	assert(npy.data_offset <= size && npy.ndim <= GW_DIMS_MAX && npy.data_bytes <= INT64_MAX);
	uint8_t header[GW_NPY_HEADER_BYTES];
	gw_status status = gw_npy_format(npy.dtype, npy.ndim, npy.shape, header);
	assert(status == GW_OK);
	status = gw_npy_parse(header, sizeof(header), &again);
	/* NumPy has no bfloat16; its files have the type of the bits. */
	gw_dtype expected = npy.dtype == GW_BFLOAT16 ? GW_UINT16 : npy.dtype;
	assert(status == GW_OK && again.dtype == expected && again.ndim == npy.ndim &&
	       again.data_bytes == npy.data_bytes);
	assert(memcmp(again.shape, npy.shape, npy.ndim * sizeof(npy.shape[0])) == 0);
	return 0;
}
