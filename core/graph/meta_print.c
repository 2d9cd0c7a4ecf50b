/* Writes mygraph.json; core/graph/meta_json.c reads it.
 *
 *   values by jansson, one top-level key at a time -> lines: one per type and array, because people read this file
 *
 * Fails only if memory runs out. It never omits a key: the first value that cannot be created fails the call.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/json.h"
#include "core/graph/meta.h"
#include "core/memory/alloc.h"

#define ETYPE_TEXT_MAX (GW_EDGE_FOLDER_MAX + 1)

struct printer {
	const struct gw_graph_meta *meta;
	char *text;
	size_t used, room;
	bool failed;
};

static void print_put(struct printer *p, const char *text, size_t bytes)
{
	if (p->failed)
		return;
	if (bytes >= p->room - p->used) {
		size_t room = 2 * (p->used + bytes) + 4096;
		char *grown = gw_realloc(p->text, room, 1);
		if (!grown) {
			p->failed = true;
			return;
		}
		p->text = grown;
		p->room = room;
	}
	memcpy(p->text + p->used, text, bytes);
	p->used += bytes;
	p->text[p->used] = '\0';
}

static void put_text(struct printer *p, const char *text)
{
	print_put(p, text, strlen(text));
}

static int put_piece(const char *text, size_t bytes, void *printer)
{
	print_put(printer, text, bytes);
	return 0;
}

/* Prints a value in one line, and frees it. NULL: the value could not be created. */
static void put_value(struct printer *p, json_t *value)
{
	if (!value || json_dump_callback(value, put_piece, p, JSON_COMPACT | JSON_ENCODE_ANY) != 0)
		p->failed = true;
	json_decref(value);
}

/* Names and keys need no escapes, because gw_name_check restricts them. */
static void put_key(struct printer *p, const char *indent, const char *key, bool first)
{
	put_text(p, first ? "\n" : ",\n");
	put_text(p, indent);
	put_text(p, "\"");
	put_text(p, key);
	put_text(p, "\": ");
}

static void put_top(struct printer *p, const char *key, json_t *value)
{
	put_key(p, " ", key, false);
	put_value(p, value);
}

/* Appends to an array whose creation may have failed. */
static json_t *print_with(json_t *list, json_t *item)
{
	if (list && json_array_append_new(list, item) == 0)
		return list;
	if (!list)
		json_decref(item);
	json_decref(list);
	return NULL;
}

static json_t *print_ranges(const uint64_t *starts, uint32_t parts)
{
	json_t *list = json_array();
	for (uint32_t p = 0; p < parts; p++)
		list = print_with(list, json_pack("[II]", (json_int_t)starts[p], (json_int_t)starts[p + 1]));
	return list;
}

static json_t *print_columns(const struct gw_graph_meta *meta, const struct gw_node_type *type)
{
	json_t *list = json_array();
	for (uint32_t c = 0; c < type->columns; c++) {
		char text[ETYPE_TEXT_MAX];
		list = print_with(list, json_string(gw_meta_etype_text(meta, type->column_edge_types[c], text)));
	}
	return list;
}

static void put_ntypes(struct printer *p)
{
	const struct gw_graph_meta *meta = p->meta;
	put_key(p, " ", "ntypes", false);
	put_text(p, "{");
	for (uint32_t t = 0; t < meta->num_ntypes; t++) {
		put_key(p, "  ", meta->ntypes[t].name, t == 0);
		put_value(p, json_integer(t));
	}
	put_text(p, "}");
	put_key(p, " ", "node_map", false);
	put_text(p, "{");
	for (uint32_t t = 0; t < meta->num_ntypes; t++) {
		put_key(p, "  ", meta->ntypes[t].name, t == 0);
		put_value(p, print_ranges(meta->ntypes[t].starts, meta->num_parts));
	}
	put_text(p, "}");
	put_key(p, " ", "indptr_columns", false);
	put_text(p, "{");
	for (uint32_t t = 0; t < meta->num_ntypes; t++) {
		put_key(p, "  ", meta->ntypes[t].name, t == 0);
		put_value(p, print_columns(meta, &meta->ntypes[t]));
	}
	put_text(p, "}");
}

enum etype_key { NUMBER, RANGES, ORDER, RELATIONS, REVERSE, ETYPE_KEYS };

/* *there is false if the type has no such value. */
static json_t *etype_value(const struct gw_graph_meta *meta, uint32_t t, enum etype_key key, bool *there)
{
	const struct gw_edge_type *type = &meta->etypes[t];
	char text[ETYPE_TEXT_MAX];
	*there = key != RELATIONS && key != REVERSE;
	switch (key) {
	case NUMBER:
		return json_integer(t);
	case RANGES:
		return print_ranges(type->starts, meta->num_parts);
	case ORDER:
		snprintf(text, sizeof(text), "time:%s", type->time_name);
		if (type->order == GW_ORDER_SRC)
			return json_pack("[s]", "src");
		return json_pack("[ss]", type->order == GW_ORDER_TIME_SRC ? text : "rel", "src");
	case RELATIONS:
		*there = type->relations > 0;
		return *there ? json_integer(type->relations) : NULL;
	default:
		*there = type->reverse != GW_TYPE_NONE;
		return *there ? json_string(gw_meta_etype_text(meta, type->reverse, text)) : NULL;
	}
}

static void put_etypes(struct printer *p)
{
	static const char *const keys[ETYPE_KEYS] = {"etypes", "edge_map", "order", "relations", "reverse"};
	for (enum etype_key key = NUMBER; key < ETYPE_KEYS; key++) {
		bool first = true;
		put_key(p, " ", keys[key], false);
		put_text(p, "{");
		for (uint32_t t = 0; t < p->meta->num_etypes; t++) {
			char text[ETYPE_TEXT_MAX];
			bool there;
			json_t *value = etype_value(p->meta, t, key, &there);
			if (!there)
				continue;
			put_key(p, "  ", gw_meta_etype_text(p->meta, t, text), first);
			put_value(p, value);
			first = false;
		}
		put_text(p, "}");
	}
	json_t *list = json_array();
	for (uint32_t t = 0; t < p->meta->num_etypes; t++) {
		char text[ETYPE_TEXT_MAX];
		if (p->meta->etypes[t].out_column != GW_TYPE_NONE)
			list = print_with(list, json_string(gw_meta_etype_text(p->meta, t, text)));
	}
	put_top(p, "transpose", list);
}

static json_t *print_hex(uint64_t value)
{
	char text[17];
	snprintf(text, sizeof(text), "%016" PRIx64, value);
	return json_string(text);
}

static void put_units(struct printer *p)
{
	if (p->meta->num_units == 0)
		return;
	put_key(p, " ", "units", false);
	put_text(p, "{");
	for (uint32_t i = 0; i < p->meta->num_units; i++) {
		put_key(p, "  ", p->meta->units[i].key, i == 0);
		put_value(p, json_string(gw_time_unit_text(p->meta->units[i].unit)));
	}
	put_text(p, "}");
}

static json_t *print_original(const struct gw_original_meta *original)
{
	const char *dtype = gw_dtype_name(original->dtype);
	return original->columns ? json_pack("{sssI}", "dtype", dtype, "columns", (json_int_t)original->columns)
				 : json_pack("{ss}", "dtype", dtype);
}

static void put_originals(struct printer *p)
{
	if (p->meta->num_originals == 0)
		return;
	put_key(p, " ", "originals", false);
	put_text(p, "{");
	for (uint32_t i = 0; i < p->meta->num_originals; i++) {
		put_key(p, "  ", p->meta->originals[i].key, i == 0);
		put_value(p, print_original(&p->meta->originals[i]));
	}
	put_text(p, "}");
}

static void put_replicas(struct printer *p)
{
	if (p->meta->num_replicas == 0)
		return;
	put_key(p, " ", "replicas", false);
	put_text(p, "{");
	for (uint32_t i = 0; i < p->meta->num_replicas; i++) {
		const struct gw_replica_meta *replicas = &p->meta->replicas[i];
		put_key(p, "  ", replicas->key, i == 0);
		put_value(p, json_pack("{ssso}", "by", replicas->by, "of", print_hex(replicas->of)));
	}
	put_text(p, "}");
}

static json_t *array_object(const struct gw_array_meta *array)
{
	json_t *shape = json_array();
	for (uint32_t i = 0; i < array->ndim; i++)
		shape = print_with(shape, json_integer((json_int_t)array->shape[i]));
	return json_pack("{sssssoso}", "file", array->file, "dtype", gw_dtype_name(array->dtype), "shape", shape,
			 "digest", print_hex(array->digest));
}

static void put_part(struct printer *p, uint32_t number)
{
	const struct gw_part_meta *part = &p->meta->parts[number];
	char key[32];
	snprintf(key, sizeof(key), "part-%u", number);
	put_key(p, " ", key, false);
	put_text(p, "{");
	for (uint32_t i = 0; i < part->count; i++) {
		put_key(p, "  ", part->arrays[i].key, i == 0);
		put_value(p, array_object(&part->arrays[i]));
	}
	put_text(p, "}");
}

static gw_status print_book_and_parts(const struct gw_graph_meta *meta, uint32_t parts, char **text)
{
	struct printer p = {.meta = meta};
	uint64_t nodes = 0, edges = 0;
	for (uint32_t t = 0; t < meta->num_ntypes; t++)
		nodes += meta->ntypes[t].count;
	for (uint32_t t = 0; t < meta->num_etypes; t++)
		edges += meta->etypes[t].count;
	put_text(&p, "{");
	put_key(&p, " ", "format", true);
	put_value(&p, json_string(GW_FORMAT_NAME));
	if (meta->minor > 0) { /* version 0.1 had neither key */
		put_top(&p, "minor", json_integer(meta->minor));
		put_top(&p, GW_JSON_DIGEST_KEY, json_string(GW_JSON_DIGEST_NONE));
	}
	put_top(&p, "graph_name", json_string(meta->graph_name));
	put_top(&p, "graph_id", print_hex(meta->graph_id));
	put_top(&p, "part_method", json_string(meta->part_method));
	put_top(&p, "num_parts", json_integer(meta->num_parts));
	put_top(&p, "num_nodes", json_integer((json_int_t)nodes));
	put_top(&p, "num_edges", json_integer((json_int_t)edges));
	put_ntypes(&p);
	put_etypes(&p);
	put_units(&p);
	put_originals(&p);
	put_replicas(&p);
	for (uint32_t part = 0; part < parts; part++)
		put_part(&p, part);
	put_text(&p, "\n}\n");
	*text = NULL;
	if (p.failed) {
		gw_free(p.text);
		return gw_fail(GW_NO_MEMORY, "no memory to print the JSON of graph \"%s\"", meta->graph_name);
	}
	if (meta->minor > 0)
		gw_json_digest_set(p.text, p.used);
	*text = p.text;
	return GW_OK;
}

gw_status gw_meta_print(const struct gw_graph_meta *meta, char **text)
{
	return print_book_and_parts(meta, meta->num_parts, text);
}

gw_status gw_meta_print_book(const struct gw_graph_meta *meta, char **text)
{
	return print_book_and_parts(meta, 0, text);
}
