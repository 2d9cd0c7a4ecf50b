/* The temporal kinds: uniform among the edges that a group may see, and the last of them. The law, exactly:
 *
 * Times, ends and the bounds of groups are compared as keys (core/numbers/time_key.h). An edge is eligible if
 *   from[group] <= key(time) <= until[group], and, if edges have ends, key(end) > until[group]; with strict_ends
 *   key(end) > until[group] + 1.
 * NaN is never an eligible time, and it is an end that never comes. The eligible edges of a list, m of them, have ranks
 * 0 to m - 1 in the order of the list.
 *
 * Temporal: the picks are those of gw_pick_in() from a list of m edges, as ranks: the words are those of the instance
 * (key, vertex, group). So at most k edges without replacement, and all of them if m <= k.
 * Last: the k edges of the greatest times; of equal times those of higher positions. All of them if m <= k. It draws
 * nothing, and replacement does not matter.
 * Fanout -1: all m edges.
 *
 * Rounds:
 *   0  asks for the times of each list, and for its ends
 *   1  picks
 */
#include "sampler/columns.h"
#include "sampler/kinds/temporal_scan.h"

static gw_status ask_list(struct gw_temporal *t, uint32_t list)
{
	uint64_t degree = t->run->lists.degrees[list];
	gw_status status = gw_draw_need(t->run, list, GW_COLUMN_TIME, 0, degree);
	if (status == GW_OK && t->ends)
		status = gw_draw_need(t->run, list, GW_COLUMN_END, 0, degree);
	return status;
}

static gw_status temporal_begin(struct gw_temporal *t)
{
	struct gw_draw_run *run = t->run;
	gw_status status = GW_OK;
	for (uint32_t i = 0; status == GW_OK && i < run->lists.n; i++) {
		const struct gw_temporal_ranges ranges = gw_temporal_ranges_of(t, i);
		run->done[i] =
			run->lists.degrees[i] == 0 || t->draw->rule.fanout == 0 || gw_temporal_is_empty(&ranges.times);
		if (!run->done[i])
			status = ask_list(t, i);
	}
	return status;
}

static gw_status temporal_continue(struct gw_temporal *t)
{
	const struct gw_draw_run *run = t->run;
	gw_status status = GW_OK;
	for (uint64_t n = 0; status == GW_OK && n < run->need_count; n += t->ends ? 2 : 1) {
		const struct gw_need *need = &run->needs[n];
		const struct gw_temporal_entries entries = {.first = need->first,
							    .count = need->count,
							    .times = run->got[n],
							    .ends = t->ends ? run->got[n + 1] : NULL};
		status = gw_temporal_scan(t, need->list, &entries);
	}
	return status;
}

static gw_status temporal_draw(const struct gw_draw *draw, struct gw_draw_run *run, uint32_t number,
			       uint64_t *positions, bool last)
{
	struct gw_temporal t = {.draw = draw, .run = run, .positions = positions, .number = number, .last = last};
	uint64_t asked = run->next_count;
	t.ends = draw->forms[GW_COLUMN_END].entry_bytes != 0;
	gw_status status = number == 0 ? temporal_begin(&t) : temporal_continue(&t);
	if (status != GW_OK)
		return status;
	return run->next_count > asked ? GW_AGAIN : GW_OK;
}

static gw_status temporal_round(const struct gw_draw *draw, struct gw_draw_run *run, uint32_t number,
				uint64_t *positions)
{
	return temporal_draw(draw, run, number, positions, false);
}

static gw_status last_round(const struct gw_draw *draw, struct gw_draw_run *run, uint32_t number, uint64_t *positions)
{
	return temporal_draw(draw, run, number, positions, true);
}

static uint64_t last_bound(const struct gw_pick_rule *rule, uint64_t degree)
{
	struct gw_pick_rule once = *rule;
	once.replace = false;
	return gw_pick_count(&once, degree);
}

/* A column of times: one number for each edge. */
static gw_status check_times(const struct gw_column_form *form, const char *what)
{
	if (form->entry_bytes == 0)
		return gw_fail(GW_UNSUPPORTED, "a draw by time needs %s for each edge", what);
	if (!gw_time_is_possible(form->dtype))
		return gw_fail(GW_UNSUPPORTED, "a draw by time needs int64, int32, float64 or float32, not %s",
			       gw_dtype_name(form->dtype));
	if (form->entry_bytes != gw_dtype_bytes(form->dtype))
		return gw_fail(GW_UNSUPPORTED, "a draw by time needs %s for each edge, not %u", what,
			       form->entry_bytes / gw_dtype_bytes(form->dtype));
	return GW_OK;
}

static gw_status temporal_check(const struct gw_draw *draw)
{
	const struct gw_column_form *time = &draw->forms[GW_COLUMN_TIME], *end = &draw->forms[GW_COLUMN_END];
	gw_status status = check_times(time, "one time");
	if (status == GW_OK && end->entry_bytes)
		status = check_times(end, "one end");
	if (status == GW_OK && end->entry_bytes && gw_time_is_real(time->dtype) != gw_time_is_real(end->dtype))
		status = gw_fail(GW_UNSUPPORTED,
				 "times of %s and ends of %s: give whole numbers for both, or real ones for both",
				 gw_dtype_name(time->dtype), gw_dtype_name(end->dtype));
	return status;
}

#define COLUMNS (GW_COLUMN_BIT(GW_COLUMN_TIME) | GW_COLUMN_BIT(GW_COLUMN_FENCE) | GW_COLUMN_BIT(GW_COLUMN_END))

const struct gw_sampling_kind gw_sample_temporal = {
	.name = "temporal",
	.how = "by time",
	.number = GW_KIND_TEMPORAL,
	.columns = COLUMNS,
	.optional = GW_COLUMN_BIT(GW_COLUMN_END),
	.pick = GW_PICK_UNIFORM,
	.valued = true,
	.check = temporal_check,
	.round = temporal_round,
};

const struct gw_sampling_kind gw_sample_last = {
	.name = "last",
	.how = "by the last times",
	.number = GW_KIND_LAST,
	.columns = COLUMNS,
	.optional = GW_COLUMN_BIT(GW_COLUMN_END),
	.pick = GW_PICK_LAST,
	.valued = true,
	.bound = last_bound,
	.check = temporal_check,
	.round = last_round,
};
