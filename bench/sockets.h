/* Shared by the bare loops over TCP: a connected pair of loopback sockets, and functions that send or
 * receive a whole message. */
#ifndef GW_BENCH_SOCKETS_H
#define GW_BENCH_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>

/* Returns 0, or an errno; then both sockets are -1. */
int gw_sockets_connect(int *client, int *server);

/* Both move all bytes; false: the connection has ended. */
bool gw_sockets_send(int fd, const void *buffer, size_t bytes);
bool gw_sockets_receive(int fd, void *buffer, size_t bytes);

#endif
