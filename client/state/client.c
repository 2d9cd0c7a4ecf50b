/* Checks that every call makes: whether the client belongs to this process, and which engine serves the call. Also the
 * facts of the graph, and the error for an id out of range. */
#include "client/state/client.h"

#include "core/system/fork.h"

#define ENGINE_LOOKS 4u /* engines that are looked at for one that no thread runs */

static _Atomic uint32_t forks; /* number of forks from the first process to this one */

static void note_fork(void)
{
	atomic_fetch_add(&forks, 1);
}

static struct gw_fork_guard guard = {.in_child = note_fork};

void gw_client_note_process(struct gw_client *client)
{
	gw_fork_guard(&guard);
	client->forks = atomic_load(&forks);
}

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

gw_status gw_fail_id(const char *what, int64_t id, uint64_t position, uint64_t count)
{
	if (count == 0)
		return gw_fail(GW_RANGE, "%s %lld at position %llu: the graph has none of this type", what,
			       (long long)id, (unsigned long long)position);
	return gw_fail(GW_RANGE, "%s %lld at position %llu: ids run from 0 to %lld", what, (long long)id,
		       (unsigned long long)position, (long long)count - 1);
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

static gw_status client_range(const struct gw_graph_meta *meta, const uint64_t *starts, uint32_t part, int64_t *begin,
			      int64_t *end)
{
	if (part >= meta->num_parts)
		return gw_fail(GW_RANGE, "part %u: the graph has parts 0 to %u", part, meta->num_parts - 1);
	*begin = (int64_t)starts[part];
	*end = (int64_t)starts[part + 1];
	return GW_OK;
}

gw_status gw_part_range(const struct gw_client *client, uint32_t ntype, uint32_t part, int64_t *begin, int64_t *end)
{
	if (ntype >= client->meta->num_ntypes)
		return gw_fail(GW_RANGE, "node type %u: the graph has %u, from 0", ntype, client->meta->num_ntypes);
	return client_range(client->meta, client->meta->ntypes[ntype].starts, part, begin, end);
}

gw_status gw_part_edge_range(const struct gw_client *client, uint32_t etype, uint32_t part, int64_t *begin,
			     int64_t *end)
{
	if (etype >= client->meta->num_etypes)
		return gw_fail(GW_RANGE, "edge type %u: the graph has %u, from 0", etype, client->meta->num_etypes);
	return client_range(client->meta, client->meta->etypes[etype].starts, part, begin, end);
}

const char *gw_part_transport(const struct gw_client *client, uint32_t part)
{
	for (uint32_t i = 0; i < client->server_count; i++) {
		if (client->servers[i].part == part)
			return atomic_load(&client->servers[i].transport);
	}
	return NULL;
}

struct gw_engine *gw_client_engine(struct gw_client *client)
{
	const uint32_t count = client->engine_count ? client->engine_count : 1; /* a client has one at least */
	uint32_t first = atomic_fetch_add_explicit(&client->next_engine, 1, memory_order_relaxed);
	uint32_t looks = count < ENGINE_LOOKS ? count : ENGINE_LOOKS;
	for (uint32_t i = 0; i < looks; i++) {
		struct gw_engine *engine = &client->engines[(first + i) % count];
		if (!atomic_load_explicit(&engine->owner, memory_order_relaxed) &&
		    !atomic_load_explicit(&engine->inbox, memory_order_relaxed))
			return engine;
	}
	return &client->engines[first % count];
}
