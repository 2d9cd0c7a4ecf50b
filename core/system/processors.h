/* Processors that this process can use. */
#ifndef GW_SYSTEM_PROCESSORS_H
#define GW_SYSTEM_PROCESSORS_H

#include <stdint.h>

/* Those it may run on (its affinity mask), but no more than the processor time that its control groups grant is worth,
 * rounded up; at least 1. The groups are looked at once in the life of the process. */
unsigned gw_processors(void);

/* What the control groups grant under a root ("" for this machine), rounded up; UINT32_MAX: no limit. */
uint32_t gw_processors_granted(const char *root);

#endif
