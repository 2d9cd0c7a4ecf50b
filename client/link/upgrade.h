/* An upgrade: the search for a better transport to a server that has answered over TCP. The candidates are the schemes
 * of transport/scheme.h above TCP's rank, the best first: mapped memory, then RDMA.
 *
 *   begin -> a transport on this host: does the socket of the server's incarnation answer?
 *         -> a transport over the network: do the server's host and port answer?
 *         -> not mapped memory: read once over it and once over TCP -> the same bytes?
 *         -> done, with the endpoint to use instead; or without an endpoint: the link keeps TCP, and `reason` is why
 *
 * A network transport that was lost, or that failed, is not tried again before retry_ns. Each time that it is soon lost
 * again, the pause doubles. A link that loses RDMA continues over TCP at once, and returns to RDMA while the link stays
 * in use.
 */
#ifndef GW_CLIENT_LINK_UPGRADE_H
#define GW_CLIENT_LINK_UPGRADE_H

#include "client/link/link_ops.h"

/* done: see struct gw_upgrade. */
void gw_upgrade_init(struct gw_upgrade *upgrade,
		     void (*done)(struct gw_link *link, struct gw_endpoint *better, gw_status status));

/* Starts the search, for a link whose server answers and is known. `done` reports the result, perhaps before this
 * returns. wait: the link waits until all transports are tried; false: only until those on this host are tried. A
 * client that was opened for one transport tries only that transport, at once. */
void gw_upgrade_begin(struct gw_link *link, bool wait);

/* Tries the network transports again, for a link that is open over TCP, if their pause has ended. */
void gw_upgrade_again(struct gw_link *link);

/* The link's connection over this network transport was lost. */
void gw_upgrade_lost(struct gw_upgrade *upgrade, const struct gw_scheme *scheme, uint64_t now_ns);

/* Closes the endpoint and memory of the search. The link's own endpoint must be closed already. Does not call
 * `done`. */
void gw_upgrade_stop(struct gw_upgrade *upgrade);

#endif
