/* Finds the edges of lists in memory whose sources are in a set.
 *
 *   sources, ascending -> a set: buckets by the upper bits of an id
 *   (row, set) -> its edges, in the order of the list: each entry is looked up in the set; of a list that is sorted by
 *                 source and far longer than the set, each source is looked up in the list
 *
 * Pure functions of the lists and the set. Rows, sources and offsets may come from a peer, so each is checked before
 * its use. */
#ifndef GW_SAMPLER_INDUCED_H
#define GW_SAMPLER_INDUCED_H

#include <stdbool.h>

#include "core/graph/meta.h"
#include "core/graph/part.h"
#include "core/memory/vec.h"

/* Zero-initialized is empty. Reused from set to set; allocates only to grow. */
struct gw_source_set {
	const uint64_t *ids; /* [count], ascending; the caller keeps them */
	uint32_t count;
	uint32_t shift;        /* id minus the first id, >> shift, is a bucket's number */
	struct gw_vec buckets; /* uint32_t: where each bucket begins in ids, and the end of the last one */
};

#define GW_SOURCE_SET_BYTES 24u /* the most memory of a set for each source, ids included, in buffers that double */

/* ids: ascending, without repeats, not none. O(count). */
gw_status gw_source_set_fill(struct gw_source_set *set, const uint64_t *ids, uint32_t count);
void gw_source_set_free(struct gw_source_set *set);

/* A search for the edges of one row's list. */
struct gw_induced {
	const struct gw_adjacency *lists;
	uint64_t at, end; /* [at, end): the CSC positions that remain */
	uint32_t next;    /* by_source: the place in the set of the source that is searched for next */
	bool by_source;
};

/* from: the CSC position to begin at, if it is after the list's beginning. GW_RANGE: the row does not exist, or its
 * list exceeds the edges. */
gw_status gw_induced_begin(struct gw_induced *induced, const struct gw_adjacency *lists, enum gw_list_order order,
			   uint64_t row, const struct gw_source_set *set, uint64_t from);

/* The position of the next edge, and the place of its source in the set. Returns false if no edge remains (induced->at
 * == induced->end), or if the budget is used up: each position or source that it examines costs 1 or more. */
bool gw_induced_next(struct gw_induced *induced, const struct gw_source_set *set, uint64_t *budget, uint64_t *position,
		     uint32_t *place);

#endif
