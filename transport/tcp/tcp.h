/* The TCP backend's objects, as its files see each other. */
#ifndef GW_TRANSPORT_TCP_H
#define GW_TRANSPORT_TCP_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/system/clock.h"
#include "transport/completions.h"
#include "transport/service_private.h"
#include "transport/tcp/driver.h"
#include "transport/tcp/fd_passing.h"
#include "transport/tcp/wire.h"

extern const struct gw_transport gw_transport_tcp;

#define TCP_INBOX_MAX 256

struct tcp_client;
struct tcp_server;
struct tcp_listener;

/* What connections over unix sockets do otherwise, where the welcome is followed by the memory itself: transport/shm.
 */
struct tcp_local {
	/* A socket connected to who has the name. GW_PEER_LOST. */
	gw_status (*dial)(const struct gw_address *address, int *fd);
	/* A listening socket, and what it exports to clients; the address's name is filled in. */
	gw_status (*listen)(struct gw_address *address, const struct gw_service *service, int *fd, void **export);
	/* The name is there still: *fd is -1. Else a socket that listens under it now. */
	gw_status (*keep)(void *export, int *fd);
	/* Takes the name away: nobody new comes. */
	void (*stop)(void *export);
	void (*export_free)(void *export);
	/* Whether the client that connected may. GW_REFUSED. */
	gw_status (*admit)(int fd);
	/* The body of the MEMORY frame, of at most so many bytes, and the descriptors that come with it. */
	uint32_t (*tell)(const void *export, uint8_t *body, struct tcp_fd_passing *fd_passing);
	/* Maps what has come. */
	gw_status (*map)(const struct wire_memories *told, struct tcp_fd_passing *fd_passing, void **mapped);
	void (*unmap)(void *mapped);
	/* Late regions: a descriptor for the client, and what the client makes of it. */
	gw_status (*share)(const struct gw_dynamic_region *region, int *fd);
	gw_status (*map_dynamic)(int fd, uint64_t bytes, void **mapping, const uint8_t **base);
	void (*unmap_dynamic)(void *mapping);
};

/* A poll group's part: one driver, and what it drives. One thread's, but for the inbox, `owned` and wake. */
struct tcp_loop {
	struct gw_poll_group *group;
	const struct gw_transport *transport; /* whose part it is */
	const struct tcp_local *local;        /* its endpoints'; NULL: TCP */
	struct tcp_driver *driver;
	struct gw_completions completions;
	struct tcp_client *clients;
	struct tcp_server *servers;
	struct tcp_server *oldest_pending, *newest_pending; /* of the servers, those that have proved nothing yet */
	uint32_t pending_count;
	struct tcp_server *calls, *last_call; /* whose handlers have more to do: each has its turn */
	uint64_t bytes_ended;                 /* buffers of connections that have ended since the last trim */
	struct tcp_listener *listeners;       /* those that accept here */
	uint32_t ios;                         /* added and not gone yet */
	uint64_t next_timer_ns;               /* nothing is due before */
	uint64_t now_ns;                      /* while polled: when this run began; 0: nobody has looked yet */
	uint32_t turns;                       /* of shm: polls */
	uint32_t lone_waits, lone_pause;      /* client_lone.c */
	/* Held while polled, so that the thread that stops a listener may end the connections of a loop that nobody
	 * polls. */
	_Atomic bool owned;
	_Atomic bool inbox_filled;
	_Atomic bool withdrawn;                   /* a region was: clients that hold it are to be told */
	_Atomic bool renewed;                     /* a listener's socket was */
	_Atomic uint32_t close_asked, close_done; /* running numbers of requests to end or drain connections */
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

/* For the driver's callbacks: one look at the clock serves all that one run brings. */
static inline uint64_t tcp_loop_now(struct tcp_loop *loop)
{
	if (!loop->now_ns)
		loop->now_ns = gw_now_ns();
	return loop->now_ns;
}

/* --- tcp.c: the slots that loops over unix sockets have in common with TCP's --- */
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
/* Deadlines and liveness; looks at every endpoint of the loop and sets the loop's next timer. */
void gw_tcp_clients_tick(struct tcp_loop *loop, uint64_t now_ns);
bool gw_tcp_clients_busy(const struct tcp_loop *loop);
void gw_tcp_clients_end(struct tcp_loop *loop);

/* --- client_lone.c --- */
/* The io whose short answer is all that the loop waits for, and may be awaited by itself; else NULL. */
struct tcp_io *gw_tcp_lone(struct tcp_loop *loop);
/* How that went. */
void gw_tcp_lone_ended(struct tcp_loop *loop, enum tcp_awaited outcome);

/* --- client_dynamic.c --- */
gw_status gw_tcp_region_open(struct gw_endpoint *base, uint32_t id, uint32_t generation, void *cookie);
/* Who reads late regions by a way of its own: hears of withdrawals, and lets go when it reads no more. */
struct tcp_dynamic_reader {
	void (*withdrawn)(struct tcp_dynamic_reader *reader, uint32_t id, uint32_t generation);
};
void gw_tcp_dynamic_reader(struct gw_endpoint *base, struct tcp_dynamic_reader *reader);
/* As gw_tcp_region_open, and the server keeps the memory until it is released. */
gw_status gw_tcp_dynamic_pin(struct gw_endpoint *base, uint32_t id, uint32_t generation, void *cookie);
void gw_tcp_dynamic_release(struct gw_endpoint *base, uint32_t id, uint32_t generation);

/* --- server.c: accepted connections --- */
/* Takes the socket in any case; on failure it is closed. Takes the caller's reference to the listener. */
void gw_tcp_server_begin(struct tcp_loop *loop, int fd, struct tcp_listener *listener);
void gw_tcp_servers_tick(struct tcp_loop *loop, uint64_t now_ns);
/* Ends the connections of listeners that are closing; all = true: every one. */
void gw_tcp_servers_end(struct tcp_loop *loop, bool all);
/* Those of listeners that drain end as soon as they are owed nothing. */
void gw_tcp_servers_drain(struct tcp_loop *loop);
/* Clients that hold a region which was withdrawn are told. */
void gw_tcp_servers_withdrawn(struct tcp_loop *loop);
/* One run of the deferred call that has waited longest; there must be one, or nothing happens. */
void gw_tcp_servers_call(struct tcp_loop *loop);

/* --- listener.c --- */
struct tcp_accept { /* a socket that listens */
	struct tcp_io io;
	struct tcp_listener *listener; /* with a reference, once the driver has it */
};

struct tcp_listener {
	struct gw_listener base;
	struct gw_dynamic_region_watcher watcher;
	struct tcp_accept *accept;
	_Atomic(struct tcp_accept *) renewed; /* to be taken into use by the loop in its place */
	struct tcp_loop *loop;                /* accepts */
	const struct tcp_local *local;        /* NULL: TCP */
	void *export;                         /* the local sockets', or NULL */
	struct tcp_listener *next;            /* in the loop, while accepting */
	_Atomic uint32_t references;          /* the owner's, the sockets', one for each connection and inbox entry */
	_Atomic bool stopped, draining, closing;
	uint64_t retry_ns; /* descriptors had run out: accept again then */
	bool short_of_descriptors;
	uint32_t pending_max; /* of one loop */
	uint32_t loop_count, turn;
	struct tcp_loop *loops[];
};
gw_status gw_tcp_listen(struct gw_poll_group *const *groups, uint32_t group_count, const struct gw_address *address,
			struct gw_service *service, struct gw_listener **out);
/* The same for another transport's sockets, in the same loops: a server's poll groups have one part to wait in. */
gw_status gw_tcp_listen_as(const struct gw_transport *transport, const struct tcp_local *local,
			   struct gw_poll_group *const *groups, uint32_t group_count, const struct gw_address *address,
			   struct gw_service *service, struct gw_listener **out);
void gw_tcp_listener_stop(struct gw_listener *base, bool close);
void gw_tcp_listener_drain(struct gw_listener *base);
void gw_tcp_listener_free(struct gw_listener *base);
gw_status gw_tcp_listener_keep(struct gw_listener *base);
void gw_tcp_listener_release(struct tcp_listener *listener);
void gw_tcp_listeners_tick(struct tcp_loop *loop, uint64_t now_ns);
/* Takes sockets into use that were made in the place of others. */
void gw_tcp_listeners_renew(struct tcp_loop *loop);
/* Connections dealt to this loop by another thread. */
void gw_tcp_inbox_take(struct tcp_loop *loop);
void gw_tcp_inbox_drop(struct tcp_loop *loop);
uint32_t gw_tcp_loop_number(const struct tcp_listener *listener, const struct tcp_loop *loop);

/* --- bind.c: and gw_port_reserve of transport.h --- */
gw_status gw_socket_listen(const struct gw_address *address, int *out, uint16_t *port);

/* --- socket.c --- */
struct addrinfo;
/* The address of a host that is a number, without looking anything up; false: it is a name. *list is freed by
 * freeaddrinfo. */
bool gw_socket_number(const struct gw_address *address, struct addrinfo **list);
/* Every address of host and port, likewise. Blocks for as long as the resolver does. GW_NOT_FOUND, GW_NO_MEMORY. */
gw_status gw_socket_resolve(const struct gw_address *address, struct addrinfo **list);
/* Bytes of the socket's receive buffer as it is now: the kernel makes it larger as a stream needs it. */
uint32_t gw_socket_receive_buffer(int fd);
/* TCP_NODELAY, keepalive: half-open peers are found within about a minute. */
void gw_socket_tune(int fd);
/* Who listens on the port, as "PID name", or "another process" where /proc does not tell. */
void gw_socket_holder(uint16_t port, char *text, size_t bytes);

#endif
