/* Lists of edges around nodes (<graphwire/edges.h>): what their calls leave behind in a client. */
#ifndef GW_CLIENT_QUERIES_NEIGHBOURS_H
#define GW_CLIENT_QUERIES_NEIGHBOURS_H

struct gw_client;

/* Frees the hops that the client's engines keep for the next list. The engines' threads must have ended. */
void gw_neighbours_free(struct gw_client *client);

#endif
