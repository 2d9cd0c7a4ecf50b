/* graphwire bench minibatch: complete mini-batches through the loader: sampled, relabelled, features and labels
 * fetched.
 *
 *   own graph and servers (or the given ones) -> the first batches compared with the standalone client's, byte by byte
 *   -> bare row loop and loader in turn -> report
 *
 * The ceiling is the time that bare loops over TCP need for the batch's feature rows only, without sampling and labels.
 * As many pairs of a client and a server run at once as there are servers and processors for them. They read from a
 * table as large as the features, with as many batches in flight as the loader. Without servers (--standalone) the
 * ceiling is a prefetching copy of the rows.
 *
 * user_share and system_share: of the time of all processors, what the loader and the benchmark's own servers take, in
 * their own code and in the kernel.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bare_rows.h"
#include "bench/batches.h"
#include "bench/bench.h"
#include "bench/own_servers.h"
#include "core/memory/arena.h"
#include "core/system/parallel.h"
#include "transport/scheme.h"

#define SERVERS_MAX     256
#define BARE_SECONDS    0.5
#define TABLE_BYTES_MAX (2ull << 30) /* largest table of the bare loop */

struct minibatch_arguments {
	struct gw_bench bench;
	struct gw_client_options client;
	const char *servers[SERVERS_MAX];
	bool standalone;
	const char *features, *labels;
	uint32_t scale, batch_size, depth, batches, server_threads;
	int64_t part; /* the part whose seeds are used; -1: all parts */
	struct gw_bench_fanouts fanouts[4];
	uint32_t fanouts_count;
	/* in use while the benchmark runs */
	struct gw_own_servers own;
	struct gw_client *measured, *alone;
	struct gw_arena *table, *landing;
	struct gw_batches batches_now; /* the batches of the case being measured */
	unsigned pairs;                /* pairs of bare loops */
	struct gw_own_used used;       /* by the loader and its servers, in batches_now.seconds */
};

/* ---- options ---- */

static gw_status minibatch_take_fanouts(void *input, char *text)
{
	struct minibatch_arguments *a = input;
	const uint32_t room = sizeof(a->fanouts) / sizeof(a->fanouts[0]);
	if (a->fanouts_count == room)
		return gw_fail(GW_LIMIT, "at most %u times", room);
	struct gw_bench_fanouts *fanouts = &a->fanouts[a->fanouts_count++];
	return gw_parse_list(text, GW_ALL_NEIGHBOURS, 65536, GW_HOPS_MAX, fanouts->of_hop, &fanouts->hops);
}

static gw_status minibatch_take_servers(void *input, char *text)
{
	struct minibatch_arguments *a = input;
	a->client.servers = a->servers;
	return gw_split_list(text, SERVERS_MAX, a->servers, &a->client.server_count);
}

static const char *const neighbours[] = {"auto", "reads", "requests", NULL};
static const char *const drivers[] = {"auto", "io_uring", "epoll", NULL};

#define A struct minibatch_arguments
static const struct gw_option table[] = {
	{"part-config", "JSON|FOLDER", "a partitioned graph (an R-MAT graph of its own)", 0,
	 GW_OPTION_TEXT(A, client.part_config)},
	{"servers", "ADDR,...", "servers of that graph (its own, one for each part, on loopback)", 0,
	 GW_OPTION_CALL(minibatch_take_servers)},
	{"key-file", "FILE", "the servers' key", 0, GW_OPTION_TEXT(A, client.key_file)},
	{"insecure", NULL, "accept servers on loopback without a key", 0, GW_OPTION_FLAG(A, client.insecure)},
	{"transport", GW_SCHEME_CHOICES, "transport to the servers (tcp)", 0,
	 GW_OPTION_CHOICE(A, client.transport, gw_scheme_choices)},
	{"standalone", NULL, "no servers: the parts in this process's memory", 0, GW_OPTION_FLAG(A, standalone)},
	{"features", "NAME", "feature read for every input node (feat)", 0, GW_OPTION_TEXT(A, features)},
	{"labels", "NAME", "feature read for every seed (label)", 0, GW_OPTION_TEXT(A, labels)},
	{"scale", "N", "own graph: 2^N nodes, 16 edges each, 128 float32 features (18)", 0,
	 GW_OPTION_NUMBER(A, scale, 10, 26)},
	{"batch-size", "N", "seeds of a mini-batch (1000)", 0, GW_OPTION_NUMBER(A, batch_size, 1, 1 << 20)},
	{"depth", "N", "mini-batches prepared ahead (4)", 0, GW_OPTION_NUMBER(A, depth, 1, 256)},
	{"batches", "N", "mini-batches of one repeat (40)", 0, GW_OPTION_NUMBER(A, batches, 1, 1 << 20)},
	{"threads", "N", "threads of the client (one for each processor)", 0,
	 GW_OPTION_NUMBER(A, client.threads, 1, 64)},
	{"server-threads", "N", "threads of each of its own servers (1)", 0,
	 GW_OPTION_NUMBER(A, server_threads, 1, 256)},
	{"seeds-of-part", "N", "only seeds that this part owns", 0, GW_OPTION_NUMBER(A, part, 0, 65535)},
	{"fanouts", "N,N,...", "fanouts of each hop; may be repeated (15,10,5 and 10,25)", 0,
	 GW_OPTION_CALL(minibatch_take_fanouts)},
	{"neighbours", "auto|reads|requests", "how remote neighbours are sampled (auto)", 0,
	 GW_OPTION_CHOICE(A, client.neighbours, neighbours)},
	{"tcp-driver", "auto|io_uring|epoll", "how the client drives sockets (auto)", 0,
	 GW_OPTION_CHOICE(A, client.tcp_driver, drivers)},
	{0},
};
#undef A

/* ---- a case ---- */

static gw_status open_clients(struct minibatch_arguments *a)
{
	const struct gw_own_clients_options own = {.client = a->client,
						   .standalone = a->standalone,
						   .scale = a->scale,
						   .features = 128,
						   .server_threads = a->server_threads};
	return gw_own_clients_open(&a->own, &own, &a->alone, &a->measured);
}

static uint64_t rows_max(const struct minibatch_arguments *a)
{
	return a->batches_now.rows_of_one * 5 / 4 + a->pairs;
}

static gw_status make_memory(struct minibatch_arguments *a)
{
	const struct gw_arena_options arena = {.name = "bench", .numa = GW_NUMA_LOCAL};
	const struct gw_batches *b = &a->batches_now;
	uint64_t table_bytes = b->type_count * b->row_bytes;
	unsigned servers = a->standalone ? 1 : gw_client_graph(a->alone)->num_parts, most = gw_processors() / 2;
	a->pairs = servers < most ? servers : most > 0 ? most : 1;
	a->pairs = a->pairs < GW_BARE_PAIRS_MAX ? a->pairs : GW_BARE_PAIRS_MAX;
	gw_arena_destroy(a->landing);
	gw_arena_destroy(a->table);
	a->table = a->landing = NULL;
	gw_status status =
		gw_arena_create(table_bytes < TABLE_BYTES_MAX ? table_bytes : TABLE_BYTES_MAX, &arena, &a->table);
	return status != GW_OK ? status : gw_arena_create(a->depth * rows_max(a) * b->row_bytes, &arena, &a->landing);
}

static gw_status minibatch_measure(void *context, double *figure)
{
	struct minibatch_arguments *a = context;
	struct gw_own_used before = gw_own_servers_used(&a->own);
	gw_status status = gw_batches_run(&a->batches_now, a->batches, figure);
	struct gw_own_used after = gw_own_servers_used(&a->own);
	a->used.user += after.user - before.user;
	a->used.system += after.system - before.system;
	return status;
}

static gw_status minibatch_measure_bare(void *context, double *figure)
{
	struct minibatch_arguments *a = context;
	const struct gw_batches *b = &a->batches_now;
	uint64_t rows = b->batches ? b->rows / b->batches : b->rows_of_one;
	rows = (rows < rows_max(a) ? rows : rows_max(a)) / a->pairs;
	struct gw_bare_rows bare = {.table = gw_arena_base(a->table),
				    .rows = gw_arena_bytes(a->table) / b->row_bytes,
				    .row_bytes = (uint32_t)b->row_bytes,
				    .batch = (uint32_t)(rows ? rows : 1),
				    .depth = a->depth,
				    .landing = gw_arena_base(a->landing),
				    .seconds = BARE_SECONDS};
	double rate = 0;
	int error = a->standalone ? gw_bare_rows_copy(&bare, &rate) : gw_bare_rows_pairs(&bare, a->pairs, &rate);
	if (error)
		return gw_fail_errno(GW_IO, error, "bare loop");
	*figure = rate / (double)((uint64_t)bare.batch * a->pairs * b->row_bytes);
	return GW_OK;
}

static const char *transport_of(const struct minibatch_arguments *a)
{
	const struct gw_scheme *first = NULL;
	uint32_t mapped = 0, parts = gw_client_graph(a->alone)->num_parts;
	if (a->standalone)
		return "in memory";
	for (uint32_t part = 0; part < parts; part++) {
		const char *name = gw_part_transport(a->measured, part);
		const struct gw_scheme *scheme = name ? gw_scheme_find(name) : NULL;
		mapped += scheme && scheme->mapped;
		if (part == 0)
			first = scheme;
	}
	if (mapped)
		return mapped == parts ? "mapped" : "mapped in part";
	return first == &gw_schemes[GW_SCHEME_VERBS] ? "over RDMA" : "over TCP";
}

static void minibatch_report(struct minibatch_arguments *a, const struct gw_bench_fanouts *fanouts,
			     const struct gw_bench_series *values, const struct gw_bench_series *ceilings)
{
	const struct gw_batches *b = &a->batches_now;
	char title[96] = "", note[128];
	size_t used = 0;
	for (uint32_t h = 0; h < fanouts->hops; h++)
		used += (size_t)snprintf(title + used, sizeof(title) - used, "%s%d", h ? "," : "[", fanouts->of_hop[h]);
	snprintf(title + used, sizeof(title) - used, "] x %u seeds, %s", a->batch_size, transport_of(a));
	snprintf(note, sizeof(note), "ceiling: the feature rows alone, by %s",
		 a->standalone   ? "a prefetching copy"
		 : a->pairs == 1 ? "a bare loop over TCP"
				 : "bare loops over TCP, several at once");
	double batches = (double)b->batches, processors = b->seconds * gw_processors();
	struct gw_bench_result result = {
		.title = title,
		.unit = "batches/s",
		.values = values,
		.ceilings = ceilings,
		.verified = true,
		.fields = {{"p50_us", (double)gw_histogram_quantile(&b->waits, 0.5) / 1e3, NULL},
			   {"p99_us", (double)gw_histogram_quantile(&b->waits, 0.99) / 1e3, NULL},
			   {"edges_per_s", (double)b->edges / b->seconds, NULL},
			   {"rows_per_s", (double)b->rows / b->seconds, NULL},
			   {"edges_per_batch", (double)b->edges / batches, NULL},
			   {"rows_per_batch", (double)b->rows / batches, NULL},
			   {"row_bytes", (double)b->row_bytes, NULL},
			   {"bare_loops", a->pairs, NULL},
			   {"user_share", a->used.user / processors, NULL},
			   {"system_share", a->used.system / processors, NULL}},
		.note = note,
	};
	gw_bench_report(&a->bench, &result);
}

static gw_status minibatch_run_case(struct minibatch_arguments *a, const struct gw_bench_fanouts *fanouts)
{
	static struct gw_bench_series values, ceilings;
	const struct gw_batches_spec spec = {.fanouts = *fanouts,
					     .labels = a->labels,
					     .features = a->features,
					     .batch_size = a->batch_size,
					     .depth = a->depth,
					     .part = a->part};
	values.count = ceilings.count = 0;
	a->used = (struct gw_own_used){0};
	gw_status status = gw_batches_begin(&a->batches_now, a->alone, &spec);
	if (status == GW_OK)
		status = gw_batches_check(&a->batches_now, a->alone, a->standalone ? a->alone : a->measured);
	if (status == GW_OK)
		status = make_memory(a);
	if (status == GW_OK)
		status =
			gw_bench_alternate(&a->bench, minibatch_measure_bare, minibatch_measure, a, &ceilings, &values);
	if (status == GW_OK)
		minibatch_report(a, fanouts, &values, &ceilings);
	gw_batches_end(&a->batches_now);
	return status;
}

static gw_status minibatch_check_command(void *input)
{
	return gw_own_clients_check(&((struct minibatch_arguments *)input)->client);
}

int gw_bench_minibatch(int argc, char **argv)
{
	static struct minibatch_arguments a = {
		.bench = {.name = "minibatch"},
		.features = "feat",
		.labels = "label",
		.scale = 18,
		.batch_size = 1000,
		.depth = 4,
		.batches = 40,
		.server_threads = 1,
		.client = {.transport = "tcp"},
		.part = -1,
	};
	static const struct gw_options options = {
		.table = table,
		.common = gw_bench_options,
		.common_offset = offsetof(struct minibatch_arguments, bench),
		.check = minibatch_check_command,
		.doc = "Measures complete mini-batches through the loader, against a bare loop that moves their "
		       "feature rows.\v"
		       "Examples:\n  graphwire bench minibatch\n"
		       "  graphwire bench minibatch --part-config parts/ --json - \\\n"
		       "                            --servers 10.0.0.1:30050,10.0.0.2:30050"};
	gw_options_parse(&options, argc, argv, &a);
	if (!a.fanouts_count) {
		a.fanouts[0] = (struct gw_bench_fanouts){3, {15, 10, 5}};
		a.fanouts[1] = (struct gw_bench_fanouts){2, {10, 25}};
		a.fanouts_count = 2;
	}
	gw_status status = gw_bench_open(&a.bench);
	if (status == GW_OK)
		status = open_clients(&a);
	for (uint32_t i = 0; i < a.fanouts_count && status == GW_OK; i++)
		status = minibatch_run_case(&a, &a.fanouts[i]);
	if (status != GW_OK)
		fprintf(stderr, "graphwire bench minibatch: %s\n", gw_last_error());
	gw_client_close(a.measured);
	gw_client_close(a.alone);
	gw_own_servers_end(&a.own);
	gw_arena_destroy(a.landing);
	gw_arena_destroy(a.table);
	gw_status closed = gw_bench_close(&a.bench);
	return status == GW_OK && closed == GW_OK ? 0 : 1;
}
