/* A folder that is there whole or not at all.
 *
 *   begin: mkdir of a temporary sibling -> the caller writes -> commit: fsync all of it, rename, fsync the parent
 *
 * A failure anywhere removes the temporary folder. Open stagings stand in a fixed table, so that gw_staging_cleanup can
 * run inside a signal handler: it and the removal under it use system calls only. A crash of the machine can leave a
 * "<folder>.tmp-<pid>-<random>" behind, never half a folder under the final name.
 */
#include "core/base/staging.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/log.h"
#include "core/base/sync_tree.h"

#define OPEN_MAX_STAGINGS 32 /* open at once in one process */
#define DEPTH_MAX         64 /* folders below one another that a removal follows */

enum slot_state { SLOT_FREE, SLOT_CLAIMED, SLOT_OPEN };

static struct slot {
	atomic_int state;
	pid_t pid; /* a forked child must not remove its parent's folder */
	char path[PATH_MAX];
} slots[OPEN_MAX_STAGINGS];

struct gw_staging {
	struct slot *slot;
	char *final;
	char *temporary;
	bool replace;
};

/* ---- removing a tree without allocation ---- */

struct failure {
	int error;
	const char *verb; /* what could not be done */
	char name[256];   /* to which entry */
};

static int note_failure(struct failure *failure, const char *verb, const char *name)
{
	failure->error = errno;
	failure->verb = verb;
	size_t length = strnlen(name, sizeof(failure->name) - 1);
	memcpy(failure->name, name, length);
	failure->name[length] = 0;
	return -1;
}

static int remove_entry(int parent, const char *name, int depth, struct failure *failure);

/* Removes every entry of an open folder. */
static int remove_entries(int folder, int depth, struct failure *failure)
{
	char entries[2048] __attribute__((aligned(8)));
	for (;;) {
		long bytes = syscall(SYS_getdents64, folder, entries, sizeof(entries));
		if (bytes <= 0)
			return bytes == 0 ? 0 : note_failure(failure, "list", ".");
		for (long at = 0; at < bytes;) {
			const struct dirent64 *entry = (const struct dirent64 *)(entries + at);
			at += entry->d_reclen;
			if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
				continue;
			if (remove_entry(folder, entry->d_name, depth, failure))
				return -1;
		}
	}
}

static int open_folder(int parent, const char *name, int depth)
{
	if (depth > DEPTH_MAX) {
		errno = ELOOP;
		return -1;
	}
	return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int remove_entry(int parent, const char *name, int depth, struct failure *failure)
{
	if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM && errno != ENOTEMPTY)
		return note_failure(failure, "remove", name);
	/* Entries that go away while a folder is listed can hide others: list again until it is empty. */
	for (int round = 0; round < 16; round++) {
		if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return 0;
		if (errno != ENOTEMPTY && errno != EEXIST)
			break;
		int folder = open_folder(parent, name, depth);
		if (folder < 0)
			break;
		int result = remove_entries(folder, depth + 1, failure);
		close(folder);
		if (result)
			return result;
	}
	return note_failure(failure, "remove", name);
}

gw_status gw_remove_tree(const char *folder)
{
	struct failure failure;
	if (remove_entry(AT_FDCWD, folder, 0, &failure))
		return gw_fail_errno(GW_IO, failure.error, "remove %s: cannot %s \"%s\"", folder, failure.verb,
				     failure.name);
	return GW_OK;
}

/* ---- the table of open stagings ---- */

static struct slot *claim_slot(void)
{
	for (int i = 0; i < OPEN_MAX_STAGINGS; i++) {
		int expected = SLOT_FREE;
		if (atomic_compare_exchange_strong(&slots[i].state, &expected, SLOT_CLAIMED))
			return &slots[i];
	}
	return NULL;
}

void gw_staging_cleanup(void)
{
	int saved = errno;
	for (int i = 0; i < OPEN_MAX_STAGINGS; i++) {
		if (atomic_load(&slots[i].state) != SLOT_OPEN || slots[i].pid != getpid())
			continue;
		struct failure failure;
		remove_entry(AT_FDCWD, slots[i].path, 0, &failure);
	}
	errno = saved;
}

/* ---- begin ---- */

/* A copy of the folder's name without slashes at its end. */
static char *trimmed(const char *folder)
{
	char *copy = gw_strdup(folder);
	for (size_t length = copy ? strlen(copy) : 0; length > 1 && copy[length - 1] == '/'; length--)
		copy[length - 1] = 0;
	return copy;
}

static char *sibling_name(const char *final, const char *what)
{
	uint64_t random = 0;
	while (getrandom(&random, sizeof(random), 0) < 0 && errno == EINTR)
		;
	return gw_format("%s.%s-%d-%016llx", final, what, (int)getpid(), (unsigned long long)random);
}

static gw_status check_final(const char *final, bool replace)
{
	const char *last = strrchr(final, '/') ? strrchr(final, '/') + 1 : final;
	if (last[0] == 0 || strcmp(last, ".") == 0 || strcmp(last, "..") == 0)
		return gw_fail(GW_INVALID, "\"%s\" names no new folder: give the folder a name", final);
	struct stat info;
	if (lstat(final, &info)) {
		if (errno == ENOENT)
			return GW_OK;
		return gw_fail_errno(GW_IO, errno, "%s", final);
	}
	if (!replace)
		return gw_fail(GW_EXISTS, "%s exists already: remove it or choose another name", final);
	if (!S_ISDIR(info.st_mode))
		return gw_fail(GW_EXISTS, "%s exists already and is no folder", final);
	return GW_OK;
}

static gw_status make_temporary(struct gw_staging *staging)
{
	staging->temporary = sibling_name(staging->final, "tmp");
	if (!staging->temporary)
		return GW_NO_MEMORY;
	size_t length = strlen(staging->temporary);
	if (length >= PATH_MAX)
		return gw_fail(GW_INVALID, "%s: the path is too long", staging->final);
	staging->slot = claim_slot();
	if (!staging->slot)
		return gw_fail(GW_LIMIT, "%s: %d folders are being written already", staging->final, OPEN_MAX_STAGINGS);
	memcpy(staging->slot->path, staging->temporary, length + 1);
	staging->slot->pid = getpid();
	/* Open before the folder is there: a signal in between finds nothing to remove, rather than missing it. */
	atomic_store(&staging->slot->state, SLOT_OPEN);
	if (mkdir(staging->temporary, 0777) == 0)
		return GW_OK;
	int error = errno;
	atomic_store(&staging->slot->state, SLOT_FREE);
	staging->slot = NULL;
	if (error == ENOENT)
		return gw_fail(GW_NOT_FOUND, "%s: its parent folder is not there: make it first (mkdir -p)",
			       staging->final);
	return gw_fail_errno(GW_IO, error, "make folder %s", staging->temporary);
}

static void free_staging(struct gw_staging *staging)
{
	if (staging->slot)
		atomic_store(&staging->slot->state, SLOT_FREE);
	gw_free(staging->temporary);
	gw_free(staging->final);
	gw_free(staging);
}

gw_status gw_staging_begin(const char *folder, bool replace, struct gw_staging **out)
{
	*out = NULL;
	struct gw_staging *staging = gw_calloc(1, sizeof(*staging));
	if (!staging)
		return GW_NO_MEMORY;
	staging->replace = replace;
	staging->final = trimmed(folder);
	gw_status status = staging->final ? check_final(staging->final, replace) : GW_NO_MEMORY;
	if (!status)
		status = make_temporary(staging);
	if (status) {
		free_staging(staging);
		return status;
	}
	*out = staging;
	return GW_OK;
}

const char *gw_staging_path(const struct gw_staging *staging)
{
	return staging->temporary;
}

/* ---- folders inside ---- */

static bool is_inside(const char *relative)
{
	if (relative[0] == '/' || relative[0] == 0)
		return false;
	for (const char *part = relative; part; part = strchr(part, '/')) {
		part += *part == '/';
		if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == 0))
			return false;
	}
	return true;
}

gw_status gw_staging_mkdir(struct gw_staging *staging, const char *relative)
{
	if (!is_inside(relative))
		return gw_fail(GW_INVALID, "\"%s\" is no path inside %s", relative, staging->final);
	char *path = gw_format("%s/%s", staging->temporary, relative);
	if (!path)
		return GW_NO_MEMORY;
	gw_status status = GW_OK;
	char *end = path + strlen(staging->temporary) + 1;
	while (!status && end) {
		end = strchr(end + 1, '/');
		if (end)
			*end = 0;
		if (mkdir(path, 0777) && errno != EEXIST)
			status = gw_fail_errno(GW_IO, errno, "make folder %s", path);
		if (end)
			*end = '/';
	}
	gw_free(path);
	return status;
}

/* ---- commit ---- */

/* An exchange leaves no moment without a folder of that name, and the old one under the temporary name; where the file
 * system cannot, the old one is moved aside first, to *old. */
static gw_status rename_replacing(struct gw_staging *staging, char **old)
{
	if (renameat2(AT_FDCWD, staging->temporary, AT_FDCWD, staging->final, RENAME_EXCHANGE) == 0)
		return GW_OK;
	if (errno != EINVAL && errno != ENOSYS && errno != ENOENT)
		return gw_fail_errno(GW_IO, errno, "rename %s to %s", staging->temporary, staging->final);
	char *aside = sibling_name(staging->final, "old");
	if (!aside)
		return GW_NO_MEMORY;
	bool moved = rename(staging->final, aside) == 0;
	if ((!moved && errno != ENOENT) || rename(staging->temporary, staging->final)) {
		gw_status status = gw_fail_errno(GW_IO, errno, "rename %s to %s", staging->temporary, staging->final);
		if (moved && rename(aside, staging->final))
			gw_context(status, "the old folder is now %s", aside);
		gw_free(aside);
		return status;
	}
	*old = moved ? aside : NULL;
	if (!moved)
		gw_free(aside);
	return GW_OK;
}

static gw_status rename_new(struct gw_staging *staging)
{
	if (renameat2(AT_FDCWD, staging->temporary, AT_FDCWD, staging->final, RENAME_NOREPLACE) == 0)
		return GW_OK;
	if (errno == EINVAL || errno == ENOSYS) { /* a file system without RENAME_NOREPLACE: look, then rename */
		gw_status status = check_final(staging->final, false);
		if (status || rename(staging->temporary, staging->final) == 0)
			return status;
	}
	if (errno == EEXIST)
		return gw_fail(GW_EXISTS, "%s has appeared meanwhile", staging->final);
	return gw_fail_errno(GW_IO, errno, "rename %s to %s", staging->temporary, staging->final);
}

static gw_status sync_parent(struct gw_staging *staging)
{
	char *slash = strrchr(staging->final, '/');
	char parent[PATH_MAX] = ".";
	if (slash)
		snprintf(parent, sizeof(parent), "%.*s", slash == staging->final ? 1 : (int)(slash - staging->final),
			 staging->final);
	int folder = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return gw_fail_errno(GW_IO, errno, "open %s", parent);
	gw_status status = GW_OK;
	if (fsync(folder) && errno != EINVAL)
		status = gw_fail_errno(GW_IO, errno, "fsync %s", parent);
	close(folder);
	return status;
}

gw_status gw_staging_commit(struct gw_staging *staging)
{
	struct failure failure;
	char *old = NULL;
	gw_status status = gw_sync_tree(staging->temporary);
	if (status)
		gw_context(status, "write %s", staging->final);
	else
		status = staging->replace ? rename_replacing(staging, &old) : rename_new(staging);
	if (status) {
		gw_staging_abort(staging);
		return status;
	}
	status = sync_parent(staging);
	if (status)
		gw_context(status, "%s is in place, but a crash of the machine may undo that", staging->final);
	const char *leftover = old ? old : staging->temporary;
	if (staging->replace && remove_entry(AT_FDCWD, leftover, 0, &failure))
		gw_log(GW_LOG_WARN, "%s is in place, but the folder it replaced is still there as %s", staging->final,
		       leftover);
	gw_free(old);
	free_staging(staging);
	return status;
}

void gw_staging_abort(struct gw_staging *staging)
{
	if (!staging)
		return;
	struct failure failure;
	if (remove_entry(AT_FDCWD, staging->temporary, 0, &failure))
		gw_log(GW_LOG_WARN, "cannot remove %s: %s \"%s\" failed", staging->temporary, failure.verb,
		       failure.name);
	free_staging(staging);
}
