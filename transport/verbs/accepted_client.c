/* One client at the server.
 *
 *   question ─▶ token ─▶ connection requests, one for each queue pair ─▶ established ─▶ ended
 *
 * Reads need no code of the server. Requests arrive in messages over the first queue pair, and the server answers one
 * after the other. Until a reply has been sent, the server takes no further message: the client's messages stay in
 * their receives, and its credits run out. A client therefore uses memory for one request and one reply at most. A
 * client that does not read its replies delays no other client; the server ends it when others need the memory. When
 * handlers have more work, the loop runs one of them after each poll of the completion queues, in turn.
 *
 * A client ends when a queue pair fails or disconnects, or a message is malformed. It also ends with its TCP connection
 * or its device, and if its queue pairs do not connect in time. A request that exceeds the client's share of memory
 * ends it, and so does silence inside a request.
 */
#include <errno.h>
#include <openssl/crypto.h>
#include <string.h>
#include <sys/random.h>

#include "core/errors/log.h"
#include "core/memory/alloc.h"
#include "core/memory/list.h"
#include "core/system/clock.h"
#include "transport/scheme.h"
#include "transport/verbs/listener_private.h"

/* How often a client that does not read its reply is looked at again: whether others need the memory. */
#define STALL_LOOK_NS (250 * GW_NS_PER_MS)

static void client_run(struct verbs_deferred *deferred);

/* The client from a member of it. */
#define CLIENT_OF(pointer, member)                                                                                     \
	((struct verbs_client *)(void *)((uint8_t *)(pointer)-offsetof(struct verbs_client, member)))

static struct gw_queue *calls_of(struct verbs_client *client)
{
	return &client->cm_listener->loop->calls;
}

/* Makes gw_verbs_clients_tick look at the client at this time, or earlier. */
static void verbs_client_timer(struct verbs_client *client, uint64_t at_ns)
{
	gw_deadlines_set(&client->cm_listener->deadlines, &client->deadline, at_ns);
	verbs_timer(client->cm_listener->loop, at_ns);
}

/* --- Looking up. --- */

/* The chain of a token; tokens are random. */
static struct verbs_client **token_chain(struct verbs_cm_listener *cm_listener,
					 const uint8_t token[HANDSHAKE_TOKEN_BYTES])
{
	uint32_t bits;
	memcpy(&bits, token, sizeof(bits));
	return &cm_listener->by_token[bits % VERBS_CHAINS];
}

static struct verbs_client **connection_chain(struct verbs_cm_listener *cm_listener, uint64_t connection)
{
	return &cm_listener->by_connection[connection % VERBS_CHAINS];
}

static void chains_insert(struct verbs_client *client)
{
	struct verbs_client **token = token_chain(client->cm_listener, client->token);
	struct verbs_client **connection = connection_chain(client->cm_listener, client->connection);
	client->next_by_token = *token;
	*token = client;
	client->next_by_connection = *connection;
	*connection = client;
}

static void chains_remove(struct verbs_client *client)
{
	GW_SLIST_REMOVE(*token_chain(client->cm_listener, client->token), client, next_by_token);
	GW_SLIST_REMOVE(*connection_chain(client->cm_listener, client->connection), client, next_by_connection);
}

/* --- Beginning and end. --- */

void gw_verbs_client_end(struct verbs_client *client)
{
	for (uint32_t i = 0; i < client->qp_count; i++)
		if (client->conns[i].qp)
			gw_verbs_qp_break(client->conns[i].qp);
	for (uint32_t i = 0; i < client->qp_count; i++)
		gw_verbs_qp_destroy(client->conns[i].qp);
	gw_verbs_stream_end(&client->stream);
	gw_verbs_undefer(client->cm_listener->loop, &client->deferred);
	gw_queue_drop(calls_of(client), &client->turn);
	gw_queue_drop(&client->cm_listener->loop->paused, &client->pause);
	gw_deadlines_leave(&client->cm_listener->deadlines, &client->deadline);
	GW_LIST_REMOVE(client);
	chains_remove(client);
	gw_task_end(&client->task);
	gw_service_peer_end(client->cm_listener->listener->base.service, &client->peer);
	gw_free(client->request);
	gw_free(client);
}

void gw_verbs_client_left(struct verbs_cm_listener *cm_listener, uint64_t connection)
{
	for (struct verbs_client *client = *connection_chain(cm_listener, connection), *next; client; client = next) {
		next = client->next_by_connection;
		if (client->connection == connection)
			gw_verbs_client_end(client);
	}
}

gw_status gw_verbs_client_create(struct verbs_cm_listener *cm_listener, const struct gw_call *call,
				 const struct handshake_question *question, struct verbs_client **out)
{
	struct gw_service *service = cm_listener->listener->base.service;
	*out = NULL;
	gw_verbs_client_left(cm_listener, call->connection);
	struct verbs_client *client = gw_calloc(1, sizeof(*client));
	if (!client)
		return GW_NO_MEMORY;
	gw_status status = GW_OK;
	if (getrandom(client->token, sizeof(client->token), 0) != sizeof(client->token))
		status = gw_fail_errno(GW_IO, errno, "cannot get random bytes for a token");
	if (status == GW_OK)
		status = gw_deadlines_join(&cm_listener->deadlines, &client->deadline);
	if (status != GW_OK) {
		gw_free(client);
		return status;
	}
	client->deferred.run = client_run;
	client->cm_listener = cm_listener;
	client->connection = call->connection;
	memcpy(client->client_uuid, call->client_uuid, sizeof(client->client_uuid));
	client->expires_ns = gw_now_ns() + service->limits.idle_ms * GW_NS_PER_MS;
	verbs_client_timer(client, client->expires_ns);
	client->qp_count = question->qps < VERBS_QPS_MAX ? question->qps : VERBS_QPS_MAX;
	GW_LIST_INSERT(cm_listener->clients, client);
	chains_insert(client);
	client->peer.scheme = GW_SCHEME_VERBS;
	memcpy(client->peer.client_uuid, call->client_uuid, sizeof(client->peer.client_uuid));
	if (call->peer)
		memcpy(client->peer.name, call->peer->name, sizeof(client->peer.name));
	gw_service_peer_begin(service, &client->peer);
	*out = client;
	return GW_OK;
}

/* --- Connection requests. --- */

static void server_conn_event(struct verbs_cm_handler *handler, const struct rdma_cm_event *event)
{
	struct verbs_server_conn *conn = (struct verbs_server_conn *)handler;
	struct verbs_client *client = conn->client;
	switch (event->event) {
	case RDMA_CM_EVENT_ESTABLISHED:
		if (!conn->established)
			client->established++;
		conn->established = true;
		conn->qp->connected = true;
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		verbs_timer(client->cm_listener->loop, 0);
		gw_verbs_client_end(client);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
		gw_verbs_client_end(client);
		break;
	default: /* address changes, the end of TIMEWAIT */
		break;
	}
}

static void server_conn_received(struct verbs_qp *qp, uint32_t slot, uint32_t bytes)
{
	struct verbs_client *client = qp->owner;
	gw_verbs_stream_received(&client->stream, slot, bytes);
}

static void server_conn_sent(struct verbs_qp *qp)
{
	struct verbs_client *client = qp->owner;
	gw_verbs_stream_sent(&client->stream);
}

/* The server posts no reads. */
static void conn_read(struct verbs_qp *qp, struct verbs_wr *wr)
{
	(void)qp;
	(void)wr;
}

static struct verbs_client *client_of(struct verbs_cm_listener *cm_listener, const uint8_t token[HANDSHAKE_TOKEN_BYTES])
{
	for (struct verbs_client *client = *token_chain(cm_listener, token); client; client = client->next_by_token)
		if (CRYPTO_memcmp(client->token, token, HANDSHAKE_TOKEN_BYTES) == 0)
			return client;
	return NULL;
}

static struct verbs_rail *verbs_client_rail_of(struct verbs_cm_listener *cm_listener, const struct rdma_cm_id *id)
{
	struct verbs_listener *listener = cm_listener->listener;
	for (uint32_t i = 0; i < listener->rail_count; i++)
		if (!cm_listener->rails_gone[i] && listener->rails[i].device->context == id->verbs &&
		    !atomic_load(&listener->rails[i].device->dead))
			return &listener->rails[i];
	return NULL;
}

/* The first queue pair can also receive messages. */
static gw_status conn_open(struct verbs_client *client, struct verbs_server_conn *conn, struct rdma_cm_id *id)
{
	struct verbs_poller *poller;
	gw_status status = gw_verbs_poller_get(client->cm_listener->loop, id, &poller);
	if (status != GW_OK)
		return status;
	/* The server posts no reads; only the first queue pair sends messages. */
	bool first = conn == client->conns;
	struct verbs_needs needs = {.work = first ? VERBS_SENDS : 1,
				    .sges = 1,
				    .receives = first ? VERBS_RECEIVES + VERBS_RECEIVES_SPARE : 0};
	status = gw_verbs_qp_create(poller, id, client->rail->pd, &needs, &conn->qp);
	if (status != GW_OK)
		return status;
	*conn = (struct verbs_server_conn){.handler.event = server_conn_event, .client = client, .qp = conn->qp};
	id->context = &conn->handler;
	conn->qp->deferred = &client->deferred;
	conn->qp->owner = client;
	conn->qp->read_done = conn_read;
	conn->qp->received = server_conn_received;
	conn->qp->sent = server_conn_sent;
	return first ? gw_verbs_stream_begin(&client->stream, conn->qp, client->rail->pd) : GW_OK;
}

gw_status gw_verbs_client_accept(struct verbs_cm_listener *cm_listener, struct rdma_cm_id *id,
				 const struct rdma_conn_param *param)
{
	struct handshake_token token;
	gw_status status = gw_handshake_token(param->private_data, param->private_data_len, &token);
	if (status != GW_OK)
		return status;
	struct verbs_client *client = client_of(cm_listener, token.token);
	struct verbs_rail *rail = verbs_client_rail_of(cm_listener, id);
	if (!client || token.number >= client->qp_count || client->conns[token.number].qp)
		return gw_fail(GW_REFUSED, HANDSHAKE_TOKEN_OVER);
	if (!rail || (client->rail && client->rail != rail))
		return gw_fail(GW_REFUSED, "this token belongs to another device");
	client->rail = rail;
	struct verbs_server_conn *conn = &client->conns[token.number];
	status = conn_open(client, conn, id);
	if (status != GW_OK && !conn->qp)
		return status;
	uint32_t most = (uint32_t)rail->device->attr.max_qp_rd_atom;
	most = most < 254 ? most : 254;
	struct rdma_conn_param accept = {
		.responder_resources = (uint8_t)(param->responder_resources < most ? param->responder_resources : most),
		.rnr_retry_count = 0,
	};
	if (status == GW_OK && rdma_accept(conn->qp->id, &accept) == 0)
		return GW_OK;
	/* The queue pair owns the id, and gw_verbs_client_end destroys it: reject before that. */
	const char *text = status != GW_OK ? gw_last_error() : "the server's device refused";
	rdma_reject(conn->qp->id, text, (uint8_t)strnlen(text, 100));
	gw_verbs_client_end(client);
	return GW_OK;
}

/* --- Requests. --- */

static void reply_with_error(struct verbs_client *client, gw_status status)
{
	const char *text = gw_last_error();
	uint32_t n = (uint32_t)strnlen(text, 512);
	gw_task_end(&client->task);
	gw_reply_begin(&client->task.reply, NULL, 0, 512);
	uint8_t *room = n ? gw_reply_extend(&client->task.reply, n) : NULL;
	if (room)
		memcpy(room, text, n);
	client->reply_status = status;
}

/* send_reply sends the handler's answer. */
static void verbs_client_run(struct verbs_client *client)
{
	gw_status status = gw_task_run(&client->task);
	if (status == GW_AGAIN) {
		uint64_t pause_ns = gw_task_pause_ns(&client->task);
		if (!pause_ns) {
			gw_queue_add(calls_of(client), &client->turn);
			return;
		}
		gw_queue_add(&client->cm_listener->loop->paused, &client->pause);
		verbs_client_timer(client, gw_now_ns() + pause_ns);
		return;
	}
	client->calling = false;
	client->replying = true;
	client->replied_ns = gw_now_ns();
	client->reply_sent = 0;
	client->reply_status = GW_OK;
	client->stall_timed = false;
	if (status != GW_OK)
		reply_with_error(client, status);
}

static void verbs_client_answer(struct verbs_client *client, const struct verbs_message *message, const uint8_t *bytes)
{
	struct gw_service *service = client->cm_listener->listener->base.service;
	struct gw_call call = {.op = message->op,
			       .bytes = bytes,
			       .byte_count = message->total,
			       .thread = client->cm_listener->number,
			       .group = client->cm_listener->loop->group,
			       .client_uuid = client->client_uuid,
			       .peer = &client->peer};
	uint64_t held = client->stream.pages.bytes + message->total, limit = service->limits.bytes_per_client;
	client->calling = true;
	client->reply_tag = message->tag;
	gw_task_begin(&client->task, service, &call, &message->once, 0, limit > held ? limit - held : 0);
	verbs_client_run(client);
}

static gw_status verbs_client_free_request(struct verbs_client *client)
{
	if (client->calling)
		return GW_OK;
	if (client->request && client->request_done == client->request_bytes) {
		gw_free(client->request);
		client->request = NULL;
	}
	if (!client->held)
		return GW_OK;
	client->held = false;
	return gw_verbs_stream_next(&client->stream);
}

static const struct gw_service_limits *limits_of(const struct verbs_client *client)
{
	return &client->cm_listener->listener->base.service->limits;
}

/* Allocates memory for a request in pieces, within the client's share. */
static gw_status request_begin(struct verbs_client *client, const struct verbs_message *message)
{
	if (client->stream.pages.bytes + message->total > limits_of(client)->bytes_per_client)
		return gw_fail(GW_LIMIT, "a request of %u bytes is above this server's memory for one client",
			       message->total);
	client->request = gw_malloc(message->total);
	if (!client->request)
		return GW_NO_MEMORY;
	client->request_bytes = message->total;
	client->request_tag = message->tag;
	client->request_done = 0;
	return GW_OK;
}

static bool is_inside_request(const struct verbs_client *client)
{
	return client->request && client->request_done < client->request_bytes;
}

static gw_status take_piece(struct verbs_client *client, const struct verbs_message *message, const uint8_t *body)
{
	if (message->type != VERBS_REQUEST || message->total > GW_REQUEST_BYTES_MAX ||
	    (message->bytes == 0 && message->total))
		return gw_fail(GW_PROTOCOL, "a malformed RDMA request");
	if (!client->request && message->bytes == message->total) {
		client->held = true;
		verbs_client_answer(client, message, body);
		return GW_OK;
	}
	gw_status status = client->request ? GW_OK : request_begin(client, message);
	if (status != GW_OK)
		return status;
	if (message->tag != client->request_tag || message->total != client->request_bytes ||
	    message->bytes > client->request_bytes - client->request_done)
		return gw_fail(GW_PROTOCOL, "an RDMA request whose pieces do not fit together");
	memcpy(client->request + client->request_done, body, message->bytes);
	client->request_done += message->bytes;
	client->piece_ns = gw_now_ns();
	verbs_client_timer(client, client->piece_ns + limits_of(client)->idle_ms * GW_NS_PER_MS);
	status = gw_verbs_stream_next(&client->stream);
	if (status == GW_OK && client->request_done == client->request_bytes)
		verbs_client_answer(client, message, client->request);
	return status;
}

/* As far as credits and send buffers allow. */
static void send_reply(struct verbs_client *client)
{
	uint32_t bytes;
	const uint8_t *data = gw_reply_data(&client->task.reply, &bytes);
	while (client->replying) {
		uint32_t left = bytes - client->reply_sent;
		struct verbs_message message = {
			.type = client->reply_status ? VERBS_ERROR : VERBS_REPLY,
			.status = (uint8_t)client->reply_status,
			.bytes = left < VERBS_PIECE_BYTES ? left : VERBS_PIECE_BYTES,
			.tag = client->reply_tag,
			.total = bytes,
		};
		if (gw_verbs_stream_send(&client->stream, &message, data ? data + client->reply_sent : NULL)) {
			if (!client->stall_timed) /* most replies leave at once, and need no timer */
				verbs_client_timer(client, client->replied_ns + GW_TASK_STALL_NS);
			client->stall_timed = true;
			return;
		}
		client->reply_sent += message.bytes;
		client->replied_ns = gw_now_ns();
		if (client->reply_sent < bytes)
			continue;
		client->replying = false;
		gw_task_end(&client->task);
	}
}

static gw_status verbs_client_serve(struct verbs_client *client)
{
	struct verbs_message message;
	const uint8_t *body;
	gw_status status = verbs_client_free_request(client);
	send_reply(client);
	while (status == GW_OK && !client->calling && !client->replying &&
	       !atomic_load(&client->cm_listener->listener->draining) &&
	       gw_verbs_stream_peek(&client->stream, &message, &body)) {
		status = take_piece(client, &message, body);
		if (status == GW_OK)
			status = verbs_client_free_request(client);
		send_reply(client);
	}
	gw_verbs_stream_grant(&client->stream);
	gw_verbs_stream_flush(&client->stream);
	return status != GW_OK ? status : client->stream.failure;
}

void gw_verbs_clients_call(struct verbs_loop *loop)
{
	if (!loop->calls.first)
		return;
	struct verbs_client *client = CLIENT_OF(loop->calls.first, turn);
	gw_queue_drop(&loop->calls, &client->turn);
	gw_queue_drop(&loop->paused, &client->pause);
	verbs_client_run(client);
	if (!client->calling)
		gw_verbs_defer(loop, &client->deferred);
}

void gw_verbs_clients_woken(struct verbs_loop *loop)
{
	struct gw_queued *pause;
	while ((pause = loop->paused.first)) {
		struct verbs_client *client = CLIENT_OF(pause, pause);
		gw_queue_drop(&loop->paused, pause);
		gw_queue_add(&loop->calls, &client->turn);
	}
}

bool gw_verbs_client_busy(const struct verbs_client *client)
{
	return client->calling || client->replying || client->stream.send_begin != client->stream.send_end;
}

/* Ends a client that is silent inside a request; true if it did. */
static bool tick_request(struct verbs_client *client, uint64_t now_ns)
{
	if (!is_inside_request(client))
		return false;
	uint64_t due = client->piece_ns + limits_of(client)->idle_ms * GW_NS_PER_MS;
	if (now_ns < due) {
		verbs_client_timer(client, due);
		return false;
	}
	gw_log(GW_LOG_INFO, "an RDMA client is silent inside a request of %u bytes: ended", client->request_bytes);
	gw_verbs_client_end(client);
	return true;
}

/* Ends a client that does not read its reply while others need the memory. */
static void tick_reply(struct verbs_client *client, uint64_t now_ns)
{
	if (!client->replying)
		return;
	if (!gw_task_stalls(&client->task, client->replied_ns, now_ns)) {
		uint64_t due = client->replied_ns + GW_TASK_STALL_NS;
		verbs_client_timer(client, due > now_ns ? due : now_ns + STALL_LOOK_NS);
		return;
	}
	gw_count(&client->cm_listener->listener->base.service->counts.dropped, 1);
	gw_log(GW_LOG_WARN, "an RDMA client does not read its reply, and others need the memory: ended");
	gw_verbs_client_end(client);
}

static void verbs_client_tick(struct verbs_client *client, uint64_t now_ns)
{
	if (client->established < client->qp_count) {
		if (now_ns < client->expires_ns)
			verbs_client_timer(client, client->expires_ns);
		else
			gw_verbs_client_end(client);
		return;
	}
	if (tick_request(client, now_ns))
		return;
	if (client->calling)
		gw_queue_add(calls_of(client), &client->turn);
	tick_reply(client, now_ns);
}

void gw_verbs_clients_tick(struct verbs_cm_listener *cm_listener, uint64_t now_ns)
{
	struct gw_deadline *due;
	while ((due = gw_deadlines_take(&cm_listener->deadlines, now_ns)))
		verbs_client_tick(CLIENT_OF(due, deadline), now_ns);
	verbs_timer(cm_listener->loop, gw_deadlines_first(&cm_listener->deadlines));
}

static void client_run(struct verbs_deferred *deferred)
{
	struct verbs_client *client = CLIENT_OF(deferred, deferred);
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < client->qp_count && status == GW_OK; i++)
		if (client->conns[i].qp && client->conns[i].qp->failure)
			status = gw_fail(GW_PEER_LOST, "RDMA %s", gw_verbs_qp_reason(client->conns[i].qp));
	if (status == GW_OK && client->stream.qp)
		status = verbs_client_serve(client);
	if (status == GW_OK)
		return;
	gw_log(GW_LOG_INFO, "an RDMA client is ended: %s", gw_last_error());
	gw_verbs_client_end(client);
}
