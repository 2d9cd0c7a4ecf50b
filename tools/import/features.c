/* Features and labels; masks.c has the masks.
 *
 *   open (before the nodes are numbered: the rows show how many nodes exist) -> number the nodes -> to the builder
 *
 * Row r belongs to the node with input id r, or to line r of the list if --nodes gives one, whatever number the line
 * has. Row r of an edge feature belongs to the r-th input edge. Sparse rows (CSR) become dense rows.
 */
#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/memory/memory.h"
#include "core/system/parallel.h"
#include "tools/import/import.h"
#include "tools/import/masks.h"
#include "tools/import/npz.h"
#include "tools/import/pick_rows.h"
#include "tools/import/strings.h"
#include "tools/import/words.h"

#define GRAIN (4u << 10)

bool gw_import_is_mask(const char *name)
{
	return strcmp(name, "train_mask") == 0 || strcmp(name, "val_mask") == 0 || strcmp(name, "test_mask") == 0;
}

/* Whether an array with a mask's name has a column of bools for each of several splits. It is a feature like any
 * other. */
static bool is_of_splits(const struct gw_import_feature *feature)
{
	return feature->kind == GW_FEATURE_FLAGS && feature->array->npy.dtype == GW_BOOL &&
	       feature->array->npy.ndim == 2 && feature->array->npy.shape[1] > 1;
}

/* A mask has one bool or whole number for each row. Other arrays with a mask's name would fail later, where they are
 * used. */
static gw_status features_check_mask(const struct gw_import_feature *feature)
{
	const struct gw_npy *npy = &feature->array->npy;
	bool column = npy->ndim == 1 || (npy->ndim == 2 && npy->shape[1] == 1);
	if (column && npy->dtype != GW_FLOAT16 && npy->dtype != GW_BFLOAT16 && npy->dtype != GW_FLOAT32 &&
	    npy->dtype != GW_FLOAT64)
		return GW_OK;
	char shape[GW_DIMS_MAX * 24] = "";
	size_t used = 0;
	for (uint32_t i = 0; i < npy->ndim; i++)
		used += (size_t)snprintf(shape + used, sizeof(shape) - used, "%s%llu", i ? ", " : "",
					 (unsigned long long)npy->shape[i]);
	return gw_fail(GW_FORMAT, "%s: mask \"%s\" is %s [%s]: a mask is a bool, or 0 or 1, for each %s",
		       feature->source, feature->name, gw_dtype_name(npy->dtype), shape,
		       feature->edge                      ? "edge"
		       : feature->kind == GW_FEATURE_MASK ? "node, or a list of ids"
							  : "node");
}

static bool ends_in_names(const char *name)
{
	size_t bytes = strlen(name), tail = strlen(".names");
	return bytes > tail && strcmp(name + bytes - tail, ".names") == 0;
}

/* Whether the strings are a table of names, "label.names", which has any number of rows. */
static bool is_table_of_names(const struct gw_import_feature *feature)
{
	return feature->kind == GW_FEATURE_TEXT && ends_in_names(feature->name);
}

gw_status gw_import_feature_add(struct gw_import *im, const struct gw_import_feature *feature)
{
	struct gw_import_feature splits = *feature;
	if (is_of_splits(feature)) {
		splits.kind = GW_FEATURE_ARRAY;
		feature = &splits;
	}
	gw_status status = gw_name_check("feature", feature->name);
	if (status == GW_OK && (feature->kind == GW_FEATURE_MASK || feature->kind == GW_FEATURE_FLAGS))
		status = features_check_mask(feature);
	if (status == GW_OK)
		status = gw_import_grow((void **)&im->features, im->num_features, &im->features_room,
					sizeof(*im->features));
	if (status != GW_OK)
		return status;
	bool text = feature->kind == GW_FEATURE_TEXT;
	if (!text && feature->array->npy.ndim == 0)
		return gw_fail(GW_FORMAT, "feature \"%s\": %s: a single number is not a feature", feature->name,
			       feature->source);
	uint64_t rows = text ? feature->strings->count : feature->array->npy.shape[0];
	if (feature->kind == GW_FEATURE_SPARSE)
		rows = rows ? rows - 1 : 0;
	if (feature->kind == GW_FEATURE_MASK && feature->array->npy.dtype != GW_BOOL)
		rows = 0; /* a list of ids does not show the number of nodes */
	struct gw_import_space *space = feature->edge ? NULL : &im->spaces[feature->owner];
	if (is_table_of_names(feature))
		rows = 0;
	if (space && rows > space->feature_rows)
		space->feature_rows = rows;
	if (space && feature->counts && rows > space->counted_rows)
		space->counted_rows = rows;
	im->features[im->num_features++] = *feature;
	return GW_OK;
}

static gw_status features_find_owner(struct gw_import *im, const struct gw_import_parts *parts,
				     struct gw_import_feature *feature)
{
	const char *name = parts->count == 2 ? parts->names[0] : "_N";
	struct gw_import_set *set;
	gw_status status = GW_OK;
	if (feature->edge) {
		status = gw_import_set_of(im, parts, "SRC:REL:DST:NAME=FILE", &set);
		feature->owner = status == GW_OK ? (uint32_t)(set - im->sets) : 0;
		return status;
	}
	const struct gw_import_space *space = gw_import_space_find(im, name);
	feature->owner = space ? (uint32_t)(space - im->spaces) : 0;
	return space ? GW_OK : gw_fail(GW_NOT_FOUND, "node type \"%s\" does not exist: write TYPE:NAME=FILE", name);
}

/* An archive without a member: strings, one for each node, or a table of names. */
static gw_status open_strings(struct gw_import *im, const char *path, struct gw_import_feature *feature)
{
	gw_status status = GW_OK;
	if ((feature->edge && !ends_in_names(feature->name)) || feature->kind != GW_FEATURE_ARRAY)
		return gw_fail(GW_INVALID,
			       "feature \"%s\": %s: name a member of the archive: %s:MEMBER. Only nodes have strings; "
			       "edges have names of values, NAME.names",
			       feature->name, path, path);
	struct gw_import_strings *strings = gw_import_take(im, 1, sizeof(*strings), &status);
	if (status == GW_OK)
		status = gw_import_strings_read(im, path, strings);
	feature->kind = GW_FEATURE_TEXT;
	feature->strings = strings;
	return status != GW_OK ? gw_context(status, "feature \"%s\"", feature->name)
			       : gw_import_feature_add(im, feature);
}

static gw_status open_word(struct gw_import *im, const struct gw_import_word *word)
{
	struct gw_import_parts parts;
	struct gw_import_feature feature = {.edge = word->kind == GW_IMPORT_EDGE_FEATURE, .source = word->text};
	if (word->kind == GW_IMPORT_NODE_MASK)
		feature.kind = GW_FEATURE_MASK;
	gw_status status = gw_import_word_split(word->text, 3, &parts);
	if (status != GW_OK)
		return status;
	memcpy(feature.name, parts.names[parts.count - 1], sizeof(feature.name));
	if (feature.kind == GW_FEATURE_ARRAY && gw_import_is_mask(feature.name))
		feature.kind = GW_FEATURE_FLAGS;
	feature.source = parts.value;
	status = features_find_owner(im, &parts, &feature);
	if (status != GW_OK)
		return status;
	if (gw_import_names_strings(parts.value))
		return open_strings(im, parts.value, &feature);
	/* Opened by name: the file may be another program's temporary file. */
	status = gw_import_array(im, parts.value, &feature.array);
	return status != GW_OK ? gw_context(status, "feature \"%s\"", feature.name)
			       : gw_import_feature_add(im, &feature);
}

gw_status gw_import_open_features(struct gw_import *im)
{
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < im->options->num_words && status == GW_OK; i++) {
		const struct gw_import_word *word = &im->options->words[i];
		if (word->kind == GW_IMPORT_NODE_FEATURE || word->kind == GW_IMPORT_NODE_MASK ||
		    word->kind == GW_IMPORT_EDGE_FEATURE)
			status = open_word(im, word);
	}
	return status;
}

/* ---- archives whose members have known names ---- */

static gw_status read_scalar(struct gw_import *im, const struct gw_npz *npz, const char *path, const char *name,
			     uint64_t *out)
{
	const struct gw_npy_file *array;
	gw_status status = gw_import_member(im, npz, name, &array);
	if (status != GW_OK)
		return status;
	if (array->npy.data_bytes != gw_dtype_bytes(array->npy.dtype))
		return gw_fail(GW_FORMAT, "%s: member \"%s\" is not a single number", path, name);
	return gw_import_whole(&array->npy, array->data, 0, 1, 1, name, 1, out);
}

static gw_status sparse_member(struct gw_import *im, const struct gw_npz *npz, const char *path, uint32_t space)
{
	struct gw_import_feature feature = {
		.kind = GW_FEATURE_SPARSE, .counts = true, .owner = space, .name = "feat", .source = path};
	gw_status status = gw_import_member(im, npz, "x_indptr", &feature.array);
	if (status == GW_OK)
		status = gw_import_member(im, npz, "x_indices", &feature.indices);
	if (status == GW_OK)
		status = read_scalar(im, npz, path, "x_dim", &feature.columns);
	if (status == GW_OK && gw_npz_has(npz, "x_values"))
		status = gw_import_member(im, npz, "x_values", &feature.values);
	return status != GW_OK ? status : gw_import_feature_add(im, &feature);
}

gw_status gw_import_archive_features(struct gw_import *im, const struct gw_npz *npz, const char *path, uint32_t space)
{
	static const struct {
		const char *member, *name;
		enum gw_import_feature_kind kind;
	} known[] = {
		{"x", "feat", GW_FEATURE_ARRAY},
		{"feat", "feat", GW_FEATURE_ARRAY},
		{"node_features", "feat", GW_FEATURE_ARRAY},
		{"y", "label", GW_FEATURE_ARRAY},
		{"label", "label", GW_FEATURE_ARRAY},
		{"node_labels", "label", GW_FEATURE_ARRAY},
		{"train_idx", "train_mask", GW_FEATURE_MASK},
		{"val_idx", "val_mask", GW_FEATURE_MASK},
		{"valid_idx", "val_mask", GW_FEATURE_MASK},
		{"test_idx", "test_mask", GW_FEATURE_MASK},
		{"train_mask", "train_mask", GW_FEATURE_MASK},
		{"val_mask", "val_mask", GW_FEATURE_MASK},
		{"test_mask", "test_mask", GW_FEATURE_MASK},
	};
	gw_status status = GW_OK;
	if (gw_npz_has(npz, "num_nodes") && im->spaces[space].num_nodes == GW_NONE)
		status = read_scalar(im, npz, path, "num_nodes", &im->spaces[space].num_nodes);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]) && status == GW_OK; i++) {
		if (!gw_npz_has(npz, known[i].member))
			continue;
		struct gw_import_feature feature = {
			.kind = known[i].kind, .counts = true, .owner = space, .source = path};
		snprintf(feature.name, sizeof(feature.name), "%s", known[i].name);
		status = gw_import_member(im, npz, known[i].member, &feature.array);
		if (status == GW_OK)
			status = gw_import_feature_add(im, &feature);
	}
	if (status == GW_OK && gw_npz_has(npz, "x_indptr"))
		status = sparse_member(im, npz, path, space);
	return status;
}

/* ---- to the builder ---- */

/* The rows of the input that the nodes of a space take, and the number of the first of them. NULL: node i takes row i.
 */
static const uint64_t *rows_of_nodes(const struct gw_import_space *space, uint64_t *base)
{
	bool compact = space->values && !space->list;
	*base = compact ? space->base : 0;
	return compact ? space->values : space->lines;
}

static gw_status check_compact(const struct gw_import_space *space, const struct gw_import_feature *feature,
			       uint64_t rows)
{
	for (uint64_t i = 0; i < space->count; i++) {
		if (space->values[i] - space->base >= rows)
			return gw_fail(GW_RANGE,
				       "%s: %llu rows, but node %llu exists: row r belongs to input id r, "
				       "unless --nodes lists the ids",
				       feature->source, (unsigned long long)rows, (unsigned long long)space->values[i]);
	}
	return GW_OK;
}

/* The order of the nodes is not that of the rows. */
static gw_status pick_array(struct gw_import *im, const struct gw_import_space *space, const uint64_t *rows,
			    uint64_t base, struct gw_builder_array *array)
{
	uint64_t bytes = gw_dtype_bytes(array->dtype);
	for (uint32_t d = 1; d < array->ndim; d++)
		bytes *= array->shape[d];
	const struct gw_import_pick pick = {.from = array->data,
					    .row_bytes = bytes,
					    .input_rows = array->shape[0],
					    .rows = rows,
					    .base = base,
					    .count = space->count};
	array->shape[0] = space->count;
	return gw_import_pick_rows(im, &pick, &array->data);
}

struct filling {
	const struct gw_import_feature *feature;
	const uint64_t *indptr, *indices;
	uint8_t *dense;
	size_t element;
};

static gw_status features_fill_rows(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	const struct filling *f = context;
	const uint8_t *values = f->feature->values ? f->feature->values->data : NULL;
	uint64_t columns = f->feature->columns, total = f->feature->indices->npy.shape[0];
	for (uint64_t row = begin; row < end; row++) {
		if (f->indptr[row + 1] < f->indptr[row] || f->indptr[row + 1] > total)
			return gw_fail(GW_FORMAT, "%s: sparse features: the offsets of row %llu do not ascend",
				       f->feature->source, (unsigned long long)row);
		for (uint64_t i = f->indptr[row]; i < f->indptr[row + 1]; i++) {
			if (f->indices[i] >= columns)
				return gw_fail(GW_RANGE, "%s: sparse features: row %llu has column %llu of %llu",
					       f->feature->source, (unsigned long long)row,
					       (unsigned long long)f->indices[i], (unsigned long long)columns);
			uint8_t *cell = f->dense + (row * columns + f->indices[i]) * f->element;
			if (values)
				memcpy(cell, values + i * f->element, f->element);
			else
				*cell = 1;
		}
	}
	return GW_OK;
}

/* Converts CSR to dense rows: uint8 ones if the CSR has no values, else the values' dtype. */
static gw_status densify(struct gw_import *im, const struct gw_import_feature *feature, struct gw_builder_array *array)
{
	const struct gw_npy *indptr = &feature->array->npy, *indices = &feature->indices->npy;
	const struct gw_npy *values = feature->values ? &feature->values->npy : NULL;
	if (indptr->ndim != 1 || indices->ndim != 1 || indptr->shape[0] == 0 || feature->columns == 0 ||
	    (values && (values->ndim != 1 || values->shape[0] != indices->shape[0])))
		return gw_fail(GW_FORMAT, "%s: sparse features are not indptr [N + 1], indices and x_dim",
			       feature->source);
	uint64_t rows = indptr->shape[0] - 1, bytes;
	struct filling filling = {.feature = feature, .element = values ? gw_dtype_bytes(values->dtype) : 1};
	if (__builtin_mul_overflow(rows, feature->columns, &bytes) ||
	    __builtin_mul_overflow(bytes, filling.element, &bytes))
		return gw_fail(GW_LIMIT, "%s: sparse features need more bytes than any memory has", feature->source);
	gw_status status = gw_memory_check(bytes, -1, "dense features");
	uint64_t *offsets = gw_import_take(im, rows + 1, 8, &status);
	uint64_t *columns = gw_import_take(im, indices->shape[0], 8, &status);
	filling.dense = gw_import_take(im, bytes, 1, &status);
	if (status == GW_OK)
		status =
			gw_import_whole(indptr, feature->array->data, 0, 1, rows + 1, "x_indptr", im->threads, offsets);
	if (status == GW_OK)
		status = gw_import_whole(indices, feature->indices->data, 0, 1, indices->shape[0], "x_indices",
					 im->threads, columns);
	if (status != GW_OK)
		return status;
	memset(filling.dense, 0, bytes);
	filling.indptr = offsets;
	filling.indices = columns;
	*array = (struct gw_builder_array){.name = feature->name,
					   .dtype = values ? values->dtype : GW_UINT8,
					   .ndim = 2,
					   .shape = {rows, feature->columns},
					   .data = filling.dense};
	return gw_parallel_for(im->threads, rows, GRAIN, features_fill_rows, &filling);
}

static struct gw_builder_array plain_array(const struct gw_import_feature *feature)
{
	const struct gw_npy *npy = &feature->array->npy;
	struct gw_builder_array array = {.name = feature->name,
					 .dtype = npy->dtype,
					 .ndim = npy->ndim,
					 .data = feature->array->data,
					 .unit = npy->unit,
					 .source = feature->source};
	memcpy(array.shape, npy->shape, sizeof(array.shape));
	if (feature->kind == GW_FEATURE_MASK || feature->kind == GW_FEATURE_FLAGS)
		array.ndim = 1; /* one column may have its own dimension */
	return array;
}

static gw_status check_node_rows(const struct gw_import_space *space, const struct gw_import_feature *feature,
				 uint64_t rows)
{
	if (rows == space->count)
		return GW_OK;
	char advice[2 * GW_NAME_MAX + 128] = "";
	if (rows > space->count && space->num_nodes == GW_NONE && !space->shape_path)
		snprintf(advice, sizeof(advice),
			 ": does it belong to another type? If the other rows are nodes without edges, "
			 "use --num-nodes %s=%llu",
			 space->name, (unsigned long long)rows);
	return gw_fail(GW_INVALID, "%s: feature \"%s\" has %llu rows, but node type %s has %llu nodes%s",
		       feature->source, feature->name, (unsigned long long)rows, space->name,
		       (unsigned long long)space->count, advice);
}

static gw_status features_add_strings(struct gw_import *im, const struct gw_import_space *space,
				      const struct gw_import_feature *feature, const uint64_t *rows, uint64_t base)
{
	struct gw_import_strings picked = *feature->strings;
	gw_status status =
		rows ? gw_import_strings_pick(im, feature->strings, rows, base, space->count, &picked) : GW_OK;
	return status != GW_OK ? status
			       : gw_builder_node_strings(im->builder, space->ntype, feature->name, picked.count,
							 picked.offsets, picked.bytes);
}

static gw_status add_node_feature(struct gw_import *im, const struct gw_import_feature *feature)
{
	const struct gw_import_space *space = &im->spaces[feature->owner];
	bool text = feature->kind == GW_FEATURE_TEXT, bools = !text && feature->array->npy.dtype == GW_BOOL;
	struct gw_builder_array array = {0};
	if (is_table_of_names(feature))
		return features_add_strings(im, space, feature, NULL, 0);
	if (!text)
		array = plain_array(feature);
	if (space->offsets && !space->list)
		return gw_fail(
			GW_INVALID,
			"%s: node type %s has text ids: list them with --nodes in the order of the feature's rows",
			feature->source, space->name);
	gw_status status = GW_OK;
	bool by_id = false;
	if (feature->kind == GW_FEATURE_MASK && !bools)
		status = gw_import_mask_of_ids(im, space, feature, &array, &by_id);
	else if (feature->kind == GW_FEATURE_SPARSE)
		status = densify(im, feature, &array);
	else if (feature->kind == GW_FEATURE_FLAGS && !bools)
		status = gw_import_mask_of_flags(im, feature, array.shape[0], &array);
	uint64_t base, rows_given = text ? feature->strings->count : array.shape[0];
	const uint64_t *rows = rows_of_nodes(space, &base);
	if (status != GW_OK || by_id)
		return status != GW_OK ? status : gw_builder_node_array(im->builder, space->ntype, &array);
	if (rows && rows == space->values)
		status = check_compact(space, feature, rows_given);
	else
		status = check_node_rows(space, feature, rows_given);
	if (status == GW_OK && text)
		return features_add_strings(im, space, feature, rows, base);
	if (status == GW_OK && rows)
		status = pick_array(im, space, rows, base, &array);
	return status != GW_OK ? status : gw_builder_node_array(im->builder, space->ntype, &array);
}

static gw_status add_edge_feature(struct gw_import *im, const struct gw_import_feature *feature)
{
	const struct gw_import_set *set = &im->sets[feature->owner];
	if (is_table_of_names(feature))
		return gw_builder_edge_strings(im->builder, set->etype, feature->name, feature->strings->count,
					       feature->strings->offsets, feature->strings->bytes);
	struct gw_builder_array array = plain_array(feature);
	if (array.shape[0] != set->rows)
		return gw_fail(GW_INVALID, "%s: feature \"%s\" has %llu rows, but there are %llu input edges",
			       feature->source, feature->name, (unsigned long long)array.shape[0],
			       (unsigned long long)set->rows);
	gw_status status = GW_OK;
	if (feature->kind == GW_FEATURE_FLAGS && array.dtype != GW_BOOL)
		status = gw_import_mask_of_flags(im, feature, set->rows, &array);
	array.weight = gw_import_is_weight(im, feature->owner, feature->name);
	if (status == GW_OK && array.weight)
		status = gw_import_weight_check(im, feature, &array);
	return status != GW_OK ? status : gw_builder_edge_array(im->builder, set->etype, &array);
}

gw_status gw_import_features(struct gw_import *im)
{
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < im->num_features && status == GW_OK; i++)
		status = im->features[i].edge ? add_edge_feature(im, &im->features[i])
					      : add_node_feature(im, &im->features[i]);
	return status;
}
