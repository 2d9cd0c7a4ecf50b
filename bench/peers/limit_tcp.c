/* Measures the rate that a row service over TCP can reach on this machine, with one client and one server thread on
 * loopback: the prototype that `graphwire bench gather` is compared with. It has no Graphwire code, and does not check
 * a peer's data.
 *
 *   gather  no socket: random rows copied into a small hot buffer, prefetched 12 ahead
 *   raw     the server streams one hot buffer; the client receives into one hot buffer
 *   rows    the client sends 4-byte row numbers, the server gathers the rows into a hot buffer and sends it, the client
 *           receives in place; DEPTH requests are in flight
 *   marked  as rows, but the client's socket has a low-water mark: the client wakes for each megabyte, not for
 *           every few segments
 *   iov     as rows, but the server sends straight from the table, row by row in an iovec
 *
 * Each of three rounds prints the rates and their ratio to raw. It also prints the additive bound as a share of raw,
 * from the rate of gather, which is measured once: what rows would reach if copying and streaming took turns, and
 * nothing else took time.
 *
 * usage: limit_tcp ROW_BYTES ROWS_PER_REQUEST DEPTH SECONDS      (a table of 5 Mi rows: ROW_BYTES 400 takes 2 GiB)
 * build: cc -O3 limit_tcp.c -lpthread
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define TABLE_ROWS  (5u << 20)
#define CHUNK_BYTES (256u << 10)
#define SLACK_BYTES 65536u /* a row may end past a chunk */
#define AHEAD       12     /* rows prefetched */
#define IOV_ROWS    512u   /* rows of one sendmsg */
#define GATHER_ROWS 600u

#define LOW_WATER (1u << 20)

enum mode { RAW, ROWS, MARKED, IOV };

static struct {
	uint8_t *table;
	uint32_t row_bytes, rows, depth;
	double seconds;
	enum mode mode;
	uint64_t drawn; /* row numbers drawn so far */
} run;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ull;
	return x ^ x >> 33;
}

/* Allocates memory, on huge pages if possible, and touches it. */
static void *big(size_t bytes)
{
	bytes = (bytes + (2u << 20) - 1) & ~((size_t)(2u << 20) - 1);
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		err(1, "%zu bytes", bytes);
	madvise(memory, bytes, MADV_HUGEPAGE);
	memset(memory, 1, bytes);
	return memory;
}

static void free_big(void *memory, size_t bytes)
{
	munmap(memory, (bytes + (2u << 20) - 1) & ~((size_t)(2u << 20) - 1));
}

/* Returns 0, or -1 if the other side has closed the connection. */
static int receive_all(int fd, void *buffer, size_t bytes)
{
	for (char *at = buffer; bytes;) {
		ssize_t n = recv(fd, at, bytes, 0);
		if (n <= 0)
			return -1;
		at += n;
		bytes -= (size_t)n;
	}
	return 0;
}

/* The same with a low-water mark. The mark is at most half of the remaining bytes: a blocking recv that has found less
 * than the mark wakes only when as many bytes as the mark have arrived in addition. */
static int receive_marked(int fd, void *buffer, size_t bytes, int *mark)
{
	for (char *at = buffer; bytes;) {
		int wanted = LOW_WATER;
		while (wanted > 1 && (size_t)wanted > bytes / 2)
			wanted /= 2;
		if (wanted != *mark && !setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &wanted, sizeof wanted))
			*mark = wanted;
		ssize_t n = recv(fd, at, bytes, 0);
		if (n <= 0)
			return -1;
		at += n;
		bytes -= (size_t)n;
	}
	return 0;
}

static int send_all(int fd, const void *buffer, size_t bytes)
{
	for (const char *at = buffer; bytes;) {
		ssize_t n = send(fd, at, bytes, MSG_NOSIGNAL);
		if (n <= 0)
			return -1;
		at += n;
		bytes -= (size_t)n;
	}
	return 0;
}

static inline uint8_t *row(uint32_t number)
{
	return run.table + (size_t)number * run.row_bytes;
}

static inline void prefetch_row(uint32_t number)
{
	const uint8_t *at = row(number);
	for (uint32_t j = 0; j < run.row_bytes; j += 64)
		__builtin_prefetch(at + j);
}

static int answer_rows(int fd, const uint32_t *ids, uint8_t *buffer)
{
	size_t filled = 0;
	for (uint32_t i = 0; i < run.rows; i++) {
		if (i + AHEAD < run.rows)
			prefetch_row(ids[i + AHEAD]);
		memcpy(buffer + filled, row(ids[i]), run.row_bytes);
		filled += run.row_bytes;
		if (filled >= CHUNK_BYTES) {
			if (send_all(fd, buffer, filled))
				return -1;
			filled = 0;
		}
	}
	return filled ? send_all(fd, buffer, filled) : 0;
}

static int send_iov(int fd, struct iovec *iov, size_t count, size_t bytes)
{
	struct msghdr message = {.msg_iov = iov, .msg_iovlen = count};
	while (bytes) {
		ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
		if (sent <= 0)
			return -1;
		bytes -= (size_t)sent;
		for (size_t left = (size_t)sent; left && message.msg_iovlen;) {
			struct iovec *first = message.msg_iov;
			size_t taken = left < first->iov_len ? left : first->iov_len;
			first->iov_base = (char *)first->iov_base + taken;
			first->iov_len -= taken;
			left -= taken;
			if (!first->iov_len) {
				message.msg_iov++;
				message.msg_iovlen--;
			}
		}
	}
	return 0;
}

static int answer_iov(int fd, const uint32_t *ids)
{
	struct iovec iov[IOV_ROWS];
	for (uint32_t i = 0; i < run.rows; i += IOV_ROWS) {
		uint32_t count = run.rows - i < IOV_ROWS ? run.rows - i : IOV_ROWS;
		for (uint32_t j = 0; j < count; j++) {
			prefetch_row(ids[i + j]);
			iov[j] = (struct iovec){row(ids[i + j]), run.row_bytes};
		}
		if (send_iov(fd, iov, count, (size_t)count * run.row_bytes))
			return -1;
	}
	return 0;
}

static void *serve(void *context)
{
	int fd = (int)(intptr_t)context;
	size_t ids_bytes = run.rows * sizeof(uint32_t);
	uint32_t *ids = big(ids_bytes);
	uint8_t *buffer = big(CHUNK_BYTES + SLACK_BYTES);
	for (int gone = 0; !gone;) {
		if (run.mode == RAW)
			gone = send_all(fd, buffer, CHUNK_BYTES);
		else if (receive_all(fd, ids, ids_bytes))
			gone = 1;
		else
			gone = run.mode == IOV ? answer_iov(fd, ids) : answer_rows(fd, ids, buffer);
	}
	free_big(buffer, CHUNK_BYTES + SLACK_BYTES);
	free_big(ids, ids_bytes);
	return NULL;
}

/* [0] is the client's end. */
static void connect_both(int fds[2])
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof address;
	int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, bytes) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&address, &bytes))
		err(1, "listen on loopback");
	fds[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (fds[0] < 0 || connect(fds[0], (struct sockaddr *)&address, bytes))
		err(1, "connect over loopback");
	fds[1] = accept(listener, NULL, NULL);
	if (fds[1] < 0)
		err(1, "accept on loopback");
	for (int i = 0; i < 2; i++)
		setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	close(listener);
}

static int ask(int fd, uint32_t *ids)
{
	for (uint32_t i = 0; i < run.rows; i++)
		ids[i] = (uint32_t)(mix(run.drawn++) % TABLE_ROWS);
	return send_all(fd, ids, run.rows * sizeof *ids);
}

/* Returns the bytes a second that the client receives. */
static double measure(enum mode mode)
{
	int fds[2];
	pthread_t server;
	run.mode = mode;
	connect_both(fds);
	if (pthread_create(&server, NULL, serve, (void *)(intptr_t)fds[1]))
		errx(1, "the server's thread cannot be made");
	size_t reply = mode == RAW ? CHUNK_BYTES : (size_t)run.rows * run.row_bytes;
	uint32_t slots = mode == RAW ? 1 : run.depth;
	uint8_t *replies = big(reply * slots);
	uint32_t *ids = big(run.rows * sizeof *ids);
	uint64_t received = 0, requests = 0;
	int mark = 1;
	double start = now(), elapsed;
	for (uint32_t d = 0; mode != RAW && d < run.depth; d++)
		ask(fds[0], ids);
	while ((elapsed = now() - start) < run.seconds) {
		uint8_t *to = replies + reply * (requests++ % slots);
		if (mode == MARKED ? receive_marked(fds[0], to, reply, &mark) : receive_all(fds[0], to, reply))
			break;
		received += reply;
		if (mode != RAW && ask(fds[0], ids))
			break;
	}
	shutdown(fds[0], SHUT_RDWR);
	shutdown(fds[1], SHUT_RDWR);
	pthread_join(server, NULL);
	close(fds[0]);
	close(fds[1]);
	free_big(ids, run.rows * sizeof *ids);
	free_big(replies, reply * slots);
	return (double)received / elapsed;
}

/* Returns the bytes a second of random rows that are copied into a hot buffer. */
static double measure_gather(void)
{
	uint8_t *out = big((size_t)GATHER_ROWS * run.row_bytes);
	uint64_t rows = 0;
	double start = now(), elapsed;
	while ((elapsed = now() - start) < run.seconds) {
		for (int repeat = 0; repeat < 100; repeat++, rows += GATHER_ROWS) {
			uint32_t ids[GATHER_ROWS];
			for (uint32_t i = 0; i < GATHER_ROWS; i++)
				ids[i] = (uint32_t)(mix(run.drawn++) % TABLE_ROWS);
			for (uint32_t i = 0; i < GATHER_ROWS; i++) {
				if (i + AHEAD < GATHER_ROWS)
					prefetch_row(ids[i + AHEAD]);
				memcpy(out + (size_t)i * run.row_bytes, row(ids[i]), run.row_bytes);
			}
		}
	}
	free_big(out, (size_t)GATHER_ROWS * run.row_bytes);
	return (double)rows * run.row_bytes / elapsed;
}

int main(int argc, char **argv)
{
	if (argc < 5)
		errx(2, "usage: limit_tcp ROW_BYTES ROWS_PER_REQUEST DEPTH SECONDS");
	run.row_bytes = (uint32_t)atoi(argv[1]);
	run.rows = (uint32_t)atoi(argv[2]);
	run.depth = (uint32_t)atoi(argv[3]);
	run.seconds = atof(argv[4]);
	if (run.row_bytes < 1 || run.row_bytes > SLACK_BYTES || run.rows < 1 || run.rows > 1000000 || run.depth < 1 ||
	    run.depth > 64 || run.seconds <= 0)
		errx(2, "1 to %u bytes a row, 1 to 1000000 rows, depth 1 to 64, some seconds", SLACK_BYTES);
	run.table = big((size_t)TABLE_ROWS * run.row_bytes);
	double gather = measure_gather();
	for (int round = 0; round < 3; round++) {
		double raw = measure(RAW), rows = measure(ROWS), marked = measure(MARKED), iov = measure(IOV);
		printf("gather %.2f GB/s  raw %.2f GB/s  rows %.2f GB/s (%.2f M rows/s, ratio %.2f, "
		       "additive bound %.2f)"
		       "  marked %.2f GB/s (ratio %.2f)  iov %.2f GB/s (ratio %.2f)\n",
		       gather / 1e9, raw / 1e9, rows / 1e9, rows / run.row_bytes / 1e6, rows / raw,
		       1 / (1 / raw + 1 / gather) / raw, marked / 1e9, marked / raw, iov / 1e9, iov / raw);
	}
	return 0;
}
