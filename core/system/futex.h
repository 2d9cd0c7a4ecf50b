/* Waits for a word to change: a futex of this process (FUTEX_PRIVATE). */
#ifndef GW_SYSTEM_FUTEX_H
#define GW_SYSTEM_FUTEX_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/system/clock.h"

/* Sleeps while *word == expected, until deadline_ns of gw_now_ns (GW_NO_DEADLINE: no limit). It may return early, so
 * check the word and the time again. */
static inline void gw_futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns)
{
	struct timespec until = gw_timespec(gw_monotonic_of(deadline_ns));
	syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected,
		deadline_ns == GW_NO_DEADLINE ? NULL : &until, NULL, FUTEX_BITSET_MATCH_ANY);
}

static inline void gw_futex_wake(_Atomic uint32_t *word, int waiters)
{
	syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, waiters, NULL, NULL, 0);
}

#endif
