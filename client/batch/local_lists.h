/* Neighbour lists that this process can address: a standalone client's own, and those of servers whose memory is
 * mapped. */
#ifndef GW_CLIENT_BATCH_LOCAL_LISTS_H
#define GW_CLIENT_BATCH_LOCAL_LISTS_H

#include "client/state/client.h"

/* A part's lists, one for each edge type, or NULL: then its server is asked. In the engine; a mapped server's are gone
 * when its connection is, which events tell: use them before the next turn. */
const struct gw_adjacency *gw_local_lists_of_part(struct gw_engine *engine, uint32_t part);

/* The lists of all parts, or NULL if one has none. Likewise. */
const struct gw_adjacency *const *gw_local_lists_of_all(struct gw_engine *engine);

#endif
