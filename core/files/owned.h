/* The files in a folder that a program wrote itself and may replace. All other files belong to users. When a new folder
 * replaces the old one, users' files appear in the new folder too. */
#ifndef GW_FILES_OWNED_H
#define GW_FILES_OWNED_H

#include <stdbool.h>

#include "core/errors/status.h"

/* Paths of owned files, relative to the folder. Folders above owned files are owned as well, and so are links in place
 * of such folders, but not the targets of the links. */
struct gw_owned;
gw_status gw_owned_create(struct gw_owned **out);
gw_status gw_owned_add(struct gw_owned *owned, const char *path); /* copied; GW_NO_MEMORY */
void gw_owned_destroy(struct gw_owned *owned);                    /* NULL is allowed */

/* The path of the first owned file in the folder that `test` accepts, or NULL; valid until the next addition. Files
 * that do not exist are passed over. */
struct stat;
const char *gw_owned_first(const struct gw_owned *owned, const char *folder,
			   bool (*test)(const struct stat *file, const void *context), const void *context);

/* Makes the files of the folder `from` that are not owned appear in the folder `to` too, by hard links in new folders.
 * Both folders are on one file system. `from` stays unchanged, and may be missing. again: entries that `to` already has
 * are left unchanged; without again they are GW_EXISTS. Files that cannot be linked are GW_EXISTS as well. GW_LIMIT,
 * GW_IO, GW_NO_MEMORY. */
gw_status gw_owned_keep_others(struct gw_owned *owned, const char *from, const char *to, bool again);

#endif
