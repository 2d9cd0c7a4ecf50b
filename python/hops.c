/* The arrays of a mini-batch in PyTorch Geometric's form; owned.h describes the functions. */
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

bool hops_counts(const struct gw_minibatch *minibatch, uint32_t num_etypes, uint64_t *nodes, uint64_t *edges)
{
	const uint32_t hops = minibatch->hops;
	for (uint32_t t = 0; t < minibatch->num_ntypes; t++) {
		uint64_t before = 0;
		for (uint32_t i = 0; i <= hops; i++) {
			uint64_t total =
				i ? minibatch->blocks[i - 1]->src_counts[t] : minibatch->blocks[0]->dst_counts[t];
			nodes[(uint64_t)t * (hops + 1) + i] = total - before;
			before = total;
		}
	}
	for (uint32_t t = 0; t < num_etypes; t++) {
		for (uint32_t hop = 0; hop < hops; hop++) {
			const struct gw_block_edges *some = edges_of_type(minibatch->blocks[hop], t);
			edges[(uint64_t)t * hops + hop] = some ? some->edge_count : 0;
		}
	}
	for (uint32_t i = 0; i < minibatch->seed_list_count; i++) {
		const struct gw_seeds *list = &minibatch->seed_lists[i];
		if (list->count != minibatch->blocks[0]->dst_counts[list->type])
			return true;
	}
	return false;
}

static uint64_t count_edges(const struct gw_minibatch *minibatch, uint32_t etype)
{
	uint64_t count = 0;
	for (uint32_t hop = 0; hop < minibatch->hops; hop++) {
		const struct gw_block_edges *some = edges_of_type(minibatch->blocks[hop], etype);
		count += some ? some->edge_count : 0;
	}
	return count;
}

static void copy_edges(const struct gw_block_edges *some, bool wide, int64_t *src, int64_t *dst, int64_t *ids)
{
	const uint64_t count = some->edge_count;
	if (!count)
		return;
	if (some->edge_ids)
		memcpy(ids, some->edge_ids, count * sizeof(*ids));
	if (wide)
		memcpy(src, some->indices, count * sizeof(*src));
	else
		for (uint64_t i = 0; i < count; i++)
			src[i] = ((const int32_t *)some->indices)[i];
	for (uint64_t row = 0; row < some->dst_count; row++)
		for (int64_t i = some->indptr[row]; i < some->indptr[row + 1]; i++)
			dst[i] = (int64_t)(some->dst_first + row);
}

void hops_edges(const struct gw_minibatch *minibatch, uint32_t num_etypes, bool wide, int64_t *const *ends,
		int64_t *const *ids)
{
	for (uint32_t t = 0; t < num_etypes; t++) {
		const uint64_t count = count_edges(minibatch, t);
		uint64_t at = 0;
		for (uint32_t hop = 0; hop < minibatch->hops; hop++) {
			const struct gw_block_edges *some = edges_of_type(minibatch->blocks[hop], t);
			if (!some)
				continue;
			copy_edges(some, wide, ends[t] + at, ends[t] + count + at, ids[t] + at);
			at += some->edge_count;
		}
	}
}
