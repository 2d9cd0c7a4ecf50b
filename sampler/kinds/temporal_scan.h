/* Picks from a list whose times, ends or both are read one by one. Internal to temporal.c, which states the law. */
#ifndef GW_SAMPLER_KINDS_TEMPORAL_SCAN_H
#define GW_SAMPLER_KINDS_TEMPORAL_SCAN_H

#include "sampler/kinds/temporal_run.h"

/* The edges at [first, first + count) of a list. */
struct gw_temporal_entries {
	uint64_t first, count;
	const void *times; /* [count], at any alignment; NULL: they are in the range, and ascend */
	const void *ends;  /* [count]; NULL: the draw has no ends */
};

/* Picks from the eligible edges among these, which are all that the list can have. Writes the picks, sets the list's
 * count, and is done with it. GW_NO_MEMORY; GW_RANGE as gw_pick_in. */
gw_status gw_temporal_scan(struct gw_temporal *t, uint32_t list, const struct gw_temporal_entries *entries);

#endif
