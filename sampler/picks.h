/* Picks as arrays, for callers that read the neighbours themselves or send the picks to a peer. */
#ifndef GW_SAMPLER_PICKS_H
#define GW_SAMPLER_PICKS_H

#include "core/graph/part.h"
#include "core/graph/picks.h"
#include "sampler/rule.h"

void gw_picks_free(struct gw_picks *picks);

/* Picks from lists in memory. vertices: global destination ids, which this part must own (GW_RANGE names the first that
 * it does not own; they may come from a peer). This is the fast path of sampling: it prefetches offsets ahead, and
 * neighbours while their positions are drawn. n should be a few hundred, so that prefetched data is still in the cache
 * when it is used. */
gw_status gw_picks_from_memory(struct gw_picks *picks, const struct gw_adjacency *adjacency,
			       const struct gw_pick_rule *rule, const uint64_t *vertices, uint64_t n);

/* Picks positions only, from degree records that the caller has read: begins and ends are CSC positions [n]. Fills
 * counts and positions; the caller then reads the neighbours. */
gw_status gw_picks_from_records(struct gw_picks *picks, const struct gw_pick_rule *rule, const uint64_t *vertices,
				const uint64_t *begins, const uint64_t *ends, uint64_t n);

#endif
