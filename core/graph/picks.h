/* Picks from adjacency lists: the sampler fills them, and the reply to a sample request carries them. */
#ifndef GW_GRAPH_PICKS_H
#define GW_GRAPH_PICKS_H

#include "core/memory/vec.h"

#define GW_FANOUT_ALL (-1)
#define GW_FANOUT_MAX (1 << 20)
#define GW_GROUPS_MAX 65536u /* groups with values: a request carries the values of all */

/* A drawing thread's working memory. Zero-initialized is empty. */
struct gw_pick_scratch {
	struct gw_vec seen, sorted, wide;
	struct gw_vec needs, next_needs, got; /* of the memory driver (sampler/draw_memory.c) */
	struct gw_vec weights, sums;          /* of exact draws by weight */
	struct gw_vec eligible;               /* of draws by time that scan */
};

/* The picks of consecutive destinations, in their order. The owner keeps the vectors and reuses them. */
struct gw_picks {
	uint64_t dst_count, edge_count;
	uint64_t entry_count;     /* entries of columns that the memory driver has read, if they are bounded */
	struct gw_vec counts;     /* uint32_t [dst_count]: picks of each destination */
	struct gw_vec positions;  /* uint64_t [edge_count]: CSC positions in the part that owns the destination */
	struct gw_vec neighbours; /* uint64_t [edge_count]: global source ids */
	struct gw_pick_scratch scratch;
};

#endif
