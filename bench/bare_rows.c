/* Bare loops over loopback sockets and memory. Calls on sockets block. The server is one thread; the client is the
 * calling thread. */
#include "bench/bare_rows.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "bench/sockets.h"

#define CHUNK_BYTES (256u << 10)
#define AHEAD       12

static double bare_rows_now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

uint64_t gw_bare_mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ull;
	return x ^ (x >> 33);
}

/* A counter of batches, which all runs and threads of the bare loops share: a run that read the previous run's rows
 * again would find some of them in a large cache. Graphwire's own loops count from 0 and never reach its first value.
 */
static _Atomic uint64_t bare_drawn = 1ull << 40;

/* Returns the first of the n numbers. */
static uint64_t draw(uint32_t n)
{
	return atomic_fetch_add_explicit(&bare_drawn, n, memory_order_relaxed);
}

/* A socket with a low-water mark: its reader wakes only when `most` bytes have arrived, or fewer near the end. */
struct low_water {
	int fd;
	size_t most, now; /* most 0: the reader wakes for every byte */
};

/* The mark is at most half of the remaining bytes. If a blocking recv finds fewer bytes than the mark, it
 * sleeps until that many more bytes arrive. */
static void bare_rows_set_low_water(struct low_water *mark, size_t left)
{
	size_t wanted = mark->most;
	while (wanted > 1 && wanted > left / 2)
		wanted /= 2;
	if (wanted == 0 || wanted == mark->now)
		return;
	int value = (int)wanted;
	setsockopt(mark->fd, SOL_SOCKET, SO_RCVLOWAT, &value, sizeof(value));
	mark->now = wanted;
}

static bool receive_marked(struct low_water *mark, void *buffer, size_t bytes)
{
	for (uint8_t *at = buffer; bytes;) {
		if (mark->most)
			bare_rows_set_low_water(mark, bytes);
		ssize_t n = recv(mark->fd, at, bytes, 0);
		if (n <= 0)
			return false;
		at += n;
		bytes -= (size_t)n;
	}
	return true;
}

static void *hot_buffer(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return NULL;
	madvise(memory, bytes, MADV_HUGEPAGE);
	memset(memory, 1, bytes);
	return memory;
}

/* The data of a server thread. */
struct serving {
	int fd;
	unsigned processor;
	const struct gw_bare_rows *rows;
	uint8_t *buffer;   /* CHUNK_BYTES and one row */
	uint32_t *numbers; /* a batch of row numbers */
};

static cpu_set_t allowed;

static void bare_rows_find_allowed(void)
{
	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		CPU_ZERO(&allowed);
}

void gw_bare_pin(unsigned number)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	cpu_set_t one;
	pthread_once(&once, bare_rows_find_allowed);
	CPU_ZERO(&one);
	if (CPU_COUNT(&allowed) > 1)
		number %= (unsigned)CPU_COUNT(&allowed);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&allowed) > 1; cpu++)
		if (CPU_ISSET(cpu, &allowed) && number-- == 0)
			CPU_SET(cpu, &one);
	if (CPU_COUNT(&one) == 1)
		pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
}

static inline void prefetch_row(const uint8_t *row, uint32_t bytes)
{
	for (uint32_t at = 0; at < bytes; at += 64)
		__builtin_prefetch(row + at);
}

static void *serve_rows(void *argument)
{
	struct serving *serving = argument;
	const struct gw_bare_rows *rows = serving->rows;
	uint32_t row_bytes = rows->row_bytes;
	gw_bare_pin(serving->processor);
	while (gw_sockets_receive(serving->fd, serving->numbers, rows->batch * sizeof(uint32_t))) {
		size_t filled = 0;
		for (uint32_t i = 0; i < rows->batch; i++) {
			if (i + AHEAD < rows->batch)
				prefetch_row(rows->table + (size_t)serving->numbers[i + AHEAD] * row_bytes, row_bytes);
			memcpy(serving->buffer + filled, rows->table + (size_t)serving->numbers[i] * row_bytes,
			       row_bytes);
			filled += row_bytes;
			if (filled >= CHUNK_BYTES) {
				if (!gw_sockets_send(serving->fd, serving->buffer, filled))
					return NULL;
				filled = 0;
			}
		}
		if (filled && !gw_sockets_send(serving->fd, serving->buffer, filled))
			return NULL;
	}
	return NULL;
}

static void *serve_stream(void *argument)
{
	struct serving *serving = argument;
	gw_bare_pin(serving->processor);
	while (gw_sockets_send(serving->fd, serving->buffer, CHUNK_BYTES))
		;
	return NULL;
}

static bool ask_rows(int fd, const struct gw_bare_rows *rows, uint32_t *numbers)
{
	uint64_t first = draw(rows->batch);
	for (uint32_t i = 0; i < rows->batch; i++)
		numbers[i] = (uint32_t)(gw_bare_mix(first + i) % rows->rows);
	return gw_sockets_send(fd, numbers, rows->batch * sizeof(uint32_t));
}

static bool bare_rows_run(int fd, const struct gw_bare_rows *rows, uint32_t *numbers, double *bytes_per_second)
{
	assert(rows->depth > 0);
	size_t batch_bytes = (size_t)rows->batch * rows->row_bytes;
	uint64_t batches = 0;
	struct low_water mark = {.fd = fd, .most = rows->low_water};
	for (uint32_t i = 0; i < rows->depth; i++)
		if (!ask_rows(fd, rows, numbers))
			return false;
	double begun = bare_rows_now(), elapsed;
	while ((elapsed = bare_rows_now() - begun) < rows->seconds) {
		if (!receive_marked(&mark, rows->landing + batch_bytes * (batches % rows->depth), batch_bytes) ||
		    !ask_rows(fd, rows, numbers))
			return false;
		batches++;
	}
	*bytes_per_second = (double)batches * (double)batch_bytes / elapsed;
	return true;
}

static bool bare_rows_run_stream(int fd, double seconds, uint8_t *buffer, double *bytes_per_second)
{
	double begun = bare_rows_now(), elapsed, bytes = 0;
	while ((elapsed = bare_rows_now() - begun) < seconds) {
		if (!gw_sockets_receive(fd, buffer, CHUNK_BYTES))
			return false;
		bytes += CHUNK_BYTES;
	}
	*bytes_per_second = bytes / elapsed;
	return true;
}

/* The common part of the two socket loops. */
enum bare_loop { LOOP_ROWS, LOOP_STREAM };

static int run_sockets(enum bare_loop loop, const struct gw_bare_rows *rows, struct serving *serving, double seconds,
		       double *figure)
{
	static void *(*const servers[])(void *) = {serve_rows, serve_stream};
	size_t numbers_bytes = rows ? rows->batch * sizeof(uint32_t) : 1, buffer_bytes = CHUNK_BYTES + (64u << 10);
	uint8_t *mine = hot_buffer(buffer_bytes);
	uint32_t *numbers = malloc(numbers_bytes);
	int client, error = 0;
	pthread_t thread;
	serving->rows = rows;
	serving->buffer = hot_buffer(buffer_bytes);
	serving->numbers = malloc(numbers_bytes);
	if (!mine || !numbers || !serving->buffer || !serving->numbers)
		error = ENOMEM;
	if (!error)
		error = gw_sockets_connect(&client, &serving->fd);
	if (!error) {
		error = pthread_create(&thread, NULL, servers[loop], serving);
		if (!error) {
			bool good = loop == LOOP_ROWS ? bare_rows_run(client, rows, numbers, figure)
						      : bare_rows_run_stream(client, seconds, mine, figure);
			error = good ? 0 : EIO;
			shutdown(client, SHUT_RDWR);
			shutdown(serving->fd, SHUT_RDWR);
			pthread_join(thread, NULL);
		}
		close(client);
		close(serving->fd);
	}
	free(numbers);
	free(serving->numbers);
	if (mine)
		munmap(mine, buffer_bytes);
	if (serving->buffer)
		munmap(serving->buffer, buffer_bytes);
	return error;
}

int gw_bare_rows_tcp(const struct gw_bare_rows *rows, double *bytes_per_second)
{
	struct serving serving = {.processor = 1};
	if (rows->row_bytes > 64u << 10)
		return EINVAL;
	return run_sockets(LOOP_ROWS, rows, &serving, 0, bytes_per_second);
}

/* One of several client-server pairs. */
struct pair {
	struct gw_bare_rows rows;
	pthread_t client;
	unsigned number;
	double bytes_per_second;
	int error;
};

static void *run_pair(void *argument)
{
	struct pair *pair = argument;
	struct serving serving = {.processor = 2 * pair->number + 1};
	gw_bare_pin(2 * pair->number);
	pair->error = run_sockets(LOOP_ROWS, &pair->rows, &serving, 0, &pair->bytes_per_second);
	return NULL;
}

int gw_bare_rows_pairs(const struct gw_bare_rows *rows, unsigned pairs, double *bytes_per_second)
{
	struct pair all[GW_BARE_PAIRS_MAX] = {0};
	size_t landing_bytes = (size_t)rows->depth * rows->batch * rows->row_bytes;
	unsigned started = 0;
	int error = pairs > GW_BARE_PAIRS_MAX || rows->row_bytes > 64u << 10 ? EINVAL : 0;
	*bytes_per_second = 0;
	while (started < pairs && !error) {
		struct pair *pair = &all[started];
		pair->rows = *rows;
		pair->rows.landing += started * landing_bytes;
		pair->number = started;
		error = pthread_create(&pair->client, NULL, run_pair, pair);
		started += !error;
	}
	for (unsigned i = 0; i < started; i++) {
		pthread_join(all[i].client, NULL);
		error = error ? error : all[i].error;
		*bytes_per_second += all[i].bytes_per_second;
	}
	return error;
}

int gw_bare_stream(double seconds, double *bytes_per_second)
{
	struct serving serving = {.processor = 1};
	return run_sockets(LOOP_STREAM, NULL, &serving, seconds, bytes_per_second);
}

int gw_bare_rows_copy(const struct gw_bare_rows *rows, double *bytes_per_second)
{
	uint32_t row_bytes = rows->row_bytes;
	uint64_t *offsets = malloc(rows->batch * sizeof(*offsets)), batches = 0;
	if (!offsets)
		return ENOMEM;
	double begun = bare_rows_now(), elapsed;
	while ((elapsed = bare_rows_now() - begun) < rows->seconds) {
		uint8_t *to = rows->landing + (size_t)(batches % rows->depth) * rows->batch * row_bytes;
		uint64_t first = draw(rows->batch);
		for (uint32_t i = 0; i < rows->batch; i++)
			offsets[i] = gw_bare_mix(first + i) % rows->rows * row_bytes;
		for (uint32_t i = 0; i < rows->batch; i++) {
			if (i + AHEAD < rows->batch)
				prefetch_row(rows->table + offsets[i + AHEAD], row_bytes);
			memcpy(to + (size_t)i * row_bytes, rows->table + offsets[i], row_bytes);
		}
		batches++;
	}
	free(offsets);
	*bytes_per_second = (double)batches * rows->batch * row_bytes / elapsed;
	return 0;
}
