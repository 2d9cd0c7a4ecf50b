/* A poll group's part of the TCP backend, which both sides share.
 *
 *      client/   endpoints                     server/   listeners, and the connections that they accept
 *      driver/   sockets, by io_uring or epoll
 *
 * tcp.c runs a loop: orders of other threads, timers, the driver, completions.
 */
#ifndef GW_TRANSPORT_TCP_LOOP_H
#define GW_TRANSPORT_TCP_LOOP_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/memory/deadlines.h"
#include "core/memory/queue.h"
#include "core/system/clock.h"
#include "transport/completions.h"
#include "transport/service/service_backend.h"
#include "transport/tcp/driver/driver.h"
#include "transport/tcp/driver/fd_passing.h"
#include "transport/tcp/lender.h"
#include "transport/tcp/wire.h"
#include "transport/transport.h"

extern const struct gw_transport gw_transport_tcp;

#define TCP_INBOX_MAX 256

struct tcp_client;
struct tcp_server;
struct tcp_listener;

/* Functions of connections over unix sockets, which also pass the regions' memory after the welcome: transport/shm. */
struct tcp_local {
	/* Connects to the listener with this name. GW_PEER_LOST. */
	gw_status (*dial)(const struct gw_address *address, int *fd);
	/* Creates a listening socket, unless *fd has the one of this name, and the export for its clients. Fills in the
	 * address's name. */
	gw_status (*listen)(struct gw_address *address, const struct gw_service *service, int *fd, void **export);
	/* Keeps the name. *fd: -1 if the name still exists, else a new socket that listens under it. */
	gw_status (*keep)(void *export, int *fd);
	/* Removes the name: no new client can connect. */
	void (*stop)(void *export);
	void (*export_free)(void *export);
	/* Checks whether the connected client is allowed. GW_REFUSED. */
	gw_status (*admit)(int fd);
	/* Fills in the body of the MEMORY frame and its descriptors. Returns the body's length. */
	uint32_t (*describe)(const void *export, uint8_t *body, struct tcp_fd_passing *fd_passing);
	/* Maps the descriptors of a MEMORY frame. */
	gw_status (*map)(const struct wire_memories *announced, struct tcp_fd_passing *fd_passing, void **mapped);
	void (*unmap)(void *mapped);
	/* Dynamic regions: a descriptor for the client; the client's mapping of it. */
	gw_status (*share)(const struct gw_dynamic_region *region, int *fd);
	gw_status (*map_dynamic)(int fd, uint64_t bytes, void **mapping, const uint8_t **base);
	void (*unmap_dynamic)(void *mapping);
};

/* A poll group's part: one driver and its ios. For one thread, except the inbox, the atomic fields and wake. */
struct tcp_loop {
	struct gw_poll_group *group;
	const struct gw_transport *transport; /* the transport of this part */
	const struct tcp_local *local;        /* for the loop's endpoints; NULL: TCP */
	struct tcp_driver *driver;
	struct gw_completions completions;
	struct tcp_client *clients;
	struct tcp_client *working; /* the clients among them with open work, and some whose work has ended since */
	struct tcp_client *unsent;  /* clients with small requests that the next poll sends */
	struct tcp_server *servers;
	struct tcp_server *oldest_pending, *newest_pending; /* the pending clients among the servers */
	uint32_t pending_count;
	struct tcp_lender lender;        /* buffers for the servers */
	struct gw_queue calls;           /* deferred calls of servers: each runs in turn */
	struct gw_queue paused;          /* those that wait for another thread: they run after a pause, or a wake */
	struct gw_deadlines deadlines;   /* of servers */
	uint64_t bytes_ended;            /* buffers of connections that ended since the last trim */
	struct tcp_listener *listeners;  /* listeners that accept in this loop */
	uint32_t ios;                    /* added and not gone yet */
	uint64_t next_timer_ns;          /* no timer is due before */
	uint64_t worked_ns;              /* when a run last handled something */
	uint64_t now_ns;                 /* while polled: when this run began; 0: the clock was not read yet */
	uint32_t turns;                  /* shm: counts polls */
	uint32_t lone_waits, lone_pause; /* client_lone.c */
	/* Set while polled. A thread that stops a listener sets it to end the connections of a loop that no thread
	 * polls. */
	_Atomic bool owned;
	_Atomic bool inbox_filled;
	_Atomic bool withdrawn;                   /* a region was withdrawn: clients that pinned it must be notified */
	_Atomic bool renewed;                     /* a listener's socket was renewed */
	_Atomic uint32_t close_asked, close_done; /* counters of requests to end or drain connections */
	pthread_mutex_t inbox_lock;
	struct {
		int fd;
		struct tcp_listener *listener; /* with a reference */
	} inbox[TCP_INBOX_MAX];
	uint32_t inbox_count;
};

static inline void tcp_loop_timer(struct tcp_loop *loop, uint64_t at_ns)
{
	if (at_ns < loop->next_timer_ns)
		loop->next_timer_ns = at_ns;
}

/* The time for the driver's callbacks: the clock is read once for each run. */
static inline uint64_t tcp_loop_now(struct tcp_loop *loop)
{
	if (!loop->now_ns)
		loop->now_ns = gw_now_ns();
	return loop->now_ns;
}

#endif
