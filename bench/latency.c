/* graphwire bench latency: the time of one row, again and again. The ceiling is a bare ping-pong of the same bytes on
 * the wire, or a bare RDMA read, alternating in short slices (bench/rounds.h).
 *
 *   sleeping: all sides block in the kernel; on two processors and on one, where the kernel wakes them differently
 *   spinning: all sides poll first, as a latency-bound user sets it; on two processors, since on one the polling side
 *             keeps the other from answering
 *
 * The row is checked in every round. With --matrix: every transport and size instead, without ceilings
 * (bench/matrix.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bare_verbs.h"
#include "bench/bench.h"
#include "bench/matrix.h"
#include "bench/ping_pong.h"
#include "bench/place.h"
#include "bench/rounds.h"
#include "bench/row_rounds.h"
#include "core/memory/alloc.h"

#define ROUNDS_MAX    1000000u
#define ROW_BYTES_MAX (64u << 10)
/* Bytes on the wire: a header of 16, the read's 32, an offset of 4; an answer's header of 16. */
#define QUESTION_BYTES 52u
#define ANSWER_HEADER  16u

struct latency_arguments {
	struct gw_bench bench;
	uint64_t rounds, row_bytes, spin_us, table_bytes, queue_pairs;
	double seconds;
	const char *transport;
	bool matrix;
	const char *plot_path;
	uint32_t sizes[MATRIX_SIZES_MAX]; /* row sizes of the matrix */
	unsigned size_count;
	/* in use while the benchmark runs */
	struct gw_arena *table;
	struct gw_row_bed bed;
	struct gw_bare_rows rows;
	struct gw_row_rounds row_rounds;
	uint8_t *landing;
	struct gw_bare_verbs *bare;     /* verbs; else NULL */
	struct gw_ping_pong *ping_pong; /* the ceiling of the case over TCP */
	uint64_t spin_ns;               /* how long both sides spin in this case; 0: they sleep */
	struct gw_rounds measured;
};

static gw_status take_sizes(void *input, char *text)
{
	struct latency_arguments *a = input;
	const char *words[MATRIX_SIZES_MAX];
	uint32_t count = 0;
	gw_status status = gw_split_list(text, MATRIX_SIZES_MAX, words, &count);
	for (uint32_t i = 0; i < count && status == GW_OK; i++) {
		uint64_t bytes = 0;
		status = gw_parse_u64(words[i], 1, ROW_BYTES_MAX, &bytes);
		a->sizes[i] = (uint32_t)bytes;
		if (status == GW_OK && i && a->sizes[i] <= a->sizes[i - 1])
			status = gw_fail(GW_INVALID, "%s after %s: sizes must grow", words[i], words[i - 1]);
	}
	a->size_count = count;
	return status;
}

static gw_status latency_check(void *input)
{
	const struct latency_arguments *a = input;
	if (!a->matrix && (a->plot_path || a->size_count))
		return gw_fail(GW_INVALID, "--%s needs --matrix", a->plot_path ? "plot" : "sizes");
	const struct gw_scheme *way = a->transport ? gw_scheme_find(a->transport) : NULL; /* NULL: a driver of TCP */
	if (!a->matrix && way && way->local)
		return gw_fail(GW_INVALID, "--transport %s needs --matrix: one row in memory needs no waiting",
			       a->transport);
	return GW_OK;
}

#define A struct latency_arguments
static const struct gw_option table[] = {
	{"rounds", "N", "round trips of one measurement (default 5k)", 0, GW_OPTION_NUMBER(A, rounds, 10, ROUNDS_MAX)},
	{"row", "BYTES", "bytes of a row (default 400)", 0, GW_OPTION_NUMBER(A, row_bytes, 1, ROW_BYTES_MAX)},
	{"spin", "US", "how long the spinning case and its ceiling poll before they sleep (default 100)", 0,
	 GW_OPTION_NUMBER(A, spin_us, 0, 1000000)},
	{"transport", "NAME", "measure memory, shm, epoll, io_uring or verbs only", 0,
	 GW_OPTION_CHOICE(A, transport, gw_row_options)},
	{"table", "BYTES", "size of the table of rows (default 64Mi)", 0,
	 GW_OPTION_NUMBER(A, table_bytes, 1 << 20, 1ull << 44)},
	{"queue-pairs", "N", "verbs: queue pairs of a connection (default 2)", 0,
	 GW_OPTION_NUMBER(A, queue_pairs, 1, 8)},
	{.help = "Every size over every transport:", .group = 1},
	{"matrix", NULL, "measure latency, rate and GB/s of rows of every size, over every transport", 1,
	 GW_OPTION_FLAG(A, matrix)},
	{"sizes", "LIST", "row sizes of the matrix, ascending (default 8,64,512,4Ki,16Ki,64Ki)", 1,
	 GW_OPTION_CALL(take_sizes)},
	{"seconds", "S", "length of the whole matrix (default 30)", 1, GW_OPTION_REAL(A, seconds, 0.1, 10000)},
	{"plot", "FILE.svg", "draw latency and rate over the size", 1, GW_OPTION_TEXT(A, plot_path)},
	{0},
};
#undef A

static gw_status latency_measure_bare(void *context, uint32_t rounds, double *microseconds)
{
	struct latency_arguments *a = context;
	int error = a->bare ? gw_bare_verbs_one(a->bare, (uint32_t)a->row_bytes, rounds, a->spin_ns == 0, microseconds)
			    : gw_ping_pong_run(a->ping_pong, rounds, microseconds);
	return error ? gw_fail_errno(GW_IO, error, "%s", a->bare ? "the bare read" : "the bare ping-pong") : GW_OK;
}

static gw_status latency_measure_rows(void *context, uint32_t rounds, double *microseconds)
{
	struct latency_arguments *a = context;
	uint64_t done;
	return gw_row_rounds_run(&a->row_rounds, rounds, 0, microseconds, &done);
}

static gw_status open_ceiling(struct latency_arguments *a, const struct gw_row_path *way, unsigned processor)
{
	int error = way->tcp_driver ? gw_ping_pong_begin(QUESTION_BYTES, ANSWER_HEADER + (uint32_t)a->row_bytes,
							 processor, a->spin_ns, &a->ping_pong)
				    : gw_bare_verbs_open(gw_arena_base(a->table), gw_arena_bytes(a->table), a->landing,
							 a->row_bytes, 1, &a->bare);
	return error ? gw_fail_errno(GW_IO, error, "the ceiling") : GW_OK;
}

static gw_status latency_measure(struct latency_arguments *a, const struct gw_row_path *way, unsigned processor)
{
	gw_row_bed_place(&a->bed, processor);
	gw_status status = open_ceiling(a, way, processor);
	if (status == GW_OK)
		status = gw_row_rounds_begin(&a->row_rounds, &a->bed, &a->rows);
	if (status == GW_OK) {
		status = gw_rounds_run(&a->measured, &a->bench, (uint32_t)a->rounds, latency_measure_bare,
				       latency_measure_rows, a);
		gw_row_rounds_end(&a->row_rounds);
	}
	gw_ping_pong_end(a->ping_pong);
	a->ping_pong = NULL;
	gw_bare_verbs_close(a->bare);
	a->bare = NULL;
	return status;
}

static gw_status latency_run_case(struct latency_arguments *a, const struct gw_row_path *way, uint64_t spin_ns,
				  enum gw_bench_place place)
{
	const struct gw_poll_group_options options = {
		.tcp_driver = way->tcp_driver, .spin_ns = spin_ns, .queue_pairs = (uint32_t)a->queue_pairs};
	gw_status status =
		gw_row_bed_begin(&a->bed, a->table, gw_arena_bytes(a->table), NULL, way->scheme, &options, 1);
	if (status != GW_OK)
		return status;
	a->spin_ns = spin_ns;
	status = latency_measure(a, way, place == GW_BENCH_APART ? 1 : 0);
	gw_row_bed_end(&a->bed);
	if (status == GW_OK) {
		char title[96];
		snprintf(title, sizeof(title), "%s, 1 x %llu B, %s, %s", way->name, (unsigned long long)a->row_bytes,
			 spin_ns ? "spinning" : "sleeping", gw_bench_place_text(place));
		gw_rounds_report(&a->bench, &a->measured, title, gw_bench_place_text(place),
				 way->tcp_driver ? "ping-pong's rounds" : "bare reads", (struct gw_bench_field){0});
	}
	gw_rounds_free(&a->measured);
	return status;
}

/* Reads by RDMA need no code of the server, so its processor does not matter. */
static gw_status latency_run_path(struct latency_arguments *a, const struct gw_row_path *way)
{
	bool two = gw_bench_processors() > 1;
	gw_status status = latency_run_case(a, way, 0, two ? GW_BENCH_APART : GW_BENCH_TOGETHER);
	if (status == GW_UNSUPPORTED) {
		fprintf(a->bench.table, "%s: not measured: %s\n", way->name, gw_last_error());
		return GW_OK;
	}
	if (status == GW_OK && way->tcp_driver && two)
		status = latency_run_case(a, way, 0, GW_BENCH_TOGETHER);
	if (status == GW_OK && a->spin_us && (two || !way->tcp_driver))
		status = latency_run_case(a, way, 1000 * a->spin_us, two ? GW_BENCH_APART : GW_BENCH_TOGETHER);
	return status;
}

static gw_status latency_run_paths(struct latency_arguments *a)
{
	a->landing = gw_malloc(a->row_bytes);
	gw_status status = a->landing ? GW_OK : GW_NO_MEMORY;
	a->rows = (struct gw_bare_rows){.table = gw_arena_base(a->table),
					.rows = gw_arena_bytes(a->table) / a->row_bytes,
					.row_bytes = (uint32_t)a->row_bytes,
					.landing = a->landing};
	for (unsigned i = 0; i < ROW_WAYS && status == GW_OK; i++) {
		const struct gw_row_path *way = &gw_row_paths[i];
		if (gw_scheme_find(way->scheme)->local || (a->transport && strcmp(a->transport, way->option) != 0))
			continue;
		status = latency_run_path(a, way);
	}
	gw_free(a->landing);
	return status;
}

static gw_status run_matrix(struct latency_arguments *a)
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

static gw_status latency_run(struct latency_arguments *a)
{
	gw_status status = gw_bench_open(&a->bench);
	gw_bench_pin(pthread_self(), 0);
	if (status == GW_OK)
		status = gw_row_table_make(a->table_bytes, &a->table);
	if (status == GW_OK)
		status = a->matrix ? run_matrix(a) : latency_run_paths(a);
	gw_arena_destroy(a->table);
	gw_status closed = gw_bench_close(&a->bench);
	return status != GW_OK ? status : closed;
}

int gw_bench_latency(int argc, char **argv)
{
	static const struct gw_options options = {
		.table = table,
		.common = gw_bench_options,
		.common_offset = offsetof(struct latency_arguments, bench),
		.doc = "Measure the time of one row: over TCP against a bare ping-pong of the same sizes, "
		       "with client and server on two processors and on one; over RDMA against a bare read. "
		       "Or measure rows of every size over every transport, one at a time and many in flight.\v"
		       "Examples:\n  graphwire bench latency\n  graphwire bench latency --row 4096 --json -\n"
		       "  graphwire bench latency --matrix --plot latency.svg",
		.check = latency_check};
	struct latency_arguments *a = gw_calloc(1, sizeof(*a));
	if (!a)
		return 1;
	*a = (struct latency_arguments){.bench = {.name = "latency"},
					.rounds = 5000,
					.row_bytes = 400,
					.spin_us = 100,
					.table_bytes = 64 << 20,
					.queue_pairs = 2,
					.seconds = 30};
	gw_options_parse(&options, argc, argv, a);
	gw_status status = latency_run(a);
	int exit_status = gw_exit_status("graphwire bench latency", status);
	gw_free(a);
	return exit_status;
}
