/* The lists of edges that callers get. */
#ifndef GW_CLIENT_QUERIES_EDGE_LIST_H
#define GW_CLIENT_QUERIES_EDGE_LIST_H

#include <graphwire/edges.h>

/* Creates a list with room for this many questions and edges. The caller fills all of its arrays. */
gw_status gw_edge_list_create(uint64_t questions, uint64_t edges, struct gw_edge_list **out);

/* Changes the room of a list to this many edges, which must be at least edge_count. After GW_NO_MEMORY the list is
 * unchanged, or has more room. */
gw_status gw_edge_list_resize(struct gw_edge_list *list, uint64_t edges);

/* The arrays of a list, for the code that fills them. */
static inline int64_t *gw_edge_list_fill(const int64_t *array)
{
	return (int64_t *)(uintptr_t)array;
}

static inline uint64_t *gw_edge_list_offsets(const struct gw_edge_list *list)
{
	return (uint64_t *)(uintptr_t)list->offsets;
}

#endif
