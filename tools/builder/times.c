/* --time and --store for a builder: the planners' view of its arrays. Edge features have a row for each input row, and
 * the features of an edge type are those of its reverse type too. */
#include <stdio.h>
#include <string.h>

#include "core/graph/times.h"
#include "tools/builder/builder_private.h"

const struct builder_etype *gw_builder_etype_at(const struct gw_builder *builder, uint32_t number, bool *turned)
{
	for (uint32_t i = 0;; i++) {
		uint32_t types = builder->etypes[i].edges.reverse ? 2 : 1;
		*turned = number > 0;
		if (number < types)
			return &builder->etypes[i];
		number -= types;
	}
}

static struct gw_time_column column_of(const struct gw_builder_array *array)
{
	struct gw_time_column column = {.dtype = array->dtype,
					.ndim = array->ndim,
					.data = array->data,
					.source = array->source,
					.unit = array->unit};
	memcpy(column.shape, array->shape, sizeof(column.shape));
	return column;
}

static bool builder_find_time(const void *context, bool edge, uint32_t type, const char *name,
			      struct gw_time_column *out)
{
	const struct gw_builder *builder = context;
	bool turned;
	const struct builder_etype *etype = edge ? gw_builder_etype_at(builder, type, &turned) : NULL;
	const struct builder_items *arrays = edge ? &etype->arrays : &builder->ntypes[type].arrays;
	for (uint32_t i = 0; i < arrays->count; i++) {
		const struct builder_item *item = &arrays->items[i];
		if (item->strings || strcmp(item->name, name) != 0)
			continue;
		*out = column_of(&item->array);
		return true;
	}
	if (!edge || !etype->edges.time || strcmp(etype->time_name, name) != 0)
		return false;
	*out = (struct gw_time_column){
		.dtype = GW_INT64, .ndim = 1, .data = etype->edges.time, .unit = etype->edges.time_unit};
	out->shape[0] = etype->edges.origin ? etype->edges.input_rows : etype->edges.count;
	return true;
}

static void builder_name_row(const void *context, bool edge, uint32_t type, uint64_t row, char text[GW_TIME_ROW_MAX])
{
	(void)context;
	(void)type;
	snprintf(text, GW_TIME_ROW_MAX, "%s %llu", edge ? "row" : "node", (unsigned long long)row);
}

/* Every edge type by time has a column in the plan, also those that were added with their times. */
static gw_status add_given(struct builder_writing *w, const struct gw_time_view *view, uint32_t number,
			   const struct builder_etype *type)
{
	struct gw_time_order *order = &w->times.orders[number];
	if (order->name[0] || !type->edges.time)
		return GW_OK;
	snprintf(order->name, sizeof(order->name), "%s", type->time_name);
	builder_find_time(w->builder, true, number, type->time_name, &order->column);
	return gw_time_values_check(view, true, number, order->name, &order->column, w->threads);
}

gw_status gw_builder_set_units(struct builder_writing *w)
{
	char key[GW_BUILDER_KEY_MAX];
	gw_status status = GW_OK;
	for (uint32_t t = 0; t < w->meta->num_ntypes; t++) {
		const struct builder_items *arrays = &w->builder->ntypes[t].arrays;
		for (uint32_t i = 0; i < arrays->count && status == GW_OK; i++) {
			snprintf(key, sizeof(key), "node/%s/%s", w->meta->ntypes[t].name, arrays->items[i].name);
			status = gw_writer_set_unit(w->writer, key, arrays->items[i].array.unit);
		}
	}
	for (uint32_t e = 0; e < w->meta->num_etypes; e++) {
		bool turned;
		const struct builder_items *arrays = &gw_builder_etype_at(w->builder, e, &turned)->arrays;
		const struct gw_time_order *order = &w->times.orders[e];
		for (uint32_t i = 0; i < arrays->count && status == GW_OK; i++) {
			snprintf(key, sizeof(key), "edge/%s/%s", w->meta->etypes[e].folder, arrays->items[i].name);
			status = gw_writer_set_unit(w->writer, key, arrays->items[i].array.unit);
		}
		snprintf(key, sizeof(key), "edge/%s/%s", w->meta->etypes[e].folder, order->name);
		if (status == GW_OK && order->name[0])
			status = gw_writer_set_unit(w->writer, key, order->column.unit);
	}
	return status;
}

/* Rows are checked later, for every array; the planners read them before. */
static gw_status check_all_rows(const struct builder_writing *w)
{
	const struct gw_builder *builder = w->builder;
	gw_status status = GW_OK;
	for (uint32_t t = 0; t < builder->num_ntypes; t++) {
		const struct builder_ntype *type = &builder->ntypes[t];
		for (uint32_t i = 0; i < type->arrays.count && status == GW_OK; i++)
			status = gw_builder_check_rows(&type->arrays.items[i], "node", type->name, type->count);
	}
	for (uint32_t t = 0; t < builder->num_etypes; t++) {
		const struct builder_etype *type = &builder->etypes[t];
		uint64_t rows = type->edges.origin ? type->edges.input_rows : type->edges.count;
		for (uint32_t i = 0; i < type->arrays.count && status == GW_OK; i++)
			status = gw_builder_check_rows(&type->arrays.items[i], "edge", type->rel, rows);
	}
	return status;
}

/* A column with a unit lacks no time, whether lists are sorted by it or not: NaT is an integer, which a draw would take
 * for the first of all times. */
static gw_status check_time_columns(const struct builder_writing *w, const struct gw_time_view *view, bool edge,
				    uint32_t type, const struct builder_items *arrays)
{
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < arrays->count && status == GW_OK; i++) {
		const struct gw_time_column column = column_of(&arrays->items[i].array);
		if (!arrays->items[i].strings && column.unit != GW_UNIT_NONE)
			status = gw_time_values_check(view, edge, type, arrays->items[i].name, &column, w->threads);
	}
	return status;
}

static gw_status check_units(const struct builder_writing *w, const struct gw_time_view *view)
{
	gw_status status = GW_OK;
	for (uint32_t t = 0; t < w->meta->num_ntypes && status == GW_OK; t++)
		status = check_time_columns(w, view, false, t, &w->builder->ntypes[t].arrays);
	for (uint32_t e = 0; e < w->meta->num_etypes && status == GW_OK; e++) {
		bool turned;
		const struct builder_etype *etype = gw_builder_etype_at(w->builder, e, &turned);
		if (!turned)
			status = check_time_columns(w, view, true, e, &etype->arrays);
	}
	return status;
}

gw_status gw_builder_plan_times(struct builder_writing *w, const struct gw_builder_options *options)
{
	const struct gw_time_view view = {.meta = w->meta,
					  .keeps_orders = true,
					  .context = w->builder,
					  .find = builder_find_time,
					  .name_row = builder_name_row};
	gw_status status = options->num_times ? check_all_rows(w) : GW_OK;
	if (status == GW_OK)
		status = gw_time_plan_make(&view, options->times, options->num_times, options->threads, &w->times);
	if (status == GW_OK)
		status = check_units(w, &view);
	for (uint32_t e = 0; e < w->meta->num_etypes && status == GW_OK; e++) {
		bool turned;
		struct gw_edge_type *type = &w->meta->etypes[e];
		status = add_given(w, &view, e, gw_builder_etype_at(w->builder, e, &turned));
		if (!w->times.orders[e].name[0])
			continue;
		type->order = GW_ORDER_TIME_SRC;
		snprintf(type->time_name, sizeof(type->time_name), "%s", w->times.orders[e].name);
	}
	return status;
}

static bool builder_is_weight(const void *context, uint32_t etype, const char *name)
{
	bool turned;
	const struct builder_items *arrays = &gw_builder_etype_at(context, etype, &turned)->arrays;
	for (uint32_t i = 0; i < arrays->count; i++) {
		if (arrays->items[i].array.weight && strcmp(arrays->items[i].name, name) == 0)
			return true;
	}
	return false;
}

gw_status gw_builder_plan_stores(struct builder_writing *w, const struct gw_builder_options *options)
{
	const struct gw_time_view features = {
		.meta = w->meta, .context = w->builder, .find = builder_find_time, .name_row = builder_name_row};
	const struct gw_store_view view = {
		.features = &features, .times = &w->times, .is_weight = builder_is_weight, .weights = w->builder};
	gw_status status = options->num_stores ? check_all_rows(w) : GW_OK;
	return status == GW_OK ? gw_store_plan_make(&view, options->stores, options->num_stores, w->threads, &w->stores)
			       : status;
}
