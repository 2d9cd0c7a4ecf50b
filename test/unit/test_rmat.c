/* Generated graphs: the same for any number of threads, of bytes that never change, of the promised shape, with the
 * requested features and splits. Edges and arrays follow their laws. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "core/numbers/scatter.h"
#include "test/support/alloc_fault.h"
#include "test/support/chi_square.h"
#include "test/support/import_bed.h"
#include "test/support/weight_tables.h"
#include "tools/rmat.h"

static struct gw_rmat_options usual(void)
{
	return (struct gw_rmat_options){.scale = 12,
					.edge_factor = 16,
					.seed = 5,
					.features = 24,
					.labels = 7,
					.train_share = .5,
					.val_share = .2,
					.test_share = .3,
					.weights = {"weight"},
					.num_weights = 1};
}

static gw_status generate(const struct gw_rmat_options *options)
{
	struct gw_builder *builder;
	const struct gw_builder_options build = {.threads = options->threads, .quiet = true, .replace = true};
	gw_status status = gw_builder_create("graph", &builder);
	if (status != GW_OK)
		return status;
	status = gw_rmat_build(options, builder);
	if (status == GW_OK)
		status = gw_builder_write(builder, import_bed.out, &build, &import_bed.stats);
	gw_builder_destroy(builder);
	return status;
}

static void open_graph(const struct gw_rmat_options *options)
{
	struct gw_part_options part = {.mapped = true};
	if (generate(options) != GW_OK || gw_meta_read(import_bed.out, &import_bed.meta) != GW_OK ||
	    gw_part_open(import_bed.meta, 0, &part, &import_bed.part) != GW_OK ||
	    gw_part_check(import_bed.part, 1) != GW_OK)
		fail_msg("%s", gw_last_error());
}

static void threads_do_not_matter(void **state)
{
	(void)state;
	struct gw_rmat_options options = usual();
	uint64_t first = 0;
	for (options.threads = 1; options.threads <= 5; options.threads++) {
		assert_int_equal(generate(&options), GW_OK);
		first = first ? first : import_bed.stats.graph_id;
		assert_int_equal(import_bed.stats.graph_id, first);
	}
	options.seed++;
	assert_int_equal(generate(&options), GW_OK);
	assert_true(import_bed.stats.graph_id != first);
	import_bed_reset(&import_bed);
}

/* Published figures name graphs that were generated so. */
static void graphs_never_change(void **state)
{
	(void)state;
	struct gw_rmat_options options = usual();
	assert_int_equal(generate(&options), GW_OK);
	assert_int_equal(import_bed.stats.graph_id, 0x325da40bb730ad19ull);
	options = (struct gw_rmat_options){.scale = 11, .edge_factor = 16, .seed = 2};
	assert_int_equal(generate(&options), GW_OK);
	assert_int_equal(import_bed.stats.graph_id, 0xac3f5f07268b3a84ull);
	import_bed_reset(&import_bed);
}

/* Before the vertices are scattered: each bit of an edge's ends chooses a quadrant with Graph500's probabilities, and
 * no bit depends on another. */
static void bits_of_edges_choose_quadrants(void **state)
{
	(void)state;
	enum { SCALE = 10 };
	static const double quadrants[] = {.57, .19, .19, .05};
	const struct gw_rmat_options options = {.scale = SCALE, .edge_factor = 100, .seed = 8};
	struct gw_scatter scatter = gw_scatter_begin(gw_draw_key(8, 0, GW_DRAW_SHUFFLE, 0, 0), 1 << SCALE);
	uint32_t vertex[1 << SCALE], counts[SCALE][SCALE][16] = {{{0}}};
	double chances[16];
	for (uint32_t i = 0; i < 1 << SCALE; i++)
		vertex[gw_scatter_at(&scatter, i)] = i;
	for (int i = 0; i < 16; i++)
		chances[i] = quadrants[i / 4] * quadrants[i % 4];
	open_graph(&options);
	const struct gw_adjacency *lists = gw_part_adjacency(import_bed.part, 0);
	for (uint64_t v = 0; v < lists->rows; v++) {
		uint64_t from, to;
		gw_adjacency_list(lists, v, &from, &to);
		for (; from < to; from++) {
			uint32_t src = vertex[gw_load_id(lists->indices, lists->index_bytes, from)], at[SCALE];
			for (uint32_t b = 0; b < SCALE; b++)
				at[b] = (src >> b & 1) << 1 | (vertex[v] >> b & 1);
			for (uint32_t b = 0; b < SCALE; b++) {
				for (uint32_t c = 0; c < b; c++)
					counts[b][c][4 * at[b] + at[c]]++;
			}
		}
	}
	for (uint32_t b = 0; b < SCALE; b++) {
		for (uint32_t c = 0; c < b; c++)
			assert_chances(counts[b][c], chances, 16, "quadrants of two bits, the higher one", b);
	}
	import_bed_reset(&import_bed);
}

/* Labels, splits and features of a node do not depend on its neighbour's, nor on each other; features and weights are
 * uniform. */
static void arrays_follow_their_laws(void **state)
{
	(void)state;
	enum { NODES = 1 << 14, LABELS = 5, COLUMNS = 6, EDGES = 2 * NODES };
	static const double shares[] = {.5, .2, .3};
	struct gw_rmat_options options = usual();
	options.scale = 14;
	options.edge_factor = 2;
	options.labels = LABELS;
	options.features = 0;
	options.weights[1] = "other";
	options.num_weights = 2;
	double chances[9], mixed[3 * LABELS];
	for (int i = 0; i < 9; i++)
		chances[i] = shares[i / 3] * shares[i % 3];
	for (int i = 0; i < 3 * LABELS; i++)
		mixed[i] = shares[i / LABELS] / LABELS;
	open_graph(&options);
	const int64_t *label = import_bed_array(&import_bed, "node/_N/label");
	const uint8_t *val = import_bed_array(&import_bed, "node/_N/val_mask");
	const uint8_t *test = import_bed_array(&import_bed, "node/_N/test_mask");
	const float *weight = import_bed_array(&import_bed, "edge/_N___E___N/weight");
	const float *other = import_bed_array(&import_bed, "edge/_N___E___N/other");
	uint32_t labels[LABELS * LABELS] = {0}, splits[9] = {0}, both[3 * LABELS] = {0}, weights[2][64] = {{0}};
	for (uint32_t v = 0; v < NODES; v++) {
		uint32_t next = (v + 1) % NODES, split = val[v] + 2u * test[v];
		labels[label[v] * LABELS + label[next]]++;
		splits[3 * split + val[next] + 2u * test[next]]++;
		both[split * LABELS + (uint64_t)label[v]]++;
	}
	assert_equally_likely(labels, LABELS * LABELS, "labels of neighbours", LABELS);
	assert_chances(splits, chances, 9, "splits of neighbours", NODES);
	assert_chances(both, mixed, 3 * LABELS, "splits and labels", NODES);
	for (uint32_t e = 0; e < EDGES; e++) {
		uint32_t cell = (uint32_t)ceilf(8 * weight[e]) - 1;
		weights[0][cell * 8 + (uint32_t)ceilf(8 * weight[(e + 1) % EDGES]) - 1]++;
		weights[1][cell * 8 + (uint32_t)ceilf(8 * other[e]) - 1]++;
	}
	assert_equally_likely(weights[0], 64, "weights of neighbouring edges", EDGES);
	assert_equally_likely(weights[1], 64, "weights of two names", EDGES);
	import_bed_reset(&import_bed);

	options = (struct gw_rmat_options){.scale = 14, .edge_factor = 1, .seed = 6, .features = COLUMNS};
	open_graph(&options);
	const float *feat = import_bed_array(&import_bed, "node/_N/feat");
	for (uint32_t column = 0; column < COLUMNS; column++) {
		uint32_t columns[64] = {0}, rows[64] = {0};
		for (uint32_t v = 0; v < NODES; v++) {
			const float *row = feat + (uint64_t)v * COLUMNS,
				    *next = feat + (uint64_t)(v + 1) % NODES * COLUMNS;
			uint32_t cell = (uint32_t)(4 * row[column] + 4);
			columns[cell * 8 + (uint32_t)(4 * row[(column + 1) % COLUMNS] + 4)]++;
			rows[cell * 8 + (uint32_t)(4 * next[column] + 4)]++;
		}
		assert_equally_likely(columns, 64, "features of two columns, the first", column);
		assert_equally_likely(rows, 64, "features of two nodes, column", column);
	}
	import_bed_reset(&import_bed);
}

/* Graph500's probabilities, at the vertex with number 0 before the shuffle: (.57 + .19)^scale of all edges start
 * there, as many end there, and .57^scale are its loops. */
static void graph500_parameters(void **state)
{
	(void)state;
	const struct gw_rmat_options options = {.scale = 10, .edge_factor = 256, .seed = 3, .threads = 2};
	open_graph(&options);
	const struct gw_adjacency *lists = gw_part_adjacency(import_bed.part, 0);
	uint64_t out[1024] = {0}, busiest = 0, popular = 0, in_max = 0, loops = 0;
	for (uint64_t v = 0; v < lists->rows; v++) {
		uint64_t from, to;
		gw_adjacency_list(lists, v, &from, &to);
		if (to - from > in_max) {
			in_max = to - from;
			popular = v;
		}
		for (; from < to; from++)
			out[gw_load_id(lists->indices, lists->index_bytes, from)]++;
	}
	for (uint64_t v = 0; v < 1024; v++)
		busiest = out[v] > out[busiest] ? v : busiest;
	assert_int_equal(busiest, popular);
	uint64_t from, to;
	gw_adjacency_list(lists, popular, &from, &to);
	for (; from < to; from++)
		loops += gw_load_id(lists->indices, lists->index_bytes, from) == popular;
	/* 262,144 edges: 16,852 (deviation 126), and 949 loops (31); five deviations. */
	assert_in_range(in_max, 16852 - 630, 16852 + 630);
	assert_in_range(out[popular], 16852 - 630, 16852 + 630);
	assert_in_range(loops, 949 - 155, 949 + 155);
	import_bed_reset(&import_bed);
}

/* The ends of R-MAT's edges are not uniform: the share of isolated nodes and the largest degree are far from those of
 * a uniform graph. After the shuffle, low ids are not favoured. */
static void heavy_tail_shuffled(void **state)
{
	(void)state;
	struct gw_rmat_options options = usual();
	open_graph(&options);
	const struct gw_adjacency *lists = gw_part_adjacency(import_bed.part, 0);
	uint64_t nodes = lists->rows, empty = 0, degree_max = 0, low = 0;
	assert_int_equal(nodes, 4096);
	assert_int_equal(lists->edges, 65536);
	for (uint64_t v = 0; v < nodes; v++) {
		uint64_t from, to;
		gw_adjacency_list(lists, v, &from, &to);
		empty += to == from;
		degree_max = to - from > degree_max ? to - from : degree_max;
		low += v < nodes / 2 ? to - from : 0;
	}
	assert_true(empty > nodes / 10);                      /* uniform: none */
	assert_true(degree_max > 16ull * 20);                 /* uniform: under 40 */
	assert_in_range(low, 65536 * 4 / 10, 65536 * 6 / 10); /* without the shuffle: 3/4 */
	import_bed_reset(&import_bed);
}

static void arrays_as_asked(void **state)
{
	(void)state;
	struct gw_rmat_options options = usual();
	open_graph(&options);
	const int64_t *label = import_bed_array(&import_bed, "node/_N/label");
	const float *feat = import_bed_array(&import_bed, "node/_N/feat");
	const float *weight = import_bed_array(&import_bed, "edge/_N___E___N/weight");
	const uint8_t *masks[] = {import_bed_array(&import_bed, "node/_N/train_mask"),
				  import_bed_array(&import_bed, "node/_N/val_mask"),
				  import_bed_array(&import_bed, "node/_N/test_mask")};
	uint64_t classes[7] = {0}, sizes[3] = {0};
	double centres[7][24] = {{0}};
	for (uint64_t v = 0; v < 4096; v++) {
		assert_in_range(label[v], 0, 6);
		classes[label[v]]++;
		assert_int_equal(masks[0][v] + masks[1][v] + masks[2][v], 1);
		for (int m = 0; m < 3; m++)
			sizes[m] += masks[m][v];
		for (int d = 0; d < 24; d++) {
			assert_true(feat[v * 24 + (uint64_t)d] >= -1.5f && feat[v * 24 + (uint64_t)d] <= 1.5f);
			centres[label[v]][d] += feat[v * 24 + (uint64_t)d];
		}
	}
	for (int c = 0; c < 7; c++) {
		assert_in_range(classes[c], 480, 690);
		for (int d = 0; d < 24; d++) { /* +-1/2 */
			double mean = centres[c][d] / (double)classes[c];
			assert_true((mean > 0.4 && mean < 0.6) || (mean < -0.4 && mean > -0.6));
		}
	}
	assert_in_range(sizes[0], 1900, 2200);
	assert_in_range(sizes[1], 700, 940);
	for (uint64_t i = 0; i < 65536; i++)
		assert_true(weight[i] > 0 && weight[i] <= 1);
	import_bed_reset(&import_bed);
}

static void several_weights_are_independent(void **state)
{
	(void)state;
	static float alone[1 << 10];
	for (int several = 0; several < 2; several++) {
		struct gw_rmat_options options = {
			.scale = 6, .edge_factor = 16, .weights = {"weight"}, .num_weights = 1};
		if (several) {
			options.weights[0] = "other";
			options.weights[1] = "weight";
			options.num_weights = 2;
		}
		open_graph(&options);
		const float *weight = import_bed_array(&import_bed, "edge/_N___E___N/weight");
		weight_table_holds(import_bed.part, "_E", "weight");
		if (several) {
			weight_table_holds(import_bed.part, "_E", "other");
			assert_memory_equal(weight, alone, sizeof(alone));
			assert_memory_not_equal(import_bed_array(&import_bed, "edge/_N___E___N/other"), alone,
						sizeof(alone));
		}
		memcpy(alone, weight, sizeof(alone));
		import_bed_reset(&import_bed);
	}
}

static void too_big_is_refused_first(void **state)
{
	(void)state;
	struct gw_rmat_options options = {.scale = 40, .edge_factor = 16};
	gw_status status = generate(&options);
	assert_true(status == GW_NO_MEMORY || status == GW_LIMIT);
	options.edge_factor = 1ull << 24;
	assert_int_equal(generate(&options), GW_LIMIT);
}

static gw_status generate_small(void *context)
{
	(void)context;
	struct gw_rmat_options options = usual();
	options.scale = 5;
	options.threads = 1;
	options.undirected = true;
	return generate(&options);
}

static void shortage(void **state)
{
	(void)state;
	assert_true(gw_fault_each(generate_small, NULL) > 20);
	import_bed_reset(&import_bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_do_not_matter),
		cmocka_unit_test(graphs_never_change),
		cmocka_unit_test(bits_of_edges_choose_quadrants),
		cmocka_unit_test(arrays_follow_their_laws),
		cmocka_unit_test(graph500_parameters),
		cmocka_unit_test(heavy_tail_shuffled),
		cmocka_unit_test(arrays_as_asked),
		cmocka_unit_test(several_weights_are_independent),
		cmocka_unit_test(too_big_is_refused_first),
		cmocka_unit_test(shortage),
	};
	return cmocka_run_group_tests_name("rmat", tests, import_bed_set_up, import_bed_tear_down);
}
