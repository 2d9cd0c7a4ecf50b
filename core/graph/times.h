/* Arrays that are made of times: of the edges in list order, and of the nodes of each part.
 *
 *   edge/FOLDER/NAME.source        the time NAME of each edge's source, with the dtype of the node feature, in list
 *                                  order; lists may be sorted by it
 *   edge/FOLDER/TIME.fence         of a type whose lists are sorted by TIME: entry j is the key of the time at position
 *                                  64 j of the part's list array. A search in a long list reads the fence, then one
 *                                  block of 64 times
 *   node/TYPE/NAME.times           the keys of the times NAME of the part's nodes, ascending
 *   node/TYPE/NAME.times_nodes     the row in the part of each of them; equal times by row
 *
 * Keys are those of core/numbers/time_key.h.
 */
#ifndef GW_GRAPH_TIMES_H
#define GW_GRAPH_TIMES_H

#include "core/graph/part.h"
#include "core/graph/writer.h"

#define GW_FENCE_STEP 64u /* positions from one entry of a fence to the next */

static inline uint64_t gw_fence_entries(uint64_t edges)
{
	return edges / GW_FENCE_STEP + (edges % GW_FENCE_STEP != 0);
}

/* A node feature whose times get an index. */
struct gw_time_index {
	uint32_t ntype;
	char name[GW_NAME_MAX + 1];
};

/* Whether the type's lists are sorted by the times of their sources. */
bool gw_times_are_of_sources(const struct gw_graph_meta *meta, uint32_t etype);

/* GW_INVALID if the name of a time is too long for the arrays that are made of it, or the format uses it itself. */
gw_status gw_time_name_check(const char *name);

/* Whether an array of the graph has a name of these arrays, as older minor versions allowed. */
bool gw_times_names_are_used(const struct gw_graph_meta *meta);

/* Writes the fences of all edge types whose lists are sorted by time, and the indexes of node times; the writer has all
 * other arrays already, and the graph is of minor version GW_FORMAT_MINOR_TIMES. index: [count]. Adds their payload to
 * *bytes. Memory: 40 bytes for each node of a part. GW_NO_MEMORY, and the errors of the writer. */
gw_status gw_times_write(struct gw_writer *writer, const struct gw_time_index *index, uint32_t count, unsigned threads,
			 uint64_t *bytes);

/* Checks these arrays of a part against the times that they are made of. (The sources of edges may be in other parts.)
 * GW_FORMAT with the key and the position of the first fault. */
gw_status gw_times_check(const struct gw_part *part, unsigned threads);

/* The payload bytes of these arrays in all parts. */
uint64_t gw_times_bytes(const struct gw_graph_meta *meta);

#endif
