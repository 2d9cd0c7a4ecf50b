/* The client and servers that are away. It detects a silent server in time. It waits, and logs that it waits, where
 * waiting helps. It fails soon where waiting does not help. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "core/errors/log.h"
#include "core/system/clock.h"
#include "test/support/client_inside.h"
#include "test/support/line.h"

/* --- Messages. --- */

static atomic_uint said_away, said_back, said_else, said_refused, said_moved;

static void hear(void *context, enum gw_log_level level, const char *line)
{
	(void)context;
	if (strstr(line, "no key to prove") && strstr(line, "trying again"))
		atomic_fetch_add(&said_refused, 1);
	if (strstr(line, "has a successor; trying again in 0 ms"))
		atomic_fetch_add(&said_moved, 1);
	if (level > GW_LOG_WARN)
		return;
	if (strstr(line, "waiting for it"))
		atomic_fetch_add(&said_away, 1);
	else if (strstr(line, "back after"))
		atomic_fetch_add(&said_back, 1);
	else
		atomic_fetch_add(&said_else, 1);
}

static int listen_to_the_log(void **state)
{
	(void)state;
	gw_log_set_sink(hear, NULL);
	return 0;
}

static void wait_for(const atomic_uint *count)
{
	clock_begin();
	while (!atomic_load(count)) {
		sleep_ms(5);
		clock_check();
	}
}

static void forget_log(void)
{
	atomic_store(&said_away, 0);
	atomic_store(&said_back, 0);
	atomic_store(&said_else, 0);
	atomic_store(&said_refused, 0);
	atomic_store(&said_moved, 0);
}

/* --- Silent. --- */

static void wait_for_connections(const struct relay *relay, uint64_t count, struct watch *watch)
{
	clock_begin();
	while (atomic_load(&relay->accepted) < count) {
		sleep_ms(5);
		watch_look(watch);
		clock_check();
	}
}

/* The server is silent for longer than an operation may take. The client gives up the connection in time, and the next
 * attempt has the full time. Returns false if this process was delayed for too long to judge. */
static bool survives_silence(long timeout_ms)
{
	struct line line;
	struct watch watch;
	line_begin(&line, SETUP_SCALE,
		   (struct gw_client_options){.timeout_ms = timeout_ms, .reconnect_ms = LONG_MS, .transport = "tcp"});
	struct plan plan;
	struct gw_minibatch *batch = NULL;
	struct gw_ticket *gather, *sample;
	make_plan(line.client, &plan, false, false);
	relay_hold_after(&line.relay, 0);
	uint64_t before = atomic_load(&line.relay.accepted);
	watch_begin(&watch);
	assert_int_equal(gw_gather_start(line.client, line.feat, line.ids, line.n, line.out, &gather), GW_OK);
	assert_int_equal(gw_sample_start(line.client, &plan.spec, 1, 1, line.ids, 10, &batch, &sample), GW_OK);
	wait_for_connections(&line.relay, before + 2, &watch);
	relay_pass(&line.relay);
	gw_status gathered = gw_wait(gather, -1), sampled = gw_wait(sample, -1);
	bool late = gathered == GW_DEADLINE || sampled == GW_DEADLINE;
	bool told = !late || watch.worst_ns < (uint64_t)timeout_ms / 10 * GW_NS_PER_MS;
	if (told) {
		assert_int_equal(gathered, GW_OK);
		assert_int_equal(sampled, GW_OK);
		assert_memory_equal(line.out, line.expected, line.n * line.feat->row_bytes);
	}
	gw_minibatch_release(batch);
	line_end(&line);
	return told;
}

/* A host that vanishes sends nothing, not even an end of its connections. */
static void a_silent_link_fails_no_operation(void **state)
{
	(void)state;
	long timeout_ms = 20 * SHORT_MS;
	while (!survives_silence(timeout_ms)) {
		timeout_ms *= 2;
		assert_true(timeout_ms < LONG_MS);
	}
}

/* Connects reach the server, and it stays silent until their deadline. This is not the deadline of the operation, whose
 * clock stands still meanwhile. */
static void a_server_that_stays_silent_is_lost(void **state)
{
	(void)state;
	struct line line;
	line_begin(&line, SETUP_SCALE,
		   (struct gw_client_options){.timeout_ms = SHORT_MS, .reconnect_ms = 6 * SHORT_MS});
	struct gw_ticket *ticket;
	struct watch watch;
	uint64_t before = atomic_load(&line.relay.accepted);
	watch_begin(&watch);
	relay_cut_after(&line.relay, 0);
	assert_int_equal(gw_gather_start(line.client, line.feat, line.ids, line.n, line.out, &ticket), GW_OK);
	wait_for_connections(&line.relay, before + 1, &watch);
	relay_hold_after(&line.relay, 0);
	expect(gw_wait(ticket, -1), GW_PEER_LOST, "reconnect budget");
	clock_check();
	line_end(&line);
}

/* Many engines that wait for a server log one line, and one more when it is back. */
static void waiting_is_logged_once(void **state)
{
	(void)state;
	enum { TICKETS = 6 };
	struct setup setup;
	setup_begin(&setup, 55, 1, NULL);
	struct gw_client_options options = {
		.servers = setup.cluster.list, .server_count = 1, .threads = 3, .reconnect_ms = LONG_MS};
	struct gw_client *client = open_client(&options);
	const struct gw_tensor *feat = node_tensor(client, "paper", "feat");
	struct gw_ticket *tickets[TICKETS];
	int64_t id = 0;
	uint8_t rows[TICKETS][64];
	forget_log();
	cluster_kill(&setup.cluster, 0);
	for (int i = 0; i < TICKETS; i++)
		assert_int_equal(gw_gather_start(client, feat, &id, 1, rows[i], &tickets[i]), GW_OK);
	wait_for(&said_away);
	cluster_revive(&setup.cluster, 0);
	for (int i = 0; i < TICKETS; i++)
		expect(gw_wait(tickets[i], -1), GW_OK, "");
	/* Twice if an engine was delayed for seconds, which can happen on a busy machine. */
	assert_in_range(atomic_load(&said_away), 1, 2);
	assert_int_equal(atomic_load(&said_back), atomic_load(&said_away));
	assert_int_equal(atomic_load(&said_else), 0);
	gw_client_close(client);
	setup_end(&setup);
}

static void opening_logs_its_wait(void **state)
{
	(void)state;
	struct setup setup;
	struct gw_client *client;
	setup_begin(&setup, 56, 1, NULL);
	cluster_kill(&setup.cluster, 0);
	struct gw_client_options options = {
		.servers = setup.cluster.list, .server_count = 1, .threads = 1, .timeout_ms = 8 * SHORT_MS};
	forget_log();
	/* The client logs between two attempts, after some time. On a slow machine this needs a longer deadline. */
	for (; !atomic_load(&said_away) && options.timeout_ms < LONG_MS; options.timeout_ms *= 2)
		expect(gw_client_open(&options, &client), GW_PEER_LOST, "refused");
	assert_int_equal(atomic_load(&said_away), 1);
	cluster_revive(&setup.cluster, 0);
	setup_end(&setup);
}

/* --- Errors that waiting does not help. --- */

/* A client that would wait for very long. */
static struct gw_client_options patient(const struct cluster *cluster)
{
	return (struct gw_client_options){.servers = cluster->list,
					  .server_count = cluster->parts,
					  .threads = 1,
					  .timeout_ms = LONG_MS,
					  .reconnect_ms = LONG_MS};
}

static gw_status gather_all(struct gw_client *client)
{
	const struct gw_tensor *feat = node_tensor(client, "paper", "feat");
	uint64_t n = feat->shape[0];
	int64_t ids[SETUP_SCALE];
	static uint8_t rows[SETUP_SCALE * 64];
	assert_true(n <= SETUP_SCALE && feat->row_bytes <= 64);
	for (uint64_t i = 0; i < n; i++)
		ids[i] = (int64_t)i;
	return gw_gather(client, feat, ids, n, rows);
}

static void expect_gather(struct gw_client *client, gw_status wanted, const char *text)
{
	clock_begin();
	expect(gather_all(client), wanted, text);
	clock_check();
}

static void another_key_is_reported_soon(void **state)
{
	(void)state;
	struct setup setup;
	char path[128];
	uint8_t key[GW_KEY_BYTES];
	cluster_use_own_runtime_folder();
	setup_begin(&setup, 57, 1, NULL);
	assert_int_equal(gw_key_find(setup.cluster.addresses[0].port, key), GW_OK);
	snprintf(path, sizeof(path), "%s/key", setup.fixture.root);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(key, 1, sizeof(key), file), sizeof(key));
	fclose(file);
	assert_int_equal(chmod(path, 0600), 0);
	struct gw_client_options options = patient(&setup.cluster);
	options.key_file = path; /* the client reads its key file once; the restarted server has another key */
	struct gw_client *client = open_client(&options);
	cluster_kill(&setup.cluster, 0);
	cluster_revive(&setup.cluster, 0);
	expect_gather(client, GW_REFUSED, "another key than this client");
	gw_client_close(client);
	/* The client reads the runtime folder's key again, so this is no failure for such a client. */
	options.key_file = NULL;
	client = open_client(&options);
	cluster_kill(&setup.cluster, 0);
	cluster_revive(&setup.cluster, 0);
	expect_gather(client, GW_OK, "");
	gw_client_close(client);
	setup_end(&setup);
}

/* The server refuses one attempt of a waiting operation, which continues to wait. */
static void expect_to_wait(struct gw_client *client)
{
	struct gw_ticket *ticket;
	int64_t id = 0;
	uint8_t row[64];
	forget_log();
	assert_int_equal(gw_gather_start(client, node_tensor(client, "paper", "feat"), &id, 1, row, &ticket), GW_OK);
	clock_begin();
	while (!atomic_load(&said_refused)) {
		expect(gw_wait(ticket, 5), GW_AGAIN, "");
		clock_check();
	}
	gw_cancel(ticket);
}

/* A server refused an operation long ago, which has ended since. The next operation does not fail because of that. */
static void a_refusal_is_not_final_for_an_old_one(void **state)
{
	(void)state;
	struct setup setup;
	cluster_use_own_runtime_folder();
	setup_begin(&setup, 61, 1, NULL);
	struct gw_client_options options = patient(&setup.cluster);
	struct gw_client *client = open_client(&options);
	cluster_kill(&setup.cluster, 0);
	setup.cluster.insecure = true; /* it cannot prove a key */
	cluster_revive(&setup.cluster, 0);
	gw_log_set_level(GW_LOG_INFO);
	expect_to_wait(client);
	client_failed_long_ago(client, 10 * GW_NS_PER_SECOND);
	expect_to_wait(client);
	gw_log_set_level(GW_LOG_WARN);
	gw_client_close(client);
	setup_end(&setup);
}

/* A gather ends when the first of two links fails. The other link may report its server's change in the next gather. */
static void until_both_links_have_failed(struct gw_client *client)
{
	for (int tries = 0; tries < 4; tries++) {
		gather_all(client);
		if (!strstr(gw_last_error(), "part or layout"))
			return;
	}
}

static void another_part_or_graph_is_reported_at_once(void **state)
{
	(void)state;
	struct setup setup, other;
	setup_begin(&setup, 58, 2, NULL);
	setup_begin(&other, 59, 2, NULL);
	cluster_kill(&other.cluster, 0);
	cluster_kill(&other.cluster, 1);
	struct gw_client_options options = patient(&setup.cluster);
	struct gw_client *client = open_client(&options);
	/* The ports of the two parts' servers are swapped. */
	cluster_kill(&setup.cluster, 0);
	cluster_kill(&setup.cluster, 1);
	struct gw_address address = setup.cluster.addresses[0];
	setup.cluster.addresses[0] = setup.cluster.addresses[1];
	setup.cluster.addresses[1] = address;
	cluster_revive(&setup.cluster, 0);
	cluster_revive(&setup.cluster, 1);
	expect_gather(client, GW_WRONG_GRAPH, "another graph, part or layout");
	/* The server of another graph gets the port. */
	cluster_kill(&setup.cluster, 0);
	cluster_kill(&setup.cluster, 1);
	setup.cluster.part_config = other.fixture.folder;
	cluster_revive(&setup.cluster, 0);
	cluster_revive(&setup.cluster, 1);
	until_both_links_have_failed(client);
	expect_gather(client, GW_WRONG_GRAPH, "serves graph");
	gw_client_close(client);
	setup_end(&other);
	setup_end(&setup);
}

/* The first engine is connected. The second one finds no free descriptor for its connection. */
static void own_shortages_are_reported_soon(void **state)
{
	(void)state;
	struct setup setup;
	struct rlimit before, none;
	if (cluster_is_rdma())
		skip();
	setup_begin(&setup, 60, 1, NULL);
	struct gw_client_options options = patient(&setup.cluster);
	options.threads = 2;
	struct gw_client *client = open_client(&options);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	const struct gw_tensor *feat = node_tensor(client, "paper", "feat");
	int64_t id = 0;
	uint8_t rows[2][64];
	uint32_t short_of = 0, came = 0;
	clock_begin();
	while (short_of == 0 || came == 0) { /* on a busy machine one engine may get both calls */
		struct gw_ticket *tickets[2];
		for (int i = 0; i < 2; i++)
			assert_int_equal(gw_gather_start(client, feat, &id, 1, rows[i], &tickets[i]), GW_OK);
		for (int i = 0; i < 2; i++) {
			gw_status status = gw_wait(tickets[i], -1);
			came += status == GW_OK;
			short_of += status != GW_OK;
			if (status != GW_OK)
				expect(status, GW_LIMIT, "Too many open files");
		}
		clock_check();
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	/* With free descriptors it continues. */
	for (int i = 0; i < 2; i++)
		expect_gather(client, GW_OK, "");
	gw_client_close(client);
	setup_end(&setup);
}

/* A server hands over, and goes on at its sockets as a successor does. Each time the client connects again at once, and
 * no line of the log warns. */
static void a_successor_is_no_loss(void **state)
{
	(void)state;
	for (int mapped = 0; mapped < 2; mapped++) {
		struct setup setup;
		cluster_offer(mapped ? "shm" : NULL);
		setup_begin(&setup, 55, 1, NULL);
		cluster_offer(NULL);
		struct gw_client_options options = patient(&setup.cluster);
		options.transport = mapped ? "shm" : "tcp";
		struct gw_client *client = open_client(&options);
		gw_log_set_level(GW_LOG_INFO);
		expect_gather(client, GW_OK, "");
		for (uint32_t i = 0; i < 5; i++) {
			forget_log();
			assert_int_equal(gw_server_freeze(setup.cluster.servers[0], 10000), GW_OK);
			assert_int_equal(gw_server_thaw(setup.cluster.servers[0]), GW_OK);
			/* The loss of mapped memory is noticed without a read of it. Only an answer ends the pause that
			 * follows a loss, and mapped memory needs none. */
			if (mapped && i == 0)
				wait_for(&said_moved);
			expect_gather(client, GW_OK, "");
			assert_true(mapped || atomic_load(&said_moved) == 1);
			assert_int_equal(atomic_load(&said_away) + atomic_load(&said_back) + atomic_load(&said_else),
					 0);
		}
		gw_log_set_level(GW_LOG_WARN);
		gw_client_close(client);
		setup_end(&setup);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_silent_link_fails_no_operation),
		cmocka_unit_test(a_server_that_stays_silent_is_lost),
		cmocka_unit_test(waiting_is_logged_once),
		cmocka_unit_test(opening_logs_its_wait),
		cmocka_unit_test(another_key_is_reported_soon),
		cmocka_unit_test(another_part_or_graph_is_reported_at_once),
		cmocka_unit_test(own_shortages_are_reported_soon),
		cmocka_unit_test(a_refusal_is_not_final_for_an_old_one),
		cmocka_unit_test(a_successor_is_no_loss),
	};
	return cmocka_run_group_tests(tests, listen_to_the_log, NULL);
}
