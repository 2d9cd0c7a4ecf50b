/* graphwire bench latency --matrix: size x transport.
 *
 *   each path -> a test bed (row_bed.h) -> each size, `repeats` times: rows one at a time, then batches in flight
 *   -> a line of the table, a JSON object, a point of the plot
 *
 * The time is divided evenly among the measurements. The run takes a little longer than requested: servers start,
 * memory is registered, and the last batches end. Every single row is compared with the table; batches are checked
 * before they are measured. If this host lacks a path, the output names the path and leaves it out.
 */
#include "bench/matrix.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "bench/plot.h"
#include "bench/row_rounds.h"
#include "bench/row_stream.h"
#include "core/memory/alloc.h"
#include "core/numbers/histogram.h"
#include "core/system/clock.h"

#define ROUNDS_MAX    65536u /* the most single rows of one slice */
#define BATCH_MAX     1000u
#define BATCH_MIN     16u
#define BATCH_BYTES   (1u << 20) /* approximate bytes of a batch */
#define DEPTH         4u
#define LANDING_BYTES ((uint64_t)DEPTH * (BATCH_BYTES + BATCH_MIN * (64u << 10)))

/* The results of one path and size; zeros: not measured. */
struct cell {
	double p50_us, p99_us, p999_us, rows_per_s;
};

struct matrix {
	struct gw_bench *bench;
	const struct gw_matrix_spec *spec;
	struct gw_arena *landing;
	double *microseconds; /* [ROUNDS_MAX] */
	double round_seconds; /* time of rounds, or of batches, in one repeat */
	struct cell cells[ROW_WAYS][MATRIX_SIZES_MAX];
	/* the cell being measured */
	struct gw_row_bed bed;
	struct gw_row_rounds row_rounds;
	struct gw_row_stream stream;
	struct gw_histogram waits; /* ns */
	struct gw_bench_series p50, rates;
};

/* ---- a cell ---- */

static gw_status measure_rounds(void *context, double *figure)
{
	struct matrix *m = context;
	uint64_t done;
	gw_status status = gw_row_rounds_run(&m->row_rounds, ROUNDS_MAX, m->round_seconds, m->microseconds, &done);
	for (uint64_t i = 0; i < done; i++)
		gw_histogram_add(&m->waits, (uint64_t)(m->microseconds[i] * 1e3));
	*figure = gw_bench_quantile(m->microseconds, done, 0.5);
	return status;
}

static gw_status matrix_measure_stream(void *context, double *figure)
{
	struct matrix *m = context;
	gw_status status = gw_row_stream_run(&m->stream, figure, NULL);
	*figure /= m->stream.rows.row_bytes;
	return status;
}

static struct gw_bare_rows rows_of(const struct matrix *m, uint32_t row_bytes)
{
	uint32_t batch = BATCH_BYTES / row_bytes;
	batch = batch > BATCH_MAX ? BATCH_MAX : batch;
	return (struct gw_bare_rows){.table = gw_arena_base(m->spec->table),
				     .rows = gw_arena_bytes(m->spec->table) / row_bytes,
				     .row_bytes = row_bytes,
				     .batch = batch < BATCH_MIN ? BATCH_MIN : batch,
				     .depth = DEPTH,
				     .landing = gw_arena_base(m->landing),
				     .seconds = m->round_seconds};
}

static void matrix_report(struct matrix *m, const struct gw_row_path *path, uint32_t row_bytes, const struct cell *cell)
{
	char title[64];
	snprintf(title, sizeof(title), "%s, %u B", path->name, row_bytes);
	const struct gw_bench_result result = {
		.title = title,
		.unit = "us",
		.values = &m->p50,
		.verified = true,
		.lower_is_better = true,
		.fields = {{"transport", 0, path->name},
			   {"row_bytes", row_bytes, NULL},
			   {"p50_us", cell->p50_us, NULL},
			   {"p99_us", cell->p99_us, NULL},
			   {"p999_us", cell->p999_us, NULL},
			   {"rounds", (double)m->waits.count, NULL},
			   {"rows_per_s", cell->rows_per_s, NULL},
			   {"gb_per_s", cell->rows_per_s * row_bytes * 1e-9, NULL},
			   {"rate_spread", gw_bench_series_spread(&m->rates), NULL}},
	};
	gw_bench_report_json(m->bench, &result);
	fprintf(m->bench->table, "%-12s %8u %10.4g %10.4g %10.4g %12.4g %10.4g\n", path->name, row_bytes, cell->p50_us,
		cell->p99_us, cell->p999_us, cell->rows_per_s, cell->rows_per_s * row_bytes * 1e-9);
	fflush(m->bench->table);
}

static gw_status run_cell(struct matrix *m, unsigned path, unsigned size)
{
	uint32_t row_bytes = m->spec->row_bytes[size];
	const struct gw_bare_rows rows = rows_of(m, row_bytes);
	struct cell *cell = &m->cells[path][size];
	gw_histogram_clear(&m->waits);
	m->p50.count = m->rates.count = 0;
	gw_status status = gw_row_rounds_begin(&m->row_rounds, &m->bed, &rows);
	if (status != GW_OK)
		return status;
	status = gw_row_stream_begin(&m->stream, &m->bed, &rows);
	if (status == GW_OK) {
		status = gw_row_stream_verify(&m->stream);
		if (status == GW_OK)
			status = gw_bench_alternate(m->bench, measure_rounds, matrix_measure_stream, m, &m->p50,
						    &m->rates);
		gw_row_stream_end(&m->stream);
	}
	gw_row_rounds_end(&m->row_rounds);
	if (status != GW_OK)
		return status;
	*cell = (struct cell){.p50_us = gw_bench_series_median(&m->p50),
			      .p99_us = (double)gw_histogram_quantile(&m->waits, 0.99) * 1e-3,
			      .p999_us = (double)gw_histogram_quantile(&m->waits, 0.999) * 1e-3,
			      .rows_per_s = gw_bench_series_median(&m->rates)};
	matrix_report(m, &gw_row_paths[path], row_bytes, cell);
	return GW_OK;
}

/* ---- all cells ---- */

static gw_status matrix_run_path(struct matrix *m, unsigned number)
{
	const struct gw_row_path *path = &gw_row_paths[number];
	const struct gw_poll_group_options options = {.tcp_driver = path->tcp_driver,
						      .spin_ns = 1000 * m->spec->spin_us,
						      .queue_pairs = m->spec->queue_pairs};
	gw_status status = gw_row_bed_begin(&m->bed, m->spec->table, gw_arena_bytes(m->spec->table), NULL, path->scheme,
					    &options, 1);
	if (status == GW_UNSUPPORTED || status == GW_LOCKED_MEMORY) {
		gw_bench_missing(m->bench, path->name, gw_last_error());
		return GW_OK;
	}
	if (status != GW_OK)
		return status;
	for (unsigned size = 0; size < m->spec->row_sizes && status == GW_OK; size++)
		status = run_cell(m, number, size);
	gw_row_bed_end(&m->bed);
	return status != GW_OK ? gw_context(status, "%s", path->name) : GW_OK;
}

static bool wanted(const struct gw_matrix_spec *spec, unsigned path)
{
	return !spec->transport || strcmp(spec->transport, gw_row_paths[path].option) == 0;
}

static gw_status matrix_run_paths(struct matrix *m)
{
	const struct gw_matrix_spec *spec = m->spec;
	unsigned paths = 0;
	for (unsigned path = 0; path < ROW_WAYS; path++)
		paths += wanted(spec, path);
	m->round_seconds = spec->seconds / (2.0 * paths * spec->row_sizes * m->bench->repeats);
	fprintf(m->bench->table,
		"One row at a time, polled for %llu us before sleeping; then %u batches of rows in flight. "
		"Rows at random from %.4g MiB on %s.\n%-12s %8s %10s %10s %10s %12s %10s\n",
		(unsigned long long)spec->spin_us, DEPTH, (double)gw_arena_bytes(spec->table) / (1 << 20),
		gw_row_pages(spec->table), "transport", "row B", "p50 us", "p99 us", "p99.9 us", "rows/s", "GB/s");
	gw_status status = GW_OK;
	for (unsigned path = 0; path < ROW_WAYS && status == GW_OK; path++)
		if (wanted(spec, path))
			status = matrix_run_path(m, path);
	return status;
}

/* ---- the plot ---- */

static void plot(const struct matrix *m, FILE *to)
{
	double sizes[MATRIX_SIZES_MAX];
	double y[3][ROW_WAYS][MATRIX_SIZES_MAX];
	struct gw_plot_line latency[2 * ROW_WAYS], rate[ROW_WAYS];
	for (unsigned size = 0; size < m->spec->row_sizes; size++)
		sizes[size] = m->spec->row_bytes[size];
	for (unsigned path = 0; path < ROW_WAYS; path++) {
		for (unsigned size = 0; size < m->spec->row_sizes; size++) {
			y[0][path][size] = m->cells[path][size].p50_us * 1e-6;
			y[1][path][size] = m->cells[path][size].p99_us * 1e-6;
			y[2][path][size] = m->cells[path][size].rows_per_s;
		}
		const char *name = gw_row_paths[path].name;
		latency[path] = (struct gw_plot_line){.name = name, .hue = path, .y = y[0][path]};
		latency[ROW_WAYS + path] =
			(struct gw_plot_line){.name = name, .hue = path, .y = y[1][path], .dashed = true};
		rate[path] = (struct gw_plot_line){.name = name, .hue = path, .y = y[2][path]};
	}
	const struct gw_plot_panel panels[] = {{.title = "One row: median (solid) and 99th percentile (dashed)",
						.unit = GW_PLOT_SECONDS,
						.lines = latency,
						.line_count = 2 * ROW_WAYS},
					       {.title = "Many in flight: rows per second",
						.unit = GW_PLOT_COUNT,
						.lines = rate,
						.line_count = ROW_WAYS}};
	const struct gw_plot picture = {
		.title = "graphwire bench latency --matrix",
		.x_label = "bytes of a row",
		.x_unit = GW_PLOT_BYTES,
		.x = sizes,
		.points = m->spec->row_sizes,
		.panels = panels,
		.panel_count = 2,
	};
	gw_plot_write(&picture, to);
}

gw_status gw_matrix_run(struct gw_bench *bench, const struct gw_matrix_spec *spec)
{
	FILE *picture = NULL;
	const struct gw_arena_options pages = {.name = "bench-landing", .numa = GW_NUMA_LOCAL};
	/* Open the plot first, to report a missing folder before measuring. */
	if (spec->plot_path && !(picture = fopen(spec->plot_path, "we")))
		return gw_fail_errno(GW_IO, errno, "write %s", spec->plot_path);
	struct matrix *m = gw_calloc(1, sizeof(*m));
	gw_status status = m ? GW_OK : GW_NO_MEMORY;
	if (status == GW_OK) {
		m->bench = bench;
		m->spec = spec;
		m->microseconds = gw_calloc(ROUNDS_MAX, sizeof(double));
		status = m->microseconds ? gw_arena_create(LANDING_BYTES, &pages, &m->landing) : GW_NO_MEMORY;
	}
	if (status == GW_OK)
		status = matrix_run_paths(m);
	if (status == GW_OK && picture)
		plot(m, picture);
	if (picture) {
		bool failed = ferror(picture);
		failed |= fclose(picture) != 0;
		if (failed && status == GW_OK)
			status = gw_fail_errno(GW_IO, errno, "write %s", spec->plot_path);
	}
	if (m) {
		gw_arena_destroy(m->landing);
		gw_free(m->microseconds);
	}
	gw_free(m);
	return status;
}
