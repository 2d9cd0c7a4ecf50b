/* Time: one monotonic clock for every deadline and every measurement. */
#ifndef GW_BASE_CLOCK_H
#define GW_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define GW_NS_PER_SECOND 1000000000ull
#define GW_NS_PER_MS     1000000ull
#define GW_NO_DEADLINE   UINT64_MAX

/* CLOCK_MONOTONIC in nanoseconds. */
static inline uint64_t gw_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * GW_NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

/* So much later than now; past the end of time: never. */
static inline uint64_t gw_later_ns(uint64_t now_ns, uint64_t ns)
{
	return ns > GW_NO_DEADLINE - now_ns ? GW_NO_DEADLINE : now_ns + ns;
}

/* The same as of the kernel's last tick, 1 to 10 ms ago at most: for what need not be exact. It asks no device, where
 * the clock may be one (HPET, in guests) that costs more than the work it is asked for. */
static inline uint64_t gw_past_ns(void)
{
	struct timespec past;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &past);
	return (uint64_t)past.tv_sec * GW_NS_PER_SECOND + (uint64_t)past.tv_nsec;
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
