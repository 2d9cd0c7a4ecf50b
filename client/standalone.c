/* Standalone: this process opens every part and serves the parts to the client's engines over the in-process transport.
 * The layers above need not distinguish these parts from servers. */
#include "client/standalone.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "core/graph/replicas.h"
#include "core/memory/alloc.h"
#include "tensors/disk_rows.h"
#include "tensors/features.h"
#include "tensors/service.h"

static atomic_uint instances; /* standalone clients in this process so far, for their addresses */

static gw_status catalog_of(struct gw_remote *server)
{
	char *text;
	gw_status status = gw_catalog_print(server->local, 0, GW_CATALOG_OWN, false, &text);
	if (status != GW_OK)
		return status;
	status = gw_catalog_parse(text, strlen(text), &server->catalog);
	gw_free(text);
	return status;
}

/* What a standalone client loads of its parts. */
struct standalone_parts {
	const struct gw_graph_meta *meta;
	struct gw_disk_words on_disk;
	bool lists_only;
};

static enum gw_array_apart stays_apart(const void *context, const char *key)
{
	const struct standalone_parts *parts = context;
	bool of_edges;
	uint32_t type;
	const char *name;
	/* This process addresses all rows, and needs no replicas. */
	if (gw_replica_key(parts->meta, key) ||
	    (parts->lists_only && gw_feature_parse(parts->meta, key, &of_edges, &type, &name)))
		return GW_ARRAY_LEFT_OUT;
	return gw_disk_words_mean(&parts->on_disk, parts->meta, key) ? GW_ARRAY_ON_DISK : GW_ARRAY_HERE;
}

static gw_status open_disk_rows(struct gw_client *client, struct gw_remote *server)
{
	if (!client->disk)
		return GW_OK;
	gw_status status = gw_disk_rows_open(client->disk, server->local, &server->disk_rows);
	return status == GW_OK ? gw_disk_rows_serve(server->disk_rows, server->service) : status;
}

static gw_status open_part(struct gw_client *client, uint32_t part, unsigned instance,
			   const struct gw_client_options *given)
{
	struct gw_remote *server = &client->servers[part];
	const struct gw_graph_meta *meta = client->own_meta;
	const struct standalone_parts parts = {meta, {given->on_disk, given->on_disk_count}, client->lists_only};
	struct gw_part_options options = {.skip_verify = given->no_verify,
					  .set_apart = stays_apart,
					  .apart_context = &parts,
					  .arena = {.name = "graphwire-part", .numa = GW_NUMA_SPREAD}};
	gw_status status = gw_part_open(meta, part, &options, &server->local);
	if (status != GW_OK)
		return status;
	server->client = client;
	server->part = part;
	if (getrandom(&server->incarnation, sizeof(server->incarnation), 0) != sizeof(server->incarnation))
		return gw_fail(GW_IO, "the kernel gives no random bytes");
	status = catalog_of(server);
	if (status != GW_OK)
		return status;
	server->known = true;
	atomic_store(&server->transport, "memory");

	struct gw_service_identity identity = {
		.graph_id = meta->graph_id, .incarnation = server->incarnation, .part = part, .parts = meta->num_parts};
	struct gw_arena *arena = gw_part_arena(server->local);
	uint32_t region;
	struct gw_tensor_table_options tensors = {
		.meta = meta, .part = server->local, .incarnation = server->incarnation, .numa = GW_NUMA_SPREAD};
	status = gw_service_create(&identity, NULL, &server->service);
	tensors.service = server->service;
	if (status == GW_OK)
		status = gw_tensor_table_create(&tensors, &server->table);
	if (status == GW_OK)
		status = gw_tensor_service_set(server->service, server->table);
	if (status == GW_OK)
		status = gw_service_expose(server->service, gw_arena_base(arena), gw_arena_bytes(arena),
					   gw_arena_slice_bytes(arena), NULL, &region);
	if (status == GW_OK)
		status = open_disk_rows(client, server);
	if (status != GW_OK)
		return status;
	snprintf(server->address.scheme, sizeof(server->address.scheme), "memory");
	snprintf(server->address.host, sizeof(server->address.host), "standalone-%u-%u", instance, part);
	return gw_listen(&client->local_group, 1, &server->address, server->service, &server->listener);
}

static gw_status standalone_open_disk(struct gw_client *client, const struct gw_client_options *options)
{
	const struct gw_disk_words words = {options->on_disk, options->on_disk_count};
	const struct gw_disk_options disk = {.cache_bytes = options->disk_cache, .numa = GW_NUMA_SPREAD};
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < words.count && status == GW_OK; i++)
		status = words.words[i] ? GW_OK : gw_fail(GW_INVALID, "name %u of on_disk is NULL", i);
	for (uint32_t p = 0; p < client->own_meta->num_parts && status == GW_OK; p++)
		status = gw_disk_words_check(&words, client->own_meta, p, "on_disk");
	return status == GW_OK && words.count ? gw_disk_create(&disk, &client->disk) : status;
}

gw_status gw_standalone_open(struct gw_client *client, const struct gw_client_options *options)
{
	const struct gw_graph_meta *meta = client->own_meta;
	unsigned instance = atomic_fetch_add(&instances, 1);
	client->servers = gw_calloc(meta->num_parts, sizeof(*client->servers));
	client->standalone = true;
	if (!client->servers)
		return GW_NO_MEMORY;
	gw_status status = standalone_open_disk(client, options);
	if (status == GW_OK)
		status = gw_poll_group_create(NULL, &client->local_group);
	if (status != GW_OK)
		return status;
	client->server_count = meta->num_parts;
	for (uint32_t p = 0; p < meta->num_parts; p++) {
		status = open_part(client, p, instance, options);
		if (status != GW_OK)
			return gw_context(status, "part %u", p);
	}
	return GW_OK;
}

void gw_standalone_close(struct gw_client *client)
{
	for (uint32_t p = 0; p < client->server_count; p++) {
		struct gw_remote *server = &client->servers[p];
		if (server->listener)
			gw_listener_stop(server->listener, true);
		gw_listener_free(server->listener);
		gw_tensor_table_stop(server->table);
		if (server->service)
			gw_service_destroy(server->service);
		gw_tensor_table_destroy(server->table);
		gw_disk_rows_close(server->disk_rows);
		gw_part_close(server->local);
	}
	gw_poll_group_destroy(client->local_group);
	gw_disk_destroy(client->disk);
}
