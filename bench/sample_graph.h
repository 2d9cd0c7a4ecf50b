/* The lists of bench sample: an R-MAT graph, or the edges of a partitioned graph; and, on demand, their weights. */
#ifndef GW_BENCH_SAMPLE_GRAPH_H
#define GW_BENCH_SAMPLE_GRAPH_H

#include "bench/sample_ceiling.h"
#include "core/graph/meta.h"
#include "core/graph/part.h"
#include "core/memory/arena.h"

/* One part with one node type and one edge type; offsets and ids of 4 bytes. It must not move: its fields point to each
 * other. */
struct sample_graph {
	char title[64];
	uint64_t nodes, edges;
	uint32_t *indptr, *indices; /* [nodes + 1], [edges] */
	float *weights;             /* [edges], all positive; NULL: none */
	uint32_t *table;            /* [edges, 2]: their alias table */
	struct gw_arena *arena, *weights_arena;
	struct gw_graph_meta meta;
	struct gw_node_type ntype;
	struct gw_edge_type etype;
	uint64_t starts[2];
	struct gw_adjacency adjacency;
};

/* Graph500's R-MAT graph of 2^scale nodes with edge_factor edges each. GW_LIMIT: 2^32 edges or more. Free with
 * sample_graph_end, after a failure too. */
gw_status sample_graph_make(struct sample_graph *graph, uint64_t scale, uint64_t edge_factor);

/* The lists of all parts of a graph. GW_UNSUPPORTED: it has several node types or edge types. */
gw_status sample_graph_read(struct sample_graph *graph, const char *part_config);

/* Adds random weights in (0, 1], and their alias table. */
gw_status sample_graph_weigh(struct sample_graph *graph);

void sample_graph_end(struct sample_graph *graph);

#endif
