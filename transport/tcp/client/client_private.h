/* An endpoint over TCP, shared by its files:
 *
 *      client.c          connect, hello, close, deadlines, liveness, loss
 *      client_lone.c     one short answer, awaited in its socket
 *      client_post.c     reads and requests become frames in the output buffer and places in the queue
 *      client_dynamic.c  dynamic regions
 *      client_receive.c  answers arrive in the order of the queue
 *
 * A question is a frame that the server answers: a read, a request, an OPEN or a PING.
 */
#ifndef GW_TRANSPORT_TCP_CLIENT_CLIENT_PRIVATE_H
#define GW_TRANSPORT_TCP_CLIENT_CLIENT_PRIVATE_H

#include "transport/service/auth.h"
#include "transport/tcp/client/client.h"
#include "transport/tcp/client/dest.h"
#include "transport/tcp/wire.h"

#define CLIENT_FRAMES_MAX    64u         /* questions that are open at once */
#define CLIENT_QUEUE         128u        /* a power of two with room for a ping */
#define CLIENT_OUT_FIRST     (64u << 10) /* the output buffer's bytes at first; CLIENT_OUT_MAX: at most */
#define CLIENT_OUT_MAX       (GW_REQUEST_BYTES_MAX + (512u << 10))
#define CLIENT_STAGING_BYTES (256u << 10)
#define CLIENT_DIRECT_MIN    GW_STAGED_BYTES /* a shorter remainder of a frame goes through the staging buffer */
/* During a long answer the socket wakes the client for this many bytes, or after this time. */
#define CLIENT_LOW_WATER_MIN (64u << 10)
#define CLIENT_LOW_WATER_MAX (1u << 20)
#define CLIENT_LOW_WATER_NS  (20 * 1000000ull)

enum client_phase {
	CLIENT_LOOKING_UP,
	CLIENT_DIALLING,
	CLIENT_HELLO_SENT,
	CLIENT_PROOF_SENT,
	CLIENT_WELCOMED, /* unix sockets: the MEMORY frame comes next */
	CLIENT_OPEN,
	CLIENT_LOST
};

/* A question without its complete answer. */
struct client_frame {
	uint8_t type; /* the question's wire type */
	uint64_t tag;
	uint64_t bytes;              /* reads: the payload's length */
	struct gw_read_set *set;     /* reads; NULL: the set has ended, the answer is dropped */
	struct gw_note *note;        /* requests; NULL: cancelled, the answer is dropped */
	uint64_t deadline_ns;        /* requests */
	uint32_t region, generation; /* OPEN */
	struct tcp_dest dest;
	/* For reads of versioned regions (`rows`). `landed`: the payload has arrived, and TORN comes next. The frame
	 * keeps the ranges, to list the torn ones. */
	bool rows, landed;
	uint32_t count;
	const struct gw_span *spans;
	struct gw_gather gather; /* spans == NULL */
};

struct tcp_client {
	struct gw_endpoint base;
	struct tcp_dynamic_reader *dynamic_reader; /* NULL: this client releases withdrawn regions itself */
	struct tcp_io io;
	struct tcp_loop *loop;
	struct tcp_client *next, **previous;
	struct tcp_client *next_working, *next_unsent; /* in loop->working, loop->unsent */
	bool works, unsent;                            /* is in that list */
	enum client_phase phase;
	bool closed; /* the owner has closed it: freed when the io is gone */
	bool io_added, io_gone;
	bool send_broken; /* a send failed: the peer is lost after its last bytes are read */
	bool room_wanted;
	/* RELEASED frames that wait for room in the output: for regions in the table (dynamic_owed) and for others
	 * (unwanted). */
	bool dynamic_owed;
	struct wire_dynamic unwanted[CLIENT_FRAMES_MAX];
	uint32_t unwanted_count;
	bool probed;
	/* Dialling. */
	struct gw_address address;
	struct tcp_resolve *resolve; /* LOOKING_UP */
	struct addrinfo *addresses, *dialled;
	uint64_t dial_deadline_ns;  /* of the current address */
	struct gw_note *connecting; /* the connect's note, until the outcome is known */
	uint64_t connect_deadline_ns, liveness_ns, heard_ns;
	uint64_t probed_ns; /* if probed: when the probe was sent */
	uint64_t graph_id, budget_ns;
	struct gw_auth auth;
	bool must_prove; /* the server must prove the key */
	uint8_t key[GW_SERVICE_KEY_MAX];
	/* Questions, oldest first. */
	struct client_frame queue[CLIENT_QUEUE];
	uint32_t queue_begin, queue_end, requests_open, requests_max;
	uint64_t tag;
	struct gw_read_set *sets; /* started, not complete */
	/* Out. */
	uint8_t *out;
	uint32_t out_begin, out_end, out_capacity;
	/* In. */
	uint8_t *staging;
	uint32_t in_begin, in_end;
	struct wire_header header; /* of the frame whose body is being received */
	bool in_body;
	uint64_t body_left;
	uint32_t low_water_max; /* as the socket's receive buffer allows */
	uint64_t direct;        /* bytes that the current receive may write to the oldest frame's destination */
	bool direct_dying;      /* that frame's read set has failed; the frame ends with the current receive */
	uint8_t *reply;         /* the memory of the reply that is being received */
	uint64_t reply_done;
	struct gw_region regions[GW_REGIONS_MAX];
	uint32_t region_count;
	/* Unix sockets. */
	struct tcp_fd_passing fd_passing;
	void *mapped;
};

static inline struct tcp_client *client_of_io(struct tcp_io *io)
{
	return (struct tcp_client *)(void *)((uint8_t *)io - offsetof(struct tcp_client, io));
}

static inline uint32_t client_queued(const struct tcp_client *client)
{
	return client->queue_end - client->queue_begin;
}

static inline struct client_frame *client_frame(struct tcp_client *client, uint32_t at)
{
	return &client->queue[at % CLIENT_QUEUE];
}

static inline struct client_frame *client_oldest(struct tcp_client *client)
{
	return client_frame(client, client->queue_begin);
}

/* Work of the client begins. Timers and looks at open work walk only such clients. They leave the list during the next
 * walk after their work has ended. */
static inline void client_works(struct tcp_client *client)
{
	if (client->works)
		return;
	client->works = true;
	client->next_working = client->loop->working;
	client->loop->working = client;
}

/* Returns the first client with open work from *at on, and drops those without from the list. */
struct tcp_client *gw_tcp_client_at_work(struct tcp_client **at);

/* --- client.c, client_post.c --- */
/* Reserves room for a frame in the output buffer, header included. NULL: *status is GW_AGAIN (no room now), or
 * GW_NO_MEMORY with an error text. gw_tcp_client_push appends the frame. */
uint8_t *gw_tcp_client_reserve(struct tcp_client *client, uint32_t bytes, gw_status *status);
/* Appends the reserved frame, writes its header, and puts the question into the queue. */
struct client_frame *gw_tcp_client_push(struct tcp_client *client, const struct wire_header *header);
void gw_tcp_client_send(struct tcp_client *client, uint8_t type, const void *body, uint32_t bytes);

/* The peer is lost: fails everything open with the status and the text of gw_last_error(). */
void gw_tcp_client_lose(struct tcp_client *client, gw_status status);
/* Drops the answers to a set's frames. The set completes when nothing can write to its destination. */
void gw_tcp_client_drop_set(struct tcp_client *client, struct gw_read_set *set);
/* One frame of a read set has ended. */
void gw_tcp_client_frame_end(struct tcp_client *client, struct client_frame *frame);
/* A resource became free: a call that found no room can be tried again. */
static inline void gw_tcp_client_room(struct tcp_client *client)
{
	if (!client->room_wanted)
		return;
	client->room_wanted = false;
	gw_poll_group_room(client->base.group);
}
/* Reports the outcome of the connect. */
void gw_tcp_client_connected(struct tcp_client *client, gw_status status);
/* Handles a frame of the hello. */
gw_status gw_tcp_client_hello(struct tcp_client *client, const struct wire_header *header, const uint8_t *body);

/* --- client_dynamic.c --- */
/* lease: the client reads the memory itself, and releases it when it is notified of a withdrawal. */
gw_status gw_tcp_client_open_region(struct tcp_client *client, uint32_t id, uint32_t generation, bool lease,
				    void *cookie);
/* Handle REGION and WITHDRAWN. An error ends the connection. */
gw_status gw_tcp_client_take_region(struct tcp_client *client, const uint8_t *body);
gw_status gw_tcp_client_take_withdrawn(struct tcp_client *client, const uint8_t *body);
/* The output may have room: sends the RELEASED frames that are owed. */
void gw_tcp_client_dynamic_sent(struct tcp_client *client);
void gw_tcp_client_dynamic_end(struct tcp_client *client);

/* The io's callbacks of client_receive.c. */
size_t gw_tcp_client_target(struct tcp_io *io, struct iovec *iov);
void gw_tcp_client_received(struct tcp_io *io, ssize_t n);

#endif
