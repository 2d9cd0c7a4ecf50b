/* The time of single rounds of a case and of its ceiling, side by side: in short slices, in turn, so that whatever the
 * machine does meets both. */
#ifndef GW_BENCH_ROUNDS_H
#define GW_BENCH_ROUNDS_H

#include "bench/bench.h"

/* So many rounds, one after the other; microseconds[rounds] takes the time of each. */
typedef gw_status (*gw_rounds_measure)(void *context, uint32_t rounds, double *microseconds);

/* One side's figures: the medians and the 99th percentiles of the repeats, and the medians of all slices. */
struct gw_rounds_side {
	struct gw_bench_series p50, p99;
	double *slices;
	size_t slice_count;
};

/* Two groups of slices far apart: the median of all of them says little, since another run may have more of the other.
 */
struct gw_rounds_modes {
	bool two;
	double low_us, high_us; /* the medians of the groups */
	double high_share;      /* of the slices */
};

struct gw_rounds {
	struct gw_rounds_side value, ceiling;
};

/* Measures `rounds` of each in every repeat. Call gw_rounds_free afterwards, also on failure. */
gw_status gw_rounds_run(struct gw_rounds *rounds, const struct gw_bench *bench, uint32_t count,
			gw_rounds_measure ceiling, gw_rounds_measure value, void *context);
void gw_rounds_free(struct gw_rounds *rounds);

/* Whether values, which are sorted here, fall into two groups: of at least a tenth each, at least a third apart, with
 * hardly anything between them. */
struct gw_rounds_modes gw_rounds_find_modes(double *values, size_t count);

/* The case with its ceiling, in the table and as JSON: the fields p50_us, p99_us, ceiling_p99_us, bimodal and
 * ceiling_bimodal ("no", or "7.1 and 19.3 us"), placement, and one more if it has a name. ceiling_is: "ping-pong's
 * rounds". */
void gw_rounds_report(struct gw_bench *bench, struct gw_rounds *rounds, const char *title, const char *placement,
		      const char *ceiling_is, struct gw_bench_field more);

#endif
