/* Lists of edges around nodes, as the calls for them are shared out: out-edges by reads (neighbours.c), in-edges by the
 * sampler's hop (neighbours_in.c). */
#ifndef GW_CLIENT_QUERIES_NEIGHBOURS_H
#define GW_CLIENT_QUERIES_NEIGHBOURS_H

#include <graphwire/edges.h>

#include "sampler/pick.h"

struct gw_ticket;

/* Which in-edges are asked for; ids and out are the caller's until the ticket is finished. */
struct gw_list_call {
	uint32_t etype;
	struct gw_pick_rule rule;
	const int64_t *ids;
	uint64_t n;
	struct gw_edge_list **out;
};

/* Copies a call that has been checked, and hands it over; soon: the caller waits for it. GW_NO_MEMORY. */
gw_status gw_neighbours_in(struct gw_client *client, const struct gw_list_call *wanted, bool soon,
			   struct gw_ticket **ticket);

/* Frees the hop that the client's engines keep for the next list of in-edges. Their threads have ended. */
void gw_neighbours_free(struct gw_client *client);

#endif
