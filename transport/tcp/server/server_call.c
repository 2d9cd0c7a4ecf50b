/* Requests at the server.
 *
 *   frame ─▶ first run ─▶ answered at once, the usual case
 *                 └─ deferred ─▶ the loop's queue ─▶ one run for each check of the sockets ─▶ … ─▶ answered
 *
 * So a long call, or any number of long calls, delays other clients by one run. The frame stays in the input buffer
 * until the call is answered. Later frames wait, since answers come in the order of the questions. A long reply is sent
 * from the memory that its handler filled, after the output buffer. A call that waits for reply memory or for another
 * thread is run again by a timer, or earlier by a wake of the poll group. Meanwhile the server does not read from that
 * client. The client's PINGs wait too, so the server sends an unasked PONG now and then while a call takes long.
 */
#include <string.h>

#include "core/system/clock.h"
#include "transport/tcp/server/server_private.h"

#define ALIVE_NS (100 * GW_NS_PER_MS) /* between two unasked PONGs: clients tolerate ten times as much silence */

static void server_call_reply(struct tcp_server *server, gw_status status)
{
	server->calling = false;
	server->in_begin += server->frame_bytes;
	if (status != GW_OK) {
		gw_tcp_server_answer_error(server, status, server->tag);
		gw_task_end(&server->task);
		return;
	}
	uint32_t bytes;
	const uint8_t *data = gw_reply_data(&server->task.reply, &bytes);
	struct wire_header header = {.bytes = bytes, .type = WIRE_REPLY, .tag = server->tag};
	if (WIRE_HEADER_BYTES + bytes <= gw_tcp_server_room(server)) {
		gw_tcp_server_answer(server, &header, data);
		gw_task_end(&server->task);
		return;
	}
	memcpy(server->task.reply.memory, &header, WIRE_HEADER_BYTES);
	server->reply_bytes = WIRE_HEADER_BYTES + bytes;
	server->reply_sent = 0;
	server->replying = true;
	tcp_server_timer(server, server->since_ns + GW_TASK_STALL_NS);
}

/* Sends a PONG if the client got none for a while. Not needed while output is unsent: either the output is a sign of
 * life, or the client does not read. */
static void server_call_alive(struct tcp_server *server)
{
	struct wire_header pong = {.type = WIRE_PONG};
	uint64_t now = gw_now_ns();
	if (server->out_end > server->out_begin || now < server->said_ns + ALIVE_NS)
		return;
	server->said_ns = now;
	gw_tcp_server_answer(server, &pong, NULL);
	server->loop->driver->ops->kick(server->loop->driver, &server->io);
}

/* The input buffer may have moved since the last run. */
static void server_call_run(struct tcp_server *server)
{
	server->task.call.bytes = server->in.memory + server->in_begin + WIRE_HEADER_BYTES + WIRE_REQUEST_BYTES;
	gw_status status = gw_task_run(&server->task);
	if (status != GW_AGAIN) {
		server_call_reply(server, status);
		return;
	}
	server_call_alive(server);
	server->io.yield = true; /* the loop continues with this call, or with its timer */
	uint64_t pause_ns = gw_task_pause_ns(&server->task);
	if (!pause_ns) {
		gw_queue_add(&server->loop->calls, &server->turn);
		return;
	}
	gw_queue_add(&server->loop->paused, &server->pause);
	tcp_server_timer(server, gw_now_ns() + pause_ns);
}

void gw_tcp_server_call(struct tcp_server *server, const struct wire_header *header, const uint8_t *body)
{
	struct gw_call call = {.op = header->op,
			       .byte_count = header->bytes - WIRE_REQUEST_BYTES,
			       .thread = server->thread,
			       .group = server->loop->group,
			       .client_uuid = server->auth.client_uuid,
			       .peer = &server->read.peer,
			       .listener = server->listener,
			       .connection = server->number};
	struct gw_once once;
	uint64_t held = (uint64_t)server->in.bytes + server->out.bytes;
	uint64_t limit = server->service->limits.bytes_per_client;
	memcpy(&once, body, sizeof(once));
	server->tag = header->tag;
	server->calling = true;
	gw_task_begin(&server->task, server->service, &call, &once, WIRE_HEADER_BYTES, limit > held ? limit - held : 0);
	server->said_ns = server->task.begun_ns;
	server_call_run(server);
	server->calls_ns += server->task.run_ns;
}

void gw_tcp_server_call_resume(struct tcp_server *server)
{
	gw_queue_drop(&server->loop->calls, &server->turn);
	gw_queue_drop(&server->loop->paused, &server->pause);
	server_call_run(server);
}

void gw_tcp_servers_woken(struct tcp_loop *loop)
{
	struct gw_queued *pause;
	while ((pause = loop->paused.first)) {
		struct tcp_server *server =
			(struct tcp_server *)(void *)((uint8_t *)pause - offsetof(struct tcp_server, pause));
		gw_queue_drop(&loop->paused, pause);
		gw_queue_add(&loop->calls, &server->turn);
	}
}

void gw_tcp_server_reply_sent(struct tcp_server *server, uint32_t bytes)
{
	server->reply_sent += bytes;
	if (server->reply_sent < server->reply_bytes)
		return;
	server->replying = false;
	gw_task_end(&server->task);
}

void gw_tcp_server_call_leave(struct tcp_server *server)
{
	gw_queue_drop(&server->loop->calls, &server->turn);
	gw_queue_drop(&server->loop->paused, &server->pause);
	server->calling = false;
	gw_task_leave(&server->task);
}
