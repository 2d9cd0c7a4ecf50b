/* Looks up a name's addresses without blocking the caller. */
#ifndef GW_TRANSPORT_TCP_CLIENT_RESOLVE_H
#define GW_TRANSPORT_TCP_CLIENT_RESOLVE_H

#include "transport/address.h"

struct addrinfo;
struct tcp_resolve;

/* Starts a look-up. *fd becomes readable when the look-up has ended; the caller closes it. GW_BUSY: TCP_RESOLVES_MAX
 * look-ups of this process are in progress; GW_NO_MEMORY; GW_IO. */
#define TCP_RESOLVES_MAX 64
gw_status gw_tcp_resolve_begin(const struct gw_address *address, struct tcp_resolve **out, int *fd);

/* Returns the outcome and frees the resolve; freeaddrinfo frees *list. GW_NOT_FOUND; GW_AGAIN: the look-up goes on. */
gw_status gw_tcp_resolve_take(struct tcp_resolve *resolve, struct addrinfo **list);

/* Gives up the look-up. NULL is allowed. */
void gw_tcp_resolve_abandon(struct tcp_resolve *resolve);

#endif
