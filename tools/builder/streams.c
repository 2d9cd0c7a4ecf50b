/* See streams.h. Fails for relations out of range, for invalid weights, if memory runs out, and with the writer's
 * errors.
 */
#include "tools/builder/streams.h"
#include "tools/builder/builder_private.h"

#include <stdio.h>
#include <string.h>

#include "core/graph/alias.h"
#include "core/memory/alloc.h"
#include "core/system/parallel.h"
#include "tools/weights.h"

#define PIECE_BYTES   (8ull << 20) /* bytes of an array that are permuted at a time */
#define STREAMS_FIXED 5u           /* besides the arrays and their alias tables */

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

/* Appends the rows of a run. places: [count] of each position. */
static gw_status append_rows(struct builder_turned *t, const struct builder_stream *stream, const uint8_t *rows,
			     const uint64_t *places)
{
	uint64_t count = t->run.count, bytes = stream->bytes;
	uint64_t step = bytes && bytes < PIECE_BYTES ? PIECE_BYTES / bytes : 1;
	step = step < count ? step : count; /* an empty array needs no room, whatever its bytes of a row */
	uint8_t *piece = gw_malloc(step * bytes);
	gw_status status = piece ? GW_OK : gw_context(GW_NO_MEMORY, "%s", stream->key);
	for (uint64_t at = 0; at < count && status == GW_OK; at += step) {
		uint64_t part = count - at < step ? count - at : step;
		struct permuting permuting = {.data = rows, .piece = piece, .rows = places + at, .row_bytes = bytes};
		gw_parallel_for(t->w->threads, part, GW_BUILDER_GRAIN, permute_rows, &permuting);
		status = gw_writer_append(stream->stream, piece, part * bytes);
		gw_builder_wrote(t->w, part * bytes);
	}
	gw_free(piece);
	return status;
}

/* ---- streams ---- */

gw_status gw_builder_stream_open(struct builder_turned *t, enum builder_stream_kind kind, const char *name,
				 gw_dtype dtype, uint32_t ndim, const uint64_t *shape, struct builder_stream **out)
{
	struct builder_stream *stream = &t->streams[t->stream_count];
	uint64_t whole[GW_DIMS_MAX] = {t->type->edges.count};
	for (uint32_t i = 1; i < ndim; i++)
		whole[i] = shape[i];
	*stream = (struct builder_stream){.kind = kind, .dtype = dtype, .bytes = gw_dtype_bytes(dtype)};
	for (uint32_t i = 1; i < ndim; i++)
		stream->bytes *= whole[i];
	snprintf(stream->key, sizeof(stream->key), "edge/%s/%s", t->folder, name);
	gw_status status = gw_writer_begin(t->w->writer, 0, stream->key, dtype, ndim, whole, &stream->stream);
	t->stream_count += status == GW_OK;
	if (out)
		*out = stream;
	return status;
}

/* Sets the stream's rows to those of the input, or of the runs. */
static gw_status stream_rows(struct builder_turned *t, struct builder_stream *stream, const void *data)
{
	const uint64_t *by = t->type->edges.origin;
	gw_status status = gw_runs_scatter(&t->runs, data, stream->bytes, by, &stream->scattered);
	stream->rows = stream->scattered ? stream->scattered : data;
	return status;
}

static gw_status open_array(struct builder_turned *t, const struct builder_item *item)
{
	const struct gw_builder_array *array = &item->array;
	struct builder_stream *stream, *alias;
	char name[GW_NAME_MAX + sizeof(".alias")];
	gw_status status = gw_builder_check_rows(item, "edge", t->type->rel, gw_builder_input_rows(&t->type->edges));
	if (status == GW_OK && item->strings) {
		char key[GW_BUILDER_KEY_MAX];
		snprintf(key, sizeof(key), "edge/%s/%s", t->folder, item->name);
		return gw_builder_write_strings(t->w, key, item);
	}
	if (status == GW_OK)
		status = gw_builder_stream_open(t, BUILDER_STREAM_ROWS, item->name, array->dtype, array->ndim,
						array->shape, &stream);
	if (status == GW_OK)
		status = stream_rows(t, stream, array->data);
	if (status != GW_OK || !array->weight)
		return status;
	snprintf(name, sizeof(name), "%s.alias", item->name);
	status = gw_builder_stream_open(t, BUILDER_STREAM_ALIAS, name, GW_UINT32, 2, (const uint64_t[]){0, 2}, &alias);
	alias->rows = stream->rows;
	alias->bytes = stream->bytes;
	alias->item = item;
	return status;
}

gw_status gw_builder_streams_open(struct builder_turned *t)
{
	const struct builder_etype *type = t->type;
	const struct gw_builder_edges *edges = &type->edges;
	const struct gw_edge_type *schema = &t->w->meta->etypes[t->number];
	struct builder_stream *stream;
	t->streams = gw_calloc(2ull * type->arrays.count + STREAMS_FIXED, sizeof(*t->streams));
	if (!t->streams)
		return GW_NO_MEMORY;
	gw_status status =
		gw_builder_stream_open(t, BUILDER_STREAM_INDICES, "indices",
				       gw_writer_ids_dtype(t->w->meta->ntypes[schema->src].count), 1, NULL, NULL);
	if (status == GW_OK && t->order && t->order->of_source)
		status = gw_builder_stream_open(t, BUILDER_STREAM_SOURCE_TIMES, t->order->name, t->order->column.dtype,
						1, NULL, NULL);
	if (status == GW_OK && edges->rel) {
		gw_dtype dtype = edges->relations <= 1u << 8    ? GW_UINT8
				 : edges->relations <= 1u << 16 ? GW_UINT16
								: GW_UINT32;
		status = gw_builder_stream_open(t, BUILDER_STREAM_REL, "rel", dtype, 1, NULL, NULL);
	}
	for (uint32_t i = 0; i < type->arrays.count && status == GW_OK; i++)
		status = open_array(t, &type->arrays.items[i]);
	if (status == GW_OK && edges->time) {
		status = gw_builder_stream_open(t, BUILDER_STREAM_ROWS, type->time_name, GW_INT64, 1, NULL, &stream);
		if (status == GW_OK)
			status = stream_rows(t, stream, edges->time);
	}
	if (status == GW_OK && gw_builder_keeps_origins(type))
		status = gw_builder_stream_open(t, BUILDER_STREAM_ORIGINS, "orig_id",
						gw_edge_origin_dtype(gw_builder_input_rows(edges)), 1, NULL, NULL);
	return status;
}

/* Ends all streams, or drops them after a failure. */
gw_status gw_builder_streams_close(struct builder_turned *t, gw_status status)
{
	for (uint32_t i = 0; i < t->stream_count; i++) {
		struct builder_stream *stream = &t->streams[i];
		if (status == GW_OK)
			status = gw_writer_end(stream->stream);
		else
			gw_writer_drop(stream->stream);
		gw_spill_give(stream->scattered);
	}
	gw_free(t->streams);
	t->streams = NULL;
	t->stream_count = 0;
	return status;
}

/* ---- a run ---- */

static gw_status append_rel(struct builder_turned *t, const struct builder_stream *stream)
{
	const struct gw_builder_edges *edges = &t->type->edges;
	uint8_t *narrow = gw_malloc(t->run.count * stream->bytes);
	if (!narrow)
		return GW_NO_MEMORY;
	gw_status status = GW_OK;
	for (uint64_t i = 0; i < t->run.count && status == GW_OK; i++) {
		uint32_t rel = t->runs.coo.rel[t->run.first + t->run.csc.order[i]];
		if (rel >= edges->relations)
			status = gw_fail(GW_RANGE, "edge type %s: input row %llu: relation %u of %u", t->folder,
					 (unsigned long long)t->rows[i], rel, edges->relations);
		memcpy(narrow + i * stream->bytes, &rel, stream->bytes); /* little-endian, like the format */
	}
	if (status == GW_OK)
		status = gw_writer_append(stream->stream, narrow, t->run.count * stream->bytes);
	gw_free(narrow);
	gw_builder_wrote(t->w, t->run.count * stream->bytes);
	return status;
}

/* Names the input row of a weight that no alias table can hold; gw_alias_build names its place in the CSC. */
static gw_status fail_weight(const struct builder_turned *t, const struct builder_item *item, gw_status status)
{
	char text[GW_WEIGHT_TEXT_MAX];
	const struct gw_builder_array *array = &item->array;
	uint64_t row = status == GW_RANGE
			       ? gw_weight_first_fault(array->dtype, array->data, array->shape[0], t->w->threads, text)
			       : GW_NONE;
	if (row != GW_NONE)
		status = gw_fail(GW_RANGE, "input row %llu: %s: " GW_WEIGHT_RULE, (unsigned long long)row, text);
	return gw_context(status, "edge type %s: weight \"%s\"", t->folder, item->name);
}

/* The places of a stream's rows for the positions of the run, and where the rows begin. */
static const uint64_t *places_of(const struct builder_turned *t, const struct builder_stream *stream,
				 const uint8_t **rows)
{
	*rows = stream->rows + (t->runs.count > 1 ? t->run.first * stream->bytes : 0);
	return t->runs.count > 1 ? t->run.csc.order : t->rows;
}

static gw_status append_alias(struct builder_turned *t, const struct builder_stream *stream)
{
	uint64_t count = t->run.count;
	const uint8_t *rows;
	const uint64_t *places = places_of(t, stream, &rows);
	const uint64_t *indptr = t->run.csc.indptr ? t->run.csc.indptr : t->runs.indptr;
	uint8_t *weights = gw_malloc(count * stream->bytes);
	uint32_t *table = gw_malloc(count * 2 * sizeof(*table));
	gw_status status = weights && table ? GW_OK : GW_NO_MEMORY;
	if (status == GW_OK) {
		struct permuting permuting = {
			.data = rows, .piece = weights, .rows = places, .row_bytes = stream->bytes};
		gw_parallel_for(t->w->threads, count, GW_BUILDER_GRAIN, permute_rows, &permuting);
		status = gw_alias_build(indptr, t->run.rows, stream->item->array.dtype, weights, t->w->threads, table);
	}
	if (status == GW_OK)
		status = gw_writer_append(stream->stream, table, count * 2 * sizeof(*table));
	gw_free(weights);
	gw_free(table);
	gw_builder_wrote(t->w, count * 8);
	return status != GW_OK ? fail_weight(t, stream->item, status) : GW_OK;
}

static gw_status append_stream(struct builder_turned *t, const struct builder_stream *stream)
{
	const struct gw_edge_type *schema = &t->w->meta->etypes[t->number];
	const uint8_t *rows;
	const uint64_t *places;
	switch (stream->kind) {
	case BUILDER_STREAM_INDICES:
		gw_builder_wrote(t->w, t->run.count * 4);
		return gw_writer_append_ids(stream->stream, stream->key, stream->dtype, t->scratch, t->run.count,
					    t->w->meta->ntypes[schema->src].count);
	case BUILDER_STREAM_SOURCE_TIMES:
		return append_rows(t, stream, t->order->column.data, t->scratch);
	case BUILDER_STREAM_REL:
		return append_rel(t, stream);
	case BUILDER_STREAM_ROWS:
		places = places_of(t, stream, &rows);
		return append_rows(t, stream, rows, places);
	case BUILDER_STREAM_ALIAS:
		return append_alias(t, stream);
	default:
		gw_builder_wrote(t->w, t->run.count * 4);
		return gw_writer_append_ids(stream->stream, stream->key, stream->dtype, t->rows, t->run.count,
					    gw_builder_input_rows(&t->type->edges));
	}
}

gw_status gw_builder_streams_append(struct builder_turned *t, bool of_sources)
{
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < t->stream_count && status == GW_OK; i++) {
		if ((t->streams[i].kind <= BUILDER_STREAM_SOURCE_TIMES) == of_sources)
			status = append_stream(t, &t->streams[i]);
	}
	return status;
}
