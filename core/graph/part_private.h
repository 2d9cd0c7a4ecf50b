/* The members of an opened part, for part.c and part_open.c. */
#ifndef GW_GRAPH_PART_PRIVATE_H
#define GW_GRAPH_PART_PRIVATE_H

#include "core/graph/part.h"

struct part_source; /* one for each array: see part_open.c */

struct gw_part {
	const struct gw_graph_meta *meta;
	uint32_t number;
	uint32_t count;
	struct gw_array *arrays;
	struct part_source *sources;
	struct gw_adjacency *adjacency;     /* [etypes] */
	struct gw_adjacency *out_adjacency; /* [etypes]; columns = 0 if the type is not stored transposed */
	struct gw_arena *arena;
	bool borrowed; /* the arena is another part's */
	struct gw_load_stats stats;
};

#endif
