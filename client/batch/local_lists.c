/* Views of neighbour lists. The first use builds the views from a mapped server's catalog. The link keeps them while
 * the server's connection is open. The places were checked against the regions when the catalog arrived. The sampler
 * checks the offsets inside the lists, as it must for a peer's data. If memory for the views runs out, the client uses
 * the server as if its memory were not mapped. */
#include "client/batch/local_lists.h"

#include "client/engine/engine.h"
#include "core/memory/alloc.h"

static const uint8_t *address_of(const struct gw_link *link, const struct gw_place *place)
{
	const struct gw_peer *peer = &link->endpoint->peer;
	const uint8_t *base = gw_endpoint_map(link->endpoint, &peer->regions[place->region]);
	return base && ((uintptr_t)base + place->offset) % place->element_bytes == 0 ? base + place->offset : NULL;
}

/* False: the list cannot be addressed. */
static bool local_lists_view(const struct gw_link *link, uint32_t etype, struct gw_adjacency *out)
{
	const struct gw_client *client = link->engine->client;
	const struct gw_edge_type *type = &client->meta->etypes[etype];
	const struct gw_node_type *rows_of = &client->meta->ntypes[type->dst];
	uint32_t part = link->server->part;
	const struct gw_place *indptr = &client->node_places[type->dst].indptr[part];
	const struct gw_place *indices = &client->indices[etype][part];
	*out = (struct gw_adjacency){
		.indptr = address_of(link, indptr),
		.indices = address_of(link, indices),
		.rows = rows_of->starts[part + 1] - rows_of->starts[part],
		.edges = type->starts[part + 1] - type->starts[part],
		.columns = rows_of->columns,
		.column = type->column,
		.indptr_bytes = (uint8_t)indptr->element_bytes,
		.index_bytes = (uint8_t)indices->element_bytes,
		.dst_start = rows_of->starts[part],
		.edge_start = type->starts[part],
	};
	/* The sampler requires that the ids of one edge type have the same width in all parts. */
	return out->indptr && out->indices && indices->element_bytes == client->indices[etype][0].element_bytes;
}

static void local_lists_make(struct gw_link *link)
{
	uint32_t etypes = link->engine->client->meta->num_etypes;
	struct gw_adjacency *lists = gw_calloc(etypes, sizeof(*lists));
	if (!lists)
		return;
	for (uint32_t e = 0; e < etypes; e++) {
		if (!local_lists_view(link, e, &lists[e])) {
			gw_free(lists);
			return;
		}
	}
	link->lists = lists;
}

const struct gw_adjacency *gw_local_lists_of_part(struct gw_engine *engine, uint32_t part)
{
	const struct gw_client *client = engine->client;
	if (client->neighbours != GW_NEIGHBOURS_AUTO)
		return NULL;
	if (client->adjacencies)
		return client->adjacencies[part];
	struct gw_link *link = gw_engine_link(engine, part);
	if (link->state != GW_LINK_OPEN || !link->mapped)
		return NULL;
	if (!link->lists)
		local_lists_make(link);
	return link->lists;
}

const struct gw_adjacency *const *gw_local_lists_of_all(struct gw_engine *engine)
{
	uint32_t parts = engine->client->meta->num_parts;
	for (uint32_t p = 0; p < parts; p++) {
		engine->lists[p] = gw_local_lists_of_part(engine, p);
		if (!engine->lists[p])
			return NULL;
	}
	return engine->lists;
}
