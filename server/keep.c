/* Keeps the server's files in the user's runtime folder, by which clients and other servers of this host find it. Other
 * programs remove such files: a session manager removes the folder when the user logs out, and a cleaner of /tmp
 * removes old files.
 *
 *   every few seconds: do lock, key and socket exist? -> renew their timestamps, or make them again
 *                                                     -> on failure: one warning until it works
 *
 * The lock comes first: only the server that has the part's lock writes a key and a socket. No failure here ends the
 * server: connected clients, and clients of other hosts that have the key, need no folder.
 */

#include "core/errors/log.h"
#include "server/handover.h"

static gw_status keep_all(struct gw_server *server)
{
	gw_status status = gw_server_guard_keep(server);
	if (status == GW_OK && server->has_key)
		status = gw_key_keep(server->options.listen.port, server->service);
	if (status == GW_OK && server->local)
		status = gw_listener_keep(server->local);
	if (status == GW_OK)
		status = gw_handover_keep(server);
	return status;
}

void gw_server_keep(struct gw_server *server)
{
	gw_status status = keep_all(server);
	if (status == GW_OK && server->keep_failed)
		gw_log(GW_LOG_WARN, "the runtime folder is complete again: clients on this host find this server");
	else if (status != GW_OK && !server->keep_failed)
		gw_log(GW_LOG_WARN,
		       "%s; new clients on this host %s, and a second server of this part could start: "
		       "make the folder again, or serve with --runtime-dir DIR, and XDG_RUNTIME_DIR=DIR for clients",
		       gw_last_error(), server->has_key ? "are refused" : "read over the network");
	server->keep_failed = status != GW_OK;
}
