/* See seed_groups.h. Times are compared as keys (core/numbers/time_key.h), so each draw compares integers alone. */
#include "client/batch/seed_groups.h"

#include <math.h>
#include <string.h>

#include "client/batch/edge_columns.h"
#include "core/numbers/time_key.h"

gw_status gw_seed_times_of(struct gw_client *client, const struct gw_edge_rule *rules, uint32_t first, uint32_t count,
			   struct gw_seed_times *out)
{
	out->uses = out->ends = 0;
	for (uint32_t i = 0; rules && i < count; i++) {
		const struct gw_edge_columns *columns;
		gw_status status = gw_edge_columns_find(client, first + i, &rules[i], &columns);
		if (status != GW_OK)
			return status;
		if (!columns || !columns->sampling.kind->valued)
			continue;
		uint32_t bit = 1u << gw_time_is_real(columns->sampling.forms[GW_COLUMN_TIME].dtype);
		out->uses |= bit;
		out->ends |= columns->sampling.forms[GW_COLUMN_END].entry_bytes ? bit : 0;
	}
	return GW_OK;
}

/* A draw before a time asks whether an edge ends after it, and knows only the last time of the column before it. */
static gw_status check_exact(const struct gw_seed_times *times, const struct gw_seeds *list)
{
	for (uint64_t i = 0; times->strict && i < list->count; i++) {
		const struct gw_time time = gw_time_at(times->real, list->times, i);
		for (uint32_t real = 0; real < 2; real++) {
			if (times->ends & 1u << real && !gw_time_is_exact(real, &time))
				return gw_fail(GW_UNSUPPORTED,
					       "the edges cannot have the time of the seed at position %llu exactly: "
					       "with ends, strict times must be of the same kind as theirs",
					       (unsigned long long)i);
		}
	}
	return GW_OK;
}

static gw_status check_time_numbers(const void *times, uint64_t count)
{
	for (uint64_t i = 0; times && i < count; i++) {
		if (isnan(gw_time_at(true, times, i).value.real))
			return gw_fail(GW_INVALID, "the time of the seed at position %llu is not a number",
				       (unsigned long long)i);
	}
	return GW_OK;
}

gw_status gw_seed_times_check(const struct gw_seed_times *times, const struct gw_seeds *lists, uint32_t list_count,
			      uint64_t most)
{
	gw_status status = GW_OK;
	bool has_from = false;
	for (uint32_t i = 0; i < list_count; i++)
		has_from = has_from || (lists[i].times_from && lists[i].count);
	for (uint32_t i = 0; i < list_count; i++) {
		const struct gw_seeds *list = &lists[i];
		if (list->times_from && !list->times)
			return gw_fail(GW_INVALID, "list %u of the seeds has the begin of windows, and no times", i);
		if ((times->uses || times->negatives) && !list->times && list->count)
			return gw_fail(GW_INVALID, "list %u of the seeds has no times, and %s", i,
				       times->uses ? "edges are drawn by time"
						   : "negatives are nodes that exist at these times");
		if (list->count && has_from != !!list->times_from)
			return gw_fail(GW_INVALID, "list %u of the seeds has no begin of windows, and others have", i);
		if (!times->uses && (times->negatives ? list->times_from : list->times))
			return gw_fail(GW_INVALID, "list %u of the seeds has %s, and no edge is drawn by time", i,
				       times->negatives ? "the begin of windows" : "times");
	}
	if (times->uses && most > GW_GROUPS_MAX)
		return gw_fail(GW_LIMIT, "%llu seeds, ends and negatives with times in one batch: at most %u",
			       (unsigned long long)most, GW_GROUPS_MAX);
	for (uint32_t i = 0; i < list_count && status == GW_OK; i++) {
		if (times->real)
			status = check_time_numbers(lists[i].times, lists[i].count);
		if (status == GW_OK && times->real)
			status = check_time_numbers(lists[i].times_from, lists[i].count);
		if (status == GW_OK && times->ends)
			status = check_exact(times, &lists[i]);
	}
	return status;
}

static void set_ranges(struct gw_seed_groups *groups, const struct gw_seed_times *times, bool real,
		       const struct gw_seeds *lists, uint32_t list_count)
{
	int64_t *from = (int64_t *)groups->ranges.data + (real ? 2 * (groups->count + 1) : 0);
	int64_t *until = from + groups->count + 1;
	uint64_t group = 0;
	bool bounded = false;
	for (uint32_t l = 0; l < list_count; l++) {
		for (uint64_t i = 0; i < lists[l].count; i++, group++) {
			const struct gw_time last = gw_time_at(times->real, lists[l].times, i);
			struct gw_time first;
			if (lists[l].times_from)
				first = gw_time_at(times->real, lists[l].times_from, i);
			const struct gw_time_range range =
				gw_time_range_of(real, lists[l].times_from ? &first : NULL, &last, times->strict);
			from[group] = range.from;
			bounded = bounded || range.from != INT64_MIN;
			until[group] = range.until;
		}
	}
	if (group == 0) { /* an empty table means no values: a batch without seeds has one group, which sees nothing */
		from[0] = INT64_MAX;
		until[0] = INT64_MIN;
	}
	groups->tables[real] = (struct gw_groups){.count = group ? (uint32_t)group : 1,
						  .from = bounded || group == 0 ? from : NULL,
						  .until = until,
						  .strict_ends = times->strict};
}

gw_status gw_seed_groups_set(struct gw_seed_groups *groups, const struct gw_seed_times *times,
			     const struct gw_seeds *lists, uint32_t list_count)
{
	uint64_t before = groups->count, room = 0;
	groups->count = 0;
	memset(groups->tables, 0, sizeof(groups->tables));
	for (uint32_t i = 0; i < list_count; i++)
		room += lists[i].count;
	if (room > UINT32_MAX)
		return gw_fail(GW_LIMIT, "%llu seeds in a disjoint batch: at most 2^32 - 1", (unsigned long long)room);
	gw_status status = gw_vec_reserve(&groups->numbers, (room + 1) * sizeof(uint32_t));
	if (status == GW_OK && times->uses)
		status = gw_vec_reserve(&groups->ranges, 4 * (room + 1) * sizeof(int64_t));
	if (status != GW_OK)
		return status;
	groups->count = room;
	uint32_t *numbers = groups->numbers.data;
	for (uint64_t i = before; i < room; i++)
		numbers[i] = (uint32_t)i;
	for (uint32_t real = 0; real < 2; real++) {
		if (times->uses & 1u << real)
			set_ranges(groups, times, real, lists, list_count);
	}
	return GW_OK;
}

void gw_seed_groups_free(struct gw_seed_groups *groups)
{
	gw_vec_free(&groups->numbers);
	gw_vec_free(&groups->ranges);
}
