/* graphwire epoch: streams one epoch of mini-batches through the client and says how fast they came.
 *
 *   options -> client and loader (tools/epoch_side.h) -> the epoch, timed -> figures
 *   --check: the epoch once more beside a standalone client on the part config, compared byte by byte
 *
 * The timed epoch does nothing else, so that its figures are the client's own. Fails where a name is not in the graph,
 * a server is away for longer than the client's limits allow, or a batch differs. Status 0, 1, or 2 for usage.
 */
#include "tools/tools.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/histogram.h"
#include "core/base/options.h"
#include "core/base/progress.h"
#include "core/base/status.h"
#include "tools/epoch_side.h"
#include "tools/minibatch_compare.h"

#define SERVERS_MAX 4096
#define FANOUT_MAX  65536

struct command {
	struct gw_client_options client;
	struct gw_epoch_plan plan;
	const char *servers[SERVERS_MAX];
	char *server_text; /* what servers point into */
	uint64_t steps_max;
	bool check, json;
};

/* What an epoch came to. */
struct totals {
	uint64_t batches, seeds, edges, nodes, rows, bytes;
	double seconds;
	struct gw_histogram waits_ns; /* from one batch to the next */
};

/* --- The command line. --- */

static gw_status parse_fanouts(const char *text, struct gw_epoch_fanouts *out)
{
	out->hops = 0;
	for (const char *at = text;;) {
		char *end;
		long value = strtol(at, &end, 10);
		if (end == at || value < GW_ALL_NEIGHBOURS || value > FANOUT_MAX || (*end && *end != ','))
			return gw_fail(GW_INVALID, "fanouts \"%s\": one number a hop, -1 (all) to %d, such as 10,5",
				       text, FANOUT_MAX);
		if (out->hops == GW_EPOCH_HOPS_MAX)
			return gw_fail(GW_LIMIT, "fanouts \"%s\": more than %d hops", text, GW_EPOCH_HOPS_MAX);
		out->of_hop[out->hops++] = (int32_t)value;
		if (!*end)
			return GW_OK;
		at = end + 1;
	}
}

/* "depends=10,5" */
static gw_status parse_override(struct gw_epoch_plan *plan, char *text)
{
	char *equals = strchr(text, '=');
	if (!equals || equals == text)
		return gw_fail(GW_INVALID, "fanout \"%s\": an edge type and its fanouts, such as depends=10,5", text);
	if (plan->override_count == GW_EPOCH_OVERRIDES_MAX)
		return gw_fail(GW_LIMIT, "more than %d times --fanout", GW_EPOCH_OVERRIDES_MAX);
	*equals = '\0';
	struct gw_epoch_override *override = &plan->overrides[plan->override_count++];
	override->etype = text;
	return parse_fanouts(equals + 1, &override->fanouts);
}

static gw_status parse_servers(struct command *c, const char *text)
{
	gw_free(c->server_text);
	c->server_text = gw_strdup(text);
	if (!c->server_text)
		return GW_NO_MEMORY;
	c->client.server_count = 0;
	c->client.servers = c->servers;
	char *rest = c->server_text;
	for (char *name; (name = strsep(&rest, ",")) != NULL;) {
		if (!*name)
			return gw_fail(GW_INVALID,
				       "servers \"%s\": an empty name; such as 10.0.0.1:30050,10.0.0.2:30050", text);
		if (c->client.server_count == SERVERS_MAX)
			return gw_fail(GW_LIMIT, "more than %d servers", SERVERS_MAX);
		c->servers[c->client.server_count++] = name;
	}
	return GW_OK;
}

static gw_status parse_u32(const char *text, uint64_t min, uint64_t max, uint32_t *out)
{
	uint64_t value;
	gw_status status = gw_parse_u64(text, min, max, &value);
	if (!status)
		*out = (uint32_t)value;
	return status;
}

enum {
	KEY_SERVERS = 256,
	KEY_KEY_FILE,
	KEY_NTYPE,
	KEY_FEATURES,
	KEY_LABELS,
	KEY_MASK,
	KEY_PART,
	KEY_FANOUTS,
	KEY_FANOUT,
	KEY_BATCH,
	KEY_STEPS,
	KEY_DEPTH,
	KEY_THREADS,
	KEY_SEED,
	KEY_REPLACE,
	KEY_CHECK,
	KEY_JSON,
	KEY_TIMEOUT
};

static const struct argp_option options[] = {
	{"part-config", 'p', "JSON|FOLDER", 0, "the partitioned graph", 0},
	{"servers", KEY_SERVERS, "ADDR:PORT,...", 0, "one server for each part; none: standalone, from the folder", 0},
	{"key-file", KEY_KEY_FILE, "FILE", 0, "the servers' key; on loopback it is found", 0},
	{"ntype", KEY_NTYPE, "NAME", 0, "type of the seeds (the first that has labels)", 1},
	{"mask", KEY_MASK, "NAME", 0, "the seeds are the nodes where this is set (train_mask, where there is one)", 1},
	{"seeds-of-part", KEY_PART, "N", 0, "only seeds that this part owns", 1},
	{"features", KEY_FEATURES, "NAME", 0, "read for every node of every type that has it (feat)", 1},
	{"labels", KEY_LABELS, "NAME", 0, "read for the seeds (label)", 1},
	{"fanouts", KEY_FANOUTS, "N,N,...", 0, "of every edge type, hop after hop from the seeds (10,5); -1: all", 1},
	{"fanout", KEY_FANOUT, "ETYPE=N,N,...", 0, "of one edge type; may be repeated", 1},
	{"replace", KEY_REPLACE, NULL, 0, "sample with replacement", 1},
	{"batch-size", KEY_BATCH, "N", 0, "seeds of a mini-batch (1000)", 2},
	{"steps", KEY_STEPS, "N", 0, "stop after so many mini-batches (the whole epoch)", 2},
	{"depth", KEY_DEPTH, "N", 0, "mini-batches ahead (4)", 2},
	{"threads", KEY_THREADS, "N", 0, "of the client (one for each processor)", 2},
	{"timeout", KEY_TIMEOUT, "MS", 0, "an operation's deadline (30000)", 2},
	{"seed", KEY_SEED, "N", 0, "of the shuffle and of sampling (1)", 2},
	{"check", KEY_CHECK, NULL, 0, "stream it again beside a standalone client and compare every byte", 3},
	{"json", KEY_JSON, NULL, 0, "print the figures as one JSON object", 3},
	{0},
};

static gw_status parse_number(struct command *c, int key, const char *text)
{
	uint64_t value;
	gw_status status;
	switch (key) {
	case KEY_BATCH:
		return parse_u32(text, 1, 1u << 24, &c->plan.batch_size);
	case KEY_DEPTH:
		return parse_u32(text, 1, 1024, &c->plan.depth);
	case KEY_THREADS:
		return parse_u32(text, 1, 1024, &c->client.threads);
	case KEY_PART:
		c->plan.one_part = true;
		return parse_u32(text, 0, UINT32_MAX, &c->plan.part);
	case KEY_STEPS:
		return gw_parse_u64(text, 1, UINT64_MAX, &c->steps_max);
	case KEY_SEED:
		return gw_parse_u64(text, 0, UINT64_MAX, &c->plan.seed);
	default: /* KEY_TIMEOUT */
		status = gw_parse_u64(text, 1, INT32_MAX, &value);
		if (!status)
			c->client.timeout_ms = (int64_t)value;
		return status;
	}
}

static gw_status parse_value(struct command *c, int key, char *text)
{
	switch (key) {
	case 'p':
		c->client.part_config = text;
		return GW_OK;
	case KEY_SERVERS:
		return parse_servers(c, text);
	case KEY_KEY_FILE:
		c->client.key_file = text;
		return GW_OK;
	case KEY_NTYPE:
		c->plan.ntype = text;
		return GW_OK;
	case KEY_FEATURES:
		c->plan.features = text;
		return GW_OK;
	case KEY_LABELS:
		c->plan.labels = text;
		return GW_OK;
	case KEY_MASK:
		c->plan.mask = text;
		return GW_OK;
	case KEY_FANOUTS:
		return parse_fanouts(text, &c->plan.fanouts);
	case KEY_FANOUT:
		return parse_override(&c->plan, text);
	case KEY_REPLACE:
		c->plan.replace = true;
		return GW_OK;
	case KEY_CHECK:
		c->check = true;
		return GW_OK;
	case KEY_JSON:
		c->json = true;
		return GW_OK;
	default:
		return parse_number(c, key, text);
	}
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
	struct command *c = state->input;
	switch (key) {
	case ARGP_KEY_ARG:
		argp_error(state, "\"%s\": options only", text);
		return 0;
	case ARGP_KEY_END:
		if (!c->client.part_config && c->client.server_count == 0)
			argp_error(state, "--part-config or --servers is missing");
		if (c->check && !c->client.part_config)
			argp_error(state, "--check compares with the folder: --part-config is missing");
		return 0;
	case ARGP_KEY_INIT:
	case ARGP_KEY_FINI:
	case ARGP_KEY_NO_ARGS:
	case ARGP_KEY_SUCCESS:
	case ARGP_KEY_ERROR:
		return ARGP_ERR_UNKNOWN;
	default:
		if (parse_value(c, key, text))
			argp_error(state, "%s", gw_last_error());
		return 0;
	}
}

/* --- The epoch. --- */

static void count(struct totals *t, const struct gw_sample_spec *spec, const struct gw_minibatch *batch)
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

static uint64_t steps_of(const struct command *c, const struct gw_epoch_side *side)
{
	uint64_t steps = gw_loader_steps(side->loader);
	return c->steps_max && c->steps_max < steps ? c->steps_max : steps;
}

/* One epoch as a trainer would see it that takes no time itself. */
static gw_status stream(const struct command *c, struct gw_epoch_side *side, struct totals *t)
{
	uint64_t steps = steps_of(c, side);
	struct gw_progress progress;
	gw_progress_begin(&progress, "streaming", "batches", steps);
	gw_status status = GW_OK;
	uint64_t start = gw_now_ns(), last = start;
	while (!status && t->batches < steps) {
		struct gw_minibatch *batch = NULL;
		status = gw_loader_next(side->loader, &batch, -1);
		if (status)
			break;
		uint64_t now = gw_now_ns();
		gw_histogram_add(&t->waits_ns, now - last);
		last = now;
		count(t, &side->options.spec, batch);
		gw_minibatch_release(batch);
		gw_progress_update(&progress, t->batches);
	}
	t->seconds = (double)(gw_now_ns() - start) / (double)GW_NS_PER_SECOND;
	gw_progress_end(&progress, t->batches);
	return status ? gw_context(status, "batch %" PRIu64, t->batches) : GW_OK;
}

static gw_status compare_next(struct gw_epoch_side *side, struct gw_epoch_side *reference, uint64_t *bytes)
{
	struct gw_minibatch *batch = NULL, *expected = NULL;
	gw_status status = gw_loader_next(side->loader, &batch, -1);
	if (!status) {
		status = gw_loader_next(reference->loader, &expected, -1);
		if (status)
			gw_context(status, "standalone client");
	}
	if (!status)
		status = gw_minibatch_compare(&side->options.spec, batch, expected, bytes);
	gw_minibatch_release(expected);
	gw_minibatch_release(batch);
	return status;
}

/* The same epoch through new loaders of the client and of a standalone one, side by side. */
static gw_status check(const struct command *c, uint64_t *bytes)
{
	struct gw_client_options alone = {.part_config = c->client.part_config, .threads = c->client.threads};
	struct gw_epoch_side side, reference = {0};
	gw_status status = gw_epoch_side_open(&c->plan, &c->client, &side);
	if (status)
		return status;
	status = gw_epoch_side_open(&c->plan, &alone, &reference);
	if (status) {
		gw_context(status, "standalone client");
		goto close_side;
	}
	uint64_t steps = steps_of(c, &side);
	struct gw_progress progress;
	gw_progress_begin(&progress, "comparing", "batches", steps);
	uint64_t done = 0;
	for (; !status && done < steps; done++) {
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

static double ms(const struct totals *t, double share)
{
	return (double)gw_histogram_quantile(&t->waits_ns, share) / 1e6;
}

static void print_json(const struct command *c, const struct totals *t)
{
	printf("{\"epoch\":\"%s\",\"batches\":%" PRIu64 ",\"seconds\":%.3f,\"batches_per_s\":%.2f,\"edges_per_s\":%.0f,"
	       "\"rows_per_s\":%.0f,\"bytes_per_s\":%.0f,\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"verified\":%s}\n",
	       c->client.server_count ? "tcp" : "standalone", t->batches, t->seconds, (double)t->batches / t->seconds,
	       (double)t->edges / t->seconds, (double)t->rows / t->seconds, (double)t->bytes / t->seconds, ms(t, 0.5),
	       ms(t, 0.99), c->check ? "true" : "false");
}

static void print_rate(const char *what, double per_second, double per_batch)
{
	char rate[GW_UNIT_TEXT_MAX], batch[GW_UNIT_TEXT_MAX];
	printf("  %-14s %10s/s  %10s a batch\n", what, gw_text_count(rate, per_second),
	       gw_text_count(batch, per_batch));
}

static void print_text(const struct command *c, const struct totals *t, uint64_t compared)
{
	double batches = (double)t->batches;
	char text[GW_UNIT_TEXT_MAX];
	printf("%" PRIu64 " mini-batches of %" PRIu32 " seeds in %s, %s\n", t->batches, c->plan.batch_size,
	       gw_text_duration(text, t->seconds), c->client.server_count ? "over TCP" : "standalone, from the folder");
	printf("  %-14s %10s/s\n", "batches", gw_text_count(text, batches / t->seconds));
	print_rate("sampled edges", (double)t->edges / t->seconds, (double)t->edges / batches);
	print_rate("rows", (double)t->rows / t->seconds, (double)t->rows / batches);
	printf("  %-14s %10s/s\n", "row bytes", gw_text_bytes(text, (double)t->bytes / t->seconds));
	printf("  a batch every  %.2f ms (p50), %.2f ms (p99)\n", ms(t, 0.5), ms(t, 0.99));
	if (c->check)
		printf("  the same bytes as the standalone client: %s compared\n",
		       gw_text_bytes(text, (double)compared));
}

static gw_status run(const struct command *c)
{
	struct totals *t = gw_calloc(1, sizeof *t); /* its histogram is too big for the stack */
	if (!t)
		return GW_NO_MEMORY;
	gw_histogram_clear(&t->waits_ns);
	uint64_t compared = 0;
	struct gw_epoch_side side;
	gw_status status = gw_epoch_side_open(&c->plan, &c->client, &side);
	if (status)
		goto free_totals;
	status = stream(c, &side, t);
	gw_epoch_side_close(&side);
	if (!status && c->check)
		status = check(c, &compared);
	if (!status && c->json)
		print_json(c, t);
	else if (!status)
		print_text(c, t, compared);
free_totals:
	gw_free(t);
	return status;
}

int gw_tool_epoch(int argc, char **argv)
{
	static const struct argp argp = {
		options,
		parse_option,
		NULL,
		"Stream one epoch of mini-batches and say how fast they came."
		"\vExamples:\n"
		"  graphwire epoch --part-config parts/ --fanouts 10,5\n"
		"  graphwire epoch --part-config parts/ --servers 127.0.0.1:30050,127.0.0.1:30051 --check\n"
		"  graphwire epoch --part-config parts/ --fanouts 5,5 --fanout depends=15,10 --json",
		NULL,
		NULL,
		NULL};
	struct command command = {
		.plan = {.batch_size = 1000, .seed = 1, .fanouts = {.hops = 2, .of_hop = {10, 5}}},
	};
	if (gw_options_parse(&argp, argc, argv, &command))
		return 2;
	gw_status status = run(&command);
	if (status)
		fprintf(stderr, "%s: %s\n", argv[0], gw_last_error());
	gw_free(command.server_text);
	return status ? 1 : 0;
}
