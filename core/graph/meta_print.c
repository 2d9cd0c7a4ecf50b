/* mygraph.json printed: the way back from core/graph/meta_json.c. Fails only for want of memory. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/graph/meta.h"

#define ETYPE_TEXT_MAX (GW_EDGE_FOLDER_MAX + 1)

static json_t *numbering(const struct gw_graph_meta *meta, bool edges)
{
	json_t *object = json_object();
	for (uint32_t t = 0; t < (edges ? meta->num_etypes : meta->num_ntypes); t++) {
		char text[ETYPE_TEXT_MAX];
		json_object_set_new(object, edges ? gw_meta_etype_text(meta, t, text) : meta->ntypes[t].name,
				    json_integer(t));
	}
	return object;
}

static json_t *ranges(const uint64_t *starts, uint32_t parts)
{
	json_t *list = json_array();
	for (uint32_t p = 0; p < parts; p++)
		json_array_append_new(list, json_pack("[II]", (json_int_t)starts[p], (json_int_t)starts[p + 1]));
	return list;
}

static json_t *range_map(const struct gw_graph_meta *meta, bool edges)
{
	json_t *object = json_object();
	for (uint32_t t = 0; t < (edges ? meta->num_etypes : meta->num_ntypes); t++) {
		char text[ETYPE_TEXT_MAX];
		if (edges)
			json_object_set_new(object, gw_meta_etype_text(meta, t, text),
					    ranges(meta->etypes[t].starts, meta->num_parts));
		else
			json_object_set_new(object, meta->ntypes[t].name,
					    ranges(meta->ntypes[t].starts, meta->num_parts));
	}
	return object;
}

static json_t *columns(const struct gw_graph_meta *meta)
{
	json_t *object = json_object();
	for (uint32_t t = 0; t < meta->num_ntypes; t++) {
		json_t *list = json_array();
		for (uint32_t c = 0; c < meta->ntypes[t].columns; c++) {
			char text[ETYPE_TEXT_MAX];
			json_array_append_new(list, json_string(gw_meta_etype_text(
							    meta, meta->ntypes[t].column_edge_types[c], text)));
		}
		json_object_set_new(object, meta->ntypes[t].name, list);
	}
	return object;
}

static void print_etype_keys(const struct gw_graph_meta *meta, json_t *root)
{
	json_t *order = json_object(), *relations = json_object(), *reverse = json_object(), *transpose = json_array();
	for (uint32_t t = 0; t < meta->num_etypes; t++) {
		const struct gw_edge_type *type = &meta->etypes[t];
		char text[ETYPE_TEXT_MAX], other[ETYPE_TEXT_MAX], time[GW_NAME_MAX + 6];
		gw_meta_etype_text(meta, t, text);
		snprintf(time, sizeof(time), "time:%s", type->time_name);
		json_object_set_new(order, text,
				    type->order == GW_ORDER_SRC        ? json_pack("[s]", "src")
				    : type->order == GW_ORDER_TIME_SRC ? json_pack("[ss]", time, "src")
								       : json_pack("[ss]", "rel", "src"));
		if (type->relations > 0)
			json_object_set_new(relations, text, json_integer(type->relations));
		if (type->reverse != GW_TYPE_NONE)
			json_object_set_new(reverse, text, json_string(gw_meta_etype_text(meta, type->reverse, other)));
		if (type->out_column != GW_TYPE_NONE)
			json_array_append_new(transpose, json_string(text));
	}
	json_object_set_new(root, "order", order);
	json_object_set_new(root, "relations", relations);
	json_object_set_new(root, "reverse", reverse);
	json_object_set_new(root, "transpose", transpose);
}

static json_t *array_object(const struct gw_array_meta *array)
{
	char digest[17];
	json_t *shape = json_array();
	for (uint32_t i = 0; i < array->ndim; i++)
		json_array_append_new(shape, json_integer((json_int_t)array->shape[i]));
	snprintf(digest, sizeof(digest), "%016" PRIx64, array->digest);
	return json_pack("{sssssoss}", "file", array->file, "dtype", gw_dtype_name(array->dtype), "shape", shape,
			 "digest", digest);
}

static json_t *build_root(const struct gw_graph_meta *meta)
{
	uint64_t nodes = 0, edges = 0;
	char id[17];
	for (uint32_t t = 0; t < meta->num_ntypes; t++)
		nodes += meta->ntypes[t].count;
	for (uint32_t t = 0; t < meta->num_etypes; t++)
		edges += meta->etypes[t].count;
	snprintf(id, sizeof(id), "%016" PRIx64, meta->graph_id);
	json_t *root =
		json_pack("{ss ss ss ss sI sI sI so so so so so}", "format", GW_FORMAT_NAME, "graph_name",
			  meta->graph_name, "graph_id", id, "part_method", meta->part_method, "num_parts",
			  (json_int_t)meta->num_parts, "num_nodes", (json_int_t)nodes, "num_edges", (json_int_t)edges,
			  "ntypes", numbering(meta, false), "etypes", numbering(meta, true), "node_map",
			  range_map(meta, false), "edge_map", range_map(meta, true), "indptr_columns", columns(meta));
	if (!root)
		return NULL;
	print_etype_keys(meta, root);
	for (uint32_t p = 0; p < meta->num_parts; p++) {
		char key[32];
		json_t *arrays = json_object();
		for (uint32_t i = 0; i < meta->parts[p].count; i++)
			json_object_set_new(arrays, meta->parts[p].arrays[i].key,
					    array_object(&meta->parts[p].arrays[i]));
		snprintf(key, sizeof(key), "part-%u", p);
		json_object_set_new(root, key, arrays);
	}
	return root;
}

gw_status gw_meta_print(const struct gw_graph_meta *meta, char **text)
{
	*text = NULL;
	json_t *root = build_root(meta);
	char *dump = root ? json_dumps(root, JSON_INDENT(1)) : NULL;
	json_decref(root);
	if (!dump)
		return gw_fail(GW_NO_MEMORY, "no memory to print the JSON of graph \"%s\"", meta->graph_name);
	*text = gw_strdup(dump);
	free(dump);
	return *text ? GW_OK : GW_NO_MEMORY;
}
