/* What of a folder is a program's own, when it replaces the folder: the files that it wrote. All else that lies there
 * is its users', and lies in the new folder afterwards. */
#ifndef GW_FILES_OWNED_H
#define GW_FILES_OWNED_H

#include <stdbool.h>

#include "core/errors/status.h"

/* Paths of files, relative to the folder. Folders on the way to them are owned with them; links in the place of such
 * folders too, but not what they lead to. */
struct gw_owned;
gw_status gw_owned_create(struct gw_owned **out);
gw_status gw_owned_add(struct gw_owned *owned, const char *path); /* copied; GW_NO_MEMORY */
void gw_owned_destroy(struct gw_owned *owned);                    /* NULL is allowed */

/* Gives everything in the folder `from` that is not owned a second name in the folder `to`, on the same file system:
 * hard links of files, new folders around them. `from` stays as it is, and may be missing. again: what is in `to` by
 * the same name is left there; else it is GW_EXISTS, as is what can have no second name. GW_LIMIT, GW_IO, GW_NO_MEMORY.
 */
gw_status gw_owned_keep_others(struct gw_owned *owned, const char *from, const char *to, bool again);

#endif
