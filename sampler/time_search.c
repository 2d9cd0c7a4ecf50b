/* See time_search.h. Each entry divides what is left of the times: those before its key end at the entry, the others
 * begin behind it. */
#include "sampler/time_search.h"

uint32_t gw_time_split(const struct gw_time_segment *segment, const int64_t *times, const int64_t *keys, uint32_t n,
		       struct gw_time_segment *out)
{
	struct gw_time_segment rest = *segment;
	uint32_t end = segment->first + segment->count, made = 0;
	for (uint32_t i = 0; i <= n; i++) {
		uint64_t at = i < n ? gw_time_entry(segment, n, i) : segment->high;
		int64_t key = i < n ? keys[i] : segment->high_key;
		uint32_t stop = rest.first;
		if (key < rest.low_key)
			return 0;
		while (stop < end && (i == n || times[stop] < key))
			stop++;
		rest.count = stop - rest.first;
		rest.high = at;
		rest.high_key = key;
		if (rest.count)
			out[made++] = rest;
		rest.first = stop;
		rest.low = at + 1;
		rest.low_key = key;
	}
	return made;
}
