/* A link: an engine's connection to one server, which comes back when it was lost, and the reads that wait for it.
 *
 *   DOWN -> CONNECTING -> (CHECKING: the server is another process than before) -> (UPGRADING) -> OPEN -> lost
 *              ▲                                                                                           │
 *              └────────────────────────────── WAITING ◀───────────────────────────────────────────────────┘
 *
 * UPGRADING: the connection over TCP stands; the link looks for a better one (upgrade.h), and closes that over TCP when
 * it has found it. Which one it is shows in the endpoint alone. All are tried again after each loss; RDMA also while
 * the link is open over TCP, which it then leaves while reads are open: they are posted again.
 *
 * Reads are posted in order, as room allows. A read whose connection is lost is posted again on the next one: reads and
 * sample requests may run twice. Two limits: the operation's deadline runs while the server is connected, also while
 * the read waits for room; while the server is away, the reconnect budget does. When that is used up, every waiting
 * read fails with the reason; so does a read whose connections keep being lost for that long, one after another.
 */
#ifndef GW_CLIENT_LINK_LINK_H
#define GW_CLIENT_LINK_LINK_H

#include "client/link/link_ops.h"

void gw_link_init(struct gw_link *link, struct gw_engine *engine, struct gw_remote *server);
void gw_link_close(struct gw_link *link);

/* Starts to connect, if it is down. */
void gw_link_open(struct gw_link *link);

/* Timers, and ops that wait for room. Returns when it wants to be called again at the latest. */
uint64_t gw_link_tick(struct gw_link *link, uint64_t now_ns);

/* Whether rows that change can be read from this region, which the server told of after the hello. If not yet, it is
 * opened: they are asked for meanwhile. An op on one that was withdrawn ends with GW_NOT_FOUND; one of whose rows some
 * were torn each time with GW_AGAIN and the completion that lists them. */
bool gw_link_can_read(struct gw_link *link, uint32_t region, uint32_t generation);

/* Hands an op over; done tells the outcome, perhaps before this returns. */
void gw_link_post(struct gw_link *link, struct gw_link_op *op);

/* Makes an op end with GW_CANCELLED, by done, once nothing writes to its destination any more. */
void gw_link_cancel(struct gw_link_op *op);

#endif
