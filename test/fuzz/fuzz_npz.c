/* Any bytes as an .npz archive: refused with one line, or members whose arrays lie within what was read. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/npz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64];
	struct gw_npz *npz;
	int fd = memfd_create("fuzz_npz", MFD_CLOEXEC);
	assert(fd >= 0);
	ssize_t wrote = write(fd, data, size);
	assert(wrote == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (gw_npz_open(path, &npz) != GW_OK) {
		assert(gw_last_error()[0] != '\0' && !strchr(gw_last_error(), '\n') && !npz);
		close(fd);
		return 0;
	}
	for (uint32_t i = 0; gw_npz_name(npz, i) && i < 8; i++) {
		struct gw_npy_file array;
		if (gw_npz_read(npz, gw_npz_name(npz, i), &array) != GW_OK) {
			assert(!array.mapping);
			continue;
		}
		const uint8_t *from = array.data, *mapping = array.mapping;
		assert(from >= mapping && from + array.npy.data_bytes <= mapping + array.mapping_bytes);
		gw_npy_close(&array);
	}
	gw_npz_close(npz);
	close(fd);
	return 0;
}
