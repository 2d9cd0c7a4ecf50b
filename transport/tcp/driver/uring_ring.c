/* The ring of the io_uring driver: set-up, free entries, the timer, the wake descriptor, submission. */
#include "transport/tcp/driver/uring.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/memory/alloc.h"
#include "core/system/clock.h"

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

gw_status gw_tcp_uring_open(const struct tcp_driver_ops *ops, bool spins, struct tcp_driver **out)
{
	*out = NULL;
	struct uring_driver *driver = gw_calloc(1, sizeof(*driver));
	if (!driver)
		return GW_NO_MEMORY;
	driver->base.ops = ops;
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

void gw_tcp_uring_shut(struct tcp_driver *base)
{
	struct uring_driver *driver = (struct uring_driver *)base;
	gw_uring_exit(&driver->ring);
	close(driver->wake_fd);
	gw_free(driver);
}

struct io_uring_sqe *gw_tcp_uring_entry(struct uring_driver *driver)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&driver->ring);
	while (!sqe) {
		io_uring_submit(&driver->ring);
		sqe = io_uring_get_sqe(&driver->ring);
	}
	return sqe;
}

void gw_tcp_uring_watch_wake(struct uring_driver *driver)
{
	if (driver->wake_armed)
		return;
	struct io_uring_sqe *sqe = gw_tcp_uring_entry(driver);
	io_uring_prep_poll_add(sqe, driver->wake_fd, POLLIN);
	io_uring_sqe_set_data64(sqe, OP_WAKE);
	driver->wake_armed = true;
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
	struct io_uring_sqe *sqe = gw_tcp_uring_entry(driver);
	if (driver->timer_armed) {
		io_uring_prep_timeout_update(sqe, &driver->timer_time, OP_TIMER, IORING_TIMEOUT_ABS);
		io_uring_sqe_set_data64(sqe, OP_CANCEL);
	} else {
		io_uring_prep_timeout(sqe, &driver->timer_time, 0, IORING_TIMEOUT_ABS);
		io_uring_sqe_set_data64(sqe, OP_TIMER);
	}
	driver->timer_armed = true;
}

void gw_tcp_uring_submit(struct uring_driver *driver, uint64_t until_ns)
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

void gw_tcp_uring_wake(struct tcp_driver *base)
{
	eventfd_write(((struct uring_driver *)base)->wake_fd, 1);
}
