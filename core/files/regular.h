/* Opens paths that must be regular files. A folder that a user names may have a pipe, a socket, a device or a folder
 * under an expected name. For such an entry these functions return an error at once. */
#ifndef GW_FILES_REGULAR_H
#define GW_FILES_REGULAR_H

#include "core/errors/status.h"

/* Opens a regular file, or a link to one, for reading; *bytes is its length. Errors name the path and set *fd to -1:
 * GW_NOT_FOUND, GW_FORMAT (not a regular file), GW_IO. */
gw_status gw_regular_open(const char *path, int *fd, uint64_t *bytes);

/* Reads `bytes` from an open file. path is for error texts. GW_IO, also if the file becomes shorter meanwhile. */
gw_status gw_regular_read_all(int fd, const char *path, char *text, size_t bytes);

/* Reads a file of at most bytes_max bytes into memory, with a terminating zero. The caller frees it with gw_free.
 * GW_LIMIT: the file is longer; GW_NO_MEMORY; GW_IO, also if the file becomes shorter meanwhile. */
gw_status gw_regular_read(const char *path, uint64_t bytes_max, char **text, size_t *bytes);

#endif
