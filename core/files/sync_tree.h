/* Making a folder durable. Internal to core/files: staging and owned use it. */
#ifndef GW_FILES_SYNC_TREE_H
#define GW_FILES_SYNC_TREE_H

#include "core/errors/status.h"

/* Syncs a folder with all its files and folders; does not follow symbolic links. After success the tree survives a
 * crash of the machine. GW_IO or GW_NO_SPACE names the entry that could not be written; GW_LIMIT: the tree is deeper
 * than any graph's. */
gw_status gw_sync_tree(const char *folder);

/* Syncs one file, or the entries of one folder. flags: what open takes besides O_RDONLY. GW_IO, GW_NO_SPACE. */
gw_status gw_sync_path(const char *path, int flags);

#endif
