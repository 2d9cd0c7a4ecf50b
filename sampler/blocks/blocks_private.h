/* The state of a batch in progress, which blocks.c and blocks_memory.c share. */
#ifndef GW_SAMPLER_BLOCKS_BLOCKS_PRIVATE_H
#define GW_SAMPLER_BLOCKS_BLOCKS_PRIVATE_H

#include "sampler/blocks/blocks.h"
#include "sampler/blocks/relabel.h"

/* The arrays of one edge type in one hop; kept from batch to batch. */
struct gw_block_arrays {
	struct gw_vec indptr, indices, edge_ids;
};

enum gw_blocks_state { GW_BLOCKS_IDLE, GW_BLOCKS_BEGUN, GW_BLOCKS_IN_HOP, GW_BLOCKS_IN_EDGES };

struct gw_blocks {
	const struct gw_graph_meta *meta;
	struct gw_relabel *relabel;
	struct gw_blocks_spec spec; /* its fanouts point into the vector below */
	uint64_t seed, stream;
	struct gw_vec fanouts; /* int32_t [hops][num_etypes] */

	struct gw_node_list *nodes; /* [num_ntypes] */
	struct gw_pick_scratch scratch;
	struct gw_vec seed_rows;                                /* uint32_t [seed_count] */
	struct gw_vec picks;                                    /* uint64_t: of a run in memory */
	struct gw_vec kept_counts, kept_edges, kept_neighbours; /* a run without its excluded edges */
	struct gw_vec end_groups;                               /* of a run in groups */
	bool grouped;
	uint64_t seed_count, edge_count;

	struct gw_block hops[GW_HOPS_MAX];
	struct gw_vec counts; /* uint64_t [hops][2][num_ntypes]: destinations and sources */
	struct gw_vec edges;  /* struct gw_block_edges [arrays_used] */
	struct gw_block_arrays *arrays;
	uint32_t arrays_used, arrays_count; /* used by this spec, and allocated */

	enum gw_blocks_state state;
	uint32_t hops_done;
	uint32_t edges_done;  /* number of edge types done over all hops; the index of the current edges and arrays */
	uint32_t edges_first; /* index of the current hop's first */
	uint64_t rows_done;
};

/* Makes room for `more` further edges in the current edge type. */
gw_status gw_blocks_edges_room(struct gw_blocks *blocks, uint64_t more);

/* The group of each neighbour of a run: destination i is in group of_rows[i] and has counts[i] neighbours. Valid until
 * the next call. */
gw_status gw_blocks_end_groups(struct gw_blocks *blocks, const uint32_t *of_rows, uint64_t n, const uint32_t *counts,
			       uint64_t total, const uint32_t **out);

/* Whether edges of this type may be dropped after the draw. */
static inline bool gw_blocks_may_drop(const struct gw_blocks *blocks, uint32_t etype)
{
	return gw_exclude_concerns(blocks->spec.exclude, etype) || gw_exclude_concerns(blocks->spec.held_out, etype);
}

static inline bool gw_blocks_drops(const struct gw_blocks *blocks, uint32_t etype, uint64_t edge, uint64_t src,
				   uint64_t dst)
{
	const struct gw_exclude *exclude = blocks->spec.exclude, *held_out = blocks->spec.held_out;
	return (gw_exclude_concerns(exclude, etype) && gw_exclude_has(exclude, etype, edge, src, dst)) ||
	       (gw_exclude_concerns(held_out, etype) && gw_exclude_has(held_out, etype, edge, src, dst));
}

static inline struct gw_block_edges *gw_blocks_edges_now(const struct gw_blocks *blocks)
{
	return (struct gw_block_edges *)blocks->edges.data + blocks->edges_done;
}

#endif
