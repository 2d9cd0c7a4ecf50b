/* Mini-batches of nodes by their definition, disjoint and not: every block drawn again from the edge list; the trees of
 * a disjoint batch beside batches of one seed; the same bytes over every path, also from loaders. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "test/support/batch_oracle.h"
#include "test/support/client_paths.h"
#include "test/support/client_setup.h"
#include "test/support/must.h"

#define SEED 6

static const int32_t three_hops[3 * GW_FIXTURE_ETYPES] = {3, 2, 4, 5, 2, 2, GW_ALL_NEIGHBOURS, 3, 1, 1, 2, 1};
static const int64_t seeds[] = {11, 0, 200, 7, 7, 199};
#define SEEDS (sizeof(seeds) / sizeof(seeds[0]))

/* --- Blocks. --- */

static struct gw_sample_spec variant_of(uint32_t variant)
{
	return (struct gw_sample_spec){.hops = 3,
				       .fanouts = three_hops,
				       .replace = variant & 1,
				       .wide_indices = variant & 2,
				       .disjoint = variant & 4,
				       .frontier = variant & 8 ? GW_FRONTIER_ALL : GW_FRONTIER_NEW};
}

static void check_blocks(const struct ways *ways)
{
	for (uint32_t variant = 0; variant < 16; variant++) {
		const struct gw_sample_spec spec = variant_of(variant);
		struct batch_oracle oracle = {
			.fixture = &ways->setup.fixture, .spec = &spec, .seed = SEED, .stream = variant};
		uint64_t digest = 0;
		for (uint32_t i = 0; i < ways->count; i++) {
			struct gw_minibatch *batch;
			must(gw_sample(ways->clients[i], &spec, SEED, variant, seeds, SEEDS, &batch));
			oracle.batch = batch;
			if (i == 0) {
				batch_oracle_blocks(&oracle);
				digest = gw_minibatch_digest(batch);
			}
			assert_int_equal(gw_minibatch_digest(batch), digest);
			gw_minibatch_release(batch);
		}
	}
}

static void blocks_are_as_defined(void **state)
{
	(void)state;
	paths_of_parts(SEED, check_blocks);
}

/* --- Groups. --- */

static void check_seeds_are_groups(const struct ways *ways)
{
	struct gw_sample_spec spec = variant_of(4);
	struct gw_minibatch *batch;
	must(gw_sample(ways->clients[0], &spec, SEED, 1, seeds, SEEDS, &batch));
	assert_int_equal(batch->group_count, SEEDS);
	assert_null(batch->seed_times);
	for (uint32_t i = 0; i < SEEDS; i++) {
		assert_int_equal(batch->seed_rows[i], i);
		assert_int_equal(batch->groups[spec.ntype][i], i);
		assert_int_equal(batch->nodes[spec.ntype][i], seeds[i]);
	}
	gw_minibatch_release(batch);
	spec.disjoint = false;
	must(gw_sample(ways->clients[0], &spec, SEED, 1, seeds, SEEDS, &batch));
	assert_null(batch->groups);
	assert_int_equal(batch->group_count, 0);
	gw_minibatch_release(batch);
}

/* The nodes of a group in their order. */
static uint64_t nodes_of(const struct gw_minibatch *batch, uint32_t ntype, uint32_t group, int64_t *out)
{
	uint64_t n = 0;
	for (uint64_t i = 0; i < batch->node_counts[ntype]; i++) {
		if (!batch->groups || batch->groups[ntype][i] == group)
			out[n++] = batch->nodes[ntype][i];
	}
	return n;
}

#define NODES_MAX 20000

/* The first group draws as a batch of the seed alone; equal seeds draw for themselves. */
static void check_trees(const struct ways *ways)
{
	static int64_t tree[NODES_MAX], other[NODES_MAX];
	for (uint32_t stream = 0; stream < 4; stream++) {
		struct gw_sample_spec spec = variant_of(4 + 8 * (stream % 2));
		struct gw_minibatch *batch, *alone;
		uint64_t counts[2] = {0};
		must(gw_sample(ways->clients[0], &spec, SEED, stream, seeds, SEEDS, &batch));
		spec.disjoint = false;
		must(gw_sample(ways->clients[0], &spec, SEED, stream, seeds, 1, &alone));
		for (uint32_t t = 0; t < batch->num_ntypes; t++) {
			uint64_t n = nodes_of(batch, t, 0, tree);
			assert_int_equal(n, nodes_of(alone, t, 0, other));
			assert_memory_equal(tree, other, n * sizeof(*tree));
			counts[0] += nodes_of(batch, t, 3, tree);
			counts[1] += nodes_of(batch, t, 4, other);
		}
		uint64_t n = nodes_of(batch, spec.ntype, 3, tree), m = nodes_of(batch, spec.ntype, 4, other);
		assert_true(counts[0] != counts[1] || n != m || memcmp(tree, other, n * sizeof(*tree)) != 0);
		gw_minibatch_release(alone);
		gw_minibatch_release(batch);
	}
}

static void groups_are_trees_of_their_seeds(void **state)
{
	(void)state;
	paths_of_parts(SEED, check_seeds_are_groups);
	paths_of_parts(SEED, check_trees);
}

/* --- Loaders. --- */

#define BATCHES_MAX 64

static void check_loaders(const struct ways *ways)
{
	static int64_t ids[70];
	uint64_t digests[2][BATCHES_MAX];
	for (uint32_t i = 0; i < 70; i++)
		ids[i] = (i * 37) % 300;
	for (uint32_t i = 0; i < ways->count; i++) {
		uint64_t *own = digests[i > 0];
		struct gw_loader_options options = {
			.spec = variant_of(4), .ids = ids, .id_count = 70, .batch_size = 9, .shuffle = true, .seed = 3};
		uint32_t n = paths_run_loader(ways->clients[i], options, (struct gw_loader_state){0}, own);
		assert_true(n > 1 && n <= BATCHES_MAX);
		assert_memory_equal(own, digests[0], n * sizeof(*own));
	}
}

static void loaders_give_the_same_bytes(void **state)
{
	(void)state;
	paths_of_parts(SEED, check_loaders);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_are_as_defined),
		cmocka_unit_test(groups_are_trees_of_their_seeds),
		cmocka_unit_test(loaders_give_the_same_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
