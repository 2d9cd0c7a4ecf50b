/* Builds blocks from picks: the structures that a mini-batch's message passing uses.
 *
 *   gw_blocks_begin(seeds) -> for each hop: gw_blocks_hop_begin -> for each edge type: gw_blocks_edges_begin,
 *   gw_blocks_add (in the order of the frontier, in runs) ..., gw_blocks_edges_end -> gw_blocks_hop_end
 *
 * Nodes of a type are unique and numbered in the order of first use: seeds; then, hop by hop and edge type by edge
 * type, new sources by destination row, then by position. So the sources of a hop are a prefix of the node list, and
 * its destinations are a shorter prefix. A gw_blocks object is reused; it allocates only while its vectors still grow.
 */
#ifndef GW_SAMPLER_BLOCKS_BLOCKS_H
#define GW_SAMPLER_BLOCKS_BLOCKS_H

#include <graphwire/block.h>
#include <graphwire/edges.h>

#include "core/graph/meta.h"
#include "sampler/draw.h"
#include "sampler/exclude.h"

/* The sampling to do. */
struct gw_blocks_spec {
	uint32_t hops;          /* 1 to GW_HOPS_MAX */
	const int32_t *fanouts; /* [hops][num_etypes]: GW_FANOUT_ALL, 0 (skip) or a count; hop 0 starts at the seeds */
	bool replace;
	bool wide_indices; /* block indices as int64 instead of int32 */
	bool no_edge_ids;  /* gw_block_edges.edge_ids is NULL */
	/* Each hop draws for the nodes that the hop before has added, so that every node is expanded once. False: for
	 * all nodes so far. */
	bool new_only;
	/* Edges to drop after the draw: those of the batch, and those of all batches. NULL: none. */
	const struct gw_exclude *exclude, *held_out;
	const struct gw_edge_sampling *sampling; /* [num_etypes]; NULL: all uniform. Not copied */
	struct gw_groups groups[2]; /* what the seeds' groups see, by gw_time_is_real() of the column. Not copied */
};

/* The destinations of an edge type in the current hop: rows [first, first + n) of their type's node list. */
struct gw_frontier {
	const uint64_t *nodes;  /* [n]: global ids */
	const uint32_t *groups; /* [n], or NULL: all 0 */
	uint64_t n, first;
};

struct gw_blocks;
struct gw_adjacency; /* core/graph/part.h */
struct gw_relabel;   /* relabel.h */

gw_status gw_blocks_create(const struct gw_graph_meta *meta, struct gw_blocks **out);
void gw_blocks_destroy(struct gw_blocks *blocks);

/* Begins a batch with seeds of one node type. Duplicates are merged: gw_blocks_seed_rows returns each seed's row.
 * GW_RANGE names the first seed that is not a node; GW_INVALID: a bad spec. The spec is copied. The object uses relabel
 * until another object begins with the same relabel, so a thread that interleaves batches needs one relabel for
 * each. */
gw_status gw_blocks_begin(struct gw_blocks *blocks, struct gw_relabel *relabel, const struct gw_blocks_spec *spec,
			  uint64_t seed, uint64_t stream, uint32_t ntype, const int64_t *seeds, uint64_t n);
/* The same with lists of seeds, each of one node type. Seeds are numbered, and their rows are returned, list after
 * list. groups: a group for each seed, list after list; NULL: all seeds are in group 0. The neighbours of a node are in
 * its group, and a node in two groups has two rows. GW_LIMIT: groups * nodes of the graph do not fit 64 bits. */
gw_status gw_blocks_begin_lists(struct gw_blocks *blocks, struct gw_relabel *relabel, const struct gw_blocks_spec *spec,
				uint64_t seed, uint64_t stream, const struct gw_seeds *lists, uint32_t list_count,
				const uint32_t *groups);

/* The draw of (current hop, edge type), and its frontier. The frontier is valid until the next add. */
struct gw_draw gw_blocks_draw(const struct gw_blocks *blocks, uint32_t etype);
struct gw_frontier gw_blocks_frontier(const struct gw_blocks *blocks, uint32_t etype);

gw_status gw_blocks_hop_begin(struct gw_blocks *blocks);
gw_status gw_blocks_edges_begin(struct gw_blocks *blocks, uint32_t etype);
/* Adds the next run of destinations: counts [n]; positions and neighbours [sum of the counts]. position + edge_start is
 * the edge id; positions may be NULL if gw_blocks_draw().no_edge_ids is set. The neighbours may come from a peer:
 * GW_RANGE if one is no node. */
gw_status gw_blocks_add(struct gw_blocks *blocks, uint64_t n, const uint32_t *counts, const uint64_t *positions,
			const uint64_t *neighbours, uint64_t edge_start);
gw_status gw_blocks_edges_end(struct gw_blocks *blocks);
gw_status gw_blocks_hop_end(struct gw_blocks *blocks);

/* Samples all hops from lists in memory. parts: for each part its adjacencies [num_etypes], or NULL for a part that is
 * not in memory (GW_NOT_FOUND if it is needed). columns: for each edge type its columns in each part [num_parts]; NULL,
 * or NULL for an edge type, if the draws need none. One part is the fast case; with several, a run mixes owners. */
gw_status gw_blocks_run_memory(struct gw_blocks *blocks, const struct gw_adjacency *const *parts,
			       const struct gw_columns *const *columns);

/* Results; valid until the next begin. */
const struct gw_block *gw_blocks_hop(const struct gw_blocks *blocks, uint32_t hop);
const int64_t *gw_blocks_nodes(const struct gw_blocks *blocks, uint32_t ntype, uint64_t *count); /* global ids */
const uint32_t *gw_blocks_node_groups(const struct gw_blocks *blocks, uint32_t ntype);           /* NULL: all 0 */
const uint32_t *gw_blocks_seed_rows(const struct gw_blocks *blocks, uint64_t *count);
uint64_t gw_blocks_edge_count(const struct gw_blocks *blocks); /* over all hops */

#endif
