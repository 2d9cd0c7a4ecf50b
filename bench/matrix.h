/* The table of the cost of a row: each size over each transport of this host. */
#ifndef GW_BENCH_MATRIX_H
#define GW_BENCH_MATRIX_H

#include "bench/bench.h"
#include "core/memory/arena.h"

#define MATRIX_SIZES_MAX 16u

struct gw_matrix_spec {
	const struct gw_arena *table; /* source of the rows */
	const uint32_t *row_bytes;    /* sizes, ascending */
	unsigned row_sizes;
	double seconds; /* of all measurements together */
	uint64_t spin_us;
	uint32_t queue_pairs;
	const char *transport; /* one of gw_row_options; NULL: all */
	const char *plot_path; /* NULL: no plot */
};

/* Measures, prints the table, writes JSON and plot. A transport that this host lacks is named with the reason; any
 * other failure ends the call. */
gw_status gw_matrix_run(struct gw_bench *bench, const struct gw_matrix_spec *spec);

#endif
