/* Loaders over edges, over several node types, and over ranks with a short last batch; with servers that restart, and
 * with mini-batches that other threads release. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "test/support/client_paths.h"
#include "test/support/client_setup.h"

/* --- Loaders. --- */

static void check_loader(const struct ways *ways, const struct gw_loader_options *options)
{
	uint64_t expected[EPOCH_MAX], next[EPOCH_MAX], got[EPOCH_MAX];
	uint32_t n = paths_run_loader(ways->clients[0], *options, (struct gw_loader_state){0}, expected);
	assert_in_range(n, 3, EPOCH_MAX);
	assert_int_equal(paths_run_loader(ways->clients[0], *options, (struct gw_loader_state){.epoch = 1}, next), n);
	assert_true(memcmp(expected, next, n * sizeof(*next)) != 0);
	for (uint32_t i = 1; i < ways->count; i++) {
		assert_int_equal(paths_run_loader(ways->clients[i], *options, (struct gw_loader_state){0}, got), n);
		assert_memory_equal(got, expected, n * sizeof(*got));
	}
	/* From the state after each batch a loader gives the rest. */
	struct gw_loader *loader = paths_loader(ways->clients[0], options);
	for (uint32_t b = 0; b < n; b++) {
		struct gw_minibatch *batch;
		struct gw_loader_state state;
		assert_int_equal(gw_loader_next(loader, &batch, -1), GW_OK);
		gw_minibatch_release(batch);
		gw_loader_get_state(loader, &state);
		assert_int_equal(paths_run_loader(ways->clients[2], *options, state, got), n - b - 1);
		assert_memory_equal(got, expected + b + 1, (n - b - 1) * sizeof(*got));
	}
	gw_loader_close(loader);
}

static void loaders_go_over_edges_and_types(void **state)
{
	(void)state;
	struct ways ways;
	paths_begin(&ways, 55, 2, NULL, NULL);
	static const int64_t few[] = {3, 5, 9, 12, 13, 14};
	struct gw_edge_seeds edges = {.etype = FIXTURE_WRITES,
				      .negatives = GW_NEGATIVES_DST,
				      .negatives_each = 2,
				      .negative_ids = few,
				      .negative_id_count = 6,
				      .no_true_edges = true,
				      .exclude = GW_EXCLUDE_EDGES | GW_EXCLUDE_REVERSE};
	struct gw_loader_options options = {
		.spec = {.hops = 2, .fanouts = all_fanouts, .edges = &edges}, .shuffle = true, .seed = 3, .depth = 3};
	options.batch_size = (uint32_t)(ways.setup.fixture.edges[FIXTURE_WRITES].count / 5);
	check_loader(&ways, &options);
	const int64_t authors[] = {1, 5, 7, 11, 30, 31};
	const struct gw_seeds lists[] = {{.type = 1, .ids = authors, .count = 6}, {.type = 0}};
	options = (struct gw_loader_options){.spec = {.hops = 2, .fanouts = all_fanouts},
					     .shuffle = true,
					     .seed = 3,
					     .batch_size = 100,
					     .lists = lists,
					     .list_count = 2};
	check_loader(&ways, &options);
	paths_end(&ways);
}

/* Every edge, and every node of several types, occurs once in an epoch over all ranks. Each rank knows its own number
 * of steps. */
static void check_shares(struct gw_client *client, const struct gw_loader_options *wanted, uint64_t n, uint32_t world)
{
	uint32_t *counts = calloc(n, sizeof(*counts));
	uint64_t steps = 0, most = 0, second_from = wanted->lists ? wanted->lists[0].count : 0;
	for (uint32_t rank = 0; rank < world; rank++) {
		struct gw_loader_options options = *wanted;
		options.world = world;
		options.rank = rank;
		struct gw_loader *loader = paths_loader(client, &options);
		struct gw_minibatch *batch;
		struct gw_loader_state at;
		for (int epoch = 0; epoch < 2; epoch++) {
			uint64_t got = 0;
			while (gw_loader_next(loader, &batch, -1) == GW_OK) {
				assert_true(batch->seed_count > 0);
				for (uint64_t i = 0; i < batch->seed_count && epoch == 0; i++) {
					bool second = batch->seed_list_count == 2 && i >= batch->seed_lists[0].count;
					counts[(uint64_t)batch->seeds[i] + (second ? second_from : 0)]++;
				}
				gw_minibatch_release(batch);
				got++;
			}
			assert_int_equal(got, gw_loader_steps(loader));
		}
		gw_loader_get_state(loader, &at);
		assert_int_equal(at.epoch, 2);
		steps += gw_loader_steps(loader);
		most = gw_loader_steps(loader) > most ? gw_loader_steps(loader) : most;
		gw_loader_close(loader);
		/* The state of a rank with one more step: this rank has no step left. */
		options.start = (struct gw_loader_state){.step = most};
		loader = paths_loader(client, &options);
		if (gw_loader_steps(loader) <= most)
			assert_int_equal(gw_loader_next(loader, &batch, -1), GW_END);
		gw_loader_close(loader);
	}
	assert_int_equal(steps, (n + wanted->batch_size - 1) / wanted->batch_size);
	for (uint64_t i = 0; i < n; i++)
		assert_int_equal(counts[i], 1);
	free(counts);
}

static void a_short_last_batch_may_be_one_ranks_alone(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, 56, SETUP_SCALE, 2);
	gw_fixture_write(&fixture);
	struct gw_client_options alone = {.part_config = fixture.folder, .threads = 2};
	struct gw_client *client = open_client(&alone);
	static const int32_t fanouts[GW_FIXTURE_ETYPES] = {1, 1, 1, 1};
	struct gw_edge_seeds edges = {.etype = FIXTURE_KNOWS};
	struct gw_loader_options of_edges = {
		.spec = {.hops = 1, .fanouts = fanouts, .edges = &edges}, .shuffle = true, .last = GW_LAST_SHORT};
	uint64_t n = fixture.edges[FIXTURE_KNOWS].count, papers = fixture.schema->ntypes[0].count;
	const struct gw_seeds lists[] = {{.type = 0, .count = papers}, {.type = 1}};
	uint64_t authors = fixture.schema->ntypes[1].count;
	for (uint32_t world = 1; world <= 5; world++) {
		for (uint32_t size = 1; size <= 4; size++) {
			of_edges.batch_size = (uint32_t)n / (size == 1 ? 2 : size * 3) + 1;
			check_shares(client, &of_edges, n, world);
		}
		struct gw_loader_options of_types = {.spec = {.hops = 1, .fanouts = fanouts},
						     .shuffle = world % 2,
						     .batch_size = 100,
						     .last = GW_LAST_SHORT,
						     .lists = lists,
						     .list_count = 2};
		check_shares(client, &of_types, papers + authors, world);
	}
	gw_client_close(client);
	gw_fixture_end(&fixture);
}

/* --- Features of seeds; servers that restart. --- */

static struct gw_loader *loader_with_features(struct gw_client *client, struct gw_fetch fetches[2],
					      const struct gw_edge_seeds *edges)
{
	const struct gw_tensor *weight;
	assert_int_equal(gw_edge_tensor(client, FIXTURE_CITES, "weight", &weight), GW_OK);
	fetches[0] = (struct gw_fetch){.tensor = weight, .at = GW_AT_SEEDS};
	fetches[1] = (struct gw_fetch){.tensor = node_tensor(client, "paper", "feat"), .at = GW_AT_INPUTS};
	struct gw_loader_options options = {
		.spec = {.hops = 2, .fanouts = all_fanouts, .edges = edges, .fetch_count = 2, .fetches = fetches},
		.batch_size = 60,
		.shuffle = true,
		.last = GW_LAST_SHORT};
	return paths_loader(client, &options);
}

static void a_restart_costs_no_batch_of_edges(void **state)
{
	(void)state;
	struct ways ways;
	paths_begin(&ways, 60, 2, NULL, NULL);
	struct gw_fetch alone_fetches[2], fetches[2];
	struct gw_edge_seeds edges = {.etype = FIXTURE_CITES,
				      .negatives = GW_NEGATIVES_DST,
				      .negatives_each = 1,
				      .no_true_edges = true,
				      .exclude = GW_EXCLUDE_EDGES};
	struct gw_loader *alone = loader_with_features(ways.clients[0], alone_fetches, &edges);
	struct gw_loader *loader = loader_with_features(ways.clients[2], fetches, &edges);
	struct gw_minibatch *expected, *got;
	for (uint32_t b = 0; b < gw_loader_steps(alone); b++) {
		if (b % 4 == 1) {
			cluster_kill(&ways.setup.cluster, b / 4 % 2);
			cluster_revive(&ways.setup.cluster, b / 4 % 2);
		}
		assert_int_equal(gw_loader_next(alone, &expected, -1), GW_OK);
		if (gw_loader_next(loader, &got, -1) != GW_OK)
			fail_msg("batch %u: %s", b, gw_last_error());
		assert_true(gw_minibatch_digest(got) == gw_minibatch_digest(expected));
		float weights[60];
		assert_int_equal(got->row_counts[0], got->seed_count);
		assert_int_equal(
			gw_gather(ways.clients[0], alone_fetches[0].tensor, got->seeds, got->seed_count, weights),
			GW_OK);
		assert_memory_equal(got->rows[0], weights, got->seed_count * sizeof(float));
		gw_minibatch_release(expected);
		gw_minibatch_release(got);
	}
	gw_loader_close(alone);
	gw_loader_close(loader);
	paths_end(&ways);
}

/* --- Other threads. --- */

#define HELD 8

struct held {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct gw_minibatch *batches[HELD];
	uint32_t count;
	bool over;
};

static void *release_held(void *argument)
{
	struct held *held = argument;
	pthread_mutex_lock(&held->lock);
	while (held->count || !held->over) {
		if (!held->count) {
			pthread_cond_wait(&held->changed, &held->lock);
			continue;
		}
		struct gw_minibatch *batch = held->batches[--held->count];
		pthread_cond_broadcast(&held->changed);
		pthread_mutex_unlock(&held->lock);
		gw_minibatch_release(batch);
		pthread_mutex_lock(&held->lock);
	}
	pthread_mutex_unlock(&held->lock);
	return NULL;
}

static void any_thread_releases_a_mini_batch(void **state)
{
	(void)state;
	struct ways ways;
	paths_begin(&ways, 57, 2, NULL, NULL);
	struct held held = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
	struct gw_edge_seeds edges = {.etype = FIXTURE_CITES, .negatives = GW_NEGATIVES_SRC, .negatives_each = 1};
	struct gw_loader_options options = {
		.spec = {.hops = 2, .fanouts = all_fanouts, .edges = &edges}, .batch_size = 20, .last = GW_LAST_SHORT};
	struct gw_loader *loader = paths_loader(ways.clients[2], &options);
	pthread_t threads[2];
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, release_held, &held), 0);
	struct gw_minibatch *batch;
	uint64_t got = 0;
	while (gw_loader_next(loader, &batch, -1) == GW_OK) {
		pthread_mutex_lock(&held.lock);
		while (held.count == HELD)
			pthread_cond_wait(&held.changed, &held.lock);
		held.batches[held.count++] = batch;
		pthread_cond_broadcast(&held.changed);
		pthread_mutex_unlock(&held.lock);
		got++;
	}
	assert_int_equal(got, gw_loader_steps(loader));
	pthread_mutex_lock(&held.lock);
	held.over = true;
	pthread_cond_broadcast(&held.changed);
	pthread_mutex_unlock(&held.lock);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	gw_loader_close(loader);
	paths_end(&ways);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loaders_go_over_edges_and_types),
		cmocka_unit_test(a_short_last_batch_may_be_one_ranks_alone),
		cmocka_unit_test(a_restart_costs_no_batch_of_edges),
		cmocka_unit_test(any_thread_releases_a_mini_batch),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
