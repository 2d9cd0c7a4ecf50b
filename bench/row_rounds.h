/* One client that requests a row, waits for it, and requests the next: the time of each round is the latency. */
#ifndef GW_BENCH_ROW_ROUNDS_H
#define GW_BENCH_ROW_ROUNDS_H

#include "bench/bare_rows.h"
#include "bench/row_bed.h"

struct gw_row_rounds {
	struct gw_row_client client;
	struct gw_bare_rows rows; /* table, rows, row_bytes, landing (of one row); the rest is not used */
	struct gw_buffer *buffer; /* the registered rows.landing */
	uint64_t next;            /* number of the next row */
};

/* Connects. The calling thread must be the thread that uses it. On failure everything is freed. */
gw_status gw_row_rounds_begin(struct gw_row_rounds *reader, const struct gw_row_bed *bed,
			      const struct gw_bare_rows *rows);
void gw_row_rounds_end(struct gw_row_rounds *reader);

/* Reads random rows, one at a time: at least one, up to `rounds`, and until `seconds` have passed (0: no time limit).
 * Compares every row with the table. microseconds[rounds] gets the time of each row, *done their number. */
gw_status gw_row_rounds_run(struct gw_row_rounds *reader, uint64_t rounds, double seconds, double *microseconds,
			    uint64_t *done);

#endif
