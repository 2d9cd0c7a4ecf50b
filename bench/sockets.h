/* What the bare loops over TCP have in common: a connected pair of loopback sockets, and whole messages. */
#ifndef GW_BENCH_SOCKETS_H
#define GW_BENCH_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>

/* 0, or an error number: then both are -1. */
int gw_sockets_connect(int *client, int *server);

/* false: the connection is gone. */
bool gw_sockets_send(int fd, const void *buffer, size_t bytes);
bool gw_sockets_receive(int fd, void *buffer, size_t bytes);

#endif
