/* A hop of a mini-batch: passes the blocks' frontiers to the hop, and adds to the blocks the edges that the hop has
 * found.
 *
 *   gw_blocks_hop_begin -> frontiers -> gw_hop_want ... [requests to the owners] ... gw_hop_take -> gw_blocks_add
 */
#include <string.h>

#include "client/batch/batch.h"

gw_status gw_batch_hop_begin(struct gw_batch *batch)
{
	uint32_t etypes = batch->engine->client->meta->num_etypes;
	const int32_t *fanouts = batch->spec.fanouts + (size_t)batch->hop_number * etypes;
	gw_status status = gw_blocks_hop_begin(batch->blocks);
	gw_hop_begin(&batch->hop, GW_IN);
	for (uint32_t e = 0; e < etypes && status == GW_OK; e++) {
		if (fanouts[e] == 0)
			continue;
		const struct gw_draw draw = gw_blocks_draw(batch->blocks, e);
		const struct gw_frontier frontier = gw_blocks_frontier(batch->blocks, e);
		status = gw_hop_want(&batch->hop, e, &draw, gw_batch_columns(batch, e), &frontier);
	}
	return status;
}

/* Copies the next nodes of the frontier, because adding edges moves the node lists. */
static struct gw_frontier copy_next(const struct gw_frontier *frontier, uint64_t at, uint64_t *nodes, uint32_t *groups)
{
	uint64_t n = frontier->n - at < GW_HOP_RUN ? frontier->n - at : GW_HOP_RUN;
	memcpy(nodes, frontier->nodes + at, n * sizeof(*nodes));
	if (frontier->groups)
		memcpy(groups, frontier->groups + at, n * sizeof(*groups));
	return (struct gw_frontier){.nodes = nodes, .groups = frontier->groups ? groups : NULL, .n = n, .first = at};
}

static gw_status merge_type(struct gw_batch *batch, uint32_t etype)
{
	uint64_t nodes[GW_HOP_RUN];
	uint32_t groups[GW_HOP_RUN];
	gw_status status = gw_blocks_edges_begin(batch->blocks, etype);
	uint64_t count = gw_blocks_frontier(batch->blocks, etype).n;
	for (uint64_t at = 0; at < count && status == GW_OK; at += GW_HOP_RUN) {
		const struct gw_frontier frontier = gw_blocks_frontier(batch->blocks, etype);
		const struct gw_frontier next = copy_next(&frontier, at, nodes, groups);
		struct gw_hop_edges edges;
		status = gw_hop_take(&batch->hop, etype, &next, &edges);
		if (status == GW_OK)
			status = gw_blocks_add(batch->blocks, next.n, edges.counts, edges.positions, edges.neighbours,
					       edges.start);
	}
	return status == GW_OK ? gw_blocks_edges_end(batch->blocks) : status;
}

gw_status gw_batch_hop_merge(struct gw_batch *batch)
{
	uint32_t etypes = batch->engine->client->meta->num_etypes;
	const int32_t *fanouts = batch->spec.fanouts + (size_t)batch->hop_number * etypes;
	gw_status status = GW_OK;
	for (uint32_t e = 0; e < etypes && status == GW_OK; e++) {
		if (fanouts[e] != 0)
			status = merge_type(batch, e);
	}
	return status == GW_OK ? gw_blocks_hop_end(batch->blocks) : status;
}
