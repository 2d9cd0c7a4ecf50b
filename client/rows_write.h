/* Writing rows: updates and pushes, from calls to requests.
 *
 *   gw_update, gw_push -> a job of the client's first engine -> a share for each owner -> its lane
 *                      -> pieces, one request each, several under way -> all shares done: the job's end
 *
 * A lane is a client's way to write to one server: what comes first is sent first, whichever thread it comes from, and
 * a request that was lost with its connection is sent again under its number, which the server applies once. Requests
 * that are under way together have no row in common, since they may take effect in any order: one that has waits. So
 * writes of one client to one row take effect in the order of their calls. A piece's rows ascend, so that comparing its
 * first and last with those under way is enough.
 */
#ifndef GW_CLIENT_ROWS_WRITE_H
#define GW_CLIENT_ROWS_WRITE_H

#include "client/client.h"

struct gw_row_lanes;

gw_status gw_row_lanes_create(struct gw_client *client, struct gw_row_lanes **out);
void gw_row_lanes_destroy(struct gw_row_lanes *lanes); /* no write may be open; NULL is allowed */

#endif
