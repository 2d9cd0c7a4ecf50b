/* One client that asks for a row, waits for it, and asks for the next: what latency means here. */
#ifndef GW_BENCH_ROW_TURNS_H
#define GW_BENCH_ROW_TURNS_H

#include "bench/bare_rows.h"
#include "bench/row_bed.h"

struct gw_row_rounds {
	struct gw_row_client client;
	struct gw_bare_rows rows; /* table, rows, row_bytes, landing: one row's; the rest is not looked at */
	struct gw_buffer *buffer; /* rows.landing */
	uint64_t next;            /* number of the next row */
};

/* Connects. The thread that calls it is the one that uses it. On failure nothing is left. */
gw_status gw_row_rounds_begin(struct gw_row_rounds *turns, const struct gw_row_bed *bed,
			      const struct gw_bare_rows *rows);
void gw_row_rounds_end(struct gw_row_rounds *turns);

/* Rows at random, one at a time, up to `rounds` or until the seconds are up (0: they are not counted), at least one.
 * Every row is compared with the table. microseconds[rounds] takes the time of each; *done: how many there were. */
gw_status gw_row_rounds_run(struct gw_row_rounds *turns, uint64_t rounds, double seconds, double *microseconds,
			    uint64_t *done);

#endif
