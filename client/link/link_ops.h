/* What a link is, and what its parts share: link.c, which connects and posts; away.c, for a server that is away; and
 * upgrade.c, which looks for a better way. The ops that wait, their clocks, and what each connect says.
 */
#ifndef GW_CLIENT_LINK_LINK_OPS_H
#define GW_CLIENT_LINK_LINK_OPS_H

#include "client/state/client.h"
#include "client/state/job.h"

#define GW_BACKOFF_MIN_NS (20 * GW_NS_PER_MS)

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
	uint32_t region, generation; /* 0: it was there at the hello */
	struct gw_gather gather;     /* GW_LINK_GATHER */
	const struct gw_span *spans; /* GW_LINK_SPANS */
	uint64_t count;              /* of the gather or the spans */
	uint16_t call;               /* GW_LINK_REQUEST */
	const void *request;
	uint32_t request_bytes;
	struct gw_once once; /* sequence 0: it may run twice; else the engine's running number with this server, and
				window 0 until it was posted */
	/* Called once, in the engine: with the completion of a request that succeeded, or of a read of which rows were
	 * torn (GW_AGAIN); else with NULL. */
	void (*done)(struct gw_link_op *op, gw_status status, const struct gw_completion *completion);
	void *owner;
	/* The link's: */
	uint64_t posted;
	uint64_t deadline_ns;     /* the job's, when the op was queued or its server came back */
	uint64_t lost_ns;         /* when its connection was lost for the first time, or 0 */
	uint64_t connection;      /* the one that it is open on: link->connection of then */
	struct gw_region dynamic; /* as it was when the first reads of it were posted */
	bool queued, cancelled, open;
	bool away; /* the job's clock stands still for it */
};

/* See upgrade.h. */
enum gw_upgrade_step { GW_UPGRADE_IDLE, GW_UPGRADE_CONNECTING, GW_UPGRADE_READING };

struct gw_upgrade {
	struct gw_event connected, landed; /* connected: first */
	/* The search has ended: with an endpoint that takes TCP's place, or NULL and why there is none (reason). */
	void (*done)(struct gw_link *link, struct gw_endpoint *better, gw_status status);
	enum gw_upgrade_step step;
	const struct gw_scheme *way;  /* the one that was tried last in this search; NULL: none yet */
	struct gw_endpoint *endpoint; /* the one that may take TCP's place */
	uint32_t open;                /* completions on their way: a new upgrade waits for those of the last one */
	struct gw_read_set sets[2];   /* of the read: over TCP, by the better way */
	uint8_t *bytes;               /* what they read, one behind the other */
	uint32_t byte_count;
	struct gw_buffer *buffer;
	bool network_waits;           /* a way over the network is not tried now, but once the link is open */
	bool network_tried;           /* in this search */
	bool beside;                  /* the link is open over TCP meanwhile: no op waits for the search */
	const struct gw_scheme *lost; /* the way over the network that was lost, or could not be had, last */
	uint64_t retry_ns;            /* when such ways are tried again; GW_NO_DEADLINE: not on this connection */
	uint64_t pause_ns;            /* the last pause */
	uint64_t since_ns;            /* when such a way was taken */
	bool failed;
	char reason[GW_ERROR_TEXT_MAX];
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
	struct gw_event connected, checked, region_opened;
	struct gw_engine *engine;
	struct gw_remote *server;
	struct gw_endpoint *endpoint;
	bool mapped;                /* the endpoint's memory can be addressed */
	bool one_sided;             /* so it was when it was open last: reads cost the server nothing */
	struct gw_adjacency *lists; /* then, once they have been asked for: see local_lists.h */
	struct gw_upgrade upgrade;
	bool ever_open;
	bool offered_key; /* by the connection over TCP */
	bool told;        /* it was said that the server is waited for: see away.h */
	enum gw_link_state state;
	struct gw_link_op *head, **tail; /* not yet posted whole */
	uint64_t expiry_ns;              /* no read of the queue has an earlier deadline */
	uint64_t incarnation;            /* of the server that this link has checked */
	uint64_t connection;             /* counts connects */
	bool opens_region;               /* a region that came late is being opened */
	uint64_t away_ns;                /* since when it is not open, though it should be; 0: it is */
	uint64_t lasting_ns;             /* since when it fails of what waiting hardly helps; 0: it does not */
	uint64_t retry_ns, backoff_ns;
	uint32_t attempts;         /* to connect, since it was open */
	uint8_t key[GW_KEY_BYTES]; /* found in the runtime folder */
	gw_status failure;         /* why it is not open */
	char reason[GW_ERROR_TEXT_MAX];
};

/* An op joins the queue, or leaves it. */
void gw_link_enqueue(struct gw_link *link, struct gw_link_op *op);
void gw_link_dequeue(struct gw_link *link, struct gw_link_op *op);

/* The server of a queued op is there, or away: then its operation's time stands still. */
void gw_link_op_start_clock(struct gw_link *link, struct gw_link_op *op, uint64_t now_ns);
void gw_link_op_stop_clock(struct gw_link_op *op, uint64_t now_ns);

/* When the reconnect budget is used up of who waits since then. */
uint64_t gw_link_budget_end(const struct gw_link *link, uint64_t since_ns);

/* "server host:port: reason"; a transport's own text may begin with the address already. */
void gw_link_name(const struct gw_link *link, const char *reason, char text[GW_ERROR_TEXT_MAX]);

/* Of every connect to the server: key, client and graph; until deadline_ns, or as long as what waits for a link that is
 * away may wait. Fails where a key that is there cannot be read. */
gw_status gw_link_connect_options(struct gw_link *link, uint64_t deadline_ns, struct gw_connect_options *options);

/* A third of an operation's deadline, within limits: so long may a server be silent before it is asked whether it is
 * there, and so long may the answer take. Both are over, and another connection is tried, in time for the operation.
 */
uint64_t gw_link_patience_ns(const struct gw_client *client);

#endif
