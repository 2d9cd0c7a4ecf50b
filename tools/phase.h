/* What a phase of work took, how fast it was and what bound it: one line on stderr. */
#ifndef GW_TOOLS_PHASE_H
#define GW_TOOLS_PHASE_H

#include <stdbool.h>
#include <stdint.h>

struct gw_phase {
	uint64_t start_ns, cpu_ns, disk_bytes;
	long switches; /* involuntary: others wanted the processors */
	unsigned threads;
	bool quiet;
};

/* threads: 0 for all processors. */
struct gw_phase gw_phase_begin(unsigned threads, bool quiet);

/* "parse: 120 MB in 0.31 s, 387 MB/s: the processors bind (2 threads 98 % busy)". bytes 0: time only. */
void gw_phase_end(const struct gw_phase *phase, const char *what, uint64_t bytes);

#endif
