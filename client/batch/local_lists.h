/* Neighbour lists and columns that this process can address: those of a standalone client, those of servers whose
 * memory is mapped, and those of other parts that such a server holds (graphwire serve --lists all). */
#ifndef GW_CLIENT_BATCH_LOCAL_LISTS_H
#define GW_CLIENT_BATCH_LOCAL_LISTS_H

#include "client/state/client.h"
#include "sampler/draw.h"

struct gw_edge_columns; /* edge_columns.h */

/* The lists of an edge type in a part; or NULL: ask the part's server instead. Call it in the engine. The lists of a
 * mapped server are unmapped when its connection is lost, which an event reports: use them before the engine runs
 * again. */
const struct gw_adjacency *gw_local_lists(struct gw_engine *engine, uint32_t part, enum gw_direction direction,
					  uint32_t etype);

/* The lists of a standalone client's part, whatever option `neighbours` it has; NULL: they, or their
 * offsets, stay on disk. */
const struct gw_adjacency *gw_own_lists(const struct gw_client *client, uint32_t part, enum gw_direction direction,
					uint32_t etype);

/* Whether a part's server leaves the lists of an edge type on disk, or their offsets. */
bool gw_lists_are_on_disk(const struct gw_client *client, uint32_t part, enum gw_direction direction, uint32_t etype);

/* Whether the lists of a part, which are local, are those that another part's server holds. */
bool gw_local_lists_are_held(const struct gw_engine *engine, uint32_t part);

/* The in-lists of all parts: for each part its adjacencies [num_etypes]; or NULL if a part has no lists here. Valid as
 * long as those of gw_local_lists. */
const struct gw_adjacency *const *gw_local_lists_of_all(struct gw_engine *engine);

/* The columns of an edge type in a part whose lists are local. False: a column cannot be addressed. */
bool gw_local_columns(struct gw_engine *engine, uint32_t part, const struct gw_edge_columns *columns,
		      struct gw_columns *out);

#endif
