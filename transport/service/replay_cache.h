/* The server's memory of numbered calls, which it must not apply twice. Each client has a window of calls. The window
 * keeps the answer of each applied call until the client acknowledges it.
 *
 *      hello ─▶ join: the client's window, or a new one ─▶ the window's number, which the client's calls carry
 *      call {sequence, oldest unacknowledged, window} ─▶ enter ─▶ apply, keep │ answer from memory │ refuse
 *      connection ends ─▶ disconnect ─▶ after the client's last connection, the window stays for the reconnect budget;
 *                              longer if no other client needs the place (the client may be suspended);
 *                              after a goodbye, not at all
 *
 * Calls of a client are applied in order. A client may lose its connection in the middle of a call and give the call
 * up. That call ends, or stops where it is, before a later call begins.
 *
 * If a call's window is gone, the server cannot know whether the call was applied. The call ends with
 * GW_OUTCOME_UNKNOWN and is not applied. If another incarnation of the server assigned the window, this incarnation has
 * not applied the call, and applies it.
 *
 * The memory is bounded: GW_REPLAY_CLIENTS clients. A client without a place may read; its numbered calls are refused.
 * A window whose calls may be repeated is never removed to make room.
 */
#ifndef GW_TRANSPORT_SERVICE_REPLAY_CACHE_H
#define GW_TRANSPORT_SERVICE_REPLAY_CACHE_H

#include "core/errors/status.h"
#include "transport/service/once.h"

#define GW_REPLAY_CLIENTS    4096u
#define GW_REPLAY_REPLY_MAX  (64u << 10)                 /* a longer answer is not kept */
#define GW_REPLAY_BYTES_MAX  (64ull << 20)               /* of all kept answers */
#define GW_REPLAY_BUDGET_NS  (300 * 1000000000ull)       /* for a client that asks for no budget */
#define GW_REPLAY_BUDGET_MAX (24ull * 3600 * 1000000000) /* a larger budget is cut to this */
#define GW_OP_GOODBYE        0xff01u                     /* the client ends and will repeat no call */

struct gw_replay_cache;
struct gw_reply;

gw_status gw_replay_cache_create(uint64_t incarnation, struct gw_replay_cache **out);
void gw_replay_cache_destroy(struct gw_replay_cache *cache); /* NULL is allowed */

/* A connection of the client begins. Returns the number of the client's window; 0: no place is free. */
uint64_t gw_replay_join(struct gw_replay_cache *cache, const uint8_t client_uuid[16], uint64_t budget_ns);
/* A connection of the client has ended. Do not call this for a connection whose join returned 0. */
void gw_replay_disconnect(struct gw_replay_cache *cache, const uint8_t client_uuid[16]);
void gw_replay_goodbye(struct gw_replay_cache *cache, const uint8_t client_uuid[16]);

/* The number of clients that have a window. */
uint32_t gw_replay_cache_clients(struct gw_replay_cache *cache);

/* How many repeats were answered from memory. */
uint64_t gw_replay_cache_replays(struct gw_replay_cache *cache);

/* --- Hand-over to another process that goes on as the same incarnation. ---
 *
 * The text is a head, and each window with its entries and their answers. Each record begins with its length, so that a
 * later version can add fields at its end. A reader skips the fields that it does not know, and takes 0 for those that
 * are missing. */

/* Writes all windows, for a cache without connections and running calls (else GW_BUSY). The caller frees *out by
 * gw_free. */
gw_status gw_replay_save(struct gw_replay_cache *cache, uint8_t **out, uint64_t *bytes);
/* Fills an empty cache of the same incarnation. GW_FORMAT: the bytes are damaged, or of another incarnation; the cache
 * is then to be destroyed. */
gw_status gw_replay_load(struct gw_replay_cache *cache, const uint8_t *data, uint64_t bytes);

struct gw_replay_entry;

/* A call of the client begins. If *out is set, the caller applies the call, from the reply's progress on, and owns the
 * entry until gw_replay_keep or gw_replay_leave. If *out is NULL, the call is not to be applied, and the status is:
 *   GW_OK               the call was applied; the reply is the kept one
 *   a kept error        the call failed with this status before
 *   GW_AGAIN            the call, or one before it, is being applied for some connection (which the client may have
 *                       given up) in some thread
 *   GW_OUTCOME_UNKNOWN  the call may have been applied; see above
 *   GW_INVALID          the client has acknowledged this sequence, or may not use it yet
 *   GW_LIMIT            a repeat whose reply was too long to keep; or the client has no place, and the call has no
 *                       window here
 *   GW_NO_MEMORY        nothing was applied */
gw_status gw_replay_enter(struct gw_replay_cache *cache, const uint8_t client_uuid[16], const struct gw_once *once,
			  struct gw_reply *reply, struct gw_replay_entry **out);
/* The call was applied: the entry keeps the answer, or the status and the text of gw_last_error(). */
void gw_replay_keep(struct gw_replay_cache *cache, struct gw_replay_entry *entry, gw_status status,
		    struct gw_reply *reply);
/* The call stopped after `progress` (0: nothing was applied). Only a repeat continues it, from there. */
void gw_replay_leave(struct gw_replay_cache *cache, struct gw_replay_entry *entry, uint64_t progress);

#endif
