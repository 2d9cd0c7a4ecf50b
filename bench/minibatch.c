/* graphwire bench minibatch: whole mini-batches through the loader: sampled, relabelled, features and labels fetched.
 *
 *   own graph and servers (or the given ones) -> the first batches compared with the standalone client's, byte by byte
 *   -> bare row loop and loader in turn -> report
 *
 * The ceiling is the time that a bare loop over TCP needs for the batch's feature rows alone: no sampling, no labels,
 * no second server. Without servers (--standalone) it is a prefetching copy of them.
 */
#include <stdlib.h>
#include <string.h>

#include <graphwire/graphwire.h>

#include "bench/bare_rows.h"
#include "bench/bench.h"
#include "bench/own_servers.h"
#include "core/base/arena.h"
#include "core/base/clock.h"
#include "core/base/histogram.h"

#define SERVERS_MAX    256
#define ETYPES_MAX     64
#define HOPS_USUAL_MAX 8
#define CHECKED        3 /* batches compared before the measurement */
#define BARE_SECONDS   0.5
#define BARE_ROWS_MAX  (1u << 20)

struct fanouts {
	uint32_t hops;
	int32_t of_hop[HOPS_USUAL_MAX];
};

struct arguments {
	struct gw_bench bench;
	struct gw_client_options client;
	const char *servers[SERVERS_MAX];
	bool standalone;
	const char *features, *labels;
	uint32_t scale, batch_size, depth, batches, server_threads;
	int64_t part; /* whose seeds; -1: all */
	struct fanouts fanouts[4];
	uint32_t fanouts_count;
	/* while it runs */
	struct gw_own_servers own;
	struct gw_client *measured, *alone;
	struct gw_arena *table, *landing;
};

/* One case: what is sampled, and what came of it. */
struct bench_case {
	struct arguments *arguments;
	struct gw_loader_options options;
	int32_t spec_fanouts[HOPS_USUAL_MAX * ETYPES_MAX];
	struct gw_fetch fetches[2];
	int64_t *ids;
	struct gw_loader *loader;
	struct gw_histogram waits_ns;
	uint64_t batches, edges, rows, row_bytes;
	double seconds;
};

/* ---- options ---- */

static gw_status take_fanouts(void *input, char *text)
{
	struct arguments *a = input;
	const uint32_t room = sizeof(a->fanouts) / sizeof(a->fanouts[0]);
	if (a->fanouts_count == room)
		return gw_fail(GW_LIMIT, "at most %u times", room);
	struct fanouts *fanouts = &a->fanouts[a->fanouts_count++];
	return gw_parse_list(text, GW_ALL_NEIGHBOURS, 65536, HOPS_USUAL_MAX, fanouts->of_hop, &fanouts->hops);
}

static gw_status take_servers(void *input, char *text)
{
	struct arguments *a = input;
	a->client.servers = a->servers;
	return gw_split_list(text, SERVERS_MAX, a->servers, &a->client.server_count);
}

#define A struct arguments
static const struct gw_option table[] = {
	{"part-config", "JSON|FOLDER", "a partitioned graph (an R-MAT graph of its own)", 0,
	 GW_OPTION_TEXT(A, client.part_config)},
	{"servers", "ADDR,...", "servers of that graph (its own, one for each part, on loopback)", 0,
	 GW_OPTION_CALL(take_servers)},
	{"key-file", "FILE", "the servers' key", 0, GW_OPTION_TEXT(A, client.key_file)},
	{"standalone", NULL, "no servers: the parts in this process's memory", 0, GW_OPTION_FLAG(A, standalone)},
	{"features", "NAME", "feature read for every input node (feat)", 0, GW_OPTION_TEXT(A, features)},
	{"labels", "NAME", "feature read for every seed (label)", 0, GW_OPTION_TEXT(A, labels)},
	{"scale", "N", "own graph: 2^N nodes, 16 edges each, 128 float32 features (18)", 0,
	 GW_OPTION_NUMBER(A, scale, 10, 26)},
	{"batch-size", "N", "seeds of a mini-batch (1000)", 0, GW_OPTION_NUMBER(A, batch_size, 1, 1 << 20)},
	{"depth", "N", "mini-batches ahead (4)", 0, GW_OPTION_NUMBER(A, depth, 1, 256)},
	{"batches", "N", "mini-batches of one repeat (40)", 0, GW_OPTION_NUMBER(A, batches, 1, 1 << 20)},
	{"threads", "N", "of the client (one for each processor)", 0, GW_OPTION_NUMBER(A, client.threads, 1, 64)},
	{"server-threads", "N", "of each server of its own (1)", 0, GW_OPTION_NUMBER(A, server_threads, 1, 256)},
	{"seeds-of-part", "N", "only seeds that this part owns", 0, GW_OPTION_NUMBER(A, part, 0, 65535)},
	{"fanouts", "N,N,...", "may be repeated (15,10,5 and 10,25)", 0, GW_OPTION_CALL(take_fanouts)},
	{"neighbours", "auto|reads|requests", "how remote neighbours are sampled (auto)", 0,
	 GW_OPTION_TEXT(A, client.neighbours)},
	{"tcp-driver", "auto|io_uring|epoll", "how the client drives sockets (auto)", 0,
	 GW_OPTION_TEXT(A, client.tcp_driver)},
	{0},
};
#undef A

/* ---- the graph and the clients ---- */

static gw_status open_clients(struct arguments *a)
{
	gw_status status = GW_OK;
	uint32_t parts = 2;
	if (!a->client.part_config) {
		if (a->client.server_count)
			return gw_fail(GW_INVALID, "--servers needs --part-config, to check what they answer against");
		status = gw_own_graph_make(&a->own, a->scale, 128, parts);
		a->client.part_config = a->own.part_config;
	}
	struct gw_client_options alone = {.part_config = a->client.part_config, .threads = a->client.threads};
	if (status == GW_OK)
		status = gw_client_open(&alone, &a->alone);
	if (status != GW_OK || a->standalone)
		return status;
	if (!a->client.server_count) {
		parts = gw_client_graph(a->alone)->num_parts;
		status = gw_own_servers_start(&a->own, a->client.part_config, parts, a->server_threads);
		a->client.servers = a->own.list;
		a->client.server_count = parts;
	}
	return status == GW_OK ? gw_client_open(&a->client, &a->measured) : status;
}

static gw_status make_memory(struct arguments *a, uint64_t landing_bytes)
{
	struct gw_arena_options arena = {.name = "bench", .numa = GW_NUMA_LOCAL};
	gw_status status = GW_OK;
	if (!a->table)
		status = gw_arena_create((uint64_t)BARE_ROWS_MAX * 512, &arena, &a->table);
	gw_arena_destroy(a->landing);
	a->landing = NULL;
	if (status == GW_OK)
		status = gw_arena_create(landing_bytes, &arena, &a->landing);
	return status;
}

/* ---- a case ---- */

static gw_status case_begin(struct bench_case *c, struct arguments *a, const struct fanouts *fanouts)
{
	const struct gw_graph_info *info = gw_client_graph(a->alone);
	memset(c, 0, sizeof(*c));
	c->arguments = a;
	if (info->num_etypes > ETYPES_MAX)
		return gw_fail(GW_LIMIT, "%u edge types: this benchmark takes %d", info->num_etypes, ETYPES_MAX);
	uint32_t ntype = 0;
	const struct gw_tensor *labels = NULL;
	while (ntype < info->num_ntypes && gw_node_tensor(a->alone, ntype, a->labels, &labels) != GW_OK)
		ntype++;
	if (!labels)
		return gw_fail(GW_NOT_FOUND, "no node type has a feature \"%s\": name one with --labels", a->labels);
	for (uint32_t h = 0; h < fanouts->hops; h++) {
		for (uint32_t e = 0; e < info->num_etypes; e++)
			c->spec_fanouts[h * info->num_etypes + e] = fanouts->of_hop[h];
	}
	const struct gw_tensor *features;
	gw_status status = gw_node_tensor(a->alone, ntype, a->features, &features);
	if (status != GW_OK)
		return status;
	c->fetches[0] = (struct gw_fetch){features, GW_AT_INPUTS};
	c->fetches[1] = (struct gw_fetch){labels, GW_AT_SEEDS};
	c->row_bytes = features->row_bytes;
	int64_t begin = 0, end = (int64_t)info->ntypes[ntype].count;
	if (a->part >= 0)
		status = gw_part_range(a->alone, ntype, (uint32_t)a->part, &begin, &end);
	c->ids = malloc((size_t)(end - begin) * sizeof(*c->ids));
	if (!c->ids || status != GW_OK)
		return status != GW_OK ? status : gw_fail(GW_NO_MEMORY, "no memory for the seeds");
	for (int64_t i = begin; i < end; i++)
		c->ids[i - begin] = i;
	c->options = (struct gw_loader_options){.spec = {.ntype = ntype,
							 .hops = fanouts->hops,
							 .fanouts = c->spec_fanouts,
							 .fetch_count = 2,
							 .fetches = c->fetches},
						.ids = c->ids,
						.id_count = (uint64_t)(end - begin),
						.batch_size = a->batch_size,
						.shuffle = true,
						.seed = 7,
						.depth = a->depth};
	return GW_OK;
}

static gw_status open_loader(struct bench_case *c, struct gw_client *client, struct gw_loader **out)
{
	/* Tensors belong to a client. */
	struct gw_loader_options mine = c->options;
	struct gw_fetch fetches[2];
	for (int i = 0; i < 2; i++) {
		fetches[i].at = c->fetches[i].at;
		gw_status status = gw_node_tensor(client, c->fetches[i].tensor->type, c->fetches[i].tensor->name,
						  &fetches[i].tensor);
		if (status != GW_OK)
			return status;
	}
	mine.spec.fetches = fetches;
	return gw_loader_open(client, &mine, out);
}

/* The next batch, over the ends of epochs. */
static gw_status next_batch(struct gw_loader *loader, struct gw_minibatch **batch)
{
	gw_status status = gw_loader_next(loader, batch, -1);
	return status == GW_END ? gw_loader_next(loader, batch, -1) : status;
}

/* The first batches from both clients, compared; also warms everything up and finds the batch's size. */
static gw_status check(struct bench_case *c, struct gw_client *measured)
{
	struct gw_loader *alone;
	gw_status status = open_loader(c, c->arguments->alone, &alone);
	if (status != GW_OK)
		return status;
	status = open_loader(c, measured, &c->loader);
	for (int i = 0; i < CHECKED && status == GW_OK; i++) {
		struct gw_minibatch *right = NULL, *got = NULL;
		status = next_batch(alone, &right);
		if (status == GW_OK)
			status = next_batch(c->loader, &got);
		if (status == GW_OK && gw_minibatch_digest(right) != gw_minibatch_digest(got))
			status = gw_fail(GW_DIGEST, "mini-batch %d differs from the standalone client's", i);
		if (status == GW_OK)
			c->rows = got->row_counts[0];
		gw_minibatch_release(right);
		gw_minibatch_release(got);
	}
	gw_loader_close(alone);
	return status;
}

static gw_status measure(void *context, double *figure)
{
	struct bench_case *c = context;
	uint64_t start = gw_now_ns(), last = start;
	for (uint32_t i = 0; i < c->arguments->batches; i++) {
		struct gw_minibatch *batch;
		gw_status status = next_batch(c->loader, &batch);
		if (status != GW_OK)
			return status;
		uint64_t now = gw_now_ns();
		gw_histogram_add(&c->waits_ns, now - last);
		last = now;
		c->edges += batch->edge_count;
		c->rows += batch->row_counts[0];
		c->batches++;
		gw_minibatch_release(batch);
	}
	double seconds = (double)(last - start) / 1e9;
	c->seconds += seconds;
	*figure = c->arguments->batches / seconds;
	return GW_OK;
}

static gw_status measure_bare(void *context, double *figure)
{
	struct bench_case *c = context;
	uint32_t rows = (uint32_t)(c->batches ? c->rows / c->batches : c->rows);
	struct arguments *a = c->arguments;
	struct gw_bare_rows bare = {.table = gw_arena_base(a->table),
				    .rows = gw_arena_bytes(a->table) / c->row_bytes,
				    .row_bytes = (uint32_t)c->row_bytes,
				    .batch = rows,
				    .depth = 2,
				    .landing = gw_arena_base(a->landing),
				    .seconds = BARE_SECONDS};
	double rate = 0;
	int error = a->standalone ? gw_bare_rows_copy(&bare, &rate) : gw_bare_rows_tcp(&bare, &rate);
	if (error)
		return gw_fail_errno(GW_IO, error, "bare loop");
	*figure = rate / (double)(rows * c->row_bytes);
	return GW_OK;
}

static void report(struct bench_case *c, const struct fanouts *fanouts, const struct gw_bench_series *values,
		   const struct gw_bench_series *ceilings)
{
	struct arguments *a = c->arguments;
	char title[96] = "";
	size_t used = 0;
	for (uint32_t h = 0; h < fanouts->hops; h++)
		used += (size_t)snprintf(title + used, sizeof(title) - used, "%s%d", h ? "," : "[", fanouts->of_hop[h]);
	snprintf(title + used, sizeof(title) - used, "] x %u seeds, %s", a->batch_size,
		 a->standalone ? "in memory" : "over TCP");
	double batches = (double)c->batches;
	struct gw_bench_result result = {
		.title = title,
		.unit = "batches/s",
		.values = values,
		.ceilings = ceilings,
		.verified = true,
		.fields = {{"p50_us", (double)gw_histogram_quantile(&c->waits_ns, 0.5) / 1e3, NULL},
			   {"p99_us", (double)gw_histogram_quantile(&c->waits_ns, 0.99) / 1e3, NULL},
			   {"edges_per_s", (double)c->edges / c->seconds, NULL},
			   {"rows_per_s", (double)c->rows / c->seconds, NULL},
			   {"edges_per_batch", (double)c->edges / batches, NULL},
			   {"rows_per_batch", (double)c->rows / batches, NULL},
			   {"row_bytes", (double)c->row_bytes, NULL}},
		.note = a->standalone ? "ceiling: a prefetching copy of the feature rows alone"
				      : "ceiling: a bare loop over TCP for the feature rows alone",
	};
	gw_bench_report(&a->bench, &result);
}

static gw_status run_case(struct arguments *a, const struct fanouts *fanouts)
{
	struct bench_case c;
	struct gw_client *measured = a->standalone ? a->alone : a->measured;
	static struct gw_bench_series values, ceilings;
	values.count = ceilings.count = 0;
	gw_status status = case_begin(&c, a, fanouts);
	if (status == GW_OK)
		status = check(&c, measured);
	if (status == GW_OK)
		status = make_memory(a, 4 * c.rows * c.row_bytes);
	if (status == GW_OK)
		status = gw_bench_alternate(&a->bench, measure_bare, measure, &c, &ceilings, &values);
	if (status == GW_OK)
		report(&c, fanouts, &values, &ceilings);
	gw_loader_close(c.loader);
	free(c.ids);
	return status;
}

int gw_bench_minibatch(int argc, char **argv)
{
	static struct arguments a = {
		.bench = {.name = "minibatch"},
		.features = "feat",
		.labels = "label",
		.scale = 18,
		.batch_size = 1000,
		.depth = 4,
		.batches = 40,
		.server_threads = 1,
		.part = -1,
	};
	static const struct gw_options options = {
		.table = table,
		.common = gw_bench_options,
		.common_offset = offsetof(struct arguments, bench),
		.doc = "Whole mini-batches through the loader, against a bare loop that moves their feature rows.\v"
		       "Examples:\n  graphwire bench minibatch\n"
		       "  graphwire bench minibatch --part-config parts/ --json - \\\n"
		       "                            --servers 10.0.0.1:30050,10.0.0.2:30050"};
	gw_options_parse(&options, argc, argv, &a);
	if (!a.fanouts_count) {
		a.fanouts[0] = (struct fanouts){3, {15, 10, 5}};
		a.fanouts[1] = (struct fanouts){2, {10, 25}};
		a.fanouts_count = 2;
	}
	gw_status status = gw_bench_open(&a.bench);
	if (status == GW_OK)
		status = open_clients(&a);
	for (uint32_t i = 0; i < a.fanouts_count && status == GW_OK; i++)
		status = run_case(&a, &a.fanouts[i]);
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
