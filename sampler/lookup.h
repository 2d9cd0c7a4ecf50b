/* Edges looked up in lists in memory: the destination of a position, the edges from a source to a destination.
 *
 *   position -> the row whose list has it: the offsets are bisected
 *   (row, source) -> its edges, in the order of the list: bisected where lists are sorted by source, else one by one
 *
 * Pure functions of the lists. Rows, positions and offsets may be a peer's: each is checked before it is used. */
#ifndef GW_SAMPLER_LOOKUP_H
#define GW_SAMPLER_LOOKUP_H

#include <stdbool.h>

#include "core/graph/meta.h"
#include "core/graph/part.h"

/* The local row whose list has the CSC position. GW_RANGE: no list has. */
gw_status gw_lookup_row(const struct gw_adjacency *lists, uint64_t position, uint64_t *row);

/* A search for the edges from a source in one row's list. */
struct gw_lookup {
	const struct gw_adjacency *lists;
	uint64_t src, at, end; /* CSC positions that are still to be looked at */
	bool sorted;
};

/* from: the CSC position to begin at, if that lies behind the list's beginning. GW_RANGE: no such row, or its list does
 * not fit the edges. */
gw_status gw_lookup_begin(struct gw_lookup *lookup, const struct gw_adjacency *lists, enum gw_list_order order,
			  uint64_t row, uint64_t src, uint64_t from);

/* The next edge's position; false: there is none (lookup->at == lookup->end), or the budget is used up: each position
 * that is looked at takes 1 of it. */
bool gw_lookup_next(struct gw_lookup *lookup, uint64_t *budget, uint64_t *position);

#endif
