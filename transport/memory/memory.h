/* The in-process backend: "memory:NAME" is a service of this process. */
#ifndef GW_TRANSPORT_MEMORY_H
#define GW_TRANSPORT_MEMORY_H

#include "transport/completions.h"
#include "transport/service/task.h"

extern const struct gw_transport gw_transport_memory;

/* The backend's part of one poll group. */
struct memory_state {
	struct gw_poll_group *group;
	struct gw_completions completions;
	struct memory_endpoint *endpoints;
	uint32_t request_count; /* deferred requests of all endpoints */
	bool room_wanted;       /* a request found no room: the next poll with completions makes some */
	int wake_fd;
};

struct memory_listener; /* transport/memory/hub.c */

/* An unanswered request: deferred, or queued behind a deferred one. */
struct memory_request {
	struct memory_request *next;
	struct gw_task task;
	struct gw_note *note; /* NULL: cancelled */
	const void *cookie;
	uint64_t deadline_ns;
	uint8_t bytes[]; /* the call's bytes */
};

/* The link of an endpoint to a listener. Used by the endpoint's thread and by the thread that stops the listener. */
struct memory_link {
	struct memory_listener *listener;
	struct gw_service *service;                      /* NULL once the listener is closed */
	uint32_t thread;                                 /* the poll group that serves this client, by number */
	_Atomic bool inside;                             /* the endpoint is reading a region or running a handler */
	struct memory_request *requests, **requests_end; /* changed while inside, or under the hub's lock */
	struct gw_service_peer peer;
	const uint8_t *client_uuid;
	uint64_t window; /* the service's window of the client's numbered calls; 0: none */
	struct memory_link *next, **previous;
};

gw_status gw_memory_listen(struct gw_poll_group *const *groups, uint32_t group_count, const struct gw_address *address,
			   struct gw_service *service, int socket, struct gw_listener **out);
void gw_memory_listener_stop(struct gw_listener *base, bool close);
void gw_memory_listener_drain(struct gw_listener *base);
void gw_memory_listener_free(struct gw_listener *base);

/* Links a client to the named service. GW_PEER_LOST: no such service; GW_LIMIT: it is full. */
gw_status gw_memory_join(const char *name, struct memory_link *link);
void gw_memory_part(struct memory_link *link); /* a second call does nothing */

/* Whether the service may be used until gw_memory_disconnect. false: its listener is closed, or drains and has no
 * request of this client to answer. */
bool gw_memory_enter(struct memory_link *link);
/* After gw_memory_enter returned false: waits until the stopping thread is done with the link's requests. */
void gw_memory_await_stop(void);
void gw_memory_disconnect(struct memory_link *link);
/* The listener ended because a successor has its name. */
bool gw_memory_moved(const struct memory_link *link);
/* The last deferred request was answered: ends the connection if the listener drains. */
void gw_memory_idle(struct memory_link *link);

/* Runs a call once, under the lock of the group that serves this client, since handlers rely on one thread per group.
 */
gw_status gw_memory_run(struct memory_link *link, struct gw_task *task);

#endif
