/* The RDMA backend's objects, as its files see each other.
 *
 *      verbs.c             the poll group's part: poll, sleep, wake, timers
 *      device.c            devices of this process: opened once, shared by all groups, released when they are removed
 *      library.c           the host's libibverbs and librdmacm, opened at run time
 *      async.c             what devices say about themselves: failed queue pairs, completion queues, ports, devices
 *      mr_cache.c          memory regions (MRs) of the buffers that reads land in: a cache
 *      cq_poller.c         a poll group's part of one device: takes completions, and knows whose they are
 *      cq_create.c         the completion queues of a poller: made, resized, armed
 *      domain.c            a thread's own doorbells: thread domain, parent domains
 *      port_window.c       bytes in flight toward a port of a device, shared by the process
 *      qp.c                a queue pair: ring of work in flight, window, silence
 *      stream.c            messages over a queue pair: chunks, credits
 *      handshake.c         what client and server tell each other before there is a queue pair (pure)
 *      report.c            what libibverbs says of this host's devices, for `graphwire doctor`
 *      endpoint.c          client: loss, close, deadlines, liveness
 *      endpoint_connect.c  client: hello over TCP, token, queue pairs
 *      endpoint_read.c     client: reads become work requests
 *      endpoint_rows.c     client: rows that change: where they land, and whether they are whole
 *      endpoint_dynamic.c     client: regions that came after the hello
 *      endpoint_request.c  client: requests and their replies
 *      listener.c          server: listens, hands out tokens, takes connection requests
 *      region_mrs.c        server: its rails (devices), and the MRs of its regions on them
 *      dynamic_mrs.c          server: the MRs of regions that come and go
 *      accepted_client.c   server: one client: accepts its queue pairs, answers its requests
 *
 * Everything that belongs to a poll group is one thread's; devices and cached MRs are the process's, behind one lock
 * that no read takes.
 */
#ifndef GW_TRANSPORT_VERBS_H
#define GW_TRANSPORT_VERBS_H

#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>

#include "transport/completions.h"
#include "transport/service_private.h"

extern const struct gw_transport gw_transport_verbs;

#define VERBS_QPS_MAX        8u /* queue pairs of one endpoint */
#define VERBS_QPS_DEFAULT    2u
#define VERBS_RING           256u /* work requests in flight on one queue pair; a power of two */
#define VERBS_WINDOW_MIN     16u  /* of reads: the window adapts between these */
#define VERBS_WINDOW_MAX     192u /* leaves room for messages */
#define VERBS_WINDOW_FIRST   64u
#define VERBS_POST_MAX       32u /* work requests posted at once */
#define VERBS_SIGNAL_EVERY   16u
#define VERBS_SGES_MAX       8u
#define VERBS_READ_BYTES     (128u << 10) /* of one work request, at most */
#define VERBS_WINDOW_BYTES   (1u << 20)   /* in flight on one queue pair, about */
#define VERBS_BOUNCE_BYTES   (256u << 10) /* of one queue pair's bounce buffer */
#define VERBS_CHUNK_BYTES    (16u << 10)  /* of one message, header included */
#define VERBS_RECEIVES       8u           /* messages that a side takes before it has looked at them */
#define VERBS_RECEIVES_SPARE 2u           /* for messages that only grant credits: see stream.c */
#define VERBS_SENDS          4u           /* messages on their way out; a power of two */
#define VERBS_INBOX          8u           /* messages received and not taken: a power of two, all the receives */
#define VERBS_POLLERS_MAX    4u           /* devices of one poll group */
#define VERBS_RAILS_MAX      8u           /* devices of one listener */
#define VERBS_CQS_MAX        12u          /* completion queues of one poller: each twice as large as the last */
#define VERBS_PORTS_MAX      4u           /* ports of one device; more share the last entry */

struct verbs_device;
struct verbs_loop;
struct verbs_poller;
struct verbs_qp;
struct verbs_frame;

/* --- port_window.c: what comes in by one port of a device --- */

/* One port of a device, for all groups of the process. */
struct verbs_port {
	uint64_t window;          /* bytes of reads in flight, about */
	_Atomic uint32_t readers; /* queue pairs that read, roughly */
	_Atomic uint64_t down_ns; /* since when it is down; 0: it is up, for all we know */
};
/* One group's queue pairs on one of them. */
struct verbs_share {
	struct verbs_port *port;
	uint32_t reading; /* queue pairs with reads in flight */
	uint32_t counted; /* of them in port->readers; more for a while after some have ended */
	uint32_t readers; /* of the port, when what follows was worked out */
	uint32_t bytes;   /* that one queue pair may have in flight */
	uint32_t read_bytes;
};
/* Windows by the ports' speeds. */
void gw_verbs_ports_begin(struct verbs_device *device);
uint64_t gw_verbs_port_window(uint64_t bytes_per_second);
void gw_verbs_share_work_out(struct verbs_share *share, uint32_t readers);
/* Counts one more that reads. */
void gw_verbs_share_raise(struct verbs_share *share);
/* Those that have ended are counted no more: before a sleep, and now and then. */
void gw_verbs_share_settle(struct verbs_share *share);

/* --- device.c --- */

/* A device that some group of this process uses. context is librdmacm's, and valid while we hold an id on it. */
struct verbs_device {
	struct verbs_device *next;
	struct ibv_context *context;
	struct ibv_pd *pd; /* of destinations and messages: nothing in it is open to peers */
	struct ibv_device_attr attr;
	struct rdma_cm_id *hold; /* keeps the context ours, and hears of the device's removal */
	struct verbs_cached_mr *mrs;
	uint32_t references;
	_Atomic bool dead;            /* removed, or beyond help: everybody lets go */
	struct verbs_poller *pollers; /* of all groups: who is to hear of asynchronous events */
	_Atomic uint32_t vector;      /* of completion queues: the next one */
	struct verbs_port ports[VERBS_PORTS_MAX];
};

/* A group begins to use devices, and ends. GW_UNSUPPORTED says what this host lacks. */
gw_status gw_verbs_begin(void);
void gw_verbs_end(void);
/* The device of a bound id, referenced. GW_UNSUPPORTED for one that cannot read (iWARP needs writable keys). */
gw_status gw_verbs_device_get(struct rdma_cm_id *id, struct verbs_device **out);
void gw_verbs_device_put(struct verbs_device *device);
/* Descriptor that is readable when gw_verbs_devices_look has something to see. */
int gw_verbs_devices_fd(void);
gw_status gw_verbs_nonblocking(int fd);
/* Marks devices that are gone. */
void gw_verbs_devices_look(void);
/* A GW_UNSUPPORTED text that says what is missing on this host. */
gw_status gw_verbs_missing(const char *what, int error);

/* --- async.c --- */
/* With gw_verbs_lock held. What an event tells, to those it concerns; it is not acknowledged yet, so that what it names
 * is still there. */
void gw_verbs_async(struct verbs_device *device, const struct ibv_async_event *event);
/* With gw_verbs_lock held: nobody uses the device any more. */
void gw_verbs_device_dead(struct verbs_device *device);
/* The poller is told of its device's events, or is no more. */
void gw_verbs_async_join(struct verbs_poller *poller);
void gw_verbs_async_leave(struct verbs_poller *poller);
/* By the loop's thread: fails the queue pairs that something was told of. */
void gw_verbs_async_take(struct verbs_loop *loop);
/* Why the queue pair failed. */
const char *gw_verbs_qp_reason(const struct verbs_qp *qp);

/* --- mr_cache.c --- */
struct verbs_cached_mr {
	struct verbs_cached_mr *next;
	struct verbs_device *_Atomic device; /* NULL once it is gone */
	uint8_t *base;
	uint64_t bytes;
	struct ibv_mr *mr; /* NULL once the device is gone */
	uint32_t references;
	uint32_t owners; /* references by those whose memory is all of it: without one nobody is let in any more */
};
/* What a buffer's word points to, once it has been read to: its MR on each poller's device. */
struct verbs_buffer_mrs {
	struct verbs_cached_mr *on[VERBS_POLLERS_MAX];
};
/* Memory as a destination: a cached MR that covers it, or a new one; without an mr: through the bounce buffer. NULL:
 * no memory. */
struct verbs_cached_mr *gw_verbs_mr_cache_get(struct verbs_device *device, uint8_t *base, uint64_t bytes);
/* By the buffer that got it. */
void gw_verbs_mr_cache_put(struct verbs_cached_mr *cached, const uint8_t *base, uint64_t bytes);
/* For the last user of a dead device, with the lock of device.c held. */
void gw_verbs_mr_cache_drop(struct verbs_device *device);
extern pthread_mutex_t gw_verbs_lock;
/* Page-aligned memory of its own mapping, registered for local use; NULL with error text. */
struct verbs_pages {
	uint8_t *base;
	size_t bytes;
	struct ibv_mr *mr;
};
gw_status gw_verbs_pages_create(struct ibv_pd *pd, size_t bytes, struct verbs_pages *out);
void gw_verbs_pages_destroy(struct verbs_pages *pages);
/* The status of a failed registration, its text naming the limit. */
gw_status gw_verbs_mr_fail(uint64_t bytes, int error);
/* A queue pair, a completion queue or the like that a device did not give: where a control group's rdma.max is what
 * binds, GW_LIMIT, with its file. */
gw_status gw_verbs_object_fail(const struct ibv_context *context, int error, const char *what);

/* --- What the completions of a poll have given somebody to do: run when all of them are taken. --- */
struct verbs_deferred {
	struct verbs_deferred *next;
	bool queued;
	void (*run)(struct verbs_deferred *deferred);
};

/* --- Events of the connection manager: what an id's context points to. --- */
struct verbs_cm_handler {
	/* The event was acknowledged already, so that its id may be destroyed; it and its data are valid in the call.
	 */
	void (*event)(struct verbs_cm_handler *self, const struct rdma_cm_event *event);
};

/* --- cq_create.c --- */

/* A completion queue. Its queue pairs can never have more completions waiting than it has entries. */
struct verbs_cq {
	struct verbs_poller *poller;
	struct ibv_cq *ibv;
	uint32_t used; /* entries, by queue pairs, at most */
	bool armed;
	bool mute;           /* owed flushes once and did not deliver: not waited for any more */
	uint32_t events;     /* taken from the channel, not acknowledged */
	_Atomic bool failed; /* overrun: it delivers nothing any more */
};

/* One with room for so many entries more, which are taken. */
gw_status gw_verbs_cq_enter(struct verbs_poller *poller, uint32_t entries, struct verbs_cq **out);
void gw_verbs_cq_leave(struct verbs_cq *cq, uint32_t entries);
void gw_verbs_cqs_end(struct verbs_poller *poller);
/* The channel becomes readable with the next completion of any. */
void gw_verbs_cqs_arm(struct verbs_poller *poller);

/* --- domain.c --- */

/* A protection domain, seen through the thread domain of a poller. */
struct verbs_domain {
	struct verbs_domain *next;
	struct ibv_pd *base, *pd;
	uint32_t references; /* queue pairs */
};
/* The domain for queue pairs of this poller that use memory of `base`: base itself where the device has no thread
 * domains. What `domain` is told goes back to gw_verbs_domain_put. */
struct ibv_pd *gw_verbs_domain_get(struct verbs_poller *poller, struct ibv_pd *base, struct verbs_domain **out);
void gw_verbs_domain_put(struct verbs_poller *poller, struct verbs_domain *domain); /* NULL is allowed */
void gw_verbs_domains_end(struct verbs_poller *poller);

/* --- cq_poller.c --- */
struct verbs_poller {
	struct verbs_loop *loop;
	struct verbs_device *device;
	struct verbs_poller *next; /* of the device */
	uint32_t index;            /* in the loop */
	int vector;                /* of its completion queues */
	struct ibv_comp_channel *channel;
	struct verbs_cq *cqs[VERBS_CQS_MAX]; /* the newest last */
	uint32_t cq_count;
	bool heard; /* the channel has events that were not taken yet */
	uint32_t qp_count;
	struct ibv_td *td;
	bool td_asked;
	struct verbs_domain *domains;
	struct verbs_share shares[VERBS_PORTS_MAX];
	/* The thread's own; others look at it, and the thread changes it, with the lock held. */
	pthread_mutex_t qps_lock;
	struct verbs_qp **qps;
	uint32_t qp_capacity;
	uint16_t generation;
};
gw_status gw_verbs_poller_get(struct verbs_loop *loop, struct rdma_cm_id *id, struct verbs_poller **out);
void gw_verbs_poller_destroy(struct verbs_poller *poller); /* when it has no queue pairs */
/* A number for a queue pair, and a completion queue that has room for all that its entries may bring. */
gw_status gw_verbs_poller_enter(struct verbs_poller *poller, struct verbs_qp *qp, uint32_t entries);
void gw_verbs_poller_leave(struct verbs_poller *poller, struct verbs_qp *qp, uint32_t entries);
/* Handles what has completed; true if anything had. */
bool gw_verbs_poller_poll(struct verbs_poller *poller);

/* --- qp.c --- */
enum verbs_work { VERBS_READ, VERBS_PROBE, VERBS_SEND };

struct verbs_wr {
	uint16_t work;  /* enum verbs_work */
	uint16_t apart; /* of the bytes, those that do not land in the bounce buffer, if others do */
	uint32_t bytes;
	struct verbs_frame *frame; /* READ */
	uint8_t *bounce_to;        /* READ through the bounce buffer: the destination */
	uint32_t bounce_at;        /* and where in the bounce buffer it lands */
	uint32_t bounce_held;      /* bytes of the bounce buffer that it holds, padding included */
};

struct verbs_qp {
	struct rdma_cm_id *id;
	struct verbs_poller *poller;
	struct verbs_cq *cq;
	struct verbs_domain *domain;
	struct verbs_share *share;
	_Atomic uint32_t qp_num;         /* 0: not made yet */
	_Atomic int trouble;             /* 1 + the enum ibv_event_type that told of its end; 0: none */
	struct verbs_deferred *deferred; /* the owner's */
	/* A read has landed. */
	void (*read_done)(struct verbs_qp *qp, struct verbs_wr *wr);
	/* A message has come (only after gw_verbs_qp_receive). */
	void (*received)(struct verbs_qp *qp, uint32_t slot, uint32_t bytes);
	/* A message has gone out. */
	void (*sent)(struct verbs_qp *qp);
	void *owner;
	uint32_t number; /* of the owner */
	uint64_t name;   /* in work request ids: slot and generation */
	uint32_t slot, entries;
	bool connected;
	enum ibv_wc_status failure; /* IBV_WC_SUCCESS: none */
	/* In flight: [tail, head). */
	uint32_t head, tail, unsignalled, receives;
	uint64_t bytes_open;
	uint32_t sges_max, depth; /* the queue pair's */
	/* The window. */
	uint32_t window;
	bool growing;
	uint32_t epoch_done;
	uint64_t epoch_begun_ns;
	double epoch_rate;
	struct verbs_pages bounce;
	uint32_t bounce_begin, bounce_end;
	uint32_t mask; /* of entries of the ring */
	struct verbs_wr ring[];
};

#define VERBS_RECEIVE_FLAG 0x80000000u

/* A queue pair for an id that is bound to the poller's device; the id is the queue pair's from now on, unless it fails.
 * work: requests in flight at most, a power of two up to VERBS_RING; sges: of one of them; receives: for messages. The
 * caller fills in owner and callbacks. */
struct verbs_needs {
	uint32_t work, sges, receives;
};
gw_status gw_verbs_qp_create(struct verbs_poller *poller, struct rdma_cm_id *id, struct ibv_pd *pd,
			     const struct verbs_needs *needs, struct verbs_qp **out);
/* Nothing is written by it after the return; its work is lost. NULL is allowed. */
void gw_verbs_qp_destroy(struct verbs_qp *qp);
/* An asynchronous event told of its end. */
void gw_verbs_qp_failed(struct verbs_qp *qp, int trouble);
/* To the error state: what is in flight is flushed. */
void gw_verbs_qp_break(struct verbs_qp *qp);
/* Polls until what was in flight has been flushed, for a bounded time. */
void gw_verbs_qp_drain(struct verbs_qp *qp);

static inline uint32_t verbs_qp_open(const struct verbs_qp *qp)
{
	return qp->head - qp->tail;
}

#define VERBS_AT_MASK 0x7fffffffu /* an entry of the ring, in a work request id; the bit above marks receives */

/* Its share of what may come in by its port, as of now. */
static inline const struct verbs_share *verbs_qp_share(const struct verbs_qp *qp)
{
	struct verbs_share *share = qp->share;
	uint32_t readers = atomic_load_explicit(&share->port->readers, memory_order_relaxed);
	if (readers != share->readers)
		gw_verbs_share_work_out(share, readers);
	return share;
}

/* How many reads may be posted now. */
static inline uint32_t verbs_qp_room(const struct verbs_qp *qp)
{
	uint32_t open = verbs_qp_open(qp);
	return qp->bytes_open >= verbs_qp_share(qp)->bytes || open >= qp->window ? 0 : qp->window - open;
}

/* Bytes of reads that are in flight on it: more, and fewer. */
static inline void verbs_qp_acquire(struct verbs_qp *qp, uint32_t bytes)
{
	if (!qp->bytes_open && ++qp->share->reading > qp->share->counted)
		gw_verbs_share_raise(qp->share);
	qp->bytes_open += bytes;
}
static inline void verbs_qp_release(struct verbs_qp *qp, uint64_t bytes)
{
	qp->bytes_open -= bytes;
	qp->share->reading -= bytes && !qp->bytes_open;
}

/* The id of the work request whose entry was pushed last. */
static inline uint64_t verbs_wr_id(const struct verbs_qp *qp)
{
	return qp->name << 32 | ((qp->head - 1) & VERBS_AT_MASK);
}
/* The next entry of the ring, which head++ takes. */
static inline struct verbs_wr *verbs_qp_next(struct verbs_qp *qp)
{
	return &qp->ring[qp->head & qp->mask];
}
/* Takes the next entry of the ring. */
static inline struct verbs_wr *verbs_qp_push(struct verbs_qp *qp)
{
	struct verbs_wr *wr = verbs_qp_next(qp);
	*wr = (struct verbs_wr){0};
	qp->head++;
	return wr;
}
/* A completion of this queue pair. */
void gw_verbs_qp_completed(struct verbs_qp *qp, const struct ibv_wc *wc);
/* Posts n work requests, the last n pushed to the ring; a failure is the queue pair's. */
void gw_verbs_qp_post(struct verbs_qp *qp, struct ibv_send_wr *list, uint32_t n);
gw_status gw_verbs_qp_receive(struct verbs_qp *qp, uint32_t slot, void *memory, uint32_t bytes, uint32_t lkey);
/* Posts a probe: a read of nothing, which the peer's device answers though its process may be stopped. */
void gw_verbs_qp_probe(struct verbs_qp *qp);

/* --- stream.c --- */

/* What a message begins with. */
struct verbs_message {
	uint8_t type;   /* enum verbs_message_type */
	uint8_t status; /* ERROR: a gw_status */
	uint16_t op;
	uint32_t bytes; /* behind this header */
	uint64_t tag;
	struct gw_once once;
	uint32_t total;   /* bytes of the whole request or reply, of which this is a piece */
	uint32_t credits; /* that the sender grants */
};
static_assert(sizeof(struct verbs_message) == 48, "no padding");
#define VERBS_PIECE_BYTES (VERBS_CHUNK_BYTES - (uint32_t)sizeof(struct verbs_message))

enum verbs_message_type { VERBS_REQUEST = 1, VERBS_REPLY, VERBS_ERROR, VERBS_CREDIT };

struct verbs_stream {
	struct verbs_qp *qp;
	struct verbs_pages pages; /* first the receives, then the sends */
	uint32_t credits;         /* messages that the peer has room for */
	uint32_t grant;           /* credits that the peer does not know of yet */
	uint32_t send_begin, send_end;
	/* Received, not taken. */
	uint8_t inbox[VERBS_INBOX]; /* receives */
	uint32_t inbox_begin, inbox_end;
	gw_status failure; /* a message was malformed, or could not be received again */
};
gw_status gw_verbs_stream_begin(struct verbs_stream *stream, struct verbs_qp *qp, struct ibv_pd *pd);
void gw_verbs_stream_end(struct verbs_stream *stream); /* after the queue pair */
/* The oldest message; false: none, or the stream has failed. It stays until gw_verbs_stream_next. */
bool gw_verbs_stream_peek(struct verbs_stream *stream, struct verbs_message *message, const uint8_t **body);
gw_status gw_verbs_stream_next(struct verbs_stream *stream);
/* Sends one message, header->bytes of body behind it; GW_AGAIN: no credit or no place now. */
gw_status gw_verbs_stream_send(struct verbs_stream *stream, const struct verbs_message *header, const void *body);
/* Tells the peer of room when it must know. */
void gw_verbs_stream_grant(struct verbs_stream *stream);
/* What the queue pair's callbacks pass on. A malformed message shows in `failure`. */
void gw_verbs_stream_received(struct verbs_stream *stream, uint32_t slot, uint32_t bytes);
void gw_verbs_stream_sent(struct verbs_stream *stream);

/* --- The poll group's part. --- */
struct verbs_loop {
	struct gw_poll_group *group;
	struct gw_completions completions;
	struct rdma_event_channel *events;
	int epoll_fd, wake_fd;
	void *control; /* a TCP part of our own: hellos */
	int control_fd;
	uint32_t controls_busy; /* endpoints that wait for something over TCP */
	struct verbs_poller *pollers[VERBS_POLLERS_MAX];
	uint32_t poller_count;
	struct verbs_endpoint *endpoints;
	struct verbs_cm_listener *cm_listeners;
	struct verbs_deferred *deferred;
	struct verbs_client *calls; /* clients whose handlers have more to do: each has its turn */
	uint64_t next_timer_ns, next_look_ns;
	uint64_t open; /* connects, reads and requests of the endpoints */
	_Atomic bool owned;
	_Atomic bool troubled; /* queue pairs, or completion queues, were told of */
	_Atomic uint32_t close_asked, close_done;
};

static inline void verbs_timer(struct verbs_loop *loop, uint64_t at_ns)
{
	if (at_ns < loop->next_timer_ns)
		loop->next_timer_ns = at_ns;
}
void gw_verbs_defer(struct verbs_loop *loop, struct verbs_deferred *deferred);
void gw_verbs_undefer(struct verbs_loop *loop, struct verbs_deferred *deferred);
gw_status gw_verbs_watch(struct verbs_loop *loop, int fd);
void gw_verbs_unwatch(struct verbs_loop *loop, int fd);
/* The TCP part, made on first use. */
gw_status gw_verbs_control(struct verbs_loop *loop);
/* The loop is one thread's at a time: held while polled, and by a caller that acts on it otherwise. */
void gw_verbs_possess(struct verbs_loop *loop);
void gw_verbs_release(struct verbs_loop *loop);
/* Ends the clients of closing listeners: by the thread that polls the loop, or here when nobody does. */
void gw_verbs_loop_close(struct verbs_loop *loop);

/* --- endpoint*.c --- */
gw_status gw_verbs_connect(void *state, const struct gw_connect_options *options, void *cookie,
			   struct gw_endpoint **out);
void gw_verbs_close(struct gw_endpoint *base);
size_t gw_verbs_readv(struct gw_endpoint *base, struct gw_read_set *set, const struct gw_region *region,
		      struct gw_buffer *buffer, const struct gw_span *spans, size_t n, bool last);
size_t gw_verbs_gather(struct gw_endpoint *base, struct gw_read_set *set, const struct gw_region *region,
		       struct gw_buffer *buffer, const struct gw_gather *gather, size_t n, bool last);
gw_status gw_verbs_request(struct gw_endpoint *base, uint16_t op, const struct gw_once *once, const void *bytes,
			   uint32_t n, uint64_t deadline_ns, void *cookie);
void gw_verbs_cancel(struct gw_endpoint *base, struct gw_read_set *set);
void gw_verbs_request_cancel(struct gw_endpoint *base, const void *cookie);
gw_status gw_verbs_region_open(struct gw_endpoint *base, uint32_t id, uint32_t generation, void *cookie);
/* A completion of the loop's TCP part. */
void gw_verbs_control_completed(struct verbs_loop *loop, const struct gw_completion *completion);
void gw_verbs_endpoints_tick(struct verbs_loop *loop, uint64_t now_ns);
void gw_verbs_endpoints_end(struct verbs_loop *loop);

/* --- listener.c, accepted_client.c --- */
gw_status gw_verbs_listen(struct gw_poll_group *const *groups, uint32_t group_count, const struct gw_address *address,
			  struct gw_service *service, struct gw_listener **out);
void gw_verbs_listener_stop(struct gw_listener *base, bool close);
void gw_verbs_listener_drain(struct gw_listener *base);
/* One run of the deferred call that has waited longest; there must be one, or nothing happens. */
void gw_verbs_clients_call(struct verbs_loop *loop);
void gw_verbs_listener_free(struct gw_listener *base);
void gw_verbs_cm_listeners_tick(struct verbs_loop *loop, uint64_t now_ns);
/* Ends the clients of listeners that are closing; all = true: every one. */
void gw_verbs_cm_listeners_end(struct verbs_loop *loop, bool all);

#endif
