/* The socket by which a successor finds the running server: see handover.h. It has a name in the runtime folder. */
#include <stdio.h>
#include <unistd.h>

#include "core/errors/log.h"
#include "server/handover.h"
#include "transport/local_socket.h"

void gw_handover_name(const struct gw_server *server, char name[GW_ADDRESS_NAME_MAX + 1])
{
	snprintf(name, GW_ADDRESS_NAME_MAX + 1, "part-%016llx-%u", (unsigned long long)server->meta->graph_id,
		 server->options.part);
}

void gw_handover_listen(struct gw_server *server)
{
	char name[GW_ADDRESS_NAME_MAX + 1];
	gw_handover_name(server, name);
	if (gw_shm_socket_listen(name, &server->handover_fd) != GW_OK)
		gw_log(GW_LOG_INFO, "no successor can take over from this server: %s", gw_last_error());
}

gw_status gw_handover_keep(struct gw_server *server)
{
	char name[GW_ADDRESS_NAME_MAX + 1];
	int renewed;
	if (server->handover_fd < 0)
		return GW_OK;
	gw_handover_name(server, name);
	gw_status status = gw_shm_socket_keep(name, &renewed);
	if (status == GW_OK && renewed >= 0) {
		close(server->handover_fd);
		server->handover_fd = renewed;
	}
	return status;
}

void gw_handover_end(struct gw_server *server)
{
	char name[GW_ADDRESS_NAME_MAX + 1];
	if (server->handover_fd < 0)
		return;
	gw_handover_name(server, name);
	gw_shm_socket_forget(name);
	close(server->handover_fd);
	server->handover_fd = -1;
}
