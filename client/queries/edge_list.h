/* The lists of edges that callers get. */
#ifndef GW_CLIENT_QUERIES_EDGE_LIST_H
#define GW_CLIENT_QUERIES_EDGE_LIST_H

#include <graphwire/edges.h>

/* A list with room for so many questions and edges; the caller fills all of its arrays. */
gw_status gw_edge_list_create(uint64_t questions, uint64_t edges, struct gw_edge_list **out);

/* Room for another number of edges, at least edge_count. GW_NO_MEMORY leaves the list as it is, or with more room. */
gw_status gw_edge_list_resize(struct gw_edge_list *list, uint64_t edges);

/* Its arrays, for whom fills them. */
static inline int64_t *gw_edge_list_fill(const int64_t *array)
{
	return (int64_t *)(uintptr_t)array;
}

static inline uint64_t *gw_edge_list_offsets(const struct gw_edge_list *list)
{
	return (uint64_t *)(uintptr_t)list->offsets;
}

#endif
