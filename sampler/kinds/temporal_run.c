/* Counts and errors of the temporal kinds: see temporal_run.h. */
#include "sampler/kinds/temporal_run.h"

#include "sampler/columns.h"

uint64_t gw_temporal_count(const struct gw_temporal *t, uint64_t n)
{
	struct gw_pick_rule rule = t->draw->rule;
	rule.replace = rule.replace && !t->last;
	return gw_pick_count(&rule, n);
}

gw_status gw_temporal_unsorted(const struct gw_temporal *t, uint32_t list, const char *what)
{
	return gw_column_context(gw_fail(GW_PROTOCOL, "%s of a list that is sorted by time does not ascend", what),
				 t->draw, GW_COLUMN_TIME, t->run->lists.vertices[list]);
}
