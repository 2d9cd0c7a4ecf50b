/* See edge_list.h. Fails if memory runs out. */
#include "client/queries/edge_list.h"

#include "core/memory/alloc.h"

static gw_status array_resize(const int64_t **array, uint64_t count)
{
	int64_t *moved = gw_realloc((void *)(uintptr_t)*array, count, sizeof(**array));
	if (!moved)
		return GW_NO_MEMORY;
	*array = moved;
	return GW_OK;
}

gw_status gw_edge_list_resize(struct gw_edge_list *list, uint64_t edges)
{
	gw_status status = array_resize(&list->src, edges);
	if (status == GW_OK)
		status = array_resize(&list->dst, edges);
	return status == GW_OK ? array_resize(&list->edge_ids, edges) : status;
}

gw_status gw_edge_list_create(uint64_t questions, uint64_t edges, struct gw_edge_list **out)
{
	*out = NULL;
	struct gw_edge_list *list = gw_calloc(1, sizeof(*list));
	if (!list)
		return GW_NO_MEMORY;
	list->question_count = questions;
	list->edge_count = edges;
	list->offsets = gw_realloc(NULL, questions + 1, sizeof(uint64_t));
	gw_status status = list->offsets ? gw_edge_list_resize(list, edges) : GW_NO_MEMORY;
	if (status != GW_OK) {
		gw_edge_list_free(list);
		return status;
	}
	*out = list;
	return GW_OK;
}

void gw_edge_list_free(struct gw_edge_list *list)
{
	if (!list)
		return;
	gw_free((void *)(uintptr_t)list->offsets);
	gw_free((void *)(uintptr_t)list->src);
	gw_free((void *)(uintptr_t)list->dst);
	gw_free((void *)(uintptr_t)list->edge_ids);
	gw_free(list);
}
