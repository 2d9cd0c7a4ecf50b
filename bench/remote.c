/* graphwire bench remote: a client's calls to remote parts: one row, many rows, samples without rows.
 *
 *   own graph and servers (or the given ones) -> each answer compared with the standalone client's
 *   -> one row against a bare ping-pong of the same bytes, the client on the server's processor and on another one
 *   -> 10,000 rows, one call after the other, against the bare row loop with one batch in flight; both clients run on
 *      another processor than their server
 *   -> samples, against the wire or the processors, whichever is the lower limit
 *
 * With --transport shm all servers' memory is mapped, and no wire is used. The ceilings are then the standalone
 * client's row and samples, which are in its own memory, and a prefetching copy of the rows. A second case of the rows
 * has the transport's own gather of them as its ceiling: what the client adds to it.
 *
 * Otherwise the ceiling of sampling is the lower of two rates. The first is a raw stream of the necessary bytes: an id
 * and a position for each sampled edge. The second is the standalone client, which does the same work with all
 * processors and no network. The loops run on loopback, wherever the servers are. The benchmark's own servers have a
 * processor each; it does not place other servers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bare_rows.h"
#include "bench/batches.h"
#include "bench/bench.h"
#include "bench/mapped_gather.h"
#include "bench/own_servers.h"
#include "bench/ping_pong.h"
#include "bench/place.h"
#include "bench/rounds.h"
#include "core/errors/options.h"
#include "core/memory/alloc.h"
#include "core/memory/arena.h"
#include "core/numbers/rng.h"
#include "core/system/clock.h"
#include "transport/scheme.h"

#define SERVERS_MAX     256
#define ROWS            10000u
#define ROUNDS          2000u /* single rows in one measurement */
#define GATHERS         50u   /* gathers of ROWS rows in one measurement */
#define BARE_SECONDS    0.5
#define TABLE_BYTES_MAX (2ull << 30)
#define EDGE_BYTES      8.0 /* bytes on the wire: the neighbour's id, and its position in the list */
/* On the wire a question is a header of 16 bytes, the read's 32 bytes and an offset of 4 bytes. An answer has a header
 * of 16 bytes. */
#define QUESTION_BYTES 52u
#define ANSWER_HEADER  16u

struct remote_arguments {
	struct gw_bench bench;
	struct gw_own_clients_options clients;
	const char *servers[SERVERS_MAX];
	const char *features, *labels;
	uint64_t batches, batch_size, part; /* part: the part whose rows are read; UINT64_MAX: the last */
	/* in use while the benchmark runs */
	struct gw_own_servers own;
	struct gw_client *alone, *served;
	const struct gw_tensor *tensor, *tensor_alone; /* the features, by each client */
	int64_t begin, end;                            /* the ids of the part: [begin, end) */
	int64_t ids[ROWS];
	uint8_t *rows, *expected;       /* [ROWS][row_bytes] */
	struct gw_ping_pong *ping_pong; /* NULL: the ceiling is not a ping-pong */
	struct gw_rounds one;
	struct gw_bare_rows bare;
	struct gw_arena *store;
	struct gw_batches sampling;
	struct gw_loader *sampling_alone;
	struct gw_bench_series wire, processors; /* M edges/s */
	uint64_t next;
};

static gw_status remote_take_servers(void *input, char *text)
{
	struct remote_arguments *a = input;
	a->clients.client.servers = a->servers;
	return gw_split_list(text, SERVERS_MAX, a->servers, &a->clients.client.server_count);
}

#define A struct remote_arguments
static const struct gw_option table[] = {
	{"part-config", "JSON|FOLDER", "a partitioned graph (an R-MAT graph of its own)", 0,
	 GW_OPTION_TEXT(A, clients.client.part_config)},
	{"servers", "ADDR,...", "servers of that graph (its own, one for each part, on loopback)", 0,
	 GW_OPTION_CALL(remote_take_servers)},
	{"key-file", "FILE", "the servers' key", 0, GW_OPTION_TEXT(A, clients.client.key_file)},
	{"insecure", NULL, "accept servers on loopback without a key", 0, GW_OPTION_FLAG(A, clients.client.insecure)},
	{"transport", GW_SCHEME_CHOICES, "transport to the servers (tcp)", 0,
	 GW_OPTION_CHOICE(A, clients.client.transport, gw_scheme_choices)},
	{"features", "NAME", "feature whose rows are read (feat)", 0, GW_OPTION_TEXT(A, features)},
	{"labels", "NAME", "feature that the seeds' type has (label)", 0, GW_OPTION_TEXT(A, labels)},
	{"part", "N", "the part whose rows are read (the last one)", 0, GW_OPTION_NUMBER(A, part, 0, 65535)},
	{"scale", "N", "own graph: 2^N nodes, 16 edges each, 128 float32 features (18)", 0,
	 GW_OPTION_NUMBER(A, clients.scale, 10, 26)},
	{"width", "N", "own graph: another number of float32 features", 0,
	 GW_OPTION_NUMBER(A, clients.features, 1, 65536)},
	{"batch-size", "N", "seeds of a sample (1000)", 0, GW_OPTION_NUMBER(A, batch_size, 1, 1 << 20)},
	{"batches", "N", "samples of one repeat (40)", 0, GW_OPTION_NUMBER(A, batches, 1, 1 << 20)},
	{0},
};
#undef A

/* ---- rows ---- */

static gw_status find_rows(struct remote_arguments *a)
{
	const struct gw_graph_info *graph = gw_client_graph(a->served);
	gw_status status = GW_NOT_FOUND;
	uint32_t ntype = 0;
	for (; ntype < graph->num_ntypes && status; ntype += status != GW_OK)
		status = gw_node_tensor(a->served, ntype, a->features, &a->tensor);
	if (status != GW_OK)
		return gw_fail(GW_NOT_FOUND, "no node type has a feature \"%s\": name one with --features",
			       a->features);
	status = gw_node_tensor(a->alone, ntype, a->features, &a->tensor_alone);
	if (status == GW_OK)
		status = gw_part_range(a->served, ntype,
				       a->part == UINT64_MAX ? graph->num_parts - 1 : (uint32_t)a->part, &a->begin,
				       &a->end);
	if (status == GW_OK && a->begin == a->end)
		status = gw_fail(GW_NOT_FOUND, "the part has no node with \"%s\": choose another --part", a->features);
	if (status != GW_OK)
		return status;
	uint64_t bytes = ROWS * a->tensor->row_bytes, all = a->tensor->shape[0] * a->tensor->row_bytes;
	const struct gw_arena_options pages = {.name = "bench", .numa = GW_NUMA_LOCAL};
	a->rows = gw_buffer_alloc(a->served, bytes);
	a->expected = gw_malloc(bytes);
	if (!a->rows || !a->expected)
		return gw_fail(GW_NO_MEMORY, "no memory for %u rows", ROWS);
	return gw_arena_create(all < TABLE_BYTES_MAX ? all : TABLE_BYTES_MAX, &pages, &a->store);
}

static void draw_ids(struct remote_arguments *a, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		a->ids[i] = a->begin + (int64_t)(gw_mix64(a->next++) % (uint64_t)(a->end - a->begin));
}

static gw_status verify_rows(struct remote_arguments *a, uint32_t n)
{
	draw_ids(a, n);
	gw_status status = gw_gather(a->served, a->tensor, a->ids, n, a->rows);
	if (status == GW_OK)
		status = gw_gather(a->alone, a->tensor_alone, a->ids, n, a->expected);
	if (status == GW_OK && memcmp(a->rows, a->expected, n * a->tensor->row_bytes) != 0)
		status = gw_fail(GW_DIGEST, "%u rows differ from the standalone client's", n);
	return status;
}

static bool is_mapped(const struct remote_arguments *a)
{
	const struct gw_scheme *scheme = gw_scheme_find(a->clients.client.transport);
	return scheme && scheme->mapped;
}

/* The processor of the server of the rows, which must be one of the benchmark's own. */
static unsigned server_processor(const struct remote_arguments *a)
{
	unsigned last = gw_client_graph(a->served)->num_parts - 1;
	return a->part == UINT64_MAX ? last : (unsigned)a->part;
}

static gw_status single_rows(struct remote_arguments *a, struct gw_client *client, const struct gw_tensor *tensor,
			     uint32_t rounds, double *microseconds)
{
	for (uint32_t i = 0; i < rounds; i++) {
		draw_ids(a, 1);
		uint64_t begun = gw_now_ns();
		gw_status status = gw_gather(client, tensor, a->ids, 1, a->rows);
		if (status != GW_OK)
			return status;
		microseconds[i] = (double)(gw_now_ns() - begun) * 1e-3;
	}
	return GW_OK;
}

static gw_status measure_one(void *context, uint32_t rounds, double *microseconds)
{
	struct remote_arguments *a = context;
	return single_rows(a, a->served, a->tensor, rounds, microseconds);
}

static gw_status measure_bare_one(void *context, uint32_t rounds, double *microseconds)
{
	struct remote_arguments *a = context;
	if (!a->ping_pong)
		return single_rows(a, a->alone, a->tensor_alone, rounds, microseconds);
	int error = gw_ping_pong_run(a->ping_pong, rounds, microseconds);
	return error ? gw_fail_errno(GW_IO, error, "the bare ping-pong") : GW_OK;
}

static gw_status measure_many(void *context, double *figure)
{
	struct remote_arguments *a = context;
	uint64_t waited = 0;
	if (a->own.count && !is_mapped(a))
		gw_bench_pin(pthread_self(), server_processor(a) + 1);
	else
		gw_bench_unpin(pthread_self());
	for (uint32_t i = 0; i < GATHERS; i++) {
		draw_ids(a, ROWS);
		uint64_t begun = gw_now_ns();
		gw_status status = gw_gather(a->served, a->tensor, a->ids, ROWS, a->rows);
		if (status != GW_OK)
			return status;
		waited += gw_now_ns() - begun;
	}
	*figure = (double)ROWS * GATHERS * 1e3 / (double)waited;
	return GW_OK;
}

static gw_status measure_bare_many(void *context, double *figure)
{
	struct remote_arguments *a = context;
	if (!is_mapped(a))
		gw_bare_pin(0); /* the bare loop's server is on processor 1 */
	int error = is_mapped(a) ? gw_bare_rows_copy(&a->bare, figure) : gw_bare_rows_tcp(&a->bare, figure);
	*figure *= 1e-6 / (double)a->bare.row_bytes;
	return error ? gw_fail_errno(GW_IO, error, "the bare loop") : GW_OK;
}

/* The transport's gathers of the same kind. */
static gw_status measure_transport_many(void *context, double *figure)
{
	struct remote_arguments *a = context;
	uint64_t waited = 0;
	for (uint32_t i = 0; i < GATHERS; i++) {
		uint64_t ns;
		draw_ids(a, ROWS);
		gw_status status =
			gw_bench_mapped_gather(a->served, a->tensor, server_processor(a), a->ids, ROWS, a->rows, &ns);
		if (status != GW_OK)
			return status;
		waited += ns;
	}
	*figure = (double)ROWS * GATHERS * 1e3 / (double)waited;
	return GW_OK;
}

static gw_status verify_transport(struct remote_arguments *a)
{
	uint64_t ns;
	gw_status status = verify_rows(a, ROWS);
	if (status == GW_OK)
		status = gw_bench_mapped_gather(a->served, a->tensor, server_processor(a), a->ids, ROWS, a->rows, &ns);
	if (status == GW_OK)
		status = gw_gather(a->alone, a->tensor_alone, a->ids, ROWS, a->expected);
	if (status == GW_OK && memcmp(a->rows, a->expected, ROWS * a->tensor->row_bytes) != 0)
		status = gw_fail(GW_DIGEST, "%u rows of the transport differ from the standalone client's", ROWS);
	return status;
}

static void report_many(struct remote_arguments *a, const char *what, const struct gw_bench_series *ceilings,
			const struct gw_bench_series *values, const char *note)
{
	char title[96];
	double value = gw_bench_series_median(values);
	snprintf(title, sizeof(title), "%u rows of %llu B%s", ROWS, (unsigned long long)a->tensor->row_bytes, what);
	const struct gw_bench_result result = {
		.title = title,
		.unit = "M rows/s",
		.values = values,
		.ceilings = ceilings,
		.verified = true,
		.note = note,
		.fields = {{"remote_rows_per_s", value * 1e6, NULL},
			   {"gb_per_s", value * 1e-3 * (double)a->tensor->row_bytes, NULL}},
	};
	gw_bench_report(&a->bench, &result);
}

static gw_status run_transport(struct remote_arguments *a)
{
	static struct gw_bench_series ceilings, values;
	gw_status status = verify_transport(a);
	if (status == GW_OK)
		status = gw_bench_alternate(&a->bench, measure_transport_many, measure_many, a, &ceilings, &values);
	if (status != GW_OK)
		return status;
	report_many(a, ", client and transport", &ceilings, &values,
		    "one call after the other; the ceiling: the transport's gather of ready offsets");
	return GW_OK;
}

static gw_status run_one_at(struct remote_arguments *a, unsigned server, enum gw_bench_place place)
{
	char title[96];
	bool placed = a->own.count && !is_mapped(a);
	const char *placement = placed ? gw_bench_place_text(place) : "as it comes";
	gw_bench_pin(pthread_self(), place == GW_BENCH_APART ? server + 1 : server);
	int error = is_mapped(a) ? 0
				 : gw_ping_pong_begin(QUESTION_BYTES, ANSWER_HEADER + (uint32_t)a->tensor->row_bytes,
						      server, 0, &a->ping_pong);
	gw_status status = error ? gw_fail_errno(GW_IO, error, "the bare ping-pong") : GW_OK;
	if (status == GW_OK)
		status = gw_rounds_run(&a->one, &a->bench, ROUNDS, measure_bare_one, measure_one, a);
	gw_ping_pong_end(a->ping_pong);
	a->ping_pong = NULL;
	gw_bench_unpin(pthread_self());
	if (status == GW_OK) {
		snprintf(title, sizeof(title), "1 row of %llu B%s%s", (unsigned long long)a->tensor->row_bytes,
			 placed ? ", " : "", placed ? placement : "");
		gw_rounds_report(
			&a->bench, &a->one, title, placement,
			is_mapped(a) ? "standalone client's" : "ping-pong's rounds",
			(struct gw_bench_field){"remote_row_us_p50", gw_bench_series_median(&a->one.value.p50), NULL});
	}
	gw_rounds_free(&a->one);
	return status;
}

static gw_status run_one(struct remote_arguments *a)
{
	gw_status status = GW_OK;
	for (int i = 0; i < 100 && status == GW_OK; i++)
		status = verify_rows(a, 1);
	bool two = gw_bench_processors() > 1, placed = a->own.count && !is_mapped(a);
	if (status == GW_OK && (two || !placed))
		status = run_one_at(a, server_processor(a), GW_BENCH_APART);
	if (status == GW_OK && placed)
		status = run_one_at(a, server_processor(a), GW_BENCH_TOGETHER);
	return status;
}

static gw_status run_many(struct remote_arguments *a)
{
	static struct gw_bench_series ceilings, values;
	a->bare = (struct gw_bare_rows){.table = gw_arena_base(a->store),
					.rows = gw_arena_bytes(a->store) / a->tensor->row_bytes,
					.row_bytes = (uint32_t)a->tensor->row_bytes,
					.batch = ROWS,
					.depth = 1,
					.landing = a->expected,
					.seconds = BARE_SECONDS};
	gw_status status = GW_OK;
	for (int i = 0; i < 3 && status == GW_OK; i++)
		status = verify_rows(a, ROWS);
	if (status == GW_OK)
		status = gw_bench_alternate(&a->bench, measure_bare_many, measure_many, a, &ceilings, &values);
	gw_bench_unpin(pthread_self());
	if (status != GW_OK)
		return status;
	report_many(a, "", &ceilings, &values,
		    is_mapped(a) ? "one call after the other; the bare loop is a prefetching copy"
				 : "one call after the other; the bare loop also has one batch in flight");
	return GW_OK;
}

/* ---- samples ---- */

static gw_status measure_samples(void *context, double *figure)
{
	struct remote_arguments *a = context;
	uint64_t before = a->sampling.edges;
	double per_second;
	gw_status status = gw_batches_run(&a->sampling, (uint32_t)a->batches, &per_second);
	*figure = (double)(a->sampling.edges - before) / (double)a->batches * per_second * 1e-6;
	return status;
}

static gw_status sample_alone(struct remote_arguments *a, double *edges_per_s)
{
	uint64_t edges = 0, begun = gw_now_ns();
	for (uint64_t i = 0; i < a->batches; i++) {
		struct gw_minibatch *batch;
		gw_status status = gw_batches_next(a->sampling_alone, &batch);
		if (status != GW_OK)
			return status;
		edges += batch->edge_count;
		gw_minibatch_release(batch);
	}
	*edges_per_s = (double)edges * 1e9 / (double)(gw_now_ns() - begun);
	return GW_OK;
}

static gw_status measure_bounds(void *context, double *figure)
{
	struct remote_arguments *a = context;
	double stream, alone;
	gw_status status = sample_alone(a, &alone);
	if (status != GW_OK)
		return status;
	gw_bench_series_add(&a->processors, alone * 1e-6);
	*figure = alone * 1e-6;
	if (is_mapped(a))
		return GW_OK;
	int error = gw_bare_stream(BARE_SECONDS, &stream);
	if (error)
		return gw_fail_errno(GW_IO, error, "the bare stream");
	double wire = stream / EDGE_BYTES;
	gw_bench_series_add(&a->wire, wire * 1e-6);
	*figure = (wire < alone ? wire : alone) * 1e-6;
	return GW_OK;
}

static gw_status run_samples(struct remote_arguments *a)
{
	static struct gw_bench_series ceilings, values;
	const struct gw_batches_spec spec = {.fanouts = {3, {15, 10, 5}},
					     .labels = a->labels,
					     .batch_size = (uint32_t)a->batch_size,
					     .depth = 4,
					     .part = -1};
	gw_status status = gw_batches_begin(&a->sampling, a->alone, &spec);
	if (status == GW_OK)
		status = gw_batches_check(&a->sampling, a->alone, a->served);
	if (status == GW_OK)
		status = gw_batches_loader(&a->sampling, a->alone, &a->sampling_alone);
	if (status == GW_OK)
		status = gw_bench_alternate(&a->bench, measure_bounds, measure_samples, a, &ceilings, &values);
	if (status == GW_OK) {
		char title[96], note[160];
		double wire = gw_bench_series_median(&a->wire), processors = gw_bench_series_median(&a->processors);
		uint32_t servers = gw_client_graph(a->served)->num_parts;
		snprintf(title, sizeof(title), "[15,10,5] x %llu seeds, %u server%s", (unsigned long long)a->batch_size,
			 servers, servers == 1 ? "" : "s");
		if (is_mapped(a))
			snprintf(note, sizeof(note),
				 "no rows; the ceiling: the same samples from the client's own memory");
		else
			snprintf(note, sizeof(note),
				 "no rows; %s: wire %.4g, processors (no network at all) %.4g M edges/s",
				 wire < processors ? "the wire is the limit" : "the processors are the limit", wire,
				 processors);
		const struct gw_bench_result result = {
			.title = title,
			.unit = "M edges/s",
			.values = &values,
			.ceilings = &ceilings,
			.verified = true,
			.note = note,
			.fields = {{"p50_us", (double)gw_histogram_quantile(&a->sampling.waits, 0.5) / 1e3, NULL},
				   {"p99_us", (double)gw_histogram_quantile(&a->sampling.waits, 0.99) / 1e3, NULL},
				   {"bound", 0, wire > 0 && wire < processors ? "wire" : "processors"},
				   {"processors_m_edges_per_s", processors, NULL},
				   {is_mapped(a) ? NULL : "wire_m_edges_per_s", wire, NULL}},
		};
		gw_bench_report(&a->bench, &result);
	}
	gw_loader_close(a->sampling_alone);
	gw_batches_end(&a->sampling);
	return status;
}

static gw_status remote_run(struct remote_arguments *a)
{
	gw_status status = gw_bench_open(&a->bench);
	if (status == GW_OK)
		status = gw_own_clients_open(&a->own, &a->clients, &a->alone, &a->served);
	if (status == GW_OK)
		status = find_rows(a);
	if (status == GW_OK)
		status = run_one(a);
	if (status == GW_OK)
		status = run_many(a);
	if (status == GW_OK && is_mapped(a))
		status = run_transport(a);
	if (status == GW_OK)
		status = run_samples(a);
	char text[GW_ERROR_TEXT_MAX];
	snprintf(text, sizeof(text), "%s", gw_last_error());
	if (a->served)
		gw_buffer_free(a->served, a->rows);
	gw_free(a->expected);
	gw_arena_destroy(a->store);
	gw_client_close(a->served);
	gw_client_close(a->alone);
	gw_own_servers_end(&a->own);
	gw_status closed = gw_bench_close(&a->bench);
	return status != GW_OK ? gw_fail_text(status, text) : closed;
}

static gw_status remote_check_command(void *input)
{
	return gw_own_clients_check(&((struct remote_arguments *)input)->clients.client);
}

int gw_bench_remote(int argc, char **argv)
{
	static const struct gw_options options = {
		.table = table,
		.common = gw_bench_options,
		.common_offset = offsetof(struct remote_arguments, bench),
		.check = remote_check_command,
		.doc = "Measures a client's calls to remote parts: one row, 10,000 rows, samples without rows.\v"
		       "Examples:\n  graphwire bench remote\n"
		       "  graphwire bench remote --part-config parts/ \\\n"
		       "                  --servers 10.0.0.1:30050,10.0.0.2:30050 --json -"};
	static struct remote_arguments a = {
		.bench = {.name = "remote"},
		.clients = {.client = {.transport = "tcp"},
			    .scale = 18,
			    .features = 128,
			    .server_threads = 1,
			    .server_pin = "core"},
		.features = "feat",
		.labels = "label",
		.batches = 40,
		.batch_size = 1000,
		.part = UINT64_MAX,
	};
	gw_options_parse(&options, argc, argv, &a);
	gw_status status = remote_run(&a);
	return gw_exit_status("graphwire bench remote", status);
}
