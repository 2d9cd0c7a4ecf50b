/* See fork_midst.h. The forking thread is watched through /proc: a fork that waits for a lock sleeps. */
#include "test/support/fork_midst.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HANG_S 120 /* a child that has not ended by then hangs */

struct watch {
	struct gw_midst *midst;
	long thread;
	atomic_bool forking, forked;
};

static void pause_shortly(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

void gw_midst_stand(struct gw_midst *midst)
{
	atomic_store(&midst->standing, true);
	while (!atomic_load(&midst->released))
		pause_shortly();
}

static bool sleeps(long thread)
{
	char path[64], line[256] = "";
	snprintf(path, sizeof(path), "/proc/self/task/%ld/stat", thread);
	FILE *file = fopen(path, "re");
	if (!file)
		return true;
	const char *read = fgets(line, sizeof(line), file), *name_end = read ? strrchr(line, ')') : NULL;
	fclose(file);
	return name_end && name_end[2] == 'S';
}

static void *watch_fork(void *argument)
{
	struct watch *watch = argument;
	while (!atomic_load(&watch->forking))
		pause_shortly();
	while (!atomic_load(&watch->forked) && !sleeps(watch->thread))
		pause_shortly();
	atomic_store(&watch->midst->released, true);
	return NULL;
}

pid_t gw_midst_fork(struct gw_midst *midst)
{
	struct watch watch = {.midst = midst, .thread = syscall(SYS_gettid)};
	pthread_t watcher;
	if (pthread_create(&watcher, NULL, watch_fork, &watch) != 0)
		abort();
	while (!atomic_load(&midst->standing))
		pause_shortly();
	atomic_store(&watch.forking, true);
	pid_t child = fork();
	if (child < 0)
		abort();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(HANG_S);
		return 0;
	}
	atomic_store(&watch.forked, true);
	pthread_join(watcher, NULL);
	return child;
}

void gw_midst_exit(bool well)
{
	syscall(SYS_exit_group, well ? 0 : 1);
	abort();
}

bool gw_midst_child_well(pid_t child)
{
	int how = 0;
	if (waitpid(child, &how, 0) != child)
		abort();
	if (how)
		fprintf(stderr, "a forked child ended with status %#x\n", (unsigned)how);
	return how == 0;
}
