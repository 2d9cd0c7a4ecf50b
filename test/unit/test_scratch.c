/* Scratch folders are removed when their program ends, in whatever way it ends. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "test/support/scratch.h"

#define WAIT_MS 20000

static void use_and_end(int to, void (*end)(void))
{
	char path[64], file[128];
	gw_scratch_make_in_memory("scratch", path);
	snprintf(file, sizeof(file), "%s/file", path);
	FILE *stream = fopen(file, "w");
	if (!stream || fclose(stream) || write(to, path, sizeof(path)) != sizeof(path))
		_exit(1);
	end();
	_exit(0);
}

static void killed(void)
{
	kill(getpid(), SIGKILL);
}

static void interrupted(void)
{
	kill(getpid(), SIGINT);
	pause();
}

static void aborted(void)
{
	signal(SIGABRT, SIG_DFL);
	abort();
}

static void ended(void)
{
}

static void folders_go(void **state)
{
	(void)state;
	static void (*const ends[])(void) = {killed, interrupted, aborted, ended};
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		int fds[2];
		char path[64] = "";
		assert_int_equal(pipe(fds), 0);
		fflush(NULL);
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0)
			use_and_end(fds[1], ends[i]);
		close(fds[1]);
		assert_int_equal(read(fds[0], path, sizeof(path)), sizeof(path));
		close(fds[0]);
		assert_int_equal(waitpid(child, NULL, 0), child);
		int left_ms = WAIT_MS;
		for (; access(path, F_OK) == 0 && left_ms > 0; left_ms -= 10)
			usleep(10000);
		assert_true(left_ms > 0);
	}
}

static void folders_stay_until_the_program_removes_them(void **state)
{
	(void)state;
	char first[] = "/tmp/gw-test-scratch-XXXXXX", second[64];
	gw_scratch_make(first);
	gw_scratch_make_in_memory("scratch", second);
	assert_int_equal(access(first, F_OK) | access(second, F_OK), 0);
	assert_int_equal(gw_remove_tree(first) | gw_remove_tree(second), GW_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(folders_go),
		cmocka_unit_test(folders_stay_until_the_program_removes_them),
	};
	return cmocka_run_group_tests_name("scratch", tests, NULL, NULL);
}
