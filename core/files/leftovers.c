/* Temporary folders of killed writers.
 *
 *   a writer:        mkdir -> lock the folder (flock) -> does it still exist? -> write -> rename
 *   if it is killed: the kernel unlocks the folder
 *   the next writer: for each folder with a temporary name: lock it -> does the name still refer to it? -> remove it
 *
 * The lock distinguishes killed writers from running ones, even if process ids were reused: a process that gets the
 * lock is the only user of the folder. A writer whose new folder is locked or removed before it can lock it takes
 * another name.
 *
 * A lock is visible to the processes of one kernel. File systems that several hosts share may keep locks local (NFS
 * with local_lock). So the name contains a digest of the host's name, and a sweep handles only folders of this host. If
 * a file system cannot lock folders, the sweep removes nothing.
 */
#include "core/files/leftovers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "core/errors/log.h"
#include "core/files/remove_tree.h"
#include "core/memory/alloc.h"
#include "core/numbers/digest.h"

#define INFIX      ".tmp-"
#define HEX_DIGITS 8
#define DIGITS     "0123456789"
#define HEX        DIGITS "abcdef"

static uint32_t host_digest(void)
{
	struct utsname host;
	return uname(&host) == 0 ? (uint32_t)gw_digest(host.nodename, strlen(host.nodename)) : 0;
}

char *gw_leftover_name(const char *final)
{
	uint32_t random = 0;
	while (getrandom(&random, sizeof(random), 0) < 0 && errno == EINTR)
		;
	return gw_format("%s" INFIX "%d-%08" PRIx32 "-%08" PRIx32, final, (int)getpid(), host_digest(), random);
}

/* Skips at least one and at most `most` of the given characters; NULL if the text does not begin with one. */
static const char *leftovers_skip(const char *text, const char *characters, size_t most)
{
	size_t length = strspn(text, characters);
	return length > 0 && length <= most ? text + length : NULL;
}

/* Whether this is the name of a temporary folder that this host makes for `last`, the last part of the final name. */
static bool leftovers_is_ours(const char *name, const char *last)
{
	char host[HEX_DIGITS + 3];
	size_t length = strlen(last);
	snprintf(host, sizeof(host), "-%08" PRIx32 "-", host_digest());
	if (strncmp(name, last, length) != 0 || strncmp(name + length, INFIX, strlen(INFIX)) != 0)
		return false;
	const char *at = leftovers_skip(name + length + strlen(INFIX), DIGITS, 10);
	if (!at || strncmp(at, host, strlen(host)) != 0)
		return false;
	at += strlen(host);
	return strspn(at, HEX) == HEX_DIGITS && at[HEX_DIGITS] == 0;
}

/* Another process may have removed the folder, or put another one in its place. */
static bool path_is_still(const char *path, int folder)
{
	struct stat named, opened;
	return fstat(folder, &opened) == 0 && lstat(path, &named) == 0 && named.st_dev == opened.st_dev &&
	       named.st_ino == opened.st_ino;
}

static int leftovers_open_folder(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int gw_leftover_lock(const char *path)
{
	int folder = leftovers_open_folder(path);
	if (folder < 0)
		return -1;
	bool swept = flock(folder, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
	if (!swept && path_is_still(path, folder))
		return folder;
	close(folder);
	errno = ENOENT;
	return -1;
}

static void leftovers_sweep(const char *path)
{
	struct stat info;
	struct gw_removal failure;
	int folder = leftovers_open_folder(path);
	if (folder < 0)
		return;
	if (fstat(folder, &info) == 0 && info.st_uid == geteuid() && flock(folder, LOCK_EX | LOCK_NB) == 0 &&
	    path_is_still(path, folder)) {
		if (gw_remove_path(path, &failure))
			gw_log(GW_LOG_WARN, "%s was left behind by a run that was killed: cannot %s \"%s\": remove it",
			       path, failure.verb, failure.name);
		else
			gw_log(GW_LOG_INFO, "removed %s, left behind by a run that was killed", path);
	}
	close(folder);
}

void gw_leftovers_sweep(const char *final)
{
	char path[PATH_MAX];
	const char *slash = strrchr(final, '/'), *last = slash ? slash + 1 : final;
	int parent = slash ? (int)(slash - final) + 1 : 0; /* length of the parent, with its slash */
	int length = snprintf(path, sizeof(path), "%.*s", parent, final);
	if (length < 0 || (size_t)length >= sizeof(path))
		return;
	DIR *folder = opendir(parent ? path : ".");
	if (!folder)
		return;
	for (struct dirent *entry; (entry = readdir(folder));) {
		if (!leftovers_is_ours(entry->d_name, last))
			continue;
		int bytes = snprintf(path + length, sizeof(path) - (size_t)length, "%s", entry->d_name);
		if (bytes > 0 && (size_t)bytes < sizeof(path) - (size_t)length)
			leftovers_sweep(path);
	}
	closedir(folder);
}
