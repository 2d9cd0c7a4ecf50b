/* Mini-batches whose seeds are edges of several types, compared with their definition; the same bytes over every path
 * and with any number of threads; loaders over them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "test/support/batch_oracle.h"
#include "test/support/client_paths.h"
#include "test/support/client_setup.h"

#define SEED   7
#define STREAM 13
#define TYPES  3
#define COUNT  30 /* positives of a type */

/* Each type has its own negatives and exclusions; one type's exclusion may concern another type's edges. */
static const int64_t few[] = {3, 5, 3, 9};
static const struct gw_edge_seeds edges_of_types[TYPES] = {
	{.etype = FIXTURE_CITES, .negatives = GW_NEGATIVES_SRC, .negatives_each = 2, .exclude = GW_EXCLUDE_EDGES},
	{.etype = FIXTURE_WRITES,
	 .negatives = GW_NEGATIVES_DST,
	 .negatives_each = 3,
	 .negative_ids = few,
	 .negative_id_count = 4,
	 .no_true_edges = true,
	 .exclude = GW_EXCLUDE_EDGES | GW_EXCLUDE_REVERSE},
	{.etype = FIXTURE_KNOWS, .exclude = GW_EXCLUDE_ENDS},
};

static struct gw_sample_spec spec_of_types(void)
{
	return (struct gw_sample_spec){
		.hops = 2, .fanouts = all_fanouts, .edges = edges_of_types, .edge_type_count = TYPES};
}

struct positives {
	int64_t ids[TYPES][COUNT];
	struct gw_seeds lists[TYPES];
};

static void make_random_positives(struct positives *positives, const struct gw_fixture *fixture,
				  const uint64_t counts[TYPES])
{
	for (uint32_t t = 0; t < TYPES; t++) {
		uint32_t etype = edges_of_types[t].etype;
		for (uint64_t i = 0; i < COUNT; i++)
			positives->ids[t][i] =
				(int64_t)(gw_mix64(i / (i % 7 == 0 ? 2 : 1) + 31 * t) % fixture->edges[etype].count);
		positives->lists[t] = (struct gw_seeds){.type = etype, .count = counts[t], .ids = positives->ids[t]};
	}
}

/* --- Batches. --- */

static uint64_t check_batch(const struct ways *ways, const uint64_t counts[TYPES])
{
	struct gw_sample_spec spec = spec_of_types();
	struct positives positives;
	uint64_t digest = 0, dropped = 0;
	spec.disjoint = counts[0] % 2;
	make_random_positives(&positives, &ways->setup.fixture, counts);
	for (uint32_t i = 0; i < ways->count; i++) {
		struct gw_minibatch *batch;
		if (gw_sample_lists(ways->clients[i], &spec, SEED, STREAM, positives.lists, TYPES, &batch) != GW_OK)
			fail_msg("way %u: %s", i, gw_last_error());
		const struct batch_oracle oracle = {&ways->setup.fixture, &spec, batch, SEED, STREAM};
		for (uint32_t t = 0; t < TYPES; t++) {
			assert_int_equal(batch->edges[t].count, counts[t]);
			assert_memory_equal(batch->edges[t].ids, positives.ids[t], counts[t] * 8);
		}
		if (i == 0) {
			batch_oracle_ends(&oracle);
			dropped = batch_oracle_blocks(&oracle);
			digest = gw_minibatch_digest(batch);
		}
		if (gw_minibatch_digest(batch) != digest)
			fail_msg("way %u: another batch", i);
		gw_minibatch_release(batch);
	}
	return dropped;
}

static void check_batches(const struct ways *ways)
{
	static const uint64_t counts[][TYPES] = {{COUNT, COUNT, COUNT}, {0, 11, 0}, {0, 0, 0}, {4, 0, 9}};
	assert_true(check_batch(ways, counts[0]) > 0);
	for (size_t i = 1; i < sizeof(counts) / sizeof(counts[0]); i++)
		check_batch(ways, counts[i]);
}

static void batches_are_what_they_should_be(void **state)
{
	static const struct {
		const char *offer, *driver;
		uint32_t parts;
	} beds[] = {{NULL, NULL, 3}, {NULL, "epoll", 1}, {NULL, "io_uring", 2}, {"shm", NULL, 2}};
	(void)state;
	for (size_t i = 0; i < (cluster_is_rdma() ? 1 : sizeof(beds) / sizeof(beds[0])); i++) {
		struct ways ways;
		paths_begin(&ways, 71 + i, beds[i].parts, beds[i].offer, beds[i].driver);
		check_batches(&ways);
		paths_end(&ways);
	}
}

static void types_do_not_disturb_each_other(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, 75, 300, 2);
	gw_fixture_write(&fixture);
	struct gw_client_options alone = {.part_config = fixture.folder, .threads = 1};
	struct gw_client *client = open_client(&alone);
	struct gw_sample_spec all = spec_of_types();
	struct gw_minibatch *together, *one, *listed;
	struct positives positives;
	make_random_positives(&positives, &fixture, (uint64_t[]){COUNT, COUNT, COUNT});
	assert_int_equal(gw_sample_lists(client, &all, SEED, STREAM, positives.lists, TYPES, &together), GW_OK);
	for (uint32_t t = 0; t < TYPES; t++) {
		struct gw_sample_spec spec = {.hops = 2, .fanouts = all_fanouts, .edges = &edges_of_types[t]};
		assert_int_equal(gw_sample(client, &spec, SEED, STREAM, positives.ids[t], COUNT, &one), GW_OK);
		assert_int_equal(gw_sample_lists(client, &spec, SEED, STREAM, &positives.lists[t], 1, &listed), GW_OK);
		assert_true(gw_minibatch_digest(one) == gw_minibatch_digest(listed));
		const struct gw_edge_batch *a = &one->edges[0], *b = &together->edges[t];
		const struct gw_edge_type *type = &fixture.schema->etypes[a->etype];
		uint32_t drawn = a->negatives == GW_NEGATIVES_SRC ? type->src : type->dst;
		for (uint64_t i = 0; i < COUNT * a->negatives_each; i++)
			assert_int_equal(one->nodes[drawn][a->negative_rows[i]],
					 together->nodes[drawn][b->negative_rows[i]]);
		gw_minibatch_release(one);
		gw_minibatch_release(listed);
	}
	/* The digest covers each type's arrays. */
	uint64_t digest = gw_minibatch_digest(together);
	uint32_t *rows[] = {(uint32_t *)(uintptr_t)together->edges[2].src_rows,
			    (uint32_t *)(uintptr_t)together->edges[1].negative_rows + 5,
			    (uint32_t *)(uintptr_t)together->edges[0].dst_rows + 1};
	for (int i = 0; i < 3; i++) {
		*rows[i] ^= 1;
		assert_true(gw_minibatch_digest(together) != digest);
		*rows[i] ^= 1;
	}
	gw_minibatch_release(together);
	gw_client_close(client);
	gw_fixture_end(&fixture);
}

/* --- Loaders. --- */

#define WAYS_MAX 8

/* The same graph in memory and from servers, with one thread and with eight. */
static uint32_t open_threads(const struct setup *setup, const char *const *transports, struct gw_client **clients)
{
	uint32_t n = 0;
	for (uint32_t threads = 1; threads <= 8; threads += 7) {
		struct gw_client_options alone = {.part_config = setup->fixture.folder, .threads = threads};
		clients[n++] = open_client(&alone);
		for (uint32_t i = 0; transports[i]; i++) {
			bool tcp = strcmp(transports[i], "epoll") == 0 || strcmp(transports[i], "io_uring") == 0;
			struct gw_client_options served = {.servers = setup->cluster.list,
							   .server_count = setup->cluster.parts,
							   .transport = tcp ? "tcp" : transports[i],
							   .tcp_driver = tcp ? transports[i] : NULL,
							   .threads = threads};
			clients[n++] = open_client(&served);
		}
	}
	return n;
}

static void check_threads(const struct gw_loader_options *options, struct gw_client **clients, uint32_t n)
{
	uint64_t wanted[EPOCH_MAX], got[EPOCH_MAX];
	uint32_t batches = paths_run_loader(clients[0], *options, (struct gw_loader_state){0}, wanted);
	assert_in_range(batches, 8, EPOCH_MAX);
	for (uint32_t i = 1; i < n; i++) {
		assert_int_equal(paths_run_loader(clients[i], *options, (struct gw_loader_state){0}, got), batches);
		for (uint32_t b = 0; b < batches; b++) {
			if (got[b] != wanted[b])
				fail_msg("client %u, batch %u: another one", i, b);
		}
	}
	/* A loader that starts from a state within the epoch gives the rest. */
	struct gw_loader_state state = {.step = batches / 2};
	assert_int_equal(paths_run_loader(clients[n - 1], *options, state, got), batches - batches / 2);
	assert_memory_equal(got, wanted + batches / 2, (batches - batches / 2) * sizeof(*got));
}

static void eight_threads_give_what_one_gives(void **state)
{
	static const char *const over_rdma[] = {"verbs", NULL}, *const ways[] = {"epoll", "io_uring", "shm", NULL};
	(void)state;
	struct setup setup;
	struct gw_client *clients[WAYS_MAX];
	cluster_offer(cluster_is_rdma() ? NULL : "shm");
	setup_begin(&setup, 76, 2, NULL);
	uint32_t n = open_threads(&setup, cluster_is_rdma() ? over_rdma : ways, clients);
	const struct gw_tensor *weight;
	assert_int_equal(gw_edge_tensor(clients[0], FIXTURE_CITES, "weight", &weight), GW_OK);
	struct gw_edge_seeds one = edges_of_types[1];
	struct gw_loader_options options = {
		.spec = {.hops = 2, .fanouts = all_fanouts, .edges = &one}, .shuffle = true, .seed = 3, .depth = 16};
	options.batch_size = (uint32_t)(setup.fixture.edges[FIXTURE_WRITES].count / 20);
	check_threads(&options, clients, n);
	const struct gw_seeds lists[TYPES] = {
		{.type = FIXTURE_CITES}, {.type = FIXTURE_WRITES, .ids = few, .count = 4}, {.type = FIXTURE_KNOWS}};
	options.spec = spec_of_types();
	options.lists = lists;
	options.list_count = TYPES;
	options.batch_size =
		(uint32_t)((setup.fixture.edges[FIXTURE_CITES].count + setup.fixture.edges[FIXTURE_KNOWS].count) / 16);
	check_threads(&options, clients, n);
	for (uint32_t i = 0; i < n; i++)
		gw_client_close(clients[i]);
	setup_end(&setup);
	cluster_offer(NULL);
}

static void an_epoch_has_every_edge_once(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, 77, 200, 2);
	gw_fixture_write(&fixture);
	struct gw_client_options alone = {.part_config = fixture.folder, .threads = 2};
	struct gw_client *client = open_client(&alone);
	const struct gw_tensor *weight;
	assert_int_equal(gw_edge_tensor(client, FIXTURE_CITES, "weight", &weight), GW_OK);
	const struct gw_fetch fetch = {.tensor = weight, .at = GW_AT_SEEDS};
	uint32_t *seen[TYPES];
	const struct gw_seeds lists[TYPES] = {
		{.type = FIXTURE_CITES}, {.type = FIXTURE_WRITES}, {.type = FIXTURE_KNOWS}};
	for (uint32_t t = 0; t < TYPES; t++)
		seen[t] = calloc(fixture.edges[lists[t].type].count, sizeof(*seen[t]));
	for (uint32_t rank = 0; rank < 3; rank++) {
		struct gw_loader_options options = {.spec = spec_of_types(),
						    .batch_size = 37,
						    .shuffle = true,
						    .world = 3,
						    .rank = rank,
						    .last = GW_LAST_SHORT,
						    .lists = lists,
						    .list_count = TYPES};
		options.spec.fetches = &fetch;
		options.spec.fetch_count = 1;
		struct gw_loader *loader = paths_loader(client, &options);
		struct gw_minibatch *batch;
		while (gw_loader_next(loader, &batch, -1) == GW_OK) {
			float weights[37];
			const struct gw_edge_batch *cites = &batch->edges[0];
			for (uint32_t t = 0; t < TYPES; t++) {
				for (uint64_t i = 0; i < batch->edges[t].count; i++)
					seen[t][batch->edges[t].ids[i]]++;
			}
			assert_int_equal(batch->row_counts[0], cites->count);
			assert_int_equal(gw_gather(client, weight, cites->ids, cites->count, weights), GW_OK);
			assert_memory_equal(batch->rows[0], weights, cites->count * sizeof(float));
			gw_minibatch_release(batch);
		}
		gw_loader_close(loader);
	}
	for (uint32_t t = 0; t < TYPES; t++) {
		for (uint64_t i = 0; i < fixture.edges[lists[t].type].count; i++)
			assert_int_equal(seen[t][i], 1);
		free(seen[t]);
	}
	gw_client_close(client);
	gw_fixture_end(&fixture);
}

/* --- Wrong arguments; short memory. --- */

static void wrong_types_are_named(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, 78, 60, 1);
	gw_fixture_write(&fixture);
	struct gw_client_options alone = {.part_config = fixture.folder, .threads = 1};
	struct gw_client *client = open_client(&alone);
	int64_t ids[] = {0, -1};
	const struct gw_seeds cites = {.type = FIXTURE_CITES, .count = 1, .ids = ids},
			      knows = {.type = FIXTURE_KNOWS, .count = 1, .ids = ids},
			      bad = {.type = FIXTURE_KNOWS, .count = 2, .ids = ids};
	const struct gw_edge_seeds of_cites = {.etype = FIXTURE_CITES}, of_knows = {.etype = FIXTURE_KNOWS},
				   many = {.etype = FIXTURE_KNOWS,
					   .negatives = GW_NEGATIVES_DST,
					   .negatives_each = 1u << 24},
				   one = {.etype = FIXTURE_CITES, .negatives = GW_NEGATIVES_DST, .negatives_each = 1};
	const struct {
		uint32_t type_count;
		struct gw_edge_seeds edges[2];
		uint32_t list_count;
		struct gw_seeds lists[2];
		gw_status status;
		const char *text;
	} wrong[] = {
		{2, {of_cites, of_cites}, 2, {cites, cites}, GW_INVALID, "both of paper:cites:paper"},
		{2, {of_cites, of_knows}, 1, {cites}, GW_INVALID, "1 lists"},
		{1, {of_cites}, 2, {cites, knows}, GW_INVALID, "2 lists"},
		{2, {of_cites, of_knows}, 2, {knows, cites}, GW_INVALID, "list 0: seeds of edge type"},
		{2, {of_cites, {.etype = 9}}, 2, {cites, knows}, GW_RANGE, "seed edge type 9"},
		{2, {of_cites, {.exclude = 99}}, 2, {cites, knows}, GW_INVALID, "exclude = 99"},
		{77, {of_cites, of_knows}, 2, {cites, knows}, GW_INVALID, "77 types"},
		{2, {of_cites, of_knows}, 2, {cites, bad}, GW_RANGE, "-1"},
		{2, {one, many}, 2, {cites, knows}, GW_LIMIT, "at most 16777216"},
	};
	struct gw_minibatch *batch;
	struct gw_loader *loader;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct gw_sample_spec spec = {.hops = 2,
					      .fanouts = all_fanouts,
					      .edges = wrong[i].edges,
					      .edge_type_count = wrong[i].type_count};
		expect(gw_sample_lists(client, &spec, 1, 1, wrong[i].lists, wrong[i].list_count, &batch),
		       wrong[i].status, wrong[i].text);
		/* A loader's batch may have edges of a single type. */
		struct gw_loader_options options = {
			.spec = spec, .batch_size = 2, .lists = wrong[i].lists, .list_count = wrong[i].list_count};
		expect(gw_loader_open(client, &options, &loader), wrong[i].status, wrong[i].text);
	}
	const struct gw_edge_seeds both[] = {of_cites, of_knows};
	struct gw_sample_spec spec = {.hops = 2, .fanouts = all_fanouts, .edges = both, .edge_type_count = 2};
	expect(gw_sample(client, &spec, 1, 1, ids, 1, &batch), GW_INVALID, "edges of 2 types: give one for each");
	struct gw_loader_options options = {.spec = spec, .batch_size = 1};
	expect(gw_loader_open(client, &options, &loader), GW_INVALID, "edges of 2 types: give one for each");
	spec.edges = NULL;
	expect(gw_sample(client, &spec, 1, 1, ids, 1, &batch), GW_INVALID, "edges of its 2 types");
	gw_client_close(client);
	gw_fixture_end(&fixture);
}

static gw_status sample_types(struct gw_client *client)
{
	struct gw_sample_spec spec = spec_of_types();
	int64_t ids[] = {5, 3, 1};
	const struct gw_seeds lists[TYPES] = {
		{.type = FIXTURE_CITES, .count = 3, .ids = ids},
		{.type = FIXTURE_WRITES, .count = 2, .ids = ids},
		{.type = FIXTURE_KNOWS, .count = 1, .ids = ids},
	};
	struct gw_minibatch *batch;
	gw_status status = gw_sample_lists(client, &spec, 1, 1, lists, TYPES, &batch);
	if (status == GW_OK)
		gw_minibatch_release(batch);
	return status;
}

static void short_memory_is_an_error(void **state)
{
	(void)state;
	assert_true(in_short_memory(79, 60, 2, sample_types) > 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batches_are_what_they_should_be),
		cmocka_unit_test(types_do_not_disturb_each_other),
		cmocka_unit_test(eight_threads_give_what_one_gives),
		cmocka_unit_test(an_epoch_has_every_edge_once),
		cmocka_unit_test(wrong_types_are_named),
		cmocka_unit_test(short_memory_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
