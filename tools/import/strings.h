/* Strings in an .npz, as the partition format has them (docs/FORMAT.md): offsets, one more than there are strings, and
 * bytes. */
#ifndef GW_TOOLS_IMPORT_STRINGS_H
#define GW_TOOLS_IMPORT_STRINGS_H

#include "tools/import/import.h"

/* String i is bytes[offsets[i]] up to bytes[offsets[i + 1]]. The builder owns the memory. */
struct gw_import_strings {
	uint64_t count;
	uint64_t *offsets; /* [count + 1]: from 0, never descending */
	const char *bytes; /* [offsets[count]] */
};

/* Reads the members "offsets" (whole numbers) and "bytes" (uint8) of an archive. GW_NOT_FOUND; GW_FORMAT if they do not
 * fit each other. */
gw_status gw_import_strings_read(struct gw_import *im, const char *path, struct gw_import_strings *out);

/* Copies count strings: string i of the result is string rows[i] - base. All of them must exist. */
gw_status gw_import_strings_pick(struct gw_import *im, const struct gw_import_strings *from, const uint64_t *rows,
				 uint64_t base, uint64_t count, struct gw_import_strings *out);

#endif
