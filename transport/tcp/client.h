/* An endpoint over TCP, as the files that make it up see it.
 *
 *      client.c          connect, hello, loss, close, deadlines, liveness
 *      client_post.c     reads and requests become frames in the output buffer and places in the queue
 *      client_dynamic.c     regions that come and go
 *      client_receive.c  answers come in the order of the queue
 */
#ifndef GW_TRANSPORT_TCP_CLIENT_H
#define GW_TRANSPORT_TCP_CLIENT_H

#include "transport/auth.h"
#include "transport/tcp/dest.h"
#include "transport/tcp/tcp.h"
#include "transport/tcp/wire.h"

#define CLIENT_FRAMES_MAX    64u         /* open at once */
#define CLIENT_QUEUE         128u        /* a power of two with room for a ping */
#define CLIENT_OUT_FIRST     (64u << 10) /* bytes of the output buffer, at first and at most */
#define CLIENT_OUT_MAX       (GW_REQUEST_BYTES_MAX + (512u << 10))
#define CLIENT_STAGING_BYTES (256u << 10)
#define CLIENT_DIRECT_MIN    GW_STAGED_BYTES /* a shorter rest of a frame goes through the staging buffer */
/* While a long answer comes, a wake-up is worth so many bytes, but not for longer than that. */
#define CLIENT_LOW_WATER_MIN (64u << 10)
#define CLIENT_LOW_WATER_MAX (1u << 20)
#define CLIENT_LOW_WATER_NS  (20 * 1000000ull)

enum client_phase {
	CLIENT_LOOKING_UP,
	CLIENT_DIALLING,
	CLIENT_HELLO_SENT,
	CLIENT_PROOF_SENT,
	CLIENT_WELCOMED, /* unix sockets: the memory is to come */
	CLIENT_OPEN,
	CLIENT_LOST
};

/* A question whose answer has not been received whole. */
struct client_frame {
	uint8_t type; /* of the question */
	uint64_t tag;
	uint64_t bytes;              /* reads: of the payload */
	struct gw_read_set *set;     /* reads; NULL: nobody wants it any more, the bytes are thrown away */
	struct gw_note *note;        /* requests; likewise */
	uint64_t deadline_ns;        /* requests */
	uint32_t region, generation; /* OPEN */
	struct tcp_dest dest;
	/* Reads of versioned regions: the ranges, for those that are torn; and whether the payload has come. */
	bool rows, landed;
	uint32_t count;
	const struct gw_span *spans;
	struct gw_gather gather; /* spans == NULL */
};

struct tcp_client {
	struct gw_endpoint base;
	struct tcp_dynamic_reader *dynamic_reader; /* NULL: we let go of what is withdrawn ourselves */
	struct tcp_io io;
	struct tcp_loop *loop;
	struct tcp_client *next, **previous;
	enum client_phase phase;
	bool closed; /* by its owner: freed when the io is gone */
	bool io_added, io_gone;
	bool send_broken; /* what the peer still says is read, then it is lost */
	bool room_wanted;
	bool dynamic_owed;                               /* RELEASED frames that found no room: for entries, */
	struct wire_dynamic unwanted[CLIENT_FRAMES_MAX]; /* and for regions that came and have no entry */
	uint32_t unwanted_count;
	bool probed;
	/* Dialling. */
	struct gw_address address;
	struct tcp_resolve *resolve; /* LOOKING_UP */
	struct addrinfo *addresses, *dialled;
	uint64_t dial_deadline_ns;  /* of the address dialled */
	struct gw_note *connecting; /* until the outcome is known */
	uint64_t connect_deadline_ns, liveness_ns, heard_ns;
	uint64_t probed_ns; /* if probed: since then the answer may come */
	uint64_t graph_id, budget_ns;
	struct gw_auth auth;
	bool must_prove; /* a key */
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
	uint32_t low_water_max; /* what the socket's receive buffer allows */
	uint64_t direct;        /* bytes that the receive under way may land in the oldest frame's destination */
	bool direct_dying;      /* that frame's read set has failed; it is let go when the receive has ended */
	uint8_t *reply;         /* the block of the reply that is being received */
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

const char *gw_tcp_client_name(const struct tcp_client *client, char text[GW_ADDRESS_MAX]);

/* Room for a frame in the output buffer, header included; NULL when there is none now, or none at all (then the error
 * text is set and *status is not GW_AGAIN). The frame is appended by gw_tcp_client_push. */
uint8_t *gw_tcp_client_reserve(struct tcp_client *client, uint32_t bytes, gw_status *status);
/* Appends the frame reserved (its header is written here) and gives the question its place in the queue. */
struct client_frame *gw_tcp_client_push(struct tcp_client *client, const struct wire_header *header);
void gw_tcp_client_send(struct tcp_client *client, uint8_t type, const void *body, uint32_t bytes);

/* The peer is lost: everything open fails with the status and the text of gw_last_error(). */
void gw_tcp_client_lose(struct tcp_client *client, gw_status status);
/* Nobody wants the set's bytes any more: its frames are thrown away, and it completes when that is safe. */
void gw_tcp_client_drop_set(struct tcp_client *client, struct gw_read_set *set);
/* A read set's frame is over. */
void gw_tcp_client_frame_end(struct tcp_client *client, struct client_frame *frame);
/* Something became free: a call that found no room is worth another try. */
static inline void gw_tcp_client_room(struct tcp_client *client)
{
	if (!client->room_wanted)
		return;
	client->room_wanted = false;
	gw_poll_group_room(client->base.group);
}
/* The outcome of the connect. */
void gw_tcp_client_connected(struct tcp_client *client, gw_status status);
/* A frame of the hello has come. */
gw_status gw_tcp_client_hello(struct tcp_client *client, const struct wire_header *header, const uint8_t *body);

/* --- client_dynamic.c --- */
/* hold: the client reads the memory by itself, and lets go when it is told. */
gw_status gw_tcp_client_open_region(struct tcp_client *client, uint32_t id, uint32_t generation, bool hold,
				    void *cookie);
/* REGION and WITHDRAWN have come. An error ends the connection. */
gw_status gw_tcp_client_take_region(struct tcp_client *client, const uint8_t *body);
gw_status gw_tcp_client_take_withdrawn(struct tcp_client *client, const uint8_t *body);
/* There may be room for what is owed. */
void gw_tcp_client_dynamic_sent(struct tcp_client *client);
void gw_tcp_client_dynamic_end(struct tcp_client *client);

/* The io's callbacks of client_receive.c. */
size_t gw_tcp_client_target(struct tcp_io *io, struct iovec *iov);
void gw_tcp_client_received(struct tcp_io *io, ssize_t n);

#endif
