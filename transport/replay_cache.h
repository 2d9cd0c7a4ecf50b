/* What a service remembers of calls that must not be applied twice: a window for each client, in which every call has
 * its number, and its answer once it was applied, until the client says that it needs it no more.
 *
 *      hello ─▶ join: the client's window, or a new one ─▶ its number, which the client's calls carry
 *      call {sequence, oldest unacknowledged, window} ─▶ enter ─▶ apply, keep │ answered from memory │ refused
 *      connection ends ─▶ part ─▶ the last of the client's: kept for its reconnect budget, and longer while nobody else
 *                                 needs the place (it may be suspended); after a goodbye, not at all
 *
 * Calls of a client are applied in their order as far as they have come: one that its client gave up in the midst of
 * it, with its connection, ends or is left before a later one begins.
 *
 * A call whose window is gone may have been applied or not: it ends with GW_OUTCOME_UNKNOWN and is not applied. One of
 * a window that another life of the server gave was not applied here. Bounded: GW_REPLAY_CLIENTS clients; one that
 * finds no place may read, and its numbered calls are refused. Nothing that may be asked for again is given up for
 * another.
 */
#ifndef GW_TRANSPORT_REPLAY_CACHE_H
#define GW_TRANSPORT_REPLAY_CACHE_H

#include "core/errors/status.h"
#include "transport/once.h"

#define GW_REPLAY_CLIENTS    4096u
#define GW_REPLAY_REPLY_MAX  (64u << 10)                 /* bytes of an answer that are kept */
#define GW_REPLAY_BYTES_MAX  (64ull << 20)               /* of all answers */
#define GW_REPLAY_BUDGET_NS  (300 * 1000000000ull)       /* of a client that tells none */
#define GW_REPLAY_BUDGET_MAX (24ull * 3600 * 1000000000) /* more is not believed */
#define GW_OP_GOODBYE        0xff01u                     /* the client ends: nothing of it will be repeated */

struct gw_replay_cache;
struct gw_reply;

gw_status gw_replay_cache_create(uint64_t incarnation, struct gw_replay_cache **out);
void gw_replay_cache_destroy(struct gw_replay_cache *cache); /* NULL is allowed */

/* A connection of the client is there; the window's number, 0: there is no place for it. */
uint64_t gw_replay_join(struct gw_replay_cache *cache, const uint8_t client_uuid[16], uint64_t budget_ns);
/* It has ended. Not after a join that gave 0. */
void gw_replay_part(struct gw_replay_cache *cache, const uint8_t client_uuid[16]);
void gw_replay_goodbye(struct gw_replay_cache *cache, const uint8_t client_uuid[16]);

/* Of how many clients something is remembered. */
uint32_t gw_replay_cache_clients(struct gw_replay_cache *cache);

struct gw_replay_entry;

/* A call of the client begins. *out set: it is to be applied, from the reply's progress on, and the entry is the
 * caller's until gw_replay_keep or gw_replay_leave. Else it was applied, and the reply is the kept one (GW_OK, or the
 * status that it was); or GW_AGAIN: it is being applied, whichever connection and thread it came by, or
 * one before it still is, by a connection that the client may have given up; GW_OUTCOME_UNKNOWN; GW_INVALID for a
 * sequence that the client has acknowledged or is not to use yet; GW_LIMIT for a repeat whose reply was too long to
 * keep, and for a client without a place, whose call had no window here. */
gw_status gw_replay_enter(struct gw_replay_cache *cache, const uint8_t client_uuid[16], const struct gw_once *once,
			  struct gw_reply *reply, struct gw_replay_entry **out);
/* It was applied: the entry takes the answer, or the status and the text of gw_last_error(). */
void gw_replay_keep(struct gw_replay_cache *cache, struct gw_replay_entry *entry, gw_status status,
		    struct gw_reply *reply);
/* It was applied so far (0: not at all), and no further unless it is repeated: which goes on from there. */
void gw_replay_leave(struct gw_replay_cache *cache, struct gw_replay_entry *entry, uint64_t progress);

#endif
