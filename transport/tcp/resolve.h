/* A name's addresses, looked up without making anybody wait. */
#ifndef GW_TRANSPORT_TCP_RESOLVE_H
#define GW_TRANSPORT_TCP_RESOLVE_H

#include "transport/address.h"

struct addrinfo;
struct tcp_resolve;

/* Starts to resolve. *fd, the caller's to close, becomes readable when it has ended. GW_LIMIT when TCP_RESOLVES_MAX of
 * this process are under way; GW_NO_MEMORY; GW_IO. */
#define TCP_RESOLVES_MAX 64
gw_status gw_tcp_resolve_begin(const struct gw_address *address, struct tcp_resolve **out, int *fd);

/* The outcome; the resolve is gone then, and *list is freed by freeaddrinfo. GW_NOT_FOUND; GW_AGAIN: it has not ended.
 */
gw_status gw_tcp_resolve_take(struct tcp_resolve *resolve, struct addrinfo **list);

/* Nobody wants to know any more. NULL is allowed. */
void gw_tcp_resolve_abandon(struct tcp_resolve *resolve);

#endif
