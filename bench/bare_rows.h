/* The bare loops that bound a row service: plain sockets, threads and memcpy, without any code of Graphwire. Each loop
 * makes its sockets on loopback, measures, and closes everything. All return 0 or an errno. */
#ifndef GW_BENCH_BARE_ROWS_H
#define GW_BENCH_BARE_ROWS_H

#include <stddef.h>
#include <stdint.h>

struct gw_bare_rows {
	const uint8_t *table; /* rows of row_bytes, one after the other */
	uint64_t rows;
	uint32_t row_bytes;
	uint32_t batch; /* rows of a request */
	uint32_t depth; /* batches in flight */
	uint32_t run;   /* length of a run of neighbouring rows in the measured case; 0 or 1: no runs. The bare loops
			   ignore it. */
	uint32_t low_water; /* over TCP: the bytes for which the client wakes (SO_RCVLOWAT); 0: it wakes for every byte
			     * */
	uint8_t *landing;   /* depth * batch * row_bytes */
	double seconds;     /* how long to measure */
};

/* Hashes a number. The loops hash consecutive numbers to select rows. The numbers continue from one run to the next, so
 * that no run draws the numbers of another run. */
uint64_t gw_bare_mix(uint64_t x);

/* Keeps the calling thread on the n-th processor of the process, modulo their number. In every loop clients run on even
 * processors and servers on odd ones, so that no scheduler puts both on one. With only one processor the call does
 * nothing. */
void gw_bare_pin(unsigned number);

/* The client sends 4-byte row numbers. The server thread gathers the rows with prefetch into 256 KiB and sends them.
 * The client receives them in place, with `depth` batches in flight. *bytes_per_second counts the bytes of rows. */
int gw_bare_rows_tcp(const struct gw_bare_rows *rows, double *bytes_per_second);

/* The same with `pairs` clients and servers at once. Each has its own thread, connection, batches and depth, so
 * landing needs room for all of them. Returns the sum of the rates. */
#define GW_BARE_PAIRS_MAX 64
int gw_bare_rows_pairs(const struct gw_bare_rows *rows, unsigned pairs, double *bytes_per_second);

/* Sends one hot buffer to another, as fast as the sockets can. */
int gw_bare_stream(double seconds, double *bytes_per_second);

/* Copies batch after batch with memcpy, prefetching 12 rows ahead. */
int gw_bare_rows_copy(const struct gw_bare_rows *rows, double *bytes_per_second);

#endif
