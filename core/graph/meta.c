/* The description of a partitioned graph: creates, completes, checks and searches it.
 *
 *   gw_meta_create -> names, ranges, ends of edge types -> gw_meta_finish -> gw_meta_add_array ...
 *
 * Fails for names outside the format's alphabet, for equal types, and for ranges that do not ascend from 0 to the
 * count. Also fails if memory runs out. meta_schema.c checks arrays; meta_json.c reads the JSON.
 */
#include "core/graph/meta.h"

#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/numbers/convert.h"

gw_status gw_name_check(const char *what, const char *name)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.+-";
	size_t length = strnlen(name, GW_NAME_MAX + 1);
	if (length == 0 || length > GW_NAME_MAX)
		return gw_fail(GW_INVALID, "%s \"%.80s\": a name has 1 to %d characters", what, name, GW_NAME_MAX);
	if (strspn(name, alphabet) != length)
		return gw_fail(GW_INVALID, "%s \"%.80s\": a name consists of A-Z a-z 0-9 _ . + -", what, name);
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return gw_fail(GW_INVALID, "%s \"%s\": not a name", what, name);
	return GW_OK;
}

bool gw_name_is_node_ids(const char *name)
{
	return strcmp(name, GW_INVERSE_NAME) == 0 || strcmp(name, GW_ID_INDEX_NAME) == 0 ||
	       strcmp(name, GW_ID_BUCKETS_NAME) == 0;
}

bool gw_name_ends_in(const char *name, const char *tail)
{
	size_t length = strlen(name), end = strlen(tail);
	return length > end && strcmp(name + length - end, tail) == 0;
}

bool gw_name_is_of_replicas(const char *name)
{
	return strcmp(name, GW_REPLICA_INDEX_NAME) == 0 || gw_name_ends_in(name, GW_REPLICA_TAIL);
}

bool gw_name_is_of_times(bool edge, const char *name)
{
	if (edge)
		return gw_name_ends_in(name, GW_TIME_SOURCE_TAIL) || gw_name_ends_in(name, GW_TIME_FENCE_TAIL);
	return gw_name_ends_in(name, GW_TIMES_TAIL) || gw_name_ends_in(name, GW_TIMES_NODES_TAIL);
}

static bool is_taken_in_all_versions(bool edge, const char *name)
{
	static const char *const of_nodes[] = {"indptr", "out_indptr", NULL},
				 *const of_edges[] = {"indices", "rel", "orig_id", GW_INVERSE_NAME, NULL},
				 *const tails[] = {".alias", ".offsets", ".bytes"};
	for (const char *const *taken = edge ? of_edges : of_nodes; *taken; taken++) {
		if (strcmp(name, *taken) == 0)
			return true;
	}
	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		if (gw_name_ends_in(name, tails[i]))
			return true;
	}
	return false;
}

bool gw_name_is_taken(bool edge, const char *name)
{
	return (!edge && (gw_name_is_node_ids(name) || gw_name_is_of_replicas(name))) ||
	       gw_name_is_of_times(edge, name) || is_taken_in_all_versions(edge, name);
}

static gw_status make_types(struct gw_graph_meta *meta)
{
	meta->ntypes = gw_calloc(meta->num_ntypes, sizeof(*meta->ntypes));
	meta->etypes = gw_calloc(meta->num_etypes, sizeof(*meta->etypes));
	meta->parts = gw_calloc(meta->num_parts, sizeof(*meta->parts));
	meta->folder = gw_strdup("");
	if (!meta->ntypes || !meta->etypes || !meta->parts || !meta->folder)
		return GW_NO_MEMORY;
	for (uint32_t t = 0; t < meta->num_ntypes; t++) {
		meta->ntypes[t].starts = gw_calloc((size_t)meta->num_parts + 1, sizeof(uint64_t));
		if (!meta->ntypes[t].starts)
			return GW_NO_MEMORY;
	}
	for (uint32_t t = 0; t < meta->num_etypes; t++) {
		meta->etypes[t].starts = gw_calloc((size_t)meta->num_parts + 1, sizeof(uint64_t));
		if (!meta->etypes[t].starts)
			return GW_NO_MEMORY;
		meta->etypes[t].out_column = GW_TYPE_NONE;
		meta->etypes[t].reverse = GW_TYPE_NONE;
	}
	return GW_OK;
}

gw_status gw_meta_create(const char *graph_name, uint32_t parts, uint32_t ntypes, uint32_t etypes,
			 struct gw_graph_meta **out)
{
	*out = NULL;
	gw_status status = gw_name_check("graph", graph_name);
	if (status != GW_OK)
		return status;
	if (parts == 0 || parts > GW_PARTS_MAX)
		return gw_fail(GW_INVALID, "graph \"%s\": %u parts; 1 to %d are possible", graph_name, parts,
			       GW_PARTS_MAX);
	if (ntypes == 0 || ntypes > GW_TYPES_MAX || etypes > GW_TYPES_MAX)
		return gw_fail(GW_INVALID, "graph \"%s\": %u node types and %u edge types; 1 to %d are possible",
			       graph_name, ntypes, etypes, GW_TYPES_MAX);
	struct gw_graph_meta *meta = gw_calloc(1, sizeof(*meta));
	if (!meta)
		return GW_NO_MEMORY;
	snprintf(meta->graph_name, sizeof(meta->graph_name), "%s", graph_name);
	snprintf(meta->part_method, sizeof(meta->part_method), "none");
	meta->minor = 1; /* for the JSON's digest; no created graph needs a newer version */
	meta->num_parts = parts;
	meta->num_ntypes = ntypes;
	meta->num_etypes = etypes;
	status = make_types(meta);
	if (status != GW_OK) {
		gw_meta_destroy(meta);
		return status;
	}
	*out = meta;
	return GW_OK;
}

void gw_meta_destroy(struct gw_graph_meta *meta)
{
	if (!meta)
		return;
	for (uint32_t t = 0; meta->ntypes && t < meta->num_ntypes; t++) {
		gw_free(meta->ntypes[t].starts);
		gw_free(meta->ntypes[t].column_edge_types);
		gw_free(meta->ntypes[t].out_column_edge_types);
	}
	for (uint32_t t = 0; meta->etypes && t < meta->num_etypes; t++)
		gw_free(meta->etypes[t].starts);
	for (uint32_t p = 0; meta->parts && p < meta->num_parts; p++) {
		for (uint32_t i = 0; i < meta->parts[p].count; i++) {
			gw_free(meta->parts[p].arrays[i].key);
			gw_free(meta->parts[p].arrays[i].file);
		}
		gw_free(meta->parts[p].arrays);
	}
	for (uint32_t i = 0; i < meta->num_units; i++)
		gw_free(meta->units[i].key);
	gw_free(meta->units);
	for (uint32_t i = 0; i < meta->num_originals; i++)
		gw_free(meta->originals[i].key);
	gw_free(meta->originals);
	for (uint32_t i = 0; i < meta->num_replicas; i++)
		gw_free(meta->replicas[i].key);
	gw_free(meta->replicas);
	gw_free(meta->ntypes);
	gw_free(meta->etypes);
	gw_free(meta->parts);
	gw_free(meta->folder);
	gw_free(meta);
}

static gw_status check_starts(const struct gw_graph_meta *meta, const char *what, const char *name,
			      const uint64_t *starts, uint64_t count)
{
	if (count >= GW_NONE)
		return gw_fail(GW_INVALID, "%s \"%s\": a count of %llu is too large", what, name,
			       (unsigned long long)count);
	if (starts[0] != 0)
		return gw_fail(GW_INVALID, "%s \"%s\": part 0 starts at %llu, not at 0", what, name,
			       (unsigned long long)starts[0]);
	for (uint32_t p = 0; p < meta->num_parts; p++) {
		if (starts[p + 1] < starts[p])
			return gw_fail(GW_INVALID, "%s \"%s\": part %u ends at %llu, before its start %llu", what, name,
				       p, (unsigned long long)starts[p + 1], (unsigned long long)starts[p]);
	}
	if (starts[meta->num_parts] != count)
		return gw_fail(GW_INVALID, "%s \"%s\": the parts end at %llu, but the count is %llu", what, name,
			       (unsigned long long)starts[meta->num_parts], (unsigned long long)count);
	return GW_OK;
}

static gw_status finish_ntypes(struct gw_graph_meta *meta)
{
	uint64_t total = 0;
	for (uint32_t t = 0; t < meta->num_ntypes; t++) {
		struct gw_node_type *type = &meta->ntypes[t];
		gw_status status = gw_name_check("node type", type->name);
		if (status == GW_OK)
			status = check_starts(meta, "node type", type->name, type->starts, type->count);
		if (status != GW_OK)
			return status;
		for (uint32_t other = 0; other < t; other++) {
			if (strcmp(meta->ntypes[other].name, type->name) == 0)
				return gw_fail(GW_INVALID, "node type \"%s\": there are two of this name", type->name);
		}
		total += type->count;
		if (total >= GW_NONE)
			return gw_fail(GW_INVALID, "node type \"%s\": the graph has too many nodes", type->name);
	}
	return GW_OK;
}

static gw_status check_order(const struct gw_edge_type *type)
{
	if (type->order == GW_ORDER_TIME_SRC && type->time_name[0] == '\0')
		return gw_fail(GW_INVALID, "edge type \"%s\": ordered by time, but no time column is named",
			       type->folder);
	if (type->order == GW_ORDER_TIME_SRC && is_taken_in_all_versions(true, type->time_name))
		return gw_fail(GW_INVALID, "edge type \"%s\": time column \"%s\": the format uses that name itself",
			       type->folder, type->time_name);
	if (type->order == GW_ORDER_TIME_SRC)
		return gw_name_check("time column", type->time_name);
	if (type->time_name[0] != '\0')
		return gw_fail(GW_INVALID, "edge type \"%s\": names time column \"%s\", but is not ordered by time",
			       type->folder, type->time_name);
	if ((type->order == GW_ORDER_REL_SRC) != (type->relations > 0))
		return gw_fail(GW_INVALID, "edge type \"%s\": fused types, and no others, are ordered by relation",
			       type->folder);
	return GW_OK;
}

static gw_status finish_etype(struct gw_graph_meta *meta, uint32_t t)
{
	struct gw_edge_type *type = &meta->etypes[t];
	gw_status status = gw_name_check("edge type", type->name);
	if (status != GW_OK)
		return status;
	if (type->src >= meta->num_ntypes || type->dst >= meta->num_ntypes)
		return gw_fail(GW_INVALID, "edge type \"%s\": ends at node types %u and %u of %u", type->name,
			       type->src, type->dst, meta->num_ntypes);
	snprintf(type->folder, sizeof(type->folder), "%s__%s__%s", meta->ntypes[type->src].name, type->name,
		 meta->ntypes[type->dst].name);
	for (uint32_t other = 0; other < t; other++) {
		if (strcmp(meta->etypes[other].folder, type->folder) == 0)
			return gw_fail(GW_INVALID, "edge type \"%s\": two edge types have this folder", type->folder);
	}
	status = check_starts(meta, "edge type", type->folder, type->starts, type->count);
	return status == GW_OK ? check_order(type) : status;
}

static gw_status check_reverse(const struct gw_graph_meta *meta, const struct gw_edge_type *type)
{
	if (type->reverse == GW_TYPE_NONE)
		return GW_OK;
	if (type->reverse >= meta->num_etypes)
		return gw_fail(GW_INVALID, "edge type \"%s\": its reverse is number %u of %u", type->folder,
			       type->reverse, meta->num_etypes);
	const struct gw_edge_type *reverse = &meta->etypes[type->reverse];
	if (reverse->src != type->dst || reverse->dst != type->src || reverse->count != type->count)
		return gw_fail(GW_INVALID, "edge type \"%s\": \"%s\" is not its reverse: other ends or count",
			       type->folder, reverse->folder);
	return GW_OK;
}

/* Numbers the columns of a node type's indptr (in) or out_indptr (out): its edge types in ascending order. */
static gw_status finish_columns(struct gw_graph_meta *meta, uint32_t node_type, bool out)
{
	uint32_t count = 0;
	for (uint32_t e = 0; e < meta->num_etypes; e++) {
		const struct gw_edge_type *type = &meta->etypes[e];
		count += out ? type->src == node_type && type->out_column != GW_TYPE_NONE : type->dst == node_type;
	}
	uint32_t *list = gw_malloc(count * sizeof(*list));
	if (!list)
		return GW_NO_MEMORY;
	uint32_t column = 0;
	for (uint32_t e = 0; e < meta->num_etypes; e++) {
		struct gw_edge_type *type = &meta->etypes[e];
		if (out && type->src == node_type && type->out_column != GW_TYPE_NONE) {
			type->out_column = column;
			list[column++] = e;
		} else if (!out && type->dst == node_type) {
			type->column = column;
			list[column++] = e;
		}
	}
	struct gw_node_type *type = &meta->ntypes[node_type];
	gw_free(out ? type->out_column_edge_types : type->column_edge_types);
	*(out ? &type->out_column_edge_types : &type->column_edge_types) = list;
	*(out ? &type->out_columns : &type->columns) = count;
	return GW_OK;
}

gw_status gw_meta_finish(struct gw_graph_meta *meta)
{
	gw_status status = gw_name_check("part_method", meta->part_method);
	if (status == GW_OK)
		status = finish_ntypes(meta);
	uint64_t total = 0;
	for (uint32_t t = 0; status == GW_OK && t < meta->num_etypes; t++) {
		status = finish_etype(meta, t);
		total += meta->etypes[t].count;
		if (status == GW_OK && total >= GW_NONE)
			status = gw_fail(GW_INVALID, "edge type \"%s\": the graph has too many edges",
					 meta->etypes[t].folder);
	}
	for (uint32_t t = 0; status == GW_OK && t < meta->num_etypes; t++)
		status = check_reverse(meta, &meta->etypes[t]);
	for (uint32_t t = 0; status == GW_OK && t < meta->num_ntypes; t++) {
		status = finish_columns(meta, t, false);
		if (status == GW_OK)
			status = finish_columns(meta, t, true);
	}
	return status;
}

gw_status gw_meta_copy(const struct gw_graph_meta *meta, struct gw_graph_meta **out)
{
	struct gw_graph_meta *copy;
	*out = NULL;
	gw_status status = gw_meta_create(meta->graph_name, meta->num_parts, meta->num_ntypes, meta->num_etypes, &copy);
	if (status != GW_OK)
		return status;
	size_t starts_bytes = ((size_t)meta->num_parts + 1) * sizeof(uint64_t);
	memcpy(copy->part_method, meta->part_method, sizeof(copy->part_method));
	for (uint32_t t = 0; t < meta->num_ntypes; t++) {
		memcpy(copy->ntypes[t].name, meta->ntypes[t].name, sizeof(copy->ntypes[t].name));
		copy->ntypes[t].count = meta->ntypes[t].count;
		memcpy(copy->ntypes[t].starts, meta->ntypes[t].starts, starts_bytes);
	}
	for (uint32_t t = 0; t < meta->num_etypes; t++) {
		uint64_t *starts = copy->etypes[t].starts;
		memcpy(starts, meta->etypes[t].starts, starts_bytes);
		copy->etypes[t] = meta->etypes[t];
		copy->etypes[t].starts = starts;
	}
	status = gw_meta_finish(copy);
	if (status != GW_OK) {
		gw_meta_destroy(copy);
		return status;
	}
	*out = copy;
	return GW_OK;
}

/* Without the key: the position at which to insert it. */
static uint32_t array_position(const struct gw_part_meta *part, const char *key, bool *found)
{
	uint32_t low = 0, high = part->count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = strcmp(part->arrays[middle].key, key);
		if (order == 0) {
			*found = true;
			return middle;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*found = false;
	return low;
}

gw_status gw_meta_add_array(struct gw_graph_meta *meta, uint32_t part_number, const struct gw_array_meta *array)
{
	struct gw_part_meta *part = &meta->parts[part_number];
	bool found;
	uint32_t at = array_position(part, array->key, &found);
	if (found)
		return gw_fail(GW_EXISTS, "part %u: %s: there are two of this key", part_number, array->key);
	if (part->count == GW_ARRAYS_MAX)
		return gw_fail(GW_LIMIT, "part %u: %s: more than %d arrays", part_number, array->key, GW_ARRAYS_MAX);
	if ((part->count & (part->count - 1)) == 0) { /* the capacity is the next power of two */
		size_t room = part->count ? 2 * (size_t)part->count : 1;
		struct gw_array_meta *grown = gw_realloc(part->arrays, room, sizeof(*grown));
		if (!grown)
			return GW_NO_MEMORY;
		part->arrays = grown;
	}
	struct gw_array_meta copy = *array;
	copy.key = gw_strdup(array->key);
	copy.file = gw_strdup(array->file);
	if (!copy.key || !copy.file) {
		gw_free(copy.key);
		gw_free(copy.file);
		return GW_NO_MEMORY;
	}
	memmove(&part->arrays[at + 1], &part->arrays[at], (part->count - at) * sizeof(copy));
	part->arrays[at] = copy;
	part->count++;
	return GW_OK;
}

static uint32_t unit_position(const struct gw_graph_meta *meta, const char *key)
{
	uint32_t at = 0;
	while (at < meta->num_units && strcmp(meta->units[at].key, key) < 0)
		at++;
	return at;
}

gw_status gw_meta_set_unit(struct gw_graph_meta *meta, const char *key, enum gw_time_unit unit)
{
	uint32_t at = unit_position(meta, key);
	if (at < meta->num_units && strcmp(meta->units[at].key, key) == 0) {
		meta->units[at].unit = unit;
		return GW_OK;
	}
	struct gw_unit_meta *grown = gw_realloc(meta->units, meta->num_units + 1, sizeof(*grown));
	if (!grown)
		return GW_NO_MEMORY;
	meta->units = grown;
	char *copy = gw_strdup(key);
	if (!copy)
		return GW_NO_MEMORY;
	memmove(&grown[at + 1], &grown[at], (meta->num_units - at) * sizeof(*grown));
	grown[at] = (struct gw_unit_meta){.key = copy, .unit = unit};
	meta->num_units++;
	return GW_OK;
}

enum gw_time_unit gw_meta_unit(const struct gw_graph_meta *meta, const char *key)
{
	uint32_t at = unit_position(meta, key);
	return at < meta->num_units && strcmp(meta->units[at].key, key) == 0 ? meta->units[at].unit : GW_UNIT_NONE;
}

static uint32_t original_position(const struct gw_graph_meta *meta, const char *key)
{
	uint32_t at = 0;
	while (at < meta->num_originals && strcmp(meta->originals[at].key, key) < 0)
		at++;
	return at;
}

static bool original_fits(const struct gw_original_meta *original, const struct gw_array_meta *array)
{
	bool packed = array->dtype == GW_INT8_ROW;
	if (!packed && array->dtype != GW_FLOAT16 && array->dtype != GW_BFLOAT16)
		return false;
	return original->dtype != array->dtype && original->dtype != GW_INT8_ROW &&
	       gw_convert_is_possible(original->dtype, array->dtype) && packed == (original->columns > 0) &&
	       (!packed || gw_int8_row_bytes(original->columns) == array->shape[1]);
}

const struct gw_original_meta *gw_meta_original(const struct gw_graph_meta *meta, const struct gw_array_meta *array)
{
	uint32_t at = original_position(meta, array->key);
	bool found = at < meta->num_originals && strcmp(meta->originals[at].key, array->key) == 0;
	return found && original_fits(&meta->originals[at], array) ? &meta->originals[at] : NULL;
}

gw_status gw_meta_set_original(struct gw_graph_meta *meta, const char *key, gw_dtype dtype, uint64_t columns)
{
	uint32_t at = original_position(meta, key);
	if (at < meta->num_originals && strcmp(meta->originals[at].key, key) == 0) {
		meta->originals[at].dtype = dtype;
		meta->originals[at].columns = columns;
		return GW_OK;
	}
	struct gw_original_meta *grown = gw_realloc(meta->originals, meta->num_originals + 1, sizeof(*grown));
	if (!grown)
		return GW_NO_MEMORY;
	meta->originals = grown;
	char *copy = gw_strdup(key);
	if (!copy)
		return GW_NO_MEMORY;
	memmove(&grown[at + 1], &grown[at], (meta->num_originals - at) * sizeof(*grown));
	grown[at] = (struct gw_original_meta){.key = copy, .dtype = dtype, .columns = columns};
	meta->num_originals++;
	return GW_OK;
}

uint64_t gw_meta_row_numbers(const struct gw_graph_meta *meta, const struct gw_array_meta *array)
{
	const struct gw_original_meta *original = gw_meta_original(meta, array);
	if (array->dtype == GW_INT8_ROW)
		return original ? original->columns : array->shape[1] - GW_INT8_ROW_HEAD;
	return gw_array_meta_row_bytes(array) / gw_dtype_bytes(array->dtype);
}

const struct gw_array_meta *gw_meta_array(const struct gw_graph_meta *meta, uint32_t part, const char *key)
{
	bool found;
	uint32_t at = array_position(&meta->parts[part], key, &found);
	return found ? &meta->parts[part].arrays[at] : NULL;
}

static gw_status fail_unknown(const struct gw_graph_meta *meta, bool edge, const char *name)
{
	char list[512];
	size_t used = 0;
	uint32_t count = edge ? meta->num_etypes : meta->num_ntypes;
	list[0] = '\0';
	for (uint32_t t = 0; t < count; t++) {
		char text[GW_EDGE_FOLDER_MAX + 1];
		if (edge)
			gw_meta_etype_text(meta, t, text);
		else
			snprintf(text, sizeof(text), "%s", meta->ntypes[t].name);
		if (used + strlen(text) + 6 > sizeof(list)) {
			snprintf(list + used, sizeof(list) - used, " ...");
			break;
		}
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", t ? " " : "", text);
	}
	return gw_fail(GW_NOT_FOUND, "graph \"%s\" has no %s type \"%.200s\"; it has: %s", meta->graph_name,
		       edge ? "edge" : "node", name, list);
}

gw_status gw_meta_ntype(const struct gw_graph_meta *meta, const char *name, uint32_t *out)
{
	for (uint32_t t = 0; t < meta->num_ntypes; t++) {
		if (strcmp(meta->ntypes[t].name, name) == 0) {
			*out = t;
			return GW_OK;
		}
	}
	return fail_unknown(meta, false, name);
}

char *gw_meta_etype_text(const struct gw_graph_meta *meta, uint32_t etype, char text[GW_EDGE_FOLDER_MAX + 1])
{
	const struct gw_edge_type *type = &meta->etypes[etype];
	snprintf(text, GW_EDGE_FOLDER_MAX + 1, "%s:%s:%s", meta->ntypes[type->src].name, type->name,
		 meta->ntypes[type->dst].name);
	return text;
}

/* Whether "src:rel:dst" is the edge type. Compares piece by piece instead of printing the type: every key of a JSON is
 * looked up this way, and with thousands of types the printing would take seconds. */
static bool is_etype(const struct gw_graph_meta *meta, const struct gw_edge_type *type, const char *text)
{
	const char *const pieces[] = {meta->ntypes[type->src].name, type->name, meta->ntypes[type->dst].name};
	for (int i = 0; i < 3; i++) {
		size_t length = strlen(pieces[i]);
		if (strncmp(text, pieces[i], length) != 0 || text[length] != (i < 2 ? ':' : '\0'))
			return false;
		text += length + 1;
	}
	return true;
}

gw_status gw_meta_etype(const struct gw_graph_meta *meta, const char *name, uint32_t *out)
{
	uint32_t matches = 0, last = 0;
	bool whole = strchr(name, ':') != NULL;
	for (uint32_t t = 0; t < meta->num_etypes; t++) {
		const struct gw_edge_type *type = &meta->etypes[t];
		if (whole ? is_etype(meta, type, name) : strcmp(type->name, name) == 0) {
			matches++;
			last = t;
		}
	}
	if (matches == 0)
		return fail_unknown(meta, true, name);
	if (matches > 1)
		return gw_fail(GW_NOT_FOUND, "graph \"%s\" has %u edge types called \"%.64s\": write src:%.64s:dst",
			       meta->graph_name, matches, name, name);
	*out = last;
	return GW_OK;
}

uint64_t gw_array_meta_row_bytes(const struct gw_array_meta *array)
{
	uint64_t bytes = gw_dtype_bytes(array->dtype);
	for (uint32_t i = 1; i < array->ndim; i++)
		bytes *= array->shape[i];
	return bytes;
}

uint64_t gw_array_meta_bytes(const struct gw_array_meta *array)
{
	return gw_array_meta_row_bytes(array) * (array->ndim ? array->shape[0] : 1);
}

bool gw_array_meta_same(const struct gw_array_meta *a, const struct gw_array_meta *b)
{
	return strcmp(a->key, b->key) == 0 && a->dtype == b->dtype && a->ndim == b->ndim && a->digest == b->digest &&
	       memcmp(a->shape, b->shape, sizeof(a->shape)) == 0;
}
