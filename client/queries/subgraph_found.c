/* See subgraph_found.h. Fails if memory runs out. */
#include "client/queries/subgraph_found.h"

#include <stdbool.h>
#include <string.h>

#include "client/queries/edge_list.h"
#include "core/memory/alloc.h"
#include "core/numbers/sort.h"

#define ROOM_MIN 1024u /* edges */

void gw_subgraph_found_free(struct gw_subgraph_found *found)
{
	gw_vec_free(&found->dsts);
	gw_vec_free(&found->srcs);
	gw_vec_free(&found->ids);
}

static gw_status found_room(struct gw_subgraph_found *found)
{
	size_t n = found->count < ROOM_MIN ? ROOM_MIN : found->count + 1;
	if (found->count == UINT32_MAX)
		return gw_fail(GW_LIMIT, "more than 2^32 - 1 edges among the nodes: ask about fewer in one call");
	gw_status status = gw_vec_reserve(&found->dsts, n * sizeof(uint64_t));
	if (status == GW_OK)
		status = gw_vec_reserve(&found->srcs, n * sizeof(uint32_t));
	return status == GW_OK ? gw_vec_reserve(&found->ids, n * sizeof(uint64_t)) : status;
}

gw_status gw_subgraph_found_add(struct gw_subgraph_found *found, uint32_t dst_row, uint32_t src_row, uint64_t id)
{
	gw_status status = found_room(found);
	if (status != GW_OK)
		return status;
	((uint64_t *)found->dsts.data)[found->count] = dst_row;
	((uint32_t *)found->srcs.data)[found->count] = src_row;
	((uint64_t *)found->ids.data)[found->count] = id;
	found->count++;
	return GW_OK;
}

static gw_status sort_found_by(const uint64_t *by, uint64_t *keys, uint32_t *order, uint64_t n, struct gw_vec *scratch)
{
	for (uint64_t i = 0; i < n; i++)
		keys[i] = by[order[i]];
	return gw_sort_rows(keys, order, n, scratch);
}

/* keys: the destinations in the order. */
static bool ids_ascend(const struct gw_subgraph_found *found, const uint64_t *keys, const uint32_t *order)
{
	const uint64_t *ids = found->ids.data;
	for (uint64_t i = 1; i < found->count; i++) {
		if (keys[i] == keys[i - 1] && ids[order[i]] < ids[order[i - 1]])
			return false;
	}
	return true;
}

/* The edges of a destination are found in order, unless its sources were asked about in pieces. */
static gw_status sort_edges(const struct gw_subgraph_found *found, uint64_t *keys, uint32_t *order)
{
	struct gw_vec scratch = {0};
	uint64_t n = found->count;
	for (uint64_t i = 0; i < n; i++)
		order[i] = (uint32_t)i;
	gw_status status = sort_found_by(found->dsts.data, keys, order, n, &scratch);
	if (status == GW_OK && !ids_ascend(found, keys, order)) {
		status = sort_found_by(found->ids.data, keys, order, n, &scratch);
		if (status == GW_OK)
			status = sort_found_by(found->dsts.data, keys, order, n, &scratch);
	}
	gw_vec_free(&scratch);
	return status;
}

static void fill_list(const struct gw_subgraph_found *found, const uint32_t *order, struct gw_edge_list *list)
{
	uint64_t *offsets = gw_edge_list_offsets(list);
	int64_t *src = gw_edge_list_fill(list->src), *dst = gw_edge_list_fill(list->dst);
	int64_t *ids = gw_edge_list_fill(list->edge_ids);
	memset(offsets, 0, (list->question_count + 1) * sizeof(*offsets));
	for (uint64_t i = 0; i < found->count; i++) {
		dst[i] = (int64_t)((const uint64_t *)found->dsts.data)[order[i]];
		src[i] = ((const uint32_t *)found->srcs.data)[order[i]];
		ids[i] = (int64_t)((const uint64_t *)found->ids.data)[order[i]];
		offsets[dst[i] + 1]++;
	}
	for (uint64_t i = 0; i < list->question_count; i++)
		offsets[i + 1] += offsets[i];
}

gw_status gw_subgraph_found_list(const struct gw_subgraph_found *found, uint64_t dst_rows, struct gw_edge_list **out)
{
	uint64_t *keys = gw_malloc(found->count * sizeof(*keys));
	uint32_t *order = gw_malloc(found->count * sizeof(*order));
	gw_status status = keys && order ? sort_edges(found, keys, order) : GW_NO_MEMORY;
	gw_free(keys);
	if (status == GW_OK)
		status = gw_edge_list_create(dst_rows, found->count, out);
	if (status == GW_OK)
		fill_list(found, order, *out);
	gw_free(order);
	return status;
}
