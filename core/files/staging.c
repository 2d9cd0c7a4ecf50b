/* A folder that appears complete or not at all.
 *
 *   begin: remove folders of killed writers -> mkdir of a temporary sibling, locked -> the caller writes ->
 *   commit: fsync all of it, rename, fsync the parent
 *
 * A failure at any step removes the temporary folder. Open stagings are in a fixed table. gw_staging_cleanup and the
 * removal use only system calls, so that a signal handler may call them. Each staging opens descriptors for the removal
 * at its beginning and keeps them. A writer that fails because it has no descriptors left can thus still remove its
 * files. SIGKILL or a crash of the machine can leave a "<folder>.tmp-<pid>-<host>-<random>". The next writer of that
 * folder removes it (core/files/leftovers.h). No incomplete folder ever has the final name.
 */
#include "core/files/staging.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/errors/log.h"
#include "core/files/leftovers.h"
#include "core/files/remove_tree.h"
#include "core/files/replace.h"
#include "core/files/sync_tree.h"
#include "core/memory/alloc.h"
#include "core/system/syscalls.h"

#define OPEN_MAX_STAGINGS 32 /* open at once in one process */
#define HELD_MAX          8  /* descriptors: the lock, and one for each level of folders in the written tree */
#define NAMES_TRIED       16

enum slot_state { SLOT_FREE, SLOT_CLAIMED, SLOT_OPEN };

static struct staging_slot {
	atomic_int state;
	pid_t pid;          /* a forked child must not remove its parent's folder */
	int held[HELD_MAX]; /* the first holds the lock; the others are its duplicates and hold it too; -1: closed */
	char path[PATH_MAX];
} slots[OPEN_MAX_STAGINGS];

struct gw_staging {
	struct staging_slot *slot;
	char *final;
	char *temporary;
	bool replace;
	struct gw_owned *owned; /* of the old folder; NULL: all of it is owned */
};

/* ---- the table of open stagings ---- */

static struct staging_slot *staging_claim_slot(void)
{
	for (int i = 0; i < OPEN_MAX_STAGINGS; i++) {
		int expected = SLOT_FREE;
		if (!atomic_compare_exchange_strong(&slots[i].state, &expected, SLOT_CLAIMED))
			continue;
		for (int h = 0; h < HELD_MAX; h++)
			slots[i].held[h] = -1;
		return &slots[i];
	}
	return NULL;
}

static void staging_close_held(struct staging_slot *slot, int first)
{
	for (int i = first; i < HELD_MAX; i++) {
		if (slot->held[i] >= 0)
			close(slot->held[i]);
		slot->held[i] = -1;
	}
}

void gw_staging_cleanup(void)
{
	int saved = errno;
	for (int i = 0; i < OPEN_MAX_STAGINGS; i++) {
		if (atomic_load(&slots[i].state) != SLOT_OPEN || slots[i].pid != getpid())
			continue;
		struct gw_removal failure;
		staging_close_held(&slots[i], 1);
		gw_remove_path(slots[i].path, &failure);
	}
	errno = saved;
}

/* ---- begin ---- */

static char *staging_without_slashes(const char *folder)
{
	char *copy = gw_strdup(folder);
	for (size_t length = copy ? strlen(copy) : 0; length > 1 && copy[length - 1] == '/'; length--)
		copy[length - 1] = 0;
	return copy;
}

static char *old_name(const char *final)
{
	uint64_t random = 0;
	while (getrandom(&random, sizeof(random), 0) < 0 && errno == EINTR)
		;
	return gw_format("%s.old-%d-%016llx", final, (int)getpid(), (unsigned long long)random);
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
		return gw_fail(GW_EXISTS, "%s exists already and is not a folder", final);
	return GW_OK;
}

gw_status gw_staging_check_parent(const char *folder)
{
	size_t length = strlen(folder);
	while (length > 0 && folder[length - 1] == '/')
		length--;
	while (length > 0 && folder[length - 1] != '/')
		length--;
	char *parent = length ? gw_format("%.*s", (int)length, folder) : gw_format(".");
	if (!parent)
		return GW_NO_MEMORY;
	struct stat info;
	gw_status status = GW_OK;
	if (stat(parent, &info) != 0)
		status = errno == ENOENT
				 ? gw_fail(GW_NOT_FOUND,
					   "%s: its parent folder does not exist: make it first (mkdir -p)", folder)
				 : gw_fail_errno(GW_IO, errno, "%s", folder);
	gw_free(parent);
	return status;
}

/* *swept: between mkdir and the lock, another process removed the folder as a leftover. */
static gw_status staging_lock(struct gw_staging *staging, bool *swept)
{
	struct staging_slot *slot = staging->slot;
	slot->held[0] = gw_leftover_lock(staging->temporary);
	*swept = slot->held[0] < 0 && errno == ENOENT;
	bool held = slot->held[0] >= 0;
	for (int i = 1; held && i < HELD_MAX; i++) {
		slot->held[i] = fcntl(slot->held[0], F_DUPFD_CLOEXEC, 0);
		held = slot->held[i] >= 0;
	}
	if (held)
		return GW_OK;
	return gw_fail_errno(GW_IO, errno, "%s: cannot keep %d descriptors to write it", staging->final, HELD_MAX);
}

/* On failure no folder remains. */
static gw_status make_held(struct gw_staging *staging, bool *swept)
{
	struct staging_slot *slot = staging->slot;
	*swept = false;
	staging->temporary = gw_leftover_name(staging->final);
	if (!staging->temporary)
		return GW_NO_MEMORY;
	size_t length = strlen(staging->temporary);
	if (length >= PATH_MAX)
		return gw_fail(GW_INVALID, "%s: the path is too long", staging->final);
	memcpy(slot->path, staging->temporary, length + 1);
	slot->pid = getpid();
	/* The slot is marked open before the folder exists. A signal handler that runs in between finds no folder to
	 * remove. In the other order it would miss a folder. */
	atomic_store(&slot->state, SLOT_OPEN);
	gw_status status;
	if (mkdir(staging->temporary, 0777) == 0) {
		status = staging_lock(staging, swept);
		if (status != GW_OK)
			rmdir(staging->temporary);
	} else {
		int error = errno;
		status = gw_staging_check_parent(staging->final);
		if (status == GW_OK)
			status = gw_fail_errno(GW_IO, error, "make folder %s", staging->temporary);
	}
	if (status != GW_OK) {
		staging_close_held(slot, 0);
		atomic_store(&slot->state, SLOT_CLAIMED);
	}
	return status;
}

static gw_status make_temporary(struct gw_staging *staging)
{
	bool swept = true;
	gw_status status = GW_OK;
	staging->slot = staging_claim_slot();
	if (!staging->slot)
		return gw_fail(GW_LIMIT, "%s: %d folders are being written already", staging->final, OPEN_MAX_STAGINGS);
	gw_leftovers_sweep(staging->final);
	for (int i = 0; i < NAMES_TRIED && swept; i++) {
		gw_free(staging->temporary);
		staging->temporary = NULL;
		status = make_held(staging, &swept);
	}
	return status;
}

static void free_staging(struct gw_staging *staging)
{
	if (staging->slot) {
		staging_close_held(staging->slot, 0);
		atomic_store(&staging->slot->state, SLOT_FREE);
	}
	gw_owned_destroy(staging->owned);
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
	staging->final = staging_without_slashes(folder);
	gw_status status = staging->final ? check_final(staging->final, replace) : GW_NO_MEMORY;
	if (status == GW_OK)
		status = make_temporary(staging);
	if (status != GW_OK) {
		free_staging(staging);
		return status;
	}
	*out = staging;
	return GW_OK;
}

void gw_staging_keep_others(struct gw_staging *staging, struct gw_owned *owned)
{
	gw_owned_destroy(staging->owned);
	staging->owned = owned;
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
		return gw_fail(GW_INVALID, "\"%s\" is not a path inside %s", relative, staging->final);
	char *path = gw_format("%s/%s/", staging->temporary, relative);
	gw_status status = path ? gw_folders_make(path, strlen(staging->temporary) + 1, 0777) : GW_NO_MEMORY;
	gw_free(path);
	return status;
}

/* ---- commit ---- */

/* With an exchange, the final name always refers to a folder, and the old folder gets the temporary name. If the file
 * system cannot exchange names, the old folder is first renamed to *old. */
static gw_status rename_replacing(struct gw_staging *staging, char **old)
{
	if (renameat2(AT_FDCWD, staging->temporary, AT_FDCWD, staging->final, RENAME_EXCHANGE) == 0)
		return GW_OK;
	if (errno != EINVAL && errno != ENOENT && !gw_syscall_missing(errno))
		return gw_fail_errno(GW_IO, errno, "rename %s to %s", staging->temporary, staging->final);
	char *moved_to = old_name(staging->final);
	if (!moved_to)
		return GW_NO_MEMORY;
	bool moved = rename(staging->final, moved_to) == 0;
	if ((!moved && errno != ENOENT) || rename(staging->temporary, staging->final)) {
		gw_status status = gw_fail_errno(GW_IO, errno, "rename %s to %s", staging->temporary, staging->final);
		if (moved && rename(moved_to, staging->final))
			gw_context(status, "the old folder is now %s", moved_to);
		gw_free(moved_to);
		return status;
	}
	*old = moved ? moved_to : NULL;
	if (!moved)
		gw_free(moved_to);
	return GW_OK;
}

static gw_status rename_new(struct gw_staging *staging)
{
	if (renameat2(AT_FDCWD, staging->temporary, AT_FDCWD, staging->final, RENAME_NOREPLACE) == 0)
		return GW_OK;
	/* a file system without RENAME_NOREPLACE: check, then rename */
	if (errno == EINVAL || gw_syscall_missing(errno)) {
		gw_status status = check_final(staging->final, false);
		if (status != GW_OK || rename(staging->temporary, staging->final) == 0)
			return status;
	}
	if (errno == EEXIST)
		return gw_fail(GW_EXISTS,
			       "%s: another program has created it meanwhile: remove it or choose another name",
			       staging->final);
	return gw_fail_errno(GW_IO, errno, "rename %s to %s", staging->temporary, staging->final);
}

static gw_status sync_parent(struct gw_staging *staging)
{
	char *slash = strrchr(staging->final, '/');
	char parent[PATH_MAX] = ".";
	if (slash)
		snprintf(parent, sizeof(parent), "%.*s", slash == staging->final ? 1 : (int)(slash - staging->final),
			 staging->final);
	return gw_sync_path(parent, O_DIRECTORY);
}

/* First keeps files that users have put there during the replacement. If that fails, the folder stays under a name
 * that no sweep removes. */
static void remove_replaced(const struct gw_staging *staging, const char *leftover)
{
	struct gw_removal failure;
	struct gw_error_kept kept;
	gw_error_keep(&kept);
	char *moved_to = NULL;
	if (staging->owned && gw_owned_keep_others(staging->owned, leftover, staging->final, true)) {
		moved_to = old_name(staging->final);
		if (moved_to && rename(leftover, moved_to) == 0)
			leftover = moved_to;
		gw_log(GW_LOG_WARN, "%s is in place, but the content that it replaced stays as %s: %s", staging->final,
		       leftover, gw_last_error());
	} else if (gw_remove_path(leftover, &failure)) {
		gw_log(GW_LOG_WARN, "%s is in place, but the folder that it replaced remains as %s", staging->final,
		       leftover);
	}
	gw_free(moved_to);
	gw_error_restore(&kept);
}

gw_status gw_staging_commit(struct gw_staging *staging)
{
	char *old = NULL;
	staging_close_held(staging->slot, 1); /* frees descriptors for gw_sync_tree */
	gw_status status = gw_sync_tree(staging->temporary);
	if (status != GW_OK)
		gw_context(status, "write %s", staging->final);
	else if (staging->owned)
		status = gw_owned_keep_others(staging->owned, staging->final, staging->temporary, false);
	if (status == GW_OK)
		status = staging->replace ? rename_replacing(staging, &old) : rename_new(staging);
	if (status != GW_OK) {
		gw_staging_abort(staging);
		return status;
	}
	status = sync_parent(staging);
	if (status != GW_OK)
		gw_context(status, "%s is in place, but a crash of the machine may undo that", staging->final);
	if (staging->replace)
		remove_replaced(staging, old ? old : staging->temporary);
	gw_free(old);
	free_staging(staging);
	return status;
}

void gw_staging_abort(struct gw_staging *staging)
{
	if (!staging)
		return;
	struct gw_removal failure;
	staging_close_held(staging->slot, 1);
	if (gw_remove_path(staging->temporary, &failure))
		gw_log(GW_LOG_WARN, "cannot remove %s: %s \"%s\" failed", staging->temporary, failure.verb,
		       failure.name);
	free_staging(staging);
}

gw_status gw_remove_tree(const char *folder)
{
	struct gw_removal failure;
	if (gw_remove_path(folder, &failure))
		return gw_fail_errno(GW_IO, failure.error, "remove %s: cannot %s \"%s\"", folder, failure.verb,
				     failure.name);
	return GW_OK;
}
