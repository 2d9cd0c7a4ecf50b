/* The memory of a client. Memory of gw_buffer_alloc and gw_buffer_lend is registered once, a caller's own memory for
 * each call. Sampling keeps few registrations. The memory of a very large gather is freed. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/support/alloc_fault.h"
#include "test/support/client_inside.h"
#include "test/support/client_setup.h"

#define PARTS   2
#define ENGINES 2
#define ROWS    300
#define GATHERS 20

static struct setup setup;

static int set_up(void **state)
{
	(void)state;
	setup_begin(&setup, 5, PARTS, NULL);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	setup_end(&setup);
	return 0;
}

static struct gw_client *open_to_servers(void)
{
	struct gw_client_options options = {
		.servers = setup.cluster.list, .server_count = PARTS, .threads = ENGINES, .neighbours = "reads"};
	return open_client(&options);
}

static void gather_to(struct gw_client *client, uint8_t *at)
{
	const struct gw_tensor *feat = node_tensor(client, "paper", "feat");
	int64_t ids[ROWS];
	uint8_t *expected = malloc(ROWS * feat->row_bytes);
	assert_non_null(expected);
	for (int64_t i = 0; i < ROWS; i++)
		ids[i] = i * 2;
	assert_int_equal(gw_gather(client, feat, ids, ROWS, expected), GW_OK);
	uint64_t before = client_registrations(client);
	for (uint32_t i = 0; i < GATHERS; i++) {
		memset(at, 0, ROWS * feat->row_bytes);
		assert_int_equal(gw_gather(client, feat, ids, ROWS, at), GW_OK);
		assert_memory_equal(at, expected, ROWS * feat->row_bytes);
	}
	assert_int_equal(client_registrations(client), before);
	free(expected);
}

static void buffers_are_registered_once(void **state)
{
	(void)state;
	struct gw_client *client = open_to_servers();
	uint64_t bytes = 2 * ROWS * node_tensor(client, "paper", "feat")->row_bytes;
	uint64_t before = client_registrations(client);
	uint8_t *buffers[5];
	for (uint32_t i = 0; i < 5; i++) {
		buffers[i] = gw_buffer_alloc(client, bytes);
		assert_non_null(buffers[i]);
	}
	assert_int_equal(client_registrations(client), before + 5 * ENGINES);
	for (uint32_t i = 0; i < 5; i++)
		gather_to(client, buffers[i] + i * bytes / 10); /* anywhere in it */
	gw_buffer_free(client, buffers[2]);
	gather_to(client, buffers[1]);
	gather_to(client, buffers[3]);
	gw_buffer_free(client, buffers[0]);
	gw_buffer_free(client, NULL);
	gw_buffer_free(client, buffers[1] + 1); /* not a buffer of this client */
	gather_to(client, buffers[4]);
	gw_client_close(client); /* also frees the remaining buffers */
}

/* Memory of the caller stays the caller's: it is readable, and may be lent again, after it was forgotten. */
static void lent_memory_is_registered_once(void **state)
{
	(void)state;
	struct gw_client *client = open_to_servers();
	const uint64_t bytes = 2 * ROWS * node_tensor(client, "paper", "feat")->row_bytes;
	uint8_t *own = malloc(bytes);
	assert_non_null(own);
	for (uint32_t turn = 0; turn < 2; turn++) {
		uint64_t before = client_registrations(client);
		assert_int_equal(gw_buffer_lend(client, own, bytes), GW_OK);
		assert_int_equal(client_registrations(client), before + ENGINES);
		gather_to(client, own + bytes / 3);
		gw_buffer_free(client, own + 1); /* not a buffer */
		assert_int_equal(client_buffers(client), ENGINES);
		gw_buffer_free(client, own);
		assert_int_equal(client_buffers(client), 0);
	}
	assert_int_equal(gw_buffer_lend(client, own, bytes), GW_OK);
	gw_client_close(client);
	own[0] = own[bytes - 1] = 1; /* still the caller's */
	free(own);
}

static void buffers_do_not_overlap(void **state)
{
	(void)state;
	struct gw_client *client = open_to_servers();
	uint8_t *own = malloc(4096);
	assert_non_null(own);
	assert_int_equal(gw_buffer_lend(client, own + 1000, 1000), GW_OK);
	for (uint32_t first = 0; first < 2500; first += 250)
		for (uint32_t end = first + 250; end <= 2500; end += 250)
			if (first < 2000 && end > 1000)
				expect(gw_buffer_lend(client, own + first, end - first), GW_INVALID,
				       "overlaps a buffer");
	assert_int_equal(client_buffers(client), ENGINES);
	assert_int_equal(gw_buffer_lend(client, own, 1000), GW_OK);
	assert_int_equal(gw_buffer_lend(client, own + 2000, 96), GW_OK);
	expect(gw_buffer_lend(client, NULL, 100), GW_INVALID, "no address");
	expect(gw_buffer_lend(client, own + 3000, 0), GW_INVALID, "no bytes");
	expect(gw_buffer_lend(client, own + 3000, UINT64_MAX), GW_INVALID, "too many");
	gw_client_close(client);
	free(own);
}

/* A destination that is only partly in a buffer counts as the caller's own memory. */
static void other_memory_is_registered_for_the_call(void **state)
{
	(void)state;
	struct gw_client *client = open_to_servers();
	const struct gw_tensor *feat = node_tensor(client, "paper", "feat");
	int64_t ids[2] = {1, 2};
	uint8_t *own = malloc(2 * feat->row_bytes), *buffer = gw_buffer_alloc(client, 1 << 20);
	assert_true(own && buffer);
	uint64_t before = client_registrations(client);
	for (uint64_t i = 1; i <= 3; i++) {
		assert_int_equal(gw_gather(client, feat, ids, 2, own), GW_OK);
		assert_int_equal(client_registrations(client), before + i);
	}
	assert_int_equal(gw_gather(client, feat, ids, 2, buffer), GW_OK);
	assert_int_equal(client_registrations(client), before + 3);
	assert_memory_equal(own, buffer, 2 * feat->row_bytes);
	gw_buffer_free(client, buffer);
	free(own);
	gw_client_close(client);
}

struct churn {
	struct gw_client *client;
	const struct gw_tensor *feat;
	bool well;
};

static void *churn(void *argument)
{
	struct churn *churn = argument;
	int64_t ids[3] = {5, 500, 7};
	churn->well = true;
	for (int i = 0; i < 50 && churn->well; i++) {
		uint8_t *buffer = gw_buffer_alloc(churn->client, 3 * churn->feat->row_bytes);
		churn->well = buffer && gw_gather(churn->client, churn->feat, ids, 3, buffer) == GW_OK;
		gw_buffer_free(churn->client, buffer);
	}
	return NULL;
}

static void buffers_come_and_go(void **state)
{
	(void)state;
	struct gw_client *client = open_to_servers();
	struct churn churns[3];
	pthread_t threads[3];
	for (int t = 0; t < 3; t++) {
		churns[t] = (struct churn){.client = client, .feat = node_tensor(client, "paper", "feat")};
		assert_int_equal(pthread_create(&threads[t], NULL, churn, &churns[t]), 0);
	}
	for (int t = 0; t < 3; t++) {
		pthread_join(threads[t], NULL);
		assert_true(churns[t].well);
	}
	assert_int_equal(client_buffers(client), 0);
	gw_client_close(client);
}

/* The body starts threads that use the allocator too, so set it while no other thread runs. */
static gw_status use_buffers(void *context)
{
	struct gw_client *client;
	gw_status status = gw_client_open(context, &client);
	if (status != GW_OK)
		return status;
	void *first = gw_buffer_alloc(client, 4096), *second = gw_buffer_alloc(client, 4096);
	static uint8_t own[4096];
	status = gw_buffer_lend(client, own, sizeof(own));
	assert_int_equal(client_buffers(client), ((first != NULL) + (second != NULL) + (status == GW_OK)) * ENGINES);
	gw_buffer_free(client, first);
	gw_buffer_free(client, own);
	assert_int_equal(client_buffers(client), (second != NULL) * ENGINES);
	gw_client_close(client);
	return first && second ? status : GW_NO_MEMORY;
}

static void shortage_leaves_no_engine_with_a_buffer(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, 5, SETUP_SCALE, PARTS);
	gw_fixture_write(&fixture);
	struct gw_client_options options = {.part_config = fixture.folder, .threads = ENGINES};
	assert_true(gw_fault_each(use_buffers, &options) > 50);
	gw_fixture_end(&fixture);
}

static void mini_batches_are_registered_seldom(void **state)
{
	(void)state;
	uint64_t digests[EPOCH_MAX], again[EPOCH_MAX];
	struct gw_client *client = open_to_servers();
	struct plan plan;
	make_plan(client, &plan, false, false);
	uint64_t before = client_registrations(client);
	uint32_t n = run_epoch(client, &plan, 1, digests);
	assert_in_range(client_registrations(client) - before, 1, 6 * ENGINES);
	assert_int_equal(run_epoch(client, &plan, 1, again), n);
	assert_memory_equal(digests, again, n * sizeof(digests[0]));
	gw_client_close(client);
}

static uint64_t mapped_bytes(void)
{
	uint64_t pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lu", &pages), 1);
	fclose(file);
	return pages * 4096;
}

static void a_large_gather_gives_its_memory_back(void **state)
{
	(void)state;
	const uint64_t n = 4u << 20;
	struct gw_client_options options = {.part_config = setup.fixture.folder, .threads = 1};
	struct gw_client *client = open_client(&options);
	const struct gw_tensor *label = node_tensor(client, "paper", "label");
	int64_t *ids = calloc(n, sizeof(*ids));
	uint8_t *out = malloc(n * label->row_bytes);
	assert_true(ids && out);
	for (uint64_t i = 0; i < n; i++)
		ids[i] = (int64_t)(i % 97);
	assert_int_equal(gw_gather(client, label, ids, 1000, out), GW_OK);
	uint64_t before = mapped_bytes();
	assert_int_equal(gw_gather(client, label, ids, n, out), GW_OK);
	assert_true(mapped_bytes() < before + (64u << 20));
	free(out);
	free(ids);
	gw_client_close(client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buffers_are_registered_once),
		cmocka_unit_test(lent_memory_is_registered_once),
		cmocka_unit_test(buffers_do_not_overlap),
		cmocka_unit_test(other_memory_is_registered_for_the_call),
		cmocka_unit_test(buffers_come_and_go),
		cmocka_unit_test(mini_batches_are_registered_seldom),
		cmocka_unit_test(a_large_gather_gives_its_memory_back),
	};
	const struct CMUnitTest alone[] = {cmocka_unit_test(shortage_leaves_no_engine_with_a_buffer)};
	return cmocka_run_group_tests_name("without servers", alone, NULL, NULL) +
	       cmocka_run_group_tests_name("with servers", tests, set_up, tear_down);
}
