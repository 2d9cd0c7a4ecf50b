/* A run of lists from its bounds to its picks: what both drivers do around a kind's rounds. */
#include "sampler/draw.h"

#include <string.h>

#include "sampler/pick.h"

gw_status gw_draw_need(struct gw_draw_run *run, uint32_t list, enum gw_column column, uint64_t first, uint64_t count)
{
	gw_status status = gw_vec_reserve(run->next, (run->next_count + 1) * sizeof(struct gw_need));
	if (status != GW_OK)
		return status;
	((struct gw_need *)run->next->data)[run->next_count++] =
		(struct gw_need){.list = list, .column = column, .first = first, .count = count};
	return GW_OK;
}

gw_status gw_draw_check_use(const struct gw_draw *draw)
{
	if (draw->kind->valued && !draw->groups.count)
		return gw_fail(GW_INVALID, "edges are drawn %s, which needs a value for each seed", draw->kind->how);
	if (draw->groups.count > GW_GROUPS_MAX)
		return gw_fail(GW_INVALID, "%u groups with values in one batch: at most %u", draw->groups.count,
			       GW_GROUPS_MAX);
	return gw_pick_rule_check(&draw->rule);
}

void gw_draw_run_begin(const struct gw_draw *draw, struct gw_draw_run *run)
{
	run->need_count = 0;
	if (gw_draw_is_uniform(draw))
		return;
	memset(run->counts, 0, run->lists.n * sizeof(run->counts[0]));
	memset(run->done, 0, run->lists.n * sizeof(run->done[0]));
	if (!draw->kind->bound)
		return; /* the starts are sums of gw_pick_count() */
	uint64_t total = 0;
	for (uint32_t i = 0; i < run->lists.n; i++) {
		run->lists.starts[i] = total;
		total += draw->kind->bound(&draw->rule, run->lists.degrees[i]);
	}
	run->lists.starts[run->lists.n] = total;
}

void gw_draw_run_end(const struct gw_draw *draw, struct gw_draw_run *run, uint64_t *positions)
{
	if (gw_draw_is_uniform(draw))
		return;
	uint64_t *starts = run->lists.starts, total = 0;
	for (uint32_t i = 0; i < run->lists.n; i++) {
		if (starts[i] != total)
			memmove(positions + total, positions + starts[i], run->counts[i] * sizeof(*positions));
		starts[i] = total;
		total += run->counts[i];
	}
	starts[run->lists.n] = total;
}
