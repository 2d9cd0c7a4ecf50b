/* The threads of a server and its listeners: started, drained and stopped, and stopped for a hand-over.
 *
 *   open groups -> listen -> start threads -> serve -> drain -> stop threads
 *                    `<------------ thaw <------------ freeze: the sockets stay open, and clients wait in their queues
 *
 * Each thread polls one group. The listeners assign connections to the groups in turn. The first thread accepts, so it
 * stops accepting too. Fails on a port that is taken, on a required transport that is missing, and if no thread can be
 * started.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/errors/log.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "core/system/thread.h"
#include "server/server.h"

#define POLL_NS       (100 * GW_NS_PER_MS)
#define DRAIN_STEP_NS (2 * GW_NS_PER_MS)

/* In the thread that accepts. */
static void stop_accepting(struct gw_server *server)
{
	if (atomic_load(&server->yield)) {
		server->yielded = gw_listener_yield(server->listener, &server->sockets[0]);
		if (server->yielded == GW_OK && server->local)
			server->yielded = gw_listener_yield(server->local, &server->sockets[1]);
	}
	void (*end)(struct gw_listener *) = atomic_load(&server->yield) ? gw_listener_move : gw_listener_drain;
	end(server->listener);
	if (server->local)
		end(server->local);
	atomic_store(&server->draining, true);
}

static void *server_serve(void *argument)
{
	struct gw_server_thread *self = argument;
	struct gw_server *server = self->server;
	bool accepting = true;
	pthread_mutex_lock(&server->gate);
	pthread_mutex_unlock(&server->gate);
	while (!atomic_load(&server->stop)) {
		if (self->number == 0 && accepting && atomic_load(&server->stop_accepting)) {
			stop_accepting(server);
			accepting = false;
		}
		gw_poll_group_poll(self->group, NULL, 0, POLL_NS);
	}
	return NULL;
}

/* If the kernel refuses, the thread stays unbound. */
static void server_pin(const struct gw_server *server, pthread_t thread, uint32_t number)
{
	cpu_set_t allowed, wanted;
	uint32_t before =
		server->options.part * server->options.threads; /* threads of earlier parts' servers on this host */
	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 ||
	    !gw_server_place("", server->options.pin, server->options.numa, before + number, &allowed, &wanted))
		return;
	int error = pthread_setaffinity_np(thread, sizeof(wanted), &wanted);
	if (error)
		gw_log(GW_LOG_WARN, "thread %u is not pinned: %s", number, strerror(error));
}

gw_status gw_server_open_groups(struct gw_server *server)
{
	server->threads = gw_calloc(server->options.threads, sizeof(*server->threads));
	if (!server->threads)
		return GW_NO_MEMORY;
	struct gw_poll_group_options options = {.tcp_driver = server->options.tcp_driver,
						.spin_ns = server->options.spin_us * 1000ull};
	for (uint32_t i = 0; i < server->options.threads; i++) {
		server->threads[i].server = server;
		server->threads[i].number = i;
		gw_status status = gw_poll_group_create(&options, &server->threads[i].group);
		if (status != GW_OK)
			return status;
	}
	return GW_OK;
}

/* The transport that the user requires in addition to TCP; NULL: every possible one. */
static const struct gw_scheme *asked_transport(const struct gw_server *server)
{
	return server->options.transport ? gw_scheme_find(server->options.transport) : NULL;
}

/* Listens for clients on other hosts: over RDMA, whose listener also accepts TCP clients, or over TCP alone. Other
 * hosts cannot reach a loopback address, so there it listens over TCP alone, unless the user requires RDMA. */
static gw_status listen_network(struct gw_server *server, struct gw_poll_group *const *groups)
{
	const struct gw_scheme *scheme = NULL, *asked = asked_transport(server);
	bool loopback = gw_address_is_loopback(&server->options.listen);
	while ((scheme = gw_scheme_below(scheme)) != NULL) {
		struct gw_address address = server->options.listen;
		if (scheme->local || (asked ? scheme != asked : loopback))
			continue;
		snprintf(address.scheme, sizeof(address.scheme), "%s", scheme->name);
		gw_status status = gw_listen_on(groups, server->options.threads, &address, server->service,
						server->sockets[0], &server->listener);
		if (status == GW_OK || status == GW_BUSY || asked || scheme == server->kept[0])
			return status;
		gw_log(status == GW_UNSUPPORTED ? GW_LOG_INFO : GW_LOG_WARN, "clients on other hosts use TCP alone: %s",
		       gw_last_error());
	}
	return gw_listen_on(groups, server->options.threads, &server->options.listen, server->service,
			    server->sockets[0], &server->listener);
}

/* Listens for clients on this host. If that fails, these clients use the network transport. The failure is an error
 * only if the user requires the local transport. */
static gw_status listen_local(struct gw_server *server, struct gw_poll_group *const *groups)
{
	const struct gw_scheme *scheme = NULL, *asked = asked_transport(server);
	while ((scheme = gw_scheme_below(scheme)) != NULL) {
		struct gw_address address = {0}; /* the listener takes the incarnation as name */
		if (!scheme->local || (asked && scheme != asked))
			continue;
		snprintf(address.scheme, sizeof(address.scheme), "%s", scheme->name);
		gw_status status = gw_listen_on(groups, server->options.threads, &address, server->service,
						server->sockets[1], &server->local);
		if (status == GW_OK || asked || scheme == server->kept[1])
			return status;
		gw_log(GW_LOG_INFO, "clients on this host use TCP: %s", gw_last_error());
	}
	return GW_OK;
}

gw_status gw_server_listen(struct gw_server *server)
{
	struct gw_poll_group *groups[GW_SERVER_THREADS_MAX];
	for (uint32_t i = 0; i < server->options.threads; i++)
		groups[i] = server->threads[i].group;
	if (server->reservation >= 0)
		gw_port_yield(server->reservation);
	gw_status status = listen_network(server, groups);
	if (server->reservation >= 0)
		close(server->reservation);
	server->reservation = -1;
	if (status == GW_OK)
		status = listen_local(server, groups);
	for (int i = 0; i < 2; i++) {
		if (status == GW_OK && server->sockets[i] >= 0)
			close(server->sockets[i]);
		server->sockets[i] = status == GW_OK ? -1 : server->sockets[i];
	}
	return status;
}

gw_status gw_server_start_threads(struct gw_server *server)
{
	for (uint32_t i = 0; i < server->options.threads; i++) {
		struct gw_server_thread *thread = &server->threads[i];
		int error = gw_thread_start(&thread->thread, server_serve, thread);
		if (error)
			return gw_thread_failed(error, "cannot start thread %u", i);
		thread->started = true;
		server_pin(server, thread->thread, i);
	}
	return GW_OK;
}

/* Until all accepted work is answered, or the time is up. */
void gw_server_drain(struct gw_server *server, uint32_t drain_ms)
{
	atomic_store(&server->stop_accepting, true);
	gw_poll_group_wake(server->threads[0].group);
	uint64_t deadline = gw_deadline_ns(drain_ms);
	struct gw_service_counters counters;
	for (;;) {
		gw_service_counters(server->service, &counters);
		if (atomic_load(&server->draining) && counters.connections_open == 0 && counters.calls_open == 0)
			return;
		if (gw_now_ns() >= deadline)
			break;
		struct timespec step = {.tv_nsec = DRAIN_STEP_NS};
		nanosleep(&step, NULL);
	}
	gw_log(GW_LOG_WARN, "closing %llu connections whose work is still open after %u ms",
	       (unsigned long long)counters.connections_open, drain_ms);
}

void gw_server_stop_threads(struct gw_server *server)
{
	uint32_t threads = server->threads ? server->options.threads : 0;
	atomic_store(&server->stop, true);
	for (uint32_t i = 0; i < threads; i++) {
		if (!server->threads[i].started)
			continue;
		gw_poll_group_wake(server->threads[i].group);
		pthread_join(server->threads[i].thread, NULL);
		server->threads[i].started = false;
	}
	if (server->listener)
		gw_listener_stop(server->listener, true);
	gw_listener_free(server->local);
	gw_listener_free(server->listener);
	server->local = server->listener = NULL;
}

gw_status gw_server_freeze(struct gw_server *server, uint32_t drain_ms)
{
	server->yielded = GW_OK;
	atomic_store(&server->yield, true);
	gw_server_drain(server, drain_ms);
	gw_server_stop_threads(server);
	return server->yielded == GW_OK ? GW_OK : gw_fail(server->yielded, "a listening socket cannot be handed over");
}

gw_status gw_server_thaw(struct gw_server *server)
{
	atomic_store(&server->yield, false);
	atomic_store(&server->stop_accepting, false);
	atomic_store(&server->draining, false);
	atomic_store(&server->stop, false);
	gw_status status = gw_server_listen(server);
	return status == GW_OK ? gw_server_start_threads(server) : status;
}
