/* The address of a server: "host:port", "[v6]:port", "tcp:host:port", "shm:name", "memory:name". */
#ifndef GW_TRANSPORT_ADDRESS_H
#define GW_TRANSPORT_ADDRESS_H

#include <stdbool.h>

#include "core/errors/status.h"

#define GW_ADDRESS_MAX  320 /* bytes of an address as text */
#define GW_PORT_DEFAULT 30050

#define GW_ADDRESS_NAME_MAX 64 /* characters of a shm name */

struct gw_address {
	char scheme[16]; /* a name of transport/scheme.h */
	char host[256];  /* a host name, an IPv4 or IPv6 address without brackets, or a shm or memory name */
	uint16_t port;   /* 0: any port (listen) */
};

/* No scheme means tcp; no port means GW_PORT_DEFAULT. A number alone is never a host. GW_INVALID: the error text has
 * the address and the fault. */
gw_status gw_address_parse(const char *text, struct gw_address *out);
char *gw_address_text(const struct gw_address *address, char buffer[GW_ADDRESS_MAX]);

/* Whether the address has host and port (tcp, verbs); else it is a name on this host (shm, memory). */
bool gw_address_has_port(const struct gw_address *address);

/* Whether the address is this host's loopback (127.0.0.0/8, ::1, "localhost", shm, memory). */
bool gw_address_is_loopback(const struct gw_address *address);

/* Whether the name is a valid shm name: 1 to GW_ADDRESS_NAME_MAX letters, digits, ".-_". */
bool gw_address_name_check(const char *name);

#endif
