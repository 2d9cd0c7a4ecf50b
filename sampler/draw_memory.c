/* The memory driver: see draw_memory.h. It answers a round's needs with pointers, and prefetches what they point to. */
#include "sampler/draw_memory.h"

static const void *entries_of(const struct gw_draw *draw, const struct gw_draw_run *run, const struct gw_need *need)
{
	if (need->column == GW_COLUMN_IDS)
		return (const void *)(run->memory + (run->lists.begins[need->list] + need->first) * run->element_bytes);
	return (const uint8_t *)gw_draw_at_hand(draw, run, need->list, need->column) +
	       need->first * draw->forms[need->column].entry_bytes;
}

/* Sets *too_long and fails if the round needs too much. */
static gw_status check_needs(const struct gw_draw_run *run, const struct gw_need *needs, uint64_t entries_max,
			     uint64_t *entries, uint32_t *too_long)
{
	uint64_t total = 0;
	for (uint64_t i = 0; i < run->next_count; i++) {
		uint32_t list = needs[i].list;
		total += needs[i].count;
		if (needs[i].count <= entries_max && (total <= entries_max || run->lists.n == 1))
			continue;
		/* Needs of later lists may come first. Then list 0 is not the reason. */
		*too_long = list == 0 && needs[i].count <= entries_max ? 1 : list;
		return gw_fail(GW_LIMIT, "vertex %llu: a draw needs %llu entries of its list",
			       (unsigned long long)run->lists.vertices[list], (unsigned long long)needs[i].count);
	}
	*entries = total;
	return GW_OK;
}

/* Sets run->got for the needs of the round that has just ended. */
static gw_status bring_entries(const struct gw_draw *draw, struct gw_draw_run *run, uint64_t entries_max,
			       uint32_t *too_long)
{
	struct gw_pick_scratch *scratch = run->scratch;
	struct gw_vec needed = scratch->needs;
	scratch->needs = scratch->next_needs;
	scratch->next_needs = needed;
	const struct gw_need *needs = scratch->needs.data;
	uint64_t total = 0;
	gw_status status = gw_vec_reserve(&scratch->got, run->next_count * sizeof(void *));
	if (status == GW_OK && entries_max != UINT64_MAX)
		status = check_needs(run, needs, entries_max, &total, too_long);
	if (status != GW_OK)
		return status;
	const void **got = scratch->got.data;
	for (uint64_t i = 0; i < run->next_count; i++) {
		got[i] = entries_of(draw, run, &needs[i]);
		__builtin_prefetch(got[i]);
	}
	run->needs = needs;
	run->got = got;
	run->need_count = run->next_count;
	run->entry_count += total;
	run->next_count = 0;
	run->next = &scratch->next_needs;
	return GW_OK;
}

gw_status gw_draw_from_memory(const struct gw_draw *draw, struct gw_draw_run *run,
			      const struct gw_draw_columns *columns, uint64_t *positions, uint64_t entries_max,
			      uint32_t *too_long)
{
	run->at_hand = columns;
	run->next = &run->scratch->next_needs;
	run->next_count = 0;
	run->entry_count = 0;
	gw_status status = draw->kind->round(draw, run, 0, positions);
	for (uint32_t round = 1; status == GW_AGAIN; round++) {
		status = bring_entries(draw, run, entries_max, too_long);
		if (status == GW_OK)
			status = draw->kind->round(draw, run, round, positions);
	}
	if (status == GW_OK)
		gw_draw_run_end(draw, run, positions);
	return status;
}
