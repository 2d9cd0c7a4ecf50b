/* The driver of a disk by io_uring: one ring, used by the disk's thread alone. Another thread wakes it through an
 * eventfd, which the ring watches. Fails with GW_UNSUPPORTED if the kernel refuses a ring, or to run what is queued. */
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "core/errors/log.h"
#include "core/files/disk_private.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "core/system/uring.h"

struct disk_ring {
	struct io_uring ring;
	int wake_fd;
	bool watched, warned;
};

static int disk_ring_make(struct disk_ring *ring, unsigned entries)
{
	static const unsigned flags[] = {
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG, 0};
	int error = -EINVAL;
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags) && error == -EINVAL; i++) {
		struct io_uring_params parameters = {.flags = flags[i]};
		error = gw_uring_init(entries, &ring->ring, &parameters);
	}
	return error;
}

/* A seccomp profile may allow to make a ring, and refuse to use it. */
static int disk_ring_try(struct disk_ring *ring)
{
	struct io_uring_cqe *cqe;
	io_uring_prep_nop(io_uring_get_sqe(&ring->ring));
	int error = io_uring_submit_and_wait(&ring->ring, 1);
	if (error < 0)
		return error;
	error = io_uring_wait_cqe(&ring->ring, &cqe);
	if (!error)
		io_uring_cqe_seen(&ring->ring, cqe);
	return error;
}

static gw_status disk_uring_open(struct gw_disk *disk)
{
	struct disk_ring *ring = gw_calloc(1, sizeof(*ring));
	if (!ring)
		return GW_NO_MEMORY;
	ring->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ring->wake_fd < 0) {
		int error = errno;
		gw_free(ring);
		return gw_fail_errno(GW_IO, error, "eventfd");
	}
	int error = disk_ring_make(ring, disk->options.queue_depth + 1); /* one entry is the eventfd's */
	if (!error) {
		error = disk_ring_try(ring);
		if (error)
			gw_uring_exit(&ring->ring);
	}
	if (error) {
		close(ring->wake_fd);
		gw_free(ring);
		return gw_fail_errno(GW_UNSUPPORTED, -error, "io_uring is refused (%s)",
				     gw_uring_remedy(-error, gw_uring_switch("")));
	}
	disk->driving = ring;
	return GW_OK;
}

static void disk_uring_shut(struct gw_disk *disk)
{
	struct disk_ring *ring = disk->driving;
	gw_uring_exit(&ring->ring);
	close(ring->wake_fd);
	gw_free(ring);
	disk->driving = NULL;
}

/* The ring has an entry for each io, so an entry is free. */
static void disk_uring_submit(struct gw_disk *disk, struct disk_io *io)
{
	struct disk_ring *ring = disk->driving;
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->ring);
	if (io->parts == 1)
		io_uring_prep_read(sqe, io->fd, io->iov->iov_base, (unsigned)io->iov->iov_len, io->file_at);
	else
		io_uring_prep_readv(sqe, io->fd, io->iov, io->parts, io->file_at);
	io_uring_sqe_set_data(sqe, io);
}

static void disk_uring_watch(struct disk_ring *ring)
{
	if (ring->watched)
		return;
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->ring);
	io_uring_prep_poll_add(sqe, ring->wake_fd, POLLIN);
	io_uring_sqe_set_data(sqe, NULL);
	ring->watched = true;
}

static void disk_uring_reap(struct gw_disk *disk, struct disk_ring *ring)
{
	struct io_uring_cqe *cqe;
	while (io_uring_peek_cqe(&ring->ring, &cqe) == 0) {
		struct disk_io *io = io_uring_cqe_get_data(cqe);
		if (io) {
			io->result = cqe->res;
			io->next = disk->finished;
			disk->finished = io;
		} else {
			eventfd_t ignored;
			eventfd_read(ring->wake_fd, &ignored);
			ring->watched = false;
		}
		io_uring_cqe_seen(&ring->ring, cqe);
	}
}

static void disk_uring_wait(struct gw_disk *disk, bool may_sleep)
{
	struct disk_ring *ring = disk->driving;
	disk_uring_watch(ring);
	int result = io_uring_submit_and_wait(&ring->ring, may_sleep ? 1 : 0);
	bool passing = result == -EINTR || result == -EAGAIN || result == -EBUSY;
	if (result < 0 && !passing) {
		/* It worked before, so the entries stay queued until the kernel takes them. */
		if (!ring->warned)
			gw_log(GW_LOG_WARN, "io_uring refuses reads of rows for now: error %d", -result);
		ring->warned = true;
		nanosleep(&(struct timespec){.tv_nsec = GW_NS_PER_MS}, NULL);
	}
	disk_uring_reap(disk, ring);
}

static void disk_uring_wake(struct gw_disk *disk)
{
	eventfd_write(((struct disk_ring *)disk->driving)->wake_fd, 1);
}

const struct disk_driver gw_disk_uring = {
	.name = "io_uring",
	.open = disk_uring_open,
	.shut = disk_uring_shut,
	.submit = disk_uring_submit,
	.wait = disk_uring_wait,
	.wake = disk_uring_wake,
};
