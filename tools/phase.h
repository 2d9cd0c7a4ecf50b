/* Reports one phase of work in one line on stderr: its time, its speed and what limited it. */
#ifndef GW_TOOLS_PHASE_H
#define GW_TOOLS_PHASE_H

#include <stdbool.h>
#include <stdint.h>

struct gw_phase {
	uint64_t start_ns, cpu_ns, disk_bytes;
	long switches; /* involuntary: other programs wanted the processors */
	unsigned threads;
	bool quiet;
};

/* --quiet: logs errors only, no warnings. */
void gw_phase_hush(bool quiet);

/* Prints the line of a command that has written a graph, on standard output. */
void gw_phase_print_graph(bool quiet, const char *folder, const char *name, uint64_t nodes, uint64_t edges);

/* Prints the bytes of the arrays that are made of times, on stderr; no line for 0. */
void gw_phase_print_times(bool quiet, uint64_t bytes);

/* Prints the number of runs and the bytes of temporary files, on stderr; no line without such files. */
void gw_phase_print_runs(bool quiet, uint64_t runs, uint64_t file_bytes);

/* threads 0: all processors. */
struct gw_phase gw_phase_begin(unsigned threads, bool quiet);

/* A pass through temporary files, which reads and writes so many bytes of blocks. "pass: edges to runs: 4.3 GB read
 * and 6.4 GB written in 9.1 s, 1.2 GB/s: the processors are the limit (1 thread 97 % busy)". */
void gw_phase_end_pass(const struct gw_phase *phase, const char *what, uint64_t read_bytes, uint64_t written_bytes);

/* "parse: 120 MB in 0.31 s, 387 MB/s: the processors are the limit (2 threads 98 % busy)". bytes 0: time only. */
void gw_phase_end(const struct gw_phase *phase, const char *what, uint64_t bytes);

#endif
