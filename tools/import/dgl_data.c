/* Features of DGL's chunked graph: joins the chunks of each feature.
 *
 *   node_data, edge_data {type: {feature: {format, data: [files]}}}
 *
 * NumPy chunks must have one dtype and row shape. CSV chunks are int64 if all values are whole numbers, else
 * float32 (GW_NUMBERS_DIGITS of numbers.h).
 * train_mask, val_mask and test_mask of any number dtype become bools: 0 or 1 for each row, as DGL reads them. A
 * feature without files is left out. Errors: a chunk of another shape, a missing file, data of an unknown type.
 */
#include <string.h>

#include "core/memory/alloc.h"
#include "core/memory/vec.h"
#include "tools/import/dgl_private.h"
#include "tools/import/numbers.h"

static gw_status check_chunk(const struct gw_chunked *c, const struct gw_npy *first, const struct gw_npy *npy,
			     const char *key, const char *path)
{
	if (npy->ndim && npy->dtype == first->dtype && npy->unit == first->unit && npy->ndim == first->ndim &&
	    memcmp(npy->shape + 1, first->shape + 1, (npy->ndim - 1) * sizeof(npy->shape[0])) == 0)
		return GW_OK;
	return gw_fail(GW_FORMAT, "%s: \"%.200s\": %s has another dtype or row shape than the chunks before it",
		       c->path, key, path);
}

/* Opens the chunks of one feature; *bytes is their total. places: [files], filled. */
static gw_status open_chunks(const struct gw_chunked *c, const json_t *files, const char *key,
			     const struct gw_npy_file **chunks, uint64_t *bytes, struct gw_import_chunk *places)
{
	size_t i;
	json_t *name;
	uint64_t rows = 0;
	*bytes = 0;
	json_array_foreach(files, i, name)
	{
		const char *path = NULL;
		gw_status status = gw_chunked_path(c, name, key, &path);
		if (status == GW_OK)
			status = gw_import_array(c->im, path, &chunks[i]);
		if (status == GW_OK)
			status = check_chunk(c, &chunks[0]->npy, &chunks[i]->npy, key, path);
		if (status != GW_OK)
			return status;
		*bytes += chunks[i]->npy.data_bytes;
		places[i] = (struct gw_import_chunk){path, rows};
		rows += chunks[i]->npy.shape[0];
	}
	return GW_OK;
}

/* Joins the chunks row after row. A single chunk is not copied. */
static gw_status join_arrays(const struct gw_chunked *c, const json_t *files, const char *key, struct gw_npy_file *out,
			     struct gw_import_chunk *places)
{
	gw_status status = GW_OK;
	size_t count = json_array_size(files);
	uint64_t bytes;
	const struct gw_npy_file **chunks = gw_import_take(c->im, count, sizeof(struct gw_npy_file *), &status);
	if (status == GW_OK)
		status = open_chunks(c, files, key, chunks, &bytes, places);
	if (status != GW_OK)
		return status;
	*out = *chunks[0];
	out->mapping = NULL; /* the chunks' owner unmaps it */
	if (count == 1)
		return GW_OK;
	uint8_t *joined = gw_import_take(c->im, bytes, 1, &status);
	if (status != GW_OK)
		return status;
	out->data = joined;
	out->npy.shape[0] = 0;
	out->npy.data_bytes = bytes;
	for (size_t i = 0; i < count; i++) {
		if (chunks[i]->npy.data_bytes)
			memcpy(joined, chunks[i]->data, chunks[i]->npy.data_bytes);
		joined += chunks[i]->npy.data_bytes;
		out->npy.shape[0] += chunks[i]->npy.shape[0];
	}
	return GW_OK;
}

/* ---- CSV ---- */

/* Rows of numbers, 8 bytes each, as kind says. */
struct rows {
	enum gw_column_kind kind;
	uint64_t columns, count;
	struct gw_vec values;
};

static gw_status read_rows(const struct gw_chunked *c, const struct gw_text *text, const struct gw_table *table,
			   struct rows *rows)
{
	uint32_t have = gw_table_peek(text, &table->format, 0, NULL, 0);
	if (table->rows == 0)
		return GW_OK;
	if (have > GW_TABLE_COLUMNS_MAX)
		return gw_fail(GW_LIMIT, "%s: more than %u columns: write the data as numpy", text->name,
			       GW_TABLE_COLUMNS_MAX);
	if (rows->columns && have != rows->columns)
		return gw_fail(GW_FORMAT, "%s: %u columns, but the chunks before it have %llu", text->name, have,
			       (unsigned long long)rows->columns);
	rows->columns = have;
	gw_status status = gw_vec_reserve(&rows->values, (rows->count + table->rows) * have * sizeof(uint64_t));
	if (status != GW_OK)
		return status;
	struct gw_table_column *plan = gw_calloc(have, sizeof(*plan));
	if (!plan)
		return GW_NO_MEMORY;
	for (uint32_t i = 0; i < have; i++)
		plan[i] = (struct gw_table_column){.index = i,
						   .kind = rows->kind,
						   .what = "feature",
						   .values = (uint64_t *)rows->values.data + rows->count * have + i,
						   .stride = have};
	status = gw_table_read(table, plan, have, c->im->threads);
	rows->count += table->rows;
	gw_free(plan);
	return status;
}

static gw_status append_csv(const struct gw_chunked *c, const char *path, char delimiter, struct rows *rows)
{
	struct gw_text text;
	struct gw_table table;
	struct gw_table_format format = {.delimiter = delimiter,
					 .quotes = gw_table_quotes_of(delimiter),
					 .exact = true,
					 .header = GW_HEADER_NONE};
	gw_status status = gw_text_open_file(path, gw_import_memory(c->im).spill, &text);
	if (status != GW_OK)
		return status;
	status = gw_table_scan(&text, &format, c->im->threads, &table);
	if (status == GW_OK) {
		status = read_rows(c, &text, &table, rows);
		gw_table_close(&table);
	}
	gw_text_close(&text);
	return status;
}

/* The CSV chunks of one feature. */
struct csv_chunks {
	const struct gw_chunked *c;
	const json_t *files;
	const char *key;
	char delimiter;
	struct gw_import_chunk *places;
	struct rows rows;
};

static gw_status append_all(void *context, enum gw_column_kind kind)
{
	struct csv_chunks *chunks = context;
	struct rows *rows = &chunks->rows;
	gw_status status = GW_OK;
	const json_t *name;
	rows->kind = kind;
	rows->columns = rows->count = 0;
	for (size_t i = 0; status == GW_OK && (name = json_array_get(chunks->files, i)) != NULL; i++) {
		const char *path = NULL;
		status = gw_chunked_path(chunks->c, name, chunks->key, &path);
		chunks->places[i] = (struct gw_import_chunk){path, rows->count};
		if (status == GW_OK)
			status = append_csv(chunks->c, path, chunks->delimiter, rows);
	}
	return status;
}

static gw_status join_csv(const struct gw_chunked *c, const json_t *files, const char *key, char delimiter,
			  struct gw_npy_file *out, struct gw_import_chunk *places)
{
	struct csv_chunks chunks = {.c = c, .files = files, .key = key, .delimiter = delimiter, .places = places};
	struct rows *rows = &chunks.rows;
	enum gw_column_kind kind;
	gw_status status = gw_numbers_choose(GW_NUMBERS_DIGITS, append_all, &chunks, &kind);
	uint64_t cells = rows->count * rows->columns;
	gw_dtype dtype = status == GW_OK ? gw_numbers_pack(kind, rows->values.data, cells) : GW_INT64;
	void *data = NULL;
	if (status == GW_OK)
		data = gw_import_take(c->im, cells, gw_dtype_bytes(dtype), &status);
	if (status == GW_OK && cells)
		memcpy(data, rows->values.data, cells * gw_dtype_bytes(dtype));
	*out = (struct gw_npy_file){.data = data,
				    .npy = {.dtype = dtype,
					    .ndim = rows->columns > 1 ? 2 : 1,
					    .shape = {rows->count, rows->columns > 1 ? rows->columns : 0},
					    .data_bytes = cells * gw_dtype_bytes(dtype)}};
	gw_vec_free(&rows->values);
	return status;
}

/* ---- features ---- */

static gw_status read_feature(const struct gw_chunked *c, const char *name, const json_t *entry,
			      struct gw_import_feature feature)
{
	enum gw_import_format format;
	char delimiter;
	const json_t *files;
	gw_status status = gw_name_check("feature", name);
	if (status != GW_OK)
		return gw_context(status, "%s", c->path);
	status = gw_chunked_files(c, entry, name, &files);
	if (status != GW_OK || json_array_size(files) == 0)
		return status;
	status = gw_chunked_format(c, entry, name, &format, &delimiter);
	struct gw_npy_file *array = gw_import_take(c->im, 1, sizeof(*array), &status);
	struct gw_import_chunk *places = gw_import_take(c->im, json_array_size(files), sizeof(*places), &status);
	if (status == GW_OK)
		status = format == GW_FROM_NPY ? join_arrays(c, files, name, array, places)
					       : join_csv(c, files, name, delimiter, array, places);
	if (status != GW_OK)
		return status;
	memcpy(feature.name, name, strlen(name) + 1);
	feature.kind = gw_import_is_mask(name) ? GW_FEATURE_FLAGS : GW_FEATURE_ARRAY;
	feature.array = array;
	feature.source = c->path;
	feature.chunks = places;
	feature.num_chunks = (uint32_t)json_array_size(files);
	return gw_import_feature_add(c->im, &feature);
}

static gw_status dgl_find_owner(const struct gw_chunked *c, const char *type, struct gw_import_feature *feature)
{
	char names[3][GW_NAME_MAX + 1];
	struct gw_import_set *set;
	gw_status status;
	if (!feature->edge) {
		status = gw_chunked_known(c, type);
		return status != GW_OK ? status : gw_import_space(c->im, type, &feature->owner);
	}
	if (!json_object_get(json_object_get(c->root, "edges"), type))
		return gw_chunked_bad(c, type, "\"edge_data\" has a type that is not in \"edges\"");
	status = gw_chunked_etype(c, type, names);
	if (status == GW_OK)
		status = gw_import_set_add(c->im, names[0], names[1], names[2], &set);
	if (status == GW_OK)
		feature->owner = (uint32_t)(set - c->im->sets);
	return status;
}

static gw_status read_data(const struct gw_chunked *c, const char *key, bool edge)
{
	json_t *data = json_object_get(c->root, key), *features, *entry;
	const char *type, *name;
	if (!data || json_is_null(data))
		return GW_OK;
	if (!json_is_object(data))
		return gw_chunked_bad(c, key, "not an object of types");
	json_object_foreach(data, type, features)
	{
		struct gw_import_feature feature = {.edge = edge};
		gw_status status = dgl_find_owner(c, type, &feature);
		if (status == GW_OK && !json_is_object(features))
			status = gw_chunked_bad(c, type, "not an object of features");
		if (status != GW_OK)
			return status;
		json_object_foreach(features, name, entry)
		{
			status = read_feature(c, name, entry, feature);
			if (status != GW_OK)
				return status;
		}
	}
	return GW_OK;
}

gw_status gw_chunked_features(struct gw_chunked *c)
{
	gw_status status = read_data(c, "node_data", false);
	return status != GW_OK ? status : read_data(c, "edge_data", true);
}
