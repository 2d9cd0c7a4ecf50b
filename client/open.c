/* Opening a client: options -> servers (or parts of this process) -> connect and catalog -> one graph -> engines.
 *
 * Which part a server has is known from its catalog; the order of the addresses means nothing. Every part must be
 * served exactly once, and all servers must serve the same graph id.
 */
#include "client/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "client/away.h"
#include "client/sample.h"
#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/fork.h"
#include "core/base/log.h"
#include "core/base/options.h"
#include "core/base/parallel.h"

#define ENGINES_MAX     64
#define SPIN_US_MAX     1000000u
#define QUEUE_PAIRS_MAX 8u

/* --- Forks. --- */

static _Atomic uint32_t forks; /* from the first process on */

static void note_fork(void)
{
	atomic_fetch_add(&forks, 1);
}

static struct gw_fork_guard guard = {.in_child = note_fork};

bool gw_client_is_inherited(const struct gw_client *client)
{
	return client->forks != atomic_load_explicit(&forks, memory_order_relaxed);
}

gw_status gw_client_check(const struct gw_client *client)
{
	if (!gw_client_is_inherited(client))
		return GW_OK;
	return gw_fail(GW_INVALID, "the client was opened before this process was forked: open one in each process");
}

gw_status gw_remote_check(struct gw_remote *server, const struct gw_endpoint *endpoint, const void *reply,
			  uint32_t reply_bytes)
{
	struct gw_catalog catalog;
	gw_status status = gw_catalog_parse(reply, reply_bytes, &catalog);
	if (status != GW_OK)
		return status;
	if (catalog.meta->graph_id != endpoint->peer.graph_id || catalog.part != endpoint->peer.part) {
		gw_catalog_free(&catalog);
		return gw_fail(GW_PROTOCOL, "its catalog is not of the graph and part that it said hello with");
	}
	for (uint32_t i = 0; i < catalog.count; i++) {
		const struct gw_array_meta *array = gw_meta_array(catalog.meta, catalog.part, catalog.arrays[i].key);
		uint64_t bytes = gw_array_meta_bytes(array), offset = catalog.arrays[i].offset;
		uint32_t region = catalog.arrays[i].region;
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

static gw_status parse_servers(struct gw_client *client, const struct gw_client_options *options)
{
	client->servers = gw_calloc(options->server_count, sizeof(*client->servers));
	if (!client->servers)
		return GW_NO_MEMORY;
	client->server_count = options->server_count;
	for (uint32_t i = 0; i < options->server_count; i++) {
		struct gw_remote *server = &client->servers[i];
		server->client = client;
		gw_status status = gw_address_parse(options->servers[i], &server->address);
		if (status == GW_OK && options->key_file)
			status = gw_secret_read(options->key_file, server->key, &server->key_bytes);
		if (status != GW_OK)
			return gw_context(status, "server %s", options->servers[i]);
	}
	return GW_OK;
}

/* A failure that does not go away by waiting for a server that is not there yet. */
static bool is_lasting(const struct gw_link *link)
{
	return link->failure == GW_REFUSED || link->failure == GW_NO_MEMORY || link->failure == GW_PROTOCOL ||
	       link->failure == GW_NOT_FOUND;
}

/* Runs the first engine until every link is open. A server that is not there yet is tried until the deadline. */
static gw_status connect_all(struct gw_client *client)
{
	struct gw_engine *engine = &client->engines[0];
	uint64_t deadline = gw_deadline_ns(client->timeout_ms);
	for (uint32_t i = 0; i < client->server_count; i++)
		gw_link_open(&engine->links[i]);
	for (;;) {
		uint64_t now = gw_now_ns(), until = deadline;
		const struct gw_link *waiting = NULL;
		for (uint32_t i = 0; i < client->server_count; i++) {
			struct gw_link *link = &engine->links[i];
			if (link->state == GW_LINK_DOWN || (link->state == GW_LINK_WAITING && is_lasting(link)))
				return gw_fail_text(link->failure, link->reason);
			if (link->state == GW_LINK_WAITING && now >= link->retry_ns)
				gw_link_open(link);
			if (link->state == GW_LINK_WAITING && link->retry_ns < until)
				until = link->retry_ns;
			if (link->state == GW_LINK_OPEN)
				continue;
			if (now < deadline)
				gw_link_tell_away(link, now, client->timeout_ms);
			waiting = link;
		}
		if (!waiting)
			return GW_OK;
		if (now >= deadline) {
			if (!waiting->failure)
				return gw_fail(GW_DEADLINE, "server %s:%u does not answer",
					       waiting->server->address.host, waiting->server->address.port);
			return gw_fail(waiting->failure, "%s; tried %u times", waiting->reason, waiting->attempts);
		}
		gw_engine_turn(engine, until);
	}
}

/* One graph, every part once; the servers are put in the order of their parts. */
static gw_status check_parts(struct gw_client *client)
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
		for (uint32_t j = 0; j < i; j++) {
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

static void map_parts(struct gw_client *client, struct gw_engine *engine)
{
	for (uint32_t i = 0; i < client->server_count; i++)
		engine->part_links[client->servers[i].part] = &engine->links[i];
}

static gw_status build_info(struct gw_client *client)
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
		client->etypes[e] = (struct gw_type_info){
			.name = client->etype_names[e], .count = type->count, .src = type->src, .dst = type->dst};
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

/* The number of a choice; none given is the first. */
static gw_status open_choose(const char *what, const char *text, const char *const *choices, int *out)
{
	*out = 0;
	gw_status status = text ? gw_parse_choice(text, choices, out) : GW_OK;
	return status == GW_OK ? status : gw_context(status, "%s", what);
}

static gw_status open_take_options(struct gw_client *client, const struct gw_client_options *options)
{
	static const char *const ways[] = {"auto", "reads", "requests", NULL};
	static const char *const orders[] = {"auto", "always", "never", NULL};
	static const char *const transports[] = {"auto", "tcp", "shm", "verbs", NULL};
	int choice = 0;
	client->timeout_ms = options->timeout_ms ? options->timeout_ms : 30000;
	client->reconnect_ms = options->reconnect_ms ? options->reconnect_ms : 300000;
	client->dense_bytes_max = options->dense_bytes_max ? options->dense_bytes_max : 256ull << 20;
	client->tcp_driver = options->tcp_driver;
	client->insecure = options->insecure;
	if (options->spin_us > SPIN_US_MAX)
		return gw_fail(GW_RANGE, "spin_us = %u: at most %u", options->spin_us, SPIN_US_MAX);
	client->spin_ns = options->spin_us * 1000ull;
	if (options->queue_pairs > QUEUE_PAIRS_MAX)
		return gw_fail(GW_RANGE, "queue_pairs = %u: at most %u", options->queue_pairs, QUEUE_PAIRS_MAX);
	client->queue_pairs = options->queue_pairs;
	uint32_t processors = gw_processors();
	client->engine_count = processors < ENGINES_MAX ? processors : ENGINES_MAX;
	if (options->threads > ENGINES_MAX)
		return gw_fail(GW_RANGE, "threads = %u: at most %u", options->threads, ENGINES_MAX);
	if (options->threads)
		client->engine_count = options->threads;
	gw_status status = open_choose("neighbours", options->neighbours, ways, &choice);
	client->neighbours = (enum gw_neighbour_way)choice;
	if (status == GW_OK)
		status = open_choose("order", options->order, orders, &choice);
	client->order = (enum gw_gather_order)choice;
	if (status == GW_OK)
		status = open_choose("transport", options->transport, transports, &choice);
	client->transport = (enum gw_client_transport)choice;
	if (status != GW_OK)
		return status;
	if (client->neighbours == GW_NEIGHBOURS_REQUESTS && options->server_count == 0)
		return gw_fail(GW_INVALID,
			       "neighbours = \"requests\" needs servers: a standalone client has its lists in "
			       "memory");
	if (options->server_count > GW_PARTS_MAX || (options->server_count && !options->servers))
		return gw_fail(GW_INVALID, "%u servers: at most %u, one for each part", options->server_count,
			       GW_PARTS_MAX);
	if (getrandom(client->uuid, sizeof(client->uuid), 0) != sizeof(client->uuid))
		return gw_fail(GW_IO, "the kernel gives no random bytes");
	return GW_OK;
}

static gw_status open_engines(struct gw_client *client)
{
	client->engines = gw_calloc(client->engine_count, sizeof(*client->engines));
	client->unused = gw_calloc(client->engine_count, sizeof(*client->unused));
	if (!client->engines || !client->unused)
		return GW_NO_MEMORY;
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < client->engine_count && status == GW_OK; i++)
		status = gw_engine_open(&client->engines[i], client, i);
	return status;
}

static gw_status open_steps(struct gw_client *client, const struct gw_client_options *options)
{
	gw_status status = open_take_options(client, options);
	if (status == GW_OK && options->part_config)
		status = gw_meta_read(options->part_config, &client->own_meta);
	if (status != GW_OK)
		return status;
	if (options->server_count > 0)
		status = parse_servers(client, options);
	else if (client->own_meta)
		status = gw_standalone_open(client, !options->no_verify);
	else
		status = gw_fail(GW_INVALID, "neither a part config nor a server is given");
	if (status == GW_OK)
		status = open_engines(client);
	if (status == GW_OK)
		status = connect_all(client);
	if (status == GW_OK)
		status = check_parts(client);
	if (status == GW_OK)
		status = build_info(client);
	if (status == GW_OK)
		status = gw_tensors_build(client);
	for (uint32_t i = 0; i < client->engine_count && status == GW_OK; i++) {
		map_parts(client, &client->engines[i]);
		status = gw_engine_start_thread(&client->engines[i]);
	}
	return status;
}

gw_status gw_client_open(const struct gw_client_options *options, struct gw_client **out)
{
	*out = NULL;
	struct gw_client *client = gw_calloc(1, sizeof(*client));
	if (!client)
		return GW_NO_MEMORY;
	gw_fork_guard(&guard);
	client->forks = atomic_load(&forks);
	pthread_mutex_init(&client->batches_lock, NULL);
	gw_status status = open_steps(client, options);
	if (status != GW_OK) {
		gw_client_close(client);
		return status;
	}
	*out = client;
	return GW_OK;
}

void gw_client_close(struct gw_client *client)
{
	struct gw_error_kept kept;
	/* In a forked process nothing here may be touched: it is given up, the other process has its own. */
	if (!client || gw_client_is_inherited(client))
		return;
	gw_error_keep(&kept);
	for (uint32_t i = 0; client->engines && i < client->engine_count; i++)
		gw_engine_stop_thread(&client->engines[i]);
	gw_batches_free(client);
	gw_calls_free(client);
	gw_buffers_free(client);
	for (uint32_t i = 0; client->engines && i < client->engine_count; i++) {
		if (client->engines[i].group)
			gw_engine_close(&client->engines[i]);
	}
	gw_free(client->engines);
	gw_free(client->unused);
	gw_tensors_free(client);
	gw_standalone_close(client);
	for (uint32_t i = 0; i < client->server_count; i++)
		gw_catalog_free(&client->servers[i].catalog);
	gw_free(client->servers);
	for (uint32_t e = 0; client->etype_names && e < client->info.num_etypes; e++)
		gw_free(client->etype_names[e]);
	gw_free(client->etype_names);
	gw_free(client->etypes);
	gw_free(client->ntypes);
	gw_meta_destroy(client->own_meta);
	pthread_mutex_destroy(&client->batches_lock);
	gw_free(client);
	gw_error_restore(&kept);
}

const struct gw_graph_info *gw_client_graph(const struct gw_client *client)
{
	return &client->info;
}

gw_status gw_node_type(const struct gw_client *client, const char *name, uint32_t *ntype)
{
	return gw_meta_ntype(client->meta, name, ntype);
}

gw_status gw_edge_type(const struct gw_client *client, const char *name, uint32_t *etype)
{
	return gw_meta_etype(client->meta, name, etype);
}

gw_status gw_part_range(const struct gw_client *client, uint32_t ntype, uint32_t part, int64_t *begin, int64_t *end)
{
	if (ntype >= client->meta->num_ntypes)
		return gw_fail(GW_RANGE, "node type %u: the graph has %u, from 0", ntype, client->meta->num_ntypes);
	if (part >= client->meta->num_parts)
		return gw_fail(GW_RANGE, "part %u: the graph has parts 0 to %u", part, client->meta->num_parts - 1);
	*begin = (int64_t)client->meta->ntypes[ntype].starts[part];
	*end = (int64_t)client->meta->ntypes[ntype].starts[part + 1];
	return GW_OK;
}

const char *gw_part_transport(const struct gw_client *client, uint32_t part)
{
	for (uint32_t i = 0; i < client->server_count; i++) {
		if (client->servers[i].part == part)
			return atomic_load(&client->servers[i].way);
	}
	return NULL;
}

struct gw_engine *gw_client_engine(struct gw_client *client)
{
	uint32_t first = atomic_fetch_add_explicit(&client->next_engine, 1, memory_order_relaxed);
	return &client->engines[first % client->engine_count];
}
