/* How clients choose between TCP and RDMA, and what they do when RDMA is lost within an epoch. The epoch's bytes
 * always equal those of the standalone client. Needs an RDMA device; else the tests are skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/system/clock.h"
#include "test/support/client_setup.h"
#include "test/support/rdma.h"

#define PARTS     2
#define COMING_NS (300 * GW_NS_PER_SECOND) /* a client that has not got there by then never will */

struct epoch {
	uint64_t digests[EPOCH_MAX];
	uint32_t n;
};

static struct setup setup;
static struct epoch expected;

static void check_epoch(struct gw_client *client, void (*midway)(struct gw_client *))
{
	struct plan plan;
	make_plan(client, &plan, false, false);
	struct gw_loader *loader = open_loader(client, &plan, (struct gw_loader_state){.epoch = 1});
	assert_int_equal(gw_loader_steps(loader), expected.n);
	for (uint32_t b = 0; b < expected.n; b++) {
		struct gw_minibatch *batch;
		if (b == expected.n / 3 && midway)
			midway(client);
		if (gw_loader_next(loader, &batch, -1) != GW_OK)
			fail_msg("batch %u: %s", b, gw_last_error());
		assert_true(gw_minibatch_digest(batch) == expected.digests[b]);
		gw_minibatch_release(batch);
	}
	gw_loader_close(loader);
}

static void expect_epoch(void)
{
	struct gw_client_options alone = {.part_config = setup.fixture.folder, .threads = 1};
	struct gw_client *client = open_client(&alone);
	struct plan plan;
	make_plan(client, &plan, false, false);
	expected.n = run_epoch(client, &plan, 1, expected.digests);
	gw_client_close(client);
}

static bool all_by(const struct gw_client *client, const char *transport)
{
	for (uint32_t p = 0; p < PARTS; p++)
		if (strcmp(gw_part_transport(client, p), transport) != 0)
			return false;
	return true;
}

static struct gw_client *open_by(const char *transport, uint32_t threads)
{
	struct gw_client_options options = {
		.servers = setup.cluster.list, .server_count = PARTS, .threads = threads, .transport = transport};
	return open_client(&options);
}

/* Attempts at RDMA are seconds apart, and a slow machine needs several. */
static void run_until(struct gw_client *client, const char *transport)
{
	uint64_t end_ns = gw_now_ns() + COMING_NS;
	while (!all_by(client, transport) && gw_now_ns() < end_ns)
		check_epoch(client, NULL);
	assert_true(all_by(client, transport));
}

static void rdma_is_chosen(void **state)
{
	(void)state;
	struct gw_client *client = open_by(NULL, 2);
	assert_true(all_by(client, "verbs"));
	check_epoch(client, NULL);
	assert_true(all_by(client, "verbs"));
	gw_client_close(client);
}

static void a_requested_transport_is_used(void **state)
{
	(void)state;
	static const char *const ways[] = {"tcp", "verbs"};
	for (int i = 0; i < 2; i++) {
		struct gw_client *client = open_by(ways[i], 2);
		assert_true(all_by(client, ways[i]));
		check_epoch(client, NULL);
		gw_client_close(client);
	}
	struct gw_client_options mapped = {.servers = setup.cluster.list,
					   .server_count = PARTS,
					   .transport = "shm",
					   .timeout_ms = patient_ms(500)};
	expect_no_client(mapped, GW_PEER_LOST, "not mapped");
}

static void restart(uint32_t part, const char *transport)
{
	cluster_kill(&setup.cluster, part);
	setup.cluster.transport = transport;
	cluster_revive(&setup.cluster, part);
}

static void without_rdma(struct gw_client *client)
{
	(void)client;
	restart(1, NULL);
}

/* Without RDMA the server is read over TCP. */
static void servers_come_back_with_other_transports(void **state)
{
	(void)state;
	struct gw_client *client = open_by(NULL, 1);
	check_epoch(client, without_rdma);
	assert_string_equal(gw_part_transport(client, 0), "verbs");
	assert_string_equal(gw_part_transport(client, 1), "tcp");

	struct gw_client_options options = {.servers = setup.cluster.list,
					    .server_count = PARTS,
					    .transport = "verbs",
					    .timeout_ms = patient_ms(500)};
	expect_no_client(options, GW_UNSUPPORTED, "no RDMA");
	restart(1, "verbs");
	run_until(client, "verbs");
	gw_client_close(client);
}

/* RDMA is lost while TCP works. After a pause the client uses RDMA again. */
static void rdma_is_lost_in_mid_batch(void **state)
{
	(void)state;
	struct gw_client *client = open_by(NULL, 1);
	check_epoch(client, rdma_break);
	assert_true(!all_by(client, "verbs"));
	run_until(client, "verbs");
	gw_client_close(client);

	/* A client that requests RDMA alone waits for it. */
	client = open_by("verbs", 1);
	check_epoch(client, rdma_break);
	assert_true(all_by(client, "verbs"));
	gw_client_close(client);
}

static int begin(void **state)
{
	(void)state;
	cluster_offer("verbs");
	setup_begin(&setup, 71, PARTS, NULL);
	expect_epoch();
	return 0;
}

static int end(void **state)
{
	(void)state;
	setup_end(&setup);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rdma_is_chosen),
		cmocka_unit_test(a_requested_transport_is_used),
		cmocka_unit_test(servers_come_back_with_other_transports),
		cmocka_unit_test(rdma_is_lost_in_mid_batch),
	};
	unsetenv("GRAPHWIRE_TEST_BED"); /* free to choose */
	if (rdma_is_here())
		return cmocka_run_group_tests_name("the choice of a transport", tests, begin, end);
	puts("ok 1 # SKIP no RDMA device");
	return 0;
}
