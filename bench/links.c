/* graphwire bench links: mini-batches of edges, against mini-batches of nodes with as many seeds.
 *
 *   own graph and servers (or the given ones) -> for each kind of negatives: the first batches compared with the
 *   standalone client's -> batches of nodes and of edges alternately -> report
 *
 * A batch of edges has three seeds for each edge: its two ends and one negative. The ceiling is the same loader over
 * nodes, three for each edge, from a similar list: two thirds are ends of random edges, one third are random nodes. So
 * both sample as much, and the difference is the extra cost of edges.
 *
 * --drivers: the ceiling is the faster of TCP's two drivers instead. Client and servers use auto, io_uring and epoll,
 * each with servers of its own, in turn.
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
#define DRIVERS     3u
#define SPIN_US_MAX 1000000

struct links_arguments {
	struct gw_bench bench;
	struct gw_client_options client;
	const char *servers[SERVERS_MAX];
	bool standalone, drivers;
	const char *features, *labels;
	uint32_t scale, batch_size, depth, batches, server_threads;
	struct gw_bench_fanouts fanouts;
	/* in use while the benchmark runs */
	struct gw_own_servers own;
	struct gw_client *measured, *alone;
	struct gw_batches edges, nodes; /* the batches of the case being measured */
	struct links_driver {
		struct gw_client *client;
		struct gw_batches edges;
		struct gw_bench_series values;
	} driver[DRIVERS];
};

static const char *const driver_names[] = {"auto", "io_uring", "epoll", NULL};

/* ---- options ---- */

static gw_status links_take_fanouts(void *input, char *text)
{
	struct gw_bench_fanouts *fanouts = &((struct links_arguments *)input)->fanouts;
	return gw_parse_list(text, GW_ALL_NEIGHBOURS, 65536, GW_HOPS_MAX, fanouts->of_hop, &fanouts->hops);
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
	{"tcp-driver", "auto|io_uring|epoll", "how the client and the started servers drive sockets (default auto)", 0,
	 GW_OPTION_CHOICE(A, client.tcp_driver, driver_names)},
	{"spin", "US", "how long the client and the started servers poll before they sleep (default 0)", 0,
	 GW_OPTION_NUMBER(A, client.spin_us, 0, SPIN_US_MAX)},
	{"drivers", NULL, "compare auto with the faster of the drivers, over TCP to started servers", 0,
	 GW_OPTION_FLAG(A, drivers)},
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

static struct gw_batches_spec links_spec(const struct links_arguments *a)
{
	return (struct gw_batches_spec){.fanouts = a->fanouts,
					.labels = a->labels,
					.features = a->features,
					.batch_size = a->batch_size,
					.depth = a->depth,
					.part = -1};
}

static gw_status links_begin(struct links_arguments *a, struct gw_edge_seeds *seeds)
{
	struct gw_batches_spec spec = links_spec(a);
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

/* ---- the drivers ---- */

static struct gw_own_clients_options own_options(const struct links_arguments *a, const char *driver)
{
	struct gw_own_clients_options own = {.client = a->client,
					     .standalone = a->standalone,
					     .scale = a->scale,
					     .features = 128,
					     .server_threads = a->server_threads,
					     .server_driver = driver,
					     .server_spin_us = a->client.spin_us};
	own.client.tcp_driver = driver;
	return own;
}

static gw_status drivers_open(struct links_arguments *a)
{
	gw_status status = GW_OK;
	a->driver[0].client = a->measured;
	for (uint32_t i = 1; i < DRIVERS && status == GW_OK; i++) {
		const struct gw_own_clients_options own = own_options(a, driver_names[i]);
		status = gw_own_clients_more(&a->own, &own, a->alone, &a->driver[i].client);
	}
	return status;
}

static gw_status drivers_begin(struct links_arguments *a, struct gw_edge_seeds *seeds)
{
	const struct gw_batches_spec spec = links_spec(a);
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < DRIVERS && status == GW_OK; i++) {
		struct gw_batches *edges = &a->driver[i].edges;
		a->driver[i].values.count = 0;
		status = gw_batches_begin(edges, a->alone, &spec);
		if (status == GW_OK)
			status = find_edges(a, edges->options.spec.ntype, &seeds->etype);
		edges->options.spec.edges = seeds;
		edges->options.ids = NULL;
		edges->options.spec.fetch_count = 1;
		if (status == GW_OK)
			status = gw_batches_check(edges, a->alone, a->driver[i].client);
	}
	return status;
}

static gw_status drivers_measure(struct links_arguments *a)
{
	gw_status status = GW_OK;
	for (uint32_t n = 0; n < a->bench.repeats * DRIVERS && status == GW_OK; n++) {
		/* The first driver changes from repeat to repeat. */
		struct links_driver *driver = &a->driver[(n + n / DRIVERS) % DRIVERS];
		double figure;
		status = gw_batches_run(&driver->edges, a->batches, &figure);
		if (status == GW_OK)
			gw_bench_series_add(&driver->values, figure);
	}
	return status;
}

static gw_status drivers_run_case(struct links_arguments *a, const char *what, struct gw_edge_seeds seeds)
{
	char title[96];
	gw_status status = drivers_begin(a, &seeds);
	if (status == GW_OK)
		status = drivers_measure(a);
	if (status == GW_OK) {
		const double uring = gw_bench_series_median(&a->driver[1].values),
			     epoll = gw_bench_series_median(&a->driver[2].values);
		snprintf(title, sizeof(title), "%u edges, %s, auto, %s", a->batch_size, what,
			 a->client.spin_us ? "polling" : "asleep");
		const struct gw_bench_result result = {
			.title = title,
			.unit = "batches/s",
			.values = &a->driver[0].values,
			.ceilings = &a->driver[uring > epoll ? 1 : 2].values,
			.verified = true,
			.fields = {{"io_uring", uring, NULL}, {"epoll", epoll, NULL}},
			.note = "ceiling: the faster of io_uring and epoll",
		};
		gw_bench_report(&a->bench, &result);
	}
	for (uint32_t i = 0; i < DRIVERS; i++)
		gw_batches_end(&a->driver[i].edges);
	return status;
}

static gw_status links_run(struct links_arguments *a)
{
	const struct gw_own_clients_options own = own_options(a, a->client.tcp_driver);
	const struct gw_edge_seeds uniform = {.negatives = GW_NEGATIVES_DST, .negatives_each = PER_EDGE - 2};
	struct gw_edge_seeds strict = uniform;
	gw_status (*run_case)(struct links_arguments *, const char *, struct gw_edge_seeds) =
		a->drivers ? drivers_run_case : links_run_case;
	strict.no_true_edges = true;
	strict.exclude = GW_EXCLUDE_EDGES | GW_EXCLUDE_ENDS;
	gw_status status = gw_bench_open(&a->bench);
	if (status == GW_OK)
		status = gw_own_clients_open(&a->own, &own, &a->alone, &a->measured);
	if (status == GW_OK && a->drivers)
		status = drivers_open(a);
	if (status == GW_OK)
		status = run_case(a, "uniform negatives", uniform);
	return status == GW_OK ? run_case(a, "no true edges, own excluded", strict) : status;
}

static gw_status links_check_command(void *input)
{
	const struct links_arguments *a = input;
	bool fits = strcmp(a->client.transport, "tcp") == 0 && !a->standalone && !a->client.server_count &&
		    (!a->client.tcp_driver || strcmp(a->client.tcp_driver, "auto") == 0);
	if (a->drivers && !fits)
		return gw_fail(GW_INVALID, "--drivers starts its own servers, over tcp, with each driver");
	return gw_own_clients_check(&a->client);
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
		       "  graphwire bench links --transport shm --batch-size 500\n"
		       "  graphwire bench links --drivers --spin 1000"};
	gw_options_parse(&options, argc, argv, &a);
	gw_status status = links_run(&a);
	if (status != GW_OK)
		fprintf(stderr, "graphwire bench links: %s\n", gw_last_error());
	for (uint32_t i = 1; i < DRIVERS; i++)
		gw_client_close(a.driver[i].client);
	gw_client_close(a.measured);
	gw_client_close(a.alone);
	gw_own_servers_end(&a.own);
	gw_status closed = gw_bench_close(&a.bench);
	return status == GW_OK && closed == GW_OK ? 0 : 1;
}
