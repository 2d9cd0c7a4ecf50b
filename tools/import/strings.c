/* Reads strings from an archive or from two files, checks their offsets, and picks some of them. Errors: members that
 * do not exist, that have another type, or that do not fit each other. */
#include "tools/import/strings.h"

#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "tools/import/npz.h"
#include "tools/import/numbering.h"

#define OFFSETS ".offsets.npy"
#define BYTES   ".bytes.npy"

static bool is_file_of_offsets(const char *path)
{
	size_t bytes = strlen(path), tail = strlen(OFFSETS);
	return bytes > tail && strcmp(path + bytes - tail, OFFSETS) == 0;
}

bool gw_import_names_strings(const char *path)
{
	return gw_import_format_of(path) == GW_FROM_NPZ || is_file_of_offsets(path);
}

static gw_status strings_files(struct gw_import *im, const char *path, const struct gw_npy_file **offsets,
			       const struct gw_npy_file **bytes)
{
	gw_status status = GW_OK;
	size_t room = strlen(path) + 1, stem = strlen(path) - strlen(OFFSETS);
	char *beside = gw_import_take(im, room, 1, &status);
	if (status != GW_OK)
		return status;
	snprintf(beside, room, "%.*s%s", (int)stem, path, BYTES);
	status = gw_import_array(im, path, offsets);
	return status != GW_OK ? status : gw_import_array(im, beside, bytes);
}

static gw_status strings_member(struct gw_import *im, const char *path, const char *name,
				const struct gw_npy_file **out)
{
	struct gw_npz *npz;
	gw_status status = gw_import_archive(im, path, &npz);
	if (status == GW_OK && !gw_npz_has(npz, name))
		return gw_fail(GW_NOT_FOUND,
			       "%s: strings are two members, \"offsets\" and \"bytes\"; for an array, name its member: "
			       "%s:MEMBER",
			       path, path);
	return status != GW_OK ? status : gw_import_member(im, npz, name, out);
}

/* The offsets as uint64: those of the file itself, if they are so wide. */
static gw_status strings_offsets(struct gw_import *im, const char *path, const struct gw_npy_file *array,
				 struct gw_import_strings *out)
{
	gw_status status = GW_OK;
	if (array->npy.dtype == GW_INT64 || array->npy.dtype == GW_UINT64) {
		out->offsets = array->data; /* a negative one is too large to ascend */
		return GW_OK;
	}
	uint64_t *wide = gw_import_take(im, out->count + 1, 8, &status);
	out->offsets = wide;
	return status != GW_OK
		       ? status
		       : gw_import_whole(&array->npy, array->data, 0, 1, out->count + 1, path, im->threads, wide);
}

gw_status gw_import_strings_read(struct gw_import *im, const char *path, struct gw_import_strings *out)
{
	const struct gw_npy_file *offsets, *bytes;
	*out = (struct gw_import_strings){0};
	gw_status status = GW_OK;
	if (is_file_of_offsets(path)) {
		status = strings_files(im, path, &offsets, &bytes);
	} else {
		status = strings_member(im, path, "offsets", &offsets);
		if (status == GW_OK)
			status = strings_member(im, path, "bytes", &bytes);
	}
	if (status != GW_OK)
		return status;
	if (offsets->npy.ndim != 1 || offsets->npy.shape[0] == 0 || bytes->npy.ndim != 1 ||
	    bytes->npy.dtype != GW_UINT8)
		return gw_fail(GW_FORMAT, "%s: strings are offsets [N + 1] and bytes, uint8", path);
	out->count = offsets->npy.shape[0] - 1;
	out->bytes = bytes->npy.data_bytes ? bytes->data : "";
	status = strings_offsets(im, path, offsets, out);
	if (status != GW_OK)
		return status;
	bool ascend = out->offsets[0] == 0 && out->offsets[out->count] == bytes->npy.shape[0];
	for (uint64_t i = 0; i < out->count; i++)
		ascend &= out->offsets[i] <= out->offsets[i + 1];
	return ascend ? GW_OK
		      : gw_fail(GW_FORMAT, "%s: the offsets of its strings do not ascend from 0 to the %llu bytes",
				path, (unsigned long long)bytes->npy.shape[0]);
}

gw_status gw_import_strings_pick(struct gw_import *im, const struct gw_import_strings *from, const uint64_t *rows,
				 uint64_t base, uint64_t count, struct gw_import_strings *out)
{
	gw_status status = GW_OK;
	uint64_t *offsets = gw_import_take(im, count + 1, 8, &status);
	*out = (struct gw_import_strings){.count = count, .offsets = offsets};
	if (status != GW_OK)
		return status;
	offsets[0] = 0;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t row = rows[i] - base;
		offsets[i + 1] = offsets[i] + from->offsets[row + 1] - from->offsets[row];
	}
	char *bytes = gw_import_take(im, offsets[count], 1, &status);
	for (uint64_t i = 0; i < count && status == GW_OK; i++)
		memcpy(bytes + offsets[i], from->bytes + from->offsets[rows[i] - base],
		       out->offsets[i + 1] - out->offsets[i]);
	out->bytes = bytes;
	return status;
}

gw_status gw_import_numbered_strings(struct gw_import *im, const struct gw_numbering *numbering,
				     const struct gw_numbering_column *columns, uint64_t **offsets, char **bytes)
{
	gw_status status =
		gw_numbering_strings(numbering, columns, im->threads, gw_import_memory(im).spill, offsets, bytes);
	if (status == GW_OK)
		status = gw_builder_own(im->builder, *offsets, gw_spill_give);
	if (status == GW_OK)
		return gw_builder_own(im->builder, *bytes, gw_spill_give);
	gw_spill_give(*bytes);
	return status;
}
