/* The guards of this process, by their order. A fork takes the registry's own lock first, so that no guard joins while
 * others are locked. */
#include "core/system/fork.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gw_fork_guard *guards;

static void release_all(void)
{
	for (struct gw_fork_guard *guard = guards; guard; guard = guard->next)
		if (guard->lock)
			pthread_mutex_unlock(guard->lock);
	pthread_mutex_unlock(&lock);
}

static void fork_before(void)
{
	pthread_mutex_lock(&lock);
	for (struct gw_fork_guard *guard = guards; guard; guard = guard->next)
		if (guard->lock)
			pthread_mutex_lock(guard->lock);
}

/* The child's only thread is the copy of the thread that took the locks, so it may release them. */
static void in_child(void)
{
	release_all();
	for (struct gw_fork_guard *guard = guards; guard; guard = guard->next)
		if (guard->in_child)
			guard->in_child();
}

static void watch_forks(void)
{
	pthread_atfork(fork_before, release_all, in_child);
}

void gw_fork_guard(struct gw_fork_guard *guard)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	if (atomic_load_explicit(&guard->known, memory_order_acquire))
		return;
	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&lock);
	if (!atomic_load(&guard->known)) {
		struct gw_fork_guard **at = &guards;
		while (*at && (*at)->order <= guard->order)
			at = &(*at)->next;
		guard->next = *at;
		*at = guard;
		atomic_store_explicit(&guard->known, true, memory_order_release);
	}
	pthread_mutex_unlock(&lock);
}
