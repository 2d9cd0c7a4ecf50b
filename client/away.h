/* A server that is away: why its link is not open, how long that may last, when it is tried again, and what is said.
 *
 *   failed -> mends by waiting (restarts, lost networks, names)  -> tried again, for as long as the reconnect budget
 *          -> hardly does (keys, refusals, own shortages)        -> tried again for MEND_NS (client/away.c)
 *          -> never does (another graph, another version)        -> given up at once
 *
 * A server that is waited for longer than a moment is told in one line of the log, and in another one when it is back:
 * once for the client, however many of its engines wait.
 */
#ifndef GW_CLIENT_AWAY_H
#define GW_CLIENT_AWAY_H

#include "client/link.h"

/* An attempt has failed, or the connection was lost: closes it, and gives up or waits. The reason may be the
 * endpoint's. */
void gw_link_failed(struct gw_link *link, gw_status status, const char *reason);

/* For a link that waits: gives up when the budget of those who wait is used up, which is then true. */
bool gw_link_overdue(struct gw_link *link, uint64_t now_ns);

/* When the reconnect budget is used up of who waits since then. */
uint64_t gw_link_budget_end(const struct gw_link *link, uint64_t since_ns);

/* "server host:port: reason"; a transport's own text may begin with the address already. */
void gw_link_name(const struct gw_link *link, const char *reason, char text[GW_ERROR_TEXT_MAX]);

/* Somebody waits for the server, for up to limit_ms (negative: without limit); and it is there again. */
void gw_link_tell_away(struct gw_link *link, uint64_t now_ns, int64_t limit_ms);
void gw_link_tell_back(struct gw_link *link);

#endif
