/* Checks and combines catalogs: see catalog.h. All fields that a server sends are checked. After a reconnect, a server
 * must send the same catalog as before. */
#include "client/link/catalog.h"

#include <string.h>

#include "core/memory/alloc.h"

gw_status gw_places_check(const struct gw_catalog *catalog, const struct gw_endpoint *endpoint)
{
	for (uint32_t i = 0; i < catalog->count; i++) {
		const struct gw_array_meta *array = catalog->arrays[i].meta;
		uint64_t bytes = gw_array_meta_bytes(array), offset = catalog->arrays[i].offset;
		uint32_t region = catalog->arrays[i].region;
		if (catalog->arrays[i].changes || catalog->arrays[i].on_disk)
			continue;
		if (region >= endpoint->peer.region_count || offset > endpoint->peer.regions[region].bytes ||
		    bytes > endpoint->peer.regions[region].bytes - offset)
			return gw_fail(GW_PROTOCOL, "its catalog places \"%s\" outside of its regions", array->key);
	}
	return GW_OK;
}

gw_status gw_remote_check(struct gw_remote *server, const struct gw_endpoint *endpoint, const void *reply,
			  uint32_t reply_bytes, bool *holds_lists)
{
	struct gw_catalog catalog;
	gw_status status = gw_catalog_parse(reply, reply_bytes, &catalog);
	if (status != GW_OK)
		return status;
	if (catalog.graph_id != endpoint->peer.graph_id || catalog.part != endpoint->peer.part) {
		gw_catalog_free(&catalog);
		return gw_fail(GW_PROTOCOL, "its catalog names another graph or part than its hello");
	}
	status = gw_places_check(&catalog, endpoint);
	if (status != GW_OK) {
		gw_catalog_free(&catalog);
		return status;
	}
	*holds_lists = catalog.holds_lists;
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

bool gw_remote_sends_book(const struct gw_remote *server)
{
	return server == server->client->servers && !server->client->own_meta;
}

/* Only if the client read no description of the graph itself. */
static gw_status take_book(struct gw_client *client)
{
	if (client->own_meta)
		return GW_OK;
	client->own_meta = client->servers[0].catalog.book;
	client->servers[0].catalog.book = NULL;
	char address[GW_ADDRESS_MAX];
	return client->own_meta ? GW_OK
				: gw_fail(GW_PROTOCOL, "server %s: its catalog has no book, which the client asked for",
					  gw_address_text(&client->servers[0].address, address));
}

/* The client uses one description of the graph for all servers. So each server must have the same book and, if the
 * client read the description itself, the same arrays; equal graph ids are not enough. */
static gw_status remote_join(struct gw_remote *server, struct gw_graph_meta *meta, uint64_t book_digest)
{
	char address[GW_ADDRESS_MAX];
	gw_status status = gw_catalog_join(&server->catalog, meta, book_digest);
	return status == GW_OK ? status : gw_context(status, "server %s", gw_address_text(&server->address, address));
}

/* GW_EXISTS: another server has entered. */
static gw_status remote_enter(struct gw_client *client, struct gw_remote *server)
{
	char address[GW_ADDRESS_MAX];
	const struct gw_remote *other = client->parts[server->part];
	if (!other) {
		client->parts[server->part] = server;
		return GW_OK;
	}
	gw_address_text(&server->address, address);
	if (strcmp(other->address.host, server->address.host) == 0 && other->address.port == server->address.port)
		return gw_fail(GW_EXISTS, "server %s is given twice: give the address of one server for each part",
			       address);
	return gw_fail(GW_EXISTS, "part %u is served twice, by %s:%u and by %s: give one address per part",
		       server->part, other->address.host, other->address.port, address);
}

static gw_status remotes_enter(struct gw_client *client, const struct gw_graph_meta *meta)
{
	gw_free(client->parts);
	client->parts = gw_calloc(meta->num_parts, sizeof(struct gw_remote *));
	gw_status status = client->parts ? GW_OK : GW_NO_MEMORY;
	for (uint32_t i = 0; i < client->server_count && status == GW_OK; i++) {
		struct gw_remote *server = &client->servers[i];
		char address[GW_ADDRESS_MAX];
		if (server->catalog.graph_id != meta->graph_id)
			return gw_fail(GW_WRONG_GRAPH,
				       "server %s serves graph %s (id %016llx), not %s (id %016llx): "
				       "start it with the same part config",
				       gw_address_text(&server->address, address), server->catalog.graph_name,
				       (unsigned long long)server->catalog.graph_id, meta->graph_name,
				       (unsigned long long)meta->graph_id);
		if (server->part < meta->num_parts) /* if not, gw_catalog_join fails */
			status = remote_enter(client, server);
	}
	return status;
}

gw_status gw_remotes_check(struct gw_client *client)
{
	uint64_t book_digest = 0;
	gw_status status = take_book(client);
	struct gw_graph_meta *meta = client->own_meta;
	if (status == GW_OK)
		status = gw_meta_book_digest(meta, &book_digest);
	if (status == GW_OK)
		status = remotes_enter(client, meta);
	for (uint32_t i = 0; i < client->server_count && status == GW_OK; i++)
		status = remote_join(&client->servers[i], meta, book_digest);
	if (status != GW_OK)
		return status;
	if (client->server_count != meta->num_parts) {
		uint32_t missing = 0;
		while (missing < meta->num_parts && client->parts[missing])
			missing++;
		return gw_fail(GW_NOT_FOUND,
			       "part %u of %u has no server: give the address of one server for each part", missing,
			       meta->num_parts);
	}
	status = gw_meta_check_whole(meta);
	if (status != GW_OK && status != GW_NO_MEMORY)
		gw_advise(status, "start all servers again, so that they serve the same version of the parts");
	if (status != GW_OK)
		return gw_context(status == GW_NO_MEMORY ? status : GW_PROTOCOL, "the servers' catalogs");
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
