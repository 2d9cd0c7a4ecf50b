/* Mini-batches of edges and of several node types compared with their definition: ends of positives and negatives, and
 * every block drawn again from the edge list without the exclusions; the same bytes over every path. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "test/support/batch_oracle.h"
#include "test/support/client_paths.h"
#include "test/support/client_setup.h"
#include "test/support/hop_ask.h"
#include "test/support/must.h"

#define COUNT  40 /* positives of a batch */
#define SEED   5
#define STREAM 11

/* --- Paths, and batches of every kind. --- */

/* The first batch is compared with the definition, the others with the first. Returns how many drawn edges were
 * excluded. */
static uint64_t check_batch(const struct ways *ways, const struct gw_sample_spec *spec, const int64_t *seeds,
			    uint64_t n)
{
	uint64_t digest = 0, dropped = 0;
	for (uint32_t i = 0; i < ways->count; i++) {
		struct gw_minibatch *batch;
		if (gw_sample(ways->clients[i], spec, SEED, STREAM, seeds, n, &batch) != GW_OK)
			fail_msg("way %u: %s", i, gw_last_error());
		const struct batch_oracle oracle = {&ways->setup.fixture, spec, batch, SEED, STREAM};
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

static void make_positives(const struct ways *ways, uint32_t etype, int64_t *seeds)
{
	uint64_t edges = ways->setup.fixture.edges[etype].count;
	for (uint64_t i = 0; i < COUNT; i++)
		seeds[i] = (int64_t)(gw_mix64(i / (i % 7 == 0 ? 2 : 1) + 31) % edges);
}

static void check_negatives(const struct ways *ways)
{
	static const int64_t few[] = {3, 5, 3, 9};
	int64_t seeds[COUNT];
	for (uint32_t etype = 0; etype < GW_FIXTURE_ETYPES; etype++) {
		for (uint32_t kind = 0; kind < 12; kind++) {
			struct gw_edge_seeds edges = {.etype = etype,
						      .negatives = (enum gw_negatives)(kind % 3),
						      .negatives_each = kind % 3 ? 1 + kind % 4 : 0,
						      .no_true_edges = kind >= 6,
						      .negative_ids = kind % 2 ? few : NULL,
						      .negative_id_count = kind % 2 ? 4 : 0};
			struct gw_sample_spec spec = {
				.hops = 2, .fanouts = all_fanouts, .edges = &edges, .disjoint = kind % 5 == 0};
			make_positives(ways, etype, seeds);
			assert_int_equal(check_batch(ways, &spec, seeds, COUNT), 0);
		}
	}
	struct gw_edge_seeds edges = {.etype = FIXTURE_CITES, .negatives = GW_NEGATIVES_DST, .negatives_each = 2};
	struct gw_sample_spec spec = {.hops = 2, .fanouts = all_fanouts, .edges = &edges};
	check_batch(ways, &spec, seeds, 0);
}

/* An edge of one type that is edge `id` of another type reversed; -1: it does not exist. */
static int64_t turned_edge(const struct gw_fixture *fixture, uint32_t etype, uint64_t id, uint32_t reverse)
{
	const struct gw_fixture_edges *from = &fixture->edges[etype], *to = &fixture->edges[reverse];
	for (uint64_t at = to->indptr[from->src[id]]; at < to->indptr[from->src[id] + 1]; at++) {
		if (to->src[at] == from->dst[id])
			return (int64_t)at;
	}
	return -1;
}

/* For each of these edges of writes, the edge of written-by that is its reverse. */
static int64_t *make_reverse_ids(const struct gw_fixture *fixture)
{
	const struct gw_fixture_edges *from = &fixture->edges[FIXTURE_WRITES];
	int64_t *ids = malloc(from->count * sizeof(*ids));
	for (uint64_t i = 0; i < from->count; i++)
		ids[i] = turned_edge(fixture, FIXTURE_WRITES, i, FIXTURE_WRITTEN_BY);
	return ids;
}

static void check_exclusion(const struct ways *ways)
{
	int64_t seeds[COUNT], *reverse_ids = make_reverse_ids(&ways->setup.fixture);
	const struct {
		uint32_t etype, exclude, reverse_etype;
	} kinds[] = {
		{FIXTURE_CITES, GW_EXCLUDE_EDGES, 0},
		{FIXTURE_KNOWS, GW_EXCLUDE_ENDS, 0},
		{FIXTURE_WRITES, GW_EXCLUDE_EDGES | GW_EXCLUDE_REVERSE, 0},
		{FIXTURE_WRITTEN_BY, GW_EXCLUDE_REVERSE, 0},
		{FIXTURE_CITES, GW_EXCLUDE_REVERSE_TYPE | GW_EXCLUDE_EDGES, FIXTURE_CITES},
		{FIXTURE_WRITES, GW_EXCLUDE_REVERSE_IDS, FIXTURE_WRITTEN_BY},
		{FIXTURE_WRITES, 31, FIXTURE_WRITTEN_BY},
	};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		for (int replace = 0; replace < 2; replace++) {
			struct gw_edge_seeds edges = {.etype = kinds[i].etype,
						      .exclude = kinds[i].exclude,
						      .reverse_etype = kinds[i].reverse_etype,
						      .negatives = GW_NEGATIVES_DST,
						      .negatives_each = 1,
						      .reverse_ids = reverse_ids,
						      .reverse_id_count =
							      ways->setup.fixture.edges[FIXTURE_WRITES].count};
			struct gw_sample_spec spec = {.hops = 2,
						      .fanouts = all_fanouts,
						      .replace = replace,
						      .wide_indices = replace,
						      .edges = &edges};
			make_positives(ways, kinds[i].etype, seeds);
			uint64_t dropped = check_batch(ways, &spec, seeds, COUNT);
			/* Some edges of cites have no reverse; edges of all other types have one. */
			assert_true(dropped > 0);
		}
	}
	free(reverse_ids);
}

static void batches_of_edges_are_what_they_should_be(void **state)
{
	(void)state;
	struct ways ways;
	paths_begin(&ways, 51, 3, NULL, NULL);
	if (!cluster_is_rdma())
		check_negatives(&ways);
	check_exclusion(&ways);
	paths_end(&ways);
	if (cluster_is_rdma())
		return; /* other servers have the same paths, and this is slow there */
	paths_begin(&ways, 52, 1, NULL, "epoll");
	check_exclusion(&ways);
	paths_end(&ways);
	paths_begin(&ways, 53, 2, "shm", NULL);
	check_negatives(&ways);
	check_exclusion(&ways);
	paths_end(&ways);
}

/* --- A map of reverses that may be wrong. --- */

/* One edge in eight, and each edge without a reverse, gets a random edge. */
static int64_t *make_map(const struct gw_fixture *fixture, uint32_t etype, uint32_t reverse)
{
	uint64_t count = fixture->edges[etype].count, others = fixture->edges[reverse].count;
	int64_t *map = malloc(count * sizeof(*map));
	for (uint64_t i = 0; i < count; i++) {
		int64_t turned = gw_mix64(i + 3) % 8 ? turned_edge(fixture, etype, i, reverse) : -1;
		map[i] = turned < 0 ? (int64_t)(gw_mix64(i) % others) : turned;
	}
	return map;
}

/* The index of the first edge of a batch whose map entry is not its reverse; n: all are right. */
static uint64_t first_wrong(const struct gw_fixture *fixture, const struct gw_edge_seeds *edges, const int64_t *seeds,
			    uint64_t n)
{
	const struct gw_fixture_edges *own = &fixture->edges[edges->etype];
	const struct gw_fixture_edges *others = &fixture->edges[edges->reverse_etype];
	for (uint64_t i = 0; i < n; i++) {
		int64_t reverse = edges->reverse_ids[seeds[i]];
		if (own->src[seeds[i]] != others->dst[reverse] || own->dst[seeds[i]] != others->src[reverse])
			return i;
	}
	return n;
}

static bool check_map(const struct ways *ways, const struct gw_edge_seeds *edges, const int64_t *seeds, uint64_t n)
{
	struct gw_sample_spec spec = {.hops = 2, .fanouts = all_fanouts, .edges = edges};
	uint64_t wrong = first_wrong(&ways->setup.fixture, edges, seeds, n);
	if (wrong == n) {
		check_batch(ways, &spec, seeds, n);
		return true;
	}
	const struct gw_fixture_edges *own = &ways->setup.fixture.edges[edges->etype];
	char text[128];
	snprintf(text, sizeof(text), "leads from %lld to %lld, and edge %lld of ", (long long)own->src[seeds[wrong]],
		 (long long)own->dst[seeds[wrong]], (long long)edges->reverse_ids[seeds[wrong]]);
	for (uint32_t i = 0; i < ways->count; i++) {
		struct gw_minibatch *batch;
		expect(gw_sample(ways->clients[i], &spec, SEED, STREAM, seeds, n, &batch), GW_INVALID, text);
		assert_null(batch);
	}
	return false;
}

static void check_maps(const struct ways *ways)
{
	static const uint32_t types[][2] = {{FIXTURE_WRITES, FIXTURE_WRITTEN_BY},
					    {FIXTURE_WRITTEN_BY, FIXTURE_WRITES},
					    {FIXTURE_KNOWS, FIXTURE_KNOWS},
					    {FIXTURE_CITES, FIXTURE_CITES}};
	const struct gw_fixture *fixture = &ways->setup.fixture;
	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
		uint64_t count = fixture->edges[types[t][0]].count, outcomes[2] = {0};
		int64_t *map = make_map(fixture, types[t][0], types[t][1]), seeds[4], turned = 0;
		struct gw_edge_seeds edges = {.etype = types[t][0],
					      .exclude = GW_EXCLUDE_REVERSE_IDS | (t % 2 ? GW_EXCLUDE_EDGES : 0),
					      .reverse_etype = types[t][1],
					      .reverse_ids = map,
					      .reverse_id_count = count,
					      .negatives = GW_NEGATIVES_DST,
					      .negatives_each = 1,
					      .no_true_edges = true};
		for (uint64_t b = 0; b < 24; b++) {
			uint64_t n = 1 + b % 4;
			for (uint64_t i = 0; i < n; i++) {
				do
					seeds[i] = (int64_t)(gw_mix64(b * 4 + i + (uint64_t)turned) % count);
				while (b % 2 && first_wrong(fixture, &edges, seeds + i, 1) == 0 && turned++ < 4000);
			}
			outcomes[check_map(ways, &edges, seeds, n)]++;
		}
		assert_true(outcomes[0] > 0 && outcomes[1] > 0);
		free(map);
	}
}

static void a_map_of_reverses_is_held_against_the_ends(void **state)
{
	static const struct {
		const char *offer, *driver;
		uint32_t parts;
	} beds[] = {{NULL, NULL, 3}, {NULL, "epoll", 1}, {"shm", NULL, 2}};
	(void)state;
	for (size_t i = 0; i < sizeof(beds) / sizeof(beds[0]); i++) {
		struct ways ways;
		paths_begin(&ways, 61 + i, beds[i].parts, beds[i].offer, beds[i].driver);
		check_maps(&ways);
		paths_end(&ways);
	}
}

static void a_batch_with_a_map_may_be_cancelled_at_any_fetch(void **state)
{
	(void)state;
	struct ways ways;
	paths_begin(&ways, 65, 3, "tcp", NULL);
	int64_t *map = make_reverse_ids(&ways.setup.fixture), seeds[COUNT];
	struct gw_edge_seeds edges = {.etype = FIXTURE_WRITES,
				      .exclude = GW_EXCLUDE_REVERSE_IDS,
				      .reverse_etype = FIXTURE_WRITTEN_BY,
				      .reverse_ids = map,
				      .reverse_id_count = ways.setup.fixture.edges[FIXTURE_WRITES].count};
	struct gw_sample_spec spec = {.hops = 2, .fanouts = all_fanouts, .edges = &edges};
	make_positives(&ways, FIXTURE_WRITES, seeds);
	for (uint32_t i = 0; i < ways.count; i++) {
		for (uint32_t tries = 0; tries < 20; tries++) {
			struct gw_minibatch *batch = NULL;
			struct gw_ticket *ticket;
			assert_int_equal(
				gw_sample_start(ways.clients[i], &spec, 1, tries, seeds, COUNT, &batch, &ticket),
				GW_OK);
			gw_cancel(ticket);
			assert_null(batch);
		}
		check_batch(&ways, &spec, seeds, COUNT);
	}
	free(map);
	paths_end(&ways);
}

/* A loader continues with the others. */
static void a_wrong_reverse_fails_its_batch_alone(void **state)
{
	(void)state;
	struct ways ways;
	paths_begin(&ways, 64, 2, NULL, NULL);
	const struct gw_fixture *fixture = &ways.setup.fixture;
	uint64_t count = fixture->edges[FIXTURE_WRITES].count;
	int64_t *map = make_reverse_ids(fixture), ids[] = {0, 1, 2, 3, 4};
	struct gw_edge_seeds edges = {.etype = FIXTURE_WRITES,
				      .exclude = GW_EXCLUDE_REVERSE_IDS,
				      .reverse_etype = FIXTURE_WRITTEN_BY,
				      .reverse_ids = map,
				      .reverse_id_count = count};
	map[2] = (int64_t)fixture->edges[FIXTURE_WRITTEN_BY].count;
	map[4] = -1;
	for (uint32_t i = 0; i < ways.count; i++) {
		struct gw_loader_options options = {.spec = {.hops = 2, .fanouts = all_fanouts, .edges = &edges},
						    .ids = ids,
						    .id_count = 5,
						    .batch_size = 1,
						    .depth = 3};
		struct gw_loader *loader = paths_loader(ways.clients[i], &options);
		struct gw_minibatch *batch;
		for (int64_t b = 0; b < 5; b++) {
			char text[64];
			snprintf(text, sizeof(text), "reverse_ids[%lld] is ", (long long)b);
			gw_status status = gw_loader_next(loader, &batch, -1);
			expect(status, b == 2 || b == 4 ? GW_RANGE : GW_OK, b == 2 || b == 4 ? text : "");
			if (status == GW_OK)
				gw_minibatch_release(batch);
		}
		gw_loader_close(loader);
	}
	free(map);
	paths_end(&ways);
}

/* --- Seeds of several types. --- */

static void seeds_may_be_of_several_types(void **state)
{
	(void)state;
	struct ways ways;
	paths_begin(&ways, 54, 3, NULL, NULL);
	const int64_t papers[] = {4, 9, 4, 17}, authors[] = {1, 0, 5}, venues[] = {0};
	const struct gw_seeds lists[] = {{.type = 1, .ids = authors, .count = 3},
					 {.type = 0, .ids = papers, .count = 4},
					 {.type = 2, .ids = venues, .count = 1}};
	uint64_t digest = 0;
	for (uint32_t i = 0; i < ways.count; i++) {
		const struct gw_tensor *label = node_tensor(ways.clients[i], "paper", "label");
		const struct gw_fetch fetch = {.tensor = label, .at = GW_AT_SEEDS};
		struct gw_sample_spec spec = {.hops = 2, .fanouts = all_fanouts, .fetch_count = 1, .fetches = &fetch};
		struct gw_minibatch *batch;
		if (gw_sample_lists(ways.clients[i], &spec, SEED, STREAM, lists, 3, &batch) != GW_OK)
			fail_msg("%s", gw_last_error());
		const struct batch_oracle oracle = {&ways.setup.fixture, &spec, batch, SEED, STREAM};
		assert_int_equal(batch_oracle_blocks(&oracle), 0);
		assert_int_equal(batch->seed_count, 8);
		assert_int_equal(batch->seed_list_count, 3);
		assert_null(batch->edges);
		const uint32_t *rows = batch->seed_rows;
		for (uint32_t l = 0; l < 3; l++) {
			assert_int_equal(batch->seed_lists[l].type, lists[l].type);
			assert_int_equal(batch->seed_lists[l].count, lists[l].count);
			for (uint64_t j = 0; j < lists[l].count; j++) {
				assert_int_equal(batch->seed_lists[l].ids[j], lists[l].ids[j]);
				assert_int_equal(batch->nodes[lists[l].type][*rows++], lists[l].ids[j]);
			}
		}
		int64_t labels[4];
		assert_int_equal(batch->row_counts[0], 4);
		assert_int_equal(gw_gather(ways.clients[i], label, papers, 4, labels), GW_OK);
		assert_memory_equal(batch->rows[0], labels, sizeof(labels));
		digest = i ? digest : gw_minibatch_digest(batch);
		assert_true(gw_minibatch_digest(batch) == digest);
		gw_minibatch_release(batch);
	}
	/* One list gives what gw_sample gives. */
	struct gw_sample_spec spec = {.hops = 2, .fanouts = all_fanouts};
	struct gw_minibatch *one, *same;
	assert_int_equal(gw_sample_lists(ways.clients[0], &spec, SEED, STREAM, lists + 1, 1, &one), GW_OK);
	assert_int_equal(gw_sample(ways.clients[0], &spec, SEED, STREAM, papers, 4, &same), GW_OK);
	assert_true(gw_minibatch_digest(one) == gw_minibatch_digest(same));
	gw_minibatch_release(one);
	gw_minibatch_release(same);
	paths_end(&ways);
}

static void check_seen(const struct gw_minibatch *batch, const void *array)
{
	uint8_t *byte = (uint8_t *)(uintptr_t)array;
	uint64_t before = gw_minibatch_digest(batch);
	*byte ^= 1;
	assert_true(gw_minibatch_digest(batch) != before);
	*byte ^= 1;
	assert_true(gw_minibatch_digest(batch) == before);
}

static void digests_see_what_batches_of_edges_have(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, 64, 60, 1);
	gw_fixture_write(&fixture);
	struct gw_client_options alone = {.part_config = fixture.folder, .threads = 1};
	struct gw_client *client = open_client(&alone);
	struct gw_edge_seeds edges = {.etype = FIXTURE_CITES, .negatives = GW_NEGATIVES_DST, .negatives_each = 1};
	struct gw_sample_spec spec = {.hops = 2, .fanouts = all_fanouts, .edges = &edges};
	int64_t seeds[] = {3, 1};
	struct gw_minibatch *batch;
	assert_int_equal(gw_sample(client, &spec, 1, 1, seeds, 2, &batch), GW_OK);
	const void *arrays[] = {batch->seeds,
				batch->edges->src_rows,
				batch->edges->dst_rows + 1,
				batch->edges->negative_rows + 1,
				&batch->edges->etype,
				&batch->edges->true_edges};
	for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
		check_seen(batch, arrays[i]);
	gw_minibatch_release(batch);
	const struct gw_seeds lists[] = {{.type = 0, .ids = seeds, .count = 2}, {.type = 1, .ids = seeds, .count = 1}};
	spec.edges = NULL;
	assert_int_equal(gw_sample_lists(client, &spec, 1, 1, lists, 2, &batch), GW_OK);
	check_seen(batch, &batch->seed_lists[0].type);
	check_seen(batch, &batch->seed_lists[1].count);
	check_seen(batch, batch->seed_rows + 2);
	gw_minibatch_release(batch);
	gw_client_close(client);
	gw_fixture_end(&fixture);
}

/* --- Wrong arguments; short memory. --- */

/* A kind that draws by a value of each seed: calls without values are refused, whatever the client does. */
static void values_are_needed(struct gw_client *client)
{
	struct gw_sampling_kind valued = gw_sample_weighted;
	const struct gw_edge_columns *columns;
	const struct gw_edge_rule rules[GW_FIXTURE_ETYPES] = {[FIXTURE_CITES] = {.weight = "weight"}};
	const struct gw_sample_spec spec = {.hops = 2, .fanouts = all_fanouts, .rules = rules};
	const struct gw_neighbours_spec list = {.etype = FIXTURE_CITES, .fanout = 3, .rule = rules[FIXTURE_CITES]};
	const int64_t seed = 5;
	struct gw_minibatch *batch;
	struct gw_edge_list *listed;
	valued.valued = true;
	must(hop_columns(client, FIXTURE_CITES, rules[FIXTURE_CITES], &valued, &columns));
	expect(gw_sample(client, &spec, 1, 1, &seed, 1, &batch), GW_INVALID, "no times, and edges are drawn by time");
	expect(gw_neighbours(client, &list, 1, 1, &seed, 1, &listed), GW_INVALID,
	       "no times, and edges are drawn by time");
	must(hop_columns(client, FIXTURE_CITES, rules[FIXTURE_CITES], &gw_sample_weighted, &columns));
}

static void wrong_seeds_are_named(void **state)
{
	(void)state;
	struct ways ways;
	paths_begin(&ways, 58, 2, NULL, NULL);
	struct gw_client *client = ways.clients[2];
	struct gw_minibatch *batch;
	struct gw_loader *loader;
	int64_t seeds[] = {0, (int64_t)ways.setup.fixture.edges[FIXTURE_CITES].count, -1};
	struct gw_edge_seeds edges = {.etype = FIXTURE_CITES};
	struct gw_sample_spec spec = {.hops = 2, .fanouts = all_fanouts, .edges = &edges};
	expect(gw_sample(client, &spec, 1, 1, seeds, 2, &batch), GW_RANGE, "edge ");
	struct gw_loader_options options = {.spec = spec, .ids = seeds, .id_count = 2, .batch_size = 1};
	expect(gw_loader_open(client, &options, &loader), GW_RANGE, "paper:cites:paper has ids");
	const struct {
		struct gw_edge_seeds edges;
		gw_status status;
		const char *text;
	} wrong[] = {
		{{.etype = 77}, GW_RANGE, "seed edge type 77"},
		{{.negatives = (enum gw_negatives)3, .negatives_each = 1}, GW_INVALID, "negatives = 3"},
		{{.negatives = GW_NEGATIVES_DST}, GW_INVALID, "give both or none"},
		{{.negatives_each = 2}, GW_INVALID, "give both or none"},
		{{.negatives = GW_NEGATIVES_DST, .negatives_each = 1u << 25}, GW_LIMIT, "at most 16777216"},
		{{.negatives = GW_NEGATIVES_DST, .negatives_each = 1, .negative_ids = seeds}, GW_INVALID, "no nodes"},
		{{.negatives = GW_NEGATIVES_DST,
		  .negatives_each = 1,
		  .negative_ids = seeds + 2,
		  .negative_id_count = 1},
		 GW_RANGE,
		 "node -1 at position 0"},
		{{.exclude = 32}, GW_INVALID, "exclude = 32"},
		{{.etype = FIXTURE_CITES, .exclude = GW_EXCLUDE_REVERSE}, GW_UNSUPPORTED, "reverse_etype"},
		{{.exclude = GW_EXCLUDE_REVERSE_TYPE, .reverse_etype = 9}, GW_RANGE, "reverse edge type 9"},
		{{.exclude = GW_EXCLUDE_REVERSE_TYPE, .reverse_etype = FIXTURE_CITES}, GW_INVALID, "its ends differ"},
		{{.exclude = GW_EXCLUDE_REVERSE_IDS, .reverse_etype = FIXTURE_WRITTEN_BY}, GW_INVALID, "0 ids"},
	};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		edges = wrong[i].edges;
		expect(gw_sample(client, &spec, 1, 1, seeds, 1, &batch), wrong[i].status, wrong[i].text);
		options = (struct gw_loader_options){.spec = spec, .batch_size = 1};
		expect(gw_loader_open(client, &options, &loader), wrong[i].status, wrong[i].text);
	}
	/* Lists of nodes. */
	const struct gw_seeds twice[] = {{.type = 0}, {.type = 0}}, none = {.type = 8},
			      far = {.type = 1, .ids = seeds + 2, .count = 1};
	struct gw_sample_spec nodes = {.hops = 2, .fanouts = all_fanouts};
	expect(gw_sample_lists(client, &nodes, 1, 1, twice, 2, &batch), GW_INVALID, "both of paper");
	expect(gw_sample_lists(client, &nodes, 1, 1, twice, 0, &batch), GW_INVALID, "0 lists");
	expect(gw_sample_lists(client, &nodes, 1, 1, &none, 1, &batch), GW_RANGE, "node type 8");
	expect(gw_sample_lists(client, &nodes, 1, 1, &far, 1, &batch), GW_RANGE, "-1");
	edges = (struct gw_edge_seeds){.etype = FIXTURE_CITES};
	expect(gw_sample_lists(client, &spec, 1, 1, &far, 1, &batch), GW_INVALID,
	       "where the spec's are of paper:cites");
	options = (struct gw_loader_options){.spec = nodes, .lists = &far, .list_count = 1};
	expect(gw_loader_open(client, &options, &loader), GW_RANGE, "author has ids");
	options.ids = seeds;
	expect(gw_loader_open(client, &options, &loader), GW_INVALID, "give one of them");
	/* Features of the seeds. */
	const struct gw_fetch label = {.tensor = node_tensor(client, "paper", "label"), .at = GW_AT_SEEDS};
	spec.fetches = nodes.fetches = &label;
	spec.fetch_count = nodes.fetch_count = 1;
	const struct gw_seeds author = {.type = 1};
	expect(gw_sample(client, &spec, 1, 1, seeds, 1, &batch), GW_INVALID, "feature of nodes");
	expect(gw_sample_lists(client, &nodes, 1, 1, &author, 1, &batch), GW_INVALID, "the seeds to author");
	/* Rules of kinds that do not exist, or of features that do not. */
	struct gw_edge_rule rules[GW_FIXTURE_ETYPES] = {{0}};
	struct gw_sample_spec ruled = {.hops = 2, .fanouts = all_fanouts, .rules = rules};
	rules[FIXTURE_CITES] = (struct gw_edge_rule){.mask = "weight"};
	expect(gw_sample(client, &ruled, 1, 1, seeds, 1, &batch), GW_UNSUPPORTED, "rule's mask is not supported");
	rules[FIXTURE_CITES] = (struct gw_edge_rule){.weight = "weight", .time = "year"};
	expect(gw_sample(client, &ruled, 1, 1, seeds, 1, &batch), GW_UNSUPPORTED,
	       "the rule has weight \"weight\", time \"year\" together");
	rules[FIXTURE_CITES] = (struct gw_edge_rule){.pick = GW_PICK_LAST};
	expect(gw_sample(client, &ruled, 1, 1, seeds, 1, &batch), GW_INVALID, "picks the last edges and has no time");
	rules[FIXTURE_CITES] = (struct gw_edge_rule){.weight = "weight", .end = "year"};
	expect(gw_sample(client, &ruled, 1, 1, seeds, 1, &batch), GW_INVALID, "has an end and no time");
	rules[FIXTURE_CITES] = (struct gw_edge_rule){.time = "absent", .pick = GW_PICK_LAST};
	expect(gw_sample(client, &ruled, 1, 1, seeds, 1, &batch), GW_NOT_FOUND, "no feature \"absent\"");
	rules[FIXTURE_CITES] = (struct gw_edge_rule){.weight = "absent"};
	expect(gw_sample(client, &ruled, 1, 1, seeds, 1, &batch), GW_NOT_FOUND, "no feature \"absent\"");
	rules[FIXTURE_CITES] = (struct gw_edge_rule){.weight = ""};
	expect(gw_sample(client, &ruled, 1, 1, seeds, 1, &batch), GW_INVALID, "names no feature");
	for (uint32_t w = 0; w < ways.count; w++)
		values_are_needed(ways.clients[w]);
	ruled.rules = NULL;
	ruled.frontier = 2;
	expect(gw_sample(client, &ruled, 1, 1, seeds, 1, &batch), GW_INVALID, "frontier 2");
	assert_null(batch);
	paths_end(&ways);
}

static gw_status sample_links(struct gw_client *client)
{
	int64_t seeds[] = {5, 3, 1};
	struct gw_edge_seeds edges = {.etype = FIXTURE_CITES,
				      .negatives = GW_NEGATIVES_DST,
				      .negatives_each = 2,
				      .negative_ids = seeds,
				      .negative_id_count = 3,
				      .no_true_edges = true,
				      .exclude = GW_EXCLUDE_EDGES};
	struct gw_sample_spec spec = {.hops = 2, .fanouts = all_fanouts, .edges = &edges};
	struct gw_minibatch *batch;
	gw_status status = gw_sample(client, &spec, 1, 1, seeds, 3, &batch);
	if (status == GW_OK)
		gw_minibatch_release(batch);
	return status;
}

static gw_status sample_reverses(struct gw_client *client)
{
	static int64_t map[1 << 16];
	int64_t seeds[] = {5, 3, 1}, src[3], dst[3];
	struct gw_edge_list *turned = NULL;
	struct gw_minibatch *batch;
	struct gw_edge_seeds edges = {.etype = FIXTURE_WRITES,
				      .exclude = GW_EXCLUDE_REVERSE_IDS,
				      .reverse_etype = FIXTURE_WRITTEN_BY,
				      .reverse_ids = map,
				      .reverse_id_count = gw_client_graph(client)->etypes[FIXTURE_WRITES].count};
	struct gw_sample_spec spec = {.hops = 2, .fanouts = all_fanouts, .edges = &edges};
	assert_true(edges.reverse_id_count <= sizeof(map) / sizeof(map[0]));
	gw_status status = gw_find_edges(client, FIXTURE_WRITES, seeds, 3, src, dst);
	if (status == GW_OK)
		status = gw_edge_ids(client, FIXTURE_WRITTEN_BY, dst, src, 3, &turned);
	for (uint64_t i = 0; i < 3 && status == GW_OK; i++)
		map[seeds[i]] = turned->edge_ids[turned->offsets[i]];
	if (status == GW_OK)
		status = gw_sample(client, &spec, 1, 1, seeds, 3, &batch);
	if (status == GW_OK)
		gw_minibatch_release(batch);
	gw_edge_list_free(turned);
	return status;
}

static void short_memory_is_an_error(void **state)
{
	(void)state;
	assert_true(in_short_memory(59, 60, 2, sample_links) > 30);
	assert_true(in_short_memory(60, 60, 2, sample_reverses) > 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batches_of_edges_are_what_they_should_be),
		cmocka_unit_test(a_map_of_reverses_is_held_against_the_ends),
		cmocka_unit_test(a_wrong_reverse_fails_its_batch_alone),
		cmocka_unit_test(a_batch_with_a_map_may_be_cancelled_at_any_fetch),
		cmocka_unit_test(seeds_may_be_of_several_types),
		cmocka_unit_test(digests_see_what_batches_of_edges_have),
		cmocka_unit_test(wrong_seeds_are_named),
		cmocka_unit_test(short_memory_is_an_error),
	};
	const struct CMUnitTest by_rdma[] = {
		cmocka_unit_test(batches_of_edges_are_what_they_should_be),
		cmocka_unit_test(seeds_may_be_of_several_types),
	};
	if (cluster_is_rdma())
		return cmocka_run_group_tests(by_rdma, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
