/* Opens a regular file: open without blocking -> check the type -> clear O_NONBLOCK.
 *
 * Fails if the path does not exist, is no regular file, or cannot be read.
 */
#include "core/files/regular.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory/alloc.h"

gw_status gw_regular_open(const char *path, int *fd, uint64_t *bytes)
{
	struct stat info;
	*bytes = 0;
	/* O_NONBLOCK: no wait for a pipe's writer. O_NOCTTY: a terminal does not become the process's own. */
	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (*fd < 0 && errno == ENXIO) /* a socket, or a device without a driver */
		return gw_fail(GW_FORMAT, "%s: not a regular file", path);
	if (*fd < 0)
		return gw_fail_errno(errno == ENOENT || errno == ENOTDIR ? GW_NOT_FOUND : GW_IO, errno, "%s", path);
	gw_status status = GW_OK;
	bool known = fstat(*fd, &info) == 0;
	if (known && !S_ISREG(info.st_mode))
		status = gw_fail(GW_FORMAT, "%s: not a regular file", path);
	else if (!known || fcntl(*fd, F_SETFL, 0) != 0) /* some file systems apply O_NONBLOCK to regular files too */
		status = gw_fail_errno(GW_IO, errno, "%s", path);
	if (status == GW_OK) {
		*bytes = (uint64_t)info.st_size;
		return GW_OK;
	}
	close(*fd);
	*fd = -1;
	return status;
}

gw_status gw_regular_read_all(int fd, const char *path, char *text, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t got = read(fd, text + done, bytes - done);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return gw_fail_errno(GW_IO, errno, "%s: cannot read", path);
		if (got == 0)
			return gw_fail(GW_IO, "%s: it became shorter while being read", path);
		done += (size_t)got;
	}
	return GW_OK;
}

gw_status gw_regular_read(const char *path, uint64_t bytes_max, char **text, size_t *bytes)
{
	int fd;
	uint64_t length;
	*text = NULL;
	*bytes = 0;
	gw_status status = gw_regular_open(path, &fd, &length);
	if (status != GW_OK)
		return status;
	if (length > bytes_max)
		status = gw_fail(GW_LIMIT, "%s: longer than %llu bytes", path, (unsigned long long)bytes_max);
	else if (!(*text = gw_malloc((size_t)length + 1)))
		status = GW_NO_MEMORY;
	else
		status = gw_regular_read_all(fd, path, *text, (size_t)length);
	close(fd);
	if (status == GW_OK) {
		(*text)[length] = '\0';
		*bytes = (size_t)length;
		return GW_OK;
	}
	gw_free(*text);
	*text = NULL;
	return status;
}
