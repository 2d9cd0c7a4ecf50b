/* A search for many times at once in ascending keys that are read piece by piece.
 *
 *   segment: sorted times, and the entries where the answers may be
 *     -> gw_time_entry() names some of its entries, or all of a short one -> their keys are read
 *     -> gw_time_split() -> segments with fewer entries ... -> segments without entries: the answers
 *
 * The answer for a time is the number of keys that are not later. Times that a segment shares cost one read, so the
 * first levels are read once for all times. The keys may be a peer's: an answer is always in bounds, and keys that do
 * not ascend along the search are noticed.
 */
#ifndef GW_SAMPLER_TIME_SEARCH_H
#define GW_SAMPLER_TIME_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#define GW_TIME_ENTRIES_MAX 15u /* that divide a long segment */
#define GW_TIME_WHOLE       4u  /* a segment of this many times as many entries is read whole */

struct gw_time_segment {
	uint32_t part;         /* of the keys; only the caller reads it */
	uint32_t first, count; /* the times */
	uint64_t low, high;    /* the answers are in [low, high]; all of them are low if both are equal */
	int64_t low_key, high_key;
};

static inline struct gw_time_segment gw_time_segment_begin(uint32_t part, uint32_t times, uint64_t rows)
{
	return (struct gw_time_segment){
		.part = part, .count = times, .high = rows, .low_key = INT64_MIN, .high_key = INT64_MAX};
}

/* The number of entries to read next. most: those that divide a long segment, 1 to GW_TIME_ENTRIES_MAX. */
static inline uint32_t gw_time_entries(const struct gw_time_segment *segment, uint32_t most)
{
	uint64_t left = segment->high - segment->low;
	return left <= (uint64_t)GW_TIME_WHOLE * most ? (uint32_t)left : most;
}

/* Entry i of n: ascending. */
static inline uint64_t gw_time_entry(const struct gw_time_segment *segment, uint32_t n, uint32_t i)
{
	uint64_t left = segment->high - segment->low, place = 2 * (uint64_t)i + 1, places = 2 * (uint64_t)n;
	return segment->low + (uint64_t)((unsigned __int128)left * place / places);
}

/* Divides a segment by the keys of its n entries. times: of the whole search, ascending. out: room for n + 1 segments,
 * or for as many as the segment has times. Returns the number of segments; 0: the keys do not ascend. */
uint32_t gw_time_split(const struct gw_time_segment *segment, const int64_t *times, const int64_t *keys, uint32_t n,
		       struct gw_time_segment *out);

#endif
