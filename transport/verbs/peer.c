/* One client at the server.
 *
 *   question ─▶ token ─▶ connection requests, one for each queue pair ─▶ established ─▶ ended
 *
 * The server has no part in reads. Requests come over the first queue pair in messages; one is answered after the
 * other, and until its reply has gone out nothing more is taken: the client's messages stay in their receives, its
 * credits run out, and it holds one request and one reply of ours, no more. A client that does not read its replies
 * keeps nobody waiting, and is ended when others need the memory. Deferred calls of the loop's peers take turns, one
 * run for each look at the completion queues.
 *
 * Ends on a failed or disconnected queue pair, a malformed message, its TCP connection's end, a removed device, or when
 * its queue pairs do not come in time.
 */
#include <errno.h>
#include <openssl/crypto.h>
#include <string.h>
#include <sys/random.h>

#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "transport/verbs/listener.h"

static void peer_run(struct verbs_touch *touch);

/* --- Whose handlers have more to do. --- */

static void queue_add(struct verbs_peer *peer)
{
	struct verbs_peer **at = &peer->door->loop->calls;
	if (peer->queued)
		return;
	while (*at)
		at = &(*at)->next_queued;
	*at = peer;
	peer->next_queued = NULL;
	peer->queued = true;
}

static void queue_drop(struct verbs_peer *peer)
{
	struct verbs_peer **at = &peer->door->loop->calls;
	if (!peer->queued)
		return;
	while (*at != peer)
		at = &(*at)->next_queued;
	*at = peer->next_queued;
	peer->queued = false;
}

/* --- Beginning and end. --- */

void gw_verbs_peer_end(struct verbs_peer *peer)
{
	for (uint32_t i = 0; i < peer->queue_count; i++)
		if (peer->lines[i].queue)
			gw_verbs_queue_break(peer->lines[i].queue);
	for (uint32_t i = 0; i < peer->queue_count; i++)
		gw_verbs_queue_destroy(peer->lines[i].queue);
	gw_verbs_stream_end(&peer->stream);
	gw_verbs_untouch(peer->door->loop, &peer->touch);
	queue_drop(peer);
	*peer->previous = peer->next;
	if (peer->next)
		peer->next->previous = peer->previous;
	gw_task_end(&peer->task);
	gw_free(peer->request);
	gw_free(peer);
}

gw_status gw_verbs_peer_create(struct verbs_door *door, const struct gw_call *call,
			       const struct rail_question *question, struct verbs_peer **out)
{
	const struct gw_service *service = door->listener->base.service;
	*out = NULL;
	for (struct verbs_peer *peer = door->peers, *next; peer; peer = next) {
		next = peer->next;
		if (peer->connection == call->connection)
			gw_verbs_peer_end(peer);
	}
	struct verbs_peer *peer = gw_calloc(1, sizeof(*peer));
	if (!peer)
		return GW_NO_MEMORY;
	if (getrandom(peer->token, sizeof(peer->token), 0) != sizeof(peer->token)) {
		gw_free(peer);
		return gw_fail_errno(GW_IO, errno, "no random bytes for a token");
	}
	peer->touch.run = peer_run;
	peer->door = door;
	peer->connection = call->connection;
	memcpy(peer->client_uuid, call->client_uuid, sizeof(peer->client_uuid));
	peer->expires_ns = gw_now_ns() + service->limits.idle_ms * GW_NS_PER_MS;
	verbs_timer(door->loop, peer->expires_ns);
	peer->queue_count = question->queues < VERBS_QUEUES_MAX ? question->queues : VERBS_QUEUES_MAX;
	peer->previous = &door->peers;
	peer->next = door->peers;
	if (peer->next)
		peer->next->previous = &peer->next;
	door->peers = peer;
	*out = peer;
	return GW_OK;
}

/* --- Connection requests. --- */

static void line_event(struct verbs_hearer *hearer, const struct rdma_cm_event *event)
{
	struct verbs_line_in *line = (struct verbs_line_in *)hearer;
	struct verbs_peer *peer = line->peer;
	switch (event->event) {
	case RDMA_CM_EVENT_ESTABLISHED:
		if (!line->established)
			peer->established++;
		line->established = true;
		line->queue->connected = true;
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		verbs_timer(peer->door->loop, 0);
		gw_verbs_peer_end(peer);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
		gw_verbs_peer_end(peer);
		break;
	default: /* address changes, the end of TIMEWAIT */
		break;
	}
}

static void line_received(struct verbs_queue *queue, uint32_t slot, uint32_t bytes)
{
	struct verbs_peer *peer = queue->owner;
	gw_verbs_stream_received(&peer->stream, slot, bytes);
}

static void line_sent(struct verbs_queue *queue)
{
	struct verbs_peer *peer = queue->owner;
	gw_verbs_stream_sent(&peer->stream);
}

/* The server reads nothing. */
static void line_read(struct verbs_queue *queue, struct verbs_wr *wr)
{
	(void)queue;
	(void)wr;
}

static struct verbs_peer *peer_of(const struct verbs_door *door, const uint8_t token[RAIL_TOKEN_BYTES])
{
	for (struct verbs_peer *peer = door->peers; peer; peer = peer->next)
		if (CRYPTO_memcmp(peer->token, token, RAIL_TOKEN_BYTES) == 0)
			return peer;
	return NULL;
}

static struct verbs_rail *rail_of(struct verbs_door *door, const struct rdma_cm_id *id)
{
	struct verbs_listener *listener = door->listener;
	for (uint32_t i = 0; i < listener->rail_count; i++)
		if (!door->rails_gone[i] && listener->rails[i].device->context == id->verbs &&
		    !atomic_load(&listener->rails[i].device->dead))
			return &listener->rails[i];
	return NULL;
}

/* A queue pair for the id, ready to take messages if it is the first. */
static gw_status line_open(struct verbs_peer *peer, struct verbs_line_in *line, struct rdma_cm_id *id)
{
	struct verbs_port *port;
	gw_status status = gw_verbs_port_get(peer->door->loop, id, &port);
	if (status)
		return status;
	/* We read nothing: only messages are sent, by the first. */
	bool first = line == peer->lines;
	struct verbs_needs needs = {.work = first ? VERBS_SENDS : 1,
				    .sges = 1,
				    .receives = first ? VERBS_RECEIVES + VERBS_RECEIVES_SPARE : 0};
	status = gw_verbs_queue_create(port, id, peer->rail->pd, &needs, &line->queue);
	if (status)
		return status;
	*line = (struct verbs_line_in){.hearer.event = line_event, .peer = peer, .queue = line->queue};
	id->context = &line->hearer;
	line->queue->touch = &peer->touch;
	line->queue->owner = peer;
	line->queue->read_done = line_read;
	line->queue->received = line_received;
	line->queue->sent = line_sent;
	return first ? gw_verbs_stream_begin(&peer->stream, line->queue, peer->rail->pd) : GW_OK;
}

gw_status gw_verbs_peer_accept(struct verbs_door *door, struct rdma_cm_id *id, const struct rdma_conn_param *param)
{
	struct rail_ticket ticket;
	gw_status status = gw_rail_ticket(param->private_data, param->private_data_len, &ticket);
	if (status)
		return status;
	struct verbs_peer *peer = peer_of(door, ticket.token);
	struct verbs_rail *rail = rail_of(door, id);
	if (!peer || ticket.number >= peer->queue_count || peer->lines[ticket.number].queue)
		return gw_fail(GW_REFUSED, "this ticket is used up or out of date");
	if (!rail || (peer->rail && peer->rail != rail))
		return gw_fail(GW_REFUSED, "this ticket is for another device");
	peer->rail = rail;
	struct verbs_line_in *line = &peer->lines[ticket.number];
	status = line_open(peer, line, id);
	if (status && !line->queue)
		return status;
	uint32_t most = (uint32_t)rail->device->attr.max_qp_rd_atom;
	most = most < 254 ? most : 254;
	struct rdma_conn_param accept = {
		.responder_resources = (uint8_t)(param->responder_resources < most ? param->responder_resources : most),
		.rnr_retry_count = 0,
	};
	if (!status && rdma_accept(line->queue->id, &accept) == 0)
		return GW_OK;
	/* The id is the queue's: turned down here, where it still is one. */
	const char *text = status ? gw_last_error() : "the server's device refused";
	rdma_reject(line->queue->id, text, (uint8_t)strnlen(text, 100));
	gw_verbs_peer_end(peer);
	return GW_OK;
}

/* --- Requests. --- */

/* An error's text instead of the reply. */
static void begin_error(struct verbs_peer *peer, gw_status status)
{
	const char *text = gw_last_error();
	uint32_t n = (uint32_t)strnlen(text, 512);
	gw_task_end(&peer->task);
	gw_reply_begin(&peer->task.reply, NULL, 0, 512);
	uint8_t *room = n ? gw_reply_extend(&peer->task.reply, n) : NULL;
	if (room)
		memcpy(room, text, n);
	peer->reply_status = status;
}

/* One run of the handler. What it answered is sent by send_reply. */
static void run(struct verbs_peer *peer)
{
	gw_status status = gw_task_run(&peer->task);
	if (status == GW_AGAIN) {
		if (peer->task.reply.short_of_room)
			verbs_timer(peer->door->loop, gw_now_ns() + GW_TASK_ROOM_NS);
		else
			queue_add(peer);
		return;
	}
	peer->calling = false;
	peer->replying = true;
	peer->replied_ns = gw_now_ns();
	peer->reply_sent = 0;
	peer->reply_status = GW_OK;
	if (status)
		begin_error(peer, status);
}

static void answer(struct verbs_peer *peer, const struct verbs_message *message, const uint8_t *bytes)
{
	struct gw_service *service = peer->door->listener->base.service;
	struct gw_call call = {
		.op = message->op, .bytes = bytes, .byte_count = message->total, .client_uuid = peer->client_uuid};
	uint64_t held = peer->stream.pages.bytes + message->total, limit = service->limits.bytes_per_client;
	peer->calling = true;
	peer->reply_tag = message->tag;
	gw_task_begin(&peer->task, service, &call, message->sequence, peer->door->number, 0,
		      limit > held ? limit - held : 0);
	run(peer);
}

/* The bytes of a request whose handler is through may go. */
static gw_status settle(struct verbs_peer *peer)
{
	if (peer->calling)
		return GW_OK;
	if (peer->request && peer->request_done == peer->request_bytes) {
		gw_free(peer->request);
		peer->request = NULL;
	}
	if (!peer->held)
		return GW_OK;
	peer->held = false;
	return gw_verbs_stream_next(&peer->stream);
}

/* Another piece of a request. */
static gw_status take_piece(struct verbs_peer *peer, const struct verbs_message *message, const uint8_t *body)
{
	if (message->type != VERBS_REQUEST || message->total > GW_REQUEST_BYTES_MAX ||
	    (message->bytes == 0 && message->total))
		return gw_fail(GW_PROTOCOL, "a malformed RDMA request");
	if (!peer->request && message->bytes == message->total) {
		peer->held = true;
		answer(peer, message, body);
		return GW_OK;
	}
	if (!peer->request) {
		peer->request = gw_malloc(message->total);
		if (!peer->request)
			return GW_NO_MEMORY;
		peer->request_bytes = message->total;
		peer->request_tag = message->tag;
		peer->request_done = 0;
	}
	if (message->tag != peer->request_tag || message->total != peer->request_bytes ||
	    message->bytes > peer->request_bytes - peer->request_done)
		return gw_fail(GW_PROTOCOL, "an RDMA request whose pieces do not fit together");
	memcpy(peer->request + peer->request_done, body, message->bytes);
	peer->request_done += message->bytes;
	gw_status status = gw_verbs_stream_next(&peer->stream);
	if (!status && peer->request_done == peer->request_bytes)
		answer(peer, message, peer->request);
	return status;
}

/* Sends as much of the reply as there are credits for. */
static void send_reply(struct verbs_peer *peer)
{
	uint32_t bytes;
	const uint8_t *data = gw_reply_data(&peer->task.reply, &bytes);
	while (peer->replying) {
		uint32_t left = bytes - peer->reply_sent;
		struct verbs_message message = {
			.type = peer->reply_status ? VERBS_ERROR : VERBS_REPLY,
			.status = (uint8_t)peer->reply_status,
			.bytes = left < VERBS_PIECE_BYTES ? left : VERBS_PIECE_BYTES,
			.tag = peer->reply_tag,
			.total = bytes,
		};
		if (gw_verbs_stream_send(&peer->stream, &message, data ? data + peer->reply_sent : NULL))
			return;
		peer->reply_sent += message.bytes;
		peer->replied_ns = gw_now_ns();
		if (peer->reply_sent < bytes)
			continue;
		peer->replying = false;
		gw_task_end(&peer->task);
	}
}

static gw_status serve(struct verbs_peer *peer)
{
	struct verbs_message message;
	const uint8_t *body;
	gw_status status = settle(peer);
	send_reply(peer);
	while (!status && !peer->calling && !peer->replying && !atomic_load(&peer->door->listener->draining) &&
	       gw_verbs_stream_peek(&peer->stream, &message, &body)) {
		status = take_piece(peer, &message, body);
		if (!status)
			status = settle(peer);
		send_reply(peer);
	}
	gw_verbs_stream_grant(&peer->stream);
	return status ? status : peer->stream.failure;
}

void gw_verbs_peers_call(struct verbs_loop *loop)
{
	struct verbs_peer *peer = loop->calls;
	if (!peer)
		return;
	queue_drop(peer);
	run(peer);
	if (!peer->calling)
		gw_verbs_touch(loop, &peer->touch);
}

bool gw_verbs_peer_busy(const struct verbs_peer *peer)
{
	return peer->calling || peer->replying || peer->stream.send_begin != peer->stream.send_end;
}

void gw_verbs_peer_tick(struct verbs_peer *peer, uint64_t now_ns)
{
	if (peer->calling)
		queue_add(peer);
	if (!peer->replying || !gw_task_stalls(&peer->task, peer->replied_ns, now_ns))
		return;
	gw_count(&peer->door->listener->base.service->counts.dropped, 1);
	gw_log(GW_LOG_WARN, "an RDMA client does not read its reply, and others need the memory: ended");
	gw_verbs_peer_end(peer);
}

static void peer_run(struct verbs_touch *touch)
{
	struct verbs_peer *peer = (struct verbs_peer *)(void *)((uint8_t *)touch - offsetof(struct verbs_peer, touch));
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < peer->queue_count && !status; i++)
		if (peer->lines[i].queue && peer->lines[i].queue->failure)
			status = gw_fail(GW_PEER_LOST, "RDMA %s", gw_verbs_queue_reason(peer->lines[i].queue));
	if (!status && peer->stream.queue)
		status = serve(peer);
	if (!status)
		return;
	gw_log(GW_LOG_INFO, "an RDMA client is ended: %s", gw_last_error());
	gw_verbs_peer_end(peer);
}
