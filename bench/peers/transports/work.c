/* The cases, the clock, the checks and main: see work.h. Every read of `reads` is checked, and of `gathers` the first
 * and the last batch of each size, outside of the measured time. */
#define _GNU_SOURCE
#include "work.h"

#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#define HUGE      (2ull << 20)
#define CASE_NS   600000000ull /* of one figure */
#define READS_MAX 20000u
#define BATCHES   12u /* of one measurement with WORK_SLOTS in flight */
#define LINKS     64u /* of the case memory */
#define SETUPS    30u
#define ARRAY(a)  (sizeof(a) / sizeof((a)[0]))

struct work_options work = {.port = 31999, .table_bytes = 1ull << 30};

void work_fail(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	_exit(1);
}

/* --- Memory and bytes. --- */

uint64_t work_word(uint64_t index)
{
	index = (index + 1) * 0x9e3779b97f4a7c15ull;
	index = (index ^ (index >> 31)) * 0xbf58476d1ce4e5b9ull;
	return index ^ (index >> 29);
}

void work_fill(void *table)
{
	uint64_t *words = table;
	madvise(table, work.table_bytes, MADV_HUGEPAGE);
	for (uint64_t i = 0; i < work.table_bytes / 8; i++)
		words[i] = work_word(i);
	madvise(table, work.table_bytes, MADV_COLLAPSE);
}

void *work_memory(size_t bytes)
{
	void *memory;
	size_t align = bytes < HUGE ? 4096 : HUGE;
	bytes = (bytes + align - 1) / align * align;
	if (posix_memalign(&memory, align, bytes) != 0)
		work_fail("no memory");
	madvise(memory, bytes, MADV_HUGEPAGE);
	return memory;
}

static bool right_words(uint64_t from, const void *bytes, uint64_t n)
{
	const uint64_t *words = bytes;
	for (uint64_t i = 0; i < n / 8; i++)
		if (words[i] != work_word(from / 8 + i))
			return false;
	return true;
}

static void check(uint64_t from, const void *bytes, uint64_t n)
{
	if (!(work_peer.right ? work_peer.right : right_words)(from, bytes, n))
		work_fail("wrong bytes of the read of %llu bytes at %llu", (unsigned long long)n,
			  (unsigned long long)from);
}

static uint64_t random_row(uint64_t row_bytes)
{
	static uint64_t number = 1u << 20;
	return work_word(number++) % (work.table_bytes / row_bytes) * row_bytes;
}

/* --- Sockets. --- */

static struct sockaddr_in loopback(void)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons((uint16_t)work.port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

int work_listen(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	struct sockaddr_in address = loopback();
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(fd, 512) != 0)
		work_fail("port %d: %s", work.port, strerror(errno));
	return fd;
}

int work_connect(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	struct sockaddr_in address = loopback();
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		work_fail("port %d: %s", work.port, strerror(errno));
	return fd;
}

void work_send(int fd, const void *bytes, size_t n)
{
	if (send(fd, bytes, n, MSG_NOSIGNAL) != (ssize_t)n)
		work_fail("the peer's socket: %s", strerror(errno));
}

void work_receive(int fd, void *bytes, size_t n)
{
	if (recv(fd, bytes, n, MSG_WAITALL) != (ssize_t)n)
		work_fail("the peer's socket: %s", strerror(errno));
}

/* --- Figures. --- */

uint64_t work_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double quantile(double *values, size_t n, double share)
{
	qsort(values, n, sizeof(*values), ascending);
	return values[(size_t)(share * (double)(n - 1) + 0.5)];
}

/* KiB, the process's share of shared pages included. */
static long memory_of(long process)
{
	char path[64], line[256];
	long kib = -1;
	snprintf(path, sizeof(path), "/proc/%ld/smaps_rollup", process);
	FILE *file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file) && sscanf(line, "Pss: %ld", &kib) != 1)
		;
	if (!file || kib < 0)
		work_fail("%s cannot be read", path);
	fclose(file);
	return kib;
}

static void figure(const char *name, uint64_t size, const char *unit, double value)
{
	printf("{\"case\":\"%s\",\"size\":%llu,\"unit\":\"%s\",\"value\":%.4f}\n", name, (unsigned long long)size, unit,
	       value);
	fflush(stdout);
}

/* --- Cases. --- */

static void reads(void)
{
	static const uint64_t sizes[] = {8, 64, 512, 4096, 65536, 1u << 20, 64u << 20};
	static double times[READS_MAX];
	struct work_link *link = work_peer.open();
	const uint64_t longest = sizes[ARRAY(sizes) - 1];
	uint8_t *to = work_peer.memory(link, longest);
	memset(to, 0, longest);
	/* Mapped pages are touched before the measured reads. */
	for (uint64_t from = 0; work.shm && from + longest <= work.table_bytes; from += longest)
		work_peer.read(link, from, longest, to);
	for (size_t s = 0; s < ARRAY(sizes); s++) {
		uint64_t size = sizes[s], begin = 0, n = 0;
		if (work.row && size != work.row)
			continue;
		uint64_t warm = size > 65536 ? 3 : 1000;
		for (uint64_t i = 0; i < warm + READS_MAX && (i < warm + 5 || work_now_ns() - begin < CASE_NS); i++) {
			uint64_t from = random_row(size), before = work_now_ns();
			begin = i == warm ? before : begin;
			work_peer.read(link, from, size, to);
			if (i >= warm)
				times[n++] = (double)(work_now_ns() - before) / 1e3;
			check(from, to, size);
			memset(to, 0, size < 64 ? size : 64);
		}
		if (size > 65536) {
			figure("read", size, "GB/s", (double)size / quantile(times, n, 0.5) / 1e3);
			continue;
		}
		figure("read", size, "us", quantile(times, n, 0.5));
		figure("read_p99", size, "us", quantile(times, n, 0.99));
	}
	work_peer.close(link);
}

static void gathers(void)
{
	static const uint32_t sizes[] = {128, 512, 1600};
	static uint64_t from[WORK_SLOTS][WORK_ROWS];
	static double times[READS_MAX];
	struct work_link *link = work_peer.open();
	size_t slot_bytes = (size_t)WORK_ROWS * sizes[ARRAY(sizes) - 1];
	uint8_t *to = work_peer.memory(link, WORK_SLOTS * slot_bytes);
	memset(to, 0, WORK_SLOTS * slot_bytes);
	for (size_t s = 0; s < ARRAY(sizes); s++) {
		uint32_t size = sizes[s];
		if (work.row && size != work.row)
			continue;
		for (unsigned depth = 1; depth <= WORK_SLOTS; depth += WORK_SLOTS - 1) {
			uint64_t begin = 0;
			size_t n = 0;
			const size_t warm = 3;
			bool more = true;
			for (size_t round = 0; more; round++) {
				unsigned batches = depth == 1 ? 1 : BATCHES;
				uint64_t before = work_now_ns();
				more = round < warm + 3 || before - begin < CASE_NS;
				begin = round == warm ? before : begin;
				double spent = 0;
				for (unsigned b = 0; b < batches + depth; b++) {
					unsigned slot = b % depth;
					uint64_t now = work_now_ns();
					if (b >= depth)
						work_peer.gather_end(link, slot);
					spent += (double)(work_now_ns() - now);
					if (b >= batches)
						continue;
					/* The offsets of a next batch are made while others are in flight. */
					for (uint32_t i = 0; i < WORK_ROWS; i++)
						from[slot][i] = random_row(size);
					if (round == 0 || !more)
						memset(to + slot * slot_bytes, 0, WORK_ROWS * (size_t)size);
					now = work_now_ns();
					work_peer.gather(link, slot, from[slot], size, to + slot * slot_bytes);
					spent += (double)(work_now_ns() - now);
				}
				double whole = (double)(work_now_ns() - before);
				if (round >= warm && more && n < READS_MAX)
					times[n++] = (depth == 1 ? spent : whole) / batches;
				for (unsigned slot = 0; slot < depth && (round == 0 || !more); slot++)
					for (uint32_t i = 0; i < WORK_ROWS; i++)
						check(from[slot][i], to + slot * slot_bytes + (size_t)i * size, size);
			}
			figure(depth == 1 ? "gather" : "gather_4", size, "M rows/s",
			       WORK_ROWS / quantile(times, n, 0.5) * 1e3);
		}
	}
	work_peer.close(link);
}

/* From nothing to the first eight bytes, in a process that has done it before. */
static void setup(void)
{
	double times[SETUPS];
	for (unsigned i = 0; i < SETUPS + 1; i++) {
		uint64_t before = work_now_ns();
		struct work_link *link = work_peer.open();
		void *to = work_peer.memory(link, 4096);
		work_peer.read(link, 4096, 8, to);
		if (i)
			times[i - 1] = (double)(work_now_ns() - before) / 1e3;
		check(4096, to, 8);
		work_peer.close(link);
	}
	figure("setup", 0, "us", quantile(times, SETUPS, 0.5));
}

/* The memory of a connection that has gathered once. */
static void memory(void)
{
	static uint64_t from[WORK_ROWS];
	const uint32_t size = 512;
	uint8_t *to = NULL;
	long before = 0, client = 0;
	for (unsigned i = 0; i <= LINKS; i++) {
		struct work_link *link = work_peer.open();
		to = work_peer.memory(link, (size_t)WORK_ROWS * size);
		for (uint32_t row = 0; row < WORK_ROWS; row++)
			from[row] = random_row(size);
		work_peer.gather(link, 0, from, size, to);
		work_peer.gather_end(link, 0);
		for (uint32_t row = 0; row < WORK_ROWS; row++)
			check(from[row], to + (size_t)row * size, size);
		/* Its own memory counts, not the rows. */
		madvise(to, (size_t)WORK_ROWS * size, MADV_DONTNEED);
		if (i == 0) {
			before = memory_of(work.server);
			client = memory_of(getpid());
		}
	}
	figure("memory_server", 0, "KiB", (double)(memory_of(work.server) - before) / LINKS);
	figure("memory_client", 0, "KiB", (double)(memory_of(getpid()) - client) / LINKS);
	_exit(0); /* closing so many links is not measured */
}

/* --- main --- */

static void take_options(int argc, char **argv)
{
	enum { PORT, SHM, POLL, PACKED, TABLE, SERVER, DRIVER, ROW };
	static const struct option options[] = {
		{"port", 1, NULL, PORT},     {"shm", 0, NULL, SHM},     {"poll", 0, NULL, POLL},
		{"packed", 0, NULL, PACKED}, {"table", 1, NULL, TABLE}, {"server", 1, NULL, SERVER},
		{"driver", 1, NULL, DRIVER}, {"row", 1, NULL, ROW},     {0}};
	for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		switch (option) {
		case PORT:
			work.port = atoi(optarg);
			break;
		case SHM:
			work.shm = true;
			break;
		case POLL:
			work.poll = true;
			break;
		case PACKED:
			work.packed = true;
			break;
		case TABLE:
			work.table_bytes = strtoull(optarg, NULL, 10);
			break;
		case SERVER:
			work.server = atol(optarg);
			break;
		case DRIVER:
			work.driver = optarg;
			break;
		case ROW:
			work.row = strtoull(optarg, NULL, 10);
			break;
		default:
			exit(2);
		}
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {{"reads", reads}, {"gathers", gathers}, {"setup", setup}, {"memory", memory}};
	const char *side = argc > 1 ? argv[1] : "";
	if (argc > 1)
		take_options(argc - 1, argv + 1);
	if (strcmp(side, "server") == 0)
		work_peer.serve();
	const char *name = argc > 2 ? argv[argc - 1] : "";
	for (size_t i = 0; i < ARRAY(cases) && strcmp(side, "client") == 0; i++) {
		if (strcmp(cases[i].name, name) == 0) {
			cases[i].run();
			return 0;
		}
	}
	fprintf(stderr, "usage: %s server|client OPTION… [reads|gathers|setup|memory]\n", argv[0]);
	return 2;
}
