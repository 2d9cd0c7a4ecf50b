/* Writing rows: updates and pushes, from calls to requests; and other requests that must not be done twice.
 *
 *   gw_update, gw_push -> a job of the client's first engine -> a share for each owner -> its lane
 *                      -> pieces, one request each, several under way -> all shares done: the job's end
 *
 * A lane is a client's way to write to one server: what comes first is sent first, whichever thread it comes from, and
 * a request that was lost with its connection is sent again under its number, which the server applies once. Requests
 * that are under way together have no row in common, since they may take effect in any order: one that has waits. So
 * writes of one client to one row take effect in the order of their calls. A piece's rows ascend, so that comparing its
 * first and last with those under way is enough.
 *
 * The first push to a tensor asks its owner for the optimizer's state, until that is made; what else is to be written
 * to the tensor waits for it, and other tensors' writes pass.
 *
 * A numbered call is one request to one server, sent by its lane in the order of calls, after what was to be written
 * before it. It names no rows, and waits for none that are under way.
 */
#ifndef GW_CLIENT_ROWS_ROWS_WRITE_H
#define GW_CLIENT_ROWS_ROWS_WRITE_H

#include "client/state/client.h"

struct gw_row_lanes;

gw_status gw_row_lanes_create(struct gw_client *client, struct gw_row_lanes **out);
void gw_row_lanes_destroy(struct gw_row_lanes *lanes); /* no write may be open; NULL is allowed */

/* A request that its server does once, however often the connection is lost before the reply has come; waits for that.
 * number: takes the reply, eight bytes; NULL: it is empty. Fails as writes do. */
gw_status gw_numbered_call(struct gw_client *client, uint32_t part, uint16_t op, const void *request,
			   uint32_t request_bytes, uint64_t *number);

#endif
