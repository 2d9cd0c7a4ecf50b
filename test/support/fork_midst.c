/* See fork_midst.h. The forking thread is watched through /proc: a fork that waits for a lock sleeps. While the process
 * is copied nobody allocates: the library's calls wait for it, and no thread starts or ends. The address sanitizer's
 * allocator (GCC 12) has no fork handlers, so that a child could have one of its locks held for ever. */
#include "test/support/fork_midst.h"

#include <fcntl.h>
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

static pthread_mutex_t heap = PTHREAD_MUTEX_INITIALIZER;

static void hold_heap(void)
{
	pthread_mutex_lock(&heap);
}

static void let_heap_go(void)
{
	pthread_mutex_unlock(&heap);
}

/* Before the library knows of forks: the handler that was registered first is the last that holds a fork up. Nobody
 * who is in the heap waits for another lock. */
__attribute__((constructor)) static void watch_heap(void)
{
	pthread_atfork(hold_heap, let_heap_go, let_heap_go);
}

void *gw_midst_allocate(size_t bytes)
{
	hold_heap();
	void *memory = malloc(bytes);
	let_heap_go();
	return memory;
}

void *gw_midst_reallocate(void *old, size_t bytes)
{
	hold_heap();
	void *memory = realloc(old, bytes);
	let_heap_go();
	return memory;
}

void gw_midst_release(void *memory)
{
	hold_heap();
	free(memory);
	let_heap_go();
}

struct watch {
	struct gw_midst *midst;
	long thread;
	atomic_bool watching, forking;
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

void gw_midst_outlast(struct gw_midst *midst)
{
	while (!atomic_load(&midst->forked))
		pause_shortly();
}

static bool sleeps(long thread)
{
	char path[64], line[256] = "";
	snprintf(path, sizeof(path), "/proc/self/task/%ld/stat", thread);
	int file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return true;
	ssize_t got = read(file, line, sizeof(line) - 1);
	close(file);
	const char *name_end = got > 0 ? strrchr(line, ')') : NULL;
	return name_end && name_end[2] == 'S';
}

static void *watch_fork(void *argument)
{
	struct watch *watch = argument;
	atomic_store(&watch->watching, true);
	while (!atomic_load(&watch->forking))
		pause_shortly();
	while (!atomic_load(&watch->midst->forked) && !sleeps(watch->thread))
		pause_shortly();
	atomic_store(&watch->midst->released, true);
	gw_midst_outlast(watch->midst);
	return NULL;
}

pid_t gw_midst_fork(struct gw_midst *midst)
{
	struct watch watch = {.midst = midst, .thread = syscall(SYS_gettid)};
	pthread_t watcher;
	if (pthread_create(&watcher, NULL, watch_fork, &watch) != 0)
		abort();
	while (!atomic_load(&midst->standing) || !atomic_load(&watch.watching))
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
	atomic_store(&midst->forked, true);
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
