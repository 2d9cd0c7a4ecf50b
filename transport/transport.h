/* How bytes of a server's memory reach a client.
 *
 * A service publishes regions: memory that peers may read and nobody may write. A client connects an endpoint, reads
 * parts of a region into buffers that it registered, and learns of completion by polling. What lies between them (a
 * queue pair, a socket, a mapping, nothing) is a backend's: transport/verbs, tcp, shm, memory.
 *
 *      client                                        server
 *      gw_endpoint_connect ── hello, key ──────────▶ listener: refuses before it allocates
 *      gw_endpoint_gather ─── offsets ─────────────▶ region: no server code (verbs, shm), the poll group's loop (tcp)
 *      gw_endpoint_request ── op, bytes ───────────▶ handler ──▶ reply, at once or deferred
 *      gw_poll_group_poll ◀── completions
 *
 * Threads: a poll group, and every endpoint and buffer made from it, belongs to one thread at a time; handing it to
 * another thread needs a happens-before edge and no call in progress. Only gw_poll_group_wake may be called by others.
 * Nothing locks on the data path.
 * Limits: every queue is bounded. A full one accepts nothing, a normal event: poll, then go on.
 *
 * Rows that change: a versioned region is read row by row, while the server writes to it. A range of such a read is one
 * row: it begins where a row begins and has its payload's length (or none); anything else fails the set with
 * GW_INVALID. Payloads land as those of any region, trailers nowhere. No torn row is ever taken for a whole one: a row
 * that was being written whenever it was looked at, a bounded number of times, is listed in the completion, which then
 * is GW_AGAIN; all others are there, and the caller asks the server for those by a request, which waits for the writer.
 * A read that is posted after a write was acknowledged sees it.
 *
 * A destination belongs to the transport from acceptance to completion. Deadline, cancel and loss of the peer complete
 * a read set only when nothing can write to it any more; its destination is then undefined, and stays as it is.
 */
#ifndef GW_TRANSPORT_H
#define GW_TRANSPORT_H

#include <assert.h>
#include <stdbool.h>

#include "core/errors/status.h"
#include "transport/address.h"
#include "transport/scheme.h"
#include "transport/service.h"

#define GW_REQUEST_BYTES_MAX (9u << 20)  /* bytes of one request: a tensor's longest row, its gradient, and more */
#define GW_REPLY_BYTES_MAX   (64u << 20) /* bytes of one reply; a backend may carry it in chunks */
#define GW_STAGED_BYTES      8192u       /* what a socket brings for fewer is copied to where it goes, by poll */
#define GW_BUFFERS_MAX       (1u << 20)  /* registered buffers of one poll group */
#define GW_WINDOW            64u         /* numbered calls of one client that are open at once, at most */

struct gw_poll_group; /* one thread's connections, completions and clock */
struct gw_endpoint;   /* one connection to one server, seen from the client */
struct gw_listener;   /* one address that accepts clients */
struct gw_buffer;     /* client memory that a backend may land bytes in */

/* A set of reads from one endpoint that completes once: all of it there, or an error. The caller's memory, zeroed but
 * for cookie and deadline, untouched by the caller from the first acceptance to the completion. */
struct gw_read_set {
	void *cookie;
	uint64_t deadline_ns; /* the time after which it completes with GW_DEADLINE; GW_NO_DEADLINE or 0: none */
	/* The backend's: */
	struct gw_read_set *next;
	uint64_t frames_open;
	uint64_t private_words[4];
	gw_status status;
	bool last_accepted, done;
};

/* One range to read. */
struct gw_span {
	uint64_t remote; /* byte offset in the region */
	uint64_t local;  /* byte offset in the destination buffer */
	uint32_t bytes;  /* 0 is allowed and completes */
};

/* Many ranges of one length: range i of a call lands in row rows[i] of the destination, or in row i if rows is NULL. A
 * caller whose call was accepted in part goes on with remote, rows and, where rows is NULL, local moved on. */
struct gw_gather {
	const uint64_t *remote; /* byte offsets in the region; sorted ones are read faster by some backends */
	const uint32_t *rows;   /* destination rows, or NULL: destination rows are contiguous from `local` on */
	uint64_t local;         /* byte offset in the buffer of destination row 0 */
	uint32_t row_bytes;
	uint32_t stride; /* bytes from one destination row to the next, >= row_bytes */
};

/* A row that did not stop changing: where it lies, and where it was to land (which is undefined now). */
struct gw_torn_row {
	uint64_t remote; /* byte offset in the region */
	uint64_t local;  /* byte offset in the destination buffer */
};

/* What poll hands back: one for each connect, read set and request; never twice. */
struct gw_completion {
	void *cookie;
	gw_status status;     /* GW_OK: all of it is there. For an error, text says more. */
	const char *text;     /* "" or a line; valid until the next poll of this group */
	const uint8_t *reply; /* requests only; valid until the next poll of this group */
	uint32_t reply_bytes;
	/* The memory that the reply lies in: who wants it for longer sets this to NULL, and frees it by gw_free. NULL:
	 * it is not to be had. */
	uint8_t **reply_memory;
	/* Read sets of versioned regions only, with GW_AGAIN: the rows that are not there, each once for each range
	 * that asked for it; valid until the next poll of this group. */
	uint32_t torn_count;
	const struct gw_torn_row *torn;
};

enum gw_endpoint_state { GW_ENDPOINT_CONNECTING, GW_ENDPOINT_OPEN, GW_ENDPOINT_LOST };

/* Whom to connect to and how. */
struct gw_connect_options {
	struct gw_address address;
	const uint8_t *key; /* shared secret, or NULL: none is offered */
	uint32_t key_bytes;
	bool must_prove;         /* a server that proves no key is GW_REFUSED */
	uint64_t graph_id;       /* 0: any; else GW_WRONG_GRAPH unless the server serves it */
	uint8_t client_uuid[16]; /* the same over reconnects of one client: repeats of a request are recognised by it */
	uint64_t budget_ns;      /* for so long after its last connection the server knows them; 0: 300 s */
	uint64_t deadline_ns;    /* of the connect */
	uint64_t liveness_ns;    /* with reads or requests open and nothing heard for so long, the peer is probed, then
				    lost; 0: 30 s */
};

/* A call that must not be applied twice. It is told by its number, over reconnects too: the server applies it once, and
 * answers a repeat as it answered the first. */
struct gw_once {
	uint64_t sequence; /* the client's running number, from 1, of its calls to this server */
	uint64_t oldest;   /* of its calls, the first whose answer it has not got: at most GW_WINDOW - 1 before */
	uint64_t window;   /* gw_peer.window of the connection that the call was first posted on */
};

/* Who answered: valid while the endpoint is open. */
struct gw_peer {
	uint64_t graph_id, incarnation;
	uint64_t window;      /* where the server remembers this client's numbered calls; 0: it has no place for them */
	uint32_t part, parts; /* as the service said */
	const struct gw_region *regions;
	uint32_t region_count;
};

struct gw_poll_group_options {
	/* TCP's driver: NULL or "auto": io_uring where it works, else epoll; "io_uring" and "epoll" force one. */
	const char *tcp_driver;
	uint64_t spin_ns;     /* a waiting poll looks this long before it sleeps; 0: it sleeps at once */
	uint32_t queue_pairs; /* verbs: of one endpoint, 1 to 8; 0: 2 */
};

#define GW_TRANSPORTS_MAX 8 /* backends of one build; > GW_SCHEMES: there is room for another */

/* A backend. Every slot is filled; gw_transport_find asserts it. `state` is the backend's part of a poll group.
 * All but listen are called by the poll group's thread. */
struct gw_transport {
	const struct gw_scheme *scheme; /* what it is called, and what it can do */
	uint32_t number;                /* of the scheme; < GW_TRANSPORTS_MAX: which word of a buffer is its own */

	/* What a range costs besides its bytes, in bytes: a gap shorter than this is better read than skipped. */
	uint32_t range_cost_bytes;

	/* Whether reads need no code of the server's. */
	bool one_sided;

	/* Whether ranges in ascending order are read so much faster that it pays to sort them. */
	bool order_pays;

	/* The backend's part of a poll group: made on first use, ended with the group after its endpoints. */
	gw_status (*open)(struct gw_poll_group *group, void **state);
	void (*shut)(void *state);

	/* Starts a connection; *out at once, in state CONNECTING (or OPEN). A completion with `cookie` tells the
	 * outcome: GW_OK; GW_REFUSED with the server's reason (key, limit); GW_VERSION; GW_WRONG_GRAPH; GW_PROTOCOL (no
	 * Graphwire server); GW_NOT_FOUND (no such name); GW_PEER_LOST; GW_DEADLINE. Never blocks, neither on the peer
	 * nor on the resolver. The endpoint stays until closed, whatever the outcome. */
	gw_status (*connect)(void *state, const struct gw_connect_options *options, void *cookie,
			     struct gw_endpoint **out);

	/* Silences the connection and completes what is open with GW_CANCELLED (delivered by later polls), then frees.
	 * Never blocks on the peer. */
	void (*close)(struct gw_endpoint *endpoint);

	/* Makes memory a destination for every endpoint of this backend in the group. Cheap when it lies in memory that
	 * is registered already. GW_LOCKED_MEMORY names the limit. The memory stays the caller's. What the backend
	 * needs to find it again goes into buffer->words[number]. A buffer that outlives the backend's part is
	 * released with state NULL. */
	gw_status (*buffer_register)(void *state, struct gw_buffer *buffer);
	void (*buffer_release)(void *state, struct gw_buffer *buffer);

	/* Both accept a prefix of the reads and return its length (0: no room now; the poll that finds room returns
	 * early, and a set of which nothing was accepted yet stays the caller's). What `spans`, `remote` and `rows`
	 * point to stays the caller's, unchanged, until the set completes. The set completes after a call with last
	 * = true has been accepted whole (n = 0 with last = true is accepted). A range past the region's end or the
	 * buffer's fails the set with GW_RANGE before anything of the call is sent; a stale region with GW_STALE; a
	 * lost endpoint with GW_PEER_LOST; so does a passed deadline. These calls accept everything, and poll hands out
	 * the failure once the last call has been made. */
	size_t (*readv)(struct gw_endpoint *endpoint, struct gw_read_set *set, const struct gw_region *region,
			struct gw_buffer *buffer, const struct gw_span *spans, size_t n, bool last);
	size_t (*gather)(struct gw_endpoint *endpoint, struct gw_read_set *set, const struct gw_region *region,
			 struct gw_buffer *buffer, const struct gw_gather *gather, size_t n, bool last);

	/* A two-sided call. n <= GW_REQUEST_BYTES_MAX; copied before return. once: NULL for calls that may run twice;
	 * copied. GW_AGAIN: no room now. GW_LIMIT: longer than that. GW_NO_MEMORY. Other errors arrive by completion:
	 * GW_OUTCOME_UNKNOWN for a numbered call that was posted before, when the server has forgotten the client
	 * since: it is not applied now. */
	gw_status (*request)(struct gw_endpoint *endpoint, uint16_t op, const struct gw_once *once, const void *bytes,
			     uint32_t n, uint64_t deadline_ns, void *cookie);

	/* Completes the read set with GW_CANCELLED, by a later poll, when nothing can write to its destinations any
	 * more; its last read need not have been posted. Already complete, or nothing accepted yet: nothing happens. */
	void (*cancel)(struct gw_endpoint *endpoint, struct gw_read_set *set);

	/* Completes the request with this cookie with GW_CANCELLED, by a later poll; its answer is thrown away when it
	 * comes. The server may run it all the same. Already complete: nothing happens. */
	void (*request_cancel)(struct gw_endpoint *endpoint, const void *cookie);

	/* Asks the server for a region that it published after the hello; its id and generation were learned by a call.
	 * The completion with the cookie tells: GW_OK, and gw_endpoint_region has it; GW_NOT_FOUND: it was withdrawn,
	 * or never was; GW_UNSUPPORTED: not to be had over this transport; GW_PEER_LOST, GW_NO_MEMORY. One that is open
	 * already is told so. It stays open until it is withdrawn, which reads tell (GW_NOT_FOUND); then the endpoint
	 * lets go of its memory by itself, while it is polled. GW_AGAIN: no room now. */
	gw_status (*region_open)(struct gw_endpoint *endpoint, uint32_t id, uint32_t generation, void *cookie);

	/* The region's memory where this process can address it (memory, shm), else NULL; NULL for a versioned one,
	 * whose readers must know how. Valid while the endpoint is open. */
	const uint8_t *(*map)(struct gw_endpoint *endpoint, const struct gw_region *region);

	/* Up to max completions. Waits up to timeout_ns for the first one (0: not at all). Drives connections,
	 * deadlines and liveness; for listeners: serves. Returns early, perhaps with none, when woken and when
	 * gw_poll_group_room was told. */
	size_t (*poll)(void *state, struct gw_completion *completions, size_t max, uint64_t timeout_ns);

	/* Whether something is open that poll must drive: looked at before each poll where a group has several
	 * backends, and so no more expensive than a few loads. */
	bool (*busy)(void *state);

	/* A file descriptor that becomes readable when poll has something to do, asked for right before a sleep on it:
	 * whatever has to be armed for that is armed here. -1: there is something already, poll at once. *until_ns is
	 * lowered to the time at which poll is needed all the same, for timers. */
	int (*wait_fd)(void *state, uint64_t *until_ns);

	/* Makes a poll in progress, or the next one, return early. The only call that other threads may make. */
	void (*wake)(void *state);

	/* Server: accepts clients of the service at the address; connections are dealt out to the groups in turn and
	 * served when those are polled. GW_BUSY: the port is taken (the text names the holder where /proc tells). Port
	 * 0: any; listener->address tells. groups stay the caller's, and outlive the listener. */
	gw_status (*listen)(struct gw_poll_group *const *groups, uint32_t group_count, const struct gw_address *address,
			    struct gw_service *service, struct gw_listener **out);
	/* Stops accepting; open connections go on. Then, with close = true, ends them too: on return none of them reads
	 * the service's memory. From the first group's thread outside of a poll (never from a handler), or when no
	 * group is being polled; while it closes, the other groups' endpoints must not be used outside of polls. */
	void (*listener_stop)(struct gw_listener *listener, bool close);
	/* Stops accepting, and takes no more reads or requests: each connection ends as soon as what it had taken is
	 * answered, while its group is polled; the clients see the end of the stream behind the last answer. The
	 * service's counters tell when none is left (connections_open, calls_open). From the same threads as
	 * listener_stop. Reads of mapped memory go on until the listener is closed. */
	void (*listener_drain)(struct gw_listener *listener);
	void (*listener_free)(struct gw_listener *listener);

	/* The one slot that may be NULL: clients find the listener by nothing that lies in a file. Sees to it that they
	 * do find it: what somebody has removed is made again under the same name, and taken into use by the next poll
	 * of the group that accepts; what is there is made young, for what removes old files. By any thread, one at a
	 * time, until the listener is stopped. GW_REFUSED and others where the folder cannot be had. */
	gw_status (*listener_keep)(struct gw_listener *listener);
};

/* Regions that an endpoint asked for after its hello: transport/dynamic_regions.h. */
struct gw_dynamic_region_entry;
struct gw_dynamic_region_table {
	struct gw_dynamic_region_entry **entries;
	uint32_t count;
};

/* What every backend's objects begin with, so that dispatch is one indirect call. */
struct gw_endpoint {
	const struct gw_transport *transport;
	struct gw_poll_group *group;
	enum gw_endpoint_state state;
	struct gw_peer peer;
	struct gw_dynamic_region_table dynamic;
};

struct gw_buffer {
	uint8_t *base;
	uint64_t bytes;
	struct gw_poll_group *group;
	uint32_t number;                /* in the group */
	void *words[GW_TRANSPORTS_MAX]; /* one for each backend: see gw_transport.number */
};

struct gw_listener {
	const struct gw_transport *transport;
	struct gw_address address; /* with the port that was taken */
	struct gw_service *service;
};

/* The backend of a scheme: "tcp", "memory". GW_UNSUPPORTED lists what was built. */
gw_status gw_transport_find(const char *name, const struct gw_transport **out);

/* --- Poll groups: one thread's view of all backends (transport/poll_group.c). --- */

gw_status gw_poll_group_create(const struct gw_poll_group_options *options, struct gw_poll_group **out);
void gw_poll_group_destroy(struct gw_poll_group *group); /* closes its endpoints; their completions are lost */
const struct gw_poll_group_options *gw_poll_group_options(const struct gw_poll_group *group);

/* The backend's state in this group, made on first use. */
gw_status gw_poll_group_state(struct gw_poll_group *group, const struct gw_transport *transport, void **state);

/* Completions of all backends; see the slot `poll`. */
size_t gw_poll_group_poll(struct gw_poll_group *group, struct gw_completion *completions, size_t max,
			  uint64_t timeout_ns);
void gw_poll_group_wake(struct gw_poll_group *group);
/* For backends: whether a wake waits to be heard by a poll. */
bool gw_poll_group_woken(const struct gw_poll_group *group);

/* For backends: a call that found no room would find some now, so the poll in progress, or the next one that would
 * wait, returns early. Taken by the backend whose poll does so. */
void gw_poll_group_room(struct gw_poll_group *group);
bool gw_poll_group_room_take(struct gw_poll_group *group);

/* Registers memory with every backend in use; later backends register it when they open. */
gw_status gw_buffer_register(struct gw_poll_group *group, void *base, uint64_t bytes, struct gw_buffer **out);
uint64_t gw_poll_group_registrations(const struct gw_poll_group *group); /* made so far, ended ones too */
void gw_buffer_release(struct gw_buffer *buffer); /* no read may be open on it; NULL is allowed */

gw_status gw_endpoint_connect(struct gw_poll_group *group, const struct gw_connect_options *options, void *cookie,
			      struct gw_endpoint **out);
gw_status gw_listen(struct gw_poll_group *const *groups, uint32_t group_count, const struct gw_address *address,
		    struct gw_service *service, struct gw_listener **out);

/* Whom to believe where no key was given: on loopback who proves the key that the server left in the runtime folder,
 * since anybody on this host may take its port when it ends. insecure: also who has none to prove. Fills in key and
 * must_prove; the key lies in `found`. Other hosts' servers are asked for none. Fails where a key that is there cannot
 * be read. */
gw_status gw_key_choose(struct gw_connect_options *options, bool insecure, uint8_t found[GW_KEY_BYTES]);

/* Takes a TCP port long before gw_listen, for a server that first has to load: bound, so that nobody else gets it, and
 * refusing clients. Port 0 becomes the one that was got. GW_BUSY as of gw_listen. *reservation is a descriptor to close
 * when gw_listen has succeeded, or on the way out; gw_port_yield comes right before gw_listen. */
gw_status gw_port_reserve(struct gw_address *address, int *reservation);
void gw_port_yield(int reservation);
/* The address that a reservation is bound to, in numbers: what the name that was given stands for on this host. */
gw_status gw_port_bound(int reservation, struct gw_address *out);

/* The client ends, and its numbered calls are all answered: the server need not remember them. Told as far as it can
 * be told without waiting; the endpoint is to be closed next. */
void gw_endpoint_goodbye(struct gw_endpoint *endpoint);

/* --- Dispatch. --- */

/* What ends something leaves the thread's error text as it is. */

void gw_endpoint_close(struct gw_endpoint *endpoint); /* NULL is allowed */
void gw_listener_stop(struct gw_listener *listener, bool close);
void gw_listener_drain(struct gw_listener *listener);
gw_status gw_listener_keep(struct gw_listener *listener);
void gw_listener_free(struct gw_listener *listener); /* NULL is allowed */

static inline size_t gw_endpoint_readv(struct gw_endpoint *endpoint, struct gw_read_set *set,
				       const struct gw_region *region, struct gw_buffer *buffer,
				       const struct gw_span *spans, size_t n, bool last)
{
	return endpoint->transport->readv(endpoint, set, region, buffer, spans, n, last);
}

static inline size_t gw_endpoint_gather(struct gw_endpoint *endpoint, struct gw_read_set *set,
					const struct gw_region *region, struct gw_buffer *buffer,
					const struct gw_gather *gather, size_t n, bool last)
{
	return endpoint->transport->gather(endpoint, set, region, buffer, gather, n, last);
}

static inline gw_status gw_endpoint_request(struct gw_endpoint *endpoint, uint16_t op, const struct gw_once *once,
					    const void *bytes, uint32_t n, uint64_t deadline_ns, void *cookie)
{
	return endpoint->transport->request(endpoint, op, once, bytes, n, deadline_ns, cookie);
}

static inline void gw_endpoint_cancel(struct gw_endpoint *endpoint, struct gw_read_set *set)
{
	endpoint->transport->cancel(endpoint, set);
}

static inline void gw_endpoint_request_cancel(struct gw_endpoint *endpoint, const void *cookie)
{
	endpoint->transport->request_cancel(endpoint, cookie);
}

static inline gw_status gw_endpoint_region_open(struct gw_endpoint *endpoint, uint32_t id, uint32_t generation,
						void *cookie)
{
	return endpoint->transport->region_open(endpoint, id, generation, cookie);
}

/* A region that the endpoint may read; NULL: it was not opened, or was withdrawn. Valid until the next poll. */
const struct gw_region *gw_endpoint_region(const struct gw_endpoint *endpoint, uint32_t id, uint32_t generation);

static inline const uint8_t *gw_endpoint_map(struct gw_endpoint *endpoint, const struct gw_region *region)
{
	return endpoint->transport->map(endpoint, region);
}

#endif
