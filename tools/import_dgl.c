/* DGL's chunked graph: metadata.json with edges, node data and edge data in chunks of CSV or NumPy files.
 *
 *   node_type, num_nodes_per_chunk | num_nodes_per_type -> node spaces, dense ids
 *   edge_type ("src:rel:dst"), edges {etype: {format: {name, delimiter}, data: [files]}} -> edge sets
 *   node_data, edge_data {type: {feature: {format, data: [files]}}} -> features, chunks joined
 *
 * Files are relative to the JSON's folder. Parquet chunks are refused by name. Every fault names the file and the key.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "tools/import.h"
#include "tools/import_words.h"

#define PATH_BYTES 4096

struct chunked {
	struct gw_import *im;
	const char *path;
	json_t *root;
};

static gw_status bad(const struct chunked *c, const char *key, const char *why)
{
	return gw_fail(GW_FORMAT, "%s: \"%s\": %s", c->path, key, why);
}

/* The path of a chunk, in memory that the builder keeps. */
static gw_status chunk_path(struct chunked *c, const json_t *text, const char *key, const char **out)
{
	const char *relative = json_string_value(text), *slash = strrchr(c->path, '/');
	if (!relative)
		return bad(c, key, "\"data\" is not a list of file names");
	gw_status status = GW_OK;
	size_t room = strlen(c->path) + strlen(relative) + 2;
	char *path = gw_import_take(c->im, room, 1, &status);
	if (status)
		return status;
	if (relative[0] == '/' || !slash)
		snprintf(path, room, "%s", relative);
	else
		snprintf(path, room, "%.*s/%s", (int)(slash - c->path), c->path, relative);
	*out = path;
	return GW_OK;
}

/* "format": {"name": "csv" | "numpy", "delimiter": ","}. */
static gw_status chunk_format(struct chunked *c, const json_t *entry, const char *key, enum gw_import_format *format,
			      char *delimiter)
{
	const json_t *described = json_object_get(entry, "format");
	const char *name = json_string_value(json_object_get(described, "name"));
	const char *between = json_string_value(json_object_get(described, "delimiter"));
	if (!name)
		return bad(c, key, "no \"format\" with a \"name\"");
	*delimiter = between && between[0] ? between[0] : ',';
	if (strcmp(name, "csv") == 0)
		*format = GW_FROM_TEXT;
	else if (strcmp(name, "numpy") == 0)
		*format = GW_FROM_NPY;
	else if (strcmp(name, "parquet") == 0)
		return gw_fail(GW_UNSUPPORTED, "%s: \"%s\": Parquet chunks are not read: write them as numpy or csv",
			       c->path, key);
	else
		return gw_fail(GW_UNSUPPORTED, "%s: \"%s\": format \"%.32s\" is neither csv nor numpy", c->path, key,
			       name);
	return GW_OK;
}

/* Sums a list of counts. */
static gw_status sum_counts(struct chunked *c, const json_t *counts, const char *key, uint64_t *out)
{
	*out = 0;
	if (json_is_integer(counts)) {
		if (json_integer_value(counts) < 0)
			return bad(c, key, "a negative count");
		*out = (uint64_t)json_integer_value(counts);
		return GW_OK;
	}
	size_t i;
	json_t *count;
	if (!json_is_array(counts))
		return bad(c, key, "not a list of counts for each type");
	json_array_foreach(counts, i, count)
	{
		if (!json_is_integer(count) || json_integer_value(count) < 0)
			return bad(c, key, "a count that is no whole number from 0");
		*out += (uint64_t)json_integer_value(count);
		if (*out >= GW_NONE)
			return bad(c, key, "counts too large");
	}
	return GW_OK;
}

static gw_status read_node_types(struct chunked *c)
{
	json_t *types = json_object_get(c->root, "node_type"), *name;
	const char *key = "num_nodes_per_chunk";
	json_t *counts = json_object_get(c->root, key);
	if (!counts) {
		key = "num_nodes_per_type";
		counts = json_object_get(c->root, key);
	}
	if (!json_is_array(types) || json_array_size(types) == 0)
		return bad(c, "node_type", "not a list of names");
	if (!json_is_array(counts) || json_array_size(counts) != json_array_size(types))
		return bad(c, "num_nodes_per_chunk", "not one entry for each node type");
	size_t i;
	json_array_foreach(types, i, name)
	{
		uint32_t space;
		uint64_t count;
		if (!json_is_string(name))
			return bad(c, "node_type", "not a list of names");
		gw_status status = sum_counts(c, json_array_get(counts, i), key, &count);
		if (status == GW_OK)
			status = gw_import_space(c->im, json_string_value(name), &space);
		if (status)
			return status;
		c->im->spaces[space].num_nodes = count;
		c->im->spaces[space].ids = GW_IDS_DENSE;
	}
	return GW_OK;
}

/* "src:rel:dst" into three names. */
static gw_status split_etype(struct chunked *c, const char *text, char names[3][GW_NAME_MAX + 1])
{
	for (int i = 0; i < 3; i++) {
		size_t bytes = strcspn(text, ":");
		if (bytes > GW_NAME_MAX || (text[bytes] == '\0') != (i == 2))
			return bad(c, text, "an edge type is \"src:rel:dst\"");
		memcpy(names[i], text, bytes);
		names[i][bytes] = '\0';
		text += bytes + (i < 2);
	}
	return GW_OK;
}

static gw_status known_space(struct chunked *c, const char *name)
{
	for (uint32_t i = 0; i < c->im->num_spaces; i++) {
		if (strcmp(c->im->spaces[i].name, name) == 0)
			return GW_OK;
	}
	return bad(c, name, "an edge type or data names this node type, which \"node_type\" does not list");
}

static gw_status read_edges(struct chunked *c, const char *etype, const json_t *entry)
{
	char names[3][GW_NAME_MAX + 1], delimiter;
	enum gw_import_format format;
	struct gw_import_set *set;
	gw_status status = split_etype(c, etype, names);
	if (status == GW_OK)
		status = known_space(c, names[0]);
	if (status == GW_OK)
		status = known_space(c, names[2]);
	if (status == GW_OK)
		status = chunk_format(c, entry, etype, &format, &delimiter);
	if (status == GW_OK)
		status = gw_import_set_add(c->im, names[0], names[1], names[2], &set);
	if (status)
		return status;
	json_t *files = json_object_get(entry, "data"), *file;
	size_t i;
	if (!json_is_array(files))
		return bad(c, etype, "no \"data\" with a list of files");
	json_array_foreach(files, i, file)
	{
		const char *path = NULL;
		status = chunk_path(c, file, etype, &path);
		if (status == GW_OK)
			status = gw_import_file_add(set, path, format, GW_SPLIT_NONE);
		if (status)
			return status;
		set->files[set->num_files - 1].delimiter = delimiter;
	}
	return GW_OK;
}

/* Edge counts that the JSON states are checked once the files are open. */
static gw_status read_edge_counts(struct chunked *c)
{
	json_t *types = json_object_get(c->root, "edge_type"), *name;
	json_t *counts = json_object_get(c->root, "num_edges_per_chunk");
	size_t i;
	if (!counts)
		return GW_OK;
	if (!json_is_array(types) || !json_is_array(counts) || json_array_size(types) != json_array_size(counts))
		return bad(c, "num_edges_per_chunk", "not one entry for each edge type");
	json_array_foreach(types, i, name)
	{
		char names[3][GW_NAME_MAX + 1];
		struct gw_import_set *set;
		uint64_t count;
		if (!json_is_string(name))
			return bad(c, "edge_type", "not a list of names");
		gw_status status = split_etype(c, json_string_value(name), names);
		if (status == GW_OK)
			status = sum_counts(c, json_array_get(counts, i), "num_edges_per_chunk", &count);
		if (status)
			return status;
		if (!json_object_get(json_object_get(c->root, "edges"), json_string_value(name)))
			return bad(c, json_string_value(name), "listed in \"edge_type\", but not in \"edges\"");
		status = gw_import_set_add(c->im, names[0], names[1], names[2], &set);
		if (status)
			return status;
		set->rows_expected = count;
	}
	return GW_OK;
}

/* ---- features ---- */

/* The chunks of one feature, joined: rows below each other. */
static gw_status join_arrays(struct chunked *c, const json_t *files, const char *key, struct gw_npy_file *out)
{
	gw_status status = GW_OK;
	size_t i;
	json_t *name;
	uint64_t bytes = 0;
	const struct gw_npy_file **chunks =
		gw_import_take(c->im, json_array_size(files), sizeof(struct gw_npy_file *), &status);
	json_array_foreach(files, i, name)
	{
		const char *path = NULL;
		if (status == GW_OK)
			status = chunk_path(c, name, key, &path);
		if (status == GW_OK)
			status = gw_import_array(c->im, path, &chunks[i]);
		if (status)
			return status;
		const struct gw_npy *first = &chunks[0]->npy, *npy = &chunks[i]->npy;
		if (npy->ndim == 0 || npy->dtype != first->dtype || npy->ndim != first->ndim ||
		    memcmp(npy->shape + 1, first->shape + 1, (npy->ndim - 1) * sizeof(npy->shape[0])) != 0)
			return gw_fail(GW_FORMAT,
				       "%s: \"%s\": %s has another dtype or row shape than the chunks before it",
				       c->path, key, path);
		bytes += npy->data_bytes;
	}
	if (status)
		return status;
	*out = *chunks[0];
	out->mapping = NULL; /* the chunks' owner unmaps it */
	if (json_array_size(files) == 1)
		return GW_OK;
	uint8_t *joined = gw_import_take(c->im, bytes, 1, &status);
	if (status)
		return status;
	out->data = joined;
	out->npy.shape[0] = 0;
	out->npy.data_bytes = bytes;
	for (i = 0; i < json_array_size(files); i++) {
		memcpy(joined, chunks[i]->data, chunks[i]->npy.data_bytes);
		joined += chunks[i]->npy.data_bytes;
		out->npy.shape[0] += chunks[i]->npy.shape[0];
	}
	return GW_OK;
}

/* One CSV chunk of numbers, appended as float32 rows; *columns is that of the first. */
static gw_status append_csv(struct chunked *c, const char *path, char delimiter, uint64_t *columns, float **rows,
			    uint64_t *num_rows)
{
	struct gw_text text;
	struct gw_table table = {0};
	struct gw_table_column *plan = NULL;
	double *values = NULL;
	struct gw_table_format format = {.delimiter = delimiter, .quotes = delimiter == ',', .header = GW_HEADER_NONE};
	gw_status status = gw_text_open(path, &text);
	if (status)
		return status;
	status = gw_table_scan(&text, &format, c->im->threads, &table);
	if (status)
		goto close_text;
	uint32_t have = gw_table_peek(&text, &format, 0, NULL, 0);
	if (*columns == 0)
		*columns = have;
	if (have != *columns && table.rows) {
		status = gw_fail(GW_FORMAT, "%s: %u columns, but the chunks before it have %llu", path, have,
				 (unsigned long long)*columns);
		goto close_text;
	}
	plan = gw_calloc(*columns, sizeof(*plan));
	values = gw_malloc(table.rows * *columns * sizeof(*values));
	float *grown = gw_realloc(*rows, (*num_rows + table.rows) * *columns, sizeof(**rows));
	if (grown)
		*rows = grown;
	if (!plan || !values || !grown) {
		status = GW_NO_MEMORY;
		goto close_text;
	}
	for (uint32_t i = 0; i < *columns; i++)
		plan[i] = (struct gw_table_column){.index = i,
						   .kind = GW_COLUMN_REAL,
						   .what = "feature",
						   .values = values + i,
						   .stride = *columns};
	status = gw_table_read(&table, plan, (uint32_t)*columns, c->im->threads);
	for (uint64_t i = 0; i < table.rows * *columns && status == GW_OK; i++)
		grown[*num_rows * *columns + i] = (float)values[i];
	*num_rows += table.rows;
close_text:
	gw_free(plan);
	gw_free(values);
	gw_table_close(&table);
	gw_text_close(&text);
	return status;
}

static gw_status join_csv(struct chunked *c, const json_t *files, const char *key, char delimiter,
			  struct gw_npy_file *out)
{
	gw_status status = GW_OK;
	size_t i;
	json_t *name;
	uint64_t columns = 0, num_rows = 0;
	float *rows = NULL;
	json_array_foreach(files, i, name)
	{
		const char *path = NULL;
		if (status == GW_OK)
			status = chunk_path(c, name, key, &path);
		if (status == GW_OK)
			status = append_csv(c, path, delimiter, &columns, &rows, &num_rows);
	}
	if (status) {
		gw_free(rows);
		return status;
	}
	*out = (struct gw_npy_file){.data = rows,
				    .npy = {.dtype = GW_FLOAT32,
					    .ndim = columns == 1 ? 1 : 2,
					    .shape = {num_rows, columns},
					    .data_bytes = num_rows * columns * sizeof(*rows)}};
	if (columns == 1)
		out->npy.shape[1] = 0;
	return rows ? gw_builder_own(c->im->builder, rows, gw_free) : GW_OK;
}

static gw_status read_feature(struct chunked *c, const char *name, const json_t *entry,
			      struct gw_import_feature *feature)
{
	enum gw_import_format format;
	char delimiter;
	gw_status status = chunk_format(c, entry, name, &format, &delimiter);
	if (status)
		return status;
	json_t *files = json_object_get(entry, "data");
	if (!json_is_array(files) || json_array_size(files) == 0)
		return bad(c, name, "no \"data\" with a list of files");
	struct gw_npy_file *array = gw_import_take(c->im, 1, sizeof(*array), &status);
	if (status)
		return status;
	status =
		format == GW_FROM_NPY ? join_arrays(c, files, name, array) : join_csv(c, files, name, delimiter, array);
	if (strlen(name) > GW_NAME_MAX)
		return bad(c, name, "a feature's name has at most 64 bytes");
	snprintf(feature->name, sizeof(feature->name), "%s", name);
	feature->array = array;
	feature->source = c->path;
	return status ? status : gw_import_feature_add(c->im, feature);
}

static gw_status read_node_data(struct chunked *c)
{
	json_t *data = json_object_get(c->root, "node_data"), *features, *entry;
	const char *type, *name;
	json_object_foreach(data, type, features)
	{
		struct gw_import_feature feature = {0};
		gw_status status = known_space(c, type);
		if (status == GW_OK)
			status = gw_import_space(c->im, type, &feature.owner);
		if (status)
			return status;
		json_object_foreach(features, name, entry)
		{
			status = read_feature(c, name, entry, &feature);
			if (status)
				return status;
		}
	}
	return GW_OK;
}

static gw_status read_edge_data(struct chunked *c)
{
	json_t *data = json_object_get(c->root, "edge_data"), *features, *entry;
	const char *type, *name;
	json_object_foreach(data, type, features)
	{
		char names[3][GW_NAME_MAX + 1];
		struct gw_import_set *set;
		struct gw_import_feature feature = {.edge = true};
		if (!json_object_get(json_object_get(c->root, "edges"), type))
			return bad(c, type, "\"edge_data\" of a type that \"edges\" does not have");
		gw_status status = split_etype(c, type, names);
		if (status == GW_OK)
			status = gw_import_set_add(c->im, names[0], names[1], names[2], &set);
		if (status)
			return status;
		feature.owner = (uint32_t)(set - c->im->sets);
		json_object_foreach(features, name, entry)
		{
			status = read_feature(c, name, entry, &feature);
			if (status)
				return status;
		}
	}
	return GW_OK;
}

gw_status gw_import_chunked(struct gw_import *im, const char *path)
{
	struct chunked c = {.im = im, .path = path};
	struct gw_text text;
	json_error_t error;
	gw_status status = gw_text_open(path, &text);
	if (status)
		return status;
	c.root = json_loadb(text.data ? text.data : "", text.bytes, JSON_REJECT_DUPLICATES, &error);
	gw_text_close(&text);
	if (!c.root)
		return gw_fail(GW_FORMAT, "%s, line %d: %s", path, error.line, error.text);
	status = read_node_types(&c);
	json_t *edges = json_object_get(c.root, "edges"), *entry;
	const char *etype;
	if (status == GW_OK && !json_is_object(edges))
		status = bad(&c, "edges", "not an object of edge types");
	json_object_foreach(edges, etype, entry)
	{
		if (status == GW_OK)
			status = read_edges(&c, etype, entry);
	}
	if (status == GW_OK)
		status = read_edge_counts(&c);
	if (status == GW_OK)
		status = read_node_data(&c);
	if (status == GW_OK)
		status = read_edge_data(&c);
	json_decref(c.root);
	return status;
}
