/* The times of single rounds of a case and of its ceiling. Slices of both alternate, so that changes of the machine's
 * load affect both.
 */
#ifndef GW_BENCH_ROUNDS_H
#define GW_BENCH_ROUNDS_H

#include "bench/bench.h"

/* Runs `rounds` rounds, one after the other. microseconds[rounds] gets the time of each. */
typedef gw_status (*gw_rounds_measure)(void *context, uint32_t rounds, double *microseconds);

/* One side's figures: the medians and the 99th percentiles of the repeats, and the medians of all slices. */
struct gw_rounds_side {
	struct gw_bench_series p50, p99;
	double *slices;
	size_t slice_count;
};

/* Two groups of slices that are far apart. The median of all slices then means little, because another run may have
 * other shares of the groups. */
struct gw_rounds_modes {
	bool two;
	double low_us, high_us; /* the medians of the groups */
	double high_share;      /* share of the slices in the upper group */
};

struct gw_rounds {
	struct gw_rounds_side value, ceiling;
};

/* Measures `count` rounds of the case and of the ceiling in every repeat. Call gw_rounds_free afterwards, also on
 * failure. */
gw_status gw_rounds_run(struct gw_rounds *rounds, const struct gw_bench *bench, uint32_t count,
			gw_rounds_measure ceiling, gw_rounds_measure value, void *context);
void gw_rounds_free(struct gw_rounds *rounds);

/* Whether the values fall into two groups: each with at least a tenth of the values, at least a third apart, with
 * hardly any value between them. Sorts the values. */
struct gw_rounds_modes gw_rounds_find_modes(double *values, size_t count);

/* Reports the case with its ceiling, in the table and as JSON. The JSON fields are p50_us, p99_us, ceiling_p99_us,
 * bimodal and ceiling_bimodal ("no", or "7.1 and 19.3 us"), placement, and `more` if it has a name. ceiling_is names
 * the ceiling's rounds: "ping-pong's rounds". */
void gw_rounds_report(struct gw_bench *bench, struct gw_rounds *rounds, const char *title, const char *placement,
		      const char *ceiling_is, struct gw_bench_field more);

#endif
