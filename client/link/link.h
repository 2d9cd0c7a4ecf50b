/* A link: an engine's connection to one server, which reconnects after a loss, and the reads that wait for it.
 *
 *   DOWN -> CONNECTING -> (CHECKING: the server is another process than before) -> (UPGRADING) -> OPEN -> lost
 *              ▲                                                                                           │
 *              └────────────────────────────── WAITING ◀───────────────────────────────────────────────────┘
 *
 * UPGRADING: the TCP connection is open, and the link looks for a better transport (upgrade.h). If it finds one, it
 * closes the TCP connection. Afterwards only the endpoint shows which transport the link uses. The link tries all
 * transports again after each loss. It also tries RDMA again while it is open over TCP; if that succeeds, it posts the
 * open reads again over RDMA.
 *
 * A link that nothing has used for the client's idle_ms closes its connection and is DOWN, without a failure. The next
 * op opens it again. Mapped memory is used without ops, so its links stay open.
 *
 * The link posts reads in order, as room allows. If the connection of a read is lost, the link posts the read again on
 * the next connection. Reads and sample requests may thus run twice. Two limits apply:
 * - The operation's deadline runs while the server is connected, also while the read waits for room.
 * - The reconnect budget runs while the server is away. When it ends, every waiting read fails with the reason. A read
 *   also fails if its connections keep being lost for that long, one after another.
 */
#ifndef GW_CLIENT_LINK_LINK_H
#define GW_CLIENT_LINK_LINK_H

#include "client/link/link_connect.h"

/* GW_NO_MEMORY. */
gw_status gw_link_init(struct gw_link *link, struct gw_engine *engine, struct gw_remote *server);

/* Looks at the links with work, and at no other:
 *
 *   an op was queued, a connection opened or failed  -> ticking ─┐
 *   a timer is due: a retry, a deadline, the end of a budget ────┼─▶ posts what finds room, tries again, gives up,
 *   news of the poll group -> listening: links with ops that ────┘   sets the link's timer
 *      found no room; mapped: links whose memory was lost
 *
 * Returns the time by which it must be called again. */
uint64_t gw_links_tick(struct gw_engine *engine, uint64_t now_ns);

/* Whether mutable rows can be read from this region, which the server announced after the hello. If the region is not
 * open yet, this function begins to open it; meanwhile callers request the rows from the server. An op on a withdrawn
 * region ends with GW_NOT_FOUND. An op with rows that were torn at every attempt ends with GW_AGAIN and the completion
 * that lists them. */
bool gw_link_can_read(struct gw_link *link, uint32_t region, uint32_t generation);

/* Submits an op. `done` reports the result, perhaps before this returns. */
void gw_link_post(struct gw_link *link, struct gw_link_op *op);

/* Makes an op end with GW_CANCELLED: calls `done` once no transport writes to its destination any more. */
void gw_link_cancel(struct gw_link_op *op);

#endif
