/* The work of `bench/peers/run transports`, the same for every library: a server has a table of random words, a client
 * reads ranges and gathers rows of it. A program (graphwire.c, public.c, ucx.c, fabric.c) implements struct work_peer;
 * work.c has main, the cases, the clock and the checks.
 *
 *   PROGRAM server OPTION…           prints "ready", serves until it is killed
 *   PROGRAM client OPTION… CASE      prints one JSON object for each figure
 *
 * Options: --port N, --shm (else TCP), --poll (else both sides sleep), --packed (rows are packed by the server; else
 * one get for each row), --table BYTES, --server PID, --driver NAME (of Graphwire), --row BYTES (reads and gathers of
 * this size only). Cases: reads, gathers, setup, memory. A program ends with exit status 1 at the first wrong byte or
 * failed call.
 */
#ifndef PEERS_WORK_H
#define PEERS_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORK_SLOTS 4 /* gathers in flight */
#define WORK_ROWS  10000u
#define WORK_PIECE 2500u /* rows of one message of the packed peers */

struct work_options {
	int port;
	bool shm, poll, packed;
	uint64_t table_bytes;
	uint64_t row; /* 0: all sizes */
	long server;  /* process id */
	const char *driver;
};
extern struct work_options work;

/* A connection of a client. Each has all that a process needs for one more connection: a poll group, a worker, an
 * endpoint. */
struct work_link;

struct work_peer {
	void (*serve)(void);
	struct work_link *(*open)(void);
	void (*close)(struct work_link *link);
	/* Memory in which reads land. A link has one at a time. */
	void *(*memory)(struct work_link *link, size_t bytes);
	void (*read)(struct work_link *link, uint64_t from, uint64_t bytes, void *to);
	/* Starts a gather of WORK_ROWS rows at the offsets `from`, which stay until the end; waits for its end. */
	void (*gather)(struct work_link *link, unsigned slot, const uint64_t *from, uint32_t row_bytes, void *to);
	void (*gather_end)(struct work_link *link, unsigned slot);
	bool (*right)(uint64_t from, const void *bytes, uint64_t n); /* NULL: words of work_word */
};
extern const struct work_peer work_peer;

uint64_t work_word(uint64_t index); /* of the table */
/* Fills the table with its words, on huge pages if the kernel gives them. */
void work_fill(void *table);
/* Private memory, aligned to huge pages. */
void *work_memory(size_t bytes);
uint64_t work_now_ns(void);
void work_fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* The peers exchange addresses and keys over a socket. */
int work_listen(void);
int work_connect(void);
void work_send(int fd, const void *bytes, size_t n);
void work_receive(int fd, void *bytes, size_t n);

#endif
