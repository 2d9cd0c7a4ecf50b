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
			uint64_t total = i ? minibatch->blocks[i - 1]->src_counts[t] : minibatch->blocks[0]->dst_counts[t];
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

/* Writes the row of each edge's destination. Most rows have fewer than STEP edges: a whole step is written without a
 * branch on their number, and the next row overwrites what was too much. */
#define STEP 8u

static void fill_rows(const struct gw_block_edges *edges, int64_t *out)
{
	const uint64_t count = edges->edge_count;
	for (uint64_t row = 0; row < edges->dst_count; row++) {
		uint64_t at = (uint64_t)edges->indptr[row], end = (uint64_t)edges->indptr[row + 1];
		for (; at < end && at + STEP <= count; at += STEP) {
			for (uint64_t i = 0; i < STEP; i++)
				out[at + i] = (int64_t)(edges->dst_first + row);
		}
		for (; at < end; at++)
			out[at] = (int64_t)(edges->dst_first + row);
	}
}

void hops_edges(const struct gw_minibatch *minibatch, uint32_t etype, int64_t *src, int64_t *dst, int64_t *ids)
{
	for (uint32_t hop = 0; hop < minibatch->hops; hop++) {
		const struct gw_block_edges *edges = edges_of_type(minibatch->blocks[hop], etype);
		if (!edges || !edges->edge_count)
			continue;
		memcpy(src, edges->indices, edges->edge_count * sizeof(*src));
		fill_rows(edges, dst);
		if (ids) {
			memcpy(ids, edges->edge_ids, edges->edge_count * sizeof(*ids));
			ids += edges->edge_count;
		}
		src += edges->edge_count;
		dst += edges->edge_count;
	}
}

void ids_copied(const void *rows, bool narrow, uint64_t count, int64_t *out)
{
	if (!narrow) {
		memcpy(out, rows, count * sizeof(*out));
		return;
	}
	for (uint64_t i = 0; i < count; i++)
		out[i] = ((const uint32_t *)rows)[i];
}
