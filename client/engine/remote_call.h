/* One request to the server of a part, and its reply: for calls that are rare and may run twice. */
#ifndef GW_CLIENT_ENGINE_REMOTE_CALL_H
#define GW_CLIENT_ENGINE_REMOTE_CALL_H

#include "client/engine/ticket.h"
#include "client/link/link.h"

struct gw_remote_call {
	struct gw_ticket ticket; /* first: the job */
	struct gw_link_op op;
	uint32_t part;
	struct gw_vec *reply; /* NULL: the reply stays in the memory that received it */
	size_t reply_bytes;
	const uint8_t *kept; /* the reply */
	/* the memory that contains `kept`; the caller frees it with gw_free, also if the call failed */
	uint8_t *memory;
};

/* Begins a call over the engine's link. The caller owns the memory of the call, the request and the reply, and keeps
 * them until gw_remote_call_end, which waits for the call and returns its status.
 * - reply NULL: the call keeps the reply in `kept`, without a copy; use it for long replies.
 * - soon: the caller calls gw_remote_call_end at once.
 * - gw_job_cancel(&call->ticket.job) makes the call end soon. */
void gw_remote_call_begin(struct gw_remote_call *call, struct gw_engine *engine, uint32_t part, uint16_t op,
			  const void *request, uint32_t request_bytes, struct gw_vec *reply, bool soon);
gw_status gw_remote_call_end(struct gw_remote_call *call);

/* Begins a call and ends it: waits for the reply within the operation's deadline. Stores the reply in `reply`, whose
 * memory the caller owns, and the reply's length in *bytes. If the server reports an error, returns that error, with
 * the server's name in the text. */
gw_status gw_remote_call(struct gw_client *client, uint32_t part, uint16_t op, const void *request,
			 uint32_t request_bytes, struct gw_vec *reply, size_t *bytes);

#endif
