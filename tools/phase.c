/* Measuring a phase: wall time against processor time and the blocks read from disk tells what it waited for. */
#include "tools/phase.h"

#include <stdio.h>
#include <sys/resource.h>

#include "core/base/clock.h"
#include "core/base/options.h"
#include "core/base/parallel.h"

#define TELL_FROM_NS (20 * GW_NS_PER_MS) /* shorter phases do not show what binds them */
#define BUSY_SHARE   0.8                 /* of the threads' time: then it is the processors */
#define BLOCK_BYTES  512u                /* of ru_inblock */

static void read_usage(uint64_t *cpu_ns, uint64_t *disk_bytes)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	*cpu_ns = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * GW_NS_PER_SECOND +
		  (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
	*disk_bytes = (uint64_t)usage.ru_inblock * BLOCK_BYTES;
}

struct gw_phase gw_phase_begin(unsigned threads, bool quiet)
{
	struct gw_phase phase = {.threads = threads ? threads : gw_processors(), .quiet = quiet};
	read_usage(&phase.cpu_ns, &phase.disk_bytes);
	phase.start_ns = gw_now_ns();
	return phase;
}

void gw_phase_end(const struct gw_phase *phase, const char *what, uint64_t bytes)
{
	if (phase->quiet)
		return;
	uint64_t cpu_ns, disk_bytes, wall_ns = gw_now_ns() - phase->start_ns;
	read_usage(&cpu_ns, &disk_bytes);
	cpu_ns -= phase->cpu_ns;
	disk_bytes -= phase->disk_bytes;
	unsigned usable = phase->threads < gw_processors() ? phase->threads : gw_processors();
	double busy = (double)cpu_ns / ((double)(wall_ns ? wall_ns : 1) * usable);
	char time[GW_UNIT_TEXT_MAX], rate[GW_UNIT_TEXT_MAX], binds[128] = "";
	if (wall_ns >= TELL_FROM_NS) {
		const char *who = busy >= BUSY_SHARE                ? "the processors bind"
				  : disk_bytes > bytes / 2 && bytes ? "the disk binds"
								    : "neither disk nor processors bind";
		snprintf(binds, sizeof(binds), ": %s (%u thread%s %.0f %% busy)", who, usable, usable == 1 ? "" : "s",
			 busy * 100);
	}
	gw_text_duration(time, (double)wall_ns / GW_NS_PER_SECOND);
	if (bytes == 0) {
		fprintf(stderr, "%s: %s%s\n", what, time, binds);
		return;
	}
	gw_text_count(rate, (double)bytes * 1e9 / (double)(wall_ns ? wall_ns : 1));
	char amount[GW_UNIT_TEXT_MAX];
	fprintf(stderr, "%s: %sB in %s, %sB/s%s\n", what, gw_text_count(amount, (double)bytes), time, rate, binds);
}
