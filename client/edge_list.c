/* See edge_list.h. Fails for want of memory. */
#include "client/edge_list.h"

#include "core/base/alloc.h"

gw_status gw_edge_list_create(uint64_t questions, uint64_t edges, struct gw_edge_list **out)
{
	*out = NULL;
	struct gw_edge_list *list = gw_calloc(1, sizeof(*list));
	if (!list)
		return GW_NO_MEMORY;
	list->question_count = questions;
	list->edge_count = edges;
	list->offsets = gw_calloc(questions + 1, sizeof(uint64_t));
	list->src = gw_calloc(edges + 1, sizeof(int64_t));
	list->dst = gw_calloc(edges + 1, sizeof(int64_t));
	list->edge_ids = gw_calloc(edges + 1, sizeof(int64_t));
	if (!list->offsets || !list->src || !list->dst || !list->edge_ids) {
		gw_edge_list_free(list);
		return GW_NO_MEMORY;
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
