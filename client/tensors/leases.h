/* A client of a job is heard of by all servers from time to time, so that they keep what the job has, be it this
 * client's work or another's; and tells them what it has read of any tensor by itself. One whose job is its own alone
 * begins with its first tensor. */
#ifndef GW_CLIENT_TENSORS_LEASES_H
#define GW_CLIENT_TENSORS_LEASES_H

#include "client/state/client.h"

struct gw_tensor_leases;

/* The job whose tensors are the client's: the given one, else the environment's, else one of its own. GW_INVALID. */
gw_status gw_client_choose_job(struct gw_client *client, const char *job);

gw_status gw_tensor_leases_create(struct gw_client *client, struct gw_tensor_leases **out);
/* Ends the thread: before the engines lose theirs. NULL is allowed. */
void gw_tensor_leases_destroy(struct gw_tensor_leases *hold);

/* From now on the servers hear now and then of what it reads; and, if it holds its job's tensors, of that, as often as
 * they want: every_ms, as far as it is known (0: not yet). */
gw_status gw_tensor_leases_begin(struct gw_client *client, bool holds, uint32_t every_ms);

#endif
