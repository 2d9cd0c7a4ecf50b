/* Sampling done slowly and plainly, from the definition alone: what the sampler is compared with.
 *
 * A slow_graph is a whole graph as one CSC per edge type, and the same graph cut into parts as a server would hold it.
 * No code of the sampler is used here, only its types; draws come from core/numbers/rng.h, which has known answers.
 */
#ifndef GW_TEST_SLOW_SAMPLE_H
#define GW_TEST_SLOW_SAMPLE_H

#include "core/graph/part.h"
#include "sampler/blocks/blocks.h"

#define SLOW_TYPES_MAX 8
#define SLOW_PARTS_MAX 8

struct slow_graph {
	struct gw_graph_meta meta;
	struct gw_node_type ntypes[SLOW_TYPES_MAX];
	struct gw_edge_type etypes[SLOW_TYPES_MAX];
	uint64_t *indptr[SLOW_TYPES_MAX];  /* [nodes of dst + 1], whole graph */
	uint64_t *indices[SLOW_TYPES_MAX]; /* [edges] */
	struct gw_adjacency adjacencies[SLOW_PARTS_MAX][SLOW_TYPES_MAX];
	const struct gw_adjacency *parts[SLOW_PARTS_MAX];
	void *owned[8 * SLOW_TYPES_MAX * SLOW_PARTS_MAX];
	uint32_t owned_count;
};

/* A graph without edges and parts: then slow_graph_edges for each edge type, then slow_graph_cut. */
void slow_graph_init(struct slow_graph *graph, uint32_t ntypes, const uint64_t *counts);
/* Adds an edge type; takes indptr and indices over (malloc). */
void slow_graph_edges(struct slow_graph *graph, uint32_t src, uint32_t dst, uint64_t *indptr, uint64_t *indices);
/* Adds an edge type with random lists: most short, a few empty, a few as long as degree_max. Sources ascend. */
void slow_graph_random(struct slow_graph *graph, uint32_t src, uint32_t dst, uint64_t degree_max, uint64_t seed);
/* Cuts the graph into parts at random places, some of them empty; arrays of offsets and ids of the given widths. */
void slow_graph_cut(struct slow_graph *graph, uint32_t parts, uint8_t indptr_bytes, uint8_t index_bytes, uint64_t seed);
void slow_graph_free(struct slow_graph *graph);

/* The picks of one list by the definition in sampler/pick.h; out has room for them. Returns how many. */
uint64_t slow_pick(const struct gw_pick_rule *rule, uint64_t instance, uint64_t degree, uint64_t *out);
/* The same in a group. */
uint64_t slow_pick_in(const struct gw_pick_rule *rule, uint64_t instance, uint32_t group, uint64_t degree,
		      uint64_t *out);

/* Builds the batch slowly and asserts that `blocks`, which has been run, is the same in every array. */
void slow_blocks_compare(const struct slow_graph *graph, const struct gw_blocks *blocks,
			 const struct gw_blocks_spec *spec, uint64_t seed, uint64_t stream, uint32_t ntype,
			 const int64_t *seeds, uint64_t n);

#define SLOW_GROUPS 16
/* The same with a group below SLOW_GROUPS for each seed; NULL: without groups. */
void slow_blocks_compare_in(const struct slow_graph *graph, const struct gw_blocks *blocks,
			    const struct gw_blocks_spec *spec, uint64_t seed, uint64_t stream, uint32_t ntype,
			    const int64_t *seeds, const uint32_t *groups, uint64_t n);

/* XXH3 over every array of the result: equal batches have equal digests. */
uint64_t slow_blocks_digest(const struct gw_graph_meta *meta, const struct gw_blocks *blocks, uint32_t hops, bool wide);

#endif
