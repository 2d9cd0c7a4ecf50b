/* Picks as arrays, for callers that read the neighbours themselves or send the picks to a peer. */
#ifndef GW_SAMPLER_PICKS_H
#define GW_SAMPLER_PICKS_H

#include "core/graph/part.h"
#include "core/graph/picks.h"
#include "sampler/draw.h"

void gw_picks_free(struct gw_picks *picks);

/* Lists in memory, and their columns; columns may be NULL for a kind that needs none. */
struct gw_picks_memory {
	const struct gw_adjacency *adjacency;
	const struct gw_columns *columns;
	uint64_t entries_max; /* as for gw_draw_from_memory; 0: no bound */
};

/* Picks from lists in memory. vertices: global ids, which this part must own (GW_RANGE names the first that it does not
 * own; they may come from a peer). groups: [n], or NULL. This is the fast path of sampling: it prefetches offsets
 * ahead, and neighbours while their positions are drawn. n should be a few hundred, so that prefetched data is still in
 * the cache when it is used. After GW_LIMIT, a draw for the first picks->dst_count vertices needs fewer entries; if
 * that is 0, the list of the first vertex needs more than entries_max. Else picks->entry_count is the number of entries
 * that the draws have read. */
gw_status gw_picks_from_memory(struct gw_picks *picks, const struct gw_picks_memory *memory, const struct gw_draw *draw,
			       const uint64_t *vertices, const uint32_t *groups, uint64_t n);

#endif
