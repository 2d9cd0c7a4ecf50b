/* Time: one clock for every deadline. It stands still while the process does.
 *
 *   gw_now_ns = CLOCK_MONOTONIC - the time for which this process was found suspended
 *
 * A process that was stopped (SIGSTOP, the freezer of a control group, a debugger, a machine that was moved) for longer
 * than an operation's deadline has not waited for its servers: the operation goes on with the time that it had left.
 * While somebody attends (clients, servers: gw_clock_attend), a thread looks at the clock four times a second. If
 * nobody in the process has looked for a second, the process did not run, and that time is taken off before any thread
 * reads the clock: there is no moment at which one could judge a deadline by the time that passed meanwhile. Threads
 * that only wait or compute are not mistaken for a process that is suspended. All of it is one word and takes no lock
 * (clock.c).
 *
 * The kernel knows CLOCK_MONOTONIC alone: absolute waits are given gw_monotonic_of(deadline). A wait that began before
 * a suspension ends early then, never late; so whoever waits looks at gw_now_ns, and waits again.
 */
#ifndef GW_SYSTEM_CLOCK_H
#define GW_SYSTEM_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "core/errors/status.h"

#define GW_NS_PER_SECOND 1000000000ull
#define GW_NS_PER_MS     1000000ull
#define GW_NO_DEADLINE   UINT64_MAX

#define GW_CLOCK_TICK_BITS 24 /* a tick is 2^24 ns, 17 ms */

/* In ticks: the time taken off in the high half, the last look in the low half. */
extern _Atomic uint64_t gw_clock_word;

/* Notes that somebody looks at this time of CLOCK_MONOTONIC, and takes the time off for which nobody did. */
void gw_clock_look(uint64_t monotonic_ns) __attribute__((cold));

/* From now on, until as many calls of gw_clock_leave, the process counts as suspended while nobody looks. Any thread.
 * GW_LIMIT: no thread can be started. */
gw_status gw_clock_attend(void);
void gw_clock_leave(void);

static inline uint64_t gw_clock_of(clockid_t id)
{
	struct timespec now;
	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * GW_NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

static inline uint64_t gw_clock_taken_off(uint64_t word)
{
	return word >> 32 << GW_CLOCK_TICK_BITS;
}

/* The word is read before the clock: if the process is suspended between the two, the clock shows it. */
static inline uint64_t gw_clock_read(clockid_t id)
{
	for (;;) {
		uint64_t word = atomic_load_explicit(&gw_clock_word, memory_order_acquire);
		uint64_t now = gw_clock_of(id);
		if ((int32_t)((uint32_t)(now >> GW_CLOCK_TICK_BITS) - (uint32_t)word) <= 0)
			return now - gw_clock_taken_off(word);
		gw_clock_look(now);
	}
}

/* CLOCK_MONOTONIC in nanoseconds, for what is no wait for others: how long a server is up, when a lease is renewed. */
static inline uint64_t gw_monotonic_ns(void)
{
	return gw_clock_of(CLOCK_MONOTONIC);
}

/* The same without the time for which this process was suspended. */
static inline uint64_t gw_now_ns(void)
{
	return gw_clock_read(CLOCK_MONOTONIC);
}

/* So much later than now; past the end of time: never. */
static inline uint64_t gw_later_ns(uint64_t now_ns, uint64_t ns)
{
	return ns > GW_NO_DEADLINE - now_ns ? GW_NO_DEADLINE : now_ns + ns;
}

/* gw_now_ns as of the kernel's last tick, 1 to 10 ms ago at most: for what need not be exact. It asks no device, where
 * the clock may be one (HPET, in guests) that costs more than the work it is asked for. */
static inline uint64_t gw_past_ns(void)
{
	return gw_clock_read(CLOCK_MONOTONIC_COARSE);
}

/* What CLOCK_MONOTONIC shows when gw_now_ns shows at_ns, if the process is not suspended until then. */
static inline uint64_t gw_monotonic_of(uint64_t at_ns)
{
	return gw_later_ns(at_ns, gw_clock_taken_off(atomic_load_explicit(&gw_clock_word, memory_order_relaxed)));
}

static inline struct timespec gw_timespec(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / GW_NS_PER_SECOND), .tv_nsec = (long)(ns % GW_NS_PER_SECOND)};
}

/* The point in time that lies timeout_ms from now; a negative timeout, or one past the end of time, means never. */
static inline uint64_t gw_deadline_ns(int64_t timeout_ms)
{
	uint64_t now = gw_now_ns();
	if (timeout_ms < 0 || (uint64_t)timeout_ms > (GW_NO_DEADLINE - now) / GW_NS_PER_MS)
		return GW_NO_DEADLINE;
	return now + (uint64_t)timeout_ms * GW_NS_PER_MS;
}

#endif
