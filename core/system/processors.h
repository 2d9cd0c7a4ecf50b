/* Processors that this process can use. */
#ifndef GW_SYSTEM_PROCESSORS_H
#define GW_SYSTEM_PROCESSORS_H

#include <stdint.h>

/* The processors that this process may run on (its affinity mask), limited to the processor time that its control
 * groups grant, rounded up; at least 1. The groups are read once per process. */
unsigned gw_processors(void);

/* The processors that the control groups under a root ("" for this machine) grant, rounded up; UINT32_MAX: no limit. */
uint32_t gw_processors_granted(const char *root);

#endif
