/* A client without servers: all parts of a graph are opened in this process. */
#ifndef GW_CLIENT_STANDALONE_H
#define GW_CLIENT_STANDALONE_H

#include "client/state/client.h"

gw_status gw_standalone_open(struct gw_client *client, const struct gw_client_options *options);
/* A standalone client whose graph has its lists, and none of its features: for tools that sample and fetch nothing.
 * With neighbours = "requests", the caller gives each service of `servers` a handler of GW_OP_SAMPLE. */
gw_status gw_client_open_lists(const struct gw_client_options *options, struct gw_client **out);
void gw_standalone_close(struct gw_client *client);

#endif
