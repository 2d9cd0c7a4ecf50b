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

#include "core/memory/alloc.h"
#include "core/numbers/digest.h"
#include "core/numbers/rng.h"
#include "protocol/ops.h"
#include "test/support/alloc_fault.h"
#include "test/support/client_paths.h"
#include "test/support/client_setup.h"
#include "test/support/drawn.h"
#include "test/support/mappings.h"
#include "test/support/must.h"
#include "test/support/part_files.h"
#include "transport/service/service.h"

/* --- Servers: part `host` is on this host and holds all lists; the others offer nothing but TCP. --- */

static void restart(struct setup *setup, uint32_t part, const char *transport, enum gw_server_lists lists)
{
	bool is_mapped = setup->cluster.servers[part]->local != NULL;
	cluster_kill(&setup->cluster, part);
	if (is_mapped)
		mappings_wait(0); /* clients have seen it end, and no other server is mapped */
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
		drawn_begin();
		struct gw_client *alone = alone_client(&setup);
		draw_all(&expected, alone);
		gw_client_close(alone);
		for (uint32_t threads = 1; threads <= 3; threads += 2) {
			struct gw_client *client = lists_client(&setup, threads);
			assert_string_equal(gw_part_transport(client, host), "shm");
			assert_string_equal(gw_part_transport(client, host == 0), cluster_far());
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
		for (size_t o = 0; o < (cluster_is_rdma() ? 2 : 3); o++) {
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
	assert_true(cluster_is_rdma() || others_asked(&setup, 0) > 0); /* of rows: over RDMA, they are read */
	gw_client_close(client);
	gw_client_close(alone);
	setup_end(&setup);
}

/* --- Servers that come and go. --- */

static void expect_draws(struct gw_client *client, const struct setup *setup, const struct drawn *expected, bool held)
{
	struct drawn got;
	uint64_t hops = held_hops(client), asked = others_asked(setup, 1);
	draw_all(&got, client);
	expect_same(&got, expected);
	assert_int_equal(held_hops(client) > hops, held);
	assert_int_equal(others_asked(setup, 1) > asked, !held);
}

/* A row of the host's own part: the client connects to its server again. */
static void touch(struct gw_client *client)
{
	const struct gw_tensor *feat = node_tensor(client, "paper", "feat");
	int64_t last = SETUP_SCALE - 1;
	uint8_t row[64];
	assert_true(feat->row_bytes <= sizeof(row));
	must(gw_gather(client, feat, &last, 1, row));
}

static void the_server_of_the_lists_comes_and_goes(void **state)
{
	(void)state;
	struct setup setup;
	struct drawn expected;
	lists_begin(&setup, 77, 2, 1);
	drawn_begin();
	struct gw_client *alone = alone_client(&setup), *client = lists_client(&setup, 1);
	draw_all(&expected, alone);
	gw_client_close(alone);
	expect_draws(client, &setup, &expected, true);
	/* The owner of other lists may restart meanwhile. */
	restart(&setup, 0, NULL, GW_SERVER_LISTS_OWN);
	expect_draws(client, &setup, &expected, true);
	restart(&setup, 1, "shm", GW_SERVER_LISTS_OWN);
	expect_draws(client, &setup, &expected, false);
	restart(&setup, 1, "shm", GW_SERVER_LISTS_ALL);
	touch(client);
	expect_draws(client, &setup, &expected, true);
	restart(&setup, 1, NULL, GW_SERVER_LISTS_ALL); /* as on another host */
	expect_draws(client, &setup, &expected, false);
	gw_client_close(client);
	setup_end(&setup);
}

/* Lost while a loader has batches in progress. */
static void a_loader_goes_on_without_the_lists(void **state)
{
	(void)state;
	struct setup setup;
	struct plan plan;
	uint64_t expected[EPOCH_MAX];
	lists_begin(&setup, 78, 2, 1);
	struct gw_client *alone = alone_client(&setup), *client = lists_client(&setup, 2);
	make_plan(alone, &plan, false, false);
	uint32_t n = run_epoch(alone, &plan, 1, expected);
	make_plan(client, &plan, false, false);
	struct gw_loader *loader = open_loader(client, &plan, (struct gw_loader_state){.epoch = 1});
	for (uint32_t b = 0; b < n; b++) {
		struct gw_minibatch *batch;
		if (b == n / 3 || b == 2 * n / 3)
			restart(&setup, 1, "shm", b == n / 3 ? GW_SERVER_LISTS_OWN : GW_SERVER_LISTS_ALL);
		must(gw_loader_next(loader, &batch, -1));
		assert_true(gw_minibatch_digest(batch) == expected[b]);
		gw_minibatch_release(batch);
	}
	gw_loader_close(loader);
	gw_client_close(client);
	gw_client_close(alone);
	setup_end(&setup);
}

/* serve --take-over: the successor finds the lists in the memory that it takes. */
static void a_successor_holds_them_too(void **state)
{
	(void)state;
	struct setup setup;
	struct drawn expected;
	lists_begin(&setup, 79, 2, 1);
	drawn_begin();
	struct gw_client *alone = alone_client(&setup), *client = lists_client(&setup, 1);
	draw_all(&expected, alone);
	gw_client_close(alone);
	expect_draws(client, &setup, &expected, true);
	setup.cluster.transport = "shm";
	setup.cluster.lists = GW_SERVER_LISTS_ALL;
	uint32_t mapped = mappings_of_clients();
	cluster_replace(&setup.cluster, 1);
	/* The client has seen the first server end. The successor maps what it took as clients do. */
	mappings_wait(mapped);
	touch(client);
	expect_draws(client, &setup, &expected, true);
	struct gw_client *other = lists_client(&setup, 2);
	expect_draws(other, &setup, &expected, true);
	gw_client_close(other);
	gw_client_close(client);
	setup_end(&setup);
}

/* --- What is refused. --- */

static void expect_no_server(const struct setup *setup, gw_status wanted, const char *text)
{
	struct gw_server *server;
	struct gw_server_options options = {.part_config = setup->fixture.folder,
					    .part = 1,
					    .listen = setup->cluster.addresses[0],
					    .threads = 1,
					    .numa = GW_NUMA_LOCAL,
					    .huge = GW_HUGE_OFF,
					    .insecure = true,
					    .lists = GW_SERVER_LISTS_ALL,
					    .transport = "tcp"};
	options.listen.port = 0;
	expect(gw_server_start(&options, &server), wanted, text);
	assert_null(server);
	assert_null(strchr(gw_last_error(), '\n'));
}

/* Lists that are missing, cut, damaged, or of another version of the graph, are refused when the server loads; rows of
 * other parts need not be there. */
static void bad_lists_are_refused(void **state)
{
	(void)state;
	static const char *const names[] = {"part0/edge/paper__cites__paper/indices",
					    "part0/edge/paper__cites__paper/weight.alias", "part0/node/paper/indptr"};
	struct setup setup;
	struct gw_fixture other;
	gw_fixture_begin(&setup.fixture, 80, SETUP_SCALE, 2);
	gw_fixture_write(&setup.fixture);
	cluster_begin(&setup.cluster, setup.fixture.folder, 2, NULL);
	cluster_kill(&setup.cluster, 1);
	gw_fixture_begin(&other, 81, SETUP_SCALE, 2);
	gw_fixture_write(&other);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct part_file file = {0}, digests = {0}, others = {0};
		char npy[128], xxh[128];
		snprintf(npy, sizeof(npy), "%s.npy", names[i]);
		snprintf(xxh, sizeof(xxh), "%s.xxh", names[i]);
		part_file_take(&file, setup.fixture.folder, npy);
		part_file_take(&digests, setup.fixture.folder, xxh);
		assert_int_equal(unlink(file.path), 0);
		expect_no_server(&setup, GW_NOT_FOUND, "--lists all: part 0: ");
		expect_no_server(&setup, GW_NOT_FOUND, "copy_files.py --lists copies them, or: rsync -a HOST:");
		part_file_put(&file, file.bytes - 5);
		expect_no_server(&setup, GW_FORMAT, "truncated");
		file.data[file.bytes - 3] ^= 4;
		part_file_put(&file, file.bytes);
		expect_no_server(&setup, GW_DIGEST, names[i]);
		file.data[file.bytes - 3] ^= 4;
		part_file_put(&file, file.bytes);
		part_file_take(&others, other.folder, xxh);
		memcpy(others.path, digests.path, sizeof(others.path));
		part_file_put(&others, others.bytes);
		expect_no_server(&setup, GW_DIGEST, "of another graph");
		part_file_put(&digests, digests.bytes);
		free(others.data);
		free(digests.data);
		free(file.data);
	}
	char rows[256];
	snprintf(rows, sizeof(rows), "%s/part0/node/paper/feat.npy", setup.fixture.folder);
	assert_int_equal(unlink(rows), 0);
	setup.cluster.lists = GW_SERVER_LISTS_ALL;
	setup.cluster.transport = "shm";
	cluster_revive(&setup.cluster, 1);
	assert_int_equal(setup.cluster.servers[1]->list_count, 1);
	gw_fixture_end(&other);
	setup_end(&setup);
}

/* --- False answers. --- */

static void say(struct setup *setup, char *text)
{
	struct gw_server *server = setup->cluster.servers[1];
	gw_free(server->catalogs[GW_CATALOG_LISTS]);
	server->catalogs[GW_CATALOG_LISTS] = text;
}

/* The true answer, with `from` replaced by `to` where it first stands after a key. */
static char *edited(const char *text, const char *after, const char *from, const char *to)
{
	const char *at = strstr(text, after);
	at = at ? strstr(at, from) : NULL;
	assert_non_null(at);
	return gw_format("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

/* Places outside of the server's memory, and answers that are no catalog, are errors; lists of another graph are not
 * used, and neither is a part whose lists are not all there. */
static void false_answers_are_not_believed(void **state)
{
	(void)state;
	struct setup setup;
	struct drawn expected;
	lists_begin(&setup, 82, 2, 1);
	/* The thread sanitizer sees the order of calls of sockets; it does not see that of io_uring. */
	setup.cluster.driver = "epoll";
	restart(&setup, 1, "shm", GW_SERVER_LISTS_ALL);
	drawn_begin();
	struct gw_client *alone = alone_client(&setup);
	draw_all(&expected, alone);
	gw_client_close(alone);
	const struct gw_client_options options = {.servers = setup.cluster.list,
						  .server_count = 2,
						  .threads = 1,
						  .timeout_ms = patient_ms(500),
						  .tcp_driver = "epoll"};
	char *answer = gw_strdup(setup.cluster.servers[1]->catalogs[GW_CATALOG_LISTS]);
	say(&setup, gw_strdup("{}"));
	expect_no_client(options, GW_PROTOCOL, "no list of fewer than 2 parts");
	say(&setup, edited(answer, "cites__paper/indices", "\",0,", "\",7,"));
	expect_no_client(options, GW_PROTOCOL, "outside of its regions");
	say(&setup, edited(answer, "cites__paper/indices", "\",0,", "\",0,9"));
	expect_no_client(options, GW_PROTOCOL, "outside of its regions");
	const char *const names[] = {"indices\"", "indptr\""};
	for (size_t i = 0; i < 2; i++) {
		char *renamed = gw_format("%.*sx\"", (int)strlen(names[i]) - 1, names[i]);
		say(&setup, edited(answer, i ? "node/paper" : "cites__paper", names[i], renamed));
		gw_free(renamed);
		struct gw_client *client = open_client(&options);
		expect_draws(client, &setup, &expected, false);
		gw_client_close(client);
	}
	/* The same arrays with another digest. */
	char *other = gw_strdup(answer), *digest = strstr(strstr(other, "cites__paper/indices"), "],\"") + 3;
	*digest = *digest == '0' ? '1' : '0';
	say(&setup, other);
	struct gw_client *client = open_client(&options);
	expect_draws(client, &setup, &expected, false);
	gw_client_close(client);
	/* No lists at all. */
	say(&setup, gw_strdup("{\"lists\":[]}"));
	client = open_client(&options);
	expect_draws(client, &setup, &expected, false);
	gw_client_close(client);
	gw_free(answer);
	setup_end(&setup);
}

/* A client whose memory is short asks the owners, or says so. */
static void memory_of_a_client_is_short(void **state)
{
	(void)state;
	struct setup setup;
	struct drawn expected, got;
	gw_fault_begin(GW_FAULT_NEVER);
	lists_begin(&setup, 83, 2, 1);
	drawn_begin();
	struct gw_client *alone = alone_client(&setup), *client;
	draw_all(&expected, alone);
	gw_client_close(alone);
	struct gw_client_options options = {.servers = setup.cluster.list, .server_count = 2, .threads = 1};
	bool met = true;
	uint32_t opened = 0, refused = 0;
	for (unsigned long n = 1; met; n += gw_fault_step(n)) {
		gw_fault_here(n);
		gw_status status = gw_client_open(&options, &client);
		met = gw_fault_here(GW_FAULT_NEVER);
		if (status != GW_OK) {
			assert_int_equal(status, GW_NO_MEMORY);
			refused++;
			continue;
		}
		opened++;
		got.count = 0;
		draw_batches(&got, client);
		assert_memory_equal(got.digests, expected.digests, got.count * sizeof(got.digests[0]));
		gw_client_close(client);
	}
	assert_true(opened > 0 && refused > 20);
	setup_end(&setup);
	assert_int_equal(gw_fault_end(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(draws_need_no_other_server),
		cmocka_unit_test(loaders_fetch_rows_from_the_owners),
		cmocka_unit_test(the_server_of_the_lists_comes_and_goes),
		cmocka_unit_test(a_loader_goes_on_without_the_lists),
		cmocka_unit_test(a_successor_holds_them_too),
		cmocka_unit_test(bad_lists_are_refused),
		cmocka_unit_test(false_answers_are_not_believed),
		cmocka_unit_test(memory_of_a_client_is_short),
	};
	return cmocka_run_group_tests(tests, gw_fixture_times_set_up, gw_fixture_times_tear_down);
}
