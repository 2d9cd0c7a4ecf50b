/* Negatives that exist at the times of their edges, when something goes wrong: cancelled batches, short memory, and
 * servers whose index of times is not in order. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/graph/part.h"
#include "core/numbers/rng.h"
#include "test/support/alloc_fault.h"
#include "test/support/client_paths.h"
#include "test/support/client_setup.h"
#include "test/support/must.h"

#define SEED 8

static const int32_t one_hop[GW_FIXTURE_ETYPES] = {2, 2, 2, 2};

static void with_paths(void (*body)(const struct ways *ways))
{
	static const char *const offers[] = {NULL, "shm"};
	for (uint32_t i = 0; i < 2 && (i == 0 || !cluster_is_rdma()); i++) {
		struct ways ways;
		paths_begin(&ways, SEED, 3 - i, offers[i], NULL);
		body(&ways);
		paths_end(&ways);
	}
}

/* --- Cancels, and short memory. --- */

static const int64_t life_ids[] = {3, 4, 5, 9}, life_times[] = {50, GW_FIXTURE_BORN_1, 1, 1000};
static const struct gw_edge_seeds life_edges = {.etype = FIXTURE_WRITES,
						.negatives = GW_NEGATIVES_DST,
						.negatives_each = 5,
						.no_true_edges = true,
						.exist_time = "born",
						.exist_end = "gone"};
static const struct gw_sample_spec life_spec = {.hops = 1, .fanouts = one_hop, .edges = &life_edges};
static const struct gw_seeds life_seeds = {.type = FIXTURE_WRITES, .count = 4, .ids = life_ids, .times = life_times};

static gw_status sample_once(struct gw_client *client)
{
	struct gw_minibatch *batch;
	gw_status status = gw_sample_lists(client, &life_spec, 1, 1, &life_seeds, 1, &batch);
	if (status == GW_OK)
		gw_minibatch_release(batch);
	return status;
}

static void check_cancels(const struct ways *ways)
{
	for (uint32_t i = 0; i < ways->count; i++) {
		for (uint64_t tries = 0; tries < 20; tries++) {
			struct gw_minibatch *batch = NULL;
			struct gw_ticket *ticket;
			must(gw_sample_lists_start(ways->clients[i], &life_spec, 1, tries, &life_seeds, 1, &batch,
						   &ticket));
			if (tries % 2)
				sched_yield();
			gw_cancel(ticket);
			assert_null(batch);
		}
	}
	for (uint32_t i = 0; i < ways->count; i++)
		must(sample_once(ways->clients[i]));
}

static void a_batch_may_be_cancelled_at_any_fetch(void **state)
{
	(void)state;
	with_paths(check_cancels);
}

static void short_memory_is_an_error(void **state)
{
	(void)state;
	assert_true(in_short_memory(3, 60, 2, sample_once) > 100);
}

/* --- Servers that lie. --- */

/* Entries in the memory of a server of this process. No call runs meanwhile, which the thread sanitizer does not see.
 */
__attribute__((no_sanitize_thread)) static void forge(uint8_t *entries, const uint8_t *kept, uint64_t bytes,
						      uint64_t seed)
{
	for (uint64_t i = 0; i < bytes; i++)
		((volatile uint8_t *)entries)[i] = seed ? (uint8_t)gw_mix64(seed * bytes + i) : kept[i];
}

/* often: most lies about the array are noticed. */
static void hear_lies(struct gw_client *client, const struct gw_array *array, const char *text, bool often)
{
	uint64_t bytes = array->rows * array->row_bytes;
	uint8_t *entries = (uint8_t *)(uintptr_t)array->data, *kept = malloc(bytes);
	uint32_t noticed = 0;
	memcpy(kept, entries, bytes);
	for (uint64_t seed = 1; seed <= 20; seed++) {
		forge(entries, kept, bytes, seed);
		gw_status status = sample_once(client);
		if (status == GW_PROTOCOL)
			assert_non_null(strstr(gw_last_error(), text));
		else if (status != GW_NOT_FOUND)
			must(status);
		noticed += status == GW_PROTOCOL;
		forge(entries, kept, bytes, 0);
		must(sample_once(client));
	}
	free(kept);
	assert_true(!often || noticed > 10);
}

static void check_liars(const struct ways *ways)
{
	const uint32_t parts = ways->setup.fixture.schema->num_parts, last = parts - 1;
	const struct gw_part *part = ways->setup.cluster.servers[last]->part;
	const struct gw_array *keys = gw_part_array(part, "node/paper/born.times");
	const struct gw_array *nodes = gw_part_array(part, "node/paper/born.times_nodes");
	char order[64], row[64];
	snprintf(order, sizeof(order), "part %u: the index of the times \"born\" of paper is not in order", last);
	snprintf(row, sizeof(row), "part %u: the index of the times \"born\" of paper names row ", last);
	for (uint32_t i = 2; i < ways->count; i++) {
		struct gw_client *client = ways->clients[i];
		hear_lies(client, keys, order, true);
		hear_lies(client, nodes, row, true);
		hear_lies(client, gw_part_array(part, "node/paper/gone"), "", false);
	}
}

static void an_index_that_is_not_in_order_is_refused(void **state)
{
	(void)state;
	with_paths(check_liars);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_batch_may_be_cancelled_at_any_fetch),
		cmocka_unit_test(short_memory_is_an_error),
		cmocka_unit_test(an_index_that_is_not_in_order_is_refused),
	};
	return cmocka_run_group_tests(tests, gw_fixture_times_set_up, gw_fixture_times_tear_down);
}
