/* What `graphwire top` shows, made of two looks at the servers. */
#ifndef GW_TOOLS_TOP_VIEW_H
#define GW_TOOLS_TOP_VIEW_H

#include <jansson.h>

#include "tools/ask.h"

/* An object of the answers in `ask`:
 *
 *   interval_s  the seconds between the looks
 *   servers     one for each address, in their order: its figures now, rates since the look before, and latencies: of
 *               all requests, and of each operation. A server that did not answer has "error"
 *   clients     one for each client, by the id that graph.stats() reports: its names, transports and rates, and the
 *               servers whose answers it waits for
 *
 * before: the answers of the look before, by the same addresses; a rate is null if a server did not answer then, or has
 * been restarted since. This program as a client is left out. NULL: no memory. */
json_t *gw_top_view(const struct gw_ask *ask, json_t *const *before, double interval_s);

#endif
