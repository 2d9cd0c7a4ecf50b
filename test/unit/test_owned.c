/* A folder that is replaced: files of its program are removed; files of its users move to the new folder, of any kind
 * and at any depth. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "core/numbers/rng.h"
#include "test/support/alloc_fault.h"
#include "test/support/must.h"
#include "test/support/sandbox.h"
#include "test/support/scratch.h"

#define TREES 200
#define FILES 24

static char root[64];

static const char *in(const char *folder, const char *name)
{
	static char paths[4][512];
	static unsigned next;
	char *path = paths[next++ % 4];
	snprintf(path, sizeof(paths[0]), "%s/%s/%s", root, folder, name);
	return path;
}

static void put(const char *folder, const char *name)
{
	char path[512];
	snprintf(path, sizeof(path), "%s", in(folder, name));
	for (char *slash = strchr(path + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
		*slash = '/';
	}
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, name, strlen(name)), strlen(name));
	close(fd);
}

static ino_t inode(const char *folder, const char *name)
{
	struct stat info;
	return lstat(in(folder, name), &info) == 0 ? info.st_ino : 0;
}

static int files_seen;

static int count_file(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
	(void)path;
	(void)kind;
	(void)walk;
	files_seen += !S_ISDIR(info->st_mode);
	return 0;
}

static int files_of(const char *folder)
{
	files_seen = 0;
	assert_int_equal(nftw(in(folder, ""), count_file, 16, FTW_PHYS), 0);
	return files_seen;
}

static void forget(void)
{
	must(gw_remove_tree(in("old", "")));
	must(gw_remove_tree(in("new", "")));
}

static void random_trees(void **state)
{
	(void)state;
	static const char *const folders[] = {"",       "tensor0/",      "tensor0/part0/", "tensor0/part10/",
					      "notes/", "notes/deep/er/"};
	for (uint64_t tree = 0; tree < TREES; tree++) {
		struct gw_owned *owned;
		char names[FILES][64];
		bool mine[FILES];
		int others = 0, fresh = 0;
		must(gw_owned_create(&owned));
		for (uint64_t i = 0; i < FILES; i++) {
			uint64_t draw = gw_mix64(tree * FILES + i);
			snprintf(names[i], sizeof(names[i]), "%sfile%d", folders[draw % 6], (int)i);
			mine[i] = draw >> 8 & 1 && tree % 5 != 0;
			put("old", names[i]);
			if (mine[i])
				must(gw_owned_add(owned, names[i]));
			if (mine[i] && draw >> 9 & 1) { /* the program writes it again */
				put("new", names[i]);
				fresh++;
			}
			others += !mine[i];
		}
		put("new", "index");
		must(gw_owned_keep_others(owned, in("old", ""), in("new", ""), false));
		for (int i = 0; i < FILES; i++) {
			assert_int_not_equal(inode("old", names[i]), 0);
			assert_true((inode("old", names[i]) == inode("new", names[i])) == !mine[i]);
		}
		assert_int_equal(files_of("new"), others + fresh + 1);
		/* A second call changes nothing. */
		must(gw_owned_keep_others(owned, in("old", ""), in("new", ""), true));
		assert_int_equal(files_of("new"), others + fresh + 1);
		gw_owned_destroy(owned);
		forget();
	}
}

static void odd_ones(void **state)
{
	(void)state;
	struct gw_owned *owned;
	struct stat info;
	char target[8] = "";
	must(gw_owned_create(&owned));
	must(gw_owned_add(owned, "part0/array"));
	must(gw_owned_add(owned, "part1/array"));
	put("old", "part0/array");
	put("elsewhere", "array");
	assert_int_equal(symlink("../elsewhere", in("old", "part1")), 0);
	assert_int_equal(symlink("nowhere", in("old", "part0/dangling")), 0);
	assert_int_equal(mkfifo(in("old", "pipe"), 0600), 0);
	assert_int_equal(mkdir(in("old", "empty"), 0750), 0);
	put("old", "closed/file");
	assert_int_equal(chmod(in("old", "closed"), 0500), 0);
	put("old", "part0/array.bak/array"); /* the name begins like an owned file's, but is the user's */
	put("new", "index");
	must(gw_owned_keep_others(owned, in("old", ""), in("new", ""), false));
	assert_int_equal(files_of("new"), 5);
	assert_int_equal(inode("new", "part1"), 0);
	assert_int_equal(readlink(in("new", "part0/dangling"), target, sizeof(target)), 7);
	assert_int_equal(inode("new", "pipe"), inode("old", "pipe"));
	assert_int_equal(lstat(in("new", "empty"), &info), 0);
	assert_int_equal(info.st_mode & 0777, 0750);
	assert_int_equal(lstat(in("new", "closed"), &info), 0);
	assert_int_equal(info.st_mode & 0777, 0500);
	assert_int_equal(inode("new", "closed/file"), inode("old", "closed/file"));
	assert_int_not_equal(inode("elsewhere", "array"), 0);
	gw_owned_destroy(owned);
	must(gw_owned_create(&owned));
	must(gw_owned_keep_others(owned, in("absent", ""), in("new", ""), false));
	gw_owned_destroy(owned);
	chmod(in("old", "closed"), 0700);
	chmod(in("new", "closed"), 0700);
	forget();
}

static void names_that_both_have(void **state)
{
	(void)state;
	static const struct {
		const char *old, *new;
	} pairs[] = {{"a", "a"}, {"a", "a/b"}, {"a/b", "a"}};
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		struct gw_owned *owned;
		must(gw_owned_create(&owned));
		must(gw_owned_add(owned, "mine"));
		put("old", pairs[i].old);
		put("new", pairs[i].new);
		assert_int_equal(gw_owned_keep_others(owned, in("old", ""), in("new", ""), false), GW_EXISTS);
		assert_non_null(strstr(gw_last_error(), "move it elsewhere"));
		assert_non_null(strstr(gw_last_error(), "old"));
		gw_owned_destroy(owned);
		forget();
	}
}

/* --- Like a staging. --- */

static gw_status replace(bool with_owned)
{
	struct gw_staging *staging;
	struct gw_owned *owned = NULL;
	gw_status status = gw_owned_create(&owned);
	if (status == GW_OK)
		status = gw_owned_add(owned, "index");
	if (status == GW_OK)
		status = gw_owned_add(owned, "data/old");
	if (status == GW_OK)
		status = gw_staging_begin(in("final", ""), true, &staging);
	if (status != GW_OK) {
		gw_owned_destroy(owned);
		return status;
	}
	if (with_owned)
		gw_staging_keep_others(staging, owned);
	else
		gw_owned_destroy(owned);
	status = gw_staging_mkdir(staging, "data");
	if (status != GW_OK) {
		gw_staging_abort(staging);
		return status;
	}
	char path[256];
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", gw_staging_path(staging), i ? "data/new" : "index");
		close(open(path, O_WRONLY | O_CREAT, 0644));
	}
	return gw_staging_commit(staging);
}

static void prepare(void)
{
	must(gw_remove_tree(in("final", "")));
	put("final", "index");
	put("final", "data/old");
	put("final", "data/mine");
	put("final", "model.pt");
}

static int entries_of_root(void)
{
	struct dirent **list;
	int count = scandir(root, &list, NULL, NULL);
	for (int i = 0; i < count; i++) {
		if (strstr(list[i]->d_name, "final") != list[i]->d_name || strcmp(list[i]->d_name, "final") == 0)
			list[i]->d_name[0] = '.';
	}
	int left = 0;
	for (int i = 0; i < count; i++) {
		left += list[i]->d_name[0] != '.';
		free(list[i]);
	}
	free(list);
	return left;
}

static void a_replaced_folder(void **state)
{
	(void)state;
	prepare();
	ino_t model = inode("final", "model.pt"), mine = inode("final", "data/mine"), index = inode("final", "index");
	must(replace(true));
	assert_int_equal(inode("final", "model.pt"), model);
	assert_int_equal(inode("final", "data/mine"), mine);
	assert_int_equal(inode("final", "data/old"), 0);
	assert_int_not_equal(inode("final", "index"), index);
	assert_int_equal(files_of("final"), 4);
	assert_int_equal(entries_of_root(), 0);
	must(replace(false)); /* all of it */
	assert_int_equal(files_of("final"), 2);
	must(gw_remove_tree(in("final", "")));
	must(replace(true));
	assert_int_equal(files_of("final"), 2);
}

static void one_file_that_cannot_be_kept_keeps_all(void **state)
{
	(void)state;
	prepare();
	put("final", "data/new");
	assert_int_equal(replace(true), GW_EXISTS);
	assert_int_equal(files_of("final"), 5);
	assert_int_equal(entries_of_root(), 0);
}

static int replace_once(void *context)
{
	(void)context;
	return (int)replace(true);
}

/* File systems without hard links; without an exchange of names. */
static void other_file_systems(void **state)
{
	(void)state;
	struct sandbox_rule rule = {.call = SYS_linkat, .error = EPERM};
	prepare();
	assert_int_equal(sandbox_run(&rule, 1, false, replace_once, NULL), GW_EXISTS);
	assert_int_equal(files_of("final"), 4);
	assert_int_equal(entries_of_root(), 0);
	rule = (struct sandbox_rule){.call = SYS_renameat2, .error = EINVAL};
	assert_int_equal(sandbox_run(&rule, 1, false, replace_once, NULL), 0);
	assert_int_not_equal(inode("final", "data/mine"), 0);
	assert_int_equal(files_of("final"), 4);
	assert_int_equal(entries_of_root(), 0);
}

static gw_status life(void *context)
{
	(void)context;
	prepare();
	gw_status status = replace(true);
	assert_int_not_equal(inode("final", "model.pt"), 0);
	assert_int_not_equal(inode("final", "data/mine"), 0);
	return status;
}

static void shortages(void **state)
{
	(void)state;
	assert_true(gw_fault_each(life, NULL) > 0);
}

static int begin(void **state)
{
	(void)state;
	gw_scratch_make_in_memory("owned", root);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_trees),
		cmocka_unit_test(odd_ones),
		cmocka_unit_test(names_that_both_have),
		cmocka_unit_test(a_replaced_folder),
		cmocka_unit_test(one_file_that_cannot_be_kept_keeps_all),
		cmocka_unit_test(other_file_systems),
		cmocka_unit_test(shortages),
	};
	return cmocka_run_group_tests_name("owned", tests, begin, NULL);
}
