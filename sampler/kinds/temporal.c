/* The temporal kinds: uniform among the edges that a group may see, and the last of them. The law, exactly:
 *
 * Times, ends and the bounds of groups are compared as keys (core/numbers/time_key.h). An edge is eligible if
 *
 *   from[group] <= key(time) <= until[group], and
 *   key(end) > until[group]; with strict_ends key(end) > until[group] + 1; if edges have ends.
 *
 * NaN is never an eligible time, and it is an end that never comes. The eligible edges of a list, m of them, have ranks
 * 0 to m - 1 in the order of the list.
 *
 * Temporal: the picks are those of gw_pick_in() from a list of m edges, as ranks: the words are those of the instance
 * (key, vertex, group). So at most k edges without replacement, and all of them if m <= k.
 *
 * Last: the k edges of the greatest times; of equal times those of higher positions. All of them if m <= k. It draws
 * nothing, and replacement does not matter.
 *
 * Fanout -1: all m edges.
 *
 * Rounds of lists that are sorted by time, which a fence says. Without ends, the eligible edges are a span of the list:
 *
 *   0  at hand: the spans of all lists | asks for the times of short lists | for the fence of long ones
 *   1  the spans of short lists | asks for blocks of times of long ones
 *   2  the spans of long lists
 *
 * Then the lists are narrowed to their spans, and drawn from as uniform lists are, all at once. With ends, a list asks
 * for those of its span, and the next round scans them.
 *
 * Rounds of other lists:
 *
 *   0  asks for the times of each list, and for its ends
 *   1  scans them
 */
#include "sampler/kinds/temporal_scan.h"
#include "sampler/kinds/temporal_search.h"

static void leave_empty(struct gw_temporal *t, uint32_t list)
{
	t->run->lists.degrees[list] = 0;
	t->run->counts[list] = 0;
	t->run->done[list] = true;
}

/* ---- lists that are sorted by time ---- */

/* The edges of the span are eligible, except for their ends. */
static gw_status take_span(struct gw_temporal *t, uint32_t list, const struct gw_temporal_span *span)
{
	struct gw_lists *lists = &t->run->lists;
	t->run->counts[list] = 0;
	if (span->low > span->high)
		return gw_temporal_unsorted(t, list, "a time");
	if (span->low == span->high) {
		leave_empty(t, list);
		return GW_OK;
	}
	if (t->ends)
		return gw_draw_need(t->run, list, GW_COLUMN_END, span->low, span->high - span->low);
	uint64_t degree = span->high - span->low;
	if (t->last)
		degree = gw_temporal_count(t, degree);
	lists->begins[list] += span->high - degree;
	lists->degrees[list] = degree;
	return GW_OK;
}

/* Draws from all lists of the run, which have been narrowed. */
static gw_status pick_narrowed(struct gw_temporal *t)
{
	struct gw_draw_run *run = t->run;
	struct gw_pick_rule rule = t->draw->rule;
	uint64_t total = 0;
	if (t->last)
		rule.fanout = GW_FANOUT_ALL;
	for (uint32_t i = 0; i < run->lists.n; i++) {
		run->lists.starts[i] = total;
		run->counts[i] = (uint32_t)gw_pick_count(&rule, run->lists.degrees[i]);
		run->done[i] = true;
		total += run->counts[i];
	}
	run->lists.starts[run->lists.n] = total;
	return gw_lists_pick(&run->lists, &rule, run->scratch, t->positions, run->memory, run->element_bytes);
}

static gw_status take_spans_at_hand(struct gw_temporal *t)
{
	struct gw_temporal_span spans[GW_RUN_MAX];
	gw_status status = GW_OK;
	gw_temporal_search(t, spans);
	for (uint32_t i = 0; status == GW_OK && i < t->run->lists.n; i++) {
		if (!t->run->done[i])
			status = take_span(t, i, &spans[i]);
	}
	return status;
}

static gw_status continue_sorted(struct gw_temporal *t, uint64_t number, uint64_t *used)
{
	const struct gw_need *need = &t->run->needs[number];
	const void *got = t->run->got[number];
	struct gw_temporal_span span;
	bool none = false;
	gw_status status;
	*used = 1;
	if (need->column == GW_COLUMN_END) {
		const struct gw_temporal_entries entries = {.first = need->first, .count = need->count, .ends = got};
		return gw_temporal_scan(t, need->list, &entries);
	}
	if (need->column == GW_COLUMN_FENCE) {
		status = gw_temporal_ask_blocks(t, need->list, got, &none);
		if (none)
			leave_empty(t, need->list);
		return status;
	}
	status = t->number == 1 ? gw_temporal_span_of_times(t, need->list, got, &span)
				: gw_temporal_span_of_blocks(t, number, &span, used);
	return status == GW_OK ? take_span(t, need->list, &span) : status;
}

/* ---- other lists ---- */

static gw_status ask_list(struct gw_temporal *t, uint32_t list)
{
	uint64_t degree = t->run->lists.degrees[list];
	gw_status status = gw_draw_need(t->run, list, GW_COLUMN_TIME, 0, degree);
	if (status == GW_OK && t->ends)
		status = gw_draw_need(t->run, list, GW_COLUMN_END, 0, degree);
	return status;
}

static gw_status continue_unsorted(struct gw_temporal *t, uint64_t number, uint64_t *used)
{
	const struct gw_need *need = &t->run->needs[number];
	const void *const *got = &t->run->got[number];
	const struct gw_temporal_entries entries = {
		.first = need->first, .count = need->count, .times = got[0], .ends = t->ends ? got[1] : NULL};
	*used = t->ends ? 2 : 1;
	return gw_temporal_scan(t, need->list, &entries);
}

/* ---- rounds ---- */

static gw_status temporal_begin(struct gw_temporal *t)
{
	struct gw_draw_run *run = t->run;
	gw_status status = GW_OK;
	for (uint32_t i = 0; status == GW_OK && i < run->lists.n; i++) {
		const struct gw_temporal_ranges ranges = gw_temporal_ranges_of(t, i);
		if (run->lists.degrees[i] == 0 || t->draw->rule.fanout == 0 || gw_temporal_is_empty(&ranges.times))
			leave_empty(t, i);
		else if (!t->sorted)
			status = ask_list(t, i);
		else if (!run->at_hand)
			status = gw_temporal_ask_times(t, i);
	}
	return status == GW_OK && t->sorted && run->at_hand ? take_spans_at_hand(t) : status;
}

static gw_status temporal_continue(struct gw_temporal *t)
{
	gw_status status = GW_OK;
	for (uint64_t n = 0, used; status == GW_OK && n < t->run->need_count; n += used)
		status = t->sorted ? continue_sorted(t, n, &used) : continue_unsorted(t, n, &used);
	return status;
}

static gw_status temporal_draw(const struct gw_draw *draw, struct gw_draw_run *run, uint32_t number,
			       uint64_t *positions, bool last)
{
	const struct gw_column_form *fence = &draw->forms[GW_COLUMN_FENCE];
	struct gw_temporal t = {.draw = draw,
				.run = run,
				.positions = positions,
				.number = number,
				.last = last,
				.sorted = fence->entry_bytes == sizeof(int64_t) && fence->dtype == GW_INT64,
				.ends = draw->forms[GW_COLUMN_END].entry_bytes != 0};
	uint64_t asked = run->next_count;
	gw_status status = number == 0 ? temporal_begin(&t) : temporal_continue(&t);
	if (status != GW_OK)
		return status;
	if (run->next_count > asked)
		return GW_AGAIN;
	return t.sorted && !t.ends ? pick_narrowed(&t) : GW_OK;
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
static gw_status check_time_column(const struct gw_column_form *form, const char *what)
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
	gw_status status = check_time_column(time, "one time");
	if (status == GW_OK && end->entry_bytes)
		status = check_time_column(end, "one end");
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
