/* How clients reach the server, as text. */
#include <stdio.h>
#include <string.h>

#include "server/server.h"

char *gw_server_address(const struct gw_server *server, char text[GW_ADDRESS_MAX])
{
	return gw_address_text(&server->bound, text); /* the TCP address; clients choose other transports themselves */
}

char *gw_server_transports(const struct gw_server *server, char text[GW_SERVER_TRANSPORTS_MAX])
{
	const char *first = server->bound.scheme, *network = server->listener->transport->scheme->name;
	bool better = strcmp(network, first) != 0;
	snprintf(text, GW_SERVER_TRANSPORTS_MAX, "%s%s%s%s%s", first, better ? "+" : "", better ? network : "",
		 server->local ? "+" : "", server->local ? server->local->transport->scheme->name : "");
	return text;
}
