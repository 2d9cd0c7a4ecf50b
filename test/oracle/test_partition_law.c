/* The random partition follows its law: every division of few nodes into parts of equal size is equally likely, and any
 * two nodes of more are in one part as often. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/support/chi_square.h"
#include "test/support/import_bed.h"
#include "tools/partition/plan.h"
#include "tools/rmat.h"

/* A graph of 2^scale nodes, of which only the number matters. */
static void begin(uint32_t scale)
{
	struct gw_builder *builder;
	const struct gw_rmat_options options = {.scale = scale, .edge_factor = 1, .seed = 1, .threads = 1};
	const struct gw_builder_options build = {.threads = 1, .quiet = true, .replace = true};
	const struct gw_part_options part = {.mapped = true};
	if (gw_builder_create("graph", &builder) != GW_OK || gw_rmat_build(&options, builder) != GW_OK ||
	    gw_builder_write(builder, import_bed.out, &build, &import_bed.stats) != GW_OK ||
	    gw_meta_read(import_bed.out, &import_bed.meta) != GW_OK ||
	    gw_part_open(import_bed.meta, 0, &part, &import_bed.part) != GW_OK)
		fail_msg("%s", gw_last_error());
	gw_builder_destroy(builder);
}

static void assign(uint32_t parts, uint64_t seed, uint16_t *of, uint32_t nodes)
{
	const struct gw_plan plan = {
		.parts = parts, .trainers = 1, .method = GW_PLAN_RANDOM, .seed = seed, .threads = 1};
	struct gw_assignment assignment;
	assert_int_equal(gw_assignment_make(&plan, import_bed.part, &assignment), GW_OK);
	assert_int_equal(gw_assign_random(&plan, import_bed.part, &assignment), GW_OK);
	memcpy(of, assignment.piece[0], nodes * sizeof(*of));
	gw_assignment_free(&assignment);
}

static void few_nodes_are_divided_in_every_way(void **state)
{
	enum { NODES = 8, WAYS = 70 };
	(void)state;
	uint32_t counts[1 << NODES] = {0}, ways[WAYS], found = 0;
	begin(3);
	for (uint64_t seed = 0; seed < 20000; seed++) {
		uint16_t of[NODES];
		uint32_t set = 0;
		assign(2, seed, of, NODES);
		for (uint32_t v = 0; v < NODES; v++)
			set |= (uint32_t)of[v] << v;
		counts[set]++;
	}
	for (uint32_t set = 0; set < 1 << NODES; set++) {
		if (__builtin_popcount(set) == NODES / 2)
			ways[found++] = counts[set];
		else
			assert_int_equal(counts[set], 0);
	}
	assert_int_equal(found, WAYS);
	assert_equally_likely(ways, WAYS, "ways to divide", NODES);
	import_bed_reset(&import_bed);
}

/* The other nodes of a node's part: sizes are fixed, so that chi-square is smaller than that of independent draws. */
static void nodes_have_any_companions(void **state)
{
	enum { NODES = 16, PARTS = 2, OTHERS = NODES / PARTS - 1, SEEDS = 5000 };
	(void)state;
	uint32_t counts[NODES][NODES] = {{0}};
	begin(4);
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		uint16_t of[NODES];
		assign(PARTS, seed, of, NODES);
		for (uint32_t v = 0; v < NODES; v++) {
			for (uint32_t other = 0; other < NODES; other++)
				counts[v][other] += of[v] == of[other];
		}
	}
	for (uint32_t v = 0; v < NODES; v++) {
		assert_int_equal(counts[v][v], SEEDS);
		double share = (double)OTHERS / (NODES - 1), expected = SEEDS * share;
		counts[v][v] = (uint32_t)(expected + 0.5); /* itself is no part of the sum */
		double sum = chi_square(counts[v], NODES, expected) / (1 - share) * (NODES - 2) / (NODES - 1);
		assert_chi_square(sum, NODES - 2, "companions of a node", NODES);
	}
	import_bed_reset(&import_bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_nodes_are_divided_in_every_way),
		cmocka_unit_test(nodes_have_any_companions),
	};
	return cmocka_run_group_tests_name("partition law", tests, import_bed_set_up, import_bed_tear_down);
}
