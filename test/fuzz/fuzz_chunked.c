/* Any bytes as a chunked graph's metadata.json: refused with one line that names the file, or node types, edge types
 * and features that refer to each other within bounds, each feature with as many bytes as its shape says.
 *
 * Beside it lie x.csv (numbers), y.npy (int64 [2]) and z.csv (empty), for those who name them.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/files/staging.h"
#include "tools/import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[64];

static void remove_folder(void)
{
	gw_remove_tree(folder);
}

static void write_file(const char *name, const void *data, size_t bytes)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *file = fopen(path, "wb");
	assert(file);
	size_t wrote = fwrite(data, 1, bytes, file);
	assert(wrote == bytes);
	fclose(file);
}

static void make_folder(void)
{
	uint8_t array[GW_NPY_HEADER_BYTES + 16] = {0};
	const uint64_t two[] = {2};
	strcpy(folder, "/dev/shm/graphwire-fuzz-XXXXXX");
	if (!mkdtemp(folder)) {
		strcpy(folder, "/tmp/graphwire-fuzz-XXXXXX");
		char *made = mkdtemp(folder);
		assert(made);
	}
	atexit(remove_folder);
	gw_status status = gw_npy_format(GW_INT64, 1, two, array);
	assert(status == GW_OK);
	array[GW_NPY_HEADER_BYTES] = 1;
	write_file("x.csv", "1,2\n0,0.5\n", 10);
	write_file("y.npy", array, sizeof(array));
	write_file("z.csv", "", 0);
}

static void check_feature(const struct gw_import *im, const struct gw_import_feature *feature)
{
	const struct gw_npy *npy = &feature->array->npy;
	assert(feature->owner < (feature->edge ? im->num_sets : im->num_spaces));
	uint64_t bytes = gw_dtype_bytes(npy->dtype);
	assert(npy->ndim >= 1 && npy->ndim <= GW_DIMS_MAX);
	for (uint32_t i = 0; i < npy->ndim; i++)
		bytes *= npy->shape[i];
	assert(bytes == npy->data_bytes);
	assert(feature->name[0] && feature->array->data);
	uint64_t sum = 0; /* every byte is there */
	for (uint64_t i = 0; i < bytes; i++)
		sum += ((const uint8_t *)feature->array->data)[i];
	assert(sum <= bytes * 255);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!folder[0])
		make_folder();
	char path[128];
	snprintf(path, sizeof(path), "%s/metadata.json", folder);
	write_file("metadata.json", data, size);
	const struct gw_import_options options = {.build = {.quiet = true}};
	struct gw_import im = {.options = &options, .threads = 1};
	gw_status status = gw_builder_create("graph", &im.builder);
	assert(status == GW_OK);
	status = gw_import_chunked(&im, path);
	if (status != GW_OK) {
		assert(gw_last_error()[0] != '\0' && !strchr(gw_last_error(), '\n'));
	} else {
		assert(im.num_spaces > 0);
		for (uint32_t i = 0; i < im.num_spaces; i++)
			assert(im.spaces[i].num_nodes < GW_NONE && im.spaces[i].ids == GW_IDS_DENSE);
		for (uint32_t i = 0; i < im.num_sets; i++)
			assert(im.sets[i].src < im.num_spaces && im.sets[i].dst < im.num_spaces);
		for (uint32_t i = 0; i < im.num_features; i++)
			check_feature(&im, &im.features[i]);
	}
	gw_import_close(&im);
	return 0;
}
