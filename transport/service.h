/* What a server offers to its clients: identity, regions, operations, key and limits. Set up by one thread, then
 * read-only while listeners use it; counters are atomic. */
#ifndef GW_TRANSPORT_SERVICE_H
#define GW_TRANSPORT_SERVICE_H

#include <stdbool.h>

#include "core/errors/status.h"
#include "core/numbers/row.h"

#define GW_REGIONS_MAX                                                                                                 \
	256 /* that a hello tells of: one for each array of a part, in a frame that a stranger waits for */
#define GW_OPS_MAX 64

enum gw_region_kind {
	GW_REGION_IMMUTABLE, /* never changes while its generation lives */
	GW_REGION_VERSIONED, /* rows that change while they are read */
};

/* The rows of a versioned region, from its first byte to its last (core/numbers/row.h). */
struct gw_region_rows {
	struct gw_row_format format;
	uint64_t seed; /* of their hashes: no other region's while the server lives */
};

/* A region as server and client know it: told in the hello, or to who asks. */
struct gw_region {
	uint64_t bytes;
	uint32_t id;
	uint32_t generation; /* changes when the server loads again; a read of an old one fails with GW_STALE, of
				 one that was withdrawn with GW_NOT_FOUND */
	enum gw_region_kind kind;
	struct gw_region_rows rows; /* versioned */
};

struct gw_service_limits {            /* exceeding one refuses or closes that client, and no other; 0: the default */
	uint32_t connections;         /* of clients that have said hello and proved the key: 1024 */
	uint32_t unproven;            /* sockets that have not; beyond it the oldest of them is closed: 256 */
	uint32_t requests_per_client; /* open at once: 64 */
	uint64_t bytes_per_client;    /* memory held for one client: 64 MiB */
	uint64_t reply_bytes;         /* memory held for the long replies of all clients: 512 MiB */
	uint32_t idle_ms;             /* a client that stays silent inside a frame or the hello: 10,000 */
};

struct gw_service_identity {
	uint64_t graph_id;
	uint64_t incarnation; /* this server process: random */
	uint32_t part, parts;
};

/* One two-sided call as its handler sees it. */
struct gw_call {
	uint16_t op;
	const uint8_t *bytes; /* valid during the call */
	uint32_t byte_count;
	const uint8_t *client_uuid; /* 16 bytes */
	const void *listener;       /* TCP: what accepted the client, and the client's connection, numbered from 1; */
	uint64_t connection;        /* else NULL and 0 */
};

/* A reply under construction. */
struct gw_reply;
/* What a handler keeps from one run of a call to the next: zeroed at first, the same memory later. `end`, unless NULL,
 * is called with it when the call is over, answered or not. NULL: no memory. */
void *gw_reply_work(struct gw_reply *reply, size_t bytes, void (*end)(void *work));
/* How far a numbered call has been applied: 0 in its first run, or, where an earlier task of the same call was left
 * with its client's connection, what that one's handler put there. The handler's to set, so that what must not be
 * applied twice is not. Which steps a number means may depend on nothing but the call's bytes. */
uint64_t *gw_reply_progress(struct gw_reply *reply);
/* The handler that returns GW_AGAIN waits for another thread: it is run again a little later, not at once. */
void gw_reply_wait(struct gw_reply *reply);
/* Before a long reply is begun: takes its bytes out of what the service has for all replies. GW_AGAIN: others hold
 * them; the handler returns that, and is run again when some are free. GW_LIMIT: more than one client may have. */
gw_status gw_reply_reserve(struct gw_reply *reply, uint64_t bytes);
/* Room for `bytes` more bytes at the end; NULL when memory or the client's limit is exhausted (error text set). The
 * pointer is valid until the next call. */
uint8_t *gw_reply_extend(struct gw_reply *reply, uint32_t bytes);
/* Takes back bytes from the end. */
void gw_reply_shrink(struct gw_reply *reply, uint32_t bytes);
uint8_t *gw_reply_data(struct gw_reply *reply, uint32_t *bytes);

/* Answers a call: fills the reply and returns GW_OK, or fails: status and error text go to the client. Runs in the poll
 * group's thread, which serves others as well: it must neither wait nor work for long. `thread` numbers the poll group.
 *
 * A handler that has more to do returns GW_AGAIN: the reply is deferred. When the thread has looked at its other
 * clients, the handler is run again with the same call, reply and gw_reply_work, until it returns something else. It is
 * run no more when the client has left; so whatever must not be applied twice is applied by the last run, or counted in
 * gw_reply_progress. Between two runs the call's bytes stay as they are and may move. */
typedef gw_status (*gw_handler)(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread);

struct gw_service;

gw_status gw_service_create(const struct gw_service_identity *identity, const struct gw_service_limits *limits,
			    struct gw_service **out);
void gw_service_destroy(struct gw_service *service); /* after its listeners */

/* Clients must prove that they know the key (mutual HMAC-SHA256 challenge-response); copied. Without a key: everybody.
 */
gw_status gw_service_key_set(struct gw_service *service, const uint8_t *key, uint32_t key_bytes);

/* Publishes memory. slice_bytes: power of two, or 0 for one slice. rows: of memory that is written while it is read;
 * NULL: it never changes. The memory stays the caller's and must not move. The region's id is its number, from 0; its
 * generation derives from the incarnation. GW_INVALID: no power of two; not whole rows, or not aligned as they are. */
gw_status gw_service_expose(struct gw_service *service, const uint8_t *base, uint64_t bytes, uint64_t slice_bytes,
			    const struct gw_region_rows *rows, uint32_t *region_id);

/* Names the memfd that backs memory, from the memfd's first byte on: regions that lie in it can be mapped by clients of
 * this host (shm), whose listener seals it against new writers, shrinking and growing. The descriptor stays the
 * caller's, open until the service is destroyed. GW_LIMIT: more than GW_MEMORIES_MAX. */
#define GW_MEMORIES_MAX 16 /* descriptors of one message, in a hello; late regions bring their own */
gw_status gw_service_memory(struct gw_service *service, const uint8_t *base, uint64_t bytes, int fd);

/* --- Regions that come and go while clients are connected. ---
 *
 * A client learns id and generation by a call, and opens the region at its endpoint (gw_endpoint_region_open). No
 * region had this pair before while the server lives. Any thread. */
#define GW_DYNAMIC_REGIONS_MAX 4096u /* at a time: a place of a table at the server, and of one at each endpoint */

struct gw_dynamic_region {
	const uint8_t *base;
	uint64_t bytes, slice_bytes;       /* as of gw_service_expose */
	const struct gw_region_rows *rows; /* copied; not NULL: what never changes is there from the start */
	int fd; /* the memfd whose first byte is base's: clients of this host may map it, and it is sealed then; else -1
		 */
	/* Nobody reads it any more, on any way: its memory may be used again. Called once, after it was withdrawn or at
	 * the service's end, by whichever thread was the last: it must neither wait nor work for long. May be NULL. */
	void (*freed)(void *context);
	void *context;
};

/* GW_LIMIT: too many. GW_INVALID as of gw_service_expose. */
gw_status gw_service_publish(struct gw_service *service, const struct gw_dynamic_region *region, struct gw_region *out);
/* From here on nobody opens it, and reads of it fail with GW_NOT_FOUND, those of its connections that are about other
 * regions do not. Clients that map or address its memory are asked to let go; a client that is stopped keeps it until
 * its connection is gone. Twice is allowed. */
void gw_service_withdraw(struct gw_service *service, const struct gw_region *region);

/* Sets the handler of an operation (op < GW_OPS_MAX). */
gw_status gw_service_handle(struct gw_service *service, uint16_t op, gw_handler handler, void *context);

/* Running totals, for stat and metrics. */
struct gw_service_counters {
	uint64_t connections_open, connections_total, refused;
	uint64_t unproven; /* sockets that are open and have not proved anything */
	uint64_t dropped;  /* of those, closed in favour of newer ones; and clients that did not read their replies */
	uint64_t reads, read_ranges, read_bytes, requests, errors;
	uint64_t calls_open;  /* requests that are being answered, or whose long reply is on its way */
	uint64_t deferred;    /* runs of handlers that had more to do */
	uint64_t reply_bytes; /* held now for long replies */
};
void gw_service_counters(struct gw_service *service, struct gw_service_counters *out);

/* The user's runtime folder, made if need be: $XDG_RUNTIME_DIR/graphwire, or /tmp/graphwire-UID. GW_REFUSED unless it
 * is this user's and closed to all others. */
#define GW_RUNTIME_PATH_MAX 512
gw_status gw_runtime_folder(char path[GW_RUNTIME_PATH_MAX]);
/* The same for who only looks into it: GW_NOT_FOUND where it was not made yet. */
gw_status gw_runtime_folder_find(char path[GW_RUNTIME_PATH_MAX]);
/* The folder itself; to be closed by the caller. */
gw_status gw_runtime_folder_open(bool make, int *folder);
/* A file of the folder that is older than an hour is made young, so that nobody removes it by its age. */
void gw_runtime_file_touch(int folder, const char *file);
/* One server of this user at a time changes whose a name is; until the descriptor is closed. GW_BUSY after 5 s. */
gw_status gw_runtime_folder_lock(int folder);

/* The key that a server on loopback makes for itself and clients of the same user find: 32 random bytes, 0600, in
 * $XDG_RUNTIME_DIR/graphwire (or /tmp/graphwire-UID, 0700, owner checked) as key-PORT. */
#define GW_KEY_BYTES 32
gw_status gw_key_make(uint16_t port, uint8_t key[GW_KEY_BYTES]);
/* The key that a service has, where a server made it: written again if somebody has removed or replaced it. */
struct gw_service;
gw_status gw_key_keep(uint16_t port, const struct gw_service *service);
gw_status gw_key_find(uint16_t port, uint8_t key[GW_KEY_BYTES]); /* GW_NOT_FOUND: none there */
/* Where it was looked for, as text: "" if the folder has no path. Returns the buffer. */
char *gw_key_place(uint16_t port, char path[GW_RUNTIME_PATH_MAX]);
void gw_key_remove(uint16_t port);
/* A key file given by the user: its whole content, 16 to 1024 bytes; refused when others own it or may
 * read it. */
gw_status gw_key_read(const char *path, uint8_t key[1024], uint32_t *key_bytes);

#endif
