/* The lists of a part: the arrays from which neighbours are drawn, without the rows that are fetched afterwards. A host
 * may hold the lists of parts that it does not serve (graphwire serve --lists all).
 *
 *   node/TYPE/indptr, out_indptr   offsets
 *   edge/TYPE/indices, out/indices, out/eid
 *   edge/TYPE/NAME                 one number for each edge, which a rule may name: weights, masks, times
 *   edge/TYPE/NAME.alias, .source, .fence
 */
#ifndef GW_GRAPH_PART_LISTS_H
#define GW_GRAPH_PART_LISTS_H

#include "core/graph/part.h"

/* What --on-disk and on_disk call the arrays of gw_array_is_of_edges, and those of gw_array_is_of_offsets. */
#define GW_LISTS_WORD   "lists"
#define GW_OFFSETS_WORD "offsets"

/* Whether an array of a part belongs to its lists. Original ids, relations and rows of several numbers do not: no draw
 * reads them. */
bool gw_array_is_of_lists(const struct gw_graph_meta *meta, const struct gw_array_meta *array);

/* Whether an array has an entry for each edge: neighbours, edge ids, relations, and all arrays of one number for each
 * edge, with their alias tables. These stay on disk together. */
bool gw_array_is_of_edges(const struct gw_graph_meta *meta, const struct gw_array_meta *array);
/* Whether an array says where to look in lists: their offsets, and fences. These stay on disk together. */
bool gw_array_is_of_offsets(const struct gw_graph_meta *meta, const struct gw_array_meta *array);
/* Whether an entry of an array and the next one are a range: offsets of lists, and buckets of original ids. */
bool gw_array_is_of_ranges(const struct gw_graph_meta *meta, const struct gw_array_meta *array);

/* The room that the lists of a part take in an arena. leave_out: arrays that the lists shall lack, as
 * gw_part_options.set_apart; or NULL. */
uint64_t gw_part_lists_bytes(const struct gw_graph_meta *meta, uint32_t part,
			     enum gw_array_apart (*leave_out)(const void *context, const char *key),
			     const void *context);

#endif
