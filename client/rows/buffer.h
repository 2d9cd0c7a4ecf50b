/* The registered memory of gw_buffer_alloc and gw_buffer_lend, as an engine sees it. */
#ifndef GW_CLIENT_ROWS_BUFFER_H
#define GW_CLIENT_ROWS_BUFFER_H

#include "client/state/client.h"

/* The buffer that contains this range completely, or NULL. For the thread that runs the engine. */
struct gw_buffer *gw_buffer_find(const struct gw_engine *engine, const uint8_t *at, uint64_t bytes);

/* Frees the buffers that the caller has not freed. The engines' threads must have ended. */
void gw_buffers_free(struct gw_client *client);

#endif
