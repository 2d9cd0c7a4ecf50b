/* The client compared with itself and with the files: the same bytes over every path to the neighbours, every driver,
 * any number of threads and parts; a server that restarts; a loader that resumes; and every wrong argument. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "sampler/lanes/wide.h"
#include "test/support/client_setup.h"

#define SCALE SETUP_SCALE

/* --- The graph and its mini-batches. --- */

/* Whether the servers of this run let clients map their memory. */
static bool on_this_host;

static uint32_t epoch_of(const struct gw_client_options *options, bool replace, uint64_t *digests)
{
	struct gw_client *client = open_client(options);
	const char *far = cluster_is_rdma() ? "verbs" : "tcp";
	expect_transport(client, !options->server_count ? "memory" : on_this_host ? "shm" : far);
	struct plan plan;
	make_plan(client, &plan, replace, replace); /* and wide indices with one of them */
	uint32_t n = run_epoch(client, &plan, 1, digests);
	gw_client_close(client);
	return n;
}

static void compare_paths(uint32_t parts, uint64_t seed, const char *server_driver)
{
	struct setup setup;
	setup_begin(&setup, seed, parts, server_driver);
	const char *folder = setup.fixture.folder;
	const char *const *list = setup.cluster.list;
	const struct gw_client_options ways[] = {
		{.part_config = folder, .threads = 1},
		{.part_config = folder, .threads = 8},
		{.part_config = folder, .threads = 1, .dense_bytes_max = 1},
		{.part_config = folder, .threads = 2, .neighbours = "reads"},
		{.servers = list, .server_count = parts, .threads = 1, .neighbours = "requests"},
		{.servers = list, .server_count = parts, .threads = 8, .neighbours = "requests", .order = "always"},
		{.servers = list, .server_count = parts, .threads = 1, .neighbours = "reads"},
		{.servers = list, .server_count = parts, .neighbours = "reads", .tcp_driver = "epoll", .spin_us = 100},
		{.part_config = folder, .servers = list, .server_count = parts, .tcp_driver = "epoll"},
	};
	for (int replace = 0; replace < 2; replace++) {
		uint64_t expected[EPOCH_MAX], got[EPOCH_MAX];
		uint32_t n = epoch_of(&ways[0], replace, expected);
		assert_true(n > 2);
		for (size_t w = 1; w < sizeof(ways) / sizeof(ways[0]); w++) {
			gw_vectors_set(w & 1 ? GW_VECTORS_OFF : GW_VECTORS_AUTO); /* for client and servers */
			assert_int_equal(epoch_of(&ways[w], replace, got), n);
			for (uint32_t b = 0; b < n; b++) {
				if (got[b] != expected[b])
					fail_msg("%u parts, way %zu, replace %d: batch %u differs", parts, w, replace,
						 b);
			}
		}
	}
	gw_vectors_set(GW_VECTORS_AUTO);
	setup_end(&setup);
}

static void same_bytes_over_every_path(void **state)
{
	(void)state;
	compare_paths(3, 13, NULL);
	if (cluster_is_rdma())
		return; /* fewer parts use the same paths, and this is slow there */
	compare_paths(2, 12, "epoll");
	compare_paths(1, 11, NULL);
}

/* --- Gather. --- */

static void compare_gather(struct gw_client *client, const struct gw_tensor *tensor, struct gw_part *const *parts,
			   const char *key, const uint64_t *starts, const int64_t *ids, uint64_t n)
{
	uint8_t *out = malloc(n * tensor->row_bytes + 1);
	if (gw_gather(client, tensor, ids, n, out) != GW_OK)
		fail_msg("%s: %s", key, gw_last_error());
	for (uint64_t i = 0; i < n; i++) {
		uint32_t p = 0;
		while ((uint64_t)ids[i] >= starts[p + 1])
			p++;
		const struct gw_array *array = gw_part_array(parts[p], key);
		assert_non_null(array);
		assert_memory_equal(out + i * tensor->row_bytes,
				    array->data + ((uint64_t)ids[i] - starts[p]) * tensor->row_bytes,
				    tensor->row_bytes);
	}
	free(out);
}

static void gathers_what_the_files_hold(void **state)
{
	(void)state;
	struct setup setup;
	setup_begin(&setup, 5, 3, NULL);
	struct gw_client_options options = {.servers = setup.cluster.list, .server_count = 3, .threads = 2};
	struct gw_client *client = open_client(&options);
	struct gw_graph_meta *meta;
	assert_int_equal(gw_meta_read(setup.fixture.folder, &meta), GW_OK);
	struct gw_part *parts[3];
	struct gw_part_options mapped = {.mapped = true};
	for (uint32_t p = 0; p < 3; p++)
		assert_int_equal(gw_part_open(meta, p, &mapped, &parts[p]), GW_OK);

	const struct gw_tensor *tensor;
	uint32_t tensors = 0;
	for (; (tensor = gw_tensor_at(client, tensors)); tensors++) {
		const struct gw_edge_type *etype = &meta->etypes[tensor->of_edges ? tensor->type : 0];
		const struct gw_node_type *ntype = &meta->ntypes[tensor->of_edges ? 0 : tensor->type];
		const uint64_t *starts = tensor->of_edges ? etype->starts : ntype->starts;
		char key[512];
		snprintf(key, sizeof(key), "%s/%s/%s", tensor->of_edges ? "edge" : "node",
			 tensor->of_edges ? etype->folder : ntype->name, tensor->name);
		uint64_t count = tensor->shape[0];
		int64_t *ids = malloc((2 * count + 1) * sizeof(*ids));
		/* No ids; all in order, which reads spans; random ids with many duplicates; one id. */
		compare_gather(client, tensor, parts, key, starts, ids, 0);
		for (uint64_t i = 0; i < count; i++)
			ids[i] = (int64_t)i;
		compare_gather(client, tensor, parts, key, starts, ids, count);
		for (uint64_t i = 0; i < 2 * count; i++)
			ids[i] = (int64_t)(gw_mix64(i) % count);
		compare_gather(client, tensor, parts, key, starts, ids, 2 * count);
		if (count)
			compare_gather(client, tensor, parts, key, starts, ids, 1);
		free(ids);
	}
	assert_true(tensors >= 8);
	for (uint32_t p = 0; p < 3; p++)
		gw_part_close(parts[p]);
	gw_meta_destroy(meta);
	gw_client_close(client);
	setup_end(&setup);
}

static void gathers_long_lists(void **state)
{
	(void)state;
	enum { NODES = 20000, LIST = NODES + NODES / 2 };
	struct setup setup;
	setup_begin_open(&setup, 7, 2, NODES);
	struct gw_client_options options = {
		.servers = setup.cluster.list, .server_count = 2, .insecure = true, .threads = 1};
	struct gw_client *client = open_client(&options);
	const struct gw_tensor *feat = node_tensor(client, "paper", "feat");
	assert_int_equal(feat->shape[0], NODES);
	uint8_t *all = malloc(NODES * feat->row_bytes), *rows = malloc(LIST * feat->row_bytes);
	int64_t *ids = malloc(LIST * sizeof(*ids));
	for (int64_t i = 0; i < NODES; i++)
		ids[i] = i;
	assert_int_equal(gw_gather(client, feat, ids, NODES, all), GW_OK);
	for (uint64_t i = 0; i < LIST; i++)
		ids[i] = (int64_t)(i < NODES ? i * 7919 % NODES : (i - NODES) * 104729 % NODES);
	static const uint64_t lengths[] = {2047, 2048, 2049, 4095, 4096, 4097, 6144, 10000, NODES, LIST};
	for (size_t j = 0; j < sizeof(lengths) / sizeof(lengths[0]); j++) {
		memset(rows, 0, LIST * feat->row_bytes);
		assert_int_equal(gw_gather(client, feat, ids, lengths[j], rows), GW_OK);
		for (uint64_t i = 0; i < lengths[j]; i++)
			assert_memory_equal(rows + i * feat->row_bytes, all + (uint64_t)ids[i] * feat->row_bytes,
					    feat->row_bytes);
	}
	ids[LIST - 1] = NODES;
	expect(gw_gather(client, feat, ids, LIST, rows), GW_RANGE, "position 29999");
	assert_int_equal(gw_gather(client, feat, ids, LIST - 1, rows), GW_OK);
	assert_memory_equal(rows, all + (uint64_t)ids[0] * feat->row_bytes, feat->row_bytes);
	free(ids);
	free(rows);
	free(all);
	gw_client_close(client);
	setup_end(&setup);
}

static void degrees_are_those_of_the_graph(void **state)
{
	(void)state;
	struct setup setup;
	setup_begin(&setup, 6, 2, NULL);
	struct gw_client_options options = {.servers = setup.cluster.list, .server_count = 2};
	struct gw_client *client = open_client(&options);
	const struct gw_graph_info *info = gw_client_graph(client);
	for (uint32_t e = 0; e < GW_FIXTURE_ETYPES; e++) {
		const struct gw_fixture_edges *edges = &setup.fixture.edges[e];
		uint64_t n = info->ntypes[info->etypes[e].dst].count;
		int64_t *ids = malloc(n * 8), *degrees = malloc(n * 8);
		for (uint64_t i = 0; i < n; i++)
			ids[i] = (int64_t)(n - 1 - i);
		assert_int_equal(gw_degrees(client, e, ids, n, degrees), GW_OK);
		for (uint64_t i = 0; i < n; i++)
			assert_int_equal(degrees[i], edges->indptr[ids[i] + 1] - edges->indptr[ids[i]]);
		free(ids);
		free(degrees);
	}
	gw_client_close(client);
	setup_end(&setup);
}

/* --- The loader. --- */

static void check_resume(struct gw_client *client, const struct plan *plan, uint32_t stop, uint32_t steps,
			 const uint64_t *epoch, uint64_t first_of_next)
{
	struct gw_loader_state at = {0};
	struct gw_loader *loader = open_loader(client, plan, at);
	struct gw_minibatch *batch;
	for (uint32_t i = 0; i < stop; i++) {
		assert_int_equal(gw_loader_next(loader, &batch, -1), GW_OK);
		gw_minibatch_release(batch);
	}
	gw_loader_get_state(loader, &at);
	gw_loader_close(loader);
	loader = open_loader(client, plan, at);
	for (uint32_t i = stop; i < steps; i++) {
		assert_int_equal(gw_loader_next(loader, &batch, -1), GW_OK);
		assert_true(gw_minibatch_digest(batch) == epoch[i]);
		gw_minibatch_release(batch);
	}
	assert_int_equal(gw_loader_next(loader, &batch, -1), GW_END);
	assert_null(batch);
	assert_int_equal(gw_loader_next(loader, &batch, -1), GW_OK);
	assert_true(gw_minibatch_digest(batch) == first_of_next);
	gw_minibatch_release(batch);
	gw_loader_close(loader);
}

static void a_loader_resumes_where_it_was(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, 3, SCALE, 2);
	gw_fixture_write(&fixture);
	struct gw_client_options options = {.part_config = fixture.folder, .threads = 2};
	struct gw_client *client = open_client(&options);
	struct plan plan;
	make_plan(client, &plan, false, true);
	uint64_t expected[2][EPOCH_MAX];
	uint32_t steps = run_epoch(client, &plan, 0, expected[0]);
	run_epoch(client, &plan, 1, expected[1]);
	assert_true(memcmp(expected[0], expected[1], steps * sizeof(expected[0][0])) != 0);
	for (uint32_t stop = 0; stop <= steps; stop++)
		check_resume(client, &plan, stop, steps, expected[0], expected[1][0]);
	gw_client_close(client);
	gw_fixture_end(&fixture);
}

/* Over all ranks. Returns the steps of a rank. share: seeds of a rank with GW_LAST_WRAP. */
static uint64_t count_seeds(struct gw_client *client, enum gw_last_batch last, uint32_t world, uint64_t share,
			    uint32_t *counts)
{
	struct plan plan;
	make_plan(client, &plan, false, false);
	uint64_t steps = 0;
	for (uint32_t rank = 0; rank < world; rank++) {
		struct gw_loader_options options = {.spec = plan.spec,
						    .batch_size = 64,
						    .shuffle = true,
						    .seed = 3,
						    .world = world,
						    .rank = rank,
						    .last = last};
		struct gw_loader *loader;
		assert_int_equal(gw_loader_open(client, &options, &loader), GW_OK);
		assert_true(rank == 0 || steps == gw_loader_steps(loader));
		steps = gw_loader_steps(loader);
		struct gw_minibatch *batch;
		uint64_t seeds = 0;
		while (gw_loader_next(loader, &batch, -1) == GW_OK) {
			assert_true(batch->seed_count == 64 || (last != GW_LAST_DROP && batch->step == steps - 1));
			for (uint64_t i = 0; i < batch->seed_count; i++)
				counts[batch->seeds[i]]++;
			seeds += batch->seed_count;
			gw_minibatch_release(batch);
		}
		assert_true(last != GW_LAST_WRAP || seeds == share);
		gw_loader_close(loader);
	}
	return steps;
}

static void check_ranks(struct gw_client *client, uint64_t n, enum gw_last_batch last, uint32_t world)
{
	uint32_t *counts = calloc(n, sizeof(*counts));
	uint64_t share = (n + world - 1) / world, steps = count_seeds(client, last, world, share, counts);
	uint64_t per_step = 64ull * world, total = 0, once = 0;
	for (uint64_t i = 0; i < n; i++) {
		total += counts[i];
		once += counts[i] == 1;
		assert_true(counts[i] <= 2);
	}
	if (last == GW_LAST_DROP) {
		assert_int_equal(steps, n / per_step);
		assert_int_equal(once, steps * per_step);
	} else if (last == GW_LAST_WRAP) {
		assert_int_equal(steps, (n + per_step - 1) / per_step);
		assert_int_equal(total, share * world);
		assert_int_equal(once, n - (share * world - n));
	} else {
		assert_int_equal(once, n);
	}
	free(counts);
}

static void ranks_share_an_epoch(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, 3, SCALE, 2);
	gw_fixture_write(&fixture);
	struct gw_client_options options = {.part_config = fixture.folder, .threads = 2};
	struct gw_client *client = open_client(&options);
	uint64_t n = node_tensor(client, "paper", "feat")->shape[0];
	for (uint32_t world = 1; world <= 7; world++) {
		check_ranks(client, n, GW_LAST_WRAP, world);
		check_ranks(client, n, GW_LAST_DROP, world);
	}
	check_ranks(client, n, GW_LAST_SHORT, 1);
	gw_client_close(client);
	gw_fixture_end(&fixture);
}

/* --- A server that restarts. --- */

static void a_restart_costs_no_batch(void **state)
{
	(void)state;
	struct setup setup;
	setup_begin(&setup, 21, 2, NULL);
	struct gw_client_options alone = {.part_config = setup.fixture.folder, .threads = 1};
	uint64_t expected[EPOCH_MAX];
	uint32_t steps = epoch_of(&alone, false, expected);

	struct gw_client_options options = {.servers = setup.cluster.list, .server_count = 2, .threads = 2};
	struct gw_client *client = open_client(&options);
	struct plan plan;
	make_plan(client, &plan, false, false);
	struct gw_loader *loader = open_loader(client, &plan, (struct gw_loader_state){.epoch = 1});
	for (uint32_t b = 0; b < steps; b++) {
		if (b % 3 == 1) {
			cluster_kill(&setup.cluster, b / 3 % 2);
			cluster_revive(&setup.cluster, b / 3 % 2);
		}
		struct gw_minibatch *batch;
		gw_status status = gw_loader_next(loader, &batch, -1);
		if (status != GW_OK)
			fail_msg("batch %u: %s", b, gw_last_error());
		assert_true(gw_minibatch_digest(batch) == expected[b]);
		gw_minibatch_release(batch);
	}
	gw_loader_close(loader);
	gw_client_close(client);
	setup_end(&setup);
}

static void a_server_that_stays_away_is_an_error(void **state)
{
	(void)state;
	struct setup setup;
	setup_begin(&setup, 22, 2, NULL);
	struct gw_client_options options = {
		.servers = setup.cluster.list, .server_count = 2, .threads = 1, .reconnect_ms = patient_ms(2000)};
	struct gw_client *client = open_client(&options);
	const struct gw_tensor *feat = node_tensor(client, "paper", "feat");
	int64_t last = (int64_t)feat->shape[0] - 1, first = 0;
	uint8_t row[64];
	assert_int_equal(gw_gather(client, feat, &last, 1, row), GW_OK);
	cluster_kill(&setup.cluster, 1);
	assert_int_equal(gw_gather(client, feat, &last, 1, row), GW_PEER_LOST);
	assert_non_null(strstr(gw_last_error(), "reconnect budget"));
	/* The other part is still served, and so is the lost one when its server is back. */
	assert_int_equal(gw_gather(client, feat, &first, 1, row), GW_OK);
	cluster_revive(&setup.cluster, 1);
	gw_status status = GW_PEER_LOST; /* the budget may expire before the client finds the server */
	for (int tries = 0; tries < 100 && status == GW_PEER_LOST; tries++)
		status = gw_gather(client, feat, &last, 1, row);
	assert_int_equal(status, GW_OK);
	gw_client_close(client);
	setup_end(&setup);
}

/* --- Wrong arguments. --- */

static void wrong_servers_are_named(void **state)
{
	(void)state;
	struct setup setup, other;
	setup_begin(&setup, 31, 2, NULL);
	setup_begin(&other, 32, 2, NULL);
	struct gw_client *client;
	const char *twice[] = {setup.cluster.list[0], setup.cluster.list[0]};
	const char *mixed[] = {setup.cluster.list[0], other.cluster.list[1]};
	const char *nobody[] = {"127.0.0.1:1", setup.cluster.list[0]};
	const char *garbage[] = {"127.0.0.1:port"};
	struct gw_client_options options = {.servers = twice, .server_count = 2};
	expect(gw_client_open(&options, &client), GW_EXISTS, "given twice");
	options.servers = mixed;
	expect(gw_client_open(&options, &client), GW_WRONG_GRAPH, "graph");
	options.servers = setup.cluster.list;
	options.server_count = 1;
	expect(gw_client_open(&options, &client), GW_NOT_FOUND, "part 1 of 2 has no server");
	options.servers = nobody;
	options.server_count = 2;
	options.timeout_ms = patient_ms(300);
	expect_no_client(options, GW_PEER_LOST, "127.0.0.1:1");
	options.servers = garbage;
	options.server_count = 1;
	expect(gw_client_open(&options, &client), GW_INVALID, "port");
	options = (struct gw_client_options){
		.part_config = other.fixture.folder, .servers = setup.cluster.list, .server_count = 2};
	expect(gw_client_open(&options, &client), GW_WRONG_GRAPH, "graph");
	options = (struct gw_client_options){0};
	expect(gw_client_open(&options, &client), GW_NOT_FOUND, "neither a part config nor a server");
	assert_null(client);
	setup_end(&other);
	setup_end(&setup);
}

static void wrong_arguments_are_named(void **state)
{
	(void)state;
	struct setup setup;
	setup_begin(&setup, 33, 2, NULL);
	struct gw_client_options options = {.servers = setup.cluster.list, .server_count = 2, .threads = 1};
	struct gw_client *client = open_client(&options);
	const struct gw_tensor *tensor, *feat = node_tensor(client, "paper", "feat");
	expect(gw_node_tensor(client, feat->type, "fear", &tensor), GW_NOT_FOUND, "feat");
	int64_t ids[3] = {0, (int64_t)feat->shape[0], -1};
	uint8_t rows[256];
	expect(gw_gather(client, feat, ids, 2, rows), GW_RANGE, "position 1");
	expect(gw_gather(client, feat, ids + 2, 1, rows), GW_RANGE, "-1");

	struct plan plan;
	make_plan(client, &plan, false, false);
	struct gw_minibatch *batch;
	expect(gw_sample(client, &plan.spec, 1, 1, ids, 2, &batch), GW_RANGE, "seed");
	expect(gw_sample(client, &plan.spec, 1, 1, ids + 2, 1, &batch), GW_RANGE, "node -1 ");
	struct gw_loader *loader;
	plan.spec.hops = GW_HOPS_MAX + 1;
	expect(gw_sample(client, &plan.spec, 1, 1, ids, 1, &batch), GW_RANGE, "65 hops: 1 to 64");
	struct gw_loader_options stream = {.spec = plan.spec};
	expect(gw_loader_open(client, &stream, &loader), GW_RANGE, "65 hops: 1 to 64");
	plan.spec.hops = 2;
	plan.fanouts[3] = -2;
	expect(gw_sample(client, &plan.spec, 1, 1, ids, 1, &batch), GW_INVALID, "fanout");
	stream.spec = plan.spec;
	expect(gw_loader_open(client, &stream, &loader), GW_INVALID, "fanout -2");
	assert_null(loader);
	plan.fanouts[3] = 1;
	plan.fetches[0].at = (enum gw_fetch_at)7;
	expect(gw_sample(client, &plan.spec, 1, 1, ids, 1, &batch), GW_INVALID, "at = 7");
	plan.fetches[0].at = GW_AT_INPUTS;
	plan.fetches[2].tensor = plan.fetches[1].tensor;
	expect(gw_sample(client, &plan.spec, 1, 1, ids, 1, &batch), GW_INVALID, "author");
	struct gw_sample_spec right = {.ntype = feat->type, .hops = 1, .fanouts = plan.fanouts};
	assert_int_equal(gw_sample(client, &right, 1, 1, ids, 1, &batch), GW_OK);
	gw_minibatch_release(batch);
	gw_client_close(client);
	setup_end(&setup);
}

/* --- Tickets. --- */

#define TICKETS 20

static void tickets_end_once(void **state)
{
	(void)state;
	struct setup setup;
	setup_begin(&setup, 41, 2, NULL);
	struct gw_client_options options = {.servers = setup.cluster.list, .server_count = 2, .threads = 2};
	struct gw_client *client = open_client(&options);
	const struct gw_tensor *feat = node_tensor(client, "paper", "feat");
	uint64_t n = feat->shape[0];
	int64_t *ids = malloc(n * sizeof(*ids));
	uint8_t *rows[TICKETS], *expected = malloc(n * feat->row_bytes);
	struct gw_ticket *tickets[TICKETS];
	for (uint64_t i = 0; i < n; i++)
		ids[i] = (int64_t)(gw_mix64(i + 9) % n);
	assert_int_equal(gw_gather(client, feat, ids, n, expected), GW_OK);
	for (int i = 0; i < TICKETS; i++) {
		rows[i] = malloc(n * feat->row_bytes);
		assert_int_equal(gw_gather_start(client, feat, ids, n, rows[i], &tickets[i]), GW_OK);
	}
	for (int i = 0; i < TICKETS; i++) {
		if (i % 3 == 2) {
			gw_cancel(tickets[i]);
			continue;
		}
		assert_int_equal(gw_wait(tickets[i], -1), GW_OK);
		assert_memory_equal(rows[i], expected, n * feat->row_bytes);
	}
	for (int i = 0; i < TICKETS; i++)
		free(rows[i]);

	/* A server is away: a wait ends in time, its ticket continues, and a cancel ends the ticket. */
	cluster_kill(&setup.cluster, 1);
	struct gw_ticket *ticket;
	assert_int_equal(gw_gather_start(client, feat, ids, n, expected, &ticket), GW_OK);
	expect(gw_wait(ticket, 0), GW_AGAIN, "0 ms");
	expect(gw_wait(ticket, 50), GW_AGAIN, "50 ms");
	gw_cancel(ticket);
	cluster_revive(&setup.cluster, 1);
	assert_int_equal(gw_gather(client, feat, ids, n, expected), GW_OK);
	free(ids);
	free(expected);
	gw_client_close(client);
	setup_end(&setup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_bytes_over_every_path),
		cmocka_unit_test(gathers_what_the_files_hold),
		cmocka_unit_test(gathers_long_lists),
		cmocka_unit_test(degrees_are_those_of_the_graph),
		cmocka_unit_test(a_loader_resumes_where_it_was),
		cmocka_unit_test(ranks_share_an_epoch),
		cmocka_unit_test(a_restart_costs_no_batch),
		cmocka_unit_test(a_server_that_stays_away_is_an_error),
		cmocka_unit_test(wrong_servers_are_named),
		cmocka_unit_test(wrong_arguments_are_named),
		cmocka_unit_test(tickets_end_once),
	};
	/* Tests of a server that is away are missing here: a client reads mapped memory without the server. */
	const struct CMUnitTest mapped[] = {
		cmocka_unit_test(same_bytes_over_every_path),     cmocka_unit_test(gathers_what_the_files_hold),
		cmocka_unit_test(degrees_are_those_of_the_graph), cmocka_unit_test(a_loader_resumes_where_it_was),
		cmocka_unit_test(ranks_share_an_epoch),           cmocka_unit_test(a_restart_costs_no_batch),
		cmocka_unit_test(wrong_servers_are_named),        cmocka_unit_test(wrong_arguments_are_named),
	};
	int failed = cmocka_run_group_tests_name("servers far away", tests, NULL, NULL);
	if (cluster_is_rdma())
		return failed; /* a second run would be the same: RDMA addresses prevent mapping */
	on_this_host = true;
	cluster_offer("shm");
	return failed + cmocka_run_group_tests_name("servers on this host", mapped, NULL, NULL);
}
