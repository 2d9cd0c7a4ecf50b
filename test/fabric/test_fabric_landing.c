/* How often the device registers memory of the caller, into which rows of mini-batches land (gw_client_options.memory):
 * for each fetch, if the client does not know the memory; once for each block of gw_buffer_lend, whatever the engine
 * that reads into it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/fabric/fabric.h"
#include "test/support/client_setup.h"

#define PARTS       2
#define ENGINES     2
#define NODES       8000 /* whose rows need a registration: up to 64 KiB are copied (transport/verbs/mr_cache.c) */
#define BLOCKS      3
#define BLOCK_BYTES (1u << 20)
#define BATCHES     8

static struct pool {
	pthread_mutex_t lock;
	uint8_t *blocks[BLOCKS];
	bool lent[BLOCKS], used[BLOCKS];
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *acquire(void *context, uint64_t bytes)
{
	(void)context;
	void *memory = NULL;
	assert_in_range(bytes, (64u << 10) + 1, BLOCK_BYTES);
	pthread_mutex_lock(&pool.lock);
	for (uint32_t i = 0; i < BLOCKS && !memory; i++) {
		if (pool.lent[i])
			continue;
		pool.lent[i] = pool.used[i] = true;
		memory = pool.blocks[i];
	}
	pthread_mutex_unlock(&pool.lock);
	assert_non_null(memory);
	return memory;
}

static void release(void *context, void *memory, uint64_t bytes)
{
	(void)context;
	(void)bytes;
	pthread_mutex_lock(&pool.lock);
	for (uint32_t i = 0; i < BLOCKS; i++)
		if (pool.blocks[i] == memory)
			pool.lent[i] = false;
	pthread_mutex_unlock(&pool.lock);
}

static int64_t seeds[NODES];

/* Two batches are held at a time; returns how often memory was registered. */
static uint64_t sample_all(struct gw_client *client, const struct gw_sample_spec *spec)
{
	uint64_t before = fabric_counts().registrations;
	struct gw_minibatch *held[2] = {NULL};
	for (uint32_t b = 0; b < BATCHES; b++) {
		gw_minibatch_release(held[b % 2]);
		if (gw_sample(client, spec, 1, b, seeds, NODES, &held[b % 2]) != GW_OK)
			fail_msg("%s", gw_last_error());
		bool landed = false;
		for (uint32_t i = 0; i < BLOCKS; i++)
			landed = landed || held[b % 2]->rows[0] == pool.blocks[i];
		assert_true(landed);
	}
	for (uint32_t i = 0; i < 2; i++)
		gw_minibatch_release(held[i]);
	return fabric_counts().registrations - before;
}

static uint64_t blocks_used(void)
{
	uint64_t used = 0;
	for (uint32_t i = 0; i < BLOCKS; i++)
		used += pool.used[i];
	return used;
}

static void a_lent_block_is_registered_once(void **state)
{
	(void)state;
	static const int32_t one[GW_FIXTURE_ETYPES] = {[FIXTURE_CITES] = 1};
	struct setup setup;
	gw_fixture_begin(&setup.fixture, 91, NODES, PARTS);
	gw_fixture_write(&setup.fixture);
	cluster_begin(&setup.cluster, setup.fixture.folder, PARTS, NULL);
	struct gw_client *client = open_client(&(struct gw_client_options){.servers = setup.cluster.list,
									   .server_count = PARTS,
									   .threads = ENGINES,
									   .memory = {acquire, release, NULL}});
	expect_transport(client, "verbs");
	const struct gw_tensor *feat = node_tensor(client, "paper", "feat");
	const struct gw_fetch fetch = {.tensor = feat, .at = GW_AT_INPUTS};
	const struct gw_sample_spec spec = {
		.ntype = feat->type, .hops = 1, .fanouts = one, .fetch_count = 1, .fetches = &fetch};
	for (uint32_t i = 0; i < BLOCKS; i++)
		assert_int_equal(posix_memalign((void **)&pool.blocks[i], 4096, BLOCK_BYTES), 0);
	for (int64_t i = 0; i < NODES; i++)
		seeds[i] = i;
	sample_all(client, &spec); /* links open, the client's own memory grows */
	assert_true(sample_all(client, &spec) >= BATCHES);

	memset(pool.used, 0, sizeof(pool.used));
	for (uint32_t i = 0; i < BLOCKS; i++)
		assert_int_equal(gw_buffer_lend(client, pool.blocks[i], BLOCK_BYTES), GW_OK);
	uint64_t registered = sample_all(client, &spec);
	assert_int_equal(registered, blocks_used());
	assert_in_range(registered, 2, BLOCKS); /* two batches were held */
	assert_int_equal(sample_all(client, &spec), 0);

	uint64_t pinned = fabric_counts().pinned_bytes;
	for (uint32_t i = 0; i < BLOCKS; i++)
		gw_buffer_free(client, pool.blocks[i]);
	assert_int_equal(fabric_counts().pinned_bytes, pinned - registered * BLOCK_BYTES);
	assert_true(sample_all(client, &spec) >= BATCHES);
	gw_client_close(client);
	for (uint32_t i = 0; i < BLOCKS; i++)
		free(pool.blocks[i]);
	setup_end(&setup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_lent_block_is_registered_once)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
