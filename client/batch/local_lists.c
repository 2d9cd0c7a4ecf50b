/* Views of neighbour lists and columns. The first use builds the views from a mapped server's catalog. The link keeps
 * them while the server's connection is open. The places were checked against the regions when the catalog arrived. The
 * sampler checks the offsets inside the lists, as it must for a peer's data. If memory for the views runs out, the
 * client uses the server as if its memory were not mapped. */
#include "client/batch/local_lists.h"

#include <string.h>

#include "client/batch/edge_columns.h"
#include "client/engine/engine.h"
#include "core/memory/alloc.h"

static const uint8_t *address_of(const struct gw_link *link, const struct gw_place *place)
{
	const struct gw_peer *peer = &link->endpoint->peer;
	const uint8_t *base = gw_endpoint_map(link->endpoint, &peer->regions[place->region]);
	return base && ((uintptr_t)base + place->offset) % place->element_bytes == 0 ? base + place->offset : NULL;
}

/* False: the list cannot be addressed. */
static bool local_lists_view(const struct gw_link *link, enum gw_direction direction, uint32_t etype,
			     struct gw_adjacency *out)
{
	const struct gw_client *client = link->engine->client;
	const struct gw_edge_type *type = &client->meta->etypes[etype];
	const struct gw_list_places *lists = &client->list_places[direction][etype];
	uint32_t part = link->server->part, ntype = direction == GW_IN ? type->dst : type->src;
	const struct gw_node_type *rows_of = &client->meta->ntypes[ntype];
	const struct gw_place *indptr = &client->node_places[direction][ntype].indptr[part];
	const struct gw_place *indices = &lists->indices[part];
	*out = (struct gw_adjacency){
		.indptr = address_of(link, indptr),
		.indices = address_of(link, indices),
		.rows = rows_of->starts[part + 1] - rows_of->starts[part],
		.edges = lists->edges[part],
		.columns = client->node_places[direction][ntype].columns,
		.column = direction == GW_IN ? type->column : type->out_column,
		.indptr_bytes = (uint8_t)indptr->element_bytes,
		.index_bytes = (uint8_t)indices->element_bytes,
		.dst_start = rows_of->starts[part],
		.edge_start = type->starts[part],
		.eid = lists->eids ? (const void *)address_of(link, &lists->eids[part]) : NULL,
	};
	/* The sampler requires that the ids of one edge type have the same width in all parts. */
	return out->indptr && out->indices && (direction == GW_IN || out->eid) &&
	       indices->element_bytes == lists->indices[0].element_bytes;
}

static void local_lists_make(struct gw_link *link, enum gw_direction direction)
{
	const struct gw_client *client = link->engine->client;
	struct gw_adjacency *lists = gw_calloc(client->meta->num_etypes, sizeof(*lists));
	if (!lists)
		return;
	for (uint32_t e = 0; e < client->meta->num_etypes; e++) {
		if (client->list_places[direction][e].indices && !local_lists_view(link, direction, e, &lists[e])) {
			gw_free(lists);
			return;
		}
	}
	link->lists[direction] = lists;
}

const struct gw_adjacency *gw_local_lists(struct gw_engine *engine, uint32_t part, enum gw_direction direction,
					  uint32_t etype)
{
	const struct gw_client *client = engine->client;
	if (client->neighbours != GW_NEIGHBOURS_AUTO)
		return NULL;
	if (client->standalone)
		return direction == GW_IN ? gw_part_adjacency(client->servers[part].local, etype)
					  : gw_part_out_adjacency(client->servers[part].local, etype);
	struct gw_link *link = gw_engine_link(engine, part);
	if (link->state != GW_LINK_OPEN || !link->mapped)
		return NULL;
	if (!link->lists[direction])
		local_lists_make(link, direction);
	return link->lists[direction] ? &link->lists[direction][etype] : NULL;
}

const struct gw_adjacency *const *gw_local_lists_of_all(struct gw_engine *engine)
{
	uint32_t parts = engine->client->meta->num_parts;
	for (uint32_t p = 0; p < parts; p++) {
		engine->lists[p] = gw_local_lists(engine, p, GW_IN, 0);
		if (!engine->lists[p])
			return NULL;
	}
	return engine->lists;
}

/* The array's entries; for an array without entries, an address that nothing reads. */
static const void *column_of_part(const struct gw_part *part, const char *key)
{
	const struct gw_array *array = gw_part_array(part, key);
	return array && array->rows == 0 ? array : array ? (const void *)array->data : NULL;
}

bool gw_local_columns(struct gw_engine *engine, uint32_t part, const struct gw_edge_columns *columns,
		      struct gw_columns *out)
{
	const struct gw_client *client = engine->client;
	memset(out, 0, sizeof(*out));
	for (uint32_t c = 0; columns && c < GW_COLUMN_COUNT; c++) {
		if (!columns->places[c])
			continue;
		if (client->standalone)
			out->at[c] = column_of_part(client->servers[part].local, columns->keys[c]);
		else
			out->at[c] = address_of(gw_engine_link(engine, part), &columns->places[c][part]);
		if (!out->at[c])
			return false;
	}
	return true;
}
