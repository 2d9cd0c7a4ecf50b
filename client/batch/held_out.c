/* See held_out.h. GW_RANGE names the first id that does not exist. GW_INVALID: a list has both ids and ends, or one end
 * alone; too many lists. Fails also if memory runs out. */
#include "client/batch/held_out.h"

#include <graphwire/edges.h>

#include "core/memory/alloc.h"

static gw_status check_ids(const char *what, const int64_t *ids, uint64_t count, const struct gw_type_info *type)
{
	for (uint64_t i = 0; i < count; i++) {
		if ((uint64_t)ids[i] >= type->count)
			return gw_fail(GW_RANGE, "held-out %s %lld at position %llu: %s has ids 0 to %lld", what,
				       (long long)ids[i], (unsigned long long)i, type->name,
				       (long long)type->count - 1);
	}
	return GW_OK;
}

static gw_status check_held_list(const struct gw_client *client, const struct gw_held_out_list *list, uint32_t number)
{
	const struct gw_graph_meta *meta = client->meta;
	if (list->etype >= meta->num_etypes)
		return gw_fail(GW_RANGE, "held-out list %u: edge type %u of %u", number, list->etype, meta->num_etypes);
	const struct gw_edge_type *type = &meta->etypes[list->etype];
	if (list->count && (list->ids ? list->src || list->dst : !list->src || !list->dst))
		return gw_fail(GW_INVALID, "held-out list %u: give ids of edges, or sources and destinations", number);
	if (list->ids)
		return check_ids("edge", list->ids, list->count, &client->etypes[list->etype]);
	gw_status status = check_ids("source", list->src, list->count, &client->ntypes[type->src]);
	if (status == GW_OK)
		status = check_ids("destination", list->dst, list->count, &client->ntypes[type->dst]);
	return status;
}

static void add_list(struct gw_exclude *edges, const struct gw_held_out_list *list)
{
	for (uint64_t i = 0; i < list->count; i++) {
		if (list->ids)
			gw_exclude_add_edge(edges, list->etype, (uint64_t)list->ids[i]);
		else
			gw_exclude_add_ends(edges, list->etype, (uint64_t)list->src[i], (uint64_t)list->dst[i]);
	}
}

gw_status gw_held_out_open(struct gw_client *client, const struct gw_held_out_list *lists, uint32_t count,
			   struct gw_held_out **out)
{
	uint64_t entries = 0;
	*out = NULL;
	gw_status status = gw_client_check(client);
	for (uint32_t i = 0; i < count && status == GW_OK; i++) {
		status = check_held_list(client, &lists[i], i);
		entries += lists[i].count;
	}
	if (status != GW_OK)
		return status;
	struct gw_held_out *held_out = gw_calloc(1, sizeof(*held_out));
	if (!held_out)
		return GW_NO_MEMORY;
	held_out->graph_id = client->meta->graph_id;
	atomic_init(&held_out->users, 1);
	status = gw_exclude_clear(&held_out->edges, client->meta->num_etypes, entries);
	if (status != GW_OK) {
		gw_held_out_close(held_out);
		return status;
	}
	for (uint32_t i = 0; i < count; i++)
		add_list(&held_out->edges, &lists[i]);
	*out = held_out;
	return GW_OK;
}

void gw_held_out_close(struct gw_held_out *held_out)
{
	if (!held_out || atomic_fetch_sub(&held_out->users, 1) > 1)
		return;
	gw_exclude_free(&held_out->edges);
	gw_free(held_out);
}

struct gw_held_out *gw_held_out_share(struct gw_held_out *held_out)
{
	if (held_out)
		atomic_fetch_add(&held_out->users, 1);
	return held_out;
}

gw_status gw_held_out_check(const struct gw_client *client, const struct gw_held_out *held_out)
{
	if (held_out && held_out->graph_id != client->meta->graph_id)
		return gw_fail(GW_INVALID, "the spec's held-out edges are those of another graph");
	return GW_OK;
}
