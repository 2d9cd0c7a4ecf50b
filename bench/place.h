/* Chooses the processors of a benchmark's threads. The two sides of a ping-pong wake each other differently on one
 * processor and on two, which can halve or double the time. A benchmark therefore reports its placement, and places its
 * ceiling likewise.
 */
#ifndef GW_BENCH_PLACE_H
#define GW_BENCH_PLACE_H

#include <pthread.h>

enum gw_bench_place {
	GW_BENCH_APART,    /* client and server on different processors */
	GW_BENCH_TOGETHER, /* both on the same processor */
};

/* Returns "two processors" or "one processor". */
const char *gw_bench_place_text(enum gw_bench_place place);

/* The number of processors that the process had at the first call. Make that call before pinning a thread. */
unsigned gw_bench_processors(void);

/* Pins a thread to the n-th of these processors, modulo their number. */
void gw_bench_pin(pthread_t thread, unsigned number);
/* Lets the thread run on all of them again. */
void gw_bench_unpin(pthread_t thread);

#endif
