/* Opening what must be a file: in a folder that a user names there may be a pipe, a socket, a device or a folder by the
 * name that is looked for. None of them is waited for or read. */
#ifndef GW_FILES_REGULAR_H
#define GW_FILES_REGULAR_H

#include "core/errors/status.h"

/* Opens a regular file, or a link to one, for reading; *bytes is its length. Errors name the path: GW_NOT_FOUND,
 * GW_FORMAT (not a regular file), GW_IO; *fd is -1 then. */
gw_status gw_regular_open(const char *path, int *fd, uint64_t *bytes);

/* Reads `bytes` from an open file, whose path is for errors: GW_IO, also where the file becomes shorter meanwhile. */
gw_status gw_regular_read_all(int fd, const char *path, char *text, size_t bytes);

/* The whole of one, of at most bytes_max bytes, in memory to be freed with gw_free; a zero byte follows it. GW_LIMIT:
 * it is longer; GW_NO_MEMORY; GW_IO, also for one that becomes shorter meanwhile. */
gw_status gw_regular_read(const char *path, uint64_t bytes_max, char **text, size_t *bytes);

#endif
