/* The driver of sockets: one interface, two implementations (io_uring, epoll).
 *
 * A connection does not call recv or send. The driver asks the connection where the next bytes go (`target`) and what
 * to send (`source`), makes the system call, and reports the outcome (`received`, `sent`). From the call of `target` or
 * `source` to the report, the driver uses that memory. With epoll this lasts one system call. With io_uring it may take
 * long; `receiving` and `sending` are set meanwhile.
 *
 *      io added ── kick ──▶ target ─▶ receive ─▶ received ─▶ target …          all callbacks come from inside run,
 *                        └▶ source ─▶ send ────▶ sent ─────▶ source …          flush and stop_receive, one at a time
 *      await ─▶ target ─▶ receive ─▶ received            one answer, awaited in its socket
 *      remove ──▶ (io_uring: operations in progress are cancelled and reaped) ──▶ gone
 *
 * An io can also just watch its socket (connecting, listening): set `watch` to POLLIN or POLLOUT. `ready` is then
 * called once for each kick.
 *
 * Fairness: ios take turns. One turn moves at most one piece or about a megabyte. A `source` sets `yield` if its answer
 * took long, if its loop has more work, or if it has set the loop's timer. The driver then serves other ios before it
 * asks this one again, and the current run does not sleep.
 *
 * Two lanes: a `source` sets `bulk` while it is inside a long output. Between two looks at the sockets, a run serves
 * all other ios first, and then one bulk io, for a turn of TCP_BULK_TURN bytes. So a short question waits for one such
 * turn, however many bulk ios there are; and bulk ios go on, however many short questions come.
 */
#ifndef GW_TRANSPORT_TCP_DRIVER_DRIVER_H
#define GW_TRANSPORT_TCP_DRIVER_DRIVER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "core/errors/status.h"
#include "core/memory/list.h"

#define TCP_IOV_MAX 16

struct tcp_io;
struct tcp_fd_passing; /* transport/tcp/driver/fd_passing.h */

struct tcp_io_events {
	/* Fill up to TCP_IOV_MAX pieces and return their number. 0: nothing to do until the next kick. */
	size_t (*target)(struct tcp_io *io, struct iovec *iov);
	size_t (*source)(struct tcp_io *io, struct iovec *iov);
	/* n > 0: bytes; 0: the peer's end of stream; < 0: a negated errno. */
	void (*received)(struct tcp_io *io, ssize_t n);
	void (*sent)(struct tcp_io *io, ssize_t n);
	void (*ready)(struct tcp_io *io);
	/* The driver is done with the io and its memory, and has closed the descriptor. The io may be freed. */
	void (*gone)(struct tcp_io *io);
};

struct tcp_io {
	const struct tcp_io_events *events;
	int fd;
	short watch;             /* POLLIN, POLLOUT, or 0: receive and send */
	bool receiving, sending; /* the driver uses the memory of target or source */
	bool yield, bulk;        /* set by source: see above */
	bool awaited;            /* its socket is prepared for gw_tcp_await */
	bool shared;             /* another descriptor of the socket stays in use: it is closed, and not shut down */
	/* At least this many bytes are still to come: do not wake for fewer. The connection sets it in `received`, or
	 * at any time before a kick. 0 and 1: wake for every byte. TCP sockets only. */
	uint32_t low_water;
	struct tcp_fd_passing *fd_passing; /* unix sockets: descriptors to pass with the bytes; else NULL */
	/* For the driver alone: */
	bool readable, writable, hung_up, queued, queued_bulk, removed, busy, kicked, watching, cancelling;
	uint32_t under_way;
	uint32_t low_water_set; /* the socket's mark; 0: never set, the kernel's default of 1 */
	struct tcp_io *next;
	struct iovec receive_iov[TCP_IOV_MAX], send_iov[TCP_IOV_MAX];
	struct msghdr receive_message, send_message;
};

/* --- A queue of ios that want to be served, in two lanes, oldest first; each is in it at most once. --- */

#define TCP_TURN_BYTES (1u << 20)   /* what one turn of an io moves */
#define TCP_BULK_TURN  (256u << 10) /* of a bulk io */

struct tcp_io_lane {
	struct tcp_io *first, **end;
	uint32_t count;
};

struct tcp_io_queue {
	struct tcp_io_lane lanes[2]; /* [1]: bulk */
};

static inline void tcp_queue_begin(struct tcp_io_queue *queue)
{
	*queue = (struct tcp_io_queue){0};
	queue->lanes[0].end = &queue->lanes[0].first;
	queue->lanes[1].end = &queue->lanes[1].first;
}

static inline uint32_t tcp_queue_count(const struct tcp_io_queue *queue)
{
	return queue->lanes[0].count + queue->lanes[1].count;
}

static inline void tcp_queue_add(struct tcp_io_queue *queue, struct tcp_io *io)
{
	if (io->queued)
		return;
	struct tcp_io_lane *lane = &queue->lanes[io->bulk];
	io->queued = true;
	io->queued_bulk = io->bulk;
	io->next = NULL;
	*lane->end = io;
	lane->end = &io->next;
	lane->count++;
}

/* Removes the io if it is queued. */
static inline void tcp_queue_drop(struct tcp_io_queue *queue, struct tcp_io *io)
{
	struct tcp_io_lane *lane = &queue->lanes[io->queued_bulk];
	if (!io->queued || !lane->first) /* the second condition follows from the first; it is for the analyzer */
		return;
	GW_QUEUE_REMOVE(lane->first, lane->end, io, next);
	lane->count--;
	io->queued = false;
}

/* The ios that are served between two looks at the sockets: those that wait in the short lane when the round begins,
 * and then one of those in the bulk lane. */
struct tcp_io_round {
	uint32_t count;
	bool bulk;
};

static inline struct tcp_io_round tcp_round_begin(const struct tcp_io_queue *queue)
{
	return (struct tcp_io_round){queue->lanes[0].count, queue->lanes[1].count > 0};
}

/* Takes the next io of the round from the queue. NULL: the round is over. */
static inline struct tcp_io *tcp_round_next(struct tcp_io_round *round, struct tcp_io_queue *queue)
{
	struct tcp_io *io = NULL;
	if (round->count && queue->lanes[0].first) {
		round->count--;
		io = queue->lanes[0].first;
	} else if (round->bulk) {
		*round = (struct tcp_io_round){0};
		io = queue->lanes[1].first;
	}
	if (io)
		tcp_queue_drop(queue, io);
	return io;
}

/* Whether a bulk io, of whose TCP_TURN_BYTES `left` are left, has had its turn. */
static inline bool tcp_turn_ends(const struct tcp_io *io, size_t left)
{
	return io->bulk && left <= TCP_TURN_BYTES - TCP_BULK_TURN;
}

/* --- The low-water mark. --- */

/* Sets the socket's low-water mark to io->low_water, if that has changed. A driver calls this before it waits for
 * bytes, not before it receives bytes that it knows of: the mark affects the next wake-up, not a receive's length. */
void gw_tcp_low_water(struct tcp_io *io);

/* --- Waiting for one socket alone. --- */

#define TCP_AWAIT_NS (4 * 1000000ull) /* rounded up to kernel ticks, it may take twice as long */

enum tcp_awaited {
	TCP_AWAIT_NOT, /* other work comes first: call run */
	TCP_AWAIT_INTERRUPTED,
	TCP_AWAIT_TOO_LONG,
	TCP_AWAIT_HANDLED
};

/* Asks the io for its target and receives, with a sleep of TCP_AWAIT_NS at most. *n: as for `received`. *full: more
 * bytes may have arrived. The io must be a TCP socket without a receive in progress. */
enum tcp_awaited gw_tcp_await(struct tcp_io *io, ssize_t *n, bool *full);

struct tcp_driver;

struct tcp_driver_ops {
	const char *name;
	/* spins: the calling thread polls for a while before it sleeps. GW_UNSUPPORTED: the kernel or its policy does
	 * not offer this driver. */
	gw_status (*open)(bool spins, struct tcp_driver **out);
	/* Call it after all ios are removed; waits for operations in progress. */
	void (*shut)(struct tcp_driver *driver);
	/* Adds the io, with its open, non-blocking descriptor. */
	gw_status (*add)(struct tcp_driver *driver, struct tcp_io *io);
	/* The io's state changed: the next run asks it again. */
	void (*kick)(struct tcp_driver *driver, struct tcp_io *io);
	/* Sends the io's output now, as far as the socket accepts it. */
	void (*flush)(struct tcp_driver *driver, struct tcp_io *io);
	/* Ends a receive in progress: `received` follows, with the bytes that arrived or -ECANCELED. */
	void (*stop_receive)(struct tcp_driver *driver, struct tcp_io *io);
	/* Removes the io. The only callback from now on is `gone`, at once or during a later run. */
	void (*remove)(struct tcp_driver *driver, struct tcp_io *io);
	/* Waits for an event until until_ns (0: does not wait; GW_NO_DEADLINE), then handles it. May return early
	 * without an event. Sets *woken after a wake. Returns whether it handled anything. A sleep with its own time
	 * limit would set and clear a timer, 0.4 us of kernel time. So one timer stays set over many sleeps, at the
	 * earliest requested time; only an earlier time changes it. */
	bool (*run)(struct tcp_driver *driver, uint64_t until_ns, bool *woken);
	/* Waits for bytes of this io alone and handles them. Costs one system call less than `run`, which checks all
	 * ios. Waits TCP_AWAIT_NS at most, since a wake or another io's event may fail to end the wait. */
	enum tcp_awaited (*await)(struct tcp_driver *driver, struct tcp_io *io);
	/* A descriptor that becomes readable when run has work; -1: run has work already. */
	int (*wait_fd)(struct tcp_driver *driver);
	/* Any thread may call this. */
	void (*wake)(struct tcp_driver *driver);
};

/* The head of every driver. */
struct tcp_driver {
	const struct tcp_driver_ops *ops;
};

extern const struct tcp_driver_ops gw_tcp_driver_epoll;
extern const struct tcp_driver_ops gw_tcp_driver_uring;

/* Opens the named driver. NULL or "auto": io_uring if it works here, else epoll. GW_INVALID for an unknown name. */
gw_status gw_tcp_driver_open(const char *name, bool spins, struct tcp_driver **out);

/* epoll_wait with a timeout in nanoseconds. 0: does not wait; GW_NO_DEADLINE: no limit. Returns what epoll_wait
 * returns. */
struct epoll_event;
int gw_epoll_wait(int fd, struct epoll_event *events, int max, uint64_t timeout_ns);

/* Closes a socket's descriptor. The connection or listener ends even if a child that was forked meanwhile still has the
 * descriptor. */
void gw_socket_close(int fd);
void gw_tcp_io_close(const struct tcp_io *io);

#endif
