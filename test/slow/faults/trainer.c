/* A trainer that checks everything: it streams epochs from servers and compares every mini-batch with the mini-batch
 * that a standalone client samples from the folder.
 *
 *   without servers:  an epoch from the folder -> the digest of every batch, a line each
 *   with servers:     identical epochs from them, until a file exists -> ends the epoch in progress
 *                     accidents meanwhile: breaks its own queue pairs, forks a child (test/support/rdma.h, forked.h)
 *
 * After every batch it writes its progress to a file, so that the watching script can act in mid-epoch. Status 1: a
 * batch differs or failed. One line then says which batch, how long the trainer waited for it, and why.
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
#define PATHS_MAX   32 /* recorded changes of the transport to one part */

struct trainer {
	struct gw_client_options client;
	struct gw_epoch_plan plan;
	const char *servers[SERVERS_MAX];
	const char *digests, *until, *progress;
	uint64_t break_every, fork_every, steps;
	uint64_t expected[BATCHES_MAX]; /* the expected digest of each batch */
	uint64_t batches, epochs, longest_ns, forked;
	const char *paths[SERVERS_MAX][PATHS_MAX]; /* the transports to each part, in order */
	uint32_t path_counts[SERVERS_MAX];
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
	{"digests", "FILE", "digests of its batches: written without servers, read with servers", 0,
	 GW_OPTION_TEXT(T, digests, .missing = "which digests?")},
	{"servers", "ADDR:PORT,...", "a server for each part", 0, GW_OPTION_CALL(take_servers)},
	{"key-file", "FILE", "the servers' key", 0, GW_OPTION_TEXT(T, client.key_file)},
	{"transport", "NAME", "transport to the servers", 0, GW_OPTION_CHOICE(T, client.transport, transports)},
	{"neighbours", "NAME", "how to sample on the servers", 0, GW_OPTION_CHOICE(T, client.neighbours, neighbours)},
	{"timeout", "MS", "an operation's deadline", 0, GW_OPTION_NUMBER(T, client.timeout_ms, 1, INT32_MAX)},
	{"reconnect", "MS", "the reconnect budget", 0, GW_OPTION_NUMBER(T, client.reconnect_ms, 1, INT32_MAX)},
	{"threads", "N", "threads of the client", 0, GW_OPTION_NUMBER(T, client.threads, 1, 64)},
	{"depth", "N", "batches ahead", 0, GW_OPTION_NUMBER(T, plan.depth, 1, 256)},
	{"batch-size", "N", "seeds of a batch", 0, GW_OPTION_NUMBER(T, plan.batch_size, 1, 65536)},
	{"steps", "N", "batches of an epoch; the rest is left out", 0, GW_OPTION_NUMBER(T, steps, 1, BATCHES_MAX)},
	{"until", "FILE", "run epoch after epoch until the file exists", 1, GW_OPTION_TEXT(T, until)},
	{"progress", "FILE", "rewritten after each batch: number of batches, and the transport to each part", 1,
	 GW_OPTION_TEXT(T, progress)},
	{"break-every", "N", "every N batches, put all queue pairs of this process into the error state", 1,
	 GW_OPTION_NUMBER(T, break_every, 1, UINT32_MAX)},
	{"fork-every", "N", "every N batches, fork a child that writes to receive buffers and tries to use the client",
	 1, GW_OPTION_NUMBER(T, fork_every, 1, UINT32_MAX)},
	{0},
};
#undef T

/* --- Expected digests. --- */

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

/* At most t->steps: by default, all of the epoch. */
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

static void note_paths(struct trainer *t, const struct gw_client *client)
{
	for (uint32_t p = 0; p < t->client.server_count; p++) {
		uint32_t n = t->path_counts[p];
		const char *path = gw_part_transport(client, p);
		if (n < PATHS_MAX && (n == 0 || t->paths[p][n - 1] != path))
			t->paths[p][t->path_counts[p]++] = path;
	}
}

/* Such as "120 verbs shm". Its length is constant, so a reader never sees parts of two lines. */
static gw_status note_progress(const struct trainer *t, int file)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "%" PRIu64, t->batches);
	for (uint32_t p = 0; p < t->client.server_count; p++)
		n += snprintf(line + n, sizeof(line) - (size_t)n, " %s",
			      t->path_counts[p] ? t->paths[p][t->path_counts[p] - 1] : "-");
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
		for (uint32_t i = 0; i < t->path_counts[p]; i++)
			printf(" %s", t->paths[p][i]);
		printf("\n");
	}
}

/* --- Epochs. --- */

static bool is_due(const struct trainer *t, uint64_t every)
{
	return every && t->batches % every == every / 2;
}

/* Causes the accidents that are due, while this batch is in use and later ones are in flight. */
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
		return gw_fail(GW_DIGEST, "batch %" PRIu64 " differs from the standalone client's", t->batches);
	t->longest_ns = took > t->longest_ns ? took : t->longest_ns;
	t->batches++;
	note_paths(t, side->client);
	return GW_OK;
}

static bool is_over(const struct trainer *t)
{
	return !t->until || access(t->until, F_OK) == 0;
}

static gw_status stream(struct trainer *t, struct gw_epoch_side *side, uint64_t count, int progress)
{
	gw_status status = GW_OK;
	note_paths(t, side->client);
	do {
		for (uint64_t i = 0; i < count && status == GW_OK; i++) {
			status = next_batch(t, side, i);
			if (status == GW_OK)
				status = note_progress(t, progress);
		}
		if (status != GW_OK)
			break;
		t->epochs++;
		gw_loader_close(side->loader); /* the next loader begins at the first epoch again */
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
	/* A short deadline is meant for the epochs; allow several attempts to open the client. */
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
