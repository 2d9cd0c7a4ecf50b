/* The undirected simple graph of a heterogeneous graph: whole, as METIS needs it, or a range of nodes at a time. */
#ifndef GW_TOOLS_PARTITION_SYMMETRIC_H
#define GW_TOOLS_PARTITION_SYMMETRIC_H

#include "core/graph/part.h"

/* One edge type. All node types share one numbering: node v of a type is base + v. */
struct gw_symmetric_source {
	const struct gw_adjacency *adjacency; /* from a graph in one part */
	uint64_t src_base, dst_base;
	bool mapped; /* its arrays are of mapped files, whose pages leave the process once they are read */
};

struct gw_symmetric {
	uint64_t nodes;   /* nodes that have a neighbour; other nodes are left out */
	uint64_t edges;   /* edges of the input without loops */
	uint64_t entries; /* xadj[nodes]: both directions of every pair of neighbours */
	int32_t *origin;  /* [nodes]: the input's number of each node, ascending */
	int32_t *xadj;    /* [nodes + 1] */
	int32_t *adjncy;  /* [entries]: each list ascending, without loops and repeats */
	int32_t *adjwgt; /* [entries]: the input's edges between the two nodes, in both directions; the sum is 2 * edges
			  */
	struct gw_arena *arena;
};

/* After a pass over lists of a mapped file, from that of row `first` to that of row `last`: their pages leave the
 * process's memory (gw_filemap_drop). */
void gw_symmetric_leave(const struct gw_adjacency *adjacency, uint64_t first, uint64_t last);

/* The number of edges whose two ends are the same node. */
uint64_t gw_symmetric_loops(const struct gw_symmetric_source *sources, size_t count, unsigned threads);

/* The most memory that gw_symmetric_build uses at once, in addition to its input, and the most that stays allocated
 * afterwards. */
uint64_t gw_symmetric_bytes_max(uint64_t nodes, uint64_t edges);

/* Builds the graph. GW_LIMIT if nodes or 2 * edges are 2^31 - 1 or more; GW_NO_MEMORY. The result is the same for any
 * number of threads. Free it with gw_symmetric_free. */
gw_status gw_symmetric_build(const struct gw_symmetric_source *sources, size_t count, uint64_t nodes, unsigned threads,
			     struct gw_symmetric *out);
void gw_symmetric_free(struct gw_symmetric *graph); /* a zeroed one is allowed */

/* The lists of a range of nodes. Node v of the range has the ids list[ends[v] - ends[first]] and on, up to node v +
 * 1's: ascending, without loops, with repeats, in the input's numbering. */
struct gw_symmetric_range {
	uint64_t all;        /* nodes of the input */
	uint64_t nodes;      /* nodes that have a neighbour */
	uint64_t edges;      /* edges of the input without loops */
	uint64_t *ends;      /* [all + 1]: ends of edges before each node's */
	uint32_t *number;    /* [all]: the place of a node among those that have a neighbour */
	uint64_t first, end; /* the nodes of the range */
	uint32_t *list;
	uint32_t *distinct; /* [end - first]: different ids of each list */
	struct gw_symmetric_build *build;
};

#define GW_SYMMETRIC_NODES_END UINT32_MAX /* more than any number of nodes */

/* Counts the ends of all nodes, 12 bytes a node; the range is empty. sources stay borrowed. GW_LIMIT if nodes are
 * GW_SYMMETRIC_NODES_END or more; GW_NO_MEMORY. Close the range in any case. */
gw_status gw_symmetric_range_open(const struct gw_symmetric_source *sources, size_t count, uint64_t nodes,
				  unsigned threads, struct gw_symmetric_range *out);
/* Goes on to the next nodes, as many as have lists in about `bytes` of memory, or one node. Reads all edges. At the end
 * the range is empty. The lists are the same for any number of threads. GW_LIMIT: a node has 2^32 ends; GW_NO_MEMORY.
 */
gw_status gw_symmetric_range_next(struct gw_symmetric_range *range, uint64_t bytes);
void gw_symmetric_range_close(struct gw_symmetric_range *range); /* a zeroed one is allowed */

#endif
