/* Memory that is left is the least over the machine and the control groups (core/memory/memory.h). That reading opens
 * many files of /proc and /sys, so it is made once a second at most. */
#include "metrics/process.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/memory/memory.h"
#include "core/system/clock.h"
#include "core/system/sysfile.h"

struct process_values {
	double cpu_s, started_s;
	uint64_t resident, available, total;
};

#define AT(field) offsetof(struct process_values, field)

const struct gw_figure gw_process_figures[] = {
	{.help = "Time that the processors worked for this process",
	 .unit = GW_FIGURE_SECONDS,
	 .kind = GW_FIGURE_COUNTER,
	 .offset = AT(cpu_s),
	 .metric = "process_cpu_seconds"},
	{.help = "When the process began, in seconds since 1970",
	 .unit = GW_FIGURE_SECONDS,
	 .kind = GW_FIGURE_GAUGE,
	 .offset = AT(started_s),
	 .metric = "process_start_time_seconds"},
	{.help = "Memory of this process that is in RAM",
	 .unit = GW_FIGURE_BYTES,
	 .kind = GW_FIGURE_GAUGE,
	 .offset = AT(resident),
	 .metric = "process_resident_memory_bytes"},
	{.help = "Memory that this process can still get, by the machine and its control groups",
	 .unit = GW_FIGURE_BYTES,
	 .kind = GW_FIGURE_GAUGE,
	 .offset = AT(available),
	 .metric = "graphwire_memory_available_bytes"},
	{.help = "The memory of the machine, or the lowest limit of the process's control groups",
	 .unit = GW_FIGURE_BYTES,
	 .kind = GW_FIGURE_GAUGE,
	 .offset = AT(total),
	 .metric = "graphwire_memory_total_bytes"},
	{0},
};

void gw_process_look_begin(struct gw_process_look *look)
{
	char stat[1024];
	unsigned long long ticks = 0;
	*look = (struct gw_process_look){0};
	/* Field 22, counted from the last parenthesis: the second field, the program's name, may contain any. */
	const char *after = gw_sysfile_read(stat, sizeof(stat), "/proc/self/stat") ? strrchr(stat, ')') : NULL;
	for (int field = 2; after && field < 22; field++)
		after = strchr(after + 1, ' ');
	if (!after || sscanf(after, "%llu", &ticks) != 1)
		return;
	const double boot_s =
		((double)gw_clock_of(CLOCK_REALTIME) - (double)gw_clock_of(CLOCK_BOOTTIME)) / GW_NS_PER_SECOND;
	look->started_s = boot_s + (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

static void look_at_memory(struct gw_process_look *look)
{
	const uint64_t now = gw_monotonic_ns();
	if (look->memory_at_ns && now < look->memory_at_ns + GW_NS_PER_SECOND)
		return;
	struct gw_memory memory;
	gw_memory_read("", -1, &memory);
	look->memory_at_ns = now;
	look->available = memory.available;
	look->total = memory.cgroup_limit < memory.total ? memory.cgroup_limit : memory.total;
}

void gw_process_expose(struct gw_process_look *look, struct gw_exposition *out)
{
	uint64_t pages = 0;
	char statm[128];
	look_at_memory(look);
	if (gw_sysfile_read(statm, sizeof(statm), "/proc/self/statm"))
		sscanf(statm, "%*u %" SCNu64, &pages);
	const struct process_values values = {
		.cpu_s = (double)gw_clock_of(CLOCK_PROCESS_CPUTIME_ID) / GW_NS_PER_SECOND,
		.started_s = look->started_s,
		.resident = pages * (uint64_t)sysconf(_SC_PAGESIZE),
		.available = look->available,
		.total = look->total,
	};
	gw_exposition_figures(out, gw_process_figures, &values, sizeof(values), NULL, 1);
}
