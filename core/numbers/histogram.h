/* Latency histograms: log-linear buckets (64 per power of two, so the error is under 1.6 %), of fixed size. Recording
 * allocates nothing.
 */
#ifndef GW_NUMBERS_HISTOGRAM_H
#define GW_NUMBERS_HISTOGRAM_H

#include <stdint.h>

#define GW_HISTOGRAM_BUCKETS 3776

struct gw_histogram {
	uint64_t count, min, max;
	uint64_t buckets[GW_HISTOGRAM_BUCKETS];
};

void gw_histogram_clear(struct gw_histogram *histogram);
void gw_histogram_add(struct gw_histogram *histogram, uint64_t value);
void gw_histogram_merge(struct gw_histogram *into, const struct gw_histogram *from);

/* A value that at least the given share (0 to 1) of the recorded values does not exceed: the smallest upper bound of a
 * bucket for which this holds. 0 if the histogram is empty. */
uint64_t gw_histogram_quantile(const struct gw_histogram *histogram, double share);

#endif
