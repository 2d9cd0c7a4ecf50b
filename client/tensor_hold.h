/* A client that has tensors of a job is heard of by all servers from time to time, so that they keep them; and tells
 * them what it has read of any tensor by itself. */
#ifndef GW_CLIENT_TENSOR_HOLD_H
#define GW_CLIENT_TENSOR_HOLD_H

#include "client/client.h"

struct gw_tensor_hold;

/* The job whose tensors are the client's: the given one, else the environment's, else one of its own. GW_INVALID. */
gw_status gw_client_choose_job(struct gw_client *client, const char *job);

gw_status gw_tensor_hold_create(struct gw_client *client, struct gw_tensor_hold **out);
/* Ends the thread: before the engines lose theirs. NULL is allowed. */
void gw_tensor_hold_destroy(struct gw_tensor_hold *hold);

/* From now on the servers hear of it at least that often, and now and then of what it reads. 0: only of that. */
gw_status gw_tensor_hold_begin(struct gw_client *client, uint32_t every_ms);

#endif
