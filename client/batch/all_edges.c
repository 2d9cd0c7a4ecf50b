/* The edges of all hops as lists: see all_edges.h. */
#include "client/batch/all_edges.h"

#include <string.h>

/* Most rows have few edges: STEP entries are written without a branch on their number, and those that are too many are
 * overwritten by the next row. */
#define STEP 8u

static void fill_destinations(const struct gw_block_edges *edges, int64_t *out)
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

static void fill_sources(const struct gw_block_edges *edges, bool wide, int64_t *out)
{
	if (wide) {
		memcpy(out, edges->indices, edges->edge_count * sizeof(*out));
		return;
	}
	for (uint64_t i = 0; i < edges->edge_count; i++)
		out[i] = ((const int32_t *)edges->indices)[i];
}

static void count_edges(const struct gw_blocks *blocks, uint32_t hops, struct gw_sampled_edges *lists)
{
	for (uint32_t h = 0; h < hops; h++) {
		const struct gw_block *block = gw_blocks_hop(blocks, h);
		for (uint32_t i = 0; i < block->edges_count; i++)
			lists[block->edges[i].etype].count += block->edges[i].edge_count;
	}
}

static void write_columns(const struct gw_blocks *blocks, uint32_t hops, bool wide, struct gw_sampled_edges *lists)
{
	for (uint32_t h = 0; h < hops; h++) {
		const struct gw_block *block = gw_blocks_hop(blocks, h);
		for (uint32_t i = 0; i < block->edges_count; i++) {
			const struct gw_block_edges *edges = &block->edges[i];
			struct gw_sampled_edges *list = &lists[edges->etype];
			if (!edges->edge_count)
				continue;
			if (edges->edge_ids)
				memcpy((int64_t *)list->ids + list->count, edges->edge_ids, edges->edge_count * 8);
			if (list->src) {
				fill_sources(edges, wide, (int64_t *)list->src + list->count);
				fill_destinations(edges, (int64_t *)list->dst + list->count);
			}
			list->count += edges->edge_count;
		}
	}
}

const struct gw_sampled_edges *gw_all_edges_list(struct gw_all_edges *all, const struct gw_blocks *blocks,
						 uint32_t hops, uint32_t num_etypes, bool wide_indices)
{
	if (all->listed)
		return all->lists.data;
	const uint64_t columns = (all->asked ? 2u : 0u) + (all->no_ids ? 0u : 1u);
	if (gw_vec_reserve(&all->lists, num_etypes * sizeof(struct gw_sampled_edges) + 1) != GW_OK ||
	    gw_vec_reserve(&all->columns, (gw_blocks_edge_count(blocks) * columns + 1) * sizeof(int64_t)) != GW_OK)
		return NULL;
	struct gw_sampled_edges *lists = all->lists.data;
	int64_t *column = all->columns.data;
	for (uint32_t e = 0; e < num_etypes; e++)
		lists[e] = (struct gw_sampled_edges){0};
	count_edges(blocks, hops, lists);
	for (uint32_t e = 0; e < num_etypes; e++) {
		uint64_t count = lists[e].count;
		lists[e] = (struct gw_sampled_edges){.ids = all->no_ids ? NULL : column};
		column += all->no_ids ? 0 : count;
		if (all->asked) {
			lists[e].src = column;
			lists[e].dst = column + count;
			column += 2 * count;
		}
	}
	write_columns(blocks, hops, wide_indices, lists);
	all->listed = true;
	return lists;
}

void gw_all_edges_free(struct gw_all_edges *all)
{
	gw_vec_free(&all->lists);
	gw_vec_free(&all->columns);
}
