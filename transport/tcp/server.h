/* A connection from the server's side, as its files see it:
 *
 *      server.c          the connection: frames in, answers out, ends, timers
 *      server_hello.c    strangers, until they have proved the key
 *      server_call.c     requests: run in turns, replies that are long
 *      server_answer.c   reads
 *      server_dynamic.c     regions that come and go
 */
#ifndef GW_TRANSPORT_TCP_SERVER_H
#define GW_TRANSPORT_TCP_SERVER_H

#include "transport/auth.h"
#include "transport/task.h"
#include "transport/tcp/server_answer.h"
#include "transport/tcp/tcp.h"

#define SERVER_WELCOME_MAX                                                                                             \
	(WIRE_HEADER_BYTES + sizeof(struct wire_welcome) + (size_t)GW_REGIONS_MAX * WIRE_REGION_BYTES)
#define SERVER_MEMORY_MAX (WIRE_HEADER_BYTES + WIRE_MEMORY_BYTES(GW_MEMORIES_MAX, GW_REGIONS_MAX))

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
	bool entered;      /* it has proved the key, and is counted in the service's connections; else a stranger */
	bool shut_down;    /* FINISHING: our end of the stream was sent */
	bool drained;      /* FINISHING: all that was asked is answered, and ends with the last byte */
	uint64_t since_ns; /* HELLO, PROOF: accepted; OPEN: the last progress inside a frame; FINISHING: its begin */
	uint64_t calls_ns; /* that handlers took in this turn */
	uint64_t said_ns;  /* calling: the last sign of life */
	struct tcp_server *newer, *older; /* strangers */
	struct gw_auth auth;
	uint64_t budget_ns, window;       /* of the client's numbered calls */
	struct tcp_fd_passing fd_passing; /* unix sockets */
	int passed;                       /* a late region's, on its way to the client; -1: none */
	struct gw_dynamic_pins holds;
	/* In: frames, the oldest at in_begin. */
	uint8_t *in;
	uint32_t in_begin, in_end, in_capacity;
	/* Out. */
	uint8_t *out;
	uint32_t out_begin, out_end, out_capacity;
	/* The read or request that is being answered: its frame is still in the input buffer. */
	bool reading, calling;
	uint32_t frame_bytes;
	struct tcp_answer read;
	/* The request, and its reply while that is being sent, header included. */
	struct gw_task task;
	uint64_t tag; /* of the read or request */
	bool queued;  /* in the loop's queue of deferred calls */
	struct tcp_server *next_queued;
	bool replying;
	uint32_t reply_sent, reply_bytes;
};

static inline uint32_t gw_tcp_server_room(const struct tcp_server *server)
{
	return server->out_capacity - server->out_end;
}

/* --- server.c --- */
/* Appends a frame to the output, which has room for it. */
void gw_tcp_server_answer(struct tcp_server *server, const struct wire_header *header, const void *body);
/* An ERROR with the text of gw_last_error(). */
void gw_tcp_server_answer_error(struct tcp_server *server, gw_status status, uint64_t tag);
/* The last words to a client that is turned away: the text of gw_last_error(), unless GW_OK. */
void gw_tcp_server_refuse(struct tcp_server *server, gw_status status);
/* From here on nothing of the service is touched; the memory goes when the io has. */
void gw_tcp_server_end(struct tcp_server *server);

/* --- server_hello.c --- */
/* A socket that has said nothing yet: it gets buffers of its own size, and a place among the loop's strangers, of whom
 * the oldest goes if there are too many. GW_NO_MEMORY. */
gw_status gw_tcp_pending_begin(struct tcp_server *server);
void gw_tcp_pending_end(struct tcp_server *server);
/* A frame of the hello. */
void gw_tcp_server_hello(struct tcp_server *server, const struct wire_header *header, const uint8_t *body);
/* One that is known now gets an input buffer for requests, while the driver does not hold the old one. */
gw_status gw_tcp_server_grown(struct tcp_server *server);

/* --- server_call.c --- */
void gw_tcp_server_call(struct tcp_server *server, const struct wire_header *header, const uint8_t *body);
/* So much of what was given for sending belongs to the reply. */
void gw_tcp_server_reply_sent(struct tcp_server *server, uint32_t bytes);
/* The call is over or its connection is: the service is used no more. */
void gw_tcp_server_call_leave(struct tcp_server *server);
/* A call that is short of room tries again. */
void gw_tcp_server_call_tick(struct tcp_server *server, uint64_t now_ns);

/* --- server_dynamic.c --- */
/* Answers an OPEN; false: not now, the descriptor of an earlier one is on its way. */
bool gw_tcp_server_open(struct tcp_server *server, const struct wire_header *header, const uint8_t *body);
void gw_tcp_server_released(struct tcp_server *server, const uint8_t *body);
/* Between two answers: what the client holds and was withdrawn, as far as there is room. */
void gw_tcp_server_notify_withdrawn(struct tcp_server *server);
/* A descriptor has gone out, or never will. */
void gw_tcp_server_passed(struct tcp_server *server);

#endif
