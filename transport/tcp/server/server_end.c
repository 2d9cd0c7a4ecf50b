/* The end of a connection: it leaves the service, or its place among the pending clients. */
#include "core/memory/list.h"
#include "transport/service/replay_cache.h"
#include "transport/tcp/server/server_private.h"

void gw_tcp_pending_end(struct tcp_server *server)
{
	struct tcp_loop *loop = server->loop;
	if (server->older)
		server->older->newer = server->newer;
	else
		loop->oldest_pending = server->newer;
	if (server->newer)
		server->newer->older = server->older;
	else
		loop->newest_pending = server->older;
	server->older = server->newer = NULL;
	loop->pending_count--;
	atomic_fetch_sub(&server->service->counts.unproven, 1);
}

void gw_tcp_server_end(struct tcp_server *server)
{
	if (server->ended)
		return;
	server->ended = true;
	server->reading = false;
	gw_tcp_server_call_leave(server);
	GW_LIST_REMOVE(server);
	gw_deadlines_leave(&server->loop->deadlines, &server->deadline);
	if (server->entered) {
		gw_service_left(server->service, server->number, server->thread);
		gw_service_reads_end(server->service, &server->read.reads);
		gw_dynamic_pins_end(&server->leases, server->service);
		if (server->window)
			gw_replay_disconnect(server->service->replay_cache, server->auth.client_uuid);
		gw_service_disconnect(server->service);
	} else {
		gw_tcp_pending_end(server);
	}
	server->loop->bytes_ended += server->in.bytes + server->out.bytes;
	server->service = NULL;
	server->loop->driver->ops->remove(server->loop->driver, &server->io);
}
