/* The lists of bench sample as a graph of many edge types: edge i of each list has type i modulo their number. */
#ifndef GW_BENCH_SAMPLE_TYPES_H
#define GW_BENCH_SAMPLE_TYPES_H

#include "bench/bench.h"
#include "bench/sample_bed.h"

/* Measures batches of 512 seeds and one hop, of one edge of each type, in one thread, and reports them. GW_FORMAT: a
 * batch is not a sample of the graph. */
gw_status sample_types_measure(struct gw_bench *bench, const struct sample_graph *graph, uint32_t types);

#endif
