/* The archives that an import reads. Each archive is opened once; gw_import_close closes them. */
#include <string.h>

#include "core/memory/alloc.h"
#include "tools/import/import.h"
#include "tools/import/npz.h"

gw_status gw_import_archive(struct gw_import *im, const char *path, struct gw_npz **out)
{
	for (uint32_t i = 0; i < im->num_archives; i++) {
		if (strcmp(im->archives[i].path, path) == 0) {
			*out = im->archives[i].npz;
			return GW_OK;
		}
	}
	struct gw_npz *npz;
	gw_status status = gw_npz_open(path, &npz);
	if (status != GW_OK)
		return status;
	if (im->num_archives == im->archives_room) {
		uint32_t room = im->archives_room ? im->archives_room * 2 : 4;
		void *grown = gw_realloc(im->archives, room, sizeof(*im->archives));
		if (!grown) {
			gw_npz_close(npz);
			return GW_NO_MEMORY;
		}
		im->archives = grown;
		im->archives_room = room;
	}
	im->archives[im->num_archives++] = (struct gw_import_archive){.path = path, .npz = npz};
	*out = npz;
	return GW_OK;
}
