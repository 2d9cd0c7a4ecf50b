/* graphwire bench serve: single seeds, as an online service asks for them: one seed a request, from 1 to 64 callers at
 * once.
 *
 *   own graph and servers (or the given ones) -> seeds, each with a loader's mini-batch -> for each number of callers,
 * in turn: bare chains | requests | both again while loaders read in bulk -> report
 *
 * The ceiling is a chain of 2 x hops + 1 round trips one after the other, with as many bytes as the seed's mini-batch:
 * over TCP by blocking sockets, each caller with a connection and an answering thread of its own; over mapped memory by
 * copies. The loaders belong to clients of their own, or to the callers' client. Every answer is compared with the
 * loader's mini-batch of that seed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/bench.h"
#include "bench/bulk_loaders.h"
#include "bench/own_servers.h"
#include "bench/single_seeds.h"
#include "core/memory/alloc.h"
#include "core/memory/arena.h"
#include "core/system/clock.h"
#include "transport/scheme.h"

#define SERVERS_MAX 256
#define CALLERS_MAX 64
#define CASES_MAX   8
#define SLICES      4u /* of a repeat */
#define SPIN_US_MAX 1000000

/* What is measured in turn. Beside: while the loaders read in bulk. */
enum side { CHAIN, ALONE, CHAIN_BESIDE, BESIDE, BESIDE_SAME, SIDES };

struct serve_arguments;

struct caller {
	struct serve_arguments *arguments;
	uint32_t number, requests;
	enum side side;
	double *microseconds; /* [requests] */
	pthread_t thread;
	struct gw_bare_chain *chain;
	gw_status status;
	char error[GW_ERROR_TEXT_MAX];
};

struct side_figures {
	struct gw_bench_series p50, p99;
	double *microseconds; /* of all requests of all repeats */
	uint32_t count;
	double seconds, client_cpu, server_cpu;
};

struct serve_arguments {
	struct gw_bench bench;
	struct gw_client_options client;
	const char *servers[SERVERS_MAX];
	const char *features, *labels;
	uint32_t scale, seeds, requests, server_threads, loaders, loader_threads, batch_size;
	uint32_t callers[CASES_MAX], case_count;
	struct gw_bench_fanouts fanouts;
	/* in use while the benchmark runs */
	struct gw_own_servers own;
	struct gw_client *measured, *alone, *bulk_clients[GW_BULK_LOADERS_MAX];
	struct gw_single_seeds single;
	struct gw_batches bulk;
	struct gw_bulk_loaders running;
	const struct gw_tensor *tensor; /* the measured client's features */
	struct gw_arena *table;
	pthread_barrier_t start;
	struct caller all[CALLERS_MAX];
	uint32_t caller_count; /* of the case being measured */
	struct side_figures sides[SIDES];
	uint64_t drawn; /* seeds so far */
};

/* ---- options ---- */

static gw_status serve_take_fanouts(void *input, char *text)
{
	struct gw_bench_fanouts *fanouts = &((struct serve_arguments *)input)->fanouts;
	return gw_parse_list(text, GW_ALL_NEIGHBOURS, 65536, GW_HOPS_MAX, fanouts->of_hop, &fanouts->hops);
}

static gw_status serve_take_callers(void *input, char *text)
{
	struct serve_arguments *a = input;
	int32_t numbers[CASES_MAX];
	gw_status status = gw_parse_list(text, 1, CALLERS_MAX, CASES_MAX, numbers, &a->case_count);
	for (uint32_t i = 0; i < a->case_count && status == GW_OK; i++)
		a->callers[i] = (uint32_t)numbers[i];
	return status;
}

static gw_status serve_take_servers(void *input, char *text)
{
	struct serve_arguments *a = input;
	a->client.servers = a->servers;
	return gw_split_list(text, SERVERS_MAX, a->servers, &a->client.server_count);
}

static const char *const drivers[] = {"auto", "io_uring", "epoll", NULL};

#define A struct serve_arguments
static const struct gw_option table[] = {
	{"part-config", "JSON|FOLDER", "a partitioned graph (default: a generated R-MAT graph)", 0,
	 GW_OPTION_TEXT(A, client.part_config)},
	{"servers", "ADDR,...", "servers of that graph (default: started on loopback, one for each part)", 0,
	 GW_OPTION_CALL(serve_take_servers)},
	{"key-file", "FILE", "the servers' key", 0, GW_OPTION_TEXT(A, client.key_file)},
	{"insecure", NULL, "accept servers on loopback that have no key", 0, GW_OPTION_FLAG(A, client.insecure)},
	{"transport", GW_SCHEME_CHOICES, "transport to the servers (default tcp)", 0,
	 GW_OPTION_CHOICE(A, client.transport, gw_scheme_choices)},
	{"features", "NAME", "feature read for every input node (default feat)", 0, GW_OPTION_TEXT(A, features)},
	{"labels", "NAME", "the seeds' node type is the one with this feature (default label)", 0,
	 GW_OPTION_TEXT(A, labels)},
	{"scale", "N", "generated graph: 2^N nodes, 16 edges each, 128 float32 features (default 18)", 0,
	 GW_OPTION_NUMBER(A, scale, 10, 26)},
	{"fanouts", "N,N,...", "fanouts, hop by hop (default 25,10)", 0, GW_OPTION_CALL(serve_take_fanouts)},
	{"callers", "N,N,...", "numbers of callers at once (default 1,4,16,64)", 0, GW_OPTION_CALL(serve_take_callers)},
	{"seeds", "N", "different seeds (default 1000)", 0, GW_OPTION_NUMBER(A, seeds, 1, 1 << 20)},
	{"requests", "N", "requests of all callers in one repeat (default 1000)", 0,
	 GW_OPTION_NUMBER(A, requests, 1, 1 << 20)},
	{"threads", "N", "threads of the client (default: one for each processor)", 0,
	 GW_OPTION_NUMBER(A, client.threads, 1, 64)},
	{"server-threads", "N", "threads of each started server (default 1)", 0,
	 GW_OPTION_NUMBER(A, server_threads, 1, 256)},
	{"tcp-driver", "auto|io_uring|epoll", "how the client and the started servers drive sockets (default auto)", 0,
	 GW_OPTION_CHOICE(A, client.tcp_driver, drivers)},
	{"spin", "US", "how long the client and the started servers poll before they sleep (default 0)", 0,
	 GW_OPTION_NUMBER(A, client.spin_us, 0, SPIN_US_MAX)},
	{.help = "While loaders read in bulk:", .group = 1},
	{"loaders", "N", "loaders; 0: measure without (default 4)", 1,
	 GW_OPTION_NUMBER(A, loaders, 0, GW_BULK_LOADERS_MAX)},
	{"loader-threads", "N", "threads of each loader's client (default 1)", 1,
	 GW_OPTION_NUMBER(A, loader_threads, 1, 64)},
	{"batch-size", "N", "seeds of a loader's mini-batch (default 1000)", 1,
	 GW_OPTION_NUMBER(A, batch_size, 1, 1 << 20)},
	{0},
};
#undef A

/* ---- callers ---- */

static bool is_chain(enum side side)
{
	return side == CHAIN || side == CHAIN_BESIDE;
}

static gw_status caller_ask(struct caller *caller)
{
	struct serve_arguments *a = caller->arguments;
	const struct gw_single_seeds *s = &a->single;
	gw_status status = GW_OK;
	pthread_barrier_wait(&a->start);
	for (uint32_t i = 0; i < caller->requests && status == GW_OK; i++) {
		uint64_t number = a->drawn + (uint64_t)i * a->caller_count + caller->number;
		const struct gw_single_seed *seed = &s->seeds[number % s->count];
		double *microseconds = &caller->microseconds[i];
		if (!is_chain(caller->side)) {
			status = gw_single_seed_sample(s, seed, a->measured, a->tensor, microseconds);
			continue;
		}
		uint64_t begun = gw_monotonic_ns();
		int error = gw_bare_chain_run(caller->chain, seed->rounds, s->round_count);
		*microseconds = (double)(gw_monotonic_ns() - begun) * 1e-3;
		if (error)
			status = gw_fail_errno(GW_IO, error, "the bare chain");
	}
	return status;
}

static void *run_caller(void *context)
{
	struct caller *caller = context;
	caller->status = caller_ask(caller);
	if (caller->status != GW_OK)
		snprintf(caller->error, sizeof(caller->error), "%s", gw_last_error());
	return NULL;
}

/* The processor seconds of the started servers; 0 for servers of others. */
static double server_cpu_seconds(const struct serve_arguments *a)
{
	double seconds = 0;
	for (uint32_t i = 0; i < a->own.count; i++) {
		clockid_t clock;
		struct timespec used;
		if (clock_getcpuclockid(atomic_load(&a->own.pids[i]), &clock) == 0 && clock_gettime(clock, &used) == 0)
			seconds += (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
	}
	return seconds;
}

static gw_status serve_ask_all(struct serve_arguments *a, enum side side, uint32_t requests)
{
	struct side_figures *figures = &a->sides[side];
	gw_status status = GW_OK;
	double client_cpu = gw_bench_cpu_seconds(), server_cpu = server_cpu_seconds(a);
	uint64_t begun = gw_monotonic_ns();
	pthread_barrier_init(&a->start, NULL, a->caller_count);
	for (uint32_t i = 0; i < a->caller_count; i++) {
		struct caller *caller = &a->all[i];
		caller->side = side;
		caller->requests = requests;
		caller->microseconds = figures->microseconds + figures->count + (size_t)i * requests;
		int error = pthread_create(&caller->thread, NULL, run_caller, caller);
		if (error) {
			/* The barrier keeps the other callers, so the program cannot go on. */
			gw_fail_errno(GW_LIMIT, error, "cannot start the thread of caller %u", i);
			exit(gw_exit_status("graphwire bench serve", GW_LIMIT));
		}
	}
	for (uint32_t i = 0; i < a->caller_count; i++) {
		pthread_join(a->all[i].thread, NULL);
		if (status == GW_OK && a->all[i].status != GW_OK)
			status = gw_fail_text(a->all[i].status, a->all[i].error);
	}
	pthread_barrier_destroy(&a->start);
	figures->seconds += (double)(gw_monotonic_ns() - begun) * 1e-9;
	figures->client_cpu += gw_bench_cpu_seconds() - client_cpu;
	figures->server_cpu += server_cpu_seconds(a) - server_cpu;
	figures->count += requests * a->caller_count;
	a->drawn += (uint64_t)requests * a->caller_count;
	return status;
}

/* ---- a case ---- */

static gw_status serve_slice(struct serve_arguments *a, enum side side, uint32_t requests)
{
	uint64_t batches;
	if (side < CHAIN_BESIDE)
		return serve_ask_all(a, side, requests);
	bool same = side == BESIDE_SAME;
	gw_status status = gw_bulk_loaders_begin(&a->running, &a->bulk, same ? &a->measured : a->bulk_clients,
						 same ? 1 : a->loaders, a->loaders);
	if (status != GW_OK)
		return status;
	status = serve_ask_all(a, side, requests);
	gw_status ended = gw_bulk_loaders_end(&a->running, &batches);
	return status != GW_OK ? status : ended;
}

static gw_status serve_repeat(struct serve_arguments *a, uint32_t requests)
{
	uint32_t sides = a->loaders ? SIDES : CHAIN_BESIDE;
	gw_status status = GW_OK;
	for (uint32_t n = 0; n < SLICES * sides && status == GW_OK; n++)
		status = serve_slice(a, (n + n / sides) % sides, requests);
	for (uint32_t side = 0; side < sides && status == GW_OK; side++) {
		struct side_figures *figures = &a->sides[side];
		uint32_t mine = SLICES * requests * a->caller_count;
		double *values = figures->microseconds + figures->count - mine;
		gw_bench_series_add(&figures->p50, gw_bench_quantile(values, mine, 0.5));
		gw_bench_series_add(&figures->p99, gw_bench_quantile(values, mine, 0.99));
	}
	return status;
}

static void serve_report_requests(struct serve_arguments *a)
{
	struct side_figures *requests = &a->sides[ALONE], *chain = &a->sides[CHAIN];
	double p999 = gw_bench_quantile(requests->microseconds, requests->count, 0.999),
	       bare_p999 = gw_bench_quantile(chain->microseconds, chain->count, 0.999),
	       p99 = gw_bench_series_median(&requests->p99), bare_p99 = gw_bench_series_median(&chain->p99);
	char title[96], note[200];
	snprintf(title, sizeof(title), "%u caller%s, %s", a->caller_count, a->caller_count == 1 ? "" : "s",
		 gw_part_transport(a->measured, 0));
	snprintf(note, sizeof(note), "p99 %.4g us, %.2f of the chain's %.4g; p99.9 %.4g us, the chain's %.4g", p99,
		 p99 / bare_p99, bare_p99, p999, bare_p999);
	const struct gw_bench_result result = {
		.title = title,
		.unit = "us",
		.values = &requests->p50,
		.ceilings = &chain->p50,
		.lower_is_better = true,
		.verified = true,
		.fields = {{"callers", a->caller_count, NULL},
			   {"round_trips", a->single.round_count, NULL},
			   {"p99_us", p99, NULL},
			   {"ceiling_p99_us", bare_p99, NULL},
			   {"p99_ratio", p99 / bare_p99, NULL},
			   {"p999_us", p999, NULL},
			   {"ceiling_p999_us", bare_p999, NULL},
			   {"requests_per_s", requests->count / requests->seconds, NULL},
			   {"ceiling_requests_per_s", chain->count / chain->seconds, NULL},
			   {"client_cpu_us", 1e6 * requests->client_cpu / requests->count, NULL},
			   {"server_cpu_us", 1e6 * requests->server_cpu / requests->count, NULL},
			   {"ceiling_cpu_us", 1e6 * chain->client_cpu / chain->count, NULL},
			   {"nodes_per_request", a->single.nodes_per_seed, NULL},
			   {"edges_per_request", a->single.edges_per_seed, NULL}},
		.note = note,
	};
	gw_bench_report(&a->bench, &result);
}

static void serve_report_beside(struct serve_arguments *a, enum side side)
{
	struct side_figures *beside = &a->sides[side], *chain = &a->sides[CHAIN_BESIDE];
	double p999 = gw_bench_quantile(beside->microseconds, beside->count, 0.999),
	       p50 = gw_bench_series_median(&beside->p50), bare_p99 = gw_bench_series_median(&chain->p99);
	char title[96], note[200];
	snprintf(title, sizeof(title), "%u caller%s, p99 with %u loaders%s", a->caller_count,
		 a->caller_count == 1 ? "" : "s", a->loaders, side == BESIDE_SAME ? " of their client" : "");
	snprintf(note, sizeof(note), "ceiling: p99 without the loaders; p50 %.4g us, p99.9 %.4g; the chain's p99 %.4g",
		 p50, p999, bare_p99);
	const struct gw_bench_result result = {
		.title = title,
		.unit = "us",
		.values = &beside->p99,
		.ceilings = &a->sides[ALONE].p99,
		.lower_is_better = true,
		.verified = true,
		.fields = {{"callers", a->caller_count, NULL},
			   {"loaders", a->loaders, NULL},
			   {"p50_us", p50, NULL},
			   {"p999_us", p999, NULL},
			   {"chain_p50_us", gw_bench_series_median(&chain->p50), NULL},
			   {"chain_p99_us", bare_p99, NULL}},
		.note = note,
	};
	gw_bench_report(&a->bench, &result);
}

static gw_status serve_make_callers(struct serve_arguments *a, uint32_t requests)
{
	const struct gw_scheme *scheme = gw_scheme_find(gw_part_transport(a->measured, 0));
	for (uint32_t side = 0; side < SIDES; side++) {
		struct side_figures *figures = &a->sides[side];
		figures->microseconds = gw_calloc((size_t)a->bench.repeats * SLICES * requests * a->caller_count,
						  sizeof(*figures->microseconds));
		if (!figures->microseconds)
			return GW_NO_MEMORY;
	}
	for (uint32_t i = 0; i < a->caller_count; i++) {
		a->all[i] = (struct caller){.arguments = a, .number = i};
		int error = gw_bare_chain_begin(gw_arena_base(a->table), gw_arena_bytes(a->table), a->single.bytes_max,
						!scheme || !scheme->mapped, &a->all[i].chain);
		if (error)
			return gw_fail_errno(GW_IO, error, "the bare chain of caller %u", i);
	}
	return GW_OK;
}

static gw_status serve_run_case(struct serve_arguments *a, uint32_t callers)
{
	uint32_t requests = a->requests / SLICES / callers;
	requests = requests ? requests : 1;
	a->caller_count = callers;
	gw_status status = serve_make_callers(a, requests);
	for (uint32_t i = 0; i < a->bench.repeats && status == GW_OK; i++)
		status = serve_repeat(a, requests);
	if (status == GW_OK)
		serve_report_requests(a);
	for (uint32_t side = BESIDE; side < SIDES && a->loaders && status == GW_OK; side++)
		serve_report_beside(a, side);
	for (uint32_t i = 0; i < callers; i++)
		gw_bare_chain_end(a->all[i].chain);
	memset(a->all, 0, sizeof(a->all));
	for (uint32_t side = 0; side < SIDES; side++)
		gw_free(a->sides[side].microseconds);
	memset(a->sides, 0, sizeof(a->sides));
	return status;
}

/* ---- opening ---- */

static gw_status serve_open(struct serve_arguments *a)
{
	const struct gw_own_clients_options own = {.client = a->client,
						   .scale = a->scale,
						   .features = 128,
						   .server_threads = a->server_threads,
						   .server_driver = a->client.tcp_driver,
						   .server_spin_us = a->client.spin_us};
	struct gw_batches_spec spec = {.fanouts = a->fanouts,
				       .labels = a->labels,
				       .features = a->features,
				       .batch_size = a->batch_size,
				       .depth = 4,
				       .part = -1};
	const struct gw_arena_options arena = {.name = "bench", .numa = GW_NUMA_LOCAL};
	gw_status status = gw_own_clients_open(&a->own, &own, &a->alone, &a->measured);
	for (uint32_t i = 0; i < a->loaders && status == GW_OK; i++)
		status = gw_own_clients_again(&a->own, a->loader_threads, &a->bulk_clients[i]);
	if (status == GW_OK)
		status = gw_batches_begin(&a->bulk, a->alone, &spec);
	if (status == GW_OK)
		status = gw_single_seeds_begin(&a->single, a->alone, &spec, a->seeds);
	if (status == GW_OK)
		status = gw_node_tensor(a->measured, a->single.batches.options.spec.ntype, a->features, &a->tensor);
	if (status == GW_OK)
		status = gw_arena_create(a->bulk.type_count * a->bulk.row_bytes, &arena, &a->table);
	return status;
}

static gw_status serve_run(struct serve_arguments *a)
{
	gw_status status = gw_bench_open(&a->bench);
	if (status == GW_OK)
		status = serve_open(a);
	for (uint32_t i = 0; i < a->case_count && status == GW_OK; i++)
		status = serve_run_case(a, a->callers[i]);
	return status;
}

static gw_status serve_check_command(void *input)
{
	return gw_own_clients_check(&((struct serve_arguments *)input)->client);
}

int gw_bench_serve(int argc, char **argv)
{
	static struct serve_arguments a = {
		.bench = {.name = "serve"},
		.features = "feat",
		.labels = "label",
		.scale = 18,
		.fanouts = {2, {25, 10}},
		.callers = {1, 4, 16, 64},
		.case_count = 4,
		.seeds = 1000,
		.requests = 1000,
		.server_threads = 1,
		.loaders = 4,
		.loader_threads = 1,
		.batch_size = 1000,
		.client = {.transport = "tcp"},
	};
	static const struct gw_options options = {
		.table = table,
		.common = gw_bench_options,
		.common_offset = offsetof(struct serve_arguments, bench),
		.check = serve_check_command,
		.doc = "Measure single seeds, one a request, against a bare chain of two round trips for each hop and "
		       "one for the features; and again while loaders read in bulk.\v"
		       "Examples:\n  graphwire bench serve\n"
		       "  graphwire bench serve --transport shm --callers 1,16 --loaders 0"};
	gw_options_parse(&options, argc, argv, &a);
	gw_status status = serve_run(&a);
	if (status != GW_OK)
		fprintf(stderr, "graphwire bench serve: %s\n", gw_last_error());
	gw_single_seeds_end(&a.single);
	gw_batches_end(&a.bulk);
	for (uint32_t i = 0; i < a.loaders; i++)
		gw_client_close(a.bulk_clients[i]);
	gw_client_close(a.measured);
	gw_client_close(a.alone);
	gw_own_servers_end(&a.own);
	gw_arena_destroy(a.table);
	gw_status closed = gw_bench_close(&a.bench);
	return status == GW_OK && closed == GW_OK ? 0 : 1;
}
