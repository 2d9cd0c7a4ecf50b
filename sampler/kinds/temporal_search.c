/* Searches in lists that are sorted by time: see temporal_search.h.
 *
 * At hand, the lists of a run take the steps of their bisections in turn, so that the times that they need next arrive
 * together. The last steps of a list are in one line of memory, and follow each other.
 */
#include "sampler/kinds/temporal_search.h"

#include "sampler/columns.h"

#define INLINE static inline __attribute__((always_inline))
#define BLOCK  (1ull << GW_FENCE_SHIFT)
#define NEAR   8 /* so many times are in one line, or two */

/* ---- at hand ---- */

/* How many of the times from `at` on are at or below the bound: at least low, and at most low + n. */
struct search {
	const uint8_t *at;
	uint64_t low, n;
	int64_t bound;
};

INLINE void search_step(gw_dtype dtype, struct search *search)
{
	uint64_t half = search->n / 2;
	int64_t key = gw_time_key(dtype, search->at + (search->low + half) * gw_dtype_bytes(dtype));
	bool below = key <= search->bound;
	search->low += below ? half + 1 : 0;
	search->n = below ? search->n - half - 1 : half;
}

INLINE void search_typed(gw_dtype dtype, struct search *searches, uint32_t count)
{
	uint16_t open[GW_RUN_MAX];
	uint32_t width = gw_dtype_bytes(dtype);
	for (uint32_t i = 0; i < count; i++) {
		open[i] = (uint16_t)i;
		__builtin_prefetch(searches[i].at + searches[i].n / 2 * width);
	}
	while (count) {
		uint32_t left = 0;
		for (uint32_t i = 0; i < count; i++) {
			struct search search = searches[open[i]];
			if (search.n > NEAR)
				search_step(dtype, &search);
			else
				while (search.n)
					search_step(dtype, &search);
			searches[open[i]] = search;
			open[left] = open[i];
			left += search.n > 0;
			__builtin_prefetch(search.at + (search.low + search.n / 2) * width);
		}
		count = left;
	}
}

static void search_each(gw_dtype dtype, struct search *searches, uint32_t count)
{
	switch (dtype) {
	case GW_INT32:
		search_typed(GW_INT32, searches, count);
		break;
	case GW_FLOAT32:
		search_typed(GW_FLOAT32, searches, count);
		break;
	case GW_FLOAT64:
		search_typed(GW_FLOAT64, searches, count);
		break;
	default:
		search_typed(GW_INT64, searches, count);
	}
}

void gw_temporal_search(const struct gw_temporal *t, struct gw_temporal_span spans[GW_RUN_MAX])
{
	const struct gw_draw_run *run = t->run;
	gw_dtype dtype = gw_temporal_dtype(t, GW_COLUMN_TIME);
	struct search searches[GW_RUN_MAX];
	uint16_t lists[GW_RUN_MAX];
	uint32_t count = 0, windows = 0;
	for (uint32_t i = 0; i < run->lists.n; i++) {
		if (run->done[i])
			continue;
		lists[count] = (uint16_t)i;
		searches[count++] = (struct search){
			.at = gw_draw_at_hand(t->draw, run, i, GW_COLUMN_TIME),
			.n = run->lists.degrees[i],
			.bound = gw_temporal_ranges_of(t, i).times.until,
		};
	}
	search_each(dtype, searches, count);
	for (uint32_t s = 0; s < count; s++) {
		uint32_t list = lists[s];
		uint64_t high = searches[s].low;
		int64_t from = gw_temporal_ranges_of(t, list).times.from;
		spans[list] = (struct gw_temporal_span){0, high};
		if (from == INT64_MIN || high == 0)
			continue;
		lists[windows] = (uint16_t)list;
		searches[windows++] = (struct search){.at = searches[s].at, .n = high, .bound = from - 1};
	}
	search_each(dtype, searches, windows);
	for (uint32_t s = 0; s < windows; s++)
		spans[lists[s]].low = searches[s].low;
}

/* ---- by needs ---- */

/* How many of n sorted keys are before each bound of a range. */
struct ranks {
	uint64_t from, until;
};

static gw_status fail_unsorted(const struct gw_temporal *t, uint32_t list, const char *what)
{
	return gw_column_context(gw_fail(GW_PROTOCOL, "%s of a list that is sorted by time does not ascend", what),
				 t->draw, GW_COLUMN_TIME, t->run->lists.vertices[list]);
}

/* from: how many keys are before the range; until: how many are not after it. */
static gw_status rank_sorted(const struct gw_temporal *t, uint32_t list, enum gw_column column, const void *entries,
			     uint64_t n, struct ranks *ranks)
{
	const struct gw_time_range range = gw_temporal_ranges_of(t, list).times;
	gw_dtype dtype = gw_temporal_dtype(t, column);
	uint32_t width = gw_dtype_bytes(dtype);
	int64_t before = INT64_MIN;
	bool ascends = true;
	*ranks = (struct ranks){0, 0};
	for (uint64_t i = 0; i < n; i++) {
		int64_t key = gw_time_key(dtype, (const uint8_t *)entries + i * width);
		ranks->from += key < range.from;
		ranks->until += key <= range.until;
		ascends = ascends && key >= before;
		before = key;
	}
	return ascends ? GW_OK : fail_unsorted(t, list, column == GW_COLUMN_FENCE ? "the fence" : "a time");
}

gw_status gw_temporal_ask_times(struct gw_temporal *t, uint32_t list)
{
	const struct gw_lists *lists = &t->run->lists;
	uint64_t begin = lists->begins[list], degree = lists->degrees[list];
	if (degree <= BLOCK)
		return gw_draw_need(t->run, list, GW_COLUMN_TIME, 0, degree);
	uint64_t entries = gw_column_entry(GW_COLUMN_FENCE, begin + degree) - gw_column_entry(GW_COLUMN_FENCE, begin);
	return gw_draw_need(t->run, list, GW_COLUMN_FENCE, 0, entries);
}

gw_status gw_temporal_span_of_times(const struct gw_temporal *t, uint32_t list, const void *times,
				    struct gw_temporal_span *span)
{
	struct ranks ranks;
	gw_status status = rank_sorted(t, list, GW_COLUMN_TIME, times, t->run->lists.degrees[list], &ranks);
	*span = (struct gw_temporal_span){ranks.from, ranks.until};
	return status;
}

/* The edges between entry rank - 1 of the list's part of the fence and entry `rank`. */
static struct gw_temporal_span block_at(const struct gw_temporal *t, uint32_t list, uint64_t rank)
{
	uint64_t begin = t->run->lists.begins[list], degree = t->run->lists.degrees[list];
	uint64_t end = (gw_column_entry(GW_COLUMN_FENCE, begin) + rank) * BLOCK - begin;
	return (struct gw_temporal_span){rank ? end - BLOCK : 0, end < degree ? end : degree};
}

gw_status gw_temporal_ask_blocks(struct gw_temporal *t, uint32_t list, const void *fence, bool *none)
{
	struct gw_draw_run *run = t->run;
	uint64_t begin = run->lists.begins[list], degree = run->lists.degrees[list];
	uint64_t entries = gw_column_entry(GW_COLUMN_FENCE, begin + degree) - gw_column_entry(GW_COLUMN_FENCE, begin);
	struct ranks ranks;
	gw_status status = rank_sorted(t, list, GW_COLUMN_FENCE, fence, entries, &ranks);
	if (status != GW_OK)
		return status;
	const struct gw_temporal_span low = block_at(t, list, ranks.from), high = block_at(t, list, ranks.until);
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
static gw_status rank_block(const struct gw_temporal *t, uint64_t number, bool first, struct ranks *ranks)
{
	const struct gw_need *need = &t->run->needs[number];
	gw_status status = rank_sorted(t, need->list, GW_COLUMN_TIME, t->run->got[number], need->count, ranks);
	bool fenced = (t->run->lists.begins[need->list] + need->first) % BLOCK == 0;
	if (status == GW_OK && fenced && (first ? ranks->from : ranks->until) == 0)
		status = fail_unsorted(t, need->list, "the fence");
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
	struct ranks ranks;
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
