/* The lists of other parts that a server holds for clients on its host: `graphwire serve --lists all`. */
#ifndef GW_SERVER_LISTS_H
#define GW_SERVER_LISTS_H

#include "server/server.h"

/* Their bytes in the arena of the server's part; options: of that part. 0: the server holds none. */
uint64_t gw_server_lists_bytes(const struct gw_server *server, const struct gw_part_options *options);

/* Whether their files are there, before the load. GW_NOT_FOUND names the first that is missing, and how to copy it. */
gw_status gw_server_lists_check(const struct gw_server *server);

/* Loads them into the arena of server->part, which has room for them, or finds them there if it was taken over. Fills
 * server->lists. */
gw_status gw_server_lists_open(struct gw_server *server, const struct gw_part_options *options);
/* Bytes of the arrays of server->lists. */
uint64_t gw_server_lists_held(const struct gw_server *server);
void gw_server_lists_close(struct gw_server *server);

#endif
