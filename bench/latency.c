/* graphwire bench latency: one row, asked for and waited for, again and again, against a bare ping-pong of the same
 * bytes on the wire, or a bare RDMA read. Sleeping: both sides block in the kernel, like the ping-pong. Spinning: they
 * look first, which is what a latency-bound user sets. The row is checked in every round. With --matrix: every way and
 * size instead, without ceilings (bench/matrix.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bare_verbs.h"
#include "bench/bench.h"
#include "bench/matrix.h"
#include "bench/row_turns.h"
#include "core/base/alloc.h"

#define ROUNDS_MAX    1000000u
#define ROW_BYTES_MAX (64u << 10)
/* On the wire: a header of 16 bytes, the read's 32, an offset of 4; an answer's header of 16. */
#define QUESTION_BYTES 52u
#define ANSWER_HEADER  16u

struct arguments {
	struct gw_bench bench;
	uint64_t rounds, row_bytes, spin_us, table_bytes, queue_pairs;
	double seconds;
	const char *transport;
	bool matrix;
	const char *plot_path;
	uint32_t sizes[MATRIX_SIZES_MAX]; /* of the matrix */
	unsigned size_count;
	/* while it runs */
	struct gw_arena *table;
	struct gw_row_bed bed;
	struct gw_bare_rows rows;
	struct gw_row_turns turns;
	uint8_t *landing;
	struct gw_bare_verbs *bare; /* NULL: over TCP */
	bool sleeping;
	double *microseconds; /* of one repeat */
	struct gw_bench_series p99, bare_p99;
};

static gw_status take_sizes(void *input, char *text)
{
	struct arguments *a = input;
	const char *words[MATRIX_SIZES_MAX];
	uint32_t count = 0;
	gw_status status = gw_split_list(text, MATRIX_SIZES_MAX, words, &count);
	for (uint32_t i = 0; i < count && !status; i++) {
		uint64_t bytes = 0;
		status = gw_parse_u64(words[i], 1, ROW_BYTES_MAX, &bytes);
		a->sizes[i] = (uint32_t)bytes;
		if (!status && i && a->sizes[i] <= a->sizes[i - 1])
			status = gw_fail(GW_INVALID, "%s after %s: sizes must grow", words[i], words[i - 1]);
	}
	a->size_count = count;
	return status;
}

static gw_status check(void *input)
{
	const struct arguments *a = input;
	if (!a->matrix && (a->plot_path || a->size_count))
		return gw_fail(GW_INVALID, "--%s needs --matrix", a->plot_path ? "plot" : "sizes");
	if (!a->matrix && a->transport && (strcmp(a->transport, "memory") == 0 || strcmp(a->transport, "shm") == 0))
		return gw_fail(GW_INVALID, "--transport %s needs --matrix: there is nobody to wait for", a->transport);
	return GW_OK;
}

#define A struct arguments
static const struct gw_option table[] = {
	{"rounds", "N", "round trips of one measurement (5k)", 0, GW_OPTION_NUMBER(A, rounds, 10, ROUNDS_MAX)},
	{"row", "BYTES", "bytes of a row (400)", 0, GW_OPTION_NUMBER(A, row_bytes, 1, ROW_BYTES_MAX)},
	{"spin", "US", "how long the spinning case looks before it sleeps (100)", 0,
	 GW_OPTION_NUMBER(A, spin_us, 0, 1000000)},
	{"transport", "NAME", "memory, shm, epoll, io_uring or verbs only", 0,
	 GW_OPTION_CHOICE(A, transport, gw_row_options)},
	{"table", "BYTES", "size of the table that rows come from (64Mi)", 0,
	 GW_OPTION_NUMBER(A, table_bytes, 1 << 20, 1ull << 44)},
	{"queue-pairs", "N", "verbs: queue pairs of a connection (2)", 0, GW_OPTION_NUMBER(A, queue_pairs, 1, 8)},
	{.help = "Every size over every transport:", .group = 1},
	{"matrix", NULL, "latency, rate and GB/s of rows of every size, over every transport there is", 1,
	 GW_OPTION_FLAG(A, matrix)},
	{"sizes", "LIST", "bytes of its rows, growing (8,64,512,4Ki,16Ki,64Ki)", 1, GW_OPTION_CALL(take_sizes)},
	{"seconds", "S", "how long all of it measures (30)", 1, GW_OPTION_REAL(A, seconds, 0.1, 10000)},
	{"plot", "FILE.svg", "draw its latency and rate over the size", 1, GW_OPTION_TEXT(A, plot_path)},
	{0},
};
#undef A

/* The median of the rounds; the 99th percentile goes to the series. */
static double summarize(struct arguments *a, struct gw_bench_series *p99)
{
	gw_bench_series_add(p99, gw_bench_quantile(a->microseconds, a->rounds, 0.99));
	return gw_bench_quantile(a->microseconds, a->rounds, 0.5);
}

static gw_status measure_bare(void *context, double *figure)
{
	struct arguments *a = context;
	int error = a->bare ? gw_bare_verbs_one(a->bare, (uint32_t)a->row_bytes, (uint32_t)a->rounds, a->sleeping,
						a->microseconds)
			    : gw_bare_ping_pong(QUESTION_BYTES, ANSWER_HEADER + (uint32_t)a->row_bytes,
						(uint32_t)a->rounds, a->microseconds);
	if (error)
		return gw_fail_errno(GW_IO, error, "%s", a->bare ? "the bare read" : "the bare ping-pong");
	*figure = summarize(a, &a->bare_p99);
	return GW_OK;
}

static gw_status measure_rows(void *context, double *figure)
{
	struct arguments *a = context;
	uint64_t done;
	gw_status status = gw_row_turns_run(&a->turns, a->rounds, 0, a->microseconds, &done);
	*figure = status ? 0 : summarize(a, &a->p99);
	return status;
}

static gw_status measure(struct arguments *a, const struct gw_row_way *way, struct gw_bench_series *ceilings,
			 struct gw_bench_series *values)
{
	int error = way->tcp_driver ? 0
				    : gw_bare_verbs_open(gw_arena_base(a->table), gw_arena_bytes(a->table), a->landing,
							 a->row_bytes, 1, &a->bare);
	if (error)
		return gw_fail_errno(GW_IO, error, "the bare read");
	a->p99.count = a->bare_p99.count = 0;
	gw_status status = gw_row_turns_begin(&a->turns, &a->bed, &a->rows);
	if (!status) {
		status = gw_bench_alternate(&a->bench, measure_bare, measure_rows, a, ceilings, values);
		gw_row_turns_end(&a->turns);
	}
	gw_bare_verbs_close(a->bare);
	a->bare = NULL;
	return status;
}

static gw_status run_case(struct arguments *a, const struct gw_row_way *way, uint64_t spin_ns)
{
	struct gw_bench_series ceilings = {0}, values = {0};
	const struct gw_poll_group_options options = {
		.tcp_driver = way->tcp_driver, .spin_ns = spin_ns, .queue_pairs = (uint32_t)a->queue_pairs};
	gw_status status = gw_row_bed_begin(&a->bed, a->table, gw_arena_bytes(a->table), way->scheme, &options, 1);
	if (status == GW_UNSUPPORTED) {
		fprintf(a->bench.table, "%s: not measured: %s\n", way->name, gw_last_error());
		return GW_OK;
	}
	if (status)
		return status;
	a->sleeping = spin_ns == 0;
	status = measure(a, way, &ceilings, &values);
	gw_row_bed_end(&a->bed);
	if (status)
		return status;
	char title[96], note[96];
	double p99 = gw_bench_series_median(&a->p99), bare_p99 = gw_bench_series_median(&a->bare_p99);
	snprintf(note, sizeof(note), "99 of 100 rows within %.4g us; the %s within %.4g us", p99,
		 way->tcp_driver ? "ping-pong's rounds" : "bare reads", bare_p99);
	snprintf(title, sizeof(title), "%s, 1 x %llu B, %s", way->name, (unsigned long long)a->row_bytes,
		 spin_ns ? "spinning" : "sleeping");
	struct gw_bench_result result = {
		.title = title,
		.unit = "us",
		.values = &values,
		.ceilings = &ceilings,
		.lower_is_better = true,
		.verified = true,
		.fields = {{"p50_us", gw_bench_series_median(&values), NULL},
			   {"p99_us", p99, NULL},
			   {"ceiling_p99_us", bare_p99, NULL}},
		.note = note,
	};
	gw_bench_report(&a->bench, &result);
	return GW_OK;
}

static gw_status run_ways(struct arguments *a)
{
	a->landing = gw_malloc(a->row_bytes);
	a->microseconds = gw_calloc(a->rounds, sizeof(double));
	gw_status status = a->landing && a->microseconds ? GW_OK : GW_NO_MEMORY;
	a->rows = (struct gw_bare_rows){.table = gw_arena_base(a->table),
					.rows = gw_arena_bytes(a->table) / a->row_bytes,
					.row_bytes = (uint32_t)a->row_bytes,
					.landing = a->landing};
	for (unsigned i = 0; i < ROW_WAYS && !status; i++) {
		const struct gw_row_way *way = &gw_row_ways[i];
		bool waits = way->tcp_driver || strcmp(way->scheme, "verbs") == 0;
		if (!waits || (a->transport && strcmp(a->transport, way->option) != 0))
			continue;
		status = run_case(a, way, 0);
		if (!status && a->spin_us)
			status = run_case(a, way, 1000 * a->spin_us);
	}
	gw_free(a->landing);
	gw_free(a->microseconds);
	return status;
}

static gw_status run_matrix(struct arguments *a)
{
	static const uint32_t usual[] = {8, 64, 512, 4 << 10, 16 << 10, 64 << 10};
	const struct gw_matrix_spec spec = {.table = a->table,
					    .row_bytes = a->size_count ? a->sizes : usual,
					    .row_sizes = a->size_count ? a->size_count
								       : (unsigned)(sizeof(usual) / sizeof(usual[0])),
					    .seconds = a->seconds,
					    .spin_us = a->spin_us,
					    .queue_pairs = (uint32_t)a->queue_pairs,
					    .transport = a->transport,
					    .plot_path = a->plot_path};
	return gw_matrix_run(&a->bench, &spec);
}

static gw_status run(struct arguments *a)
{
	gw_bare_pin(0);
	gw_status status = gw_bench_open(&a->bench);
	if (!status)
		status = gw_row_table_make(a->table_bytes, &a->table);
	if (!status)
		status = a->matrix ? run_matrix(a) : run_ways(a);
	gw_arena_destroy(a->table);
	gw_status closed = gw_bench_close(&a->bench);
	return status ? status : closed;
}

int gw_bench_latency(int argc, char **argv)
{
	static const struct gw_options options = {
		.table = table,
		.common = gw_bench_options,
		.common_offset = offsetof(struct arguments, bench),
		.doc = "Measures the time of one row over TCP beside a bare ping-pong of the same sizes, and over RDMA "
		       "beside a bare read; or rows of every size over every transport, one at a time and many in "
		       "flight.\v"
		       "Examples:\n  graphwire bench latency\n  graphwire bench latency --row 4096 --json -\n"
		       "  graphwire bench latency --matrix --plot latency.svg",
		.check = check};
	struct arguments *a = gw_calloc(1, sizeof(*a));
	if (!a)
		return 1;
	*a = (struct arguments){.bench = {.name = "latency"},
				.rounds = 5000,
				.row_bytes = 400,
				.spin_us = 100,
				.table_bytes = 64 << 20,
				.queue_pairs = 2,
				.seconds = 30};
	gw_options_parse(&options, argc, argv, a);
	gw_status status = run(a);
	if (status)
		fprintf(stderr, "graphwire bench latency: %s\n", gw_last_error());
	gw_free(a);
	return status ? 1 : 0;
}
