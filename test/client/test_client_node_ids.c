/* Nodes by their original ids, through the client: standalone, from mapped memory, by requests over each transport, in
 * any order, with doubles, from parts that are empty; what is missing and what several nodes share is named; servers
 * that lie. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "core/numbers/rng.h"
#include "protocol/id_call.h"
#include "protocol/ops.h"
#include "test/support/client_setup.h"
#include "tools/builder/builder.h"
#include "transport/service/service_backend.h"

#define AUTHORS (SETUP_SCALE / 2)

/* The fixture's original ids: an author's is ten times its id and seven; a paper's is "paper-<id>", and every fifth
 * paper's is empty. */
static uint64_t paper_text(char *out, int64_t id)
{
	return id % 5 == 0 ? 0 : (uint64_t)sprintf(out, "paper-%lld", (long long)id);
}

static struct gw_orig_ids paper_ids(const int64_t *papers, uint64_t n, uint64_t *offsets, char *bytes)
{
	offsets[0] = 0;
	for (uint64_t i = 0; i < n; i++)
		offsets[i + 1] = offsets[i] + paper_text(bytes + offsets[i], papers[i]);
	return (struct gw_orig_ids){.count = n, .offsets = offsets, .bytes = bytes};
}

static uint32_t type_of(struct gw_client *client, const char *name)
{
	uint32_t ntype;
	assert_int_equal(gw_node_type(client, name, &ntype), GW_OK);
	return ntype;
}

static void check_papers(struct gw_client *client, uint64_t n, uint64_t seed)
{
	int64_t *papers = calloc(n + 1, sizeof(*papers)), *found = calloc(n + 1, sizeof(*found));
	uint64_t *offsets = calloc(n + 1, sizeof(*offsets)), missing = 9;
	char *bytes = calloc(n + 1, 32);
	for (uint64_t i = 0; i < n; i++) {
		do
			papers[i] = (int64_t)(gw_mix64(seed++) % (SETUP_SCALE + 100)); /* some beyond the last one */
		while (papers[i] % 5 == 0);
	}
	const struct gw_orig_ids ids = paper_ids(papers, n, offsets, bytes);
	if (gw_node_ids(client, type_of(client, "paper"), &ids, found, &missing) != GW_OK)
		fail_msg("%s", gw_last_error());
	for (uint64_t i = 0; i < n; i++) {
		assert_int_equal(found[i], papers[i] < SETUP_SCALE ? papers[i] : -1);
		missing -= found[i] < 0;
	}
	assert_int_equal(missing, 0);
	free(papers);
	free(found);
	free(offsets);
	free(bytes);
}

static void check_authors(struct gw_client *client, uint64_t n)
{
	uint64_t *wide = calloc(n + 1, sizeof(*wide)), missing = 9;
	uint32_t *narrow = calloc(n + 1, sizeof(*narrow)), author = type_of(client, "author");
	int64_t *found = calloc(n + 1, sizeof(*found));
	uint64_t authors = gw_client_graph(client)->ntypes[author].count;
	for (uint64_t i = 0; i < n; i++)
		narrow[i] = (uint32_t)(wide[i] = gw_mix64(i) % (10 * authors + 50));
	static const gw_dtype dtypes[] = {GW_INT64, GW_UINT64, GW_INT32, GW_UINT32};
	for (uint32_t d = 0; d < 4; d++) {
		const struct gw_orig_ids ids = {
			.count = n, .dtype = dtypes[d], .numbers = d < 2 ? (void *)wide : (void *)narrow};
		struct gw_ticket *ticket;
		assert_int_equal(gw_node_ids_start(client, author, &ids, found, &missing, &ticket), GW_OK);
		assert_int_equal(gw_wait(ticket, -1), GW_OK);
		for (uint64_t i = 0; i < n; i++) {
			bool exists = wide[i] % 10 == 7 && wide[i] / 10 < authors;
			assert_int_equal(found[i], exists ? (int64_t)wide[i] / 10 : -1);
			missing -= !exists;
		}
		assert_int_equal(missing, 0);
	}
	free(wide);
	free(narrow);
	free(found);
}

static void check_all(struct gw_client *client)
{
	check_papers(client, 0, 1);
	check_papers(client, 1, 2);
	check_papers(client, 1000, 3);
	check_papers(client, 3 * GW_ID_KEYS_MAX, 4); /* several calls for a server */
	check_authors(client, 0);
	check_authors(client, 5000);
}

static const char *const on_disk[] = {"orig_id"};

static void every_way(void **state)
{
	(void)state;
	for (uint32_t parts = 1; parts <= 3; parts += 2) { /* of three, the middle one is empty */
		struct setup setup;
		setup_begin(&setup, 81, parts, NULL);
		const char *const *list = setup.cluster.list;
		const struct gw_client_options ways[] = {
			{.part_config = setup.fixture.folder, .threads = 1},
			{.part_config = setup.fixture.folder, .threads = 1, .neighbours = "reads"},
			{.part_config = setup.fixture.folder, .threads = 2, .on_disk = on_disk, .on_disk_count = 1},
			{.servers = list, .server_count = parts, .threads = 2},
			{.servers = list,
			 .server_count = parts,
			 .threads = 1,
			 .transport = "tcp",
			 .tcp_driver = "epoll"},
		};
		for (size_t i = 0; i < (cluster_is_rdma() ? 4 : sizeof(ways) / sizeof(ways[0])); i++) {
			struct gw_client *client = open_client(&ways[i]);
			check_all(client);
			gw_client_close(client);
		}
		setup_end(&setup);
	}
}

/* Servers leave the index on disk. */
static void on_the_disk_of_servers(void **state)
{
	(void)state;
	static const char *const offers[] = {"tcp", "shm"};
	for (uint32_t run = 0; run < 2; run++) {
		struct setup setup;
		struct gw_disk_counts counts;
		cluster_leave_on_disk(on_disk[0]);
		cluster_offer(cluster_is_rdma() ? "verbs" : offers[run]);
		setup_begin(&setup, 87 + run, 1 + run, NULL);
		const struct gw_client_options options = {
			.servers = setup.cluster.list, .server_count = 1 + run, .threads = 2};
		struct gw_client *client = open_client(&options);
		check_all(client);
		gw_client_close(client);
		gw_disk_counts(setup.cluster.servers[0]->disk, &counts);
		assert_true(counts.rows > 0);
		setup_end(&setup);
		cluster_offer(NULL);
		cluster_leave_on_disk(NULL);
	}
}

static void mapped(void **state)
{
	(void)state;
	if (cluster_is_rdma())
		skip();
	struct setup setup;
	cluster_offer("shm");
	setup_begin(&setup, 82, 2, NULL);
	const char *const *list = setup.cluster.list;
	const struct gw_client_options options = {.servers = list, .server_count = 2, .threads = 1},
				       asking = {.servers = list,
						 .server_count = 2,
						 .threads = 1,
						 .neighbours = "requests"};
	struct gw_client *client = open_client(&options), *asks = open_client(&asking);
	expect_transport(client, "shm");
	expect_transport(asks, "shm");
	check_all(client);
	check_all(asks);
	gw_client_close(client);
	gw_client_close(asks);
	setup_end(&setup);
	cluster_offer(NULL);
}

static void faults(void **state)
{
	(void)state;
	struct setup setup;
	setup_begin(&setup, 83, 2, NULL);
	const struct gw_client_options ways[] = {
		{.part_config = setup.fixture.folder, .threads = 1},
		{.servers = setup.cluster.list, .server_count = 2, .threads = 1},
		{.part_config = setup.fixture.folder, .threads = 1, .on_disk = on_disk, .on_disk_count = 1},
	};
	for (int w = 0; w < 3; w++) {
		struct gw_client *client = open_client(&ways[w]);
		uint32_t paper = type_of(client, "paper"), author = type_of(client, "author");
		uint32_t venue = type_of(client, "venue");
		int64_t found[8];
		uint64_t offsets[9], missing;
		char bytes[8 * 32];
		const int64_t papers[] = {1, 2, 10};
		struct gw_orig_ids ids = paper_ids(papers, 3, offsets, bytes);
		expect(gw_node_ids(client, paper, &ids, found, NULL), GW_INVALID,
		       "\"\" (position 2) belongs to several nodes of type paper, of them 0");
		expect(gw_node_ids(client, paper, &ids, found, &missing), GW_INVALID, "more than once");
		expect(gw_node_ids(client, author, &ids, found, NULL), GW_INVALID,
		       "are integers, and the call has texts");
		expect(gw_node_ids(client, venue, &ids, found, NULL), GW_UNSUPPORTED, "venue has no index");
		expect(gw_node_ids(client, 99, &ids, found, NULL), GW_RANGE, "node type 99");
		ids = (struct gw_orig_ids){
			.count = 4, .offsets = (const uint64_t[]){0, 7, 10, 11, 15}, .bytes = "paper-0007\t\nxyz"};
		expect(gw_node_ids(client, paper, &ids, found, NULL), GW_NOT_FOUND,
		       "4 of 4 original ids belong to no node of type paper: "
		       "\"paper-0\" (position 0), \"007\" (position 1), \"?\" (position 2), ...");
		ids.offsets = (const uint64_t[]){0, 7, 6, 11, 15};
		expect(gw_node_ids(client, paper, &ids, found, NULL), GW_INVALID, "descend at position 1");
		ids.offsets = (const uint64_t[]){7, 6, 10, 11, 15};
		expect(gw_node_ids(client, paper, &ids, found, NULL), GW_INVALID, "descend at position 0");
		ids.offsets = (const uint64_t[]){0, 7, 10, 11, 10};
		expect(gw_node_ids(client, paper, &ids, found, NULL), GW_INVALID, "descend at position 3");
		const int64_t numbers[] = {7, 17, -3, INT64_MAX, 8};
		ids = (struct gw_orig_ids){.count = 5, .dtype = GW_INT64, .numbers = numbers};
		expect(gw_node_ids(client, author, &ids, found, NULL), GW_NOT_FOUND,
		       "3 of 5 original ids belong to no node of type author: "
		       "-3 (position 2), 9223372036854775807 (position 3), 8 (position 4)");
		expect(gw_node_ids(client, paper, &ids, found, NULL), GW_INVALID,
		       "are texts, and the call has integers");
		ids.dtype = GW_UINT64;
		expect(gw_node_ids(client, author, &ids, found, NULL), GW_NOT_FOUND, "18446744073709551613");
		ids.dtype = GW_FLOAT64;
		expect(gw_node_ids(client, author, &ids, found, NULL), GW_INVALID, "int32, int64, uint32, uint64");
		gw_client_close(client);
	}
	setup_end(&setup);
}

static void a_server_that_is_away(void **state)
{
	(void)state;
	struct setup setup;
	setup_begin(&setup, 86, 2, NULL);
	const struct gw_client_options options = {
		.servers = setup.cluster.list, .server_count = 2, .timeout_ms = 5000, .reconnect_ms = 1};
	struct gw_client *client = open_client(&options);
	uint32_t author = type_of(client, "author");
	cluster_kill(&setup.cluster, 1);
	gw_status status = GW_OK;
	for (int64_t i = 0; i < AUTHORS && status == GW_OK; i++) {
		const int64_t one = i * 10 + 7;
		const struct gw_orig_ids ids = {.count = 1, .dtype = GW_INT64, .numbers = &one};
		int64_t found;
		status = gw_node_ids(client, author, &ids, &found, NULL);
	}
	assert_true(status != GW_OK);
	gw_client_close(client);
	cluster_revive(&setup.cluster, 1);
	setup_end(&setup);
}

/* Dense ids: a permutation, over parts. */
static void dense_ids(void **state)
{
	(void)state;
	char root[64], folder[128];
	enum { NODES = 1000 };
	static int64_t orig[NODES], found[NODES + 1], wanted[NODES + 1];
	struct gw_builder *builder;
	uint32_t ntype;
	const struct gw_builder_options options = {.threads = 1, .quiet = true};
	struct gw_builder_stats stats;
	gw_test_folder(root);
	snprintf(folder, sizeof(folder), "%s/graph", root);
	for (int64_t i = 0; i < NODES; i++)
		orig[i] = (i * 7 + 3) % NODES;
	assert_int_equal(gw_builder_create("dense", &builder), GW_OK);
	assert_int_equal(gw_builder_ntype(builder, "n", &ntype), GW_OK);
	gw_builder_ntype_count(builder, ntype, NODES);
	const struct gw_builder_array array = {
		.name = "orig_id", .dtype = GW_INT64, .ndim = 1, .shape = {NODES}, .data = orig};
	assert_int_equal(gw_builder_node_array(builder, ntype, &array), GW_OK);
	if (gw_builder_write(builder, folder, &options, &stats) != GW_OK)
		fail_msg("%s", gw_last_error());
	gw_builder_destroy(builder);
	struct cluster cluster;
	cluster_begin(&cluster, folder, 1, NULL);
	const struct gw_client_options ways[] = {
		{.part_config = folder, .threads = 1},
		{.servers = cluster.list, .server_count = 1, .threads = 1},
		{.part_config = folder, .threads = 1, .on_disk = on_disk, .on_disk_count = 1},
	};
	for (int w = 0; w < 3; w++) {
		struct gw_client *client = open_client(&ways[w]);
		uint64_t missing;
		for (int64_t i = 0; i < NODES; i++)
			wanted[i] = orig[NODES - 1 - i];
		wanted[NODES] = NODES;
		const struct gw_orig_ids ids = {.count = NODES + 1, .dtype = GW_INT64, .numbers = wanted};
		assert_int_equal(gw_node_ids(client, 0, &ids, found, &missing), GW_OK);
		assert_int_equal(missing, 1);
		for (int64_t i = 0; i < NODES; i++)
			assert_int_equal(found[i], NODES - 1 - i);
		assert_int_equal(found[NODES], -1);
		assert_null(gw_tensor_at(client, 1)); /* the index is no feature */
		gw_client_close(client);
	}
	cluster_end(&cluster);
	assert_int_equal(gw_remove_tree(root), GW_OK);
}

/* --- Lies. --- */

static gw_handler truth;
static void *truth_context;
static _Atomic uint64_t lie; /* 0: the truth */

static gw_status answer_falsely(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	(void)context;
	gw_status status = truth(truth_context, call, reply);
	uint32_t bytes;
	uint8_t *data = gw_reply_data(reply, &bytes);
	if (status != GW_OK || bytes < 8)
		return status;
	const uint64_t now = lie;
	if (now == 1)
		gw_reply_shrink(reply, bytes - 1);
	else if (now == 2)
		return gw_reply_extend(reply, 8) ? GW_OK : GW_NO_MEMORY;
	else if (now > 2)
		memcpy(data + bytes - 8, &now, 8);
	return GW_OK;
}

static void a_lie_is_refused(void **state)
{
	(void)state;
	struct setup setup;
	setup_begin(&setup, 84, 1, NULL);
	struct gw_service *service = setup.cluster.servers[0]->service;
	truth = service->handlers[GW_OP_IDS].call;
	truth_context = service->handlers[GW_OP_IDS].context;
	service->handlers[GW_OP_IDS].call = answer_falsely;
	const struct gw_client_options options = {.servers = setup.cluster.list, .server_count = 1, .threads = 1};
	struct gw_client *client = open_client(&options);
	const uint64_t authors = gw_client_graph(client)->ntypes[type_of(client, "author")].count;
	const uint64_t lies[] = {1, 2, authors, GW_ID_SHARED | authors, GW_ID_MISSING - 1};
	const int64_t numbers[] = {7, 17, 27};
	const struct gw_orig_ids ids = {.count = 3, .dtype = GW_INT64, .numbers = numbers};
	int64_t found[3];
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		lie = lies[i];
		if (lie <= 2 || authors > 2)
			expect(gw_node_ids(client, type_of(client, "author"), &ids, found, NULL), GW_PROTOCOL,
			       "part 0: id reply");
	}
	lie = 0;
	assert_int_equal(gw_node_ids(client, type_of(client, "author"), &ids, found, NULL), GW_OK);
	assert_int_equal(found[2], 2);
	gw_client_close(client);
	setup_end(&setup);
}

static void a_server_without_the_request(void **state)
{
	(void)state;
	struct setup setup;
	setup_begin(&setup, 87, 1, NULL);
	setup.cluster.servers[0]->service->handlers[GW_OP_IDS].call = NULL;
	const struct gw_client_options options = {.servers = setup.cluster.list, .server_count = 1, .threads = 1};
	struct gw_client *client = open_client(&options);
	const int64_t number = 7;
	const struct gw_orig_ids ids = {.count = 1, .dtype = GW_INT64, .numbers = &number};
	int64_t found;
	uint32_t author = type_of(client, "author");
	expect(gw_node_ids(client, author, &ids, &found, NULL), GW_UNSUPPORTED, "no operation 5");
	assert_null(strchr(gw_last_error(), '\n'));
	const struct gw_tensor *tensor = node_tensor(client, "author", "orig_id");
	assert_int_equal(gw_gather(client, tensor, (const int64_t[]){0}, 1, &found), GW_OK);
	assert_int_equal(found, 7);
	gw_client_close(client);
	setup_end(&setup);
}

static gw_status find_some(struct gw_client *client)
{
	const struct gw_orig_ids ids = {.count = 2, .offsets = (const uint64_t[]){0, 7, 14}, .bytes = "paper-4paper-9"};
	int64_t found[2];
	gw_status status = gw_node_ids(client, 0, &ids, found, NULL);
	assert_true(status != GW_OK || (found[0] == 4 && found[1] == 9));
	return status;
}

static void shortage(void **state)
{
	(void)state;
	assert_true(in_short_memory(85, 20, 1, find_some) > 50);
}

/* An error shows at most 64 bytes of an id, in whole characters. */
static void ids_are_cut_between_characters(void **state)
{
	(void)state;
	static const char *const letters[] = {"x", "\u00e9", "\u20ac", "\U0001f600"};
	struct setup setup;
	setup_begin(&setup, 84, 1, NULL);
	const struct gw_client_options options = {.part_config = setup.fixture.folder, .threads = 1};
	struct gw_client *client = open_client(&options);
	for (size_t l = 0; l < sizeof(letters) / sizeof(letters[0]); l++) {
		for (uint64_t before = 0; before < 4; before++) {
			for (uint64_t count = 12; count < 70; count++) {
				uint64_t step = strlen(letters[l]), bytes = before + count * step,
					 offsets[] = {0, bytes};
				uint64_t shown = bytes <= 64 ? bytes : 64 - (64 - before) % step;
				char text[300] = "aaa", expected[100];
				int64_t node;
				for (uint64_t i = 0; i < count; i++)
					memcpy(text + before + i * step, letters[l], step);
				const struct gw_orig_ids ids = {.count = 1, .offsets = offsets, .bytes = text};
				snprintf(expected, sizeof(expected), "\"%.*s%s\" (position 0)", (int)shown, text,
					 bytes > 64 ? "..." : "");
				expect(gw_node_ids(client, type_of(client, "paper"), &ids, &node, NULL), GW_NOT_FOUND,
				       expected);
			}
		}
	}
	gw_client_close(client);
	setup_end(&setup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_are_cut_between_characters),
		cmocka_unit_test(every_way),
		cmocka_unit_test(on_the_disk_of_servers),
		cmocka_unit_test(mapped),
		cmocka_unit_test(faults),
		cmocka_unit_test(a_server_that_is_away),
		cmocka_unit_test(dense_ids),
		cmocka_unit_test(a_lie_is_refused),
		cmocka_unit_test(a_server_without_the_request),
		cmocka_unit_test(shortage),
	};
	return cmocka_run_group_tests_name("client_node_ids", tests, NULL, NULL);
}
