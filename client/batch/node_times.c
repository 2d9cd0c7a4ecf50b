/* Looks up the times of nodes: see node_times.h. Features that have an index never change, so a result stays true. */
#include "client/batch/node_times.h"

#include <stdio.h>
#include <string.h>

#include "client/rows/tensors.h"
#include "core/graph/times.h"
#include "core/memory/alloc.h"
#include "core/numbers/time_key.h"

#define KEY_MAX (GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 32)

static gw_status fail_no_time(const struct gw_client *client, uint32_t ntype, const char *name)
{
	const struct gw_graph_meta *meta = client->meta;
	const char *type = client->ntypes[ntype].name;
	char key[KEY_MAX];
	for (uint32_t e = 0; e < meta->num_etypes; e++) {
		snprintf(key, sizeof(key), "edge/%s/%.*s", meta->etypes[e].folder, GW_NAME_MAX, name);
		if (gw_meta_array(meta, 0, key))
			return gw_fail(
				GW_NOT_FOUND,
				"negatives by the time \"%.64s\": it is a feature of the edges %s, and not of %s: a "
				"node exists from a time of its own on",
				name, client->etypes[e].name, type);
	}
	return gw_fail(GW_NOT_FOUND, "negatives by the time \"%.64s\": %s has no such feature", name, type);
}

static gw_status find_time(const struct gw_client *client, uint32_t ntype, const char *name,
			   const struct gw_array_meta **out)
{
	const char *type = client->ntypes[ntype].name;
	char key[KEY_MAX];
	snprintf(key, sizeof(key), "node/%s/%.*s", client->meta->ntypes[ntype].name, GW_NAME_MAX, name);
	const struct gw_array_meta *array = gw_array_of_all(client->meta, key);
	if (!array || strlen(name) > GW_NAME_MAX)
		return fail_no_time(client, ntype, name);
	if (array->ndim != 1 || !gw_time_is_possible(array->dtype))
		return gw_fail(GW_UNSUPPORTED,
			       "negatives by the time \"%s\" of %s: a time is one int64, int32, float64 or float32 for "
			       "each node",
			       name, type);
	if (gw_array_is_mutable(client, key))
		return gw_fail(GW_UNSUPPORTED, "negatives by the time \"%s\" of %s: it is served as mutable rows", name,
			       type);
	*out = array;
	return GW_OK;
}

/* The rows of an array of nodes; rows->places stays NULL if the graph does not have it. */
static gw_status node_rows_of(const struct gw_client *client, uint32_t ntype, const char *name, const char *tail,
			      struct gw_rows *rows)
{
	const struct gw_graph_meta *meta = client->meta;
	char key[KEY_MAX];
	snprintf(key, sizeof(key), "node/%s/%s%s", meta->ntypes[ntype].name, name, tail);
	const struct gw_array_meta *array = gw_array_of_all(meta, key);
	if (!array)
		return GW_OK;
	rows->starts = meta->ntypes[ntype].starts;
	rows->step = rows->row_bytes = gw_array_meta_row_bytes(array);
	gw_status status = gw_places_find_anywhere(client, key, &rows->places);
	rows->on_disk = status == GW_OK && gw_places_are_on_disk(client, rows->places);
	return status;
}

static gw_status find_index(const struct gw_client *client, struct gw_node_times *times)
{
	gw_status status = GW_OK;
	if (client->meta->minor >= GW_FORMAT_MINOR_TIMES) {
		status = node_rows_of(client, times->ntype, times->name, GW_TIMES_TAIL, &times->keys);
		if (status == GW_OK)
			status = node_rows_of(client, times->ntype, times->name, GW_TIMES_NODES_TAIL, &times->nodes);
	}
	if (status == GW_OK && (!times->keys.places || !times->nodes.places))
		return gw_fail(GW_UNSUPPORTED,
			       "negatives by the time \"%s\" of %s: the graph has no index of these times: graphwire "
			       "partition --time %s makes it",
			       times->name, client->ntypes[times->ntype].name, times->name);
	return status;
}

static void times_free(struct gw_node_times *times)
{
	gw_free(times->name);
	gw_free(times->end);
	gw_free(times->keys.places);
	gw_free(times->nodes.places);
	gw_free(times->ends.places);
	gw_free(times);
}

static gw_status times_make(struct gw_client *client, const struct gw_edge_seeds *spec, uint32_t ntype,
			    struct gw_node_times **out)
{
	const struct gw_array_meta *time, *end = NULL;
	gw_status status = find_time(client, ntype, spec->exist_time, &time);
	if (status == GW_OK && spec->exist_end)
		status = find_time(client, ntype, spec->exist_end, &end);
	if (status != GW_OK)
		return status;
	struct gw_node_times *times = gw_calloc(1, sizeof(*times));
	if (!times)
		return GW_NO_MEMORY;
	times->ntype = ntype;
	times->real = gw_time_is_real(time->dtype);
	times->name = gw_strdup(spec->exist_time);
	times->end = end ? gw_strdup(spec->exist_end) : NULL;
	times->end_dtype = end ? end->dtype : GW_INT64;
	times->real_ends = gw_time_is_real(times->end_dtype);
	status = times->name && (times->end || !end) ? find_index(client, times) : GW_NO_MEMORY;
	if (status == GW_OK && end)
		status = node_rows_of(client, ntype, times->end, "", &times->ends);
	if (status != GW_OK) {
		times_free(times);
		return status;
	}
	*out = times;
	return GW_OK;
}

static gw_status check_exist(const struct gw_client *client, const struct gw_edge_seeds *spec)
{
	const char *seeds = client->etypes[spec->etype].name;
	if (!spec->exist_time)
		return gw_fail(GW_INVALID, "the seeds of %s have exist_end \"%.64s\", and no exist_time", seeds,
			       spec->exist_end);
	if (spec->negatives == GW_NEGATIVES_NONE)
		return gw_fail(GW_INVALID, "the seeds of %s have exist_time \"%.64s\", and no negatives", seeds,
			       spec->exist_time);
	if (spec->negative_ids)
		return gw_fail(GW_UNSUPPORTED,
			       "the seeds of %s have exist_time \"%.64s\" and a list of nodes to draw negatives from: "
			       "give one of them",
			       seeds, spec->exist_time);
	return GW_OK;
}

static bool is_of(const struct gw_node_times *times, const struct gw_edge_seeds *spec, uint32_t ntype)
{
	return times->ntype == ntype && strcmp(times->name, spec->exist_time) == 0 && !times->end == !spec->exist_end &&
	       (!times->end || strcmp(times->end, spec->exist_end) == 0);
}

gw_status gw_node_times_find(struct gw_client *client, const struct gw_edge_seeds *spec,
			     const struct gw_node_times **out)
{
	*out = NULL;
	if (!spec->exist_time && !spec->exist_end)
		return GW_OK;
	gw_status status = check_exist(client, spec);
	if (status != GW_OK)
		return status;
	const struct gw_edge_type *type = &client->meta->etypes[spec->etype];
	uint32_t ntype = spec->negatives == GW_NEGATIVES_SRC ? type->src : type->dst;
	pthread_mutex_lock(&client->lookups_lock);
	struct gw_node_times *times = client->node_times;
	while (times && !is_of(times, spec, ntype))
		times = times->next;
	if (!times) {
		status = times_make(client, spec, ntype, &times);
		if (status == GW_OK) {
			times->next = client->node_times;
			client->node_times = times;
		}
	}
	pthread_mutex_unlock(&client->lookups_lock);
	*out = times;
	return status;
}

void gw_node_times_free(struct gw_client *client)
{
	while (client->node_times) {
		struct gw_node_times *times = client->node_times;
		client->node_times = times->next;
		times_free(times);
	}
}
