/* Every kind of sampling: its picks are the same bytes by every driver, whatever the parts, the length of the runs and
 * the threads. The kinds are those of the table (sampler/kinds/kinds.c) and one of this test
 * (test/support/every_second.h); a new kind is tested here as soon as it has its row.
 *
 *   memory driver, one run after another ─┬─ runs of other lengths, some with a bound of their entries
 *                                         ├─ rounds, their entries in unaligned copies
 *                                         └─ blocks, of one part, of several parts mixed
 */
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "sampler/blocks/relabel.h"
#include "sampler/picks.h"
#include "sampler/picks_rounds.h"
#include "test/support/alloc_fault.h"
#include "test/support/columned.h"
#include "test/support/every_second.h"

#define NODES      COLUMNED_NODES
#define KINDS_MAX  16
#define ROUNDS_MAX 5

static const int32_t fanouts[] = {0, 1, 5, 33, 300, GW_FANOUT_ALL};
#define FANOUTS (sizeof(fanouts) / sizeof(fanouts[0]))

/* --- The kinds. --- */

static const struct gw_sampling_kind *kinds[KINDS_MAX];
static uint32_t kind_count;

static int find_kinds(void **state)
{
	(void)state;
	gw_sampling_kind_try(&sample_every_second);
	for (uint32_t number = 0; number <= KIND_EVERY_SECOND; number++) {
		const struct gw_sampling_kind *kind = gw_sampling_kind_at(number);
		if (!kind)
			continue;
		assert_int_equal(kind->number, number);
		assert_in_range(kind_count, 0, KINDS_MAX - 1);
		kinds[kind_count++] = kind;
	}
	assert_true(kind_count > 1);
	return 0;
}

/* --- What a draw is made with. --- */

struct variant {
	const struct gw_sampling_kind *kind;
	int32_t fanout;
	bool replace, grouped, table; /* table: the derived columns exist */
	bool plain;                   /* without the columns that a rule may leave unnamed */
	bool valueless;               /* the groups have no values */
	bool crowded;                 /* a group more than a batch may have with values */
};

#define VARIANT_BITS 4

static const uint32_t derived = GW_COLUMN_BIT(GW_COLUMN_ALIAS) | GW_COLUMN_BIT(GW_COLUMN_FENCE);

static struct variant variant_of(const struct gw_sampling_kind *kind, size_t fanout, uint32_t bits)
{
	return (struct variant){kind, fanouts[fanout], bits & 1, bits & 2, bits & 4, bits & 8, false, false};
}

/* Whether another variant draws the same: a kind without columns has no table. */
static bool variant_repeats(const struct variant *variant)
{
	return (variant->table && !(variant->kind->columns & derived)) || (variant->plain && !variant->kind->optional);
}

static void set_forms(const struct variant *variant, struct gw_column_form forms[GW_COLUMN_COUNT])
{
	const struct gw_sampling_kind *kind = variant->kind;
	columned_forms(kind->columns & ~(variant->table ? 0 : derived) & ~(variant->plain ? kind->optional : 0), forms);
}

static struct gw_groups groups_of(const struct variant *variant)
{
	const struct gw_groups none = {0};
	struct gw_groups groups = columned_groups();
	if (variant->crowded)
		groups.count = GW_GROUPS_MAX + 1; /* of which the frontier has the first ones */
	return variant->valueless ? none : groups;
}

static struct gw_draw make_draw(const struct variant *variant, uint8_t index_bytes)
{
	struct gw_draw draw = {.rule = {.key = gw_draw_key(3, 9, GW_DRAW_NEIGHBOURS, 0, 0),
					.fanout = variant->fanout,
					.replace = variant->replace},
			       .kind = variant->kind,
			       .groups = groups_of(variant)};
	set_forms(variant, draw.forms);
	draw.forms[GW_COLUMN_IDS].entry_bytes = index_bytes;
	if (draw.kind->check)
		assert_int_equal(draw.kind->check(&draw), GW_OK);
	return draw;
}

static void with_each_variant(void (*body)(const struct variant *variant))
{
	for (uint32_t k = 0; k < kind_count; k++) {
		for (size_t f = 0; f < FANOUTS; f++) {
			for (uint32_t bits = 0; bits < 1u << VARIANT_BITS; bits++) {
				struct variant variant = variant_of(kinds[k], f, bits);
				if (!variant_repeats(&variant))
					body(&variant);
			}
		}
	}
}

/* All nodes, shuffled, with groups that repeat; the groups are so many that their runs are short and long. */
struct frontier {
	uint64_t vertices[NODES];
	uint32_t groups[NODES];
};

static void make_frontier(struct frontier *frontier)
{
	struct gw_draws draws = gw_draws_begin(5, 5);
	for (uint64_t i = 0; i < NODES; i++)
		frontier->vertices[i] = i;
	for (uint64_t i = NODES; i > 1; i--) {
		uint64_t other = gw_draw_below(&draws, (uint32_t)i), kept = frontier->vertices[i - 1];
		frontier->vertices[i - 1] = frontier->vertices[other];
		frontier->vertices[other] = kept;
	}
	for (uint64_t i = 0; i < NODES; i++)
		frontier->groups[i] = (uint32_t)(i < NODES / 2 ? i : i / 100);
}

/* --- Picks, and their comparison. --- */

/* Picks so many rows, or fewer if they need too many entries. A row alone may need any number. */
static gw_status pick_some(struct gw_picks *picks, struct gw_picks_memory memory, const struct gw_draw *draw,
			   const uint64_t *vertices, const uint32_t *groups, uint64_t *n)
{
	for (;;) {
		gw_status status = gw_picks_from_memory(picks, &memory, draw, vertices, groups, *n);
		if (status != GW_LIMIT) {
			if (status == GW_OK && memory.entries_max)
				assert_true(picks->entry_count <= ROUNDS_MAX * memory.entries_max);
			return status;
		}
		assert_true(picks->dst_count < *n);
		*n = picks->dst_count ? picks->dst_count : 1;
		memory.entries_max = picks->dst_count ? memory.entries_max : 0;
	}
}

/* Picks for all nodes, up to `length` in one call. entries_max: as for gw_picks_from_memory. */
static gw_status pick_all(const struct columned *columned, const struct variant *variant, uint64_t length,
			  uint64_t entries_max, struct gw_picks *one, struct gw_picks *all)
{
	const struct gw_adjacency *adjacency = &columned->graph.adjacencies[0][0];
	const struct gw_picks_memory memory = {
		.adjacency = adjacency, .columns = &columned->parts[0], .entries_max = entries_max};
	const struct gw_draw draw = make_draw(variant, adjacency->index_bytes);
	struct frontier frontier;
	gw_status status = GW_OK;
	make_frontier(&frontier);
	all->dst_count = all->edge_count = 0;
	for (uint64_t at = 0, n; at < NODES && status == GW_OK; at += n) {
		n = NODES - at < length ? NODES - at : length;
		status = pick_some(one, memory, &draw, frontier.vertices + at,
				   variant->grouped ? frontier.groups + at : NULL, &n);
		uint64_t rows = all->dst_count + n, edges = all->edge_count + one->edge_count;
		if (status == GW_OK)
			status = gw_vec_reserve(&all->counts, rows * 4);
		if (status == GW_OK)
			status = gw_vec_reserve(&all->positions, edges * 8 + 8);
		if (status == GW_OK)
			status = gw_vec_reserve(&all->neighbours, edges * 8 + 8);
		if (status != GW_OK)
			break;
		assert_int_equal(one->dst_count, n);
		memcpy((uint32_t *)all->counts.data + all->dst_count, one->counts.data, n * 4);
		if (one->edge_count) {
			memcpy((uint64_t *)all->positions.data + all->edge_count, one->positions.data,
			       one->edge_count * 8);
			memcpy((uint64_t *)all->neighbours.data + all->edge_count, one->neighbours.data,
			       one->edge_count * 8);
		}
		all->dst_count = rows;
		all->edge_count = edges;
	}
	return status;
}

static void compare_picks(const struct gw_picks *a, const struct gw_picks *b, bool neighbours)
{
	assert_int_equal(a->dst_count, b->dst_count);
	assert_int_equal(a->edge_count, b->edge_count);
	assert_memory_equal(a->counts.data, b->counts.data, a->dst_count * 4);
	if (!a->edge_count)
		return;
	assert_memory_equal(a->positions.data, b->positions.data, a->edge_count * 8);
	if (neighbours)
		assert_memory_equal(a->neighbours.data, b->neighbours.data, a->edge_count * 8);
}

static struct columned whole, narrow, mixed; /* one part; the same in other widths; the same in several parts */

static struct gw_picks expected_picks(const struct variant *variant)
{
	struct gw_picks one = {0}, all = {0};
	assert_int_equal(pick_all(&whole, variant, NODES, 0, &one, &all), GW_OK);
	gw_picks_free(&one);
	return all;
}

static uint32_t picks_at(const struct gw_picks *picks, uint64_t i)
{
	const uint32_t *counts = picks->counts.data;
	assert(counts);
	return counts[i];
}

/* What every kind must keep: picks are of their lists, ascend, do not repeat without replacement, and are no more than
 * the bound. */
static void check_contract(const struct variant *variant)
{
	const struct gw_adjacency *adjacency = &whole.graph.adjacencies[0][0];
	const struct gw_draw draw = make_draw(variant, adjacency->index_bytes);
	struct gw_picks picks = expected_picks(variant);
	const uint64_t *positions = picks.positions.data;
	struct frontier frontier;
	make_frontier(&frontier);
	for (uint64_t i = 0, at = 0; i < NODES; i++) {
		uint64_t begin, end, count = picks_at(&picks, i);
		gw_adjacency_list(adjacency, frontier.vertices[i], &begin, &end);
		assert_true(count <= gw_draw_bound(&draw, end - begin));
		if (gw_draw_is_uniform(&draw))
			assert_int_equal(count, gw_draw_bound(&draw, end - begin));
		for (uint64_t j = 0; j < count; j++, at++) {
			assert_in_range(positions[at], begin, end - 1);
			if (j > 0)
				assert_true(positions[at] >= positions[at - 1] + !variant->replace);
		}
	}
	if (variant->fanout)
		assert_true(picks.edge_count > 0);
	gw_picks_free(&picks);
}

static void picks_keep_the_contract(void **state)
{
	(void)state;
	with_each_variant(check_contract);
}

static void compare_lengths(const struct variant *variant)
{
	static const uint64_t lengths[] = {1, 7, 256, 300, 256, 100}, entries[] = {0, 0, 0, 0, 1000, 1};
	struct gw_picks expected = expected_picks(variant), one = {0}, all = {0};
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		assert_int_equal(pick_all(i % 2 ? &whole : &narrow, variant, lengths[i], entries[i], &one, &all),
				 GW_OK);
		compare_picks(&all, &expected, true);
	}
	gw_picks_free(&expected);
	gw_picks_free(&one);
	gw_picks_free(&all);
}

static void lengths_and_widths_do_not_show(void **state)
{
	(void)state;
	with_each_variant(compare_lengths);
}

/* --- By rounds. --- */

/* Brings the entries that a round needs: copies at odd addresses. Those of the round before are freed, because a kind
 * must not use them any more. */
static uint8_t *bring_copies(const struct columned *columned, const struct gw_draw *draw,
			     struct gw_picks_rounds *rounds, uint8_t *before)
{
	const struct gw_adjacency *adjacency = &columned->graph.adjacencies[0][0];
	uint64_t room = 1, at = 1;
	for (uint64_t i = 0; i < rounds->read_count; i++)
		room += (rounds->reads[i].count * draw->forms[rounds->reads[i].column].entry_bytes + 1) & ~1ull;
	uint8_t *copies = malloc(room);
	assert_non_null(copies);
	for (uint64_t i = 0; i < rounds->read_count; i++) {
		const struct gw_column_read *read = &rounds->reads[i];
		uint64_t width = draw->forms[read->column].entry_bytes, bytes = read->count * width;
		const uint8_t *from =
			read->column == GW_COLUMN_IDS ? adjacency->indices : columned->parts[0].at[read->column];
		assert_true(GW_COLUMN_BIT(read->column) & draw->kind->columns);
		assert_true(bytes > 0 && read->first + read->count <= adjacency->edges);
		memcpy(copies + at, from + read->first * width, bytes);
		rounds->got[i] = copies + at;
		at += (bytes + 1) & ~1ull;
	}
	free(before);
	return copies;
}

static gw_status pick_by_rounds(const struct columned *columned, const struct variant *variant, uint64_t n,
				struct gw_picks_rounds *rounds, struct gw_picks *picks)
{
	const struct gw_adjacency *adjacency = &columned->graph.adjacencies[0][0];
	const struct gw_draw draw = make_draw(variant, adjacency->index_bytes);
	struct frontier frontier;
	uint64_t begins[NODES], ends[NODES];
	uint8_t *copies = NULL;
	make_frontier(&frontier);
	for (uint64_t i = 0; i < n; i++)
		gw_adjacency_list(adjacency, frontier.vertices[i], &begins[i], &ends[i]);
	gw_status status = gw_picks_rounds_begin(rounds, picks, &draw, frontier.vertices,
						 variant->grouped ? frontier.groups : NULL, begins, ends, n);
	memset(begins, 0xee, sizeof(begins)); /* they need not stay */
	memset(ends, 0xee, sizeof(ends));
	if (status == GW_OK)
		status = gw_picks_rounds_next(rounds);
	while (status == GW_AGAIN) {
		copies = bring_copies(columned, &draw, rounds, copies);
		status = gw_picks_rounds_next(rounds);
	}
	free(copies);
	return status;
}

static struct gw_picks_rounds kept_rounds; /* from variant to variant */
static struct gw_picks kept_picks;

static void compare_rounds(const struct variant *variant)
{
	struct gw_picks expected = expected_picks(variant);
	const struct columned *columned = variant->replace ? &whole : &narrow;
	assert_int_equal(pick_by_rounds(columned, variant, NODES, &kept_rounds, &kept_picks), GW_OK);
	compare_picks(&kept_picks, &expected, false);
	gw_picks_free(&expected);
}

static void rounds_draw_the_same(void **state)
{
	(void)state;
	with_each_variant(compare_rounds);
	gw_picks_rounds_free(&kept_rounds);
	gw_picks_free(&kept_picks);
}

/* --- By blocks. --- */

static gw_status run_blocks(const struct columned *columned, const struct variant *variant, struct gw_blocks *blocks,
			    struct gw_relabel *relabel)
{
	struct gw_edge_sampling sampling = {.kind = variant->kind};
	struct frontier frontier;
	make_frontier(&frontier);
	set_forms(variant, sampling.forms);
	const struct gw_blocks_spec spec = {.hops = 1,
					    .fanouts = &variant->fanout,
					    .replace = variant->replace,
					    .sampling = &sampling,
					    .groups = {groups_of(variant), groups_of(variant)}};
	const struct gw_seeds seeds = {.count = NODES, .ids = (const int64_t *)frontier.vertices};
	gw_status status = gw_blocks_begin_lists(blocks, relabel, &spec, 3, 9, &seeds, 1,
						 variant->grouped ? frontier.groups : NULL);
	return status != GW_OK ? status : gw_blocks_run_memory(blocks, columned->graph.parts, columned->of_types);
}

static void compare_blocks_of(const struct columned *columned, const struct variant *variant,
			      const struct gw_picks *expected)
{
	struct gw_blocks *blocks;
	struct gw_relabel *relabel;
	assert_int_equal(gw_blocks_create(&columned->graph.meta, &blocks), GW_OK);
	assert_int_equal(gw_relabel_create(&columned->graph.meta, UINT64_MAX, &relabel), GW_OK);
	assert_int_equal(run_blocks(columned, variant, blocks, relabel), GW_OK);
	const struct gw_block *hop = gw_blocks_hop(blocks, 0);
	uint64_t node_count;
	const int64_t *nodes = gw_blocks_nodes(blocks, 0, &node_count);
	assert_int_equal(hop->edges_count, variant->fanout != 0);
	if (variant->fanout) {
		const struct gw_block_edges *edges = &hop->edges[0];
		assert_int_equal(edges->dst_count, NODES);
		assert_int_equal(edges->edge_count, expected->edge_count);
		for (uint64_t i = 0; i < NODES; i++)
			assert_int_equal(edges->indptr[i + 1] - edges->indptr[i], picks_at(expected, i));
		/* The whole graph begins at edge 0, so its positions are ids. */
		assert_memory_equal(edges->edge_ids, expected->positions.data, expected->edge_count * 8);
		for (uint64_t i = 0; i < edges->edge_count; i++)
			assert_int_equal(nodes[((const int32_t *)edges->indices)[i]],
					 ((const uint64_t *)expected->neighbours.data)[i]);
	}
	gw_relabel_destroy(relabel);
	gw_blocks_destroy(blocks);
}

static void compare_blocks(const struct variant *variant)
{
	struct gw_picks expected = expected_picks(variant);
	compare_blocks_of(&whole, variant, &expected);
	compare_blocks_of(&mixed, variant, &expected);
	gw_picks_free(&expected);
}

static void blocks_draw_the_same(void **state)
{
	(void)state;
	with_each_variant(compare_blocks);
}

/* --- The kind of this test against its definition. --- */

static void compare_every_second(const struct variant *variant)
{
	if (variant->kind != &sample_every_second)
		return;
	const struct slow_graph *graph = &whole.graph;
	struct gw_picks picks = expected_picks(variant);
	struct frontier frontier;
	uint64_t plain[2 * COLUMNED_HUB], at = 0;
	make_frontier(&frontier);
	for (uint64_t i = 0; i < NODES; i++) {
		uint64_t begin = graph->indptr[0][frontier.vertices[i]],
			 end = graph->indptr[0][frontier.vertices[i] + 1];
		const struct gw_pick_rule rule = {.fanout = variant->fanout, .replace = variant->replace};
		const struct every_second_list list = {
			.degree = end - begin,
			.neighbours = graph->indices[0] + begin,
			.weights = (const uint8_t *)((const float *)whole.columns[GW_COLUMN_WEIGHT] + begin),
			.weight_bytes = sizeof(float)};
		uint64_t n = every_second_plain(&rule, variant->grouped ? frontier.groups[i] : 0, &list, plain);
		assert_int_equal(picks_at(&picks, i), n);
		for (uint64_t j = 0; j < n; j++, at++)
			assert_int_equal(((const uint64_t *)picks.positions.data)[at], begin + plain[j]);
	}
	gw_picks_free(&picks);
}

static void every_second_is_as_defined(void **state)
{
	(void)state;
	with_each_variant(compare_every_second);
}

/* --- Memory that is short. --- */

struct shortage {
	const struct variant *variant;
	uint64_t n;
};

static gw_status draw_once(void *context)
{
	const struct shortage *shortage = context;
	const struct variant *variant = shortage->variant;
	struct gw_picks_rounds rounds = {0};
	struct gw_picks picks = {0};
	struct gw_blocks *blocks = NULL;
	struct gw_relabel *relabel = NULL;
	gw_status status = pick_by_rounds(&whole, variant, shortage->n, &rounds, &picks);
	gw_picks_rounds_free(&rounds);
	gw_picks_free(&picks);
	if (status == GW_OK)
		status = gw_blocks_create(&mixed.graph.meta, &blocks);
	if (status == GW_OK)
		status = gw_relabel_create(&mixed.graph.meta, UINT64_MAX, &relabel);
	if (status == GW_OK)
		status = run_blocks(&mixed, variant, blocks, relabel);
	gw_relabel_destroy(relabel);
	gw_blocks_destroy(blocks);
	return status;
}

static void memory_shortage_is_an_error(void **state)
{
	(void)state;
	for (uint32_t k = 0; k < kind_count; k++) {
		for (uint32_t bits = 0; bits < 1u << VARIANT_BITS; bits++) {
			const struct variant variant = variant_of(kinds[k], 2, bits); /* fanout 5 */
			struct shortage shortage = {&variant, NODES};
			if (!variant_repeats(&variant))
				assert_true(gw_fault_each(draw_once, &shortage) > 10);
		}
	}
}

static void refused_by_each_driver(const struct variant *variant, const char *says)
{
	struct gw_picks one = {0}, all = {0};
	struct gw_blocks *blocks;
	struct gw_relabel *relabel;
	assert_int_equal(gw_blocks_create(&whole.graph.meta, &blocks), GW_OK);
	assert_int_equal(gw_relabel_create(&whole.graph.meta, UINT64_MAX, &relabel), GW_OK);
	for (int driver = 0; driver < 3; driver++) {
		gw_status status = driver == 0   ? pick_all(&whole, variant, NODES, 0, &one, &all)
				   : driver == 1 ? pick_by_rounds(&whole, variant, NODES, &kept_rounds, &kept_picks)
						 : run_blocks(&whole, variant, blocks, relabel);
		assert_int_equal(status, GW_INVALID);
		assert_non_null(strstr(gw_last_error(), says));
	}
	gw_relabel_destroy(relabel);
	gw_blocks_destroy(blocks);
	gw_picks_free(&one);
	gw_picks_free(&all);
	gw_picks_rounds_free(&kept_rounds);
	gw_picks_free(&kept_picks);
}

/* A kind that reads the groups' values gets none from a draw without a table, whatever the driver. */
static void values_are_needed(void **state)
{
	(void)state;
	struct gw_sampling_kind valued = sample_every_second;
	valued.valued = true;
	valued.how = "by value";
	const struct variant variant = {.kind = &valued, .fanout = 5, .grouped = true, .valueless = true};
	refused_by_each_driver(&variant, "drawn by value, which needs a value for each seed");
}

/* A request cannot carry more. What a client draws must not depend on the way, so no driver takes more. */
static void groups_with_values_have_a_limit(void **state)
{
	(void)state;
	for (uint32_t k = 0; k < kind_count; k++) {
		if (!kinds[k]->valued)
			continue;
		const struct variant variant = {.kind = kinds[k], .fanout = 5, .grouped = true, .crowded = true};
		refused_by_each_driver(&variant, "65537 groups with values in one batch: at most 65536");
	}
}

static int make_graphs(void **state)
{
	find_kinds(state);
	columned_begin(&whole, 1, 8, 8);
	columned_begin(&narrow, 1, 4, 4);
	columned_begin(&mixed, 5, 4, 4);
	return 0;
}

static int free_graphs(void **state)
{
	(void)state;
	columned_end(&whole);
	columned_end(&narrow);
	columned_end(&mixed);
	gw_sampling_kind_try(NULL);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_second_is_as_defined),
		cmocka_unit_test(picks_keep_the_contract),
		cmocka_unit_test(lengths_and_widths_do_not_show),
		cmocka_unit_test(rounds_draw_the_same),
		cmocka_unit_test(blocks_draw_the_same),
		cmocka_unit_test(memory_shortage_is_an_error),
		cmocka_unit_test(values_are_needed),
		cmocka_unit_test(groups_with_values_have_a_limit),
	};
	return cmocka_run_group_tests(tests, make_graphs, free_graphs);
}
