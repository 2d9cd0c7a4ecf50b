/* Measures a phase. Wall time, processor time and blocks read from disk show what the phase waited for. */
#include "tools/phase.h"

#include <stdio.h>
#include <sys/resource.h>

#include "core/errors/log.h"
#include "core/errors/options.h"
#include "core/system/clock.h"
#include "core/system/parallel.h"

#define TELL_FROM_NS      (20 * GW_NS_PER_MS) /* shorter phases do not show what limited them */
#define BUSY_SHARE        0.8  /* if threads are busy for a larger share of their time, the processors are the limit */
#define BLOCK_BYTES       512u /* bytes of a block in ru_inblock */
#define BINDS_MAX         160
#define PUSHED_PER_SECOND 20 /* involuntary switches of one thread; above this rate processors are scarce */

static void read_usage(uint64_t *cpu_ns, uint64_t *disk_bytes, long *switches)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	*cpu_ns = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * GW_NS_PER_SECOND +
		  (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
	*disk_bytes = (uint64_t)usage.ru_inblock * BLOCK_BYTES;
	*switches = usage.ru_nivcsw;
}

void gw_phase_hush(bool quiet)
{
	if (quiet)
		gw_log_set_level(GW_LOG_ERROR);
}

void gw_phase_print_graph(bool quiet, const char *folder, const char *name, uint64_t nodes, uint64_t edges)
{
	char some[GW_UNIT_TEXT_MAX], others[GW_UNIT_TEXT_MAX];
	if (!quiet)
		printf("%s/%s.json: %s nodes, %s edges\n", folder, name, gw_text_count(some, (double)nodes),
		       gw_text_count(others, (double)edges));
}

void gw_phase_print_times(bool quiet, uint64_t bytes)
{
	char text[GW_UNIT_TEXT_MAX];
	if (!quiet && bytes)
		fprintf(stderr, "times: %s for fences, indexes and sources' times\n",
			gw_text_bytes(text, (double)bytes));
}

void gw_phase_print_runs(bool quiet, uint64_t runs, uint64_t file_bytes)
{
	char text[GW_UNIT_TEXT_MAX];
	if (!quiet && runs)
		fprintf(stderr, "memory: edges sorted in %llu runs, with temporary files of %s\n",
			(unsigned long long)runs, gw_text_bytes(text, (double)file_bytes));
}

struct gw_phase gw_phase_begin(unsigned threads, bool quiet)
{
	struct gw_phase phase = {.threads = threads ? threads : gw_processors(), .quiet = quiet};
	read_usage(&phase.cpu_ns, &phase.disk_bytes, &phase.switches);
	phase.start_ns = gw_now_ns();
	return phase;
}

/* If threads were busy, or other programs preempted them, the processors are the limit. Otherwise the disk is the
 * limit, if the phase read from it. */
static const char *bound_by(const struct gw_phase *phase, double busy, double seconds, uint64_t disk_bytes,
			    long switches, uint64_t bytes)
{
	if (busy >= BUSY_SHARE)
		return "the processors are the limit";
	if (bytes && disk_bytes > bytes / 2)
		return "the disk is the limit";
	if ((double)switches > PUSHED_PER_SECOND * seconds * phase->threads)
		return "the processors are the limit; other programs use them too";
	return "waiting is the limit: for memory pages, writes or another program";
}

/* Returns the seconds. *binds: what limited them, "" if they are too few. */
static double phase_limit(const struct gw_phase *phase, uint64_t bytes, char binds[BINDS_MAX])
{
	uint64_t cpu_ns, disk_bytes, wall_ns = gw_now_ns() - phase->start_ns;
	long switches;
	read_usage(&cpu_ns, &disk_bytes, &switches);
	unsigned usable = phase->threads < gw_processors() ? phase->threads : gw_processors();
	double seconds = (double)(wall_ns ? wall_ns : 1) / GW_NS_PER_SECOND;
	double busy = (double)(cpu_ns - phase->cpu_ns) / GW_NS_PER_SECOND / (seconds * usable);
	binds[0] = 0;
	if (wall_ns >= TELL_FROM_NS)
		snprintf(binds, BINDS_MAX, ": %s (%u thread%s %.0f %% busy)",
			 bound_by(phase, busy, seconds, disk_bytes - phase->disk_bytes, switches - phase->switches,
				  bytes),
			 usable, usable == 1 ? "" : "s", busy * 100);
	return seconds;
}

void gw_phase_end(const struct gw_phase *phase, const char *what, uint64_t bytes)
{
	char time[GW_UNIT_TEXT_MAX], rate[GW_UNIT_TEXT_MAX], amount[GW_UNIT_TEXT_MAX], binds[BINDS_MAX];
	if (phase->quiet)
		return;
	double seconds = phase_limit(phase, bytes, binds);
	gw_text_duration(time, seconds);
	if (bytes == 0)
		fprintf(stderr, "%s: %s%s\n", what, time, binds);
	else
		fprintf(stderr, "%s: %s in %s, %s/s%s\n", what, gw_text_bytes(amount, (double)bytes), time,
			gw_text_bytes(rate, (double)bytes / seconds), binds);
}

void gw_phase_end_pass(const struct gw_phase *phase, const char *what, uint64_t read_bytes, uint64_t written_bytes)
{
	char time[GW_UNIT_TEXT_MAX], rate[GW_UNIT_TEXT_MAX], in[GW_UNIT_TEXT_MAX], out[GW_UNIT_TEXT_MAX],
		binds[BINDS_MAX];
	if (phase->quiet)
		return;
	double seconds = phase_limit(phase, read_bytes, binds), bytes = (double)read_bytes + (double)written_bytes;
	fprintf(stderr, "pass: %s: %s read and %s written in %s, %s/s%s\n", what, gw_text_bytes(in, (double)read_bytes),
		gw_text_bytes(out, (double)written_bytes), gw_text_duration(time, seconds),
		gw_text_bytes(rate, bytes / seconds), binds);
}
