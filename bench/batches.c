/* Streams mini-batches of two clients.
 *
 *   seeds -> a loader of each client -> compare the first batches of both -> stream the measured client's, timed
 *
 * Fails if the graph lacks a name, if memory runs out, or if a batch differs.
 */
#include "bench/batches.h"

#include <string.h>

#include "core/errors/status.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"

#define CHECKED 3 /* batches compared before the measurement */

static gw_status find_labels(struct gw_client *client, const char *name, const struct gw_tensor **out)
{
	const struct gw_graph_info *info = gw_client_graph(client);
	for (uint32_t ntype = 0; ntype < info->num_ntypes; ntype++) {
		if (gw_node_tensor(client, ntype, name, out) == GW_OK)
			return GW_OK;
	}
	return gw_fail(GW_NOT_FOUND, "no node type has a feature \"%s\": name one with --labels", name);
}

static gw_status list_seeds(struct gw_batches *b, struct gw_client *client, int64_t part)
{
	uint32_t ntype = b->options.spec.ntype;
	int64_t begin = 0, end = (int64_t)b->type_count;
	gw_status status = part >= 0 ? gw_part_range(client, ntype, (uint32_t)part, &begin, &end) : GW_OK;
	if (status != GW_OK)
		return status;
	b->options.id_count = (uint64_t)(end - begin);
	b->ids = gw_calloc(b->options.id_count, sizeof(*b->ids));
	if (!b->ids)
		return GW_NO_MEMORY;
	for (int64_t i = begin; i < end; i++)
		b->ids[i - begin] = i;
	b->options.ids = b->ids;
	return GW_OK;
}

static gw_status batches_fill_fanouts(struct gw_batches *b, struct gw_client *client,
				      const struct gw_bench_fanouts *fanouts)
{
	uint32_t etypes = gw_client_graph(client)->num_etypes;
	b->fanouts = gw_calloc((size_t)fanouts->hops * etypes, sizeof(*b->fanouts));
	if (!b->fanouts)
		return GW_NO_MEMORY;
	for (uint32_t i = 0; i < fanouts->hops * etypes; i++)
		b->fanouts[i] = fanouts->of_hop[i / etypes];
	b->options.spec.hops = fanouts->hops;
	b->options.spec.fanouts = b->fanouts;
	return GW_OK;
}

gw_status gw_batches_begin(struct gw_batches *b, struct gw_client *alone, const struct gw_batches_spec *spec)
{
	const struct gw_tensor *labels, *features;
	memset(b, 0, sizeof(*b));
	b->options = (struct gw_loader_options){
		.batch_size = spec->batch_size, .shuffle = true, .seed = 7, .depth = spec->depth};
	gw_status status = find_labels(alone, spec->labels, &labels);
	if (status != GW_OK)
		return status;
	b->options.spec.ntype = labels->type;
	b->type_count = gw_client_graph(alone)->ntypes[labels->type].count;
	if (spec->features) {
		status = gw_node_tensor(alone, labels->type, spec->features, &features);
		if (status != GW_OK)
			return status;
		b->fetches[0] = (struct gw_fetch){.tensor = features, .at = GW_AT_INPUTS};
		b->fetches[1] = (struct gw_fetch){.tensor = labels, .at = GW_AT_SEEDS};
		b->options.spec.fetch_count = 2;
		b->row_bytes = features->row_bytes;
	}
	status = batches_fill_fanouts(b, alone, &spec->fanouts);
	return status != GW_OK ? status : list_seeds(b, alone, spec->part);
}

void gw_batches_end(struct gw_batches *b)
{
	gw_loader_close(b->loader);
	gw_free(b->fanouts);
	gw_free(b->ids);
	memset(b, 0, sizeof(*b));
}

gw_status gw_batches_loader(const struct gw_batches *b, struct gw_client *client, struct gw_loader **out)
{
	/* Tensors belong to a client, so each client resolves its own. */
	struct gw_loader_options mine = b->options;
	struct gw_fetch fetches[2];
	for (uint32_t i = 0; i < mine.spec.fetch_count; i++) {
		const struct gw_tensor *tensor = b->fetches[i].tensor;
		fetches[i] = (struct gw_fetch){.at = b->fetches[i].at};
		gw_status status = gw_node_tensor(client, tensor->type, tensor->name, &fetches[i].tensor);
		if (status != GW_OK)
			return status;
	}
	mine.spec.fetches = fetches;
	return gw_loader_open(client, &mine, out);
}

gw_status gw_batches_next(struct gw_loader *loader, struct gw_minibatch **batch)
{
	gw_status status = gw_loader_next(loader, batch, -1);
	return status == GW_END ? gw_loader_next(loader, batch, -1) : status;
}

gw_status gw_batches_check(struct gw_batches *b, struct gw_client *alone, struct gw_client *measured)
{
	struct gw_loader *reference;
	gw_status status = gw_batches_loader(b, alone, &reference);
	if (status != GW_OK)
		return status;
	status = gw_batches_loader(b, measured, &b->loader);
	for (int i = 0; i < CHECKED && status == GW_OK; i++) {
		struct gw_minibatch *right = NULL, *got = NULL;
		status = gw_batches_next(reference, &right);
		if (status == GW_OK)
			status = gw_batches_next(b->loader, &got);
		if (status == GW_OK && gw_minibatch_digest(right) != gw_minibatch_digest(got))
			status = gw_fail(GW_DIGEST, "mini-batch %d differs from the standalone client's", i);
		if (status == GW_OK && got->fetch_count)
			b->rows_of_one = got->row_counts[0];
		gw_minibatch_release(right);
		gw_minibatch_release(got);
	}
	gw_loader_close(reference);
	return status;
}

static void batches_count(struct gw_batches *b, const struct gw_minibatch *batch)
{
	b->batches++;
	b->edges += batch->edge_count;
	b->rows += batch->fetch_count ? batch->row_counts[0] : 0;
	for (uint32_t t = 0; t < batch->num_ntypes; t++)
		b->nodes += batch->node_counts[t];
}

gw_status gw_batches_run(struct gw_batches *b, uint32_t n, double *per_second)
{
	uint64_t start = gw_now_ns(), last = start;
	for (uint32_t i = 0; i < n; i++) {
		struct gw_minibatch *batch;
		gw_status status = gw_batches_next(b->loader, &batch);
		if (status != GW_OK)
			return status;
		uint64_t now = gw_now_ns();
		gw_histogram_add(&b->waits, now - last);
		last = now;
		batches_count(b, batch);
		gw_minibatch_release(batch);
	}
	double seconds = (double)(last - start) / 1e9;
	b->seconds += seconds;
	*per_second = n / seconds;
	return GW_OK;
}
