/* A bare loop: opens the files, keeps the io_uring full of reads, and reaps completions. No loader of the same bytes
 * into the same memory can be faster. */
#include "bench/bare_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "core/system/uring.h"

#define BUFFERS_MAX 1024

static double bare_read_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int register_memory(struct io_uring *ring, uint8_t *memory, uint64_t bytes, uint64_t buffer_bytes)
{
	struct iovec buffers[BUFFERS_MAX];
	unsigned count = 0;
	for (uint64_t at = 0; at < bytes; at += buffer_bytes) {
		if (count == BUFFERS_MAX)
			return -E2BIG;
		buffers[count].iov_base = memory + at;
		buffers[count++].iov_len = bytes - at < buffer_bytes ? bytes - at : buffer_bytes;
	}
	return io_uring_register_buffers(ring, buffers, count);
}

/* The place of the next read. */
struct bare_read_cursor {
	const struct gw_bare_file *files;
	size_t count, file;
	uint64_t at;
	int fd, *fds;
};

static int queue_next(struct io_uring *ring, struct bare_read_cursor *c, unsigned piece, const uint8_t *memory,
		      uint64_t buffer_bytes)
{
	const struct gw_bare_file *f = &c->files[c->file];
	if (c->at == 0) {
		c->fds[c->file] = open(f->path, O_RDONLY | O_DIRECT | O_CLOEXEC);
		if (c->fds[c->file] < 0)
			return -errno;
	}
	uint8_t *to = f->to + c->at;
	uint64_t offset = (uint64_t)(to - memory), bytes = f->bytes - c->at < piece ? f->bytes - c->at : piece;
	uint64_t to_buffer_end = buffer_bytes - offset % buffer_bytes;
	bytes = bytes < to_buffer_end ? bytes : to_buffer_end;
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	io_uring_prep_read_fixed(sqe, c->fds[c->file], to, (unsigned)bytes, f->file_offset + c->at,
				 (int)(offset / buffer_bytes));
	io_uring_sqe_set_data64(sqe, bytes);
	c->at += bytes;
	if (c->at == f->bytes) {
		c->file++;
		c->at = 0;
	}
	return 0;
}

static int bare_read_all(struct io_uring *ring, struct bare_read_cursor *c, unsigned depth, unsigned piece,
			 const uint8_t *memory, uint64_t buffer_bytes)
{
	unsigned in_flight = 0;
	int error = 0;
	while (in_flight > 0 || (c->file < c->count && !error)) {
		while (!error && in_flight < depth && c->file < c->count) {
			error = queue_next(ring, c, piece, memory, buffer_bytes);
			in_flight += !error;
		}
		int submitted = io_uring_submit_and_wait(ring, 1);
		if (submitted < 0 && submitted != -EINTR)
			return submitted;
		struct io_uring_cqe *cqe;
		while (io_uring_peek_cqe(ring, &cqe) == 0) {
			if (cqe->res < 0 || (uint64_t)cqe->res != io_uring_cqe_get_data64(cqe))
				error = cqe->res < 0 ? cqe->res : -EIO;
			io_uring_cqe_seen(ring, cqe);
			in_flight--;
		}
	}
	return error;
}

int gw_bare_read(const struct gw_bare_file *files, size_t count, unsigned depth, unsigned piece, uint8_t *memory,
		 uint64_t memory_bytes, uint64_t buffer_bytes, double *seconds)
{
	struct io_uring ring;
	int *fds = malloc(count * sizeof(*fds));
	if (!fds)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		fds[i] = -1;
	int error = io_uring_queue_init(depth, &ring, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);
	if (error == -EINVAL)
		error = io_uring_queue_init(depth, &ring, 0);
	if (error) {
		free(fds);
		return error;
	}
	error = register_memory(&ring, memory, memory_bytes, buffer_bytes);
	struct bare_read_cursor cursor = {.files = files, .count = count, .fds = fds};
	double begin = bare_read_now();
	if (!error)
		error = bare_read_all(&ring, &cursor, depth, piece, memory, buffer_bytes);
	*seconds = bare_read_now() - begin;
	for (size_t i = 0; i < count; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
	io_uring_queue_exit(&ring);
	free(fds);
	return error;
}
