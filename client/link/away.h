/* A server that is away: why its link is not open, how long that may last, when the link tries again, and what the
 * client logs.
 *
 *   failed -> waiting helps (restarts, lost networks, names)     -> try again until the reconnect budget ends
 *          -> waiting rarely helps (keys, refusals, no memory)   -> try again for LASTING_MAX_NS (client/link/away.c)
 *          -> waiting never helps (another graph or version)     -> give up at once
 *
 * If a client waits for a server longer than a moment, it logs one line, and another line when the server is back. Each
 * line appears once per client, however many of the client's engines wait.
 */
#ifndef GW_CLIENT_LINK_AWAY_H
#define GW_CLIENT_LINK_AWAY_H

#include "client/link/link_ops.h"

/* An attempt has failed, or the connection was lost: records why. `reason` may be memory of the endpoint, which is
 * still open. */
void gw_link_note_failure(struct gw_link *link, gw_status status, const char *reason);

/* Follows gw_link_note_failure once the connection is closed: gives up or waits. */
void gw_link_wait_or_give_up(struct gw_link *link, gw_status status);

/* For a link that waits: gives up if the reconnect budget has ended. Returns whether the link gave up. */
bool gw_link_give_up_if_overdue(struct gw_link *link, uint64_t now_ns);

/* Logs that the client waits for the server, up to limit_ms (negative: without limit), if it has waited long enough.
 * Returns when to call this again; GW_NO_DEADLINE: not during this absence. */
uint64_t gw_link_log_away(struct gw_link *link, uint64_t now_ns, int64_t limit_ms);
/* Logs that the server is back. */
void gw_link_log_recovered(struct gw_link *link);

#endif
