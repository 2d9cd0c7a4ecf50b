/* Makes or reads the lists that bench sample samples from, and weighs their edges.
 *
 *   R-MAT edges -> CSC --+
 *                        +-> offsets and ids of 4 bytes in an arena, as a part has them -> weights -> alias table
 *   parts, mapped -------+
 *
 * Fails for a graph that is too long for 4-byte offsets or has several types, and when out of memory.
 */
#include "bench/sample_graph.h"

#include <stdio.h>

#include "core/graph/alias.h"
#include "core/graph/csc.h"
#include "core/memory/alloc.h"
#include "core/numbers/rng.h"
#include "core/numbers/scatter.h"
#include "core/system/parallel.h"

#define CHUNK      (1u << 16) /* edges or rows of one step of a thread */
#define WEIGHT_KEY 0x77656967687473ull

struct edge_list {
	uint64_t scale;
	struct gw_scatter scatter;
	uint64_t *src, *dst;
};

/* Graph500's R-MAT: for each bit of the ids, 16 random bits choose a quadrant, with probabilities 0.57, 0.19, 0.19,
 * 0.05. */
static gw_status bench_sample_make_edges(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct edge_list *list = context;
	(void)thread;
	for (uint64_t e = begin; e < end; e++) {
		uint64_t src = 0, dst = 0, random = 0;
		for (uint64_t bit = 0; bit < list->scale; bit++, random >>= 16) {
			if (bit % 4 == 0)
				random = gw_mix64(e * 8 + bit / 4 + 1);
			uint64_t quadrant = random & 0xffff;
			src |= (uint64_t)(quadrant >= 49807) << bit; /* 0.76 */
			dst |= (uint64_t)((quadrant >= 37356 && quadrant < 49807) || quadrant >= 62259) << bit;
		}
		list->src[e] = gw_scatter_at(&list->scatter, src);
		list->dst[e] = gw_scatter_at(&list->scatter, dst);
	}
	return GW_OK;
}

static gw_status allocate_lists(struct sample_graph *graph)
{
	const struct gw_arena_options pages = {.name = "bench-sample", .numa = GW_NUMA_SPREAD, .shareable = true};
	uint64_t indptr = 0, indices = 0;
	if (graph->edges > UINT32_MAX || graph->nodes > UINT32_MAX)
		return gw_fail(GW_LIMIT, "%llu nodes and %llu edges: at most 2^32 - 1 of each",
			       (unsigned long long)graph->nodes, (unsigned long long)graph->edges);
	gw_status status =
		gw_arena_create((graph->nodes + graph->edges + 1) * 4 + 2 * GW_ARENA_ALIGN, &pages, &graph->arena);
	if (status == GW_OK)
		status = gw_arena_take(graph->arena, (graph->nodes + 1) * 4, GW_ARENA_ALIGN, &indptr);
	if (status == GW_OK)
		status = gw_arena_take(graph->arena, graph->edges * 4, GW_ARENA_ALIGN, &indices);
	if (status != GW_OK)
		return status;
	graph->indptr = (uint32_t *)(void *)(gw_arena_base(graph->arena) + indptr);
	graph->indices = (uint32_t *)(void *)(gw_arena_base(graph->arena) + indices);
	graph->starts[1] = graph->nodes;
	graph->ntype =
		(struct gw_node_type){.name = "_N", .count = graph->nodes, .starts = graph->starts, .columns = 1};
	graph->etype = (struct gw_edge_type){.name = "_E", .folder = "_N__E__N", .count = graph->edges};
	graph->meta = (struct gw_graph_meta){
		.num_parts = 1, .num_ntypes = 1, .num_etypes = 1, .ntypes = &graph->ntype, .etypes = &graph->etype};
	graph->adjacency = (struct gw_adjacency){
		.indptr = graph->indptr,
		.indices = graph->indices,
		.rows = graph->nodes,
		.edges = graph->edges,
		.columns = 1,
		.indptr_bytes = 4,
		.index_bytes = 4,
	};
	return GW_OK;
}

static gw_status store_lists(struct sample_graph *graph, const struct edge_list *list)
{
	const struct gw_coo coo = {
		.num_src = graph->nodes,
		.num_dst = graph->nodes,
		.num_edges = graph->edges,
		.src = list->src,
		.dst = list->dst,
	};
	struct gw_csc csc;
	gw_status status = gw_csc_build(&coo, 0, &csc);
	if (status != GW_OK)
		return status;
	for (uint64_t i = 0; i <= graph->nodes; i++)
		graph->indptr[i] = (uint32_t)csc.indptr[i];
	for (uint64_t e = 0; e < graph->edges; e++)
		graph->indices[e] = (uint32_t)list->src[csc.order[e]];
	gw_csc_free(&csc);
	return GW_OK;
}

gw_status sample_graph_make(struct sample_graph *graph, uint64_t scale, uint64_t edge_factor)
{
	*graph = (struct sample_graph){.nodes = 1ull << scale, .edges = edge_factor << scale};
	snprintf(graph->title, sizeof(graph->title), "R-MAT %llu x %llu", (unsigned long long)scale,
		 (unsigned long long)edge_factor);
	gw_status status = allocate_lists(graph);
	if (status != GW_OK)
		return status;
	struct edge_list list = {
		.scale = scale,
		.scatter = gw_scatter_begin(1, graph->nodes),
		.src = gw_malloc(graph->edges * sizeof(uint64_t)),
		.dst = gw_malloc(graph->edges * sizeof(uint64_t)),
	};
	status = list.src && list.dst ? GW_OK : GW_NO_MEMORY;
	if (status == GW_OK)
		status = gw_parallel_for(0, graph->edges, CHUNK, bench_sample_make_edges, &list);
	if (status == GW_OK)
		status = store_lists(graph, &list);
	gw_free(list.src);
	gw_free(list.dst);
	return status;
}

/* ---- a partitioned graph ---- */

/* Appends the part's lists: ids are global, and parts own ranges of destinations in order. */
static void append_part(struct sample_graph *graph, const struct gw_adjacency *a, uint64_t *edge)
{
	for (uint64_t row = 0; row < a->rows; row++) {
		uint64_t begin, end;
		gw_adjacency_list(a, row, &begin, &end);
		for (; begin < end; begin++)
			graph->indices[(*edge)++] = (uint32_t)gw_load_id(a->indices, a->index_bytes, begin);
		graph->indptr[a->dst_start + row + 1] = (uint32_t)*edge;
	}
}

static gw_status append_parts(struct sample_graph *graph, const struct gw_graph_meta *meta)
{
	const struct gw_part_options mapped = {.mapped = true};
	uint64_t edge = 0;
	for (uint32_t p = 0; p < meta->num_parts; p++) {
		struct gw_part *part;
		gw_status status = gw_part_open(meta, p, &mapped, &part);
		if (status != GW_OK)
			return status;
		append_part(graph, gw_part_adjacency(part, 0), &edge);
		gw_part_close(part);
	}
	return GW_OK;
}

gw_status sample_graph_read(struct sample_graph *graph, const char *part_config)
{
	struct gw_graph_meta *meta;
	*graph = (struct sample_graph){0};
	gw_status status = gw_meta_read(part_config, &meta);
	if (status != GW_OK)
		return status;
	if (meta->num_ntypes != 1 || meta->num_etypes != 1)
		status = gw_fail(GW_UNSUPPORTED, "%s: %u node types and %u edge types: give a graph with one of each",
				 part_config, meta->num_ntypes, meta->num_etypes);
	if (status == GW_OK) {
		graph->nodes = meta->ntypes[0].count;
		graph->edges = meta->etypes[0].count;
		snprintf(graph->title, sizeof(graph->title), "%.40s", meta->graph_name);
		status = graph->nodes ? allocate_lists(graph)
				      : gw_fail(GW_INVALID, "%s has no nodes to sample for", part_config);
	}
	if (status == GW_OK)
		status = append_parts(graph, meta);
	gw_meta_destroy(meta);
	return status;
}

/* ---- weights ---- */

static gw_status draw_weights(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct sample_graph *graph = context;
	(void)thread;
	for (uint64_t e = begin; e < end; e++)
		graph->weights[e] = (float)((gw_mix64(WEIGHT_KEY + e) >> 40) + 1) * 0x1p-24f;
	return GW_OK;
}

gw_status sample_graph_weigh(struct sample_graph *graph)
{
	const struct gw_arena_options pages = {.name = "bench-weights", .numa = GW_NUMA_SPREAD, .shareable = true};
	uint64_t weights = 0, table = 0;
	gw_status status = gw_arena_create(graph->edges * (4 + 8) + 2 * GW_ARENA_ALIGN, &pages, &graph->weights_arena);
	if (status == GW_OK)
		status = gw_arena_take(graph->weights_arena, graph->edges * 8, GW_ARENA_ALIGN, &table);
	if (status == GW_OK)
		status = gw_arena_take(graph->weights_arena, graph->edges * 4, GW_ARENA_ALIGN, &weights);
	if (status != GW_OK)
		return status;
	graph->table = (uint32_t *)(void *)(gw_arena_base(graph->weights_arena) + table);
	graph->weights = (float *)(void *)(gw_arena_base(graph->weights_arena) + weights);
	uint64_t *indptr = gw_malloc((graph->nodes + 1) * sizeof(*indptr));
	if (!indptr)
		return GW_NO_MEMORY;
	for (uint64_t i = 0; i <= graph->nodes; i++)
		indptr[i] = graph->indptr[i];
	status = gw_parallel_for(0, graph->edges, CHUNK, draw_weights, graph);
	if (status == GW_OK)
		status = gw_alias_build(indptr, graph->nodes, GW_FLOAT32, graph->weights, 0, graph->table);
	gw_free(indptr);
	return status;
}

void sample_graph_end(struct sample_graph *graph)
{
	gw_arena_destroy(graph->arena);
	gw_arena_destroy(graph->weights_arena);
	graph->arena = graph->weights_arena = NULL;
}
