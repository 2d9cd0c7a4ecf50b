/* Descriptions that servers send: the catalog of each server, whether the catalogs belong together, and the graph that
 * they form.
 *
 *   catalog of one server, checked -> all catalogs: one graph, every part once -> the graph as the caller sees it
 */
#ifndef GW_CLIENT_LINK_CATALOG_H
#define GW_CLIENT_LINK_CATALOG_H

#include "client/state/client.h"

/* Checks that a server's catalog is the expected one. The first catalog of a server is stored in `server`.
 * *holds_lists: whether the server holds lists of other parts now. */
gw_status gw_remote_check(struct gw_remote *server, const struct gw_endpoint *endpoint, const void *reply,
			  uint32_t reply_bytes, bool *holds_lists);

/* Checks that a catalog's arrays lie inside of the regions that the server has. GW_PROTOCOL names the first that does
 * not. */
gw_status gw_places_check(const struct gw_catalog *catalog, const struct gw_endpoint *endpoint);

/* Whether the client asks this server for the book of the graph: the first one, unless the client read a description of
 * the graph itself. */
bool gw_remote_sends_book(const struct gw_remote *server);

/* Checks that the servers have one graph and every part once, and gives that graph to the client. All catalogs must be
 * known. */
gw_status gw_remotes_check(struct gw_client *client);

/* The graph as callers see it. */
gw_status gw_info_build(struct gw_client *client);
void gw_info_free(struct gw_client *client);

#endif
