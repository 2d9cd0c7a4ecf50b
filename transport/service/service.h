/* A service: what a server offers to its clients, namely identity, regions, operations, key and limits. One thread sets
 * it up before listeners use it; then it is read-only, except for atomic counters and dynamic regions. */
#ifndef GW_TRANSPORT_SERVICE_SERVICE_H
#define GW_TRANSPORT_SERVICE_SERVICE_H

#include <stdbool.h>

#include "core/errors/status.h"
#include "core/numbers/latency.h"
#include "core/numbers/row.h"
#include "transport/service/handler.h"

/* Regions in a hello: one for each array of a part. The bound keeps the hello's frame small, since a new client waits
 * for it. */
#define GW_REGIONS_MAX 256
#define GW_OPS_MAX     64

enum gw_region_kind {
	GW_REGION_IMMUTABLE, /* never changes while its generation lives */
	GW_REGION_VERSIONED, /* rows may change while they are read */
};

/* The rows of a versioned region, from its first byte to its last (core/numbers/row.h). */
struct gw_region_rows {
	struct gw_row_format format;
	uint64_t seed; /* seed of the rows' hashes; no other region of the server ever has the same seed */
};

/* A region as server and client describe it. The client gets this in the hello, or as the answer to a call. */
struct gw_region {
	uint64_t bytes;
	uint32_t id;
	/* Changes when the server loads again. A read of an old generation fails with GW_STALE; a read of a withdrawn
	 * region fails with GW_NOT_FOUND. */
	uint32_t generation;
	enum gw_region_kind kind;
	struct gw_region_rows rows; /* for GW_REGION_VERSIONED */
};

/* A client that exceeds a limit is refused or closed; other clients are not affected. 0: the default. */
struct gw_service_limits {
	uint32_t connections;         /* of clients that have completed the hello and proved the key; default 1024 */
	uint32_t unproven;            /* pending clients: no hello yet; beyond this the oldest is closed; default 256 */
	uint32_t requests_per_client; /* open at once; default 64 */
	uint64_t bytes_per_client;    /* memory for one client; default 64 MiB */
	uint64_t reply_bytes;         /* memory for the long replies of all clients; default 512 MiB */
	uint32_t idle_ms;             /* silence that is allowed inside a frame or the hello; default 10,000 */
};

struct gw_service_identity {
	uint64_t graph_id;
	uint64_t incarnation; /* a random number that identifies this server process */
	uint32_t part, parts;
};

struct gw_service;

gw_status gw_service_create(const struct gw_service_identity *identity, const struct gw_service_limits *limits,
			    struct gw_service **out);
void gw_service_destroy(struct gw_service *service); /* call it after the listeners were freed */

/* Sets the key, which is copied. Clients must then prove that they know the key (mutual HMAC-SHA256
 * challenge-response). Without a key every client may connect. */
gw_status gw_service_key_set(struct gw_service *service, const uint8_t *key, uint32_t key_bytes);

/* Publishes memory, which stays the caller's and must not move. slice_bytes: a power of two, or 0 for one slice. rows:
 * for memory that changes while clients read it; NULL: the memory never changes. The region's id is its number, from 0;
 * its generation derives from the incarnation. GW_INVALID: slice_bytes is not a power of two, the memory is not a
 * multiple of complete rows, or its alignment is wrong. */
gw_status gw_service_expose(struct gw_service *service, const uint8_t *base, uint64_t bytes, uint64_t slice_bytes,
			    const struct gw_region_rows *rows, uint32_t *region_id);

/* Names the memfd that backs the memory. The memfd's first byte is at `base`. Clients of this host can map (shm) the
 * regions in this memory. The shm listener seals the memfd against new writers, shrinking and growing. The descriptor
 * stays the caller's, and stays open until the service is destroyed. GW_LIMIT: more than GW_MEMORIES_MAX. */
#define GW_MEMORIES_MAX 16 /* descriptors of one message, in a hello; dynamic regions send their descriptors later */
gw_status gw_service_memory(struct gw_service *service, const uint8_t *base, uint64_t bytes, int fd);

/* --- Dynamic regions: published and withdrawn while clients are connected. ---
 *
 * A client learns a region's id and generation by a call, then opens the region at its endpoint
 * (gw_endpoint_region_open). A pair of id and generation is never used twice while the server lives. Any thread may
 * call these functions. */
#define GW_DYNAMIC_REGIONS_MAX 4096u /* at a time: the places in the server's table, and in each endpoint's */

struct gw_dynamic_region {
	const uint8_t *base;
	uint64_t bytes, slice_bytes; /* as for gw_service_expose */
	const struct gw_region_rows
		*rows; /* copied; not NULL, since memory that never changes is published at the start */
	/* The memfd that backs the memory, with its first byte at `base`. Clients of this host may map the memfd, and
	 * the server seals it. -1: no memfd. */
	int fd;
	/* Called once, when no reader is left on any transport: the memory may be used again. This happens after the
	 * region was withdrawn, or when the service ends. The last thread that used the region calls it, so it must
	 * neither wait nor work for long. May be NULL. */
	void (*freed)(void *context);
	void *context;
};

/* GW_LIMIT: too many dynamic regions. GW_INVALID as for gw_service_expose. */
gw_status gw_service_publish(struct gw_service *service, const struct gw_dynamic_region *region, struct gw_region *out);
/* Withdraws a region. No client can open it any more, and reads of it fail with GW_NOT_FOUND; reads of other regions
 * are not affected. The server asks clients that map or address its memory to release it. A client that is stopped
 * keeps the memory until its connection ends. A second call does nothing. */
void gw_service_withdraw(struct gw_service *service, const struct gw_region *region);

/* Publishes a region with the id and generation that it had in a process whose place this one takes
 * (gw_service_resume), before listeners use the service. GW_EXISTS: another region has the id. */
gw_status gw_service_publish_as(struct gw_service *service, const struct gw_dynamic_region *region, uint32_t id,
				uint32_t generation, struct gw_region *out);

/* Sets the handler of an operation (op < GW_OPS_MAX). */
gw_status gw_service_handle(struct gw_service *service, uint16_t op, gw_handler handler, void *context);

/* Running totals, for stat and metrics. */
#define GW_SERVICE_SCHEMES  4                /* transports, by their numbers in transport/scheme.h */
#define GW_SERVICE_OPS      (GW_OPS_MAX + 1) /* operations by their numbers; the last: the transports' own calls */
#define GW_SERVICE_OP_READS 0                /* no operation has this number: reads */

struct gw_service_calls {
	uint64_t requests, errors;
	uint64_t received_bytes, sent_bytes; /* of the calls and of their replies; without the transport's headers */
};

struct gw_service_counters {
	uint64_t connections_open, connections_total, refused;
	uint64_t unproven; /* pending clients: open sockets without a completed hello */
	uint64_t dropped;  /* pending clients closed for newer ones, and clients that did not read replies */
	uint64_t reads, read_ranges, read_bytes, requests, errors;
	uint64_t replays;     /* repeated calls that were answered from the replay cache */
	uint64_t calls_open;  /* requests that are in progress, or whose long reply is being sent */
	uint64_t deferred;    /* runs of handlers that returned GW_AGAIN */
	uint64_t reply_bytes; /* memory that long replies use now */
};
void gw_service_counters(struct gw_service *service, struct gw_service_counters *out);

/* The same by operation and transport, and how long calls took. Reads by clients that map or address the memory are not
 * seen by the server. */
struct gw_service_totals {
	struct gw_service_calls calls[GW_SERVICE_OPS][GW_SERVICE_SCHEMES];
	struct gw_latency requests[GW_SERVICE_OPS]; /* from a call's arrival to its reply */
	struct gw_latency slices[GW_SERVICE_OPS];   /* each run of a handler */
};
void gw_service_totals(struct gw_service *service, struct gw_service_totals *out);

/* The connections of clients, those with a call in progress first, up to `max` of them. Returns their number. */
#define GW_SERVICE_PEER_NAME 56
struct gw_service_peer_state {
	char name[GW_SERVICE_PEER_NAME]; /* "10.0.0.2:51234", "process 1234" */
	uint8_t client_uuid[16];         /* the same for all connections of a client, except the last byte */
	uint32_t scheme;
	uint64_t reads, read_bytes, calls;
	uint32_t calls_open, op; /* op: of the call in progress */
	uint64_t call_ns;        /* how long that call has taken */
};
uint32_t gw_service_peers(struct gw_service *service, struct gw_service_peer_state *out, uint32_t max);

/* --- Hand-over to a process that goes on as the same incarnation. --- */

/* What a service without connections has to hand over. */
struct gw_service_past {
	uint32_t generation; /* of the last dynamic region */
	uint8_t *calls;      /* the numbered calls of clients: transport/service/replay_cache.h */
	uint64_t calls_bytes;
};
/* The caller frees out->calls by gw_free. GW_BUSY: a connection or a call is open. */
gw_status gw_service_past(struct gw_service *service, struct gw_service_past *out);
/* Makes a new service of the same incarnation go on after this past, before listeners use it. GW_FORMAT. */
gw_status gw_service_resume(struct gw_service *service, const struct gw_service_past *past);

/* The user's runtime folder: $XDG_RUNTIME_DIR/graphwire, or /tmp/graphwire-UID. Created if it does not exist.
 * GW_REFUSED if another user owns it or may enter it. */
#define GW_RUNTIME_PATH_MAX 512
gw_status gw_runtime_folder(char path[GW_RUNTIME_PATH_MAX]);
/* The same without creating the folder: GW_NOT_FOUND if it does not exist. */
gw_status gw_runtime_folder_find(char path[GW_RUNTIME_PATH_MAX]);
/* Opens the folder; the caller closes the descriptor. */
gw_status gw_runtime_folder_open(bool make, int *folder);
/* Renews the timestamp of a file in the folder if it is older than an hour, so that programs that delete old files keep
 * it. */
void gw_runtime_file_touch(int folder, const char *file);
/* Locks the folder until the descriptor is closed. A server takes a name under this lock, so only one of this user's
 * servers does so at a time. GW_BUSY after 5 s. */
gw_status gw_runtime_folder_lock(int folder);
/* Removes the files of the folder that `is_stale` names, as far as possible. */
void gw_runtime_folder_sweep(int folder, bool (*is_stale)(int folder, const char *file));

/* Keys that loopback servers create and clients of the same user find: 32 random bytes in key-PORT, mode 0600, in
 * $XDG_RUNTIME_DIR/graphwire (or /tmp/graphwire-UID, mode 0700, owner checked). */
#define GW_KEY_BYTES 32
gw_status gw_key_make(uint16_t port, uint8_t key[GW_KEY_BYTES]);
/* Writes the key of a service to its file again, if the file was removed or replaced. Only for a key of gw_key_make. */
struct gw_service;
gw_status gw_key_keep(uint16_t port, const struct gw_service *service);
gw_status gw_key_find(uint16_t port, uint8_t key[GW_KEY_BYTES]); /* GW_NOT_FOUND: no such file */
/* The path where gw_key_find looks, as text; "" if the folder has no path. Returns the buffer. */
char *gw_key_place(uint16_t port, char path[GW_RUNTIME_PATH_MAX]);
void gw_key_remove(uint16_t port);
/* Reads a key file that the user named: all of it, 16 to 1024 bytes. Refuses a file that belongs to neither this user
 * nor root, and a file that others may access. Exception: a group may read root's file. */
gw_status gw_key_read(const char *path, uint8_t key[1024], uint32_t *key_bytes);

#endif
