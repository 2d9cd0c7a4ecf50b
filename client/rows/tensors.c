/* What a client can fetch, and where it is stored: tensors, degree records and neighbour lists, from the servers'
 * catalogs.
 *
 * All parts must have the same dtype and row shape for a key. The place of an array may differ from part to part.
 */
#include "client/rows/tensors.h"

#include <stdio.h>
#include <string.h>

#include "client/rows/tensor_handles.h"
#include "core/graph/id_index.h"
#include "core/graph/replicas.h"
#include "core/memory/alloc.h"
#include "tensors/features.h"

/* Finds an array in the catalog of a part's server, for its place; the other fields are not checked. Returns NULL and
 * sets the error text if the catalog omits the array, which breaks the protocol. */
static const struct gw_catalog_array *catalog_array(const struct gw_client *client, uint32_t part, const char *key)
{
	const struct gw_catalog_array *array = gw_catalog_find(&client->parts[part]->catalog, key);
	if (!array)
		gw_fail(GW_PROTOCOL, "part %u's server does not report the place of \"%s\"", part, key);
	return array;
}

static gw_status place_find(const struct gw_client *client, uint32_t part, const char *key, struct gw_place *out)
{
	const struct gw_array_meta *described = gw_meta_array(client->meta, part, key);
	if (!described)
		return gw_fail(GW_FORMAT, "part %u has no \"%s\", but part 0 has: partition the graph again", part,
			       key);
	const struct gw_catalog_array *array = catalog_array(client, part, key);
	if (!array)
		return GW_PROTOCOL;
	if (array->changes)
		return gw_fail(GW_PROTOCOL, "part %u serves \"%s\" as mutable rows", part, key);
	*out = (struct gw_place){
		.region = array->region,
		.element_bytes = gw_dtype_bytes(described->dtype),
		.offset = array->offset,
		.on_disk = array->on_disk,
		.array = (uint32_t)(array - client->parts[part]->catalog.arrays),
		.digest = described->digest,
	};
	return GW_OK;
}

gw_status gw_places_find_anywhere(const struct gw_client *client, const char *key, struct gw_place **out)
{
	uint32_t parts = client->meta->num_parts;
	struct gw_place *places = gw_calloc(parts, sizeof(*places));
	*out = NULL;
	gw_status status = places ? GW_OK : GW_NO_MEMORY;
	for (uint32_t p = 0; p < parts && status == GW_OK; p++)
		status = place_find(client, p, key, &places[p]);
	if (status != GW_OK) {
		gw_free(places);
		return status;
	}
	*out = places;
	return GW_OK;
}

gw_status gw_places_find(const struct gw_client *client, const char *key, struct gw_place **out)
{
	struct gw_place *places;
	gw_status status = gw_places_find_anywhere(client, key, &places);
	for (uint32_t p = 0; status == GW_OK && p < client->meta->num_parts; p++) {
		if (places[p].on_disk)
			status = gw_fail(GW_UNSUPPORTED,
					 "\"%s\" stays on disk at part %u, and is read from memory alone: leave it out "
					 "of on-disk",
					 key, p);
	}
	if (status != GW_OK) {
		gw_free(places);
		return status;
	}
	*out = places;
	return GW_OK;
}

const struct gw_array_meta *gw_array_of_all(const struct gw_graph_meta *meta, const char *key)
{
	const struct gw_array_meta *first = gw_meta_array(meta, 0, key);
	for (uint32_t p = 1; first && p < meta->num_parts; p++) {
		const struct gw_array_meta *array = gw_meta_array(meta, p, key);
		if (!array || array->dtype != first->dtype ||
		    gw_array_meta_row_bytes(array) != gw_array_meta_row_bytes(first))
			return NULL;
	}
	return first;
}

bool gw_array_is_mutable(const struct gw_client *client, const char *key)
{
	for (uint32_t i = 0; i < client->tensor_count; i++) {
		const struct gw_array_meta *changes = client->tensors[i].changes;
		if (changes && strcmp(changes->key, key) == 0)
			return true;
	}
	return false;
}

static gw_status check_alike(const struct gw_graph_meta *meta, const struct gw_array_meta *first)
{
	for (uint32_t p = 1; p < meta->num_parts; p++) {
		const struct gw_array_meta *array = gw_meta_array(meta, p, first->key);
		if (!array || array->dtype != first->dtype || array->ndim != first->ndim ||
		    memcmp(&array->shape[1], &first->shape[1], sizeof(first->shape) - sizeof(first->shape[0])) != 0)
			return gw_fail(GW_FORMAT, "\"%s\" of part %u differs from that of part 0 in dtype or shape",
				       first->key, p);
	}
	return GW_OK;
}

/* Checks that all servers serve the array as mutable rows (*changes), or that no server does. */
static gw_status check_changes_alike(const struct gw_client *client, const char *key, bool *changes)
{
	*changes = false;
	for (uint32_t p = 0; p < client->meta->num_parts; p++) {
		const struct gw_catalog_array *array = catalog_array(client, p, key);
		if (!array)
			return GW_PROTOCOL;
		if (p == 0)
			*changes = array->changes;
		else if (array->changes != *changes)
			return gw_fail(GW_INVALID,
				       "part %u serves \"%s\" as mutable rows, and part %u does not: "
				       "start all servers with the same --mutable",
				       *changes ? 0 : p, key, *changes ? p : 0);
	}
	return GW_OK;
}

bool gw_places_are_on_disk(const struct gw_client *client, const struct gw_place *places)
{
	uint32_t p = 0;
	while (p < client->meta->num_parts && !places[p].on_disk)
		p++;
	return p < client->meta->num_parts;
}

/* It has one row per original id, so its rows do not correspond to edges; the parts divide them evenly. */
static gw_status add_inverse(struct gw_client *client, uint32_t etype)
{
	const struct gw_graph_meta *meta = client->meta;
	char key[GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 16];
	snprintf(key, sizeof(key), "edge/%s/" GW_INVERSE_NAME, meta->etypes[etype].folder);
	const struct gw_array_meta *array = gw_meta_array(meta, 0, key);
	if (!array)
		return GW_OK;
	struct gw_client_tensor *tensor = &client->tensors[client->tensor_count];
	tensor->name = gw_strdup(GW_INVERSE_NAME);
	tensor->starts = gw_calloc(meta->num_parts + 1ull, sizeof(*tensor->starts));
	client->tensor_count++;
	if (!tensor->name || !tensor->starts)
		return GW_NO_MEMORY;
	for (uint32_t p = 0; p < meta->num_parts; p++)
		tensor->starts[p + 1] = tensor->starts[p] + gw_meta_array(meta, p, key)->shape[0];
	uint64_t row_bytes = gw_array_meta_row_bytes(array);
	tensor->rows.starts = tensor->starts;
	tensor->rows.row_bytes = tensor->rows.step = row_bytes;
	tensor->tensor = (struct gw_tensor){.name = tensor->name,
					    .of_edges = true,
					    .type = etype,
					    .dtype = array->dtype,
					    .ndim = array->ndim,
					    .shape = {tensor->starts[meta->num_parts]},
					    .row_bytes = row_bytes,
					    .placement = GW_PLACE_EVEN,
					    .original = array->dtype,
					    .numbers = 1};
	gw_status status = gw_places_find_anywhere(client, key, &tensor->rows.places);
	if (status == GW_OK)
		tensor->rows.on_disk = gw_places_are_on_disk(client, tensor->rows.places);
	return status;
}

/* Finds the replicas of a feature of nodes. A server that does not load them lists them as rows that change. */
static gw_status find_near(const struct gw_client *client, const struct gw_array_meta *array, uint32_t ntype,
			   struct gw_near_place **out)
{
	const struct gw_graph_meta *meta = client->meta;
	char index[2 * GW_NAME_MAX + 16], rows[2 * GW_NAME_MAX + 32];
	snprintf(index, sizeof(index), "node/%s/" GW_REPLICA_INDEX_NAME, meta->ntypes[ntype].name);
	snprintf(rows, sizeof(rows), "%s" GW_REPLICA_TAIL, array->key);
	if (client->standalone || !gw_replica_key(meta, rows) || !gw_meta_array(meta, 0, rows))
		return GW_OK;
	*out = gw_calloc(meta->num_parts, sizeof(**out));
	if (!*out)
		return GW_NO_MEMORY;
	for (uint32_t p = 0; p < meta->num_parts; p++) {
		const struct gw_catalog_array *of[] = {catalog_array(client, p, index), catalog_array(client, p, rows)};
		struct gw_near_place *place = &(*out)[p];
		if (!of[0] || !of[1])
			return GW_PROTOCOL;
		if (of[0]->changes || of[1]->changes)
			continue;
		place->index = (struct gw_place){.region = of[0]->region, .offset = of[0]->offset};
		place->rows = (struct gw_place){.region = of[1]->region, .offset = of[1]->offset};
		place->count = gw_meta_array(meta, p, rows)->shape[0];
	}
	return GW_OK;
}

/* Adds an array of nodes or edges, if it is a feature; with of_source, if it has the times of the edges' sources. */
static gw_status add_tensor(struct gw_client *client, const struct gw_array_meta *array, bool of_source)
{
	const struct gw_graph_meta *meta = client->meta;
	bool of_edges = false, changes = false;
	uint32_t type = 0;
	const char *name = NULL;
	if (array->ndim == 0 ||
	    !(of_source ? gw_feature_parse_source : gw_feature_parse)(meta, array->key, &of_edges, &type, &name))
		return GW_OK;
	gw_status status = check_alike(meta, array);
	if (status == GW_OK)
		status = check_changes_alike(client, array->key, &changes);
	if (status != GW_OK)
		return status;

	struct gw_client_tensor *tensor = &client->tensors[client->tensor_count];
	tensor->name = gw_strdup(name);
	if (!tensor->name)
		return GW_NO_MEMORY;
	client->tensor_count++;
	tensor->changes = changes ? array : NULL;
	if (!changes)
		status = gw_places_find_anywhere(client, array->key, &tensor->rows.places);
	if (status == GW_OK && !changes && !of_edges)
		status = find_near(client, array, type, &tensor->rows.near);
	if (status != GW_OK)
		return status;
	if (!changes)
		tensor->rows.on_disk = gw_places_are_on_disk(client, tensor->rows.places);
	uint64_t row_bytes = gw_array_meta_row_bytes(array);
	tensor->rows.starts = of_edges ? meta->etypes[type].starts : meta->ntypes[type].starts;
	tensor->rows.row_bytes = row_bytes;
	tensor->rows.step = row_bytes;
	tensor->tensor = (struct gw_tensor){.name = tensor->name,
					    .of_edges = of_edges,
					    .type = type,
					    .dtype = array->dtype,
					    .ndim = array->ndim,
					    .row_bytes = row_bytes,
					    .writable = changes,
					    .placement = of_edges ? GW_PLACE_EDGES : GW_PLACE_NODES,
					    .numbers = gw_meta_row_numbers(meta, array)};
	const struct gw_original_meta *original = gw_meta_original(meta, array);
	tensor->tensor.original = original ? original->dtype : array->dtype;
	enum gw_time_unit unit = gw_meta_unit(meta, array->key);
	tensor->tensor.unit = unit == GW_UNIT_NONE ? NULL : gw_time_unit_text(unit);
	memcpy(tensor->tensor.shape, array->shape, sizeof(array->shape));
	tensor->tensor.shape[0] = of_edges ? meta->etypes[type].count : meta->ntypes[type].count;
	return GW_OK;
}

static gw_status build_node_places(struct gw_client *client, enum gw_direction direction, uint32_t ntype)
{
	const struct gw_node_type *type = &client->meta->ntypes[ntype];
	struct gw_node_places *places = &client->node_places[direction][ntype];
	char key[GW_NAME_MAX + 32];
	places->columns = direction == GW_IN ? type->columns : type->out_columns;
	if (places->columns == 0)
		return GW_OK;
	snprintf(key, sizeof(key), "node/%s/%s", type->name, direction == GW_IN ? "indptr" : "out_indptr");
	return gw_places_find_anywhere(client, key, &places->indptr);
}

static gw_status build_list_places(struct gw_client *client, enum gw_direction direction, uint32_t etype)
{
	const struct gw_graph_meta *meta = client->meta;
	const struct gw_edge_type *type = &meta->etypes[etype];
	struct gw_list_places *places = &client->list_places[direction][etype];
	char key[GW_EDGE_FOLDER_MAX + 32];
	if (direction == GW_OUT && type->out_column == GW_TYPE_NONE)
		return GW_OK;
	places->edges = gw_calloc(meta->num_parts, sizeof(*places->edges));
	if (!places->edges)
		return GW_NO_MEMORY;
	gw_status status = GW_OK;
	if (direction == GW_OUT) {
		snprintf(key, sizeof(key), "edge/%s/out/eid", type->folder);
		status = gw_places_find_anywhere(client, key, &places->eids);
	}
	snprintf(key, sizeof(key), "edge/%s/%sindices", type->folder, direction == GW_IN ? "" : "out/");
	if (status == GW_OK)
		status = gw_places_find_anywhere(client, key, &places->indices);
	for (uint32_t p = 0; p < meta->num_parts && status == GW_OK; p++)
		places->edges[p] = gw_meta_array(meta, p, key)->shape[0];
	return status;
}

static gw_status build_lists(struct gw_client *client, enum gw_direction direction)
{
	const struct gw_graph_meta *meta = client->meta;
	gw_status status = GW_OK;
	for (uint32_t t = 0; t < meta->num_ntypes && status == GW_OK; t++)
		status = build_node_places(client, direction, t);
	for (uint32_t e = 0; e < meta->num_etypes && status == GW_OK; e++)
		status = build_list_places(client, direction, e);
	return status;
}

static void free_lists(struct gw_client *client, enum gw_direction direction)
{
	for (uint32_t t = 0; client->node_places[direction] && t < client->meta->num_ntypes; t++)
		gw_free(client->node_places[direction][t].indptr);
	for (uint32_t e = 0; client->list_places[direction] && e < client->meta->num_etypes; e++) {
		gw_free(client->list_places[direction][e].indices);
		gw_free(client->list_places[direction][e].eids);
		gw_free(client->list_places[direction][e].edges);
	}
	gw_free(client->node_places[direction]);
	gw_free(client->list_places[direction]);
}

static gw_status rows_of_parts(const struct gw_graph_meta *meta, const char *key, uint64_t **out)
{
	*out = gw_calloc(meta->num_parts, sizeof(**out));
	for (uint32_t p = 0; *out && p < meta->num_parts; p++)
		(*out)[p] = gw_meta_array(meta, p, key)->shape[0];
	return *out ? GW_OK : GW_NO_MEMORY;
}

static gw_status build_id_places(struct gw_client *client, uint32_t ntype)
{
	const struct gw_graph_meta *meta = client->meta;
	struct gw_id_places *places = &client->id_places[ntype];
	char key[2 * GW_NAME_MAX + 16];
	places->form = gw_id_form(meta, ntype);
	if (places->form == GW_IDS_NONE)
		return GW_OK;
	bool dense = places->form == GW_IDS_DENSE;
	snprintf(key, sizeof(key), "node/%s/%s", meta->ntypes[ntype].name, dense ? GW_INVERSE_NAME : GW_ID_INDEX_NAME);
	gw_status status = gw_places_find_anywhere(client, key, dense ? &places->nodes : &places->entries);
	if (status == GW_OK)
		status = rows_of_parts(meta, key, &places->rows);
	if (status != GW_OK || dense)
		return status;
	snprintf(key, sizeof(key), "node/%s/%s", meta->ntypes[ntype].name, GW_ID_BUCKETS_NAME);
	status = gw_places_find_anywhere(client, key, &places->buckets);
	if (status == GW_OK)
		status = rows_of_parts(meta, key, &places->bucket_counts);
	for (uint32_t p = 0; status == GW_OK && p < meta->num_parts; p++)
		places->bucket_counts[p]--;
	return status;
}

gw_status gw_tensors_build(struct gw_client *client)
{
	const struct gw_graph_meta *meta = client->meta;
	const struct gw_part_meta *part = &meta->parts[0];
	client->tensors = gw_calloc(part->count, sizeof(*client->tensors));
	for (uint32_t d = 0; d < 2; d++) {
		client->node_places[d] = gw_calloc(meta->num_ntypes, sizeof(*client->node_places[d]));
		client->list_places[d] = gw_calloc(meta->num_etypes, sizeof(*client->list_places[d]));
	}
	client->id_places = gw_calloc(meta->num_ntypes, sizeof(*client->id_places));
	if (!client->tensors || !client->node_places[GW_IN] || !client->node_places[GW_OUT] ||
	    !client->list_places[GW_IN] || !client->list_places[GW_OUT] || !client->id_places)
		return GW_NO_MEMORY;
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < part->count && status == GW_OK; i++)
		status = add_tensor(client, &part->arrays[i], false);
	client->feature_count = client->tensor_count;
	for (uint32_t i = 0; i < part->count && status == GW_OK; i++)
		status = add_tensor(client, &part->arrays[i], true);
	for (uint32_t e = 0; e < meta->num_etypes && status == GW_OK; e++)
		status = add_inverse(client, e);
	for (uint32_t t = 0; t < meta->num_ntypes && status == GW_OK; t++)
		status = build_id_places(client, t);
	if (status == GW_OK)
		status = build_lists(client, GW_IN);
	return status == GW_OK ? build_lists(client, GW_OUT) : status;
}

void gw_tensors_free(struct gw_client *client)
{
	for (uint32_t i = 0; i < client->tensor_count; i++) {
		gw_free(client->tensors[i].name);
		gw_free(client->tensors[i].rows.places);
		gw_free(client->tensors[i].rows.near);
		gw_free(client->tensors[i].starts);
	}
	for (uint32_t t = 0; client->id_places && t < client->meta->num_ntypes; t++) {
		struct gw_id_places *places = &client->id_places[t];
		gw_free(places->nodes);
		gw_free(places->entries);
		gw_free(places->buckets);
		gw_free(places->rows);
		gw_free(places->bucket_counts);
	}
	gw_free(client->id_places);
	gw_free(client->tensors);
	free_lists(client, GW_IN);
	free_lists(client, GW_OUT);
}

gw_status gw_fail_not_by_source(const struct gw_client *client, uint32_t etype)
{
	return gw_fail(GW_UNSUPPORTED, "%s is not stored by source: import it with --transpose to ask for out-edges",
		       client->etypes[etype].name);
}

gw_status gw_tensor_check(const struct gw_client *client, const struct gw_tensor *tensor)
{
	/* Compared as numbers, since the pointer may be invalid. */
	uintptr_t at = (uintptr_t)tensor, first = (uintptr_t)client->tensors;
	bool feature = at - first < client->tensor_count * sizeof(*client->tensors) &&
		       (at - first) % sizeof(*client->tensors) == 0;
	if (!feature && !gw_tensor_handle_is(client, tensor))
		return gw_fail(GW_INVALID, "the tensor does not belong to this client: gw_node_tensor, "
					   "gw_edge_tensor and gw_tensor_open find them");
	if (feature && ((const struct gw_client_tensor *)tensor)->changes)
		return gw_fail(GW_INVALID,
			       "\"%s\" is served as mutable rows: gw_node_tensor and gw_edge_tensor open them",
			       tensor->name);
	if (!feature && atomic_load(&((const struct gw_tensor_handle *)tensor)->deleted))
		return gw_fail(GW_NOT_FOUND, "tensor \"%s\" is gone: it was deleted", tensor->name);
	if (tensor->row_bytes > GW_ROW_BYTES_MAX)
		return gw_fail(GW_LIMIT, "\"%s\" has rows of %llu bytes: at most %u can be fetched", tensor->name,
			       (unsigned long long)tensor->row_bytes, GW_ROW_BYTES_MAX);
	return GW_OK;
}

gw_status gw_tensor_conversion(const struct gw_tensor *tensor, gw_dtype convert, struct gw_conversion *out)
{
	*out = (struct gw_conversion){0};
	if (convert == 0 || convert == tensor->dtype)
		return GW_OK;
	if (gw_converted_bytes(tensor, convert) == 0)
		return gw_fail(GW_UNSUPPORTED, "\"%s\" is of %s: its rows cannot be fetched as %s", tensor->name,
			       gw_dtype_name(tensor->dtype), gw_dtype_name(convert));
	*out = gw_conversion_of(tensor->dtype, convert, tensor->numbers);
	return GW_OK;
}

uint64_t gw_converted_bytes(const struct gw_tensor *tensor, gw_dtype convert)
{
	if (convert == 0 || convert == tensor->dtype)
		return tensor->row_bytes;
	bool possible = (unsigned)convert < GW_DTYPE_COUNT && convert != GW_INT8_ROW &&
			gw_convert_is_possible(tensor->dtype, convert);
	return possible ? tensor->numbers * gw_dtype_bytes(convert) : 0;
}

gw_status gw_tensor_name_gone(gw_status status, const char *name)
{
	return status == GW_NOT_FOUND ? gw_context(status, "tensor \"%s\"", name) : status;
}

const struct gw_tensor *gw_tensor_at(const struct gw_client *client, uint32_t number)
{
	return number < client->feature_count ? &client->tensors[number].tensor : NULL;
}
