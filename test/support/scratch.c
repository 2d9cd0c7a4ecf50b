/* fork -> the child sleeps on a pipe, to which this program writes the path of each folder -> the pipe's end is closed
 * with the last process that holds it, however that ended -> the child removes the folders, and ends. */
#include "test/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/files/staging.h"

#define PATHS_BYTES 65536u /* of all folders that one program makes */

static int to_remover = -1;

/* Takes paths, each with its zero byte, until there is nobody left to write any. System calls only: the program that
 * was forked may have had threads. */
static void remove_afterwards(int from)
{
	static char paths[PATHS_BYTES];
	size_t used = 0;
	for (ssize_t n; used < sizeof(paths) && (n = read(from, paths + used, sizeof(paths) - used)) > 0;)
		used += (size_t)n;
	for (size_t at = 0; at < used; at += strlen(paths + at) + 1)
		gw_remove_tree(paths + at);
	_exit(0);
}

/* Its own session, so that what a terminal or a time limit sends to this program's group does not reach it; its own
 * descriptors, so that nobody waits for it to close theirs; and no child of this program, which waits for its own. */
static void become_remover(int from)
{
	setsid();
	if (fork() != 0)
		_exit(0);
	int nothing = open("/dev/null", O_RDWR);
	for (int fd = 0; fd < 3; fd++)
		dup2(nothing, fd);
	dup2(from, 3);
	closefrom(4);
	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_IGN);
	remove_afterwards(3);
}

static void start_remover(void)
{
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	fflush(NULL);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		become_remover(ends[0]);
	close(ends[0]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	to_remover = ends[1];
}

static void keep_in_mind(const char *path)
{
	size_t bytes = strlen(path) + 1;
	if (to_remover < 0)
		start_remover();
	assert_int_equal(write(to_remover, path, bytes), bytes);
}

void gw_scratch_make(char *pattern)
{
	if (!mkdtemp(pattern))
		fail_msg("cannot make a folder %s", pattern);
	keep_in_mind(pattern);
}

void gw_scratch_make_in_memory(const char *name, char path[64])
{
	snprintf(path, 64, "/dev/shm/gw-%s-XXXXXX", name);
	if (mkdtemp(path)) {
		keep_in_mind(path);
		return;
	}
	snprintf(path, 64, "/tmp/gw-%s-XXXXXX", name);
	gw_scratch_make(path);
}
