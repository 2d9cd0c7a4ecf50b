/* How many mini-batches of some epochs have a node: counted with the loader that trainers use, over the lists alone.
 *
 *   a standalone client without features -> for each part a loader over the part's seeds -> the nodes of each batch
 *
 * The counts are those of trainers whose loaders have the same seed, shuffle, batch size and order of seeds; they
 * predict other epochs of the same kind.
 */
#include <string.h>

#include "client/standalone.h"
#include "core/memory/alloc.h"
#include "tools/replicate/replicate.h"

gw_status gw_hot_client_open(const struct gw_hot_graph *graph, const char *neighbours, struct gw_client **out)
{
	const struct gw_client_options options = {.part_config = graph->config,
						  .threads = graph->threads < 64 ? graph->threads : 64,
						  .neighbours = neighbours,
						  .no_verify = true};
	return gw_client_open_lists(&options, out);
}

static int64_t *hot_seeds(const struct gw_hot_graph *graph, uint32_t part)
{
	const uint64_t *starts = graph->meta->ntypes[graph->ntype].starts;
	int64_t *seeds = gw_malloc(graph->seeds[part] * sizeof(*seeds) + 1);
	uint64_t count = 0;
	for (uint64_t row = 0; seeds && row < starts[part + 1] - starts[part]; row++) {
		if (gw_hot_is_seed(graph, part, row))
			seeds[count++] = (int64_t)(starts[part] + row);
	}
	return seeds;
}

gw_status gw_hot_loader_open(const struct gw_hot_graph *graph, struct gw_client *client, uint32_t part, uint32_t hops,
			     const int32_t *fanouts, uint64_t seed, struct gw_loader **out)
{
	int64_t *seeds = hot_seeds(graph, part);
	*out = NULL;
	if (!seeds)
		return GW_NO_MEMORY;
	const struct gw_loader_options options = {.spec = {.ntype = graph->ntype, .hops = hops, .fanouts = fanouts},
						  .ids = seeds,
						  .id_count = graph->seeds[part],
						  .batch_size = graph->batch_size,
						  .shuffle = true,
						  .seed = seed,
						  .world = 1,
						  .last = GW_LAST_SHORT};
	gw_status status = gw_loader_open(client, &options, out);
	gw_free(seeds);
	return status;
}

static gw_status count_epoch(const struct gw_hot_graph *graph, struct gw_loader *loader, double *hot)
{
	struct gw_minibatch *batch = NULL;
	gw_status status;
	while ((status = gw_loader_next(loader, &batch, -1)) == GW_OK) {
		for (uint32_t t = 0; t < batch->num_ntypes; t++) {
			for (uint64_t i = 0; i < batch->node_counts[t]; i++)
				hot[graph->first[t] + (uint64_t)batch->nodes[t][i]]++;
		}
		gw_minibatch_release(batch);
	}
	return status == GW_END ? GW_OK : status;
}

gw_status gw_hot_counts(const struct gw_hot_graph *graph, struct gw_client *client, uint32_t part, uint32_t epochs,
			uint64_t seed, double *hot)
{
	struct gw_loader *loader = NULL;
	memset(hot, 0, gw_hot_nodes(graph) * sizeof(*hot));
	if (graph->seeds[part] == 0)
		return GW_OK;
	gw_status status = gw_hot_loader_open(graph, client, part, graph->hops, graph->fanouts, seed, &loader);
	for (uint32_t epoch = 0; epoch < epochs && status == GW_OK; epoch++)
		status = count_epoch(graph, loader, hot);
	gw_loader_close(loader);
	return status;
}
