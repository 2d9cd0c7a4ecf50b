/* The bare loops that bound a row service: plain sockets, threads and memcpy, nothing of Graphwire in them. Each makes
 * its sockets (loopback), runs, and takes everything down. All return 0 or an errno. */
#ifndef GW_BENCH_BARE_ROWS_H
#define GW_BENCH_BARE_ROWS_H

#include <stddef.h>
#include <stdint.h>

struct gw_bare_rows {
	const uint8_t *table; /* rows of row_bytes, one after the other */
	uint64_t rows;
	uint32_t row_bytes;
	uint32_t batch;     /* rows asked for at once */
	uint32_t depth;     /* batches in flight */
	uint32_t run;       /* rows that follow each other, in what is measured; 0, 1: none do. Not in these loops. */
	uint32_t low_water; /* over TCP: the client wakes for so many bytes at least (SO_RCVLOWAT); 0: for every one */
	uint8_t *landing;   /* depth * batch * row_bytes */
	double seconds;     /* how long to measure */
};

/* A number's own hash: which row comes next. Every loop counts on from where it was, and no run draws the numbers
 * of another. */
uint64_t gw_bare_mix(uint64_t x);

/* Keeps the calling thread on the n-th processor that the process may use, counted round: clients run on even ones,
 * servers on odd ones, in every loop, so that no scheduler puts both on one. Nothing happens where there is only one.
 */
void gw_bare_pin(unsigned number);

/* The client sends 4-byte row numbers, the server thread gathers the rows with prefetch into 256 KiB and sends them,
 * the client receives in place; `depth` batches in flight. Bytes of rows per second. */
int gw_bare_rows_tcp(const struct gw_bare_rows *rows, double *bytes_per_second);

/* The same by `pairs` clients and servers at once, a thread and a connection each, every one of which has batches and
 * depth of its own: landing has room for all of them. The sum of their rates. */
#define GW_BARE_PAIRS_MAX 64
int gw_bare_rows_pairs(const struct gw_bare_rows *rows, unsigned pairs, double *bytes_per_second);

/* One hot buffer to another, as fast as the sockets go. */
int gw_bare_stream(double seconds, double *bytes_per_second);

/* Prefetch 12 rows ahead, memcpy, batch after batch. */
int gw_bare_rows_copy(const struct gw_bare_rows *rows, double *bytes_per_second);

#endif
