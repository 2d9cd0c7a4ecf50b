/* Guards over state that must be consistent in a forked child: locks of the process, and the statics that they protect.
 *
 *   fork(2): every guard's lock is taken, in order -> parent: all are released
 *                                                  -> child: all are released, then each in_child is called
 *
 * Without guards, a child could start with a lock whose owner is a thread that it does not have. It could also see
 * statics that this thread was changing. A module registers its guard before it first takes its lock, from any thread,
 * any number of times. State of one client, service or group needs no guard, because a child does not use its parent's
 * objects.
 */
#ifndef GW_SYSTEM_FORK_H
#define GW_SYSTEM_FORK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct gw_fork_guard {
	pthread_mutex_t *lock; /* NULL: none */
	/* Resets the statics to those of a process that has opened nothing, because they point to the parent's objects.
	 * Runs when the child has one thread and all locks are free. Must not allocate, free or log. NULL: nothing to
	 * do. */
	void (*in_child)(void);
	int order; /* if a thread takes two locks, the first has the lower order */
	/* The registry uses the members from here on. */
	atomic_bool known;
	struct gw_fork_guard *next;
};

/* Registers a guard, which must be static. */
void gw_fork_guard(struct gw_fork_guard *guard);

#endif
