/* A ring of entries: a header, and the bytes of a line. Both may wrap around the ring's end.
 *
 * Errors: a line that cannot be written counts as lost. If no thread can be started, the caller writes the lines, as
 * far as the descriptor takes them without a wait. */
#include "core/errors/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/errors/signals.h"

struct lines_entry {
	uint64_t lost; /* lines that were lost before this one */
	uint32_t bytes;
};

static _Atomic(struct gw_lines *) lines_of_process;
static atomic_uint exit_ms = GW_LINES_EXIT_MS;

/* ---- the ring ---- */

static void ring_write(struct gw_lines *lines, const void *from, size_t bytes)
{
	size_t at = (lines->first + lines->used) % lines->ring_bytes, room = lines->ring_bytes - at;
	size_t here = bytes < room ? bytes : room;
	memcpy(lines->ring + at, from, here);
	memcpy(lines->ring, (const char *)from + here, bytes - here);
	lines->used += bytes;
}

static void ring_read(struct gw_lines *lines, void *to, size_t bytes)
{
	size_t room = lines->ring_bytes - lines->first, here = bytes < room ? bytes : room;
	memcpy(to, lines->ring + lines->first, here);
	memcpy((char *)to + here, lines->ring, bytes - here);
	lines->first = (lines->first + bytes) % lines->ring_bytes;
	lines->used -= bytes;
}

static bool ring_add(struct gw_lines *lines, const char *line, size_t bytes)
{
	const struct lines_entry entry = {.lost = lines->lost, .bytes = (uint32_t)bytes};
	if (sizeof(entry) + bytes > lines->ring_bytes - lines->used) {
		lines->lost++;
		return false;
	}
	ring_write(lines, &entry, sizeof(entry));
	ring_write(lines, line, bytes);
	lines->lost = 0;
	lines->put++;
	return true;
}

/* ---- writing ---- */

/* Descriptors that the library and most other code open for themselves are closed on exec, and standard ones are not.
 * So after a program has closed its stderr, a line cannot end in a socket or file that got the number. */
static int check_descriptor(int fd)
{
	int flags = fcntl(fd, F_GETFD);
	return flags < 0 ? errno : flags & FD_CLOEXEC ? EBADF : 0;
}

static int lines_write(int fd, const char *text, size_t bytes)
{
	int error = check_descriptor(fd);
	while (bytes && !error) {
		ssize_t n = write(fd, text, bytes);
		if (n >= 0) {
			text += n;
			bytes -= (size_t)n;
		} else if (errno == EAGAIN) { /* another process may have made the open file non-blocking */
			poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
		} else if (errno != EINTR) {
			error = errno;
		}
	}
	return error;
}

/* Reports the losses, if any, and then writes the line, with the lock released. */
static void lines_write_unlocked(struct gw_lines *lines, uint64_t lost, char *line, size_t bytes)
{
	char report[GW_LINES_BYTES_MAX];
	pthread_mutex_unlock(&lines->lock);
	int error = 0;
	if (lost && lines->describe_lost)
		error = lines_write(lines->fd, report, lines->describe_lost(report, lost));
	uint64_t lost_now = error ? lost : 0;
	if (bytes) {
		error = lines_write(lines->fd, line, bytes);
		lost_now += error != 0;
	}
	pthread_mutex_lock(&lines->lock);
	lines->lost += lost_now;
	lines->error = error;
}

static void write_one(struct gw_lines *lines)
{
	struct lines_entry entry;
	char line[GW_LINES_BYTES_MAX];
	ring_read(lines, &entry, sizeof(entry));
	ring_read(lines, line, entry.bytes);
	lines_write_unlocked(lines, entry.lost, line, entry.bytes);
	lines->out++;
	lines->stalled &= lines->out < lines->put;
	pthread_cond_broadcast(&lines->out_some);
}

/* Reports losses even if no further line comes. After a failed write they wait for the next line. */
static void write_last_losses(struct gw_lines *lines)
{
	uint64_t lost = lines->lost;
	if (!lost || lines->error || !lines->describe_lost)
		return;
	lines->lost = 0;
	lines_write_unlocked(lines, lost, NULL, 0);
	pthread_cond_broadcast(&lines->out_some);
}

static void *lines_run(void *context)
{
	struct gw_lines *lines = context;
	pthread_mutex_lock(&lines->lock);
	for (;;) {
		while (lines->used)
			write_one(lines);
		write_last_losses(lines);
		if (!lines->used)
			pthread_cond_wait(&lines->put_some, &lines->lock);
	}
	return NULL;
}

/* ---- the process ---- */

static void make_conditions(struct gw_lines *lines)
{
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&lines->put_some, &monotonic);
	pthread_cond_init(&lines->out_some, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

static void lines_in_child(void)
{
	for (struct gw_lines *lines = atomic_load(&lines_of_process); lines; lines = lines->next) {
		pthread_mutex_init(&lines->lock, NULL);
		make_conditions(lines);
		lines->first = lines->used = 0;
		lines->put = lines->out = lines->lost = 0;
		lines->error = 0;
		lines->runs = lines->stalled = false;
	}
}

static void lines_watch_forks(void)
{
	pthread_atfork(NULL, NULL, lines_in_child);
}

static void lines_begin(struct gw_lines *lines)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, lines_watch_forks);
	make_conditions(lines);
	lines->next = atomic_load(&lines_of_process);
	while (!atomic_compare_exchange_weak(&lines_of_process, &lines->next, lines))
		;
	lines->begun = true;
}

static bool lines_start_thread(struct gw_lines *lines)
{
	pthread_t thread;
	sigset_t before;
	gw_signals_leave_to_program(&before);
	lines->runs = pthread_create(&thread, NULL, lines_run, lines) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (lines->runs)
		pthread_detach(thread);
	return lines->runs;
}

/* ---- callers ---- */

static struct timespec time_after(uint32_t ms)
{
	struct timespec at;
	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_sec += ms / 1000;
	at.tv_nsec += (long)(ms % 1000) * 1000000;
	if (at.tv_nsec >= 1000000000) {
		at.tv_sec++;
		at.tv_nsec -= 1000000000;
	}
	return at;
}

static int ms_until(const struct timespec *until)
{
	struct timespec now = time_after(0);
	int64_t ms = (until->tv_sec - now.tv_sec) * 1000 + (until->tv_nsec - now.tv_nsec) / 1000000;
	return ms > 0 ? (int)ms : 0;
}

/* Without a thread. A descriptor that takes a line without a wait may still take only a part of a long one. */
static void write_here(struct gw_lines *lines, const struct timespec *until)
{
	struct pollfd fd = {.fd = lines->fd, .events = POLLOUT};
	while (lines->used && poll(&fd, 1, ms_until(until)) == 1 && fd.revents == POLLOUT)
		write_one(lines);
}

static void wait_for_thread(struct gw_lines *lines, uint64_t line, const struct timespec *until)
{
	while (lines->out < line)
		if (pthread_cond_timedwait(&lines->out_some, &lines->lock, until) == ETIMEDOUT)
			break;
}

static bool takes_lines(const struct gw_lines *lines)
{
	struct pollfd fd = {.fd = lines->fd, .events = POLLOUT};
	return poll(&fd, 1, 0) == 1 && fd.revents == POLLOUT;
}

/* On a busy machine the thread may be late although the reader reads: a descriptor that takes lines shows that. Not for
 * ever, because a file of a network that is gone takes them too. */
static void wait_while_reader_reads(struct gw_lines *lines, uint64_t line)
{
	for (unsigned round = 0; round < GW_LINES_LATE_MS / GW_LINES_PATIENCE_MS; round++) {
		struct timespec until = time_after(GW_LINES_PATIENCE_MS);
		wait_for_thread(lines, line, &until);
		if (lines->out >= line || !takes_lines(lines))
			break;
	}
}

void gw_lines_put(struct gw_lines *lines, const char *line, size_t bytes)
{
	pthread_mutex_lock(&lines->lock);
	if (!lines->begun)
		lines_begin(lines);
	if (ring_add(lines, line, bytes < GW_LINES_BYTES_MAX ? bytes : GW_LINES_BYTES_MAX)) {
		uint64_t mine = lines->put;
		pthread_cond_signal(&lines->put_some);
		if (!lines->runs && !lines_start_thread(lines)) {
			struct timespec now = time_after(0);
			write_here(lines, &now);
		} else if (!lines->stalled) {
			wait_while_reader_reads(lines, mine);
			lines->stalled |= lines->out < mine;
		}
	}
	pthread_mutex_unlock(&lines->lock);
}

static int lines_drain_until(struct gw_lines *lines, const struct timespec *until)
{
	pthread_mutex_lock(&lines->lock);
	if (lines->runs)
		wait_for_thread(lines, lines->put, until);
	else if (lines->begun)
		write_here(lines, until);
	int error = lines->out < lines->put ? ETIMEDOUT : lines->error;
	pthread_mutex_unlock(&lines->lock);
	return error;
}

int gw_lines_drain(struct gw_lines *lines, uint32_t ms)
{
	struct timespec until = time_after(ms);
	return lines_drain_until(lines, &until);
}

void gw_lines_limit_exit(uint32_t ms)
{
	atomic_store(&exit_ms, ms);
}

__attribute__((destructor)) static void lines_at_exit(void)
{
	struct timespec until = time_after(atomic_load(&exit_ms));
	for (struct gw_lines *lines = atomic_load(&lines_of_process); lines; lines = lines->next)
		lines_drain_until(lines, &until);
}
