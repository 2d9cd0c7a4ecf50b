/* The archives that an import reads, and arrays of their members and of files. Each archive is opened once;
 * gw_import_close closes them. */
#include <stdio.h>
#include <string.h>

#include "tools/import/import.h"
#include "tools/import/npz.h"
#include "tools/import/words.h"

gw_status gw_import_archive(struct gw_import *im, const char *path, struct gw_npz **out)
{
	for (uint32_t i = 0; i < im->num_archives; i++) {
		if (strcmp(im->archives[i].path, path) == 0) {
			*out = im->archives[i].npz;
			return GW_OK;
		}
	}
	struct gw_npz *npz;
	gw_status status = GW_OK;
	size_t bytes = strlen(path) + 1;
	char *own = gw_import_take(im, bytes, 1, &status);
	if (status == GW_OK)
		status = gw_npz_open(path, &npz);
	if (status != GW_OK)
		return status;
	memcpy(own, path, bytes);
	status = gw_import_grow((void **)&im->archives, im->num_archives, &im->archives_room, sizeof(*im->archives));
	if (status != GW_OK) {
		gw_npz_close(npz);
		return status;
	}
	im->archives[im->num_archives++] = (struct gw_import_archive){.path = own, .npz = npz};
	*out = npz;
	return GW_OK;
}

gw_status gw_import_array(struct gw_import *im, const char *source, const struct gw_npy_file **out)
{
	struct gw_npy_file array;
	const char *archive = strstr(source, ".npz:");
	gw_status status;
	if (archive) {
		struct gw_npz *npz;
		char path[4096];
		int bytes = (int)(archive - source) + 4;
		if ((size_t)bytes >= sizeof(path))
			return gw_fail(GW_INVALID, "%.200s...: the path is too long", source);
		snprintf(path, sizeof(path), "%.*s", bytes, source);
		status = gw_import_archive(im, path, &npz);
		if (status == GW_OK)
			status = gw_npz_read(npz, archive + 5, &array);
	} else {
		status = gw_npy_open(source, &array);
	}
	return status != GW_OK ? status : gw_import_own_array(im, &array, out);
}
