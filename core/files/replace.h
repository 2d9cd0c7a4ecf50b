/* Folders and small files that appear while other programs look: each step is one system call. */
#ifndef GW_FILES_REPLACE_H
#define GW_FILES_REPLACE_H

#include <stddef.h>
#include <sys/types.h>

#include "core/errors/status.h"

/* Makes each folder of the path that ends with '/' behind the first `from` bytes; one that exists stays as it is.
 * GW_IO, GW_NO_SPACE: names the folder. */
gw_status gw_folders_make(char *path, size_t from, mode_t mode);

/* Writes a file of this user alone (0600) under a temporary name in the folder, and renames it, so that no reader sees
 * half of it. GW_IO, GW_NO_SPACE; GW_INVALID: the path is too long. */
gw_status gw_file_replace(const char *folder, const char *name, const void *bytes, size_t count);

#endif
