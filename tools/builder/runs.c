/* See runs.h. */
#include "tools/builder/runs.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "tools/builder/run_writer.h"
#include "tools/phase.h"

enum { SRC, DST, INPUT, TIME, REL, ARRAYS };

/* ---- runs ---- */

static gw_status runs_count(const struct gw_coo *coo, uint64_t *indptr)
{
	for (uint64_t e = 0; e < coo->num_edges; e++) {
		gw_status status = gw_coo_check(coo, e);
		if (status != GW_OK)
			return status;
		indptr[coo->dst[e] + 1]++;
	}
	for (uint64_t row = 0; row < coo->num_dst; row++)
		indptr[row + 1] += indptr[row];
	return GW_OK;
}

/* Ends a run before the first row that would make it too long. A list that is longer is a run of its own. */
static gw_status divide_rows(struct gw_runs *runs, uint64_t run_edges)
{
	const struct gw_coo *coo = &runs->coo;
	uint64_t least = coo->num_edges / (GW_RUNS_MAX / 2) + 1; /* two runs together are longer than one may be */
	run_edges = run_edges > least ? run_edges : least;
	runs->rows = gw_calloc(GW_RUNS_MAX + 1, sizeof(*runs->rows));
	runs->edges = gw_calloc(GW_RUNS_MAX + 1, sizeof(*runs->edges));
	if (!runs->rows || !runs->edges)
		return GW_NO_MEMORY;
	uint32_t r = 0;
	for (uint64_t row = 0; row < coo->num_dst; row++) {
		if (runs->indptr[row + 1] - runs->edges[r] <= run_edges || row == runs->rows[r])
			continue;
		r++;
		runs->rows[r] = row;
		runs->edges[r] = runs->indptr[row];
	}
	runs->count = r + 1;
	runs->rows[r + 1] = coo->num_dst;
	runs->edges[r + 1] = coo->num_edges;
	return GW_OK;
}

static uint32_t run_of_row(const struct gw_runs *runs, uint64_t row)
{
	uint32_t low = 0, high = runs->count;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (runs->rows[middle] <= row)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* ---- the scatter ---- */

static void *runs_take(struct gw_runs *runs, uint64_t bytes, gw_status *status)
{
	void *block = gw_spill_take(runs->spill, bytes, status);
	gw_runs_own(runs, block);
	return block;
}

/* The writers of a scatter share the memory. */
static gw_status open_writer(const struct gw_runs *runs, void *block, uint64_t bytes, struct gw_run_writer *out)
{
	return gw_run_writer_open(block, bytes, runs->edges, runs->count, runs->memory / ARRAYS, out);
}

static gw_status close_writer(struct gw_run_writer *writer, gw_status status)
{
	gw_status closed = gw_run_writer_close(writer);
	return status != GW_OK ? status : closed;
}

static void scatter_all(const struct gw_runs *runs, const uint64_t *input, struct gw_run_writer to[ARRAYS])
{
	const struct gw_coo *from = &runs->coo;
	for (uint64_t e = 0; e < from->num_edges; e++) {
		uint32_t r = run_of_row(runs, from->dst[e]);
		uint64_t dst = from->dst[e] - runs->rows[r], row = input ? input[e] : e;
		gw_run_writer_add(&to[SRC], r, &from->src[e], sizeof(*from->src));
		gw_run_writer_add(&to[DST], r, &dst, sizeof(dst));
		gw_run_writer_add(&to[INPUT], r, &row, sizeof(row));
		if (from->time)
			gw_run_writer_add(&to[TIME], r, &from->time[e], sizeof(*from->time));
		if (from->rel)
			gw_run_writer_add(&to[REL], r, &from->rel[e], sizeof(*from->rel));
	}
}

uint64_t gw_runs_edge_bytes(const struct gw_coo *coo)
{
	return 3 * sizeof(uint64_t) + (coo->time ? sizeof(*coo->time) : 0) + (coo->rel ? sizeof(*coo->rel) : 0);
}

static gw_status scatter_edges(struct gw_runs *runs, const uint64_t *input)
{
	const struct gw_coo *from = &runs->coo;
	const bool used[ARRAYS] = {true, true, true, from->time != NULL, from->rel != NULL};
	struct gw_run_writer writers[ARRAYS] = {{0}};
	void *blocks[ARRAYS] = {NULL};
	gw_status status = GW_OK;
	for (int i = 0; i < ARRAYS; i++) {
		uint64_t bytes = i == REL ? sizeof(uint32_t) : sizeof(uint64_t);
		blocks[i] = used[i] ? runs_take(runs, from->num_edges * bytes, &status) : NULL;
		if (used[i] && status == GW_OK)
			status = open_writer(runs, blocks[i], bytes, &writers[i]);
	}
	if (status == GW_OK)
		scatter_all(runs, input, writers);
	for (int i = 0; i < ARRAYS; i++)
		status = close_writer(&writers[i], status);
	runs->coo.src = blocks[SRC];
	runs->coo.dst = blocks[DST];
	runs->coo.time = blocks[TIME];
	runs->coo.rel = blocks[REL];
	runs->input = blocks[INPUT];
	return status;
}

gw_status gw_runs_scatter(const struct gw_runs *runs, const void *data, uint64_t bytes, const uint64_t *by, void **out)
{
	struct gw_run_writer writer = {0};
	gw_status status = GW_OK;
	*out = NULL;
	if (runs->count == 1)
		return GW_OK;
	void *to = gw_spill_take(runs->spill, runs->coo.num_edges * bytes, &status);
	struct gw_phase pass = gw_phase_begin(1, !runs->spill->reports);
	if (status == GW_OK)
		status = open_writer(runs, to, bytes, &writer);
	for (uint64_t e = 0; e < runs->coo.num_edges && status == GW_OK; e++)
		gw_run_writer_add(&writer, run_of_row(runs, runs->to[e]),
				  (const uint8_t *)data + (by ? by[e] : e) * bytes, bytes);
	status = close_writer(&writer, status);
	if (status != GW_OK) {
		gw_spill_give(to);
		return status;
	}
	gw_phase_end_pass(&pass, "rows to runs", runs->coo.num_edges * (sizeof(*runs->to) + bytes),
			  runs->coo.num_edges * bytes);
	*out = to;
	return GW_OK;
}

/* ---- the whole ---- */

gw_status gw_runs_make(struct gw_spill *spill, const struct gw_coo *coo, const uint64_t *input, uint64_t run_edges,
		       struct gw_runs *out)
{
	*out = (struct gw_runs){.coo = *coo, .input = input, .count = 1, .to = coo->dst, .spill = spill};
	if (run_edges == 0 || coo->num_edges <= run_edges)
		return GW_OK;
	struct gw_phase pass = gw_phase_begin(1, !spill->reports);
	out->memory = run_edges * ARRAYS * sizeof(uint64_t);
	out->indptr = gw_calloc(coo->num_dst + 1, sizeof(*out->indptr));
	gw_status status = out->indptr ? runs_count(coo, out->indptr) : GW_NO_MEMORY;
	if (status == GW_OK)
		status = divide_rows(out, run_edges);
	if (status != GW_OK || out->count == 1)
		return status;
	gw_phase_end_pass(&pass, "lengths of lists", coo->num_edges * 2 * sizeof(uint64_t), 0);
	pass = gw_phase_begin(1, !spill->reports);
	status = scatter_edges(out, input);
	if (status == GW_OK)
		gw_phase_end_pass(&pass, "edges to runs",
				  coo->num_edges * (gw_runs_edge_bytes(coo) - (input ? 0 : sizeof(*input))),
				  coo->num_edges * gw_runs_edge_bytes(coo));
	return status;
}

void gw_runs_own(struct gw_runs *runs, void *block)
{
	if (block)
		runs->blocks[runs->block_count++] = block;
}

void gw_runs_free(struct gw_runs *runs)
{
	for (uint32_t i = 0; i < runs->block_count; i++)
		gw_spill_give(runs->blocks[i]);
	gw_free(runs->rows);
	gw_free(runs->edges);
	gw_free(runs->indptr);
	*runs = (struct gw_runs){0};
}

gw_status gw_runs_sort(struct gw_runs *runs, uint32_t r, unsigned threads, struct gw_run *out)
{
	struct gw_coo coo = runs->coo;
	*out = (struct gw_run){.rows = coo.num_dst, .count = coo.num_edges};
	if (runs->count > 1) {
		out->first_row = runs->rows[r];
		out->rows = runs->rows[r + 1] - out->first_row;
		out->first = runs->edges[r];
		out->count = runs->edges[r + 1] - out->first;
		coo.num_dst = out->rows;
		coo.num_edges = out->count;
		coo.src += out->first;
		coo.dst += out->first;
		coo.time = coo.time ? coo.time + out->first : NULL;
		coo.rel = coo.rel ? coo.rel + out->first : NULL;
	}
	gw_status status = gw_csc_build(&coo, threads, &out->csc);
	if (status == GW_OK && !runs->indptr) {
		runs->indptr = out->csc.indptr;
		out->csc.indptr = NULL;
	}
	return status;
}

void gw_run_free(struct gw_run *run)
{
	gw_csc_free(&run->csc);
}
