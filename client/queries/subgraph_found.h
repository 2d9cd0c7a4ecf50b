/* The edges that a subgraph call has found so far, in any order, and the list that is made of them. */
#ifndef GW_CLIENT_QUERIES_SUBGRAPH_FOUND_H
#define GW_CLIENT_QUERIES_SUBGRAPH_FOUND_H

#include <graphwire/edges.h>

#include "core/memory/vec.h"

/* Zero-initialized is empty. */
struct gw_subgraph_found {
	struct gw_vec dsts, srcs, ids; /* [count] uint64_t, uint32_t: rows; uint64_t: edge ids */
	uint64_t count;
};

void gw_subgraph_found_free(struct gw_subgraph_found *found);

/* GW_LIMIT: 2^32 edges. */
gw_status gw_subgraph_found_add(struct gw_subgraph_found *found, uint32_t dst_row, uint32_t src_row, uint64_t id);

/* Makes the list: the edges of each destination row by ascending id, which is their stored order. */
gw_status gw_subgraph_found_list(const struct gw_subgraph_found *found, uint64_t dst_rows, struct gw_edge_list **out);

#endif
