/* Writes arrays to .npy files for the commands that convert inputs of import. */
#ifndef GW_TOOLS_IMPORT_NPY_WRITE_H
#define GW_TOOLS_IMPORT_NPY_WRITE_H

#include "core/graph/npy.h"

/* Writes the file, or replaces it. GW_IO names the path; no file is left then. */
gw_status gw_import_npy_write(const char *path, gw_dtype dtype, uint32_t ndim, const uint64_t *shape, const void *data);

#endif
