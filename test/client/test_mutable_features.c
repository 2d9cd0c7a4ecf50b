/* Features that servers serve as mutable rows: read, sampled with, written; servers that end or differ; and names that
 * are invalid. The oracle is a client without servers, which reads the files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/rows/tensor_handles.h"
#include "test/support/client_setup.h"
#include "test/support/must.h"
#include "test/support/part_files.h"

#define PARTS   3
#define COLUMNS 5 /* of paper's feat */

static struct gw_client *open_servers(const struct cluster *cluster)
{
	struct gw_client_options options = {.servers = cluster->list, .server_count = PARTS, .threads = 2};
	return open_client(&options);
}

static struct gw_client *open_files(const struct setup *setup)
{
	struct gw_client_options options = {.part_config = setup->fixture.folder, .threads = 1};
	return open_client(&options);
}

static void begin(struct setup *setup, uint64_t seed)
{
	cluster_serve_mutable("paper/feat");
	cluster_serve_mutable("paper:cites:paper/weight");
	cluster_serve_mutable("node/paper/label");
	setup_begin(setup, seed, PARTS, NULL);
}

static void end(struct setup *setup)
{
	setup_end(setup);
	cluster_serve_mutable(NULL);
}

static void *read_rows(struct gw_client *client, const struct gw_tensor *tensor)
{
	uint64_t n = tensor->shape[0];
	int64_t *ids = calloc(n, sizeof(*ids));
	void *rows = malloc(n * tensor->row_bytes);
	for (uint64_t i = 0; i < n; i++)
		ids[i] = (int64_t)i;
	must(gw_gather(client, tensor, ids, n, rows));
	free(ids);
	return rows;
}

static void expect_rows(struct gw_client *client, const struct gw_tensor *tensor, const void *wanted)
{
	void *rows = read_rows(client, tensor);
	assert_memory_equal(rows, wanted, tensor->shape[0] * tensor->row_bytes);
	free(rows);
}

static void expect_same(struct gw_client *client, struct gw_client *files, const struct gw_tensor *tensor,
			const struct gw_tensor *wanted)
{
	void *rows = read_rows(files, wanted);
	assert_true(tensor->writable && !wanted->writable);
	assert_int_equal(tensor->row_bytes, wanted->row_bytes);
	expect_rows(client, tensor, rows);
	free(rows);
}

static void features_begin_with_the_files_rows(void **state)
{
	(void)state;
	struct setup setup;
	const struct gw_tensor *weight, *of_files;
	uint64_t digests[EPOCH_MAX], wanted[EPOCH_MAX];
	struct plan plan;
	begin(&setup, 501);
	struct gw_client *client = open_servers(&setup.cluster), *files = open_files(&setup);
	expect_same(client, files, node_tensor(client, "paper", "feat"), node_tensor(files, "paper", "feat"));
	expect_same(client, files, node_tensor(client, "paper", "label"), node_tensor(files, "paper", "label"));
	must(gw_edge_tensor(client, FIXTURE_CITES, "weight", &weight));
	must(gw_edge_tensor(files, FIXTURE_CITES, "weight", &of_files));
	expect_same(client, files, weight, of_files);
	assert_false(node_tensor(client, "author", "q")->writable);
	/* A second request gives the same tensor. */
	assert_ptr_equal(node_tensor(client, "paper", "feat"), node_tensor(client, "paper", "feat"));
	make_plan(files, &plan, false, false);
	uint32_t n = run_epoch(files, &plan, 3, wanted);
	make_plan(client, &plan, false, false);
	assert_int_equal(run_epoch(client, &plan, 3, digests), n);
	assert_memory_equal(digests, wanted, n * sizeof(*wanted));
	gw_client_close(client);
	gw_client_close(files);
	end(&setup);
}

static void all_clients_see_written_rows(void **state)
{
	(void)state;
	struct setup setup;
	uint64_t digests[EPOCH_MAX], before[EPOCH_MAX], differ = 0;
	struct plan plan;
	begin(&setup, 502);
	struct gw_client *client = open_servers(&setup.cluster), *other = open_servers(&setup.cluster);
	const struct gw_tensor *feat = node_tensor(client, "paper", "feat");
	make_plan(other, &plan, true, false);
	uint32_t n = run_epoch(other, &plan, 0, before);
	float *rows = read_rows(client, feat);
	int64_t ids[] = {0, 599, 7, 250, 7};
	float changed[5][COLUMNS], kept[5][COLUMNS];
	for (int i = 0; i < 5; i++) {
		memcpy(kept[i], rows + ids[i] * COLUMNS, sizeof(kept[i]));
		for (int c = 0; c < COLUMNS; c++)
			changed[i][c] = (float)(1000 * i + c);
	}
	must(gw_update(client, feat, ids, 5, changed));
	for (int i = 0; i < 5; i++)
		memcpy(rows + ids[i] * COLUMNS, changed[i], sizeof(changed[i]));
	expect_rows(other, node_tensor(other, "paper", "feat"), rows);
	assert_int_equal(run_epoch(other, &plan, 0, digests), n);
	for (uint32_t i = 0; i < n; i++)
		differ += digests[i] != before[i];
	assert_true(differ > 0);
	must(gw_update(other, node_tensor(other, "paper", "feat"), ids, 5, kept));
	make_plan(client, &plan, true, false);
	assert_int_equal(run_epoch(client, &plan, 0, digests), n);
	assert_memory_equal(digests, before, n * sizeof(*before));
	gw_client_close(client);
	gw_client_close(other);
	free(rows);
	end(&setup);
}

#define TURNS_MAX 10000

/* Clients read the rows one-sided over every transport, also a client that connected before the rows existed. */
static void features_are_read_one_sided(void **state)
{
	(void)state;
	struct setup setup;
	struct gw_tensor_read read;
	const int64_t first = 0;
	float row[COLUMNS];
	begin(&setup, 507);
	struct gw_client *client = open_servers(&setup.cluster);
	const struct gw_tensor *feat = node_tensor(client, "paper", "feat");
	uint32_t turns = 0;
	do {
		assert_true(turns++ < TURNS_MAX);
		must(gw_gather(client, feat, &first, 1, row));
	} while (gw_tensor_handles_collect_reads(client, 0, &read, 1) == 0);
	/* When the tensor is deleted, it is gone for these clients too. */
	must(gw_tensor_delete(client, "node/paper/feat", GW_KEPT));
	expect(gw_gather(client, feat, &first, 1, row), GW_NOT_FOUND, "gone");
	gw_client_close(client);
	end(&setup);
}

static void other_rows_stay(void **state)
{
	(void)state;
	struct setup setup;
	const struct gw_tensor *listed = NULL, *copy;
	uint8_t row[16] = {0};
	int64_t id = 0;
	begin(&setup, 503);
	struct gw_client *client = open_servers(&setup.cluster);
	expect(gw_update(client, node_tensor(client, "author", "q"), &id, 1, row), GW_INVALID, "\"q\" is a feature");
	/* Listing a tensor does not open it. */
	for (uint32_t i = 0; (listed = gw_tensor_at(client, i)) && strcmp(listed->name, "feat") != 0; i++)
		;
	assert_true(listed && listed->writable && listed->row_bytes == COLUMNS * sizeof(float));
	expect(gw_gather(client, listed, &id, 1, row), GW_INVALID, "gw_node_tensor");
	expect(gw_update(client, listed, &id, 1, row), GW_INVALID, "gw_node_tensor");
	const struct gw_tensor *feat = node_tensor(client, "paper", "feat");
	struct gw_tensor_spec spec = {.name = "copy",
				      .dtype = GW_FLOAT32,
				      .type = feat->type,
				      .ndim = 2,
				      .shape = {0, COLUMNS},
				      .initial = GW_INITIAL_COPY,
				      .from = feat};
	must(gw_tensor_create(client, &spec, &copy));
	void *rows = read_rows(client, feat);
	expect_rows(client, copy, rows);
	free(rows);
	gw_client_close(client);
	end(&setup);
}

static void a_server_that_ends_loses_what_was_written(void **state)
{
	(void)state;
	struct setup setup;
	const struct gw_tensor *feat;
	uint32_t paper;
	begin(&setup, 504);
	struct gw_client *client = open_servers(&setup.cluster), *files = open_files(&setup);
	feat = node_tensor(client, "paper", "feat");
	float *wanted = read_rows(files, node_tensor(files, "paper", "feat"));
	float row[COLUMNS] = {1, 2, 3, 4, 5};
	int64_t first = 0, last = (int64_t)feat->shape[0] - 1;
	must(gw_update(client, feat, &first, 1, row));
	cluster_kill(&setup.cluster, PARTS - 1);
	cluster_revive(&setup.cluster, PARTS - 1);
	expect(gw_update(client, feat, &last, 1, row), GW_NOT_FOUND, "gone");
	must(gw_node_type(client, "paper", &paper));
	expect(gw_node_tensor(client, paper, "feat", &feat), GW_NOT_FOUND, "delete it");
	must(gw_tensor_delete(client, "node/paper/feat", GW_KEPT));
	feat = node_tensor(client, "paper", "feat");
	expect_rows(client, feat, wanted);
	free(wanted);
	gw_client_close(client);
	gw_client_close(files);
	end(&setup);
}

static void servers_must_agree(void **state)
{
	(void)state;
	struct setup setup;
	struct gw_client *client;
	setup_begin(&setup, 505, PARTS, NULL);
	cluster_kill(&setup.cluster, 1);
	cluster_serve_mutable("feat");
	cluster_revive(&setup.cluster, 1);
	struct gw_client_options options = {.servers = setup.cluster.list, .server_count = PARTS, .threads = 1};
	expect(gw_client_open(&options, &client), GW_INVALID, "part 1 serves \"node/paper/feat\" as mutable rows");
	end(&setup);
}

static void start_fails(const struct setup *setup, const char *name, gw_status wanted, const char *text)
{
	struct gw_server_options options = {.part_config = setup->fixture.folder,
					    .threads = 1,
					    .numa = GW_NUMA_LOCAL,
					    .huge = GW_HUGE_OFF,
					    .insecure = true,
					    .transport = "tcp",
					    .mutable_features = {"label", name},
					    .mutable_count = 2};
	struct gw_server *server;
	must(gw_address_parse("127.0.0.1:0", &options.listen));
	expect(gw_server_start(&options, &server), wanted, text);
	assert_null(server);
}

static void names_mean_features(void **state)
{
	(void)state;
	struct setup setup;
	struct part_file file = {0};
	memset(&setup, 0, sizeof(setup));
	gw_fixture_begin(&setup.fixture, 506, SETUP_SCALE, 1);
	gw_fixture_write(&setup.fixture);
	cluster_use_own_runtime_folder();
	start_fails(&setup, "nothing", GW_NOT_FOUND, "--mutable nothing");
	start_fails(&setup, "eat", GW_NOT_FOUND, "--mutable eat");
	start_fails(&setup, "", GW_NOT_FOUND, "--mutable");
	start_fails(&setup, "author/feat", GW_NOT_FOUND, "author/feat");
	start_fails(&setup, "indptr", GW_INVALID, "not a feature that can be mutable");
	start_fails(&setup, "author/orig_id", GW_INVALID, "not a feature that can be mutable");
	start_fails(&setup, "q", GW_UNSUPPORTED, "cannot be mutable");
	/* Rows that are loaded separately are compared with their digests too. */
	char folder[160];
	snprintf(folder, sizeof(folder), "%s/part0/node/paper", setup.fixture.folder);
	part_file_take(&file, folder, "feat.npy");
	file.data[file.bytes - 3] ^= 4;
	part_file_put(&file, file.bytes);
	start_fails(&setup, "paper/feat", GW_DIGEST, "node/paper/feat");
	free(file.data);
	gw_fixture_end(&setup.fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(features_begin_with_the_files_rows),
		cmocka_unit_test(all_clients_see_written_rows),
		cmocka_unit_test(features_are_read_one_sided),
		cmocka_unit_test(other_rows_stay),
		cmocka_unit_test(a_server_that_ends_loses_what_was_written),
		cmocka_unit_test(servers_must_agree),
		cmocka_unit_test(names_mean_features),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
