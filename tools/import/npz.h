/* NumPy's .npz: a zip archive of .npy members, stored or deflated. */
#ifndef GW_TOOLS_IMPORT_NPZ_H
#define GW_TOOLS_IMPORT_NPZ_H

#include <stdbool.h>

#include "core/graph/npy.h"

#define GW_NPZ_MEMBERS_MAX 4096u

struct gw_npz;

/* Reads the archive's directory. Errors name the path: GW_NOT_FOUND, GW_IO, GW_FORMAT (not a zip archive, truncated),
 * GW_UNSUPPORTED (encrypted, another compression, several disks), GW_LIMIT. */
gw_status gw_npz_open(const char *path, struct gw_npz **out);
void gw_npz_close(struct gw_npz *npz); /* NULL is allowed */

/* The names without ".npy", in the archive's order; NULL after the last one. */
const char *gw_npz_name(const struct gw_npz *npz, uint32_t number);

bool gw_npz_has(const struct gw_npz *npz, const char *name);

/* Reads a member as an array in its own (aligned) memory and checks its CRC. Close it with gw_npy_close. GW_NOT_FOUND
 * lists the members. */
gw_status gw_npz_read(const struct gw_npz *npz, const char *name, struct gw_npy_file *out);

/* Reads a member that is one string (NumPy's S or U, no dimensions), as ASCII with a final NUL. GW_NOT_FOUND.
 * GW_FORMAT: the member is not a string, or the string and its NUL take more than `bytes` bytes. */
gw_status gw_npz_word(const struct gw_npz *npz, const char *name, char *word, size_t bytes);

#endif
