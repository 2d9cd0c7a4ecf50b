/* A service over RDMA: a TCP listener that answers the hello, and a CM listener for each poll group. Clients that have
 * got a token over their TCP connection connect to the CM listener. One thread serves a client's queue pairs and its
 * TCP connection, so they share data without locks. A client reaches its thread by the port: each CM listener has its
 * own, which the answer contains.
 *
 *   TCP hello ─▶ question ─▶ a client with a token ─▶ connection request with the token ─▶ queue pair
 *                                     └── ends with the TCP connection, or when the token expires
 *
 * Fails without a device, when the TCP listener fails, and at the locked-memory limit.
 */
#include "transport/verbs/listener_private.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "core/errors/log.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "transport/tcp/loop.h"

#define BACKLOG      128
#define REJECT_BYTES 100                 /* most bytes of text in a rejection */
#define MOVED_NS     (10 * GW_NS_PER_MS) /* time for clients to read over TCP that the server has a successor */
#define DRAIN_NS     (5 * GW_NS_PER_MS)  /* time between checks whether the last replies were sent */

/* --- CM listeners: one for each poll group. --- */

static void cm_listener_event(struct verbs_cm_handler *handler, const struct rdma_cm_event *event)
{
	struct verbs_cm_listener *cm_listener = (struct verbs_cm_listener *)handler;
	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL && cm_listener->id) {
		rdma_destroy_id(cm_listener->id);
		cm_listener->id = NULL;
	}
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return;
	gw_status status;
	if (atomic_load(&cm_listener->listener->stopped))
		status = gw_fail(GW_REFUSED, "the server accepts no more clients");
	else
		status = gw_verbs_client_accept(cm_listener, event->id, &event->param.conn);
	if (status == GW_OK)
		return;
	const char *text = gw_last_error();
	gw_count(&cm_listener->listener->base.service->counts.refused, 1);
	gw_log(GW_LOG_INFO, "an RDMA connection request is rejected: %s", text);
	rdma_reject(event->id, text, (uint8_t)strnlen(text, REJECT_BYTES));
	rdma_destroy_id(event->id);
}

/* Listens at the CM listener's own port: at the listener's address if it has only one, else at all addresses. */
static gw_status cm_listener_open(struct verbs_cm_listener *cm_listener)
{
	const struct verbs_listener *listener = cm_listener->listener;
	struct sockaddr_storage at = {.ss_family = AF_INET};
	bool one = listener->address_count == 1;
	for (uint32_t i = 0; i < listener->address_count; i++) {
		const struct handshake_address *address = &listener->addresses[i];
		if (address->family == 6) {
			at.ss_family = AF_INET6; /* takes IPv4 as well */
			if (one)
				memcpy(&((struct sockaddr_in6 *)&at)->sin6_addr, address->bytes, 16);
		} else if (one) {
			memcpy(&((struct sockaddr_in *)&at)->sin_addr, address->bytes, 4);
		}
	}
	if (rdma_create_id(cm_listener->loop->events, &cm_listener->id, &cm_listener->handler, RDMA_PS_TCP) != 0) {
		cm_listener->id = NULL;
		return gw_verbs_missing("RDMA connection manager", errno);
	}
	if (rdma_bind_addr(cm_listener->id, (struct sockaddr *)&at) != 0 || rdma_listen(cm_listener->id, BACKLOG) != 0)
		return gw_fail_errno(GW_IO, errno, "RDMA listen");
	cm_listener->port = ntohs(rdma_get_src_port(cm_listener->id));
	return GW_OK;
}

static void cm_listener_close(struct verbs_cm_listener *cm_listener)
{
	while (cm_listener->clients)
		gw_verbs_client_end(cm_listener->clients);
	gw_deadlines_end(&cm_listener->deadlines);
	if (cm_listener->id)
		rdma_destroy_id(cm_listener->id);
	cm_listener->id = NULL;
}

static void cm_listener_unlist(struct verbs_cm_listener *cm_listener)
{
	struct verbs_cm_listener **at = &cm_listener->loop->cm_listeners;
	while (*at && *at != cm_listener)
		at = &(*at)->next;
	if (*at)
		*at = cm_listener->next;
}

void gw_verbs_cm_listeners_end(struct verbs_loop *loop, bool all)
{
	for (struct verbs_cm_listener *cm_listener = loop->cm_listeners, *next; cm_listener; cm_listener = next) {
		next = cm_listener->next;
		if (!all && !atomic_load(&cm_listener->listener->closing))
			continue;
		cm_listener_close(cm_listener);
		cm_listener_unlist(cm_listener);
	}
}

void gw_verbs_take_orders(struct verbs_loop *loop)
{
	uint32_t asked = atomic_load_explicit(&loop->close_asked, memory_order_acquire);
	if (asked == atomic_load_explicit(&loop->close_done, memory_order_relaxed))
		return;
	gw_verbs_cm_listeners_end(loop, false);
	atomic_store(&loop->close_done, asked);
}

static void listener_close_loop(struct verbs_loop *loop)
{
	uint32_t token = atomic_fetch_add(&loop->close_asked, 1) + 1;
	eventfd_write(loop->wake_fd, 1);
	while ((int32_t)(atomic_load(&loop->close_done) - token) < 0) {
		bool expected = false;
		if (atomic_compare_exchange_strong(&loop->owned, &expected, true)) {
			gw_verbs_take_orders(loop);
			gw_verbs_release(loop);
		} else {
			nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
		}
	}
}

/* Handles removed devices: ends the CM listener's clients on them. The last CM listener releases the device's MRs. */
static void rails_look(struct verbs_cm_listener *cm_listener)
{
	struct verbs_listener *listener = cm_listener->listener;
	for (uint32_t i = 0; i < listener->rail_count; i++) {
		struct verbs_rail *rail = &listener->rails[i];
		if (cm_listener->rails_gone[i] || !atomic_load(&rail->device->dead))
			continue;
		cm_listener->rails_gone[i] = true;
		for (struct verbs_client *client = cm_listener->clients, *next; client; client = next) {
			next = client->next;
			if (client->rail == rail)
				gw_verbs_client_end(client);
		}
		if (atomic_fetch_sub(&rail->cm_listeners_left, 1) == 1)
			gw_verbs_rail_close(listener, rail);
	}
}

/* Ends clients that wait for no reply. The end of a TCP connection ends its client's queue pairs, so the TCP listener
 * drains only after the last CM listener has drained. */
static void cm_listener_drain(struct verbs_cm_listener *cm_listener, uint64_t now_ns)
{
	for (struct verbs_client *client = cm_listener->clients, *next; client; client = next) {
		next = client->next;
		if (!gw_verbs_client_busy(client) && now_ns >= cm_listener->listener->drain_ns)
			gw_verbs_client_end(client);
	}
	if (cm_listener->clients) {
		verbs_timer(cm_listener->loop, now_ns + DRAIN_NS);
		return;
	}
	cm_listener->drained = true;
	if (atomic_fetch_sub(&cm_listener->listener->cm_listeners_undrained, 1) == 1)
		gw_transport_tcp.listener_drain(cm_listener->listener->tcp);
}

void gw_verbs_cm_listeners_tick(struct verbs_loop *loop, uint64_t now_ns)
{
	for (struct verbs_cm_listener *cm_listener = loop->cm_listeners; cm_listener; cm_listener = cm_listener->next) {
		rails_look(cm_listener);
		if (atomic_load(&cm_listener->listener->draining) && !cm_listener->drained)
			cm_listener_drain(cm_listener, now_ns);
		if (cm_listener->id && atomic_load(&cm_listener->listener->stopped)) {
			rdma_destroy_id(cm_listener->id);
			cm_listener->id = NULL;
		}
		gw_verbs_clients_tick(cm_listener, now_ns);
	}
}

/* --- Questions of clients over TCP, answered by the thread of their connection. --- */

static gw_status verbs_listener_notify(const struct verbs_cm_listener *cm_listener, const struct verbs_client *client,
				       uint32_t version, struct gw_reply *reply)
{
	const struct verbs_listener *listener = cm_listener->listener;
	const struct gw_service *service = listener->base.service;
	struct handshake_answer answer = {
		.version = version,
		.qps = client->qp_count,
		.receives = VERBS_RECEIVES,
		.chunk_bytes = VERBS_CHUNK_BYTES,
		.port = cm_listener->port,
		.requests_max = service->limits.requests_per_client,
		.rail_count = listener->rail_count,
		.address_count = listener->address_count,
		.region_count = service->region_count,
		.whole_words = listener->whole_words,
	};
	memcpy(answer.token, client->token, sizeof(answer.token));
	size_t addresses = listener->address_count * sizeof(struct handshake_address);
	size_t places = service->region_count * sizeof(struct handshake_region);
	uint64_t keys = 4ull * listener->rail_count * listener->slice_count;
	if (keys > GW_REPLY_BYTES_MAX / 2)
		return gw_fail(GW_LIMIT, "%llu slices: more keys than a reply can hold",
			       (unsigned long long)listener->slice_count);
	uint8_t *room = gw_reply_extend(reply, (uint32_t)(sizeof(answer) + addresses + places + keys));
	if (!room)
		return GW_NO_MEMORY;
	memcpy(room, &answer, sizeof(answer));
	room += sizeof(answer);
	memcpy(room, listener->addresses, addresses);
	room += addresses;
	memcpy(room, listener->places, places);
	room += places;
	for (uint32_t i = 0; i < listener->rail_count; i++)
		for (uint64_t slice = 0; slice < listener->slice_count; slice++, room += 4) {
			/* A removed rail keeps its number, but accepts no clients, so its keys are 0. */
			uint32_t key = cm_listener->rails_gone[i] ? 0 : listener->rails[i].mrs[slice]->rkey;
			memcpy(room, &key, 4);
		}
	return GW_OK;
}

static gw_status answer_question(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	struct verbs_listener *listener = context;
	struct handshake_question question;
	struct verbs_client *client;
	if (call->listener != listener->tcp || call->thread >= listener->cm_listener_count)
		return gw_fail(GW_UNSUPPORTED, "this port of the server offers no RDMA");
	gw_status status = gw_handshake_question(call->bytes, call->byte_count, &question);
	if (status != GW_OK)
		return status;
	struct verbs_cm_listener *cm_listener = &listener->cm_listeners[call->thread];
	gw_verbs_possess(cm_listener->loop);
	rails_look(cm_listener);
	if (atomic_load(&listener->stopped) || !cm_listener->id)
		status = gw_fail(GW_REFUSED, "the server accepts no more clients over RDMA");
	if (status == GW_OK)
		status = gw_verbs_client_create(cm_listener, call, &question, &client);
	if (status == GW_OK) {
		status = verbs_listener_notify(cm_listener, client, question.version, reply);
		if (status != GW_OK)
			gw_verbs_client_end(client);
	}
	gw_verbs_release(cm_listener->loop);
	return status;
}

static gw_status answer_keys(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	struct verbs_listener *listener = context;
	if (call->listener != listener->tcp)
		return gw_fail(GW_UNSUPPORTED, "this port of the server offers no RDMA");
	return gw_verbs_dynamic_mrs_notify(listener, call, reply);
}

static void connection_left(void *context, uint64_t connection, uint32_t thread)
{
	struct verbs_listener *listener = context;
	/* The closing listener ends all clients itself, and another thread may possess the loop. */
	if (atomic_load(&listener->closing) || thread >= listener->cm_listener_count)
		return;
	struct verbs_cm_listener *cm_listener = &listener->cm_listeners[thread];
	gw_verbs_possess(cm_listener->loop);
	gw_verbs_client_left(cm_listener, connection);
	if (atomic_load(&listener->draining))
		verbs_timer(cm_listener->loop, 0); /* it may have been the last client */
	gw_verbs_release(cm_listener->loop);
}

/* --- The listener. --- */

static void listener_destroy(struct verbs_listener *listener)
{
	gw_verbs_dynamic_mrs_end(listener);
	for (uint32_t i = 0; i < listener->rail_count; i++)
		if (listener->rails[i].device)
			gw_verbs_rail_close(listener, &listener->rails[i]);
	pthread_cond_destroy(&listener->dynamic.changed);
	pthread_mutex_destroy(&listener->dynamic.lock);
	pthread_mutex_destroy(&listener->dynamic.rails_lock);
	gw_free(listener);
}

gw_status gw_verbs_listen(struct gw_poll_group *const *groups, uint32_t group_count, const struct gw_address *address,
			  struct gw_service *service, int socket, struct gw_listener **out)
{
	*out = NULL;
	if (atomic_load(&service->upgrade))
		return gw_fail(GW_INVALID, "the service is offered over RDMA already");
	struct verbs_listener *listener =
		gw_calloc(1, sizeof(*listener) + group_count * sizeof(struct verbs_cm_listener));
	if (!listener)
		return GW_NO_MEMORY;
	listener->base =
		(struct gw_listener){.transport = &gw_transport_verbs, .address = *address, .service = service};
	listener->cm_listener_count = group_count;
	pthread_mutex_init(&listener->dynamic.rails_lock, NULL);
	pthread_mutex_init(&listener->dynamic.lock, NULL);
	pthread_cond_init(&listener->dynamic.changed, NULL);
	atomic_store(&listener->cm_listeners_undrained, group_count);
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < group_count && status == GW_OK; i++) {
		void *loop;
		status = gw_poll_group_state(groups[i], &gw_transport_verbs, &loop);
		listener->cm_listeners[i] = (struct verbs_cm_listener){
			.handler.event = cm_listener_event, .listener = listener, .loop = loop, .number = i};
	}
	if (status == GW_OK)
		status = gw_verbs_rails_find(listener);
	if (status == GW_OK)
		status = gw_verbs_rails_register(listener);
	if (status == GW_OK) /* register before clients can connect: they would wait for it */
		gw_verbs_dynamic_mrs_begin(listener);
	for (uint32_t i = 0; i < group_count && status == GW_OK; i++)
		status = cm_listener_open(&listener->cm_listeners[i]);
	if (status == GW_OK)
		status = gw_transport_tcp.listen(groups, group_count, address, service, socket, &listener->tcp);
	if (status != GW_OK) {
		for (uint32_t i = 0; i < group_count; i++) {
			if (!listener->cm_listeners[i].id)
				continue;
			gw_verbs_possess(
				listener->cm_listeners[i]
					.loop); /* another thread may poll the loop, and handle an event of this id */
			rdma_destroy_id(listener->cm_listeners[i].id);
			gw_verbs_release(listener->cm_listeners[i].loop);
		}
		listener_destroy(listener);
		return status;
	}
	listener->base.address.port = listener->tcp->address.port;
	for (uint32_t i = 0; i < group_count; i++) {
		struct verbs_cm_listener *cm_listener = &listener->cm_listeners[i];
		gw_poll_group_wake(groups[i]); /* a thread may sleep in a poll and possess the loop: wake it */
		gw_verbs_possess(cm_listener->loop);
		cm_listener->next = cm_listener->loop->cm_listeners;
		cm_listener->loop->cm_listeners = cm_listener;
		verbs_timer(cm_listener->loop, 0);
		gw_verbs_release(cm_listener->loop);
		gw_poll_group_wake(groups[i]); /* it may sleep again, without a timer for the new CM listener */
	}
	listener->way = (struct gw_service_upgrade){answer_question, answer_keys, connection_left, listener};
	atomic_store(&service->upgrade, &listener->way);
	*out = &listener->base;
	return GW_OK;
}

gw_status gw_verbs_listener_yield(struct gw_listener *base, int *socket)
{
	struct verbs_listener *listener = (struct verbs_listener *)base;
	gw_status status = gw_transport_tcp.listener_yield(listener->tcp, socket);
	if (status == GW_OK)
		atomic_store(&listener->stopped, true);
	return status;
}

/* Reads in flight do not count as work: they end with the client's queue pairs once no reply is owed. */
void gw_verbs_listener_drain(struct gw_listener *base)
{
	struct verbs_listener *listener = (struct verbs_listener *)base;
	bool moved = atomic_load(&base->moved);
	atomic_store(&listener->tcp->moved, moved);
	atomic_store(&listener->stopped, true);
	gw_transport_tcp.listener_stop(listener->tcp, false);
	listener->drain_ns = gw_now_ns() + (moved ? MOVED_NS : 0);
	atomic_store(&listener->draining, true);
	for (uint32_t i = 0; i < listener->cm_listener_count; i++)
		gw_transport_verbs.wake(listener->cm_listeners[i].loop);
}

void gw_verbs_listener_stop(struct gw_listener *base, bool close)
{
	struct verbs_listener *listener = (struct verbs_listener *)base;
	atomic_store(&listener->stopped, true);
	if (!close) {
		gw_transport_tcp.listener_stop(listener->tcp, false);
		return;
	}
	if (!atomic_exchange(&listener->closing, true))
		for (uint32_t i = 0; i < listener->cm_listener_count; i++)
			listener_close_loop(listener->cm_listeners[i].loop);
	gw_transport_tcp.listener_stop(listener->tcp, true);
}

void gw_verbs_listener_free(struct gw_listener *base)
{
	struct verbs_listener *listener = (struct verbs_listener *)base;
	gw_verbs_listener_stop(base, true);
	atomic_store(&base->service->upgrade, NULL);
	gw_transport_tcp.listener_free(listener->tcp);
	listener_destroy(listener);
}
