/* Clients that map the memory of all their servers or of some: the same bytes as standalone, also when a server
 * restarts on another host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "core/system/clock.h"
#include "test/support/client_setup.h"
#include "test/support/many.h"
#include "test/support/mappings.h"

static uint32_t epoch_of(const struct gw_client_options *options, uint64_t *digests)
{
	struct gw_client *client = open_client(options);
	struct plan plan;
	make_plan(client, &plan, false, false);
	uint32_t n = run_epoch(client, &plan, 1, digests);
	gw_client_close(client);
	return n;
}

static void compare_epochs(const struct gw_client_options *options, const uint64_t *expected, uint32_t n)
{
	uint64_t got[EPOCH_MAX];
	assert_int_equal(epoch_of(options, got), n);
	for (uint32_t b = 0; b < n; b++)
		assert_true(got[b] == expected[b]);
}

/* One part is mapped, the other one is remote. A client that requests one transport gets it, or an error with the
 * reason. */
static void some_are_mapped(void **state)
{
	(void)state;
	struct setup setup;
	uint64_t expected[EPOCH_MAX];
	setup_begin(&setup, 61, 2, NULL);
	struct gw_client_options alone = {.part_config = setup.fixture.folder, .threads = 1};
	struct gw_client_options both = {.servers = setup.cluster.list, .server_count = 2, .threads = 2};
	uint32_t n = epoch_of(&alone, expected);

	struct gw_client_options tcp = both, shm = both;
	tcp.transport = "tcp";
	shm.transport = "shm";
	struct gw_client *client = open_client(&tcp);
	expect_transport(client, "tcp");
	gw_client_close(client);
	client = open_client(&shm);
	expect_transport(client, "shm");
	gw_client_close(client);
	compare_epochs(&tcp, expected, n);
	compare_epochs(&shm, expected, n);

	cluster_kill(&setup.cluster, 1);
	setup.cluster.transport = NULL;
	cluster_revive(&setup.cluster, 1);
	client = open_client(&both);
	assert_string_equal(gw_part_transport(client, 0), "shm");
	assert_string_equal(gw_part_transport(client, 1), "tcp");
	gw_client_close(client);
	compare_epochs(&both, expected, n);
	both.threads = 1;
	both.neighbours = "reads";
	compare_epochs(&both, expected, n);
	both.neighbours = "requests";
	compare_epochs(&both, expected, n);
	shm.timeout_ms = patient_ms(500);
	expect_no_client(shm, GW_PEER_LOST, "on this host");
	shm.transport = "pigeon";
	expect(gw_client_open(&shm, &client), GW_INVALID, "transport");
	setup_end(&setup);
}

static void a_mapped_server_becomes_a_remote_one(void **state)
{
	(void)state;
	struct setup setup;
	uint64_t expected[EPOCH_MAX];
	setup_begin(&setup, 62, 2, NULL);
	struct gw_client_options alone = {.part_config = setup.fixture.folder, .threads = 1};
	struct gw_client_options both = {.servers = setup.cluster.list, .server_count = 2, .threads = 2};
	uint32_t n = epoch_of(&alone, expected);
	struct gw_client *client = open_client(&both);
	struct plan plan;
	make_plan(client, &plan, false, false);
	struct gw_loader *loader = open_loader(client, &plan, (struct gw_loader_state){.epoch = 1});
	for (uint32_t b = 0; b < n; b++) {
		struct gw_minibatch *batch;
		if (b == n / 3 || b == 2 * n / 3) {
			cluster_kill(&setup.cluster, 1);
			setup.cluster.transport = b != n / 3 ? "shm" : NULL;
			cluster_revive(&setup.cluster, 1);
		}
		if (gw_loader_next(loader, &batch, -1) != GW_OK)
			fail_msg("batch %u: %s", b, gw_last_error());
		assert_true(gw_minibatch_digest(batch) == expected[b]);
		gw_minibatch_release(batch);
	}
	gw_loader_close(loader);
	gw_client_close(client);
	setup_end(&setup);
}

/* Whichever of its engines were connected. */
static void an_idle_client_unmaps_memory(void **state)
{
	(void)state;
	enum { ENGINES = 3 };
	struct setup setup;
	setup_begin(&setup, 63, 2, NULL);
	struct gw_client_options options = {
		.servers = setup.cluster.list, .server_count = 2, .threads = ENGINES, .transport = "shm"};
	struct gw_client *client = open_client(&options);
	const struct gw_tensor *feat = node_tensor(client, "paper", "feat");
	int64_t ids[] = {0, SETUP_SCALE - 1}; /* of both parts */
	uint8_t before[2][64], after[2][64];
	assert_true(feat->row_bytes <= sizeof(before[0]));
	for (int i = 0; i < ENGINES; i++) /* in turn */
		assert_int_equal(gw_gather(client, feat, ids, 2, before), GW_OK);
	assert_int_equal(mappings_of_clients(), 2);
	cluster_kill(&setup.cluster, 1);
	mappings_wait(1);
	assert_int_equal(gw_gather(client, feat, ids, 1, after), GW_OK);
	cluster_kill(&setup.cluster, 0);
	mappings_wait(0);
	cluster_revive(&setup.cluster, 0);
	cluster_revive(&setup.cluster, 1);
	for (int i = 0; i < ENGINES; i++) {
		memset(after, 0, sizeof(after));
		assert_int_equal(gw_gather(client, feat, ids, 2, after), GW_OK);
		assert_memory_equal(after, before, 2 * feat->row_bytes);
	}
	assert_int_equal(mappings_of_clients(), 2);
	gw_client_close(client);
	assert_int_equal(mappings_of_clients(), 0);
	setup_end(&setup);
}

/* A long list of rows in reach takes several slices. The rows are those that a server sends; a bad id in any slice is
 * named; a list that is cancelled between two slices ends, and the client goes on. */
static void long_lists_take_slices(void **state)
{
	(void)state;
	enum { ROWS = 700000 };
	struct setup setup;
	setup_begin(&setup, 64, 2, NULL);
	struct gw_client_options options = {
		.servers = setup.cluster.list, .server_count = 2, .threads = 1, .transport = "tcp"};
	struct gw_client_options alone = {.part_config = setup.fixture.folder, .threads = 1};
	struct gw_client *sent = open_client(&options);
	options.transport = "shm";
	struct gw_client *clients[] = {open_client(&options), open_client(&alone)};
	const struct gw_tensor *feat = node_tensor(sent, "paper", "feat");
	uint64_t bytes = ROWS * feat->row_bytes, nodes = feat->shape[0];
	int64_t *ids = malloc(ROWS * sizeof(*ids));
	uint8_t *expected = malloc(bytes), *rows = malloc(bytes);
	assert_true(ids && expected && rows);
	for (uint64_t i = 0; i < ROWS; i++)
		ids[i] = (int64_t)(gw_mix64(i) % nodes);
	assert_int_equal(gw_gather(sent, feat, ids, ROWS, expected), GW_OK);
	for (int c = 0; c < 2; c++) {
		const struct gw_tensor *tensor = node_tensor(clients[c], "paper", "feat");
		memset(rows, 0, bytes);
		assert_int_equal(gw_gather(clients[c], tensor, ids, ROWS, rows), GW_OK);
		assert_memory_equal(rows, expected, bytes);
		ids[ROWS - 2] = (int64_t)nodes;
		expect(gw_gather(clients[c], tensor, ids, ROWS, rows), GW_RANGE, "position 699998");
		ids[ROWS - 2] = (int64_t)(gw_mix64(ROWS - 2) % nodes);
		struct gw_ticket *ticket;
		assert_int_equal(gw_gather_start(clients[c], tensor, ids, ROWS, rows, &ticket), GW_OK);
		gw_cancel(ticket); /* the copies may have been faster */
		assert_int_equal(gw_gather(clients[c], tensor, ids, 1000, rows), GW_OK);
		assert_memory_equal(rows, expected, 1000 * feat->row_bytes);
		gw_client_close(clients[c]);
	}
	gw_client_close(sent);
	free(ids);
	free(rows);
	free(expected);
	setup_end(&setup);
}

enum { DIVIDED_ROWS = 400000 };

/* Ids, the rows that a server sends for them, and memory for rows. */
struct row_list {
	int64_t ids[DIVIDED_ROWS];
	uint8_t *expected, *rows;
	uint64_t bytes, row_bytes, nodes;
};

static struct row_list *make_list(struct gw_client *sent, const char *ntype, const char *name)
{
	const struct gw_tensor *tensor = node_tensor(sent, ntype, name);
	struct row_list *list = malloc(sizeof(*list));
	assert_non_null(list);
	list->nodes = tensor->shape[0];
	list->row_bytes = tensor->row_bytes;
	list->bytes = DIVIDED_ROWS * tensor->row_bytes;
	list->expected = malloc(list->bytes);
	list->rows = malloc(list->bytes);
	assert_true(list->expected && list->rows);
	for (uint64_t i = 0; i < DIVIDED_ROWS; i++)
		list->ids[i] = (int64_t)(gw_mix64(i) % list->nodes);
	assert_int_equal(gw_gather(sent, tensor, list->ids, DIVIDED_ROWS, list->expected), GW_OK);
	return list;
}

static void free_list(struct row_list *list)
{
	free(list->expected);
	free(list->rows);
	free(list);
}

static void serve_remotely(struct setup *setup, uint32_t part)
{
	cluster_kill(&setup->cluster, part);
	setup->cluster.transport = NULL;
	cluster_revive(&setup->cluster, part);
	setup->cluster.transport = "shm";
}

/* Lists of which some rows are in reach and others are not, of every length around the sizes of pieces and blocks, with
 * one and with two remote parts (part 1 has no papers): the rows are those that a server sends, and a bad id is named
 * wherever it is. */
static void lists_are_divided(void **state)
{
	(void)state;
	static const uint64_t counts[] = {1, 2, 63, 64, 65, 1023, 1024, 1025, 2047, 2049, 6200, 50001, DIVIDED_ROWS};
	struct setup setup;
	setup_begin(&setup, 65, 4, NULL);
	struct gw_client_options options = {
		.servers = setup.cluster.list, .server_count = 4, .threads = 1, .transport = "tcp"};
	struct gw_client *sent = open_client(&options);
	struct row_list *lists[] = {make_list(sent, "paper", "feat"), make_list(sent, "paper", "label")};
	options.transport = NULL;
	for (uint32_t remote = 2; remote <= 3; remote++) {
		serve_remotely(&setup, remote);
		struct gw_client *client = open_client(&options);
		assert_string_equal(gw_part_transport(client, 0), "shm");
		assert_string_equal(gw_part_transport(client, remote), "tcp");
		for (uint32_t l = 0; l < 2; l++) {
			struct row_list *list = lists[l];
			const struct gw_tensor *tensor = node_tensor(client, "paper", l ? "label" : "feat");
			for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
				uint64_t n = counts[c], bad = gw_mix64(c) % n;
				memset(list->rows, 0, n * list->row_bytes);
				assert_int_equal(gw_gather(client, tensor, list->ids, n, list->rows), GW_OK);
				assert_memory_equal(list->rows, list->expected, n * list->row_bytes);
				int64_t id = list->ids[bad];
				char position[40];
				snprintf(position, sizeof(position), "position %llu", (unsigned long long)bad);
				list->ids[bad] = (int64_t)list->nodes;
				expect(gw_gather(client, tensor, list->ids, n, list->rows), GW_RANGE, position);
				list->ids[bad] = id;
			}
		}
		gw_client_close(client);
	}
	free_list(lists[0]);
	free_list(lists[1]);
	gw_client_close(sent);
	setup_end(&setup);
}

/* A server that is mapped has ended, which the client learns while it copies a long list: one in 61 polls looks at idle
 * connections (transport/poll_group.c), and a slice copies 2^17 rows. The next server is remote. The rows are those
 * that a server sends. */
static void lose_memory(const char *name, gw_dtype convert)
{
	const uint64_t repeats = gw_many(30), all_rows = repeats * DIVIDED_ROWS;
	struct setup setup;
	setup_begin(&setup, 66, 4, NULL);
	struct gw_client_options options = {
		.servers = setup.cluster.list, .server_count = 4, .threads = 1, .transport = "tcp"};
	struct gw_client *sent = open_client(&options);
	struct row_list *list = make_list(sent, "paper", name);
	const uint64_t bytes = gw_converted_bytes(node_tensor(sent, "paper", name), convert) * DIVIDED_ROWS;
	int64_t *ids = malloc(all_rows * sizeof(*ids));
	uint8_t *rows = malloc(repeats * bytes), *expected = malloc(bytes);
	assert_true(ids && rows && expected);
	assert_int_equal(
		gw_gather_as(sent, node_tensor(sent, "paper", name), convert, list->ids, DIVIDED_ROWS, expected),
		GW_OK);
	for (uint64_t i = 0; i < repeats; i++)
		memcpy(ids + i * DIVIDED_ROWS, list->ids, sizeof(list->ids));
	options.transport = NULL;
	for (int round = 0; round < 2; round++) {
		if (round == 1)
			serve_remotely(&setup, 3); /* the list is divided from the start */
		struct gw_client *client = open_client(&options);
		const struct gw_tensor *tensor = node_tensor(client, "paper", name);
		struct gw_ticket *ticket;
		memset(rows, 0, repeats * bytes);
		cluster_kill(&setup.cluster, 2);
		assert_int_equal(gw_gather_as_start(client, tensor, convert, ids, all_rows, rows, &ticket), GW_OK);
		setup.cluster.transport = NULL;
		cluster_revive(&setup.cluster, 2);
		setup.cluster.transport = "shm";
		assert_int_equal(gw_wait(ticket, -1), GW_OK);
		for (uint64_t i = 0; i < repeats; i++)
			assert_memory_equal(rows + i * bytes, expected, bytes);
		gw_client_close(client);
		cluster_kill(&setup.cluster, 2);
		cluster_revive(&setup.cluster, 2); /* mapped again */
	}
	free(ids);
	free(rows);
	free(expected);
	free_list(list);
	gw_client_close(sent);
	setup_end(&setup);
}

static void memory_is_lost_between_slices(void **state)
{
	(void)state;
	lose_memory("label", 0);
	lose_memory("feat", GW_FLOAT64); /* rows that land behind those that are converted already */
	lose_memory("feat", GW_FLOAT16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(some_are_mapped),
		cmocka_unit_test(a_mapped_server_becomes_a_remote_one),
		cmocka_unit_test(an_idle_client_unmaps_memory),
		cmocka_unit_test(long_lists_take_slices),
		cmocka_unit_test(lists_are_divided),
		cmocka_unit_test(memory_is_lost_between_slices),
	};
	cluster_offer("shm");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
