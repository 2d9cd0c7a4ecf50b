/* Where a server is: "host:port", "[v6]:port", "tcp:host:port", "memory:name". */
#ifndef GW_TRANSPORT_ADDRESS_H
#define GW_TRANSPORT_ADDRESS_H

#include <stdbool.h>

#include "core/base/status.h"

#define GW_ADDRESS_MAX  320 /* bytes of an address as text */
#define GW_PORT_DEFAULT 30050

struct gw_address {
	char scheme[16]; /* "tcp", "memory" */
	char host[256];  /* a name, an IPv4 or IPv6 address without brackets, or the memory name */
	uint16_t port;   /* 0: any (listen) */
};

/* No scheme means tcp; no port means GW_PORT_DEFAULT; a host is never a number alone. GW_INVALID names the text and
 * what is wrong with it. */
gw_status gw_address_parse(const char *text, struct gw_address *out);
char *gw_address_text(const struct gw_address *address, char buffer[GW_ADDRESS_MAX]);

/* Whether the address is this host's loopback (127.0.0.0/8, ::1, "localhost", memory). */
bool gw_address_is_loopback(const struct gw_address *address);

#endif
