/* Blocks of real graphs against the slow oracle: web, social, citation and knowledge graphs, whole and in parts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/graph/csc.h"
#include "core/graph/part.h"
#include "core/numbers/rng.h"
#include "sampler/blocks/blocks.h"
#include "sampler/blocks/relabel.h"
#include "sampler/lanes/wide.h"
#include "test/support/real_graphs.h"
#include "test/support/slow_sample.h"

#define BATCHES 24
#define SEEDS   120

/* The known sizes: what was read is the graph that was meant. */
struct known {
	const char *name;
	uint64_t nodes, edges, relations;
};

static void build(const struct known *known, const struct real_graph *real, struct slow_graph *graph)
{
	assert_int_equal(real->nodes, known->nodes);
	assert_int_equal(real->edges, known->edges);
	assert_int_equal(real->relations, known->relations);
	struct gw_coo coo = {
		.num_src = real->nodes,
		.num_dst = real->nodes,
		.num_edges = real->edges,
		.src = real->src,
		.dst = real->dst,
		.rel = real->rel,
	};
	struct gw_csc csc;
	assert_int_equal(gw_csc_build(&coo, 2, &csc), GW_OK);
	uint64_t *indptr = malloc((real->nodes + 1) * sizeof(*indptr));
	uint64_t *indices = malloc((real->edges + 1) * sizeof(*indices));
	assert_true(indptr && indices);
	memcpy(indptr, csc.indptr, (real->nodes + 1) * sizeof(*indptr));
	for (uint64_t i = 0; i < real->edges; i++)
		indices[i] = real->src[csc.order[i]];
	gw_csc_free(&csc);
	slow_graph_init(graph, 1, &real->nodes);
	slow_graph_edges(graph, 0, 0, indptr, indices);
}

/* Batches of every kind; parts, maps and vectors change from batch to batch. */
static void sample(const struct known *known)
{
	static const int32_t fanouts[][3] = {{15, 10, 5}, {10, 25, 0}, {GW_FANOUT_ALL, 3, 2}, {40, 2, 2}, {1, 33, 3}};
	struct real_graph real;
	if (!real_graph_load(known->name, &real))
		skip();
	struct slow_graph graph;
	build(known, &real, &graph);
	struct gw_blocks *blocks;
	struct gw_relabel *relabels[2];
	slow_graph_cut(&graph, 1, 4, 4, 1);
	assert_int_equal(gw_blocks_create(&graph.meta, &blocks), GW_OK);
	assert_int_equal(gw_relabel_create(&graph.meta, UINT64_MAX, &relabels[0]), GW_OK);
	assert_int_equal(gw_relabel_create(&graph.meta, 0, &relabels[1]), GW_OK);
	for (uint64_t b = 0; b < BATCHES; b++) {
		static const uint32_t parts[] = {1, 2, 3, 8};
		if (b % (BATCHES / 4) == 0)
			slow_graph_cut(&graph, parts[b / (BATCHES / 4)], b & 1 ? 4 : 8, 4, b);
		struct gw_blocks_spec spec = {
			.hops = b % 5 == 1 ? 2 : 3,
			.fanouts = fanouts[b % 5],
			.replace = b % 3 == 2,
			.wide_indices = b % 7 == 3,
		};
		int64_t seeds[SEEDS];
		struct gw_draws draws = gw_draws_begin(b, 5);
		for (int i = 0; i < SEEDS; i++)
			seeds[i] = gw_draw_below(&draws, (uint32_t)real.nodes);
		gw_vectors_set(b & 2 ? GW_VECTORS_AUTO : GW_VECTORS_OFF);
		if (gw_blocks_begin(blocks, relabels[b & 1], &spec, 1, b, 0, seeds, SEEDS) ||
		    gw_blocks_run_memory(blocks, graph.parts, NULL))
			fail_msg("%s", gw_last_error());
		slow_blocks_compare(&graph, blocks, &spec, 1, b, 0, seeds, SEEDS);
	}
	gw_vectors_set(GW_VECTORS_AUTO);
	gw_relabel_destroy(relabels[0]);
	gw_relabel_destroy(relabels[1]);
	gw_blocks_destroy(blocks);
	slow_graph_free(&graph);
	real_graph_free(&real);
}

static void cora(void **state)
{
	(void)state;
	sample(&(const struct known){"cora", 2708, 10556, 0});
}

static void facebook(void **state)
{
	(void)state;
	sample(&(const struct known){"facebook", 22470, 170823, 0});
}

static void ego_twitter(void **state)
{
	(void)state;
	sample(&(const struct known){"ego-twitter", 81306, 1342310, 0});
}

static void cnr_2000(void **state)
{
	(void)state;
	sample(&(const struct known){"cnr-2000", 325557, 3216152, 0});
}

static void fb15k_237(void **state)
{
	(void)state;
	sample(&(const struct known){"fb15k-237", 14505, 272115, 237});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cora),     cmocka_unit_test(facebook),  cmocka_unit_test(ego_twitter),
		cmocka_unit_test(cnr_2000), cmocka_unit_test(fb15k_237),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
