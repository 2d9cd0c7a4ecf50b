/* A service as the backends see it; transport/service/service.h is the view of all other code. */
#ifndef GW_TRANSPORT_SERVICE_SERVICE_BACKEND_H
#define GW_TRANSPORT_SERVICE_SERVICE_BACKEND_H

#include <pthread.h>
#include <stdatomic.h>

#include "transport/service/service.h"

#define GW_SERVICE_KEY_MAX 1024
#define GW_OP_UPGRADE      0xff00u /* asks for the data of an RDMA connection; the verbs listener answers */
#define GW_OP_KEYS         0xff02u /* asks for the keys to read a dynamic region over RDMA */

struct gw_replay_cache;

struct gw_service_counts { /* updated in relaxed order, since no decision depends on them */
	_Atomic uint64_t connections_open, connections_total, refused, unproven, dropped, calls_open, deferred;
};

/* What one thread has counted: no two threads write to one cache line. */
#define GW_SERVICE_THREADS 256
struct gw_service_thread {
	struct {
		_Atomic uint64_t requests, errors, received_bytes, sent_bytes;
	} calls[GW_SERVICE_OPS][GW_SERVICE_SCHEMES];
	struct gw_latency_counts requests[GW_SERVICE_OPS], slices[GW_SERVICE_OPS];
};

/* The client of one connection: its name, what it has read, and the call that it waits for. Only the thread that serves
 * the connection writes the counters, so no two threads write to one cache line. gw_service_peers_sum adds up the
 * counters of all connections. Zero before gw_service_peer_begin. transport/service/service_peers.c */
struct gw_service_peer {
	_Atomic uint64_t reads, ranges, bytes, read_errors, calls;
	_Atomic uint64_t call_since_ns; /* when the oldest call in progress began; 0: no call is in progress */
	_Atomic uint32_t calls_open, op;
	/* set before gw_service_peer_begin */
	uint32_t scheme;
	uint8_t client_uuid[16];
	char name[GW_SERVICE_PEER_NAME];
	bool begun;                               /* written by the same thread */
	struct gw_service_peer *next, **previous; /* under service->peers.lock */
};

/* Another transport to the service (RDMA), for clients that have completed the hello over TCP. The thread that serves
 * the client's TCP connection calls these functions. */
struct gw_service_upgrade {
	gw_handler ask, keys;                                              /* GW_OP_UPGRADE, GW_OP_KEYS */
	void (*left)(void *context, uint64_t connection, uint32_t thread); /* the TCP connection has ended */
	void *context;
};

/* A place in the table of dynamic regions: transport/service/service_dynamic.c. */
struct gw_dynamic_region_place {
	_Atomic uint64_t users;      /* references: the publication, threads that use it, clients that pin it */
	_Atomic uint32_t generation; /* 0: cannot be entered */
	_Atomic bool withdrawn;      /* withdrawn, and not freed yet */
	bool published;
	void *registered;        /* the registrar's handle; NULL: not registered */
	struct gw_region region; /* this field and the next one: only for threads and clients with a reference */
	struct gw_dynamic_region what;
	struct gw_dynamic_region_place *next_free;
};

/* A listener that notifies its clients of withdrawn regions. Any thread may call `withdrawn`, with a lock held. */
struct gw_dynamic_region_watcher {
	void (*withdrawn)(struct gw_dynamic_region_watcher *watcher);
	struct gw_dynamic_region_watcher *next;
};

/* Registers the memory of dynamic regions with devices. A service has at most one registrar. */
struct gw_dynamic_region_registrar {
	/* Called by the publishing thread before the region can be found, or by gw_dynamic_region_registrar_set before
	 * clients can ask for keys. Returns a handle; NULL, with an error text: devices cannot read the region. */
	void *(*add)(struct gw_dynamic_region_registrar *registrar, const struct gw_dynamic_region *region);
	/* No reader is left. Deregisters the memory, then calls `freed` in a thread that may take its time. Any thread
	 * may call this, under a lock: it neither waits nor fails. */
	void (*remove)(struct gw_dynamic_region_registrar *registrar, void *registered);
};

struct gw_service_dynamic {
	pthread_mutex_t registering; /* locked during a publication; locked before `lock` */
	struct gw_dynamic_region_registrar *registrar;
	pthread_mutex_t lock;
	/* NULL until the first publication, then GW_DYNAMIC_REGIONS_MAX places. */
	_Atomic(struct gw_dynamic_region_place *) places;
	struct gw_dynamic_region_place *free;
	uint32_t next_generation;
	_Atomic uint64_t withdrawals; /* count since creation */
	struct gw_dynamic_region_watcher *watchers;
};

/* The regions that the client of one connection maps or addresses. For the connection's thread alone. */
struct gw_dynamic_pin {
	struct gw_dynamic_pin *next;
	struct gw_dynamic_region_place *place;
	uint32_t id, generation;
	bool notified; /* the client was asked to release it */
};
struct gw_dynamic_pins {
	struct gw_dynamic_pin *first;
	uint64_t seen; /* the value of `withdrawals` up to which the pins were checked */
};

struct gw_service {
	struct gw_service_identity identity;
	struct gw_service_limits limits; /* defaults filled in */
	uint8_t key[GW_SERVICE_KEY_MAX];
	uint32_t key_bytes; /* 0: every client may connect */
	uint32_t region_count;
	struct gw_region regions[GW_REGIONS_MAX]; /* as the hello describes them */
	const uint8_t *bases[GW_REGIONS_MAX];
	uint64_t slice_bytes[GW_REGIONS_MAX]; /* 0: one slice; for backends that register memory */
	struct gw_service_memory {
		const uint8_t *base;
		uint64_t bytes;
		int fd;
	} memories[GW_MEMORIES_MAX];
	uint32_t memory_count;
	bool prefetch_all; /* all lines of a row, not the first only: transport/prefetch.h */
	struct {
		gw_handler call;
		void *context;
	} handlers[GW_OPS_MAX];
	struct gw_replay_cache *replay_cache;
	struct gw_service_dynamic dynamic;
	_Atomic(const struct gw_service_upgrade *) upgrade;
	struct gw_service_counts counts;
	/* By thread, made when the thread counts its first call. Threads without memory for theirs share `others`. */
	_Atomic(struct gw_service_thread *) threads[GW_SERVICE_THREADS];
	struct gw_service_thread others;
	struct {
		pthread_mutex_t lock;
		struct gw_service_peer *first;
		struct {
			uint64_t reads, ranges, bytes, errors;
		} ended[GW_SERVICE_SCHEMES]; /* sums of ended connections */
	} peers;
	/* How much of limits.reply_bytes is in use, and how many calls wait for reply memory. */
	_Atomic uint64_t reply_bytes;
	_Atomic uint32_t short_of_room;
};

static inline void gw_count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* The counts of a thread (gw_call.thread). */
struct gw_service_thread *gw_service_thread(struct gw_service *service, uint32_t thread);

/* gw_service_peer_begin adds the connection's counters to the service. gw_service_peer_end removes them and keeps
 * their sum; it does nothing if they were not added. */
void gw_service_peer_begin(struct gw_service *service, struct gw_service_peer *peer);
void gw_service_peer_end(struct gw_service *service, struct gw_service_peer *peer);
/* A call of the client begins and ends. */
void gw_service_peer_call(struct gw_service_peer *peer, uint32_t op, uint64_t now_ns);
void gw_service_peer_called(struct gw_service_peer *peer);
static inline void gw_count_alone(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_relaxed);
}

/* Counts one read of `ranges` ranges and `bytes` bytes. */
static inline void gw_count_read(struct gw_service_peer *peer, uint64_t ranges, uint64_t bytes)
{
	gw_count_alone(&peer->reads, 1);
	gw_count_alone(&peer->ranges, ranges);
	gw_count_alone(&peer->bytes, bytes);
}

/* Takes a place for a connection. GW_LIMIT: no place is free; the caller counts the refusal. */
gw_status gw_service_enter(struct gw_service *service);
void gw_service_disconnect(struct gw_service *service);
/* A TCP connection has ended: notifies the upgrade, if one is set. */
void gw_service_left(struct gw_service *service, uint64_t connection, uint32_t thread);

/* Runs the handler of a call once. The answer is in the reply, or the error is the status and gw_last_error(). */
gw_status gw_service_apply(struct gw_service *service, const struct gw_call *call, struct gw_reply *reply);

/* --- service_dynamic.c --- */
/* References a dynamic region: its memory stays until gw_dynamic_region_leave. NULL: GW_NOT_FOUND. */
struct gw_dynamic_region_place *gw_dynamic_region_enter(struct gw_service *service, uint32_t id, uint32_t generation);
void gw_dynamic_region_leave(struct gw_service *service, struct gw_dynamic_region_place *place);
/* Pins a region for the client of a connection, which reads it without the server's code until it releases the region.
 * GW_NOT_FOUND: it does not exist. */
gw_status gw_dynamic_pin(struct gw_dynamic_pins *pins, struct gw_service *service, uint32_t id, uint32_t generation,
			 struct gw_dynamic_region_place **out);
void gw_dynamic_region_release(struct gw_dynamic_pins *pins, struct gw_service *service, uint32_t id,
			       uint32_t generation);
void gw_dynamic_pins_end(struct gw_dynamic_pins *pins, struct gw_service *service);
/* The next withdrawn region that the client must be asked to release; each is returned once. false: no region. */
bool gw_dynamic_region_withdrawn(struct gw_dynamic_pins *pins, const struct gw_service *service, uint32_t *id,
				 uint32_t *generation);
/* Sets the registrar. Registers the published regions before this returns, and later ones when they are published.
 * NULL: from now on nothing is registered or deregistered. Set the registrar before clients may ask for keys. */
void gw_dynamic_region_registrar_set(struct gw_service *service, struct gw_dynamic_region_registrar *registrar);
void gw_dynamic_region_watch(struct gw_service *service, struct gw_dynamic_region_watcher *watcher);
void gw_dynamic_region_unwatch(struct gw_service *service,
			       struct gw_dynamic_region_watcher *watcher); /* a second call does nothing */

/* --- reply.c --- */

#define GW_REPLY_FREE_BYTES (64u << 10) /* replies up to this size are not counted */

/* A reply: one block of memory, with `headroom` bytes for the backend's header in front of the reply's bytes. */
struct gw_reply {
	struct gw_service *service; /* counts the reply's memory; NULL: the memory is not counted, or no longer */
	uint8_t *memory;
	uint32_t headroom, bytes, capacity; /* sizes in the block; bytes: of the reply so far */
	uint32_t bytes_max;                 /* limit of the reply's length */
	uint64_t taken;                     /* counted in the service's reply_bytes */
	bool short_of_room;                 /* the handler waits for reply_bytes to become free */
	bool waits;                         /* the handler's last run ended because it must wait for another thread */
	uint64_t progress;
	void *work; /* gw_reply_work's memory, for the handler */
	void (*work_end)(void *work);
};

/* service: counts the reply's memory; NULL: the memory is not counted. */
void gw_reply_begin(struct gw_reply *reply, struct gw_service *service, uint32_t headroom, uint64_t bytes_max);
/* The handler is done with the reply: frees the handler's work memory. */
void gw_reply_settle(struct gw_reply *reply);
/* Ends the use of the service; the reply's memory stays. */
void gw_reply_leave(struct gw_reply *reply);
void gw_reply_end(struct gw_reply *reply); /* frees the memory */

#endif
