/* Strings as the partition format has them (docs/FORMAT.md): offsets, one more than there are strings, and bytes. They
 * are two members of an .npz, or two files, NAME.offsets.npy and NAME.bytes.npy, which are mapped. */
#ifndef GW_TOOLS_IMPORT_STRINGS_H
#define GW_TOOLS_IMPORT_STRINGS_H

#include "tools/import/import.h"

/* String i is bytes[offsets[i]] up to bytes[offsets[i + 1]]. The builder owns the memory. */
struct gw_import_strings {
	uint64_t count;
	const uint64_t *offsets; /* [count + 1]: from 0, never descending */
	const char *bytes;       /* [offsets[count]] */
};

/* Whether the path names strings: an .npz, or offsets of two files. */
bool gw_import_names_strings(const char *path);

/* Reads the offsets (whole numbers) and the bytes (uint8). path: the archive, or the file of offsets. GW_NOT_FOUND;
 * GW_FORMAT if they do not fit each other. */
gw_status gw_import_strings_read(struct gw_import *im, const char *path, struct gw_import_strings *out);

/* Copies count strings: string i of the result is string rows[i] - base. All of them must exist. */
/* Those of a numbering of text; the builder owns them. GW_NO_MEMORY. */
struct gw_numbering;
struct gw_numbering_column;
gw_status gw_import_numbered_strings(struct gw_import *im, const struct gw_numbering *numbering,
				     const struct gw_numbering_column *columns, uint64_t **offsets, char **bytes);

gw_status gw_import_strings_pick(struct gw_import *im, const struct gw_import_strings *from, const uint64_t *rows,
				 uint64_t base, uint64_t count, struct gw_import_strings *out);

#endif
