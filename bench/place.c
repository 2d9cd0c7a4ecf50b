/* Placement of threads on the processors that the process had at the first call: see place.h. */
#include "bench/place.h"

#include <sched.h>

static cpu_set_t allowed;

static void place_find_allowed(void)
{
	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		CPU_ZERO(&allowed);
}

static const cpu_set_t *processors(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, place_find_allowed);
	return &allowed;
}

const char *gw_bench_place_text(enum gw_bench_place place)
{
	return place == GW_BENCH_APART ? "two processors" : "one processor";
}

unsigned gw_bench_processors(void)
{
	int count = CPU_COUNT(processors());
	return count > 0 ? (unsigned)count : 1;
}

void gw_bench_pin(pthread_t thread, unsigned number)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	number %= gw_bench_processors();
	for (size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++)
		if (CPU_ISSET(cpu, processors()) && number-- == 0)
			CPU_SET(cpu, &one);
	if (CPU_COUNT(&one) == 1)
		pthread_setaffinity_np(thread, sizeof(one), &one);
}

void gw_bench_unpin(pthread_t thread)
{
	if (CPU_COUNT(processors()) > 0)
		pthread_setaffinity_np(thread, sizeof(allowed), processors());
}
