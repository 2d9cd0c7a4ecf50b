/* Shuffled loaders follow the law of a uniform order, for few seeds: the pair of the first two seeds of an epoch, the
 * differences of neighbours, and the first seed of each rank. Nodes, edges, and seeds of several types. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/support/chi_square.h"
#include "test/support/client_setup.h"

enum { EPOCHS = 3000, SEEDS_MAX = 16, FIRST = 2 };

enum kind { NODES, EDGES, NODES_OF_TYPES, EDGES_OF_TYPES };

static const int32_t no_fanouts[GW_FIXTURE_ETYPES];
static const struct gw_edge_seeds edge_types[] = {{.etype = FIXTURE_CITES}, {.etype = FIXTURE_WRITES}};

struct bed {
	struct gw_fixture fixture;
	struct gw_client *client;
	int64_t ids[SEEDS_MAX]; /* 0, 1, ... */
};

static struct gw_loader *shuffled_loader(struct bed *bed, enum kind kind, uint32_t n, uint32_t world, uint32_t rank)
{
	bool of_types = kind == NODES_OF_TYPES || kind == EDGES_OF_TYPES,
	     edges = kind == EDGES || kind == EDGES_OF_TYPES;
	const struct gw_seeds lists[] = {{.type = edges ? FIXTURE_CITES : 0, .ids = bed->ids, .count = FIRST},
					 {.type = edges ? FIXTURE_WRITES : 1, .ids = bed->ids, .count = n - FIRST}};
	struct gw_loader_options options = {.spec = {.hops = 1,
						     .fanouts = no_fanouts,
						     .edges = edges ? edge_types : NULL,
						     .edge_type_count = edges ? 1 + of_types : 0},
					    .batch_size = 1, /* which shows the order of types too */
					    .shuffle = true,
					    .seed = 5,
					    .world = world,
					    .rank = rank,
					    .depth = 64};
	struct gw_loader *loader;
	if (of_types) {
		options.lists = lists;
		options.list_count = 2;
	} else {
		options.ids = bed->ids;
		options.id_count = n;
	}
	if (gw_loader_open(bed->client, &options, &loader) != GW_OK)
		fail_msg("%s", gw_last_error());
	return loader;
}

/* The place of the next batch's only seed in the concatenation of all lists. */
static uint32_t next_place(struct gw_loader *loader, enum kind kind)
{
	struct gw_minibatch *batch;
	assert_int_equal(gw_loader_next(loader, &batch, -1), GW_OK);
	assert_int_equal(batch->seed_count, 1);
	uint32_t place = (uint32_t)batch->seeds[0];
	if ((kind == NODES_OF_TYPES && batch->seed_lists[0].count == 0) ||
	    (kind == EDGES_OF_TYPES && batch->edges[0].count == 0))
		place += FIRST;
	gw_minibatch_release(batch);
	return place;
}

static void next_epoch(struct gw_loader *loader)
{
	struct gw_minibatch *batch;
	assert_int_equal(gw_loader_next(loader, &batch, -1), GW_END);
}

static void check_orders(struct bed *bed, enum kind kind, uint32_t n)
{
	uint32_t pairs[SEEDS_MAX * SEEDS_MAX] = {0}, differences[SEEDS_MAX] = {0};
	struct gw_loader *loader = shuffled_loader(bed, kind, n, 1, 0);
	for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
		uint32_t first = next_place(loader, kind), last = first;
		for (uint32_t i = 1; i < n; i++) {
			uint32_t place = next_place(loader, kind);
			if (i == 1)
				pairs[first * n + place]++;
			differences[(place + n - last) % n]++;
			last = place;
		}
		next_epoch(loader);
	}
	gw_loader_close(loader);
	assert_pairs_equally_likely(pairs, n, "first two seeds");
	assert_int_equal(differences[0], 0);
	assert_equally_likely(differences + 1, n - 1, "differences of seeds that follow each other", n);
}

static void few_seeds_come_in_every_order(void **state)
{
	for (uint32_t kind = NODES; kind <= EDGES_OF_TYPES; kind++) {
		check_orders(*state, (enum kind)kind, 5);
		check_orders(*state, (enum kind)kind, 8);
	}
}

/* Ranks share an order: what one has first says no more about what the other has than that it is another. */
static void ranks_divide_an_order_at_random(void **state)
{
	enum { SEEDS = 8 };
	for (uint32_t kind = NODES; kind <= EDGES; kind++) {
		uint32_t pairs[SEEDS * SEEDS] = {0};
		struct gw_loader *loaders[2];
		for (uint32_t rank = 0; rank < 2; rank++)
			loaders[rank] = shuffled_loader(*state, (enum kind)kind, SEEDS, 2, rank);
		for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
			uint32_t firsts[2];
			for (uint32_t rank = 0; rank < 2; rank++) {
				firsts[rank] = next_place(loaders[rank], (enum kind)kind);
				for (uint32_t i = 1; i < SEEDS / 2; i++)
					next_place(loaders[rank], (enum kind)kind);
				next_epoch(loaders[rank]);
			}
			pairs[firsts[0] * SEEDS + firsts[1]]++;
		}
		gw_loader_close(loaders[0]);
		gw_loader_close(loaders[1]);
		assert_pairs_equally_likely(pairs, SEEDS, "first seeds of two ranks");
	}
}

static int bed_begin(void **state)
{
	static struct bed bed;
	gw_fixture_begin(&bed.fixture, 3, 60, 1);
	gw_fixture_write(&bed.fixture);
	struct gw_client_options options = {.part_config = bed.fixture.folder, .threads = 1};
	bed.client = open_client(&options);
	for (int64_t i = 0; i < SEEDS_MAX; i++)
		bed.ids[i] = i;
	*state = &bed;
	return 0;
}

static int bed_end(void **state)
{
	struct bed *bed = *state;
	gw_client_close(bed->client);
	gw_fixture_end(&bed->fixture);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_seeds_come_in_every_order),
		cmocka_unit_test(ranks_divide_an_order_at_random),
	};
	return cmocka_run_group_tests_name("client shuffle", tests, bed_begin, bed_end);
}
