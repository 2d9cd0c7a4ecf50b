/* graphwire epoch: streams one epoch of mini-batches through the client and reports how fast they came.
 *
 *   options -> client and loader (tools/epoch_side.h) -> the epoch, timed -> figures
 *   --check: the epoch once more, together with a standalone client on the part config, compared byte by byte
 *
 * The timed epoch does nothing else, so that its figures are the client's own. The command fails if a name is not in
 * the graph, a server is away for longer than the client's limits allow, or a batch differs. Status: 0, 1, or 2 for
 * wrong usage.
 */
#include "tools/tools.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/launched.h"
#include "core/errors/options.h"
#include "core/errors/status.h"
#include "core/files/disk.h"
#include "core/memory/alloc.h"
#include "core/numbers/histogram.h"
#include "core/system/clock.h"
#include "core/system/progress.h"
#include "tools/epoch_side.h"
#include "tools/minibatch_compare.h"
#include "transport/scheme.h"

#define SERVERS_MAX 4096
#define ON_DISK_MAX 64
/* The library's limits: a larger value is wrong usage here, not a failure. */
#define FANOUT_MAX  (1 << 20)
#define DEPTH_MAX   256
#define THREADS_MAX 64
#define WORD_BYTES  64 /* the names of all transports */

struct epoch_command {
	struct gw_client_options client;
	struct gw_epoch_plan plan;
	const char *servers[SERVERS_MAX];
	const char *on_disk[ON_DISK_MAX]; /* client.on_disk points here */
	struct gw_launched launched;      /* in place of options, if a launcher started this trainer */
	uint64_t steps_max;
	bool check, json;
};

/* The totals of an epoch. */
struct epoch_totals {
	uint64_t batches, seeds, edges, nodes, rows, bytes;
	double seconds;
	uint32_t parts, parts_by[GW_SCHEMES]; /* number of parts, and how many of them each transport reaches */
	struct gw_histogram waits_ns;         /* times from one batch to the next */
};

/* --- The command line. --- */

static gw_status parse_fanouts(const char *text, struct gw_epoch_fanouts *out)
{
	return gw_parse_list(text, GW_ALL_NEIGHBOURS, FANOUT_MAX, GW_HOPS_MAX, out->of_hop, &out->hops);
}

static gw_status epoch_take_fanouts(void *input, char *text)
{
	return parse_fanouts(text, &((struct epoch_command *)input)->plan.fanouts);
}

/* "depends=10,5" */
static gw_status take_override(void *input, char *text)
{
	struct gw_epoch_plan *plan = &((struct epoch_command *)input)->plan;
	char *equals = strchr(text, '=');
	if (!equals || equals == text)
		return gw_fail(GW_INVALID, "\"%s\": an edge type and its fanouts, such as depends=10,5", text);
	if (plan->override_count == GW_EPOCH_OVERRIDES_MAX)
		return gw_fail(GW_LIMIT, "more than %d times", GW_EPOCH_OVERRIDES_MAX);
	*equals = '\0';
	struct gw_epoch_override *override = &plan->overrides[plan->override_count++];
	override->etype = text;
	return parse_fanouts(equals + 1, &override->fanouts);
}

static gw_status epoch_take_at(void *input, char *text)
{
	return gw_epoch_number_parse(text, &((struct epoch_command *)input)->plan.times.at);
}

static gw_status epoch_take_window(void *input, char *text)
{
	return gw_epoch_number_parse(text, &((struct epoch_command *)input)->plan.times.window);
}

static gw_status epoch_take_servers(void *input, char *text)
{
	struct epoch_command *c = input;
	c->client.servers = c->servers;
	return gw_split_list(text, SERVERS_MAX, c->servers, &c->client.server_count);
}

static gw_status epoch_take_on_disk(void *input, char *text)
{
	struct epoch_command *c = input;
	c->client.on_disk = c->on_disk;
	return gw_split_list(text, ON_DISK_MAX, c->on_disk, &c->client.on_disk_count);
}

static gw_status epoch_take_part(void *input, char *text)
{
	struct gw_epoch_plan *plan = &((struct epoch_command *)input)->plan;
	uint64_t part = 0;
	gw_status status = gw_parse_u64(text, 0, UINT32_MAX, &part);
	plan->one_part = true;
	plan->part = (uint32_t)part;
	return status;
}

static gw_status epoch_check_command(void *input)
{
	struct epoch_command *c = input;
	if (!c->client.part_config && c->client.server_count == 0 && gw_is_launched()) {
		gw_status status = gw_launched_read(&c->launched);
		if (status != GW_OK)
			return status;
		gw_launched_fill(&c->launched, &c->client);
	}
	if (!c->client.part_config && c->client.server_count == 0)
		return gw_fail(GW_INVALID, "no graph given: add --part-config or --servers");
	if (c->check && !c->client.part_config)
		return gw_fail(GW_INVALID, "--check compares with the folder: add --part-config");
	if (c->check && c->client.server_count == 0 && c->client.on_disk_count == 0)
		return gw_fail(GW_INVALID, "--check compares what servers send, or what --on-disk reads, with the "
					   "folder; without --servers and --on-disk it compares nothing");
	if (c->client.transport && c->client.server_count == 0)
		return gw_fail(GW_INVALID,
			       "--transport chooses how servers are reached; without --servers it chooses nothing");
	if (c->client.insecure && c->client.key_file)
		return gw_fail(GW_INVALID, "--key-file and --insecure exclude each other: leave out one");
	const char *unused = c->client.key_file       ? "key-file"
			     : c->client.insecure     ? "insecure"
			     : c->client.reconnect_ms ? "reconnect"
						      : NULL;
	if (unused && c->client.server_count == 0)
		return gw_fail(GW_INVALID, "--%s has no effect without --servers", unused);
	if (c->plan.edges && (c->plan.ntype || c->plan.one_part))
		return gw_fail(GW_INVALID, "--%s is for seeds that are nodes; with --edges leave it out",
			       c->plan.ntype ? "ntype" : "seeds-of-part");
	if (!c->plan.edges && (c->plan.no_true_edges || c->plan.keep_edges))
		return gw_fail(GW_INVALID, "--%s is for seeds that are edges: --edges is missing",
			       c->plan.no_true_edges ? "no-true-edges" : "keep-edges");
	gw_status status = gw_epoch_times_check(&c->plan.times);
	if (status != GW_OK)
		return status;
	for (uint32_t i = 0; i < c->plan.override_count; i++) {
		const struct gw_epoch_override *override = &c->plan.overrides[i];
		if (override->fanouts.hops != c->plan.fanouts.hops)
			return gw_fail(GW_INVALID,
				       "edge type \"%s\" has %" PRIu32 " fanouts, but there are %" PRIu32 " hops",
				       override->etype, override->fanouts.hops, c->plan.fanouts.hops);
	}
	return GW_OK;
}

static const char *const picks[] = {"uniform", "last", NULL}; /* in the order of enum gw_edge_pick */

#define C struct epoch_command
static const struct gw_option table[] = {
	{"part-config", "JSON|FOLDER", "the partitioned graph", 0,
	 GW_OPTION_TEXT(C, client.part_config, .letter = 'p')},
	{"servers", "ADDR:PORT,...", "one server for each part (default: standalone, from the folder)", 0,
	 GW_OPTION_CALL(epoch_take_servers)},
	{"key-file", "FILE", "the servers' key (on loopback: found automatically)", 0,
	 GW_OPTION_TEXT(C, client.key_file)},
	{"insecure", NULL, "accept servers on loopback that have no key", 0, GW_OPTION_FLAG(C, client.insecure)},
	{"transport", GW_SCHEME_CHOICES,
	 "mapped memory (shm), RDMA (verbs) or TCP; auto: for each part the first of these that works", 0,
	 GW_OPTION_CHOICE(C, client.transport, gw_scheme_choices)},
	{"on-disk", "NAME[,NAME...]",
	 "standalone: leave the rows of these features, each NAME or TYPE/NAME, in their files; \"lists\": the "
	 "neighbours, ids and columns of all edges; \"offsets\": where each node's list begins",
	 0, GW_OPTION_CALL(epoch_take_on_disk)},
	{"disk-cache", "BYTES", "memory for blocks of these files, at least 1Mi (256Mi)", 0,
	 GW_OPTION_NUMBER(C, client.disk_cache, GW_DISK_CACHE_MIN, INT64_MAX, .needs = "on-disk")},
	{"ntype", "NAME", "node type of the seeds (default: the first with labels)", 1, GW_OPTION_TEXT(C, plan.ntype)},
	{"edges", "ETYPE", "the seeds are edges of this type", 1, GW_OPTION_TEXT(C, plan.edges)},
	{"negatives", "N", "negatives of each edge, each with another destination (default 1)", 1,
	 GW_OPTION_NUMBER(C, plan.negatives, 0, 1u << 20, .needs = "edges")},
	{"no-true-edges", NULL, "draw negatives again that are edges", 1, GW_OPTION_FLAG(C, plan.no_true_edges)},
	{"keep-edges", NULL, "let neighbourhoods hold the batch's own edges and their reverses", 1,
	 GW_OPTION_FLAG(C, plan.keep_edges)},
	{"mask", "NAME",
	 "the seeds are the nodes or edges where this is set (default for nodes: train_mask, if it exists)", 1,
	 GW_OPTION_TEXT(C, plan.mask)},
	{"seeds-of-part", "N", "only seeds that this part owns", 1, GW_OPTION_CALL(epoch_take_part)},
	{"features", "NAME", "read for every node of every type that has it (default feat)", 1,
	 GW_OPTION_TEXT(C, plan.features)},
	{"labels", "NAME", "read for the seeds (default label)", 1, GW_OPTION_TEXT(C, plan.labels)},
	{"fanouts", "N,N,...",
	 "fanouts of every edge type, hop by hop from the seeds (default 10,5); -1: all neighbours", 1,
	 GW_OPTION_CALL(epoch_take_fanouts)},
	{"fanout", "ETYPE=N,N,...", "fanouts of one edge type; may be repeated", 1, GW_OPTION_CALL(take_override)},
	{"replace", NULL, "sample with replacement", 1, GW_OPTION_FLAG(C, plan.replace)},
	{"time", "NAME", "draw edges by these times, of edges or of their sources: a seed sees those up to its own", 1,
	 GW_OPTION_TEXT(C, plan.times.time, .once = true)},
	{"at", "T", "the time of all seeds (default: their own feature --time)", 1, GW_OPTION_CALL(epoch_take_at)},
	{"times", "FILE.npy", "the time of each seed, in the order of their ids", 1,
	 GW_OPTION_TEXT(C, plan.times.file)},
	{"window", "W", "only edges from W before the seed's time on", 1, GW_OPTION_CALL(epoch_take_window)},
	{"pick", "uniform|last", "draw uniformly from these edges, or take the last ones", 1,
	 GW_OPTION_CHOICE(C, plan.times.pick, picks)},
	{"strict", NULL, "only edges before the seed's time", 1, GW_OPTION_FLAG(C, plan.times.strict)},
	{"end", "NAME", "the times from which edges are not valid any more", 1, GW_OPTION_TEXT(C, plan.times.end)},
	{"disjoint", NULL, "each seed has nodes of its own, as always with --time", 1,
	 GW_OPTION_FLAG(C, plan.disjoint)},
	{"batch-size", "N", "seeds of a mini-batch (default 1000)", 2,
	 GW_OPTION_NUMBER(C, plan.batch_size, 1, 1u << 24)},
	{"steps", "N", "stop after so many mini-batches (default: the whole epoch)", 2,
	 GW_OPTION_NUMBER(C, steps_max, 1, UINT64_MAX)},
	{"depth", "N", "mini-batches prepared ahead (default 4)", 2, GW_OPTION_NUMBER(C, plan.depth, 1, DEPTH_MAX)},
	{"threads", "N", "threads of the client (default: one for each processor)", 2,
	 GW_OPTION_NUMBER(C, client.threads, 1, THREADS_MAX)},
	{"timeout", "MS", "deadline of an operation (default 30000)", 2,
	 GW_OPTION_NUMBER(C, client.timeout_ms, 1, INT32_MAX)},
	{"reconnect", "MS", "how long to wait for a server that went away (default 300000)", 2,
	 GW_OPTION_NUMBER(C, client.reconnect_ms, 1, INT32_MAX)},
	{"seed", "N", "seed of the shuffle and of sampling (default 1)", 2,
	 GW_OPTION_NUMBER(C, plan.seed, 0, UINT64_MAX)},
	{"check", NULL, "stream the epoch again, and compare every byte with a standalone client", 3,
	 GW_OPTION_FLAG(C, check)},
	{"json", NULL, "print the figures as one JSON object", 3, GW_OPTION_FLAG(C, json)},
	{0},
};
#undef C

/* --- The epoch. --- */

static void epoch_count(struct epoch_totals *t, const struct gw_sample_spec *spec, const struct gw_minibatch *batch)
{
	t->batches++;
	t->seeds += batch->seed_count;
	t->edges += batch->edge_count;
	for (uint32_t n = 0; n < batch->num_ntypes; n++)
		t->nodes += batch->node_counts[n];
	for (uint32_t f = 0; f < batch->fetch_count; f++) {
		t->rows += batch->row_counts[f];
		t->bytes += batch->row_counts[f] * spec->fetches[f].tensor->row_bytes;
	}
}

static void count_parts(struct epoch_totals *t, const struct gw_client *client)
{
	t->parts = gw_client_graph(client)->num_parts;
	for (uint32_t p = 0; p < t->parts; p++) {
		const struct gw_scheme *way = gw_scheme_find(gw_part_transport(client, p));
		t->parts_by[way - gw_schemes]++;
	}
}

static uint64_t steps_of(const struct epoch_command *c, const struct gw_epoch_side *side)
{
	uint64_t steps = gw_loader_steps(side->loader);
	return c->steps_max && c->steps_max < steps ? c->steps_max : steps;
}

/* Streams one epoch, like a trainer whose own work takes no time. The time includes the first batches, which the loader
 * samples as soon as it is open. */
static gw_status epoch_stream(const struct epoch_command *c, struct gw_epoch_side *side, struct epoch_totals *t)
{
	uint64_t steps = steps_of(c, side);
	struct gw_progress progress;
	gw_progress_begin(&progress, "streaming", "batches", steps);
	gw_status status = GW_OK;
	uint64_t last = side->begun_ns;
	while (status == GW_OK && t->batches < steps) {
		struct gw_minibatch *batch = NULL;
		status = gw_loader_next(side->loader, &batch, -1);
		if (status != GW_OK)
			break;
		uint64_t now = gw_now_ns();
		gw_histogram_add(&t->waits_ns, now - last);
		last = now;
		epoch_count(t, &side->options.spec, batch);
		gw_minibatch_release(batch);
		gw_progress_update(&progress, t->batches);
	}
	t->seconds = (double)(gw_now_ns() - side->begun_ns) / (double)GW_NS_PER_SECOND;
	gw_progress_end(&progress, t->batches);
	return status != GW_OK ? gw_context(status, "batch %" PRIu64, t->batches) : GW_OK;
}

static gw_status compare_next(struct gw_epoch_side *side, struct gw_epoch_side *reference, uint64_t *bytes)
{
	struct gw_minibatch *batch = NULL, *expected = NULL;
	gw_status status = gw_loader_next(side->loader, &batch, -1);
	if (status == GW_OK) {
		status = gw_loader_next(reference->loader, &expected, -1);
		if (status != GW_OK)
			gw_context(status, "standalone client");
	}
	if (status == GW_OK)
		status = gw_minibatch_compare(&side->options.spec, batch, expected, bytes);
	gw_minibatch_release(expected);
	gw_minibatch_release(batch);
	return status;
}

/* Compares the mini-batches with those of a standalone client, step by step. */
static gw_status epoch_check(const struct epoch_command *c, uint64_t *bytes)
{
	struct gw_client_options alone = {.part_config = c->client.part_config, .threads = c->client.threads};
	struct gw_epoch_side side, reference = {0};
	gw_status status = gw_epoch_side_open(&c->plan, &c->client, &side);
	if (status != GW_OK)
		return status;
	status = gw_epoch_side_open(&c->plan, &alone, &reference);
	if (status != GW_OK) {
		gw_context(status, "standalone client");
		goto close_side;
	}
	uint64_t steps = steps_of(c, &side);
	struct gw_progress progress;
	gw_progress_begin(&progress, "comparing", "batches", steps);
	uint64_t done = 0;
	for (; status == GW_OK && done < steps; done++) {
		status = compare_next(&side, &reference, bytes);
		gw_progress_update(&progress, done);
	}
	gw_progress_end(&progress, done);
	gw_epoch_side_close(&reference);
close_side:
	gw_epoch_side_close(&side);
	return status;
}

/* --- Figures. --- */

static double ms(const struct epoch_totals *t, double share)
{
	return (double)gw_histogram_quantile(&t->waits_ns, share) / 1e6;
}

static void add_way(char text[WORD_BYTES], const struct epoch_totals *t, const struct gw_scheme *way)
{
	size_t used = strlen(text);
	if (t->parts_by[way - gw_schemes])
		snprintf(text + used, WORD_BYTES - used, "%s%s", used ? "+" : "", way->name);
}

/* The fastest first: "tcp", "shm+verbs". */
static void print_word(char text[WORD_BYTES], const struct epoch_command *c, const struct epoch_totals *t)
{
	const struct gw_scheme *way = NULL;
	snprintf(text, WORD_BYTES, "%s", c->client.server_count ? "" : "standalone");
	if (!c->client.server_count)
		return;
	while ((way = gw_scheme_below(way)) != NULL)
		add_way(text, t, way);
	add_way(text, t, &gw_schemes[GW_SCHEME_TCP]);
}

static void print_phrase(char text[96], const struct epoch_command *c, const struct epoch_totals *t)
{
	uint32_t mapped = t->parts_by[GW_SCHEME_SHM], rdma = t->parts_by[GW_SCHEME_VERBS],
		 tcp = t->parts_by[GW_SCHEME_TCP];
	if (!c->client.server_count)
		snprintf(text, 96, "standalone, from the folder");
	else if (tcp == t->parts)
		snprintf(text, 96, "over TCP");
	else if (rdma == t->parts)
		snprintf(text, 96, "by RDMA");
	else if (mapped == t->parts)
		snprintf(text, 96, "out of the mapped memory of servers on this host");
	else
		snprintf(text, 96, "parts: %" PRIu32 " mapped on this host, %" PRIu32 " by RDMA, %" PRIu32 " over TCP",
			 mapped, rdma, tcp);
}

static void epoch_print_json(const struct epoch_command *c, const struct epoch_totals *t)
{
	char word[WORD_BYTES];
	print_word(word, c, t);
	printf("{\"epoch\":\"%s\",\"batches\":%" PRIu64 ",\"seconds\":%.3f,\"batches_per_s\":%.2f,\"edges_per_s\":%.0f,"
	       "\"rows_per_s\":%.0f,\"bytes_per_s\":%.0f,\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"verified\":%s}\n",
	       word, t->batches, t->seconds, (double)t->batches / t->seconds, (double)t->edges / t->seconds,
	       (double)t->rows / t->seconds, (double)t->bytes / t->seconds, ms(t, 0.5), ms(t, 0.99),
	       c->check ? "true" : "false");
}

static void print_rate(const char *what, double per_second, double per_batch)
{
	char rate[GW_UNIT_TEXT_MAX], batch[GW_UNIT_TEXT_MAX];
	printf("  %-14s %10s/s  %10s a batch\n", what, gw_text_count(rate, per_second),
	       gw_text_count(batch, per_batch));
}

static void epoch_print_text(const struct epoch_command *c, const struct epoch_totals *t, uint64_t compared)
{
	double batches = (double)t->batches;
	char text[GW_UNIT_TEXT_MAX], way[96];
	print_phrase(way, c, t);
	printf("%" PRIu64 " mini-batches of %" PRIu32 " seeds in %s, %s\n", t->batches, c->plan.batch_size,
	       gw_text_duration(text, t->seconds), way);
	printf("  %-14s %10s/s\n", "batches", gw_text_count(text, batches / t->seconds));
	print_rate("sampled edges", (double)t->edges / t->seconds, (double)t->edges / batches);
	print_rate("rows", (double)t->rows / t->seconds, (double)t->rows / batches);
	printf("  %-14s %10s/s\n", "row bytes", gw_text_bytes(text, (double)t->bytes / t->seconds));
	printf("  a batch every  %.2f ms (p50), %.2f ms (p99)\n", ms(t, 0.5), ms(t, 0.99));
	if (c->check)
		printf("  the same bytes as the standalone client: %s compared\n",
		       gw_text_bytes(text, (double)compared));
}

static gw_status epoch_run(const struct epoch_command *c)
{
	struct epoch_totals *t = gw_calloc(1, sizeof *t); /* its histogram is too big for the stack */
	if (!t)
		return GW_NO_MEMORY;
	gw_histogram_clear(&t->waits_ns);
	uint64_t compared = 0;
	struct gw_epoch_side side;
	gw_status status = gw_epoch_side_open(&c->plan, &c->client, &side);
	if (status != GW_OK)
		goto free_totals;
	status = epoch_stream(c, &side, t);
	count_parts(t, side.client);
	gw_epoch_side_close(&side);
	if (status == GW_OK && c->check)
		status = epoch_check(c, &compared);
	if (status == GW_OK && c->json)
		epoch_print_json(c, t);
	else if (status == GW_OK)
		epoch_print_text(c, t, compared);
free_totals:
	gw_free(t);
	return status;
}

int gw_tool_epoch(int argc, char **argv)
{
	static const struct gw_options options = {
		.table = table,
		.argument_missing = "this command takes options only",
		.doc = "Stream one epoch of mini-batches and report how fast they came."
		       "\vExamples:\n"
		       "  graphwire epoch --part-config parts/ --fanouts 10,5\n"
		       "  graphwire epoch --part-config parts/ --check \\\n"
		       "                  --servers 127.0.0.1:30050,127.0.0.1:30051\n"
		       "  graphwire epoch --part-config parts/ --fanouts 5,5 \\\n"
		       "                  --fanout depends=15,10 --json\n"
		       "  graphwire epoch --part-config parts/ --edges depends --negatives 4\n"
		       "  graphwire epoch --part-config parts/ --time when --at 1288000000 \\\n"
		       "                  --window 86400 --pick last",
		.check = epoch_check_command,
	};
	struct epoch_command command = {
		.plan = {.batch_size = 1000, .seed = 1, .negatives = 1, .fanouts = {.hops = 2, .of_hop = {10, 5}}},
	};
	gw_options_parse(&options, argc, argv, &command);
	gw_status status = epoch_run(&command);
	int exit_status = gw_exit_status(argv[0], status);
	gw_launched_free(&command.launched);
	return exit_status;
}
