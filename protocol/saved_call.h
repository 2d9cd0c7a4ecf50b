/* The report of what a server's memory has saved a client on its host. Little-endian.
 *
 *   call:   struct gw_saved: since the client's last report
 *   reply:  nothing
 *
 * Clients copy replicas, and draw from lists of other parts, without a request, so a server does not see it. They
 * report it once a minute, and when they close. It is for people: a report may be lost, or counted twice. */
#ifndef GW_PROTOCOL_SAVED_CALL_H
#define GW_PROTOCOL_SAVED_CALL_H

#include <string.h>

#include "core/errors/status.h"

#define GW_SAVED_MAX (1ull << 50) /* of each number, in one report */

struct gw_saved {
	uint64_t rows, bytes; /* of replicas that were copied */
	uint64_t hops;        /* drawn from lists of other parts */
};

/* GW_PROTOCOL. */
static inline gw_status gw_saved_parse(const void *bytes, size_t byte_count, struct gw_saved *out)
{
	if (byte_count != sizeof(*out))
		return gw_fail(GW_PROTOCOL, "a report of %zu bytes: it has %zu", byte_count, sizeof(*out));
	memcpy(out, bytes, sizeof(*out));
	if (out->rows > GW_SAVED_MAX || out->bytes > GW_SAVED_MAX || out->hops > GW_SAVED_MAX)
		return gw_fail(GW_PROTOCOL, "a report of numbers above 2^50");
	return GW_OK;
}

#endif
