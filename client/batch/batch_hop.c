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
	gw_hop_begin(&batch->hop);
	for (uint32_t e = 0; e < etypes && status == GW_OK; e++) {
		if (fanouts[e] == 0)
			continue;
		const struct gw_pick_rule rule = gw_blocks_rule(batch->blocks, e);
		uint64_t n;
		const uint64_t *frontier = gw_blocks_frontier(batch->blocks, e, &n);
		status = gw_hop_want(&batch->hop, e, &rule, frontier, n);
	}
	return status;
}

static gw_status merge_type(struct gw_batch *batch, uint32_t etype)
{
	gw_status status = gw_blocks_edges_begin(batch->blocks, etype);
	uint64_t n;
	gw_blocks_frontier(batch->blocks, etype, &n);
	for (uint64_t i = 0; i < n && status == GW_OK; i += GW_HOP_RUN) {
		uint64_t run = n - i < GW_HOP_RUN ? n - i : GW_HOP_RUN;
		uint64_t nodes[GW_HOP_RUN];
		memcpy(nodes, gw_blocks_frontier(batch->blocks, etype, &n) + i, run * sizeof(nodes[0]));
		struct gw_hop_edges edges;
		status = gw_hop_take(&batch->hop, etype, i, nodes, run, &edges);
		if (status == GW_OK)
			status = gw_blocks_add(batch->blocks, run, edges.counts, edges.positions, edges.neighbours,
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
