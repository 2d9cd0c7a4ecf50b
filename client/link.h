/* A link: an engine's connection to one server, which comes back when it was lost, and the reads that wait for it.
 *
 *   DOWN -> CONNECTING -> (CHECKING: the server is another process than before) -> (UPGRADING) -> OPEN -> lost
 *              ▲                                                                                           │
 *              └────────────────────────────── WAITING ◀───────────────────────────────────────────────────┘
 *
 * UPGRADING: the connection over TCP stands; the link looks for a better one (upgrade.h), and closes that over TCP when
 * it has found it. Which one it is shows in the endpoint alone. All are tried again after each loss; RDMA also while
 * the link is open over TCP, which it then leaves in the midst of its reads: they are posted again.
 *
 * Reads are posted in order, as room allows. A read whose connection is lost is posted again on the next one: reads and
 * sample requests may run twice. Two limits: the operation's deadline runs while the server is connected, also while
 * the read waits for room; while the server is away, the reconnect budget does. When that is used up, every waiting
 * read fails with the reason; so does a read whose connections keep being lost for that long, one after another.
 */
#ifndef GW_CLIENT_LINK_H
#define GW_CLIENT_LINK_H

#include "client/upgrade.h"

struct gw_client;
struct gw_remote;

enum gw_link_op_form { GW_LINK_GATHER, GW_LINK_SPANS, GW_LINK_REQUEST };

/* A link op: one set of reads from one server, or one request to it. The caller's memory until done is called. */
struct gw_link_op {
	struct gw_event event;
	struct gw_read_set set;
	struct gw_job *job; /* the operation that it is part of: its deadline */
	struct gw_link *link;
	struct gw_link_op *next; /* in the link's queue */
	enum gw_link_op_form form;
	struct gw_buffer *buffer;
	uint32_t region;
	struct gw_gather gather;     /* GW_LINK_GATHER */
	const struct gw_span *spans; /* GW_LINK_SPANS */
	uint64_t count;              /* of the gather or the spans */
	uint16_t call;               /* GW_LINK_REQUEST */
	const void *request;
	uint32_t request_bytes;
	uint64_t sequence; /* 0: it may run twice; else the engine's running number with this server */
	/* Called once, in the engine: with the completion of a request that succeeded, else with NULL. */
	void (*done)(struct gw_link_op *op, gw_status status, const struct gw_completion *completion);
	void *owner;
	/* The link's: */
	uint64_t posted;
	uint64_t deadline_ns; /* the job's, when the op was queued or its server came back */
	uint64_t lost_ns;     /* when its connection was lost for the first time, or 0 */
	uint64_t connection;  /* the one that it is open on: link->connection of then */
	bool queued, cancelled, open;
	bool away; /* the job's clock stands still for it */
};

enum gw_link_state {
	GW_LINK_DOWN,
	GW_LINK_CONNECTING,
	GW_LINK_CHECKING,
	GW_LINK_UPGRADING,
	GW_LINK_OPEN,
	GW_LINK_WAITING
};

struct gw_link {
	struct gw_event connected, checked;
	struct gw_engine *engine;
	struct gw_remote *server;
	struct gw_endpoint *endpoint;
	bool mapped;                /* the endpoint's memory can be addressed */
	bool one_sided;             /* so it was when it was open last: reads cost the server nothing */
	struct gw_adjacency *lists; /* then, once they have been asked for: see lists.h */
	struct gw_upgrade upgrade;
	bool ever_open;
	bool offered_key; /* by the connection over TCP */
	bool told;        /* it was said that the server is waited for: see away.h */
	enum gw_link_state state;
	struct gw_link_op *head, **tail; /* not yet posted whole */
	uint64_t expiry_ns;              /* no read of the queue has an earlier deadline */
	uint64_t incarnation;            /* of the server that this link has checked */
	uint64_t connection;             /* counts connects */
	uint64_t away_ns;                /* since when it is not open, though it should be; 0: it is */
	uint64_t unmended_ns;            /* since when it fails of what waiting hardly mends; 0: it does not */
	uint64_t retry_ns, backoff_ns;
	uint32_t attempts;         /* to connect, since it was open */
	uint8_t key[GW_KEY_BYTES]; /* found in the runtime folder */
	gw_status failure;         /* why it is not open */
	char reason[GW_ERROR_TEXT_MAX];
};

void gw_link_init(struct gw_link *link, struct gw_engine *engine, struct gw_remote *server);
void gw_link_close(struct gw_link *link);

/* Starts to connect, if it is down. */
void gw_link_open(struct gw_link *link);

/* Of every connect to the server: key, client and graph. Fails where a key that is there cannot be read. */
gw_status gw_link_connect_options(struct gw_link *link, uint64_t deadline_ns, struct gw_connect_options *options);

/* A third of an operation's deadline, within limits: so long may a server be silent before it is asked whether it is
 * there, and so long may the answer take. Both are over, and another connection is tried, in time for the operation.
 */
uint64_t gw_link_patience_ns(const struct gw_client *client);

/* An upgrade has ended: with an endpoint that takes TCP's place, or NULL and why there is none (upgrade.reason). */
void gw_link_upgraded(struct gw_link *link, struct gw_endpoint *better, gw_status status);

/* Timers, and ops that wait for room. Returns when it wants to be called again at the latest. */
uint64_t gw_link_tick(struct gw_link *link, uint64_t now_ns);

/* Hands an op over; done tells the outcome, perhaps before this returns. */
void gw_link_post(struct gw_link *link, struct gw_link_op *op);

/* For away.h: takes an op off the queue; and the server of a queued op is away: its operation's time stands still.
 */
#define GW_BACKOFF_MIN_NS (20 * GW_NS_PER_MS)
void gw_link_dequeue(struct gw_link *link, struct gw_link_op *op);
void gw_link_op_stop_clock(struct gw_link_op *op, uint64_t now_ns);

/* Makes an op end with GW_CANCELLED, by done, once nothing writes to its destination any more. */
void gw_link_cancel(struct gw_link_op *op);

#endif
