/* The interface between a backend and a handler: a call, and the reply that the handler fills. */
#ifndef GW_TRANSPORT_SERVICE_HANDLER_H
#define GW_TRANSPORT_SERVICE_HANDLER_H

#include "core/errors/status.h"

#define GW_REPLY_BYTES_MAX (64u << 20) /* bytes of one reply; a backend may send it in chunks */

struct gw_service_peer;
struct gw_poll_group;

/* One two-sided call. */
struct gw_call {
	uint16_t op;
	const uint8_t *bytes; /* valid during one run of the handler */
	uint32_t byte_count;
	uint32_t thread; /* the number of the poll group that runs the handler */
	/* The group itself. A handler that waits for another thread may let that thread wake it (gw_poll_group_wake),
	 * until the call is over: the handler then runs at once, and not after its pause. */
	struct gw_poll_group *group;
	const uint8_t *client_uuid;   /* 16 bytes */
	struct gw_service_peer *peer; /* the client of the connection; NULL: not counted there */
	/* TCP: the listener that accepted the client, and the number of the client's connection, from 1. Other
	 * transports: NULL and 0. */
	const void *listener;
	uint64_t connection;
};

/* A reply under construction. */
struct gw_reply;
/* The handler's memory between the runs of one call: zeroed at first, the same memory in later runs. When the call is
 * over, answered or not, `end` is called with this memory (unless `end` is NULL). Returns NULL if memory runs out. */
void *gw_reply_work(struct gw_reply *reply, size_t bytes, void (*end)(void *work));
/* How far a numbered call has been applied: 0 in its first run. If a connection ended in the middle of the call, the
 * repeat starts with the number that the earlier task's handler stored. The handler advances the number, so that no
 * step is applied twice. What a number means may depend only on the call's bytes. */
uint64_t *gw_reply_progress(struct gw_reply *reply);
/* For a handler that returns GW_AGAIN because it waits for another thread: it runs again later, or when its poll group
 * is woken, not at once. */
void gw_reply_wait(struct gw_reply *reply);
/* Reserves bytes for a long reply, from the service's memory for all replies. Call it before the first gw_reply_extend.
 * GW_AGAIN: other replies use the memory; the handler returns GW_AGAIN, and runs again when memory is free. GW_LIMIT:
 * `bytes` exceeds what one client may use. */
gw_status gw_reply_reserve(struct gw_reply *reply, uint64_t bytes);
/* Room for `bytes` more bytes at the end. NULL, with an error text: memory or the client's limit is used up. The
 * pointer is valid until the next call of gw_reply_extend. */
uint8_t *gw_reply_extend(struct gw_reply *reply, uint32_t bytes);
/* Removes bytes from the end. */
void gw_reply_shrink(struct gw_reply *reply, uint32_t bytes);
uint8_t *gw_reply_data(struct gw_reply *reply, uint32_t *bytes);

/* A handler answers a call: it fills the reply and returns GW_OK, or it fails, and status and error text go to the
 * client. It runs in the poll group's thread, which serves other clients too, so it must neither wait nor work for
 * long.
 *
 * A handler with more work returns GW_AGAIN: the reply is deferred. The thread serves its other clients, then runs the
 * handler again with the same call, reply and gw_reply_work, until the handler returns another status. The handler is
 * not run again after the client's connection ended. So a handler does work that must not be applied twice in its last
 * run, or counts it in gw_reply_progress. Between two runs the call's bytes may move; their content stays. */
typedef gw_status (*gw_handler)(void *context, const struct gw_call *call, struct gw_reply *reply);

#endif
