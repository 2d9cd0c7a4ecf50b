/* An upgrade: the search for a better way to a server than TCP, over which it has answered. The ways are the schemes
 * of transport/scheme.h above TCP's rank, the best first: mapped memory, then RDMA.
 *
 *   begin -> a way on this host: does the socket of the server's incarnation answer?
 *         -> a way over the network: does the server's host and port answer?
 *         -> the way is not mapped memory: one read, by it and over TCP -> the same bytes?
 *         -> done, with the endpoint to use instead; without one the link stays with TCP: `reason` says why
 *
 * A way over the network that was lost, or could not be had, is not tried again before retry_ns; each time that it is
 * lost again soon the pause is twice as long. A link whose RDMA is gone goes on over TCP at once, and returns to RDMA
 * while it is in use.
 */
#ifndef GW_CLIENT_LINK_UPGRADE_H
#define GW_CLIENT_LINK_UPGRADE_H

#include "client/link/link_ops.h"

/* done: see struct gw_upgrade. */
void gw_upgrade_init(struct gw_upgrade *upgrade,
		     void (*done)(struct gw_link *link, struct gw_endpoint *better, gw_status status));

/* Starts the search, for a link whose server answers and is known; done reports the outcome, perhaps before this
 * returns. wait: the link waits for every way; else it waits for those on this host alone. A client that has chosen one
 * way tries that one, at once. */
void gw_upgrade_begin(struct gw_link *link, bool wait);

/* Tries the ways over the network again, for a link that is open over TCP, if it is time. */
void gw_upgrade_again(struct gw_link *link);

/* The link's connection by this way over the network was lost. */
void gw_upgrade_lost(struct gw_upgrade *upgrade, const struct gw_scheme *way, uint64_t now_ns);

/* Closes what the search has open; the link's own endpoint is closed already. Nothing is told. */
void gw_upgrade_stop(struct gw_upgrade *upgrade);

#endif
