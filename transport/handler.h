/* A call as its handler sees it, and the reply that it fills. */
#ifndef GW_TRANSPORT_HANDLER_H
#define GW_TRANSPORT_HANDLER_H

#include "core/errors/status.h"

/* One two-sided call as its handler sees it. */
struct gw_call {
	uint16_t op;
	const uint8_t *bytes; /* valid during the call */
	uint32_t byte_count;
	const uint8_t *client_uuid; /* 16 bytes */
	const void *listener;       /* TCP: what accepted the client, and the client's connection, numbered from 1; */
	uint64_t connection;        /* else NULL and 0 */
};

/* A reply under construction. */
struct gw_reply;
/* What a handler keeps from one run of a call to the next: zeroed at first, the same memory later. `end`, unless NULL,
 * is called with it when the call is over, answered or not. NULL: no memory. */
void *gw_reply_work(struct gw_reply *reply, size_t bytes, void (*end)(void *work));
/* How far a numbered call has been applied: 0 in its first run, or, where an earlier task of the same call was left
 * with its client's connection, what that one's handler put there. The handler's to set, so that what must not be
 * applied twice is not. Which steps a number means may depend on nothing but the call's bytes. */
uint64_t *gw_reply_progress(struct gw_reply *reply);
/* The handler that returns GW_AGAIN waits for another thread: it is run again a little later, not at once. */
void gw_reply_wait(struct gw_reply *reply);
/* Before a long reply is begun: takes its bytes out of what the service has for all replies. GW_AGAIN: others hold
 * them; the handler returns that, and is run again when some are free. GW_LIMIT: more than one client may have. */
gw_status gw_reply_reserve(struct gw_reply *reply, uint64_t bytes);
/* Room for `bytes` more bytes at the end; NULL when memory or the client's limit is exhausted (error text set). The
 * pointer is valid until the next call. */
uint8_t *gw_reply_extend(struct gw_reply *reply, uint32_t bytes);
/* Takes back bytes from the end. */
void gw_reply_shrink(struct gw_reply *reply, uint32_t bytes);
uint8_t *gw_reply_data(struct gw_reply *reply, uint32_t *bytes);

/* Answers a call: fills the reply and returns GW_OK, or fails: status and error text go to the client. Runs in the poll
 * group's thread, which serves others as well: it must neither wait nor work for long. `thread` numbers the poll group.
 *
 * A handler that has more to do returns GW_AGAIN: the reply is deferred. When the thread has looked at its other
 * clients, the handler is run again with the same call, reply and gw_reply_work, until it returns something else. It is
 * run no more when the client has left; so whatever must not be applied twice is applied by the last run, or counted in
 * gw_reply_progress. Between two runs the call's bytes stay as they are and may move. */
typedef gw_status (*gw_handler)(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread);

#endif
