/* graphwire bench links: mini-batches of edges, against mini-batches of nodes with as many seeds.
 *
 *   own graph and servers (or the given ones) -> for each kind of negatives: the first batches compared with the
 *   standalone client's -> batches of nodes and of edges alternately -> report
 *
 * A batch of edges has three seeds for each edge: its two ends and one negative. The ceiling is the same loader over
 * nodes, three for each edge, from a similar list: two thirds are ends of random edges, one third are random nodes. So
 * both sample as much, and the difference is the extra cost of edges.
 */
#include <stdio.h>
#include <string.h>

#include "bench/batches.h"
#include "bench/bench.h"
#include "bench/own_servers.h"
#include "core/memory/alloc.h"
#include "core/numbers/rng.h"
#include "transport/scheme.h"

#define SERVERS_MAX 256
#define PER_EDGE    3u /* seeds: two ends and a negative */

struct links_arguments {
	struct gw_bench bench;
	struct gw_client_options client;
	const char *servers[SERVERS_MAX];
	bool standalone;
	const char *features, *labels;
	uint32_t scale, batch_size, depth, batches, server_threads;
	struct gw_bench_fanouts fanouts;
	/* in use while the benchmark runs */
	struct gw_own_servers own;
	struct gw_client *measured, *alone;
	struct gw_batches edges, nodes; /* the batches of the case being measured */
};

/* ---- options ---- */

static gw_status links_take_fanouts(void *input, char *text)
{
	struct gw_bench_fanouts *fanouts = &((struct links_arguments *)input)->fanouts;
	return gw_parse_list(text, GW_ALL_NEIGHBOURS, 65536, GW_BENCH_HOPS_MAX, fanouts->of_hop, &fanouts->hops);
}

static gw_status links_take_servers(void *input, char *text)
{
	struct links_arguments *a = input;
	a->client.servers = a->servers;
	return gw_split_list(text, SERVERS_MAX, a->servers, &a->client.server_count);
}

#define A struct links_arguments
static const struct gw_option table[] = {
	{"part-config", "JSON|FOLDER", "a partitioned graph (default: a generated R-MAT graph)", 0,
	 GW_OPTION_TEXT(A, client.part_config)},
	{"servers", "ADDR,...", "servers of that graph (default: started on loopback, one for each part)", 0,
	 GW_OPTION_CALL(links_take_servers)},
	{"key-file", "FILE", "the servers' key", 0, GW_OPTION_TEXT(A, client.key_file)},
	{"insecure", NULL, "accept servers on loopback that have no key", 0, GW_OPTION_FLAG(A, client.insecure)},
	{"transport", GW_SCHEME_CHOICES, "transport to the servers (default tcp)", 0,
	 GW_OPTION_CHOICE(A, client.transport, gw_scheme_choices)},
	{"standalone", NULL, "use no servers: the parts are in this process's memory", 0,
	 GW_OPTION_FLAG(A, standalone)},
	{"features", "NAME", "feature read for every input node (default feat)", 0, GW_OPTION_TEXT(A, features)},
	{"labels", "NAME", "the seeds' node type is the one with this feature (default label)", 0,
	 GW_OPTION_TEXT(A, labels)},
	{"scale", "N", "generated graph: 2^N nodes, 16 edges each, 128 float32 features (default 18)", 0,
	 GW_OPTION_NUMBER(A, scale, 10, 26)},
	{"batch-size", "N", "edges of a mini-batch (default 1000)", 0, GW_OPTION_NUMBER(A, batch_size, 1, 1 << 20)},
	{"depth", "N", "mini-batches prepared ahead (default 4)", 0, GW_OPTION_NUMBER(A, depth, 1, 256)},
	{"batches", "N", "mini-batches of one repeat (default 20)", 0, GW_OPTION_NUMBER(A, batches, 1, 1 << 20)},
	{"threads", "N", "threads of the client (default: one for each processor)", 0,
	 GW_OPTION_NUMBER(A, client.threads, 1, 64)},
	{"server-threads", "N", "threads of each started server (default 1)", 0,
	 GW_OPTION_NUMBER(A, server_threads, 1, 256)},
	{"fanouts", "N,N,...", "fanouts, hop by hop from the ends (default 10,5)", 0,
	 GW_OPTION_CALL(links_take_fanouts)},
	{0},
};
#undef A

/* ---- a case ---- */

/* The first edge type that joins two nodes of the type with the labels. */
static gw_status find_edges(const struct links_arguments *a, uint32_t ntype, uint32_t *etype)
{
	const struct gw_graph_info *info = gw_client_graph(a->alone);
	for (*etype = 0; *etype < info->num_etypes; ++*etype) {
		const struct gw_type_info *type = &info->etypes[*etype];
		if (type->src == ntype && type->dst == ntype && type->count > 0)
			return GW_OK;
	}
	return gw_fail(GW_NOT_FOUND, "no edge type goes from %s to itself", info->ntypes[ntype].name);
}

/* Makes a list of nodes that resembles the seeds of batches of edges. */
static gw_status links_make_nodes(struct links_arguments *a, uint32_t etype)
{
	struct gw_batches *b = &a->nodes;
	uint64_t n = (uint64_t)a->batch_size * a->batches * 2, edges = gw_client_graph(a->alone)->etypes[etype].count;
	int64_t *ids = gw_calloc(n, sizeof(*ids)), *nodes = gw_calloc(n * PER_EDGE, sizeof(*nodes));
	gw_status status = ids && nodes ? GW_OK : GW_NO_MEMORY;
	for (uint64_t i = 0; i < n && status == GW_OK; i++) {
		ids[i] = (int64_t)(gw_mix64(i) % edges);
		nodes[2 * n + i] = (int64_t)(gw_mix64(i + n) % b->type_count);
	}
	if (status == GW_OK)
		status = gw_find_edges(a->alone, etype, ids, n, nodes, nodes + n);
	gw_free(ids);
	gw_free(b->ids);
	b->ids = nodes;
	b->options.ids = nodes;
	b->options.id_count = n * PER_EDGE;
	return status;
}

static gw_status links_begin(struct links_arguments *a, struct gw_edge_seeds *seeds)
{
	struct gw_batches_spec spec = {.fanouts = a->fanouts,
				       .labels = a->labels,
				       .features = a->features,
				       .batch_size = a->batch_size,
				       .depth = a->depth,
				       .part = -1};
	gw_status status = gw_batches_begin(&a->edges, a->alone, &spec);
	spec.batch_size *= PER_EDGE;
	if (status == GW_OK)
		status = gw_batches_begin(&a->nodes, a->alone, &spec);
	if (status == GW_OK)
		status = find_edges(a, a->nodes.options.spec.ntype, &seeds->etype);
	if (status == GW_OK)
		status = links_make_nodes(a, seeds->etype);
	/* Only the features: labels belong to seeds that are nodes. */
	a->edges.options.spec.edges = seeds;
	a->edges.options.ids = NULL;
	a->edges.options.spec.fetch_count = a->nodes.options.spec.fetch_count = 1;
	if (status == GW_OK)
		status = gw_batches_check(&a->edges, a->alone, a->standalone ? a->alone : a->measured);
	if (status == GW_OK)
		status = gw_batches_check(&a->nodes, a->alone, a->standalone ? a->alone : a->measured);
	return status;
}

static gw_status links_measure(void *context, double *figure)
{
	struct links_arguments *a = context;
	return gw_batches_run(&a->edges, a->batches, figure);
}

static gw_status links_measure_nodes(void *context, double *figure)
{
	struct links_arguments *a = context;
	return gw_batches_run(&a->nodes, a->batches, figure);
}

static void links_report(struct links_arguments *a, const char *what, const struct gw_bench_series *values,
			 const struct gw_bench_series *ceilings)
{
	const struct gw_batches *e = &a->edges, *n = &a->nodes;
	char title[96];
	snprintf(title, sizeof(title), "%u edges, %s, %s", a->batch_size, what,
		 a->standalone ? "in memory" : gw_part_transport(a->measured, 0));
	struct gw_bench_result result = {
		.title = title,
		.unit = "batches/s",
		.values = values,
		.ceilings = ceilings,
		.verified = true,
		.fields = {{"p50_us", (double)gw_histogram_quantile(&e->waits, 0.5) / 1e3, NULL},
			   {"p99_us", (double)gw_histogram_quantile(&e->waits, 0.99) / 1e3, NULL},
			   {"edges_per_batch", (double)e->edges / (double)e->batches, NULL},
			   {"rows_per_batch", (double)e->rows / (double)e->batches, NULL},
			   {"ceiling_edges_per_batch", (double)n->edges / (double)n->batches, NULL},
			   {"ceiling_rows_per_batch", (double)n->rows / (double)n->batches, NULL}},
		.note = "ceiling: mini-batches of nodes with as many seeds",
	};
	gw_bench_report(&a->bench, &result);
}

static gw_status links_run_case(struct links_arguments *a, const char *what, struct gw_edge_seeds seeds)
{
	static struct gw_bench_series values, ceilings;
	values.count = ceilings.count = 0;
	gw_status status = links_begin(a, &seeds);
	if (status == GW_OK)
		status = gw_bench_alternate(&a->bench, links_measure_nodes, links_measure, a, &ceilings, &values);
	if (status == GW_OK)
		links_report(a, what, &values, &ceilings);
	gw_batches_end(&a->edges);
	gw_batches_end(&a->nodes);
	return status;
}

static gw_status links_run(struct links_arguments *a)
{
	const struct gw_own_clients_options own = {.client = a->client,
						   .standalone = a->standalone,
						   .scale = a->scale,
						   .features = 128,
						   .server_threads = a->server_threads};
	const struct gw_edge_seeds uniform = {.negatives = GW_NEGATIVES_DST, .negatives_each = PER_EDGE - 2};
	struct gw_edge_seeds strict = uniform;
	strict.no_true_edges = true;
	strict.exclude = GW_EXCLUDE_EDGES | GW_EXCLUDE_ENDS;
	gw_status status = gw_bench_open(&a->bench);
	if (status == GW_OK)
		status = gw_own_clients_open(&a->own, &own, &a->alone, &a->measured);
	if (status == GW_OK)
		status = links_run_case(a, "uniform negatives", uniform);
	return status == GW_OK ? links_run_case(a, "no true edges, own excluded", strict) : status;
}

static gw_status links_check_command(void *input)
{
	return gw_own_clients_check(&((struct links_arguments *)input)->client);
}

int gw_bench_links(int argc, char **argv)
{
	static struct links_arguments a = {
		.bench = {.name = "links"},
		.features = "feat",
		.labels = "label",
		.scale = 18,
		.batch_size = 1000,
		.depth = 4,
		.batches = 20,
		.server_threads = 1,
		.client = {.transport = "tcp"},
		.fanouts = {2, {10, 5}},
	};
	static const struct gw_options options = {
		.table = table,
		.common = gw_bench_options,
		.common_offset = offsetof(struct links_arguments, bench),
		.check = links_check_command,
		.doc = "Measure mini-batches of edges, against mini-batches of nodes with as many seeds.\v"
		       "Examples:\n  graphwire bench links\n"
		       "  graphwire bench links --transport shm --batch-size 500"};
	gw_options_parse(&options, argc, argv, &a);
	gw_status status = links_run(&a);
	if (status != GW_OK)
		fprintf(stderr, "graphwire bench links: %s\n", gw_last_error());
	gw_client_close(a.measured);
	gw_client_close(a.alone);
	gw_own_servers_end(&a.own);
	gw_status closed = gw_bench_close(&a.bench);
	return status == GW_OK && closed == GW_OK ? 0 : 1;
}
