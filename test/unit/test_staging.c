/* Staging: the folder appears completely, or not at all. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "test/support/alloc_fault.h"
#include "test/support/place.h"
#include "test/support/sandbox.h"

static bool has(const char *folder, const char *name, const char *text)
{
	char path[512], found[64] = "";
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *file = fopen(path, "r");
	if (!file)
		return false;
	size_t bytes = fread(found, 1, sizeof(found) - 1, file);
	fclose(file);
	return bytes == strlen(text) && strcmp(found, text) == 0;
}

static void test_commit(void **state)
{
	struct place *place = *state;
	struct gw_staging *staging;
	assert_int_equal(gw_staging_begin(place->final, false, &staging), GW_OK);
	assert_int_equal(access(place->final, F_OK), -1);
	assert_int_equal(strncmp(gw_staging_path(staging), place->final, strlen(place->final)), 0);
	assert_int_equal(gw_staging_mkdir(staging, "part0/node/paper"), GW_OK);
	assert_int_equal(gw_staging_mkdir(staging, "part0/node/author/"), GW_OK);
	assert_int_equal(gw_staging_mkdir(staging, "part0"), GW_OK);
	place_put(gw_staging_path(staging), "part0/node/paper/feat.npy", "12345");
	char link[256];
	snprintf(link, sizeof(link), "%s/link", gw_staging_path(staging));
	assert_int_equal(symlink("/nowhere", link), 0); /* a file that cannot be opened need not be synced */
	assert_int_equal(gw_staging_commit(staging), GW_OK);
	assert_true(has(place->final, "part0/node/paper/feat.npy", "12345"));
	assert_int_equal(place_entries(place->root), 1);
}

static void test_trailing_slashes_and_relative(void **state)
{
	struct place *place = *state;
	char name[256], old[512];
	snprintf(name, sizeof(name), "%s///", place->final);
	struct gw_staging *staging;
	assert_int_equal(gw_staging_begin(name, false, &staging), GW_OK);
	assert_int_equal(gw_staging_commit(staging), GW_OK);
	assert_int_equal(access(place->final, F_OK), 0);
	assert_non_null(getcwd(old, sizeof(old)));
	assert_int_equal(chdir(place->root), 0);
	assert_int_equal(gw_staging_begin("other", false, &staging), GW_OK);
	assert_int_equal(gw_staging_commit(staging), GW_OK);
	assert_int_equal(chdir(old), 0);
	assert_int_equal(place_entries(place->root), 2);
	static const char *const bad[] = {"", "/", ".", "..", "/tmp/.."};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(gw_staging_begin(bad[i], true, &staging), GW_INVALID);
		assert_null(staging);
	}
}

static void test_abort(void **state)
{
	struct place *place = *state;
	struct gw_staging *staging;
	assert_int_equal(gw_staging_begin(place->final, false, &staging), GW_OK);
	assert_int_equal(gw_staging_mkdir(staging, "a/b"), GW_OK);
	place_put(gw_staging_path(staging), "a/b/c", "x");
	gw_staging_abort(staging);
	gw_staging_abort(NULL);
	assert_int_equal(place_entries(place->root), 0);
}

static void test_paths_stay_inside(void **state)
{
	struct place *place = *state;
	struct gw_staging *staging;
	assert_int_equal(gw_staging_begin(place->final, false, &staging), GW_OK);
	static const char *const bad[] = {"../x", "a/../../x", "/tmp/x", "..", "a/..", ""};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(gw_staging_mkdir(staging, bad[i]), GW_INVALID);
	assert_int_equal(gw_staging_mkdir(staging, "..a/b.."), GW_OK);
	gw_staging_abort(staging);
	assert_int_equal(place_entries(place->root), 0);
}

static void test_exists(void **state)
{
	struct place *place = *state;
	assert_int_equal(mkdir(place->final, 0755), 0);
	struct gw_staging *staging;
	assert_int_equal(gw_staging_begin(place->final, false, &staging), GW_EXISTS);
	assert_null(staging);
	assert_non_null(strstr(gw_last_error(), place->final));
	assert_int_equal(rmdir(place->final), 0);
	place_put(place->root, "graph", "a file");
	assert_int_equal(gw_staging_begin(place->final, true, &staging), GW_EXISTS);
	assert_true(has(place->root, "graph", "a file"));
}

/* Another process creates the folder between begin and commit: its folder stays. */
static void test_exists_at_commit(void **state)
{
	struct place *place = *state;
	struct gw_staging *staging;
	assert_int_equal(gw_staging_begin(place->final, false, &staging), GW_OK);
	assert_int_equal(mkdir(place->final, 0755), 0);
	assert_int_equal(gw_staging_commit(staging), GW_EXISTS);
	assert_int_equal(place_entries(place->root), 1);
}

static void test_replace(void **state)
{
	struct place *place = *state;
	struct gw_staging *staging;
	for (int i = 0; i < 3; i++) { /* the first has nothing to replace */
		char text[16];
		snprintf(text, sizeof(text), "version %d", i);
		assert_int_equal(gw_staging_begin(place->final, true, &staging), GW_OK);
		assert_int_equal(gw_staging_mkdir(staging, "sub"), GW_OK);
		place_put(gw_staging_path(staging), "sub/file", text);
		assert_int_equal(gw_staging_commit(staging), GW_OK);
		assert_true(has(place->final, "sub/file", text));
		assert_int_equal(place_entries(place->root), 1);
	}
}

static int replace_once(void *context)
{
	struct place *place = context;
	struct gw_staging *staging;
	if (gw_staging_begin(place->final, true, &staging))
		return 1;
	place_put(gw_staging_path(staging), "file", "new");
	if (gw_staging_commit(staging))
		return 2;
	return has(place->final, "file", "new") && place_entries(place->root) == 1 ? 0 : 3;
}

/* A file system without exchange and no-replace, a kernel without the call, and a filter that refuses it. */
static void test_plain_rename(void **state)
{
	struct place *place = *state;
	static const int errors[] = {EINVAL, ENOSYS, EPERM};
	for (int i = 0; i < 3; i++) {
		const struct sandbox_rule rule = {.call = SYS_renameat2, .error = errors[i]};
		assert_int_equal(sandbox_run(&rule, 1, false, replace_once, place), 0);
		place_put(place->final, "file", "old");
		assert_int_equal(sandbox_run(&rule, 1, false, replace_once, place), 0);
		assert_int_equal(gw_remove_tree(place->final), GW_OK);
	}
}

static int rename_fails(void *context)
{
	struct place *place = context;
	struct gw_staging *staging;
	if (gw_staging_begin(place->final, true, &staging))
		return 100;
	place_put(gw_staging_path(staging), "file", "new");
	return (int)gw_staging_commit(staging);
}

static void test_failed_commit_leaves_only_the_old_folder(void **state)
{
	struct place *place = *state;
	assert_int_equal(mkdir(place->final, 0755), 0);
	place_put(place->final, "file", "old");
	static const struct {
		long call;
		int error;
		gw_status status;
	} faults[] = {{SYS_fsync, EIO, GW_IO},
		      {SYS_fsync, ENOSPC, GW_NO_SPACE},
		      {SYS_fsync, EDQUOT, GW_NO_SPACE},
		      {SYS_renameat2, EACCES, GW_IO}};
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
		const struct sandbox_rule rule = {.call = faults[i].call, .error = faults[i].error};
		assert_int_equal(sandbox_run(&rule, 1, false, rename_fails, place), faults[i].status);
		assert_true(has(place->final, "file", "old"));
		assert_int_equal(place_entries(place->root), 1);
	}
}

static void test_no_parent(void **state)
{
	struct place *place = *state;
	char path[256];
	snprintf(path, sizeof(path), "%s/no/where", place->root);
	struct gw_staging *staging;
	assert_int_equal(gw_staging_begin(path, false, &staging), GW_NOT_FOUND);
	assert_null(staging);
	assert_non_null(strstr(gw_last_error(), "mkdir -p"));
}

/* A full disk: a small tmpfs in a separate mount namespace. */
static int fill_disk(void *context)
{
	struct place *place = context;
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", place->root, "tmpfs", 0, "size=64k,nr_inodes=4"))
		return 77;
	struct gw_staging *staging;
	if (gw_staging_begin(place->final, false, &staging))
		return 1;
	gw_status status = gw_staging_mkdir(staging, "a/b/c/d/e/f");
	bool named = strstr(gw_last_error(), "No space") != NULL;
	gw_staging_abort(staging);
	return status == GW_NO_SPACE && named && place_entries(place->root) == 0 ? 0 : 2;
}

static void test_no_space(void **state)
{
	int result = sandbox_run(NULL, 0, false, fill_disk, *state);
	if (result == 77)
		skip(); /* not allowed to mount */
	assert_int_equal(result, 0);
}

static void test_cleanup(void **state)
{
	struct place *place = *state;
	struct gw_staging *first, *second, *done;
	char path[256];
	assert_int_equal(gw_staging_begin(place->final, false, &first), GW_OK);
	snprintf(path, sizeof(path), "%s/second", place->root);
	assert_int_equal(gw_staging_begin(path, false, &second), GW_OK);
	snprintf(path, sizeof(path), "%s/done", place->root);
	assert_int_equal(gw_staging_begin(path, false, &done), GW_OK);
	assert_int_equal(gw_staging_mkdir(first, "a/b"), GW_OK);
	place_put(gw_staging_path(first), "a/b/c", "x");
	assert_int_equal(gw_staging_commit(done), GW_OK);
	pid_t child = fork();
	if (child == 0) { /* a child must not remove its parent's files */
		gw_staging_cleanup();
		_exit(0);
	}
	waitpid(child, NULL, 0);
	assert_int_equal(place_entries(place->root), 3);
	gw_staging_cleanup();
	assert_int_equal(place_entries(place->root), 1);
	assert_int_equal(gw_staging_commit(first), GW_IO); /* its folder is gone */
	gw_staging_abort(second);
	gw_staging_cleanup();
	assert_int_equal(place_entries(place->root), 1);
}

static void on_signal(int number)
{
	(void)number;
	gw_staging_cleanup(); /* NOLINT(bugprone-signal-handler): system calls only, which is what is tested */
	_exit(42);
}

static void test_signal_handler_removes_all_files(void **state)
{
	struct place *place = *state;
	int ready[2];
	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	if (child == 0) {
		struct gw_staging *staging;
		signal(SIGTERM, on_signal);
		if (gw_staging_begin(place->final, false, &staging))
			_exit(1);
		for (unsigned i = 0;; i++) {
			char name[32];
			snprintf(name, sizeof(name), "file%u", i % 1000);
			place_put(gw_staging_path(staging), name, "x");
			if (i == 300 && write(ready[1], "r", 1) != 1)
				_exit(2);
		}
	}
	char byte;
	assert_int_equal(read(ready[0], &byte, 1), 1);
	kill(child, SIGTERM);
	int status;
	waitpid(child, &status, 0);
	close(ready[0]);
	close(ready[1]);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
	assert_int_equal(place_entries(place->root), 0);
}

static void test_limit(void **state)
{
	struct place *place = *state;
	struct gw_staging *open[64];
	int count = 0;
	gw_status status = GW_OK;
	for (; count < 64 && status == GW_OK; count++) {
		char path[256];
		snprintf(path, sizeof(path), "%s/graph%d", place->root, count);
		status = gw_staging_begin(path, false, &open[count]);
	}
	assert_int_equal(status, GW_LIMIT);
	for (int i = 0; i < count - 1; i++)
		gw_staging_abort(open[i]);
	assert_int_equal(place_entries(place->root), 0);
}

static void test_remove_tree_does_not_follow_links(void **state)
{
	struct place *place = *state;
	char path[256], link[256];
	snprintf(path, sizeof(path), "%s/kept", place->root);
	assert_int_equal(mkdir(path, 0755), 0);
	place_put(path, "file", "kept");
	assert_int_equal(mkdir(place->final, 0755), 0);
	snprintf(link, sizeof(link), "%s/link", place->final);
	assert_int_equal(symlink(path, link), 0);
	for (int i = 0; i < 500; i++) {
		char name[32];
		snprintf(name, sizeof(name), "a-file-with-a-long-name-%d", i);
		place_put(place->final, name, "x");
	}
	assert_int_equal(gw_remove_tree(place->final), GW_OK);
	assert_int_equal(access(place->final, F_OK), -1);
	assert_true(has(path, "file", "kept"));
	assert_int_equal(gw_remove_tree(place->final), GW_OK); /* it does not exist, as requested */
	assert_int_equal(gw_remove_tree("/proc/self"), GW_IO);
	assert_non_null(strstr(gw_last_error(), "/proc/self"));
}

static gw_status write_body(void *context)
{
	struct place *place = context;
	struct gw_staging *staging;
	gw_status status = gw_staging_begin(place->final, true, &staging);
	if (status != GW_OK)
		return status;
	status = gw_staging_mkdir(staging, "a/b");
	if (status != GW_OK) {
		gw_staging_abort(staging);
		return status;
	}
	return gw_staging_commit(staging);
}

static void test_memory_shortage(void **state)
{
	struct place *place = *state;
	assert_true(gw_fault_each(write_body, place) >= 4);
	assert_int_equal(place_entries(place->root), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_set_up, place_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_commit),
		TEST(test_trailing_slashes_and_relative),
		TEST(test_abort),
		TEST(test_paths_stay_inside),
		TEST(test_exists),
		TEST(test_exists_at_commit),
		TEST(test_replace),
		TEST(test_plain_rename),
		TEST(test_failed_commit_leaves_only_the_old_folder),
		TEST(test_no_parent),
		TEST(test_no_space),
		TEST(test_cleanup),
		TEST(test_signal_handler_removes_all_files),
		TEST(test_limit),
		TEST(test_remove_tree_does_not_follow_links),
		TEST(test_memory_shortage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
