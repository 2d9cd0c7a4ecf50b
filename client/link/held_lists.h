/* Lists of other parts in a mapped server's memory: what its catalog of lists says, and the views that
 * client/batch/local_lists.h makes of it. */
#ifndef GW_CLIENT_LINK_HELD_LISTS_H
#define GW_CLIENT_LINK_HELD_LISTS_H

#include "core/graph/part.h"
#include "protocol/catalog.h"
#include "transport/transport.h"

struct gw_held_part {
	const struct gw_catalog *catalog; /* NULL: the server does not hold this part's lists */
	struct gw_adjacency *lists[2];    /* by direction, once used; or NULL */
	bool unusable;                    /* the lists are not those of the graph */
};

struct gw_held_lists {
	uint32_t num_parts;
	struct gw_catalog_lists catalogs;
	struct gw_held_part *parts; /* [num_parts] */
};

/* Parses a server's answer and checks that the places are inside its regions. GW_PROTOCOL, GW_NO_MEMORY. */
gw_status gw_held_lists_parse(const struct gw_endpoint *endpoint, const void *reply, uint32_t reply_bytes,
			      struct gw_held_lists **out);
void gw_held_lists_free(struct gw_held_lists *held); /* NULL is allowed */

#endif
