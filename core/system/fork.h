/* What a fork must not cut in two: locks of the whole process, and the statics behind them.
 *
 *   fork(2): every guard's lock is taken, in order -> parent: all are released
 *                                                  -> child: all are released, then each in_child is called
 *
 * Without it a child begins with a lock that a thread held which it does not have, and with statics that this thread
 * was changing. A module hands its guard in before it takes its lock for the first time, from any thread, as often as
 * it likes. What belongs to one client, service or group needs no guard: a child does not use its parent's.
 */
#ifndef GW_SYSTEM_FORK_H
#define GW_SYSTEM_FORK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct gw_fork_guard {
	pthread_mutex_t *lock; /* NULL: none */
	/* Makes the statics those of a process that has opened nothing: what they lead to is the parent's. Runs where
	 * the child has one thread and all locks are free. May not allocate, free or log. NULL: nothing to do. */
	void (*in_child)(void);
	int order; /* of two locks that a thread holds at once, the one that it takes first has the lower */
	/* The registry's: */
	atomic_bool known;
	struct gw_fork_guard *next;
};

/* The guard is static. */
void gw_fork_guard(struct gw_fork_guard *guard);

#endif
