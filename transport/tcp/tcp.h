/* The TCP backend's objects, shared by its files. */
#ifndef GW_TRANSPORT_TCP_H
#define GW_TRANSPORT_TCP_H

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
	/* Creates a listening socket, and the export for its clients. Fills in the address's name. */
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
	struct tcp_server *servers;
	struct tcp_server *oldest_pending, *newest_pending; /* the pending clients among the servers */
	uint32_t pending_count;
	struct tcp_lender lender;        /* buffers for the servers */
	struct gw_queue calls;           /* deferred calls of servers: each runs in turn */
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

/* --- tcp.c: the slots that TCP and unix sockets share --- */
gw_status gw_tcp_loop_open(struct gw_poll_group *group, const struct gw_transport *transport,
			   const struct tcp_local *local, struct tcp_loop **out);
void gw_tcp_shut(void *state);
gw_status gw_tcp_buffer_register(void *state, struct gw_buffer *buffer);
void gw_tcp_buffer_release(void *state, struct gw_buffer *buffer);
size_t gw_tcp_poll(void *state, struct gw_completion *completions, size_t max, uint64_t timeout_ns);
bool gw_tcp_busy(void *state);
int gw_tcp_wait_fd(void *state, uint64_t *until_ns);
void gw_tcp_wake(void *state);

/* --- client.c: endpoints --- */
gw_status gw_tcp_connect(void *state, const struct gw_connect_options *options, void *cookie, struct gw_endpoint **out);
void gw_tcp_close(struct gw_endpoint *base);
size_t gw_tcp_readv(struct gw_endpoint *base, struct gw_read_set *set, const struct gw_region *region,
		    struct gw_buffer *buffer, const struct gw_span *spans, size_t n, bool last);
size_t gw_tcp_gather(struct gw_endpoint *base, struct gw_read_set *set, const struct gw_region *region,
		     struct gw_buffer *buffer, const struct gw_gather *gather, size_t n, bool last);
gw_status gw_tcp_request(struct gw_endpoint *base, uint16_t op, const struct gw_once *once, const void *bytes,
			 uint32_t n, uint64_t deadline_ns, void *cookie);
void gw_tcp_cancel(struct gw_endpoint *base, struct gw_read_set *set);
void gw_tcp_request_cancel(struct gw_endpoint *base, const void *cookie);
/* Checks deadlines and liveness of the loop's endpoints and sets the loop's next timer. */
void gw_tcp_clients_tick(struct tcp_loop *loop, uint64_t now_ns);
bool gw_tcp_clients_busy(const struct tcp_loop *loop);
void gw_tcp_clients_end(struct tcp_loop *loop);

/* --- client_lone.c --- */
/* The io whose short answer is the only open work of the loop and may be awaited alone; else NULL. */
struct tcp_io *gw_tcp_lone(struct tcp_loop *loop);
/* Reports the outcome of that wait. */
void gw_tcp_lone_ended(struct tcp_loop *loop, enum tcp_awaited outcome);

/* --- client_dynamic.c --- */
gw_status gw_tcp_region_open(struct gw_endpoint *base, uint32_t id, uint32_t generation, void *cookie);
/* A reader of dynamic regions over another transport: it is notified of withdrawals, and releases the region. */
struct tcp_dynamic_reader {
	void (*withdrawn)(struct tcp_dynamic_reader *reader, uint32_t id, uint32_t generation);
};
void gw_tcp_dynamic_reader(struct gw_endpoint *base, struct tcp_dynamic_reader *reader);
/* As gw_tcp_region_open; the server also keeps the memory until the client releases it. */
gw_status gw_tcp_dynamic_pin(struct gw_endpoint *base, uint32_t id, uint32_t generation, void *cookie);
void gw_tcp_dynamic_release(struct gw_endpoint *base, uint32_t id, uint32_t generation);

/* --- server.c: accepted connections --- */
/* Takes over the socket and the caller's reference to the listener; on failure closes the socket. */
void gw_tcp_server_begin(struct tcp_loop *loop, int fd, struct tcp_listener *listener);
void gw_tcp_servers_tick(struct tcp_loop *loop, uint64_t now_ns);
/* Ends the connections of listeners that are closing; all = true: every one. */
void gw_tcp_servers_end(struct tcp_loop *loop, bool all);
/* Ends each connection of a draining listener when no answer is owed to it. */
void gw_tcp_servers_drain(struct tcp_loop *loop);
/* Notifies clients of withdrawn regions that they pinned. */
void gw_tcp_servers_withdrawn(struct tcp_loop *loop);
/* Runs the deferred call that has waited longest, if one exists. */
void gw_tcp_servers_call(struct tcp_loop *loop);

/* --- listener.c --- */
struct tcp_accept { /* a socket that listens */
	struct tcp_io io;
	struct tcp_listener *listener; /* with a reference while the driver has the io */
};

struct tcp_listener {
	struct gw_listener base;
	struct gw_dynamic_region_watcher watcher;
	struct tcp_accept *accept;
	_Atomic(struct tcp_accept *) renewed; /* the loop will use it instead of the current socket */
	struct tcp_loop *loop;                /* the loop that accepts */
	const struct tcp_local *local;        /* NULL: TCP */
	void *export;                         /* for unix sockets; else NULL */
	struct tcp_listener *next;            /* in the loop's list, while accepting */
	_Atomic uint32_t references;          /* owner, sockets, and one for each connection and inbox entry */
	_Atomic bool stopped, draining, closing;
	uint64_t retry_ns; /* after descriptors ran out: when to accept again */
	bool short_of_descriptors;
	uint32_t pending_max; /* pending clients of one loop */
	uint32_t loop_count, turn;
	struct tcp_loop *loops[];
};
gw_status gw_tcp_listen(struct gw_poll_group *const *groups, uint32_t group_count, const struct gw_address *address,
			struct gw_service *service, struct gw_listener **out);
/* The same for another transport's sockets. They share TCP's loops, so a server's poll group waits in one part only. */
gw_status gw_tcp_listen_as(const struct gw_transport *transport, const struct tcp_local *local,
			   struct gw_poll_group *const *groups, uint32_t group_count, const struct gw_address *address,
			   struct gw_service *service, struct gw_listener **out);
void gw_tcp_listener_stop(struct gw_listener *base, bool close);
void gw_tcp_listener_drain(struct gw_listener *base);
void gw_tcp_listener_free(struct gw_listener *base);
gw_status gw_tcp_listener_keep(struct gw_listener *base);
void gw_tcp_listeners_tick(struct tcp_loop *loop, uint64_t now_ns);
/* Starts to use renewed sockets. */
void gw_tcp_listeners_renew(struct tcp_loop *loop);
/* Take over, or close, the connections that another thread dealt to this loop. */
void gw_tcp_inbox_take(struct tcp_loop *loop);
void gw_tcp_inbox_drop(struct tcp_loop *loop);

/* --- listener_refs.c --- */
void gw_tcp_listener_release(struct tcp_listener *listener);
uint32_t gw_tcp_loop_number(const struct tcp_listener *listener, const struct tcp_loop *loop);
void gw_tcp_accept_drop(struct tcp_accept *accept); /* for a socket that no driver has; NULL is allowed */

/* --- bind.c, which also has gw_port_reserve of transport.h --- */
gw_status gw_socket_listen(const struct gw_address *address, int *out, uint16_t *port);

/* --- socket.c --- */
struct addrinfo;
/* The address of a numeric host, without a look-up; false: the host is a name. freeaddrinfo frees *list. */
bool gw_socket_number(const struct gw_address *address, struct addrinfo **list);
/* Every address of host and port. Blocks while the resolver blocks. GW_NOT_FOUND, GW_NO_MEMORY. */
gw_status gw_socket_resolve(const struct gw_address *address, struct addrinfo **list);
/* The current length of the socket's receive buffer; the kernel enlarges it as a stream needs. */
uint32_t gw_socket_receive_buffer(int fd);
/* Sets TCP_NODELAY and keepalive, which finds half-open peers within about a minute. */
void gw_socket_tune(int fd);
/* The process that listens on the port, as "process PID (name)", or "another process" if /proc does not show it. */
void gw_socket_holder(uint16_t port, char *text, size_t bytes);

#endif
