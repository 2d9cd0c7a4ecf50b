/* Accepting clients.
 *
 *   socket ready (first group's loop) -> accept -> dealt to a loop in turn: this loop at once, others by inbox and wake
 *
 * Ending: stop removes the socket. With close = true every loop ends the connections of this listener. A loop that is
 * being polled is woken and does that itself. If no thread polls a loop, the stopping thread takes possession of it for
 * a moment. Fails on a taken port, and names the process that has it. Running out of descriptors only pauses accepting.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "core/errors/log.h"
#include "core/errors/status.h"
#include "core/memory/alloc.h"
#include "core/memory/list.h"
#include "core/system/clock.h"
#include "transport/tcp/server/server.h"

#define ACCEPTS_MAX 64                   /* clients accepted in one turn of the listening socket */
#define PAUSE_NS    (100 * GW_NS_PER_MS) /* pause of accepting after descriptors ran out */

static struct tcp_listener *tcp_listener_of_io(struct tcp_io *io)
{
	return ((struct tcp_accept *)(void *)((uint8_t *)io - offsetof(struct tcp_accept, io)))->listener;
}

/* --- References: the owner, the sockets and each connection have one. --- */

void gw_tcp_accept_drop(struct tcp_accept *accept)
{
	if (!accept)
		return;
	gw_tcp_io_close(&accept->io);
	gw_free(accept);
}

void gw_tcp_listener_release(struct tcp_listener *listener)
{
	if (atomic_fetch_sub(&listener->references, 1) != 1)
		return;
	gw_tcp_accept_drop(atomic_load(&listener->renewed));
	if (listener->export)
		listener->local->export_free(listener->export);
	gw_free(listener);
}

uint32_t gw_tcp_loop_number(const struct tcp_listener *listener, const struct tcp_loop *loop)
{
	for (uint32_t i = 0; i < listener->loop_count; i++)
		if (listener->loops[i] == loop)
			return i;
	return 0;
}

/* --- Accepting. --- */

/* The loop belongs to another thread. */
static void hand_to_loop(struct tcp_listener *listener, struct tcp_loop *loop, int fd)
{
	pthread_mutex_lock(&loop->inbox_lock);
	bool full = loop->inbox_count == TCP_INBOX_MAX;
	if (!full) {
		loop->inbox[loop->inbox_count].fd = fd;
		loop->inbox[loop->inbox_count++].listener = listener;
		atomic_store(&loop->inbox_filled, true);
	}
	pthread_mutex_unlock(&loop->inbox_lock);
	if (full) {
		gw_count(&listener->base.service->counts.refused, 1);
		gw_socket_close(fd);
		gw_tcp_listener_release(listener);
	}
	/* The loop's thread may sleep in another backend of the group. */
	gw_poll_group_wake(loop->group);
}

void gw_tcp_inbox_take(struct tcp_loop *loop)
{
	for (;;) {
		pthread_mutex_lock(&loop->inbox_lock);
		if (loop->inbox_count == 0) {
			atomic_store(&loop->inbox_filled, false);
			pthread_mutex_unlock(&loop->inbox_lock);
			return;
		}
		loop->inbox_count--;
		int fd = loop->inbox[loop->inbox_count].fd;
		struct tcp_listener *listener = loop->inbox[loop->inbox_count].listener;
		pthread_mutex_unlock(&loop->inbox_lock);
		gw_tcp_server_begin(loop, fd, listener);
	}
}

void gw_tcp_inbox_drop(struct tcp_loop *loop)
{
	for (uint32_t i = 0; i < loop->inbox_count; i++) {
		gw_socket_close(loop->inbox[i].fd);
		gw_tcp_listener_release(loop->inbox[i].listener);
	}
	loop->inbox_count = 0;
}

static void tcp_listener_welcome(struct tcp_listener *listener, int fd)
{
	const struct tcp_local *local = listener->local;
	char text[GW_ADDRESS_MAX];
	listener->short_of_descriptors = false;
	if (local && local->admit(fd)) {
		gw_log(GW_LOG_WARN, "%s: a client is refused: %s", gw_address_text(&listener->base.address, text),
		       gw_last_error());
		gw_count(&listener->base.service->counts.refused, 1);
		gw_socket_close(fd);
		return;
	}
	struct tcp_loop *loop = listener->loops[listener->turn++ % listener->loop_count];
	atomic_fetch_add(&listener->references, 1);
	if (loop == listener->loop)
		gw_tcp_server_begin(loop, fd, listener);
	else
		hand_to_loop(listener, loop, fd);
}

static void accept_ready(struct tcp_io *io)
{
	struct tcp_listener *listener = tcp_listener_of_io(io);
	char text[GW_ADDRESS_MAX];
	for (int i = 0; i < ACCEPTS_MAX; i++) {
		int fd = accept4(io->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			tcp_listener_welcome(listener, fd);
			continue;
		}
		if (errno == EAGAIN || errno == EWOULDBLOCK) {
			listener->loop->driver->ops->kick(listener->loop->driver, io);
			return;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			if (!listener->short_of_descriptors)
				gw_log(GW_LOG_WARN,
				       "listener at %s: %s; new clients wait until others leave (" GW_FILES_HINT ")",
				       gw_address_text(&listener->base.address, text), strerror(errno));
			listener->short_of_descriptors = true;
			listener->retry_ns = gw_now_ns() + PAUSE_NS;
			tcp_loop_timer(listener->loop, listener->retry_ns);
			return;
		}
		/* Other errors concern one client alone: ECONNABORTED, EPERM, a network error. */
	}
	io->readable = true; /* more may be waiting, and an edge comes only once */
	listener->loop->driver->ops->kick(listener->loop->driver, io);
}

void gw_tcp_listeners_tick(struct tcp_loop *loop, uint64_t now_ns)
{
	for (struct tcp_listener *listener = loop->listeners; listener; listener = listener->next) {
		if (!listener->retry_ns)
			continue;
		if (now_ns >= listener->retry_ns) {
			listener->retry_ns = 0;
			listener->accept->io.readable = true;
			loop->driver->ops->kick(loop->driver, &listener->accept->io);
		} else {
			tcp_loop_timer(loop, listener->retry_ns);
		}
	}
}

static void accept_gone(struct tcp_io *io)
{
	struct tcp_listener *listener = tcp_listener_of_io(io);
	listener->loop->ios--;
	gw_free((uint8_t *)io - offsetof(struct tcp_accept, io));
	gw_tcp_listener_release(listener);
}

static const struct tcp_io_events accept_events = {.ready = accept_ready, .gone = accept_gone};

static struct tcp_accept *accept_make(struct tcp_listener *listener)
{
	struct tcp_accept *accept = gw_calloc(1, sizeof(*accept));
	if (accept) {
		accept->listener = listener;
		accept->io.events = &accept_events;
		accept->io.watch = POLLIN;
		accept->io.fd = -1;
	}
	return accept;
}

/* In the loop's thread. */
static gw_status accept_begin(struct tcp_listener *listener, struct tcp_accept *accept)
{
	struct tcp_driver *driver = listener->loop->driver;
	gw_status status = driver->ops->add(driver, &accept->io);
	if (status != GW_OK)
		return status;
	atomic_fetch_add(&listener->references, 1);
	listener->accept = accept;
	listener->loop->ios++;
	driver->ops->kick(driver, &accept->io);
	return GW_OK;
}

/* Undoes the listen before any client could connect; removes the name, unless the caller had it before. */
static void tcp_listener_unlisten(struct tcp_listener *listener, bool named)
{
	if (!listener->export)
		return;
	if (!named)
		listener->local->stop(listener->export);
	listener->local->export_free(listener->export);
}

/* A region was withdrawn: every loop checks its connections. */
static void tcp_listener_withdrawn(struct gw_dynamic_region_watcher *watcher)
{
	struct tcp_listener *listener =
		(struct tcp_listener *)(void *)((uint8_t *)watcher - offsetof(struct tcp_listener, watcher));
	for (uint32_t i = 0; i < listener->loop_count; i++) {
		atomic_store(&listener->loops[i]->withdrawn, true);
		gw_poll_group_wake(listener->loops[i]->group);
	}
}

gw_status gw_tcp_listen_as(const struct gw_transport *transport, const struct tcp_local *local,
			   struct gw_poll_group *const *groups, uint32_t group_count, const struct gw_address *address,
			   struct gw_service *service, int socket, struct gw_listener **out)
{
	*out = NULL;
	assert(group_count > 0);
	struct tcp_listener *listener = gw_calloc(1, sizeof(*listener) + group_count * sizeof(struct tcp_loop *));
	if (!listener)
		return GW_NO_MEMORY;
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < group_count && status == GW_OK; i++) {
		void *state;
		status = gw_poll_group_state(groups[i], &gw_transport_tcp, &state);
		listener->loops[i] = state;
	}
	if (status != GW_OK)
		goto free_listener;
	listener->base = (struct gw_listener){.transport = transport, .address = *address, .service = service};
	listener->local = local;
	listener->loop_count = group_count;
	listener->pending_max = service->limits.unproven / group_count;
	listener->loop = listener->loops[0];
	struct tcp_accept *accept = accept_make(listener);
	if (!accept) {
		status = GW_NO_MEMORY;
		goto free_listener;
	}
	if (socket >= 0)
		accept->io.fd = fcntl(socket, F_DUPFD_CLOEXEC, 0);
	accept->io.shared = socket >= 0;
	if (socket >= 0 && accept->io.fd < 0)
		status = gw_fail_errno(GW_LIMIT, errno, "a socket that listens");
	else if (listener->local)
		status = listener->local->listen(&listener->base.address, service, &accept->io.fd, &listener->export);
	else if (socket < 0)
		status = gw_socket_listen(address, &accept->io.fd, &listener->base.address.port);
	if (status != GW_OK)
		goto free_accept;
	listener->references = 1;
	status = accept_begin(listener, accept);
	if (status != GW_OK)
		goto close_socket;
	listener->next = listener->loop->listeners;
	listener->loop->listeners = listener;
	listener->watcher.withdrawn = tcp_listener_withdrawn;
	gw_dynamic_region_watch(service, &listener->watcher);
	*out = &listener->base;
	return GW_OK;

close_socket:
	tcp_listener_unlisten(listener, socket >= 0);
	gw_tcp_io_close(&accept->io);
	accept->io.fd = -1;
free_accept:
	if (accept->io.fd >= 0) /* a duplicate */
		gw_tcp_io_close(&accept->io);
	gw_free(accept);
free_listener:
	gw_free(listener);
	return status;
}

gw_status gw_tcp_listen(struct gw_poll_group *const *groups, uint32_t group_count, const struct gw_address *address,
			struct gw_service *service, int socket, struct gw_listener **out)
{
	return gw_tcp_listen_as(&gw_transport_tcp, NULL, groups, group_count, address, service, socket, out);
}

/* False: a thread polls the loop. */
static bool close_in(struct tcp_loop *loop)
{
	bool expected = false;
	if (!atomic_compare_exchange_strong(&loop->owned, &expected, true))
		return false;
	gw_tcp_inbox_take(loop);
	gw_tcp_servers_end(loop, false);
	atomic_store(&loop->owned, false);
	return true;
}

static void tcp_listener_stop_accepting(struct tcp_listener *listener)
{
	if (atomic_exchange(&listener->stopped, true))
		return;
	GW_SLIST_REMOVE(listener->loop->listeners, listener, next);
	if (listener->export && !listener->yielded)
		listener->local->stop(listener->export);
	listener->loop->driver->ops->remove(listener->loop->driver, &listener->accept->io);
}

gw_status gw_tcp_listener_yield(struct gw_listener *base, int *socket)
{
	struct tcp_listener *listener = (struct tcp_listener *)base;
	/* A renewed socket has the name; the current one's clients lose the connection and retry. */
	struct tcp_accept *renewed = atomic_exchange(&listener->renewed, NULL);
	*socket = fcntl(renewed ? renewed->io.fd : listener->accept->io.fd, F_DUPFD_CLOEXEC, 0);
	if (*socket < 0) {
		gw_status status = gw_fail_errno(GW_LIMIT, errno, "a socket that listens");
		gw_tcp_accept_drop(atomic_exchange(&listener->renewed, renewed));
		return status;
	}
	if (renewed)
		renewed->io.shared = true;
	gw_tcp_accept_drop(renewed);
	listener->accept->io.shared = !renewed;
	listener->yielded = true;
	tcp_listener_stop_accepting(listener);
	return GW_OK;
}

gw_status gw_tcp_listener_keep(struct gw_listener *base)
{
	struct tcp_listener *listener = (struct tcp_listener *)base;
	struct tcp_accept *accept = accept_make(listener);
	if (!accept)
		return GW_NO_MEMORY;
	gw_status status = listener->local->keep(listener->export, &accept->io.fd);
	if (status != GW_OK || accept->io.fd < 0) {
		gw_free(accept);
		return status;
	}
	gw_tcp_accept_drop(atomic_exchange(&listener->renewed, accept));
	atomic_store(&listener->loop->renewed, true);
	gw_poll_group_wake(listener->loop->group);
	return GW_OK;
}

/* Starts to use a renewed socket. The old socket's last turn accepts the clients in its queue. Clients that it has not
 * accepted by then lose the connection and retry. */
static void tcp_listener_renew(struct tcp_listener *listener, struct tcp_accept *accept)
{
	struct tcp_accept *old = listener->accept;
	char text[GW_ADDRESS_MAX];
	if (accept_begin(listener, accept) == GW_OK) {
		listener->loop->driver->ops->remove(listener->loop->driver, &old->io);
		return;
	}
	gw_log(GW_LOG_WARN, "%s: its socket could not be renewed: %s", gw_address_text(&listener->base.address, text),
	       gw_last_error());
	listener->local->stop(listener->export); /* so that the next check finds the name missing */
	gw_tcp_accept_drop(accept);
}

void gw_tcp_listeners_renew(struct tcp_loop *loop)
{
	atomic_store(&loop->renewed, false);
	for (struct tcp_listener *listener = loop->listeners; listener; listener = listener->next) {
		struct tcp_accept *accept = atomic_exchange(&listener->renewed, NULL);
		if (accept)
			tcp_listener_renew(listener, accept);
	}
}

/* Every loop looks at the connections: gw_tcp_servers_drain. */
static void tcp_listener_look(const struct tcp_listener *listener)
{
	for (uint32_t i = 0; i < listener->loop_count; i++) {
		struct tcp_loop *loop = listener->loops[i];
		atomic_fetch_add(&loop->close_asked, 1);
		loop->driver->ops->wake(loop->driver);
	}
}

void gw_tcp_listener_drain(struct gw_listener *base)
{
	struct tcp_listener *listener = (struct tcp_listener *)base;
	tcp_listener_stop_accepting(listener);
	atomic_store(&listener->draining, true);
	tcp_listener_look(listener);
}

void gw_tcp_listener_stop(struct gw_listener *base, bool close)
{
	struct tcp_listener *listener = (struct tcp_listener *)base;
	tcp_listener_stop_accepting(listener);
	if (!close) {
		if (atomic_load(&base->moved)) /* the connections go on, and carry the notice */
			tcp_listener_look(listener);
		return;
	}
	gw_dynamic_region_unwatch(listener->base.service, &listener->watcher);
	atomic_store(&listener->closing, true);
	/* A polled loop ends its connections itself, soon. This thread takes possession of the others. */
	for (uint32_t i = 0; i < listener->loop_count; i++) {
		struct tcp_loop *loop = listener->loops[i];
		uint32_t ticket = atomic_fetch_add(&loop->close_asked, 1) + 1;
		loop->driver->ops->wake(loop->driver);
		while (!close_in(loop) && (int32_t)(atomic_load(&loop->close_done) - ticket) < 0)
			nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
	}
}

void gw_tcp_listener_free(struct gw_listener *base)
{
	struct tcp_listener *listener = (struct tcp_listener *)base;
	gw_tcp_listener_stop(base, true);
	gw_tcp_listener_release(listener);
}
