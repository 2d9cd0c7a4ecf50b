/* See client_inside.h. */
#include "test/support/client_inside.h"

#include "client/link/link_ops.h"

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

/* The engines' threads look at links that something waits for, and nothing does. */
__attribute__((no_sanitize_thread)) void client_failed_long_ago(struct gw_client *client, uint64_t ns)
{
	for (uint32_t i = 0; i < client->engine_count; i++) {
		for (uint32_t j = 0; j < client->server_count; j++) {
			struct gw_link *link = &client->engines[i].links[j];
			link->away_ns -= link->away_ns ? ns : 0;
			link->lasting_ns -= link->lasting_ns ? ns : 0;
		}
	}
}
