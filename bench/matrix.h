/* The matrix of latency and throughput: the cost of a row of each size over each transport of this host. */
#ifndef GW_BENCH_MATRIX_H
#define GW_BENCH_MATRIX_H

#include "bench/bench.h"
#include "core/memory/arena.h"

#define MATRIX_SIZES_MAX 16u

struct gw_matrix_spec {
	const struct gw_arena *table; /* the table that rows are read from */
	const uint32_t *row_bytes;    /* sizes, ascending */
	unsigned row_sizes;
	double seconds; /* total time of all measurements */
	uint64_t spin_us;
	uint32_t queue_pairs;
	const char *transport; /* one of gw_row_options; NULL: all */
	const char *plot_path; /* NULL: no plot */
};

/* Measures, prints the table, and writes JSON and the plot. If this host lacks a transport, the table names it with the
 * reason. Any other failure ends the run. */
gw_status gw_matrix_run(struct gw_bench *bench, const struct gw_matrix_spec *spec);

#endif
