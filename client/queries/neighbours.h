/* Lists of edges around nodes. Reads find out-edges (neighbours.c); the sampler's hop finds in-edges
 * (neighbours_in.c). */
#ifndef GW_CLIENT_QUERIES_NEIGHBOURS_H
#define GW_CLIENT_QUERIES_NEIGHBOURS_H

#include <graphwire/edges.h>

#include "sampler/pick.h"

struct gw_ticket;

/* A request for in-edges. The caller owns ids and out, and keeps them until the ticket is finished. */
struct gw_list_call {
	uint32_t etype;
	struct gw_pick_rule rule;
	const int64_t *ids;
	uint64_t n;
	struct gw_edge_list **out;
};

/* Copies a checked call and submits it. soon: the caller waits for it at once. GW_NO_MEMORY. */
gw_status gw_neighbours_in(struct gw_client *client, const struct gw_list_call *wanted, bool soon,
			   struct gw_ticket **ticket);

/* Frees the hops that the client's engines keep for the next list of in-edges. The engines' threads must have ended. */
void gw_neighbours_free(struct gw_client *client);

#endif
