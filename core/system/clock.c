/* The clock that stands still while the process is suspended: see clock.h. A look records that the process ran at that
 * time. If two looks are more than a second apart, the time between them is taken off the clock.
 *
 *   gw_clock_word = the ticks that were taken off | the tick of the last look
 *
 *   read: the word -> the clock -> in the tick of the last look (or before: this thread was slow)? -> clock - taken off
 *                                  later -> look: less than a second ago? -> word = the same | now
 *                                                 longer, and attended    -> word = more     | now  -> read again
 *
 * Both halves change together, by compare and exchange. A thread that reads a new look therefore also reads the time
 * that this look took off. No time is taken off twice. The tick of the last look is not taken off, because threads may
 * have read times within it, and the clock must never go back. The clock holds no lock, so a fork finds no half-done
 * change. The child has no looking thread: no time is taken off until it calls gw_clock_attend. The halves overflow
 * after more than two years, so one suspension may last for one year.
 *
 * A separate thread looks, instead of the threads that wait. Waiting threads would have to wake up for each look, and a
 * long computation between two waits would be mistaken for a suspension.
 */
#include "core/system/clock.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/system/fork.h"
#include "core/system/thread.h"

#define BEAT_NS     (250 * GW_NS_PER_MS)
#define PAUSE_TICKS (int32_t)(GW_NS_PER_SECOND >> GW_CLOCK_TICK_BITS)

_Atomic uint64_t gw_clock_word;

static struct {
	pthread_mutex_t lock;
	uint32_t users;
	atomic_bool attended;   /* the looking thread runs */
	_Atomic uint32_t stops; /* futex: the thread must end */
	pthread_t thread;
} attention = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* After a fork the child does not have the thread. */
static void clock_forget(void)
{
	attention.users = 0;
	atomic_store(&attention.attended, false);
}

static struct gw_fork_guard guard = {.lock = &attention.lock, .in_child = clock_forget, .order = 8};

static uint64_t clock_word(uint64_t taken_off, uint64_t tick)
{
	return taken_off << 32 | (uint32_t)tick;
}

void gw_clock_look(uint64_t monotonic_ns)
{
	uint64_t tick = monotonic_ns >> GW_CLOCK_TICK_BITS, next;
	uint64_t word = atomic_load_explicit(&gw_clock_word, memory_order_acquire);
	do {
		int32_t gap = (int32_t)((uint32_t)tick - (uint32_t)word);
		if (gap <= 0)
			return;
		bool pause = gap > PAUSE_TICKS && atomic_load(&attention.attended);
		next = clock_word((word >> 32) + (pause ? (uint64_t)gap - 1 : 0), tick);
	} while (!atomic_compare_exchange_weak_explicit(&gw_clock_word, &word, next, memory_order_acq_rel,
							memory_order_acquire));
}

static void *clock_run(void *ignored)
{
	const struct timespec beat = gw_timespec(BEAT_NS);
	while (!atomic_load(&attention.stops)) {
		gw_now_ns();
		syscall(SYS_futex, &attention.stops, FUTEX_WAIT_PRIVATE, 0, &beat, NULL, 0);
	}
	return ignored;
}

/* Before this, no thread had to look, so the time since the last look is no suspension. */
static void clock_look_first(void)
{
	uint64_t word = atomic_load(&gw_clock_word), next;
	do
		next = clock_word(word >> 32, gw_monotonic_ns() >> GW_CLOCK_TICK_BITS);
	while (!atomic_compare_exchange_weak(&gw_clock_word, &word, next));
	atomic_store(&attention.attended, true);
}

static gw_status clock_start(void)
{
	atomic_store(&attention.stops, 0);
	clock_look_first();
	int error = gw_thread_start(&attention.thread, clock_run, NULL);
	if (!error)
		return GW_OK;
	atomic_store(&attention.attended, false);
	return gw_fail_errno(GW_LIMIT, error, "cannot start the thread that looks at the clock");
}

gw_status gw_clock_attend(void)
{
	gw_fork_guard(&guard);
	pthread_mutex_lock(&attention.lock);
	gw_status status = attention.users ? GW_OK : clock_start();
	attention.users += status == GW_OK;
	pthread_mutex_unlock(&attention.lock);
	return status;
}

void gw_clock_leave(void)
{
	pthread_mutex_lock(&attention.lock);
	if (attention.users && --attention.users == 0) {
		atomic_store(&attention.attended, false);
		atomic_store(&attention.stops, 1);
		syscall(SYS_futex, &attention.stops, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		pthread_join(attention.thread, NULL);
	}
	pthread_mutex_unlock(&attention.lock);
}
