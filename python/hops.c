/* The edges of all hops of a mini-batch as one list; owned.h describes it. */
#include <string.h>

#include "python/owned.h"

static const struct gw_block_edges *edges_of_type(const struct gw_block *block, uint32_t etype)
{
	for (uint32_t i = 0; i < block->edges_count; i++) {
		if (block->edges[i].etype == etype)
			return &block->edges[i];
	}
	return NULL;
}

void hops_edges(const struct gw_minibatch *minibatch, uint32_t etype, int64_t *src, int64_t *dst, int64_t *ids)
{
	for (uint32_t hop = 0; hop < minibatch->hops; hop++) {
		const struct gw_block_edges *edges = edges_of_type(minibatch->blocks[hop], etype);
		if (!edges || !edges->edge_count)
			continue;
		memcpy(src, edges->indices, edges->edge_count * sizeof(*src));
		for (uint64_t row = 0; row < edges->dst_count; row++) {
			for (int64_t at = edges->indptr[row]; at < edges->indptr[row + 1]; at++)
				dst[at] = (int64_t)(edges->dst_first + row);
		}
		if (ids) {
			memcpy(ids, edges->edge_ids, edges->edge_count * sizeof(*ids));
			ids += edges->edge_count;
		}
		src += edges->edge_count;
		dst += edges->edge_count;
	}
}
