/* The connection manager: ids, connection requests, and their events. See fabric.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/memory/list.h"
#include "test/fabric/fabric.h"
#include "transport/verbs/handshake.h"

struct fabric_event {
	struct rdma_cm_event event;
	struct fabric_event *next;
	uint8_t data[256];
};

struct fabric_events {
	struct rdma_event_channel channel;
	struct fabric_event *first;
};

struct fabric_id {
	struct rdma_cm_id id;
	struct fabric_id *next, **previous; /* in the list of all ids */
	struct fabric_id *peer;             /* set by the connection request */
	bool listens, connected;
	uint16_t port; /* the port where it listens or connects to */
};

static struct fabric_id *ids, *listeners[UINT16_MAX + 1]; /* listeners by port */
static uint16_t next_port = 20000;
static unsigned connects_failing, tokens_spoiled;

/* --- Events. The callers hold the lock. --- */

static void event_push(struct fabric_id *to, enum rdma_cm_event_type type, int status, struct fabric_id *listen,
		       const struct rdma_conn_param *param)
{
	struct fabric_events *events = (struct fabric_events *)(listen ? listen : to)->id.channel;
	struct fabric_event *event = calloc(1, sizeof(*event)), **at;
	uint64_t one = 1;
	fabric_must(event != NULL, "out of memory");
	if (!events) { /* no program reads events of this id */
		free(event);
		return;
	}
	event->event = (struct rdma_cm_event){
		.id = &to->id, .listen_id = listen ? &listen->id : NULL, .event = type, .status = status};
	if (param) {
		event->event.param.conn = *param;
		if (param->private_data)
			memcpy(event->data, param->private_data, param->private_data_len);
		event->event.param.conn.private_data = param->private_data ? event->data : NULL;
	}
	for (at = &events->first; *at; at = &(*at)->next)
		;
	*at = event;
	(void)!write(events->channel.fd, &one, sizeof(one));
}

static void event_drop(struct fabric_events *events, struct fabric_event **at)
{
	struct fabric_event *event = *at;
	uint64_t one;
	*at = event->next;
	(void)!read(events->channel.fd, &one, sizeof(one));
	free(event);
}

static void events_drop(const struct fabric_id *of)
{
	struct fabric_events *events = (struct fabric_events *)of->id.channel;
	if (!events)
		return;
	for (struct fabric_event **at = &events->first; *at;)
		if ((*at)->event.id == &of->id)
			event_drop(events, at);
		else
			at = &(*at)->next;
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct fabric_events *events = calloc(1, sizeof(*events));
	fabric_must(events != NULL, "out of memory");
	events->channel.fd = eventfd(0, EFD_NONBLOCK | EFD_SEMAPHORE | EFD_CLOEXEC);
	return &events->channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	struct fabric_events *events = (struct fabric_events *)channel;
	fabric_must(!events->first, "a channel with unread events is destroyed");
	close(channel->fd);
	free(events);
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct fabric_events *events = (struct fabric_events *)channel;
	uint64_t one;
	pthread_mutex_lock(&fabric_lock);
	struct fabric_event *first = events->first;
	if (first) {
		events->first = first->next;
		(void)!read(channel->fd, &one, sizeof(one));
		*event = &first->event;
	}
	pthread_mutex_unlock(&fabric_lock);
	errno = EAGAIN;
	return first ? 0 : -1;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	free(event);
	return 0;
}

/* --- Ids. --- */

static struct fabric_id *id_make(struct rdma_event_channel *channel, void *context)
{
	struct fabric_id *id = calloc(1, sizeof(*id));
	fabric_must(id != NULL, "out of memory");
	id->id.channel = channel;
	id->id.context = context;
	GW_LIST_INSERT(ids, id);
	return id;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context, enum rdma_port_space ps)
{
	(void)ps;
	pthread_mutex_lock(&fabric_lock);
	*id = &id_make(channel, context)->id;
	pthread_mutex_unlock(&fabric_lock);
	return 0;
}

static void id_part_both_sides(struct fabric_id *id)
{
	struct fabric_id *peer = id->peer;
	if (id->id.qp)
		fabric_qp_fail(fabric_qp_of(id->id.qp));
	id->peer = NULL;
	if (!peer)
		return;
	peer->peer = NULL;
	if (peer->id.qp)
		fabric_qp_fail(fabric_qp_of(peer->id.qp));
	event_push(peer, peer->connected ? RDMA_CM_EVENT_DISCONNECTED : RDMA_CM_EVENT_UNREACHABLE, -ECONNRESET, NULL,
		   NULL);
	peer->connected = false;
}

static void id_free(struct fabric_id *id)
{
	id_part_both_sides(id);
	events_drop(id);
	if (id->listens)
		listeners[id->port] = NULL;
	GW_LIST_REMOVE(id);
	free(id);
}

/* NULL: no request is left. */
static struct fabric_id *id_asking(const struct fabric_id *listener)
{
	struct fabric_events *events = (struct fabric_events *)listener->id.channel;
	if (!events)
		return NULL;
	for (struct fabric_event **at = &events->first; *at; at = &(*at)->next)
		if ((*at)->event.listen_id == &listener->id) {
			struct fabric_id *asking = (struct fabric_id *)(*at)->event.id;
			event_drop(events, at);
			return asking;
		}
	return NULL;
}

static void id_refuse(const struct fabric_id *listener)
{
	struct fabric_id *asking;
	while ((asking = id_asking(listener)))
		id_free(asking);
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	pthread_mutex_lock(&fabric_lock);
	fabric_must(!id->qp, "an id with a queue pair is destroyed");
	if (((struct fabric_id *)id)->listens)
		id_refuse((struct fabric_id *)id);
	id_free((struct fabric_id *)id);
	pthread_mutex_unlock(&fabric_lock);
	return 0;
}

void rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	rdma_destroy_id(id);
}

int rdma_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t bytes)
{
	(void)id, (void)level, (void)name, (void)value, (void)bytes;
	return 0;
}

/* A wildcard address names no device. */
static int id_bind(struct rdma_cm_id *id, bool any)
{
	id->verbs = any ? NULL : fabric_context();
	id->port_num = 1;
	errno = ENODEV;
	return any || id->verbs ? 0 : -1;
}

static void id_address(struct rdma_cm_id *id)
{
	id->route.addr.src_sin = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *address)
{
	static const struct in6_addr none = IN6ADDR_ANY_INIT;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address;
	bool is_v4 = address->sa_family == AF_INET;
	bool any = is_v4 ? v4->sin_addr.s_addr == htonl(INADDR_ANY) : memcmp(&v6->sin6_addr, &none, sizeof(none)) == 0;
	pthread_mutex_lock(&fabric_lock);
	memcpy(&id->route.addr.src_storage, address, is_v4 ? sizeof(*v4) : sizeof(*v6));
	int result = id_bind(id, any);
	pthread_mutex_unlock(&fabric_lock);
	return result;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	struct fabric_id *inside = (struct fabric_id *)id;
	(void)backlog;
	pthread_mutex_lock(&fabric_lock);
	inside->listens = true;
	inside->port = next_port++;
	listeners[inside->port] = inside;
	pthread_mutex_unlock(&fabric_lock);
	return 0;
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return htons(((struct fabric_id *)id)->port);
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to, int timeout_ms)
{
	struct fabric_id *inside = (struct fabric_id *)id;
	(void)from, (void)timeout_ms;
	pthread_mutex_lock(&fabric_lock);
	inside->port = ntohs(to->sa_family == AF_INET ? ((struct sockaddr_in *)(void *)to)->sin_port
						      : ((struct sockaddr_in6 *)(void *)to)->sin6_port);
	id_address(id);
	int result = id_bind(id, false);
	if (result == 0)
		event_push(inside, RDMA_CM_EVENT_ADDR_RESOLVED, 0, NULL, NULL);
	pthread_mutex_unlock(&fabric_lock);
	return result;
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	(void)timeout_ms;
	pthread_mutex_lock(&fabric_lock);
	event_push((struct fabric_id *)id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL, NULL);
	pthread_mutex_unlock(&fabric_lock);
	return 0;
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp *qp = fabric_qp_create(id->verbs, pd, init);
	pthread_mutex_lock(&fabric_lock);
	id->qp = qp;
	pthread_mutex_unlock(&fabric_lock);
	return 0;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	struct ibv_qp *qp = id->qp;
	pthread_mutex_lock(&fabric_lock);
	id_part_both_sides((struct fabric_id *)id);
	id->qp = NULL;
	pthread_mutex_unlock(&fabric_lock);
	fabric_qp_destroy(qp);
}

/* --- Connections. --- */

void fabric_fail_connects(unsigned count)
{
	pthread_mutex_lock(&fabric_lock);
	connects_failing = count;
	pthread_mutex_unlock(&fabric_lock);
}

unsigned fabric_spoil_tokens(unsigned count)
{
	pthread_mutex_lock(&fabric_lock);
	unsigned left = tokens_spoiled;
	tokens_spoiled = count;
	pthread_mutex_unlock(&fabric_lock);
	return left;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct fabric_id *inside = (struct fabric_id *)id;
	struct rdma_conn_param spoiled = *param;
	uint8_t data[UINT8_MAX];
	pthread_mutex_lock(&fabric_lock);
	if (tokens_spoiled && param->private_data_len >= sizeof(struct handshake_token)) {
		tokens_spoiled--;
		memcpy(data, param->private_data, param->private_data_len);
		data[offsetof(struct handshake_token, token)] ^= 1;
		spoiled.private_data = data;
		param = &spoiled;
	}
	struct fabric_id *listener = listeners[inside->port];
	if (connects_failing) {
		connects_failing--;
		fabric_qp_fail(fabric_qp_of(id->qp));
	} else if (listener) {
		struct fabric_id *asks = id_make(listener->id.channel, listener->id.context);
		id_address(&asks->id);
		id_bind(&asks->id, false);
		asks->peer = inside;
		inside->peer = asks;
		event_push(asks, RDMA_CM_EVENT_CONNECT_REQUEST, 0, listener, param);
	} else {
		event_push(inside, RDMA_CM_EVENT_REJECTED, ECONNREFUSED, NULL, NULL);
	}
	pthread_mutex_unlock(&fabric_lock);
	return 0;
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct fabric_id *inside = (struct fabric_id *)id;
	(void)param;
	pthread_mutex_lock(&fabric_lock);
	struct fabric_id *peer = inside->peer;
	if (peer && peer->id.qp) {
		inside->connected = peer->connected = true;
		fabric_connect(fabric_qp_of(id->qp), fabric_qp_of(peer->id.qp));
		event_push(inside, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, NULL);
		event_push(peer, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, NULL);
	}
	pthread_mutex_unlock(&fabric_lock);
	errno = ENOTCONN;
	return peer ? 0 : -1;
}

int rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t bytes)
{
	struct fabric_id *inside = (struct fabric_id *)id;
	struct rdma_conn_param param = {.private_data = data, .private_data_len = bytes};
	pthread_mutex_lock(&fabric_lock);
	struct fabric_id *peer = inside->peer;
	if (peer) {
		peer->peer = inside->peer = NULL;
		event_push(peer, RDMA_CM_EVENT_REJECTED, ECONNREFUSED, NULL, &param);
	}
	pthread_mutex_unlock(&fabric_lock);
	return 0;
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	struct fabric_id *inside = (struct fabric_id *)id;
	pthread_mutex_lock(&fabric_lock);
	bool connected = inside->connected;
	if (connected) {
		inside->connected = false;
		id_part_both_sides(inside);
		event_push(inside, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, NULL);
	}
	pthread_mutex_unlock(&fabric_lock);
	errno = EINVAL;
	return connected ? 0 : -1;
}

void fabric_send_removed(const struct ibv_context *context)
{
	for (struct fabric_id *id = ids; id; id = id->next)
		if (context && id->id.verbs == context)
			event_push(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0, NULL, NULL);
}
