/* Converts an edge list to CSC, in the format's list order: stable and parallel. Import, generate and partition share
 * it.
 */
#ifndef GW_GRAPH_CSC_H
#define GW_GRAPH_CSC_H

#include "core/errors/status.h"

/* An edge list. Ids are below num_src and num_dst (checked: GW_RANGE names the edge). */
struct gw_coo {
	uint64_t num_src, num_dst, num_edges;
	const uint64_t *src, *dst; /* [num_edges] */
	const int64_t *time;       /* [num_edges] or NULL; the first key within a list */
	const uint32_t *rel;       /* [num_edges] or NULL; the first key within a list */
};

/* GW_RANGE names the edge if an id of it is too large. */
gw_status gw_coo_check(const struct gw_coo *coo, uint64_t edge);

struct gw_csc {
	uint64_t *indptr; /* [num_dst + 1] */
	uint64_t *order;  /* [num_edges]: the input edge at each CSC position; indices[i] = src[order[i]] */
};

/* Sorts by (dst, time or rel if given, src); ties keep the input order. A counting sort orders the edges by
 * destination, and then each list is sorted. The result takes 8 bytes * (num_dst + 1 + num_edges). While the call runs,
 * it needs 8 bytes * num_edges more. It cuts the destinations into at most 512 ranges; each thread also needs 10 bytes
 * for each edge of the range with the most edges. threads = 0: one per processor. GW_RANGE, GW_LIMIT (2^33 edges, 2^40
 * destinations), GW_NO_MEMORY. Free with gw_csc_free. */
gw_status gw_csc_build(const struct gw_coo *coo, unsigned threads, struct gw_csc *out);
void gw_csc_free(struct gw_csc *csc);

#endif
