/* How sockets are driven: one interface, two implementations (io_uring, epoll).
 *
 * A connection does not call recv or send. The driver asks it where the next bytes go (`target`) and what is to be sent
 * (`source`), does it, and tells the outcome (`received`, `sent`). Between asking and telling, the memory asked for is
 * the driver's: with epoll that is one system call, with io_uring it may be long, so `receiving` and `sending` tell.
 *
 *      io added ── kick ──▶ target ─▶ receive ─▶ received ─▶ target …          all callbacks come from inside run,
 *                        └▶ source ─▶ send ────▶ sent ─────▶ source …          flush and stop_receive, one at a time
 *      await ─▶ target ─▶ receive ─▶ received            one answer, waited for in the socket itself
 *      remove ──▶ (io_uring: what is under way is cancelled and reaped) ──▶ gone
 *
 * An io may also just watch its socket for readiness (connecting, listening): set `watch` to POLLIN or POLLOUT; `ready`
 * comes once for each kick.
 *
 * Fairness: ios take turns, and a turn moves no more than one piece or about a megabyte. A `source` that had to work
 * long for what it gives, or has more to do elsewhere in its loop, or has set the loop's timer, sets `yield`: others
 * come before it is asked again, and the run in progress does not sleep.
 */
#ifndef GW_TRANSPORT_TCP_DRIVER_H
#define GW_TRANSPORT_TCP_DRIVER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "core/errors/status.h"
#include "core/memory/list.h"

#define TCP_IOV_MAX 16

struct tcp_io;
struct tcp_fd_passing; /* transport/tcp/fd_passing.h */

struct tcp_io_events {
	/* Fills up to TCP_IOV_MAX pieces; 0: nothing is wanted until the next kick. */
	size_t (*target)(struct tcp_io *io, struct iovec *iov);
	size_t (*source)(struct tcp_io *io, struct iovec *iov);
	/* n > 0 bytes; 0: the peer's end; < 0: an errno, negated. */
	void (*received)(struct tcp_io *io, ssize_t n);
	void (*sent)(struct tcp_io *io, ssize_t n);
	void (*ready)(struct tcp_io *io);
	/* Nothing refers to the io or its memory any more; its descriptor is closed. The io may be freed. */
	void (*gone)(struct tcp_io *io);
};

struct tcp_io {
	const struct tcp_io_events *events;
	int fd;
	short watch;             /* POLLIN, POLLOUT, or 0: receive and send */
	bool receiving, sending; /* the driver holds what target or source gave */
	bool yield;              /* set by source */
	bool awaited;            /* its socket is made for gw_tcp_await */
	/* So many bytes at least are still to come: do not wake for fewer. Set by the connection in `received`, or at
	 * any time followed by a kick; 0 and 1: wake for every one. TCP's sockets only. */
	uint32_t low_water;
	struct tcp_fd_passing *fd_passing; /* unix sockets: descriptors that go along with the bytes; or NULL */
	/* The driver's: */
	bool readable, writable, hung_up, queued, removed, busy, kicked, watching, cancelling;
	uint32_t under_way;
	uint32_t low_water_set; /* what the socket has; 0: what it had when it was made, 1 */
	struct tcp_io *next;
	struct iovec receive_iov[TCP_IOV_MAX], send_iov[TCP_IOV_MAX];
	struct msghdr receive_message, send_message;
};

/* --- Ios that want to be asked, oldest first; each is there once. --- */

struct tcp_io_queue {
	struct tcp_io *first, **end;
	uint32_t count;
};

static inline void tcp_queue_begin(struct tcp_io_queue *queue)
{
	*queue = (struct tcp_io_queue){.end = &queue->first};
}

static inline void tcp_queue_add(struct tcp_io_queue *queue, struct tcp_io *io)
{
	if (io->queued)
		return;
	io->queued = true;
	io->next = NULL;
	*queue->end = io;
	queue->end = &io->next;
	queue->count++;
}

/* The queue must not be empty. */
static inline struct tcp_io *tcp_queue_take(struct tcp_io_queue *queue)
{
	struct tcp_io *io = queue->first;
	queue->first = io->next;
	if (!queue->first)
		queue->end = &queue->first;
	queue->count--;
	io->queued = false;
	return io;
}

/* If it is there. */
static inline void tcp_queue_drop(struct tcp_io_queue *queue, struct tcp_io *io)
{
	if (!io->queued || !queue->first) /* the second never alone: for the analyzer */
		return;
	GW_QUEUE_REMOVE(queue->first, queue->end, io, next);
	queue->count--;
	io->queued = false;
}

/* --- The low-water mark. --- */

/* Tells the socket the io's low_water, if that has changed. Before a driver waits for bytes, not before it takes those
 * that it knows of: the mark bounds what the next wake-up finds, not what a receive takes. */
void gw_tcp_low_water(struct tcp_io *io);

/* --- A socket that is waited for by itself. --- */

#define TCP_AWAIT_NS (4 * 1000000ull) /* the kernel's tick may make it twice that */

enum tcp_awaited {
	TCP_AWAIT_NOT, /* something else is to be done first: run */
	TCP_AWAIT_INTERRUPTED,
	TCP_AWAIT_TOO_LONG,
	TCP_AWAIT_HANDLED
};

/* Asks where bytes go and receives them, sleeping for TCP_AWAIT_NS at most: *n, as `received` takes it, and whether
 * more may have come (*full). The io must be a TCP socket of which no receive is under way. */
enum tcp_awaited gw_tcp_await(struct tcp_io *io, ssize_t *n, bool *full);

struct tcp_driver;

struct tcp_driver_ops {
	const char *name;
	/* spins: the thread that runs it polls for a while before it sleeps. GW_UNSUPPORTED where the kernel or its
	 * policy has no such driver. */
	gw_status (*open)(bool spins, struct tcp_driver **out);
	/* After all ios are removed; waits for what is still under way. */
	void (*shut)(struct tcp_driver *driver);
	/* Takes the io with its open, non-blocking descriptor. */
	gw_status (*add)(struct tcp_driver *driver, struct tcp_io *io);
	/* Something changed: ask the io again during the next run. */
	void (*kick)(struct tcp_driver *driver, struct tcp_io *io);
	/* Sends now what the io has, as far as the socket takes it. */
	void (*flush)(struct tcp_driver *driver, struct tcp_io *io);
	/* Ends a receive that is under way: `received` follows, with what had arrived or -ECANCELED. */
	void (*stop_receive)(struct tcp_driver *driver, struct tcp_io *io);
	/* No callback but `gone` from now on, at once or during a later run. */
	void (*remove)(struct tcp_driver *driver, struct tcp_io *io);
	/* Waits for something to happen until until_ns (0: only looks; GW_NO_DEADLINE), then handles it; may return
	 * early with nothing. Sets *woken after a wake. Returns whether anything was handled. A sleep with a time limit
	 * sets a timer and takes it back, 0.4 us of kernel time: instead a timer stays set over many sleeps, at the
	 * earliest time that was asked for, and only an earlier one touches it. */
	bool (*run)(struct tcp_driver *driver, uint64_t until_ns, bool *woken);
	/* Waits for bytes of this io alone and handles them: a call of the kernel's less than `run`, which looks at all
	 * that there is. For TCP_AWAIT_NS at most, since a wake need not end it, nor what happens to other ios. */
	enum tcp_awaited (*await)(struct tcp_driver *driver, struct tcp_io *io);
	/* Readable when run has something to do; -1: it has already. */
	int (*wait_fd)(struct tcp_driver *driver);
	/* From any thread. */
	void (*wake)(struct tcp_driver *driver);
};

/* What every driver begins with. */
struct tcp_driver {
	const struct tcp_driver_ops *ops;
};

extern const struct tcp_driver_ops gw_tcp_driver_epoll;
extern const struct tcp_driver_ops gw_tcp_driver_uring;

/* The driver of a name, opened: NULL or "auto" takes io_uring where it works, else epoll; GW_INVALID for another name.
 */
gw_status gw_tcp_driver_open(const char *name, bool spins, struct tcp_driver **out);

/* epoll_wait with a time in nanoseconds: 0 looks, GW_NO_DEADLINE waits for ever. Returns what it does. */
struct epoll_event;
int gw_epoll_wait(int fd, struct epoll_event *events, int max, uint64_t timeout_ns);

/* Closes a descriptor. A connection or a listener ends with it even if a child that was forked meanwhile holds the
 * descriptor as well. */
void gw_socket_close(int fd);

#endif
