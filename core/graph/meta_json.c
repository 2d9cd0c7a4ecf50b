/* Reads mygraph.json; core/graph/meta_print.c writes it.
 *
 *   text -> jansson -> versions -> the text's digest -> types, ranges, columns -> gw_meta_finish -> arrays of each part
 *     -> the format's requirements
 *
 * The reader trusts nothing. A key that is missing, duplicate, unknown or of another type is GW_FORMAT, and the error
 * names it. A number out of range and a path that leaves the folder are GW_FORMAT too. In a newer minor version,
 * unknown keys and arrays are skipped. Then graph_id, which covers all arrays, cannot be recomputed; the reader accepts
 * it, because the text's digest covers it. Keys that DGL's JSON has too keep DGL's name and meaning.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/errors/log.h"
#include "core/graph/json.h"
#include "core/graph/meta.h"
#include "core/graph/meta_json_private.h"
#include "core/memory/alloc.h"

static const char *const known_keys[] = {
	"format",    "graph_name", "graph_id", "part_method", "num_parts", "num_nodes", "num_edges",
	"ntypes",    "etypes",     "node_map", "edge_map",    "order",     "relations", "indptr_columns",
	"transpose", "reverse",    "minor",    "json_digest", "units",     "originals", "replicas",
};

#define ETYPE_TEXT_MAX (GW_EDGE_FOLDER_MAX + 1)

static gw_status set_name(const char *what, const char *text, char out[GW_NAME_MAX + 1])
{
	gw_status status = gw_name_check(what, text);
	if (status != GW_OK)
		return meta_json_as_format(status);
	snprintf(out, GW_NAME_MAX + 1, "%s", text);
	return GW_OK;
}

/* Checks that every type of {"type": [a range for each part]} has as many ranges as the graph claims to have parts. It
 * runs before any allocation for that many parts, so that a short text cannot take much memory. */
static gw_status check_map(const json_t *root, const char *map_key, const json_t *types, uint64_t parts)
{
	json_t *map, *ranges;
	const char *type;
	gw_status status = gw_json_get(root, map_key, JSON_OBJECT, &map);
	if (status != GW_OK)
		return status;
	if (json_object_size(map) != json_object_size(types))
		return gw_fail(GW_FORMAT, "\"%s\" has %zu types, the graph has %zu", map_key, json_object_size(map),
			       json_object_size(types));
	json_object_foreach(map, type, ranges)
	{
		if (!json_is_array(ranges) || json_array_size(ranges) != parts)
			return gw_fail(GW_FORMAT, "\"%s\": \"%.200s\" has %zu ranges; the graph has %" PRIu64 " parts",
				       map_key, type, json_array_size(ranges), parts);
	}
	return GW_OK;
}

/* {"name": number}: numbers 0 to count - 1, each once. Sets names[number] = name, which the JSON owns. */
static gw_status read_numbering(const json_t *object, const char *key, const char **names, size_t count)
{
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)object, name, value)
	{
		uint64_t number;
		gw_status status = gw_json_count(value, name, count - 1, &number);
		if (status != GW_OK)
			return gw_context(status, "\"%s\"", key);
		if (names[number])
			return gw_fail(GW_FORMAT, "\"%s\": \"%.200s\" and \"%.200s\" have the same number", key,
				       names[number], name);
		names[number] = name;
	}
	return GW_OK;
}

static gw_status parse_etype(const struct gw_graph_meta *meta, const char *text, struct gw_edge_type *out)
{
	char copy[3 * GW_NAME_MAX + 3];
	if (strlen(text) >= sizeof(copy))
		return gw_fail(GW_FORMAT, "\"etypes\": \"%.200s\" is too long", text);
	snprintf(copy, sizeof(copy), "%s", text);
	char *first = strchr(copy, ':');
	char *second = first ? strchr(first + 1, ':') : NULL;
	if (!second || strchr(second + 1, ':'))
		return gw_fail(GW_FORMAT, "\"etypes\": \"%s\" is not src:rel:dst", text);
	*first = *second = '\0';
	gw_status status = set_name("edge type", first + 1, out->name);
	if (status == GW_OK)
		status = meta_json_as_format(gw_meta_ntype(meta, copy, &out->src));
	if (status == GW_OK)
		status = meta_json_as_format(gw_meta_ntype(meta, second + 1, &out->dst));
	return status == GW_OK ? GW_OK : gw_context(status, "\"etypes\": \"%s\"", text);
}

static gw_status read_types(const json_t *ntypes, const json_t *etypes, struct gw_graph_meta *meta)
{
	const char **names = gw_calloc((size_t)meta->num_ntypes + meta->num_etypes, sizeof(*names));
	if (!names)
		return GW_NO_MEMORY;
	gw_status status = read_numbering(ntypes, "ntypes", names, meta->num_ntypes);
	for (uint32_t t = 0; status == GW_OK && t < meta->num_ntypes; t++)
		status = set_name("node type", names[t], meta->ntypes[t].name);
	const char **edge_names = names + meta->num_ntypes;
	if (status == GW_OK)
		status = read_numbering(etypes, "etypes", edge_names, meta->num_etypes);
	for (uint32_t t = 0; status == GW_OK && t < meta->num_etypes; t++)
		status = parse_etype(meta, edge_names[t], &meta->etypes[t]);
	gw_free(names);
	return status;
}

/* Reads [[0, 10], [10, 25]]: the range of each part. */
static gw_status read_ranges(const json_t *map, const char *map_key, const char *type, uint32_t parts, uint64_t *starts,
			     uint64_t *count)
{
	json_t *ranges;
	gw_status status = gw_json_get(map, type, JSON_ARRAY, &ranges); /* check_map has checked its size */
	for (uint32_t p = 0; status == GW_OK && p < parts; p++) {
		const json_t *range = json_array_get(ranges, p);
		uint64_t begin;
		if (!json_is_array(range) || json_array_size(range) != 2) {
			status = gw_fail(GW_FORMAT, "\"%s\": the range of part %u is not [begin, end]", type, p);
			break;
		}
		status = gw_json_count(json_array_get(range, 0), type, GW_NONE - 1, &begin);
		if (status == GW_OK)
			status = gw_json_count(json_array_get(range, 1), type, GW_NONE - 1, &starts[p + 1]);
		if (status == GW_OK && begin != starts[p])
			status = gw_fail(GW_FORMAT, "\"%s\": part %u starts at %" PRIu64 ", not at %" PRIu64, type, p,
					 begin, starts[p]);
	}
	if (status != GW_OK)
		return gw_context(status, "\"%s\"", map_key);
	*count = starts[parts];
	return GW_OK;
}

static gw_status read_maps(const json_t *root, struct gw_graph_meta *meta)
{
	json_t *nodes = NULL, *edges = NULL;
	gw_status status = gw_json_get(root, "node_map", JSON_OBJECT, &nodes);
	if (status == GW_OK)
		status = gw_json_get(root, "edge_map", JSON_OBJECT, &edges);
	for (uint32_t t = 0; status == GW_OK && t < meta->num_ntypes; t++)
		status = read_ranges(nodes, "node_map", meta->ntypes[t].name, meta->num_parts, meta->ntypes[t].starts,
				     &meta->ntypes[t].count);
	for (uint32_t t = 0; status == GW_OK && t < meta->num_etypes; t++) {
		char text[ETYPE_TEXT_MAX];
		status = read_ranges(edges, "edge_map", gw_meta_etype_text(meta, t, text), meta->num_parts,
				     meta->etypes[t].starts, &meta->etypes[t].count);
	}
	return status;
}

/* Reads ["src"], ["time:NAME", "src"] or ["rel", "src"]. */
static gw_status read_order(const json_t *value, const char *etype, struct gw_edge_type *type)
{
	const char *first = json_string_value(json_array_get(value, 0));
	const char *last = json_string_value(json_array_get(value, json_array_size(value) - 1));
	if (first && last && strcmp(last, "src") == 0) {
		if (json_array_size(value) == 1) {
			type->order = GW_ORDER_SRC;
			return GW_OK;
		}
		if (json_array_size(value) == 2 && strcmp(first, "rel") == 0) {
			type->order = GW_ORDER_REL_SRC;
			return GW_OK;
		}
		if (json_array_size(value) == 2 && strncmp(first, "time:", 5) == 0) {
			type->order = GW_ORDER_TIME_SRC;
			return set_name("time column", first + 5, type->time_name);
		}
	}
	return gw_fail(GW_FORMAT,
		       "\"order\": \"%s\" is not one of [\"src\"], [\"time:NAME\", \"src\"], [\"rel\", \"src\"]",
		       etype);
}

/* Reads the optional objects {"src:rel:dst": value}. */
static gw_status read_etype_keys(const json_t *root, struct gw_graph_meta *meta)
{
	static const char *const keys[] = {"order", "relations", "reverse"};
	for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
		json_t *object = json_object_get(root, keys[k]);
		const char *name;
		json_t *value;
		if (!object)
			continue;
		if (!json_is_object(object))
			return gw_fail(GW_FORMAT, "\"%s\" is not an object", keys[k]);
		json_object_foreach(object, name, value)
		{
			uint32_t t;
			uint64_t number = 0;
			gw_status status = strchr(name, ':') ? gw_meta_etype(meta, name, &t)
							     : gw_fail(GW_FORMAT, "\"%.64s\" is not src:rel:dst", name);
			if (status != GW_OK) {
				/* continues at gw_context below */
			} else if (k == 0) {
				status = read_order(value, name, &meta->etypes[t]);
			} else if (k == 1) {
				status = gw_json_count(value, name, UINT32_MAX, &number);
				meta->etypes[t].relations = (uint32_t)number;
			} else if (!json_is_string(value) || !strchr(json_string_value(value), ':')) {
				status = gw_fail(GW_FORMAT, "\"%s\": not an edge type, src:rel:dst", name);
			} else {
				status = gw_meta_etype(meta, json_string_value(value), &meta->etypes[t].reverse);
			}
			if (status != GW_OK)
				return gw_context(meta_json_as_format(status), "\"%s\"", keys[k]);
		}
	}
	return GW_OK;
}

/* Reads ["src:rel:dst", ...]: the types that are stored transposed. */
static gw_status read_transpose(const json_t *root, struct gw_graph_meta *meta)
{
	json_t *list = json_object_get(root, "transpose");
	if (!list)
		return GW_OK;
	if (!json_is_array(list))
		return gw_fail(GW_FORMAT, "\"transpose\" is not an array");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *name = json_string_value(json_array_get(list, i));
		uint32_t t;
		if (!name || !strchr(name, ':'))
			return gw_fail(GW_FORMAT, "\"transpose\": entry %zu is not src:rel:dst", i);
		gw_status status = gw_meta_etype(meta, name, &t);
		if (status != GW_OK)
			return gw_context(meta_json_as_format(status), "\"transpose\"");
		if (meta->etypes[t].out_column != GW_TYPE_NONE)
			return gw_fail(GW_FORMAT, "\"transpose\": \"%s\" occurs twice", name);
		meta->etypes[t].out_column = 0; /* gw_meta_finish sets the number */
	}
	return GW_OK;
}

/* Checks {"paper": ["author:writes:paper", ...]} against the columns of gw_meta_finish, because indptr is written in
 * this order. */
static gw_status check_columns(const json_t *root, const struct gw_graph_meta *meta)
{
	json_t *object, *list;
	const char *name;
	gw_status status = gw_json_get(root, "indptr_columns", JSON_OBJECT, &object);
	if (status != GW_OK)
		return status;
	json_object_foreach(object, name, list)
	{
		uint32_t t;
		status = gw_meta_ntype(meta, name, &t);
		if (status != GW_OK)
			return gw_context(meta_json_as_format(status), "\"indptr_columns\"");
		if (!json_is_array(list))
			return gw_fail(GW_FORMAT, "\"indptr_columns\": \"%s\": not a list of edge types", name);
	}
	for (uint32_t t = 0; status == GW_OK && t < meta->num_ntypes; t++) {
		const struct gw_node_type *type = &meta->ntypes[t];
		list = json_object_get(object, type->name);
		bool same = json_array_size(list) == type->columns; /* the size of a value that is no array is 0 */
		for (uint32_t c = 0; same && c < type->columns; c++) {
			char text[ETYPE_TEXT_MAX];
			name = json_string_value(json_array_get(list, c));
			same = name && strcmp(name, gw_meta_etype_text(meta, type->column_edge_types[c], text)) == 0;
		}
		if (!same)
			status = gw_fail(GW_FORMAT,
					 "\"indptr_columns\": \"%s\": not the edge types that end there, in order",
					 type->name);
	}
	return status;
}

static bool is_newer(const struct gw_graph_meta *meta)
{
	return meta->minor > GW_FORMAT_MINOR;
}

/* newer: unknown keys are allowed. */
static gw_status read_array(const json_t *value, const char *key, bool newer, struct gw_array_meta *array,
			    const char **file)
{
	const char *dtype;
	json_t *shape;
	*file = "";
	if (!json_is_object(value))
		return gw_fail(GW_FORMAT, "not an object");
	gw_status status = gw_json_text(value, "file", 4096, file);
	if (status == GW_OK && !gw_json_file_is_inside(*file))
		status = gw_fail(GW_FORMAT,
				 "\"file\": \"%.200s\" is not the path of an .npy file below the JSON's folder", *file);
	if (status == GW_OK)
		status = gw_json_text(value, "dtype", 32, &dtype);
	if (status == GW_OK)
		status = meta_json_as_format(gw_dtype_parse(dtype, &array->dtype));
	if (status == GW_OK)
		status = gw_json_hex(value, "digest", &array->digest);
	if (status == GW_OK)
		status = gw_json_get(value, "shape", JSON_ARRAY, &shape);
	if (status != GW_OK)
		return status;
	if (json_object_size(value) != 4 && !newer)
		return gw_fail(GW_FORMAT, "a key besides file, dtype, shape and digest");
	if (json_array_size(shape) == 0 || json_array_size(shape) > GW_DIMS_MAX)
		return gw_fail(GW_FORMAT, "\"shape\" has %zu dimensions; 1 to %d are possible", json_array_size(shape),
			       GW_DIMS_MAX);
	array->ndim = (uint32_t)json_array_size(shape);
	for (uint32_t i = 0; status == GW_OK && i < array->ndim; i++)
		status = gw_json_count(json_array_get(shape, i), "shape", GW_NONE - 1, &array->shape[i]);
	array->key = (char *)key;
	return status;
}

static int compare_keys(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The keys of an object, sorted: arrays added in this order need not be moved. Free with gw_free. */
static const char **sorted_keys(const json_t *object)
{
	const char *key, **keys = gw_calloc(json_object_size(object), sizeof(*keys));
	json_t *value;
	size_t count = 0;
	if (!keys)
		return NULL;
	json_object_foreach((json_t *)object, key, value) keys[count++] = key;
	qsort(keys, count, sizeof(*keys), compare_keys);
	return keys;
}

/* Collects the keys of arrays that this program does not know, by their key, dtype or the keys inside. A key that is
 * unknown in one part counts as unknown in all parts. */
static gw_status find_unknown(const json_t *root, uint32_t part, const struct gw_graph_meta *meta, json_t *unknown)
{
	char part_key[32];
	const char *key, *file;
	json_t *value;
	struct gw_error_kept kept;
	gw_status status = GW_OK;
	gw_error_keep(&kept);
	snprintf(part_key, sizeof(part_key), "part-%u", part);
	json_object_foreach(json_object_get(root, part_key), key, value)
	{
		struct gw_array_meta array = {0};
		status = read_array(value, key, true, &array, &file);
		if (status == GW_OK)
			status = gw_meta_check_array(meta, part, &array);
		if (status == GW_NO_MEMORY)
			return status;
		if (status != GW_OK && json_object_set_new(unknown, key, json_true()) != 0)
			return gw_fail(GW_NO_MEMORY, "no memory for the unknown keys");
	}
	gw_error_restore(&kept);
	return GW_OK;
}

static gw_status read_part(const json_t *root, uint32_t part, const json_t *unknown, struct gw_graph_meta *meta)
{
	char part_key[32];
	json_t *arrays;
	snprintf(part_key, sizeof(part_key), "part-%u", part);
	gw_status status = gw_json_get(root, part_key, JSON_OBJECT, &arrays);
	if (status != GW_OK)
		return status;
	const char **keys = sorted_keys(arrays);
	if (!keys)
		return GW_NO_MEMORY;
	for (size_t i = 0; status == GW_OK && i < json_object_size(arrays); i++) {
		struct gw_array_meta array = {0};
		const char *file;
		if (json_object_get(unknown, keys[i]))
			continue;
		status = read_array(json_object_get(arrays, keys[i]), keys[i], is_newer(meta), &array, &file);
		if (status == GW_OK) {
			array.file = (char *)file; /* gw_meta_add_array copies it */
			status = meta_json_as_format(gw_meta_add_array(meta, part, &array));
		}
		if (status != GW_OK)
			gw_context(status, "\"%s\": \"%.200s\"", part_key, keys[i]);
	}
	gw_free(keys);
	return status;
}

static gw_status read_parts(const json_t *root, struct gw_graph_meta *meta)
{
	json_t *unknown = json_object();
	gw_status status = unknown ? GW_OK : gw_fail(GW_NO_MEMORY, "no memory for the arrays' keys");
	for (uint32_t p = 0; status == GW_OK && is_newer(meta) && p < meta->num_parts; p++)
		status = find_unknown(root, p, meta, unknown);
	for (uint32_t p = 0; status == GW_OK && p < meta->num_parts; p++)
		status = read_part(root, p, unknown, meta);
	if (status == GW_OK && is_newer(meta))
		gw_log(GW_LOG_INFO,
		       "graph \"%s\": minor version %u is newer than this program's, %d: "
		       "%zu arrays that are unknown are ignored",
		       meta->graph_name, meta->minor, GW_FORMAT_MINOR, json_object_size(unknown));
	json_decref(unknown);
	return status;
}

static gw_status check_keys(const json_t *root, uint32_t parts)
{
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)root, key, value)
	{
		bool known = false;
		for (size_t k = 0; k < sizeof(known_keys) / sizeof(known_keys[0]); k++)
			known |= strcmp(key, known_keys[k]) == 0;
		if (!known && strncmp(key, "part-", 5) == 0 && strspn(key + 5, "0123456789") == strlen(key + 5) &&
		    strlen(key) < 12) {
			unsigned long number = strtoul(key + 5, NULL, 10);
			char again[32];
			snprintf(again, sizeof(again), "part-%lu", number);
			known = number < parts && strcmp(again, key) == 0;
		}
		if (!known)
			return gw_fail(GW_FORMAT, "\"%.200s\" is a key that %s does not have", key, GW_FORMAT_NAME);
	}
	return GW_OK;
}

static gw_status check_format(const json_t *root, uint64_t *minor)
{
	const char *format;
	*minor = 0;
	if (!json_is_object(root))
		return gw_fail(GW_FORMAT, "not a JSON object");
	gw_status status = gw_json_text(root, "format", 64, &format);
	if (status == GW_OK && strcmp(format, GW_FORMAT_NAME) != 0)
		status = gw_fail(GW_VERSION,
				 "\"format\": \"%s\"; this program reads %s: take the Graphwire that wrote it, "
				 "or build the graph again with this one",
				 format, GW_FORMAT_NAME);
	return status == GW_OK ? gw_json_minor(root, minor) : status;
}

static gw_status create_from(const json_t *root, uint64_t minor, bool book, struct gw_graph_meta **out)
{
	const char *name, *method;
	uint64_t parts;
	json_t *ntypes, *etypes;
	gw_status status = gw_json_text(root, "graph_name", GW_NAME_MAX, &name);
	if (status == GW_OK)
		status = gw_json_text(root, "part_method", GW_NAME_MAX, &method);
	if (status == GW_OK)
		status = gw_json_number(root, "num_parts", GW_PARTS_MAX, &parts);
	if (status == GW_OK)
		status = gw_json_get(root, "ntypes", JSON_OBJECT, &ntypes);
	if (status == GW_OK)
		status = gw_json_get(root, "etypes", JSON_OBJECT, &etypes);
	if (status == GW_OK && minor <= GW_FORMAT_MINOR)
		status = check_keys(root, book ? 0 : (uint32_t)parts);
	if (status == GW_OK)
		status = check_map(root, "node_map", ntypes, parts);
	if (status == GW_OK)
		status = check_map(root, "edge_map", etypes, parts);
	if (status != GW_OK)
		return status;
	if (json_object_size(ntypes) > GW_TYPES_MAX || json_object_size(etypes) > GW_TYPES_MAX)
		return gw_fail(GW_FORMAT, "\"ntypes\" or \"etypes\": more than %d types", GW_TYPES_MAX);
	status = meta_json_as_format(gw_meta_create(name, (uint32_t)parts, (uint32_t)json_object_size(ntypes),
						    (uint32_t)json_object_size(etypes), out));
	if (status != GW_OK)
		return status;
	(*out)->minor = (uint32_t)minor;
	snprintf((*out)->part_method, sizeof((*out)->part_method), "%s", method);
	return read_types(ntypes, etypes, *out);
}

/* Checks the totals (num_nodes and num_edges, which DGL's readers expect), and reads the graph's id. */
static gw_status check_totals(const json_t *root, struct gw_graph_meta *meta)
{
	uint64_t nodes, edges, found_nodes = 0, found_edges = 0;
	gw_status status = gw_json_number(root, "num_nodes", GW_NONE - 1, &nodes);
	if (status == GW_OK)
		status = gw_json_number(root, "num_edges", GW_NONE - 1, &edges);
	if (status == GW_OK)
		status = gw_json_hex(root, "graph_id", &meta->graph_id);
	if (status != GW_OK)
		return status;
	for (uint32_t t = 0; t < meta->num_ntypes; t++)
		found_nodes += meta->ntypes[t].count;
	for (uint32_t t = 0; t < meta->num_etypes; t++)
		found_edges += meta->etypes[t].count;
	if (nodes != found_nodes)
		return gw_fail(GW_FORMAT, "\"num_nodes\" is %" PRIu64 ", the ranges of \"node_map\" hold %" PRIu64,
			       nodes, found_nodes);
	if (edges != found_edges)
		return gw_fail(GW_FORMAT, "\"num_edges\" is %" PRIu64 ", the ranges of \"edge_map\" hold %" PRIu64,
			       edges, found_edges);
	return GW_OK;
}

static gw_status read_root(const json_t *root, const char *text, size_t bytes, bool book, struct gw_graph_meta **out)
{
	uint64_t minor;
	gw_status status = check_format(root, &minor);
	if (status == GW_OK)
		status = gw_json_digest_check(text, bytes, minor > 0 || json_object_get(root, GW_JSON_DIGEST_KEY));
	if (status == GW_OK)
		status = create_from(root, minor, book, out);
	if (status == GW_OK)
		status = read_maps(root, *out);
	if (status == GW_OK)
		status = read_etype_keys(root, *out);
	if (status == GW_OK)
		status = read_transpose(root, *out);
	if (status == GW_OK)
		status = meta_json_as_format(gw_meta_finish(*out));
	if (status == GW_OK)
		status = check_columns(root, *out);
	if (status == GW_OK)
		status = meta_json_units(root, *out);
	if (status == GW_OK)
		status = meta_json_originals(root, *out);
	if (status == GW_OK)
		status = meta_json_replicas(root, *out);
	if (status == GW_OK && !book)
		status = read_parts(root, *out);
	if (status == GW_OK)
		status = check_totals(root, *out);
	if (status == GW_OK && !book)
		status = meta_json_as_format(gw_meta_check_whole(*out));
	if (status == GW_FORMAT && minor > GW_FORMAT_MINOR)
		gw_context(status, "minor version %" PRIu64 ", newer than this program's, %d", minor, GW_FORMAT_MINOR);
	return status;
}

static gw_status parse(const char *text, size_t bytes, const char *name, bool book, struct gw_graph_meta **out)
{
	json_error_t error;
	*out = NULL;
	if (bytes > GW_JSON_BYTES_MAX)
		return gw_fail(GW_LIMIT, "%s: longer than %u bytes: not a graph's JSON", name, GW_JSON_BYTES_MAX);
	json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
	if (!root && json_error_code(&error) == json_error_out_of_memory)
		return gw_fail(GW_NO_MEMORY, "%s: no memory for the JSON", name);
	if (!root)
		return gw_fail(GW_FORMAT, "%s: line %d, column %d: %s", name, error.line, error.column, error.text);
	struct gw_graph_meta *meta = NULL;
	gw_status status = read_root(root, text, bytes, book, &meta);
	json_decref(root);
	if (status != GW_OK) {
		gw_meta_destroy(meta);
		return gw_context(status, "%s", name);
	}
	*out = meta;
	return GW_OK;
}

gw_status gw_meta_parse(const char *text, size_t bytes, const char *name, struct gw_graph_meta **out)
{
	return parse(text, bytes, name, false, out);
}

gw_status gw_meta_parse_book(const char *text, size_t bytes, const char *name, struct gw_graph_meta **out)
{
	return parse(text, bytes, name, true, out);
}
