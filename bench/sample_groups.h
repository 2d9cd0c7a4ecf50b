/* Disjoint batches over the lists of bench sample: every seed is a group of its own. */
#ifndef GW_BENCH_SAMPLE_GROUPS_H
#define GW_BENCH_SAMPLE_GROUPS_H

#include "bench/bench.h"
#include "bench/sample_bed.h"

/* Measures batches of these fanouts in one thread, and reports them. GW_FORMAT: a batch is not a sample of the graph.
 */
gw_status sample_groups_measure(struct gw_bench *bench, const struct sample_graph *graph, uint64_t seeds,
				const int32_t *fanouts, uint32_t hops);

#endif
