/* Keeps files that a program has not written, when the program replaces their folder.
 *
 *   each name in `old`:  an owned file             -> skipped
 *                        a folder with owned files -> each of its names in turn
 *                        any other file            -> a link in `new`
 *                        any other folder          -> a new folder in `new`, with its contents
 *   then fsync of the folders of `new` that received a name
 *
 * Files are linked, not moved. If the process ends at any moment, a user's file is therefore in the old folder, in the
 * new folder or in both. Programs that write to the file can continue. Fails if a name exists in both folders, if the
 * file system has no links, and if a folder cannot be read or made.
 */
#include "core/files/owned.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/files/replace.h"
#include "core/files/sync_tree.h"
#include "core/memory/alloc.h"
#include "core/memory/vec.h"

#define DEPTH_MAX 64 /* nested folders */

struct gw_owned {
	struct gw_vec text;   /* the paths, each with its terminating zero */
	struct gw_vec starts; /* offsets of the paths in text; after sorting, in the order of the paths */
	size_t used, count;
	bool sorted;
};

struct owned_walk {
	struct gw_owned *owned;
	bool again;
	char old[PATH_MAX], new[PATH_MAX]; /* of the current entry */
	size_t old_root, new_root;         /* lengths of the parts before the relative path */
};

gw_status gw_owned_create(struct gw_owned **out)
{
	*out = gw_calloc(1, sizeof(**out));
	return *out ? GW_OK : GW_NO_MEMORY;
}

void gw_owned_destroy(struct gw_owned *owned)
{
	if (!owned)
		return;
	gw_vec_free(&owned->text);
	gw_vec_free(&owned->starts);
	gw_free(owned);
}

gw_status gw_owned_add(struct gw_owned *owned, const char *path)
{
	size_t bytes = strlen(path) + 1;
	gw_status status = gw_vec_reserve(&owned->text, owned->used + bytes);
	if (status == GW_OK)
		status = gw_vec_reserve(&owned->starts, (owned->count + 1) * sizeof(size_t));
	if (status != GW_OK)
		return status;
	memcpy((char *)owned->text.data + owned->used, path, bytes);
	((size_t *)owned->starts.data)[owned->count++] = owned->used;
	owned->used += bytes;
	owned->sorted = false;
	return GW_OK;
}

static const char *owned_path(const struct gw_owned *owned, size_t number)
{
	return (const char *)owned->text.data + ((const size_t *)owned->starts.data)[number];
}

const char *gw_owned_first(const struct gw_owned *owned, const char *folder,
			   bool (*test)(const struct stat *file, const void *context), const void *context)
{
	char path[PATH_MAX];
	struct stat file;
	for (size_t i = 0; i < owned->count; i++) {
		const int bytes = snprintf(path, sizeof(path), "%s/%s", folder, owned_path(owned, i));
		if (bytes > 0 && (size_t)bytes < sizeof(path) && stat(path, &file) == 0 && test(&file, context))
			return owned_path(owned, i);
	}
	return NULL;
}

static int owned_compare(const void *a, const void *b, void *text)
{
	return strcmp((const char *)text + *(const size_t *)a, (const char *)text + *(const size_t *)b);
}

/* Whether `path` is an owned file; with `below`, and a slash at the path's end, whether an owned file lies below it. */
static bool owned_has(struct gw_owned *owned, const char *path, bool below)
{
	size_t low = 0, high = owned->count, length = strlen(path);
	if (!owned->sorted && owned->count)
		qsort_r(owned->starts.data, owned->count, sizeof(size_t), owned_compare, owned->text.data);
	owned->sorted = true;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (strcmp(owned_path(owned, middle), path) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == owned->count)
		return false;
	return below ? strncmp(owned_path(owned, low), path, length) == 0 : strcmp(owned_path(owned, low), path) == 0;
}

static gw_status owned_fail(const struct owned_walk *walk, int error)
{
	if (error == EEXIST)
		return gw_fail(GW_EXISTS,
			       "%s: no file of the replaced content, but a new file needs its name: move it elsewhere",
			       walk->old);
	if (error == EPERM || error == EXDEV || error == EMLINK || error == EOPNOTSUPP || error == ENOSYS)
		return gw_fail(GW_EXISTS,
			       "%s: no file of the replaced content, and it cannot be kept (%s): move it elsewhere",
			       walk->old, strerror(error));
	return gw_fail_errno(GW_IO, error, "%s: cannot be kept", walk->old);
}

static gw_status owned_link(struct owned_walk *walk)
{
	for (int tries = 0; linkat(AT_FDCWD, walk->old, AT_FDCWD, walk->new, 0) != 0; tries++) {
		int error = errno;
		struct stat info;
		if (error == ENOENT && lstat(walk->old, &info) != 0)
			return GW_OK; /* its owner has removed it meanwhile */
		if (error == EEXIST && walk->again)
			return GW_OK;
		if (error != ENOENT || tries)
			return owned_fail(walk, error);
		gw_status status = gw_folders_make(walk->new, walk->new_root, 0777);
		if (status != GW_OK)
			return status;
	}
	return GW_OK;
}

static gw_status owned_walk_folder(struct owned_walk *walk, int depth, bool *changed);

/* Copies a folder that contains no owned file. */
static gw_status owned_copy_folder(struct owned_walk *walk, const struct stat *info, int depth)
{
	bool changed;
	struct stat there;
	gw_status status = gw_folders_make(walk->new, walk->new_root, 0777);
	if (status == GW_OK && mkdir(walk->new, 0700) != 0 &&
	    (errno != EEXIST || lstat(walk->new, &there) != 0 || !S_ISDIR(there.st_mode)))
		status = owned_fail(walk, errno);
	if (status == GW_OK)
		status = owned_walk_folder(walk, depth, &changed);
	if (status == GW_OK && chmod(walk->new, info->st_mode & 07777) != 0)
		status = gw_fail_errno(GW_IO, errno, "%s: cannot be kept", walk->old);
	return status;
}

/* Handles the entry at walk->old. *changed: `new` has received a name for it. */
static gw_status owned_walk_entry(struct owned_walk *walk, int depth, bool *changed)
{
	struct stat info;
	char below[PATH_MAX + 1];
	const char *path = walk->old + walk->old_root;
	if (lstat(walk->old, &info) != 0)
		return errno == ENOENT ? GW_OK : gw_fail_errno(GW_IO, errno, "%s", walk->old);
	snprintf(below, sizeof(below), "%s/", path);
	bool holds = owned_has(walk->owned, below, true), is_folder = S_ISDIR(info.st_mode), inside = false;
	if (is_folder && holds) {
		gw_status status = owned_walk_folder(walk, depth, &inside);
		*changed = *changed || inside;
		return status;
	}
	if (holds || (!is_folder && owned_has(walk->owned, path, false)))
		return GW_OK;
	*changed = true;
	return is_folder ? owned_copy_folder(walk, &info, depth) : owned_link(walk);
}

static gw_status owned_walk_folder(struct owned_walk *walk, int depth, bool *changed)
{
	size_t old_bytes = strlen(walk->old), new_bytes = strlen(walk->new);
	*changed = false;
	if (depth == DEPTH_MAX)
		return gw_fail(GW_LIMIT, "%s: folders are nested more than %d deep", walk->old, DEPTH_MAX);
	DIR *folder = opendir(walk->old);
	if (!folder)
		return errno == ENOENT ? GW_OK : gw_fail_errno(GW_IO, errno, "cannot list %s", walk->old);
	gw_status status = GW_OK;
	for (struct dirent *entry; status == GW_OK && (errno = 0, entry = readdir(folder));) {
		size_t bytes = strlen(entry->d_name) + 1;
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (old_bytes + 1 + bytes > PATH_MAX || new_bytes + 1 + bytes > PATH_MAX) {
			status = gw_fail(GW_LIMIT, "%s/%s: the path is too long", walk->old, entry->d_name);
			break;
		}
		walk->old[old_bytes] = walk->new[new_bytes] = '/';
		memcpy(walk->old + old_bytes + 1, entry->d_name, bytes);
		memcpy(walk->new + new_bytes + 1, entry->d_name, bytes);
		status = owned_walk_entry(walk, depth + 1, changed);
		walk->old[old_bytes] = walk->new[new_bytes] = '\0';
	}
	if (status == GW_OK && errno)
		status = gw_fail_errno(GW_IO, errno, "cannot list %s", walk->old);
	closedir(folder);
	return status == GW_OK && *changed ? gw_sync_path(walk->new, O_DIRECTORY) : status;
}

gw_status gw_owned_keep_others(struct gw_owned *owned, const char *from, const char *to, bool again)
{
	bool changed;
	size_t from_bytes = strlen(from), to_bytes = strlen(to);
	if (from_bytes + 2 > PATH_MAX || to_bytes + 2 > PATH_MAX)
		return gw_fail(GW_LIMIT, "%s: the path is too long", from);
	struct owned_walk *walk = gw_calloc(1, sizeof(*walk));
	if (!walk)
		return GW_NO_MEMORY;
	walk->owned = owned;
	walk->again = again;
	memcpy(walk->old, from, from_bytes + 1);
	memcpy(walk->new, to, to_bytes + 1);
	walk->old_root = from_bytes + 1;
	walk->new_root = to_bytes + 1;
	gw_status status = owned_walk_folder(walk, 0, &changed);
	gw_free(walk);
	return status;
}
