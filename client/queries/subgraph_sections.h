/* The nodes of a subgraph call in sections: the destinations of one group at one owner, and sources of the group.
 *
 *   sources, sorted by (group, id), without repeats --+-> for each owner: section after section
 *   destinations, sorted by (owner, group) -----------+
 *
 * Sources of a group that do not fit into a request are divided, and so are destinations; each pair of pieces is then a
 * section. */
#ifndef GW_CLIENT_QUERIES_SUBGRAPH_SECTIONS_H
#define GW_CLIENT_QUERIES_SUBGRAPH_SECTIONS_H

#include <stdbool.h>

#include <graphwire/edges.h>

#include "core/graph/meta.h"
#include "core/memory/vec.h"

struct gw_subgraph_places {
	struct gw_subgraph_nodes src, dst; /* the caller's */
	uint64_t *srcs;                    /* [src_count] ids, ascending in each group */
	uint32_t *src_rows, *src_groups;   /* [src_count]; of equal ids in a group, the first row */
	uint64_t src_count;
	uint32_t *dst_rows;   /* [dst.count] */
	uint64_t *dst_starts; /* [num_parts + 1]: where each owner's destinations begin */
};

/* Sorts the nodes of an edge type. GW_RANGE names the first id that does not exist. The caller frees `places` in every
 * case, and keeps the lists until then. */
gw_status gw_subgraph_places_set(struct gw_subgraph_places *places, const struct gw_graph_meta *meta, uint32_t etype,
				 const struct gw_subgraph_nodes *src, const struct gw_subgraph_nodes *dst);
void gw_subgraph_places_free(struct gw_subgraph_places *places);

/* [src, src + src_count) and [dst, dst + dst_count) of the places. */
struct gw_subgraph_piece {
	uint64_t dst, src;
	uint32_t dst_count, src_count;
};

/* Where an owner's next section begins. */
struct gw_subgraph_cursor {
	uint64_t end;          /* of the owner's destinations */
	uint64_t run, run_end; /* the destinations of the current group */
	uint64_t dst, src, src_end;
};

struct gw_subgraph_cursor gw_subgraph_cursor(const struct gw_subgraph_places *places, uint32_t part);

/* The next section, of at most so many destinations and sources. False: none is left, or it does not fit. */
bool gw_subgraph_next(struct gw_subgraph_cursor *cursor, const struct gw_subgraph_places *places, uint64_t dsts,
		      uint64_t srcs, struct gw_subgraph_piece *out);

#endif
