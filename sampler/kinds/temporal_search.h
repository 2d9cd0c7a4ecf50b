/* Finds the eligible edges of lists that are sorted by time: a span of each list. Internal to temporal.c.
 *
 *   at hand:   all lists of the run together, by bisection of the fence, and of a block of times
 *   by needs:  a list of up to 64 edges: its times ─▶ span
 *              a longer one: its part of the fence ─▶ at most one block of 64 times for each bound ─▶ span
 *
 * Times that come from a peer must ascend as far as they are read: else GW_PROTOCOL, with the vertex.
 */
#ifndef GW_SAMPLER_KINDS_TEMPORAL_SEARCH_H
#define GW_SAMPLER_KINDS_TEMPORAL_SEARCH_H

#include "sampler/kinds/temporal_run.h"

/* The edges at [low, high) of a list. */
struct gw_temporal_span {
	uint64_t low, high;
};

/* Sets the spans of the lists that are not done. The times are at hand. */
void gw_temporal_search(const struct gw_temporal *t, struct gw_temporal_span spans[GW_RUN_MAX]);

/* The next needs of a list: its times, or its part of the fence. GW_NO_MEMORY. */
gw_status gw_temporal_ask_times(struct gw_temporal *t, uint32_t list);
/* The span of a list whose times are `times`. */
gw_status gw_temporal_span_of_times(const struct gw_temporal *t, uint32_t list, const void *times,
				    struct gw_temporal_span *span);
/* With the entries of its part of the fence: asks for the blocks of a list. *none: no edge is eligible, and it asks for
 * nothing. Keeps what gw_temporal_span_of_blocks reads in the list's count. GW_NO_MEMORY. */
gw_status gw_temporal_ask_blocks(struct gw_temporal *t, uint32_t list, const void *entries, bool *none);
/* The span of the list whose first need of this round is number `need`; *used: how many needs it has. */
gw_status gw_temporal_span_of_blocks(const struct gw_temporal *t, uint64_t need, struct gw_temporal_span *span,
				     uint64_t *used);

#endif
