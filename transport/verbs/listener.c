/* A service over RDMA: a TCP listener, which says the hello, and for each poll group a door, where clients connect that
 * have asked for a ticket over their TCP connection. A client's queue pairs and its TCP connection are one thread's, so
 * that nothing between them needs a lock; each door therefore has a port of its own, which the answer tells.
 *
 *   TCP hello ─▶ question ─▶ a peer with a token ─▶ connection request with the token ─▶ queue pair
 *                                    └── ends with the TCP connection, or when its time is up
 *
 * Fails where there is no device, on what the TCP listener fails on, and on the locked-memory limit.
 */
#include "transport/verbs/listener.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "transport/tcp/tcp.h"

#define BACKLOG      128
#define REJECT_BYTES 100                /* of text, in a rejection */
#define DRAIN_NS     (5 * GW_NS_PER_MS) /* between looks at whether the last replies have gone out */

/* --- Doors. --- */

static void door_event(struct verbs_hearer *hearer, const struct rdma_cm_event *event)
{
	struct verbs_door *door = (struct verbs_door *)hearer;
	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL && door->id) {
		rdma_destroy_id(door->id);
		door->id = NULL;
	}
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return;
	gw_status status;
	if (atomic_load(&door->listener->stopped))
		status = gw_fail(GW_REFUSED, "the server takes no more clients");
	else
		status = gw_verbs_peer_accept(door, event->id, &event->param.conn);
	if (!status)
		return;
	const char *text = gw_last_error();
	gw_count(&door->listener->base.service->counts.refused, 1);
	gw_log(GW_LOG_INFO, "an RDMA connection request is turned down: %s", text);
	rdma_reject(event->id, text, (uint8_t)strnlen(text, REJECT_BYTES));
	rdma_destroy_id(event->id);
}

/* Listens at a port of the door's own, at the listener's address if that is one, else at all. */
static gw_status door_open(struct verbs_door *door)
{
	const struct verbs_listener *listener = door->listener;
	struct sockaddr_storage at = {.ss_family = AF_INET};
	bool one = listener->address_count == 1;
	for (uint32_t i = 0; i < listener->address_count; i++) {
		const struct rail_address *address = &listener->addresses[i];
		if (address->family == 6) {
			at.ss_family = AF_INET6; /* takes IPv4 as well */
			if (one)
				memcpy(&((struct sockaddr_in6 *)&at)->sin6_addr, address->bytes, 16);
		} else if (one) {
			memcpy(&((struct sockaddr_in *)&at)->sin_addr, address->bytes, 4);
		}
	}
	if (rdma_create_id(door->loop->events, &door->id, &door->hearer, RDMA_PS_TCP) != 0) {
		door->id = NULL;
		return gw_verbs_missing("RDMA connection manager", errno);
	}
	if (rdma_bind_addr(door->id, (struct sockaddr *)&at) != 0 || rdma_listen(door->id, BACKLOG) != 0)
		return gw_fail_errno(GW_IO, errno, "RDMA listen");
	door->port = ntohs(rdma_get_src_port(door->id));
	return GW_OK;
}

static void door_close(struct verbs_door *door)
{
	while (door->peers)
		gw_verbs_peer_end(door->peers);
	if (door->id)
		rdma_destroy_id(door->id);
	door->id = NULL;
}

static void door_unlist(struct verbs_door *door)
{
	struct verbs_door **at = &door->loop->doors;
	while (*at && *at != door)
		at = &(*at)->next;
	if (*at)
		*at = door->next;
}

void gw_verbs_doors_end(struct verbs_loop *loop, bool all)
{
	for (struct verbs_door *door = loop->doors, *next; door; door = next) {
		next = door->next;
		if (!all && !atomic_load(&door->listener->closing))
			continue;
		door_close(door);
		door_unlist(door);
	}
}

/* A device was removed: the door's clients on it end, and the last door lets go of the registrations. */
static void rails_look(struct verbs_door *door)
{
	struct verbs_listener *listener = door->listener;
	for (uint32_t i = 0; i < listener->rail_count; i++) {
		struct verbs_rail *rail = &listener->rails[i];
		if (door->rails_gone[i] || !atomic_load(&rail->device->dead))
			continue;
		door->rails_gone[i] = true;
		for (struct verbs_peer *peer = door->peers, *next; peer; peer = next) {
			next = peer->next;
			if (peer->rail == rail)
				gw_verbs_peer_end(peer);
		}
		if (atomic_fetch_sub(&rail->doors_left, 1) == 1)
			gw_verbs_rail_close(listener, rail);
	}
}

/* Whoever is owed nothing ends. TCP connections, whose end is that of their queue pairs, drain behind the last door. */
static void door_drain(struct verbs_door *door, uint64_t now_ns)
{
	for (struct verbs_peer *peer = door->peers, *next; peer; peer = next) {
		next = peer->next;
		if (!gw_verbs_peer_busy(peer))
			gw_verbs_peer_end(peer);
	}
	if (door->peers) {
		verbs_timer(door->loop, now_ns + DRAIN_NS);
		return;
	}
	door->drained = true;
	if (atomic_fetch_sub(&door->listener->doors_undrained, 1) == 1)
		gw_transport_tcp.listener_drain(door->listener->tcp);
}

void gw_verbs_doors_tick(struct verbs_loop *loop, uint64_t now_ns)
{
	for (struct verbs_door *door = loop->doors; door; door = door->next) {
		rails_look(door);
		if (atomic_load(&door->listener->draining) && !door->drained)
			door_drain(door, now_ns);
		if (door->id && atomic_load(&door->listener->stopped)) {
			rdma_destroy_id(door->id);
			door->id = NULL;
		}
		for (struct verbs_peer *peer = door->peers, *next; peer; peer = next) {
			next = peer->next;
			bool whole = peer->established == peer->queue_count;
			if (whole)
				gw_verbs_peer_tick(peer, now_ns);
			else if (now_ns < peer->expires_ns)
				verbs_timer(loop, peer->expires_ns);
			else
				gw_verbs_peer_end(peer);
		}
	}
}

/* --- What clients ask over TCP, by the thread of their connection. --- */

static gw_status tell(const struct verbs_door *door, const struct verbs_peer *peer, struct gw_reply *reply)
{
	const struct verbs_listener *listener = door->listener;
	const struct gw_service *service = listener->base.service;
	struct rail_answer answer = {
		.version = RAIL_VERSION,
		.queues = peer->queue_count,
		.receives = VERBS_RECEIVES,
		.chunk_bytes = VERBS_CHUNK_BYTES,
		.port = door->port,
		.requests_max = service->limits.requests_per_client,
		.rail_count = listener->rail_count,
		.address_count = listener->address_count,
		.region_count = service->region_count,
	};
	memcpy(answer.token, peer->token, sizeof(answer.token));
	size_t addresses = listener->address_count * sizeof(struct rail_address);
	size_t places = service->region_count * sizeof(struct rail_place);
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
			/* A rail that is gone keeps its place among the others; nobody is let in there. */
			uint32_t key = door->rails_gone[i] ? 0 : listener->rails[i].mrs[slice]->rkey;
			memcpy(room, &key, 4);
		}
	return GW_OK;
}

static gw_status answer_question(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread)
{
	struct verbs_listener *listener = context;
	struct rail_question question;
	struct verbs_peer *peer;
	if (call->listener != listener->tcp || thread >= listener->door_count)
		return gw_fail(GW_UNSUPPORTED, "this port of the server offers no RDMA");
	gw_status status = gw_rail_question(call->bytes, call->byte_count, &question);
	if (status)
		return status;
	struct verbs_door *door = &listener->doors[thread];
	gw_verbs_possess(door->loop);
	rails_look(door);
	if (atomic_load(&listener->stopped) || !door->id)
		status = gw_fail(GW_REFUSED, "the server takes no more clients over RDMA");
	if (!status)
		status = gw_verbs_peer_create(door, call, &question, &peer);
	if (!status) {
		status = tell(door, peer, reply);
		if (status)
			gw_verbs_peer_end(peer);
	}
	gw_verbs_release(door->loop);
	return status;
}

static void connection_left(void *context, uint64_t connection, uint32_t thread)
{
	struct verbs_listener *listener = context;
	/* While it is closed all clients end anyhow, and the loop may be somebody else's. */
	if (atomic_load(&listener->closing) || thread >= listener->door_count)
		return;
	struct verbs_door *door = &listener->doors[thread];
	gw_verbs_possess(door->loop);
	for (struct verbs_peer *peer = door->peers, *next; peer; peer = next) {
		next = peer->next;
		if (peer->connection == connection)
			gw_verbs_peer_end(peer);
	}
	gw_verbs_release(door->loop);
}

/* --- The listener. --- */

static void listener_destroy(struct verbs_listener *listener)
{
	for (uint32_t i = 0; i < listener->rail_count; i++)
		if (listener->rails[i].device)
			gw_verbs_rail_close(listener, &listener->rails[i]);
	gw_free(listener);
}

gw_status gw_verbs_listen(struct gw_poll_group *const *groups, uint32_t group_count, const struct gw_address *address,
			  struct gw_service *service, struct gw_listener **out)
{
	*out = NULL;
	if (atomic_load(&service->rail))
		return gw_fail(GW_INVALID, "the service is offered over RDMA already");
	struct verbs_listener *listener = gw_calloc(1, sizeof(*listener) + group_count * sizeof(struct verbs_door));
	if (!listener)
		return GW_NO_MEMORY;
	listener->base = (struct gw_listener){&gw_transport_verbs, *address, service};
	listener->door_count = group_count;
	atomic_store(&listener->doors_undrained, group_count);
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < group_count && !status; i++) {
		void *loop;
		status = gw_poll_group_state(groups[i], &gw_transport_verbs, &loop);
		listener->doors[i] = (struct verbs_door){
			.hearer.event = door_event, .listener = listener, .loop = loop, .number = i};
	}
	if (!status)
		status = gw_verbs_rails_find(listener);
	if (!status)
		status = gw_verbs_rails_register(listener);
	for (uint32_t i = 0; i < group_count && !status; i++)
		status = door_open(&listener->doors[i]);
	if (!status)
		status = gw_transport_tcp.listen(groups, group_count, address, service, &listener->tcp);
	if (status) {
		for (uint32_t i = 0; i < group_count; i++) {
			if (!listener->doors[i].id)
				continue;
			gw_verbs_possess(listener->doors[i].loop); /* it may be polled, and have an event of ours */
			rdma_destroy_id(listener->doors[i].id);
			gw_verbs_release(listener->doors[i].loop);
		}
		listener_destroy(listener);
		return status;
	}
	listener->base.address.port = listener->tcp->address.port;
	for (uint32_t i = 0; i < group_count; i++) {
		struct verbs_door *door = &listener->doors[i];
		gw_poll_group_wake(groups[i]); /* it may be polled already, and hold its loop while it sleeps, */
		gw_verbs_possess(door->loop);
		door->next = door->loop->doors;
		door->loop->doors = door;
		verbs_timer(door->loop, 0);
		gw_verbs_release(door->loop);
		gw_poll_group_wake(groups[i]); /* or sleep where it would not hear of the door's clients */
	}
	listener->way = (struct gw_service_rail){answer_question, connection_left, listener};
	atomic_store(&service->rail, &listener->way);
	*out = &listener->base;
	return GW_OK;
}

/* Reads need no code of ours: those that are under way when a client is owed nothing more end with its queue pairs. */
void gw_verbs_listener_drain(struct gw_listener *base)
{
	struct verbs_listener *listener = (struct verbs_listener *)base;
	atomic_store(&listener->stopped, true);
	gw_transport_tcp.listener_stop(listener->tcp, false);
	atomic_store(&listener->draining, true);
	for (uint32_t i = 0; i < listener->door_count; i++)
		gw_transport_verbs.wake(listener->doors[i].loop);
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
		for (uint32_t i = 0; i < listener->door_count; i++)
			gw_verbs_loop_close(listener->doors[i].loop);
	gw_transport_tcp.listener_stop(listener->tcp, true);
}

void gw_verbs_listener_free(struct gw_listener *base)
{
	struct verbs_listener *listener = (struct verbs_listener *)base;
	gw_verbs_listener_stop(base, true);
	atomic_store(&base->service->rail, NULL);
	gw_transport_tcp.listener_free(listener->tcp);
	listener_destroy(listener);
}
