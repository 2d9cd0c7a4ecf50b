/* What tests do to RDMA from inside. */
#ifndef GW_TEST_RDMA_H
#define GW_TEST_RDMA_H

#include <stdbool.h>

struct gw_client;

/* Whether the build has RDMA and this host a device. */
bool rdma_is_here(void);

/* Puts the client's queue pairs, of all engines to all servers, into the error state, under its feet. */
void rdma_break(struct gw_client *client);

#endif
