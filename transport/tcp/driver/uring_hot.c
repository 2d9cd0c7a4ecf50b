/* The hot io of a spinning group.
 *
 * The io that received last has no receive in the ring while the group spins. Each run receives from it directly. A
 * receive in the ring waits for its bytes: the kernel arms a poll, and a later entry into the kernel takes the bytes. A
 * direct receive costs one system call; often no bytes have come, but then the thread would only spin. Before the group
 * sleeps, the hot io's receive enters the ring. An io with a low-water mark is never hot, since a direct receive would
 * ignore the mark.
 *
 *   kick ─▶ hot_begin ─▶ hot_receive, once in each run ─▶ hot_end: the group will sleep, or another io is hot
 */
#include "transport/tcp/driver/uring.h"

#include <errno.h>

static bool can_be_hot(const struct uring_driver *driver, const struct tcp_io *io)
{
	return driver->spins && !io->removed && !io->receiving && !io->fd_passing && io->low_water <= 1;
}

bool gw_tcp_uring_hot_begin(struct uring_driver *driver, struct tcp_io *io)
{
	if (!can_be_hot(driver, io)) {
		if (driver->hot == io)
			driver->hot = NULL;
		return false;
	}
	if (driver->hot != io)
		gw_tcp_uring_hot_end(driver);
	driver->hot = io;
	return true;
}

void gw_tcp_uring_hot_end(struct uring_driver *driver)
{
	struct tcp_io *io = driver->hot;
	driver->hot = NULL;
	if (!io)
		return;
	bool busy = io->busy;
	io->busy = true;
	gw_tcp_uring_receive(driver, io);
	io->busy = busy;
	if (io->removed && !io->under_way && !io->busy)
		gw_tcp_uring_let_go(driver, io);
}

bool gw_tcp_uring_hot_receive(struct uring_driver *driver)
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
		gw_tcp_uring_let_go(driver, io);
	else if (!io->removed && came)
		tcp_queue_add(&driver->queue, io);
	return came;
}
