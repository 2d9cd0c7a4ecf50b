/* graphwire bench threads: one server with 1, 2, 4, ... threads and as many clients, against as many bare loops at
 * once.
 *
 *   table -> for each number of threads: as many pairs of bare loops, and one server with as many clients, in turn
 *
 * Every client is a thread with its own connection. In both loops clients run on even processors and servers on odd
 * ones. Bare pairs share nothing, so their sum is what the machine can do with so many pairs: it grows linearly while
 * there are processors. The ratio is the cost of sharing one server.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/row_stream.h"
#include "core/errors/options.h"
#include "core/memory/alloc.h"
#include "core/system/parallel.h"

#define LANDING_ROWS_MAX (1u << 20)

struct threads_arguments;

struct client {
	struct threads_arguments *arguments;
	unsigned number;
	pthread_t thread;
	double bytes_per_second;
	gw_status status;
	char error[GW_ERROR_TEXT_MAX];
};

struct threads_arguments {
	struct gw_bench bench;
	uint64_t table_bytes, row_bytes, batch, depth,
		threads; /* threads 0: up to the number of processors, at least 2 */
	double seconds;
	const char *driver;
	/* in use while the benchmark runs */
	struct gw_arena *table, *landing;
	struct gw_row_bed bed;
	struct gw_bare_rows bare;
	struct client clients[ROW_THREADS_MAX];
	unsigned pairs; /* pairs of a client and a server thread in this case */
	bool verified;
};

static const char *const drivers[] = {"auto", "io_uring", "epoll", NULL};

#define A struct threads_arguments
static const struct gw_option table[] = {
	{"threads", "N", "most threads of the server (one for each processor, at least 2)", 0,
	 GW_OPTION_NUMBER(A, threads, 1, ROW_THREADS_MAX)},
	{"table", "BYTES", "size of the table (1Gi)", 0, GW_OPTION_NUMBER(A, table_bytes, 1 << 20, 1ull << 44)},
	{"row", "BYTES", "bytes of a row (400)", 0, GW_OPTION_NUMBER(A, row_bytes, 1, 64 << 10)},
	{"batch", "N", "rows of a batch (10k)", 0, GW_OPTION_NUMBER(A, batch, 1, LANDING_ROWS_MAX)},
	{"depth", "N", "batches in flight of each client (4)", 0, GW_OPTION_NUMBER(A, depth, 1, ROW_DEPTH_MAX)},
	{"seconds", "S", "length of one measurement (0.5)", 0, GW_OPTION_REAL(A, seconds, 0.01, 1000)},
	{"tcp-driver", "auto|io_uring|epoll", "how sockets are driven (auto)", 0, GW_OPTION_CHOICE(A, driver, drivers)},
	{0},
};
#undef A

/* ---- measuring ---- */

static gw_status threads_run_stream(const struct client *client, double *bytes_per_second)
{
	const struct threads_arguments *a = client->arguments;
	struct gw_bare_rows rows = a->bare;
	struct gw_row_stream *stream = gw_calloc(1, sizeof(*stream)); /* too big for a thread's stack */
	if (!stream)
		return GW_NO_MEMORY;
	rows.landing += (size_t)client->number * rows.depth * rows.batch * rows.row_bytes;
	gw_status status = gw_row_stream_begin(stream, &a->bed, &rows);
	if (status == GW_OK && !a->verified)
		status = gw_row_stream_verify(stream);
	if (status == GW_OK)
		status = gw_row_stream_run(stream, bytes_per_second, NULL);
	gw_row_stream_end(stream);
	gw_free(stream);
	return status;
}

static void *run_client(void *context)
{
	struct client *client = context;
	gw_bare_pin(2 * client->number);
	client->bytes_per_second = 0;
	client->status = threads_run_stream(client, &client->bytes_per_second);
	if (client->status)
		snprintf(client->error, sizeof(client->error), "%s", gw_last_error());
	return NULL;
}

static gw_status measure_server(void *context, double *figure)
{
	struct threads_arguments *a = context;
	const struct gw_poll_group_options options = {.tcp_driver = a->driver};
	gw_status status = gw_row_bed_begin(&a->bed, a->table, a->table_bytes, NULL, "tcp", &options, a->pairs);
	unsigned started = 0;
	if (status != GW_OK)
		return status;
	while (started < a->pairs && status == GW_OK) {
		struct client *client = &a->clients[started];
		client->arguments = a;
		client->number = started;
		int error = pthread_create(&client->thread, NULL, run_client, client);
		started += !error;
		if (error)
			status = gw_fail_errno(GW_LIMIT, error, "cannot start the thread of client %u", started);
	}
	*figure = 0;
	for (unsigned i = 0; i < started; i++) {
		pthread_join(a->clients[i].thread, NULL);
		if (status == GW_OK && a->clients[i].status)
			status = gw_fail_text(a->clients[i].status, a->clients[i].error);
		*figure += a->clients[i].bytes_per_second * 1e-9;
	}
	gw_row_bed_end(&a->bed);
	return status;
}

static gw_status threads_measure_bare(void *context, double *figure)
{
	const struct threads_arguments *a = context;
	int error = gw_bare_rows_pairs(&a->bare, a->pairs, figure);
	*figure *= 1e-9;
	return error ? gw_fail_errno(GW_IO, error, "the bare loops") : GW_OK;
}

static gw_status threads_run_case(struct threads_arguments *a, double *one, double *bare_one)
{
	static struct gw_bench_series ceilings, values;
	double figure;
	ceilings.count = values.count = 0;
	a->verified = false;
	gw_status status = measure_server(a, &figure); /* not measured: every client checks its rows */
	a->verified = true;
	if (status == GW_OK)
		status = gw_bench_alternate(&a->bench, threads_measure_bare, measure_server, a, &ceilings, &values);
	if (status != GW_OK)
		return status;
	double value = gw_bench_series_median(&values), ceiling = gw_bench_series_median(&ceilings);
	if (a->pairs == 1) {
		*one = value;
		*bare_one = ceiling;
	}
	char title[96], note[128];
	snprintf(title, sizeof(title), "%u server thread%s, %u client%s", a->pairs, a->pairs == 1 ? "" : "s", a->pairs,
		 a->pairs == 1 ? "" : "s");
	snprintf(note, sizeof(note), "%.2f times one; the bare loops %.2f; %u processors for both sides", value / *one,
		 ceiling / *bare_one, gw_processors());
	const struct gw_bench_result result = {
		.title = title,
		.unit = "GB/s",
		.values = &values,
		.ceilings = &ceilings,
		.verified = true,
		.note = note,
		.fields = {{"server_threads", a->pairs, NULL},
			   {"times_one", value / *one, NULL},
			   {"ceiling_times_one", ceiling / *bare_one, NULL},
			   {"processors", gw_processors(), NULL}},
	};
	gw_bench_report(&a->bench, &result);
	return GW_OK;
}

static gw_status threads_run(struct threads_arguments *a)
{
	unsigned most = a->threads ? (unsigned)a->threads : gw_processors() < 2 ? 2 : gw_processors();
	most = most < ROW_THREADS_MAX ? most : ROW_THREADS_MAX;
	const struct gw_arena_options pages = {.name = "bench-landing", .numa = GW_NUMA_LOCAL};
	double one = 0, bare_one = 0;
	gw_status status = gw_bench_open(&a->bench);
	if (status == GW_OK)
		status = gw_arena_create(most * a->depth * a->batch * a->row_bytes, &pages, &a->landing);
	if (status == GW_OK)
		status = gw_row_table_make(a->table_bytes, &a->table);
	if (status == GW_OK)
		a->bare = (struct gw_bare_rows){.table = gw_arena_base(a->table),
						.rows = a->table_bytes / a->row_bytes,
						.row_bytes = (uint32_t)a->row_bytes,
						.batch = (uint32_t)a->batch,
						.depth = (uint32_t)a->depth,
						.landing = gw_arena_base(a->landing),
						.seconds = a->seconds};
	for (a->pairs = 1; a->pairs <= most && status == GW_OK; a->pairs *= 2)
		status = threads_run_case(a, &one, &bare_one);
	gw_arena_destroy(a->landing);
	gw_arena_destroy(a->table);
	gw_status closed = gw_bench_close(&a->bench);
	return status != GW_OK ? status : closed;
}

int gw_bench_threads(int argc, char **argv)
{
	static const struct gw_options options = {
		.table = table,
		.common = gw_bench_options,
		.common_offset = offsetof(struct threads_arguments, bench),
		.doc = "Measures how a server gains from more threads, with a client for each, "
		       "against as many bare loops at once.\vExamples:\n  graphwire bench threads\n"
		       "  graphwire bench threads --threads 8 --json -"};
	static struct threads_arguments a;
	a = (struct threads_arguments){.bench = {.name = "threads"},
				       .table_bytes = 1ull << 30,
				       .row_bytes = 400,
				       .batch = 10000,
				       .depth = 4,
				       .seconds = 0.5};
	gw_options_parse(&options, argc, argv, &a);
	gw_status status = threads_run(&a);
	return gw_exit_status("graphwire bench threads", status);
}
