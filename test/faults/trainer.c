/* A trainer that trusts nobody: streams epochs from servers and compares every mini-batch with the one that a
 * standalone client samples from the folder.
 *
 *   without servers:  an epoch from the folder -> the digest of every batch, a line each
 *   with servers:     epochs from them, each the same, until a file appears -> the epoch in progress comes to its end
 *                     accidents on the way: its own queue pairs broken, a child forked (test/support/rdma.h, forked.h)
 *
 * Notes its progress in a file after every batch, so that the script that watches knows that something happens in
 * mid-epoch. Status 1: a batch differs or failed, with one line that says which, how long it had been waited for, and
 * why.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/errors/options.h"
#include "core/system/clock.h"
#include "test/support/forked.h"
#include "test/support/rdma.h"
#include "tools/epoch_side.h"

#define SERVERS_MAX 8
#define BATCHES_MAX 4096
#define WAYS_MAX    32 /* changes of the way to one part that are told */

struct trainer {
	struct gw_client_options client;
	struct gw_epoch_plan plan;
	const char *servers[SERVERS_MAX];
	const char *digests, *until, *progress;
	uint64_t break_every, fork_every, steps;
	uint64_t expected[BATCHES_MAX]; /* the digest of each batch */
	uint64_t batches, epochs, longest_ns, forked;
	const char *ways[SERVERS_MAX][WAYS_MAX]; /* how each part was reached, in turn */
	uint32_t way_counts[SERVERS_MAX];
};

/* --- The command line. --- */

static gw_status take_servers(void *input, char *text)
{
	struct trainer *t = input;
	t->client.servers = t->servers;
	return gw_split_list(text, SERVERS_MAX, t->servers, &t->client.server_count);
}

static const char *const transports[] = {"auto", "tcp", "shm", "verbs", NULL};
static const char *const neighbours[] = {"auto", "reads", "requests", NULL};

#define T struct trainer
static const struct gw_option table[] = {
	{"part-config", "FOLDER", "the graph", 0, GW_OPTION_TEXT(T, client.part_config, .missing = "which graph?")},
	{"digests", "FILE", "of its batches: written without servers, read with them", 0,
	 GW_OPTION_TEXT(T, digests, .missing = "which digests?")},
	{"servers", "ADDR:PORT,...", "one for each part", 0, GW_OPTION_CALL(take_servers)},
	{"key-file", "FILE", "the servers' key", 0, GW_OPTION_TEXT(T, client.key_file)},
	{"transport", "NAME", "how to reach them", 0, GW_OPTION_CHOICE(T, client.transport, transports)},
	{"neighbours", "NAME", "how to sample there", 0, GW_OPTION_CHOICE(T, client.neighbours, neighbours)},
	{"timeout", "MS", "an operation's deadline", 0, GW_OPTION_NUMBER(T, client.timeout_ms, 1, INT32_MAX)},
	{"reconnect", "MS", "the reconnect budget", 0, GW_OPTION_NUMBER(T, client.reconnect_ms, 1, INT32_MAX)},
	{"threads", "N", "of the client", 0, GW_OPTION_NUMBER(T, client.threads, 1, 64)},
	{"depth", "N", "batches ahead", 0, GW_OPTION_NUMBER(T, plan.depth, 1, 256)},
	{"batch-size", "N", "seeds of a batch", 0, GW_OPTION_NUMBER(T, plan.batch_size, 1, 65536)},
	{"steps", "N", "batches of an epoch; the rest is left out", 0, GW_OPTION_NUMBER(T, steps, 1, BATCHES_MAX)},
	{"until", "FILE", "go on, epoch after epoch, until it is there", 1, GW_OPTION_TEXT(T, until)},
	{"progress", "FILE", "rewritten after each batch: how many there were, and the way to each part", 1,
	 GW_OPTION_TEXT(T, progress)},
	{"break-every", "N", "batches: all queue pairs of this process go to the error state", 1,
	 GW_OPTION_NUMBER(T, break_every, 1, UINT32_MAX)},
	{"fork-every", "N", "batches: a child that writes where reads land, and tries to use the client", 1,
	 GW_OPTION_NUMBER(T, fork_every, 1, UINT32_MAX)},
	{0},
};
#undef T

/* --- What is expected. --- */

static gw_status write_digests(const struct trainer *t)
{
	struct gw_epoch_side side;
	struct gw_minibatch *batch;
	FILE *file = fopen(t->digests, "we");
	if (!file)
		return gw_fail(GW_IO, "%s cannot be written", t->digests);
	gw_status status = gw_epoch_side_open(&t->plan, &t->client, &side);
	if (status != GW_OK) {
		fclose(file);
		return status;
	}
	for (uint64_t i = 0; i < t->steps && (status = gw_loader_next(side.loader, &batch, -1)) == GW_OK; i++) {
		fprintf(file, "%016" PRIx64 "\n", gw_minibatch_digest(batch));
		gw_minibatch_release(batch);
	}
	gw_epoch_side_close(&side);
	if (fclose(file) != 0)
		return gw_fail(GW_IO, "%s cannot be written", t->digests);
	return status == GW_END ? GW_OK : status;
}

/* As many as there are steps, the epoch's if none are given. */
static gw_status read_digests(struct trainer *t, uint64_t *count)
{
	FILE *file = fopen(t->digests, "re");
	if (!file)
		return gw_fail(GW_IO, "%s cannot be read", t->digests);
	*count = 0;
	while (*count < t->steps && fscanf(file, "%16" SCNx64, &t->expected[*count]) == 1)
		(*count)++;
	fclose(file);
	return *count ? GW_OK : gw_fail(GW_FORMAT, "%s has no digests", t->digests);
}

/* --- Progress. --- */

static uint64_t ms(uint64_t ns)
{
	return ns / GW_NS_PER_MS;
}

static void note_ways(struct trainer *t, const struct gw_client *client)
{
	for (uint32_t p = 0; p < t->client.server_count; p++) {
		uint32_t n = t->way_counts[p];
		const char *way = gw_part_transport(client, p);
		if (n < WAYS_MAX && (n == 0 || t->ways[p][n - 1] != way))
			t->ways[p][t->way_counts[p]++] = way;
	}
}

/* "120 verbs shm": one line of constant length, so that a reader never sees parts of two. */
static gw_status note_progress(const struct trainer *t, int file)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "%" PRIu64, t->batches);
	for (uint32_t p = 0; p < t->client.server_count; p++)
		n += snprintf(line + n, sizeof(line) - (size_t)n, " %s",
			      t->way_counts[p] ? t->ways[p][t->way_counts[p] - 1] : "-");
	memset(line + n, ' ', sizeof(line) - (size_t)n);
	line[sizeof(line) - 1] = '\n';
	return pwrite(file, line, sizeof(line), 0) == sizeof(line) ? GW_OK : gw_fail(GW_IO, "%s", t->progress);
}

static void print_summary(const struct trainer *t)
{
	printf("%" PRIu64 " epochs, %" PRIu64 " batches, all of them right; the longest wait %" PRIu64 " ms\n",
	       t->epochs, t->batches, ms(t->longest_ns));
	if (t->fork_every)
		printf("%" PRIu64 " children\n", t->forked);
	for (uint32_t p = 0; p < t->client.server_count; p++) {
		printf("part %u:", p);
		for (uint32_t i = 0; i < t->way_counts[p]; i++)
			printf(" %s", t->ways[p][i]);
		printf("\n");
	}
}

/* --- Epochs. --- */

static bool is_due(const struct trainer *t, uint64_t every)
{
	return every && t->batches % every == every / 2;
}

/* While the batch is held, and others are on their way. */
static gw_status accidents(struct trainer *t, const struct gw_epoch_side *side, const struct gw_minibatch *batch)
{
	if (is_due(t, t->break_every))
		rdma_break(side->client);
	if (!is_due(t, t->fork_every))
		return GW_OK;
	t->forked++;
	return gw_forked_child(side->client, &t->client, &side->options.spec, batch);
}

static gw_status next_batch(struct trainer *t, struct gw_epoch_side *side, uint64_t number)
{
	struct gw_minibatch *batch;
	uint64_t begun = gw_now_ns();
	gw_status status = gw_loader_next(side->loader, &batch, -1);
	uint64_t took = gw_now_ns() - begun;
	if (status != GW_OK)
		return gw_context(status, "batch %" PRIu64 ", waited for %" PRIu64 " ms", t->batches, ms(took));
	status = accidents(t, side, batch);
	uint64_t digest = gw_minibatch_digest(batch);
	gw_minibatch_release(batch);
	if (status != GW_OK)
		return status;
	if (digest != t->expected[number])
		return gw_fail(GW_DIGEST, "batch %" PRIu64 " is not the standalone client's", t->batches);
	t->longest_ns = took > t->longest_ns ? took : t->longest_ns;
	t->batches++;
	note_ways(t, side->client);
	return GW_OK;
}

static bool is_over(const struct trainer *t)
{
	return !t->until || access(t->until, F_OK) == 0;
}

static gw_status stream(struct trainer *t, struct gw_epoch_side *side, uint64_t count, int progress)
{
	gw_status status = GW_OK;
	note_ways(t, side->client);
	do {
		for (uint64_t i = 0; i < count && status == GW_OK; i++) {
			status = next_batch(t, side, i);
			if (status == GW_OK)
				status = note_progress(t, progress);
		}
		if (status != GW_OK)
			break;
		t->epochs++;
		gw_loader_close(side->loader); /* the next one begins at the first epoch again */
		side->loader = NULL;
		status = gw_loader_open(side->client, &side->options, &side->loader);
	} while (status == GW_OK && !is_over(t));
	return status;
}

static gw_status train(struct trainer *t)
{
	struct gw_epoch_side side;
	uint64_t count = 0;
	gw_status status = read_digests(t, &count);
	FILE *progress = status != GW_OK ? NULL : fopen(t->progress, "we");
	if (status == GW_OK && !progress)
		status = gw_fail(GW_IO, "%s cannot be written", t->progress);
	if (status != GW_OK)
		return status;
	/* A short deadline is for what comes; to begin with, everybody has time. */
	for (int tries = 0; (status = gw_epoch_side_open(&t->plan, &t->client, &side)) == GW_DEADLINE && tries < 5;)
		tries++;
	if (status == GW_OK) {
		status = stream(t, &side, count, fileno(progress));
		char text[GW_ERROR_TEXT_MAX];
		snprintf(text, sizeof(text), "%s", status != GW_OK ? gw_last_error() : "");
		gw_epoch_side_close(&side);
		if (status != GW_OK)
			gw_fail_text(status, text);
	}
	fclose(progress);
	return status;
}

int main(int argc, char **argv)
{
	static const struct gw_options options = {.table = table, .doc = "A trainer that compares every mini-batch."};
	static struct trainer trainer = {
		.plan = {.batch_size = 32, .depth = 4, .seed = 1, .fanouts = {.hops = 2, .of_hop = {8, 5}}},
		.progress = "/dev/null",
		.steps = BATCHES_MAX,
	};
	gw_options_parse(&options, argc, argv, &trainer);
	gw_status status = trainer.client.server_count ? train(&trainer) : write_digests(&trainer);
	if (status != GW_OK)
		fprintf(stderr, "trainer: %s\n", gw_last_error());
	else if (trainer.client.server_count)
		print_summary(&trainer);
	return status != GW_OK ? 1 : 0;
}
