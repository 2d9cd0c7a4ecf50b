/* graphwire bench gather: rows at random from a large table, against bare loops of the same reads.
 *
 *   table of random bytes -> for each row size: memory against a prefetching memcpy; tcp against bare sockets, by each
 *   driver, a raw stream beside them -> report
 *
 * Reads are checked against the table before anything is measured. One client and one server thread, both loops alike;
 * `depth` batches in flight. The rows of a batch are random, so that no cache helps and no two batches are the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bare_rows.h"
#include "bench/bench.h"
#include "bench/row_stream.h"
#include "core/base/alloc.h"
#include "core/base/options.h"

#define ROW_BYTES_MAX (64u << 10)
#define SIZES_MAX     16
#define STREAMS       3 /* measurements of the raw stream */

struct arguments {
	struct gw_bench bench;
	uint64_t table_bytes, batch, depth;
	double seconds;
	const char *transport; /* NULL: all */
	uint32_t row_bytes[SIZES_MAX];
	unsigned row_sizes;
	uint64_t spin_ns;
	/* while it runs */
	struct gw_arena *table, *landing;
	struct gw_row_bed bed;
	struct gw_bare_rows bare;
	struct gw_row_stream stream;
	bool memory; /* the case is in memory, else over TCP */
	/* Processor seconds, both sides together, for each GB: says more than the clock on a busy machine. */
	struct gw_bench_series cpu, bare_cpu;
};

enum { OPT_TABLE = 1, OPT_BATCH, OPT_DEPTH, OPT_SECONDS, OPT_TRANSPORT, OPT_ROW, OPT_SPIN };

static const struct argp_option options[] = {
	{"table", OPT_TABLE, "BYTES", 0, "size of the table (2Gi)", 0},
	{"row", OPT_ROW, "BYTES", 0, "bytes of a row; may be given several times (400, 512)", 0},
	{"batch", OPT_BATCH, "N", 0, "rows of a batch (10k)", 0},
	{"depth", OPT_DEPTH, "N", 0, "batches in flight (4)", 0},
	{"seconds", OPT_SECONDS, "S", 0, "length of one measurement (0.5)", 0},
	{"transport", OPT_TRANSPORT, "NAME", 0, "memory, epoll or io_uring only", 0},
	{"spin", OPT_SPIN, "US", 0, "look so long before sleeping (0)", 0},
	{0},
};

static uint64_t number_of(const char *name, const char *text, uint64_t min, uint64_t max, struct argp_state *state)
{
	uint64_t number = 0;
	if (gw_parse_u64(text, min, max, &number))
		argp_error(state, "--%s: %s", name, gw_last_error());
	return number;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	static const char *const transports[] = {"memory", "epoll", "io_uring", NULL};
	struct arguments *a = state->input;
	int ignored;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->bench;
		return 0;
	case OPT_TABLE:
		a->table_bytes = number_of("table", arg, 1 << 20, 1ull << 44, state);
		return 0;
	case OPT_ROW:
		if (a->row_sizes == SIZES_MAX)
			argp_error(state, "--row: more than %d sizes", SIZES_MAX);
		a->row_bytes[a->row_sizes++] = (uint32_t)number_of("row", arg, 1, ROW_BYTES_MAX, state);
		return 0;
	case OPT_BATCH:
		a->batch = number_of("batch", arg, 1, 1 << 20, state);
		return 0;
	case OPT_DEPTH:
		a->depth = number_of("depth", arg, 1, ROW_DEPTH_MAX, state);
		return 0;
	case OPT_SECONDS:
		if (gw_parse_double(arg, 0.01, 1000, &a->seconds))
			argp_error(state, "--seconds: %s", gw_last_error());
		return 0;
	case OPT_TRANSPORT:
		if (gw_parse_choice(arg, transports, &ignored))
			argp_error(state, "--transport: %s", gw_last_error());
		a->transport = arg;
		return 0;
	case OPT_SPIN:
		a->spin_ns = 1000 * number_of("spin", arg, 0, 1000000, state);
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "\"%s\": no argument is expected", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- measuring ---- */

static gw_status measure_rows(void *context, double *figure)
{
	struct arguments *a = context;
	uint64_t batches;
	double cpu = gw_bench_cpu_seconds();
	gw_status status = gw_row_stream_run(&a->stream, figure, &batches);
	*figure *= 1e-9;
	gw_bench_series_add(&a->cpu, (gw_bench_cpu_seconds() - cpu) * 1e9 /
					     (double)((batches + a->depth) * a->batch * a->bare.row_bytes));
	return status;
}

static gw_status measure_bare(void *context, double *figure)
{
	struct arguments *a = context;
	double cpu = gw_bench_cpu_seconds();
	int error = a->memory ? gw_bare_rows_copy(&a->bare, figure) : gw_bare_rows_tcp(&a->bare, figure);
	*figure *= 1e-9;
	if (error)
		return gw_fail_errno(GW_IO, error, "the bare loop");
	gw_bench_series_add(&a->bare_cpu, (gw_bench_cpu_seconds() - cpu) / (*figure * a->seconds));
	return GW_OK;
}

/* What the sockets would carry if nobody had to gather. */
static gw_status measure_stream(const struct arguments *a, struct gw_bench_series *streams)
{
	for (unsigned i = 0; i < STREAMS; i++) {
		double figure;
		int error = gw_bare_stream(a->seconds, &figure);
		if (error)
			return gw_fail_errno(GW_IO, error, "the bare stream");
		gw_bench_series_add(streams, figure * 1e-9);
	}
	return GW_OK;
}

/* ---- a case ---- */

static gw_status measure(struct arguments *a, struct gw_bench_series *ceilings, struct gw_bench_series *values,
			 struct gw_bench_series *streams)
{
	gw_status status = gw_row_stream_begin(&a->stream, &a->bed, &a->bare);
	if (status)
		return status;
	status = gw_row_stream_verify(&a->stream);
	if (!status)
		status = gw_bench_alternate(&a->bench, measure_bare, measure_rows, a, ceilings, values);
	if (!status && !a->memory)
		status = measure_stream(a, streams);
	gw_row_stream_end(&a->stream);
	return status;
}

static gw_status run_case(struct arguments *a, const char *scheme, const char *driver)
{
	gw_status status = gw_row_bed_begin(&a->bed, a->table, a->table_bytes, scheme, driver, a->spin_ns, 1);
	if (status == GW_UNSUPPORTED && driver) {
		fprintf(a->bench.table, "tcp/%s: not measured: %s\n", driver, gw_last_error());
		return GW_OK;
	}
	if (status)
		return status;
	struct gw_bench_series ceilings = {0}, values = {0}, streams = {0};
	a->cpu.count = a->bare_cpu.count = 0;
	a->memory = !driver;
	status = measure(a, &ceilings, &values, &streams);
	gw_row_bed_end(&a->bed);
	if (status)
		return status;
	char title[96], note[96];
	double stream = gw_bench_series_median(&streams);
	snprintf(title, sizeof(title), "%s%s%s, %llu x %u B, %llu in flight", scheme, driver ? "/" : "",
		 driver ? driver : "", (unsigned long long)a->batch, a->bare.row_bytes, (unsigned long long)a->depth);
	if (driver)
		snprintf(note, sizeof(note), "on %s; a raw stream from hot buffers: %.4g GB/s", gw_row_pages(a->table),
			 stream);
	else
		snprintf(note, sizeof(note), "on %s", gw_row_pages(a->table));
	struct gw_bench_result result = {
		.title = title,
		.unit = "GB/s",
		.values = &values,
		.ceilings = &ceilings,
		.verified = true,
		.note = note,
		.fields = {{"mrows_per_s", gw_bench_series_median(&values) * 1e3 / a->bare.row_bytes, NULL},
			   {"cpu_s_per_gb", gw_bench_series_median(&a->cpu), NULL},
			   {"ceiling_cpu_s_per_gb", gw_bench_series_median(&a->bare_cpu), NULL},
			   {"pages", 0, gw_row_pages(a->table)},
			   {driver ? "raw_stream_gb_per_s" : NULL, stream, NULL}},
	};
	gw_bench_report(&a->bench, &result);
	return GW_OK;
}

static gw_status run_size(struct arguments *a, uint32_t row_bytes)
{
	static const char *const drivers[] = {"epoll", "io_uring"};
	a->bare = (struct gw_bare_rows){.table = gw_arena_base(a->table),
					.rows = a->table_bytes / row_bytes,
					.row_bytes = row_bytes,
					.batch = (uint32_t)a->batch,
					.depth = (uint32_t)a->depth,
					.landing = gw_arena_base(a->landing),
					.seconds = a->seconds};
	gw_status status = GW_OK;
	if (!a->transport || strcmp(a->transport, "memory") == 0)
		status = run_case(a, "memory", NULL);
	for (int i = 0; i < 2 && !status; i++)
		if (!a->transport || strcmp(a->transport, drivers[i]) == 0)
			status = run_case(a, "tcp", drivers[i]);
	return status;
}

static gw_status run(struct arguments *a)
{
	uint32_t widest = 0;
	for (unsigned i = 0; i < a->row_sizes; i++)
		widest = a->row_bytes[i] > widest ? a->row_bytes[i] : widest;
	const struct gw_arena_options pages = {.name = "bench-landing", .numa = GW_NUMA_LOCAL};
	gw_bare_pin(0);
	gw_status status = gw_bench_open(&a->bench);
	if (!status)
		status = gw_arena_create(a->depth * a->batch * widest, &pages, &a->landing);
	if (!status)
		status = gw_row_table_make(a->table_bytes, &a->table);
	for (unsigned i = 0; i < a->row_sizes && !status; i++)
		status = run_size(a, a->row_bytes[i]);
	gw_arena_destroy(a->landing);
	gw_arena_destroy(a->table);
	gw_status closed = gw_bench_close(&a->bench);
	return status ? status : closed;
}

int gw_bench_gather(int argc, char **argv)
{
	static const struct argp_child children[] = {{&gw_bench_argp, 0, "Measuring:", 90}, {0}};
	static const struct argp argp = {
		options,
		parse,
		NULL,
		"Measures gathers of random rows in memory and over TCP beside bare loops of the same reads.\v"
		"Examples:\n  graphwire bench gather\n  graphwire bench gather --row 1024 --transport io_uring --json "
		"-",
		children,
		NULL,
		NULL};
	struct arguments *a = gw_calloc(1, sizeof(*a));
	if (!a)
		return 1;
	*a = (struct arguments){
		.bench = {.name = "gather"}, .table_bytes = 2ull << 30, .batch = 10000, .depth = 4, .seconds = 0.5};
	if (gw_options_parse(&argp, argc, argv, a) != 0) {
		gw_free(a);
		return 2;
	}
	if (!a->row_sizes) {
		a->row_bytes[a->row_sizes++] = 400;
		a->row_bytes[a->row_sizes++] = 512;
	}
	gw_status status = run(a);
	if (status)
		fprintf(stderr, "graphwire bench gather: %s\n", gw_last_error());
	gw_free(a);
	return status ? 1 : 0;
}
