/* Blocks against the slow oracle: every array equal, over graphs, parts, maps, widths and fanouts; and bad input. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/graph/part.h"
#include "core/numbers/rng.h"
#include "sampler/blocks/blocks.h"
#include "sampler/blocks/relabel.h"
#include "sampler/lanes/wide.h"
#include "test/support/alloc_fault.h"
#include "test/support/slow_sample.h"
#include "test/support/uniform_picks.h"

#define HASH  0          /* dense_bytes_max */
#define DENSE UINT64_MAX /* dense_bytes_max */

/* What one batch is made of. */
struct setting {
	struct gw_blocks_spec spec;
	uint64_t dense_bytes_max, seed, stream, n;
	uint32_t ntype;
	const int64_t *seeds;
};

static void homogeneous(struct slow_graph *graph, uint64_t nodes, uint64_t degree_max, uint64_t seed)
{
	slow_graph_init(graph, 1, &nodes);
	slow_graph_random(graph, 0, 0, degree_max, seed);
}

/* Three node types, one of them without nodes; five edge types, two between the same types, one from the empty type. */
static void heterogeneous(struct slow_graph *graph, uint64_t seed)
{
	static const uint64_t counts[3] = {700, 300, 0};
	slow_graph_init(graph, 3, counts);
	slow_graph_random(graph, 0, 0, 90, seed);
	slow_graph_random(graph, 1, 0, 40, seed + 1);
	slow_graph_random(graph, 0, 1, 200, seed + 2);
	slow_graph_random(graph, 1, 0, 70, seed + 3);
	slow_graph_random(graph, 2, 1, 30, seed + 4);
}

static gw_status run(const struct slow_graph *graph, const struct setting *s, struct gw_blocks *blocks,
		     struct gw_relabel *relabel)
{
	gw_status status = gw_blocks_begin(blocks, relabel, &s->spec, s->seed, s->stream, s->ntype, s->seeds, s->n);
	return status != GW_OK ? status : gw_blocks_run_memory(blocks, graph->parts, NULL);
}

/* In fresh objects, with ids of edges and without; returns the digest of the batch with ids. */
static uint64_t run_and_compare(const struct slow_graph *graph, const struct setting *s)
{
	struct gw_blocks *blocks;
	struct gw_relabel *relabel;
	assert_int_equal(gw_blocks_create(&graph->meta, &blocks), GW_OK);
	assert_int_equal(gw_relabel_create(&graph->meta, s->dense_bytes_max, &relabel), GW_OK);
	assert_int_equal(run(graph, s, blocks, relabel), GW_OK);
	slow_blocks_compare(graph, blocks, &s->spec, s->seed, s->stream, s->ntype, s->seeds, s->n);
	uint64_t digest = slow_blocks_digest(&graph->meta, blocks, s->spec.hops, s->spec.wide_indices);
	struct setting without = *s;
	without.spec.no_edge_ids = true;
	assert_int_equal(run(graph, &without, blocks, relabel), GW_OK);
	slow_blocks_compare(graph, blocks, &without.spec, s->seed, s->stream, s->ntype, s->seeds, s->n);
	gw_relabel_destroy(relabel);
	gw_blocks_destroy(blocks);
	return digest;
}

static void random_seeds(int64_t *seeds, uint64_t n, uint64_t below, uint64_t seed)
{
	struct gw_draws draws = gw_draws_begin(seed, 3);
	for (uint64_t i = 0; i < n; i++)
		seeds[i] = gw_draw_below(&draws, (uint32_t)below);
}

static void fanouts_of_every_kind(void **state)
{
	(void)state;
	static const int32_t fanouts[][3] = {
		{15, 10, 5}, {1, 1, 1},    {2, 3, 4},    {GW_FANOUT_ALL, 5, 0}, {0, 7, 8}, {0, 0, 0}, {32, 33, 2},
		{64, 65, 1}, {300, 16, 3}, {5000, 2, 2}, {3, 9, GW_FANOUT_ALL},
	};
	struct slow_graph graph;
	homogeneous(&graph, 3000, 700, 11);
	slow_graph_cut(&graph, 1, 4, 4, 0);
	int64_t seeds[200];
	random_seeds(seeds, 200, 3000, 1);
	for (size_t i = 0; i < sizeof(fanouts) / sizeof(fanouts[0]); i++) {
		for (int variant = 0; variant < 8; variant++) {
			struct setting s = {
				.spec = {.hops = 3,
					 .fanouts = fanouts[i],
					 .replace = variant & 1,
					 .wide_indices = variant & 2},
				.dense_bytes_max = variant & 4 ? HASH : DENSE,
				.seed = i,
				.stream = 77,
				.seeds = seeds,
				.n = 60,
			};
			run_and_compare(&graph, &s);
		}
	}
	slow_graph_free(&graph);
}

static void parts_widths_and_maps_give_the_same_bytes(void **state)
{
	(void)state;
	static const int32_t fanouts[] = {4, 3, 0, GW_FANOUT_ALL, 2, 3, 3, 5, 2, 0, 0, 0, 40, 40, 40};
	int64_t seeds[150];
	random_seeds(seeds, 150, 300, 2);
	for (int replace = 0; replace < 2; replace++) {
		uint64_t first = 0;
		for (uint32_t parts = 1; parts <= SLOW_PARTS_MAX; parts++) {
			struct slow_graph graph;
			heterogeneous(&graph, 5);
			slow_graph_cut(&graph, parts, parts & 1 ? 4 : 8, parts & 2 ? 4 : 8, parts);
			struct setting s = {
				.spec = {.hops = 3, .fanouts = fanouts, .replace = replace},
				.dense_bytes_max = parts & 4 ? HASH : DENSE,
				.seed = 3,
				.stream = 9,
				.ntype = 1,
				.seeds = seeds,
				.n = 150,
			};
			uint64_t digest = run_and_compare(&graph, &s);
			first = parts == 1 ? digest : first;
			assert_true(digest == first);
			slow_graph_free(&graph);
		}
	}
}

static void vectors_do_not_show(void **state)
{
	(void)state;
	static const int32_t fanouts[] = {4, 15, 32, 8, 10, 3, 16, 5, 2, 4};
	int64_t seeds[150];
	random_seeds(seeds, 150, 700, 2);
	struct slow_graph graph;
	heterogeneous(&graph, 41);
	slow_graph_cut(&graph, 2, 4, 4, 1);
	for (int replace = 0; replace < 2; replace++) {
		uint64_t first = 0;
		for (enum gw_vectors vectors = GW_VECTORS_OFF; vectors < GW_VECTORS_COUNT; vectors++) {
			if (!gw_vectors_set(vectors))
				continue;
			struct setting s = {
				.spec = {.hops = 2, .fanouts = fanouts, .replace = replace},
				.dense_bytes_max = DENSE,
				.seeds = seeds,
				.n = 150,
			};
			uint64_t digest = run_and_compare(&graph, &s);
			first = vectors == GW_VECTORS_OFF ? digest : first;
			assert_true(digest == first);
		}
	}
	gw_vectors_set(GW_VECTORS_AUTO);
	slow_graph_free(&graph);
}

static void seeds_of_every_kind(void **state)
{
	(void)state;
	static const int32_t fanouts[] = {3, 4, 2, 1, 5, 4, 4, 4, 4, 4};
	static const uint64_t counts[] = {0, 1, 15, 16, 17, 31, 32, 33, 255, 256, 257, 1000};
	struct slow_graph graph;
	heterogeneous(&graph, 21);
	slow_graph_cut(&graph, 3, 8, 4, 1);
	int64_t seeds[1000];
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		random_seeds(seeds, counts[i], i & 1 ? 5 : 700, i); /* 5: nearly all duplicates */
		struct setting s = {
			.spec = {.hops = 2, .fanouts = fanouts, .wide_indices = i & 1},
			.dense_bytes_max = i & 2 ? HASH : DENSE,
			.seed = i,
			.seeds = seeds,
			.n = counts[i],
		};
		run_and_compare(&graph, &s);
	}
	slow_graph_free(&graph);
}

static void objects_are_reused(void **state)
{
	(void)state;
	static const int32_t fanouts[][2] = {{15, 10}, {2, 70}, {GW_FANOUT_ALL, 1}};
	struct slow_graph graph;
	homogeneous(&graph, 2000, 300, 8);
	slow_graph_cut(&graph, 2, 4, 8, 4);
	for (int hash = 0; hash < 2; hash++) {
		struct gw_blocks *blocks;
		struct gw_relabel *relabel;
		assert_int_equal(gw_blocks_create(&graph.meta, &blocks), GW_OK);
		assert_int_equal(gw_relabel_create(&graph.meta, hash ? HASH : DENSE, &relabel), GW_OK);
		for (uint64_t b = 0; b < 60; b++) {
			int64_t seeds[100];
			random_seeds(seeds, 100, 2000, b);
			struct setting s = {
				.spec = {.hops = 2, .fanouts = fanouts[b % 3], .wide_indices = b % 5 == 0},
				.seed = 1,
				.stream = b,
				.seeds = seeds,
				.n = b % 7 * 15,
			};
			assert_int_equal(run(&graph, &s, blocks, relabel), GW_OK);
			slow_blocks_compare(&graph, blocks, &s.spec, 1, b, 0, seeds, s.n);
			seeds[50] = 2000;
			s.n = 100;
			assert_int_equal(run(&graph, &s, blocks, relabel), GW_RANGE);
		}
		gw_relabel_destroy(relabel);
		gw_blocks_destroy(blocks);
	}
	slow_graph_free(&graph);
}

static void bad_input_is_refused(void **state)
{
	(void)state;
	struct slow_graph graph;
	homogeneous(&graph, 100, 30, 3);
	slow_graph_cut(&graph, 2, 4, 4, 9);
	struct gw_blocks *blocks;
	struct gw_relabel *relabel;
	assert_int_equal(gw_blocks_create(&graph.meta, &blocks), GW_OK);
	assert_int_equal(gw_relabel_create(&graph.meta, DENSE, &relabel), GW_OK);
	int64_t seeds[] = {1, 2, 100, 101};
	int32_t fanouts[] = {5, 5};
	const struct setting good = {.spec = {.hops = 2, .fanouts = fanouts}, .seeds = seeds, .n = 2};
	struct setting s = good;
	s.n = 4;
	assert_int_equal(run(&graph, &s, blocks, relabel), GW_RANGE);
	assert_non_null(strstr(gw_last_error(), "node 100 ")); /* the first of them */
	seeds[2] = -1;
	assert_int_equal(run(&graph, &s, blocks, relabel), GW_RANGE);
	s = good;
	s.spec.hops = 0;
	assert_int_equal(run(&graph, &s, blocks, relabel), GW_INVALID);
	s.spec.hops = GW_HOPS_MAX + 1;
	assert_int_equal(run(&graph, &s, blocks, relabel), GW_INVALID);
	s = good;
	s.ntype = 1;
	assert_int_equal(run(&graph, &s, blocks, relabel), GW_INVALID);
	s = good;
	s.n = 1ull << 31;
	assert_int_equal(run(&graph, &s, blocks, relabel), GW_LIMIT);
	s = good;
	fanouts[1] = -2;
	assert_int_equal(run(&graph, &s, blocks, relabel), GW_INVALID);
	fanouts[1] = GW_FANOUT_MAX + 1;
	assert_int_equal(run(&graph, &s, blocks, relabel), GW_INVALID);
	fanouts[1] = 5;
	assert_int_equal(run(&graph, &s, blocks, relabel), GW_OK);
	const struct gw_adjacency *kept = graph.parts[1];
	graph.parts[0] = graph.parts[1] = NULL;
	assert_int_equal(run(&graph, &s, blocks, relabel), GW_NOT_FOUND);
	graph.parts[0] = graph.adjacencies[0];
	graph.parts[1] = kept;
	gw_relabel_destroy(relabel);
	gw_blocks_destroy(blocks);
	slow_graph_free(&graph);
}

/* Memory whose checks were skipped: a neighbour that is no node, a list that runs backwards or past the end. */
static void damaged_lists_are_refused(void **state)
{
	(void)state;
	static const int32_t fanouts[] = {GW_FANOUT_ALL, 5};
	int64_t seeds[100];
	for (int i = 0; i < 100; i++)
		seeds[i] = i;
	for (uint32_t parts = 1; parts <= 2; parts++) {
		for (int fault = 0; fault < 4; fault++) {
			struct slow_graph graph;
			homogeneous(&graph, 100, 30, 3);
			slow_graph_cut(&graph, parts, 8, 4, 9);
			struct gw_adjacency *a = &graph.adjacencies[parts - 1][0];
			assert_true(a->rows > 2 && a->edges > 2);
			uint64_t *indptr = (uint64_t *)(uintptr_t)a->indptr;
			if (fault < 2)
				((uint32_t *)(uintptr_t)a->indices)[a->edges / 2] = fault ? UINT32_MAX : 100;
			else
				indptr[a->rows / 2] = fault == 2 ? UINT64_MAX : a->edges + 1;
			struct setting s = {.spec = {.hops = 2, .fanouts = fanouts}, .seeds = seeds, .n = 100};
			for (int hash = 0; hash < 2; hash++) {
				struct gw_blocks *blocks;
				struct gw_relabel *relabel;
				assert_int_equal(gw_blocks_create(&graph.meta, &blocks), GW_OK);
				assert_int_equal(gw_relabel_create(&graph.meta, hash ? HASH : DENSE, &relabel), GW_OK);
				assert_int_equal(run(&graph, &s, blocks, relabel), GW_RANGE);
				gw_relabel_destroy(relabel);
				gw_blocks_destroy(blocks);
			}
			slow_graph_free(&graph);
		}
	}
}

/* The way of a client: picks elsewhere, run by run, then added. Equal to lists in memory. */
static gw_status run_by_adding(const struct slow_graph *graph, const struct setting *s, struct gw_blocks *blocks,
			       struct gw_relabel *relabel, uint64_t run_length, bool records)
{
	struct gw_picks picks = {0};
	const struct gw_adjacency *a = graph->adjacencies[0];
	gw_status status = gw_blocks_begin(blocks, relabel, &s->spec, s->seed, s->stream, s->ntype, s->seeds, s->n);
	for (uint32_t hop = 0; status == GW_OK && hop < s->spec.hops; hop++) {
		status = gw_blocks_hop_begin(blocks);
		for (uint32_t e = 0; status == GW_OK && e < graph->meta.num_etypes; e++) {
			const struct gw_pick_rule rule = gw_blocks_draw(blocks, e).rule;
			if (rule.fanout == 0)
				continue;
			status = gw_blocks_edges_begin(blocks, e);
			uint64_t count = gw_blocks_frontier(blocks, e).n, n;
			for (uint64_t at = 0; status == GW_OK && at < count; at += n) {
				const uint64_t *vertices = gw_blocks_frontier(blocks, e).nodes + at;
				n = count - at < run_length ? count - at : run_length;
				if (records) {
					uint64_t begins[512], ends[512];
					for (uint64_t i = 0; i < n; i++)
						gw_adjacency_list(&a[e], vertices[i], &begins[i], &ends[i]);
					status = uniform_from_records(&picks, &rule, vertices, begins, ends, n);
					if (status == GW_OK)
						status = gw_vec_reserve(&picks.neighbours, picks.edge_count * 8 + 8);
					for (uint64_t i = 0; status == GW_OK && i < picks.edge_count; i++)
						((uint64_t *)picks.neighbours.data)[i] =
							gw_load_id(a[e].indices, a[e].index_bytes,
								   ((uint64_t *)picks.positions.data)[i]);
				} else {
					status = uniform_from_memory(&picks, &a[e], &rule, vertices, n);
				}
				if (status == GW_OK)
					status = gw_blocks_add(blocks, n, picks.counts.data,
							       s->spec.no_edge_ids ? NULL : picks.positions.data,
							       picks.neighbours.data, a[e].edge_start);
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

static void adding_runs_equals_memory(void **state)
{
	(void)state;
	static const int32_t fanouts[] = {4, 3, 20, GW_FANOUT_ALL, 2, 3, 3, 5, 70, 0};
	static const uint64_t lengths[] = {1, 7, 128, 512};
	int64_t seeds[250];
	random_seeds(seeds, 250, 700, 2);
	struct slow_graph graph;
	heterogeneous(&graph, 31);
	slow_graph_cut(&graph, 1, 4, 4, 1);
	struct gw_blocks *blocks;
	struct gw_relabel *relabel;
	assert_int_equal(gw_blocks_create(&graph.meta, &blocks), GW_OK);
	assert_int_equal(gw_relabel_create(&graph.meta, DENSE, &relabel), GW_OK);
	for (int variant = 0; variant < 32; variant++) {
		struct setting s = {
			.spec = {.hops = 2, .fanouts = fanouts, .replace = variant & 1, .no_edge_ids = variant & 16},
			.seed = 6,
			.stream = (uint64_t)variant,
			.seeds = seeds,
			.n = 250,
		};
		assert_int_equal(run_by_adding(&graph, &s, blocks, relabel, lengths[variant / 4 % 4], variant & 2),
				 GW_OK);
		slow_blocks_compare(&graph, blocks, &s.spec, s.seed, s.stream, 0, seeds, 250);
	}
	gw_relabel_destroy(relabel);
	gw_blocks_destroy(blocks);
	slow_graph_free(&graph);
}

static void added_neighbours_are_checked(void **state)
{
	(void)state;
	struct slow_graph graph;
	homogeneous(&graph, 100, 30, 3);
	slow_graph_cut(&graph, 1, 4, 4, 9);
	for (uint64_t bad = 0; bad < 40; bad += 13) {
		for (int hash = 0; hash < 2; hash++) {
			struct gw_blocks *blocks;
			struct gw_relabel *relabel;
			assert_int_equal(gw_blocks_create(&graph.meta, &blocks), GW_OK);
			assert_int_equal(gw_relabel_create(&graph.meta, hash ? HASH : DENSE, &relabel), GW_OK);
			const int32_t fanout = 40;
			const int64_t seed = 7;
			struct gw_blocks_spec spec = {.hops = 1, .fanouts = &fanout};
			assert_int_equal(gw_blocks_begin(blocks, relabel, &spec, 1, 1, 0, &seed, 1), GW_OK);
			assert_int_equal(gw_blocks_hop_begin(blocks), GW_OK);
			assert_int_equal(gw_blocks_edges_begin(blocks, 0), GW_OK);
			uint64_t positions[40] = {0}, neighbours[40] = {0};
			uint32_t count = 40;
			neighbours[bad] = bad ? UINT64_MAX : 100;
			assert_int_equal(gw_blocks_add(blocks, 1, &count, positions, neighbours, 0), GW_RANGE);
			gw_relabel_destroy(relabel);
			gw_blocks_destroy(blocks);
		}
	}
	slow_graph_free(&graph);
}

struct shortage {
	const struct slow_graph *graph;
	struct setting setting;
};

static gw_status build_once(void *context)
{
	const struct shortage *shortage = context;
	struct gw_blocks *blocks = NULL;
	struct gw_relabel *relabel = NULL;
	gw_status status = gw_blocks_create(&shortage->graph->meta, &blocks);
	if (status == GW_OK)
		status = gw_relabel_create(&shortage->graph->meta, shortage->setting.dense_bytes_max, &relabel);
	if (status == GW_OK)
		status = run(shortage->graph, &shortage->setting, blocks, relabel);
	if (status == GW_OK)
		slow_blocks_compare(shortage->graph, blocks, &shortage->setting.spec, 1, 2, 0, shortage->setting.seeds,
				    shortage->setting.n);
	gw_relabel_destroy(relabel);
	gw_blocks_destroy(blocks);
	return status;
}

static void memory_shortage_is_an_error(void **state)
{
	(void)state;
	static const int32_t fanouts[] = {5, GW_FANOUT_ALL, 3, 3, 0, 4, 100, 70, 2, 3};
	int64_t seeds[30];
	random_seeds(seeds, 30, 700, 2);
	struct slow_graph graph;
	heterogeneous(&graph, 77);
	slow_graph_cut(&graph, 2, 4, 4, 1);
	for (int variant = 0; variant < 4; variant++) {
		struct shortage shortage = {
			.graph = &graph,
			.setting = {.spec = {.hops = 2, .fanouts = fanouts, .replace = variant & 1},
				    .dense_bytes_max = variant & 2 ? HASH : DENSE,
				    .seed = 1,
				    .stream = 2,
				    .seeds = seeds,
				    .n = 30},
		};
		assert_true(gw_fault_each(build_once, &shortage) > 10);
	}
	slow_graph_free(&graph);
}

/* The second of two equal batches asks for no memory. */
static void a_batch_allocates_nothing_once_grown(void **state)
{
	(void)state;
	static const int32_t fanouts[] = {15, 10};
	int64_t seeds[100];
	random_seeds(seeds, 100, 2000, 2);
	struct slow_graph graph;
	homogeneous(&graph, 2000, 300, 8);
	slow_graph_cut(&graph, 1, 4, 4, 4);
	struct setting s = {.spec = {.hops = 2, .fanouts = fanouts}, .seeds = seeds, .n = 100};
	for (int hash = 0; hash < 2; hash++) {
		struct gw_blocks *blocks;
		struct gw_relabel *relabel;
		assert_int_equal(gw_blocks_create(&graph.meta, &blocks), GW_OK);
		assert_int_equal(gw_relabel_create(&graph.meta, hash ? HASH : DENSE, &relabel), GW_OK);
		assert_int_equal(run(&graph, &s, blocks, relabel), GW_OK);
		gw_fault_begin(GW_FAULT_NEVER);
		gw_status status = run(&graph, &s, blocks, relabel);
		unsigned long count = gw_fault_count();
		gw_fault_end();
		assert_int_equal(status, GW_OK);
		assert_int_equal(count, 0);
		gw_relabel_destroy(relabel);
		gw_blocks_destroy(blocks);
	}
	slow_graph_free(&graph);
}

#define THREADS 8
#define BATCHES 20

struct worker {
	const struct slow_graph *graph;
	uint64_t digests[BATCHES];
	uint32_t first;
	gw_status status;
};

static void *work(void *context)
{
	static const int32_t fanouts[] = {5, 7, 3, 2, 4, 4, 4, 4, 4, 4};
	struct worker *worker = context;
	struct gw_blocks *blocks = NULL;
	struct gw_relabel *relabel = NULL;
	worker->status = gw_blocks_create(&worker->graph->meta, &blocks);
	if (!worker->status)
		worker->status = gw_relabel_create(&worker->graph->meta, worker->first & 1 ? HASH : DENSE, &relabel);
	for (uint32_t i = 0; !worker->status && i < BATCHES; i++) {
		uint32_t b = (worker->first + i) % BATCHES;
		int64_t seeds[40];
		random_seeds(seeds, 40, 700, b);
		struct setting s = {
			.spec = {.hops = 2, .fanouts = fanouts}, .seed = 4, .stream = b, .seeds = seeds, .n = 40};
		worker->status = run(worker->graph, &s, blocks, relabel);
		if (!worker->status)
			worker->digests[b] = slow_blocks_digest(&worker->graph->meta, blocks, s.spec.hops, false);
	}
	gw_relabel_destroy(relabel);
	gw_blocks_destroy(blocks);
	return NULL;
}

static void threads_do_not_show(void **state)
{
	(void)state;
	struct slow_graph graph;
	heterogeneous(&graph, 13);
	slow_graph_cut(&graph, 4, 4, 4, 2);
	struct worker alone = {.graph = &graph}, workers[THREADS];
	work(&alone);
	assert_int_equal(alone.status, GW_OK);
	pthread_t threads[THREADS];
	for (uint32_t i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){.graph = &graph, .first = i * 5};
		assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	}
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t i = 0; i < THREADS; i++) {
		assert_int_equal(workers[i].status, GW_OK);
		assert_memory_equal(workers[i].digests, alone.digests, sizeof(alone.digests));
	}
	slow_graph_free(&graph);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fanouts_of_every_kind),
		cmocka_unit_test(parts_widths_and_maps_give_the_same_bytes),
		cmocka_unit_test(vectors_do_not_show),
		cmocka_unit_test(seeds_of_every_kind),
		cmocka_unit_test(objects_are_reused),
		cmocka_unit_test(bad_input_is_refused),
		cmocka_unit_test(damaged_lists_are_refused),
		cmocka_unit_test(adding_runs_equals_memory),
		cmocka_unit_test(added_neighbours_are_checked),
		cmocka_unit_test(memory_shortage_is_an_error),
		cmocka_unit_test(a_batch_allocates_nothing_once_grown),
		cmocka_unit_test(threads_do_not_show),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
