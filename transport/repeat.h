/* What a service remembers of each client's last sequenced call, so that a call repeated after a reconnect is answered
 * and not applied twice. Bounded: GW_REPEAT_CLIENTS clients, the least recently heard forgotten first, and
 * GW_REPEAT_REPLY_MAX bytes of each reply. */
#ifndef GW_TRANSPORT_REPEAT_H
#define GW_TRANSPORT_REPEAT_H

#include "transport/transport.h"

#define GW_REPEAT_CLIENTS   1024
#define GW_REPEAT_REPLY_MAX (64u << 10)

struct gw_repeats;

gw_status gw_repeats_create(struct gw_repeats **out);
void gw_repeats_destroy(struct gw_repeats *repeats); /* NULL is allowed */

/* Applies the call once: `apply` runs unless the client's last sequence is this one. Calls of one client are applied
 * one at a time, whichever connection and thread they come by. GW_INVALID for a sequence older than the last;
 * GW_LIMIT for a repeat whose reply was too long to keep, or when every place is taken by a call in progress. */
gw_status gw_repeats_call(struct gw_repeats *repeats, const uint8_t client_uuid[16], uint64_t sequence,
			  gw_status (*apply)(void *context, struct gw_reply *reply), void *context,
			  struct gw_reply *reply);

#endif
