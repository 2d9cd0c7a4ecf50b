/* The graph, the features that trainers fetch, and their bytes: as they are stored, and narrow. */
#include "core/graph/part_lists.h"
#include "core/memory/alloc.h"
#include "core/numbers/convert.h"
#include "tools/means/means.h"

const struct gw_means_store gw_means_stores[GW_MEANS_STORES] = {
	{NULL, 0}, {"float16", GW_FLOAT16}, {"int8_row", GW_INT8_ROW}};

static uint64_t stored_bytes(const struct gw_graph_meta *meta, const struct gw_array_meta *array, uint32_t store)
{
	const gw_dtype dtype = gw_means_stores[store].dtype;
	const uint64_t bytes = gw_array_meta_row_bytes(array), numbers = gw_meta_row_numbers(meta, array);
	if (!gw_means_stores[store].name || !gw_convert_is_possible(array->dtype, dtype) ||
	    (array->dtype != GW_FLOAT32 && array->dtype != GW_FLOAT64))
		return bytes;
	return dtype == GW_INT8_ROW ? gw_int8_row_bytes(numbers) : numbers * gw_dtype_bytes(dtype);
}

static gw_status list_fetches(const struct gw_replicate_plan *plan, struct gw_means_graph *graph)
{
	const struct gw_graph_meta *meta = graph->hot.meta;
	gw_status status = GW_OK;
	for (uint32_t a = 0; a < meta->parts[0].count && status == GW_OK; a++) {
		const struct gw_array_meta *array = &meta->parts[0].arrays[a];
		struct gw_array_key key;
		if (!gw_replicate_means(plan, meta, array))
			continue;
		status = gw_array_key_parse(meta, array->key, &key);
		struct gw_means_fetch *fetch = &graph->fetches[graph->fetch_count++];
		*fetch = (struct gw_means_fetch){.array = array, .ntype = key.type};
		for (uint32_t s = 0; s < GW_MEANS_STORES; s++)
			fetch->row_bytes[s] = stored_bytes(meta, array, s);
	}
	return status;
}

double gw_means_row_bytes(const struct gw_means_graph *graph, uint32_t part, uint32_t store)
{
	double bytes = 0;
	for (uint32_t f = 0; f < graph->fetch_count; f++) {
		const uint64_t *starts = graph->hot.meta->ntypes[graph->fetches[f].ntype].starts;
		bytes += (double)((starts[part + 1] - starts[part]) * graph->fetches[f].row_bytes[store]);
	}
	return bytes;
}

gw_status gw_means_graph_open(const struct gw_means_plan *plan, const struct gw_graph_meta *meta,
			      struct gw_means_graph *out)
{
	gw_status status = gw_hot_graph_open(&plan->trainers, plan->config, meta, false, &out->hot);
	if (status != GW_OK)
		return status;
	out->cost = gw_calloc(meta->num_ntypes, sizeof(*out->cost));
	out->fetches = gw_calloc(meta->parts[0].count + 1ull, sizeof(*out->fetches));
	if (!out->cost || !out->fetches)
		return GW_NO_MEMORY;
	status = gw_replicate_costs(&plan->trainers, meta, out->cost);
	return status == GW_OK ? list_fetches(&plan->trainers, out) : status;
}

void gw_means_graph_close(struct gw_means_graph *graph)
{
	gw_free(graph->cost);
	gw_free(graph->fetches);
	gw_hot_graph_close(&graph->hot);
}

uint64_t gw_means_all_bytes(const struct gw_means_graph *graph, uint32_t store)
{
	uint64_t bytes = 0;
	for (uint32_t f = 0; f < graph->fetch_count; f++)
		bytes += graph->hot.meta->ntypes[graph->fetches[f].ntype].count * graph->fetches[f].row_bytes[store];
	return bytes;
}

double gw_means_other_lists(const struct gw_graph_meta *meta, uint32_t part)
{
	double bytes = 0;
	for (uint32_t p = 0; p < meta->num_parts; p++)
		bytes += p == part ? 0 : (double)gw_part_lists_bytes(meta, p, NULL, NULL);
	return bytes;
}

double gw_means_left_on_disk(const struct gw_graph_meta *meta, uint32_t part,
			     bool (*is_left)(const struct gw_graph_meta *meta, const struct gw_array_meta *array))
{
	double bytes = 0;
	for (uint32_t a = 0; a < meta->parts[part].count; a++) {
		const struct gw_array_meta *array = &meta->parts[part].arrays[a];
		bytes += is_left(meta, array) ? (double)gw_array_meta_bytes(array) : 0;
	}
	return bytes;
}
