/* The server's side of a connection.
 *
 *   HELLO ─▶ PROOF ─▶ OPEN ─▶ FINISHING (the output is sent, then input is discarded until the peer's end of stream)
 *
 * Buffers: input is read into one buffer, which grows as frames need. One frame at a time is answered, into one output
 * buffer. The server gathers as much of a read as fits into that buffer, sends it, and gathers the next part
 * (server_answer.c). So a client that does not read its answers uses only these two buffers and one long reply. The
 * server stops reading from it, and other clients do not wait. The kernel ends such a connection after
 * TCP_USER_TIMEOUT. The server ends it earlier if others need the memory of its reply.
 *
 * Fairness: after handlers of one client took CALLS_NS, other clients have their turn. Inside an answer that is longer
 * than a buffer, the connection is a bulk one: short questions of other clients come first (driver.h).
 *
 * Draining: when the listener drains, the connection receives no more. It answers the complete frames in its buffer,
 * and ends with the last byte of the answers. If a successor has the address, the client is notified first (MOVED).
 *
 * Errors: malformed frames, bad keys and limits close the connection; if the peer has sent a valid hello, it gets an
 * ERROR frame first. A read or request that cannot be served gets an ERROR frame, and the connection goes on.
 */
#include "transport/tcp/server/server_private.h"
#include "transport/tcp/socket.h"

#include <errno.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/errors/log.h"
#include "core/memory/alloc.h"
#include "core/memory/list.h"
#include "core/system/clock.h"
#include "transport/service/replay_cache.h"

#define ANSWER_MIN    (WIRE_HEADER_BYTES + WIRE_ERROR_TEXT) /* the longest frame that is not sent in parts */
#define DRAINED_NS    (2 * GW_NS_PER_MS)      /* interval of the checks whether the last bytes have arrived */
#define UNREAD_NS     (60 * GW_NS_PER_SECOND) /* the counterpart of TCP_USER_TIMEOUT for unix sockets */
#define STALL_LOOK_NS (GW_NS_PER_SECOND)      /* how often a client that does not read its reply is looked at */
#define IDLE_STEPS    8           /* checks of idle connections coincide at multiples of this part of their patience */
#define DIRECT_MAX    (1u << 20)  /* bytes of one send from a region */
#define CALLS_NS      200000ull   /* time for handlers in one turn of a client */
#define TRIM_BYTES    (16u << 20) /* after so many bytes of ended connections, free memory returns to the kernel */

static struct tcp_server *tcp_server_of_io(struct tcp_io *io)
{
	return (struct tcp_server *)(void *)((uint8_t *)io - offsetof(struct tcp_server, io));
}

/* --- Frames to the client. --- */

void gw_tcp_server_answer(struct tcp_server *server, const struct wire_header *header, const void *body)
{
	assert(gw_tcp_server_room(server) >= WIRE_HEADER_BYTES + header->bytes);
	memcpy(server->out.memory + server->out_end, header, WIRE_HEADER_BYTES);
	if (header->bytes)
		memcpy(server->out.memory + server->out_end + WIRE_HEADER_BYTES, body, header->bytes);
	server->out_end += WIRE_HEADER_BYTES + header->bytes;
}

void gw_tcp_server_answer_error(struct tcp_server *server, gw_status status, uint64_t tag)
{
	const char *text = gw_last_error();
	struct wire_header header = {.bytes = (uint32_t)strnlen(text, WIRE_ERROR_TEXT),
				     .type = WIRE_ERROR,
				     .status = (uint8_t)status,
				     .tag = tag};
	gw_tcp_server_answer(server, &header, text);
}

const char *gw_tcp_server_name(const struct tcp_server *server, char text[GW_ADDRESS_MAX])
{
	return gw_address_text(&server->listener->base.address, text);
}

void gw_tcp_server_finish(struct tcp_server *server)
{
	server->phase = SERVER_FINISHING;
	server->since_ns = gw_now_ns();
	server->in_begin = server->in_end = 0;
	tcp_server_timer(server, server->since_ns + SERVER_FINISH_NS);
}

void gw_tcp_server_refuse(struct tcp_server *server, gw_status status)
{
	char text[GW_ADDRESS_MAX];
	gw_count(&server->service->counts.refused, 1);
	gw_log(GW_LOG_INFO, "%s: a client is refused: %s", gw_tcp_server_name(server, text), gw_last_error());
	if (status != GW_OK)
		gw_tcp_server_answer_error(server, status, 0);
	gw_tcp_server_finish(server);
}

/* --- Ending. --- */

void gw_tcp_pending_end(struct tcp_server *server)
{
	struct tcp_loop *loop = server->loop;
	if (server->older)
		server->older->newer = server->newer;
	else
		loop->oldest_pending = server->newer;
	if (server->newer)
		server->newer->older = server->older;
	else
		loop->newest_pending = server->older;
	server->older = server->newer = NULL;
	loop->pending_count--;
	atomic_fetch_sub(&server->service->counts.unproven, 1);
}

void gw_tcp_server_end(struct tcp_server *server)
{
	if (server->ended)
		return;
	server->ended = true;
	server->reading = false;
	gw_tcp_server_call_leave(server);
	GW_LIST_REMOVE(server);
	gw_deadlines_leave(&server->loop->deadlines, &server->deadline);
	if (server->entered) {
		gw_service_left(server->service, server->number, server->thread);
		gw_service_peer_end(server->service, &server->read.peer);
		gw_dynamic_pins_end(&server->leases, server->service);
		if (server->window)
			gw_replay_disconnect(server->service->replay_cache, server->auth.client_uuid);
		gw_service_disconnect(server->service);
	} else {
		gw_tcp_pending_end(server);
	}
	server->loop->bytes_ended += server->in.bytes + server->out.bytes;
	server->service = NULL;
	server->loop->driver->ops->remove(server->loop->driver, &server->io);
}

static void server_gone(struct tcp_io *io)
{
	struct tcp_server *server = tcp_server_of_io(io);
	server->loop->ios--;
	gw_reply_end(&server->task.reply);
	gw_tcp_answer_end(&server->read);
	gw_tcp_server_passed(server);
	gw_tcp_server_buffers_end(server);
	gw_tcp_listener_release(server->listener);
	gw_free(server);
}

void gw_tcp_servers_end(struct tcp_loop *loop, bool all)
{
	for (struct tcp_server *server = loop->servers, *next; server; server = next) {
		next = server->next;
		if (all || atomic_load(&server->listener->closing))
			gw_tcp_server_end(server);
	}
}

/* --- Reads. --- */

static void begin_read(struct tcp_server *server, const struct wire_header *header, const uint8_t *body)
{
	gw_status status = gw_tcp_answer_begin(&server->read, server->service, header->type, body, header->bytes);
	if (status == GW_PROTOCOL) {
		gw_tcp_server_refuse(server, status);
		return;
	}
	if (status != GW_OK) {
		gw_tcp_server_answer_error(server, status, header->tag);
		return;
	}
	struct wire_header data = {.bytes = (uint32_t)server->read.ranges.bytes, .type = WIRE_DATA, .tag = header->tag};
	memcpy(server->out.memory + server->out_end, &data, sizeof(data));
	server->out_end += WIRE_HEADER_BYTES;
	server->tag = header->tag;
	server->reading = true;
	server->direct = gw_tcp_answer_direct(&server->read);
	server->direct_left = server->direct ? server->read.ranges.bytes : 0;
}

/* False: the buffer is full, or bytes are still to be sent from the region. */
static bool go_on_reading(struct tcp_server *server)
{
	if (server->direct_left)
		return false;
	if (!server->direct &&
	    !gw_tcp_answer_gather(&server->read, server->out.memory, &server->out_end, server->out.bytes))
		return false;
	if (server->read.rows) {
		if (server->out_end == 0 && gw_tcp_server_out_grow(server, gw_tcp_answer_close_bytes(&server->read))) {
			gw_tcp_server_end(server);
			return false;
		}
		gw_status status = gw_tcp_answer_close(&server->read, server->tag, server->out.memory, &server->out_end,
						       server->out.bytes);
		if (status == GW_AGAIN)
			return false;
		if (status != GW_OK)
			gw_tcp_server_answer_error(server, status, server->tag);
	}
	server->reading = false;
	server->direct = NULL;
	server->in_begin += server->frame_bytes;
	return true;
}

/* --- Frames. --- */

/* false: the frame must wait. */
static bool tcp_server_dispatch(struct tcp_server *server, const struct wire_header *header, const uint8_t *body)
{
	struct wire_header pong = {.type = WIRE_PONG, .tag = header->tag};
	if (server->phase < SERVER_OPEN) {
		gw_tcp_server_hello(server, header, body);
	} else {
		switch (header->type) {
		case WIRE_GATHER:
		case WIRE_READV:
			begin_read(server, header, body);
			break;
		case WIRE_REQUEST: /* the frame stays until it is answered */
			gw_tcp_server_call(server, header, body);
			return true;
		case WIRE_OPEN:
			if (!gw_tcp_server_open(server, header, body))
				return false;
			break;
		case WIRE_RELEASED:
			gw_tcp_server_released(server, body);
			break;
		case WIRE_PING:
			gw_tcp_server_answer(server, &pong, body);
			break;
		default:
			gw_tcp_server_refuse(server,
					     gw_fail(GW_PROTOCOL, "a second %s", gw_wire_type_name(header->type)));
		}
	}
	/* A read's frame stays until it is answered. A finishing connection has dropped its frames. */
	if (!server->ended && !server->reading && server->phase != SERVER_FINISHING)
		server->in_begin += server->frame_bytes;
	return true;
}

/* Before the proof, buffers fit a hello only. Any other frame is refused without waiting for its body. */
static bool is_out_of_place(const struct tcp_server *server, const struct wire_header *header)
{
	return server->phase < SERVER_OPEN && header->type != WIRE_HELLO && header->type != WIRE_PROOF;
}

/* False: the frame is not complete. */
static bool take_frame(struct tcp_server *server)
{
	uint32_t have = server->in_end - server->in_begin;
	struct wire_header header;
	if (have < WIRE_HEADER_BYTES)
		return false;
	gw_status status = gw_wire_header(server->in.memory + server->in_begin, true, server->auth.version, &header);
	if (status == GW_OK && server->phase == SERVER_OPEN && header.tag == 0 && header.type != WIRE_RELEASED)
		status = gw_fail(GW_PROTOCOL, "a %s frame without a tag", gw_wire_type_name(header.type));
	if (status != GW_OK && server->phase == SERVER_HELLO) {
		gw_count(&server->service->counts.refused, 1);
		gw_tcp_server_end(server);
		return false;
	}
	if (status == GW_OK && is_out_of_place(server, &header)) {
		gw_tcp_server_hello(server, &header, NULL);
		return false;
	}
	server->frame_bytes = WIRE_HEADER_BYTES + header.bytes;
	if (status == GW_OK && server->frame_bytes > server->in.bytes)
		status = gw_tcp_server_in_grow(server, server->frame_bytes);
	if (status == GW_AGAIN)
		return false;
	if (status != GW_OK) {
		gw_tcp_server_refuse(server, status);
		return false;
	}
	if (have < server->frame_bytes)
		return false;
	return tcp_server_dispatch(server, &header, server->in.memory + server->in_begin + WIRE_HEADER_BYTES) &&
	       !server->ended;
}

static bool is_draining(const struct tcp_server *server)
{
	return atomic_load_explicit(&server->listener->draining, memory_order_relaxed);
}

/* Between two answers: notifies the client that a successor has the address. */
static void tcp_server_moved(struct tcp_server *server)
{
	if (server->moved || server->ended || server->phase != SERVER_OPEN || server->reading || server->replying ||
	    !atomic_load_explicit(&server->listener->base.moved, memory_order_relaxed) ||
	    !gw_wire_speaks(server->auth.version, WIRE_MOVED))
		return;
	if (gw_tcp_server_out_ready(server)) {
		gw_tcp_server_end(server);
		return;
	}
	if (gw_tcp_server_room(server) < ANSWER_MIN)
		return;
	gw_tcp_server_answer(server, &(struct wire_header){.type = WIRE_MOVED}, "");
	server->moved = true;
}

/* All complete frames are answered. If the socket were closed with unread input, the bytes that the client's host has
 * not acknowledged would be lost. So the connection waits for their arrival. */
static void tcp_server_drained(struct tcp_server *server)
{
	gw_tcp_server_finish(server);
	server->drained = server->io.yield = true;
	tcp_server_timer(server, server->since_ns);
}

/* Until the output buffer is full or handlers have taken CALLS_NS. */
static void tcp_server_advance(struct tcp_server *server)
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
			continue;
		}
		bool something = server->in_end > server->in_begin || server->leases.first;
		if (something && gw_tcp_server_out_ready(server)) {
			gw_tcp_server_end(server);
			return;
		}
		if (server->leases.first && !server->calling)
			gw_tcp_server_notify_withdrawn(server);
		if (server->calling || gw_tcp_server_room(server) < ANSWER_MIN || !take_frame(server))
			return;
	}
}

/* --- The io's callbacks. --- */

static size_t server_target(struct tcp_io *io, struct iovec *iov)
{
	struct tcp_server *server = tcp_server_of_io(io);
	if (server->ended || (server->phase == SERVER_OPEN && is_draining(server)))
		return 0;
	/* An operation that waits for bytes would keep a large buffer. The answer to the read is itself a sign of life.
	 */
	if (server->reading && server->in.large && !io->readable)
		return 0;
	if (gw_tcp_server_in_room(server)) {
		gw_tcp_server_end(server);
		return 0;
	}
	if (server->in_end == server->in.bytes)
		return 0;
	iov[0] = (struct iovec){server->in.memory + server->in_end, server->in.bytes - server->in_end};
	return 1;
}

static void server_received(struct tcp_io *io, ssize_t n)
{
	struct tcp_server *server = tcp_server_of_io(io);
	if (n == -ECANCELED)
		return;
	if (n <= 0) {
		gw_tcp_server_end(server);
		return;
	}
	if (server->phase == SERVER_FINISHING)
		return; /* discarded: in_end does not move */
	server->in_end += (uint32_t)n;
	if (server->phase == SERVER_OPEN)
		server->since_ns = tcp_loop_now(server->loop);
}

static size_t server_source(struct tcp_io *io, struct iovec *iov)
{
	struct tcp_server *server = tcp_server_of_io(io);
	tcp_server_advance(server);
	tcp_server_moved(server);
	if (server->ended)
		return 0;
	gw_tcp_server_in_settle(server);
	gw_tcp_server_out_settle(server);
	size_t pieces = 0;
	if (server->out_end > server->out_begin)
		iov[pieces++] =
			(struct iovec){server->out.memory + server->out_begin, server->out_end - server->out_begin};
	if (server->direct_left)
		iov[pieces++] = (struct iovec){(void *)(uintptr_t)server->direct,
					       server->direct_left < DIRECT_MAX ? server->direct_left : DIRECT_MAX};
	if (server->replying)
		iov[pieces++] = (struct iovec){server->task.reply.memory + server->reply_sent,
					       server->reply_bytes - server->reply_sent};
	io->bulk = server->reading || server->direct_left > TCP_BULK_TURN ||
		   (server->replying && server->reply_bytes - server->reply_sent > TCP_BULK_TURN);
	if (!pieces && !server->calling && server->phase != SERVER_FINISHING && is_draining(server))
		tcp_server_drained(server);
	if (!pieces && server->phase == SERVER_FINISHING && !server->shut_down) {
		server->shut_down = true;
		shutdown(io->fd, SHUT_WR);
	}
	return pieces;
}

static void server_sent(struct tcp_io *io, ssize_t n)
{
	struct tcp_server *server = tcp_server_of_io(io);
	if (n < 0) {
		gw_tcp_server_end(server);
		return;
	}
	if (server->phase == SERVER_OPEN)
		server->since_ns = tcp_loop_now(server->loop); /* while frames wait for room, the server does not read:
								  that is no silence of the client */
	uint32_t held = server->out_end - server->out_begin;
	uint32_t part = (uint64_t)n < held ? (uint32_t)n : held;
	server->out_begin += part;
	if (server->out_begin == server->out_end)
		server->out_begin = server->out_end = 0;
	gw_tcp_server_out_settle(server);
	if (server->passed >= 0 && !server->fd_passing.out_count)
		gw_tcp_server_passed(server);
	if (server->direct_left) {
		server->direct += (uint32_t)n - part;
		server->direct_left -= (uint32_t)n - part;
	}
	if (server->replying)
		gw_tcp_server_reply_sent(server, (uint32_t)n - part);
	/* Frames that waited for room may find some now. */
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
	if (atomic_load(&listener->closing) || atomic_load(&listener->stopped) || atomic_load(&listener->draining))
		goto refuse;
	server = gw_calloc(1, sizeof(*server));
	if (!server)
		goto refuse;
	server->io.events = &server_events;
	server->io.fd = fd;
	server->passed = -1;
	server->loop = loop;
	server->listener = listener;
	server->service = listener->base.service;
	server->thread = gw_tcp_loop_number(listener, loop);
	server->number = atomic_fetch_add(&numbers, 1) + 1;
	server->since_ns = gw_now_ns();
	if (listener->local)
		server->io.fd_passing = &server->fd_passing;
	else
		gw_socket_tune(fd);
	if (gw_deadlines_join(&loop->deadlines, &server->deadline) || gw_tcp_pending_begin(server))
		goto refuse;
	if (loop->driver->ops->add(loop->driver, &server->io)) {
		gw_tcp_pending_end(server);
		goto refuse;
	}
	loop->ios++;
	GW_LIST_INSERT(loop->servers, server);
	tcp_server_timer(server, server->since_ns + server->service->limits.idle_ms * GW_NS_PER_MS);
	loop->driver->ops->kick(loop->driver, &server->io);
	return;

refuse:
	gw_socket_close(fd);
	if (server) {
		gw_deadlines_leave(&loop->deadlines, &server->deadline);
		gw_tcp_server_buffers_end(server);
		gw_free(server);
	}
	gw_tcp_listener_release(listener);
}

/* Over a unix socket, sent bytes have arrived. */
static bool has_arrived(const struct tcp_server *server)
{
	int left = 0;
	if (server->out_end > server->out_begin || !server->shut_down)
		return false;
	return server->listener->local || ioctl(server->io.fd, SIOCOUTQ, &left) != 0 || left == 0;
}

/* Ends a connection that is silent for too long inside the hello, inside a frame, or after the last answer. Also ends
 * one that does not read its reply while others need the memory. */
static void tcp_server_tick(struct tcp_server *server, uint64_t now_ns)
{
	char text[GW_ADDRESS_MAX];
	uint64_t patience =
		server->phase == SERVER_FINISHING ? SERVER_FINISH_NS : server->service->limits.idle_ms * GW_NS_PER_MS;
	if (server->replying && gw_task_stalls(&server->task, server->since_ns, now_ns)) {
		gw_count(&server->service->counts.dropped, 1);
		gw_log(GW_LOG_WARN,
		       "%s: a client does not read its reply of %u bytes, and others need the memory: closed",
		       gw_tcp_server_name(server, text), server->reply_bytes);
		gw_tcp_server_end(server);
		return;
	}
	if (server->drained) {
		if (has_arrived(server)) {
			gw_tcp_server_end(server);
			return;
		}
		tcp_server_timer(server, now_ns + DRAINED_NS);
	}
	if (server->calling) /* its pause is over */
		gw_queue_add(&server->loop->calls, &server->turn);
	if (server->replying)
		tcp_server_timer(server, now_ns + STALL_LOOK_NS);
	/* While an answer is owed, the kernel limits the client's silence: TCP_USER_TIMEOUT. */
	bool owed = server->out_end > server->out_begin || server->reading || server->calling || server->replying;
	bool inside = server->in_end > server->in_begin && !owed;
	if (owed && !server->calling && server->listener->local && server->phase == SERVER_OPEN) {
		inside = true;
		patience = UNREAD_NS;
	}
	if (server->phase == SERVER_OPEN && !inside) {
		/* Between frames a client may be silent without limit. Later checks of many clients coincide, so that
		 * a thread with many silent clients is not woken for each. */
		uint64_t step = patience / IDLE_STEPS + 1;
		tcp_server_timer(server, (now_ns + patience) / step * step + step);
		return;
	}
	if (now_ns < server->since_ns + patience) {
		tcp_server_timer(server, server->since_ns + patience);
		return;
	}
	if (server->phase != SERVER_FINISHING)
		gw_log(GW_LOG_INFO, "%s: a client is silent inside a frame or the hello, or reads no answer: closed",
		       gw_tcp_server_name(server, text));
	gw_tcp_server_end(server);
}

void gw_tcp_servers_tick(struct tcp_loop *loop, uint64_t now_ns)
{
	struct gw_deadline *due;
	while ((due = gw_deadlines_take(&loop->deadlines, now_ns)))
		tcp_server_tick((struct tcp_server *)(void *)((uint8_t *)due - offsetof(struct tcp_server, deadline)),
				now_ns);
	tcp_loop_timer(loop, gw_deadlines_first(&loop->deadlines));
	if (loop->bytes_ended >= TRIM_BYTES) {
		loop->bytes_ended = 0;
		gw_memory_trim();
	}
}

void gw_tcp_servers_call(struct tcp_loop *loop)
{
	struct gw_queued *turn = loop->calls.first;
	if (!turn)
		return;
	struct tcp_server *server = (struct tcp_server *)(void *)((uint8_t *)turn - offsetof(struct tcp_server, turn));
	if (gw_tcp_server_out_ready(server)) {
		gw_tcp_server_end(server);
		return;
	}
	gw_tcp_server_call_resume(server);
	if (!server->calling)
		loop->driver->ops->kick(loop->driver, &server->io);
}

/* Lets each connection of a draining listener end, once no answer is owed to it. Pending clients end at once. Clients
 * of a listener that has moved are notified. */
void gw_tcp_servers_drain(struct tcp_loop *loop)
{
	for (struct tcp_server *server = loop->servers, *next; server; server = next) {
		next = server->next;
		if (is_draining(server) && server->phase < SERVER_OPEN)
			gw_tcp_server_end(server);
		else if (is_draining(server) || atomic_load(&server->listener->base.moved))
			loop->driver->ops->kick(loop->driver, &server->io);
	}
}
