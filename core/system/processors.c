/* Counts usable processors by the affinity mask and the quotas of control groups. The quotas are cpu.max of version 2,
 * and cpu.cfs_quota_us over cpu.cfs_period_us of version 1; the lowest quota of the process's own group and the groups
 * above it counts. By the mask alone, a container that may use half of one processor of 64 would start 64 threads, and
 * the quota would stall them together.
 */
#include "core/system/processors.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/system/cgroup.h"
#include "core/system/sysfile.h"

#define NOT_LOOKED_AT 0u

static void take_least(uint32_t *granted, uint64_t quota, uint64_t period)
{
	if (quota == 0 || period == 0)
		return;
	uint64_t whole = quota / period + (quota % period != 0);
	if (whole < *granted)
		*granted = (uint32_t)whole;
}

/* cpu.max: "max 100000", "150000 100000". */
static void look_at_max(uint32_t *granted, const char *folder)
{
	char text[64], *end;
	if (!gw_sysfile_read(text, sizeof(text), "%s/cpu.max", folder))
		return;
	unsigned long long quota = strtoull(text, &end, 10);
	if (end != text && text[0] != '-' && *end == ' ')
		take_least(granted, quota, strtoull(end, NULL, 10));
}

static void processors_look(void *context, const char *folder, bool version2)
{
	uint32_t *granted = context;
	char text[32];
	uint64_t quota, period;
	if (version2) {
		look_at_max(granted, folder);
	} else if (gw_sysfile_read(text, sizeof(text), "%s/cpu.cfs_quota_us", folder) && text[0] != '-' &&
		   gw_sysfile_number(&quota, "%s/cpu.cfs_quota_us", folder) &&
		   gw_sysfile_number(&period, "%s/cpu.cfs_period_us", folder)) { /* a quota of -1 is no quota */
		take_least(granted, quota, period);
	}
}

uint32_t gw_processors_granted(const char *root)
{
	uint32_t granted = UINT32_MAX;
	gw_cgroup_walk(root, "cpu", processors_look, &granted);
	return granted;
}

unsigned gw_processors(void)
{
	static atomic_uint granted = NOT_LOOKED_AT;
	unsigned most = atomic_load_explicit(&granted, memory_order_relaxed);
	if (most == NOT_LOOKED_AT) {
		most = gw_processors_granted("");
		atomic_store_explicit(&granted, most, memory_order_relaxed);
	}
	cpu_set_t set; /* has room for 1024; on a larger machine the call fails */
	long count = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN);
	if (count < 1)
		count = 1;
	return (unsigned long)count < most ? (unsigned)count : most;
}
