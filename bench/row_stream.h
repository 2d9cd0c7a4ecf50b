/* One client that gathers batches of random rows, several in flight: the counterpart of gw_bare_rows_tcp. */
#ifndef GW_BENCH_ROW_STREAM_H
#define GW_BENCH_ROW_STREAM_H

#include "bench/bare_rows.h"
#include "bench/row_bed.h"

#define ROW_DEPTH_MAX 64

struct gw_row_stream {
	struct gw_row_client client;
	struct gw_bare_rows rows; /* the same parameters as the bare loop's */
	struct gw_buffer *buffer; /* rows.landing */
	struct gw_read_set sets[ROW_DEPTH_MAX];
	uint64_t *offsets; /* [depth][batch] */
	uint64_t next;     /* number of the next row */
	uint64_t deadline_ns;
};

/* Connects and allocates memory. Only the thread that calls it may use it. On failure nothing is left. */
gw_status gw_row_stream_begin(struct gw_row_stream *stream, const struct gw_row_bed *bed,
			      const struct gw_bare_rows *rows);
void gw_row_stream_end(struct gw_row_stream *stream);

/* Gathers some batches and compares every row with the table. */
gw_status gw_row_stream_verify(struct gw_row_stream *stream);

/* Gathers for rows.seconds. *batches may be NULL. */
gw_status gw_row_stream_run(struct gw_row_stream *stream, double *bytes_per_second, uint64_t *batches);

#endif
