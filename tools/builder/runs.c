/* See runs.h. */
#include "tools/builder/runs.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "core/system/parallel.h"
#include "tools/builder/run_writer.h"
#include "tools/phase.h"

#define PIECE_EDGES (256u << 10) /* whose runs are found before their columns are copied */
#define GRAINS      16u

enum { SRC, DST, INPUT, TIME, REL, ARRAYS };

/* ---- runs ---- */

struct counting_rows {
	const struct gw_coo *coo;
	uint64_t *indptr;
};

static gw_status count_lists(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	const struct counting_rows *c = context;
	for (uint64_t e = begin; e < end; e++) {
		gw_status status = gw_coo_check(c->coo, e);
		if (status != GW_OK)
			return status;
		__atomic_fetch_add(&c->indptr[c->coo->dst[e] + 1], 1, __ATOMIC_RELAXED);
	}
	return GW_OK;
}

static gw_status runs_count(const struct gw_coo *coo, unsigned threads, uint64_t *indptr)
{
	struct counting_rows counting = {coo, indptr};
	gw_status status = gw_parallel_for(threads, coo->num_edges, PIECE_EDGES, count_lists, &counting);
	for (uint64_t row = 0; row < coo->num_dst; row++)
		indptr[row + 1] += indptr[row];
	return status;
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

struct scatter {
	const struct gw_runs *runs;
	const uint64_t *input;
	struct gw_run_writer to[ARRAYS];
	uint16_t *run_of; /* [PIECE_EDGES] of the piece */
	uint64_t first, count;
};

static gw_status find_runs(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	const struct scatter *s = context;
	for (uint64_t i = begin; i < end; i++)
		s->run_of[i] = (uint16_t)run_of_row(s->runs, s->runs->coo.dst[s->first + i]);
	return GW_OK;
}

static void scatter_words(struct scatter *s, int column, const uint64_t *from)
{
	for (uint64_t i = 0; i < s->count; i++)
		gw_run_writer_add(&s->to[column], s->run_of[i], &from[s->first + i], sizeof(*from));
}

static void scatter_column(struct scatter *s, int column)
{
	const struct gw_coo *from = &s->runs->coo;
	switch (column) {
	case SRC:
		scatter_words(s, SRC, from->src);
		break;
	case DST:
		for (uint64_t i = 0; i < s->count; i++) {
			uint64_t dst = from->dst[s->first + i] - s->runs->rows[s->run_of[i]];
			gw_run_writer_add(&s->to[DST], s->run_of[i], &dst, sizeof(dst));
		}
		break;
	case INPUT:
		for (uint64_t i = 0; i < s->count && !s->input; i++) {
			uint64_t row = s->first + i;
			gw_run_writer_add(&s->to[INPUT], s->run_of[i], &row, sizeof(row));
		}
		if (s->input)
			scatter_words(s, INPUT, s->input);
		break;
	case TIME:
		if (from->time)
			scatter_words(s, TIME, (const uint64_t *)from->time);
		break;
	default:
		for (uint64_t i = 0; i < s->count && from->rel; i++)
			gw_run_writer_add(&s->to[REL], s->run_of[i], &from->rel[s->first + i], sizeof(*from->rel));
	}
}

static gw_status scatter_columns(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	struct scatter *s = context;
	gw_status status = GW_OK;
	for (uint64_t column = begin; column < end && status == GW_OK; column++) {
		scatter_column(s, (int)column);
		status = s->to[column].status;
	}
	return status;
}

/* A column has one thread, so its runs keep the order of the edges. */
static gw_status scatter_all(struct scatter *s, unsigned threads)
{
	uint64_t edges = s->runs->coo.num_edges;
	gw_status status = GW_OK;
	for (s->first = 0; s->first < edges && status == GW_OK; s->first += s->count) {
		s->count = edges - s->first < PIECE_EDGES ? edges - s->first : PIECE_EDGES;
		status = gw_parallel_for(threads, s->count, PIECE_EDGES / GRAINS, find_runs, s);
		if (status == GW_OK)
			status = gw_parallel_for(threads, ARRAYS, 1, scatter_columns, s);
	}
	return status;
}

uint64_t gw_runs_edge_bytes(const struct gw_coo *coo)
{
	return 3 * sizeof(uint64_t) + (coo->time ? sizeof(*coo->time) : 0) + (coo->rel ? sizeof(*coo->rel) : 0);
}

static gw_status scatter_edges(struct gw_runs *runs, const uint64_t *input, unsigned threads)
{
	const struct gw_coo *from = &runs->coo;
	const bool used[ARRAYS] = {true, true, true, from->time != NULL, from->rel != NULL};
	struct scatter s = {.runs = runs, .input = input, .run_of = gw_malloc(PIECE_EDGES * sizeof(*s.run_of))};
	void *blocks[ARRAYS] = {NULL};
	gw_status status = s.run_of ? GW_OK : GW_NO_MEMORY;
	for (int i = 0; i < ARRAYS; i++) {
		uint64_t bytes = i == REL ? sizeof(uint32_t) : sizeof(uint64_t);
		blocks[i] = used[i] ? runs_take(runs, from->num_edges * bytes, &status) : NULL;
		if (used[i] && status == GW_OK)
			status = open_writer(runs, blocks[i], bytes, &s.to[i]);
	}
	if (status == GW_OK)
		status = scatter_all(&s, threads);
	for (int i = 0; i < ARRAYS; i++)
		status = close_writer(&s.to[i], status);
	gw_free(s.run_of);
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
		       unsigned threads, struct gw_runs *out)
{
	*out = (struct gw_runs){.coo = *coo, .input = input, .count = 1, .to = coo->dst, .spill = spill};
	if (run_edges == 0 || coo->num_edges <= run_edges)
		return GW_OK;
	struct gw_phase pass = gw_phase_begin(threads, !spill->reports);
	out->memory = run_edges * ARRAYS * sizeof(uint64_t);
	out->indptr = gw_calloc(coo->num_dst + 1, sizeof(*out->indptr));
	gw_status status = out->indptr ? runs_count(coo, threads, out->indptr) : GW_NO_MEMORY;
	if (status == GW_OK)
		status = divide_rows(out, run_edges);
	if (status != GW_OK || out->count == 1)
		return status;
	gw_phase_end_pass(&pass, "lengths of lists", coo->num_edges * 2 * sizeof(uint64_t), 0);
	const unsigned columns = 3u + (coo->time != NULL) + (coo->rel != NULL);
	pass = gw_phase_begin(threads < columns ? threads : columns, !spill->reports);
	status = scatter_edges(out, input, threads);
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
