/* The interface between Graphwire and a transport backend, which carries bytes of a server's memory to a client.
 *
 * A service publishes regions: memory that clients may read and never write. A client connects an endpoint, reads parts
 * of a region into buffers that the client registered, and polls for completions. A backend provides the path between
 * client and server: a queue pair (transport/verbs), a socket (tcp), a mapping (shm) or the same process (memory).
 *
 *      client                                        server
 *      gw_endpoint_connect ── hello, key ──────────▶ listener: refuses before it allocates
 *      gw_endpoint_gather ─── offsets ─────────────▶ region: no server code (verbs, shm), the poll group's loop (tcp)
 *      gw_endpoint_request ── op, bytes ───────────▶ handler ──▶ reply, at once or deferred
 *      gw_poll_group_poll ◀── completions
 *
 * Threads: a poll group, its endpoints and its buffers belong to one thread at a time. Handing them to another thread
 * needs a happens-before edge, and no call may be in progress. Other threads may call gw_poll_group_wake only. The data
 * path takes no lock.
 *
 * Limits: every queue is bounded. A full queue accepts nothing, which is a normal event: the caller polls and tries
 * again.
 *
 * Versioned regions: the server writes to a versioned region while clients read it row by row. Each range of such a
 * read is one row: it begins where a row begins and is as long as the row's payload. An empty range is also allowed.
 * Any other range fails the set with GW_INVALID. Payloads arrive as in any region; the rows' trailers are not copied. A
 * torn row is never taken for a complete one. If a row is being written, the backend reads it again, up to a fixed
 * number of times. If the row was torn each time, the completion has status GW_AGAIN and lists the row; all other rows
 * have arrived. The caller then fetches the listed rows by a request, which waits for the writer. A read that is posted
 * after the acknowledgement of a write returns that write's values, or those of a later write.
 *
 * Destinations: a destination belongs to the transport from the acceptance of a read to its completion. Deadline,
 * cancel and loss of the peer complete a read set only when nothing can write to its destination any more. The
 * destination's content is then undefined, and no longer changes.
 */
#ifndef GW_TRANSPORT_H
#define GW_TRANSPORT_H

#include <assert.h>
#include <stdbool.h>

#include "core/errors/status.h"
#include "transport/address.h"
#include "transport/scheme.h"
#include "transport/service/once.h"
#include "transport/service/service.h"

#define GW_REQUEST_BYTES_MAX (9u << 20) /* bytes of one request: fits a tensor's longest row and its gradient */
#define GW_STAGED_BYTES      8192u /* poll copies smaller reads from a socket's staging memory to their destination */
#define GW_BUFFERS_MAX       (1u << 20) /* registered buffers of one poll group */

struct gw_poll_group; /* one thread's connections, completions and clock */
struct gw_endpoint;   /* one connection to one server, seen from the client */
struct gw_listener;   /* one address that accepts clients */
struct gw_buffer;     /* client memory that a backend may write to */

/* A set of reads from one endpoint, which completes once: every byte has arrived, or an error. The memory is the
 * caller's, zeroed except cookie and deadline. The caller does not touch it from the first acceptance to completion. */
struct gw_read_set {
	void *cookie;
	uint64_t deadline_ns; /* after this time the set completes with GW_DEADLINE; GW_NO_DEADLINE or 0: no deadline */
	/* For the backend alone: */
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

/* Many ranges of one length. Range i of a call arrives in row rows[i] of the destination, or in row i if rows is NULL.
 * If a call accepts a prefix of n ranges, the caller advances `remote` and `rows` by n before the next call. If `rows`
 * is NULL, the caller advances `local` by n strides instead. */
struct gw_gather {
	const uint64_t *remote; /* byte offsets in the region; some backends read sorted offsets faster */
	const uint32_t *rows;   /* destination rows; NULL: consecutive rows, the first at `local` */
	uint64_t local;         /* byte offset in the buffer of destination row 0 */
	uint32_t row_bytes;
	uint32_t stride; /* bytes from one destination row to the next, >= row_bytes */
};

/* The reads of a call: the rows of a gather, or spans. */
struct gw_reads {
	const struct gw_gather *gather; /* NULL: the reads are `spans` */
	const struct gw_span *spans;
	size_t n;
};

/* A row that was torn each time the backend read it. The content of its destination is undefined. */
struct gw_torn_row {
	uint64_t remote; /* byte offset in the region */
	uint64_t local;  /* byte offset in the destination buffer */
};

/* One result of poll. Each connect, read set and request completes exactly once. */
struct gw_completion {
	void *cookie;
	gw_status status;     /* GW_OK: every byte has arrived. For an error, text describes it. */
	const char *text;     /* "" or one line; valid until the next poll of this group */
	const uint8_t *reply; /* requests only; valid until the next poll of this group */
	uint32_t reply_bytes;
	/* The memory of the reply. To keep the reply longer, the caller sets *reply_memory to NULL and later frees the
	 * memory with gw_free. NULL: the reply's memory cannot be kept. */
	uint8_t **reply_memory;
	/* Read sets of versioned regions only, with GW_AGAIN: the torn rows; a row that several ranges read is listed
	 * for each of them. Valid until the next poll of this group. */
	uint32_t torn_count;
	const struct gw_torn_row *torn;
};

enum gw_endpoint_state { GW_ENDPOINT_CONNECTING, GW_ENDPOINT_OPEN, GW_ENDPOINT_LOST };

/* How to connect, and to which server. */
struct gw_connect_options {
	struct gw_address address;
	const uint8_t *key; /* the shared key; NULL: the client offers no key */
	uint32_t key_bytes;
	bool must_prove;         /* a server that does not prove the key is refused: GW_REFUSED */
	uint64_t graph_id;       /* 0: any graph; else GW_WRONG_GRAPH unless the server serves this one */
	uint8_t client_uuid[16]; /* constant over a client's reconnects; by it the server recognizes repeats */
	uint64_t budget_ns;   /* how long the server remembers requests after the client's last disconnect; 0: 300 s */
	uint64_t deadline_ns; /* of the connect */
	/* If reads or requests are open and nothing arrived for this long, the client probes the peer. If the peer
	 * stays silent for the same time again, the peer is lost. 0: 30 s. */
	uint64_t liveness_ns;
};

/* The server at the other end. Valid while the endpoint is open. */
struct gw_peer {
	uint64_t graph_id, incarnation;
	uint64_t window; /* the server's window for this client's numbered calls; 0: the server has no place for one */
	uint32_t part, parts; /* from gw_service_identity */
	const struct gw_region *regions;
	uint32_t region_count;
};

struct gw_poll_group_options {
	/* TCP's driver: NULL or "auto": io_uring if it works here, else epoll; "io_uring" and "epoll" force one. */
	const char *tcp_driver;
	/* A waiting poll spins for this long before it sleeps: after its start, if it waits for completions, and after
	 * each event. 0: it sleeps at once. */
	uint64_t spin_ns;
	uint32_t queue_pairs; /* verbs: queue pairs of one endpoint, 1 to 8; 0: 2 */
};

#define GW_TRANSPORTS_MAX 8 /* backends of one build; > GW_SCHEMES, so that a test can add one */

/* A backend: a table of functions. Every slot is filled, except listener_keep and listener_yield; gw_transport_find
 * asserts this. `state` is the backend's part of a poll group. The poll group's thread calls every slot, except where a
 * slot's comment names other threads. */
struct gw_transport {
	const struct gw_scheme *scheme; /* the transport's names and properties */
	uint32_t number;                /* the scheme's number, < GW_TRANSPORTS_MAX: the index in gw_buffer.words */

	/* The cost of one more range, in bytes: reading a gap shorter than this is cheaper than a second range. */
	uint32_t range_cost_bytes;

	/* Whether reads run no code of the server. */
	bool one_sided;

	/* Whether ascending offsets are read so much faster that sorting them pays. */
	bool order_pays;

	/* Creates and destroys the backend's part of a poll group. The group calls open at the backend's first use, and
	 * shut when the group is destroyed. shut also ends the endpoints that are still open. */
	gw_status (*open)(struct gw_poll_group *group, void **state);
	void (*shut)(void *state);

	/* Starts a connection. Sets *out at once, in state CONNECTING or OPEN. Never blocks on the peer or the
	 * resolver. The caller closes the endpoint, whatever the outcome. A completion with `cookie` reports:
	 *   GW_OK           connected
	 *   GW_REFUSED      the server refused, with its reason (key, limit)
	 *   GW_VERSION      no common protocol version
	 *   GW_WRONG_GRAPH  the server serves another graph
	 *   GW_PROTOCOL     the peer is not a Graphwire server
	 *   GW_NOT_FOUND    the name does not exist
	 *   GW_PEER_LOST    the peer is unreachable, or the connection broke
	 *   GW_DEADLINE     options->deadline_ns has passed */
	gw_status (*connect)(void *state, const struct gw_connect_options *options, void *cookie,
			     struct gw_endpoint **out);

	/* Stops all traffic of the connection, completes its open work with GW_CANCELLED (later polls return these
	 * completions), then frees the endpoint. Never blocks on the peer. */
	void (*close)(struct gw_endpoint *endpoint);

	/* Makes memory a destination for every endpoint of this backend in the group. Cheap if the memory lies inside
	 * memory that is registered already. GW_LOCKED_MEMORY names the limit. The memory stays the caller's. The
	 * backend keeps what it needs to find its registration in buffer->words[number]. If a buffer outlives the
	 * backend's part of the group, buffer_release gets state NULL. */
	gw_status (*buffer_register)(void *state, struct gw_buffer *buffer);
	void (*buffer_release)(void *state, struct gw_buffer *buffer);

	/* Posts reads, accepts a prefix of them, and returns the prefix's length.
	 *   - 0: no room now. The poll that finds room returns early. A set without an accepted read is still the
	 *     caller's.
	 *   - The arrays behind `spans`, `remote` and `rows` stay the caller's; they must not change until the set
	 *     completes.
	 *   - The set can complete once a call with last = true was accepted completely; n = 0 is allowed then.
	 * A fault fails the set, and the backend sends nothing for the call:
	 *   GW_RANGE      a range past the end of the region or the buffer
	 *   GW_INVALID    a range that is not one row of a versioned region
	 *   GW_STALE      the server has reloaded the region
	 *   GW_NOT_FOUND  a dynamic region that is not open, or was withdrawn
	 *   GW_PEER_LOST  the endpoint is lost
	 *   GW_DEADLINE   the set's deadline has passed
	 * Calls for a failed set accept every read. Poll returns the failure after the call with last = true. */
	size_t (*read)(struct gw_endpoint *endpoint, struct gw_read_set *set, const struct gw_region *region,
		       struct gw_buffer *buffer, const struct gw_reads *reads, bool last);

	/* Sends a two-sided call of n <= GW_REQUEST_BYTES_MAX bytes. The bytes and `once` are copied before the return.
	 * once = NULL: the call may run twice. Returns GW_AGAIN: no room now; GW_LIMIT: n is too large; GW_NO_MEMORY. A
	 * completion reports other errors. GW_OUTCOME_UNKNOWN: the call is a repeat, and the server has forgotten the
	 * client since the first post. The server does not apply the repeat. */
	gw_status (*request)(struct gw_endpoint *endpoint, uint16_t op, const struct gw_once *once, const void *bytes,
			     uint32_t n, uint64_t deadline_ns, void *cookie);

	/* Cancels a read set, even before the caller has posted its last read. A later poll completes the set with
	 * GW_CANCELLED, when nothing can write to its destinations any more. Does nothing if the set is complete or has
	 * no accepted read. */
	void (*cancel)(struct gw_endpoint *endpoint, struct gw_read_set *set);

	/* Cancels the request with this cookie. A later poll completes it with GW_CANCELLED. The server may still run
	 * the request; its answer is dropped. Does nothing if the request is complete. */
	void (*request_cancel)(struct gw_endpoint *endpoint, const void *cookie);

	/* Opens a region that the server published after the hello; the caller knows its id and generation from a
	 * reply. Returns GW_AGAIN: no room now. A completion with `cookie` reports:
	 *   GW_OK           gw_endpoint_region finds the region (also if it was open before)
	 *   GW_NOT_FOUND    the region was withdrawn, or never existed
	 *   GW_UNSUPPORTED  this transport cannot read it
	 *   GW_PEER_LOST, GW_NO_MEMORY
	 * The region stays open until the server withdraws it; reads of it then fail with GW_NOT_FOUND, and the
	 * endpoint releases the region's memory during a later poll. */
	gw_status (*region_open)(struct gw_endpoint *endpoint, uint32_t id, uint32_t generation, void *cookie);

	/* The region's memory, if this process can address it (memory, shm); else NULL. NULL for a versioned region,
	 * since its readers must check for torn rows. Valid while the endpoint is open. */
	const uint8_t *(*map)(struct gw_endpoint *endpoint, const struct gw_region *region);

	/* Returns up to max completions. Waits up to timeout_ns for the first one (0: does not wait). Drives
	 * connections, deadlines and liveness, and serves the clients of listeners. Returns early, perhaps with no
	 * completion, after wake and after gw_poll_group_room. */
	size_t (*poll)(void *state, struct gw_completion *completions, size_t max, uint64_t timeout_ns);

	/* Whether poll has open work to drive. A group with several backends calls this before each poll, so it may
	 * cost no more than a few loads. */
	bool (*busy)(void *state);

	/* A file descriptor that becomes readable when poll has work. The group calls this right before it sleeps on
	 * the descriptor, so this slot arms whatever the wakeup needs. Returns -1 if poll has work already. Lowers
	 * *until_ns to the time of the backend's next timer. */
	int (*wait_fd)(void *state, uint64_t *until_ns);

	/* Makes the current poll, or the next one, return early. Any thread may call this. */
	void (*wake)(void *state);

	/* Server: accepts clients of the service at the address. The groups get connections in turn, and serve them
	 * while they are polled. GW_BUSY: the port is taken; the text names the process that has it, if /proc shows
	 * that. Port 0: any port, found in listener->address. The groups stay the caller's and outlive the listener.
	 * socket: a socket that listens at the address already, from listener_yield, which stays the caller's; -1:
	 * none. */
	gw_status (*listen)(struct gw_poll_group *const *groups, uint32_t group_count, const struct gw_address *address,
			    struct gw_service *service, int socket, struct gw_listener **out);
	/* Stops accepting; open connections go on. With close = true it also ends the connections: on return, none of
	 * them reads the service's memory. Call it from the first group's thread outside of a poll (never from a
	 * handler), or while no group is polled. While a close runs, other groups' endpoints must not be used outside
	 * of polls. */
	void (*listener_stop)(struct gw_listener *listener, bool close);
	/* Stops accepting connections, reads and requests. Each connection ends when its accepted work is answered,
	 * while its group is polled; the client then sees the end of the stream after the last answer. The service's
	 * counters show when all have ended (connections_open, calls_open). Same threads as listener_stop. Reads of
	 * mapped memory go on until the listener is closed. */
	void (*listener_drain)(struct gw_listener *listener);
	void (*listener_free)(struct gw_listener *listener);

	/* Stops accepting for ever, as listener_stop without close does, but keeps the socket and its name for another
	 * listener, of this or another process: clients that connect meanwhile wait in the socket's queue. *socket is
	 * the caller's. Same threads as listener_drain. A failure changes nothing. NULL: it has no socket. */
	gw_status (*listener_yield)(struct gw_listener *listener, int *socket);

	/* Keeps the files by which clients find the listener. NULL if clients need no file; no other slot may be NULL.
	 * Creates a removed file again, with a new socket and the same name; the next poll of the accepting group
	 * starts to use that socket. Renews the timestamps of existing files, so that programs that delete old files
	 * keep them. Any thread may call this, one at a time, until the listener is stopped. GW_REFUSED and others if
	 * the folder cannot be used. */
	gw_status (*listener_keep)(struct gw_listener *listener);
};

/* Regions that an endpoint opened after its hello: transport/dynamic_regions.h. */
struct gw_dynamic_region_entry;
struct gw_dynamic_region_table {
	struct gw_dynamic_region_entry **entries;
	uint32_t count;
};

/* The head of every backend's objects, so that dispatch costs one indirect call. */
struct gw_endpoint {
	const struct gw_transport *transport;
	struct gw_poll_group *group;
	enum gw_endpoint_state state;
	/* The server said that a successor has its address: once the endpoint is lost, the caller connects again at
	 * once. Stays false if the server's version has no such notice. */
	bool moved;
	struct gw_peer peer;
	struct gw_dynamic_region_table dynamic;
};

struct gw_buffer {
	uint8_t *base;
	uint64_t bytes;
	struct gw_poll_group *group;
	uint32_t number;                /* index in the group */
	void *words[GW_TRANSPORTS_MAX]; /* one for each backend, by gw_transport.number */
};

struct gw_listener {
	const struct gw_transport *transport;
	struct gw_address address; /* with the actual port */
	struct gw_service *service;
	_Atomic bool moved; /* gw_listener_move; listener_drain then notifies the clients */
};

/* The backend of a scheme ("tcp", "memory"). GW_UNSUPPORTED lists the backends of this build. */
gw_status gw_transport_find(const char *name, const struct gw_transport **out);

/* --- Poll groups: one thread's view of all backends (transport/poll_group.c). --- */

gw_status gw_poll_group_create(const struct gw_poll_group_options *options, struct gw_poll_group **out);
void gw_poll_group_destroy(struct gw_poll_group *group); /* closes the endpoints and drops their completions */
const struct gw_poll_group_options *gw_poll_group_options(const struct gw_poll_group *group);

/* The backend's state in this group; created at first use. */
gw_status gw_poll_group_state(struct gw_poll_group *group, const struct gw_transport *transport, void **state);

/* Completions of all backends; see the slot `poll`. */
size_t gw_poll_group_poll(struct gw_poll_group *group, struct gw_completion *completions, size_t max,
			  uint64_t timeout_ns);
void gw_poll_group_wake(struct gw_poll_group *group);
/* For backends: whether a wake has come since a poll last returned. */
bool gw_poll_group_woken(const struct gw_poll_group *group);

/* For backends: reports that a refused call would find room now. The current poll, or the next one that would wait,
 * returns early. gw_poll_group_room_take reads and clears the mark; the backend whose poll returns early calls it. */
void gw_poll_group_room(struct gw_poll_group *group);
bool gw_poll_group_room_take(struct gw_poll_group *group);

/* A number that grows when refused calls may find room (gw_poll_group_room), and when a connection whose memory this
 * process can address is lost (gw_poll_group_lost). A caller that waits for one of these need not look before. */
uint64_t gw_poll_group_news(const struct gw_poll_group *group);
/* For backends: reads of mapped memory end without a completion that would show the loss. */
void gw_poll_group_lost(struct gw_poll_group *group);

/* Registers memory with every backend in use. A backend that opens later registers all existing buffers. */
gw_status gw_buffer_register(struct gw_poll_group *group, void *base, uint64_t bytes, struct gw_buffer **out);
uint64_t
gw_poll_group_registrations(const struct gw_poll_group *group); /* count since creation, released ones included */
void gw_buffer_release(struct gw_buffer *buffer);               /* no open read may use it; NULL is allowed */

gw_status gw_endpoint_connect(struct gw_poll_group *group, const struct gw_connect_options *options, void *cookie,
			      struct gw_endpoint **out);
gw_status gw_listen(struct gw_poll_group *const *groups, uint32_t group_count, const struct gw_address *address,
		    struct gw_service *service, struct gw_listener **out);
/* The same on a socket that gw_listener_yield returned, which stays the caller's; -1: as gw_listen. */
gw_status gw_listen_on(struct gw_poll_group *const *groups, uint32_t group_count, const struct gw_address *address,
		       struct gw_service *service, int socket, struct gw_listener **out);

/* Chooses the key for a connection without one. For a loopback server it chooses the key that the server left in the
 * runtime folder. The server must prove that key, since any user of this host may take the port when the server ends.
 * insecure: accepts a loopback server without a key as well. For a server on another host the function chooses no key.
 * Fills in key and must_prove; the key's bytes are in `found`. Fails if a key exists and cannot be read. */
gw_status gw_key_choose(struct gw_connect_options *options, bool insecure, uint8_t found[GW_KEY_BYTES]);

/* Reserves a TCP port before gw_listen, for a server that loads its graph first. The port is bound: no other process
 * gets it, and it refuses clients. Port 0 becomes the actual port. GW_BUSY as for gw_listen. *reservation is a
 * descriptor; the caller closes it after gw_listen succeeded, or when the caller gives up. Call gw_port_yield right
 * before gw_listen. */
gw_status gw_port_reserve(struct gw_address *address, int *reservation);
void gw_port_yield(int reservation);
/* The numeric address that a reservation is bound to: the host's name, resolved. */
gw_status gw_port_bound(int reservation, struct gw_address *out);

/* Notifies the server that the client ends and that all its numbered calls are answered, so the server may forget
 * them. Best effort: does not wait. The caller closes the endpoint next. */
void gw_endpoint_goodbye(struct gw_endpoint *endpoint);

/* --- Dispatch. --- */

/* Functions that end an object leave the thread's error text unchanged. */

void gw_endpoint_close(struct gw_endpoint *endpoint); /* NULL is allowed */
void gw_listener_stop(struct gw_listener *listener, bool close);
void gw_listener_drain(struct gw_listener *listener);
gw_status gw_listener_yield(struct gw_listener *listener, int *socket);
/* Drains, and notifies the clients that a successor has the address: they connect again at once, and do not count the
 * loss as a failure. Call this when the successor accepts clients, or holds the socket that accepts them. A client of a
 * version without the notice sees the connection's end, and connects again as after a loss. */
void gw_listener_move(struct gw_listener *listener);
gw_status gw_listener_keep(struct gw_listener *listener);
void gw_listener_free(struct gw_listener *listener); /* NULL is allowed */

static inline size_t gw_endpoint_readv(struct gw_endpoint *endpoint, struct gw_read_set *set,
				       const struct gw_region *region, struct gw_buffer *buffer,
				       const struct gw_span *spans, size_t n, bool last)
{
	return endpoint->transport->read(endpoint, set, region, buffer, &(struct gw_reads){.spans = spans, .n = n},
					 last);
}

static inline size_t gw_endpoint_gather(struct gw_endpoint *endpoint, struct gw_read_set *set,
					const struct gw_region *region, struct gw_buffer *buffer,
					const struct gw_gather *gather, size_t n, bool last)
{
	return endpoint->transport->read(endpoint, set, region, buffer, &(struct gw_reads){.gather = gather, .n = n},
					 last);
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

/* A region that the endpoint may read. NULL: it was not opened, or was withdrawn. Valid until the next poll. */
const struct gw_region *gw_endpoint_region(const struct gw_endpoint *endpoint, uint32_t id, uint32_t generation);

static inline const uint8_t *gw_endpoint_map(struct gw_endpoint *endpoint, const struct gw_region *region)
{
	return endpoint->transport->map(endpoint, region);
}

#endif
