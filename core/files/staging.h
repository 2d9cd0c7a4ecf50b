/* Writing a folder so that it is there whole or not at all: a temporary sibling, fsync of every file and folder, then
 * one rename. Interrupted or failed writers leave nothing under the final name; a failed one removes its temporary
 * folder, and what a killed one left goes when the next writes there. */
#ifndef GW_FILES_STAGING_H
#define GW_FILES_STAGING_H

#include <stdbool.h>

#include "core/errors/status.h"
#include "core/files/owned.h"

struct gw_staging;

/* Creates "<folder>.tmp-<pid>-<host>-<random>" beside the final folder, after removing those that killed writers of it
 * left on this host. Keeps a few descriptors open until the end. GW_EXISTS if the final name is taken (unless replace
 * is set: then commit moves the old folder aside and removes it after the rename). Also removed by
 * gw_staging_cleanup(). */
gw_status gw_staging_begin(const char *folder, bool replace, struct gw_staging **out);

/* What a replace takes away of the old folder, instead of all of it: what is owned. The rest lies in the new folder
 * too, under the same names, when it is in place (core/files/owned.h); names that both have are GW_EXISTS from the
 * commit. The staging frees it. */
void gw_staging_keep_others(struct gw_staging *staging, struct gw_owned *owned);

/* The temporary folder's path; the staging's memory. */
const char *gw_staging_path(const struct gw_staging *staging);

/* Makes <temporary>/<relative folder> with its parents. */
gw_status gw_staging_mkdir(struct gw_staging *staging, const char *relative);

/* fsync everything, rename, fsync the parent. Frees the staging in any case; on failure the temporary folder is
 * removed. */
gw_status gw_staging_commit(struct gw_staging *staging);

/* Removes the temporary folder and frees the staging. NULL is allowed. */
void gw_staging_abort(struct gw_staging *staging);

/* Removes the temporary folders of every staging that is still open: for a program's SIGINT/SIGTERM path. May run in a
 * signal handler: it uses system calls only. The stagings stay open, their writers fail; end the process after it. */
void gw_staging_cleanup(void);

/* Removes a folder and all below it; not following symbolic links. One that is not there is no error. */
gw_status gw_remove_tree(const char *folder);

#endif
