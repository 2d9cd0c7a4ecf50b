/* One gather as a blocking call, for callers that have a struct gw_rows instead of a tensor. */
#ifndef GW_CLIENT_ROWS_GATHER_CALL_H
#define GW_CLIENT_ROWS_GATHER_CALL_H

#include "client/state/client.h"

/* Fetches n rows into out and waits for them, as gw_gather does. */
gw_status gw_gather_rows(struct gw_client *client, const struct gw_rows *rows, const int64_t *ids, uint64_t n,
			 void *out);

/* Frees the memory that is kept for the next call. */
void gw_calls_free(struct gw_client *client);

#endif
