/* A loop over [0, n) by several threads. */
#ifndef GW_SYSTEM_PARALLEL_H
#define GW_SYSTEM_PARALLEL_H

#include <stdbool.h>

#include "core/errors/status.h"
#include "core/system/processors.h"

/* Calls body(context, begin, end, thread) on chunks of at most grain items until all are done; thread < threads. Chunks
 * start at multiples of grain and begin in ascending order. The calling thread is thread 0. A failure ends the loop,
 * which returns the failure of the lowest chunk, with its text: the same for any number of threads. threads = 0:
 * gw_processors(); more than 256 count as 256. grain = 0: eight chunks per thread. If no thread can be started, the
 * caller runs all chunks. */
gw_status gw_parallel_for(unsigned threads, uint64_t n, uint64_t grain,
			  gw_status (*body)(void *context, uint64_t begin, uint64_t end, unsigned thread),
			  void *context);

/* For bodies that search: *least becomes i if i is less. */
static inline void gw_parallel_least(uint64_t *least, uint64_t i)
{
	uint64_t before = __atomic_load_n(least, __ATOMIC_RELAXED);
	while (i < before &&
	       !__atomic_compare_exchange_n(least, &before, i, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
	}
}

#endif
