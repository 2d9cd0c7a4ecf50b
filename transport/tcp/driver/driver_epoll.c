/* The epoll driver. Sockets are watched edge-triggered from their add to their removal. The driver remembers that a
 * socket is readable or writable until the kernel reports otherwise. Ready ios wait in a queue and take turns of at
 * most TCP_TURN_BYTES, so that one busy connection does not keep the others waiting. Fails when descriptors run out.
 */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "core/system/syscalls.h"
#include "transport/tcp/driver/driver.h"
#include "transport/tcp/driver/fd_passing.h"

#define EVENTS_MAX 64

struct epoll_driver {
	struct tcp_driver base;
	int epoll_fd, wake_fd, timer_fd;
	uint64_t timer_ns; /* the timer's time; GW_NO_DEADLINE: not set */
	struct tcp_io_queue queue;
};

static gw_status epoll_open(bool spins, struct tcp_driver **out)
{
	(void)spins;
	*out = NULL;
	struct epoll_driver *driver = gw_calloc(1, sizeof(*driver));
	if (!driver)
		return GW_NO_MEMORY;
	driver->base.ops = &gw_tcp_driver_epoll;
	tcp_queue_begin(&driver->queue);
	int error;
	driver->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (driver->epoll_fd < 0) {
		error = errno;
		goto free_driver;
	}
	driver->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (driver->wake_fd < 0) {
		error = errno;
		goto close_epoll;
	}
	driver->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	driver->timer_ns = GW_NO_DEADLINE;
	if (driver->timer_fd < 0) {
		error = errno;
		goto close_wake;
	}
	struct epoll_event wake = {.events = EPOLLIN}, timer = {.events = EPOLLIN, .data.ptr = driver};
	if (epoll_ctl(driver->epoll_fd, EPOLL_CTL_ADD, driver->wake_fd, &wake) != 0 ||
	    epoll_ctl(driver->epoll_fd, EPOLL_CTL_ADD, driver->timer_fd, &timer) != 0) {
		error = errno;
		goto close_timer;
	}
	*out = &driver->base;
	return GW_OK;

close_timer:
	close(driver->timer_fd);
close_wake:
	close(driver->wake_fd);
close_epoll:
	close(driver->epoll_fd);
free_driver:
	gw_free(driver);
	return gw_fail_errno(GW_IO, error, "epoll");
}

static void epoll_shut(struct tcp_driver *base)
{
	struct epoll_driver *driver = (struct epoll_driver *)base;
	close(driver->timer_fd);
	close(driver->wake_fd);
	close(driver->epoll_fd);
	gw_free(driver);
}

static gw_status epoll_add(struct tcp_driver *base, struct tcp_io *io)
{
	struct epoll_driver *driver = (struct epoll_driver *)base;
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = io};
	if (epoll_ctl(driver->epoll_fd, EPOLL_CTL_ADD, io->fd, &event) != 0)
		return gw_fail_errno(GW_IO, errno, "epoll_ctl");
	return GW_OK;
}

static void epoll_kick(struct tcp_driver *base, struct tcp_io *io)
{
	if (io->busy)
		io->kicked = true;
	else if (!io->removed)
		tcp_queue_add(&((struct epoll_driver *)base)->queue, io);
}

/* False: nothing more to do now. */
static bool send_once(struct tcp_io *io, size_t *budget)
{
	if (!io->writable || io->removed)
		return false;
	size_t pieces = io->events->source(io, io->send_iov);
	if (pieces == 0 || io->removed)
		return false;
	size_t wanted = 0;
	for (size_t i = 0; i < pieces; i++)
		wanted += io->send_iov[i].iov_len;
	struct msghdr message = {.msg_iov = io->send_iov, .msg_iovlen = pieces};
	bool fd_passing = io->fd_passing && gw_tcp_fd_passing_send(io->fd_passing, &message);
	ssize_t n = pieces == 1 && !fd_passing
			    ? send(io->fd, io->send_iov[0].iov_base, wanted, MSG_NOSIGNAL | MSG_DONTWAIT)
			    : sendmsg(io->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0 && errno == EINTR)
		return true;
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
		io->writable = false;
		return false;
	}
	if (fd_passing && n > 0)
		gw_tcp_fd_passing_sent(io->fd_passing);
	/* A partial send filled the socket: the next edge reports new room. */
	if (n >= 0 && (size_t)n < wanted)
		io->writable = false;
	if (n > 0)
		*budget -= (size_t)n < *budget ? (size_t)n : *budget;
	io->events->sent(io, n < 0 ? -errno : n);
	return n > 0;
}

static bool receive_once(struct tcp_io *io, size_t *budget)
{
	if (!io->readable || io->removed)
		return false;
	size_t pieces = io->events->target(io, io->receive_iov);
	if (pieces == 0 || io->removed)
		return false;
	size_t wanted = 0;
	for (size_t i = 0; i < pieces; i++)
		wanted += io->receive_iov[i].iov_len;
	struct msghdr message = {.msg_iov = io->receive_iov, .msg_iovlen = pieces};
	bool fd_passing = io->fd_passing && gw_tcp_fd_passing_receive(io->fd_passing, &message);
	ssize_t n = pieces == 1 && !fd_passing ? recv(io->fd, io->receive_iov[0].iov_base, wanted, MSG_DONTWAIT)
					       : recvmsg(io->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0 && errno == EINTR)
		return true;
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
		io->readable = false;
		return false;
	}
	if (fd_passing && n > 0)
		gw_tcp_fd_passing_received(io->fd_passing, &message);
	/* A short receive emptied the socket. Exception: after the peer has closed, no further edge would report the
	 * end of the stream. */
	if (n > 0 && (size_t)n < wanted && !io->hung_up && !fd_passing) /* passed descriptors end a receive early */
		io->readable = false;
	if (n <= 0)
		io->readable = false;
	else
		*budget -= (size_t)n < *budget ? (size_t)n : *budget;
	io->events->received(io, n < 0 ? -errno : n);
	return n > 0;
}

/* Callbacks may remove the io. It is released only here, when no callback is on the stack. */
static void epoll_release(struct epoll_driver *driver, struct tcp_io *io)
{
	tcp_queue_drop(&driver->queue, io);
	epoll_ctl(driver->epoll_fd, EPOLL_CTL_DEL, io->fd, NULL);
	gw_tcp_io_close(io);
	io->fd = -1;
	io->events->gone(io);
}

/* A callback may kick its io: the next round of the loop below sees this, since a round follows every callback. */
static void epoll_serve(struct epoll_driver *driver, struct tcp_io *io)
{
	size_t budget = TCP_TURN_BYTES;
	bool more = false;
	io->busy = true;
	io->kicked = io->yield = false;
	if (io->watch) {
		bool *flag = io->watch == POLLIN ? &io->readable : &io->writable;
		if (*flag || io->hung_up) {
			*flag = io->watch == POLLOUT;
			io->events->ready(io);
		}
		more = io->kicked;
	} else {
		do {
			more = receive_once(io, &budget);
			more |= send_once(io, &budget);
		} while (more && budget && !io->yield && !tcp_turn_ends(io, budget));
	}
	io->busy = false;
	if (io->removed) {
		epoll_release(driver, io);
		return;
	}
	if (more || io->yield)
		tcp_queue_add(&driver->queue, io);
	if (!io->readable)
		gw_tcp_low_water(io);
}

static void epoll_flush(struct tcp_driver *base, struct tcp_io *io)
{
	if (io->busy || io->watch) {
		epoll_kick(base, io);
		return;
	}
	size_t budget = TCP_TURN_BYTES;
	io->busy = true;
	io->kicked = false;
	while (budget && send_once(io, &budget))
		;
	io->busy = false;
	if (io->removed)
		epoll_release((struct epoll_driver *)base, io);
	else if (!budget || io->kicked)
		epoll_kick(base, io);
}

/* No receive is ever in progress between two calls. */
static void epoll_stop_receive(struct tcp_driver *base, struct tcp_io *io)
{
	(void)base;
	(void)io;
}

static void epoll_remove(struct tcp_driver *base, struct tcp_io *io)
{
	if (io->removed)
		return;
	io->removed = true;
	if (!io->busy)
		epoll_release((struct epoll_driver *)base, io);
}

int gw_epoll_wait(int fd, struct epoll_event *events, int max, uint64_t timeout_ns)
{
	if (timeout_ns == 0)
		return epoll_wait(fd, events, max, 0);
	if (timeout_ns > GW_NO_DEADLINE / 2)
		return epoll_wait(fd, events, max, -1);
	struct timespec time = gw_timespec(timeout_ns);
	int n = epoll_pwait2(fd, events, max, &time, NULL);
	if (n < 0 && gw_syscall_missing(errno)) { /* Linux before 5.11 */
		uint64_t ms = (timeout_ns + GW_NS_PER_MS - 1) / GW_NS_PER_MS;
		n = epoll_wait(fd, events, max, ms > 1000000 ? 1000000 : (int)ms);
	}
	return n;
}

/* Sets the timer so that a wait ends at until_ns or earlier. */
static void epoll_set_timer(struct epoll_driver *driver, uint64_t until_ns)
{
	if (until_ns >= driver->timer_ns)
		return;
	struct itimerspec time = {.it_value = gw_timespec(gw_monotonic_of(until_ns))};
	if (timerfd_settime(driver->timer_fd, TFD_TIMER_ABSTIME, &time, NULL) == 0)
		driver->timer_ns = until_ns;
}

static bool epoll_run(struct tcp_driver *base, uint64_t until_ns, bool *woken)
{
	struct epoll_driver *driver = (struct epoll_driver *)base;
	struct epoll_event events[EVENTS_MAX];
	bool sleep = until_ns && !tcp_queue_count(&driver->queue);
	if (sleep)
		epoll_set_timer(driver, until_ns);
	int n = epoll_wait(driver->epoll_fd, events, EVENTS_MAX, sleep ? -1 : 0);
	for (int i = 0; i < n; i++) {
		struct tcp_io *io = events[i].data.ptr;
		eventfd_t ignored;
		if (!io) {
			eventfd_read(driver->wake_fd, &ignored);
			*woken = true;
			continue;
		}
		if (events[i].data.ptr == driver) {
			(void)!read(driver->timer_fd, &ignored, sizeof(ignored));
			driver->timer_ns = GW_NO_DEADLINE;
			continue;
		}
		uint32_t bits = events[i].events;
		io->hung_up |= (bits & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
		io->readable |= (bits & EPOLLIN) != 0 || io->hung_up;
		io->writable |= (bits & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0;
		tcp_queue_add(&driver->queue, io);
	}
	bool worked = tcp_queue_count(&driver->queue) > 0;
	/* One round: ios that are queued meanwhile wait for the next epoll_wait. A served io may remove other ios,
	 * which then leave the queue. */
	struct tcp_io_round round = tcp_round_begin(&driver->queue);
	for (struct tcp_io *io; (io = tcp_round_next(&round, &driver->queue));)
		epoll_serve(driver, io);
	return worked;
}

/* The epoll set still watches the io. So the next run may find the edge of bytes that were received here, or a new
 * edge. */
static enum tcp_awaited epoll_await(struct tcp_driver *base, struct tcp_io *io)
{
	struct epoll_driver *driver = (struct epoll_driver *)base;
	ssize_t n;
	bool full;
	if (tcp_queue_count(&driver->queue) || io->readable || io->removed)
		return TCP_AWAIT_NOT;
	enum tcp_awaited outcome = gw_tcp_await(io, &n, &full);
	if (outcome != TCP_AWAIT_HANDLED)
		return outcome;
	io->busy = true;
	io->kicked = false;
	io->readable = full;
	io->events->received(io, n);
	io->busy = false;
	if (io->removed)
		epoll_release(driver, io);
	else if (io->kicked || full)
		tcp_queue_add(&driver->queue, io);
	return outcome;
}

static int epoll_wait_fd(struct tcp_driver *base)
{
	const struct epoll_driver *driver = (struct epoll_driver *)base;
	return tcp_queue_count(&driver->queue) ? -1 : driver->epoll_fd;
}

static void epoll_wake(struct tcp_driver *base)
{
	eventfd_write(((struct epoll_driver *)base)->wake_fd, 1);
}

const struct tcp_driver_ops gw_tcp_driver_epoll = {
	.name = "epoll",
	.open = epoll_open,
	.shut = epoll_shut,
	.add = epoll_add,
	.kick = epoll_kick,
	.flush = epoll_flush,
	.stop_receive = epoll_stop_receive,
	.remove = epoll_remove,
	.run = epoll_run,
	.await = epoll_await,
	.wait_fd = epoll_wait_fd,
	.wake = epoll_wake,
};
