/* Neighbour lists that this process can address: those of a standalone client, and those of servers whose memory is
 * mapped. */
#ifndef GW_CLIENT_BATCH_LOCAL_LISTS_H
#define GW_CLIENT_BATCH_LOCAL_LISTS_H

#include "client/state/client.h"

/* The lists of a part, one per edge type; or NULL: send requests to the part's server instead. Call it in the engine.
 * The lists of a mapped server are unmapped when its connection is lost, which an event reports: use them before the
 * engine runs again. */
const struct gw_adjacency *gw_local_lists_of_part(struct gw_engine *engine, uint32_t part);

/* The lists of all parts, or NULL if a part has no lists here. Valid as long as those of gw_local_lists_of_part. */
const struct gw_adjacency *const *gw_local_lists_of_all(struct gw_engine *engine);

#endif
