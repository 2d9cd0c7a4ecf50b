/* What clients and other servers of this host find a server by lies in the user's runtime folder, and others remove it
 * there: a session manager with the whole folder when its user logs out, a cleaner of /tmp by age.
 *
 *   every few seconds: lock, key, socket still there? -> made young | made again -> else one warning, until it works
 *
 * The lock comes first: only who holds the part leaves a key and a socket. Nothing here ends the server: clients that
 * are connected, and those of other hosts that were given the key, need no folder.
 */
#include <stdio.h>
#include <string.h>

#include "core/errors/log.h"
#include "server/server.h"

static gw_status keep_all(struct gw_server *server)
{
	gw_status status = gw_server_guard_keep(server);
	if (status == GW_OK && server->has_key)
		status = gw_key_keep(server->options.listen.port, server->service);
	if (status == GW_OK && server->local)
		status = gw_listener_keep(server->local);
	return status;
}

void gw_server_keep(struct gw_server *server)
{
	gw_status status = keep_all(server);
	if (status == GW_OK && server->keep_failed)
		gw_log(GW_LOG_WARN, "the runtime folder is complete again: clients on this host find this server");
	else if (status != GW_OK && !server->keep_failed)
		gw_log(GW_LOG_WARN,
		       "%s; clients that start on this host %s, and another server of this part would start: make the "
		       "folder again, or serve with --runtime-dir DIR, and XDG_RUNTIME_DIR=DIR for clients",
		       gw_last_error(), server->has_key ? "are refused" : "read over the network");
	server->keep_failed = status != GW_OK;
}
