/* Writing what a builder holds.
 *
 *   schema -> writer -> node arrays -> for each edge type and its reverse: CSC, indices, arrays in CSC order, transpose
 *          -> offsets of each node type -> commit
 *
 * One edge type is sorted at a time; only its offsets stay until its destination type's offsets are whole. Anything
 * that fails aborts the writer, which leaves nothing behind.
 */
#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/parallel.h"
#include "core/base/progress.h"
#include "core/graph/alias.h"
#include "core/graph/csc.h"
#include "core/graph/writer.h"
#include "tools/builder_internal.h"

#define PIECE_BYTES (8ull << 20) /* of an array, permuted at a time */
#define GRAIN       (64u << 10)
#define KEY_MAX     (GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 32)

struct writing {
	struct gw_builder *builder;
	struct gw_graph_meta *meta;
	struct gw_writer *writer;
	uint64_t **indptr;     /* [etypes] offsets by destination */
	uint64_t **out_indptr; /* [etypes] offsets by source, where transposed */
	unsigned threads;
	struct gw_progress progress;
	struct gw_builder_stats stats;
};

/* An edge type as it is written: the input, or the input turned round. */
struct turned {
	const struct builder_etype *type;
	uint32_t number; /* in the schema */
	const uint64_t *src, *dst;
	const char *folder;
	uint64_t *rows; /* [count] the input row of each CSC position */
};

static void wrote(struct writing *w, uint64_t bytes)
{
	w->stats.bytes += bytes;
	gw_progress_update(&w->progress, w->stats.bytes);
}

static uint64_t input_rows(const struct gw_builder_edges *edges)
{
	return edges->origin ? edges->input_rows : edges->count;
}

/* ---- the schema ---- */

static void fill_etype(struct gw_edge_type *out, const struct builder_etype *type, const char *prefix, bool turned)
{
	snprintf(out->name, sizeof(out->name), "%s%s", prefix, type->rel);
	out->src = turned ? type->dst : type->src;
	out->dst = turned ? type->src : type->dst;
	out->count = out->starts[1] = type->edges.count;
	out->relations = type->edges.rel ? type->edges.relations : 0;
	out->order = type->edges.time ? GW_ORDER_TIME_SRC : type->edges.rel ? GW_ORDER_REL_SRC : GW_ORDER_SRC;
	snprintf(out->time_name, sizeof(out->time_name), "%s", type->edges.time ? type->time_name : "");
	out->out_column = type->edges.transpose ? 0 : GW_TYPE_NONE;
}

static gw_status make_schema(const struct gw_builder *builder, struct gw_graph_meta **out)
{
	uint32_t etypes = builder->num_etypes;
	for (uint32_t i = 0; i < builder->num_etypes; i++)
		etypes += builder->etypes[i].edges.reverse;
	gw_status status = gw_meta_create(builder->name, 1, builder->num_ntypes, etypes, out);
	if (status)
		return status;
	struct gw_graph_meta *meta = *out;
	snprintf(meta->part_method, sizeof(meta->part_method), "none");
	for (uint32_t i = 0; i < builder->num_ntypes; i++) {
		memcpy(meta->ntypes[i].name, builder->ntypes[i].name, sizeof(meta->ntypes[i].name));
		meta->ntypes[i].count = meta->ntypes[i].starts[1] = builder->ntypes[i].count;
	}
	uint32_t at = 0;
	for (uint32_t i = 0; i < builder->num_etypes; i++) {
		const struct builder_etype *type = &builder->etypes[i];
		fill_etype(&meta->etypes[at], type, "", false);
		if (type->edges.symmetric)
			meta->etypes[at].reverse = at;
		if (type->edges.reverse) {
			if (strlen(type->rel) + 4 > GW_NAME_MAX) {
				status = gw_fail(GW_INVALID, "edge type \"%s\": no room for rev_ in its name",
						 type->rel);
				break;
			}
			meta->etypes[at].reverse = at + 1;
			fill_etype(&meta->etypes[at + 1], type, "rev_", true);
			meta->etypes[at + 1].reverse = at;
			at++;
		}
		at++;
	}
	if (status == GW_OK)
		status = gw_meta_finish(meta);
	if (status) {
		gw_meta_destroy(meta);
		*out = NULL;
	}
	return status;
}

/* ---- arrays ---- */

struct permuting {
	const uint8_t *data;
	uint8_t *piece;
	const uint64_t *rows;
	size_t row_bytes;
};

static gw_status permute_rows(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	const struct permuting *p = context;
	/* The common widths by plain copies that the compiler turns into single moves. */
	for (uint64_t i = begin; i < end; i++) {
		const uint8_t *from = p->data + p->rows[i] * p->row_bytes;
		uint8_t *to = p->piece + i * p->row_bytes;
		switch (p->row_bytes) {
		case 1:
			*to = *from;
			break;
		case 4:
			memcpy(to, from, 4);
			break;
		case 8:
			memcpy(to, from, 8);
			break;
		default:
			memcpy(to, from, p->row_bytes);
		}
	}
	return GW_OK;
}

static uint64_t row_bytes(const struct gw_builder_array *array)
{
	uint64_t bytes = gw_dtype_bytes(array->dtype);
	for (uint32_t i = 1; i < array->ndim; i++)
		bytes *= array->shape[i];
	return bytes;
}

/* Writes data's rows in the order of rows[count], a piece at a time. */
static gw_status write_permuted(struct writing *w, const char *key, const struct gw_builder_array *array,
				const uint64_t *rows, uint64_t count)
{
	uint64_t shape[GW_DIMS_MAX], bytes = row_bytes(array);
	memcpy(shape, array->shape, sizeof(shape));
	shape[0] = count;
	uint64_t step = bytes && bytes < PIECE_BYTES ? PIECE_BYTES / bytes : 1;
	struct gw_array_stream *stream;
	uint8_t *piece = gw_malloc(step * bytes);
	if (!piece)
		return gw_context(GW_NO_MEMORY, "%s", key);
	gw_status status = gw_writer_begin(w->writer, 0, key, array->dtype, array->ndim, shape, &stream);
	if (status)
		goto free_piece;
	for (uint64_t at = 0; at < count && status == GW_OK; at += step) {
		uint64_t part = count - at < step ? count - at : step;
		struct permuting permuting = {
			.data = array->data, .piece = piece, .rows = rows + at, .row_bytes = bytes};
		gw_parallel_for(w->threads, part, GRAIN, permute_rows, &permuting);
		status = gw_writer_append(stream, piece, part * bytes);
		wrote(w, part * bytes);
	}
	if (status)
		gw_writer_drop(stream);
	else
		status = gw_writer_end(stream);
free_piece:
	gw_free(piece);
	return status;
}

static gw_status write_strings(struct writing *w, const char *key, const struct builder_item *item)
{
	gw_status status = gw_writer_strings(w->writer, 0, key, item->offsets, item->array.shape[0], item->array.data);
	wrote(w, (item->array.shape[0] + 1) * 8 + item->offsets[item->array.shape[0]]);
	return status;
}

static gw_status check_rows(const struct builder_item *item, const char *what, const char *type, uint64_t rows)
{
	if (item->strings || item->array.shape[0] == rows)
		return GW_OK;
	return gw_fail(GW_INVALID, "%s feature \"%s\" of %s has %llu rows, but there are %llu %ss", what, item->name,
		       type, (unsigned long long)item->array.shape[0], (unsigned long long)rows, what);
}

struct counting {
	int64_t *ids;
};

static gw_status count_up(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	struct counting *counting = context;
	for (uint64_t i = begin; i < end; i++)
		counting->ids[i] = (int64_t)i;
	return GW_OK;
}

/* Nodes that keep their numbers have orig_id all the same: a partitioner renumbers them. */
static gw_status write_identity(struct writing *w, const char *key, uint64_t count)
{
	struct counting counting = {.ids = gw_malloc(count * sizeof(int64_t))};
	if (!counting.ids)
		return gw_context(GW_NO_MEMORY, "%s", key);
	gw_parallel_for(w->threads, count, GRAIN, count_up, &counting);
	gw_status status = gw_writer_array(w->writer, 0, key, GW_INT64, 1, &count, counting.ids);
	gw_free(counting.ids);
	wrote(w, count * 8);
	return status;
}

static gw_status write_node_arrays(struct writing *w)
{
	char key[KEY_MAX];
	for (uint32_t t = 0; t < w->builder->num_ntypes; t++) {
		const struct builder_ntype *type = &w->builder->ntypes[t];
		bool has_orig_id = false;
		for (uint32_t i = 0; i < type->arrays.count; i++) {
			const struct builder_item *item = &type->arrays.items[i];
			const struct gw_builder_array *array = &item->array;
			has_orig_id |= strcmp(item->name, "orig_id") == 0;
			snprintf(key, sizeof(key), "node/%s/%s", type->name, item->name);
			gw_status status = check_rows(item, "node", type->name, type->count);
			if (status == GW_OK && item->strings)
				status = write_strings(w, key, item);
			else if (status == GW_OK)
				status = gw_writer_array(w->writer, 0, key, array->dtype, array->ndim, array->shape,
							 array->data);
			if (status)
				return status;
			wrote(w, item->strings ? 0 : row_bytes(array) * type->count);
		}
		snprintf(key, sizeof(key), "node/%s/orig_id", type->name);
		gw_status status = has_orig_id ? GW_OK : write_identity(w, key, type->count);
		if (status)
			return status;
		w->stats.nodes += type->count;
	}
	return GW_OK;
}

/* ---- edges ---- */

struct gathering {
	uint64_t *out;
	const uint64_t *from, *by;
};

static gw_status gather_body(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	const struct gathering *g = context;
	for (uint64_t i = begin; i < end; i++)
		g->out[i] = g->from[g->by[i]];
	return GW_OK;
}

/* out[i] = from[by[i]]; out may be by. */
static void gather(const struct writing *w, uint64_t *out, const uint64_t *from, const uint64_t *by, uint64_t count)
{
	struct gathering g = {.out = out, .from = from, .by = by};
	gw_parallel_for(w->threads, count, GRAIN, gather_body, &g);
}

static gw_status build_csc(struct writing *w, const struct turned *t, struct gw_csc *csc)
{
	const struct gw_builder_edges *edges = &t->type->edges;
	const struct gw_edge_type *schema = &w->meta->etypes[t->number];
	uint64_t *time = NULL, start_ns = gw_now_ns();
	uint32_t *rel = NULL;
	struct gw_coo coo = {.num_src = w->meta->ntypes[schema->src].count,
			     .num_dst = w->meta->ntypes[schema->dst].count,
			     .num_edges = edges->count,
			     .src = t->src,
			     .dst = t->dst,
			     .time = edges->time,
			     .rel = edges->time ? NULL : edges->rel};
	if (edges->time && edges->origin) { /* one value per edge, not per input row */
		time = gw_malloc(edges->count * sizeof(*time));
		if (!time)
			return GW_NO_MEMORY;
		gather(w, time, (const uint64_t *)edges->time, edges->origin, edges->count);
		coo.time = (const int64_t *)time;
	}
	if (edges->rel && !edges->time && edges->origin) {
		rel = gw_malloc(edges->count * sizeof(*rel));
		if (!rel)
			return GW_NO_MEMORY;
		for (uint64_t i = 0; i < edges->count; i++)
			rel[i] = edges->rel[edges->origin[i]];
		coo.rel = rel;
	}
	gw_status status = gw_csc_build(&coo, w->threads, csc);
	gw_free(time);
	gw_free(rel);
	w->stats.csc_ns += gw_now_ns() - start_ns;
	return status;
}

static gw_status write_rel(struct writing *w, const struct turned *t)
{
	const struct gw_builder_edges *edges = &t->type->edges;
	gw_dtype dtype = edges->relations <= 1u << 8 ? GW_UINT8 : edges->relations <= 1u << 16 ? GW_UINT16 : GW_UINT32;
	uint64_t bytes = gw_dtype_bytes(dtype);
	uint8_t *narrow = gw_malloc(edges->count * bytes);
	if (!narrow)
		return GW_NO_MEMORY;
	for (uint64_t i = 0; i < edges->count; i++)
		memcpy(narrow + i * bytes, &edges->rel[t->rows[i]], bytes); /* little-endian, as the format is */
	char key[KEY_MAX];
	snprintf(key, sizeof(key), "edge/%s/rel", t->folder);
	gw_status status = gw_writer_array(w->writer, 0, key, dtype, 1, &edges->count, narrow);
	gw_free(narrow);
	wrote(w, edges->count * bytes);
	return status;
}

/* Out-edges: the edges in CSC order, sorted by source; what they say is where each edge stands in the CSC. keys: the
 * time or the relation of each, by which a list is sorted first, or NULL. */
static gw_status write_transpose(struct writing *w, const struct turned *t, const struct gw_csc *csc,
				 const uint64_t *keys)
{
	uint64_t count = t->type->edges.count;
	const struct gw_edge_type *schema = &w->meta->etypes[t->number];
	char key[KEY_MAX];
	struct gw_csc out = {0};
	gw_status status = GW_NO_MEMORY;
	uint64_t *src = gw_malloc(count * sizeof(*src)), *dst = gw_malloc(count * sizeof(*dst));
	if (!src || !dst)
		goto free_columns;
	gather(w, src, t->src, csc->order, count);
	gather(w, dst, t->dst, csc->order, count);
	struct gw_coo coo = {.num_src = w->meta->ntypes[schema->dst].count,
			     .num_dst = w->meta->ntypes[schema->src].count,
			     .num_edges = count,
			     .src = dst,
			     .dst = src,
			     .time = (const int64_t *)keys};
	status = gw_csc_build(&coo, w->threads, &out);
	if (status)
		goto free_columns;
	gather(w, src, dst, out.order, count); /* destinations by source */
	snprintf(key, sizeof(key), "edge/%s/out/indices", t->folder);
	status = gw_writer_ids(w->writer, 0, key, src, count, coo.num_src);
	snprintf(key, sizeof(key), "edge/%s/out/eid", t->folder);
	if (status == GW_OK)
		status = gw_writer_array(w->writer, 0, key, GW_UINT64, 1, &count, out.order);
	wrote(w, count * 16);
	w->out_indptr[t->number] = out.indptr;
	out.indptr = NULL;
	gw_csc_free(&out);
free_columns:
	gw_free(src);
	gw_free(dst);
	return status;
}

/* The alias table of a weight: built on the weights in CSC order. */
static gw_status write_alias(struct writing *w, const struct turned *t, const struct builder_item *item,
			     const uint64_t *indptr)
{
	uint64_t count = t->type->edges.count, shape[2] = {count, 2};
	const struct gw_edge_type *schema = &w->meta->etypes[t->number];
	float *weights = gw_malloc(count * sizeof(*weights));
	uint32_t *table = gw_malloc(count * 2 * sizeof(*table));
	gw_status status = weights && table ? GW_OK : GW_NO_MEMORY;
	if (status == GW_OK) {
		struct permuting permuting = {.data = item->array.data,
					      .piece = (uint8_t *)weights,
					      .rows = t->rows,
					      .row_bytes = sizeof(*weights)};
		gw_parallel_for(w->threads, count, GRAIN, permute_rows, &permuting);
		status = gw_alias_build(indptr, w->meta->ntypes[schema->dst].count, GW_FLOAT32, weights, w->threads,
					table);
	}
	char key[KEY_MAX];
	snprintf(key, sizeof(key), "edge/%s/%s.alias", t->folder, item->name);
	if (status == GW_OK)
		status = gw_writer_array(w->writer, 0, key, GW_UINT32, 2, shape, table);
	gw_free(weights);
	gw_free(table);
	wrote(w, count * 8);
	return status ? gw_context(status, "weight \"%s\"", item->name) : GW_OK;
}

/* What goes by input rows: declared arrays, time, weights, orig_id. */
static gw_status write_edge_arrays(struct writing *w, const struct turned *t, const uint64_t *indptr)
{
	const struct builder_etype *type = t->type;
	const struct gw_builder_edges *edges = &type->edges;
	char key[KEY_MAX];
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < type->arrays.count && status == GW_OK; i++) {
		const struct builder_item *item = &type->arrays.items[i];
		snprintf(key, sizeof(key), "edge/%s/%s", t->folder, item->name);
		status = check_rows(item, "edge", type->rel, input_rows(edges));
		if (status == GW_OK)
			status = item->strings ? write_strings(w, key, item)
					       : write_permuted(w, key, &item->array, t->rows, edges->count);
		if (status == GW_OK && item->array.weight)
			status = write_alias(w, t, item, indptr);
	}
	if (status == GW_OK && edges->time) {
		struct gw_builder_array time = {
			.dtype = GW_INT64, .ndim = 1, .shape = {edges->count}, .data = edges->time};
		snprintf(key, sizeof(key), "edge/%s/%s", t->folder, type->time_name);
		status = write_permuted(w, key, &time, t->rows, edges->count);
	}
	if (status == GW_OK && (type->arrays.count || edges->time || edges->keep_orig_id)) {
		snprintf(key, sizeof(key), "edge/%s/orig_id", t->folder);
		status = gw_writer_array(w->writer, 0, key, GW_INT64, 1, &edges->count, t->rows);
		wrote(w, edges->count * 8);
	}
	return status;
}

static gw_status write_etype(struct writing *w, struct turned *t)
{
	const struct gw_builder_edges *edges = &t->type->edges;
	const struct gw_edge_type *schema = &w->meta->etypes[t->number];
	char key[KEY_MAX];
	struct gw_csc csc = {0};
	uint64_t *scratch = NULL;
	t->folder = schema->folder;
	gw_status status = build_csc(w, t, &csc);
	if (status)
		return gw_context(status, "edge type %s", schema->name);
	scratch = gw_malloc(edges->count * sizeof(*scratch));
	if (!scratch) {
		status = GW_NO_MEMORY;
		goto free_csc;
	}
	gather(w, scratch, t->src, csc.order, edges->count);
	snprintf(key, sizeof(key), "edge/%s/indices", t->folder);
	status = gw_writer_ids(w->writer, 0, key, scratch, edges->count, w->meta->ntypes[schema->src].count);
	wrote(w, edges->count * 4);
	t->rows = csc.order;
	if (edges->origin) {
		gather(w, scratch, edges->origin, csc.order, edges->count);
		t->rows = scratch;
	}
	if (status == GW_OK && edges->rel)
		status = write_rel(w, t);
	if (status == GW_OK)
		status = write_edge_arrays(w, t, csc.indptr);
	if (status == GW_OK && edges->transpose) {
		uint64_t *keys = NULL;
		if (schema->order != GW_ORDER_SRC && !(keys = gw_malloc(edges->count * sizeof(*keys))))
			status = GW_NO_MEMORY;
		else if (schema->order == GW_ORDER_TIME_SRC)
			gather(w, keys, (const uint64_t *)edges->time, t->rows, edges->count);
		for (uint64_t i = 0; keys && edges->rel && schema->order == GW_ORDER_REL_SRC && i < edges->count; i++)
			keys[i] = edges->rel[t->rows[i]];
		if (status == GW_OK)
			status = write_transpose(w, t, &csc, keys);
		gw_free(keys);
	}
	w->indptr[t->number] = csc.indptr;
	csc.indptr = NULL;
	w->stats.edges += edges->count;
free_csc:
	gw_free(scratch);
	gw_csc_free(&csc);
	return status;
}

static gw_status write_edges(struct writing *w)
{
	uint32_t number = 0;
	for (uint32_t i = 0; i < w->builder->num_etypes; i++) {
		const struct builder_etype *type = &w->builder->etypes[i];
		struct turned t = {.type = type, .number = number, .src = type->edges.src, .dst = type->edges.dst};
		gw_status status = write_etype(w, &t);
		number++;
		if (status)
			return status;
		if (!type->edges.reverse)
			continue;
		t = (struct turned){.type = type, .number = number, .src = type->edges.dst, .dst = type->edges.src};
		status = write_etype(w, &t);
		number++;
		if (status)
			return status;
	}
	return GW_OK;
}

/* ---- offsets ---- */

static gw_status write_offsets(struct writing *w)
{
	const uint64_t **columns = gw_calloc(w->meta->num_etypes, sizeof(*columns));
	if (!columns)
		return GW_NO_MEMORY;
	char key[KEY_MAX];
	gw_status status = GW_OK;
	for (uint32_t t = 0; t < w->meta->num_ntypes && status == GW_OK; t++) {
		const struct gw_node_type *type = &w->meta->ntypes[t];
		for (uint32_t c = 0; c < type->columns; c++)
			columns[c] = w->indptr[type->column_edge_types[c]];
		snprintf(key, sizeof(key), "node/%s/indptr", type->name);
		if (type->columns)
			status = gw_writer_indptr(w->writer, 0, key, type->count, type->columns, columns);
		wrote(w, (type->count + 1) * type->columns * 4);
		for (uint32_t c = 0; c < type->out_columns; c++)
			columns[c] = w->out_indptr[type->out_column_edge_types[c]];
		snprintf(key, sizeof(key), "node/%s/out_indptr", type->name);
		if (status == GW_OK && type->out_columns)
			status = gw_writer_indptr(w->writer, 0, key, type->count, type->out_columns, columns);
	}
	gw_free(columns);
	return status;
}

/* The bytes to come, for the progress bar: about right is enough. */
static uint64_t expected_bytes(const struct gw_builder *builder)
{
	uint64_t bytes = 0;
	for (uint32_t t = 0; t < builder->num_ntypes; t++) {
		const struct builder_ntype *type = &builder->ntypes[t];
		bytes += type->count * 8;
		for (uint32_t i = 0; i < type->arrays.count; i++)
			bytes += row_bytes(&type->arrays.items[i].array) * type->count;
	}
	for (uint32_t t = 0; t < builder->num_etypes; t++) {
		const struct builder_etype *type = &builder->etypes[t];
		uint64_t row = 4 + (type->edges.transpose ? 16u : 0u) + (type->edges.time ? 16u : 0u);
		for (uint32_t i = 0; i < type->arrays.count; i++)
			row += row_bytes(&type->arrays.items[i].array);
		bytes += row * type->edges.count * (type->edges.reverse ? 2u : 1u);
	}
	return bytes;
}

static void free_offsets(struct writing *w, uint64_t **offsets)
{
	for (uint32_t i = 0; offsets && i < w->meta->num_etypes; i++)
		gw_free(offsets[i]);
	gw_free(offsets);
}

gw_status gw_builder_write(struct gw_builder *builder, const char *folder, const struct gw_builder_options *options,
			   struct gw_builder_stats *stats)
{
	struct writing w = {.builder = builder, .threads = options->threads};
	uint64_t start_ns = gw_now_ns();
	gw_status status = make_schema(builder, &w.meta);
	if (status)
		return status;
	w.indptr = gw_calloc(w.meta->num_etypes, sizeof(*w.indptr));
	w.out_indptr = gw_calloc(w.meta->num_etypes, sizeof(*w.out_indptr));
	status = w.indptr && w.out_indptr ? gw_writer_open(folder, w.meta, options->replace, &w.writer) : GW_NO_MEMORY;
	if (status)
		goto free_all;
	gw_progress_begin(&w.progress, "writing", "B", expected_bytes(builder));
	if (options->quiet)
		w.progress.next_ns = UINT64_MAX;
	status = write_node_arrays(&w);
	if (status == GW_OK)
		status = write_edges(&w);
	if (status == GW_OK)
		status = write_offsets(&w);
	gw_progress_end(&w.progress, w.stats.bytes);
	if (status == GW_OK)
		status = gw_writer_commit(w.writer, &w.stats.graph_id);
	else
		gw_writer_abort(w.writer);
	w.stats.write_ns = gw_now_ns() - start_ns - w.stats.csc_ns;
	if (status == GW_OK && stats)
		*stats = w.stats;
free_all:
	free_offsets(&w, w.indptr);
	free_offsets(&w, w.out_indptr);
	gw_meta_destroy(w.meta);
	return status;
}
