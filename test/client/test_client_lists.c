/* A server that holds the lists of all parts: its clients draw the same bytes as standalone, over every kind of
 * sampling, and send nothing for it to other servers; it may restart, come back without the lists, be replaced, or hold
 * lists that are missing or damaged. The other servers are reached over TCP alone, as from another host.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/numbers/digest.h"
#include "core/numbers/rng.h"
#include "protocol/ops.h"
#include "test/support/alloc_fault.h"
#include "test/support/client_paths.h"
#include "test/support/client_setup.h"
#include "test/support/must.h"
#include "transport/service/service.h"

#define SEEDS       40
#define DIGESTS_MAX 64

/* --- Servers: part `host` is on this host and holds all lists; the others offer nothing but TCP. --- */

static void restart(struct setup *setup, uint32_t part, const char *transport, enum gw_server_lists lists)
{
	cluster_kill(&setup->cluster, part);
	setup->cluster.transport = transport;
	setup->cluster.lists = lists;
	cluster_revive(&setup->cluster, part);
	setup->cluster.transport = NULL;
	setup->cluster.lists = GW_SERVER_LISTS_OWN;
}

static void lists_begin(struct setup *setup, uint64_t seed, uint32_t parts, uint32_t host)
{
	cluster_offer(NULL);
	gw_fixture_begin(&setup->fixture, seed, SETUP_SCALE, parts);
	gw_fixture_write(&setup->fixture);
	cluster_begin(&setup->cluster, setup->fixture.folder, parts, NULL);
	restart(setup, host, "shm", GW_SERVER_LISTS_ALL);
}

static struct gw_client *lists_client(const struct setup *setup, uint32_t threads)
{
	struct gw_client_options options = {
		.servers = setup->cluster.list, .server_count = setup->cluster.parts, .threads = threads};
	return open_client(&options);
}

static struct gw_client *alone_client(const struct setup *setup)
{
	struct gw_client_options options = {.part_config = setup->fixture.folder, .threads = 2};
	return open_client(&options);
}

/* Reads and requests that the servers of other parts have answered, without catalogs. */
static uint64_t others_asked(const struct setup *setup, uint32_t host)
{
	static struct gw_service_totals totals;
	uint64_t asked = 0;
	for (uint32_t p = 0; p < setup->cluster.parts; p++) {
		struct gw_service_counters counters;
		if (p == host)
			continue;
		gw_service_counters(setup->cluster.servers[p]->service, &counters);
		gw_service_totals(setup->cluster.servers[p]->service, &totals);
		asked += counters.reads + counters.requests;
		for (uint32_t s = 0; s < GW_SERVICE_SCHEMES; s++)
			asked -= totals.calls[GW_OP_CATALOG][s].requests;
	}
	return asked;
}

/* --- Draws. --- */

struct drawn {
	uint64_t digests[DIGESTS_MAX];
	uint32_t count;
};

static void add_digest(struct drawn *drawn, uint64_t digest)
{
	assert_true(drawn->count < DIGESTS_MAX);
	drawn->digests[drawn->count++] = digest;
}

static void add_list(struct drawn *drawn, struct gw_edge_list *list)
{
	uint64_t digest = gw_digest_add(0, list->offsets, (list->question_count + 1) * 8);
	digest = gw_digest_add(digest, list->src, list->edge_count * 8);
	digest = gw_digest_add(digest, list->dst, list->edge_count * 8);
	digest = gw_digest_add(digest, list->edge_ids, list->edge_count * 8);
	add_digest(drawn, digest);
	gw_edge_list_free(list);
}

/* Nodes of all parts, and their times. */
static int64_t seeds[SEEDS], until[SEEDS], since[SEEDS];

static void make_seeds(void)
{
	for (uint32_t i = 0; i < SEEDS; i++) {
		seeds[i] = (int64_t)((uint64_t)i * SETUP_SCALE / SEEDS);
		until[i] = (int64_t)(gw_mix64(i) % 40);
		since[i] = until[i] - (int64_t)(gw_mix64(i + 99) % 30);
	}
}

static void add_batch(struct drawn *drawn, struct gw_client *client, const struct gw_sample_spec *spec, bool times)
{
	const struct gw_seeds list = {
		.count = SEEDS, .ids = seeds, .times = times ? until : NULL, .times_from = times ? since : NULL};
	struct gw_minibatch *batch;
	struct gw_ticket *ticket;
	for (uint64_t stream = 0; stream < 2; stream++) {
		must(gw_sample_lists_start(client, spec, 5, stream, &list, 1, &batch, &ticket));
		must(gw_wait(ticket, -1));
		assert_true(batch->edge_count > 0);
		add_digest(drawn, gw_minibatch_digest(batch));
		gw_minibatch_release(batch);
	}
}

/* Uniform and by weight, with replacement and without, all neighbours, disjoint; by time. */
static void draw_batches(struct drawn *drawn, struct gw_client *client)
{
	static const struct gw_edge_rule by_weight[GW_FIXTURE_ETYPES] = {[FIXTURE_CITES] = {.weight = "weight"}};
	static const struct gw_edge_rule by_time[GW_FIXTURE_ETYPES] = {[FIXTURE_CITES] = {.time = "year"}};
	static const struct gw_edge_rule last[GW_FIXTURE_ETYPES] = {
		[FIXTURE_CITES] = {.time = "year", .pick = GW_PICK_LAST}};
	static const struct gw_edge_rule *const rules[] = {NULL, by_weight, by_time, last};
	for (uint32_t r = 0; r < 4; r++) {
		struct gw_sample_spec spec = {.hops = 2, .fanouts = all_fanouts, .rules = rules[r]};
		add_batch(drawn, client, &spec, r >= 2);
		spec.replace = true;
		add_batch(drawn, client, &spec, r >= 2);
		spec.replace = false;
		spec.disjoint = true;
		add_batch(drawn, client, &spec, r >= 2);
	}
	struct gw_edge_seeds edges = {.etype = FIXTURE_WRITES,
				      .negatives = GW_NEGATIVES_DST,
				      .negatives_each = 2,
				      .no_true_edges = true,
				      .exclude = GW_EXCLUDE_EDGES | GW_EXCLUDE_ENDS | GW_EXCLUDE_REVERSE};
	struct gw_sample_spec of_edges = {.hops = 2, .fanouts = all_fanouts, .edges = &edges};
	add_batch(drawn, client, &of_edges, false);
}

static void ask_about_edges(struct drawn *drawn, struct gw_client *client)
{
	struct gw_edge_list *list;
	int64_t src[SEEDS], dst[SEEDS], degrees[SEEDS];
	bool found[SEEDS];
	for (int fanout = GW_ALL_NEIGHBOURS; fanout <= 3; fanout += 4) {
		struct gw_neighbours_spec spec = {.etype = FIXTURE_CITES, .fanout = fanout};
		must(gw_neighbours(client, &spec, 8, 1, seeds, SEEDS, &list));
		add_list(drawn, list);
		spec = (struct gw_neighbours_spec){.etype = FIXTURE_WRITES, .direction = GW_OUT, .fanout = fanout};
		must(gw_neighbours(client, &spec, 8, 1, seeds, SEEDS / 2, &list));
		add_list(drawn, list);
	}
	must(gw_degrees(client, FIXTURE_CITES, seeds, SEEDS, degrees));
	add_digest(drawn, gw_digest_add(0, degrees, sizeof(degrees)));
	must(gw_out_degrees(client, FIXTURE_WRITES, seeds, SEEDS / 2, degrees));
	add_digest(drawn, gw_digest_add(0, degrees, sizeof(degrees) / 2));
	must(gw_find_edges(client, FIXTURE_CITES, seeds, SEEDS, src, dst));
	add_digest(drawn, gw_digest_add(gw_digest_add(0, src, sizeof(src)), dst, sizeof(dst)));
	must(gw_edge_ids(client, FIXTURE_CITES, src, dst, SEEDS, &list));
	add_list(drawn, list);
	must(gw_has_edges(client, FIXTURE_CITES, dst, src, SEEDS, found));
	add_digest(drawn, gw_digest_add(0, found, sizeof(found)));
	const struct gw_subgraph_spec among = {
		.etype = FIXTURE_CITES, .src = {.count = SEEDS, .ids = src}, .dst = {.count = SEEDS, .ids = dst}};
	must(gw_subgraph(client, &among, &list));
	assert_true(list->edge_count > 0);
	add_list(drawn, list);
}

static void draw_all(struct drawn *drawn, struct gw_client *client)
{
	drawn->count = 0;
	draw_batches(drawn, client);
	ask_about_edges(drawn, client);
}

static void expect_same(const struct drawn *got, const struct drawn *expected)
{
	assert_int_equal(got->count, expected->count);
	for (uint32_t i = 0; i < got->count; i++) {
		if (got->digests[i] != expected->digests[i])
			fail_msg("draw %u: other bytes", i);
	}
}

static uint64_t held_hops(const struct gw_client *client)
{
	struct gw_client_stats stats;
	gw_client_get_stats(client, &stats, NULL, 0);
	return stats.held_hops;
}

static void draws_need_no_other_server(void **state)
{
	(void)state;
	static const uint32_t hosts[][2] = {{2, 1}, {3, 0}, {3, 2}}; /* parts, host; of three parts one is empty */
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		struct setup setup;
		struct drawn expected, got;
		uint32_t parts = hosts[i][0], host = hosts[i][1];
		lists_begin(&setup, 71 + i, parts, host);
		make_seeds();
		struct gw_client *alone = alone_client(&setup);
		draw_all(&expected, alone);
		gw_client_close(alone);
		for (uint32_t threads = 1; threads <= 3; threads += 2) {
			struct gw_client *client = lists_client(&setup, threads);
			assert_string_equal(gw_part_transport(client, host), "shm");
			assert_string_equal(gw_part_transport(client, host == 0), "tcp");
			uint64_t before = others_asked(&setup, host);
			draw_all(&got, client);
			expect_same(&got, &expected);
			assert_int_equal(others_asked(&setup, host), before);
			assert_true(held_hops(client) > 0);
			gw_client_close(client);
		}
		/* Where the client is told to, or the transport does not map memory, it asks the owners. */
		struct gw_client_options others[] = {
			{.neighbours = "requests"}, {.neighbours = "reads"}, {.transport = "tcp"}};
		for (size_t o = 0; o < 3; o++) {
			others[o].servers = setup.cluster.list;
			others[o].server_count = parts;
			others[o].threads = 1;
			struct gw_client *client = open_client(&others[o]);
			uint64_t before = others_asked(&setup, host);
			draw_all(&got, client);
			expect_same(&got, &expected);
			assert_true(others_asked(&setup, host) > before);
			assert_int_equal(held_hops(client), 0);
			gw_client_close(client);
		}
		setup_end(&setup);
	}
}

/* Rows still come from their owners. */
static void loaders_fetch_rows_from_the_owners(void **state)
{
	(void)state;
	struct setup setup;
	struct plan plan;
	uint64_t expected[EPOCH_MAX], got[EPOCH_MAX];
	lists_begin(&setup, 75, 2, 0);
	struct gw_client *alone = alone_client(&setup), *client = lists_client(&setup, 2);
	make_plan(alone, &plan, false, false);
	uint32_t n = run_epoch(alone, &plan, 1, expected);
	make_plan(client, &plan, false, false);
	static struct gw_service_totals totals;
	assert_int_equal(run_epoch(client, &plan, 1, got), n);
	assert_memory_equal(got, expected, n * sizeof(*got));
	gw_service_totals(setup.cluster.servers[1]->service, &totals);
	for (uint32_t s = 0; s < GW_SERVICE_SCHEMES; s++)
		assert_int_equal(totals.calls[GW_OP_SAMPLE][s].requests, 0);
	assert_true(others_asked(&setup, 0) > 0);
	gw_client_close(client);
	gw_client_close(alone);
	setup_end(&setup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(draws_need_no_other_server),
		cmocka_unit_test(loaders_fetch_rows_from_the_owners),
	};
	return cmocka_run_group_tests(tests, gw_fixture_times_set_up, gw_fixture_times_tear_down);
}
