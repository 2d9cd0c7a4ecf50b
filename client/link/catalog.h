/* What servers say of themselves: each one's catalog, whether they all belong together, and the graph that they make.
 *
 *   catalog of one server, checked -> of all: one graph, every part once -> what the caller sees of the graph
 */
#ifndef GW_CLIENT_LINK_CATALOG_H
#define GW_CLIENT_LINK_CATALOG_H

#include "client/state/client.h"

/* Whether a server's catalog is the expected one; the first time it is taken over. */
gw_status gw_remote_check(struct gw_remote *server, const struct gw_endpoint *endpoint, const void *reply,
			  uint32_t reply_bytes);

/* Whether the servers, whose catalogs are there, have one graph and every part of it once: it is the client's then. */
gw_status gw_remotes_check(struct gw_client *client);

/* The graph as callers see it. */
gw_status gw_info_build(struct gw_client *client);
void gw_info_free(struct gw_client *client);

#endif
