/* Checks and combines catalogs: see catalog.h. All fields that a server sends are checked. After a reconnect, a server
 * must send the same catalog as before. */
#include "client/link/catalog.h"

#include <string.h>

#include "core/memory/alloc.h"

gw_status gw_remote_check(struct gw_remote *server, const struct gw_endpoint *endpoint, const void *reply,
			  uint32_t reply_bytes)
{
	struct gw_catalog catalog;
	gw_status status = gw_catalog_parse(reply, reply_bytes, &catalog);
	if (status != GW_OK)
		return status;
	if (catalog.meta->graph_id != endpoint->peer.graph_id || catalog.part != endpoint->peer.part) {
		gw_catalog_free(&catalog);
		return gw_fail(GW_PROTOCOL, "its catalog names another graph or part than its hello");
	}
	for (uint32_t i = 0; i < catalog.count; i++) {
		const struct gw_array_meta *array = gw_meta_array(catalog.meta, catalog.part, catalog.arrays[i].key);
		uint64_t bytes = gw_array_meta_bytes(array), offset = catalog.arrays[i].offset;
		uint32_t region = catalog.arrays[i].region;
		if (catalog.arrays[i].changes)
			continue;
		if (region >= endpoint->peer.region_count || offset > endpoint->peer.regions[region].bytes ||
		    bytes > endpoint->peer.regions[region].bytes - offset) {
			status = gw_fail(GW_PROTOCOL, "its catalog places \"%s\" outside of its regions",
					 catalog.arrays[i].key);
			gw_catalog_free(&catalog);
			return status;
		}
	}
	if (!server->known) {
		server->catalog = catalog;
		server->part = catalog.part;
		server->incarnation = endpoint->peer.incarnation;
		server->known = true;
		return GW_OK;
	}
	bool same = gw_catalog_same_places(&server->catalog, &catalog);
	gw_catalog_free(&catalog);
	return same ? GW_OK
		    : gw_fail(GW_WRONG_GRAPH, "it came back with another graph, part or layout: open the client again");
}

/* The client uses one description of the graph for all servers. So all servers must send equal descriptions; equal
 * graph ids are not enough. */
static gw_status remote_check_meta(const struct gw_remote *server, const struct gw_graph_meta *meta)
{
	char address[GW_ADDRESS_MAX];
	if (gw_meta_same(server->catalog.meta, meta) && server->part < meta->num_parts)
		return GW_OK;
	return gw_fail(GW_PROTOCOL, "server %s describes another graph under the id of this one, %016llx",
		       gw_address_text(&server->address, address), (unsigned long long)meta->graph_id);
}

gw_status gw_remotes_check(struct gw_client *client)
{
	const struct gw_graph_meta *meta = client->own_meta ? client->own_meta : client->servers[0].catalog.meta;
	for (uint32_t i = 0; i < client->server_count; i++) {
		const struct gw_remote *server = &client->servers[i];
		char address[GW_ADDRESS_MAX];
		gw_address_text(&server->address, address);
		if (server->catalog.meta->graph_id != meta->graph_id)
			return gw_fail(
				GW_WRONG_GRAPH,
				"server %s serves graph %s (id %016llx), not %s (id %016llx): start it with the same "
				"part config",
				address, server->catalog.meta->graph_name,
				(unsigned long long)server->catalog.meta->graph_id, meta->graph_name,
				(unsigned long long)meta->graph_id);
		gw_status status = remote_check_meta(server, meta);
		if (status != GW_OK)
			return status;
		for (uint32_t j = 0; j < i; j++) {
			if (strcmp(client->servers[j].address.host, server->address.host) == 0 &&
			    client->servers[j].address.port == server->address.port)
				return gw_fail(GW_EXISTS,
					       "server %s is given twice: give the address of one server for each part",
					       address);
			if (client->servers[j].part == server->part)
				return gw_fail(GW_EXISTS,
					       "part %u is served twice, by %s:%u and by %s: give one address per part",
					       server->part, client->servers[j].address.host,
					       client->servers[j].address.port, address);
		}
	}
	if (client->server_count != meta->num_parts) {
		uint32_t missing = 0;
		for (uint32_t i = 0; i < client->server_count; i++) {
			if (client->servers[i].part == missing) {
				missing++;
				i = UINT32_MAX;
			}
		}
		return gw_fail(GW_NOT_FOUND,
			       "part %u of %u has no server: give the address of one server for each part", missing,
			       meta->num_parts);
	}
	client->meta = meta;
	client->graph_id = meta->graph_id;
	return GW_OK;
}

gw_status gw_info_build(struct gw_client *client)
{
	const struct gw_graph_meta *meta = client->meta;
	client->ntypes = gw_calloc(meta->num_ntypes, sizeof(*client->ntypes));
	client->etypes = gw_calloc(meta->num_etypes, sizeof(*client->etypes));
	client->etype_names = gw_calloc(meta->num_etypes, sizeof(*client->etype_names));
	client->info.num_etypes = meta->num_etypes;
	if (!client->ntypes || !client->etypes || !client->etype_names)
		return GW_NO_MEMORY;
	for (uint32_t t = 0; t < meta->num_ntypes; t++)
		client->ntypes[t] = (struct gw_type_info){.name = meta->ntypes[t].name, .count = meta->ntypes[t].count};
	for (uint32_t e = 0; e < meta->num_etypes; e++) {
		const struct gw_edge_type *type = &meta->etypes[e];
		client->etype_names[e] =
			gw_format("%s:%s:%s", meta->ntypes[type->src].name, type->name, meta->ntypes[type->dst].name);
		if (!client->etype_names[e])
			return GW_NO_MEMORY;
		client->etypes[e] = (struct gw_type_info){.name = client->etype_names[e],
							  .count = type->count,
							  .src = type->src,
							  .dst = type->dst,
							  .reverse = type->reverse,
							  .by_source = type->out_column != GW_TYPE_NONE};
	}
	client->info = (struct gw_graph_info){.name = meta->graph_name,
					      .graph_id = meta->graph_id,
					      .num_parts = meta->num_parts,
					      .num_ntypes = meta->num_ntypes,
					      .num_etypes = meta->num_etypes,
					      .ntypes = client->ntypes,
					      .etypes = client->etypes};
	return GW_OK;
}

void gw_info_free(struct gw_client *client)
{
	for (uint32_t e = 0; client->etype_names && e < client->info.num_etypes; e++)
		gw_free(client->etype_names[e]);
	gw_free(client->etype_names);
	gw_free(client->etypes);
	gw_free(client->ntypes);
}
