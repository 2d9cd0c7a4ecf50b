/* Any bytes as an .npz archive: refused with one line, or members whose arrays lie within what was read; and, if it is
 * a sparse matrix, refused, or edges within its shape. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "tools/import.h"
#include "tools/npz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_matrix(struct gw_import *im, struct gw_import_file *file)
{
	const struct gw_import_matrix *m = &file->matrix;
	for (int i = 0; i < 2; i++) { /* as import has it checked before */
		gw_dtype dtype = file->arrays[i].npy.dtype;
		if (dtype == GW_FLOAT16 || dtype == GW_FLOAT32 || dtype == GW_FLOAT64 || dtype == GW_BOOL)
			return;
	}
	file->rows = m->entries;
	uint64_t *ids = gw_calloc(file->rows * 2, sizeof(*ids));
	assert(ids);
	gw_status status = gw_import_matrix_read(im, file, ids, ids + file->rows);
	if (status == GW_OK)
		status = gw_import_matrix_check(file, ids, ids + file->rows);
	if (status)
		assert(gw_last_error()[0] != '\0' && !strchr(gw_last_error(), '\n'));
	for (uint64_t i = 0; i < file->rows && !status; i++)
		assert(ids[i] < m->rows && ids[file->rows + i] < m->columns);
	gw_free(ids);
}

static void try_matrix(const struct gw_npz *npz)
{
	const struct gw_import_options options = {.build = {.quiet = true}};
	struct gw_import im = {.options = &options, .threads = 1};
	struct gw_import_file file = {.path = "input", .format = GW_FROM_NPZ};
	gw_status status = gw_builder_create("graph", &im.builder);
	assert(status == GW_OK);
	status = gw_import_matrix_npz(npz, &file);
	if (status)
		assert(gw_last_error()[0] != '\0' && !strchr(gw_last_error(), '\n'));
	else if (file.matrix.what)
		read_matrix(&im, &file);
	for (int i = 0; i < 2; i++) {
		if (file.arrays[i].mapping)
			gw_npy_close(&file.arrays[i]);
	}
	gw_import_close(&im);
}

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
	try_matrix(npz);
	gw_npz_close(npz);
	close(fd);
	return 0;
}
