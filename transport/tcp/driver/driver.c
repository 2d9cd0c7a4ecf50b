/* What both drivers share: the choice between them, the low-water mark, a wait for one socket alone.
 *
 * io_uring is tried first, then epoll. Containers and hardened kernels forbid io_uring. The limit
 * of locked memory may have room for the rings of some threads only; the other threads then use epoll. If the caller
 * named io_uring, its absence is an error. Else a process logs the fallback once: as a warning if the limit of locked
 * memory is the reason, since a command can raise it.
 */
#include "transport/tcp/driver/driver.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "core/errors/log.h"

gw_status gw_tcp_driver_open(const char *name, bool spins, struct tcp_driver **out)
{
	*out = NULL;
	if (name && strcmp(name, "epoll") == 0)
		return gw_tcp_driver_epoll.open(spins, out);
	if (name && strcmp(name, "io_uring") == 0)
		return gw_tcp_driver_uring.open(spins, out);
	if (name && strcmp(name, "auto") != 0)
		return gw_fail(GW_INVALID, "no tcp driver \"%s\"; choose auto, io_uring or epoll", name);
	static _Atomic bool logged;
	gw_status status = gw_tcp_driver_uring.open(spins, out);
	if (status != GW_UNSUPPORTED && status != GW_LOCKED_MEMORY)
		return status;
	if (!atomic_exchange(&logged, true))
		gw_log(status == GW_LOCKED_MEMORY ? GW_LOG_WARN : GW_LOG_INFO, "tcp: %s; using epoll instead",
		       gw_last_error());
	return gw_tcp_driver_epoll.open(spins, out);
}

void gw_socket_close(int fd)
{
	shutdown(fd, SHUT_RDWR);
	close(fd);
}

void gw_tcp_io_close(const struct tcp_io *io)
{
	if (io->shared)
		close(io->fd);
	else
		gw_socket_close(io->fd);
}

void gw_tcp_low_water(struct tcp_io *io)
{
	uint32_t wanted = io->low_water ? io->low_water : 1;
	if (wanted == (io->low_water_set ? io->low_water_set : 1) || io->fd < 0)
		return;
	int value = (int)wanted;
	setsockopt(io->fd, SOL_SOCKET, SO_RCVLOWAT, &value, sizeof(value));
	io->low_water_set = wanted;
}

/* Makes the socket blocking, with a time limit in kernel ticks. A time limit in nanoseconds would cost ten times as
 * much. Calls on this socket that must not block pass a flag for that. */
static bool await_prepare(struct tcp_io *io)
{
	const struct timeval limit = {.tv_usec = TCP_AWAIT_NS / 1000};
	int flags = fcntl(io->fd, F_GETFL);
	io->awaited = flags >= 0 && setsockopt(io->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0 &&
		      fcntl(io->fd, F_SETFL, flags & ~O_NONBLOCK) == 0;
	return io->awaited;
}

enum tcp_awaited gw_tcp_await(struct tcp_io *io, ssize_t *n, bool *full)
{
	if (!io->awaited && !await_prepare(io))
		return TCP_AWAIT_NOT;
	size_t pieces = io->events->target(io, io->receive_iov), wanted = 0;
	if (pieces == 0 || io->removed)
		return TCP_AWAIT_NOT;
	for (size_t i = 0; i < pieces; i++)
		wanted += io->receive_iov[i].iov_len;
	/* The low-water mark of an earlier long answer would delay the wake-up for a short one. */
	gw_tcp_low_water(io);
	struct msghdr message = {.msg_iov = io->receive_iov, .msg_iovlen = pieces};
	*n = pieces == 1 ? recv(io->fd, io->receive_iov[0].iov_base, wanted, 0) : recvmsg(io->fd, &message, 0);
	*full = *n > 0 && (size_t)*n == wanted;
	if (*n >= 0)
		return TCP_AWAIT_HANDLED;
	if (errno == EINTR)
		return TCP_AWAIT_INTERRUPTED;
	if (errno == EAGAIN || errno == EWOULDBLOCK)
		return TCP_AWAIT_TOO_LONG;
	*n = -errno;
	return TCP_AWAIT_HANDLED;
}
