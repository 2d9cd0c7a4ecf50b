/* Regular calls of a client to all servers. They renew the lease of the client's job, so that servers keep the tensors
 * of the job, even if another client created them. They also report how many rows of each tensor the client has read
 * without a request. If only this client belongs to the job, the calls begin when the client has its first tensor. */
#ifndef GW_CLIENT_TENSORS_LEASES_H
#define GW_CLIENT_TENSORS_LEASES_H

#include "client/state/client.h"

struct gw_tensor_leases;

/* Sets the job whose tensors the client uses: the given job, else the job that the environment names, else a new job
 * for this client alone. GW_INVALID. */
gw_status gw_client_choose_job(struct gw_client *client, const char *job);

gw_status gw_tensor_leases_create(struct gw_client *client, struct gw_tensor_leases **out);
/* Ends the thread. Call it before the engines lose their threads. NULL is allowed. */
void gw_tensor_leases_destroy(struct gw_tensor_leases *leases);

/* Starts the reports of reads and of what servers' memory saves, and the renewals if the client has a lease for its
 * job. every_ms: the interval that the servers request, or 0 if it is unknown. */
gw_status gw_tensor_leases_begin(struct gw_client *client, bool has_lease, uint32_t every_ms);

#endif
