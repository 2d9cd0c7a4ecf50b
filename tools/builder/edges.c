/* Writes the edge types of a builder, each followed by its reverse if it has one.
 *
 *   edges -> keys of times -> CSC -> indices -> times of sources -> relations, arrays, weights' alias tables, orig_id
 * in CSC order -> transpose
 *
 * One edge type is sorted at a time. Only its offsets stay in memory, until all edge types are written: write.c then
 * writes the offset tables of the node types. Fails for ids and relations out of range (the error names the edge), for
 * invalid weights, if memory runs out, and for the writer's errors.
 */
#include <stdio.h>
#include <string.h>

#include "core/graph/alias.h"
#include "core/graph/csc.h"
#include "core/graph/inverse.h"
#include "core/memory/alloc.h"
#include "core/numbers/time_key.h"
#include "core/system/clock.h"
#include "core/system/parallel.h"
#include "tools/builder/builder_private.h"
#include "tools/weights.h"

#define PIECE_BYTES (8ull << 20) /* bytes of an array that are permuted at a time */

/* An edge type as it is written: the input, or the input reversed. */
struct turned {
	const struct builder_etype *type;
	uint32_t number; /* its number in the schema */
	const uint64_t *src, *dst;
	const char *folder;
	uint64_t *rows;                    /* [count] the input row of each CSC position */
	const struct gw_time_order *order; /* by time; NULL: none */
	int64_t *keys;                     /* [count] of each edge's time; NULL: no order by time */
};

static uint64_t input_rows(const struct gw_builder_edges *edges)
{
	return edges->origin ? edges->input_rows : edges->count;
}

/* ---- rows in CSC order ---- */

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
	/* Common widths use plain copies, which the compiler turns into single moves. */
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

static gw_status write_permuted(struct builder_writing *w, const char *key, const struct gw_builder_array *array,
				const uint64_t *rows, uint64_t count)
{
	uint64_t shape[GW_DIMS_MAX], bytes = gw_builder_row_bytes(array);
	memcpy(shape, array->shape, sizeof(shape));
	shape[0] = count;
	uint64_t step = bytes && bytes < PIECE_BYTES ? PIECE_BYTES / bytes : 1;
	struct gw_array_stream *stream;
	gw_status status = gw_writer_begin(w->writer, 0, key, array->dtype, array->ndim, shape, &stream);
	if (status != GW_OK)
		return status;
	step = step < count ? step : count; /* an empty array needs no room, whatever its bytes of a row */
	uint8_t *piece = gw_malloc(step * bytes);
	if (!piece)
		status = gw_context(GW_NO_MEMORY, "%s", key);
	for (uint64_t at = 0; at < count && status == GW_OK; at += step) {
		uint64_t part = count - at < step ? count - at : step;
		struct permuting permuting = {
			.data = array->data, .piece = piece, .rows = rows + at, .row_bytes = bytes};
		gw_parallel_for(w->threads, part, GW_BUILDER_GRAIN, permute_rows, &permuting);
		status = gw_writer_append(stream, piece, part * bytes);
		gw_builder_wrote(w, part * bytes);
	}
	if (status != GW_OK)
		gw_writer_drop(stream);
	else
		status = gw_writer_end(stream);
	gw_free(piece);
	return status;
}

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

/* out[i] = from[by[i]]; out may be the same array as by. */
static void builder_gather(const struct builder_writing *w, uint64_t *out, const uint64_t *from, const uint64_t *by,
			   uint64_t count)
{
	struct gathering g = {.out = out, .from = from, .by = by};
	gw_parallel_for(w->threads, count, GW_BUILDER_GRAIN, gather_body, &g);
}

struct keying {
	const struct gw_time_column *times;
	const uint64_t *of; /* [count] the row of each edge's time; NULL: the edge's index */
	int64_t *keys;
};

/* Sources are checked when the lists are built. */
static gw_status key_body(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	const struct keying *k = context;
	uint64_t bytes = gw_dtype_bytes(k->times->dtype), rows = k->times->shape[0];
	for (uint64_t i = begin; i < end; i++) {
		uint64_t row = k->of ? k->of[i] : i;
		k->keys[i] =
			row < rows ? gw_time_key(k->times->dtype, (const uint8_t *)k->times->data + row * bytes) : 0;
	}
	return GW_OK;
}

static gw_status make_time_keys(const struct builder_writing *w, struct turned *t)
{
	const struct gw_builder_edges *edges = &t->type->edges;
	if (!t->order)
		return GW_OK;
	t->keys = gw_malloc(edges->count * sizeof(*t->keys));
	if (!t->keys)
		return GW_NO_MEMORY;
	struct keying keying = {
		.times = &t->order->column, .of = t->order->of_source ? t->src : edges->origin, .keys = t->keys};
	return gw_parallel_for(w->threads, edges->count, GW_BUILDER_GRAIN, key_body, &keying);
}

static gw_status build_csc(struct builder_writing *w, const struct turned *t, struct gw_csc *csc)
{
	const struct gw_builder_edges *edges = &t->type->edges;
	const struct gw_edge_type *schema = &w->meta->etypes[t->number];
	uint64_t start_ns = gw_now_ns();
	uint32_t *rel = NULL;
	struct gw_coo coo = {.num_src = w->meta->ntypes[schema->src].count,
			     .num_dst = w->meta->ntypes[schema->dst].count,
			     .num_edges = edges->count,
			     .src = t->src,
			     .dst = t->dst,
			     .time = t->keys,
			     .rel = edges->rel};
	if (edges->rel && edges->origin) { /* one value for each edge, not for each input row */
		rel = gw_malloc(edges->count * sizeof(*rel));
		if (!rel)
			return GW_NO_MEMORY;
		for (uint64_t i = 0; i < edges->count; i++)
			rel[i] = edges->rel[edges->origin[i]];
		coo.rel = rel;
	}
	gw_status status = gw_csc_build(&coo, w->threads, csc);
	gw_free(rel);
	w->stats.csc_ns += gw_now_ns() - start_ns;
	return status;
}

static gw_status write_rel(struct builder_writing *w, const struct turned *t)
{
	const struct gw_builder_edges *edges = &t->type->edges;
	gw_dtype dtype = edges->relations <= 1u << 8 ? GW_UINT8 : edges->relations <= 1u << 16 ? GW_UINT16 : GW_UINT32;
	uint64_t bytes = gw_dtype_bytes(dtype);
	uint8_t *narrow = gw_malloc(edges->count * bytes);
	if (!narrow)
		return GW_NO_MEMORY;
	gw_status status = GW_OK;
	for (uint64_t i = 0; i < edges->count && status == GW_OK; i++) {
		uint32_t rel = edges->rel[t->rows[i]];
		if (rel >= edges->relations)
			status = gw_fail(GW_RANGE, "edge type %s: input row %llu: relation %u of %u", t->folder,
					 (unsigned long long)t->rows[i], rel, edges->relations);
		memcpy(narrow + i * bytes, &rel, bytes); /* little-endian, like the format */
	}
	char key[GW_BUILDER_KEY_MAX];
	snprintf(key, sizeof(key), "edge/%s/rel", t->folder);
	if (status == GW_OK)
		status = gw_writer_array(w->writer, 0, key, dtype, 1, &edges->count, narrow);
	gw_free(narrow);
	gw_builder_wrote(w, edges->count * bytes);
	return status;
}

/* Sets *out to NULL for types whose lists are sorted by ids only. */
static gw_status make_keys(struct builder_writing *w, const struct turned *t, const uint64_t *order, uint64_t **out)
{
	const struct gw_builder_edges *edges = &t->type->edges;
	*out = NULL;
	if (!t->keys && !edges->rel)
		return GW_OK;
	uint64_t *keys = gw_malloc(edges->count * sizeof(*keys));
	if (!keys)
		return GW_NO_MEMORY;
	if (t->keys)
		builder_gather(w, keys, (const uint64_t *)t->keys, order, edges->count);
	for (uint64_t i = 0; !t->keys && i < edges->count; i++)
		keys[i] = edges->rel[t->rows[i]];
	*out = keys;
	return GW_OK;
}

/* Each entry holds the edge's place in the CSC. */
static gw_status write_transpose(struct builder_writing *w, const struct turned *t, const struct gw_csc *csc)
{
	uint64_t count = t->type->edges.count;
	const struct gw_edge_type *schema = &w->meta->etypes[t->number];
	char key[GW_BUILDER_KEY_MAX];
	struct gw_csc out = {0};
	uint64_t *keys, *src = gw_malloc(count * sizeof(*src)), *dst = gw_malloc(count * sizeof(*dst));
	gw_status status = make_keys(w, t, csc->order, &keys);
	if (!src || !dst)
		status = GW_NO_MEMORY;
	if (status != GW_OK)
		goto free_columns;
	builder_gather(w, src, t->src, csc->order, count);
	builder_gather(w, dst, t->dst, csc->order, count);
	struct gw_coo coo = {.num_src = w->meta->ntypes[schema->dst].count,
			     .num_dst = w->meta->ntypes[schema->src].count,
			     .num_edges = count,
			     .src = dst,
			     .dst = src,
			     .time = (const int64_t *)keys};
	status = gw_csc_build(&coo, w->threads, &out);
	if (status != GW_OK)
		goto free_columns;
	builder_gather(w, src, dst, out.order, count); /* destinations by source */
	snprintf(key, sizeof(key), "edge/%s/out/indices", t->folder);
	status = gw_writer_ids(w->writer, 0, key, src, count, coo.num_src);
	snprintf(key, sizeof(key), "edge/%s/out/eid", t->folder);
	if (status == GW_OK)
		status = gw_writer_array(w->writer, 0, key, GW_UINT64, 1, &count, out.order);
	gw_builder_wrote(w, count * 16);
	w->out_indptr[t->number] = out.indptr;
	out.indptr = NULL;
	gw_csc_free(&out);
free_columns:
	gw_free(keys);
	gw_free(src);
	gw_free(dst);
	return status;
}

/* Names the input row of a weight that no alias table can hold; gw_alias_build names its place in the CSC. */
static gw_status fail_weight(const struct builder_writing *w, const struct turned *t, const struct builder_item *item,
			     gw_status status)
{
	char text[GW_WEIGHT_TEXT_MAX];
	const struct gw_builder_array *array = &item->array;
	uint64_t row = status == GW_RANGE
			       ? gw_weight_first_fault(array->dtype, array->data, array->shape[0], w->threads, text)
			       : GW_NONE;
	if (row != GW_NONE)
		status = gw_fail(GW_RANGE, "input row %llu: %s: " GW_WEIGHT_RULE, (unsigned long long)row, text);
	return gw_context(status, "edge type %s: weight \"%s\"", t->folder, item->name);
}

static gw_status write_alias(struct builder_writing *w, const struct turned *t, const struct builder_item *item,
			     const uint64_t *indptr)
{
	uint64_t count = t->type->edges.count, shape[2] = {count, 2};
	const struct gw_edge_type *schema = &w->meta->etypes[t->number];
	uint64_t bytes = gw_builder_row_bytes(&item->array);
	uint8_t *weights = gw_malloc(count * bytes);
	uint32_t *table = gw_malloc(count * 2 * sizeof(*table));
	gw_status status = weights && table ? GW_OK : GW_NO_MEMORY;
	if (status == GW_OK) {
		struct permuting permuting = {
			.data = item->array.data, .piece = weights, .rows = t->rows, .row_bytes = bytes};
		gw_parallel_for(w->threads, count, GW_BUILDER_GRAIN, permute_rows, &permuting);
		status = gw_alias_build(indptr, w->meta->ntypes[schema->dst].count, item->array.dtype, weights,
					w->threads, table);
	}
	char key[GW_BUILDER_KEY_MAX];
	snprintf(key, sizeof(key), "edge/%s/%s.alias", t->folder, item->name);
	if (status == GW_OK)
		status = gw_writer_array(w->writer, 0, key, GW_UINT32, 2, shape, table);
	gw_free(weights);
	gw_free(table);
	gw_builder_wrote(w, count * 8);
	return status != GW_OK ? fail_weight(w, t, item, status) : GW_OK;
}

static uint64_t builder_origin_of(const void *context, uint64_t position)
{
	const struct turned *t = context;
	return t->rows[position];
}

static gw_status write_origins(struct builder_writing *w, const struct turned *t)
{
	const struct gw_builder_edges *edges = &t->type->edges;
	char key[GW_BUILDER_KEY_MAX];
	uint64_t rows;
	snprintf(key, sizeof(key), "edge/%s/orig_id", t->folder);
	gw_status status = gw_writer_edge_origins(w->writer, 0, key, t->rows, edges->count, input_rows(edges));
	if (status == GW_OK)
		status = gw_inverse_write(w->writer, key, builder_origin_of, t, edges->count, w->threads, &rows);
	if (status == GW_OK)
		gw_builder_wrote(w, (edges->count + rows) * 4);
	return status;
}

static gw_status write_edge_arrays(struct builder_writing *w, const struct turned *t, const uint64_t *indptr)
{
	const struct builder_etype *type = t->type;
	const struct gw_builder_edges *edges = &type->edges;
	char key[GW_BUILDER_KEY_MAX];
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < type->arrays.count && status == GW_OK; i++) {
		const struct builder_item *item = &type->arrays.items[i];
		snprintf(key, sizeof(key), "edge/%s/%s", t->folder, item->name);
		status = gw_builder_check_rows(item, "edge", type->rel, input_rows(edges));
		if (status == GW_OK)
			status = item->strings ? gw_builder_write_strings(w, key, item)
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
	if (status == GW_OK && gw_builder_keeps_origins(type))
		status = write_origins(w, t);
	return status;
}

/* sources: [count] of each CSC position. */
static gw_status write_source_times(struct builder_writing *w, const struct turned *t, const uint64_t *sources)
{
	char key[GW_BUILDER_KEY_MAX];
	struct gw_builder_array times = {.dtype = t->order->column.dtype,
					 .ndim = 1,
					 .shape = {t->order->column.shape[0]},
					 .data = t->order->column.data};
	snprintf(key, sizeof(key), "edge/%s/%s", t->folder, t->order->name);
	return write_permuted(w, key, &times, sources, t->type->edges.count);
}

static gw_status write_etype(struct builder_writing *w, struct turned *t)
{
	const struct gw_builder_edges *edges = &t->type->edges;
	const struct gw_edge_type *schema = &w->meta->etypes[t->number];
	char key[GW_BUILDER_KEY_MAX];
	struct gw_csc csc = {0};
	uint64_t *scratch = NULL;
	t->folder = schema->folder;
	t->order = w->times.orders[t->number].name[0] ? &w->times.orders[t->number] : NULL;
	gw_status status = make_time_keys(w, t);
	if (status == GW_OK)
		status = build_csc(w, t, &csc);
	if (status != GW_OK) {
		gw_free(t->keys);
		return gw_context(status, "edge type %s", schema->name);
	}
	scratch = gw_malloc(edges->count * sizeof(*scratch));
	if (!scratch) {
		status = GW_NO_MEMORY;
		goto free_csc;
	}
	builder_gather(w, scratch, t->src, csc.order, edges->count);
	snprintf(key, sizeof(key), "edge/%s/indices", t->folder);
	status = gw_writer_ids(w->writer, 0, key, scratch, edges->count, w->meta->ntypes[schema->src].count);
	gw_builder_wrote(w, edges->count * 4);
	if (status == GW_OK && t->order && t->order->of_source)
		status = write_source_times(w, t, scratch);
	t->rows = csc.order;
	if (edges->origin) {
		builder_gather(w, scratch, edges->origin, csc.order, edges->count);
		t->rows = scratch;
	}
	if (status == GW_OK && edges->rel)
		status = write_rel(w, t);
	if (status == GW_OK)
		status = write_edge_arrays(w, t, csc.indptr);
	if (status == GW_OK && edges->transpose)
		status = write_transpose(w, t, &csc);
	w->indptr[t->number] = csc.indptr;
	csc.indptr = NULL;
	w->stats.edges += edges->count;
free_csc:
	gw_free(t->keys);
	gw_free(scratch);
	gw_csc_free(&csc);
	return status;
}

gw_status gw_builder_write_edges(struct builder_writing *w)
{
	uint32_t number = 0;
	for (uint32_t i = 0; i < w->builder->num_etypes; i++) {
		const struct builder_etype *type = &w->builder->etypes[i];
		struct turned t = {.type = type, .number = number, .src = type->edges.src, .dst = type->edges.dst};
		gw_status status = write_etype(w, &t);
		number++;
		if (status != GW_OK)
			return status;
		if (!type->edges.reverse)
			continue;
		t = (struct turned){.type = type, .number = number, .src = type->edges.dst, .dst = type->edges.src};
		status = write_etype(w, &t);
		number++;
		if (status != GW_OK)
			return status;
	}
	return GW_OK;
}
