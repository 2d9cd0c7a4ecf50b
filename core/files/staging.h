/* Writes a folder so that it appears complete or not at all: a temporary sibling, fsync of every file and folder, then
 * one rename. An interrupted or failed writer leaves nothing under the final name. A writer that fails removes its
 * temporary folder. If a writer is killed, the next writer of the same final folder removes the killed writer's
 * temporary folder. */
#ifndef GW_FILES_STAGING_H
#define GW_FILES_STAGING_H

#include <stdbool.h>

#include "core/errors/status.h"
#include "core/files/owned.h"

struct gw_staging;

/* Removes the temporary folders that killed writers of `folder` left on this host. Then creates
 * "<folder>.tmp-<pid>-<host>-<random>" next to the final folder. Keeps a few descriptors open until the end. GW_EXISTS:
 * the final name exists and replace is not set. With replace, commit renames the old folder and removes it after the
 * new one is in place. gw_staging_cleanup() also removes the temporary folder. */
gw_status gw_staging_begin(const char *folder, bool replace, struct gw_staging **out);

/* Refuses a folder whose parent does not exist, with GW_NOT_FOUND, or cannot be reached: before hours of work, not when
 * the folder is made. */
gw_status gw_staging_check_parent(const char *folder);

/* Limits a replacement to the files of the old folder that `owned` lists: those that Graphwire wrote. All other files
 * appear in the new folder too, under the same names, when it is in place (core/files/owned.h). The commit returns
 * GW_EXISTS for names that both folders have. The staging frees `owned`. */
void gw_staging_keep_others(struct gw_staging *staging, struct gw_owned *owned);

/* The temporary folder's path. The staging owns it. */
const char *gw_staging_path(const struct gw_staging *staging);

/* Makes <temporary>/<relative folder> with its parents. */
gw_status gw_staging_mkdir(struct gw_staging *staging, const char *relative);

/* Syncs everything, renames, and syncs the parent. Frees the staging in any case. On failure it removes the temporary
 * folder. */
gw_status gw_staging_commit(struct gw_staging *staging);

/* Removes the temporary folder and frees the staging. NULL is allowed. */
void gw_staging_abort(struct gw_staging *staging);

/* Removes the temporary folders of all open stagings, for a program's SIGINT/SIGTERM path. A signal handler may call
 * it, because it uses only system calls. The stagings stay open and their writers fail, so end the process
 * afterwards. */
void gw_staging_cleanup(void);

/* Removes a folder and everything below it; does not follow symbolic links. A folder that does not exist is no
 * error. */
gw_status gw_remove_tree(const char *folder);

#endif
