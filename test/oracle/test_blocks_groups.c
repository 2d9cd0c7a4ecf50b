/* Blocks in groups, and blocks that expand every node once, against the slow oracle: every array equal, over graphs,
 * parts, maps, widths and fanouts; keys that do not fit; and memory that is short. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "sampler/blocks/blocks.h"
#include "sampler/blocks/relabel.h"
#include "test/support/alloc_fault.h"
#include "test/support/slow_sample.h"
#include "test/support/uniform_picks.h"

#define HASH  0          /* dense_bytes_max */
#define DENSE UINT64_MAX /* dense_bytes_max */
#define SEEDS 120

static const int32_t fanouts[] = {4, 3, 0, GW_FANOUT_ALL, 2, 3, 3, 5, 2, 0, 1, 2, 40, 40, 3};

/* Three node types, one of them without nodes; five edge types, two between the same types, one from the empty type. */
static void heterogeneous_graph(struct slow_graph *graph, uint32_t parts)
{
	static const uint64_t counts[3] = {500, 300, 0};
	slow_graph_init(graph, 3, counts);
	slow_graph_random(graph, 0, 0, 90, 5);
	slow_graph_random(graph, 1, 0, 40, 6);
	slow_graph_random(graph, 0, 1, 200, 7);
	slow_graph_random(graph, 1, 0, 70, 8);
	slow_graph_random(graph, 2, 1, 30, 9);
	slow_graph_cut(graph, parts, parts & 1 ? 4 : 8, parts & 2 ? 4 : 8, parts);
}

static void homogeneous_graph(struct slow_graph *graph, uint32_t parts)
{
	uint64_t nodes = 2000;
	slow_graph_init(graph, 1, &nodes);
	slow_graph_random(graph, 0, 0, 300, 3);
	slow_graph_cut(graph, parts, 4, 4, parts);
}

/* A batch: seeds of node type 0, a few of them twice, in one group and in several. */
struct grouped_batch {
	struct gw_blocks_spec spec;
	uint64_t stream, n;
	int64_t seeds[SEEDS];
	uint32_t groups[SEEDS];
	bool grouped;
};

static void make_batch(struct grouped_batch *batch, const int32_t *of_hops, uint32_t hops, uint64_t nodes,
		       uint64_t seed)
{
	memset(batch, 0, sizeof(*batch));
	batch->spec = (struct gw_blocks_spec){.hops = hops, .fanouts = of_hops};
	batch->stream = seed;
	batch->n = SEEDS;
	batch->grouped = true;
	for (uint32_t i = 0; i < SEEDS; i++) {
		batch->seeds[i] = (int64_t)(gw_mix64(seed + i) % (i % 3 ? nodes : 7));
		batch->groups[i] = (uint32_t)(gw_mix64(seed * 31 + i) % SLOW_GROUPS);
	}
}

static gw_status run_batch(const struct slow_graph *graph, const struct grouped_batch *batch, struct gw_blocks *blocks,
			   struct gw_relabel *relabel)
{
	const struct gw_seeds list = {.type = 0, .count = batch->n, .ids = batch->seeds};
	gw_status status = gw_blocks_begin_lists(blocks, relabel, &batch->spec, 4, batch->stream, &list, 1,
						 batch->grouped ? batch->groups : NULL);
	return status != GW_OK ? status : gw_blocks_run_memory(blocks, graph->parts, NULL);
}

struct objects {
	struct gw_blocks *blocks;
	struct gw_relabel *relabel;
};

static struct objects objects_make(const struct slow_graph *graph, uint64_t dense_bytes_max)
{
	struct objects objects;
	assert_int_equal(gw_blocks_create(&graph->meta, &objects.blocks), GW_OK);
	assert_int_equal(gw_relabel_create(&graph->meta, dense_bytes_max, &objects.relabel), GW_OK);
	return objects;
}

static void objects_free(struct objects *objects)
{
	gw_relabel_destroy(objects->relabel);
	gw_blocks_destroy(objects->blocks);
}

static void compare_batch(const struct slow_graph *graph, const struct grouped_batch *batch,
			  const struct gw_blocks *blocks)
{
	slow_blocks_compare_in(graph, blocks, &batch->spec, 4, batch->stream, 0, batch->seeds,
			       batch->grouped ? batch->groups : NULL, batch->n);
}

static uint64_t run_and_digest(const struct slow_graph *graph, const struct grouped_batch *batch,
			       const struct objects *objects)
{
	assert_int_equal(run_batch(graph, batch, objects->blocks, objects->relabel), GW_OK);
	return slow_blocks_digest(&graph->meta, objects->blocks, batch->spec.hops, batch->spec.wide_indices);
}

static void batches_are_those_of_the_definition(void **state)
{
	(void)state;
	static const int32_t same[] = {5, 9, 300, GW_FANOUT_ALL};
	for (uint32_t parts = 1; parts <= 4; parts++) {
		for (int kind = 0; kind < 2; kind++) {
			struct slow_graph graph = {0};
			(kind ? homogeneous_graph : heterogeneous_graph)(&graph, parts);
			for (uint32_t bits = 0; bits < 32; bits++) {
				if (bits >> 2 && (bits + parts) % 3) /* a third of them */
					continue;
				struct objects objects = objects_make(&graph, bits & 16 ? HASH : DENSE);
				struct grouped_batch batch;
				make_batch(&batch, kind ? same : fanouts, 3, graph.ntypes[0].count, bits);
				batch.grouped = bits & 1;
				batch.spec.new_only = bits & 2;
				batch.spec.replace = bits & 4;
				batch.spec.wide_indices = bits & 8;
				assert_int_equal(run_batch(&graph, &batch, objects.blocks, objects.relabel), GW_OK);
				compare_batch(&graph, &batch, objects.blocks);
				objects_free(&objects);
			}
			slow_graph_free(&graph);
		}
	}
}

static void group_zero_is_no_group(void **state)
{
	(void)state;
	struct slow_graph graph;
	heterogeneous_graph(&graph, 2);
	for (int hash = 0; hash < 2; hash++) {
		struct objects objects = objects_make(&graph, hash ? HASH : DENSE);
		for (uint32_t b = 0; b < 20; b++) {
			struct grouped_batch batch;
			make_batch(&batch, fanouts, 3, 500, b);
			batch.spec.new_only = b & 1;
			uint64_t in_groups = run_and_digest(&graph, &batch, &objects);
			compare_batch(&graph, &batch, objects.blocks);
			memset(batch.groups, 0, sizeof(batch.groups));
			uint64_t in_zero = run_and_digest(&graph, &batch, &objects);
			batch.grouped = false;
			assert_true(run_and_digest(&graph, &batch, &objects) == in_zero);
			assert_true(in_groups != in_zero);
			batch.seeds[b] = 500;
			batch.grouped = b & 2;
			assert_int_equal(run_batch(&graph, &batch, objects.blocks, objects.relabel), GW_RANGE);
		}
		objects_free(&objects);
	}
	slow_graph_free(&graph);
}

/* Eight walkers at one node: a row each, and choices of their own. */
static void walkers_have_rows_of_their_own(void **state)
{
	(void)state;
	static const int32_t one_step[] = {3};
	struct slow_graph graph;
	homogeneous_graph(&graph, 1);
	uint64_t hub = 0, count;
	while (graph.indptr[0][hub + 1] - graph.indptr[0][hub] < 300)
		hub++;
	struct objects objects = objects_make(&graph, DENSE);
	struct grouped_batch batch;
	make_batch(&batch, one_step, 1, 1, 0);
	batch.n = 8;
	for (uint32_t i = 0; i < 8; i++) {
		batch.seeds[i] = (int64_t)hub;
		batch.groups[i] = i;
	}
	assert_int_equal(run_batch(&graph, &batch, objects.blocks, objects.relabel), GW_OK);
	const uint32_t *rows = gw_blocks_seed_rows(objects.blocks, &count);
	const struct gw_block_edges *edges = &gw_blocks_hop(objects.blocks, 0)->edges[0];
	assert_int_equal(count, 8);
	assert_int_equal(edges->edge_count, 24);
	for (uint32_t i = 0; i < 8; i++) {
		assert_int_equal(rows[i], i);
		for (uint32_t j = 0; j < i; j++)
			assert_memory_not_equal(edges->edge_ids + i * 3, edges->edge_ids + j * 3, 3 * sizeof(int64_t));
	}
	objects_free(&objects);
	slow_graph_free(&graph);
}

/* With all neighbours, a node that is expanded again finds no new node. So a batch that expands every node once has the
 * nodes of the other batch, and of its edges those of every node's first expansion. */
static void the_first_expansions_are_the_same(void **state)
{
	(void)state;
	static const int32_t all[] = {GW_FANOUT_ALL, GW_FANOUT_ALL, GW_FANOUT_ALL, GW_FANOUT_ALL, GW_FANOUT_ALL,
				      GW_FANOUT_ALL, GW_FANOUT_ALL, GW_FANOUT_ALL, GW_FANOUT_ALL, GW_FANOUT_ALL};
	struct slow_graph graph;
	heterogeneous_graph(&graph, 3);
	struct objects once = objects_make(&graph, DENSE), again = objects_make(&graph, HASH);
	struct grouped_batch batch;
	make_batch(&batch, all, 2, 500, 9);
	batch.n = 3;
	batch.grouped = false;
	run_and_digest(&graph, &batch, &again);
	batch.spec.new_only = true;
	run_and_digest(&graph, &batch, &once);
	for (uint32_t t = 0; t < 3; t++) {
		uint64_t count, other;
		const int64_t *ids = gw_blocks_nodes(once.blocks, t, &count);
		assert_memory_equal(ids, gw_blocks_nodes(again.blocks, t, &other), count * sizeof(*ids));
		assert_int_equal(count, other);
	}
	for (uint32_t hop = 0; hop < 2; hop++) {
		const struct gw_block *a = gw_blocks_hop(once.blocks, hop), *b = gw_blocks_hop(again.blocks, hop);
		assert_int_equal(a->edges_count, b->edges_count);
		for (uint32_t i = 0; i < a->edges_count; i++) {
			const struct gw_block_edges *x = &a->edges[i], *y = &b->edges[i];
			uint64_t first = x->dst_first, skipped = (uint64_t)y->indptr[first];
			assert_int_equal(y->dst_first, 0);
			assert_int_equal(first + x->dst_count, y->dst_count);
			assert_int_equal(skipped + x->edge_count, y->edge_count);
			for (uint64_t row = 0; row <= x->dst_count; row++)
				assert_int_equal((uint64_t)x->indptr[row] + skipped, y->indptr[first + row]);
			assert_memory_equal(x->edge_ids, y->edge_ids + skipped, x->edge_count * sizeof(int64_t));
			assert_memory_equal(x->indices, (const int32_t *)y->indices + skipped,
					    x->edge_count * sizeof(int32_t));
		}
	}
	objects_free(&once);
	objects_free(&again);
	slow_graph_free(&graph);
}

/* The way of a client: picks elsewhere, run by run, then added. */
static gw_status add_runs(const struct slow_graph *graph, const struct grouped_batch *batch,
			  const struct objects *objects, uint64_t length)
{
	struct gw_blocks *blocks = objects->blocks;
	struct gw_picks picks = {0};
	const struct gw_seeds list = {.type = 0, .count = batch->n, .ids = batch->seeds};
	gw_status status = gw_blocks_begin_lists(blocks, objects->relabel, &batch->spec, 4, batch->stream, &list, 1,
						 batch->groups);
	for (uint32_t hop = 0; status == GW_OK && hop < batch->spec.hops; hop++) {
		status = gw_blocks_hop_begin(blocks);
		for (uint32_t e = 0; status == GW_OK && e < graph->meta.num_etypes; e++) {
			const struct gw_draw draw = gw_blocks_draw(blocks, e);
			const struct gw_picks_memory memory = {.adjacency = &graph->adjacencies[0][e]};
			if (draw.rule.fanout == 0)
				continue;
			status = gw_blocks_edges_begin(blocks, e);
			uint64_t count = gw_blocks_frontier(blocks, e).n, n;
			for (uint64_t at = 0; status == GW_OK && at < count; at += n) {
				const struct gw_frontier frontier = gw_blocks_frontier(blocks, e);
				n = count - at < length ? count - at : length;
				status = gw_picks_from_memory(&picks, &memory, &draw, frontier.nodes + at,
							      frontier.groups + at, n);
				if (status == GW_OK)
					status = gw_blocks_add(blocks, n, picks.counts.data, picks.positions.data,
							       picks.neighbours.data, memory.adjacency->edge_start);
			}
			if (status == GW_OK)
				status = gw_blocks_edges_end(blocks);
		}
		if (status == GW_OK)
			status = gw_blocks_hop_end(blocks);
	}
	gw_picks_free(&picks);
	return status;
}

static void added_runs_equal_memory(void **state)
{
	(void)state;
	static const uint64_t lengths[] = {1, 7, 256, 512};
	struct slow_graph graph;
	heterogeneous_graph(&graph, 1);
	struct objects objects = objects_make(&graph, DENSE);
	for (uint32_t i = 0; i < 8; i++) {
		struct grouped_batch batch;
		make_batch(&batch, fanouts, 3, 500, i);
		batch.spec.new_only = i & 1;
		batch.spec.wide_indices = i & 2;
		assert_int_equal(add_runs(&graph, &batch, &objects, lengths[i / 2]), GW_OK);
		compare_batch(&graph, &batch, objects.blocks);
	}
	objects_free(&objects);
	slow_graph_free(&graph);
}

/* The key of a row is group * nodes + node, and all keys of the last group must be below 2^64 - 1. */
static void keys_beyond_64_bits_are_refused(void **state)
{
	(void)state;
	static const struct {
		uint64_t nodes;
		uint32_t group;
		int64_t seed;
		gw_status status;
	} cases[] = {
		{(1ull << 33) - 1, (1u << 31) - 1, (1ll << 33) - 2, GW_OK},
		{1ull << 33, (1u << 31) - 1, 0, GW_LIMIT}, /* the last key of the group is 2^64 - 1 */
		{1ull << 33, 1u << 31, 0, GW_LIMIT},
		{1ull << 33, UINT32_MAX, 0, GW_LIMIT},
		{1ull << 33, 0, (1ll << 33) - 1, GW_OK},
		{1ull << 32, UINT32_MAX, 5, GW_LIMIT},
		{(1ull << 32) - 1, UINT32_MAX, 5, GW_OK},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct slow_graph graph;
		static const int32_t none[] = {0};
		slow_graph_init(&graph, 1, &cases[i].nodes);
		graph.meta.num_parts = 1;
		struct objects objects = objects_make(&graph, HASH);
		const struct gw_blocks_spec spec = {.hops = 1, .fanouts = none};
		const struct gw_seeds list = {.count = 1, .ids = &cases[i].seed};
		gw_status status =
			gw_blocks_begin_lists(objects.blocks, objects.relabel, &spec, 1, 1, &list, 1, &cases[i].group);
		assert_int_equal(status, cases[i].status);
		if (status != GW_OK) {
			assert_non_null(strstr(gw_last_error(), "below 2^64"));
			assert_null(strchr(gw_last_error(), '\n'));
		} else {
			assert_int_equal(gw_blocks_node_groups(objects.blocks, 0)[0], cases[i].group);
		}
		objects_free(&objects);
		slow_graph_free(&graph);
	}
}

struct group_shortage {
	const struct slow_graph *graph;
	const struct grouped_batch *batch;
	bool adds;
};

static gw_status build_grouped(void *context)
{
	const struct group_shortage *shortage = context;
	struct objects objects = {0};
	gw_status status = gw_blocks_create(&shortage->graph->meta, &objects.blocks);
	if (status == GW_OK)
		status = gw_relabel_create(&shortage->graph->meta, DENSE, &objects.relabel);
	if (status == GW_OK)
		status = shortage->adds ? add_runs(shortage->graph, shortage->batch, &objects, 100)
					: run_batch(shortage->graph, shortage->batch, objects.blocks, objects.relabel);
	if (status == GW_OK)
		compare_batch(shortage->graph, shortage->batch, objects.blocks);
	objects_free(&objects);
	return status;
}

static void short_memory_in_groups_is_an_error(void **state)
{
	(void)state;
	for (uint32_t parts = 1; parts <= 2; parts++) {
		struct slow_graph graph;
		struct grouped_batch batch;
		heterogeneous_graph(&graph, parts);
		make_batch(&batch, fanouts, 3, 500, 3);
		batch.n = 20;
		for (int adds = 0; adds < (parts == 1 ? 2 : 1); adds++) {
			struct group_shortage shortage = {&graph, &batch, adds};
			assert_true(gw_fault_each(build_grouped, &shortage) > 10);
		}
		slow_graph_free(&graph);
	}
}

static void a_batch_in_groups_allocates_nothing_once_grown(void **state)
{
	(void)state;
	struct slow_graph graph;
	struct grouped_batch batch;
	heterogeneous_graph(&graph, 2);
	make_batch(&batch, fanouts, 3, 500, 3);
	struct objects objects = objects_make(&graph, DENSE);
	assert_int_equal(run_batch(&graph, &batch, objects.blocks, objects.relabel), GW_OK);
	gw_fault_begin(GW_FAULT_NEVER);
	gw_status status = run_batch(&graph, &batch, objects.blocks, objects.relabel);
	unsigned long count = gw_fault_count();
	gw_fault_end();
	assert_int_equal(status, GW_OK);
	assert_int_equal(count, 0);
	objects_free(&objects);
	slow_graph_free(&graph);
}

/* The dense map takes memory for every node of the graph. */
static void a_map_is_made_for_the_first_batch_that_needs_it(void **state)
{
	(void)state;
	struct slow_graph graph;
	struct grouped_batch batch;
	heterogeneous_graph(&graph, 1);
	for (uint32_t first = 0; first < 2; first++) {
		for (uint32_t dense = 0; dense < 2; dense++) {
			struct objects objects = objects_make(&graph, dense ? DENSE : HASH);
			const struct gw_relabel *relabel = objects.relabel;
			bool by_hash = false, by_number = false;
			assert_true(!relabel->dense_map.entries && !relabel->hash_map.slots);
			for (uint32_t i = 0; i < 3; i++) {
				make_batch(&batch, fanouts, 3, graph.ntypes[0].count, 3);
				batch.grouped = (i + first) % 2;
				assert_int_equal(run_batch(&graph, &batch, objects.blocks, objects.relabel), GW_OK);
				compare_batch(&graph, &batch, objects.blocks);
				by_hash = by_hash || batch.grouped || !dense;
				by_number = by_number || (!batch.grouped && dense);
				assert_int_equal(relabel->hash_map.slots != NULL, by_hash);
				assert_int_equal(relabel->dense_map.entries != NULL, by_number);
			}
			objects_free(&objects);
		}
	}
	slow_graph_free(&graph);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batches_are_those_of_the_definition),
		cmocka_unit_test(group_zero_is_no_group),
		cmocka_unit_test(walkers_have_rows_of_their_own),
		cmocka_unit_test(the_first_expansions_are_the_same),
		cmocka_unit_test(added_runs_equal_memory),
		cmocka_unit_test(keys_beyond_64_bits_are_refused),
		cmocka_unit_test(short_memory_in_groups_is_an_error),
		cmocka_unit_test(a_batch_in_groups_allocates_nothing_once_grown),
		cmocka_unit_test(a_map_is_made_for_the_first_batch_that_needs_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
