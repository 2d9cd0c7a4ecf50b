/* The io_uring driver. Each io has one receive in progress, submitted together with the wait for the next completion.
 * Bytes are sent by a direct system call; only those that the socket does not take at once become an operation. So an
 * answer and the next question cost two system calls.
 *
 *   kick ─▶ queue ─▶ arm: source ─▶ send, or SEND; target ─▶ RECV ─▶ (submit, wait) ─▶ completion ─▶ received / sent …
 *
 * Blocking: sockets are set to blocking, since io_uring returns EAGAIN for non-blocking ones. After a receive that
 * emptied the socket, the next receive first waits for bytes, which saves a futile attempt.
 *
 * Removal: the driver cancels the io's operations and waits for their completions. Only then are descriptor and memory
 * released. If a source yields, the run does not sleep, and other ios' completions are handled before the source is
 * asked again.
 *
 * Threads: a poll group may move to another thread, and the kernel cancels a thread's operations when the thread ends.
 * So an operation that ends with ECANCELED, although the driver has not cancelled it, is armed again. For the same
 * reason the ring is not set up for a single issuer.
 *
 * Only groups that spin use cooperative task running (IORING_SETUP_COOP_TASKRUN). An operation completes in the thread
 * that armed it. If the group has moved, that thread may compute without entering the kernel, while another thread
 * waits for the completion. Without the flag the kernel interrupts the computing thread; it never interrupts a thread
 * that waits in the kernel. But the kernel would interrupt a spinning thread for every completion (30 us more for one
 * row), so rings of spinning groups have the flag. In such a ring, an operation of a thread that left the group
 * completes at the next tick of that thread's processor. In a spinning group, one io is received from directly
 * (uring_hot.c).
 *
 * Fails with GW_UNSUPPORTED if the kernel or its policy (seccomp, sysctl) does not offer io_uring.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "transport/tcp/driver/uring.h"

#define BATCH_MAX 64

static gw_status uring_open(bool spins, struct tcp_driver **out)
{
	return gw_tcp_uring_open(&gw_tcp_driver_uring, spins, out);
}

static gw_status uring_add(struct tcp_driver *base, struct tcp_io *io)
{
	(void)base;
	if (io->watch != POLLIN) { /* a listening socket is only watched; it stays non-blocking for accept */
		int flags = fcntl(io->fd, F_GETFL);
		if (flags < 0 || fcntl(io->fd, F_SETFL, flags & ~O_NONBLOCK) != 0)
			return gw_fail_errno(GW_IO, errno, "fcntl");
	}
	return GW_OK;
}

static void uring_kick(struct tcp_driver *base, struct tcp_io *io)
{
	if (!io->removed)
		tcp_queue_add(&((struct uring_driver *)base)->queue, io);
}

static void uring_arm(struct uring_driver *driver, struct tcp_io *io)
{
	if (io->watch) {
		if (io->watching || io->removed)
			return;
		struct io_uring_sqe *sqe = gw_tcp_uring_entry(driver);
		io_uring_prep_poll_add(sqe, io->fd, (unsigned)io->watch);
		gw_tcp_uring_mark(sqe, io, OP_POLL);
		io->watching = true;
		io->under_way++;
		return;
	}
	gw_tcp_uring_send(driver, io);
	if (!gw_tcp_uring_hot_begin(driver, io))
		gw_tcp_uring_receive(driver, io);
	driver->yielded |= io->yield;
	io->yield = false;
}

static void uring_flush(struct tcp_driver *base, struct tcp_io *io)
{
	struct uring_driver *driver = (struct uring_driver *)base;
	if (io->busy || io->watch || io->removed) {
		uring_kick(base, io);
		return;
	}
	io->busy = true;
	gw_tcp_uring_send(driver, io);
	io->busy = false;
	if (io->removed && !io->under_way) {
		gw_tcp_uring_let_go(driver, io);
		return;
	}
	driver->yielded |= io->yield;
	io->yield = false;
	if (io->sending)
		io_uring_submit(&driver->ring);
	if (io->receiving)
		gw_tcp_low_water(io);
	else
		tcp_queue_add(&driver->queue, io); /* the next run arms a receive, unless the io is awaited */
}

static void uring_stop_receive(struct tcp_driver *base, struct tcp_io *io)
{
	struct uring_driver *driver = (struct uring_driver *)base;
	if (!io->receiving || io->cancelling || io->removed)
		return;
	io->cancelling = true;
	gw_tcp_uring_cancel(driver, io, OP_RECEIVE);
	io_uring_submit(&driver->ring);
}

static void uring_remove(struct tcp_driver *base, struct tcp_io *io)
{
	struct uring_driver *driver = (struct uring_driver *)base;
	if (io->removed)
		return;
	io->removed = true;
	if (driver->hot == io)
		driver->hot = NULL;
	if (io->under_way) {
		/* Notify the peer before the operations are reaped. */
		if (!io->shared)
			shutdown(io->fd, SHUT_RDWR);
		if (io->receiving)
			gw_tcp_uring_cancel(driver, io, OP_RECEIVE);
		if (io->sending)
			gw_tcp_uring_cancel(driver, io, OP_SEND);
		if (io->watching)
			gw_tcp_uring_cancel(driver, io, OP_POLL);
		io_uring_submit(&driver->ring);
	} else if (!io->busy) {
		gw_tcp_uring_let_go(driver, io);
	}
}

static void uring_received(struct tcp_io *io, int result, uint32_t flags)
{
	bool asked = io->cancelling;
	io->receiving = io->cancelling = false;
	if (io->fd_passing && result > 0 && io->receive_message.msg_control)
		gw_tcp_fd_passing_received(io->fd_passing, &io->receive_message);
	if (io->removed)
		return;
	/* If the receive did not empty the socket, the next one need not wait first. */
	io->readable = result > 0 && (flags & IORING_CQE_F_SOCK_NONEMPTY);
	if (result == -EINTR || result == -EAGAIN || (result == -ECANCELED && !asked))
		result = -ECANCELED;
	io->events->received(io, result);
}

static void uring_sent(struct tcp_io *io, int result)
{
	io->sending = false;
	if (io->fd_passing && result > 0 && io->send_message.msg_control)
		gw_tcp_fd_passing_sent(io->fd_passing);
	if (!io->removed && result != -EINTR && result != -EAGAIN && result != -ECANCELED)
		io->events->sent(io, result);
}

/* True: the completion is one of an io. A timer or a wake is no reason to spin. */
static bool uring_handle(struct uring_driver *driver, uint64_t data, int result, uint32_t flags, bool *woken)
{
	enum operation operation = (enum operation)(data & OP_MASK);
	struct tcp_io *io = (struct tcp_io *)(uintptr_t)(data & ~(uint64_t)OP_MASK);
	eventfd_t ignored;
	if (operation == OP_CANCEL)
		return false;
	if (operation == OP_WAKE) {
		driver->wake_armed = false;
		*woken |= eventfd_read(driver->wake_fd, &ignored) == 0;
		return false;
	}
	if (operation == OP_TIMER) {
		driver->timer_armed = false;
		return false;
	}
	io->under_way--;
	io->busy = true;
	if (operation == OP_RECEIVE) {
		uring_received(io, result, flags);
	} else if (operation == OP_SEND) {
		uring_sent(io, result);
	} else {
		io->watching = false;
		if (!io->removed && result != -ECANCELED)
			io->events->ready(io);
	}
	io->busy = false;
	if (io->removed) {
		if (!io->under_way)
			gw_tcp_uring_let_go(driver, io);
	} else if (!io->watch || result == -ECANCELED) {
		tcp_queue_add(&driver->queue, io);
	}
	return true;
}

static void arm_queued(struct uring_driver *driver)
{
	/* One round: an io that is queued again waits until completions have been handled. */
	struct tcp_io_round round = tcp_round_begin(&driver->queue);
	for (struct tcp_io *io; (io = tcp_round_next(&round, &driver->queue));) {
		io->busy = true;
		uring_arm(driver, io);
		io->busy = false;
		if (io->removed && !io->under_way)
			gw_tcp_uring_let_go(driver, io);
	}
	gw_tcp_uring_watch_wake(driver);
}

static bool uring_run(struct tcp_driver *base, uint64_t until_ns, bool *woken)
{
	struct uring_driver *driver = (struct uring_driver *)base;
	struct io_uring_cqe *cqe;
	arm_queued(driver);
	uint64_t wait = driver->yielded || tcp_queue_count(&driver->queue) ? 0 : until_ns;
	if (wait)
		gw_tcp_uring_hot_end(driver);
	gw_tcp_uring_submit(driver, wait);
	driver->yielded = false;
	bool worked = tcp_queue_count(&driver->queue) > 0;
	worked |= gw_tcp_uring_hot_receive(driver);
	for (int i = 0; i < BATCH_MAX && io_uring_cq_ready(&driver->ring); i++) {
		if (io_uring_peek_cqe(&driver->ring, &cqe))
			break;
		uint64_t data = cqe->user_data;
		int result = cqe->res;
		uint32_t flags = cqe->flags;
		io_uring_cqe_seen(&driver->ring, cqe);
		worked |= uring_handle(driver, data, result, flags, woken);
	}
	return worked;
}

/* Any other completion of the ring interrupts the receive, for example that of the wake descriptor. Exception: a
 * completion of an operation that another thread armed. */
static enum tcp_awaited uring_await(struct tcp_driver *base, struct tcp_io *io)
{
	struct uring_driver *driver = (struct uring_driver *)base;
	ssize_t n;
	bool full;
	if (tcp_queue_count(&driver->queue) > io->queued || (driver->hot && driver->hot != io) || io->under_way ||
	    io->removed || !driver->wake_armed || io_uring_sq_ready(&driver->ring) || io_uring_cq_ready(&driver->ring))
		return TCP_AWAIT_NOT;
	enum tcp_awaited outcome = gw_tcp_await(io, &n, &full);
	if (outcome != TCP_AWAIT_HANDLED)
		return outcome;
	io->busy = true;
	io->readable = full;
	io->events->received(io, n);
	io->busy = false;
	if (io->removed && !io->under_way)
		gw_tcp_uring_let_go(driver, io);
	else if (!io->removed)
		tcp_queue_add(&driver->queue, io);
	return outcome;
}

static int uring_wait_fd(struct tcp_driver *base)
{
	struct uring_driver *driver = (struct uring_driver *)base;
	gw_tcp_uring_hot_end(driver);
	if (io_uring_sq_ready(&driver->ring) && !tcp_queue_count(&driver->queue))
		io_uring_submit(&driver->ring);
	bool ready =
		tcp_queue_count(&driver->queue) || io_uring_sq_ready(&driver->ring) || io_uring_cq_ready(&driver->ring);
	return ready ? -1 : driver->ring.ring_fd;
}

const struct tcp_driver_ops gw_tcp_driver_uring = {
	.name = "io_uring",
	.open = uring_open,
	.shut = gw_tcp_uring_shut,
	.add = uring_add,
	.kick = uring_kick,
	.flush = uring_flush,
	.stop_receive = uring_stop_receive,
	.remove = uring_remove,
	.run = uring_run,
	.await = uring_await,
	.wait_fd = uring_wait_fd,
	.wake = gw_tcp_uring_wake,
};
