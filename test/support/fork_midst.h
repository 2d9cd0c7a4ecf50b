/* A fork in the midst of what another thread does. */
#ifndef GW_TEST_FORK_MIDST_H
#define GW_TEST_FORK_MIDST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct gw_midst {
	atomic_bool standing, released, forked;
};

/* The other thread: stands still until the fork is done, or waits for what this thread holds. */
void gw_midst_stand(struct gw_midst *midst);

/* The other thread, before it ends: waits until the fork is done. */
void gw_midst_outlast(struct gw_midst *midst);

/* Waits until somebody stands, and forks. The child ends by itself if it hangs. As fork(2), but for failures. */
pid_t gw_midst_fork(struct gw_midst *midst);

/* For a gw_allocator of tests that fork: malloc, realloc and free, of which none is under way when the process is
 * copied. */
void *gw_midst_allocate(size_t bytes);
void *gw_midst_reallocate(void *old, size_t bytes);
void gw_midst_release(void *memory);

/* Ends a child at once: a sanitizer's own end would miss the threads that are not there. */
_Noreturn void gw_midst_exit(bool well);

/* Whether the child ended with status 0; says how if not. */
bool gw_midst_child_well(pid_t child);

#endif
