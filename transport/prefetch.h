/* How many cache lines of a row the TCP server prefetches before it copies the row: the first, or all. Which is faster
 * depends on the processor. All lines are 7 to 27 % faster on an AMD Zen 5, and slower on some Intel processors, whose
 * places for lines in flight fill up. The choice changes no bytes. */
#ifndef GW_TRANSPORT_PREFETCH_H
#define GW_TRANSPORT_PREFETCH_H

#include <stdint.h>

enum gw_prefetch { GW_PREFETCH_AUTO, GW_PREFETCH_FIRST, GW_PREFETCH_ALL };

struct gw_service;

/* The outcome of the trial: nanoseconds of a row of GW_PREFETCH_TRIAL_ROW bytes, 0 without a trial. */
#define GW_PREFETCH_TRIAL_ROW 512u
struct gw_prefetch_trial {
	double first_ns, all_ns;
};

/* Sets the service's choice, before listeners use the service, and returns it. AUTO: a trial of at most 5 ms gathers
 * random rows of the service's largest region with both. It chooses FIRST if the region is small, or if the difference
 * is small. A service without this call prefetches first lines. times may be NULL. */
enum gw_prefetch gw_prefetch_choose(struct gw_service *service, enum gw_prefetch wanted,
				    struct gw_prefetch_trial *times);

#endif
