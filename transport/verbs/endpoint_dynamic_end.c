/* Releases dynamic regions, and ends opens. */
#include "core/memory/alloc.h"
#include "transport/verbs/endpoint_private.h"

/* Releases a withdrawn region. No read of it is in flight, and no read can begin. */
static void endpoint_dynamic_release(struct verbs_endpoint *endpoint, struct gw_dynamic_region_entry *entry)
{
	gw_free(entry->mapping);
	entry->mapping = NULL;
	if (!endpoint->control)
		return;
	gw_tcp_dynamic_release(endpoint->control, entry->region.id, entry->region.generation);
	verbs_timer(endpoint->loop, 0); /* the next poll of the TCP part sends it */
}

void gw_verbs_dynamic_read(struct verbs_endpoint *endpoint, struct gw_dynamic_region_entry *entry)
{
	if (--entry->reads == 0 && !entry->open)
		endpoint_dynamic_release(endpoint, entry);
}

void gw_verbs_opening_end(struct verbs_endpoint *endpoint, struct verbs_opening *opening, gw_status status)
{
	struct verbs_opening **at = &endpoint->openings;
	while (*at != opening)
		at = &(*at)->next;
	*at = opening->next;
	endpoint->opening_count--;
	if (status != GW_OK && opening->held && endpoint->control)
		gw_tcp_dynamic_release(endpoint->control, opening->id, opening->generation);
	gw_completions_post(&endpoint->loop->completions, opening->note, status);
	endpoint->loop->open--;
	gw_free(opening);
	if (endpoint->room_wanted) {
		endpoint->room_wanted = false;
		gw_poll_group_room(endpoint->loop->group);
	}
}

void gw_verbs_dynamic_fail(struct verbs_endpoint *endpoint, gw_status status)
{
	while (endpoint->openings)
		gw_verbs_opening_end(endpoint, endpoint->openings, status);
}

void gw_verbs_dynamic_end(struct verbs_endpoint *endpoint)
{
	for (uint32_t i = 0; i < endpoint->base.dynamic.count; i++)
		if (endpoint->base.dynamic.entries[i])
			gw_free(endpoint->base.dynamic.entries[i]->mapping);
	gw_dynamic_region_free(&endpoint->base);
}
