/* The times of single rounds of a case and of its ceiling, in short alternating slices, so that a disturbance of the
 * machine affects both. */
#ifndef GW_BENCH_ROUNDS_H
#define GW_BENCH_ROUNDS_H

#include "bench/bench.h"

/* Runs so many rounds, one after another; microseconds[rounds] gets the time of each. */
typedef gw_status (*gw_rounds_measure)(void *context, uint32_t rounds, double *microseconds);

/* The figures of one side: the medians and the 99th percentiles of the repeats, and the medians of all slices. */
struct gw_rounds_side {
	struct gw_bench_series p50, p99;
	double *slices;
	size_t slice_count;
};

/* Two groups of slices that are far apart. The median of all slices then means little, since another run may have
 * more slices of the other group. */
struct gw_rounds_modes {
	bool two;
	double low_us, high_us; /* the medians of the groups */
	double high_share;      /* share of the slices */
};

struct gw_rounds {
	struct gw_rounds_side value, ceiling;
};

/* Measures `rounds` rounds of each side in every repeat. Call gw_rounds_free afterwards, also on failure. */
gw_status gw_rounds_run(struct gw_rounds *rounds, const struct gw_bench *bench, uint32_t count,
			gw_rounds_measure ceiling, gw_rounds_measure value, void *context);
void gw_rounds_free(struct gw_rounds *rounds);

/* Whether the values fall into two groups: at least a tenth in each, at least a third apart, with hardly any value
 * between. Sorts the values. */
struct gw_rounds_modes gw_rounds_find_modes(double *values, size_t count);

/* Reports the case with its ceiling, in the table and as JSON. Fields: p50_us, p99_us, ceiling_p99_us, bimodal and
 * ceiling_bimodal ("no", or "7.1 and 19.3 us"), placement, and `more` if it has a name. ceiling_is: "ping-pong's
 * rounds". */
void gw_rounds_report(struct gw_bench *bench, struct gw_rounds *rounds, const char *title, const char *placement,
		      const char *ceiling_is, struct gw_bench_field more);

#endif
