/* How many lists name a node, in all parts and edge types that are sampled: the same for every part. */
#include <string.h>

#include "tools/replicate/replicate.h"

static bool is_sampled(const struct gw_hot_graph *graph, uint32_t etype)
{
	for (uint32_t h = 0; h < graph->hops; h++) {
		if (graph->fanouts[h * graph->meta->num_etypes + etype] != 0)
			return true;
	}
	return false;
}

gw_status gw_hot_degree(const struct gw_hot_graph *graph, double *hot)
{
	const struct gw_graph_meta *meta = graph->meta;
	memset(hot, 0, gw_hot_nodes(graph) * sizeof(*hot));
	for (uint32_t e = 0; e < meta->num_etypes; e++) {
		double *of_type = hot + graph->first[meta->etypes[e].src];
		for (uint32_t p = 0; p < meta->num_parts && is_sampled(graph, e); p++) {
			const struct gw_adjacency *lists = gw_part_adjacency(graph->parts[p], e);
			for (uint64_t i = 0; i < lists->edges; i++)
				of_type[gw_load_id(lists->indices, lists->index_bytes, i)]++;
		}
	}
	return GW_OK;
}
