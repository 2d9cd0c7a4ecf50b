/* One client that requests a row, waits for it, and requests the next: the latency case. */
#ifndef GW_BENCH_ROW_TURNS_H
#define GW_BENCH_ROW_TURNS_H

#include "bench/bare_rows.h"
#include "bench/row_bed.h"

struct gw_row_rounds {
	struct gw_row_client client;
	struct gw_bare_rows rows; /* table, rows, row_bytes, landing (for one row); other fields are ignored */
	struct gw_buffer *buffer; /* rows.landing */
	uint64_t next;            /* number of the next row */
};

/* Connects. Only the thread that calls it may use it. On failure nothing is left. */
gw_status gw_row_rounds_begin(struct gw_row_rounds *turns, const struct gw_row_bed *bed,
			      const struct gw_bare_rows *rows);
void gw_row_rounds_end(struct gw_row_rounds *turns);

/* Reads random rows, one at a time, up to `rounds` or until `seconds` are over (0: no time limit), at least one row.
 * Every row is compared with the table. microseconds[rounds] gets the time of each; *done is the number of rows. */
gw_status gw_row_rounds_run(struct gw_row_rounds *turns, uint64_t rounds, double seconds, double *microseconds,
			    uint64_t *done);

#endif
