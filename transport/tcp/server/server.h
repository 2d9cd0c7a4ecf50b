/* The server's side of TCP: listeners, and the connections that they accept. server_private.h lists the files of a
 * connection. */
#ifndef GW_TRANSPORT_TCP_SERVER_SERVER_H
#define GW_TRANSPORT_TCP_SERVER_SERVER_H

#include "transport/tcp/loop.h"

/* --- server.c: accepted connections --- */
/* Takes over the socket and the caller's reference to the listener; on failure closes the socket. */
void gw_tcp_server_begin(struct tcp_loop *loop, int fd, struct tcp_listener *listener);
void gw_tcp_servers_tick(struct tcp_loop *loop, uint64_t now_ns);
/* Ends the connections of listeners that are closing; all = true: every one. */
void gw_tcp_servers_end(struct tcp_loop *loop, bool all);
/* Ends each connection of a draining listener when no answer is owed to it; notifies clients of one that has moved. */
void gw_tcp_servers_drain(struct tcp_loop *loop);
/* Notifies clients of withdrawn regions that they pinned. */
void gw_tcp_servers_withdrawn(struct tcp_loop *loop);
/* Runs the deferred call that has waited longest, if one exists. */
void gw_tcp_servers_call(struct tcp_loop *loop);
/* The poll group was woken: paused calls run again. */
void gw_tcp_servers_woken(struct tcp_loop *loop);

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
	bool yielded;                         /* another listener has the socket and the name */
	_Atomic bool stopped, draining, closing;
	uint64_t retry_ns; /* after descriptors ran out: when to accept again */
	bool short_of_descriptors;
	uint32_t pending_max; /* pending clients of one loop */
	uint32_t loop_count, turn;
	struct tcp_loop *loops[];
};
gw_status gw_tcp_listen(struct gw_poll_group *const *groups, uint32_t group_count, const struct gw_address *address,
			struct gw_service *service, int socket, struct gw_listener **out);
/* The same for another transport's sockets. They share TCP's loops, so a server's poll group waits in one part only. */
gw_status gw_tcp_listen_as(const struct gw_transport *transport, const struct tcp_local *local,
			   struct gw_poll_group *const *groups, uint32_t group_count, const struct gw_address *address,
			   struct gw_service *service, int socket, struct gw_listener **out);
void gw_tcp_listener_stop(struct gw_listener *base, bool close);
gw_status gw_tcp_listener_yield(struct gw_listener *base, int *socket);
void gw_tcp_listener_drain(struct gw_listener *base);
void gw_tcp_listener_free(struct gw_listener *base);
gw_status gw_tcp_listener_keep(struct gw_listener *base);
void gw_tcp_listeners_tick(struct tcp_loop *loop, uint64_t now_ns);
/* Starts to use renewed sockets. */
void gw_tcp_listeners_renew(struct tcp_loop *loop);
/* Take over, or close, the connections that another thread dealt to this loop. */
void gw_tcp_inbox_take(struct tcp_loop *loop);
void gw_tcp_inbox_drop(struct tcp_loop *loop);

void gw_tcp_listener_release(struct tcp_listener *listener);
uint32_t gw_tcp_loop_number(const struct tcp_listener *listener, const struct tcp_loop *loop);
void gw_tcp_accept_drop(struct tcp_accept *accept); /* for a socket that no driver has; NULL is allowed */

/* --- bind.c, which also has gw_port_reserve of transport.h --- */
gw_status gw_socket_listen(const struct gw_address *address, int *out, uint16_t *port);

#endif
