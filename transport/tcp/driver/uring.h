/* The parts of the io_uring driver, for its own files. A file calls those to its right:
 *
 *   driver_uring.c ──────▶ uring_hot.c ──────▶ uring_io.c ──────▶ uring_ring.c
 *   the driver's calls,    the io that is      the operations     the ring: set-up, entries,
 *   its completions        received directly   of one io          timer, wake, submission
 */
#ifndef GW_TRANSPORT_TCP_DRIVER_URING_H
#define GW_TRANSPORT_TCP_DRIVER_URING_H

#include "core/system/uring.h"
#include "transport/tcp/driver/driver.h"
#include "transport/tcp/driver/fd_passing.h"

/* The kind of an operation: the low bits of its user data, whose other bits are the io's address. */
enum operation { OP_CANCEL, OP_RECEIVE, OP_SEND, OP_POLL, OP_WAKE, OP_TIMER, OP_MASK = 7 };

struct uring_driver {
	struct tcp_driver base;
	struct io_uring ring;
	int wake_fd;
	bool wake_armed, timer_armed;
	uint64_t timer_ns; /* the timer's time */
	struct __kernel_timespec timer_time;
	struct tcp_io_queue queue;
	bool spins;
	struct tcp_io *hot; /* received from directly while the group spins; NULL: none */
	bool yielded;       /* a source has set yield: the run must not sleep */
};

/* --- uring_ring.c --- */
/* The slots open, shut and wake of the driver. */
gw_status gw_tcp_uring_open(const struct tcp_driver_ops *ops, bool spins, struct tcp_driver **out);
void gw_tcp_uring_shut(struct tcp_driver *base);
void gw_tcp_uring_wake(struct tcp_driver *base);
/* Returns a free entry of the submission queue; submits the queue if it is full. */
struct io_uring_sqe *gw_tcp_uring_entry(struct uring_driver *driver);
/* Watches the wake descriptor, unless it is watched. */
void gw_tcp_uring_watch_wake(struct uring_driver *driver);
/* Submits the armed operations; waits for a completion until until_ns, unless one is queued. */
void gw_tcp_uring_submit(struct uring_driver *driver, uint64_t until_ns);

/* --- uring_io.c --- */
/* Names the io and the kind in the operation's user data. */
void gw_tcp_uring_mark(struct io_uring_sqe *sqe, struct tcp_io *io, enum operation operation);
/* Queues the cancel of the io's operation of this kind. */
void gw_tcp_uring_cancel(struct uring_driver *driver, struct tcp_io *io, enum operation operation);
/* Sends directly what the socket takes. That costs no more than queueing an operation, and saves its completion. The
 * rest becomes an operation of the ring. */
void gw_tcp_uring_send(struct uring_driver *driver, struct tcp_io *io);
/* Arms a receive, unless one is in progress or the io has no target. */
void gw_tcp_uring_receive(struct uring_driver *driver, struct tcp_io *io);
/* Closes a removed io that has no operation in progress. */
void gw_tcp_uring_let_go(struct uring_driver *driver, struct tcp_io *io);

/* --- uring_hot.c --- */
/* Makes the io the hot one, if it can be; false: its receive belongs into the ring. */
bool gw_tcp_uring_hot_begin(struct uring_driver *driver, struct tcp_io *io);
/* Arms the hot io's receive: the group will sleep, or another io is hot from now on. */
void gw_tcp_uring_hot_end(struct uring_driver *driver);
/* Receives from the hot io, as far as bytes have come; false: none have. */
bool gw_tcp_uring_hot_receive(struct uring_driver *driver);

#endif
