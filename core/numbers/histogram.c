/* Log-linear buckets: each value below 64 has a bucket; above, each power of two is cut into 64 equal buckets. */
#include "core/numbers/histogram.h"

#include <string.h>

#define SUB_BITS 6 /* 64 buckets per power of two */

_Static_assert(GW_HISTOGRAM_BUCKETS == (64 - SUB_BITS + 1) << SUB_BITS, "a bucket for every 64-bit value");

static uint32_t bucket_of(uint64_t value)
{
	if (value < 1u << SUB_BITS)
		return (uint32_t)value;
	uint32_t shift = 63u - (uint32_t)__builtin_clzll(value) - SUB_BITS;
	return (shift << SUB_BITS) + (uint32_t)(value >> shift);
}

static uint64_t bucket_largest(uint32_t bucket)
{
	if (bucket < 2u << SUB_BITS)
		return bucket;
	uint32_t shift = (bucket >> SUB_BITS) - 1;
	uint64_t lead = bucket - (shift << SUB_BITS);
	return (lead << shift) + ((1ull << shift) - 1);
}

void gw_histogram_clear(struct gw_histogram *histogram)
{
	memset(histogram, 0, sizeof(*histogram));
	histogram->min = UINT64_MAX;
}

void gw_histogram_add(struct gw_histogram *histogram, uint64_t value)
{
	histogram->buckets[bucket_of(value)]++;
	histogram->count++;
	/* A zeroed histogram is valid too: its first value sets min. */
	if (value < histogram->min || histogram->count == 1)
		histogram->min = value;
	if (value > histogram->max)
		histogram->max = value;
}

void gw_histogram_merge(struct gw_histogram *into, const struct gw_histogram *from)
{
	if (from->count == 0)
		return;
	if (into->count == 0 || from->min < into->min)
		into->min = from->min;
	if (from->max > into->max)
		into->max = from->max;
	into->count += from->count;
	for (uint32_t i = 0; i < GW_HISTOGRAM_BUCKETS; i++)
		into->buckets[i] += from->buckets[i];
}

uint64_t gw_histogram_quantile(const struct gw_histogram *histogram, double share)
{
	if (histogram->count == 0)
		return 0;
	if (!(share > 0))
		return histogram->min;
	if (share >= 1)
		return histogram->max;
	double exact = share * (double)histogram->count;
	uint64_t rank = (uint64_t)exact;
	if ((double)rank < exact || rank == 0)
		rank++;
	uint64_t seen = 0;
	for (uint32_t i = 0; i < GW_HISTOGRAM_BUCKETS; i++) {
		seen += histogram->buckets[i];
		if (seen >= rank) {
			uint64_t top = bucket_largest(i);
			return top < histogram->max ? top : histogram->max;
		}
	}
	return histogram->max;
}
