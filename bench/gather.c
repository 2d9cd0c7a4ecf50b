/* graphwire bench gather: random rows from a large table, against bare loops of the same reads.
 *
 *   table of random bytes -> for each row size: memory and shm against a prefetching memcpy; tcp against bare sockets,
 *   with each driver, and a raw stream for comparison; verbs against bare reads -> report
 *
 * The ceiling of TCP is the plain bare loop. A second bare loop is reported with it: its client's socket has a
 * low-water mark, so it wakes for each megabyte instead of for every few segments. Reads are compared with the table
 * before anything is measured. Both loops have one client and one server thread, and `depth` batches in flight.
 *
 * The rows of a batch are random, so that no cache helps and no two batches are the same. With --run they are runs of
 * neighbours at random places; a transport may fetch a run as one read, while the bare loops do not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bare_rows.h"
#include "bench/bare_verbs.h"
#include "bench/bench.h"
#include "bench/row_stream.h"
#include "core/memory/alloc.h"

#define ROW_BYTES_MAX (64u << 10)
#define SIZES_MAX     16
#define STREAMS       3          /* measurements of the raw stream */
#define BARE_DEPTH    128        /* bare reads in flight on a queue pair */
#define BARE_MARK     (1u << 20) /* the low-water mark of the second bare loop's client over TCP */

struct gather_arguments {
	struct gw_bench bench;
	uint64_t table_bytes, batch, depth, queue_pairs, run;
	double seconds;
	const char *transport; /* NULL: all */
	uint32_t row_bytes[SIZES_MAX];
	unsigned row_sizes;
	uint64_t spin_us;
	/* in use while the benchmark runs */
	struct gw_arena *table, *landing;
	struct gw_row_bed bed;
	struct gw_bare_rows bare;
	struct gw_row_stream stream;
	const char *scheme;               /* the case's scheme */
	struct gw_bare_verbs *bare_verbs; /* the ceiling of verbs */
	/* Processor seconds of both sides for each GB: on a busy machine they mean more than the clock. */
	struct gw_bench_series cpu, bare_cpu;
	struct gw_bench_series marked; /* TCP: the bare loop with a low-water mark, alternating with the loop without */
};

static gw_status take_row(void *input, char *text)
{
	struct gather_arguments *a = input;
	uint64_t bytes = 0;
	if (a->row_sizes == SIZES_MAX)
		return gw_fail(GW_LIMIT, "more than %d sizes", SIZES_MAX);
	gw_status status = gw_parse_u64(text, 1, ROW_BYTES_MAX, &bytes);
	if (status == GW_OK)
		a->row_bytes[a->row_sizes++] = (uint32_t)bytes;
	return status;
}

#define A struct gather_arguments
static const struct gw_option table[] = {
	{"table", "BYTES", "size of the table (default 2Gi)", 0, GW_OPTION_NUMBER(A, table_bytes, 1 << 20, 1ull << 44)},
	{"row", "BYTES", "bytes of a row; may be repeated (default 400, 512)", 0, GW_OPTION_CALL(take_row)},
	{"batch", "N", "rows of a batch (default 10k)", 0, GW_OPTION_NUMBER(A, batch, 1, 1 << 20)},
	{"run", "N", "take the rows of a batch in runs of N neighbours (default 1)", 0,
	 GW_OPTION_NUMBER(A, run, 1, 1024)},
	{"depth", "N", "batches in flight (default 4)", 0, GW_OPTION_NUMBER(A, depth, 1, ROW_DEPTH_MAX)},
	{"seconds", "S", "length of one measurement (default 0.5)", 0, GW_OPTION_REAL(A, seconds, 0.01, 1000)},
	{"transport", "NAME", "measure memory, shm, epoll, io_uring or verbs only", 0,
	 GW_OPTION_CHOICE(A, transport, gw_row_options)},
	{"queue-pairs", "N", "verbs: queue pairs of the connection and of the bare loop (default 2)", 0,
	 GW_OPTION_NUMBER(A, queue_pairs, 1, 8)},
	{"spin", "US", "poll so long before sleeping (default 0)", 0, GW_OPTION_NUMBER(A, spin_us, 0, 1000000)},
	{0},
};
#undef A

/* ---- measuring ---- */

static gw_status bench_gather_measure_rows(void *context, double *figure)
{
	struct gather_arguments *a = context;
	uint64_t batches;
	double cpu = gw_bench_cpu_seconds();
	gw_status status = gw_row_stream_run(&a->stream, figure, &batches);
	*figure *= 1e-9;
	gw_bench_series_add(&a->cpu, (gw_bench_cpu_seconds() - cpu) * 1e9 /
					     (double)((batches + a->depth) * a->batch * a->bare.row_bytes));
	return status;
}

static bool is(const struct gather_arguments *a, const char *scheme)
{
	return strcmp(a->scheme, scheme) == 0;
}

/* The bare loop over TCP whose client sleeps until a large piece has come. */
static gw_status measure_marked(struct gather_arguments *a)
{
	struct gw_bare_rows rows = a->bare;
	double figure;
	rows.low_water = BARE_MARK;
	int error = gw_bare_rows_tcp(&rows, &figure);
	if (error)
		return gw_fail_errno(GW_IO, error, "the bare loop with a low-water mark");
	gw_bench_series_add(&a->marked, figure * 1e-9);
	return GW_OK;
}

static gw_status bench_gather_measure_bare(void *context, double *figure)
{
	struct gather_arguments *a = context;
	double cpu = gw_bench_cpu_seconds();
	int error = a->bare_verbs ? gw_bare_verbs_many(a->bare_verbs, a->bare.row_bytes, BARE_DEPTH, a->seconds, figure)
		    : is(a, "memory") || is(a, "shm") ? gw_bare_rows_copy(&a->bare, figure)
						      : gw_bare_rows_tcp(&a->bare, figure);
	*figure *= 1e-9;
	if (error)
		return gw_fail_errno(GW_IO, error, "the bare loop");
	gw_bench_series_add(&a->bare_cpu, (gw_bench_cpu_seconds() - cpu) / (*figure * a->seconds));
	return is(a, "tcp") ? measure_marked(a) : GW_OK;
}

static gw_status bench_gather_measure_bare_stream(const struct gather_arguments *a, struct gw_bench_series *streams)
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

static gw_status bench_gather_measure(struct gather_arguments *a, struct gw_bench_series *ceilings,
				      struct gw_bench_series *values, struct gw_bench_series *streams)
{
	gw_status status = gw_row_stream_begin(&a->stream, &a->bed, &a->bare);
	if (status != GW_OK)
		return status;
	status = gw_row_stream_verify(&a->stream);
	if (status == GW_OK)
		status = gw_bench_alternate(&a->bench, bench_gather_measure_bare, bench_gather_measure_rows, a,
					    ceilings, values);
	if (status == GW_OK && is(a, "tcp"))
		status = bench_gather_measure_bare_stream(a, streams);
	gw_row_stream_end(&a->stream);
	return status;
}

static void bench_gather_report(struct gather_arguments *a, const struct gw_row_path *way,
				const struct gw_bench_series *ceilings, const struct gw_bench_series *values,
				double stream)
{
	char title[96], note[224], runs[32] = "";
	double marked = gw_bench_series_median(&a->marked);
	if (a->bare.run > 1)
		snprintf(runs, sizeof(runs), " in runs of %u", a->bare.run);
	snprintf(title, sizeof(title), "%s, %llu x %u B%s, %llu in flight", way->name, (unsigned long long)a->batch,
		 a->bare.row_bytes, runs, (unsigned long long)a->depth);
	int used = snprintf(note, sizeof(note), "on %s", gw_row_pages(a->table));
	if (way->tcp_driver)
		used += snprintf(
			note + used, sizeof(note) - (size_t)used,
			"; the bare loop with a low-water mark: %.4g GB/s, ratio %.3f; a raw stream: %.4g GB/s", marked,
			gw_bench_series_median(values) / marked, stream);
	if (a->bare.run > 1)
		snprintf(note + used, sizeof(note) - (size_t)used, "; the bare loop reads each row separately");
	struct gw_bench_result result = {
		.title = title,
		.unit = "GB/s",
		.values = values,
		.ceilings = ceilings,
		.verified = true,
		.note = note,
		.fields = {{"transport", 0, way->name},
			   {"row_bytes", a->bare.row_bytes, NULL},
			   {"run", a->bare.run, NULL},
			   {"mrows_per_s", gw_bench_series_median(values) * 1e3 / a->bare.row_bytes, NULL},
			   {"cpu_s_per_gb", gw_bench_series_median(&a->cpu), NULL},
			   {"ceiling_cpu_s_per_gb", gw_bench_series_median(&a->bare_cpu), NULL},
			   {"pages", 0, gw_row_pages(a->table)},
			   {way->tcp_driver ? "raw_stream_gb_per_s" : NULL, stream, NULL},
			   {way->tcp_driver ? "marked_ceiling" : NULL, marked, NULL},
			   {"marked_ratio", gw_bench_series_median(values) / marked, NULL}},
	};
	gw_bench_report(&a->bench, &result);
}

static gw_status bench_gather_run_case(struct gather_arguments *a, const struct gw_row_path *way)
{
	const struct gw_poll_group_options options = {
		.tcp_driver = way->tcp_driver, .spin_ns = 1000 * a->spin_us, .queue_pairs = (uint32_t)a->queue_pairs};
	gw_status status = gw_row_bed_begin(&a->bed, a->table, a->table_bytes, NULL, way->scheme, &options, 1);
	if (status == GW_UNSUPPORTED && strcmp(way->scheme, "memory") != 0) {
		fprintf(a->bench.table, "%s: not measured: %s\n", way->name, gw_last_error());
		return GW_OK;
	}
	if (status != GW_OK)
		return status;
	a->scheme = way->scheme;
	int error = is(a, "verbs")
			    ? gw_bare_verbs_open(gw_arena_base(a->table), a->table_bytes, gw_arena_base(a->landing),
						 gw_arena_bytes(a->landing), (unsigned)a->queue_pairs, &a->bare_verbs)
			    : 0;
	if (error) {
		gw_row_bed_end(&a->bed);
		return gw_fail_errno(GW_IO, error, "the bare reads");
	}
	struct gw_bench_series ceilings = {0}, values = {0}, streams = {0};
	a->cpu.count = a->bare_cpu.count = a->marked.count = 0;
	status = bench_gather_measure(a, &ceilings, &values, &streams);
	gw_row_bed_end(&a->bed);
	gw_bare_verbs_close(a->bare_verbs);
	a->bare_verbs = NULL;
	if (status == GW_OK)
		bench_gather_report(a, way, &ceilings, &values, gw_bench_series_median(&streams));
	return status;
}

static gw_status run_size(struct gather_arguments *a, uint32_t row_bytes)
{
	a->bare = (struct gw_bare_rows){.table = gw_arena_base(a->table),
					.rows = a->table_bytes / row_bytes,
					.row_bytes = row_bytes,
					.batch = (uint32_t)a->batch,
					.depth = (uint32_t)a->depth,
					.run = (uint32_t)a->run,
					.landing = gw_arena_base(a->landing),
					.seconds = a->seconds};
	gw_status status = GW_OK;
	for (unsigned i = 0; i < ROW_WAYS && status == GW_OK; i++)
		if (!a->transport || strcmp(a->transport, gw_row_paths[i].option) == 0)
			status = bench_gather_run_case(a, &gw_row_paths[i]);
	return status;
}

static gw_status bench_gather_run(struct gather_arguments *a)
{
	uint32_t widest = 0;
	for (unsigned i = 0; i < a->row_sizes; i++)
		widest = a->row_bytes[i] > widest ? a->row_bytes[i] : widest;
	const struct gw_arena_options pages = {.name = "bench-landing", .numa = GW_NUMA_LOCAL};
	gw_bare_pin(0);
	gw_status status = gw_bench_open(&a->bench);
	if (status == GW_OK)
		status = gw_arena_create(a->depth * a->batch * widest, &pages, &a->landing);
	if (status == GW_OK)
		status = gw_row_table_make(a->table_bytes, &a->table);
	for (unsigned i = 0; i < a->row_sizes && status == GW_OK; i++)
		status = run_size(a, a->row_bytes[i]);
	gw_arena_destroy(a->landing);
	gw_arena_destroy(a->table);
	gw_status closed = gw_bench_close(&a->bench);
	return status != GW_OK ? status : closed;
}

int gw_bench_gather(int argc, char **argv)
{
	static const struct gw_options options = {
		.table = table,
		.common = gw_bench_options,
		.common_offset = offsetof(struct gather_arguments, bench),
		.doc = "Measure gathers of random rows in memory, mapped, over TCP and over RDMA, "
		       "against bare loops of the same reads.\v"
		       "Examples:\n  graphwire bench gather\n  graphwire bench gather --row 1024 --transport io_uring "
		       "--json -"};
	struct gather_arguments *a = gw_calloc(1, sizeof(*a));
	if (!a)
		return 1;
	*a = (struct gather_arguments){.bench = {.name = "gather"},
				       .table_bytes = 2ull << 30,
				       .batch = 10000,
				       .depth = 4,
				       .queue_pairs = 2,
				       .run = 1,
				       .seconds = 0.5};
	gw_options_parse(&options, argc, argv, a);
	if (!a->row_sizes) {
		a->row_bytes[a->row_sizes++] = 400;
		a->row_bytes[a->row_sizes++] = 512;
	}
	gw_status status = bench_gather_run(a);
	int exit_status = gw_exit_status("graphwire bench gather", status);
	gw_free(a);
	return exit_status;
}
