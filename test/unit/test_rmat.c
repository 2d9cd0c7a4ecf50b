/* Generated graphs: the same for any number of threads, of the promised shape, with the requested features and splits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/support/alloc_fault.h"
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

/* Several weights: each has its table, and values that do not depend on the others. */
static void several_weights(void **state)
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
		cmocka_unit_test(graph500_parameters),
		cmocka_unit_test(heavy_tail_shuffled),
		cmocka_unit_test(arrays_as_asked),
		cmocka_unit_test(several_weights),
		cmocka_unit_test(too_big_is_refused_first),
		cmocka_unit_test(shortage),
	};
	return cmocka_run_group_tests_name("rmat", tests, import_bed_set_up, import_bed_tear_down);
}
