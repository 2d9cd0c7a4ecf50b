/* A service as the backends see it: transport/service.h is what others see. */
#ifndef GW_TRANSPORT_SERVICE_INSIDE_H
#define GW_TRANSPORT_SERVICE_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "transport/replay_cache.h"
#include "transport/transport.h"

#define GW_SERVICE_KEY_MAX 1024
#define GW_OP_UPGRADE      0xff00u /* asks for what an RDMA connection needs; answered by the verbs listener */
#define GW_OP_KEYS         0xff02u /* and for what reads of a late region need */

struct gw_service_counts { /* relaxed, since nobody decides by them */
	_Atomic uint64_t connections_open, connections_total, refused, unproven, dropped;
	_Atomic uint64_t requests, errors, calls_open, deferred;
};

/* The reads of one connection: written by the thread that serves it alone, so that threads do not pass a cache line
 * around; summed by who asks. Zero until begun. transport/service_reads.c */
struct gw_service_reads {
	_Atomic uint64_t reads, ranges, bytes;
	bool begun;                                /* the thread's too */
	struct gw_service_reads *next, **previous; /* under the service's lock */
};

/* Another way to the service, for clients that have said hello over TCP. Both are called by the thread of the client's
 * connection. */
struct gw_service_upgrade {
	gw_handler ask, keys;                                              /* GW_OP_UPGRADE, GW_OP_KEYS */
	void (*left)(void *context, uint64_t connection, uint32_t thread); /* the connection has ended */
	void *context;
};

/* A place for a region that comes late: transport/service_dynamic.c. */
struct gw_dynamic_region_place {
	_Atomic uint64_t users;      /* its publication, threads that look at it, clients that hold it */
	_Atomic uint32_t generation; /* 0: nobody may enter */
	_Atomic bool withdrawn;      /* and not freed yet */
	bool published;
	void *registered;        /* the registrar's; NULL: it has nothing to take back */
	struct gw_region region; /* this and the rest: for those who use it */
	struct gw_dynamic_region what;
	struct gw_dynamic_region_place *next_free;
};

/* Who has to tell clients that a region was withdrawn. Called under a lock, by any thread. */
struct gw_dynamic_region_watcher {
	void (*withdrawn)(struct gw_dynamic_region_watcher *watcher);
	struct gw_dynamic_region_watcher *next;
};

/* Who makes the memory of late regions readable for devices: one for a service. */
struct gw_dynamic_region_registrar {
	/* By the thread that publishes, before anybody can find the region; or by the one that sets the registrar,
	 * before anybody can ask it. NULL, with text: it is not read that way. */
	void *(*add)(struct gw_dynamic_region_registrar *registrar, const struct gw_dynamic_region *region);
	/* Nobody reads it any more. What was registered is taken back, then `freed` is called: by a thread that may
	 * take its time. Any thread, under a lock: it neither waits nor fails. */
	void (*remove)(struct gw_dynamic_region_registrar *registrar, void *registered);
};

struct gw_service_dynamic {
	pthread_mutex_t registering; /* by who publishes, as long as that takes; before `lock` */
	struct gw_dynamic_region_registrar *registrar;
	pthread_mutex_t lock;
	_Atomic(struct gw_dynamic_region_place *) places; /* GW_DYNAMIC_REGIONS_MAX, once there was one */
	struct gw_dynamic_region_place *free;
	uint32_t next_generation;
	_Atomic uint64_t withdrawals; /* ever */
	struct gw_dynamic_region_watcher *watchers;
};

/* What the client of one connection maps or addresses. The connection's thread's. */
struct gw_dynamic_pin {
	struct gw_dynamic_pin *next;
	struct gw_dynamic_region_place *place;
	uint32_t id, generation;
	bool told; /* to let go */
};
struct gw_dynamic_pins {
	struct gw_dynamic_pin *first;
	uint64_t seen; /* withdrawals that were looked through */
};

struct gw_service {
	struct gw_service_identity identity;
	struct gw_service_limits limits; /* defaults filled in */
	uint8_t key[GW_SERVICE_KEY_MAX];
	uint32_t key_bytes; /* 0: everybody may connect */
	uint32_t region_count;
	struct gw_region regions[GW_REGIONS_MAX]; /* as clients are told */
	const uint8_t *bases[GW_REGIONS_MAX];
	uint64_t slice_bytes[GW_REGIONS_MAX]; /* 0: one slice. For backends that register memory. */
	struct gw_service_memory {
		const uint8_t *base;
		uint64_t bytes;
		int fd;
	} memories[GW_MEMORIES_MAX];
	uint32_t memory_count;
	struct {
		gw_handler call;
		void *context;
	} handlers[GW_OPS_MAX];
	struct gw_replay_cache *replay_cache;
	struct gw_service_dynamic dynamic;
	_Atomic(const struct gw_service_upgrade *) upgrade;
	struct gw_service_counts counts;
	struct {
		pthread_mutex_t lock;
		struct gw_service_reads *connections;
		uint64_t reads, ranges, bytes; /* of those that have ended */
	} reads;
	/* Of limits.reply_bytes: taken by replies, and how many calls wait for some. */
	_Atomic uint64_t reply_bytes;
	_Atomic uint32_t short_of_room;
};

static inline void gw_count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* From here on the connection's reads are the service's; until they have ended, which keeps their sum. Ended, or never
 * begun: nothing happens. */
void gw_service_reads_begin(struct gw_service *service, struct gw_service_reads *reads);
void gw_service_reads_end(struct gw_service *service, struct gw_service_reads *reads);
/* Adds all of them to the counters. */
void gw_service_reads_sum(struct gw_service *service, struct gw_service_counters *out);

static inline void gw_count_alone(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_relaxed);
}

/* One read of so many ranges and bytes. */
static inline void gw_count_read(struct gw_service_reads *reads, uint64_t ranges, uint64_t bytes)
{
	gw_count_alone(&reads->reads, 1);
	gw_count_alone(&reads->ranges, ranges);
	gw_count_alone(&reads->bytes, bytes);
}

/* Takes a place for a connection; GW_LIMIT when all are taken: the caller counts the refusal. */
gw_status gw_service_enter(struct gw_service *service);
void gw_service_disconnect(struct gw_service *service);
/* A TCP connection has ended: tells the upgrade, if there is one. */
void gw_service_left(struct gw_service *service, uint64_t connection, uint32_t thread);

/* Runs the handler of a call, once: its answer in the reply, or status and the text in gw_last_error(). */
gw_status gw_service_apply(struct gw_service *service, const struct gw_call *call, struct gw_reply *reply,
			   uint32_t thread);

/* GW_INVALID: memory that is no region. */
gw_status gw_service_region_check(const uint8_t *base, uint64_t bytes, uint64_t slice_bytes,
				  const struct gw_region_rows *rows);

/* --- service_dynamic.c --- */
void gw_service_dynamic_begin(struct gw_service *service);
void gw_service_dynamic_end(struct gw_service *service); /* after the listeners */
/* A thread looks at a late region: its memory stays until it leaves. NULL: it is not there (GW_NOT_FOUND). */
struct gw_dynamic_region_place *gw_dynamic_region_enter(struct gw_service *service, uint32_t id, uint32_t generation);
void gw_dynamic_region_leave(struct gw_service *service, struct gw_dynamic_region_place *place);
/* The client of a connection is given what it needs to read it by itself, until it lets go. GW_NOT_FOUND. */
gw_status gw_dynamic_pin(struct gw_dynamic_pins *holds, struct gw_service *service, uint32_t id, uint32_t generation,
			 struct gw_dynamic_region_place **out);
void gw_dynamic_region_release(struct gw_dynamic_pins *holds, struct gw_service *service, uint32_t id,
			       uint32_t generation);
void gw_dynamic_pins_end(struct gw_dynamic_pins *holds, struct gw_service *service);
/* One that the client is to be asked to let go, each once; false: none. */
bool gw_dynamic_region_withdrawn(struct gw_dynamic_pins *holds, const struct gw_service *service, uint32_t *id,
				 uint32_t *generation);
/* Regions are registered: those that are published, before this returns, and those that will be; NULL: nothing is, and
 * nothing will be taken back any more. Before clients may ask for what the registrar knows. */
void gw_dynamic_region_registrar_set(struct gw_service *service, struct gw_dynamic_region_registrar *registrar);
void gw_dynamic_region_watch(struct gw_service *service, struct gw_dynamic_region_watcher *watcher);
void gw_dynamic_region_unwatch(struct gw_service *service,
			       struct gw_dynamic_region_watcher *watcher); /* twice is allowed */

/* --- reply.c --- */

#define GW_REPLY_FREE_BYTES (64u << 10) /* a reply of no more is not counted */

/* A reply's bytes lie behind `headroom` bytes that the backend fills, in one block of memory. */
struct gw_reply {
	struct gw_service *service; /* that counts it; NULL: not counted, or no more */
	uint8_t *memory;
	uint32_t headroom, bytes, capacity; /* of the memory */
	uint32_t bytes_max;                 /* of the reply */
	uint64_t taken;                     /* of the service's bytes for replies */
	bool short_of_room;                 /* the handler waits for some of them */
	bool waits;                         /* the last run of it ended since another thread has what it needs */
	uint64_t progress;
	void *work; /* the handler's */
	void (*work_end)(void *work);
};

/* service: whose memory for replies it takes; NULL: nobody's. */
void gw_reply_begin(struct gw_reply *reply, struct gw_service *service, uint32_t headroom, uint64_t bytes_max);
/* The handler is through with it: its work ends. */
void gw_reply_settle(struct gw_reply *reply);
/* Nothing of the service is used any more; the memory stays. */
void gw_reply_leave(struct gw_reply *reply);
void gw_reply_end(struct gw_reply *reply); /* frees the memory */

#endif
