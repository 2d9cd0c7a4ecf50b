/* Two-sided calls of a client. Each request is cut into messages, which are sent one after the other as credits allow.
 * Small requests leave together, with the next poll: those of all hops and batches in flight cost one call to the
 * device. Replies arrive in the order of the requests. A request whose caller has ended it (deadline, cancel) keeps its
 * place until its reply has arrived. Fails by losing the endpoint: on a reply that no request expects, and without
 * memory for a reply.
 */
#include <string.h>

#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "transport/verbs/endpoint_private.h"

static gw_status request_broken(struct verbs_endpoint *endpoint, const char *what)
{
	char text[GW_ADDRESS_MAX];
	return gw_fail(GW_PROTOCOL, "%s: %s", gw_verbs_name(endpoint, text), what);
}

/* The request keeps its place until its reply has arrived. */
static void request_complete(struct verbs_endpoint *endpoint, struct verbs_request *request, gw_status status)
{
	if (!request->note)
		return;
	gw_completions_post(&endpoint->loop->completions, request->note, status);
	request->note = NULL;
}

static void request_retire(struct verbs_endpoint *endpoint)
{
	struct verbs_request *request = verbs_request_at(endpoint, endpoint->oldest++);
	endpoint->loop->open--;
	gw_free(request->bytes);
	gw_free(request->reply);
	request->bytes = request->reply = NULL;
	if (endpoint->room_wanted) {
		endpoint->room_wanted = false;
		gw_poll_group_room(endpoint->loop->group);
	}
}

static void request_take_error(struct verbs_endpoint *endpoint, struct verbs_request *request,
			       const struct verbs_message *message, const uint8_t *body)
{
	char text[GW_ADDRESS_MAX], said[513];
	uint32_t n = message->bytes < sizeof(said) - 1 ? message->bytes : (uint32_t)sizeof(said) - 1;
	memcpy(said, body, n);
	said[n] = 0;
	for (uint32_t i = 0; i < n; i++)
		if ((unsigned char)said[i] < ' ')
			said[i] = said[i] ? ' ' : 0;
	gw_status status = message->status;
	if (status == GW_OK || status >= GW_STATUS_COUNT)
		status = GW_PROTOCOL;
	request_complete(endpoint, request, gw_fail(status, "%s: %s", gw_verbs_name(endpoint, text), said));
	request_retire(endpoint);
}

static gw_status request_take_reply(struct verbs_endpoint *endpoint, struct verbs_request *request,
				    const struct verbs_message *message, const uint8_t *body)
{
	if (!request->answered) {
		if (message->total > GW_REPLY_BYTES_MAX)
			return request_broken(endpoint, "a reply longer than the limit");
		request->reply = gw_malloc(message->total);
		if (!request->reply)
			return GW_NO_MEMORY;
		request->reply_bytes = message->total;
		request->reply_done = 0;
		request->answered = true;
	}
	if (message->total != request->reply_bytes || message->bytes > message->total - request->reply_done ||
	    (message->bytes == 0 && message->total))
		return request_broken(endpoint, "a reply whose pieces do not fit together");
	if (message->bytes)
		memcpy(request->reply + request->reply_done, body, message->bytes);
	request->reply_done += message->bytes;
	if (request->reply_done < request->reply_bytes)
		return GW_OK;
	if (request->note) {
		request->note->memory = request->reply;
		request->note->reply = request->reply;
		request->note->reply_bytes = request->reply_bytes;
		request->reply = NULL;
		request_complete(endpoint, request, GW_OK);
	}
	request_retire(endpoint);
	return GW_OK;
}

static gw_status take_messages(struct verbs_endpoint *endpoint)
{
	struct verbs_message message;
	const uint8_t *body;
	while (gw_verbs_stream_peek(&endpoint->stream, &message, &body)) {
		if (endpoint->oldest == endpoint->unsent)
			return request_broken(endpoint, "an answer without a request");
		struct verbs_request *request = verbs_request_at(endpoint, endpoint->oldest);
		gw_status status = GW_OK;
		if (message.tag != request->tag || message.type == VERBS_REQUEST)
			return request_broken(endpoint, "an answer that does not match its request");
		if (message.type == VERBS_ERROR)
			request_take_error(endpoint, request, &message, body);
		else
			status = request_take_reply(endpoint, request, &message, body);
		if (status == GW_OK)
			status = gw_verbs_stream_next(&endpoint->stream);
		if (status != GW_OK)
			return status;
	}
	return endpoint->stream.failure;
}

/* As far as credits and send buffers allow. */
static void send_messages(struct verbs_endpoint *endpoint)
{
	while (endpoint->unsent != endpoint->newest) {
		struct verbs_request *request = verbs_request_at(endpoint, endpoint->unsent);
		uint32_t left = request->n - request->sent;
		struct verbs_message message = {
			.type = VERBS_REQUEST,
			.op = request->op,
			.bytes = left < VERBS_PIECE_BYTES ? left : VERBS_PIECE_BYTES,
			.tag = request->tag,
			.once = request->once,
			.total = request->n,
		};
		if (gw_verbs_stream_send(&endpoint->stream, &message, request->bytes + request->sent))
			return;
		request->sent += message.bytes;
		if (request->sent < request->n)
			continue;
		endpoint->unsent_bytes -= request->n;
		gw_free(request->bytes);
		request->bytes = NULL;
		endpoint->unsent++;
	}
}

void gw_verbs_requests_fail(struct verbs_endpoint *endpoint, gw_status status)
{
	while (endpoint->oldest != endpoint->newest) {
		request_complete(endpoint, verbs_request_at(endpoint, endpoint->oldest), status);
		request_retire(endpoint);
	}
	endpoint->unsent = endpoint->newest;
	endpoint->unsent_bytes = 0;
}

void gw_verbs_requests_pump(struct verbs_endpoint *endpoint)
{
	gw_status status = take_messages(endpoint);
	if (status != GW_OK) {
		gw_verbs_lose(endpoint, status);
		return;
	}
	send_messages(endpoint);
	gw_verbs_stream_grant(&endpoint->stream);
	gw_verbs_stream_flush(&endpoint->stream);
}

void gw_verbs_requests_leave(struct verbs_deferred *leaving)
{
	struct verbs_endpoint *endpoint =
		(struct verbs_endpoint *)(void *)((uint8_t *)leaving - offsetof(struct verbs_endpoint, leaving));
	send_messages(endpoint);
	gw_verbs_stream_flush(&endpoint->stream);
}

gw_status gw_verbs_request(struct gw_endpoint *base, uint16_t op, const struct gw_once *once, const void *bytes,
			   uint32_t n, uint64_t deadline_ns, void *cookie)
{
	struct verbs_endpoint *endpoint = (struct verbs_endpoint *)base;
	char text[GW_ADDRESS_MAX];
	struct gw_note *note;
	if (n > GW_REQUEST_BYTES_MAX)
		return gw_fail(GW_LIMIT, "a request of %u bytes; %u are possible", n, GW_REQUEST_BYTES_MAX);
	if (endpoint->phase != ENDPOINT_OPENED)
		return gw_completions_answer(
			&endpoint->loop->completions, cookie,
			gw_fail(GW_PEER_LOST, "%s is not connected", gw_verbs_name(endpoint, text)));
	if (verbs_requests_open(endpoint) >= endpoint->requests_max ||
	    (endpoint->unsent_bytes && n > ENDPOINT_SEND_BYTES - endpoint->unsent_bytes)) {
		endpoint->room_wanted = true;
		return gw_fail(GW_AGAIN, "%u requests are open", verbs_requests_open(endpoint));
	}
	gw_status status = gw_note_create(cookie, &note);
	if (status != GW_OK)
		return status;
	struct verbs_request *request = verbs_request_at(endpoint, endpoint->newest);
	*request = (struct verbs_request){.tag = ++endpoint->tag,
					  .once = once ? *once : (struct gw_once){0},
					  .deadline_ns = deadline_ns ? deadline_ns : GW_NO_DEADLINE,
					  .note = note,
					  .op = op,
					  .n = n};
	request->bytes = gw_malloc(n);
	if (!request->bytes) {
		gw_note_destroy(note);
		return GW_NO_MEMORY;
	}
	if (n)
		memcpy(request->bytes, bytes, n);
	verbs_timer(endpoint->loop, request->deadline_ns);
	endpoint->newest++;
	endpoint->loop->open++;
	endpoint->unsent_bytes += n;
	if (endpoint->unsent_bytes >= GW_TOGETHER_BYTES)
		gw_verbs_requests_leave(&endpoint->leaving);
	else
		gw_verbs_defer(endpoint->loop, &endpoint->leaving);
	return GW_OK;
}

void gw_verbs_request_cancel(struct gw_endpoint *base, const void *cookie)
{
	struct verbs_endpoint *endpoint = (struct verbs_endpoint *)base;
	for (uint32_t at = endpoint->oldest; at != endpoint->newest; at++) {
		struct verbs_request *request = verbs_request_at(endpoint, at);
		if (!request->note || request->note->cookie != cookie)
			continue;
		request_complete(endpoint, request, gw_fail(GW_CANCELLED, "cancelled"));
		return;
	}
}

void gw_verbs_requests_tick(struct verbs_endpoint *endpoint, uint64_t now_ns)
{
	char text[GW_ADDRESS_MAX];
	for (uint32_t at = endpoint->oldest; at != endpoint->newest; at++) {
		struct verbs_request *request = verbs_request_at(endpoint, at);
		if (!request->note)
			continue;
		if (now_ns < request->deadline_ns)
			verbs_timer(endpoint->loop, request->deadline_ns);
		else
			request_complete(
				endpoint, request,
				gw_fail(GW_DEADLINE, "request to %s: not done in time", gw_verbs_name(endpoint, text)));
	}
}
