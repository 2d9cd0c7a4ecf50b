/* Resolves names, sets socket options, and finds the process that has a port. */
#ifndef GW_TRANSPORT_TCP_SOCKET_H
#define GW_TRANSPORT_TCP_SOCKET_H

#include "transport/address.h"

struct addrinfo;
/* The address of a numeric host, without a look-up; false: the host is a name. freeaddrinfo frees *list. */
bool gw_socket_number(const struct gw_address *address, struct addrinfo **list);
/* Every address of host and port. Blocks while the resolver blocks. GW_NOT_FOUND, GW_NO_MEMORY. */
gw_status gw_socket_resolve(const struct gw_address *address, struct addrinfo **list);
/* The current length of the socket's receive buffer; the kernel enlarges it as a stream needs. */
uint32_t gw_socket_receive_buffer(int fd);
/* Sets TCP_NODELAY and keepalive, which finds half-open peers within about a minute. */
void gw_socket_tune(int fd);
/* The numeric address of a socket's end. GW_IO: the address is of another family. */
struct sockaddr;
gw_status gw_socket_address(const struct sockaddr *end, uint32_t bytes, struct gw_address *out);
/* The process that listens on the port, as "process PID (name)", or "another process" if /proc does not show it. */
void gw_socket_holder(uint16_t port, char *text, size_t bytes);

#endif
