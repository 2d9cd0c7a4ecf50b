/* A new file gets a temporary name with the process's number: open, write, close, rename. A failure at any step removes
 * it, and the path keeps its old content.
 */
#include "core/files/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

gw_status gw_folders_make(char *path, size_t from, mode_t mode)
{
	for (char *slash = strchr(path + from, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, mode) != 0 && errno != EEXIST)
			return gw_fail_errno(GW_IO, errno, "%s: cannot make the folder", path);
		*slash = '/';
	}
	return GW_OK;
}

gw_status gw_file_replace(const char *folder, const char *name, const void *bytes, size_t count)
{
	char path[PATH_MAX], temporary[PATH_MAX + 32];
	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return gw_fail(GW_INVALID, "%s: the path is too long", folder);
	snprintf(temporary, sizeof(temporary), "%s.%ld", path, (long)getpid());
	unlink(temporary);
	int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return gw_fail_errno(GW_IO, errno, "%s: cannot be made", temporary);
	ssize_t n = write(fd, bytes, count);
	int error = n < 0 ? errno : n != (ssize_t)count ? ENOSPC : 0;
	if (close(fd) != 0 && !error)
		error = errno;
	if (!error && rename(temporary, path) == 0)
		return GW_OK;
	error = error ? error : errno;
	unlink(temporary);
	return gw_fail_errno(GW_IO, error, "%s: cannot be written", path);
}
