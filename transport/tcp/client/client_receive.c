/* Receives the answers to this client's questions (its reads, requests, pings and region opens).
 *
 *   header ─▶ DATA  ─▶ in place if the destination is contiguous and long, else staging buffer ─▶ rows
 *                  └─▶ versioned rows: the question stays open until TORN has named the torn ones
 *          ─▶ REPLY ─▶ memory of its own, allocated once its length is known and within the limit
 *          ─▶ ERROR, PONG, hello ─▶ the complete frame in the staging buffer
 *
 * A receive in place also takes the next frame's header, into the staging buffer. So large frames follow each other
 * without extra calls. Every length is checked against the question before a byte of the body is taken; a mismatch ends
 * the connection (GW_PROTOCOL). The bytes of a failed set are received into the staging buffer and dropped.
 */
#include <errno.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "transport/tcp/client/client_private.h"
#include "transport/tcp/socket.h"

static uint32_t receive_staged(const struct tcp_client *client)
{
	return client->in_end - client->in_begin;
}

/* Whether the oldest question's answer is to be received in place. */
static bool expects_direct(struct tcp_client *client)
{
	if (client->phase != CLIENT_OPEN || client_queued(client) == 0)
		return false;
	const struct client_frame *frame = client_oldest(client);
	return frame->set && !frame->landed && frame->dest.direct && frame->bytes >= CLIENT_DIRECT_MIN;
}

static struct iovec staging_room(struct tcp_client *client)
{
	if (receive_staged(client) == 0) {
		client->in_begin = client->in_end = 0;
	} else if (client->in_begin) {
		memmove(client->staging, client->staging + client->in_begin, receive_staged(client));
		client->in_end -= client->in_begin;
		client->in_begin = 0;
	}
	return (struct iovec){client->staging + client->in_end, CLIENT_STAGING_BYTES - client->in_end};
}

size_t gw_tcp_client_target(struct tcp_io *io, struct iovec *iov)
{
	struct tcp_client *client = client_of_io(io);
	size_t pieces = 0;
	client->direct = 0;
	struct iovec room = staging_room(client);
	if (client->in_body && client->header.type == WIRE_REPLY) {
		iov[pieces++] = (struct iovec){client->reply + client->reply_done, client->body_left};
		client->direct = client->body_left;
	} else if (client->in_body && client->header.type == WIRE_DATA) {
		struct client_frame *frame = client_oldest(client);
		if (frame->set && frame->dest.direct && client->body_left >= CLIENT_DIRECT_MIN) {
			pieces = gw_tcp_dest_pieces(&frame->dest, iov, TCP_IOV_MAX - 1);
			for (size_t i = 0; i < pieces; i++)
				client->direct += iov[i].iov_len;
		}
	}
	/* The header of the next frame follows a body that is received in place; that frame's body often goes in place
	 * too. So the staging buffer takes only the header. If iov has only some of the body's pieces, the staging
	 * buffer takes nothing. */
	if (pieces && client->direct < client->body_left)
		return pieces;
	if (pieces || (!client->in_body && receive_staged(client) < WIRE_HEADER_BYTES && expects_direct(client)))
		room.iov_len = WIRE_HEADER_BYTES - receive_staged(client);
	iov[pieces++] = room;
	return pieces;
}

static gw_status receive_broken(struct tcp_client *client, const char *what)
{
	char text[GW_ADDRESS_MAX];
	return gw_fail(GW_PROTOCOL, "%s: %s", gw_tcp_client_name(client, text), what);
}

static void receive_answered(struct tcp_client *client)
{
	client->in_body = false;
	struct client_frame *frame = client_oldest(client);
	if (frame->type == WIRE_REQUEST)
		client->requests_open--;
	gw_tcp_client_frame_end(client, frame);
	client->queue_begin++;
	gw_tcp_client_room(client);
}

/* The oldest read's payload has arrived; TORN comes next. */
static void receive_landed(struct tcp_client *client)
{
	client->in_body = false;
	client_oldest(client)->landed = true;
}

/* Sets how many bytes wake the client next. The mark is at most the rest of the answer, since perhaps no bytes follow
 * the answer. It is at most a quarter of the receive buffer, so that the peer goes on sending while the client copies.
 * (For a mark near the buffer's size, the kernel would enlarge the buffer and clamp the window to the mark.) It is
 * a quarter of the rest if no other answer follows, so that the client copies while the server still sends, and in a
 * group that spins, which has no wake-ups to save. */
static void set_low_water(struct tcp_client *client)
{
	const bool certain = client->header.type == WIRE_DATA || client->header.type == WIRE_REPLY;
	uint64_t mark = client->in_body && client->phase == CLIENT_OPEN && certain ? client->body_left : 0;
	if (mark >= CLIENT_LOW_WATER_MIN) {
		if (client->low_water_max < CLIENT_LOW_WATER_MAX)
			client->low_water_max = gw_socket_receive_buffer(client->io.fd) / 4;
		bool early = client_queued(client) == 1 || gw_poll_group_options(client->loop->group)->spin_ns;
		if (early && mark / 4 >= CLIENT_LOW_WATER_MIN)
			mark /= 4;
		mark = mark < client->low_water_max ? mark : client->low_water_max;
		mark = mark < CLIENT_LOW_WATER_MAX ? mark : CLIENT_LOW_WATER_MAX;
	}
	client->io.low_water = mark >= CLIENT_LOW_WATER_MIN ? (uint32_t)mark : 1;
	if (client->io.low_water > 1)
		tcp_loop_timer(client->loop, client->heard_ns + CLIENT_LOW_WATER_NS);
}

/* An answer's body begins: checks it against the question. */
static gw_status begin_body(struct tcp_client *client)
{
	const struct wire_header *header = &client->header;
	client->body_left = header->bytes;
	client->in_body = true;
	if (header->type == WIRE_ERROR && header->tag == 0)
		return GW_OK;
	bool unasked = header->type == WIRE_WITHDRAWN || header->type == WIRE_PONG || header->type == WIRE_MOVED;
	if (unasked && header->tag == 0 && client->phase == CLIENT_OPEN)
		return GW_OK;
	if (client->phase != CLIENT_OPEN)
		return header->type == WIRE_CHALLENGE || header->type == WIRE_WELCOME || header->type == WIRE_MEMORY
			       ? GW_OK
			       : receive_broken(client, "an answer before the end of the hello");
	if (client_queued(client) == 0 || client_oldest(client)->tag != header->tag)
		return receive_broken(client, "an answer without a question");
	struct client_frame *frame = client_oldest(client);
	bool read = frame->type == WIRE_GATHER || frame->type == WIRE_READV;
	if (header->type == WIRE_ERROR && frame->type != WIRE_PING)
		return GW_OK;
	if (header->type == WIRE_DATA && read && !frame->landed && header->bytes == frame->bytes)
		return GW_OK;
	if (header->type == WIRE_TORN && frame->landed)
		return GW_OK;
	if (header->type == WIRE_PONG && frame->type == WIRE_PING)
		return GW_OK;
	if (header->type == WIRE_REGION && frame->type == WIRE_OPEN)
		return GW_OK;
	if (header->type != WIRE_REPLY || frame->type != WIRE_REQUEST)
		return receive_broken(client, "an answer that does not fit the question");
	client->reply_done = 0;
	client->reply = gw_malloc(header->bytes);
	return client->reply ? GW_OK : GW_NO_MEMORY;
}

/* On loopback, the text names the file that was looked for. */
static gw_status key_is_wanted(const struct tcp_client *client, const char *name)
{
	char path[GW_RUNTIME_PATH_MAX];
	if (!client->must_prove || !*gw_key_place(client->address.port, path))
		return gw_fail(GW_REFUSED,
			       "%s: " WIRE_KEY_WANTED ", and the client has none; give the server's key file", name);
	return gw_fail(GW_REFUSED,
		       "%s: " WIRE_KEY_WANTED ", and %s does not exist: "
		       "give the server's key file, or set XDG_RUNTIME_DIR here to the server's value",
		       name, path);
}

static gw_status receive_take_error(struct tcp_client *client, const uint8_t *body)
{
	char text[GW_ADDRESS_MAX], said[WIRE_ERROR_TEXT + 1];
	uint32_t n = client->header.bytes;
	memcpy(said, body, n);
	said[n] = 0;
	for (uint32_t i = 0; i < n; i++)
		if ((unsigned char)said[i] < ' ')
			said[i] = said[i] ? ' ' : 0;
	gw_status status = client->header.status;
	if (status == GW_OK || status >= GW_STATUS_COUNT)
		status = GW_PROTOCOL;
	if (client->header.tag == 0) {
		bool known = status == GW_VERSION || status == GW_WRONG_GRAPH;
		if (client->phase != CLIENT_OPEN && !known)
			status = GW_REFUSED;
		gw_tcp_client_name(client, text);
		if (client->phase != CLIENT_OPEN && !client->auth.key_bytes && strstr(said, WIRE_KEY_WANTED))
			return key_is_wanted(client, text);
		return gw_fail(status, "%s: %s", text, said);
	}
	struct client_frame *frame = client_oldest(client);
	gw_fail(status, "%s: %s", gw_tcp_client_name(client, text), said);
	if (frame->note) {
		gw_completions_post(&client->loop->completions, frame->note, status);
		frame->note = NULL;
	}
	if (frame->set) {
		struct gw_read_set *set = frame->set;
		gw_read_set_fail(set, status);
		gw_tcp_client_drop_set(client, set);
	}
	receive_answered(client);
	return GW_OK;
}

static gw_status receive_take_torn(struct tcp_client *client, const uint8_t *body)
{
	struct client_frame *frame = client_oldest(client);
	char text[GW_ADDRESS_MAX];
	gw_status status = gw_wire_torn(body, client->header.bytes, frame->count);
	if (status != GW_OK)
		return gw_context(status, "%s", gw_tcp_client_name(client, text));
	for (uint32_t at = 0; frame->set && at < client->header.bytes; at += 4) {
		uint32_t i;
		memcpy(&i, body + at, 4);
		if (frame->spans) {
			gw_read_set_torn(frame->set, frame->spans[i].remote, frame->spans[i].local);
		} else {
			uint64_t row = frame->gather.rows ? frame->gather.rows[i] : i;
			gw_read_set_torn(frame->set, frame->gather.remote[i],
					 frame->gather.local + row * frame->gather.stride);
		}
	}
	receive_answered(client);
	return GW_OK;
}

static void receive_take_reply(struct tcp_client *client)
{
	struct client_frame *frame = client_oldest(client);
	if (frame->note) {
		frame->note->memory = client->reply;
		frame->note->reply = client->reply;
		frame->note->reply_bytes = client->header.bytes;
		gw_completions_post(&client->loop->completions, frame->note, GW_OK);
		frame->note = NULL;
	} else {
		gw_free(client->reply);
	}
	client->reply = NULL;
	receive_answered(client);
}

/* The body must be complete in the staging buffer. */
static gw_status take_whole(struct tcp_client *client, bool *more)
{
	const uint8_t *body = client->staging + client->in_begin;
	if (receive_staged(client) < client->header.bytes) {
		*more = false;
		return GW_OK;
	}
	client->in_begin += client->header.bytes;
	client->in_body = false;
	if (client->header.type == WIRE_ERROR)
		return receive_take_error(client, body);
	if (client->phase != CLIENT_OPEN)
		return gw_tcp_client_hello(client, &client->header, body);
	if (client->header.type == WIRE_TORN)
		return receive_take_torn(client, body);
	gw_status status = GW_OK;
	if (client->header.type == WIRE_WITHDRAWN)
		return gw_tcp_client_take_withdrawn(client, body);
	if (client->header.type == WIRE_MOVED)
		client->base.moved = true; /* open questions are still answered; then the stream ends */
	if (client->header.tag == 0)
		return GW_OK; /* a notice or a sign of life: it answers no question */
	if (client->header.type == WIRE_REGION)
		status = gw_tcp_client_take_region(client, body);
	if (status == GW_OK && client->phase != CLIENT_LOST)
		receive_answered(client); /* a PONG or a REGION answers the oldest question */
	return status;
}

static void take_staged_part(struct tcp_client *client, bool *more)
{
	uint64_t n = receive_staged(client) < client->body_left ? receive_staged(client) : client->body_left;
	const uint8_t *bytes = client->staging + client->in_begin;
	struct client_frame *frame = client_oldest(client);
	if (client->header.type == WIRE_REPLY) {
		if (n)
			memcpy(client->reply + client->reply_done, bytes, n);
		client->reply_done += n;
	} else if (frame->set) {
		gw_tcp_dest_copy(&frame->dest, bytes, n);
	}
	client->in_begin += (uint32_t)n;
	client->body_left -= n;
	if (client->body_left)
		*more = false;
	else if (client->header.type == WIRE_REPLY)
		receive_take_reply(client);
	else if (frame->rows)
		receive_landed(client);
	else
		receive_answered(client);
}

static gw_status receive_parse(struct tcp_client *client)
{
	gw_status status = GW_OK;
	for (bool more = true; more && status == GW_OK && client->phase != CLIENT_LOST;) {
		if (!client->in_body) {
			if (receive_staged(client) < WIRE_HEADER_BYTES)
				return GW_OK;
			status = gw_wire_header(client->staging + client->in_begin, false, client->auth.version,
						&client->header);
			if (status != GW_OK) {
				char text[GW_ADDRESS_MAX];
				return gw_context(status, "%s", gw_tcp_client_name(client, text));
			}
			client->in_begin += WIRE_HEADER_BYTES;
			status = begin_body(client);
		} else if (client->phase == CLIENT_OPEN &&
			   (client->header.type == WIRE_DATA || client->header.type == WIRE_REPLY)) {
			take_staged_part(client, &more);
		} else {
			status = take_whole(client, &more);
		}
	}
	return status;
}

/* Takes n bytes that the kernel wrote to their destination. */
static void take_direct(struct tcp_client *client, uint64_t n)
{
	client->body_left -= n;
	if (client->header.type == WIRE_REPLY)
		client->reply_done += n;
	else
		gw_tcp_dest_skip(&client_oldest(client)->dest, n);
}

void gw_tcp_client_received(struct tcp_io *io, ssize_t n)
{
	struct tcp_client *client = client_of_io(io);
	char text[GW_ADDRESS_MAX];
	uint64_t direct = client->direct;
	client->direct = 0;
	gw_status status = GW_OK;
	if (n > 0) {
		client->heard_ns = tcp_loop_now(client->loop);
		client->probed = false;
		uint64_t landed = (uint64_t)n < direct ? (uint64_t)n : direct;
		if (landed)
			take_direct(client, landed);
		client->in_end += (uint32_t)((uint64_t)n - landed);
	}
	if (client->direct_dying) {
		client->direct_dying = false;
		gw_tcp_client_frame_end(client, client_oldest(client));
	}
	if (n > 0)
		status = receive_parse(client);
	else if (n == 0)
		status = gw_fail(GW_PEER_LOST, "%s: the server %s%s", gw_tcp_client_name(client, text),
				 client->base.moved ? "has a successor" : "closed the connection",
				 client->phase == CLIENT_HELLO_SENT ? " after the hello; is it a Graphwire server?"
								    : "");
	else if (n != -ECANCELED)
		status = gw_fail_errno(GW_PEER_LOST, (int)-n, "%s", gw_tcp_client_name(client, text));
	if (status != GW_OK)
		gw_tcp_client_lose(client, status);
	else
		set_low_water(client);
}

static gw_status hello_challenge(struct tcp_client *client, const struct wire_header *header, const uint8_t *body)
{
	char text[GW_ADDRESS_MAX];
	struct wire_challenge challenge;
	gw_tcp_client_name(client, text);
	if (header->type != WIRE_CHALLENGE)
		return receive_broken(client, "no challenge after the hello");
	gw_status status = gw_wire_challenge(body, header->bytes, &challenge, &client->auth.version);
	if (status != GW_OK)
		return gw_context(status, "%s", text);
	if (challenge.key_wanted && !client->auth.key_bytes)
		return key_is_wanted(client, text);
	if (!challenge.key_wanted && client->auth.key_bytes)
		return gw_fail(GW_REFUSED, "%s: the client has a key, but the server has none to prove", text);
	if (!challenge.key_wanted && client->must_prove)
		return gw_fail(
			GW_REFUSED,
			"%s: the server has no key to prove its identity: start it with a key, or allow it (insecure)",
			text);
	memcpy(client->auth.server_nonce, challenge.nonce, sizeof(challenge.nonce));
	client->auth.incarnation = challenge.incarnation;
	uint8_t proof[WIRE_PROOF_BYTES] = {0};
	if (client->auth.key_bytes)
		status = gw_proof_make(&client->auth, GW_AUTH_CLIENT, proof);
	if (status != GW_OK)
		return status;
	client->phase = CLIENT_PROOF_SENT;
	gw_tcp_client_send(client, WIRE_PROOF, proof, sizeof(proof));
	return GW_OK;
}

static void hello_over(struct tcp_client *client)
{
	client->phase = CLIENT_OPEN;
	client->base.state = GW_ENDPOINT_OPEN;
	gw_tcp_client_connected(client, GW_OK);
}

static gw_status hello_welcome(struct tcp_client *client, const struct wire_header *header, const uint8_t *body)
{
	char text[GW_ADDRESS_MAX];
	if (header->type != WIRE_WELCOME)
		return receive_broken(client, "no welcome after the proof");
	struct wire_welcome welcome;
	gw_tcp_client_name(client, text);
	gw_status status = gw_wire_welcome(body, header->bytes, &welcome, client->regions);
	if (status != GW_OK)
		return gw_context(status, "%s", text);
	if (client->auth.key_bytes && !gw_proof_check(&client->auth, GW_AUTH_SERVER, welcome.proof))
		return gw_fail(GW_REFUSED, "%s: the server does not know the key", text);
	if (client->graph_id && welcome.graph_id != client->graph_id)
		return gw_fail(GW_WRONG_GRAPH, "%s serves graph %016llx, not %016llx", text,
			       (unsigned long long)welcome.graph_id, (unsigned long long)client->graph_id);
	client->requests_max = welcome.requests_max;
	client->region_count = welcome.region_count;
	client->base.peer = (struct gw_peer){
		.graph_id = welcome.graph_id,
		.incarnation = client->auth.incarnation,
		.window = welcome.window,
		.part = welcome.part,
		.parts = welcome.parts,
		.regions = client->regions,
		.region_count = welcome.region_count,
	};
	if (client->loop->local)
		client->phase = CLIENT_WELCOMED;
	else
		hello_over(client);
	return GW_OK;
}

static gw_status hello_memory(struct tcp_client *client, const struct wire_header *header, const uint8_t *body)
{
	char text[GW_ADDRESS_MAX];
	struct wire_memories memories;
	if (header->type != WIRE_MEMORY)
		return receive_broken(client, "no MEMORY frame after the welcome");
	gw_status status = gw_wire_memory(body, header->bytes, client->regions, client->region_count, &memories);
	if (status == GW_OK)
		status = client->loop->local->map(&memories, &client->fd_passing, &client->mapped);
	if (status != GW_OK)
		return gw_context(status, "%s", gw_tcp_client_name(client, text));
	hello_over(client);
	return GW_OK;
}

gw_status gw_tcp_client_hello(struct tcp_client *client, const struct wire_header *header, const uint8_t *body)
{
	if (client->phase == CLIENT_HELLO_SENT)
		return hello_challenge(client, header, body);
	return client->phase == CLIENT_PROOF_SENT ? hello_welcome(client, header, body)
						  : hello_memory(client, header, body);
}
