/* partition --time and --store: finds the features that lists are sorted by, and those whose rows are stored narrow,
 * and checks them before the work begins. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/numbers/time_key.h"
#include "tools/partition/candidates.h"
#include "tools/partition/split.h"

static const struct gw_array *feature_of(const struct gw_part *part, bool edge, uint32_t type, const char *name)
{
	char key[GW_KEY_MAX];
	const struct gw_graph_meta *meta = gw_part_meta(part);
	snprintf(key, sizeof(key), "%s/%s/%s", edge ? "edge" : "node",
		 edge ? meta->etypes[type].folder : meta->ntypes[type].name, name);
	return gw_part_array(part, key);
}

static bool partition_find_time(const void *part, bool edge, uint32_t type, const char *name,
				struct gw_time_column *out)
{
	const struct gw_array *array = feature_of(part, edge, type, name);
	if (!array)
		return false;
	*out = (struct gw_time_column){.dtype = array->meta->dtype,
				       .ndim = array->meta->ndim,
				       .data = array->data,
				       .unit = gw_meta_unit(gw_part_meta(part), array->meta->key)};
	memcpy(out->shape, array->meta->shape, sizeof(out->shape));
	return true;
}

/* By its input row or id too, if the graph has it as a number. */
static void partition_name_row(const void *part, bool edge, uint32_t type, uint64_t row, char text[GW_TIME_ROW_MAX])
{
	const struct gw_array *ids = feature_of(part, edge, type, "orig_id");
	int used = snprintf(text, GW_TIME_ROW_MAX, "%s %" PRIu64, edge ? "edge" : "node", row);
	if (!ids)
		return;
	snprintf(text + used, GW_TIME_ROW_MAX - (size_t)used, " (input %s %" PRId64 ")", edge ? "row" : "id",
		 ids->meta->dtype == GW_UINT32 ? ((const uint32_t *)ids->data)[row]
					       : ((const int64_t *)ids->data)[row]);
}

static bool can_be_time(const struct gw_array_key *key, const struct gw_array_meta *array)
{
	return array->ndim == 1 && gw_time_is_possible(array->dtype) && strcmp(key->name, "orig_id") != 0;
}

gw_status gw_plan_times_find(const char *const *words, uint32_t count, const struct gw_part *part, unsigned threads,
			     struct gw_time_plan *out)
{
	char list[GW_CANDIDATES_MAX], fault[256];
	const struct gw_graph_meta *meta = gw_part_meta(part);
	const struct gw_time_view view = {
		.meta = meta, .context = part, .find = partition_find_time, .name_row = partition_name_row};
	*out = (struct gw_time_plan){0};
	if (count == 0)
		return GW_OK;
	if (meta->minor < GW_FORMAT_MINOR_TIMES && gw_times_names_are_used(meta))
		return gw_fail(GW_INVALID,
			       "--time: a feature of this graph ends in .source, .fence, .times or .times_nodes, which "
			       "sorting by time needs: import the graph again with other names");
	gw_status status = gw_time_plan_make(&view, words, count, threads, out);
	if (status != GW_NOT_FOUND)
		return status;
	gw_candidates_list(part, can_be_time, list);
	snprintf(fault, sizeof(fault), "%s", gw_last_error());
	return gw_fail(GW_NOT_FOUND, "%s; times can be: %s", fault, list);
}

static bool partition_is_weight(const void *context, uint32_t etype, const char *name)
{
	const struct gw_plan_weights *weights = context;
	for (uint32_t i = 0; i < weights->count; i++) {
		if (weights->list[i].etype == etype && strcmp(weights->list[i].name, name) == 0)
			return true;
	}
	return false;
}

static bool can_be_narrow(const struct gw_array_key *key, const struct gw_array_meta *array)
{
	return (array->dtype == GW_FLOAT32 || array->dtype == GW_FLOAT64) && !gw_name_is_taken(key->edge, key->name);
}

gw_status gw_plan_stores_find(const char *const *words, uint32_t count, const struct gw_part *part, unsigned threads,
			      const struct gw_plan_weights *weights, const struct gw_time_plan *times,
			      struct gw_store_plan *out)
{
	char list[GW_CANDIDATES_MAX], fault[256];
	const struct gw_time_view features = {.meta = gw_part_meta(part),
					      .context = part,
					      .find = partition_find_time,
					      .name_row = partition_name_row};
	const struct gw_store_view view = {
		.features = &features, .times = times, .is_weight = partition_is_weight, .weights = weights};
	gw_status status = gw_store_plan_make(&view, words, count, threads, out);
	if (status != GW_NOT_FOUND)
		return status;
	gw_candidates_list(part, can_be_narrow, list);
	snprintf(fault, sizeof(fault), "%s", gw_last_error());
	return gw_fail(GW_NOT_FOUND, "%s; rows that can be narrow: %s", fault, list);
}
