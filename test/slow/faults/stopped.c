/* What a client can still do while its server is stopped.
 *
 *   connects two clients: one samples by reads, one by requests
 *   -> creates "ready", waits for "go": meanwhile the script stops the server
 *   -> a complete epoch by reads, compared -> 20,000 rows of the server's part, one read each, compared
 *   -> 100,000 draws by weight from lists of the server's part, compared
 *   -> a request ends at its deadline, and the error names the server -> reads still work
 *
 * On failure the status is 1, and one line says which step failed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/errors/options.h"
#include "core/numbers/rng.h"
#include "core/system/clock.h"
#include "test/support/go.h"
#include "tools/epoch_side.h"
#include "tools/minibatch_compare.h"

#define FANOUT     50
#define SEEDS      200u
#define REQUEST_MS 5000

struct command {
	const char *part_config, *key_file, *servers[8], *ready, *go;
	const char *transport;
	uint32_t server_count;
	uint64_t reads, picks;
};

static gw_status take_servers(void *input, char *text)
{
	struct command *c = input;
	return gw_split_list(text, 8, c->servers, &c->server_count);
}

static const char *const transports[] = {"auto", "verbs", NULL};

#define C struct command
static const struct gw_option table[] = {
	{"part-config", "FOLDER", "the graph", 0, GW_OPTION_TEXT(C, part_config, .missing = "which graph?")},
	{"servers", "ADDR:PORT,...", "a server for each part; the first will be stopped", 0,
	 GW_OPTION_CALL(take_servers)},
	{"key-file", "FILE", "the servers' key", 0, GW_OPTION_TEXT(C, key_file)},
	{"transport", "NAME", "transport to the servers", 0, GW_OPTION_CHOICE(C, transport, transports)},
	{"reads", "N", "rows to read (20,000)", 0, GW_OPTION_NUMBER(C, reads, 1, UINT32_MAX)},
	{"picks", "N", "draws by weight (100,000)", 0, GW_OPTION_NUMBER(C, picks, 1, UINT32_MAX)},
	{"ready", "FILE", "created when the clients are connected", 0,
	 GW_OPTION_TEXT(C, ready, .missing = "which file?")},
	{"go", "FILE", "then awaited", 0, GW_OPTION_TEXT(C, go, .missing = "which file?")},
	{0},
};
#undef C

static gw_status compare_epoch(struct gw_epoch_side *side, struct gw_epoch_side *reference, uint64_t *batches)
{
	gw_status status = GW_OK;
	uint64_t bytes = 0;
	while (status == GW_OK && *batches < gw_loader_steps(side->loader)) {
		struct gw_minibatch *batch = NULL, *expected = NULL;
		status = gw_loader_next(side->loader, &batch, -1);
		if (status == GW_OK)
			status = gw_loader_next(reference->loader, &expected, -1);
		if (status == GW_OK)
			status = gw_minibatch_compare(&side->options.spec, batch, expected, &bytes);
		gw_minibatch_release(expected);
		gw_minibatch_release(batch);
		*batches += status == GW_OK;
	}
	return status != GW_OK ? gw_context(status, "batch %" PRIu64, *batches) : GW_OK;
}

/* A call has no row twice and seldom two adjacent rows in sequence, so each row is a read of its own. */
static gw_status read_rows(struct gw_epoch_side *side, struct gw_epoch_side *reference, uint64_t wanted,
			   uint64_t *reads)
{
	const struct gw_tensor *tensor = side->options.spec.fetches[0].tensor;
	int64_t begin, end;
	gw_status status = gw_part_range(side->client, tensor->type, 0, &begin, &end);
	uint64_t n = (uint64_t)(end - begin), word = 5;
	int64_t *ids = malloc(n * sizeof(*ids));
	uint8_t *rows = gw_buffer_alloc(side->client, n * tensor->row_bytes);
	uint8_t *expected = malloc(n * tensor->row_bytes);
	if (!ids || !rows || !expected)
		status = GW_NO_MEMORY;
	for (uint64_t i = 0; status == GW_OK && i < n; i++)
		ids[i] = begin + (int64_t)i;
	while (status == GW_OK && *reads < wanted) {
		for (uint64_t i = n - 1; i > 0; i--) {
			word = gw_mix64(word + 0x9e3779b97f4a7c15ull);
			uint64_t j = word % (i + 1);
			int64_t id = ids[i];
			ids[i] = ids[j];
			ids[j] = id;
		}
		memset(rows, 0xee, n * tensor->row_bytes);
		status = gw_gather(side->client, tensor, ids, n, rows);
		if (status == GW_OK)
			status = gw_gather(reference->client, reference->options.spec.fetches[0].tensor, ids, n,
					   expected);
		if (status == GW_OK && memcmp(rows, expected, n * tensor->row_bytes) != 0)
			status = gw_fail(GW_DIGEST, "the rows differ from the folder's");
		*reads += n;
	}
	free(expected);
	free(ids);
	return status != GW_OK ? gw_context(status, "after %" PRIu64 " rows", *reads) : GW_OK;
}

/* Compares with the folder. A draw with replacement from a list that is not empty gives FANOUT picks. */
static gw_status draw_by_weight(struct gw_epoch_side *side, struct gw_epoch_side *reference, uint64_t wanted,
				uint64_t *picks)
{
	static const int32_t fanouts[] = {FANOUT};
	static const struct gw_edge_rule rules[] = {{.weight = "weight"}};
	const struct gw_sample_spec spec = {.hops = 1, .fanouts = fanouts, .replace = true, .rules = rules};
	int64_t begin, end, seeds[SEEDS];
	gw_status status = gw_part_range(side->client, side->options.spec.fetches[0].tensor->type, 0, &begin, &end);
	for (uint64_t stream = 0; status == GW_OK && *picks < wanted; stream++) {
		struct gw_minibatch *batch = NULL, *expected = NULL;
		for (uint32_t i = 0; i < SEEDS; i++)
			seeds[i] = begin + (int64_t)((stream * SEEDS + i) % (uint64_t)(end - begin));
		status = gw_sample(side->client, &spec, 1, stream, seeds, SEEDS, &batch);
		if (status == GW_OK)
			status = gw_sample(reference->client, &spec, 1, stream, seeds, SEEDS, &expected);
		if (status == GW_OK)
			status = gw_minibatch_compare(&spec, batch, expected, NULL);
		if (status == GW_OK && batch->edge_count == 0)
			status = gw_fail(GW_DIGEST, "no list of part 0 has an edge");
		*picks += status == GW_OK ? batch->edge_count : 0;
		gw_minibatch_release(expected);
		gw_minibatch_release(batch);
	}
	return status != GW_OK ? gw_context(status, "after %" PRIu64 " draws by weight", *picks) : GW_OK;
}

/* It must fail with GW_DEADLINE, name the server, and not end too early. */
static gw_status expect_deadline(struct gw_epoch_side *side, const char *server, uint64_t *took_ms)
{
	struct gw_minibatch *batch = NULL;
	uint64_t begun = gw_now_ns();
	gw_status status = gw_sample(side->client, &side->options.spec, 1, 1, side->seeds, 32, &batch);
	*took_ms = (gw_now_ns() - begun) / GW_NS_PER_MS;
	gw_minibatch_release(batch);
	if (status != GW_DEADLINE || !strstr(gw_last_error(), server))
		return gw_fail(GW_INVALID, "a request to %s, which is stopped: \"%s\": %s", server,
			       gw_status_text(status), gw_last_error());
	if (*took_ms < REQUEST_MS)
		return gw_fail(GW_INVALID, "a deadline of %d ms took %" PRIu64 " ms", REQUEST_MS, *took_ms);
	return GW_OK;
}

static gw_status run(const struct command *c, struct gw_epoch_side sides[3])
{
	static const struct gw_epoch_plan plan = {
		.batch_size = 32, .depth = 4, .seed = 1, .fanouts = {.hops = 2, .of_hop = {8, 5}}};
	struct gw_client_options by_reads = {.servers = c->servers,
					     .server_count = c->server_count,
					     .key_file = c->key_file,
					     .transport = c->transport,
					     .threads = 1,
					     .neighbours = "reads",
					     .order = "never"};
	struct gw_client_options by_requests = by_reads, alone = {.part_config = c->part_config, .threads = 1};
	by_requests.neighbours = "requests";
	by_requests.order = NULL;
	by_requests.timeout_ms = REQUEST_MS;
	uint64_t batches = 0, reads = 0, more = 0, picks = 0, took_ms = 0;
	gw_status status = gw_epoch_side_open(&plan, &by_reads, &sides[0]);
	if (status == GW_OK)
		status = gw_epoch_side_open(&plan, &by_requests, &sides[1]);
	if (status == GW_OK)
		status = gw_epoch_side_open(&plan, &alone, &sides[2]);
	if (status == GW_OK && strcmp(gw_part_transport(sides[0].client, 0), "verbs") != 0)
		status = gw_fail(GW_UNSUPPORTED, "part 0 is reached over %s", gw_part_transport(sides[0].client, 0));
	if (status == GW_OK)
		status = go_wait(c->ready, c->go);
	if (status == GW_OK)
		status = compare_epoch(&sides[0], &sides[2], &batches);
	uint64_t begun = gw_now_ns();
	if (status == GW_OK)
		status = read_rows(&sides[0], &sides[2], c->reads, &reads);
	uint64_t rows_ms = (gw_now_ns() - begun) / GW_NS_PER_MS;
	if (status == GW_OK)
		status = draw_by_weight(&sides[0], &sides[2], c->picks, &picks);
	uint64_t picks_ms = (gw_now_ns() - begun) / GW_NS_PER_MS - rows_ms;
	if (status == GW_OK)
		status = expect_deadline(&sides[1], c->servers[0], &took_ms);
	if (status == GW_OK)
		status = read_rows(&sides[0], &sides[2], 1, &more);
	if (status == GW_OK)
		printf("%" PRIu64 " batches, %" PRIu64 " rows in %" PRIu64 " ms, %" PRIu64
		       " draws by weight in %" PRIu64 " ms, a request that ended after %" PRIu64 " ms\n",
		       batches, reads, rows_ms, picks, picks_ms, took_ms);
	return status;
}

int main(int argc, char **argv)
{
	static const struct gw_options options = {.table = table, .doc = "Tests a client of a stopped server."};
	struct command command = {.reads = 20000, .picks = 100000};
	struct gw_epoch_side sides[3] = {0};
	gw_options_parse(&options, argc, argv, &command);
	gw_status status = run(&command, sides);
	if (status != GW_OK)
		fprintf(stderr, "stopped: %s\n", gw_last_error());
	for (int i = 0; i < 3; i++)
		gw_epoch_side_close(&sides[i]);
	return status != GW_OK ? 1 : 0;
}
