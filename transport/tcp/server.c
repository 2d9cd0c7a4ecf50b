/* A connection from the server's side.
 *
 *   HELLO ─▶ PROOF ─▶ OPEN ─▶ FINISHING (what is to be said is sent, then input is discarded until the peer's end)
 *
 * Input is read into one buffer as far as frames need room. One frame at a time is answered into one output buffer of
 * OUT_BYTES: a read is gathered into it, as much as fits, then sent, then gathered on (server_answer.c). So a client
 * that does not read what it asked for holds these two buffers and nothing else, is not read from any more, and keeps
 * nobody waiting; the kernel ends its connection after TCP_USER_TIMEOUT. A long reply is sent from the block that its
 * handler filled, behind the output buffer. Handlers of one client that took CALLS_NS leave the turn to the others.
 *
 * Fails by closing the connection, with an ERROR frame where the peer has said a valid hello: frames that are
 * malformed, bad keys, limits. A read or request that cannot be served gets an ERROR frame and the connection goes on.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "transport/auth.h"
#include "transport/tcp/server_answer.h"
#include "transport/tcp/tcp.h"
#include "transport/tcp/wire.h"

#define IN_FIRST_BYTES (128u << 10)
#define OUT_BYTES      (256u << 10)
#define WELCOME_MAX    (WIRE_HEADER_BYTES + sizeof(struct wire_welcome) + (size_t)GW_REGIONS_MAX * WIRE_REGION_BYTES)
#define MEMORY_MAX     (WIRE_HEADER_BYTES + WIRE_MEMORY_BYTES(GW_MEMORIES_MAX, GW_REGIONS_MAX))
#define ANSWER_MIN     (WELCOME_MAX + MEMORY_MAX)
#define FINISH_NS      (2 * GW_NS_PER_SECOND)
#define UNREAD_NS      (60 * GW_NS_PER_SECOND) /* unix sockets: what TCP_USER_TIMEOUT is for TCP */
#define CALLS_NS       200000ull               /* of handlers, in one turn of a client */
#define REFUSED_MAX    64 /* connections above the limit that are told so; those above these are just closed */

enum server_phase { SERVER_HELLO, SERVER_PROOF, SERVER_OPEN, SERVER_FINISHING };

struct tcp_server {
	struct tcp_io io;
	struct tcp_loop *loop;
	struct tcp_server *next, **previous;
	struct tcp_listener *listener;
	struct gw_service *service;
	uint32_t thread;
	uint64_t number; /* of this process's connections, from 1 */
	enum server_phase phase;
	bool ended;        /* removed from the loop's list; waits for its io */
	bool entered;      /* counted in the service's connections */
	bool shut_down;    /* FINISHING: our end of the stream was sent */
	uint64_t since_ns; /* HELLO, PROOF: accepted; OPEN: the last progress inside a frame; FINISHING: its begin */
	uint64_t calls_ns; /* that handlers took in this turn */
	struct gw_auth auth;
	struct tcp_passing passing; /* unix sockets */
	/* In: frames, the oldest at in_begin. */
	uint8_t *in;
	uint32_t in_begin, in_end, in_capacity;
	/* Out. */
	uint8_t *out;
	uint32_t out_begin, out_end;
	/* The read that is being answered: its frame is still in the input buffer. */
	bool reading;
	uint32_t frame_bytes;
	struct tcp_answer read;
	/* The reply that is being sent, header included. */
	bool replying;
	struct gw_reply reply;
	uint32_t reply_sent, reply_bytes;
};

static struct tcp_server *of_io(struct tcp_io *io)
{
	return (struct tcp_server *)(void *)((uint8_t *)io - offsetof(struct tcp_server, io));
}

static uint32_t out_room(const struct tcp_server *server)
{
	return OUT_BYTES - server->out_end;
}

/* --- Ending. --- */

static void server_gone(struct tcp_io *io)
{
	struct tcp_server *server = of_io(io);
	server->loop->ios--;
	gw_reply_end(&server->reply);
	gw_free(server->in);
	gw_free(server->out);
	gw_tcp_listener_release(server->listener);
	gw_free(server);
}

/* From here on nothing of the service is touched; the memory goes when the io has. */
static void server_end(struct tcp_server *server)
{
	if (server->ended)
		return;
	server->ended = true;
	server->reading = false;
	*server->previous = server->next;
	if (server->next)
		server->next->previous = server->previous;
	if (server->phase >= SERVER_OPEN)
		gw_service_left(server->service, server->number, server->thread);
	gw_service_reads_end(server->service, &server->read.reads);
	if (server->entered)
		gw_service_leave(server->service);
	server->service = NULL;
	atomic_fetch_sub(&server->listener->connections, 1);
	server->loop->driver->ops->remove(server->loop->driver, &server->io);
}

void gw_tcp_servers_end(struct tcp_loop *loop, bool all)
{
	for (struct tcp_server *server = loop->servers, *next; server; server = next) {
		next = server->next;
		if (all || atomic_load(&server->listener->closing))
			server_end(server);
	}
}

static void answer(struct tcp_server *server, const struct wire_header *header, const void *body)
{
	assert(out_room(server) >= WIRE_HEADER_BYTES + header->bytes);
	memcpy(server->out + server->out_end, header, WIRE_HEADER_BYTES);
	if (header->bytes)
		memcpy(server->out + server->out_end + WIRE_HEADER_BYTES, body, header->bytes);
	server->out_end += WIRE_HEADER_BYTES + header->bytes;
}

static void answer_error(struct tcp_server *server, gw_status status, uint64_t tag)
{
	const char *text = gw_last_error();
	struct wire_header header = {.bytes = (uint32_t)strnlen(text, WIRE_ERROR_TEXT),
				     .type = WIRE_ERROR,
				     .status = (uint8_t)status,
				     .tag = tag};
	answer(server, &header, text);
}

static const char *name_of(const struct tcp_server *server, char text[GW_ADDRESS_MAX])
{
	return gw_address_text(&server->listener->base.address, text);
}

/* The last words of this connection. Nothing more is taken from it. */
static void finish(struct tcp_server *server, gw_status status)
{
	char text[GW_ADDRESS_MAX];
	gw_log(GW_LOG_INFO, "%s: a client is turned away: %s", name_of(server, text), gw_last_error());
	if (status)
		answer_error(server, status, 0);
	server->phase = SERVER_FINISHING;
	server->since_ns = gw_now_ns();
	server->in_begin = server->in_end = 0;
	tcp_loop_timer(server->loop, server->since_ns + FINISH_NS);
}

static void refuse(struct tcp_server *server, gw_status status)
{
	gw_count(&server->service->counts.refused, 1);
	finish(server, status);
}

/* --- The hello. --- */

static void take_hello(struct tcp_server *server, const struct wire_header *header, const uint8_t *body)
{
	struct wire_hello hello = {0};
	struct wire_challenge challenge = {.magic = WIRE_MAGIC,
					   .version = WIRE_VERSION,
					   .key_wanted = server->service->key_bytes != 0,
					   .incarnation = server->service->identity.incarnation};
	struct wire_header answer_header = {.bytes = sizeof(challenge), .type = WIRE_CHALLENGE};
	gw_status status = header->type == WIRE_HELLO ? gw_wire_hello(body, header->bytes, &hello)
						      : gw_fail(GW_PROTOCOL, "a %s frame before the hello",
								gw_wire_type_name(header->type));
	if (status == GW_VERSION) { /* our version, in a form that every version reads */
		answer(server, &answer_header, &challenge);
		refuse(server, GW_OK);
		return;
	}
	if (status) { /* no client of ours: it would not understand a word */
		gw_count(&server->service->counts.refused, 1);
		server_end(server);
		return;
	}
	status = gw_nonce_make(server->auth.server_nonce);
	if (!status && server->service->key_bytes && !hello.key_offered)
		status = gw_fail(GW_REFUSED,
				 "the server wants a key, and none was given; give the key file that it has");
	if (status) {
		refuse(server, status);
		return;
	}
	server->auth.key = server->service->key;
	server->auth.key_bytes = server->service->key_bytes;
	server->auth.version = WIRE_VERSION;
	server->auth.incarnation = challenge.incarnation;
	memcpy(server->auth.client_nonce, hello.nonce, sizeof(hello.nonce));
	memcpy(server->auth.client_uuid, hello.client_uuid, sizeof(hello.client_uuid));
	memcpy(challenge.nonce, server->auth.server_nonce, sizeof(challenge.nonce));
	answer(server, &answer_header, &challenge);
	server->phase = SERVER_PROOF;
}

/* Where a client of this host finds the regions. */
static void tell_memory(struct tcp_server *server)
{
	uint8_t body[WIRE_MEMORY_BYTES(GW_MEMORIES_MAX, GW_REGIONS_MAX)];
	struct wire_header header = {.type = WIRE_MEMORY};
	header.bytes = server->listener->local->tell(server->listener->offer, body, &server->passing);
	answer(server, &header, body);
}

static void take_proof(struct tcp_server *server, const struct wire_header *header, const uint8_t *body)
{
	const struct gw_service *service = server->service;
	struct {
		struct wire_welcome head;
		struct wire_region regions[GW_REGIONS_MAX];
	} welcome = {.head = {.graph_id = service->identity.graph_id,
			      .part = service->identity.part,
			      .parts = service->identity.parts,
			      .region_count = service->region_count,
			      .requests_max = service->limits.requests_per_client}};
	if (header->type != WIRE_PROOF) {
		refuse(server,
		       gw_fail(GW_PROTOCOL, "a %s frame before the hello was over", gw_wire_type_name(header->type)));
		return;
	}
	if (service->key_bytes && !gw_proof_check(&server->auth, GW_AUTH_CLIENT, body)) {
		refuse(server,
		       gw_fail(GW_REFUSED, "the server has another key than this client; give both the same key file"));
		return;
	}
	if (service->key_bytes && gw_proof_make(&server->auth, GW_AUTH_SERVER, welcome.head.proof)) {
		refuse(server, GW_IO);
		return;
	}
	for (uint32_t i = 0; i < service->region_count; i++)
		welcome.regions[i] = (struct wire_region){.bytes = service->regions[i].bytes,
							  .id = i,
							  .generation = service->regions[i].generation,
							  .kind = service->regions[i].kind};
	struct wire_header answer_header = {.bytes = (uint32_t)sizeof(welcome.head) +
						     service->region_count * WIRE_REGION_BYTES,
					    .type = WIRE_WELCOME};
	answer(server, &answer_header, &welcome);
	if (server->listener->local)
		tell_memory(server);
	server->phase = SERVER_OPEN;
	server->since_ns = gw_now_ns();
}

/* --- Reads. --- */

static void begin_read(struct tcp_server *server, const struct wire_header *header, const uint8_t *body)
{
	gw_status status = gw_tcp_answer_begin(&server->read, server->service, header->type, body, header->bytes);
	if (status == GW_PROTOCOL) {
		refuse(server, status);
		return;
	}
	if (status) {
		answer_error(server, status, header->tag);
		return;
	}
	struct wire_header data = {.bytes = (uint32_t)server->read.ranges.bytes, .type = WIRE_DATA, .tag = header->tag};
	memcpy(server->out + server->out_end, &data, sizeof(data));
	server->out_end += WIRE_HEADER_BYTES;
	server->reading = true;
}

/* Answers the read as far as the output buffer goes; false when it is full. */
static bool go_on_reading(struct tcp_server *server)
{
	if (!gw_tcp_answer_gather(&server->read, server->out, &server->out_end, OUT_BYTES))
		return false;
	server->reading = false;
	server->in_begin += server->frame_bytes;
	return true;
}

/* --- Requests. --- */

static void take_request(struct tcp_server *server, const struct wire_header *header, const uint8_t *body)
{
	struct gw_call call = {.op = header->op,
			       .bytes = body + WIRE_REQUEST_BYTES,
			       .byte_count = header->bytes - WIRE_REQUEST_BYTES,
			       .client_uuid = server->auth.client_uuid,
			       .listener = server->listener,
			       .connection = server->number};
	uint64_t sequence, held = (uint64_t)server->in_capacity + OUT_BYTES;
	uint64_t limit = server->service->limits.bytes_per_client;
	memcpy(&sequence, body, sizeof(sequence));
	gw_reply_begin(&server->reply, WIRE_HEADER_BYTES, limit > held ? limit - held : 0);
	uint64_t begun = gw_now_ns();
	gw_status status = gw_service_call(server->service, &call, sequence, server->thread, &server->reply);
	server->calls_ns += gw_now_ns() - begun;
	if (status) {
		answer_error(server, status, header->tag);
		gw_reply_end(&server->reply);
		return;
	}
	uint32_t bytes;
	const uint8_t *data = gw_reply_data(&server->reply, &bytes);
	struct wire_header reply = {.bytes = bytes, .type = WIRE_REPLY, .tag = header->tag};
	if (WIRE_HEADER_BYTES + bytes <= out_room(server)) {
		answer(server, &reply, data);
		gw_reply_end(&server->reply);
		return;
	}
	memcpy(server->reply.memory, &reply, WIRE_HEADER_BYTES);
	server->reply_bytes = WIRE_HEADER_BYTES + bytes;
	server->reply_sent = 0;
	server->replying = true;
}

/* --- Frames. --- */

/* Makes room for a frame of so many bytes, within the client's share of memory. GW_AGAIN: the buffer is the driver's at
 * the moment; it comes back with what is received next, since the frame has more to come, or when it is full. */
static gw_status in_grow(struct tcp_server *server, uint32_t needed)
{
	if (server->io.receiving)
		return GW_AGAIN;
	uint32_t capacity = server->in_capacity;
	while (capacity < needed)
		capacity *= 2;
	if ((uint64_t)capacity + OUT_BYTES > server->service->limits.bytes_per_client)
		return gw_fail(GW_LIMIT, "a frame of %u bytes is above this server's memory for one client", needed);
	uint8_t *in = gw_malloc(capacity);
	if (!in)
		return GW_NO_MEMORY;
	memcpy(in, server->in + server->in_begin, server->in_end - server->in_begin);
	gw_free(server->in);
	server->in = in;
	server->in_capacity = capacity;
	server->in_end -= server->in_begin;
	server->in_begin = 0;
	return GW_OK;
}

static void dispatch(struct tcp_server *server, const struct wire_header *header, const uint8_t *body)
{
	struct wire_header pong = {.type = WIRE_PONG, .tag = header->tag};
	if (server->phase == SERVER_HELLO) {
		take_hello(server, header, body);
	} else if (server->phase == SERVER_PROOF) {
		take_proof(server, header, body);
	} else {
		switch (header->type) {
		case WIRE_GATHER:
		case WIRE_READV:
			begin_read(server, header, body);
			break;
		case WIRE_REQUEST:
			take_request(server, header, body);
			break;
		case WIRE_PING:
			answer(server, &pong, body);
			break;
		default:
			refuse(server, gw_fail(GW_PROTOCOL, "a second %s", gw_wire_type_name(header->type)));
		}
	}
	/* A read's frame stays until it is answered; a finishing connection has none left. */
	if (!server->ended && !server->reading && server->phase != SERVER_FINISHING)
		server->in_begin += server->frame_bytes;
}

/* Takes the next frame, if it is there whole; false: not yet. */
static bool take_frame(struct tcp_server *server)
{
	uint32_t have = server->in_end - server->in_begin;
	struct wire_header header;
	if (have < WIRE_HEADER_BYTES)
		return false;
	gw_status status = gw_wire_header(server->in + server->in_begin, true, &header);
	if (!status && server->phase == SERVER_OPEN && header.tag == 0)
		status = gw_fail(GW_PROTOCOL, "a %s frame without a tag", gw_wire_type_name(header.type));
	if (status && server->phase == SERVER_HELLO) {
		gw_count(&server->service->counts.refused, 1);
		server_end(server);
		return false;
	}
	server->frame_bytes = WIRE_HEADER_BYTES + header.bytes;
	if (!status && server->frame_bytes > server->in_capacity)
		status = in_grow(server, server->frame_bytes);
	if (status == GW_AGAIN)
		return false;
	if (status) {
		refuse(server, status);
		return false;
	}
	if (have < server->frame_bytes)
		return false;
	dispatch(server, &header, server->in + server->in_begin + WIRE_HEADER_BYTES);
	return !server->ended;
}

/* Fills the output buffer from what was asked, until handlers have taken their time. */
static void advance(struct tcp_server *server)
{
	server->calls_ns = 0;
	while (!server->ended && server->phase != SERVER_FINISHING && !server->replying) {
		if (server->calls_ns >= CALLS_NS) {
			server->io.yield = true;
			return;
		}
		if (server->reading) {
			if (!go_on_reading(server))
				return;
		} else if (out_room(server) < ANSWER_MIN || !take_frame(server)) {
			return;
		}
	}
}

/* --- The io's callbacks. --- */

static size_t server_target(struct tcp_io *io, struct iovec *iov)
{
	struct tcp_server *server = of_io(io);
	if (server->ended)
		return 0;
	if (!server->reading) {
		if (server->in_begin == server->in_end) {
			server->in_begin = server->in_end = 0;
		} else if (server->in_begin) {
			memmove(server->in, server->in + server->in_begin, server->in_end - server->in_begin);
			server->in_end -= server->in_begin;
			server->in_begin = 0;
		}
	}
	if (server->in_end == server->in_capacity)
		return 0;
	iov[0] = (struct iovec){server->in + server->in_end, server->in_capacity - server->in_end};
	return 1;
}

static void server_received(struct tcp_io *io, ssize_t n)
{
	struct tcp_server *server = of_io(io);
	if (n == -ECANCELED)
		return;
	if (n <= 0) {
		server_end(server);
		return;
	}
	if (server->phase == SERVER_FINISHING)
		return; /* into the buffer's free part, and never looked at */
	server->in_end += (uint32_t)n;
	if (server->phase == SERVER_OPEN)
		server->since_ns = gw_now_ns();
}

static size_t server_source(struct tcp_io *io, struct iovec *iov)
{
	struct tcp_server *server = of_io(io);
	advance(server);
	if (server->ended)
		return 0;
	size_t pieces = 0;
	if (server->out_end > server->out_begin)
		iov[pieces++] = (struct iovec){server->out + server->out_begin, server->out_end - server->out_begin};
	if (server->replying)
		iov[pieces++] = (struct iovec){server->reply.memory + server->reply_sent,
					       server->reply_bytes - server->reply_sent};
	if (!pieces && server->phase == SERVER_FINISHING && !server->shut_down) {
		server->shut_down = true;
		shutdown(io->fd, SHUT_WR);
	}
	return pieces;
}

static void server_sent(struct tcp_io *io, ssize_t n)
{
	struct tcp_server *server = of_io(io);
	if (n < 0) {
		server_end(server);
		return;
	}
	if (server->phase == SERVER_OPEN)
		server->since_ns = gw_now_ns(); /* frames that waited for room are not its silence */
	uint32_t held = server->out_end - server->out_begin;
	uint32_t part = (uint64_t)n < held ? (uint32_t)n : held;
	server->out_begin += part;
	if (server->out_begin == server->out_end)
		server->out_begin = server->out_end = 0;
	if (server->replying) {
		server->reply_sent += (uint32_t)n - part;
		if (server->reply_sent == server->reply_bytes) {
			server->replying = false;
			gw_reply_end(&server->reply);
		}
	}
	/* What was not read for want of room may find some. */
	server->loop->driver->ops->kick(server->loop->driver, io);
}

static const struct tcp_io_events server_events = {
	.target = server_target,
	.source = server_source,
	.received = server_received,
	.sent = server_sent,
	.gone = server_gone,
};

void gw_tcp_server_begin(struct tcp_loop *loop, int fd, struct tcp_listener *listener)
{
	static _Atomic uint64_t numbers;
	struct tcp_server *server = NULL;
	if (atomic_load(&listener->closing) || atomic_load(&listener->stopped))
		goto turn_away;
	if (atomic_load(&listener->connections) >= listener->base.service->limits.connections + REFUSED_MAX) {
		gw_count(&listener->base.service->counts.refused, 1);
		goto turn_away;
	}
	server = gw_calloc(1, sizeof(*server));
	if (!server)
		goto turn_away;
	server->in = gw_malloc(IN_FIRST_BYTES);
	server->out = gw_malloc(OUT_BYTES);
	if (!server->in || !server->out)
		goto turn_away;
	server->in_capacity = IN_FIRST_BYTES;
	server->io.events = &server_events;
	server->io.fd = fd;
	server->loop = loop;
	server->listener = listener;
	server->service = listener->base.service;
	server->thread = gw_tcp_loop_number(listener, loop);
	server->number = atomic_fetch_add(&numbers, 1) + 1;
	server->since_ns = gw_now_ns();
	if (listener->local)
		server->io.passing = &server->passing;
	else
		gw_socket_tune(fd);
	if (loop->driver->ops->add(loop->driver, &server->io))
		goto turn_away;
	loop->ios++;
	atomic_fetch_add(&listener->connections, 1);
	server->previous = &loop->servers;
	server->next = loop->servers;
	if (server->next)
		server->next->previous = &server->next;
	loop->servers = server;
	tcp_loop_timer(loop, server->since_ns + server->service->limits.idle_ms * GW_NS_PER_MS);
	gw_status status = gw_service_enter(server->service);
	server->entered = status == GW_OK;
	if (status)
		finish(server, status);
	loop->driver->ops->kick(loop->driver, &server->io);
	return;

turn_away:
	gw_socket_close(fd);
	if (server) {
		gw_free(server->in);
		gw_free(server->out);
		gw_free(server);
	}
	gw_tcp_listener_release(listener);
}

/* Silence inside the hello, inside a frame, or after our last words, ends a connection. */
void gw_tcp_servers_tick(struct tcp_loop *loop, uint64_t now_ns)
{
	char text[GW_ADDRESS_MAX];
	for (struct tcp_server *server = loop->servers, *next; server; server = next) {
		next = server->next;
		uint64_t patience =
			server->phase == SERVER_FINISHING ? FINISH_NS : server->service->limits.idle_ms * GW_NS_PER_MS;
		/* Whoever is owed an answer is waited for by the kernel: TCP_USER_TIMEOUT. */
		bool owed = server->out_end > server->out_begin || server->reading || server->replying;
		bool inside = server->in_end > server->in_begin && !owed;
		if (owed && server->listener->local && server->phase == SERVER_OPEN) {
			inside = true;
			patience = UNREAD_NS;
		}
		if (server->phase == SERVER_OPEN && !inside) {
			/* Between frames a client may think as long as it likes; look again later. */
			tcp_loop_timer(loop, now_ns + patience);
			continue;
		}
		if (now_ns < server->since_ns + patience) {
			tcp_loop_timer(loop, server->since_ns + patience);
			continue;
		}
		if (server->phase != SERVER_FINISHING)
			gw_log(GW_LOG_INFO,
			       "%s: a client is silent inside a frame or the hello, or takes no answer: closed",
			       name_of(server, text));
		server_end(server);
	}
}
