/* What a plan says: the words of the command line, and the features that it means. */
#include <stdio.h>
#include <string.h>

#include "core/errors/units.h"
#include "tensors/features.h"
#include "tools/replicate/replicate.h"

#define FANOUT_MAX (1 << 20)

gw_status gw_replicate_rows_parse(const char *text, struct gw_replicate_plan *plan)
{
	size_t length = strlen(text);
	char number[32];
	plan->set = true;
	plan->share = 0;
	plan->bytes = 0;
	if (length == 0 || text[length - 1] != '%')
		return gw_parse_u64(text, 0, INT64_MAX, &plan->bytes);
	if (length > sizeof(number))
		return gw_fail(GW_INVALID, "\"%.40s\": a share such as 5%%, or bytes such as 20Gi", text);
	snprintf(number, sizeof(number), "%.*s", (int)(length - 1), text);
	gw_status status = gw_parse_double(number, 0, 100, &plan->share);
	plan->share /= 100;
	return status;
}

gw_status gw_replicate_by_parse(const char *text, struct gw_replicate_plan *plan)
{
	uint64_t epochs = 0;
	gw_status status = GW_OK;
	if (strcmp(text, "vip") == 0)
		plan->by = GW_HOT_VIP;
	else if (strcmp(text, "degree") == 0)
		plan->by = GW_HOT_DEGREE;
	else if (strncmp(text, "epochs:", 7) == 0) {
		plan->by = GW_HOT_EPOCHS;
		status = gw_parse_u64(text + 7, 1, GW_REPLICATE_EPOCHS_MAX, &epochs);
		plan->epochs = (uint32_t)epochs;
	} else {
		status = gw_fail(GW_INVALID, "\"%.40s\": vip, degree or epochs:N", text);
	}
	return status;
}

const char *gw_replicate_by_text(const struct gw_replicate_plan *plan, char text[GW_REPLICA_BY_MAX + 1])
{
	if (plan->by == GW_HOT_EPOCHS)
		snprintf(text, GW_REPLICA_BY_MAX + 1, "epochs:%u", plan->epochs);
	else
		snprintf(text, GW_REPLICA_BY_MAX + 1, "%s", plan->by == GW_HOT_VIP ? "vip" : "degree");
	return text;
}

static gw_status parse_hops(const char *text, struct gw_epoch_fanouts *out)
{
	return gw_parse_list(text, GW_ALL_NEIGHBOURS, FANOUT_MAX, GW_HOPS_MAX, out->of_hop, &out->hops);
}

gw_status gw_replicate_fanouts_parse(const char *text, struct gw_replicate_plan *plan)
{
	return parse_hops(text, &plan->fanouts);
}

gw_status gw_replicate_fanout_parse(char *text, struct gw_replicate_plan *plan)
{
	char *equals = strchr(text, '=');
	if (!equals || equals == text)
		return gw_fail(GW_INVALID, "\"%s\": an edge type and its fanouts, such as cites=10,5", text);
	if (plan->override_count == GW_EPOCH_OVERRIDES_MAX)
		return gw_fail(GW_LIMIT, "more than %d times", GW_EPOCH_OVERRIDES_MAX);
	*equals = '\0';
	struct gw_epoch_override *override = &plan->overrides[plan->override_count++];
	override->etype = text;
	return parse_hops(equals + 1, &override->fanouts);
}

/* "feat" or "paper:feat". */
static bool replicate_is_named(const char *word, const char *type, const char *name)
{
	const char *colon = strchr(word, ':');
	if (!colon)
		return strcmp(word, name) == 0;
	size_t length = (size_t)(colon - word);
	return strlen(type) == length && memcmp(word, type, length) == 0 && strcmp(colon + 1, name) == 0;
}

/* Whether the plan names the feature, or means it by default; *ntype: its node type. */
static bool replicate_is_meant(const struct gw_replicate_plan *plan, const struct gw_graph_meta *meta,
			       const struct gw_array_meta *array, uint32_t *ntype)
{
	bool of_edges;
	uint32_t type;
	const char *name;
	if (!gw_feature_parse(meta, array->key, &of_edges, &type, &name) || of_edges ||
	    gw_replica_key(meta, array->key))
		return false;
	*ntype = type;
	for (uint32_t i = 0; i < plan->num_features; i++) {
		if (replicate_is_named(plan->features[i], meta->ntypes[type].name, name))
			return true;
	}
	return plan->num_features == 0 && array->ndim > 1 && gw_meta_row_numbers(meta, array) > 1 &&
	       !gw_name_ends_in(name, "_mask");
}

bool gw_replicate_means(const struct gw_replicate_plan *plan, const struct gw_graph_meta *meta,
			const struct gw_array_meta *array)
{
	uint32_t ntype;
	return replicate_is_meant(plan, meta, array, &ntype) && meta->ntypes[ntype].count > 0;
}

/* A name that the plan gives must exist. */
static gw_status replicate_check_names(const struct gw_replicate_plan *plan, const struct gw_graph_meta *meta)
{
	for (uint32_t i = 0; i < plan->num_features; i++) {
		struct gw_replicate_plan one = {.num_features = 1, .features = {plan->features[i]}};
		bool found = false;
		uint32_t ntype;
		for (uint32_t a = 0; a < meta->parts[0].count && !found; a++)
			found = replicate_is_meant(&one, meta, &meta->parts[0].arrays[a], &ntype);
		if (!found)
			return gw_fail(GW_NOT_FOUND,
				       "feature \"%.130s\": no node type has it (graphwire inspect lists the features)",
				       plan->features[i]);
	}
	return GW_OK;
}

gw_status gw_replicate_costs(const struct gw_replicate_plan *plan, const struct gw_graph_meta *meta, uint64_t *cost)
{
	uint64_t total = 0;
	gw_status status = replicate_check_names(plan, meta);
	memset(cost, 0, meta->num_ntypes * sizeof(*cost));
	for (uint32_t a = 0; a < meta->parts[0].count && status == GW_OK; a++) {
		const struct gw_array_meta *array = &meta->parts[0].arrays[a];
		struct gw_array_key key;
		if (!gw_replicate_means(plan, meta, array))
			continue;
		status = gw_array_key_parse(meta, array->key, &key);
		if (status == GW_OK && strlen(key.name) + strlen(GW_REPLICA_TAIL) > GW_NAME_MAX)
			status = gw_fail(GW_INVALID, "feature \"%s\": a name with replicas has at most %zu characters",
					 key.name, GW_NAME_MAX - strlen(GW_REPLICA_TAIL));
		if (status == GW_OK)
			cost[key.type] += gw_array_meta_row_bytes(array);
		total += gw_array_meta_row_bytes(array);
	}
	if (status == GW_OK && total == 0 && plan->num_features > 0)
		status = gw_fail(GW_NOT_FOUND, "graph \"%s\": the types of the named features have no nodes",
				 meta->graph_name);
	else if (status == GW_OK && total == 0)
		status = gw_fail(
			GW_NOT_FOUND,
			"graph \"%s\" has no node feature of more than one number a row: name one with --features",
			meta->graph_name);
	return status;
}
