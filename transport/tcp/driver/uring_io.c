/* The operations of one io: a send, a receive, the cancel of either, and the end. */
#include "transport/tcp/driver/uring.h"

void gw_tcp_uring_mark(struct io_uring_sqe *sqe, struct tcp_io *io, enum operation operation)
{
	io_uring_sqe_set_data64(sqe, (uintptr_t)io | (uintptr_t)operation);
}

void gw_tcp_uring_cancel(struct uring_driver *driver, struct tcp_io *io, enum operation operation)
{
	struct io_uring_sqe *sqe = gw_tcp_uring_entry(driver);
	io_uring_prep_cancel64(sqe, (uintptr_t)io | (uintptr_t)operation, 0);
	io_uring_sqe_set_data64(sqe, OP_CANCEL);
}

/* False: nothing to send now. */
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

/* True: the socket took some bytes. */
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

void gw_tcp_uring_send(struct uring_driver *driver, struct tcp_io *io)
{
	size_t pieces, budget = TCP_TURN_BYTES;
	bool fd_passing;
	while (prepare_send(io, &pieces, &fd_passing)) {
		if (send_now(io, pieces, fd_passing, &budget)) {
			if (budget && !io->yield && !tcp_turn_ends(io, budget))
				continue;
			tcp_queue_add(&driver->queue, io);
			return;
		}
		struct io_uring_sqe *sqe = gw_tcp_uring_entry(driver);
		if (pieces == 1 && !fd_passing)
			io_uring_prep_send(sqe, io->fd, io->send_iov[0].iov_base, io->send_iov[0].iov_len,
					   MSG_NOSIGNAL | MSG_WAITALL);
		else
			io_uring_prep_sendmsg(sqe, io->fd, &io->send_message, MSG_NOSIGNAL | MSG_WAITALL);
		gw_tcp_uring_mark(sqe, io, OP_SEND);
		io->sending = true;
		io->under_way++;
	}
}

void gw_tcp_uring_receive(struct uring_driver *driver, struct tcp_io *io)
{
	if (io->receiving && !io->removed)
		gw_tcp_low_water(io);
	if (io->receiving || io->removed)
		return;
	size_t pieces = io->events->target(io, io->receive_iov);
	if (pieces == 0 || io->removed)
		return;
	struct io_uring_sqe *sqe = gw_tcp_uring_entry(driver);
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
	gw_tcp_uring_mark(sqe, io, OP_RECEIVE);
	io->receiving = true;
	io->under_way++;
}

void gw_tcp_uring_let_go(struct uring_driver *driver, struct tcp_io *io)
{
	tcp_queue_drop(&driver->queue, io);
	gw_tcp_io_close(io);
	io->fd = -1;
	io->events->gone(io);
}
