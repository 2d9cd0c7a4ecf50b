/* See batch_oracle.h. */
#include "test/support/batch_oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/graph/book.h"
#include "core/numbers/rng.h"
#include "sampler/negatives.h"
#include "sampler/pick.h"

static const struct gw_edge_type *type_of(const struct batch_oracle *oracle, uint32_t etype)
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

static uint32_t seed_types(const struct batch_oracle *oracle)
{
	const struct gw_sample_spec *spec = oracle->spec;
	return !spec->edges ? 0 : spec->edge_type_count ? spec->edge_type_count : 1;
}

static bool excludes(const struct batch_oracle *oracle, const struct gw_edge_seeds *seeds, uint64_t id, uint32_t etype,
		     uint64_t edge)
{
	const struct gw_fixture_edges *own = &oracle->fixture->edges[seeds->etype];
	const struct gw_fixture_edges *edges = &oracle->fixture->edges[etype];
	uint64_t src = edges->src[edge], dst = edges->dst[edge], from = own->src[id], to = own->dst[id];
	bool turned = src == to && dst == from, of_reverse = etype == seeds->reverse_etype;
	return (seeds->exclude & GW_EXCLUDE_EDGES && etype == seeds->etype && edge == id) ||
	       (seeds->exclude & GW_EXCLUDE_ENDS && etype == seeds->etype && src == from && dst == to) ||
	       (seeds->exclude & GW_EXCLUDE_REVERSE && etype == type_of(oracle, seeds->etype)->reverse && turned) ||
	       (seeds->exclude & GW_EXCLUDE_REVERSE_TYPE && of_reverse && turned) ||
	       (seeds->exclude & GW_EXCLUDE_REVERSE_IDS && of_reverse && edge == (uint64_t)seeds->reverse_ids[id]);
}

static bool is_excluded(const struct batch_oracle *oracle, uint32_t etype, uint64_t edge)
{
	for (uint32_t t = 0; t < seed_types(oracle); t++) {
		const struct gw_edge_batch *positives = &oracle->batch->edges[t];
		for (uint64_t i = 0; i < positives->count; i++) {
			if (excludes(oracle, &oracle->spec->edges[t], (uint64_t)positives->ids[i], etype, edge))
				return true;
		}
	}
	return false;
}

/* Returns how many drawn edges were excluded. */
static uint64_t check_edges(const struct batch_oracle *oracle, uint32_t hop, const struct gw_block_edges *block)
{
	const struct gw_edge_type *type = type_of(oracle, block->etype);
	const struct gw_fixture_edges *edges = &oracle->fixture->edges[block->etype];
	const struct gw_minibatch *batch = oracle->batch;
	struct gw_pick_scratch scratch = {0};
	struct gw_pick_rule rule = {
		.key = gw_draw_key(oracle->seed, oracle->stream, GW_DRAW_NEIGHBOURS, hop, block->etype),
		.fanout = oracle->spec->fanouts[(size_t)hop * GW_FIXTURE_ETYPES + block->etype],
		.replace = oracle->spec->replace,
	};
	uint64_t *picks = malloc((edges->count + 4096) * 8), at = 0, dropped = 0;
	/* The nodes that an earlier hop has expanded are not expanded again, if the spec says so. */
	uint64_t first = 0;
	if (oracle->spec->frontier == GW_FRONTIER_NEW && hop > 0)
		first = batch->blocks[hop - 1]->dst_counts[type->dst];
	assert_int_equal(block->dst_first, first);
	assert_int_equal(block->dst_first + block->dst_count, batch->blocks[hop]->dst_counts[type->dst]);
	for (uint64_t row = 0; row < block->dst_count; row++) {
		uint64_t node = (uint64_t)batch->nodes[type->dst][first + row], begin = edges->indptr[node];
		uint64_t degree = edges->indptr[node + 1] - begin, count = gw_pick_count(&rule, degree);
		uint32_t group = batch->groups ? batch->groups[type->dst][first + row] : 0;
		assert_int_equal(gw_pick_in(&rule, node, group, degree, &scratch, picks), GW_OK);
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
			if (block->edge_ids)
				assert_int_equal(block->edge_ids[at], edge);
			assert_int_equal(batch->nodes[type->src][number], edges->src[edge]);
			if (batch->groups)
				assert_int_equal(batch->groups[type->src][number], group);
			at++;
		}
	}
	assert_int_equal(block->edge_count, at);
	assert_int_equal(block->indptr[block->dst_count], at);
	gw_pick_scratch_free(&scratch);
	free(picks);
	return dropped;
}

/* In a disjoint batch: not in one group. */
static void no_node_twice(const struct gw_minibatch *batch)
{
	for (uint32_t t = 0; t < batch->num_ntypes; t++) {
		const int64_t *nodes = batch->nodes[t];
		const uint32_t *groups = batch->groups ? batch->groups[t] : NULL;
		for (uint64_t i = 0; i < batch->node_counts[t]; i++) {
			assert_true(!groups || groups[i] < batch->group_count);
			for (uint64_t j = 0; j < i; j++)
				assert_true(nodes[i] != nodes[j] || (groups && groups[i] != groups[j]));
		}
	}
}

/* All blocks; returns how many drawn edges were excluded. */
uint64_t batch_oracle_blocks(const struct batch_oracle *oracle)
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
	no_node_twice(oracle->batch);
	return dropped;
}

/* --- Nodes that exist. --- */

struct born {
	uint32_t part;
	double time;
	uint64_t node;
};

static int by_part_and_time(const void *a, const void *b)
{
	const struct born *x = a, *y = b;
	if (x->part != y->part)
		return x->part < y->part ? -1 : 1;
	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->node < y->node ? -1 : 1;
}

uint64_t batch_oracle_living(const struct gw_fixture *fixture, uint32_t ntype, double time, uint64_t *nodes)
{
	uint64_t n = batch_oracle_existing(fixture, ntype, time, nodes), left = 0;
	for (uint64_t i = 0; i < n; i++) {
		if (!(gw_fixture_gone(fixture, ntype, nodes[i]) <= time))
			nodes[left++] = nodes[i];
	}
	return left;
}

uint64_t batch_oracle_existing(const struct gw_fixture *fixture, uint32_t ntype, double time, uint64_t *nodes)
{
	const struct gw_node_type *type = &fixture->schema->ntypes[ntype];
	struct born *all = malloc(type->count * sizeof(*all));
	uint64_t n = 0;
	assert_non_null(all);
	for (uint64_t i = 0; i < type->count; i++) {
		const uint32_t part = gw_book_owner(type->starts, fixture->schema->num_parts, i);
		all[n] = (struct born){part, gw_fixture_born(fixture, ntype, i), i};
		n += all[n].time <= time;
	}
	qsort(all, n, sizeof(*all), by_part_and_time);
	for (uint64_t i = 0; i < n; i++)
		nodes[i] = all[i].node;
	free(all);
	return n;
}

static double time_of_seed(const struct batch_oracle *oracle, uint64_t at)
{
	const void *times = oracle->batch->seed_times;
	assert_non_null(times);
	return oracle->spec->real_times ? ((const double *)times)[at] : (double)((const int64_t *)times)[at];
}

/* The node that an attempt gives. */
static uint64_t attempt_by_definition(const struct batch_oracle *oracle, uint32_t seed_type, uint64_t slot, uint64_t j,
				      uint32_t attempt)
{
	static uint64_t existing[65536];
	const struct gw_edge_seeds *seeds = &oracle->spec->edges[seed_type];
	const struct gw_edge_type *type = type_of(oracle, seeds->etype);
	const struct gw_fixture *fixture = oracle->fixture;
	uint32_t drawn = seeds->negatives == GW_NEGATIVES_SRC ? type->src : type->dst;
	uint64_t key = gw_draw_key(oracle->seed, oracle->stream, GW_DRAW_NEGATIVE, 0, seeds->etype);
	if (seeds->negative_ids)
		return (uint64_t)seeds->negative_ids[gw_negative_draw(key, slot, j, attempt, seeds->negative_id_count)];
	if (!seeds->exist_time)
		return gw_negative_draw(key, slot, j, attempt, fixture->schema->ntypes[drawn].count);
	double time =
		time_of_seed(oracle, (uint64_t)(oracle->batch->edges[seed_type].ids - oracle->batch->seeds) + slot);
	uint64_t n = batch_oracle_existing(fixture, drawn, time, existing);
	if (!seeds->exist_end)
		return existing[gw_negative_draw(key, slot, j, attempt, n)];
	for (uint32_t t = 0; t < 20; t++) {
		uint64_t node = existing[gw_negative_draw(key, slot, j, 21 * attempt + t, n)];
		if (!(gw_fixture_gone(fixture, drawn, node) <= time))
			return node;
	}
	n = batch_oracle_living(fixture, drawn, time, existing);
	return existing[gw_negative_draw(key, slot, j, 21 * attempt + 20, n)];
}

/* The negative that the definition gives: the first attempt that is no edge, or the last one. */
static uint64_t draw_by_definition(const struct batch_oracle *oracle, uint32_t seed_type, uint64_t slot, uint64_t j,
				   uint64_t *true_edges)
{
	const struct gw_edge_seeds *seeds = &oracle->spec->edges[seed_type];
	const struct gw_fixture_edges *edges = &oracle->fixture->edges[seeds->etype];
	bool of_src = seeds->negatives == GW_NEGATIVES_SRC;
	uint64_t edge = (uint64_t)oracle->batch->edges[seed_type].ids[slot], node = 0;
	for (uint32_t attempt = 0; attempt < GW_NEGATIVE_ATTEMPTS; attempt++) {
		node = attempt_by_definition(oracle, seed_type, slot, j, attempt);
		if (!seeds->no_true_edges ||
		    !has_edge(edges, of_src ? node : edges->src[edge], of_src ? edges->dst[edge] : node))
			return node;
	}
	++*true_edges;
	return node;
}

/* Each end and each negative is a group: sources, destinations, negatives. */
static void check_groups_of_ends(const struct batch_oracle *oracle, uint32_t seed_type, uint32_t group)
{
	const struct gw_minibatch *batch = oracle->batch;
	const struct gw_edge_batch *ends = &batch->edges[seed_type];
	const struct gw_edge_type *type = type_of(oracle, ends->etype);
	uint32_t drawn = ends->negatives == GW_NEGATIVES_SRC ? type->src : type->dst;
	for (uint64_t i = 0; i < ends->count; i++)
		assert_int_equal(batch->groups[type->src][ends->src_rows[i]], group++);
	for (uint64_t i = 0; i < ends->count; i++)
		assert_int_equal(batch->groups[type->dst][ends->dst_rows[i]], group++);
	for (uint64_t i = 0; i < ends->count * ends->negatives_each; i++)
		assert_int_equal(batch->groups[drawn][ends->negative_rows[i]], group++);
}

/* The positives and negatives of one type, which begin at seed `first` of the batch. */
static void check_type(const struct batch_oracle *oracle, uint32_t seed_type, uint64_t first, uint32_t group)
{
	const struct gw_minibatch *batch = oracle->batch;
	const struct gw_edge_batch *ends = &batch->edges[seed_type];
	const struct gw_edge_seeds *seeds = &oracle->spec->edges[seed_type];
	const struct gw_edge_type *type = type_of(oracle, seeds->etype);
	const struct gw_fixture_edges *edges = &oracle->fixture->edges[seeds->etype];
	uint32_t drawn = seeds->negatives == GW_NEGATIVES_SRC ? type->src : type->dst;
	uint64_t true_edges = 0;
	assert_int_equal(ends->etype, seeds->etype);
	assert_int_equal(ends->negatives, seeds->negatives);
	assert_int_equal(ends->negatives_each, seeds->negatives_each);
	assert_ptr_equal(ends->ids, batch->seeds + first);
	for (uint64_t i = 0; i < ends->count; i++) {
		uint64_t edge = (uint64_t)ends->ids[i];
		assert_int_equal(batch->nodes[type->src][ends->src_rows[i]], edges->src[edge]);
		assert_int_equal(batch->nodes[type->dst][ends->dst_rows[i]], edges->dst[edge]);
		for (uint64_t j = 0; j < seeds->negatives_each; j++)
			assert_int_equal(batch->nodes[drawn][ends->negative_rows[i * seeds->negatives_each + j]],
					 draw_by_definition(oracle, seed_type, i, j, &true_edges));
	}
	assert_int_equal(ends->true_edges, true_edges);
	if (batch->groups)
		check_groups_of_ends(oracle, seed_type, group);
}

void batch_oracle_ends(const struct batch_oracle *oracle)
{
	const struct gw_minibatch *batch = oracle->batch;
	uint64_t first = 0;
	assert_non_null(batch->edges);
	assert_null(batch->seed_rows);
	assert_int_equal(batch->seed_list_count, 0);
	assert_int_equal(batch->edge_type_count, seed_types(oracle));
	uint64_t group = 0;
	for (uint32_t t = 0; t < seed_types(oracle); t++) {
		check_type(oracle, t, first, (uint32_t)group);
		first += batch->edges[t].count;
		group += batch->edges[t].count * (2 + batch->edges[t].negatives_each);
	}
	assert_int_equal(batch->group_count, batch->groups ? group : 0);
	assert_int_equal(first, batch->seed_count);
}
