/* Mini-batches without ids of edges: over every path the blocks of the same batch with ids, also where edges are
 * excluded; servers send fewer bytes; what needs the ids is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "test/support/batch_oracle.h"
#include "test/support/client_paths.h"
#include "test/support/client_setup.h"
#include "test/support/must.h"

#define SEED 8

static const int64_t seeds[] = {11, 0, 200, 7, 7, 199, 63, 64};
#define SEEDS (sizeof(seeds) / sizeof(seeds[0]))

static struct gw_minibatch *sample(struct gw_client *client, struct gw_sample_spec spec, bool no_edge_ids)
{
	struct gw_minibatch *batch;
	spec.no_edge_ids = no_edge_ids;
	must(gw_sample(client, &spec, SEED, 5, seeds, SEEDS, &batch));
	return batch;
}

static void check_lists(const struct gw_minibatch *batch, uint64_t num_etypes, bool no_edge_ids)
{
	for (uint32_t e = 0; e < num_etypes; e++) {
		const struct gw_sampled_edges *edges = &batch->sampled[e];
		uint64_t at = 0;
		assert_int_equal(edges->ids == NULL, no_edge_ids);
		assert_ptr_equal(edges->dst, edges->src + edges->count);
		for (uint32_t h = 0; h < batch->hops; h++) {
			for (uint32_t i = 0; i < batch->blocks[h]->edges_count; i++) {
				const struct gw_block_edges *some = &batch->blocks[h]->edges[i];
				for (uint64_t j = 0; some->etype == e && j < some->edge_count; j++)
					assert_int_equal(edges->src[at++], ((const int32_t *)some->indices)[j]);
			}
		}
		assert_int_equal(at, edges->count);
	}
}

static void check_paths(const struct ways *ways)
{
	static const struct gw_edge_seeds writes = {.etype = FIXTURE_WRITES,
						    .negatives = GW_NEGATIVES_DST,
						    .negatives_each = 2,
						    .exclude = GW_EXCLUDE_EDGES | GW_EXCLUDE_REVERSE_TYPE,
						    .reverse_etype = FIXTURE_WRITTEN_BY};
	const struct gw_sample_spec specs[] = {
		{.hops = 2, .fanouts = all_fanouts, .sampled_edges = true},
		{.hops = 2, .fanouts = all_fanouts, .sampled_edges = true, .replace = true, .disjoint = true},
		{.hops = 2, .fanouts = all_fanouts, .sampled_edges = true, .edges = &writes},
	};
	for (uint32_t s = 0; s < sizeof(specs) / sizeof(specs[0]); s++) {
		struct batch_oracle oracle = {
			.fixture = &ways->setup.fixture, .spec = &specs[s], .seed = SEED, .stream = 5};
		uint64_t digest = 0, dropped = 0;
		for (uint32_t i = 0; i < ways->count; i++) {
			for (uint32_t without = 0; without < 2; without++) {
				struct gw_minibatch *batch = sample(ways->clients[i], specs[s], without);
				oracle.batch = batch;
				dropped += batch_oracle_blocks(&oracle);
				check_lists(batch, GW_FIXTURE_ETYPES, without);
				assert_int_equal(batch->blocks[0]->edges[0].edge_ids == NULL, without);
				if (without && i == 0)
					digest = gw_minibatch_digest(batch);
				assert_int_equal(gw_minibatch_digest(batch) == digest, without);
				gw_minibatch_release(batch);
			}
		}
		assert_int_equal(dropped > 0, specs[s].edges != NULL);
	}
}

static void blocks_are_the_same_without_ids(void **state)
{
	(void)state;
	paths_of_parts(SEED, check_paths);
}

static uint64_t received(const struct gw_client *client)
{
	struct gw_client_stats stats;
	struct gw_link_stats links[8];
	uint64_t bytes = 0;
	uint32_t n = gw_client_get_stats(client, &stats, links, 8);
	assert_in_range(n, 1, 8);
	for (uint32_t i = 0; i < n; i++)
		bytes += links[i].received_bytes;
	return bytes;
}

/* An id of 4 bytes for each edge; a run's array is padded to 8 bytes. */
static void servers_do_not_send_ids_that_nobody_reads(void **state)
{
	(void)state;
	struct ways ways;
	paths_begin(&ways, SEED, 3, "tcp", NULL);
	const struct gw_sample_spec spec = {.hops = 2, .fanouts = all_fanouts};
	struct gw_client *client = ways.clients[2];
	uint64_t bytes[3] = {received(client)}, edges = 0;
	for (uint32_t without = 0; without < 2; without++) {
		struct gw_minibatch *batch = sample(client, spec, without);
		edges = batch->edge_count;
		gw_minibatch_release(batch);
		bytes[without + 1] = received(client);
	}
	uint64_t with = bytes[1] - bytes[0], without = bytes[2] - bytes[1];
	assert_true(edges > 100);
	assert_in_range(with - without, edges * 4, edges * 4 + edges);
	paths_end(&ways);
}

static void rows_of_edges_need_ids(void **state)
{
	(void)state;
	struct ways ways;
	paths_begin(&ways, SEED, 1, NULL, NULL);
	struct gw_fetch fetch = {.at = GW_AT_EDGES};
	struct gw_sample_spec spec = {.hops = 2, .fanouts = all_fanouts, .fetch_count = 1, .fetches = &fetch};
	struct gw_minibatch *batch = NULL;
	must(gw_edge_tensor(ways.clients[0], FIXTURE_WRITES, "orig_id", &fetch.tensor));
	gw_minibatch_release(sample(ways.clients[0], spec, false));
	spec.no_edge_ids = true;
	assert_int_equal(gw_sample(ways.clients[0], &spec, SEED, 5, seeds, SEEDS, &batch), GW_INVALID);
	assert_non_null(strstr(gw_last_error(), "no_edge_ids"));
	assert_null(batch);
	paths_end(&ways);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_are_the_same_without_ids),
		cmocka_unit_test(servers_do_not_send_ids_that_nobody_reads),
		cmocka_unit_test(rows_of_edges_need_ids),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
