/* DGL's chunked graph: metadata.json with edges, node data and edge data in chunks of CSV or NumPy files.
 *
 *   node_type, num_nodes_per_type | num_nodes_per_chunk -> node spaces, dense ids
 *   edge_type ["src:rel:dst"], num_edges_per_type | num_edges_per_chunk
 *   edges {etype: {format: {name, delimiter}, data: [files]}} -> edge sets, in the order of edge_type
 *   node_data, edge_data -> features (tools/import/dgl_data.c)
 *
 * The keys are those of DGL's guide, 7.1 "Data Preprocessing", and of DGL's older tools (counts for each chunk). Files
 * are relative to the JSON's folder. Parquet chunks are refused by name. Every error names the file and the key.
 */
#include "tools/import/dgl_private.h"

#include <stdio.h>
#include <string.h>

#include "tools/builder/builder.h"

/* Is the text among the first `end` entries? */
static bool is_listed(const json_t *list, size_t end, const char *text)
{
	for (size_t i = 0; i < end; i++) {
		const char *entry = json_string_value(json_array_get(list, i));
		if (entry && strcmp(entry, text) == 0)
			return true;
	}
	return false;
}

/* ---- counts ---- */

static gw_status whole_count(const struct gw_chunked *c, const json_t *count, const char *key, uint64_t *out)
{
	if (!json_is_integer(count) || json_integer_value(count) < 0 || json_integer_value(count) >= GW_NONE)
		return gw_chunked_bad(c, key, "a count that is not a whole number from 0 below 2^63 - 1");
	*out = (uint64_t)json_integer_value(count);
	return GW_OK;
}

/* One number, or one for each chunk. GW_NONE: the key does not exist. */
static gw_status count_under(const struct gw_chunked *c, const char *key, size_t i, size_t types, uint64_t *out)
{
	const json_t *counts = json_object_get(c->root, key);
	*out = GW_NONE;
	if (!counts)
		return GW_OK;
	if (!json_is_array(counts) || json_array_size(counts) != types)
		return gw_chunked_bad(c, key, "not one entry for each type");
	const json_t *chunks = json_array_get(counts, i);
	if (!json_is_array(chunks))
		return whole_count(c, chunks, key, out);
	*out = 0;
	size_t k;
	json_t *chunk;
	json_array_foreach(chunks, k, chunk)
	{
		uint64_t count = 0;
		gw_status status = whole_count(c, chunk, key, &count);
		if (status != GW_OK)
			return status;
		*out += count;
		if (*out >= GW_NONE)
			return gw_chunked_bad(c, key, "counts too large");
	}
	return GW_OK;
}

/* If both keys exist, they must agree. *key: the key with the count; NULL: no key has it. */
static gw_status dgl_count_of(const struct gw_chunked *c, const char *const keys[2], size_t i, size_t types,
			      const char **key, uint64_t *out)
{
	uint64_t counts[2] = {GW_NONE, GW_NONE};
	gw_status status = count_under(c, keys[0], i, types, &counts[0]);
	if (status == GW_OK)
		status = count_under(c, keys[1], i, types, &counts[1]);
	if (status != GW_OK)
		return status;
	if (counts[0] != GW_NONE && counts[1] != GW_NONE && counts[0] != counts[1])
		return gw_fail(GW_FORMAT, "%s: \"%s\" gives %llu for type %zu, but \"%s\" gives %llu", c->path, keys[0],
			       (unsigned long long)counts[0], i, keys[1], (unsigned long long)counts[1]);
	int which = counts[0] != GW_NONE ? 0 : 1;
	*out = counts[which];
	*key = counts[which] != GW_NONE ? keys[which] : NULL;
	return GW_OK;
}

/* ---- node types ---- */

static gw_status read_node_types(struct gw_chunked *c)
{
	static const char *const keys[2] = {"num_nodes_per_type", "num_nodes_per_chunk"};
	json_t *types = json_object_get(c->root, "node_type"), *name;
	size_t i;
	if (!json_is_array(types) || json_array_size(types) == 0)
		return gw_chunked_bad(c, "node_type", "not a list of names");
	json_array_foreach(types, i, name)
	{
		uint32_t space;
		uint64_t count = 0;
		const char *key = NULL;
		if (!json_is_string(name))
			return gw_chunked_bad(c, "node_type", "not a list of names");
		if (is_listed(types, i, json_string_value(name)))
			return gw_chunked_bad(c, json_string_value(name), "listed twice in \"node_type\"");
		gw_status status = dgl_count_of(c, keys, i, json_array_size(types), &key, &count);
		if (status == GW_OK && !key)
			status = gw_chunked_bad(c, keys[0], "missing: it gives the number of nodes of each type");
		if (status == GW_OK)
			status = gw_import_space(c->im, json_string_value(name), &space);
		if (status != GW_OK)
			return status;
		c->im->spaces[space].num_nodes = count;
		c->im->spaces[space].ids = GW_IDS_DENSE;
	}
	return GW_OK;
}

/* ---- edges ---- */

static gw_status read_edges(struct gw_chunked *c, const char *etype, const json_t *entry, struct gw_import_set **out)
{
	char names[3][GW_NAME_MAX + 1], delimiter;
	enum gw_import_format format;
	const json_t *files, *file;
	gw_status status = gw_chunked_etype(c, etype, names);
	if (status == GW_OK)
		status = gw_chunked_known(c, names[0]);
	if (status == GW_OK)
		status = gw_chunked_known(c, names[2]);
	if (status == GW_OK)
		status = gw_chunked_format(c, entry, etype, &format, &delimiter);
	if (status == GW_OK)
		status = gw_chunked_files(c, entry, etype, &files);
	if (status == GW_OK)
		status = gw_import_set_add(c->im, names[0], names[1], names[2], out);
	for (size_t i = 0; status == GW_OK && (file = json_array_get(files, i)) != NULL; i++) {
		const char *path = NULL;
		status = gw_chunked_path(c, file, etype, &path);
		if (status == GW_OK)
			status = gw_import_file_add(*out, path, format, GW_SPLIT_NONE);
		if (status == GW_OK)
			(*out)->files[(*out)->num_files - 1].delimiter = delimiter;
	}
	return status;
}

/* Their counts are checked once the files are open. */
static gw_status read_edge_types(struct gw_chunked *c)
{
	static const char *const keys[2] = {"num_edges_per_type", "num_edges_per_chunk"};
	json_t *types = json_object_get(c->root, "edge_type"), *edges = json_object_get(c->root, "edges"), *name;
	size_t i;
	if (!json_is_object(edges))
		return gw_chunked_bad(c, "edges", "not an object of edge types");
	if (!json_is_array(types))
		return gw_chunked_bad(c, "edge_type", "not a list of names");
	for (void *entry = json_object_iter(edges); entry; entry = json_object_iter_next(edges, entry)) {
		if (!is_listed(types, json_array_size(types), json_object_iter_key(entry)))
			return gw_chunked_bad(c, json_object_iter_key(entry), "in \"edges\", but not in \"edge_type\"");
	}
	json_array_foreach(types, i, name)
	{
		struct gw_import_set *set = NULL;
		const char *text = json_string_value(name);
		if (!text)
			return gw_chunked_bad(c, "edge_type", "not a list of names");
		json_t *entry = json_object_get(edges, text);
		if (!entry)
			return gw_chunked_bad(c, text, "listed in \"edge_type\", but not in \"edges\"");
		if (is_listed(types, i, text))
			return gw_chunked_bad(c, text, "listed twice in \"edge_type\"");
		gw_status status = read_edges(c, text, entry, &set);
		if (status == GW_OK)
			status = dgl_count_of(c, keys, i, json_array_size(types), &set->rows_key, &set->rows_expected);
		if (status != GW_OK)
			return status;
	}
	return GW_OK;
}

/* Without --name, the graph keeps its name. */
static gw_status read_name(struct gw_chunked *c)
{
	const json_t *name = json_object_get(c->root, "graph_name");
	if (c->im->options->name || !name)
		return GW_OK;
	if (!json_is_string(name))
		return gw_chunked_bad(c, "graph_name", "not a name");
	gw_status status = gw_builder_rename(c->im->builder, json_string_value(name));
	return status != GW_OK ? gw_context(status, "%s: \"graph_name\": choose another with --name", c->path) : GW_OK;
}

gw_status gw_import_chunked(struct gw_import *im, const char *path)
{
	struct gw_chunked c = {.im = im, .path = path};
	struct gw_text text;
	json_error_t error;
	gw_status status = gw_text_open_file(path, NULL, &text);
	if (status != GW_OK)
		return status;
	c.root = json_loadb(text.data ? text.data : "", text.bytes, JSON_REJECT_DUPLICATES, &error);
	gw_text_close(&text);
	if (!c.root)
		return gw_fail(GW_FORMAT, "%s, line %d: %s", path, error.line, error.text);
	status = read_name(&c);
	if (status == GW_OK)
		status = read_node_types(&c);
	if (status == GW_OK)
		status = read_edge_types(&c);
	if (status == GW_OK)
		status = gw_chunked_features(&c);
	json_decref(c.root);
	return status;
}
