/* A round of the temporal kinds. Internal to temporal.c, which states the law.
 *
 *   list ─▶ ranges: the keys of the times, and of the ends, that its group sees
 */
#ifndef GW_SAMPLER_KINDS_TEMPORAL_RUN_H
#define GW_SAMPLER_KINDS_TEMPORAL_RUN_H

#include <assert.h>

#include "core/numbers/time_key.h"
#include "sampler/draw.h"

/* The round. */
struct gw_temporal {
	const struct gw_draw *draw;
	struct gw_draw_run *run;
	uint64_t *positions;
	uint32_t number;         /* of the round */
	bool last, sorted, ends; /* the last edges; lists are sorted by time; edges have ends */
};

/* An edge is eligible if its time, and its end, are in these ranges. */
struct gw_temporal_ranges {
	struct gw_time_range times, ends;
};

static inline gw_dtype gw_temporal_dtype(const struct gw_temporal *t, enum gw_column column)
{
	return t->draw->forms[column].dtype;
}

static inline uint32_t gw_temporal_group(const struct gw_temporal *t, uint32_t list)
{
	return t->run->lists.groups ? t->run->lists.groups[list] : 0;
}

/* The ranges of a list's group. Real columns have a key above all numbers, that of NaN: it is never a time, and it is
 * the end that never comes. */
static inline struct gw_temporal_ranges gw_temporal_ranges_of(const struct gw_temporal *t, uint32_t list)
{
	const struct gw_groups *groups = &t->draw->groups;
	uint32_t group = gw_temporal_group(t, list);
	assert(group < groups->count);
	int64_t most = gw_time_is_real(gw_temporal_dtype(t, GW_COLUMN_TIME)) ? GW_TIME_KEY_NAN - 1 : INT64_MAX;
	int64_t until = groups->until && groups->until[group] < most ? groups->until[group] : most;
	int64_t ended = groups->strict_ends && until < most ? until + 1 : until;
	struct gw_temporal_ranges ranges = {{groups->from ? groups->from[group] : INT64_MIN, until},
					    {INT64_MAX, INT64_MIN}};
	if (ended < INT64_MAX)
		ranges.ends = (struct gw_time_range){ended + 1, INT64_MAX};
	return ranges;
}

static inline bool gw_temporal_is_empty(const struct gw_time_range *range)
{
	return range->from > range->until;
}

/* Where the picks of a list go. */
static inline uint64_t *gw_temporal_slots(const struct gw_temporal *t, uint32_t list)
{
	return t->positions + t->run->lists.starts[list];
}

/* How many picks a list has of which n edges are eligible. */
uint64_t gw_temporal_count(const struct gw_temporal *t, uint64_t n);

/* Fails: `what` of a list does not ascend. GW_PROTOCOL, with the vertex. */
gw_status gw_temporal_unsorted(const struct gw_temporal *t, uint32_t list, const char *what);

#endif
