/* gw_gather as a ticket: the memory that it keeps, and its part in a look-ahead. */
#ifndef GW_CLIENT_ROWS_GATHER_CALL_H
#define GW_CLIENT_ROWS_GATHER_CALL_H

#include "client/rows/row_window.h"
#include "client/state/client.h"

/* Frees the memory that is kept for the next call. */
void gw_calls_free(struct gw_client *client);

/* The window that a gather takes part in. */
struct gw_gather_window {
	struct gw_row_window *window; /* or NULL */
	uint64_t number;              /* of the batch */
	void (*ended)(void *owner);   /* called once, when the ticket ends */
	void *owner;
};

/* gw_gather_as_start with a window. On failure, `ended` is not called. */
gw_status gw_gather_call_start(struct gw_client *client, const struct gw_tensor *tensor, gw_dtype convert,
			       const int64_t *ids, uint64_t n, void *out, const struct gw_gather_window *with,
			       struct gw_ticket **ticket);

#endif
