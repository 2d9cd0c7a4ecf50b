/* What a service remembers of each client's last sequenced call, so that a call repeated after a reconnect is answered
 * and not applied twice. Bounded: GW_REPLAY_CLIENTS clients, the least recently heard forgotten first, and
 * GW_REPLAY_REPLY_MAX bytes of each reply. */
#ifndef GW_TRANSPORT_REPLAY_CACHE_H
#define GW_TRANSPORT_REPLAY_CACHE_H

#include "transport/transport.h"

#define GW_REPLAY_CLIENTS   1024
#define GW_REPLAY_REPLY_MAX (64u << 10)

struct gw_replay_cache;

gw_status gw_replay_cache_create(struct gw_replay_cache **out);
void gw_replay_cache_destroy(struct gw_replay_cache *cache); /* NULL is allowed */

struct gw_replay_entry;

/* A call of the client begins. *out set: it is to be applied, and the entry is the caller's until gw_replay_keep or
 * gw_replay_leave. Else the client's last sequence was this one, and the reply is the kept one (GW_OK, or the status
 * that it was); or GW_AGAIN: another call of this client is being applied, whichever connection and thread it came by,
 * or every entry is taken by such calls; GW_INVALID for a sequence older than the last; GW_LIMIT for a repeat whose
 * reply was too long to keep. */
gw_status gw_replay_enter(struct gw_replay_cache *cache, const uint8_t client_uuid[16], uint64_t sequence,
			  struct gw_reply *reply, struct gw_replay_entry **out);
/* It was applied: the entry takes the answer, or the status and the text of gw_last_error(). */
void gw_replay_keep(struct gw_replay_cache *cache, struct gw_replay_entry *entry, uint64_t sequence, gw_status status,
		    struct gw_reply *reply);
/* It was not applied, and never will be. */
void gw_replay_leave(struct gw_replay_cache *cache, struct gw_replay_entry *entry);

#endif
