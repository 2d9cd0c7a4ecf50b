/* Views of neighbour lists and columns. The first use builds the views from a mapped server's catalog. The link keeps
 * them while the server's connection is open. The places were checked against the regions when the catalog arrived. The
 * sampler checks the offsets inside the lists, as it must for a peer's data. If memory for the views runs out, the
 * client uses the server as if its memory were not mapped.
 *
 *   part of a mapped server -> its own lists
 *   another part            -> the lists of it that a mapped server holds (client/link/held_lists.h), if one does
 *
 * A server holds lists of the same bytes as the part's owner, since the digests of all arrays are compared. */
#include "client/batch/local_lists.h"

#include <stdio.h>
#include <string.h>

#include "client/batch/edge_columns.h"
#include "client/engine/engine.h"
#include "client/link/held_lists.h"
#include "core/errors/log.h"
#include "core/memory/alloc.h"

/* NULL also for an array on disk. */
static const uint8_t *address_of(const struct gw_link *link, const struct gw_place *place)
{
	if (place->on_disk)
		return NULL;
	const struct gw_peer *peer = &link->endpoint->peer;
	const uint8_t *base = gw_endpoint_map(link->endpoint, &peer->regions[place->region]);
	return base && ((uintptr_t)base + place->offset) % place->element_bytes == 0 ? base + place->offset : NULL;
}

/* Where the arrays of one edge type's lists are. */
struct lists_at {
	struct gw_place indptr, indices, eids;
};

/* False: the server does not hold the array. For its own part it holds none. */
static bool held_place(const struct gw_held_part *held, const char *key, const struct gw_place *owners,
		       struct gw_place *out)
{
	const struct gw_catalog_array *array = held->catalog ? gw_catalog_find(held->catalog, key) : NULL;
	if (!array || array->changes || array->on_disk)
		return false;
	*out = (struct gw_place){
		.region = array->region, .element_bytes = owners->element_bytes, .offset = array->offset};
	return true;
}

/* Finds the arrays among those that the server holds for another part; `at` has those of the part's owner. */
static bool held_places(const struct gw_link *link, uint32_t part, enum gw_direction direction, uint32_t etype,
			struct lists_at *at)
{
	const struct gw_graph_meta *meta = link->engine->client->meta;
	const struct gw_held_part *held = &link->held->parts[part];
	const struct gw_edge_type *type = &meta->etypes[etype];
	const char *out = direction == GW_IN ? "" : "out/";
	char key[GW_COLUMN_KEY_MAX];
	snprintf(key, sizeof(key), "node/%s/%s", meta->ntypes[direction == GW_IN ? type->dst : type->src].name,
		 direction == GW_IN ? "indptr" : "out_indptr");
	if (!held_place(held, key, &at->indptr, &at->indptr))
		return false;
	snprintf(key, sizeof(key), "edge/%s/%sindices", type->folder, out);
	if (!held_place(held, key, &at->indices, &at->indices))
		return false;
	snprintf(key, sizeof(key), "edge/%s/out/eid", type->folder);
	return direction == GW_IN || held_place(held, key, &at->eids, &at->eids);
}

/* False: the list cannot be addressed. */
static bool local_lists_view(const struct gw_link *link, uint32_t part, enum gw_direction direction, uint32_t etype,
			     struct gw_adjacency *out)
{
	const struct gw_client *client = link->engine->client;
	const struct gw_edge_type *type = &client->meta->etypes[etype];
	const struct gw_list_places *lists = &client->list_places[direction][etype];
	uint32_t ntype = direction == GW_IN ? type->dst : type->src;
	const struct gw_node_type *rows_of = &client->meta->ntypes[ntype];
	struct lists_at at = {.indptr = client->node_places[direction][ntype].indptr[part],
			      .indices = lists->indices[part]};
	if (lists->eids)
		at.eids = lists->eids[part];
	if (part != link->server->part && !held_places(link, part, direction, etype, &at))
		return false;
	*out = (struct gw_adjacency){
		.indptr = address_of(link, &at.indptr),
		.indices = address_of(link, &at.indices),
		.rows = rows_of->starts[part + 1] - rows_of->starts[part],
		.edges = lists->edges[part],
		.columns = client->node_places[direction][ntype].columns,
		.column = direction == GW_IN ? type->column : type->out_column,
		.indptr_bytes = (uint8_t)at.indptr.element_bytes,
		.index_bytes = (uint8_t)at.indices.element_bytes,
		.dst_start = rows_of->starts[part],
		.edge_start = type->starts[part],
		.eid = lists->eids ? (const void *)address_of(link, &at.eids) : NULL,
	};
	/* The sampler requires that the ids of one edge type have the same width in all parts. */
	return out->indptr && out->indices && (direction == GW_IN || out->eid) &&
	       at.indices.element_bytes == lists->indices[0].element_bytes;
}

/* NULL: they cannot be addressed. */
static struct gw_adjacency *local_lists_make(const struct gw_link *link, uint32_t part, enum gw_direction direction)
{
	const struct gw_client *client = link->engine->client;
	struct gw_adjacency *lists = gw_calloc(client->meta->num_etypes, sizeof(*lists));
	if (!lists)
		return NULL;
	for (uint32_t e = 0; e < client->meta->num_etypes; e++) {
		if (client->list_places[direction][e].indices &&
		    !local_lists_view(link, part, direction, e, &lists[e])) {
			gw_free(lists);
			return NULL;
		}
	}
	return lists;
}

/* The owners' digests are known by now. A server that holds other arrays serves another version of the graph under the
 * same id, which cannot be, or sends a false catalog. */
static bool held_is_same(const struct gw_link *link, uint32_t part)
{
	const struct gw_graph_meta *meta = link->engine->client->meta;
	const struct gw_catalog *catalog = link->held->parts[part].catalog;
	char address[GW_ADDRESS_MAX];
	for (uint32_t i = 0; i < catalog->count; i++) {
		const struct gw_array_meta *held = catalog->arrays[i].meta;
		const struct gw_array_meta *array = gw_meta_array(meta, part, held->key);
		if (array && gw_array_meta_same(array, held))
			continue;
		gw_log(GW_LOG_WARN, "the lists of part %u that %s holds are not those of the graph (%s): not used",
		       part, gw_address_text(&link->server->address, address), held->key);
		return false;
	}
	return true;
}

/* The lists of a part that another server of this host holds; or NULL. */
static const struct gw_adjacency *held_lists_of(const struct gw_engine *engine, uint32_t part,
						enum gw_direction direction, uint32_t etype)
{
	const struct gw_link *link = engine->lists_link;
	struct gw_held_part *held = link && part < link->held->num_parts ? &link->held->parts[part] : NULL;
	if (!held || !held->catalog || held->unusable)
		return NULL;
	if (!held->lists[direction]) {
		held->unusable = !held_is_same(link, part);
		held->lists[direction] = held->unusable ? NULL : local_lists_make(link, part, direction);
	}
	return held->lists[direction] ? &held->lists[direction][etype] : NULL;
}

const struct gw_adjacency *gw_own_lists(const struct gw_client *client, uint32_t part, enum gw_direction direction,
					uint32_t etype)
{
	const struct gw_part *local = client->servers[part].local;
	const struct gw_adjacency *lists =
		direction == GW_IN ? gw_part_adjacency(local, etype) : gw_part_out_adjacency(local, etype);
	/* Without edge types the address is that of no list, and nothing reads it. */
	return lists && client->meta->num_etypes && lists->on_disk ? NULL : lists;
}

bool gw_lists_are_on_disk(const struct gw_client *client, uint32_t part, enum gw_direction direction, uint32_t etype)
{
	const struct gw_edge_type *type = &client->meta->etypes[etype];
	const struct gw_list_places *lists = &client->list_places[direction][etype];
	const struct gw_place *indptr =
		client->node_places[direction][direction == GW_IN ? type->dst : type->src].indptr;
	return indptr[part].on_disk || lists->indices[part].on_disk || (lists->eids && lists->eids[part].on_disk);
}

/* Whether the lists of the link's part are in mapped memory of its server. A server leaves those of all edge types on
 * disk, or of none. */
static bool has_own_lists(const struct gw_link *link)
{
	const struct gw_client *client = link->engine->client;
	return link->state == GW_LINK_OPEN && link->mapped &&
	       !(client->meta->num_etypes && gw_lists_are_on_disk(client, link->server->part, GW_IN, 0));
}

const struct gw_adjacency *gw_local_lists(struct gw_engine *engine, uint32_t part, enum gw_direction direction,
					  uint32_t etype)
{
	const struct gw_client *client = engine->client;
	if (client->neighbours != GW_NEIGHBOURS_AUTO)
		return NULL;
	if (client->standalone)
		return gw_own_lists(client, part, direction, etype);
	struct gw_link *link = gw_engine_link(engine, part);
	if (!has_own_lists(link))
		return held_lists_of(engine, part, direction, etype);
	if (!link->lists[direction])
		link->lists[direction] = local_lists_make(link, part, direction);
	return link->lists[direction] ? &link->lists[direction][etype] : NULL;
}

bool gw_local_lists_are_held(const struct gw_engine *engine, uint32_t part)
{
	const struct gw_link *link = engine->lists_link ? gw_engine_link(engine, part) : NULL;
	return link && !has_own_lists(link);
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

/* The column in mapped memory: of the part's server, or of one that holds the part's lists. NULL: it is in neither. */
static const void *mapped_column(const struct gw_engine *engine, uint32_t part, const struct gw_edge_columns *columns,
				 uint32_t column)
{
	const struct gw_link *link = gw_engine_link(engine, part);
	const struct gw_place *owners = &columns->places[column][part];
	struct gw_place place;
	if (link->state == GW_LINK_OPEN && link->mapped && !owners->on_disk)
		return address_of(link, owners);
	link = engine->lists_link;
	return link && held_place(&link->held->parts[part], columns->keys[column], owners, &place)
		       ? address_of(link, &place)
		       : NULL;
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
			out->at[c] = mapped_column(engine, part, columns, c);
		if (!out->at[c])
			return false;
	}
	return true;
}
