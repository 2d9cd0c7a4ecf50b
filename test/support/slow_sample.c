/* The definition of sampling, written out with the simplest means: arrays as wide as the graph, linear searches, qsort.
 */
#include "test/support/slow_sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/digest.h"
#include "core/numbers/rng.h"

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static void *own(struct slow_graph *graph, void *memory)
{
	assert_non_null(memory);
	assert_in_range(graph->owned_count, 0, sizeof(graph->owned) / sizeof(graph->owned[0]) - 1);
	return graph->owned[graph->owned_count++] = memory;
}

void slow_graph_init(struct slow_graph *graph, uint32_t ntypes, const uint64_t *counts)
{
	memset(graph, 0, sizeof(*graph));
	graph->meta.ntypes = graph->ntypes;
	graph->meta.etypes = graph->etypes;
	graph->meta.num_ntypes = ntypes;
	for (uint32_t t = 0; t < ntypes; t++) {
		snprintf(graph->ntypes[t].name, sizeof(graph->ntypes[t].name), "type%u", t);
		graph->ntypes[t].count = counts[t];
	}
}

void slow_graph_edges(struct slow_graph *graph, uint32_t src, uint32_t dst, uint64_t *indptr, uint64_t *indices)
{
	uint32_t etype = graph->meta.num_etypes++;
	struct gw_edge_type *type = &graph->etypes[etype];
	snprintf(type->name, sizeof(type->name), "edge%u", etype);
	snprintf(type->folder, sizeof(type->folder), "type%u__edge%u__type%u", src, etype, dst);
	type->src = src;
	type->dst = dst;
	type->count = indptr[graph->ntypes[dst].count];
	type->column = graph->ntypes[dst].columns++;
	graph->indptr[etype] = own(graph, indptr);
	graph->indices[etype] = own(graph, indices);
}

void slow_graph_random(struct slow_graph *graph, uint32_t src, uint32_t dst, uint64_t degree_max, uint64_t seed)
{
	struct gw_draws draws = gw_draws_begin(seed, 1);
	uint64_t rows = graph->ntypes[dst].count, sources = graph->ntypes[src].count;
	uint64_t *indptr = calloc(rows + 1, sizeof(*indptr));
	assert_non_null(indptr);
	for (uint64_t i = 0; i < rows; i++) {
		uint64_t short_max = degree_max < 20 ? degree_max : 20;
		uint64_t degree =
			gw_draw_below(&draws, 50) == 0 ? degree_max : gw_draw_below(&draws, (uint32_t)short_max + 1);
		indptr[i + 1] = indptr[i] + (sources ? degree : 0);
	}
	uint64_t *indices = calloc(indptr[rows] + 1, sizeof(*indices));
	assert_non_null(indices);
	for (uint64_t i = 0; i < rows; i++) {
		for (uint64_t e = indptr[i]; e < indptr[i + 1]; e++)
			indices[e] = gw_draw_below(&draws, (uint32_t)sources);
		qsort(indices + indptr[i], indptr[i + 1] - indptr[i], sizeof(*indices), ascending);
	}
	slow_graph_edges(graph, src, dst, indptr, indices);
}

static void store(void *array, uint8_t bytes, uint64_t at, uint64_t value)
{
	if (bytes == 4)
		((uint32_t *)array)[at] = (uint32_t)value;
	else
		((uint64_t *)array)[at] = value;
}

/* The offsets [rows + 1, columns] of a node type in a part, all edge types that end there. */
static void *cut_indptr(struct slow_graph *graph, uint32_t ntype, uint64_t first, uint64_t rows, uint8_t bytes)
{
	uint32_t columns = graph->ntypes[ntype].columns;
	void *indptr = own(graph, calloc((rows + 1) * columns + 1, bytes));
	for (uint32_t e = 0; e < graph->meta.num_etypes; e++) {
		if (graph->etypes[e].dst != ntype)
			continue;
		for (uint64_t row = 0; row <= rows; row++)
			store(indptr, bytes, row * columns + graph->etypes[e].column,
			      graph->indptr[e][first + row] - graph->indptr[e][first]);
	}
	return indptr;
}

static void cut_edges(struct slow_graph *graph, uint32_t part, uint32_t etype, const void *indptr, uint8_t indptr_bytes,
		      uint8_t index_bytes)
{
	const struct gw_node_type *dst = &graph->ntypes[graph->etypes[etype].dst];
	uint64_t first = dst->starts[part], last = dst->starts[part + 1];
	uint64_t begin = graph->indptr[etype][first], edges = graph->indptr[etype][last] - begin;
	void *indices = own(graph, calloc(edges + 1, index_bytes));
	for (uint64_t e = 0; e < edges; e++)
		store(indices, index_bytes, e, graph->indices[etype][begin + e]);
	graph->adjacencies[part][etype] = (struct gw_adjacency){
		.indptr = indptr,
		.indices = indices,
		.rows = last - first,
		.edges = edges,
		.columns = dst->columns,
		.column = graph->etypes[etype].column,
		.indptr_bytes = indptr_bytes,
		.index_bytes = index_bytes,
		.dst_start = first,
		.edge_start = begin,
	};
}

void slow_graph_cut(struct slow_graph *graph, uint32_t parts, uint8_t indptr_bytes, uint8_t index_bytes, uint64_t seed)
{
	struct gw_draws draws = gw_draws_begin(seed, 2);
	graph->meta.num_parts = parts;
	for (uint32_t t = 0; t < graph->meta.num_ntypes; t++) {
		struct gw_node_type *type = &graph->ntypes[t];
		type->starts = own(graph, calloc(parts + 1, sizeof(uint64_t)));
		for (uint32_t p = 1; p < parts; p++)
			type->starts[p] = gw_draw_below(&draws, (uint32_t)type->count + 1);
		type->starts[parts] = type->count;
		qsort(type->starts, parts + 1, sizeof(uint64_t), ascending);
	}
	for (uint32_t p = 0; p < parts; p++) {
		graph->parts[p] = graph->adjacencies[p];
		for (uint32_t t = 0; t < graph->meta.num_ntypes; t++) {
			const uint64_t *starts = graph->ntypes[t].starts;
			void *indptr = cut_indptr(graph, t, starts[p], starts[p + 1] - starts[p], indptr_bytes);
			for (uint32_t e = 0; e < graph->meta.num_etypes; e++) {
				if (graph->etypes[e].dst == t)
					cut_edges(graph, p, e, indptr, indptr_bytes, index_bytes);
			}
		}
	}
}

void slow_graph_free(struct slow_graph *graph)
{
	while (graph->owned_count)
		free(graph->owned[--graph->owned_count]);
}

uint64_t slow_pick(const struct gw_pick_rule *rule, uint64_t instance, uint64_t degree, uint64_t *out)
{
	return slow_pick_in(rule, instance, 0, degree, out);
}

uint64_t slow_pick_in(const struct gw_pick_rule *rule, uint64_t instance, uint32_t group, uint64_t degree,
		      uint64_t *out)
{
	uint64_t fanout = (uint64_t)rule->fanout, count = 0;
	bool all = rule->fanout == GW_FANOUT_ALL || (!rule->replace && degree <= fanout);
	if (all) {
		for (uint64_t i = 0; i < degree; i++)
			out[count++] = i;
		return count;
	}
	if (degree == 0)
		return 0;
	struct gw_draws draws = gw_draws_begin(rule->key, instance);
	draws.group = group;
	for (uint64_t j = 0; j < fanout; j++) {
		uint64_t last = degree - fanout + j;
		uint64_t pick = gw_draw_below(&draws, rule->replace ? (uint32_t)degree : (uint32_t)last + 1);
		bool found = false;
		for (uint64_t i = 0; i < count && !rule->replace; i++)
			found |= out[i] == pick;
		out[count++] = found ? last : pick;
	}
	qsort(out, count, sizeof(*out), ascending);
	return count;
}

/* A batch in the making: number[type][group * nodes of the type + id], UINT32_MAX where that node has none. */
struct slow_batch {
	const struct slow_graph *graph;
	uint32_t *number[SLOW_TYPES_MAX];
	int64_t *ids[SLOW_TYPES_MAX];
	uint32_t *groups[SLOW_TYPES_MAX];
	uint64_t count[SLOW_TYPES_MAX];
};

static uint32_t number_of(struct slow_batch *batch, uint32_t type, uint32_t group, uint64_t id)
{
	uint64_t nodes = batch->graph->ntypes[type].count;
	assert_true(id < nodes && group < SLOW_GROUPS);
	uint32_t *number = &batch->number[type][group * nodes + id];
	if (*number == UINT32_MAX) {
		*number = (uint32_t)batch->count[type];
		batch->groups[type][batch->count[type]] = group;
		batch->ids[type][batch->count[type]++] = (int64_t)id;
	}
	return *number;
}

static void *slow_alloc(uint64_t bytes)
{
	void *memory = malloc(bytes);
	assert_non_null(memory);
	return memory;
}

static void batch_begin(struct slow_batch *batch, const struct slow_graph *graph)
{
	memset(batch, 0, sizeof(*batch));
	batch->graph = graph;
	for (uint32_t t = 0; t < graph->meta.num_ntypes; t++) {
		uint64_t count = graph->ntypes[t].count * SLOW_GROUPS + 1;
		batch->number[t] = slow_alloc(count * sizeof(uint32_t));
		batch->ids[t] = slow_alloc(count * sizeof(int64_t));
		batch->groups[t] = slow_alloc(count * sizeof(uint32_t));
		memset(batch->number[t], 0xff, count * sizeof(uint32_t));
	}
}

static void batch_end(struct slow_batch *batch)
{
	for (uint32_t t = 0; t < batch->graph->meta.num_ntypes; t++) {
		free(batch->number[t]);
		free(batch->ids[t]);
		free(batch->groups[t]);
	}
}

/* Row by row, for nodes [first, first + rows); returns their edges. */
static uint64_t compare_edges(struct slow_batch *batch, const struct gw_block_edges *edges,
			      const struct gw_pick_rule *rule, uint32_t etype, uint64_t first, uint64_t rows,
			      const struct gw_blocks_spec *spec)
{
	const struct slow_graph *graph = batch->graph;
	const struct gw_edge_type *type = &graph->etypes[etype];
	const uint64_t *indptr = graph->indptr[etype];
	assert_int_equal(edges->etype, etype);
	assert_int_equal(edges->dst_first, first);
	assert_int_equal(edges->dst_count, rows);
	assert_int_equal(edges->indptr[0], 0);
	assert_int_equal(edges->edge_ids == NULL, spec->no_edge_ids);
	uint64_t done = 0;
	for (uint64_t row = 0; row < rows; row++) {
		uint64_t vertex = (uint64_t)batch->ids[type->dst][first + row];
		uint64_t degree = indptr[vertex + 1] - indptr[vertex];
		uint32_t group = batch->groups[type->dst][first + row];
		uint64_t room = rule->fanout == GW_FANOUT_ALL || (!rule->replace && degree < (uint64_t)rule->fanout)
					? degree
					: (uint64_t)rule->fanout;
		uint64_t *picks = slow_alloc((room + 1) * sizeof(*picks));
		uint64_t count = slow_pick_in(rule, vertex, group, degree, picks);
		assert_int_equal(edges->indptr[row + 1], done + count);
		for (uint64_t i = 0; i < count; i++, done++) {
			uint64_t edge = indptr[vertex] + picks[i];
			uint32_t number = number_of(batch, type->src, group, graph->indices[etype][edge]);
			if (edges->edge_ids && edges->edge_ids[done] != (int64_t)edge)
				assert_int_equal(edges->edge_ids[done], edge);
			int64_t got = spec->wide_indices ? ((const int64_t *)edges->indices)[done]
							 : ((const int32_t *)edges->indices)[done];
			if (got != number)
				assert_int_equal(got, number);
		}
		free(picks);
	}
	assert_int_equal(edges->edge_count, done);
	return done;
}

static void compare_nodes(const struct slow_batch *batch, const struct gw_blocks *blocks, bool grouped)
{
	for (uint32_t t = 0; t < batch->graph->meta.num_ntypes; t++) {
		uint64_t count;
		const int64_t *ids = gw_blocks_nodes(blocks, t, &count);
		const uint32_t *groups = gw_blocks_node_groups(blocks, t);
		assert_int_equal(count, batch->count[t]);
		assert_memory_equal(ids, batch->ids[t], count * sizeof(*ids));
		assert_int_equal(groups != NULL, grouped);
		if (grouped)
			assert_memory_equal(groups, batch->groups[t], count * sizeof(*groups));
	}
}

void slow_blocks_compare_in(const struct slow_graph *graph, const struct gw_blocks *blocks,
			    const struct gw_blocks_spec *spec, uint64_t seed, uint64_t stream, uint32_t ntype,
			    const int64_t *seeds, const uint32_t *groups, uint64_t n)
{
	struct slow_batch batch;
	batch_begin(&batch, graph);
	uint64_t count, edge_count = 0, size = graph->meta.num_ntypes * sizeof(uint64_t);
	uint64_t expanded[SLOW_TYPES_MAX] = {0};
	const uint32_t *rows = gw_blocks_seed_rows(blocks, &count);
	assert_int_equal(count, n);
	for (uint64_t i = 0; i < n; i++)
		assert_int_equal(rows[i], number_of(&batch, ntype, groups ? groups[i] : 0, (uint64_t)seeds[i]));
	for (uint32_t hop = 0; hop < spec->hops; hop++) {
		const struct gw_block *block = gw_blocks_hop(blocks, hop);
		uint64_t dst_counts[SLOW_TYPES_MAX];
		memcpy(dst_counts, batch.count, sizeof(dst_counts));
		assert_memory_equal(block->dst_counts, dst_counts, size);
		uint32_t used = 0;
		for (uint32_t e = 0; e < graph->meta.num_etypes; e++) {
			uint32_t dst = graph->etypes[e].dst;
			struct gw_pick_rule rule = {
				.key = gw_draw_key(seed, stream, GW_DRAW_NEIGHBOURS, hop, e),
				.fanout = spec->fanouts[hop * graph->meta.num_etypes + e],
				.replace = spec->replace,
			};
			if (rule.fanout == 0)
				continue;
			assert_in_range(used, 0, block->edges_count - 1);
			edge_count += compare_edges(&batch, &block->edges[used++], &rule, e, expanded[dst],
						    dst_counts[dst] - expanded[dst], spec);
		}
		for (uint32_t t = 0; spec->new_only && t < graph->meta.num_ntypes; t++)
			expanded[t] = dst_counts[t];
		assert_int_equal(block->edges_count, used);
		assert_memory_equal(block->src_counts, batch.count, size);
	}
	assert_int_equal(gw_blocks_edge_count(blocks), edge_count);
	compare_nodes(&batch, blocks, groups != NULL);
	batch_end(&batch);
}

void slow_blocks_compare(const struct slow_graph *graph, const struct gw_blocks *blocks,
			 const struct gw_blocks_spec *spec, uint64_t seed, uint64_t stream, uint32_t ntype,
			 const int64_t *seeds, uint64_t n)
{
	slow_blocks_compare_in(graph, blocks, spec, seed, stream, ntype, seeds, NULL, n);
}

static uint64_t fold(uint64_t digest, const void *data, uint64_t bytes)
{
	return gw_mix64(digest ^ gw_digest(data, bytes)) + bytes;
}

uint64_t slow_blocks_digest(const struct gw_graph_meta *meta, const struct gw_blocks *blocks, uint32_t hops, bool wide)
{
	uint64_t digest = 0, count, types = meta->num_ntypes * sizeof(uint64_t);
	for (uint32_t t = 0; t < meta->num_ntypes; t++) {
		const int64_t *ids = gw_blocks_nodes(blocks, t, &count);
		digest = fold(digest, ids, count * sizeof(*ids));
	}
	for (uint32_t hop = 0; hop < hops; hop++) {
		const struct gw_block *block = gw_blocks_hop(blocks, hop);
		digest = fold(fold(digest, block->dst_counts, types), block->src_counts, types);
		for (uint32_t i = 0; i < block->edges_count; i++) {
			const struct gw_block_edges *e = &block->edges[i];
			digest = fold(digest, e->indptr, (e->dst_count + 1) * sizeof(int64_t));
			digest = fold(digest, e->edge_ids, e->edge_count * sizeof(int64_t));
			digest = fold(digest, e->indices, e->edge_count * (wide ? sizeof(int64_t) : sizeof(int32_t)));
		}
	}
	const uint32_t *rows = gw_blocks_seed_rows(blocks, &count);
	return fold(digest, rows, count * sizeof(*rows));
}
