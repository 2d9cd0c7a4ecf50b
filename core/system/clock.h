/* Time: one clock for every deadline. It stands still while the process is suspended.
 *
 *   gw_now_ns = CLOCK_MONOTONIC - the time for which this process was found suspended
 *
 * A process may be suspended for longer than an operation's deadline: by SIGSTOP, the freezer of a control group, a
 * debugger, or the migration of a machine. It has not waited for its servers during that time, so the operation
 * continues with the rest of its deadline.
 *
 * While a client or a server attends (gw_clock_attend), a thread looks at the clock four times a second. If no thread
 * of the process has looked for a second, the process did not run. That time is taken off before any thread reads the
 * clock, so no thread counts it towards a deadline. Threads that wait or compute for long are not mistaken for a
 * suspension. The state is one word and needs no lock (clock.c).
 *
 * The kernel knows only CLOCK_MONOTONIC: pass gw_monotonic_of(deadline) to absolute waits. A wait that began before a
 * suspension then ends early, never late. After every wait, read gw_now_ns and wait again if time is left.
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

/* Records a look at this time of CLOCK_MONOTONIC, and takes off the time in which no thread looked. */
void gw_clock_look(uint64_t monotonic_ns) __attribute__((cold));

/* From now on, time in which no thread looks counts as a suspension, until gw_clock_leave has been called as often as
 * this function. Any thread may call it. GW_LIMIT: no thread can be started. */
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

/* Reads the word before the clock: if the process is suspended between the two, the clock shows it. */
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

/* CLOCK_MONOTONIC in nanoseconds, for times that are not waits for a peer: a server's uptime, the renewal of a
 * lease. */
static inline uint64_t gw_monotonic_ns(void)
{
	return gw_clock_of(CLOCK_MONOTONIC);
}

/* CLOCK_MONOTONIC without the time for which this process was suspended. */
static inline uint64_t gw_now_ns(void)
{
	return gw_clock_read(CLOCK_MONOTONIC);
}

/* now_ns + ns; an overflow gives GW_NO_DEADLINE. */
static inline uint64_t gw_later_ns(uint64_t now_ns, uint64_t ns)
{
	return ns > GW_NO_DEADLINE - now_ns ? GW_NO_DEADLINE : now_ns + ns;
}

/* gw_now_ns at the kernel's last tick, 1 to 10 ms ago at most, for uses that need no exact time. It reads no device. In
 * guests the clock may be a device (HPET) whose reading costs more than the work it times. */
static inline uint64_t gw_past_ns(void)
{
	return gw_clock_read(CLOCK_MONOTONIC_COARSE);
}

/* The value of CLOCK_MONOTONIC when gw_now_ns reaches at_ns, if the process is not suspended until then. */
static inline uint64_t gw_monotonic_of(uint64_t at_ns)
{
	return gw_later_ns(at_ns, gw_clock_taken_off(atomic_load_explicit(&gw_clock_word, memory_order_relaxed)));
}

static inline struct timespec gw_timespec(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / GW_NS_PER_SECOND), .tv_nsec = (long)(ns % GW_NS_PER_SECOND)};
}

/* The time timeout_ms from now; a negative timeout, or an overflow, gives GW_NO_DEADLINE. */
static inline uint64_t gw_deadline_ns(int64_t timeout_ms)
{
	uint64_t now = gw_now_ns();
	if (timeout_ms < 0 || (uint64_t)timeout_ms > (GW_NO_DEADLINE - now) / GW_NS_PER_MS)
		return GW_NO_DEADLINE;
	return now + (uint64_t)timeout_ms * GW_NS_PER_MS;
}

#endif
