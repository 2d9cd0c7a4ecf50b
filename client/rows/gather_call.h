/* gw_gather as a blocking call: the memory that it keeps. */
#ifndef GW_CLIENT_ROWS_GATHER_CALL_H
#define GW_CLIENT_ROWS_GATHER_CALL_H

#include "client/state/client.h"

/* Frees the memory that is kept for the next call. */
void gw_calls_free(struct gw_client *client);

#endif
