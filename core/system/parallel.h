/* A loop over [0, n) by several threads. */
#ifndef GW_SYSTEM_PARALLEL_H
#define GW_SYSTEM_PARALLEL_H

#include "core/errors/status.h"
#include "core/system/processors.h"

/* Calls body(context, begin, end, thread) on chunks of at most grain items until all are done; thread < threads. Chunks
 * start at multiples of grain and are begun in ascending order. The calling thread is thread 0. A failure ends the
 * loop; that of the lowest chunk is returned, with its text: the same for any number of threads. threads = 0:
 * gw_processors(); more than 256 are taken as 256. grain = 0: eight chunks per thread. Where no thread can be made, the
 * caller does all of it. */
gw_status gw_parallel_for(unsigned threads, uint64_t n, uint64_t grain,
			  gw_status (*body)(void *context, uint64_t begin, uint64_t end, unsigned thread),
			  void *context);

#endif
