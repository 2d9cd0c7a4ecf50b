/* A server that is away: why its link is not open, how long that may last, when it is tried again, and what is said.
 *
 *   failed -> waiting helps (restarts, lost networks, names)    -> tried again, for as long as the reconnect budget
 *          -> it hardly helps (keys, refusals, own shortages)   -> tried again for STUBBORN_NS (client/link/away.c)
 *          -> it never helps (another graph, another version)   -> given up at once
 *
 * A server that is waited for longer than a moment is told in one line of the log, and in another one when it is back:
 * once for the client, however many of its engines wait.
 */
#ifndef GW_CLIENT_LINK_AWAY_H
#define GW_CLIENT_LINK_AWAY_H

#include "client/link/link_ops.h"

/* An attempt has failed, or the connection was lost: notes why. The reason may be that of the
 * endpoint, which is still open. */
void gw_link_note_failure(struct gw_link *link, gw_status status, const char *reason);

/* The same failure, what was open is closed: gives up or waits. */
void gw_link_wait_or_give_up(struct gw_link *link, gw_status status);

/* For a link that waits: gives up when the budget of those who wait is used up, which is then true. */
bool gw_link_overdue(struct gw_link *link, uint64_t now_ns);

/* Somebody waits for the server, for up to limit_ms (negative: without limit); and it is there again. */
void gw_link_log_away(struct gw_link *link, uint64_t now_ns, int64_t limit_ms);
void gw_link_log_recovered(struct gw_link *link);

#endif
