/* See landing.h. */
#include "client/landing.h"

gw_status gw_landing_reserve(struct gw_landing *landing, struct gw_poll_group *group, size_t bytes)
{
	if (bytes <= landing->memory.capacity)
		return GW_OK;
	gw_landing_free(landing);
	gw_status status = gw_vec_reserve(&landing->memory, bytes);
	if (status == GW_OK)
		status = gw_buffer_register(group, landing->memory.data, landing->memory.capacity, &landing->buffer);
	if (status != GW_OK)
		gw_vec_free(&landing->memory);
	return status;
}

void gw_landing_free(struct gw_landing *landing)
{
	gw_buffer_release(landing->buffer);
	landing->buffer = NULL;
	gw_vec_free(&landing->memory);
}
