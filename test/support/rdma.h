/* What tests do to RDMA from inside. */
#ifndef GW_TEST_RDMA_H
#define GW_TEST_RDMA_H

#include <stdbool.h>
#include <stdint.h>

struct gw_client;
struct gw_listener;

/* Whether the build has RDMA and this host a device. */
bool rdma_is_here(void);

/* Puts the client's queue pairs, of all engines to all servers, into the error state, under its feet. */
void rdma_break(struct gw_client *client);

/* The same for those of a listener's clients, at the server; returns how many. */
uint32_t rdma_break_peers(struct gw_listener *listener);

#endif
