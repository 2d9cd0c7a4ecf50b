/* The graph whose rows are to be replicated, and the seeds of each part's trainers. */
#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/system/parallel.h"
#include "tools/replicate/replicate.h"

#define MASK   "train_mask"
#define LABELS "label"

static const struct gw_array_meta *of_type(const struct gw_graph_meta *meta, uint32_t ntype, const char *name)
{
	char key[2 * GW_NAME_MAX + 16];
	snprintf(key, sizeof(key), "node/%s/%.64s", meta->ntypes[ntype].name, name);
	return gw_meta_array(meta, 0, key);
}

/* The first type with the mask, else with labels, else the first of all. */
static gw_status find_ntype(const struct gw_replicate_plan *plan, struct gw_hot_graph *graph)
{
	const struct gw_graph_meta *meta = graph->meta;
	const char *const names[] = {plan->mask ? plan->mask : MASK, LABELS};
	if (plan->ntype)
		return gw_meta_ntype(meta, plan->ntype, &graph->ntype);
	for (int i = 0; i < 2; i++) {
		for (uint32_t t = 0; t < meta->num_ntypes; t++) {
			if (of_type(meta, t, names[i])) {
				graph->ntype = t;
				return GW_OK;
			}
		}
	}
	return GW_OK;
}

static gw_status find_masks(const struct gw_replicate_plan *plan, struct gw_hot_graph *graph)
{
	const struct gw_graph_meta *meta = graph->meta;
	const char *name = plan->mask ? plan->mask : MASK;
	const struct gw_array_meta *array = of_type(meta, graph->ntype, name);
	if (!array && !plan->mask)
		return GW_OK;
	if (!array)
		return gw_fail(GW_NOT_FOUND, "node type \"%s\" has no mask \"%.64s\"", meta->ntypes[graph->ntype].name,
			       name);
	if (gw_dtype_bytes(array->dtype) != 1 || array->dtype == GW_INT8_ROW)
		return gw_fail(GW_INVALID, "\"%s\" is of %s: a mask is of bool, uint8 or int8", array->key,
			       gw_dtype_name(array->dtype));
	if (array->ndim == 0 || gw_array_meta_row_bytes(array) != 1)
		return gw_fail(GW_INVALID, "\"%s\" has several columns: a mask has one number a row", array->key);
	graph->masks = gw_calloc(meta->num_parts, sizeof(*graph->masks));
	if (!graph->masks)
		return GW_NO_MEMORY;
	for (uint32_t p = 0; p < meta->num_parts; p++)
		graph->masks[p] = gw_part_array(graph->parts[p], array->key);
	return GW_OK;
}

static gw_status count_seeds(struct gw_hot_graph *graph)
{
	const struct gw_node_type *type = &graph->meta->ntypes[graph->ntype];
	uint64_t total = 0;
	graph->seeds = gw_calloc(graph->meta->num_parts, sizeof(*graph->seeds));
	if (!graph->seeds)
		return GW_NO_MEMORY;
	for (uint32_t p = 0; p < graph->meta->num_parts; p++) {
		for (uint64_t row = 0; row < type->starts[p + 1] - type->starts[p]; row++)
			graph->seeds[p] += gw_hot_is_seed(graph, p, row);
		total += graph->seeds[p];
	}
	return total ? GW_OK : gw_fail(GW_NOT_FOUND, "no node of type \"%s\" is a seed", type->name);
}

static gw_status fill_fanouts(const struct gw_replicate_plan *plan, struct gw_hot_graph *graph)
{
	const uint32_t hops = graph->hops = plan->fanouts.hops, etypes = graph->meta->num_etypes;
	graph->fanouts = gw_calloc((size_t)hops * etypes + 1, sizeof(*graph->fanouts));
	if (!graph->fanouts)
		return GW_NO_MEMORY;
	for (uint32_t h = 0; h < hops; h++) {
		for (uint32_t e = 0; e < etypes; e++)
			graph->fanouts[h * etypes + e] = plan->fanouts.of_hop[h];
	}
	for (uint32_t i = 0; i < plan->override_count; i++) {
		const struct gw_epoch_override *override = &plan->overrides[i];
		uint32_t e;
		gw_status status = gw_meta_etype(graph->meta, override->etype, &e);
		if (status == GW_OK && override->fanouts.hops != hops)
			status = gw_fail(GW_INVALID, "edge type \"%s\" has %u fanouts, but there are %u hops",
					 override->etype, override->fanouts.hops, hops);
		if (status != GW_OK)
			return status;
		for (uint32_t h = 0; h < hops; h++)
			graph->fanouts[h * etypes + e] = override->fanouts.of_hop[h];
	}
	return GW_OK;
}

static gw_status hot_open_parts(struct gw_hot_graph *graph, bool verify)
{
	const struct gw_graph_meta *meta = graph->meta;
	const struct gw_part_options options = {
		.mapped = true, .skip_verify = !verify, .load = {.verify_threads = graph->threads}};
	graph->parts = gw_calloc(meta->num_parts, sizeof(struct gw_part *));
	graph->first = gw_calloc(meta->num_ntypes + 1ull, sizeof(*graph->first));
	gw_status status = graph->parts && graph->first ? GW_OK : GW_NO_MEMORY;
	for (uint32_t p = 0; p < meta->num_parts && status == GW_OK; p++) {
		status = gw_part_open(meta, p, &options, &graph->parts[p]);
		if (status == GW_NOT_FOUND)
			gw_advise(status, "run it where all parts are");
	}
	for (uint32_t t = 0; t < meta->num_ntypes && status == GW_OK; t++)
		graph->first[t + 1] = graph->first[t] + meta->ntypes[t].count;
	return status;
}

gw_status gw_hot_graph_open(const struct gw_replicate_plan *plan, const char *config, const struct gw_graph_meta *meta,
			    bool verify, struct gw_hot_graph *graph)
{
	*graph = (struct gw_hot_graph){.meta = meta,
				       .config = config,
				       .batch_size = plan->batch_size,
				       .threads = plan->threads ? plan->threads : gw_processors()};
	gw_status status = fill_fanouts(plan, graph);
	if (status == GW_OK)
		status = find_ntype(plan, graph);
	if (status == GW_OK)
		status = hot_open_parts(graph, verify);
	if (status == GW_OK)
		status = find_masks(plan, graph);
	if (status == GW_OK)
		status = count_seeds(graph);
	if (status != GW_OK)
		gw_hot_graph_close(graph);
	return status;
}

void gw_hot_graph_close(struct gw_hot_graph *graph)
{
	for (uint32_t p = 0; graph->parts && p < graph->meta->num_parts; p++)
		gw_part_close(graph->parts[p]);
	gw_free(graph->parts);
	gw_free(graph->first);
	gw_free(graph->fanouts);
	gw_free(graph->masks);
	gw_free(graph->seeds);
	*graph = (struct gw_hot_graph){0};
}

void gw_hot_drop_own(const struct gw_hot_graph *graph, uint32_t part, double *hot)
{
	for (uint32_t t = 0; t < graph->meta->num_ntypes; t++) {
		const uint64_t *starts = graph->meta->ntypes[t].starts;
		memset(hot + graph->first[t] + starts[part], 0, (starts[part + 1] - starts[part]) * sizeof(*hot));
	}
}

gw_status gw_hot_of_part(const struct gw_hot_graph *graph, const struct gw_replicate_plan *plan,
			 struct gw_client *client, uint32_t part, double *hot)
{
	gw_status status;
	if (plan->by == GW_HOT_VIP)
		status = gw_hot_vip(graph, part, hot);
	else if (plan->by == GW_HOT_DEGREE)
		status = gw_hot_degree(graph, hot);
	else
		status = gw_hot_counts(graph, client, part, plan->epochs, plan->seed, hot);
	if (status == GW_OK)
		gw_hot_drop_own(graph, part, hot);
	return status;
}
