/* One request to the server of a part, and its reply, for calls that are rare and may run twice. */
#ifndef GW_CLIENT_ENGINE_REMOTE_CALL_H
#define GW_CLIENT_ENGINE_REMOTE_CALL_H

#include "client/engine/ticket.h"
#include "client/link/link.h"

struct gw_remote_call {
	struct gw_ticket ticket; /* first: the job */
	struct gw_link_op op;
	uint32_t part;
	struct gw_vec *reply; /* or NULL: the reply is kept where it came */
	size_t reply_bytes;
	const uint8_t *kept; /* the reply */
	uint8_t *memory;     /* that it lies in: the caller's, to be freed by gw_free, also if the call failed */
};

/* Begins a call over the engine's link: its memory, the request's and the reply's stay the caller's until
 * gw_remote_call_end, which waits for it and returns its status. reply NULL: see `kept`, for replies that are too long
 * to be copied. soon: that comes at once. gw_job_cancel(&call->ticket.job) makes it end soon. */
void gw_remote_call_begin(struct gw_remote_call *call, struct gw_engine *engine, uint32_t part, uint16_t op,
			  const void *request, uint32_t request_bytes, struct gw_vec *reply, bool soon);
gw_status gw_remote_call_end(struct gw_remote_call *call);

/* Both: waits for the reply, within the operation's deadline: *bytes of it in `reply`, whose memory is the caller's.
 * The server's errors are returned as its own; the server is named. */
gw_status gw_remote_call(struct gw_client *client, uint32_t part, uint16_t op, const void *request,
			 uint32_t request_bytes, struct gw_vec *reply, size_t *bytes);

#endif
