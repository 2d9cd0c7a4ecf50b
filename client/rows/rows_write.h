/* Writes rows: updates and pushes, from calls to requests. Also sends other requests that must not run twice.
 *
 *   gw_update, gw_push -> a job of the client's first engine -> a share for each owner -> its lane
 *                      -> pieces, one request each, several open at a time -> all shares done: the job ends
 *
 * A lane carries a client's writes to one server. It sends the writes in the order of their calls, whichever threads
 * made the calls. If a connection is lost, the lane sends its open requests again with the same numbers, and the server
 * applies each number once. Open requests have no row in common, since they may take effect in any order: a request
 * that shares a row with them waits. So writes of one client to one row take effect in the order of their calls. The
 * rows of a piece ascend, so it is enough to compare its first and last row with those of the open requests.
 *
 * The first push to a tensor requests the optimizer's state from the owner and waits until the server has created it.
 * Later writes to this tensor wait too; writes to other tensors overtake them.
 *
 * A numbered call is one request to one server. Its lane sends it after all earlier writes. The call names no rows, so
 * it need not wait for open requests.
 */
#ifndef GW_CLIENT_ROWS_ROWS_WRITE_H
#define GW_CLIENT_ROWS_ROWS_WRITE_H

#include "client/state/client.h"

struct gw_row_lanes;

gw_status gw_row_lanes_create(struct gw_client *client, struct gw_row_lanes **out);
void gw_row_lanes_destroy(struct gw_row_lanes *lanes); /* no write may be open; NULL is allowed */

/* Sends a request that the server runs once, however often the connection is lost before the reply arrives. Waits for
 * the reply. number: receives the reply, eight bytes; NULL: the reply is empty. Fails with the errors of writes
 * (row_lanes.c). */
gw_status gw_numbered_call(struct gw_client *client, uint32_t part, uint16_t op, const void *request,
			   uint32_t request_bytes, uint64_t *number);

#endif
