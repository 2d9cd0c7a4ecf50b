/* Features whose rows stay on disk, of servers over every transport and of standalone clients: the same bytes as from
 * memory, in calls and in epochs; what cannot be combined is refused by name; faults of files and servers. The oracle
 * is a standalone client that has loaded everything. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "core/system/clock.h"
#include "protocol/disk_call.h"
#include "protocol/ops.h"
#include "test/support/alloc_fault.h"
#include "test/support/client_setup.h"
#include "test/support/must.h"
#include "transport/transport.h"

#define PARTS 3

static const char *const left[] = {"paper/feat", "label", "q", "paper:cites:paper/weight", "half"};
#define LEFT (sizeof(left) / sizeof(left[0]))

static void begin(struct setup *setup, uint64_t seed, uint32_t parts, const char *offer)
{
	for (size_t i = 0; i < LEFT; i++)
		cluster_leave_on_disk(left[i]);
	cluster_offer(offer);
	setup_begin(setup, seed, parts, NULL);
}

static void end(struct setup *setup)
{
	setup_end(setup);
	cluster_offer(NULL);
	cluster_leave_on_disk(NULL);
}

static struct gw_client *open_files(const struct setup *setup)
{
	const struct gw_client_options options = {.part_config = setup->fixture.folder, .threads = 1};
	return open_client(&options);
}

static struct gw_client *open_files_on_disk(const struct setup *setup, uint32_t threads)
{
	const struct gw_client_options options = {.part_config = setup->fixture.folder,
						  .threads = threads,
						  .on_disk = left,
						  .on_disk_count = LEFT,
						  .disk_cache = GW_DISK_CACHE_MIN};
	return open_client(&options);
}

static struct gw_client *open_servers(const struct setup *setup, uint32_t parts, const char *order)
{
	const struct gw_client_options options = {
		.servers = setup->cluster.list, .server_count = parts, .threads = 2, .order = order};
	return open_client(&options);
}

/* Lists of ids with duplicates; the longest ones take several requests for each part, and slices of conversions. */
static void same_rows(struct gw_client *client, struct gw_client *files)
{
	static const uint64_t counts[] = {0, 1, 2, 700, 5000};
	const struct gw_tensor *tensor, *wanted;
	uint64_t seed = 9;
	for (uint32_t t = 0; (tensor = gw_tensor_at(client, t)); t++) {
		wanted = gw_tensor_at(files, t);
		assert_string_equal(tensor->name, wanted->name);
		for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]) && tensor->shape[0]; c++) {
			const uint64_t n = counts[c], bytes = n * tensor->row_bytes;
			int64_t *ids = malloc(n * sizeof(*ids) + 1);
			uint8_t *rows = malloc(n * tensor->numbers * 8 + bytes + 1), *expected = malloc(bytes + 1);
			for (uint64_t i = 0; i < n; i++)
				ids[i] = (int64_t)(gw_mix64(seed++) % tensor->shape[0]);
			must(gw_gather(files, wanted, ids, n, expected));
			rows[bytes] = 0xa5;
			must(gw_gather(client, tensor, ids, n, rows));
			assert_memory_equal(rows, expected, bytes);
			assert_int_equal(rows[bytes], 0xa5);
			if (gw_converted_bytes(tensor, GW_FLOAT64)) {
				double *wide = malloc(n * tensor->numbers * 8 + 1);
				must(gw_gather_as(files, wanted, GW_FLOAT64, ids, n, wide));
				must(gw_gather_as(client, tensor, GW_FLOAT64, ids, n, rows));
				assert_memory_equal(rows, wide, n * tensor->numbers * 8);
				free(wide);
			}
			free(ids);
			free(rows);
			free(expected);
		}
	}
}

static void same_epochs(struct gw_client *client, struct gw_client *files)
{
	uint64_t digests[EPOCH_MAX], wanted[EPOCH_MAX];
	struct plan plan;
	for (int wide = 0; wide < 2; wide++) {
		make_plan(files, &plan, wide, wide);
		uint32_t n = run_epoch(files, &plan, 3, wanted);
		make_plan(client, &plan, wide, wide);
		assert_int_equal(run_epoch(client, &plan, 3, digests), n);
		assert_memory_equal(digests, wanted, n * sizeof(*wanted));
	}
}

static struct gw_disk_counts counts_of(const struct setup *setup, uint32_t part)
{
	struct gw_disk_counts counts;
	gw_disk_counts(setup->cluster.servers[part]->disk, &counts);
	return counts;
}

static void servers_give_the_bytes(void **state)
{
	(void)state;
	static const char *const offers[] = {"tcp", "shm", NULL}; /* NULL: TCP too */
	static const char *const orders[] = {NULL, "always", "never"};
	for (uint32_t run = 0; run < 6; run++) {
		struct setup setup;
		const uint32_t parts = run % 2 ? PARTS : 1;
		const char *offer = cluster_is_rdma() ? "verbs" : offers[run / 2];
		begin(&setup, 600 + run, parts, offer);
		struct gw_client *client = open_servers(&setup, parts, orders[run % 3]), *files = open_files(&setup);
		expect_transport(client, offer ? offer : "tcp");
		same_rows(client, files);
		same_epochs(client, files);
		struct gw_disk_counts counts = counts_of(&setup, 0);
		assert_true(counts.rows > 0 && counts.reads > 0 && counts.hits > 0);
		assert_int_equal(counts.errors, 0);
		gw_client_close(client);
		gw_client_close(files);
		end(&setup);
	}
}

static void standalone_clients_give_the_bytes(void **state)
{
	(void)state;
	for (uint32_t parts = 1; parts <= PARTS; parts += 2) {
		struct setup setup;
		setup_begin(&setup, 610, parts, NULL);
		struct gw_client *files = open_files(&setup);
		for (uint32_t threads = 1; threads <= 3; threads += 2) {
			struct gw_client *client = open_files_on_disk(&setup, threads);
			same_rows(client, files);
			same_epochs(client, files);
			gw_client_close(client);
		}
		gw_client_close(files);
		setup_end(&setup);
	}
}

/* One server leaves rows on disk that the others have in memory. */
static void parts_differ(void **state)
{
	(void)state;
	struct setup setup;
	begin(&setup, 620, PARTS, "shm");
	cluster_leave_on_disk(NULL);
	cluster_kill(&setup.cluster, 0);
	cluster_revive(&setup.cluster, 0);
	struct gw_client *client = open_servers(&setup, PARTS, NULL), *files = open_files(&setup);
	assert_null(setup.cluster.servers[0]->disk);
	same_rows(client, files);
	same_epochs(client, files);
	gw_client_close(client);
	gw_client_close(files);
	end(&setup);
}

/* --- what is refused --- */

static void bad_options(void **state)
{
	(void)state;
	struct setup setup;
	setup_begin(&setup, 630, 1, NULL);
	static const struct {
		const char *name;
		gw_status status;
		const char *text;
	} bad[] = {{"nix", GW_NOT_FOUND, "on_disk nix"},
		   {"paper/indptr", GW_INVALID, "no feature"},
		   {"weight.alias", GW_INVALID, "no feature"},
		   {"", GW_NOT_FOUND, "no such feature"},
		   {NULL, GW_INVALID, "is NULL"}};
	const struct gw_client_options alone = {.part_config = setup.fixture.folder, .threads = 1};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct gw_client_options options = alone;
		options.on_disk = &bad[i].name;
		options.on_disk_count = 1;
		expect_no_client(options, bad[i].status, bad[i].text);
	}
	struct gw_client_options options = alone;
	options.disk_cache = 1 << 20;
	expect_no_client(options, GW_INVALID, "without on_disk");
	options.on_disk_count = 1;
	expect_no_client(options, GW_INVALID, "no names");
	options.on_disk = left;
	options.disk_cache = 4096;
	expect_no_client(options, GW_INVALID, "at least 1 MiB");
	options = (struct gw_client_options){
		.servers = setup.cluster.list, .server_count = 1, .on_disk = left, .on_disk_count = LEFT};
	expect_no_client(options, GW_INVALID, "--on-disk");

	struct gw_server *server;
	struct gw_server_options serve = {.part_config = setup.fixture.folder,
					  .threads = 1,
					  .numa = GW_NUMA_LOCAL,
					  .on_disk_features = {"feat"},
					  .on_disk_count = 1,
					  .mutable_features = {"paper/feat"},
					  .mutable_count = 1};
	assert_int_equal(gw_address_parse("127.0.0.1:0", &serve.listen), GW_OK);
	expect(gw_server_start(&serve, &server), GW_INVALID, "exclude each other");
	serve.mutable_count = 0;
	serve.on_disk_features[0] = "lists";
	serve.lists = GW_SERVER_LISTS_ALL;
	expect(gw_server_start(&serve, &server), GW_INVALID, "--lists all and --on-disk lists");
	serve.on_disk_features[0] = "offsets";
	expect(gw_server_start(&serve, &server), GW_INVALID, "--lists all and --on-disk offsets");
	serve.lists = GW_SERVER_LISTS_OWN;
	serve.on_disk_features[0] = "nix";
	expect(gw_server_start(&serve, &server), GW_NOT_FOUND, "--on-disk nix");
	serve.on_disk_count = 0;
	serve.disk_cache = 1 << 20;
	expect(gw_server_start(&serve, &server), GW_INVALID, "without --on-disk");
	setup_end(&setup);
}

/* --- requests of other clients --- */

struct raw {
	struct gw_poll_group *group;
	struct gw_endpoint *endpoint;
};

/* The text of a request's error stays in this thread. */
static gw_status raw_wait(struct raw *raw)
{
	struct gw_completion done;
	while (gw_poll_group_poll(raw->group, &done, 1, GW_NS_PER_SECOND) == 0)
		;
	return done.status == GW_OK ? GW_OK : gw_fail_text(done.status, done.text);
}

static void raw_open(struct raw *raw, const struct setup *setup)
{
	uint8_t key[GW_KEY_BYTES];
	struct gw_connect_options options = {
		.address = setup->cluster.addresses[0], .key = key, .key_bytes = sizeof(key), .client_uuid = {1}};
	must(gw_poll_group_create(NULL, &raw->group));
	must(gw_key_find(options.address.port, key));
	options.deadline_ns = GW_NO_DEADLINE;
	must(gw_endpoint_connect(raw->group, &options, raw, &raw->endpoint));
	must(raw_wait(raw));
}

static gw_status raw_ask(struct raw *raw, uint16_t op, const void *bytes, size_t count)
{
	must(gw_endpoint_request(raw->endpoint, op, 0, bytes, (uint32_t)count, GW_NO_DEADLINE, raw));
	return raw_wait(raw);
}

/* A client that does not know rows on disk gets one line that says what to do. */
static void older_clients_are_refused(void **state)
{
	(void)state;
	struct setup setup;
	struct raw raw;
	begin(&setup, 650, 1, "tcp");
	raw_open(&raw, &setup);
	for (uint32_t i = 0; i < GW_CATALOG_FORMS + 2; i++) {
		const uint8_t form = (uint8_t)i, knows = form | GW_CATALOG_KNOWS_DISK;
		assert_int_equal(raw_ask(&raw, GW_OP_CATALOG, &form, 1),
				 form < GW_CATALOG_FORMS ? GW_REFUSED : GW_INVALID);
		if (form < GW_CATALOG_FORMS)
			assert_non_null(strstr(gw_last_error(), "upgrade the client"));
		assert_int_equal(raw_ask(&raw, GW_OP_CATALOG, &knows, 1), form < GW_CATALOG_FORMS ? GW_OK : GW_INVALID);
	}
	gw_poll_group_destroy(raw.group);
	end(&setup);
}

static void bad_requests_are_refused(void **state)
{
	(void)state;
	struct setup setup;
	struct raw raw;
	begin(&setup, 660, 1, "tcp");
	raw_open(&raw, &setup);
	const struct gw_part *part = setup.cluster.servers[0]->part;
	uint32_t number = 0;
	while (strcmp(gw_part_array_at(part, number)->meta->key, "node/paper/feat") != 0)
		number++;
	const struct gw_array *array = gw_part_array_at(part, number);
	struct {
		struct gw_disk_call call;
		uint64_t rows[2];
	} good = {{number, 2, array->meta->digest}, {0, 1}}, bad;
	assert_int_equal(raw_ask(&raw, GW_OP_DISK_ROWS, &good, sizeof(good)), GW_OK);
	for (size_t n = 0; n < sizeof(good); n++)
		expect(raw_ask(&raw, GW_OP_DISK_ROWS, &good, n), GW_PROTOCOL, "rows on disk");
	bad = good;
	bad.call.digest++;
	expect(raw_ask(&raw, GW_OP_DISK_ROWS, &bad, sizeof(bad)), GW_PROTOCOL, "another one");
	bad = good;
	bad.call.array = 0; /* in memory */
	expect(raw_ask(&raw, GW_OP_DISK_ROWS, &bad, sizeof(bad)), GW_PROTOCOL, "does not stay on disk");
	bad.call.array = UINT32_MAX;
	expect(raw_ask(&raw, GW_OP_DISK_ROWS, &bad, sizeof(bad)), GW_PROTOCOL, "does not stay on disk");
	bad = good;
	bad.rows[1] = array->rows;
	expect(raw_ask(&raw, GW_OP_DISK_ROWS, &bad, sizeof(bad)), GW_RANGE, "row");
	bad.rows[1] = UINT64_MAX;
	expect(raw_ask(&raw, GW_OP_DISK_ROWS, &bad, sizeof(bad)), GW_RANGE, "row");
	const uint32_t many = (uint32_t)gw_disk_call_most(array->row_bytes) + 1;
	uint8_t *large = calloc(1, sizeof(good.call) + many * 8ull);
	memcpy(large, &(struct gw_disk_call){number, many, array->meta->digest}, sizeof(good.call));
	gw_status status = raw_ask(&raw, GW_OP_DISK_ROWS, large, sizeof(good.call) + many * 8ull);
	assert_int_equal(status, GW_PROTOCOL);
	free(large);
	assert_int_equal(raw_ask(&raw, GW_OP_DISK_ROWS, &good, sizeof(good)), GW_OK);
	gw_poll_group_destroy(raw.group);
	end(&setup);
}

/* --- faults --- */

static void feature_path(const struct setup *setup, uint32_t part, const char *key, char path[256])
{
	const struct gw_graph_meta *meta = setup->cluster.servers[part]->meta;
	snprintf(path, 256, "%s/%s", meta->folder, gw_meta_array(meta, part, key)->file);
}

/* A file that is cut while it is served: its rows fail and name it, and everything else goes on. */
static void cut_files(void **state)
{
	(void)state;
	struct setup setup;
	char path[256];
	begin(&setup, 670, 1, "tcp");
	struct gw_client *client = open_servers(&setup, 1, NULL), *files = open_files(&setup);
	feature_path(&setup, 0, "node/paper/feat", path);
	assert_int_equal(truncate(path, 4096 + 100), 0);
	const int64_t first[] = {0, 3}, last[] = {599, 1};
	float rows[2][5], wanted[2][5];
	const struct gw_tensor *feat = node_tensor(client, "paper", "feat");
	expect(gw_gather(client, feat, last, 2, rows), GW_FORMAT, path);
	assert_non_null(strstr(gw_last_error(), "ends at byte 4196"));
	assert_int_equal(counts_of(&setup, 0).errors, 2);
	int64_t label[2], label_wanted[2];
	must(gw_gather(client, node_tensor(client, "paper", "label"), last, 2, label));
	must(gw_gather(files, node_tensor(files, "paper", "label"), last, 2, label_wanted));
	assert_memory_equal(label, label_wanted, sizeof(label));
	must(gw_gather(files, node_tensor(files, "paper", "feat"), first, 2, wanted));
	/* rows before the cut are in the block that failed: it is read again, and fails again */
	expect(gw_gather(client, feat, first, 2, rows), GW_FORMAT, "row 0");
	gw_client_close(client);
	gw_client_close(files);
	end(&setup);
}

/* What the opening finds: another file, a file of other digests, no file. */
static void damaged_files(void **state)
{
	(void)state;
	struct setup setup;
	char path[256], digests[256], kept[300];
	struct gw_client *client;
	begin(&setup, 680, 1, "tcp");
	feature_path(&setup, 0, "node/paper/feat", path);
	snprintf(digests, sizeof(digests), "%.*s.xxh", (int)strlen(path) - 4, path);
	snprintf(kept, sizeof(kept), "%s.kept", path);
	struct gw_client_options options = {.part_config = setup.fixture.folder,
					    .threads = 1,
					    .on_disk = left,
					    .on_disk_count = 1,
					    .disk_cache = GW_DISK_CACHE_MIN};
	assert_int_equal(rename(path, kept), 0);
	expect(gw_client_open(&options, &client), GW_NOT_FOUND, path);
	assert_int_equal(rename(kept, path), 0);
	int fd = open(digests, O_WRONLY);
	assert_true(fd >= 0 && pwrite(fd, "x", 1, 0) == 1);
	close(fd);
	expect(gw_client_open(&options, &client), GW_DIGEST, digests);
	assert_int_equal(truncate(path, 4096 + 40), 0);
	expect(gw_client_open(&options, &client), GW_FORMAT, "truncated");
	end(&setup);
}

/* A server that ends while it reads, and comes back: the rows arrive. So they do from its successor. */
static void servers_come_and_go(void **state)
{
	(void)state;
	struct setup setup;
	begin(&setup, 690, PARTS, "tcp");
	struct gw_client *client = open_servers(&setup, PARTS, NULL), *files = open_files(&setup);
	const struct gw_tensor *feat = node_tensor(client, "paper", "feat");
	const uint32_t n = 200000;
	int64_t *ids = malloc(n * sizeof(*ids));
	float(*rows)[5] = malloc(n * sizeof(*rows)), (*wanted)[5] = malloc(n * sizeof(*wanted));
	for (uint32_t i = 0; i < n; i++)
		ids[i] = (int64_t)(gw_mix64(i) % feat->shape[0]);
	must(gw_gather(files, node_tensor(files, "paper", "feat"), ids, n, wanted));
	for (int round = 0; round < 4; round++) {
		struct gw_ticket *ticket;
		memset(rows, 0, n * sizeof(*rows));
		must(gw_gather_start(client, feat, ids, n, rows, &ticket));
		if (round < 3) {
			cluster_kill(&setup.cluster, (uint32_t)round);
			cluster_revive(&setup.cluster, (uint32_t)round);
		} else {
			cluster_replace(&setup.cluster, 0);
		}
		must(gw_wait(ticket, -1));
		assert_memory_equal(rows, wanted, n * sizeof(*rows));
	}
	free(ids);
	free(rows);
	free(wanted);
	gw_client_close(client);
	gw_client_close(files);
	end(&setup);
}

/* A client that goes, or gives up, while its rows are read. */
static void clients_give_up(void **state)
{
	(void)state;
	struct setup setup;
	begin(&setup, 700, 1, "tcp");
	const uint32_t n = 100000;
	int64_t *ids = malloc(n * sizeof(*ids));
	float(*rows)[5] = malloc(n * sizeof(*rows));
	for (int round = 0; round < 8; round++) {
		struct gw_client *client = round % 2 ? open_servers(&setup, 1, NULL) : open_files_on_disk(&setup, 1);
		const struct gw_tensor *feat = node_tensor(client, "paper", "feat");
		struct gw_ticket *ticket;
		for (uint32_t i = 0; i < n; i++)
			ids[i] = (int64_t)(gw_mix64(i) % feat->shape[0]);
		must(gw_gather_start(client, feat, ids, n, rows, &ticket));
		gw_cancel(ticket);
		gw_client_close(client);
	}
	free(ids);
	free(rows);
	end(&setup);
}

static gw_status open_and_gather(void *context)
{
	const struct setup *setup = context;
	const struct gw_client_options options = {.part_config = setup->fixture.folder,
						  .threads = 1,
						  .on_disk = left,
						  .on_disk_count = LEFT,
						  .disk_cache = GW_DISK_CACHE_MIN};
	struct gw_client *client;
	gw_status status = gw_client_open(&options, &client);
	if (status != GW_OK)
		return status;
	const int64_t ids[] = {5, 3, 1, 599};
	float rows[4][5];
	status = gw_gather(client, node_tensor(client, "paper", "feat"), ids, 4, rows);
	gw_client_close(client);
	return status;
}

static void memory_runs_out(void **state)
{
	(void)state;
	struct setup setup = {0};
	gw_fixture_begin(&setup.fixture, 710, 600, 1);
	gw_fixture_write(&setup.fixture);
	assert_true(gw_fault_each(open_and_gather, &setup) > 10);
	gw_fixture_end(&setup.fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(servers_give_the_bytes),
		cmocka_unit_test(standalone_clients_give_the_bytes),
		cmocka_unit_test(parts_differ),
		cmocka_unit_test(bad_options),
		cmocka_unit_test(older_clients_are_refused),
		cmocka_unit_test(bad_requests_are_refused),
		cmocka_unit_test(cut_files),
		cmocka_unit_test(damaged_files),
		cmocka_unit_test(servers_come_and_go),
		cmocka_unit_test(clients_give_up),
		cmocka_unit_test(memory_runs_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
