/* Mini-batches of edges and of several node types against their definition: ends of positives and negatives, every
 * block drawn again from the edge list, less what is excluded; the same bytes from every way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/rng.h"
#include "sampler/negatives.h"
#include "sampler/pick.h"
#include "test/support/alloc_fault.h"
#include "test/support/client_setup.h"
#include "test/support/client_ways.h"

#define COUNT  40 /* positives of a batch */
#define SEED   5
#define STREAM 11

/* --- A batch by its definition. --- */

/* What a batch is held against. */
struct oracle {
	const struct gw_fixture *fixture;
	const struct gw_sample_spec *spec;
	const struct gw_minibatch *batch;
};

static const struct gw_edge_type *type_of(const struct oracle *oracle, uint32_t etype)
{
	return &oracle->fixture->schema->etypes[etype];
}

static bool has_edge(const struct gw_fixture_edges *edges, uint64_t src, uint64_t dst)
{
	for (uint64_t i = edges->indptr[dst]; i < edges->indptr[dst + 1]; i++) {
		if (edges->src[i] == src)
			return true;
	}
	return false;
}

/* Whether an edge must not be in the batch, by looking at all of its positives. */
static bool is_excluded(const struct oracle *oracle, uint32_t etype, uint64_t edge)
{
	const struct gw_edge_seeds *seeds = oracle->spec->edges;
	if (!seeds)
		return false;
	const struct gw_fixture_edges *own = &oracle->fixture->edges[seeds->etype];
	uint64_t src = oracle->fixture->edges[etype].src[edge], dst = oracle->fixture->edges[etype].dst[edge];
	for (uint64_t i = 0; i < oracle->batch->seed_count; i++) {
		uint64_t id = (uint64_t)oracle->batch->seeds[i], from = own->src[id], to = own->dst[id];
		bool turned = src == to && dst == from;
		if ((seeds->exclude & GW_EXCLUDE_EDGES && etype == seeds->etype && edge == id) ||
		    (seeds->exclude & GW_EXCLUDE_ENDS && etype == seeds->etype && src == from && dst == to) ||
		    (seeds->exclude & GW_EXCLUDE_REVERSE && etype == type_of(oracle, seeds->etype)->reverse &&
		     turned) ||
		    (seeds->exclude & GW_EXCLUDE_REVERSE_TYPE && etype == seeds->reverse_etype && turned) ||
		    (seeds->exclude & GW_EXCLUDE_REVERSE_IDS && etype == seeds->reverse_etype &&
		     edge == (uint64_t)seeds->reverse_ids[id]))
			return true;
	}
	return false;
}

/* One edge type of a hop; returns how many drawn edges were excluded. */
static uint64_t check_edges(const struct oracle *oracle, uint32_t hop, const struct gw_block_edges *block)
{
	const struct gw_edge_type *type = type_of(oracle, block->etype);
	const struct gw_fixture_edges *edges = &oracle->fixture->edges[block->etype];
	const struct gw_minibatch *batch = oracle->batch;
	struct gw_pick_scratch scratch = {0};
	struct gw_pick_rule rule = {
		.key = gw_draw_key(SEED, STREAM, GW_DRAW_NEIGHBOURS, hop, block->etype),
		.fanout = oracle->spec->fanouts[(size_t)hop * GW_FIXTURE_ETYPES + block->etype],
		.replace = oracle->spec->replace,
	};
	uint64_t *picks = malloc((edges->count + 4096) * 8), at = 0, dropped = 0;
	assert_int_equal(block->dst_count, batch->blocks[hop]->dst_counts[type->dst]);
	for (uint64_t row = 0; row < block->dst_count; row++) {
		uint64_t node = (uint64_t)batch->nodes[type->dst][row], begin = edges->indptr[node];
		uint64_t degree = edges->indptr[node + 1] - begin, count = gw_pick_count(&rule, degree);
		assert_int_equal(gw_pick(&rule, node, degree, &scratch, picks), GW_OK);
		assert_int_equal(block->indptr[row], at);
		for (uint64_t j = 0; j < count; j++) {
			uint64_t edge = begin + picks[j];
			if (is_excluded(oracle, block->etype, edge)) {
				dropped++;
				continue;
			}
			int64_t number = oracle->spec->wide_indices ? ((const int64_t *)block->indices)[at]
								    : ((const int32_t *)block->indices)[at];
			assert_true((uint64_t)number < batch->blocks[hop]->src_counts[type->src]);
			assert_int_equal(block->edge_ids[at], edge);
			assert_int_equal(batch->nodes[type->src][number], edges->src[edge]);
			at++;
		}
	}
	assert_int_equal(block->edge_count, at);
	assert_int_equal(block->indptr[block->dst_count], at);
	gw_pick_scratch_free(&scratch);
	free(picks);
	return dropped;
}

/* All blocks; returns how many drawn edges were excluded. */
static uint64_t check_blocks(const struct oracle *oracle)
{
	uint64_t dropped = 0, edges = 0;
	for (uint32_t h = 0; h < oracle->batch->hops; h++) {
		const struct gw_block *block = oracle->batch->blocks[h];
		assert_int_equal(block->edges_count, GW_FIXTURE_ETYPES);
		for (uint32_t i = 0; i < block->edges_count; i++) {
			dropped += check_edges(oracle, h, &block->edges[i]);
			edges += block->edges[i].edge_count;
		}
	}
	assert_int_equal(edges, oracle->batch->edge_count);
	/* No node twice. */
	for (uint32_t t = 0; t < oracle->batch->num_ntypes; t++) {
		for (uint64_t i = 0; i < oracle->batch->node_counts[t]; i++) {
			for (uint64_t j = 0; j < i; j++)
				assert_true(oracle->batch->nodes[t][i] != oracle->batch->nodes[t][j]);
		}
	}
	return dropped;
}

/* The negative that the definition gives: the first attempt that is no edge, or the last one. */
static uint64_t draw_by_definition(const struct oracle *oracle, uint64_t slot, uint64_t j, uint64_t *true_edges)
{
	const struct gw_edge_seeds *seeds = oracle->spec->edges;
	const struct gw_edge_type *type = type_of(oracle, seeds->etype);
	const struct gw_fixture_edges *edges = &oracle->fixture->edges[seeds->etype];
	bool of_src = seeds->negatives == GW_NEGATIVES_SRC;
	uint64_t bound = seeds->negative_ids ? seeds->negative_id_count
					     : oracle->fixture->schema->ntypes[of_src ? type->src : type->dst].count;
	uint64_t key = gw_draw_key(SEED, STREAM, GW_DRAW_NEGATIVE, 0, seeds->etype);
	uint64_t edge = (uint64_t)oracle->batch->seeds[slot], node = 0;
	for (uint32_t attempt = 0; attempt < GW_NEGATIVE_ATTEMPTS; attempt++) {
		node = gw_negative_draw(key, slot, j, attempt, bound);
		node = seeds->negative_ids ? (uint64_t)seeds->negative_ids[node] : node;
		if (!seeds->no_true_edges ||
		    !has_edge(edges, of_src ? node : edges->src[edge], of_src ? edges->dst[edge] : node))
			return node;
	}
	++*true_edges;
	return node;
}

static void check_ends(const struct oracle *oracle)
{
	const struct gw_minibatch *batch = oracle->batch;
	const struct gw_edge_batch *ends = batch->edges;
	const struct gw_edge_seeds *seeds = oracle->spec->edges;
	const struct gw_edge_type *type = type_of(oracle, seeds->etype);
	const struct gw_fixture_edges *edges = &oracle->fixture->edges[seeds->etype];
	uint32_t drawn = seeds->negatives == GW_NEGATIVES_SRC ? type->src : type->dst;
	uint64_t true_edges = 0;
	assert_non_null(ends);
	assert_null(batch->seed_rows);
	assert_int_equal(batch->seed_list_count, 0);
	assert_int_equal(ends->etype, seeds->etype);
	assert_int_equal(ends->count, batch->seed_count);
	assert_int_equal(ends->negatives_each, seeds->negatives_each);
	for (uint64_t i = 0; i < ends->count; i++) {
		uint64_t edge = (uint64_t)batch->seeds[i];
		assert_int_equal(batch->nodes[type->src][ends->src_rows[i]], edges->src[edge]);
		assert_int_equal(batch->nodes[type->dst][ends->dst_rows[i]], edges->dst[edge]);
		for (uint64_t j = 0; j < seeds->negatives_each; j++)
			assert_int_equal(batch->nodes[drawn][ends->negative_rows[i * seeds->negatives_each + j]],
					 draw_by_definition(oracle, i, j, &true_edges));
	}
	assert_int_equal(ends->true_edges, true_edges);
}

/* --- Ways, and batches of every kind. --- */

/* Samples by every way, holds the first batch against the definition and the others against the first; returns how
 * many drawn edges were excluded. */
static uint64_t check_batch(const struct ways *ways, const struct gw_sample_spec *spec, const int64_t *seeds,
			    uint64_t n)
{
	uint64_t digest = 0, dropped = 0;
	for (uint32_t i = 0; i < ways->count; i++) {
		struct gw_minibatch *batch;
		if (gw_sample(ways->clients[i], spec, SEED, STREAM, seeds, n, &batch) != GW_OK)
			fail_msg("way %u: %s", i, gw_last_error());
		const struct oracle oracle = {&ways->setup.fixture, spec, batch};
		if (i == 0) {
			check_ends(&oracle);
			dropped = check_blocks(&oracle);
			digest = gw_minibatch_digest(batch);
		}
		if (gw_minibatch_digest(batch) != digest)
			fail_msg("way %u: another batch", i);
		gw_minibatch_release(batch);
	}
	return dropped;
}

/* Positives: any, some twice. */
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
			struct gw_sample_spec spec = {.hops = 2, .fanouts = all_fanouts, .edges = &edges};
			make_positives(ways, etype, seeds);
			assert_int_equal(check_batch(ways, &spec, seeds, COUNT), 0);
		}
	}
	struct gw_edge_seeds edges = {.etype = FIXTURE_CITES, .negatives = GW_NEGATIVES_DST, .negatives_each = 2};
	struct gw_sample_spec spec = {.hops = 2, .fanouts = all_fanouts, .edges = &edges};
	check_batch(ways, &spec, seeds, 0);
}

/* The edge of written-by that is an edge of writes turned round, for each of these. */
static int64_t *make_reverse_ids(const struct gw_fixture *fixture)
{
	const struct gw_fixture_edges *from = &fixture->edges[FIXTURE_WRITES],
				      *to = &fixture->edges[FIXTURE_WRITTEN_BY];
	int64_t *ids = malloc(from->count * sizeof(*ids));
	for (uint64_t i = 0; i < from->count; i++) {
		uint64_t at = to->indptr[from->src[i]];
		while (to->src[at] != from->dst[i])
			at++;
		ids[i] = (int64_t)at;
	}
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
			/* Two turned edges of cites may not meet; all others are there. */
			assert_true(dropped > 0);
		}
	}
	free(reverse_ids);
}

static void batches_of_edges_are_what_they_should_be(void **state)
{
	(void)state;
	struct ways ways;
	ways_begin(&ways, 51, 3, NULL, NULL);
	if (!cluster_is_rdma())
		check_negatives(&ways);
	check_exclusion(&ways);
	ways_end(&ways);
	if (cluster_is_rdma())
		return; /* other servers are no other way, and this is slow there */
	ways_begin(&ways, 52, 1, NULL, "epoll");
	check_exclusion(&ways);
	ways_end(&ways);
	ways_begin(&ways, 53, 2, "shm", NULL);
	check_negatives(&ways);
	check_exclusion(&ways);
	ways_end(&ways);
}

/* --- Seeds of several types. --- */

static void seeds_may_be_of_several_types(void **state)
{
	(void)state;
	struct ways ways;
	ways_begin(&ways, 54, 3, NULL, NULL);
	const int64_t papers[] = {4, 9, 4, 17}, authors[] = {1, 0, 5}, venues[] = {0};
	const struct gw_seeds lists[] = {{.type = 1, .ids = authors, .count = 3},
					 {.type = 0, .ids = papers, .count = 4},
					 {.type = 2, .ids = venues, .count = 1}};
	uint64_t digest = 0;
	for (uint32_t i = 0; i < ways.count; i++) {
		const struct gw_tensor *label = node_tensor(ways.clients[i], "paper", "label");
		const struct gw_fetch fetch = {label, GW_AT_SEEDS};
		struct gw_sample_spec spec = {.hops = 2, .fanouts = all_fanouts, .fetch_count = 1, .fetches = &fetch};
		struct gw_minibatch *batch;
		if (gw_sample_lists(ways.clients[i], &spec, SEED, STREAM, lists, 3, &batch) != GW_OK)
			fail_msg("%s", gw_last_error());
		const struct oracle oracle = {&ways.setup.fixture, &spec, batch};
		assert_int_equal(check_blocks(&oracle), 0);
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
	/* One list is what gw_sample has always given. */
	struct gw_sample_spec spec = {.hops = 2, .fanouts = all_fanouts};
	struct gw_minibatch *one, *same;
	assert_int_equal(gw_sample_lists(ways.clients[0], &spec, SEED, STREAM, lists + 1, 1, &one), GW_OK);
	assert_int_equal(gw_sample(ways.clients[0], &spec, SEED, STREAM, papers, 4, &same), GW_OK);
	assert_true(gw_minibatch_digest(one) == gw_minibatch_digest(same));
	gw_minibatch_release(one);
	gw_minibatch_release(same);
	ways_end(&ways);
}

/* A digest sees each array of its own: one bit more, another digest. */
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

static void wrong_seeds_are_named(void **state)
{
	(void)state;
	struct ways ways;
	ways_begin(&ways, 58, 2, NULL, NULL);
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
		{{.exclude = GW_EXCLUDE_REVERSE_TYPE, .reverse_etype = FIXTURE_CITES}, GW_INVALID, "other ends"},
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
	expect(gw_sample_lists(client, &spec, 1, 1, &far, 1, &batch), GW_INVALID, "give one of them");
	options = (struct gw_loader_options){.spec = nodes, .lists = &far, .list_count = 1};
	expect(gw_loader_open(client, &options, &loader), GW_RANGE, "author has ids");
	options.ids = seeds;
	expect(gw_loader_open(client, &options, &loader), GW_INVALID, "give one of them");
	/* Features at seeds. */
	const struct gw_fetch label = {node_tensor(client, "paper", "label"), GW_AT_SEEDS};
	spec.fetches = nodes.fetches = &label;
	spec.fetch_count = nodes.fetch_count = 1;
	const struct gw_seeds author = {.type = 1};
	expect(gw_sample(client, &spec, 1, 1, seeds, 1, &batch), GW_INVALID, "feature of nodes");
	expect(gw_sample_lists(client, &nodes, 1, 1, &author, 1, &batch), GW_INVALID, "the seeds to author");
	/* Kinds that are to come. */
	const char *const names[GW_FIXTURE_ETYPES] = {0};
	for (int i = 0; i < 4; i++) {
		static const char *const texts[] = {"weights", "masks", "times", "direction"};
		struct gw_sample_spec later = {.hops = 2,
					       .fanouts = all_fanouts,
					       .weights = i == 0 ? names : NULL,
					       .masks = i == 1 ? names : NULL,
					       .times = i == 2 ? seeds : NULL,
					       .direction = i == 3 ? GW_OUT : GW_IN};
		expect(gw_sample(client, &later, 1, 1, seeds, 1, &batch), GW_UNSUPPORTED, texts[i]);
	}
	assert_null(batch);
	ways_end(&ways);
}

static struct gw_client *faulty_client;

static gw_status sample_links(void *context)
{
	(void)context;
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
	gw_status status = gw_sample(faulty_client, &spec, 1, 1, seeds, 3, &batch);
	if (status == GW_OK)
		gw_minibatch_release(batch);
	return status;
}

/* Each run has a client of its own: batches keep their memory. */
static gw_status open_and_sample(void *context)
{
	struct gw_client_options options = {.part_config = context, .threads = 1};
	gw_status status = gw_client_open(&options, &faulty_client);
	if (status == GW_OK) {
		status = sample_links(NULL);
		gw_client_close(faulty_client);
	}
	return status;
}

static void short_memory_is_an_error(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, 59, 60, 2);
	gw_fixture_write(&fixture);
	assert_true(gw_fault_each(open_and_sample, fixture.folder) > 30);
	gw_fixture_end(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batches_of_edges_are_what_they_should_be),
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
