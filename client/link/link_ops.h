/* The state of a link, shared by its files: link.c connects and posts; away.c handles a server that is away; upgrade.c
 * looks for a better transport. Also the waiting ops, their clocks, and the options of each connect. */
#ifndef GW_CLIENT_LINK_LINK_OPS_H
#define GW_CLIENT_LINK_LINK_OPS_H

#include "client/state/client.h"
#include "client/state/job.h"
#include "client/state/link_counts.h"

#define GW_BACKOFF_MIN_NS (20 * GW_NS_PER_MS)

enum gw_link_op_form { GW_LINK_GATHER, GW_LINK_SPANS, GW_LINK_REQUEST };

/* A link op: one set of reads from one server, or one request to it. The caller owns the memory until `done` is
 * called. */
struct gw_link_op {
	struct gw_event event;
	struct gw_read_set set;
	struct gw_job *job; /* the operation that the op belongs to; sets its deadline */
	struct gw_link *link;
	struct gw_link_op *next; /* in the link's queue */
	enum gw_link_op_form form;
	struct gw_buffer *buffer;
	uint32_t region, generation; /* 0: the hello listed the region */
	struct gw_gather gather;     /* GW_LINK_GATHER */
	const struct gw_span *spans; /* GW_LINK_SPANS */
	uint64_t count;              /* of the gather or the spans */
	uint16_t call;               /* GW_LINK_REQUEST */
	const void *request;
	uint32_t request_bytes;
	/* sequence 0: the request may run twice. Otherwise: the request's number; each engine numbers its requests to a
	 * server. The link sets window when it first posts the request; 0 until then */
	struct gw_once once;
	/* Called once, in the engine. The completion is set for a request that succeeded, or for a read with torn rows
	 * (GW_AGAIN); else it is NULL. */
	void (*done)(struct gw_link_op *op, gw_status status, const struct gw_completion *completion);
	void *owner;
	/* Fields of the link: */
	uint64_t begun_ns; /* when the op was given to the link */
	uint64_t posted;
	uint64_t deadline_ns;     /* the job's deadline when the op was queued or its server came back */
	uint64_t lost_ns;         /* when the op's connection was lost for the first time, or 0 */
	uint64_t connection;      /* the value of link->connection when the op was opened */
	struct gw_region dynamic; /* the region when the first reads of the op were posted */
	bool queued, cancelled, open;
	bool away;       /* the job's clock is stopped for this op */
	uint64_t traced; /* its number in the trace, or 0 */
};

/* See upgrade.h. */
enum gw_upgrade_step { GW_UPGRADE_IDLE, GW_UPGRADE_CONNECTING, GW_UPGRADE_READING };

struct gw_upgrade {
	struct gw_event connected, reads_done; /* connected: must be first */
	/* The search has ended: with an endpoint that replaces TCP, or with NULL and the reason in `reason`. */
	void (*done)(struct gw_link *link, struct gw_endpoint *better, gw_status status);
	enum gw_upgrade_step step;
	const struct gw_scheme *scheme; /* tried last in this search; NULL: none yet */
	struct gw_endpoint *endpoint;   /* may replace the TCP endpoint */
	/* completions that have not arrived; a new search waits for those of the previous search */
	uint32_t open;
	struct gw_read_set sets[2]; /* of the comparing read: over TCP, over the better transport */
	uint8_t *bytes;             /* the results of the two reads, the second after the first */
	uint32_t byte_count;
	struct gw_buffer *buffer;
	bool network_waits;           /* do not try transports over the network now, but once the link is open */
	bool network_tried;           /* in this search */
	bool in_background;           /* the link is open over TCP meanwhile: no op waits for the search */
	const struct gw_scheme *lost; /* the network transport that was lost, or that failed, last */
	/* when network transports are tried again; GW_NO_DEADLINE: not on this connection */
	uint64_t retry_ns;
	uint64_t pause_ns; /* the last pause */
	uint64_t since_ns; /* when the link started to use its network transport */
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
	bool mapped;    /* this process can address the endpoint's memory */
	bool ordered;   /* counted in engine->ordered_links */
	bool one_sided; /* when the link was last open, reads cost the server no CPU time */
	/* Of mapped memory, by direction, once used; or NULL: see client/batch/local_lists.h. */
	struct gw_adjacency *lists[2];
	struct gw_upgrade upgrade;
	bool ever_open;
	bool offered_key; /* the TCP connection offered a key */
	bool moved;       /* the last connection's server has a successor */
	bool logged_away; /* the client logged that it waits for the server: see away.h */
	enum gw_link_state state;
	struct gw_link_op *head, **tail;               /* ops that are not posted completely */
	struct gw_link *next_ticking, *next_listening; /* in engine->ticking, in engine->listening */
	bool ticks, listens;                           /* is in the list */
	struct gw_link *next_mapped;                   /* in engine->mapped, if `mapped` */
	struct gw_deadline timer;                      /* in engine->timers */
	uint32_t ops_open;                             /* posted by callers, not ended */
	uint64_t used_ns;                              /* when an op was posted last, or was seen open */
	uint64_t expiry_ns;                            /* no waiting op of the queue has an earlier deadline */
	uint64_t incarnation;                          /* of the server that this link has checked */
	uint64_t connection;                           /* counts connects */
	bool opens_region;                             /* a dynamic region is being opened */
	uint64_t away_ns; /* since when the link is not open although it should be; 0: it is open */
	/* since when connecting fails for reasons that waiting rarely removes; 0: it does not fail so */
	uint64_t lasting_ns;
	uint64_t retry_ns, backoff_ns;
	uint32_t attempts;         /* attempts to connect since the link was last open */
	uint8_t key[GW_KEY_BYTES]; /* found in the runtime folder */
	uint64_t traced;           /* the number of the attempt to connect in the trace, or 0 */
	gw_status failure;         /* why the link is not open */
	char reason[GW_ERROR_TEXT_MAX];
	enum gw_scheme_number scheme; /* of the transport that the link used last */
	struct gw_link_counts counts;
};

/* Every change of a link's state. */
static inline void gw_link_set_state(struct gw_link *link, enum gw_link_state state)
{
	if (link->state == GW_LINK_OPEN && state != GW_LINK_OPEN)
		atomic_fetch_sub_explicit(&link->engine->open_links, 1, memory_order_relaxed);
	else if (link->state != GW_LINK_OPEN && state == GW_LINK_OPEN)
		atomic_fetch_add_explicit(&link->engine->open_links, 1, memory_order_relaxed);
	link->state = state;
}

/* The bytes that a request has, or that reads fetch. */
static inline uint64_t gw_link_op_bytes(const struct gw_link_op *op)
{
	uint64_t bytes = 0;
	if (op->form == GW_LINK_REQUEST)
		return op->request_bytes;
	if (op->form == GW_LINK_GATHER)
		return op->count * op->gather.row_bytes;
	for (uint64_t i = 0; i < op->count; i++)
		bytes += op->spans[i].bytes;
	return bytes;
}

/* The next run of the engine looks at the link: something happened that may concern its queue or its timer. */
void gw_link_tick_soon(struct gw_link *link);

/* An op joins the queue, or leaves it. */
void gw_link_enqueue(struct gw_link *link, struct gw_link_op *op);
void gw_link_dequeue(struct gw_link *link, struct gw_link_op *op);

/* The clock of an operation runs while the servers of its queued ops are connected, and stops while one is away. */
void gw_link_op_start_clock(struct gw_link *link, struct gw_link_op *op, uint64_t now_ns);
void gw_link_op_stop_clock(struct gw_link_op *op, uint64_t now_ns);

/* When the reconnect budget of an op that waits since since_ns expires. */
uint64_t gw_link_budget_end(const struct gw_link *link, uint64_t since_ns);

/* "server host:port: reason". The text of a transport may already begin with the address. */
void gw_link_name(const struct gw_link *link, const char *reason, char text[GW_ERROR_TEXT_MAX]);

/* Fills the options of a connect: key, client and graph. The connect's deadline is deadline_ns, or the end of the
 * reconnect budget of waiting ops, if that is earlier. Fails if an existing key cannot be read. */
gw_status gw_link_connect_options(struct gw_link *link, uint64_t deadline_ns, struct gw_connect_options *options);

/* A third of an operation's deadline, within limits. A server may be silent that long before the client checks that the
 * server is alive. The server's answer to the check may take as long again. The last third remains to try another
 * connection for the operation. */
uint64_t gw_link_patience_ns(const struct gw_client *client);

#endif
