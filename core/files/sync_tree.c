/* fsync of a tree.
 *
 *   list the entries; the kernel begins to write each file -> threads fsync all of them -> the first failure, if any
 *
 * Syncing one file after the other would wait for the disk once per file. Here all data is being written before the
 * first wait, one commit of the journal serves all metadata, and the waits overlap. On a busy disk 300 small files took
 * a tenth of the time. syncfs is as fast, but it waits for writes of other programs, and reports no errors before Linux
 * 5.8.
 */
#include "core/files/sync_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "core/memory/vec.h"
#include "core/system/parallel.h"

#define DEPTH_MAX   64  /* nested folders */
#define THREADS     16u /* they wait for the disk, not for processors */
#define ENTRY_FLAGS (O_NOFOLLOW | O_NONBLOCK)

struct tree {
	struct gw_vec text; /* the paths, each with its terminating zero */
	struct gw_vec starts;
	uint64_t count;
	size_t used; /* bytes of text */
};

static gw_status sync_tree_failed(const char *verb, const char *path)
{
	return gw_fail_errno(GW_IO, errno, "cannot %s %s", verb, path);
}

static gw_status add_path(struct tree *tree, const char *path)
{
	size_t bytes = strlen(path) + 1;
	gw_status status = gw_vec_reserve(&tree->text, tree->used + bytes);
	if (status == GW_OK)
		status = gw_vec_reserve(&tree->starts, (tree->count + 1) * sizeof(size_t));
	if (status != GW_OK)
		return status;
	memcpy((char *)tree->text.data + tree->used, path, bytes);
	((size_t *)tree->starts.data)[tree->count++] = tree->used;
	tree->used += bytes;
	return GW_OK;
}

/* Only advice: fsync reports errors. */
static void start_writing(const char *path)
{
	int file = open(path, O_RDONLY | O_CLOEXEC | ENTRY_FLAGS);
	if (file < 0)
		return;
	sync_file_range(file, 0, 0, SYNC_FILE_RANGE_WRITE);
	close(file);
}

static gw_status sync_tree_list(struct tree *tree, const char *folder)
{
	FTS *walk = fts_open((char *const[]){(char *)folder, NULL}, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	if (!walk)
		return sync_tree_failed("list", folder);
	gw_status status = GW_OK;
	for (const FTSENT *entry; status == GW_OK && (errno = 0, entry = fts_read(walk));) {
		bool file = entry->fts_info == FTS_F;
		errno = entry->fts_errno;
		if (entry->fts_info == FTS_NS || entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR)
			status = sync_tree_failed("list", entry->fts_path);
		else if (entry->fts_info == FTS_D && entry->fts_level == DEPTH_MAX)
			status = gw_fail(GW_LIMIT, "%s: folders are nested more than %d deep", entry->fts_path,
					 DEPTH_MAX);
		else if (file || entry->fts_info == FTS_D) /* a link is stored in its folder */
			status = add_path(tree, entry->fts_path);
		if (file)
			start_writing(entry->fts_path);
	}
	if (status == GW_OK && errno)
		status = sync_tree_failed("list", folder);
	fts_close(walk);
	return status;
}

gw_status gw_sync_path(const char *path, int flags)
{
	gw_status status = GW_OK;
	int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
	if (fd < 0)
		return sync_tree_failed("open", path);
	/* EINVAL: a file system that cannot sync folders, which is no failure. */
	if (fsync(fd) && errno != EINVAL)
		status = sync_tree_failed("write", path);
	close(fd);
	return status;
}

static gw_status sync_entries(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct tree *tree = context;
	gw_status status = GW_OK;
	(void)thread;
	for (uint64_t i = begin; i < end && status == GW_OK; i++)
		status = gw_sync_path((const char *)tree->text.data + ((const size_t *)tree->starts.data)[i],
				      ENTRY_FLAGS);
	return status;
}

gw_status gw_sync_tree(const char *folder)
{
	struct tree tree = {0};
	gw_status status = sync_tree_list(&tree, folder);
	if (status == GW_OK)
		status = gw_parallel_for(THREADS, tree.count, 1, sync_entries, &tree);
	gw_vec_free(&tree.text);
	gw_vec_free(&tree.starts);
	return status;
}
