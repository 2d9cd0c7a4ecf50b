/* Searches in lists that are sorted by time: see temporal_search.h.
 *
 * At hand, the lists of a run take the steps of their bisections in turn, so that the times that they need next arrive
 * together. The last steps of a list are in one line of memory, and follow each other.
 */
#include "sampler/kinds/temporal_search.h"

#define INLINE   static inline __attribute__((always_inline))
#define BLOCK    ((uint64_t)GW_FENCE_STEP)
#define NEAR     8 /* so many times are in one line, or two */
#define SEARCHES (2 * GW_RUN_MAX)

/* The part of the fence that lies in a list of `degree` edges at position `begin` of its part. */
struct list_fence {
	uint64_t begin, degree, entries;
};

static struct list_fence fence_in(uint64_t begin, uint64_t degree)
{
	uint64_t first = gw_column_entry(GW_COLUMN_FENCE, begin),
		 end = gw_column_entry(GW_COLUMN_FENCE, begin + degree);
	return (struct list_fence){begin, degree, end - first};
}

/* The edges of the list between entry rank - 1 of the fence and entry `rank`. */
static struct gw_temporal_span fence_block(const struct list_fence *fence, uint64_t rank)
{
	uint64_t end = (gw_column_entry(GW_COLUMN_FENCE, fence->begin) + rank) * BLOCK - fence->begin;
	return (struct gw_temporal_span){rank ? end - BLOCK : 0, end < fence->degree ? end : fence->degree};
}

/* ---- at hand ---- */

/* How many of the entries from `at` on are at or below the bound: at least low, and at most low + n. */
struct time_search {
	const uint8_t *at;
	uint64_t low, n;
	int64_t bound;
};

/* Halves n, whatever the entry says, and takes no branch by it: neither could be predicted. */
INLINE void search_step(gw_dtype dtype, uint32_t width, struct time_search *search)
{
	uint64_t half = search->n / 2, step = search->n - half;
	bool below = gw_time_key(dtype, search->at + (search->low + step - 1) * width) <= search->bound;
	search->low += step & -(uint64_t)below;
	search->n = half;
}

/* What the next step reads, or all that the last steps read. */
INLINE void search_prefetch(uint32_t width, const struct time_search *search)
{
	uint64_t half = search->n / 2, step = search->n - half;
	const uint8_t *at = search->at + search->low * width;
	bool near = search->n <= NEAR;
	__builtin_prefetch(at + (near ? 0 : step - 1) * width);
	__builtin_prefetch(at + (near ? search->n : step - 1) * width);
}

/* Those whose numbers are in `open`; it is overwritten. */
INLINE void search_typed(gw_dtype dtype, uint32_t width, struct time_search *searches, uint16_t *open, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		search_prefetch(width, &searches[open[i]]);
	while (count) {
		uint32_t left = 0;
		for (uint32_t i = 0; i < count; i++) {
			struct time_search search = searches[open[i]];
			bool near = search.n <= NEAR;
			do
				search_step(dtype, width, &search);
			while (near && search.n > 0);
			searches[open[i]] = search;
			open[left] = open[i];
			left += search.n > 0;
			search_prefetch(width, &search);
		}
		count = left;
	}
}

static void search_each(gw_dtype dtype, struct time_search *searches, uint16_t *open, uint32_t count)
{
	switch (dtype) {
	case GW_INT32:
		search_typed(GW_INT32, 4, searches, open, count);
		break;
	case GW_FLOAT32:
		search_typed(GW_FLOAT32, 4, searches, open, count);
		break;
	case GW_FLOAT64:
		search_typed(GW_FLOAT64, 8, searches, open, count);
		break;
	default:
		search_typed(GW_INT64, 8, searches, open, count);
	}
}

/* Bounds in lists, and how many times of its list are at or below each. */
struct time_bounds {
	uint32_t count;
	uint16_t list[SEARCHES];
	struct time_search searches[SEARCHES];
};

static void bounds_add(struct time_bounds *bounds, uint32_t list, int64_t bound)
{
	bounds->list[bounds->count] = (uint16_t)list;
	bounds->searches[bounds->count++].bound = bound;
}

/* Long lists search the fence first: it is small, and stays in the caches. */
static void bounds_search(const struct gw_temporal *t, struct time_bounds *bounds)
{
	const struct gw_draw_run *run = t->run;
	uint16_t open[SEARCHES];
	uint32_t count = 0;
	for (uint32_t i = 0; i < bounds->count; i++) {
		uint32_t list = bounds->list[i];
		struct time_search *search = &bounds->searches[i];
		search->low = 0;
		search->n = fence_in(gw_draw_position(run, list), run->lists.degrees[list]).entries;
		search->at = gw_draw_at_hand(t->draw, run, list, GW_COLUMN_FENCE);
		open[count] = (uint16_t)i;
		count += run->lists.degrees[list] > BLOCK;
	}
	search_each(GW_INT64, bounds->searches, open, count);
	count = 0;
	for (uint32_t i = 0; i < bounds->count; i++) {
		uint32_t list = bounds->list[i];
		uint64_t degree = run->lists.degrees[list];
		struct time_search *search = &bounds->searches[i];
		struct gw_temporal_span block = {0, degree};
		const struct list_fence fence = fence_in(gw_draw_position(run, list), degree);
		if (degree > BLOCK)
			block = fence_block(&fence, search->low);
		search->low = block.low;
		search->n = block.high - block.low;
		search->at = gw_draw_at_hand(t->draw, run, list, GW_COLUMN_TIME);
		open[count] = (uint16_t)i;
		count += search->n > 0;
	}
	search_each(gw_temporal_dtype(t, GW_COLUMN_TIME), bounds->searches, open, count);
}

void gw_temporal_search(const struct gw_temporal *t, struct gw_temporal_span spans[GW_RUN_MAX])
{
	const struct gw_draw_run *run = t->run;
	struct time_bounds bounds;
	bounds.count = 0;
	for (uint32_t i = 0; i < run->lists.n; i++) {
		const struct gw_time_range range = gw_temporal_ranges_of(t, i).times;
		if (run->done[i])
			continue;
		spans[i].low = 0;
		bounds_add(&bounds, i, range.until);
		if (range.from != INT64_MIN)
			bounds_add(&bounds, i, range.from - 1);
	}
	bounds_search(t, &bounds);
	for (uint32_t i = 0; i < bounds.count; i++) {
		if (i > 0 && bounds.list[i] == bounds.list[i - 1])
			spans[bounds.list[i]].low = bounds.searches[i].low;
		else
			spans[bounds.list[i]].high = bounds.searches[i].low;
	}
}

/* ---- by needs ---- */

/* How many of n sorted keys are before each bound of a range. */
struct time_ranks {
	uint64_t from, until;
};

/* from: how many keys are before the range; until: how many are not after it. */
static gw_status rank_sorted(const struct gw_temporal *t, uint32_t list, enum gw_column column, const void *entries,
			     uint64_t n, struct time_ranks *ranks)
{
	const struct gw_time_range range = gw_temporal_ranges_of(t, list).times;
	gw_dtype dtype = gw_temporal_dtype(t, column);
	uint32_t width = gw_dtype_bytes(dtype);
	int64_t before = INT64_MIN;
	bool ascends = true;
	*ranks = (struct time_ranks){0, 0};
	for (uint64_t i = 0; i < n; i++) {
		int64_t key = gw_time_key(dtype, (const uint8_t *)entries + i * width);
		ranks->from += key < range.from;
		ranks->until += key <= range.until;
		ascends = ascends && key >= before;
		before = key;
	}
	return ascends ? GW_OK : gw_temporal_unsorted(t, list, column == GW_COLUMN_FENCE ? "the fence" : "a time");
}

gw_status gw_temporal_ask_times(struct gw_temporal *t, uint32_t list)
{
	const struct gw_lists *lists = &t->run->lists;
	uint64_t degree = lists->degrees[list];
	if (degree <= BLOCK)
		return gw_draw_need(t->run, list, GW_COLUMN_TIME, 0, degree);
	return gw_draw_need(t->run, list, GW_COLUMN_FENCE, 0, fence_in(lists->begins[list], degree).entries);
}

gw_status gw_temporal_span_of_times(const struct gw_temporal *t, uint32_t list, const void *times,
				    struct gw_temporal_span *span)
{
	struct time_ranks ranks;
	gw_status status = rank_sorted(t, list, GW_COLUMN_TIME, times, t->run->lists.degrees[list], &ranks);
	*span = (struct gw_temporal_span){ranks.from, ranks.until};
	return status;
}

gw_status gw_temporal_ask_blocks(struct gw_temporal *t, uint32_t list, const void *entries, bool *none)
{
	struct gw_draw_run *run = t->run;
	const struct list_fence fence = fence_in(run->lists.begins[list], run->lists.degrees[list]);
	struct time_ranks ranks;
	gw_status status = rank_sorted(t, list, GW_COLUMN_FENCE, entries, fence.entries, &ranks);
	if (status != GW_OK)
		return status;
	const struct gw_temporal_span low = fence_block(&fence, ranks.from), high = fence_block(&fence, ranks.until);
	*none = high.low == high.high;
	if (*none)
		return GW_OK;
	/* 1: the span begins in a block, which is the list's first need; 0: at the list's first edge. */
	run->counts[list] = low.low < low.high && gw_temporal_ranges_of(t, list).times.from != INT64_MIN;
	if (run->counts[list] && low.low != high.low)
		status = gw_draw_need(run, list, GW_COLUMN_TIME, low.low, low.high - low.low);
	return status != GW_OK ? status : gw_draw_need(run, list, GW_COLUMN_TIME, high.low, high.high - high.low);
}

/* The ranks in a block, which must begin with its entry of the fence: in the ranks that the fence gave. */
static gw_status rank_block(const struct gw_temporal *t, uint64_t number, bool first, struct time_ranks *ranks)
{
	const struct gw_need *need = &t->run->needs[number];
	gw_status status = rank_sorted(t, need->list, GW_COLUMN_TIME, t->run->got[number], need->count, ranks);
	bool fenced = (t->run->lists.begins[need->list] + need->first) % BLOCK == 0;
	if (status == GW_OK && fenced && (first ? ranks->from : ranks->until) == 0)
		status = gw_temporal_unsorted(t, need->list, "the fence");
	ranks->from += need->first;
	ranks->until += need->first;
	return status;
}

gw_status gw_temporal_span_of_blocks(const struct gw_temporal *t, uint64_t need, struct gw_temporal_span *span,
				     uint64_t *used)
{
	const struct gw_draw_run *run = t->run;
	uint32_t list = run->needs[need].list;
	bool begins = run->counts[list], two = need + 1 < run->need_count && run->needs[need + 1].list == list;
	struct time_ranks ranks;
	gw_status status = GW_OK;
	*span = (struct gw_temporal_span){0, 0};
	*used = two ? 2 : 1;
	if (begins) {
		status = rank_block(t, need, true, &ranks);
		span->low = ranks.from;
	}
	if (status == GW_OK)
		status = rank_block(t, need + *used - 1, false, &ranks);
	span->high = ranks.until;
	return status;
}
