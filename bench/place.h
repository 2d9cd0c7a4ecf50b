/* The processors of a benchmark's threads. The two sides of a ping-pong wake each other differently on one processor
 * and on two, at half the time or twice. So a benchmark reports which case it measures, and runs its ceiling in the
 * same place. */
#ifndef GW_BENCH_PLACE_H
#define GW_BENCH_PLACE_H

#include <pthread.h>

enum gw_bench_place {
	GW_BENCH_APART,    /* client and server on different processors */
	GW_BENCH_TOGETHER, /* both on one processor */
};

/* "two processors", "one processor". */
const char *gw_bench_place_text(enum gw_bench_place place);

/* The number of processors of the process at the first call, before it keeps one of its threads on one processor. */
unsigned gw_bench_processors(void);

/* Keeps a thread on the n-th of these processors, counted round. */
void gw_bench_pin(pthread_t thread, unsigned number);
/* Lets the thread run on all of them again. */
void gw_bench_unpin(pthread_t thread);

#endif
