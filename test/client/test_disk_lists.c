/* Lists and columns of edges that stay on disk, of servers over every transport and of standalone clients: all draws
 * and look-ups have the bytes of lists in memory; faults of files, servers, clients and memory. The oracle is a
 * standalone client that has loaded everything. */
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <graphwire/edges.h>

#include "test/support/alloc_fault.h"
#include "test/support/drawn.h"
#include "test/support/must.h"

#define PARTS 3

static struct gw_client *open_files(const struct setup *setup)
{
	const struct gw_client_options options = {.part_config = setup->fixture.folder, .threads = 1};
	return open_client(&options);
}

static struct gw_client *open_servers(const struct setup *setup, uint32_t parts)
{
	const struct gw_client_options options = {.servers = setup->cluster.list, .server_count = parts, .threads = 2};
	return open_client(&options);
}

static void begin(struct setup *setup, uint64_t seed, uint32_t parts, const char *offer)
{
	cluster_leave_on_disk("lists");
	cluster_leave_on_disk("offsets");
	cluster_leave_on_disk("orig_id");
	cluster_offer(offer);
	setup_begin(setup, seed, parts, NULL);
	drawn_begin();
}

static void finish(struct setup *setup)
{
	setup_end(setup);
	cluster_offer(NULL);
	cluster_leave_on_disk(NULL);
}

static struct gw_disk_counts counts_of(const struct setup *setup, uint32_t part)
{
	struct gw_disk_counts counts;
	gw_disk_counts(setup->cluster.servers[part]->disk, &counts);
	return counts;
}

/* Edges' features, original ids and their inverse are fetched as before. */
static void same_tensors(const struct setup *setup, uint32_t parts, struct gw_client *files)
{
	struct gw_client *client = open_servers(setup, parts);
	const struct gw_tensor *tensor;
	for (uint32_t t = 0; (tensor = gw_tensor_at(client, t)); t++) {
		const uint64_t n = tensor->shape[0];
		int64_t *ids = malloc(n * sizeof(*ids) + 1);
		uint8_t *rows = malloc(n * tensor->row_bytes + 1), *expected = malloc(n * tensor->row_bytes + 1);
		for (uint64_t i = 0; i < n; i++)
			ids[i] = (int64_t)(n - 1 - i);
		must(gw_gather(client, tensor, ids, n, rows));
		must(gw_gather(files, gw_tensor_at(files, t), ids, n, expected));
		assert_memory_equal(rows, expected, n * tensor->row_bytes);
		free(ids);
		free(rows);
		free(expected);
	}
	gw_client_close(client);
}

/* Their columns too; together with rows or offsets; columns alone, and offsets alone. */
static const char *const of_lists[][3] = {{"lists", NULL},
					  {"lists", "feat", NULL},
					  {"year", "weight", NULL},
					  {"lists", "offsets", NULL},
					  {"offsets", NULL}};
#define NAMES (sizeof(of_lists) / sizeof(of_lists[0]))

static struct gw_client *open_lists_on_disk(const struct setup *setup, const char *const *names, uint32_t threads)
{
	uint32_t count = 0;
	while (names[count])
		count++;
	const struct gw_client_options options = {.part_config = setup->fixture.folder,
						  .threads = threads,
						  .on_disk = names,
						  .on_disk_count = count,
						  .disk_cache = GW_DISK_CACHE_MIN};
	return open_client(&options);
}

static void same_draws(struct gw_client *client, const struct drawn *expected)
{
	struct drawn got;
	draw_all(&got, client);
	expect_same(&got, expected);
	gw_client_close(client);
}

static void lists_on_disk_give_the_bytes(void **state)
{
	(void)state;
	static const char *const offers[] = {"tcp", "shm", NULL}, *const ways[] = {NULL, "reads", "requests"};
	for (uint32_t run = 0; run < 2 * NAMES; run++) {
		struct setup setup;
		struct drawn expected;
		const uint32_t parts = run % 2 ? PARTS : 1;
		const char *const *names = of_lists[run % NAMES];
		for (uint32_t i = 0; names[i]; i++)
			cluster_leave_on_disk(names[i]);
		cluster_offer(cluster_is_rdma() ? "verbs" : offers[run / 2 % 3]);
		setup_begin(&setup, 610 + run, parts, NULL);
		drawn_begin();
		struct gw_client *files = open_files(&setup);
		draw_all(&expected, files);
		for (uint32_t threads = 1; threads <= 3; threads += 2)
			same_draws(open_lists_on_disk(&setup, names, threads), &expected);
		for (uint32_t way = 0; way < 3; way++) {
			const struct gw_client_options options = {.servers = setup.cluster.list,
								  .server_count = parts,
								  .threads = 1 + way,
								  .neighbours = ways[way]};
			same_draws(open_client(&options), &expected);
		}
		same_tensors(&setup, parts, files);
		assert_true(counts_of(&setup, 0).reads > 0);
		gw_client_close(files);
		finish(&setup);
	}
}

/* A server of one host holds the lists that another one leaves on disk. */
static void lists_are_held_by_another(void **state)
{
	(void)state;
	struct setup setup;
	struct drawn expected;
	cluster_leave_on_disk("lists");
	cluster_leave_on_disk("offsets");
	cluster_offer("shm");
	setup_begin(&setup, 628, PARTS, NULL);
	cluster_leave_on_disk(NULL);
	setup.cluster.lists = GW_SERVER_LISTS_ALL;
	cluster_kill(&setup.cluster, 0);
	cluster_revive(&setup.cluster, 0);
	drawn_begin();
	struct gw_client *files = open_files(&setup);
	draw_all(&expected, files);
	gw_client_close(files);
	same_draws(open_servers(&setup, PARTS), &expected);
	assert_int_equal(counts_of(&setup, 1).rows, 0);
	finish(&setup);
}

/* A server that holds the lists of all parts leaves its own columns on disk. */
static void columns_stay_beside_held_lists(void **state)
{
	(void)state;
	struct setup setup;
	struct drawn expected;
	cluster_leave_on_disk("year");
	cluster_leave_on_disk("weight");
	cluster_offer("shm");
	setup_begin(&setup, 629, PARTS, NULL);
	setup.cluster.lists = GW_SERVER_LISTS_ALL;
	cluster_kill(&setup.cluster, 0);
	cluster_revive(&setup.cluster, 0);
	drawn_begin();
	struct gw_client *files = open_files(&setup);
	draw_all(&expected, files);
	gw_client_close(files);
	same_draws(open_servers(&setup, PARTS), &expected);
	assert_true(counts_of(&setup, 0).rows > 0);
	finish(&setup);
}

/* --- faults --- */

static void file_of(const struct setup *setup, const char *key, char path[512])
{
	const struct gw_graph_meta *meta = setup->cluster.servers[0]->meta;
	snprintf(path, 512, "%s/%s", meta->folder, gw_meta_array(meta, 0, key)->file);
}

/* From now on reads of the open file fail with EIO: /proc/self/mem stands for it, whose lowest pages are not mapped.
 * The names of descriptors are read, because threads open and close others meanwhile. */
static void lose_medium(const char *path)
{
	char wanted[PATH_MAX], link[64], found[PATH_MAX];
	int mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC), swapped = 0;
	assert_true(mem >= 0);
	assert_non_null(realpath(path, wanted));
	for (int fd = 3; fd < 1024; fd++) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		ssize_t length = readlink(link, found, sizeof(found) - 1);
		found[length > 0 ? length : 0] = 0;
		if (strcmp(found, wanted) == 0)
			swapped += dup2(mem, fd) == fd;
	}
	assert_true(swapped > 0);
	close(mem);
}

/* A file that is cut, or whose medium fails, while it is served: what needs it names it and the place, and everything
 * else goes on. */
static void bad_files(void **state)
{
	(void)state;
	struct setup setup;
	char path[512];
	const int64_t ids[] = {0, 1, 2, 3}, edge = 7;
	int64_t degrees[4], src, dst;
	struct gw_edge_list *list;
	begin(&setup, 632, 1, "tcp");
	struct gw_client *client = open_servers(&setup, 1);
	file_of(&setup, "edge/paper__cites__paper/indices", path);
	assert_int_equal(truncate(path, 4096 + 200), 0);
	const struct gw_neighbours_spec all = {.etype = FIXTURE_CITES, .fanout = GW_ALL_NEIGHBOURS};
	expect(gw_neighbours(client, &all, 1, 1, ids, 4, &list), GW_FORMAT, path);
	assert_non_null(strstr(gw_last_error(), "ends at byte 4296"));
	expect(gw_find_edges(client, FIXTURE_CITES, &edge, 1, &src, &dst), GW_FORMAT, path);
	const struct gw_subgraph_spec among = {
		.etype = FIXTURE_CITES, .src = {.count = 4, .ids = ids}, .dst = {.count = 4, .ids = ids}};
	expect(gw_subgraph(client, &among, &list), GW_FORMAT, path);
	must(gw_degrees(client, FIXTURE_CITES, ids, 4, degrees));
	const struct gw_neighbours_spec others = {.etype = FIXTURE_WRITES, .fanout = 2};
	must(gw_neighbours(client, &others, 1, 1, ids, 4, &list));
	gw_edge_list_free(list);
	assert_true(counts_of(&setup, 0).errors > 0);
	file_of(&setup, "edge/author__knows__author/indices", path);
	lose_medium(path);
	const struct gw_neighbours_spec lost = {.etype = FIXTURE_KNOWS, .fanout = 2};
	expect(gw_neighbours(client, &lost, 1, 1, ids, 4, &list), GW_IO, path);
	assert_non_null(strstr(gw_last_error(), "read at byte 4096"));
	must(gw_neighbours(client, &others, 1, 1, ids, 4, &list));
	gw_edge_list_free(list);
	gw_client_close(client);
	finish(&setup);
}

/* Offsets whose bytes are not those of the graph, as digests would have shown. */
static void damage(const char *path)
{
	const uint64_t none[2] = {UINT64_MAX, UINT64_MAX};
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, none, sizeof(none), 4096), sizeof(none));
	assert_int_equal(close(fd), 0);
}

/* The same of offsets. What they say is checked by each client. */
static void bad_offsets(void **state)
{
	(void)state;
	struct setup setup;
	char path[512];
	const int64_t first = 0, some[] = {30, 7, 31, 7};
	int64_t degrees[4], src, dst;
	struct gw_edge_list *list;
	begin(&setup, 636, 1, "tcp");
	struct gw_client *client = open_servers(&setup, 1);
	const struct gw_neighbours_spec knows = {.etype = FIXTURE_KNOWS, .fanout = 2};
	const struct gw_neighbours_spec cites = {.etype = FIXTURE_CITES, .fanout = 2};
	file_of(&setup, "node/author/indptr", path);
	damage(path);
	expect(gw_neighbours(client, &knows, 1, 1, &first, 1, &list), GW_PROTOCOL, "offsets");
	expect(gw_degrees(client, FIXTURE_KNOWS, &first, 1, degrees), GW_PROTOCOL, "offsets");
	expect(gw_edge_ids(client, FIXTURE_KNOWS, some, &first, 1, &list), GW_PROTOCOL, "offsets");
	must(gw_degrees(client, FIXTURE_KNOWS, some, 4, degrees));
	file_of(&setup, "node/paper/indptr", path);
	assert_int_equal(truncate(path, 4096 + 200), 0);
	expect(gw_neighbours(client, &cites, 1, 1, some, 4, &list), GW_FORMAT, path);
	assert_non_null(strstr(gw_last_error(), "ends at byte 4296"));
	expect(gw_degrees(client, FIXTURE_CITES, some, 4, degrees), GW_FORMAT, path);
	expect(gw_find_edges(client, FIXTURE_CITES, some, 1, &src, &dst), GW_FORMAT, path);
	file_of(&setup, "node/author/out_indptr", path);
	lose_medium(path);
	expect(gw_out_degrees(client, FIXTURE_WRITES, some, 4, degrees), GW_IO, path);
	assert_non_null(strstr(gw_last_error(), "read at byte 4096"));
	assert_true(counts_of(&setup, 0).errors > 0);
	must(gw_neighbours(client, &knows, 1, 1, some, 4, &list));
	gw_edge_list_free(list);
	gw_client_close(client);
	finish(&setup);
}

/* The same of the index of original ids. */
static void bad_index(void **state)
{
	(void)state;
	struct setup setup;
	char path[512];
	enum { AUTHORS = 200 };
	int64_t numbers[AUTHORS], found[AUTHORS];
	for (int64_t i = 0; i < AUTHORS; i++)
		numbers[i] = 10 * i + 7; /* the fixture's original ids */
	const struct gw_orig_ids ids = {.count = AUTHORS, .dtype = GW_INT64, .numbers = numbers};
	uint32_t author, paper;
	begin(&setup, 637, 1, "tcp");
	struct gw_client *client = open_servers(&setup, 1);
	must(gw_node_type(client, "author", &author));
	must(gw_node_type(client, "paper", &paper));
	file_of(&setup, "node/author/orig_id.buckets", path);
	damage(path);
	expect(gw_node_ids(client, author, &ids, found, NULL), GW_PROTOCOL, "bucket");
	file_of(&setup, "node/paper/orig_id.index", path);
	assert_int_equal(truncate(path, 4096 + 200), 0);
	const struct gw_orig_ids texts = {.count = 1, .offsets = (const uint64_t[]){0, 7}, .bytes = "paper-7"};
	expect(gw_node_ids(client, paper, &texts, found, NULL), GW_FORMAT, path);
	assert_non_null(strstr(gw_last_error(), "ends at byte 4296"));
	gw_client_close(client);
	finish(&setup);
}

/* A server that ends in the middle of an epoch, and comes back or is replaced: every batch arrives. */
static void servers_come_and_go(void **state)
{
	(void)state;
	struct setup setup;
	struct plan plan;
	uint64_t expected[EPOCH_MAX];
	begin(&setup, 633, PARTS, "tcp");
	struct gw_client *client = open_servers(&setup, PARTS), *files = open_files(&setup);
	make_plan(files, &plan, false, false);
	const uint32_t steps = run_epoch(files, &plan, 2, expected);
	make_plan(client, &plan, false, false);
	struct gw_loader *loader = open_loader(client, &plan, (struct gw_loader_state){.epoch = 2});
	for (uint32_t step = 0; step < steps; step++) {
		struct gw_minibatch *batch;
		must(gw_loader_next(loader, &batch, -1));
		assert_int_equal(gw_minibatch_digest(batch), expected[step]);
		gw_minibatch_release(batch);
		if (step % 4 == 1) {
			cluster_kill(&setup.cluster, step / 4 % PARTS);
			cluster_revive(&setup.cluster, step / 4 % PARTS);
		} else if (step == 2) {
			cluster_replace(&setup.cluster, 0);
		}
	}
	gw_loader_close(loader);
	gw_client_close(client);
	gw_client_close(files);
	finish(&setup);
}

static void clients_give_up(void **state)
{
	(void)state;
	static const char *const names[] = {"lists", "offsets", NULL};
	struct setup setup;
	begin(&setup, 634, 1, "tcp");
	for (int round = 0; round < 8; round++) {
		struct gw_client *client = round % 2 ? open_servers(&setup, 1) : open_lists_on_disk(&setup, names, 1);
		const struct gw_sample_spec spec = {.hops = 2, .fanouts = all_fanouts};
		const int64_t ids[] = {1, 5, 9, 300, 599};
		const struct gw_seeds seeds = {.count = 5, .ids = ids};
		struct gw_minibatch *batch;
		struct gw_ticket *ticket;
		struct gw_subgraph_spec among = {
			.etype = FIXTURE_CITES, .src = {.count = 5, .ids = ids}, .dst = {.count = 5, .ids = ids}};
		struct gw_edge_list *list;
		must(gw_sample_lists_start(client, &spec, 5, (uint64_t)round, &seeds, 1, &batch, &ticket));
		gw_cancel(ticket);
		must(gw_subgraph_start(client, &among, &list, &ticket));
		gw_cancel(ticket);
		gw_client_close(client);
	}
	finish(&setup);
}

static gw_status draw_from_disk(void *context)
{
	const struct setup *setup = context;
	static const char *const names[] = {"lists", "offsets", "orig_id"};
	const struct gw_client_options options = {.part_config = setup->fixture.folder,
						  .threads = 1,
						  .on_disk = names,
						  .on_disk_count = 3,
						  .disk_cache = GW_DISK_CACHE_MIN};
	struct gw_client *client;
	struct gw_edge_list *list;
	gw_status status = gw_client_open(&options, &client);
	if (status != GW_OK)
		return status;
	const int64_t ids[] = {5, 3, 1, 599};
	int64_t src[4], dst[4];
	const struct gw_neighbours_spec weighted = {.etype = FIXTURE_CITES, .fanout = 2, .rule = {.weight = "weight"}};
	const struct gw_subgraph_spec among = {
		.etype = FIXTURE_CITES, .src = {.count = 4, .ids = ids}, .dst = {.count = 4, .ids = ids}};
	status = gw_neighbours(client, &weighted, 1, 1, ids, 4, &list);
	if (status == GW_OK) {
		gw_edge_list_free(list);
		status = gw_find_edges(client, FIXTURE_CITES, ids, 4, src, dst);
	}
	if (status == GW_OK)
		status = gw_edge_ids(client, FIXTURE_CITES, src, dst, 4, &list);
	if (status == GW_OK) {
		gw_edge_list_free(list);
		status = gw_subgraph(client, &among, &list);
	}
	if (status == GW_OK)
		gw_edge_list_free(list);
	const struct gw_orig_ids known = {.count = 1, .dtype = GW_INT64, .numbers = (const int64_t[]){17}};
	uint32_t author;
	if (status == GW_OK)
		status = gw_node_type(client, "author", &author);
	if (status == GW_OK)
		status = gw_node_ids(client, author, &known, src, NULL);
	gw_client_close(client);
	return status;
}

static void memory_runs_out(void **state)
{
	(void)state;
	struct setup setup = {0};
	gw_fixture_begin(&setup.fixture, 635, SETUP_SCALE, 1);
	gw_fixture_write(&setup.fixture);
	assert_true(gw_fault_each(draw_from_disk, &setup) > 10);
	gw_fixture_end(&setup.fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_on_disk_give_the_bytes),
		cmocka_unit_test(lists_are_held_by_another),
		cmocka_unit_test(columns_stay_beside_held_lists),
		cmocka_unit_test(bad_files),
		cmocka_unit_test(bad_offsets),
		cmocka_unit_test(bad_index),
		cmocka_unit_test(servers_come_and_go),
		cmocka_unit_test(clients_give_up),
		cmocka_unit_test(memory_runs_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
