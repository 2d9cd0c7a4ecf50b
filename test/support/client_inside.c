/* See client_inside.h. */
#include "test/support/client_inside.h"

#include "client/client.h"

uint64_t client_registrations(const struct gw_client *client)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < client->engine_count; i++)
		sum += gw_poll_group_registrations(client->engines[i].group);
	return sum;
}

uint32_t client_buffers(const struct gw_client *client)
{
	uint32_t sum = 0;
	for (uint32_t i = 0; i < client->engine_count; i++)
		sum += client->engines[i].buffer_count;
	return sum;
}
