/* Scans times and ends: see temporal_scan.h.
 *
 *   entries ─▶ times in the range ─▶ ends in the range ─▶ the eligible edges, 8 bytes each ─▶ picks among them
 *
 * The last k of edges that are not sorted by time come from a heap of k edges, whose root is the earliest.
 */
#include "sampler/kinds/temporal_scan.h"

#include "sampler/pick.h"

/* Keeps the entries whose keys are in the range. all: they are [0, n); else they are those that kept lists. */
static inline __attribute__((always_inline)) uint64_t keep_typed(gw_dtype dtype, uint32_t width, const uint8_t *entries,
								 const struct gw_time_range *range, bool all,
								 uint64_t *kept, uint64_t n)
{
	const int64_t from = range->from, until = range->until;
	uint64_t count = 0;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t entry = all ? i : kept[i];
		int64_t key = gw_time_key(dtype, entries + entry * width);
		kept[count] = entry;
		count += key >= from && key <= until;
	}
	return count;
}

static uint64_t keep_in_range(gw_dtype dtype, const void *entries, const struct gw_time_range *range, bool all,
			      uint64_t *kept, uint64_t n)
{
	switch (dtype) {
	case GW_INT32:
		return keep_typed(GW_INT32, 4, entries, range, all, kept, n);
	case GW_FLOAT32:
		return keep_typed(GW_FLOAT32, 4, entries, range, all, kept, n);
	case GW_FLOAT64:
		return keep_typed(GW_FLOAT64, 8, entries, range, all, kept, n);
	default:
		return keep_typed(GW_INT64, 8, entries, range, all, kept, n);
	}
}

/* Edges with their times. */
struct timed {
	gw_dtype dtype;
	const uint8_t *times;
};

/* Of equal times, the later position is later. */
static bool is_later(const struct timed *timed, uint64_t a, uint64_t b)
{
	uint32_t width = gw_dtype_bytes(timed->dtype);
	int64_t of_a = gw_time_key(timed->dtype, timed->times + a * width);
	int64_t of_b = gw_time_key(timed->dtype, timed->times + b * width);
	return of_a != of_b ? of_a > of_b : a > b;
}

/* Puts an edge at place `at` of a heap of n edges, or below it: each edge is earlier than the two below it. */
static void heap_put(const struct timed *timed, uint64_t *heap, uint64_t n, uint64_t at, uint64_t edge)
{
	for (;;) {
		uint64_t below = 2 * at + 1;
		if (below + 1 < n && is_later(timed, heap[below], heap[below + 1]))
			below++;
		if (below >= n || !is_later(timed, edge, heap[below]))
			break;
		heap[at] = heap[below];
		at = below;
	}
	heap[at] = edge;
}

/* The last n of the eligible edges, ascending by position. */
static gw_status pick_latest(const struct timed *timed, const uint64_t *eligible, uint64_t count, uint64_t n,
			     uint64_t *out, struct gw_pick_scratch *scratch)
{
	for (uint64_t i = 0; i < n; i++)
		out[i] = eligible[i];
	for (uint64_t at = n / 2; at-- > 0;)
		heap_put(timed, out, n, at, out[at]);
	for (uint64_t i = n; n > 0 && i < count; i++) {
		if (is_later(timed, eligible[i], out[0]))
			heap_put(timed, out, n, 0, eligible[i]);
	}
	return gw_pick_sort(out, n, scratch);
}

gw_status gw_temporal_scan(struct gw_temporal *t, uint32_t list, const struct gw_temporal_entries *entries)
{
	const struct gw_temporal_ranges ranges = gw_temporal_ranges_of(t, list);
	const struct gw_lists *lists = &t->run->lists;
	struct gw_pick_scratch *scratch = t->run->scratch;
	uint64_t *slots = gw_temporal_slots(t, list), n = entries->count;
	gw_status status = gw_vec_reserve(&scratch->eligible, n * sizeof(uint64_t));
	if (status != GW_OK)
		return status;
	uint64_t *eligible = scratch->eligible.data;
	const struct timed timed = {gw_temporal_dtype(t, GW_COLUMN_TIME), entries->times};
	if (entries->times)
		n = keep_in_range(timed.dtype, entries->times, &ranges.times, true, eligible, n);
	if (entries->ends)
		n = keep_in_range(gw_temporal_dtype(t, GW_COLUMN_END), entries->ends, &ranges.ends, !entries->times,
				  eligible, n);
	uint64_t count = gw_temporal_count(t, n);
	if (t->last && timed.times && count < n) {
		status = pick_latest(&timed, eligible, n, count, slots, scratch);
	} else if (t->last) {
		for (uint64_t i = 0; i < count; i++)
			slots[i] = eligible[n - count + i];
	} else {
		status = gw_pick_in(&t->draw->rule, lists->vertices[list], gw_temporal_group(t, list), n, scratch,
				    slots);
		for (uint64_t i = 0; status == GW_OK && i < count; i++)
			slots[i] = eligible[slots[i]];
	}
	for (uint64_t i = 0; status == GW_OK && i < count; i++) {
		slots[i] += lists->begins[list] + entries->first;
		gw_lists_prefetch(t->run->memory, slots[i], t->run->element_bytes);
	}
	t->run->counts[list] = (uint32_t)count;
	t->run->done[list] = true;
	return status == GW_OK ? GW_OK : gw_context(status, "vertex %llu", (unsigned long long)lists->vertices[list]);
}
