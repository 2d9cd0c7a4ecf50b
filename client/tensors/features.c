/* Finds features by name: the feature itself, or the tensor that servers serve in its place (serve --mutable). Such a
 * tensor is created or opened as any other: see create.c. If the feature does not exist, the error lists the existing
 * ones. Also fails with the errors of gw_tensor_open. */
#include <stdio.h>
#include <string.h>

#include "client/tensors/checkpoint.h"
#include "tensors/features.h"

/* Returns a feature as callers see it: the feature itself, or the mutable tensor in its place. */
static gw_status feature_open(struct gw_client *client, const struct gw_client_tensor *feature,
			      const struct gw_tensor **out)
{
	struct gw_tensor_plan plan;
	*out = feature->changes ? NULL : &feature->tensor;
	if (!feature->changes)
		return GW_OK;
	gw_status status = gw_client_check(client);
	if (status == GW_OK)
		status = gw_feature_plan(client->meta, feature->changes, &plan);
	return status == GW_OK ? gw_tensor_create_planned(client, &plan, false, out) : status;
}

static gw_status check_type(const struct gw_client *client, bool of_edges, uint32_t type)
{
	uint32_t types = of_edges ? client->meta->num_etypes : client->meta->num_ntypes;
	return type < types ? GW_OK
			    : gw_fail(GW_RANGE, "%s type %u of %u", of_edges ? "edge" : "node", type, types);
}

static gw_status find_tensor(struct gw_client *client, bool of_edges, uint32_t type, const char *name,
			     const struct gw_tensor **out)
{
	*out = NULL;
	gw_status status = check_type(client, of_edges, type);
	if (status != GW_OK)
		return status;
	char names[512] = "";
	size_t used = 0;
	for (uint32_t i = 0; i < client->tensor_count; i++) {
		const struct gw_tensor *tensor = &client->tensors[i].tensor;
		if (tensor->of_edges != of_edges || tensor->type != type)
			continue;
		if (strcmp(tensor->name, name) == 0)
			return feature_open(client, &client->tensors[i], out);
		if (i < client->feature_count && used < sizeof(names))
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "",
						 tensor->name);
	}
	const char *type_name = of_edges ? client->etypes[type].name : client->ntypes[type].name;
	return gw_fail(GW_NOT_FOUND, "%s has no feature \"%.64s\"; it has: %s", type_name, name, used ? names : "none");
}

gw_status gw_node_tensor(struct gw_client *client, uint32_t ntype, const char *name, const struct gw_tensor **out)
{
	return find_tensor(client, false, ntype, name, out);
}

gw_status gw_edge_tensor(struct gw_client *client, uint32_t etype, const char *name, const struct gw_tensor **out)
{
	return find_tensor(client, true, etype, name, out);
}

/* NULL: it does not exist. */
static const struct gw_client_tensor *feature_named(const struct gw_client *client, bool of_edges, uint32_t type,
						    const char *name)
{
	for (uint32_t i = 0; i < client->tensor_count; i++) {
		const struct gw_tensor *tensor = &client->tensors[i].tensor;
		if (tensor->of_edges == of_edges && tensor->type == type && strcmp(tensor->name, name) == 0)
			return &client->tensors[i];
	}
	return NULL;
}

gw_status gw_edge_times(struct gw_client *client, uint32_t etype, const char *name, const struct gw_tensor **out)
{
	char of_source[GW_NAME_MAX + sizeof(GW_TIME_SOURCE_TAIL)];
	*out = NULL;
	gw_status status = check_type(client, true, etype);
	if (status != GW_OK)
		return status;
	const struct gw_client_tensor *times = feature_named(client, true, etype, name);
	if (!times && (size_t)snprintf(of_source, sizeof(of_source), "%s" GW_TIME_SOURCE_TAIL, name) < sizeof(of_source))
		times = feature_named(client, true, etype, of_source);
	if (!times && feature_named(client, false, client->etypes[etype].src, name))
		return gw_fail(GW_NOT_FOUND,
			       "edge type %s: \"%.64s\" is a feature of the sources, and the parts do not store it beside "
			       "the edges; \"graphwire partition --time %.64s\" makes parts that do",
			       client->etypes[etype].name, name, name);
	*out = times ? &times->tensor : NULL;
	return GW_OK;
}
