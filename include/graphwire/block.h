/* Blocks: the edges of one hop of a mini-batch, in local row numbers. */
#ifndef GRAPHWIRE_BLOCK_H
#define GRAPHWIRE_BLOCK_H

#include <stdint.h>

#define GW_HOPS_MAX 64 /* hops of a mini-batch */

/* One edge type of one hop, by destination (CSC). */
struct gw_block_edges {
	uint32_t etype;
	uint64_t dst_count; /* rows: the destinations are nodes [dst_first, dst_first + dst_count) of their type */
	uint64_t edge_count;
	const int64_t *indptr;   /* [dst_count + 1] */
	const void *indices;     /* [edge_count], int32 or int64: positions in the source type's node list */
	const int64_t *edge_ids; /* [edge_count], global; NULL: gw_sample_spec.no_edge_ids */
	uint64_t dst_first;      /* 0, unless the spec expands every node once (gw_sample_spec.frontier) */
};

/* All edges of one type in a mini-batch, hop after hop, the seeds' hop first. Rows are positions in the node lists of
 * the ends' types. */
struct gw_sampled_edges {
	uint64_t count;
	const int64_t *src, *dst; /* [count]: rows; dst == src + count */
	const int64_t *ids;       /* [count], global; NULL: gw_sample_spec.no_edge_ids */
};

/* One hop. */
struct gw_block {
	const uint64_t *dst_counts; /* [num_ntypes]: destinations of each type: the first nodes of the batch's list */
	const uint64_t *src_counts; /* [num_ntypes]: sources of each type: the first nodes of the list, at least
				       dst_counts[t] */
	uint32_t edges_count;       /* edge types with a fanout other than 0, ascending */
	const struct gw_block_edges *edges;
};

#endif
