/* Writes the edge types of a builder, each followed by its reverse if it has one.
 *
 *   edges -> keys of times -> runs of lists (runs.h) -> for each run: CSC -> indices, times of sources, relations,
 * arrays, weights' alias tables and orig_id in CSC order, each to its stream -> transpose
 *
 * One edge type is sorted at a time, in one run if the builder's memory suffices. Only its offsets stay in memory,
 * until all edge types are written: write.c then writes the offset tables of the node types. Fails for ids and
 * relations out of range (the error names the edge), for invalid weights, if memory runs out, and for the writer's
 * errors.
 */
#include <stdio.h>
#include <string.h>

#include "core/graph/csc.h"
#include "core/graph/inverse.h"
#include "core/memory/alloc.h"
#include "core/numbers/time_key.h"
#include "core/system/clock.h"
#include "core/system/parallel.h"
#include "tools/builder/builder_private.h"
#include "tools/builder/streams.h"
#include "tools/phase.h"

#define RUN_EDGE_BYTES 80u /* of an edge while its run is sorted: its columns, their order, and scratch */

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

/* ---- keys of times ---- */

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

static gw_status make_time_keys(struct builder_turned *t, int64_t **out)
{
	const struct gw_builder_edges *edges = &t->type->edges;
	gw_status status = GW_OK;
	*out = NULL;
	if (!t->order)
		return GW_OK;
	*out = gw_spill_take(&t->w->builder->spill, edges->count * sizeof(**out), &status);
	if (!*out)
		return status;
	struct keying keying = {
		.times = &t->order->column, .of = t->order->of_source ? t->src : edges->origin, .keys = *out};
	return gw_parallel_for(t->w->threads, edges->count, GW_BUILDER_GRAIN, key_body, &keying);
}

/* Keeps the run's part of the transposed edges. Keys: of times, else relations, else none. */
static void keep_transposed(struct builder_turned *t)
{
	const struct gw_coo *coo = &t->runs.coo;
	const struct gw_run *run = &t->run;
	if (!t->out_src)
		return;
	memcpy(t->out_src + run->first, t->scratch, run->count * sizeof(*t->out_src));
	for (uint64_t i = 0; i < run->count; i++) {
		uint64_t edge = run->first + run->csc.order[i];
		t->out_dst[run->first + i] = run->first_row + coo->dst[edge];
		if (t->out_keys)
			t->out_keys[run->first + i] = coo->time ? (uint64_t)coo->time[edge] : coo->rel[edge];
	}
}

static gw_status fail_type(const struct builder_turned *t, gw_status status)
{
	return gw_context(status, "edge type %s", t->w->meta->etypes[t->number].name);
}

static gw_status write_run(struct builder_turned *t, uint32_t r)
{
	uint64_t start_ns = gw_now_ns();
	gw_status status = gw_runs_sort(&t->runs, r, t->w->threads, &t->run);
	t->w->stats.csc_ns += gw_now_ns() - start_ns;
	if (status != GW_OK)
		return fail_type(t, status);
	t->scratch = gw_malloc(t->run.count * sizeof(*t->scratch));
	if (!t->scratch)
		return GW_NO_MEMORY;
	builder_gather(t->w, t->scratch, t->runs.coo.src + t->run.first, t->run.csc.order, t->run.count);
	keep_transposed(t);
	status = gw_builder_streams_append(t, true);
	t->rows = t->run.csc.order;
	if (t->runs.input) {
		builder_gather(t->w, t->scratch, t->runs.input + t->run.first, t->run.csc.order, t->run.count);
		t->rows = t->scratch;
	}
	return status == GW_OK ? gw_builder_streams_append(t, false) : status;
}

static void free_run(struct builder_turned *t)
{
	gw_free(t->scratch);
	t->scratch = NULL;
	gw_run_free(&t->run);
}

/* A pass through several runs is reported. */
static struct gw_phase begin_pass(const struct builder_turned *t, const struct gw_runs *runs)
{
	return gw_phase_begin(t->w->threads, runs->count == 1 || !t->w->builder->spill.reports);
}

/* How many edges a run may have within the builder's memory; 0: any number. */
static uint64_t run_edges(const struct gw_builder *builder, const struct builder_etype *type)
{
	uint64_t widest = 0;
	for (uint32_t i = 0; i < type->arrays.count; i++) {
		const struct builder_item *item = &type->arrays.items[i];
		uint64_t bytes = item->strings ? 0 : gw_builder_row_bytes(&item->array);
		widest = bytes > widest ? bytes : widest;
	}
	uint64_t edges = builder->run_bytes / (RUN_EDGE_BYTES + widest);
	return builder->run_bytes && edges == 0 ? 1 : edges;
}

/* Bytes of the file of a column of the edges. */
static uint64_t column_file(const struct gw_builder_edges *edges, uint64_t row_bytes)
{
	return edges->count * row_bytes > GW_SPILL_SMALL ? edges->count * row_bytes : 0;
}

uint64_t gw_builder_sort_files(const struct gw_builder *builder, const struct builder_etype *type)
{
	const struct gw_builder_edges *edges = &type->edges;
	const uint64_t most = run_edges(builder, type);
	const uint64_t words = 5u + (edges->rel ? 1u : 0) + (edges->transpose ? 7u : 0); /* columns; keys, twice */
	uint64_t bytes = words * column_file(edges, sizeof(uint64_t));
	if (most == 0 || edges->count <= most)
		return 0;
	for (uint32_t i = 0; i < type->arrays.count; i++)
		if (!type->arrays.items[i].strings)
			bytes += column_file(edges, gw_builder_row_bytes(&type->arrays.items[i].array));
	return bytes;
}

/* ---- orig_id.inverse ---- */

static uint64_t builder_origin_of(const void *context, uint64_t position)
{
	const struct gw_npy_file *origins = context;
	return origins->npy.dtype == GW_UINT32 ? ((const uint32_t *)origins->data)[position]
					       : ((const uint64_t *)origins->data)[position];
}

static gw_status write_inverse(struct builder_turned *t)
{
	char key[GW_BUILDER_KEY_MAX];
	struct gw_npy_file origins;
	uint64_t rows = 0;
	const uint64_t count = t->type->edges.count, starts[] = {0, count};
	snprintf(key, sizeof(key), "edge/%s/orig_id", t->folder);
	gw_builder_wrote(t->w, count * 4);
	if (t->runs.count > 1) {
		const struct gw_inverse_of of = {.key = key,
						 .starts = starts,
						 .threads = t->w->threads,
						 .range_bytes = t->w->builder->run_bytes};
		bool written;
		struct gw_phase pass = begin_pass(t, &t->runs);
		gw_status status = gw_inverse_write_parts(t->w->writer, &of, &written);
		if (status == GW_OK)
			gw_phase_end(&pass, "pass: edges by their ids", 0);
		return status;
	}
	gw_status status = gw_writer_map(t->w->writer, 0, key, &origins);
	if (status != GW_OK)
		return status;
	status = gw_inverse_write(t->w->writer, key, builder_origin_of, &origins, count, t->w->threads, &rows);
	gw_npy_close(&origins);
	gw_builder_wrote(t->w, rows * 4);
	return status;
}

/* ---- the transpose ---- */

static gw_status take_transposed(struct builder_turned *t)
{
	struct gw_spill *spill = &t->w->builder->spill;
	uint64_t bytes = t->type->edges.count * sizeof(uint64_t);
	gw_status status = GW_OK;
	t->out_src = gw_spill_take(spill, bytes, &status);
	t->out_dst = gw_spill_take(spill, bytes, &status);
	if (t->runs.coo.time || t->runs.coo.rel)
		t->out_keys = gw_spill_take(spill, bytes, &status);
	return status;
}

static gw_status append_transposed(struct builder_turned *t, struct gw_runs *runs, uint32_t r, uint64_t destinations)
{
	gw_status status = gw_runs_sort(runs, r, t->w->threads, &t->run);
	if (status != GW_OK)
		return status;
	t->scratch = gw_malloc(t->run.count * sizeof(*t->scratch));
	if (!t->scratch)
		return GW_NO_MEMORY;
	struct builder_stream *indices = &t->streams[0], *places = &t->streams[1];
	builder_gather(t->w, t->scratch, runs->coo.src + t->run.first, t->run.csc.order, t->run.count);
	status = gw_writer_append_ids(indices->stream, indices->key, indices->dtype, t->scratch, t->run.count,
				      destinations);
	const uint64_t *order = t->run.csc.order;
	if (runs->input) {
		builder_gather(t->w, t->scratch, runs->input + t->run.first, order, t->run.count);
		order = t->scratch;
	}
	if (status == GW_OK)
		status = gw_writer_append(places->stream, order, t->run.count * sizeof(*order));
	gw_builder_wrote(t->w, t->run.count * 16);
	return status;
}

/* Each entry holds the edge's place in the CSC. */
static gw_status write_transpose(struct builder_turned *t)
{
	const struct gw_edge_type *schema = &t->w->meta->etypes[t->number];
	const struct gw_coo coo = {.num_src = t->w->meta->ntypes[schema->dst].count,
				   .num_dst = t->w->meta->ntypes[schema->src].count,
				   .num_edges = t->type->edges.count,
				   .src = t->out_dst,
				   .dst = t->out_src,
				   .time = (const int64_t *)t->out_keys};
	struct gw_runs runs = {0};
	t->streams = gw_calloc(2, sizeof(*t->streams));
	gw_status status = t->streams ? gw_builder_stream_open(t, BUILDER_STREAM_INDICES, "out/indices",
							       gw_writer_ids_dtype(coo.num_src), 1, NULL, NULL)
				      : GW_NO_MEMORY;
	if (status == GW_OK)
		status = gw_builder_stream_open(t, BUILDER_STREAM_ORIGINS, "out/eid", GW_UINT64, 1, NULL, NULL);
	if (status == GW_OK)
		status = gw_runs_make(&t->w->builder->spill, &coo, NULL, run_edges(t->w->builder, t->type),
				      t->w->threads, &runs);
	struct gw_phase pass = begin_pass(t, &runs);
	for (uint32_t r = 0; r < runs.count && status == GW_OK; r++) {
		status = append_transposed(t, &runs, r, coo.num_src);
		free_run(t);
	}
	if (status == GW_OK)
		gw_phase_end_pass(&pass, "runs to out-lists", coo.num_edges * gw_runs_edge_bytes(&runs.coo),
				  coo.num_edges * (t->streams[0].bytes + t->streams[1].bytes));
	status = gw_builder_streams_close(t, status);
	t->w->out_indptr[t->number] = runs.indptr;
	runs.indptr = NULL;
	gw_runs_free(&runs);
	return status;
}

/* ---- an edge type ---- */

/* One relation for each edge, not for each input row. */
static gw_status edge_relations(struct builder_turned *t, uint32_t **out)
{
	const struct gw_builder_edges *edges = &t->type->edges;
	gw_status status = GW_OK;
	*out = NULL;
	if (!edges->rel || !edges->origin)
		return GW_OK;
	*out = gw_spill_take(&t->w->builder->spill, edges->count * sizeof(**out), &status);
	for (uint64_t i = 0; *out && i < edges->count; i++)
		(*out)[i] = edges->rel[edges->origin[i]];
	return status;
}

static gw_status write_runs(struct builder_turned *t)
{
	gw_status status = gw_builder_streams_open(t);
	struct gw_phase pass = begin_pass(t, &t->runs);
	const uint64_t before = t->w->stats.bytes;
	for (uint32_t r = 0; r < t->runs.count && status == GW_OK; r++) {
		status = write_run(t, r);
		free_run(t);
	}
	uint64_t row = gw_runs_edge_bytes(&t->runs.coo);
	for (uint32_t i = 0; i < t->stream_count; i++)
		row += t->streams[i].scattered ? t->streams[i].bytes : 0;
	if (status == GW_OK)
		gw_phase_end_pass(&pass, "runs to lists", t->type->edges.count * row, t->w->stats.bytes - before);
	return gw_builder_streams_close(t, status);
}

static gw_status make_runs(struct builder_turned *t)
{
	const struct gw_builder_edges *edges = &t->type->edges;
	const struct gw_edge_type *schema = &t->w->meta->etypes[t->number];
	int64_t *keys;
	uint32_t *rel = NULL;
	gw_status status = make_time_keys(t, &keys);
	if (status == GW_OK)
		status = edge_relations(t, &rel);
	const struct gw_coo coo = {.num_src = t->w->meta->ntypes[schema->src].count,
				   .num_dst = t->w->meta->ntypes[schema->dst].count,
				   .num_edges = edges->count,
				   .src = t->src,
				   .dst = t->dst,
				   .time = keys,
				   .rel = rel ? rel : edges->rel};
	if (status == GW_OK)
		status = gw_runs_make(&t->w->builder->spill, &coo, edges->origin, run_edges(t->w->builder, t->type),
				      t->w->threads, &t->runs);
	gw_runs_own(&t->runs, keys);
	gw_runs_own(&t->runs, rel);
	return status;
}

static gw_status write_etype(struct builder_writing *w, struct builder_turned *t)
{
	const struct gw_builder_edges *edges = &t->type->edges;
	t->w = w;
	t->folder = w->meta->etypes[t->number].folder;
	t->order = w->times.orders[t->number].name[0] ? &w->times.orders[t->number] : NULL;
	gw_status status = make_runs(t);
	if (status != GW_OK)
		fail_type(t, status);
	if (status == GW_OK && edges->transpose)
		status = take_transposed(t);
	if (status == GW_OK)
		status = write_runs(t);
	if (status == GW_OK && gw_builder_keeps_origins(t->type))
		status = write_inverse(t);
	if (status == GW_OK && edges->transpose)
		status = write_transpose(t);
	w->indptr[t->number] = t->runs.indptr;
	t->runs.indptr = NULL;
	w->stats.runs += t->runs.count;
	w->stats.edges += edges->count;
	gw_runs_free(&t->runs);
	gw_spill_give(t->out_src);
	gw_spill_give(t->out_dst);
	gw_spill_give(t->out_keys);
	return status;
}

gw_status gw_builder_write_edges(struct builder_writing *w)
{
	uint32_t number = 0;
	for (uint32_t i = 0; i < w->builder->num_etypes; i++) {
		const struct builder_etype *type = &w->builder->etypes[i];
		struct builder_turned t = {
			.type = type, .number = number, .src = type->edges.src, .dst = type->edges.dst};
		gw_status status = write_etype(w, &t);
		number++;
		if (status != GW_OK)
			return status;
		if (!type->edges.reverse)
			continue;
		t = (struct builder_turned){
			.type = type, .number = number, .src = type->edges.dst, .dst = type->edges.src};
		status = write_etype(w, &t);
		number++;
		if (status != GW_OK)
			return status;
	}
	return GW_OK;
}
