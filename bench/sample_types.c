/* Measures batches of many edge types in bench sample.
 *
 *   the lists of one type -> dealt to many types, offsets interleaved as in a part -> batches checked, and their edges
 *   counted against a batch of the one type -> one edge of each type and seed -> report
 *
 * The ceiling is a batch of as many edges of the one type: what it lacks is the cost of types.
 * Fails if a batch is not a sample of the graph, and when out of memory.
 */
#include "bench/sample_types.h"

#include <assert.h>
#include <stdio.h>

#include "core/memory/alloc.h"
#include "core/numbers/rng.h"
#include "core/system/clock.h"

#define SEEDS     512
#define BATCHES   200
#define CHECKED   3
#define TYPES_MAX 32

struct sample_types {
	const struct sample_graph *graph;
	uint32_t types;
	uint32_t *indptr;  /* [nodes + 1, types] */
	uint32_t *indices; /* [edges], type after type */
	uint64_t begins[TYPES_MAX + 1];
	struct gw_adjacency adjacency[TYPES_MAX];
	struct gw_edge_type etypes[TYPES_MAX];
	struct gw_node_type ntype;
	struct gw_graph_meta meta;
	struct gw_blocks *blocks, *of_one; /* of all types; of the graph's one type */
	struct gw_relabel *relabel;
	int64_t *seeds; /* [BATCHES][SEEDS] */
};

/* How many of a list's edges have a type. */
static uint64_t share(const struct sample_types *t, uint64_t degree, uint32_t type)
{
	return degree / t->types + (type < degree % t->types);
}

static void deal_lists(struct sample_types *t)
{
	const struct sample_graph *graph = t->graph;
	uint64_t at[TYPES_MAX] = {0};
	assert(t->types > 0 && t->types <= TYPES_MAX);
	for (uint64_t node = 0; node <= graph->nodes; node++) {
		for (uint32_t type = 0; type < t->types; type++) {
			t->indptr[node * t->types + type] = (uint32_t)at[type];
			if (node < graph->nodes)
				at[type] += share(t, graph->indptr[node + 1] - graph->indptr[node], type);
		}
	}
	for (uint32_t type = 0; type < t->types; type++)
		t->begins[type + 1] = t->begins[type] + at[type];
	for (uint64_t node = 0; node < graph->nodes; node++) {
		for (uint64_t e = graph->indptr[node]; e < graph->indptr[node + 1]; e++) {
			uint64_t place = e - graph->indptr[node], type = place % t->types;
			t->indices[t->begins[type] + t->indptr[node * t->types + type] + place / t->types] =
				graph->indices[e];
		}
	}
}

static void describe(struct sample_types *t)
{
	t->ntype = t->graph->ntype;
	t->ntype.columns = t->types;
	for (uint32_t type = 0; type < t->types; type++) {
		uint64_t edges = t->begins[type + 1] - t->begins[type];
		t->etypes[type] = t->graph->etype;
		t->etypes[type].count = edges;
		t->adjacency[type] = (struct gw_adjacency){
			.indptr = t->indptr,
			.indices = t->indices + t->begins[type],
			.rows = t->graph->nodes,
			.edges = edges,
			.columns = t->types,
			.column = type,
			.indptr_bytes = 4,
			.index_bytes = 4,
		};
	}
	t->meta = (struct gw_graph_meta){
		.num_parts = 1, .num_ntypes = 1, .num_etypes = t->types, .ntypes = &t->ntype, .etypes = t->etypes};
}

static gw_status begin(struct sample_types *t)
{
	t->indptr = gw_malloc((t->graph->nodes + 1) * t->types * sizeof(*t->indptr));
	t->indices = gw_malloc((t->graph->edges + 1) * sizeof(*t->indices));
	t->seeds = gw_malloc((size_t)BATCHES * SEEDS * sizeof(*t->seeds));
	if (!t->indptr || !t->indices || !t->seeds)
		return GW_NO_MEMORY;
	for (uint64_t i = 0; i < (uint64_t)BATCHES * SEEDS; i++)
		t->seeds[i] = (int64_t)(gw_mix64(i) % t->graph->nodes);
	deal_lists(t);
	describe(t);
	gw_status status = gw_blocks_create(&t->meta, &t->blocks);
	if (status == GW_OK)
		status = gw_blocks_create(&t->graph->meta, &t->of_one);
	return status != GW_OK ? status : gw_relabel_create(&t->meta, UINT64_MAX, &t->relabel);
}

static gw_status sample(struct sample_types *t, uint64_t batch, bool of_one)
{
	const struct gw_adjacency *parts[1] = {of_one ? &t->graph->adjacency : t->adjacency};
	int32_t fanouts[TYPES_MAX];
	for (uint32_t type = 0; type < t->types; type++)
		fanouts[type] = of_one ? (int32_t)t->types : 1;
	const struct gw_blocks_spec spec = {.hops = 1, .fanouts = fanouts, .new_only = true};
	struct gw_blocks *blocks = of_one ? t->of_one : t->blocks;
	gw_status status = gw_blocks_begin(blocks, t->relabel, &spec, 1, batch, 0, t->seeds + batch * SEEDS, SEEDS);
	return status != GW_OK ? status : gw_blocks_run_memory(blocks, parts, NULL);
}

/* Whether each destination has one edge of the type, if its list has one, and the edge is in the list. */
static bool is_legal(const struct sample_types *t, const struct gw_block_edges *edges, const int64_t *nodes)
{
	const uint32_t *indices = t->indices + t->begins[edges->etype];
	for (uint64_t row = 0; row < edges->dst_count; row++) {
		const uint32_t *list = &t->indptr[(uint64_t)nodes[row] * t->types + edges->etype];
		uint64_t first = list[0], end = list[t->types];
		int64_t at = edges->indptr[row];
		if (edges->indptr[row + 1] - at != (first < end))
			return false;
		if (first < end && ((uint64_t)edges->edge_ids[at] < first || (uint64_t)edges->edge_ids[at] >= end ||
				    nodes[((const int32_t *)edges->indices)[at]] != indices[edges->edge_ids[at]]))
			return false;
	}
	return true;
}

static gw_status check_batches(struct sample_types *t)
{
	for (uint64_t batch = 0; batch < CHECKED; batch++) {
		gw_status status = sample(t, batch, true);
		if (status == GW_OK)
			status = sample(t, batch, false);
		if (status != GW_OK)
			return status;
		uint64_t count;
		const int64_t *nodes = gw_blocks_nodes(t->blocks, 0, &count);
		const struct gw_block *block = gw_blocks_hop(t->blocks, 0);
		bool legal = block->edges_count == t->types &&
			     gw_blocks_edge_count(t->blocks) == gw_blocks_edge_count(t->of_one);
		for (uint32_t i = 0; i < block->edges_count && legal; i++)
			legal = is_legal(t, &block->edges[i], nodes);
		if (!legal)
			return gw_fail(GW_FORMAT, "batch %llu of %u edge types is not a sample of the graph",
				       (unsigned long long)batch, t->types);
	}
	return GW_OK;
}

/* *figure: millions of edges a second. *edges: of all batches. */
static gw_status run_batches(struct sample_types *t, bool of_one, double *figure, uint64_t *edges)
{
	uint64_t started = gw_now_ns();
	*edges = 0;
	for (uint64_t batch = 0; batch < BATCHES; batch++) {
		gw_status status = sample(t, batch, of_one);
		if (status != GW_OK)
			return status;
		*edges += gw_blocks_edge_count(of_one ? t->of_one : t->blocks);
	}
	*figure = (double)*edges / (double)(gw_now_ns() - started) * 1e3;
	return GW_OK;
}

static void report_types(struct gw_bench *bench, const struct sample_types *t, const struct gw_bench_series *values,
			 const struct gw_bench_series *ceilings, uint64_t edges)
{
	double each = (double)edges / BATCHES, us = each / gw_bench_series_median(values);
	char title[120], kind[32], note[250];
	snprintf(kind, sizeof(kind), "%u edge types", t->types);
	snprintf(title, sizeof(title), "%s, %s, 1 thread", t->graph->title, kind);
	snprintf(
		note, sizeof(note),
		"%d seeds, %.0f edges and %.0f us a batch: %.1f us a type, %.0f ns a list; the ceiling is as many edges of "
		"one type",
		SEEDS, each, us, us / t->types, us / t->types / SEEDS * 1e3);
	const struct gw_bench_result result = {
		.title = title,
		.unit = "M edges/s",
		.values = values,
		.ceilings = ceilings,
		.verified = true,
		.note = note,
		.fields = {{"threads", .number = 1},
			   {"kind", .text = kind},
			   {"types", .number = t->types},
			   {"seeds", .number = SEEDS},
			   {"edges_per_batch", .number = each},
			   {"us_per_type", .number = us / t->types}},
	};
	gw_bench_report(bench, &result);
}

gw_status sample_types_measure(struct gw_bench *bench, const struct sample_graph *graph, uint32_t types)
{
	static struct gw_bench_series values, ceilings; /* 8 KB each */
	struct sample_types t = {.graph = graph, .types = types};
	uint64_t edges = 0;
	values.count = ceilings.count = 0;
	gw_status status = begin(&t);
	if (status == GW_OK)
		status = check_batches(&t);
	for (unsigned i = 0; i < bench->repeats && status == GW_OK; i++) {
		double figure, ceiling;
		status = run_batches(&t, true, &ceiling, &edges);
		if (status == GW_OK)
			status = run_batches(&t, false, &figure, &edges);
		if (status == GW_OK) {
			gw_bench_series_add(&ceilings, ceiling);
			gw_bench_series_add(&values, figure);
		}
	}
	if (status == GW_OK)
		report_types(bench, &t, &values, &ceilings, edges);
	gw_blocks_destroy(t.blocks);
	gw_blocks_destroy(t.of_one);
	gw_relabel_destroy(t.relabel);
	gw_free(t.indptr);
	gw_free(t.indices);
	gw_free(t.seeds);
	return status;
}
