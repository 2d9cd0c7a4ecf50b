/* Removes a tree without allocation, so that a signal handler can do it: it uses only system calls.
 *
 *   unlink -> a folder: list and remove its entries through its descriptor, then the folder
 *
 * Links are removed, not followed. One descriptor is open for each level of folders.
 */
#include "core/files/remove_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEPTH_MAX 64 /* nested folders that a removal follows */

static int remove_tree_note_failure(struct gw_removal *failure, const char *verb, const char *name)
{
	failure->error = errno;
	failure->verb = verb;
	size_t length = strnlen(name, sizeof(failure->name) - 1);
	memcpy(failure->name, name, length);
	failure->name[length] = 0;
	return -1;
}

static int remove_entry(int parent, const char *name, int depth, struct gw_removal *failure);

static int remove_entries(int folder, int depth, struct gw_removal *failure)
{
	char entries[2048] __attribute__((aligned(8)));
	for (;;) {
		long bytes = syscall(SYS_getdents64, folder, entries, sizeof(entries));
		if (bytes <= 0)
			return bytes == 0 ? 0 : remove_tree_note_failure(failure, "list", ".");
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

static int remove_tree_open_folder(int parent, const char *name, int depth)
{
	if (depth > DEPTH_MAX) {
		errno = ELOOP;
		return -1;
	}
	return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int remove_entry(int parent, const char *name, int depth, struct gw_removal *failure)
{
	if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM && errno != ENOTEMPTY)
		return remove_tree_note_failure(failure, "remove", name);
	/* Removing entries while listing a folder can hide others: list again until the folder is empty. */
	for (int round = 0; round < 16; round++) {
		if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return 0;
		if (errno != ENOTEMPTY && errno != EEXIST)
			break;
		int folder = remove_tree_open_folder(parent, name, depth);
		if (folder < 0)
			break;
		int result = remove_entries(folder, depth + 1, failure);
		close(folder);
		if (result)
			return result;
	}
	return remove_tree_note_failure(failure, "remove", name);
}

int gw_remove_path(const char *path, struct gw_removal *failure)
{
	return remove_entry(AT_FDCWD, path, 0, failure);
}
