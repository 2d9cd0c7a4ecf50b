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
 * completes at the next tick of that thread's processor.
 *
 * The hot io: in a spinning group, the io that received last has no receive in the ring while the group spins. Each run
 * receives from it directly. A receive in the ring waits for its bytes: the kernel arms a poll, and a later entry into
 * the kernel takes the bytes. A direct receive costs one system call; often no bytes have come, but then the thread
 * would only spin. Before the group sleeps, the hot io's receive enters the ring. An io with a low-water mark is never
 * hot, since a direct receive would ignore the mark.
 *
 * Fails with GW_UNSUPPORTED if the kernel or its policy (seccomp, sysctl) does not offer io_uring.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "core/system/uring.h"
#include "transport/tcp/driver.h"
#include "transport/tcp/fd_passing.h"

#define BATCH_MAX  64
#define TURN_BYTES (1u << 20) /* bytes that one turn of an io sends directly */

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

/* Checks that the ring completes an operation: a policy may allow the set-up of a ring and forbid entering it. */
static int try_out(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	io_uring_prep_nop(io_uring_get_sqe(ring));
	int submitted = io_uring_submit_and_wait(ring, 1);
	if (submitted != 1)
		return submitted < 0 ? -submitted : EIO;
	int error = io_uring_peek_cqe(ring, &cqe);
	if (!error)
		io_uring_cqe_seen(ring, cqe);
	return -error;
}

static gw_status uring_missing(int error)
{
	const char *remedy = gw_uring_remedy(error, gw_uring_switch(""));
	if (error == EPERM || error == EACCES)
		return gw_fail_errno(GW_UNSUPPORTED, error, "io_uring is forbidden here (%s)", remedy);
	if (error == ENOSYS || error == EINVAL)
		return gw_fail_errno(GW_UNSUPPORTED, error,
				     "this kernel lacks io_uring features (Linux 5.19 or newer has them)");
	if (error == ENOMEM)
		return gw_fail(GW_LOCKED_MEMORY, "the limit of locked memory has no room for a ring of io_uring (%s)",
			       remedy);
	return gw_fail_errno(GW_UNSUPPORTED, error, "no io_uring");
}

static gw_status uring_open(bool spins, struct tcp_driver **out)
{
	*out = NULL;
	struct uring_driver *driver = gw_calloc(1, sizeof(*driver));
	if (!driver)
		return GW_NO_MEMORY;
	driver->base.ops = &gw_tcp_driver_uring;
	driver->spins = spins;
	tcp_queue_begin(&driver->queue);
	unsigned flags = IORING_SETUP_CQSIZE | (spins ? IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG : 0);
	struct io_uring_params parameters = {.flags = flags, .cq_entries = 8 * GW_URING_SOCKET_ENTRIES};
	gw_status status;
	int error = -gw_uring_init(GW_URING_SOCKET_ENTRIES, &driver->ring, &parameters);
	if (error) {
		status = uring_missing(error);
		goto free_driver;
	}
	/* Needed: waits with a time limit, fast poll, no lost completions. Linux 5.19 has them all. */
	const unsigned needed = IORING_FEAT_NODROP | IORING_FEAT_FAST_POLL | IORING_FEAT_EXT_ARG;
	error = (parameters.features & needed) == needed ? try_out(&driver->ring) : ENOSYS;
	if (error) {
		status = uring_missing(error);
		goto exit_ring;
	}
	driver->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (driver->wake_fd < 0) {
		status = gw_fail_errno(GW_IO, errno, "eventfd");
		goto exit_ring;
	}
	*out = &driver->base;
	return GW_OK;

exit_ring:
	gw_uring_exit(&driver->ring);
free_driver:
	gw_free(driver);
	return status;
}

static void uring_shut(struct tcp_driver *base)
{
	struct uring_driver *driver = (struct uring_driver *)base;
	gw_uring_exit(&driver->ring);
	close(driver->wake_fd);
	gw_free(driver);
}

/* Returns a free entry of the submission queue; submits the queue if it is full. */
static struct io_uring_sqe *uring_entry(struct uring_driver *driver)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&driver->ring);
	while (!sqe) {
		io_uring_submit(&driver->ring);
		sqe = io_uring_get_sqe(&driver->ring);
	}
	return sqe;
}

static void uring_mark(struct io_uring_sqe *sqe, struct tcp_io *io, enum operation operation)
{
	io_uring_sqe_set_data64(sqe, (uintptr_t)io | (uintptr_t)operation);
}

static void uring_cancel(struct uring_driver *driver, struct tcp_io *io, enum operation operation)
{
	struct io_uring_sqe *sqe = uring_entry(driver);
	io_uring_prep_cancel64(sqe, (uintptr_t)io | (uintptr_t)operation, 0);
	io_uring_sqe_set_data64(sqe, OP_CANCEL);
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

/* Asks the source and prepares its message; false: nothing to send now. */
static bool prepare_send(struct tcp_io *io, size_t *pieces, bool *fd_passing)
{
	if (io->sending || io->removed)
		return false;
	io->yield = false;
	*pieces = io->events->source(io, io->send_iov);
	if (*pieces == 0 || io->removed)
		return false;
	io->send_message = (struct msghdr){.msg_iov = io->send_iov, .msg_iovlen = *pieces};
	*fd_passing = io->fd_passing && gw_tcp_fd_passing_send(io->fd_passing, &io->send_message);
	return true;
}

/* Sends directly; true: the socket took some bytes. */
static bool send_now(struct tcp_io *io, size_t pieces, bool fd_passing, size_t *budget)
{
	const int flags = MSG_NOSIGNAL | MSG_DONTWAIT;
	ssize_t n = pieces == 1 && !fd_passing ? send(io->fd, io->send_iov[0].iov_base, io->send_iov[0].iov_len, flags)
					       : sendmsg(io->fd, &io->send_message, flags);
	if (n <= 0)
		return false; /* a lasting error is reported by the operation that follows */
	if (fd_passing)
		gw_tcp_fd_passing_sent(io->fd_passing);
	*budget -= (size_t)n < *budget ? (size_t)n : *budget;
	io->events->sent(io, n);
	return true;
}

/* Sends directly what the socket takes. That costs no more than queueing an operation, and saves its completion. The
 * rest becomes an operation of the ring. */
static void arm_send(struct uring_driver *driver, struct tcp_io *io)
{
	size_t pieces, budget = TURN_BYTES;
	bool fd_passing;
	while (prepare_send(io, &pieces, &fd_passing)) {
		if (send_now(io, pieces, fd_passing, &budget)) {
			if (budget && !io->yield)
				continue;
			tcp_queue_add(&driver->queue, io);
			return;
		}
		struct io_uring_sqe *sqe = uring_entry(driver);
		if (pieces == 1 && !fd_passing)
			io_uring_prep_send(sqe, io->fd, io->send_iov[0].iov_base, io->send_iov[0].iov_len,
					   MSG_NOSIGNAL | MSG_WAITALL);
		else
			io_uring_prep_sendmsg(sqe, io->fd, &io->send_message, MSG_NOSIGNAL | MSG_WAITALL);
		uring_mark(sqe, io, OP_SEND);
		io->sending = true;
		io->under_way++;
	}
}

static void arm_receive(struct uring_driver *driver, struct tcp_io *io)
{
	if (io->receiving && !io->removed)
		gw_tcp_low_water(io);
	if (io->receiving || io->removed)
		return;
	size_t pieces = io->events->target(io, io->receive_iov);
	if (pieces == 0 || io->removed)
		return;
	struct io_uring_sqe *sqe = uring_entry(driver);
	if (pieces > 1 || io->fd_passing)
		io->receive_message = (struct msghdr){.msg_iov = io->receive_iov, .msg_iovlen = pieces};
	bool fd_passing = io->fd_passing && gw_tcp_fd_passing_receive(io->fd_passing, &io->receive_message);
	if (pieces == 1 && !fd_passing) {
		io_uring_prep_recv(sqe, io->fd, io->receive_iov[0].iov_base, io->receive_iov[0].iov_len, 0);
	} else {
		io_uring_prep_recvmsg(sqe, io->fd, &io->receive_message, MSG_CMSG_CLOEXEC);
	}
	gw_tcp_low_water(io);
	/* With a low-water mark, wait until that many bytes have arrived, even if some have arrived already. */
	if (!io->readable || io->low_water > 1)
		sqe->ioprio |= IORING_RECVSEND_POLL_FIRST;
	uring_mark(sqe, io, OP_RECEIVE);
	io->receiving = true;
	io->under_way++;
}

static void uring_let_go(struct uring_driver *driver, struct tcp_io *io)
{
	tcp_queue_drop(&driver->queue, io);
	gw_socket_close(io->fd);
	io->fd = -1;
	io->events->gone(io);
}

/* Arms the hot io's receive: the group will sleep, or another io is hot from now on. */
static void cool_down(struct uring_driver *driver)
{
	struct tcp_io *io = driver->hot;
	driver->hot = NULL;
	if (!io)
		return;
	bool busy = io->busy;
	io->busy = true;
	arm_receive(driver, io);
	io->busy = busy;
	if (io->removed && !io->under_way && !io->busy)
		uring_let_go(driver, io);
}

static bool can_be_hot(const struct uring_driver *driver, const struct tcp_io *io)
{
	return driver->spins && !io->removed && !io->receiving && !io->fd_passing && io->low_water <= 1;
}

static void uring_arm(struct uring_driver *driver, struct tcp_io *io)
{
	if (io->watch) {
		if (io->watching || io->removed)
			return;
		struct io_uring_sqe *sqe = uring_entry(driver);
		io_uring_prep_poll_add(sqe, io->fd, (unsigned)io->watch);
		uring_mark(sqe, io, OP_POLL);
		io->watching = true;
		io->under_way++;
		return;
	}
	arm_send(driver, io);
	if (can_be_hot(driver, io)) {
		if (driver->hot != io)
			cool_down(driver);
		driver->hot = io;
	} else {
		if (driver->hot == io)
			driver->hot = NULL;
		arm_receive(driver, io);
	}
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
	arm_send(driver, io);
	io->busy = false;
	if (io->removed && !io->under_way) {
		uring_let_go(driver, io);
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
	uring_cancel(driver, io, OP_RECEIVE);
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
		shutdown(io->fd, SHUT_RDWR);
		if (io->receiving)
			uring_cancel(driver, io, OP_RECEIVE);
		if (io->sending)
			uring_cancel(driver, io, OP_SEND);
		if (io->watching)
			uring_cancel(driver, io, OP_POLL);
		io_uring_submit(&driver->ring);
	} else if (!io->busy) {
		uring_let_go(driver, io);
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

/* Returns whether the completion is one of an io: a timer or a wake is no reason to spin. */
static bool uring_handle(struct uring_driver *driver, uint64_t data, int result, uint32_t flags, bool *woken)
{
	enum operation operation = (enum operation)(data & OP_MASK);
	struct tcp_io *io = (struct tcp_io *)(uintptr_t)(data & ~(uint64_t)OP_MASK);
	uint64_t ignored;
	if (operation == OP_CANCEL)
		return false;
	if (operation == OP_WAKE) {
		driver->wake_armed = false;
		*woken |= read(driver->wake_fd, &ignored, sizeof(ignored)) == sizeof(ignored);
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
			uring_let_go(driver, io);
	} else if (!io->watch || result == -ECANCELED) {
		tcp_queue_add(&driver->queue, io);
	}
	return true;
}

static void arm_queued(struct uring_driver *driver)
{
	/* One round: an io that is queued again waits until completions have been handled. */
	for (uint32_t turns = driver->queue.count; turns && driver->queue.first; turns--) {
		struct tcp_io *io = tcp_queue_take(&driver->queue);
		io->busy = true;
		uring_arm(driver, io);
		io->busy = false;
		if (io->removed && !io->under_way)
			uring_let_go(driver, io);
	}
	if (!driver->wake_armed) {
		struct io_uring_sqe *sqe = uring_entry(driver);
		io_uring_prep_poll_add(sqe, driver->wake_fd, POLLIN);
		io_uring_sqe_set_data64(sqe, OP_WAKE);
		driver->wake_armed = true;
	}
}

/* Sets the timer so that a wait ends at until_ns or earlier. A timer that has already fired cannot be moved; it ends
 * the wait too, and is set again for the next wait. */
static void uring_set_timer(struct uring_driver *driver, uint64_t until_ns)
{
	if (until_ns == GW_NO_DEADLINE || (driver->timer_armed && until_ns >= driver->timer_ns))
		return;
	driver->timer_ns = until_ns;
	const struct timespec until = gw_timespec(gw_monotonic_of(until_ns));
	driver->timer_time = (struct __kernel_timespec){.tv_sec = until.tv_sec, .tv_nsec = until.tv_nsec};
	struct io_uring_sqe *sqe = uring_entry(driver);
	if (driver->timer_armed) {
		io_uring_prep_timeout_update(sqe, &driver->timer_time, OP_TIMER, IORING_TIMEOUT_ABS);
		io_uring_sqe_set_data64(sqe, OP_CANCEL);
	} else {
		io_uring_prep_timeout(sqe, &driver->timer_time, 0, IORING_TIMEOUT_ABS);
		io_uring_sqe_set_data64(sqe, OP_TIMER);
	}
	driver->timer_armed = true;
}

/* Submits the armed operations; waits for a completion unless one is queued. */
static void submit_and_wait(struct uring_driver *driver, uint64_t until_ns)
{
	struct io_uring_cqe *cqe;
	if (until_ns == 0 || io_uring_cq_ready(&driver->ring)) {
		if (io_uring_sq_ready(&driver->ring))
			io_uring_submit(&driver->ring);
		else if (!io_uring_cq_ready(&driver->ring))
			io_uring_peek_cqe(&driver->ring, &cqe); /* fetches overflowed and deferred completions */
		return;
	}
	uring_set_timer(driver, until_ns);
	io_uring_submit_and_wait(&driver->ring, 1);
}

/* Receives from the hot io, as far as bytes have come; false: none have. */
static bool receive_hot(struct uring_driver *driver)
{
	struct tcp_io *io = driver->hot;
	if (!io || io->queued)
		return false;
	io->busy = true;
	size_t pieces = io->events->target(io, io->receive_iov), wanted = 0;
	for (size_t i = 0; i < pieces; i++)
		wanted += io->receive_iov[i].iov_len;
	ssize_t n = -EAGAIN;
	if (pieces && !io->removed) {
		struct msghdr message = {.msg_iov = io->receive_iov, .msg_iovlen = pieces};
		gw_tcp_low_water(io);
		n = pieces == 1 ? recv(io->fd, io->receive_iov[0].iov_base, wanted, MSG_DONTWAIT)
				: recvmsg(io->fd, &message, MSG_DONTWAIT);
		n = n < 0 ? -errno : n;
	}
	bool came = n != -EAGAIN && n != -EWOULDBLOCK && n != -EINTR;
	if (came) {
		io->readable = n > 0 && (size_t)n == wanted;
		io->events->received(io, n);
	}
	io->busy = false;
	if (!pieces && driver->hot == io)
		driver->hot = NULL; /* until its next kick */
	if (io->removed && !io->under_way)
		uring_let_go(driver, io);
	else if (!io->removed && came)
		tcp_queue_add(&driver->queue, io);
	return came;
}

static bool uring_run(struct tcp_driver *base, uint64_t until_ns, bool *woken)
{
	struct uring_driver *driver = (struct uring_driver *)base;
	struct io_uring_cqe *cqe;
	arm_queued(driver);
	uint64_t wait = driver->yielded || driver->queue.first ? 0 : until_ns;
	if (wait)
		cool_down(driver);
	submit_and_wait(driver, wait);
	driver->yielded = false;
	bool worked = driver->queue.first != NULL;
	worked |= receive_hot(driver);
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
	if (driver->queue.count > io->queued || (driver->hot && driver->hot != io) || io->under_way || io->removed ||
	    !driver->wake_armed || io_uring_sq_ready(&driver->ring) || io_uring_cq_ready(&driver->ring))
		return TCP_AWAIT_NOT;
	enum tcp_awaited outcome = gw_tcp_await(io, &n, &full);
	if (outcome != TCP_AWAIT_HANDLED)
		return outcome;
	io->busy = true;
	io->readable = full;
	io->events->received(io, n);
	io->busy = false;
	if (io->removed && !io->under_way)
		uring_let_go(driver, io);
	else if (!io->removed)
		tcp_queue_add(&driver->queue, io);
	return outcome;
}

static int uring_wait_fd(struct tcp_driver *base)
{
	struct uring_driver *driver = (struct uring_driver *)base;
	cool_down(driver);
	if (io_uring_sq_ready(&driver->ring) && !driver->queue.first)
		io_uring_submit(&driver->ring);
	bool ready = driver->queue.first || io_uring_sq_ready(&driver->ring) || io_uring_cq_ready(&driver->ring);
	return ready ? -1 : driver->ring.ring_fd;
}

static void uring_wake(struct tcp_driver *base)
{
	uint64_t one = 1;
	(void)!write(((struct uring_driver *)base)->wake_fd, &one, sizeof(one));
}

const struct tcp_driver_ops gw_tcp_driver_uring = {
	.name = "io_uring",
	.open = uring_open,
	.shut = uring_shut,
	.add = uring_add,
	.kick = uring_kick,
	.flush = uring_flush,
	.stop_receive = uring_stop_receive,
	.remove = uring_remove,
	.run = uring_run,
	.await = uring_await,
	.wait_fd = uring_wait_fd,
	.wake = uring_wake,
};
