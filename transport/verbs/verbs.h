/* The RDMA backend's objects, as the backend's files see them.
 *
 *      verbs.c                the poll group's part: poll, sleep, wake, timers
 *      loop.c                 the loop's services to all that it drives: deferred work, descriptors, possession
 *      device.c               devices of this process: opened once, shared by all groups, released after removal
 *      library.c              the host's libibverbs and librdmacm, opened at run time
 *      async.c                asynchronous events of devices: failed queue pairs, completion queues, ports, devices
 *      mr_cache.c             a cache of memory regions (MRs) of the buffers that reads write to
 *      cq_poller.c            a poll group's part of one device: polls completions and finds their queue pairs
 *      cq_create.c            the completion queues of a poller: created, resized, armed
 *      domain.c               a thread's own doorbells: thread domain, parent domains
 *      port_window.c          the window of bytes in flight toward a port of a device, shared by the process
 *      qp.c                   a queue pair: created, silenced
 *      qp_work.c              the work in flight on a queue pair: posted, completed, failed; the window
 *      stream.c               messages over a queue pair: chunks, credits
 *      handshake.c            the messages of client and server before a queue pair exists (pure)
 *      report.c               what libibverbs reports about this host's devices, for `graphwire doctor`
 *      endpoint.c             client: connect, close, deadlines, liveness, loss; its connection over TCP
 *      endpoint_connect.c     client: hello over TCP, token, queue pairs
 *      endpoint_read.c        client: reads become work requests
 *      endpoint_rows.c        client: versioned rows: where they land, and whether they are torn
 *      endpoint_dynamic.c     client: dynamic regions, opened and released
 *      endpoint_request.c     client: requests and their replies
 *      listener.c             server: listens, hands out tokens, takes connection requests
 *      region_mrs.c           server: its rails (devices), and the MRs of its regions on them
 *      dynamic_mrs.c          server: the MRs of dynamic regions
 *      accepted_client.c      server: one client: accepts its queue pairs, answers its requests
 *
 * Everything that belongs to a poll group is used by one thread. Devices and cached MRs belong to the process, behind
 * one lock that no read takes.
 */
#ifndef GW_TRANSPORT_VERBS_H
#define GW_TRANSPORT_VERBS_H

#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>

#include "core/memory/queue.h"
#include "transport/completions.h"
#include "transport/service/service_backend.h"
#include "transport/transport.h"

extern const struct gw_transport gw_transport_verbs;

#define VERBS_QPS_MAX        8u /* queue pairs of one endpoint, at most */
#define VERBS_QPS_DEFAULT    2u
#define VERBS_RING           256u /* work requests in flight on one queue pair; a power of two */
#define VERBS_WINDOW_MIN     16u  /* reads in flight: the window adapts between MIN and MAX */
#define VERBS_WINDOW_MAX     192u /* leaves room for messages */
#define VERBS_WINDOW_FIRST   64u
#define VERBS_POST_MAX       32u /* work requests posted at once */
#define VERBS_SIGNAL_EVERY   16u
#define VERBS_SGES_MAX       8u
#define VERBS_READ_BYTES     (128u << 10) /* of one read work request, at most */
#define VERBS_WINDOW_BYTES   (1u << 20)   /* approximate bytes in flight on one queue pair */
#define VERBS_BOUNCE_BYTES   (256u << 10) /* size of one queue pair's bounce buffer */
#define VERBS_CHUNK_BYTES    (16u << 10)  /* size of one message at most, header included */
#define VERBS_RECEIVES       8u           /* messages that a side can receive before it looks at the first */
#define VERBS_RECEIVES_SPARE 2u           /* extra receives for messages that only grant credits: see stream.c */
#define VERBS_SENDS          4u           /* messages being sent; a power of two */
#define VERBS_INBOX          8u           /* received messages not handled yet: a power of two, as many as receives */
#define VERBS_POLLERS_MAX    4u           /* devices of one poll group */
#define VERBS_RAILS_MAX      8u           /* devices of one listener */
#define VERBS_CQS_MAX        12u   /* completion queues of one poller; each is twice as large as the one before */
#define VERBS_PORTS_MAX      4u    /* ports of one device; further ports share the last entry */
#define VERBS_CHAINS         1024u /* a power of two: chains of a table */

struct verbs_device;
struct verbs_loop;
struct verbs_poller;
struct verbs_qp;
struct verbs_frame;

/* --- port_window.c: reads that arrive through one port of a device --- */

/* One port of a device, for all groups of the process. */
struct verbs_port {
	uint64_t window;          /* approximate bytes of reads in flight */
	_Atomic uint32_t readers; /* approximate number of queue pairs that read */
	_Atomic uint64_t down_ns; /* when the port went down; 0: up, as far as is known */
};
/* One poll group's queue pairs on one port. */
struct verbs_share {
	struct verbs_port *port;
	uint32_t reading; /* queue pairs with reads in flight */
	uint32_t counted; /* queue pairs counted in port->readers; may exceed `reading` until the next settle */
	uint32_t readers; /* the port's readers when the next two fields were computed */
	uint32_t bytes;   /* bytes that one queue pair may have in flight */
	uint32_t read_bytes;
};
/* Sets the windows of the device's ports by their speeds. */
void gw_verbs_ports_begin(struct verbs_device *device);
uint64_t gw_verbs_port_window(uint64_t bytes_per_second);
void gw_verbs_share_work_out(struct verbs_share *share, uint32_t readers);
/* Counts one more reading queue pair. */
void gw_verbs_share_raise(struct verbs_share *share);
/* Stops counting queue pairs that no longer read. The loop calls it before a sleep, and at each tick. */
void gw_verbs_share_settle(struct verbs_share *share);

/* --- device.c --- */

/* A device that a poll group of this process uses. librdmacm owns the context, which is valid while `hold` is an id on
 * it. */
struct verbs_device {
	struct verbs_device *next;
	struct ibv_context *context;
	struct ibv_pd *pd; /* for destinations and messages: peers can access nothing in it */
	struct ibv_device_attr attr;
	struct rdma_cm_id *hold; /* keeps the context open, and receives the event of the device's removal */
	struct verbs_cached_mr *mrs;
	uint32_t references;
	_Atomic bool dead;            /* removed or failed for good: every group releases the device */
	struct verbs_poller *pollers; /* of all groups: the receivers of asynchronous events */
	_Atomic uint32_t vector;      /* the next completion vector for a poller's queues */
	struct verbs_port ports[VERBS_PORTS_MAX];
};

/* A poll group starts and stops using devices. GW_UNSUPPORTED: the error text names what this host lacks. */
gw_status gw_verbs_begin(void);
void gw_verbs_end(void);
/* References the device of a bound id. GW_UNSUPPORTED: the device cannot read (iWARP needs writable keys). */
gw_status gw_verbs_device_get(struct rdma_cm_id *id, struct verbs_device **out);
void gw_verbs_device_put(struct verbs_device *device);
/* A descriptor that is readable when gw_verbs_devices_look has events to handle. */
int gw_verbs_devices_fd(void);
gw_status gw_verbs_nonblocking(int fd);
/* Handles the events of all devices; marks removed devices dead. */
void gw_verbs_devices_look(void);
/* Fails with a text that names what this host lacks (GW_UNSUPPORTED), or with the error itself. */
gw_status gw_verbs_missing(const char *what, int error);

/* --- async.c --- */
/* The caller holds gw_verbs_lock. Marks the queue pairs, the port or the device that the event concerns. The caller
 * acknowledges the event afterwards, so that the object that the event names still exists. */
void gw_verbs_async(struct verbs_device *device, const struct ibv_async_event *event);
/* The caller holds gw_verbs_lock. Marks the device dead and wakes the loops that use it. */
void gw_verbs_device_dead(struct verbs_device *device);
/* The poller starts and stops receiving its device's events. */
void gw_verbs_async_join(struct verbs_poller *poller);
void gw_verbs_async_leave(struct verbs_poller *poller);

/* --- mr_cache.c --- */
struct verbs_cached_mr {
	struct verbs_cached_mr *next;
	struct verbs_device *_Atomic device; /* NULL once the device is gone */
	uint8_t *base;
	uint64_t bytes;
	struct ibv_mr *mr; /* NULL once the device is gone */
	uint32_t references;
	uint32_t owners; /* references by buffers of exactly this memory; at 0 no further buffer joins */
};
/* A buffer's MR on each poller's device. The buffer's word for this backend (gw_buffer.words) points to it after the
 * first read. */
struct verbs_buffer_mrs {
	struct verbs_cached_mr *on[VERBS_POLLERS_MAX];
};
/* A cached MR that covers the memory, or a new entry. Reads into memory whose entry has no mr go through the bounce
 * buffer. NULL: out of memory. */
struct verbs_cached_mr *gw_verbs_mr_cache_get(struct verbs_device *device, uint8_t *base, uint64_t bytes);
/* Call it once for each get, with the same base and bytes. */
void gw_verbs_mr_cache_put(struct verbs_cached_mr *cached, const uint8_t *base, uint64_t bytes);
/* Deregisters all cached MRs of a device. Their entries stay, without device and mr. The last user of a dead device
 * calls it and holds gw_verbs_lock. */
void gw_verbs_mr_cache_drop(struct verbs_device *device);
extern pthread_mutex_t gw_verbs_lock;
/* Page-aligned memory in its own mapping, registered for local writes only. */
struct verbs_pages {
	uint8_t *base;
	size_t bytes;
	struct ibv_mr *mr;
};
gw_status gw_verbs_pages_create(struct ibv_pd *pd, size_t bytes, struct verbs_pages *out);
void gw_verbs_pages_destroy(struct verbs_pages *pages);
/* Fails with the status of a failed registration. The text names the limit. */
gw_status gw_verbs_mr_fail(uint64_t bytes, int error);
/* Fails because the device did not create an object (`what`: a queue pair, a completion queue). If a control group's
 * rdma.max is the limit: GW_LIMIT, and the text names that file. */
gw_status gw_verbs_object_fail(const struct ibv_context *context, int error, const char *what);

/* --- Work that a poll's completions caused. It runs after the poll has handled all of them. --- */
struct verbs_deferred {
	struct verbs_deferred *next;
	bool queued;
	void (*run)(struct verbs_deferred *deferred);
};

/* --- Handler of connection manager events: the context of each id points to one. --- */
struct verbs_cm_handler {
	/* The event is a copy that was acknowledged already, so the handler may destroy its id. The copy and its data
	 * are valid during the call. */
	void (*event)(struct verbs_cm_handler *self, const struct rdma_cm_event *event);
};

/* --- cq_create.c --- */

/* A completion queue. It has an entry for every completion that its queue pairs can have waiting. */
struct verbs_cq {
	struct verbs_poller *poller;
	struct ibv_cq *ibv;
	uint32_t used; /* entries that its queue pairs may fill */
	bool armed;
	bool mute;           /* it once failed to deliver flushes in time, so drains no longer wait for it */
	uint32_t events;     /* read from the channel, not acknowledged */
	_Atomic bool failed; /* overrun: it delivers no more completions */
};

/* Reserves `entries` in a completion queue that has room for them. */
gw_status gw_verbs_cq_enter(struct verbs_poller *poller, uint32_t entries, struct verbs_cq **out);
void gw_verbs_cq_leave(struct verbs_cq *cq, uint32_t entries);
void gw_verbs_cqs_end(struct verbs_poller *poller);
/* The channel becomes readable with the next completion in any of the queues. */
void gw_verbs_cqs_arm(struct verbs_poller *poller);

/* --- domain.c --- */

/* A parent domain: a protection domain together with a poller's thread domain. */
struct verbs_domain {
	struct verbs_domain *next;
	struct ibv_pd *base, *pd;
	uint32_t references; /* queue pairs */
};
/* Returns the domain for this poller's queue pairs that use memory of `base`. Without a thread domain or parent domain
 * it returns `base` itself. Pass *out to gw_verbs_domain_put. */
struct ibv_pd *gw_verbs_domain_get(struct verbs_poller *poller, struct ibv_pd *base, struct verbs_domain **out);
void gw_verbs_domain_put(struct verbs_poller *poller, struct verbs_domain *domain); /* NULL is allowed */
void gw_verbs_domains_end(struct verbs_poller *poller);

/* --- cq_poller.c --- */
struct verbs_poller {
	struct verbs_loop *loop;
	struct verbs_device *device;
	struct verbs_poller *next; /* in the device's list */
	uint32_t index;            /* index in loop->pollers */
	int vector;                /* completion vector of its completion queues */
	struct ibv_comp_channel *channel;
	struct verbs_cq *cqs[VERBS_CQS_MAX]; /* the newest is last */
	uint32_t cq_count;
	bool heard; /* the channel has events that were not read yet */
	uint32_t qp_count;
	struct ibv_td *td;
	bool td_asked;
	struct verbs_domain *domains;
	struct verbs_share shares[VERBS_PORTS_MAX];
	/* The table of queue pairs. The loop's thread reads it freely. That thread's changes, and reads by other
	 * threads, need the lock. */
	pthread_mutex_t qps_lock;
	struct verbs_qp **qps;
	struct verbs_qp *by_number[VERBS_CHAINS]; /* chains of the same queue pairs, by the low bits of qp_num */
	struct verbs_qp *troubled;                /* marked by events; gw_verbs_async_take fails them */
	uint32_t qp_capacity;
	uint32_t *free_slots; /* a stack of qp_capacity places; the free slots lie below free_count */
	uint32_t free_count;
	uint16_t generation;
};
gw_status gw_verbs_poller_get(struct verbs_loop *loop, struct rdma_cm_id *id, struct verbs_poller **out);
void gw_verbs_poller_destroy(struct verbs_poller *poller); /* only without queue pairs */
/* Gives a queue pair a slot, and a completion queue with room for `entries` completions. */
gw_status gw_verbs_poller_enter(struct verbs_poller *poller, struct verbs_qp *qp, uint32_t entries);
/* The device has created the queue pair: events find it by its number. */
void gw_verbs_poller_number(struct verbs_poller *poller, struct verbs_qp *qp, uint32_t qp_num);
void gw_verbs_poller_leave(struct verbs_poller *poller, struct verbs_qp *qp, uint32_t entries);
/* Handles completions; true if there were any. */
bool gw_verbs_poller_poll(struct verbs_poller *poller);

/* --- qp.c --- */
enum verbs_work { VERBS_READ, VERBS_PROBE, VERBS_SEND };

struct verbs_wr {
	uint16_t work;  /* enum verbs_work */
	uint16_t apart; /* bytes that bypass the bounce buffer while the rest lands in it */
	uint32_t bytes;
	struct verbs_frame *frame; /* READ */
	uint8_t *bounce_to;        /* READ through the bounce buffer: the destination */
	uint32_t bounce_at;        /* and the offset in the bounce buffer */
	uint32_t bounce_held;      /* bytes of the bounce buffer that it occupies, padding included */
};

struct verbs_qp {
	struct rdma_cm_id *id;
	struct verbs_poller *poller;
	struct verbs_cq *cq;
	struct verbs_domain *domain;
	struct verbs_share *share;
	uint32_t qp_num;     /* 0: not created yet. This field and the next two: under the poller's qps_lock */
	_Atomic int trouble; /* 1 + the enum ibv_event_type that reported its failure; 0: none */
	struct verbs_qp *next_by_number, *next_troubled;
	struct verbs_deferred *deferred; /* deferred work of the owner */
	/* A read has landed. */
	void (*read_done)(struct verbs_qp *qp, struct verbs_wr *wr);
	/* A message has arrived (only after gw_verbs_qp_receive). */
	void (*received)(struct verbs_qp *qp, uint32_t slot, uint32_t bytes);
	/* A message has been sent. */
	void (*sent)(struct verbs_qp *qp);
	void *owner;
	uint32_t number; /* the queue pair's number within its owner */
	uint64_t name;   /* used in work request ids: generation << 16 | slot */
	uint32_t slot, entries;
	bool connected;
	enum ibv_wc_status failure; /* IBV_WC_SUCCESS: none */
	/* In flight: [tail, head). */
	uint32_t head, tail, unsignalled, receives;
	uint64_t bytes_open;
	uint32_t sges_max, depth; /* limits of this queue pair */
	/* The window. */
	uint32_t window;
	bool growing;
	uint32_t epoch_done;
	uint64_t epoch_begun_ns;
	double epoch_rate;
	struct verbs_pages bounce;
	uint32_t bounce_begin, bounce_end;
	uint32_t mask; /* of indices into the ring */
	struct verbs_wr ring[];
};

#define VERBS_RECEIVE_FLAG 0x80000000u

/* Creates a queue pair for an id that is bound to the poller's device. On success the queue pair owns the id. work:
 * most requests in flight, a power of two up to VERBS_RING. sges: scatter elements of one request. receives: receives
 * for messages. The caller fills in owner and callbacks. */
struct verbs_needs {
	uint32_t work, sges, receives;
};
gw_status gw_verbs_qp_create(struct verbs_poller *poller, struct rdma_cm_id *id, struct ibv_pd *pd,
			     const struct verbs_needs *needs, struct verbs_qp **out);
/* After the return the queue pair writes nothing more. Its work in flight is lost. NULL is allowed. */
void gw_verbs_qp_destroy(struct verbs_qp *qp);
/* Moves the queue pair to the error state: the device flushes the work in flight. */
void gw_verbs_qp_break(struct verbs_qp *qp);

static inline uint32_t verbs_qp_open(const struct verbs_qp *qp)
{
	return qp->head - qp->tail;
}

#define VERBS_AT_MASK 0x7fffffffu /* bits of a work request id that name a ring entry; the bit above marks receives */

/* The queue pair's current share of its port's window. */
static inline const struct verbs_share *verbs_qp_share(const struct verbs_qp *qp)
{
	struct verbs_share *share = qp->share;
	uint32_t readers = atomic_load_explicit(&share->port->readers, memory_order_relaxed);
	if (readers != share->readers)
		gw_verbs_share_work_out(share, readers);
	return share;
}

/* Returns how many reads may be posted now. */
static inline uint32_t verbs_qp_room(const struct verbs_qp *qp)
{
	uint32_t open = verbs_qp_open(qp);
	return qp->bytes_open >= verbs_qp_share(qp)->bytes || open >= qp->window ? 0 : qp->window - open;
}

/* Add to and subtract from the bytes of reads in flight on the queue pair. */
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

/* The work request id of the entry that was pushed last. */
static inline uint64_t verbs_wr_id(const struct verbs_qp *qp)
{
	return qp->name << 32 | ((qp->head - 1) & VERBS_AT_MASK);
}
/* The next entry of the ring; head++ pushes it. */
static inline struct verbs_wr *verbs_qp_next(struct verbs_qp *qp)
{
	return &qp->ring[qp->head & qp->mask];
}
/* Pushes the next entry of the ring, cleared. */
static inline struct verbs_wr *verbs_qp_push(struct verbs_qp *qp)
{
	struct verbs_wr *wr = verbs_qp_next(qp);
	*wr = (struct verbs_wr){0};
	qp->head++;
	return wr;
}
/* --- qp_work.c --- */
/* Called by the loop's thread: fails the queue pairs that asynchronous events have marked. */
void gw_verbs_async_take(struct verbs_loop *loop);
/* The text of the queue pair's failure. */
const char *gw_verbs_qp_reason(const struct verbs_qp *qp);
/* Handles a completion of this queue pair. */
void gw_verbs_qp_completed(struct verbs_qp *qp, const struct ibv_wc *wc);
/* Posts the last n work requests pushed to the ring. If posting fails, the queue pair fails. */
void gw_verbs_qp_post(struct verbs_qp *qp, struct ibv_send_wr *list, uint32_t n);
gw_status gw_verbs_qp_receive(struct verbs_qp *qp, uint32_t slot, void *memory, uint32_t bytes, uint32_t lkey);
/* Reserves `bytes` in the bounce buffer; false: no room now. */
#define VERBS_BOUNCE_PIECE (32u << 10) /* most bytes of the bounce buffer for one work request */
bool gw_verbs_bounce_take(struct verbs_qp *qp, uint32_t bytes, struct verbs_wr *wr);
/* Posts a probe: a read of 0 bytes. The peer's device answers it even while the peer's process is stopped. */
void gw_verbs_qp_probe(struct verbs_qp *qp);

/* --- stream.c --- */

/* The header of a message. */
struct verbs_message {
	uint8_t type;   /* enum verbs_message_type */
	uint8_t status; /* ERROR: a gw_status */
	uint16_t op;
	uint32_t bytes; /* bytes after this header */
	uint64_t tag;
	struct gw_once once;
	uint32_t total;   /* bytes of the complete request or reply; this message carries a piece */
	uint32_t credits; /* credits that the sender grants */
};
static_assert(sizeof(struct verbs_message) == 48, "no padding");
#define VERBS_PIECE_BYTES (VERBS_CHUNK_BYTES - (uint32_t)sizeof(struct verbs_message))

enum verbs_message_type { VERBS_REQUEST = 1, VERBS_REPLY, VERBS_ERROR, VERBS_CREDIT };

struct verbs_stream {
	struct verbs_qp *qp;
	struct verbs_pages pages; /* the buffers of the receives, then those of the sends */
	uint32_t credits;         /* messages that the peer can still receive */
	uint32_t grant;           /* credits not granted to the peer yet */
	uint32_t send_begin, send_end;
	uint32_t unposted, unposted_bytes; /* the last of these messages, which no flush has posted yet */
	/* Messages received and not handled yet. */
	uint8_t inbox[VERBS_INBOX]; /* slots of receives */
	uint32_t inbox_begin, inbox_end;
	gw_status failure; /* a message was malformed, or its receive could not be posted again */
};
gw_status gw_verbs_stream_begin(struct verbs_stream *stream, struct verbs_qp *qp, struct ibv_pd *pd);
void gw_verbs_stream_end(struct verbs_stream *stream); /* call it after the queue pair has ended */
/* The oldest message; false: no message, or the stream has failed. message and body are valid until
 * gw_verbs_stream_next. */
bool gw_verbs_stream_peek(struct verbs_stream *stream, struct verbs_message *message, const uint8_t **body);
gw_status gw_verbs_stream_next(struct verbs_stream *stream);
/* Sends one message: the header, then header->bytes of body. A small message leaves with the next flush. GW_AGAIN: no
 * credit or no send buffer now. */
gw_status gw_verbs_stream_send(struct verbs_stream *stream, const struct verbs_message *header, const void *body);
/* Posts the messages that have not left yet, all together. */
void gw_verbs_stream_flush(struct verbs_stream *stream);
/* Grants the peer credits when half of them or more are owed. A flush must follow. */
void gw_verbs_stream_grant(struct verbs_stream *stream);
/* Called by the queue pair's callbacks. A malformed message sets `failure`. */
void gw_verbs_stream_received(struct verbs_stream *stream, uint32_t slot, uint32_t bytes);
void gw_verbs_stream_sent(struct verbs_stream *stream);

/* --- loop.c: the poll group's part --- */
struct verbs_loop {
	struct gw_poll_group *group;
	struct gw_completions completions;
	struct rdma_event_channel *events;
	int epoll_fd, wake_fd;
	void *control; /* the loop's own TCP transport, for hellos */
	int control_fd;
	uint32_t controls_busy; /* endpoints that await an answer over TCP */
	struct verbs_poller *pollers[VERBS_POLLERS_MAX];
	uint32_t poller_count;
	struct verbs_endpoint *endpoints;
	struct verbs_cm_listener *cm_listeners;
	struct verbs_deferred *deferred;
	struct gw_queue calls;  /* clients whose handlers have more to do; the loop runs them in turn */
	struct gw_queue paused; /* clients whose handlers wait for another thread: until a pause is over, or a wake */
	uint64_t next_timer_ns, next_look_ns;
	uint64_t open; /* connects, reads and requests of the endpoints */
	_Atomic bool owned;
	_Atomic bool troubled; /* an asynchronous event concerns this loop */
	_Atomic uint32_t close_asked, close_done;
};

static inline void verbs_timer(struct verbs_loop *loop, uint64_t at_ns)
{
	if (at_ns < loop->next_timer_ns)
		loop->next_timer_ns = at_ns;
}
void gw_verbs_defer(struct verbs_loop *loop, struct verbs_deferred *deferred);
void gw_verbs_undefer(struct verbs_loop *loop, struct verbs_deferred *deferred);
void gw_verbs_run_deferred(struct verbs_loop *loop);
gw_status gw_verbs_watch(struct verbs_loop *loop, int fd);
void gw_verbs_unwatch(struct verbs_loop *loop, int fd);
/* Opens the loop's TCP transport on first use. */
gw_status gw_verbs_control(struct verbs_loop *loop);
/* One thread at a time possesses the loop: the thread that polls it, or another caller that changes it. */
void gw_verbs_possess(struct verbs_loop *loop);
void gw_verbs_release(struct verbs_loop *loop);

/* --- endpoint*.c --- */
gw_status gw_verbs_connect(void *state, const struct gw_connect_options *options, void *cookie,
			   struct gw_endpoint **out);
void gw_verbs_close(struct gw_endpoint *base);
size_t gw_verbs_read(struct gw_endpoint *base, struct gw_read_set *set, const struct gw_region *region,
		     struct gw_buffer *buffer, const struct gw_reads *reads, bool last);
gw_status gw_verbs_request(struct gw_endpoint *base, uint16_t op, const struct gw_once *once, const void *bytes,
			   uint32_t n, uint64_t deadline_ns, void *cookie);
void gw_verbs_cancel(struct gw_endpoint *base, struct gw_read_set *set);
void gw_verbs_request_cancel(struct gw_endpoint *base, const void *cookie);
gw_status gw_verbs_region_open(struct gw_endpoint *base, uint32_t id, uint32_t generation, void *cookie);
/* Handles a completion of the loop's TCP transport. */
void gw_verbs_control_completed(struct verbs_loop *loop, const struct gw_completion *completion);
void gw_verbs_endpoints_tick(struct verbs_loop *loop, uint64_t now_ns);
void gw_verbs_endpoints_end(struct verbs_loop *loop);

/* --- listener.c, accepted_client.c --- */
gw_status gw_verbs_listen(struct gw_poll_group *const *groups, uint32_t group_count, const struct gw_address *address,
			  struct gw_service *service, int socket, struct gw_listener **out);
void gw_verbs_listener_stop(struct gw_listener *base, bool close);
gw_status gw_verbs_listener_yield(struct gw_listener *base, int *socket);
void gw_verbs_listener_drain(struct gw_listener *base);
/* Runs the handler of the client that has waited longest, once. Does nothing if no client waits. */
void gw_verbs_clients_call(struct verbs_loop *loop);
/* The poll group was woken: paused calls run again. */
void gw_verbs_clients_woken(struct verbs_loop *loop);
void gw_verbs_listener_free(struct gw_listener *base);
void gw_verbs_cm_listeners_tick(struct verbs_loop *loop, uint64_t now_ns);
/* Ends the clients of listeners that are closing; all = true: of every listener. */
void gw_verbs_cm_listeners_end(struct verbs_loop *loop, bool all);
/* Called by the thread that possesses the loop: closes the CM listeners that another thread has asked to close. */
void gw_verbs_take_orders(struct verbs_loop *loop);

#endif
