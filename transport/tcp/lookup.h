/* A name's addresses, looked up without making anybody wait. */
#ifndef GW_TRANSPORT_TCP_LOOKUP_H
#define GW_TRANSPORT_TCP_LOOKUP_H

#include "transport/address.h"

struct addrinfo;
struct tcp_lookup;

/* Starts a lookup. *fd, the caller's to close, becomes readable when it has ended. GW_LIMIT when TCP_LOOKUPS_MAX of
 * this process are under way; GW_NO_MEMORY; GW_IO. */
#define TCP_LOOKUPS_MAX 64
gw_status gw_lookup_begin(const struct gw_address *address, struct tcp_lookup **out, int *fd);

/* The outcome; the lookup is gone then, and *list is freed by freeaddrinfo. GW_NOT_FOUND; GW_AGAIN: it has not ended.
 */
gw_status gw_lookup_take(struct tcp_lookup *lookup, struct addrinfo **list);

/* Nobody wants to know any more. NULL is allowed. */
void gw_lookup_abandon(struct tcp_lookup *lookup);

#endif
