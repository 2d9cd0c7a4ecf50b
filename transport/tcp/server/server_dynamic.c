/* Dynamic regions at the server's side of a connection. The client opens them. A client that reads the memory itself
 * (over unix sockets or RDMA) pins them until it releases them.
 *
 *   OPEN ─▶ REGION, with its descriptor if memory is mapped          one descriptor at a time is being sent
 *   the service withdraws a region ─▶ every loop is woken ─▶ between two answers: WITHDRAWN ─▶ RELEASED
 *
 * A client that has pinned a region counts as a user of its memory until it sends RELEASED or its connection ends. An
 * OPEN fails, with an ERROR frame, if the region does not exist or its memory cannot be shared. It also fails if
 * memory or descriptors run out.
 */
#include <string.h>
#include <unistd.h>

#include "transport/tcp/server/server_private.h"

static gw_status dynamic_share(struct tcp_server *server, const struct gw_dynamic_region_place *place)
{
	if (place->region.bytes == 0)
		return GW_OK;
	gw_status status = server->listener->local->share(&place->what, &server->passed);
	if (status != GW_OK)
		return status;
	server->fd_passing.out[0] = server->passed;
	server->fd_passing.out_count = 1;
	return GW_OK;
}

static gw_status dynamic_open(struct tcp_server *server, const struct wire_dynamic *dynamic, struct wire_region *out)
{
	struct gw_dynamic_region_place *place;
	if (!dynamic->lease) {
		place = gw_dynamic_region_enter(server->service, dynamic->id, dynamic->generation);
		if (!place)
			return GW_NOT_FOUND;
		*out = gw_wire_region_of(&place->region);
		gw_dynamic_region_leave(server->service, place);
		return GW_OK;
	}
	gw_status status = gw_dynamic_pin(&server->leases, server->service, dynamic->id, dynamic->generation, &place);
	if (status != GW_OK)
		return status;
	*out = gw_wire_region_of(&place->region);
	if (server->listener->local)
		status = dynamic_share(server, place);
	if (status != GW_OK)
		gw_dynamic_region_release(&server->leases, server->service, dynamic->id, dynamic->generation);
	return status;
}

bool gw_tcp_server_open(struct tcp_server *server, const struct wire_header *header, const uint8_t *body)
{
	struct wire_dynamic dynamic;
	struct wire_region region;
	struct wire_header answer = {.bytes = sizeof(region), .type = WIRE_REGION, .tag = header->tag};
	if (server->passed >= 0)
		return false;
	gw_status status = gw_wire_dynamic(body, &dynamic);
	if (status != GW_OK) {
		gw_tcp_server_refuse(server, status);
		return true;
	}
	status = dynamic_open(server, &dynamic, &region);
	if (status != GW_OK)
		gw_tcp_server_answer_error(server, status, header->tag);
	else
		gw_tcp_server_answer(server, &answer, &region);
	return true;
}

void gw_tcp_server_released(struct tcp_server *server, const uint8_t *body)
{
	struct wire_dynamic dynamic;
	gw_status status = gw_wire_dynamic(body, &dynamic);
	if (status != GW_OK)
		gw_tcp_server_refuse(server, status);
	else
		gw_dynamic_region_release(&server->leases, server->service, dynamic.id, dynamic.generation);
}

void gw_tcp_server_notify_withdrawn(struct tcp_server *server)
{
	struct wire_dynamic dynamic = {0};
	struct wire_header header = {.bytes = sizeof(dynamic), .type = WIRE_WITHDRAWN};
	/* Keep room for an ERROR that may have to follow. */
	const size_t needed = WIRE_HEADER_BYTES + sizeof(dynamic) + WIRE_HEADER_BYTES + WIRE_ERROR_TEXT;
	while (gw_tcp_server_room(server) >= needed &&
	       gw_dynamic_region_withdrawn(&server->leases, server->service, &dynamic.id, &dynamic.generation))
		gw_tcp_server_answer(server, &header, &dynamic);
}

void gw_tcp_server_passed(struct tcp_server *server)
{
	if (server->passed >= 0)
		close(server->passed);
	server->passed = -1;
}

void gw_tcp_servers_withdrawn(struct tcp_loop *loop)
{
	atomic_store(&loop->withdrawn, false);
	for (struct tcp_server *server = loop->servers; server; server = server->next)
		if (server->leases.first)
			loop->driver->ops->kick(loop->driver, &server->io);
}
