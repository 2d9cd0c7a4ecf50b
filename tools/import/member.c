/* Arrays of input files, and members of archives. The builder closes an array when it is destroyed. */
#include "core/memory/alloc.h"
#include "tools/import/import.h"
#include "tools/import/npz.h"

static void close_array(void *memory)
{
	gw_npy_close(memory);
	gw_free(memory);
}

gw_status gw_import_own_array(struct gw_import *im, const struct gw_npy_file *opened, const struct gw_npy_file **out)
{
	struct gw_npy_file *array = gw_malloc(sizeof(*array));
	struct gw_npy_file copy = *opened;
	if (!array) {
		gw_npy_close(&copy);
		return GW_NO_MEMORY;
	}
	*array = copy;
	gw_status status = gw_builder_own(im->builder, array, close_array);
	if (status == GW_OK) {
		*out = array;
		im->input_bytes += array->npy.data_bytes;
	}
	return status;
}

gw_status gw_import_member(struct gw_import *im, const struct gw_npz *npz, const char *name,
			   const struct gw_npy_file **out)
{
	struct gw_npy_file array;
	gw_status status = gw_npz_read(npz, name, &array);
	return status != GW_OK ? status : gw_import_own_array(im, &array, out);
}
