/* Folders of killed writers: the next writer of the same final folder removes them, and no others. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/files/leftovers.h"
#include "core/files/staging.h"
#include "core/memory/alloc.h"
#include "test/support/place.h"

static gw_status replace_folder(const struct place *place)
{
	struct gw_staging *staging;
	gw_status status = gw_staging_begin(place->final, true, &staging);
	if (status != GW_OK)
		return status;
	status = gw_staging_mkdir(staging, "part0/node/paper");
	if (status != GW_OK) {
		gw_staging_abort(staging);
		return status;
	}
	place_put(gw_staging_path(staging), "part0/node/paper/feat.npy", "x");
	place_put(gw_staging_path(staging), "part0/node/indptr.npy", "x");
	return gw_staging_commit(staging);
}

/* Runs a writer up to its system call number `calls`, and kills it there. Returns false if it had ended before. */
static bool kill_at(const struct place *place, int calls)
{
	int status;
	pid_t child = fork();
	if (child == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(77);
		raise(SIGSTOP);
		_exit(replace_folder(place) == GW_OK ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	for (int i = 0; i < 2 * calls && WIFSTOPPED(status); i++) { /* each call stops it twice */
		ptrace(PTRACE_SYSCALL, child, NULL, NULL);
		assert_int_equal(waitpid(child, &status, 0), child);
	}
	if (!WIFSTOPPED(status)) {
		if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
			skip(); /* not allowed to trace */
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		return false;
	}
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	return true;
}

static void test_killed_at_each_call(void **state)
{
	const struct place *place = *state;
	int killed = 0, left = 0;
	assert_int_equal(replace_folder(place), GW_OK);
	while (kill_at(place, killed)) {
		killed++;
		left += place_entries(place->root) > 1;
		struct gw_staging *staging;
		assert_int_equal(gw_staging_begin(place->final, true, &staging), GW_OK);
		assert_int_equal(place_entries(place->root), 2); /* the final folder and the new writer's folder */
		gw_staging_abort(staging);
		assert_int_equal(access(place->final, F_OK), 0);
	}
	assert_true(killed > 20 && left > 5); /* kills hit different steps */
	assert_int_equal(place_entries(place->root), 1);
}

/* The child's exit status is 0 if it removed only its own folder. */
static void test_living_writer_stays(void **state)
{
	const struct place *place = *state;
	struct gw_staging *staging;
	int status;
	assert_int_equal(gw_staging_begin(place->final, false, &staging), GW_OK);
	place_put(gw_staging_path(staging), "file", "x");
	pid_t child = fork();
	if (child == 0) {
		struct gw_staging *other;
		if (gw_staging_begin(place->final, false, &other))
			_exit(1);
		_exit(place_entries(place->root) == 2 ? 0 : 2); /* like a kill: its folder stays */
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(place_entries(gw_staging_path(staging)), 1);
	gw_leftovers_sweep(place->final);
	assert_int_equal(place_entries(place->root), 1); /* the child's folder is gone, the running writer's is not */
	assert_int_equal(gw_staging_commit(staging), GW_OK);
	assert_int_equal(place_entries(place->final), 1);
}

static void test_only_ours(void **state)
{
	const struct place *place = *state;
	char *ours = gw_leftover_name(place->final), *ours_too = gw_leftover_name(place->final);
	assert_non_null(ours);
	assert_non_null(ours_too);
	const char *tail = strstr(ours, ".tmp-"); /* .tmp-<pid>-<host>-<random> */
	const char *host = strchr(tail + 5, '-');
	char other[8][256];
	snprintf(other[0], sizeof(other[0]), "%s.tmp-1-%c%s", place->final, host[1] == '0' ? '1' : '0', host + 2);
	snprintf(other[1], sizeof(other[1]), "%s2%s", place->final, tail);
	snprintf(other[2], sizeof(other[2]), "%s%s0", place->final, tail);
	snprintf(other[3], sizeof(other[3]), "%s%.*sg", place->final, (int)strlen(tail) - 1, tail);
	snprintf(other[4], sizeof(other[4]), "%s.tmp-%s", place->final, host);
	snprintf(other[5], sizeof(other[5]), "%s.tmp-12345-0123456789abcdef", place->final);
	snprintf(other[6], sizeof(other[6]), "%s.old%s", place->final, tail + 4);
	snprintf(other[7], sizeof(other[7]), "%s/x%s", place->root, tail);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(mkdir(other[i], 0755), 0);
		place_put(other[i], "file", "x");
	}
	assert_int_equal(mkdir(ours, 0755), 0);
	place_put(ours, "file", "x");
	place_put("/", ours_too + 1, "x"); /* a file with such a name is not a folder of a writer */
	assert_int_equal(place_entries(place->root), 10);
	gw_leftovers_sweep(place->final);
	assert_int_equal(access(ours, F_OK), -1);
	assert_int_equal(place_entries(place->root), 9);
	gw_free(ours);
	gw_free(ours_too);
}

static void test_writers_at_once_keep_their_folders(void **state)
{
	const struct place *place = *state;
	for (int i = 0; i < 4; i++) {
		if (fork() != 0)
			continue;
		for (int round = 0; round < 100; round++) {
			struct gw_staging *staging;
			if (gw_staging_begin(place->final, false, &staging))
				_exit(1);
			place_put(gw_staging_path(staging), "file", "x");
			if (access(gw_staging_path(staging), F_OK))
				_exit(2);
			gw_staging_abort(staging);
		}
		_exit(0);
	}
	int status;
	for (int i = 0; i < 4; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_int_equal(place_entries(place->root), 0);
}

static void test_no_descriptors(void **state)
{
	const struct place *place = *state;
	enum { BEGUN = 10 };
	uint32_t begun = 0;
	for (rlim_t most = 3; most < 24; most++) {
		int status;
		pid_t child = fork();
		if (child == 0) {
			struct rlimit limit = {most, most};
			struct gw_staging *staging;
			closefrom(3); /* else every limit may be too low for the first file */
			if (setrlimit(RLIMIT_NOFILE, &limit))
				_exit(1);
			gw_status result = gw_staging_begin(place->final, false, &staging);
			if (result)
				_exit(result == GW_LIMIT && strstr(gw_last_error(), "ulimit -n") ? 0 : 2);
			if (gw_staging_mkdir(staging, "part0/edge/a__b__c/out"))
				_exit(3);
			while (dup(0) >= 0) /* as other parts of a program would */
				;
			gw_staging_abort(staging);
			_exit(BEGUN);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(status == 0 || (WIFEXITED(status) && WEXITSTATUS(status) == BEGUN));
		begun += status != 0;
		assert_int_equal(place_entries(place->root), 0);
	}
	assert_in_range(begun, 1, 24 - 3 - 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_set_up, place_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_killed_at_each_call), TEST(test_living_writer_stays),
		TEST(test_only_ours),           TEST(test_writers_at_once_keep_their_folders),
		TEST(test_no_descriptors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
