/* Which processor a benchmark's threads run on. The two sides of a ping-pong wake each other in one way on one
 * processor and in another way on two, at half the price or twice: a benchmark says which it measures, and puts its
 * ceiling there, too. */
#ifndef GW_BENCH_PLACE_H
#define GW_BENCH_PLACE_H

#include <pthread.h>

enum gw_bench_place {
	GW_BENCH_APART,    /* client and server on different processors */
	GW_BENCH_TOGETHER, /* both on one */
};

/* "two processors", "one processor". */
const char *gw_bench_place_text(enum gw_bench_place place);

/* How many processors the process had when it was first asked: before a thread of its own was kept on one. */
unsigned gw_bench_processors(void);

/* Keeps a thread on the n-th of them, counted round. */
void gw_bench_pin(pthread_t thread, unsigned number);
/* Lets it run on all of them again. */
void gw_bench_unpin(pthread_t thread);

#endif
