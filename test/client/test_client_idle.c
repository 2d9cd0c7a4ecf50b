/* Connections that nothing uses are closed, and the next use opens them again: the same bytes, also when a server was
 * lost meanwhile, and without a failure. Over RDMA too (CMakeLists.txt). Most tests pass a time that is far away
 * instead of waiting for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/engine/engine.h"
#include "core/system/clock.h"
#include "test/support/client_setup.h"
#include "test/support/must.h"

#define PARTS      3
#define OWNERS     2 /* the second part of three is empty */
#define HOUR_MS    3600000
#define LATER_NS   (2 * 3600 * GW_NS_PER_SECOND)
#define SAMPLES    2
#define TENSOR_ROW 4

static struct setup setup;

static const char *far(void)
{
	return cluster_is_rdma() ? "verbs" : "tcp";
}

static int idle_set_up(void **state)
{
	(void)state;
	cluster_offer(cluster_is_rdma() ? NULL : "shm");
	setup_begin(&setup, 41, PARTS, NULL);
	cluster_offer(NULL);
	return 0;
}

static int idle_tear_down(void **state)
{
	(void)state;
	setup_end(&setup);
	return 0;
}

static struct gw_client *idle_client(int64_t idle_ms, const char *transport, const char *driver)
{
	const struct gw_client_options options = {.servers = setup.cluster.list,
						  .server_count = PARTS,
						  .threads = 1,
						  .idle_ms = idle_ms,
						  .tcp_driver = driver,
						  .transport = transport};
	return open_client(&options);
}

/* The engine is this thread's until engine_give. */
static struct gw_engine *engine_take(struct gw_client *client)
{
	struct gw_engine *engine = &client->engines[0];
	uint32_t unowned = 0;
	while (!atomic_compare_exchange_weak(&engine->owner, &unowned, 1))
		unowned = 0;
	return engine;
}

static void engine_give(struct gw_engine *engine)
{
	atomic_store(&engine->owner, 0);
}

/* The engine's links at a time at which nothing has used them for long. Returns how many are open then. */
static uint32_t pass_time(struct gw_client *client)
{
	struct gw_engine *engine = engine_take(client);
	for (int turn = 0; turn < 4; turn++)
		gw_engine_run_once(engine, gw_now_ns());
	gw_links_tick(engine, gw_now_ns() + LATER_NS);
	uint32_t open = atomic_load(&engine->open_links);
	engine_give(engine);
	return open;
}

static uint64_t connections_open(void)
{
	uint64_t open = 0;
	for (uint32_t p = 0; p < PARTS; p++) {
		struct gw_service_counters counters;
		gw_service_counters(setup.cluster.servers[p]->service, &counters);
		open += counters.connections_open;
	}
	return open;
}

static void await_connections(uint64_t count)
{
	while (connections_open() != count)
		usleep(1000);
}

/* --- Bytes. --- */

static void expect_the_same_epoch(struct gw_client *client, const uint64_t *digests, uint32_t n)
{
	struct plan plan;
	uint64_t again[EPOCH_MAX];
	make_plan(client, &plan, false, false);
	assert_int_equal(run_epoch(client, &plan, 3, again), n);
	assert_memory_equal(again, digests, n * sizeof(*digests));
}

static uint32_t epoch_of(struct gw_client *client, uint64_t digests[EPOCH_MAX])
{
	struct plan plan;
	make_plan(client, &plan, false, false);
	return run_epoch(client, &plan, 3, digests);
}

static void a_closed_connection_opens_again(void **state)
{
	static const char *const drivers[] = {"epoll", "io_uring"};
	(void)state;
	for (int d = 0; d < 2; d++) {
		struct gw_client *client = idle_client(HOUR_MS, far(), drivers[d]);
		uint64_t digests[EPOCH_MAX];
		uint32_t n = epoch_of(client, digests);
		for (int turn = 0; turn < SAMPLES; turn++) {
			assert_int_equal(pass_time(client), 0);
			expect_the_same_epoch(client, digests, n);
		}
		/* The links to parts with rows are in use again, and their time begins again. */
		struct gw_engine *engine = engine_take(client);
		gw_links_tick(engine, gw_now_ns());
		assert_int_equal(atomic_load(&engine->open_links), OWNERS);
		engine_give(engine);
		gw_client_close(client);
	}
}

/* The engine's thread closes them, without a call of the client. */
static void nobody_needs_to_wait_for_it(void **state)
{
	(void)state;
	uint64_t digests[EPOCH_MAX];
	await_connections(0);
	struct gw_client *client = idle_client(1, far(), NULL);
	uint32_t n = epoch_of(client, digests);
	await_connections(0);
	expect_the_same_epoch(client, digests, n);
	await_connections(0);
	gw_client_close(client);
}

static void connections_stay_without_the_option(void **state)
{
	(void)state;
	struct gw_client *client = idle_client(0, far(), NULL);
	assert_int_equal(pass_time(client), PARTS);
	gw_client_close(client);
}

static void mapped_memory_stays(void **state)
{
	(void)state;
	if (cluster_is_rdma())
		skip();
	struct gw_client *client = idle_client(HOUR_MS, "shm", NULL);
	uint64_t digests[EPOCH_MAX];
	uint32_t n = epoch_of(client, digests);
	assert_int_equal(pass_time(client), PARTS);
	expect_the_same_epoch(client, digests, n);
	gw_client_close(client);
}

/* --- Work in progress, lost servers. --- */

static int64_t *papers(struct gw_client *client, uint64_t *n)
{
	*n = node_tensor(client, "paper", "feat")->shape[0];
	int64_t *ids = calloc(*n, sizeof(*ids));
	assert_non_null(ids);
	for (uint64_t i = 0; i < *n; i++)
		ids[i] = (int64_t)i;
	return ids;
}

static void an_open_op_keeps_its_connection(void **state)
{
	(void)state;
	struct gw_client *client = idle_client(HOUR_MS, far(), "epoll");
	assert_int_equal(pass_time(client), 0);
	uint64_t digests[EPOCH_MAX];
	uint32_t n = epoch_of(client, digests);
	struct gw_engine *engine = engine_take(client);
	struct gw_link *link = engine->part_links[0];
	link->ops_open++; /* as if a server took long to answer */
	engine_give(engine);
	assert_int_equal(pass_time(client), 1);
	assert_int_equal(link->state, GW_LINK_OPEN);
	expect_the_same_epoch(client, digests, n);
	engine = engine_take(client);
	link->ops_open--;
	assert_int_equal(link->ops_open, 0);
	/* The time begins with the end of the op. */
	gw_links_tick(engine, gw_now_ns() + LATER_NS + HOUR_MS * GW_NS_PER_MS / 2);
	assert_int_equal(link->state, GW_LINK_OPEN);
	gw_links_tick(engine, gw_now_ns() + 2 * LATER_NS);
	assert_int_equal(link->state, GW_LINK_DOWN);
	engine_give(engine);
	gw_client_close(client);
}

static void a_server_is_replaced_meanwhile(void **state)
{
	(void)state;
	struct gw_client *client = idle_client(HOUR_MS, far(), NULL);
	uint64_t digests[EPOCH_MAX];
	uint32_t n = epoch_of(client, digests);
	assert_int_equal(pass_time(client), 0);
	cluster_kill(&setup.cluster, 0);
	cluster_revive(&setup.cluster, 0);
	expect_the_same_epoch(client, digests, n);

	/* The server is away when the connection is wanted. */
	const struct gw_tensor *feat = node_tensor(client, "paper", "feat");
	uint64_t papers_n;
	int64_t *ids = papers(client, &papers_n);
	uint8_t *rows = calloc(2 * papers_n, feat->row_bytes), *again = rows + papers_n * feat->row_bytes;
	assert_non_null(rows);
	must(gw_gather(client, feat, ids, papers_n, rows));
	assert_int_equal(pass_time(client), 0);
	cluster_kill(&setup.cluster, 0);
	struct gw_ticket *ticket;
	must(gw_gather_start(client, feat, ids, papers_n, again, &ticket));
	assert_int_equal(gw_wait(ticket, 1), GW_AGAIN);
	cluster_revive(&setup.cluster, 0);
	must(gw_wait(ticket, -1));
	assert_memory_equal(again, rows, papers_n * feat->row_bytes);
	free(rows);
	free(ids);
	gw_client_close(client);
}

/* Writes are numbered: their numbers go on over a connection that was closed. */
static void tensors_go_on(void **state)
{
	(void)state;
	await_connections(0); /* servers have seen the end of the clients before */
	struct gw_client *client = idle_client(1, far(), NULL);
	const struct gw_tensor *tensor;
	uint32_t ntype;
	must(gw_node_type(client, "paper", &ntype));
	const struct gw_tensor_spec spec = {.name = "idle",
					    .placement = GW_PLACE_NODES,
					    .type = ntype,
					    .dtype = GW_FLOAT32,
					    .ndim = 2,
					    .shape = {0, TENSOR_ROW}};
	must(gw_tensor_create(client, &spec, &tensor));
	uint64_t n;
	int64_t *ids = papers(client, &n);
	float *rows = calloc(2 * n, tensor->row_bytes), *again = rows + n * TENSOR_ROW;
	assert_non_null(rows);
	for (int turn = 0; turn < SAMPLES; turn++) {
		for (uint64_t i = 0; i < n * TENSOR_ROW; i++)
			rows[i] = (float)(i * 3 + (uint64_t)turn);
		must(gw_update(client, tensor, ids, n, rows));
		must(gw_flush(client));
		await_connections(0);
		must(gw_gather(client, tensor, ids, n, again));
		assert_memory_equal(again, rows, n * tensor->row_bytes);
		await_connections(0);
	}
	free(rows);
	free(ids);
	gw_client_close(client);
}

static void a_time_that_is_too_long(void **state)
{
	(void)state;
	struct gw_client_options options = {.servers = setup.cluster.list, .server_count = PARTS, .idle_ms = INT64_MAX};
	expect_no_client(options, GW_RANGE, "idle_ms");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_closed_connection_opens_again),
		cmocka_unit_test(nobody_needs_to_wait_for_it),
		cmocka_unit_test(connections_stay_without_the_option),
		cmocka_unit_test(mapped_memory_stays),
		cmocka_unit_test(an_open_op_keeps_its_connection),
		cmocka_unit_test(a_server_is_replaced_meanwhile),
		cmocka_unit_test(tensors_go_on),
		cmocka_unit_test(a_time_that_is_too_long),
	};
	return cmocka_run_group_tests_name("idle connections", tests, idle_set_up, idle_tear_down);
}
