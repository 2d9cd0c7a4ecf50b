/* Finds edges in lists in memory: the destination of a position, and the edges from a source to a destination.
 *
 *   position -> the row whose list has it: the offsets are bisected
 *   (row, source) -> its edges, in the order of the list: bisected if lists are sorted by source, else one by one
 *
 * Pure functions of the lists. Rows, positions and offsets may come from a peer, so each is checked before its use. */
#ifndef GW_SAMPLER_LOOKUP_H
#define GW_SAMPLER_LOOKUP_H

#include <stdbool.h>

#include "core/graph/meta.h"
#include "core/graph/part.h"

/* The local row whose list contains the CSC position. GW_RANGE: no list contains it. */
gw_status gw_lookup_row(const struct gw_adjacency *lists, uint64_t position, uint64_t *row);

/* The positions [*at, *end) of a row's list, without those before `from`. GW_RANGE: the row does not exist, or its list
 * exceeds the edges. */
gw_status gw_lookup_list(const struct gw_adjacency *lists, uint64_t row, uint64_t from, uint64_t *at, uint64_t *end);

/* Of positions [at, end) of a list that is sorted by source, the first whose source is not below src; or end. */
uint64_t gw_lookup_source(const struct gw_adjacency *lists, uint64_t at, uint64_t end, uint64_t src);

/* A search for the edges from a source in one row's list. */
struct gw_lookup {
	const struct gw_adjacency *lists;
	uint64_t src, at, end; /* [at, end): the CSC positions that remain */
	bool sorted;
};

/* from: the CSC position to begin at, if it is after the list's beginning. GW_RANGE: the row does not exist, or its
 * list exceeds the edges. */
gw_status gw_lookup_begin(struct gw_lookup *lookup, const struct gw_adjacency *lists, enum gw_list_order order,
			  uint64_t row, uint64_t src, uint64_t from);

/* The next edge's position. Returns false if no edge remains (lookup->at == lookup->end), or if the budget is used up:
 * each position that it examines costs 1. */
bool gw_lookup_next(struct gw_lookup *lookup, uint64_t *budget, uint64_t *position);

#endif
