/* The server's side of a connection, shared by its files:
 *
 *      server.c          the connection: frames in, answers out, timers, the end
 *      server_buffer.c   its buffers for input and output
 *      server_hello.c    pending clients, until they have proved the key
 *      server_call.c     requests: handlers that run in slices, long replies
 *      server_answer.c   reads
 *      server_dynamic.c  dynamic regions
 */
#ifndef GW_TRANSPORT_TCP_SERVER_SERVER_PRIVATE_H
#define GW_TRANSPORT_TCP_SERVER_SERVER_PRIVATE_H

#include "transport/service/auth.h"
#include "transport/service/task.h"
#include "transport/tcp/lender.h"
#include "transport/tcp/server/server.h"
#include "transport/tcp/server/server_answer.h"

#define SERVER_WELCOME_MAX                                                                                             \
	(WIRE_HEADER_BYTES + sizeof(struct wire_welcome) + (size_t)GW_REGIONS_MAX * WIRE_REGION_BYTES)
#define SERVER_MEMORY_MAX (WIRE_HEADER_BYTES + WIRE_MEMORY_BYTES(GW_MEMORIES_MAX, GW_REGIONS_MAX))

#define SERVER_FINISH_NS (2 * GW_NS_PER_SECOND) /* time for the last answer to arrive */

enum server_phase { SERVER_HELLO, SERVER_PROOF, SERVER_OPEN, SERVER_FINISHING };

struct tcp_server {
	struct tcp_io io;
	struct tcp_loop *loop;
	struct tcp_server *next, **previous;
	struct tcp_listener *listener;
	struct gw_service *service;
	uint32_t thread;
	uint64_t number; /* counts this process's connections, from 1 */
	enum server_phase phase;
	struct gw_deadline deadline; /* in the loop's: when gw_tcp_servers_tick must look at the connection */
	bool ended;                  /* removed from the loop's list; waits for `gone` */
	bool entered;   /* the client has proved the key and counts as a connection; else it is a pending client */
	bool moved;     /* MOVED was sent */
	bool shut_down; /* FINISHING: the end of the stream was sent */
	bool drained;   /* FINISHING: all frames are answered; the connection ends when the client has the last byte */
	uint64_t since_ns; /* HELLO, PROOF: when accepted; OPEN: the last progress; FINISHING: its start */
	uint64_t calls_ns; /* how long handlers have run in this turn */
	uint64_t said_ns;  /* calling: when the last PONG was sent */
	struct tcp_server *newer, *older; /* among the loop's pending clients */
	struct gw_auth auth;
	uint64_t budget_ns, window;       /* for the client's numbered calls */
	struct tcp_fd_passing fd_passing; /* unix sockets */
	int passed;                       /* a dynamic region's descriptor that is being sent; -1: none */
	struct gw_dynamic_pins leases;
	/* Frames, the oldest at in_begin; and answers. See lender.h: a connection has no buffer while it is empty. */
	struct tcp_loan in;
	uint32_t in_begin, in_end;
	struct tcp_loan out;
	uint32_t out_begin, out_end;
	/* The read or request in progress: its frame is still in the input buffer. */
	bool reading, calling;
	uint32_t frame_bytes;
	struct tcp_answer read;
	const uint8_t
		*direct; /* a read of one long range: its bytes are sent from here; NULL: from the output buffer */
	uint64_t direct_left;
	/* The request, and its reply while it is being sent, header included. */
	struct gw_task task;
	uint64_t tag;           /* of the read or request in progress */
	struct gw_queued turn;  /* in the loop's queue of deferred calls */
	struct gw_queued pause; /* in the loop's queue of paused calls */
	bool replying;
	uint32_t reply_sent, reply_bytes;
};

static inline uint32_t gw_tcp_server_room(const struct tcp_server *server)
{
	return server->out.bytes - server->out_end;
}

/* Makes gw_tcp_servers_tick look at the connection at this time, or earlier. */
static inline void tcp_server_timer(struct tcp_server *server, uint64_t at_ns)
{
	gw_deadlines_set(&server->loop->deadlines, &server->deadline, at_ns);
	tcp_loop_timer(server->loop, at_ns);
}

/* --- server.c --- */
const char *gw_tcp_server_name(const struct tcp_server *server, char text[GW_ADDRESS_MAX]);
/* Appends a frame to the output, which has room for it. */
void gw_tcp_server_answer(struct tcp_server *server, const struct wire_header *header, const void *body);
/* An ERROR with the text of gw_last_error(). */
void gw_tcp_server_answer_error(struct tcp_server *server, gw_status status, uint64_t tag);
/* Refuses the client: sends the text of gw_last_error() as the last frame, unless GW_OK. */
void gw_tcp_server_refuse(struct tcp_server *server, gw_status status);
/* Sends the output, then the end of the stream; handles no more input. */
void gw_tcp_server_finish(struct tcp_server *server);

/* Ends the use of the service; the memory is freed when the io is gone. */
void gw_tcp_server_end(struct tcp_server *server);
void gw_tcp_pending_end(struct tcp_server *server); /* the client is no longer pending */

/* --- server_hello.c --- */
/* Begins a pending client, which has sent nothing yet. It gets small buffers and a place among the loop's pending
 * clients. If these are too many, the oldest is closed. GW_NO_MEMORY. */
gw_status gw_tcp_pending_begin(struct tcp_server *server);
/* Handles a frame of the hello. */
void gw_tcp_server_hello(struct tcp_server *server, const struct wire_header *header, const uint8_t *body);

/* --- server_buffer.c --- */
/* Makes room for input; moves what is there to the beginning, unless a read in progress still uses it. Not while the
 * driver uses the buffer. GW_NO_MEMORY. */
gw_status gw_tcp_server_in_room(struct tcp_server *server);
/* Makes room for a frame of `needed` bytes, within the client's share of memory. GW_AGAIN: a receive into the buffer is
 * in progress. The receive will end, since the rest of this frame is still to come. GW_LIMIT, GW_NO_MEMORY. */
gw_status gw_tcp_server_in_grow(struct tcp_server *server, uint32_t needed);
/* Provides an output buffer. GW_NO_MEMORY. */
gw_status gw_tcp_server_out_ready(struct tcp_server *server);
/* The same, of `needed` bytes at least, for an output without unsent bytes. */
gw_status gw_tcp_server_out_grow(struct tcp_server *server, uint32_t needed);
/* Return the buffer if nothing needs it. */
void gw_tcp_server_in_settle(struct tcp_server *server);
void gw_tcp_server_out_settle(struct tcp_server *server);
void gw_tcp_server_buffers_end(struct tcp_server *server);

/* --- server_call.c --- */
void gw_tcp_server_call(struct tcp_server *server, const struct wire_header *header, const uint8_t *body);
/* `bytes` of the reply were sent. */
void gw_tcp_server_reply_sent(struct tcp_server *server, uint32_t bytes);
/* The call or its connection is over: ends the use of the service. */
void gw_tcp_server_call_leave(struct tcp_server *server);
/* Runs a deferred call that waits in the queue. */
void gw_tcp_server_call_resume(struct tcp_server *server);

/* --- server_dynamic.c --- */
/* Answers an OPEN; false: not now, since the descriptor for an earlier OPEN is being sent. */
bool gw_tcp_server_open(struct tcp_server *server, const struct wire_header *header, const uint8_t *body);
void gw_tcp_server_released(struct tcp_server *server, const uint8_t *body);
/* Between two answers: sends WITHDRAWN for the client's withdrawn regions, as far as the output has room. */
void gw_tcp_server_notify_withdrawn(struct tcp_server *server);
/* The descriptor was sent, or never will be. */
void gw_tcp_server_passed(struct tcp_server *server);

#endif
