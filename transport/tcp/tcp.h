/* The slots that TCP and unix sockets share; transport/shm has its own for the rest. */
#ifndef GW_TRANSPORT_TCP_H
#define GW_TRANSPORT_TCP_H

#include "transport/tcp/loop.h"

gw_status gw_tcp_loop_open(struct gw_poll_group *group, const struct gw_transport *transport,
			   const struct tcp_local *local, struct tcp_loop **out);
void gw_tcp_shut(void *state);
gw_status gw_tcp_buffer_register(void *state, struct gw_buffer *buffer);
void gw_tcp_buffer_release(void *state, struct gw_buffer *buffer);
size_t gw_tcp_poll(void *state, struct gw_completion *completions, size_t max, uint64_t timeout_ns);
bool gw_tcp_busy(void *state);
int gw_tcp_wait_fd(void *state, uint64_t *until_ns);
void gw_tcp_wake(void *state);

#endif
