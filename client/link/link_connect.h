/* How a link connects to its server, and how it ends a connection: see link.h for the states.
 *
 *   connect -> [the catalog of a server that is another process than before] -> [a better transport]
 *           -> [where a mapped server has lists of other parts] -> OPEN
 */
#ifndef GW_CLIENT_LINK_LINK_CONNECT_H
#define GW_CLIENT_LINK_LINK_CONNECT_H

#include "client/link/link_ops.h"

/* Sets the events of these steps. */
void gw_link_connect_init(struct gw_link *link);

/* Starts to connect, if the link is down. */
void gw_link_open(struct gw_link *link);
void gw_link_close(struct gw_link *link);
/* The connection or the attempt has failed: the link waits or gives up. `reason` may be memory of the endpoint. */
void gw_link_failed(struct gw_link *link, gw_status status, const char *reason);

#endif
