/* Mini-batches by time through clients: every block compared with the whole edge list and the times of its own slot's
 * seed; the same bytes over every path, from loaders in worlds of any size, and from lists of neighbours; what cannot
 * work is refused by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "test/support/batch_oracle.h"
#include "test/support/client_paths.h"
#include "test/support/client_setup.h"
#include "test/support/must.h"

#define SEED  6
#define SEEDS 40
/* The times of cites are -20 to 19. */
#define TIME_OF(i) ((int64_t)(gw_mix64(i) % 46) - 23)

static const int32_t two_hops[2 * GW_FIXTURE_ETYPES] = {3, 2, 4, 2, 2, 2, GW_ALL_NEIGHBOURS, 1};
static const struct gw_edge_rule uniform_rules[GW_FIXTURE_ETYPES] = {[FIXTURE_CITES] = {.time = "year"}};
static const struct gw_edge_rule last_rules[GW_FIXTURE_ETYPES] = {
	[FIXTURE_CITES] = {.time = "year", .pick = GW_PICK_LAST}};

struct timed {
	int64_t ids[SEEDS], until[SEEDS], from[SEEDS];
	double real_until[SEEDS];
	struct gw_seeds list;
};

static void timed_begin(struct timed *timed, uint64_t nodes, bool windowed, bool real)
{
	for (uint32_t i = 0; i < SEEDS; i++) {
		timed->ids[i] = (int64_t)(gw_mix64(i / (i % 5 ? 1 : 2)) % nodes);
		timed->until[i] = TIME_OF(i + 100);
		timed->from[i] = timed->until[i] - (int64_t)(i % 9);
		timed->real_until[i] = (double)timed->until[i] + (i % 3 ? 0.5 : 0);
	}
	timed->list = (struct gw_seeds){.count = SEEDS,
					.ids = timed->ids,
					.times = real ? (const void *)timed->real_until : timed->until,
					.times_from = windowed ? timed->from : NULL};
}

struct law {
	const struct gw_fixture_edges *edges;
	const struct gw_sample_spec *spec;
	const struct gw_seeds *seeds;
};

static bool sees(const struct law *law, uint64_t edge, uint32_t seed)
{
	double time = (double)law->edges->time[edge], until;
	until = law->spec->real_times ? ((const double *)law->seeds->times)[seed]
				      : (double)((const int64_t *)law->seeds->times)[seed];
	if (law->seeds->times_from && time < (double)((const int64_t *)law->seeds->times_from)[seed])
		return false;
	return law->spec->strict_times ? time < until : time <= until;
}

/* Checks the picks of one list: eligible edges, as many as the law says, and the last ones if it says so. The fixture's
 * lists are sorted by time. */
static void check_list(const struct law *law, uint64_t node, uint32_t seed, const int64_t *picks, uint64_t count,
		       int32_t fanout, bool last)
{
	uint64_t eligible = 0, *all = malloc((law->edges->count + 1) * sizeof(*all));
	for (uint64_t e = law->edges->indptr[node]; e < law->edges->indptr[node + 1]; e++) {
		if (sees(law, e, seed))
			all[eligible++] = e;
	}
	bool replace = law->spec->replace && !last && fanout != GW_ALL_NEIGHBOURS;
	uint64_t most =
		fanout == GW_ALL_NEIGHBOURS || (!replace && (uint64_t)fanout > eligible) ? eligible : (uint64_t)fanout;
	assert_int_equal(count, eligible ? most : 0);
	for (uint64_t i = 0; i < count; i++) {
		assert_true(sees(law, (uint64_t)picks[i], seed));
		assert_true((uint64_t)picks[i] >= all[0] && (uint64_t)picks[i] <= all[eligible - 1]);
		assert_true(i == 0 || picks[i] > picks[i - 1] || (replace && picks[i] == picks[i - 1]));
		if (last)
			assert_int_equal(picks[i], all[eligible - count + i]);
	}
	free(all);
}

static void check_cites(const struct law *law, const struct gw_minibatch *batch, uint32_t hop)
{
	const struct gw_block *block = batch->blocks[hop];
	for (uint32_t b = 0; b < block->edges_count; b++) {
		const struct gw_block_edges *edges = &block->edges[b];
		if (edges->etype != FIXTURE_CITES)
			continue;
		for (uint64_t row = 0; row < edges->dst_count; row++) {
			uint64_t at = edges->dst_first + row;
			check_list(law, (uint64_t)batch->nodes[0][at], batch->groups[0][at],
				   edges->edge_ids + edges->indptr[row],
				   (uint64_t)(edges->indptr[row + 1] - edges->indptr[row]),
				   law->spec->fanouts[hop * GW_FIXTURE_ETYPES + FIXTURE_CITES],
				   law->spec->rules == last_rules);
		}
		for (uint64_t e = 0; e < edges->edge_count; e++) {
			int32_t src = ((const int32_t *)edges->indices)[e];
			assert_int_equal(batch->nodes[0][src], law->edges->src[edges->edge_ids[e]]);
		}
	}
}

/* --- Batches. --- */

static struct gw_sample_spec spec_of(uint32_t variant)
{
	return (struct gw_sample_spec){.hops = 2,
				       .fanouts = two_hops,
				       .rules = variant & 1 ? last_rules : uniform_rules,
				       .replace = variant & 2,
				       .strict_times = variant & 4,
				       .real_times = variant & 16,
				       .frontier = variant & 2 ? GW_FRONTIER_NEW : GW_FRONTIER_ALL};
}

static void check_batches(const struct ways *ways)
{
	for (uint32_t variant = 0; variant < 24; variant++) {
		struct timed timed;
		const struct gw_sample_spec spec = spec_of(variant);
		const struct law law = {&ways->setup.fixture.edges[FIXTURE_CITES], &spec, &timed.list};
		uint64_t digest = 0;
		timed_begin(&timed, ways->setup.fixture.schema->ntypes[0].count, variant & 8, variant & 16);
		for (uint32_t i = 0; i < ways->count; i++) {
			struct gw_minibatch *batch;
			must(gw_sample_lists(ways->clients[i], &spec, SEED, variant, &timed.list, 1, &batch));
			for (uint32_t hop = 0; hop < 2 && i == 0; hop++)
				check_cites(&law, batch, hop);
			assert_memory_equal(batch->seed_times, timed.list.times, SEEDS * 8);
			digest = i ? digest : gw_minibatch_digest(batch);
			assert_int_equal(gw_minibatch_digest(batch), digest);
			gw_minibatch_release(batch);
		}
	}
}

static void batches_keep_the_law(void **state)
{
	(void)state;
	paths_of_parts(SEED, check_batches);
}

/* --- Loaders. --- */

/* The times of a seed are a function of its id here, so a batch shows whether they came along. */
static void check_world(struct gw_client *client, uint32_t world, uint64_t nodes)
{
	int64_t ids[SEEDS], times[SEEDS];
	uint32_t seen = 0;
	for (uint32_t i = 0; i < SEEDS; i++) {
		ids[i] = (int64_t)(i * 7 % nodes);
		times[i] = TIME_OF((uint64_t)ids[i]);
	}
	const struct gw_seeds list = {.count = SEEDS, .ids = ids, .times = times};
	for (uint32_t rank = 0; rank < world; rank++) {
		const struct gw_loader_options options = {.spec = spec_of(0),
							  .lists = &list,
							  .list_count = 1,
							  .batch_size = 6,
							  .shuffle = true,
							  .seed = 3,
							  .world = world,
							  .rank = rank,
							  .last = GW_LAST_SHORT};
		struct gw_loader *loader = paths_loader(client, &options);
		struct gw_minibatch *batch;
		while (gw_loader_next(loader, &batch, -1) == GW_OK) {
			for (uint64_t i = 0; i < batch->seed_count; i++)
				assert_int_equal(((const int64_t *)batch->seed_times)[i],
						 TIME_OF((uint64_t)batch->seeds[i]));
			seen += (uint32_t)batch->seed_count;
			gw_minibatch_release(batch);
		}
		gw_loader_close(loader);
	}
	assert_int_equal(seen, SEEDS);
}

static void check_loaders(const struct ways *ways)
{
	for (uint32_t world = 1; world <= 3; world++)
		check_world(ways->clients[world % ways->count], world, ways->setup.fixture.schema->ntypes[0].count);
	/* Other times are another plan. */
	struct timed timed;
	struct gw_loader *loader;
	timed_begin(&timed, ways->setup.fixture.schema->ntypes[0].count, false, false);
	struct gw_loader_options options = {.spec = spec_of(0), .lists = &timed.list, .list_count = 1, .batch_size = 6};
	loader = paths_loader(ways->clients[0], &options);
	gw_loader_get_state(loader, &options.start);
	gw_loader_close(loader);
	timed.until[SEEDS - 1]++;
	expect(gw_loader_open(ways->clients[0], &options, &loader), GW_INVALID, "another graph, other seeds");
	/* The times of all nodes are one for each. */
	options.start = (struct gw_loader_state){0};
	timed.list.ids = NULL;
	expect(gw_loader_open(ways->clients[0], &options, &loader), GW_INVALID, "give one for each");
}

static void loaders_keep_times_with_their_seeds(void **state)
{
	(void)state;
	paths_of_parts(SEED, check_loaders);
}

/* --- Lists of neighbours. --- */

/* A list of neighbours is hop 0 of a batch. */
static void check_neighbours(const struct ways *ways)
{
	struct timed timed;
	int32_t one_hop[GW_FIXTURE_ETYPES] = {[FIXTURE_CITES] = 3};
	struct gw_sample_spec spec = {.hops = 1, .fanouts = one_hop, .rules = uniform_rules};
	timed_begin(&timed, ways->setup.fixture.schema->ntypes[0].count, true, false);
	for (uint32_t i = 0; i < ways->count; i++) {
		struct gw_minibatch *batch;
		struct gw_edge_list *list;
		const struct gw_neighbours_spec one = {.etype = FIXTURE_CITES,
						       .fanout = 3,
						       .rule = uniform_rules[FIXTURE_CITES],
						       .times = timed.until,
						       .times_from = timed.from};
		must(gw_sample_lists(ways->clients[i], &spec, SEED, 5, &timed.list, 1, &batch));
		must(gw_neighbours(ways->clients[i], &one, SEED, 5, timed.ids, SEEDS, &list));
		assert_int_equal(list->edge_count, batch->edge_count);
		assert_memory_equal(list->edge_ids, batch->blocks[0]->edges[0].edge_ids, list->edge_count * 8);
		gw_edge_list_free(list);
		gw_minibatch_release(batch);
	}
}

#define MANY 20000 /* more than one piece of a call */

static void check_many_neighbours(const struct ways *ways)
{
	int64_t *ids = malloc(MANY * 8), *times = malloc(MANY * 8);
	const struct gw_sample_spec spec = {0};
	const struct gw_fixture_edges *edges = &ways->setup.fixture.edges[FIXTURE_CITES];
	struct gw_seeds seeds = {.times = times};
	const struct law law = {edges, &spec, &seeds};
	for (uint32_t i = 0; i < MANY; i++) {
		ids[i] = i % 50;
		times[i] = TIME_OF(i);
	}
	for (uint32_t w = 0; w < ways->count; w++) {
		struct gw_edge_list *list;
		const struct gw_neighbours_spec one = {.etype = FIXTURE_CITES,
						       .fanout = 2,
						       .rule = {.time = "year", .pick = GW_PICK_LAST},
						       .times = times};
		must(gw_neighbours(ways->clients[w], &one, SEED, 5, ids, MANY, &list));
		for (uint32_t i = 0; i < MANY; i++)
			check_list(&law, (uint64_t)ids[i], i, list->edge_ids + list->offsets[i],
				   list->offsets[i + 1] - list->offsets[i], 2, true);
		gw_edge_list_free(list);
	}
	free(ids);
	free(times);
}

static void lists_of_neighbours_keep_the_law(void **state)
{
	(void)state;
	paths_of_parts(SEED, check_neighbours);
	paths_of_parts(SEED, check_many_neighbours);
}

/* --- Edges as seeds. --- */

static void check_edges(const struct ways *ways)
{
	struct timed timed;
	const struct gw_edge_seeds links = {.etype = FIXTURE_CITES,
					    .negatives = GW_NEGATIVES_DST,
					    .negatives_each = 2,
					    .exclude = GW_EXCLUDE_EDGES};
	struct gw_sample_spec spec = spec_of(0);
	const struct gw_fixture_edges *edges = &ways->setup.fixture.edges[FIXTURE_CITES];
	int64_t slots[SEEDS * 4];
	struct gw_seeds by_slot = {.times = slots};
	const struct law law = {edges, &spec, &by_slot};
	spec.edges = &links;
	timed_begin(&timed, edges->count, false, false);
	timed.list.type = FIXTURE_CITES;
	for (uint32_t i = 0; i < SEEDS; i++) {
		slots[i] = slots[SEEDS + i] = timed.until[i];
		slots[2 * SEEDS + 2 * i] = slots[2 * SEEDS + 2 * i + 1] = timed.until[i];
	}
	uint64_t digest = 0;
	for (uint32_t w = 0; w < ways->count; w++) {
		struct gw_minibatch *batch;
		must(gw_sample_lists(ways->clients[w], &spec, SEED, 1, &timed.list, 1, &batch));
		assert_int_equal(batch->group_count, 4 * SEEDS);
		for (uint32_t b = 0; b < batch->blocks[0]->edges_count; b++) {
			const struct gw_block_edges *block = &batch->blocks[0]->edges[b];
			for (uint64_t row = 0; block->etype == FIXTURE_CITES && row < block->dst_count; row++) {
				for (int64_t e = block->indptr[row]; e < block->indptr[row + 1]; e++)
					assert_true(sees(&law, (uint64_t)block->edge_ids[e], batch->groups[0][row]));
			}
		}
		digest = w ? digest : gw_minibatch_digest(batch);
		assert_int_equal(gw_minibatch_digest(batch), digest);
		gw_minibatch_release(batch);
	}
}

static void the_time_of_an_edge_is_that_of_its_ends(void **state)
{
	(void)state;
	paths_of_parts(SEED, check_edges);
}

/* --- Names. --- */

static void a_name_means_times_of_edges_or_of_their_sources(void **state)
{
	(void)state;
	struct ways ways;
	const struct gw_tensor *times;
	paths_begin(&ways, SEED, 1, NULL, NULL);
	for (uint32_t way = 0; way < 2; way++) {
		struct gw_client *client = ways.clients[way];
		must(gw_edge_times(client, FIXTURE_CITES, "year", &times));
		assert_string_equal(times->name, "year");
		assert_true(times->of_edges && times->type == FIXTURE_CITES && !times->unit);
		must(gw_edge_times(client, FIXTURE_CITES, "nonsense", &times));
		assert_null(times);
		expect(gw_edge_times(client, FIXTURE_CITES, "label", &times), GW_NOT_FOUND,
		       "\"graphwire partition --time label\" makes");
		assert_null(times);
		expect(gw_edge_times(client, GW_FIXTURE_ETYPES, "year", &times), GW_RANGE, "edge type");
	}
	paths_end(&ways);
}

/* --- What cannot work. --- */

static void what_cannot_work_is_named(void **state)
{
	(void)state;
	struct ways ways;
	struct timed timed;
	struct gw_minibatch *batch;
	paths_begin(&ways, SEED, 1, NULL, NULL);
	struct gw_client *client = ways.clients[0];
	timed_begin(&timed, ways.setup.fixture.schema->ntypes[0].count, true, true);
	struct gw_sample_spec spec = spec_of(0);
	spec.real_times = true;
	expect(gw_sample(client, &spec, 1, 1, timed.ids, 1, &batch), GW_INVALID, "has no times");
	timed.real_until[3] = strtod("nan", NULL);
	expect(gw_sample_lists(client, &spec, 1, 1, &timed.list, 1, &batch), GW_INVALID, "position 3 is not a number");
	timed_begin(&timed, ways.setup.fixture.schema->ntypes[0].count, true, false);
	spec = spec_of(0);
	timed.list.times = NULL;
	expect(gw_sample_lists(client, &spec, 1, 1, &timed.list, 1, &batch), GW_INVALID,
	       "begin of windows, and no times");
	timed.list.times = timed.until;
	spec.rules = NULL;
	expect(gw_sample_lists(client, &spec, 1, 1, &timed.list, 1, &batch), GW_INVALID, "no edge is drawn by time");
	spec = spec_of(0);
	const int64_t *many = calloc(70000, sizeof(*many));
	const struct gw_seeds list = {.count = 70000, .ids = many, .times = many};
	expect(gw_sample_lists(client, &spec, 1, 1, &list, 1, &batch), GW_LIMIT, "at most 65536");
	/* A batch without seeds, and a list without seeds, need no times. */
	const struct gw_seeds lists[] = {{.type = 1}, {.count = 3, .ids = timed.ids, .times = timed.until}};
	for (uint32_t i = 1; i <= 2; i++) {
		must(gw_sample_lists(client, &spec, 1, 1, lists, i, &batch));
		assert_int_equal(batch->seed_count, i == 1 ? 0 : 3);
		gw_minibatch_release(batch);
	}
	free((void *)many);
	paths_end(&ways);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batches_keep_the_law),
		cmocka_unit_test(loaders_keep_times_with_their_seeds),
		cmocka_unit_test(lists_of_neighbours_keep_the_law),
		cmocka_unit_test(the_time_of_an_edge_is_that_of_its_ends),
		cmocka_unit_test(a_name_means_times_of_edges_or_of_their_sources),
		cmocka_unit_test(what_cannot_work_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
