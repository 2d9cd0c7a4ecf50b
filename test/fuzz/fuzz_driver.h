/* A driver without a kernel: what "arrives" are the fuzzer's bytes, in pieces of its choice, and what is sent is thrown
 * away, as much at a time as it likes. Connections cannot tell it from the real ones. */
#ifndef GW_TEST_FUZZ_DRIVER_H
#define GW_TEST_FUZZ_DRIVER_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/tcp/loop.h"

static bool fuzz_gone; /* the one io has been let go */

static gw_status fuzz_add(struct tcp_driver *driver, struct tcp_io *io)
{
	(void)driver;
	(void)io;
	fuzz_gone = false;
	return GW_OK;
}

static void fuzz_ignore(struct tcp_driver *driver, struct tcp_io *io)
{
	(void)driver;
	(void)io;
}

static void fuzz_let_go(struct tcp_io *io)
{
	close(io->fd);
	fuzz_gone = true;
	io->events->gone(io);
}

static void fuzz_remove(struct tcp_driver *driver, struct tcp_io *io)
{
	(void)driver;
	if (io->removed)
		return;
	io->removed = true;
	if (!io->busy)
		fuzz_let_go(io);
}

static void fuzz_wake(struct tcp_driver *driver)
{
	(void)driver;
}

static const struct tcp_driver_ops fuzz_ops = {
	.name = "fuzz",
	.add = fuzz_add,
	.kick = fuzz_ignore,
	.flush = fuzz_ignore,
	.stop_receive = fuzz_ignore,
	.remove = fuzz_remove,
	.wake = fuzz_wake,
};
static struct tcp_driver fuzz_driver = {&fuzz_ops};

/* After a callback: lets the io go if the callback removed it. */
static bool fuzz_alive(struct tcp_io *io)
{
	io->busy = false;
	if (io->removed && !fuzz_gone)
		fuzz_let_go(io);
	return !fuzz_gone;
}

/* Sends what there is, at most `most` bytes at a time. */
static bool fuzz_drain(struct tcp_io *io, size_t most)
{
	for (int turns = 0; turns < 4096; turns++) {
		struct iovec iov[TCP_IOV_MAX];
		io->busy = true;
		size_t pieces = io->events->source(io, iov), bytes = 0;
		if (!fuzz_alive(io))
			return false;
		if (pieces == 0)
			return true;
		for (size_t i = 0; i < pieces; i++) {
			/* Looks at what is sent, so that the sanitizer sees memory that must not be. */
			for (size_t j = 0; j < iov[i].iov_len && bytes + j < most; j += 64) {
				volatile uint8_t byte = ((uint8_t *)iov[i].iov_base)[j];
				(void)byte;
			}
			bytes += iov[i].iov_len;
		}
		io->busy = true;
		io->events->sent(io, (ssize_t)(bytes < most ? bytes : most));
		if (!fuzz_alive(io))
			return false;
	}
	return true;
}

/* Lets the bytes arrive, at most `most` at a time; false: the connection has ended. */
static bool fuzz_feed(struct tcp_io *io, const uint8_t *data, size_t n, size_t most, size_t drain)
{
	while (n) {
		struct iovec iov[TCP_IOV_MAX];
		io->busy = true;
		size_t pieces = io->events->target(io, iov), taken = 0, part = n < most ? n : most;
		if (!fuzz_alive(io))
			return false;
		if (pieces == 0) {
			if (!fuzz_drain(io, drain))
				return false;
			io->busy = true;
			pieces = io->events->target(io, iov);
			if (!fuzz_alive(io) || pieces == 0)
				return !fuzz_gone;
		}
		for (size_t i = 0; i < pieces && taken < part; i++) {
			size_t bytes = iov[i].iov_len < part - taken ? iov[i].iov_len : part - taken;
			memcpy(iov[i].iov_base, data + taken, bytes);
			taken += bytes;
		}
		data += taken;
		n -= taken;
		io->busy = true;
		io->events->received(io, (ssize_t)taken);
		if (!fuzz_alive(io) || !fuzz_drain(io, drain))
			return false;
	}
	return true;
}

static struct tcp_loop *fuzz_loop(struct gw_poll_group *group)
{
	struct tcp_loop *loop = calloc(1, sizeof(*loop));
	if (!loop)
		abort();
	loop->group = group;
	loop->transport = &gw_transport_tcp;
	loop->driver = &fuzz_driver;
	loop->next_timer_ns = UINT64_MAX;
	gw_completions_begin(&loop->completions);
	return loop;
}

#endif
