/* Any bytes as an .npz archive: refused with one line, or members whose arrays lie within what was read; and, if it is
 * a sparse matrix, refused, or edges within its shape. The bytes are also taken for the arrays of such a matrix, since
 * few archives of a fuzzer have the right CRC. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/memory/alloc.h"
#include "tools/import/matrix.h"
#include "tools/import/npz.h"

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
	if (status != GW_OK)
		assert(gw_last_error()[0] != '\0' && !strchr(gw_last_error(), '\n'));
	for (uint64_t i = 0; i < file->rows && status == GW_OK; i++)
		assert(ids[i] < m->rows && ids[file->rows + i] < m->columns);
	gw_free(ids);
}

static struct gw_npy_file bytes_array(const uint8_t *data, uint64_t count)
{
	return (struct gw_npy_file){.data = data,
				    .npy = {.dtype = GW_INT8, .ndim = 1, .shape = {count}, .data_bytes = count}};
}

static void try_arrays(const uint8_t *data, size_t size)
{
	const struct gw_import_options options = {.build = {.quiet = true}};
	struct gw_import im = {.options = &options, .threads = 1};
	struct gw_import_file file = {.path = "input", .format = GW_FROM_NPZ};
	if (size < 4)
		return;
	uint64_t rest = size - 3, first = 1u + data[1];
	bool coo = data[0] % 3 == 0, csr = data[0] % 3 == 1;
	first = coo ? rest / 2 : first;
	if (first > rest)
		return;
	file.arrays[0] = bytes_array(data + 3, first);
	file.arrays[1] = bytes_array(data + 3 + first, coo ? first : rest - first);
	file.matrix = (struct gw_import_matrix){.what = "SciPy",
						.layout = coo   ? GW_MATRIX_COO
							  : csr ? GW_MATRIX_CSR
								: GW_MATRIX_CSC,
						.rows = csr ? first - 1 : data[2],
						.columns = csr || coo ? data[2] : first - 1,
						.entries = file.arrays[1].npy.shape[0]};
	gw_status status = gw_builder_create("graph", &im.builder);
	assert(status == GW_OK);
	read_matrix(&im, &file);
	gw_import_close(&im);
}

static void try_matrix(const struct gw_npz *npz)
{
	const struct gw_import_options options = {.build = {.quiet = true}};
	struct gw_import im = {.options = &options, .threads = 1};
	struct gw_import_file file = {.path = "input", .format = GW_FROM_NPZ};
	gw_status status = gw_builder_create("graph", &im.builder);
	assert(status == GW_OK);
	status = gw_import_matrix_npz(npz, &file);
	if (status != GW_OK)
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
	try_arrays(data, size);
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
