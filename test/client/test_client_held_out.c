/* Seeds that are edges by their ends give the batches of the same edges by their ids, over every path. Held-out edges
 * are in no batch, and every other edge is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <graphwire/edges.h>

#include "client/batch/held_out.h"
#include "core/numbers/rng.h"
#include "test/support/client_paths.h"
#include "test/support/client_setup.h"

enum { SEEDS = 40, PAIRS = 60 };

/* --- Pairs. --- */

/* The nodes, the blocks and the negatives of two batches are equal. Their seeds are not. */
static void check_equal(const struct gw_minibatch *a, const struct gw_minibatch *b)
{
	assert_int_equal(a->hops, b->hops);
	assert_int_equal(a->edge_count, b->edge_count);
	for (uint32_t t = 0; t < a->num_ntypes; t++) {
		assert_int_equal(a->node_counts[t], b->node_counts[t]);
		assert_memory_equal(a->nodes[t], b->nodes[t], a->node_counts[t] * 8);
	}
	for (uint32_t h = 0; h < a->hops; h++) {
		assert_int_equal(a->blocks[h]->edges_count, b->blocks[h]->edges_count);
		for (uint32_t i = 0; i < a->blocks[h]->edges_count; i++) {
			const struct gw_block_edges *x = &a->blocks[h]->edges[i], *y = &b->blocks[h]->edges[i];
			assert_int_equal(x->edge_count, y->edge_count);
			if (x->edge_count)
				assert_memory_equal(x->edge_ids, y->edge_ids, x->edge_count * 8);
		}
	}
	const struct gw_edge_batch *x = a->edges, *y = b->edges;
	assert_int_equal(x->count, y->count);
	assert_int_equal(x->true_edges, y->true_edges);
	assert_memory_equal(x->src_rows, y->src_rows, x->count * 4);
	assert_memory_equal(x->dst_rows, y->dst_rows, x->count * 4);
	assert_memory_equal(x->negative_rows, y->negative_rows, x->count * x->negatives_each * 4);
}

static void pairs_are_seeds_as_their_edges_are(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct ways ways;
		int64_t ids[SEEDS], places[SEEDS], src[PAIRS], dst[PAIRS];
		uint32_t etype = seed % 2 ? FIXTURE_WRITES : FIXTURE_CITES;
		paths_begin(&ways, seed, seed % 3 ? 2 : 1, NULL, NULL);
		uint64_t edges = ways.setup.fixture.edges[etype].count;
		for (uint64_t i = 0; i < PAIRS; i++)
			src[i] = (int64_t)(gw_mix64(seed * PAIRS + i) % edges); /* edges, which find_edges replaces */
		for (uint64_t i = 0; i < SEEDS; i++) {
			places[i] = (int64_t)(gw_mix64(seed + i) % PAIRS);
			ids[i] = src[places[i]];
		}
		assert_int_equal(gw_find_edges(ways.clients[0], etype, src, PAIRS, src, dst), GW_OK);
		struct gw_edge_seeds of_ids = {.etype = etype,
					       .negatives = GW_NEGATIVES_DST,
					       .negatives_each = 2,
					       .no_true_edges = seed % 2,
					       .exclude = seed < 4 ? GW_EXCLUDE_ENDS : 0};
		struct gw_edge_seeds of_pairs = of_ids;
		of_pairs.src = src;
		of_pairs.dst = dst;
		of_pairs.pair_count = PAIRS;
		struct gw_sample_spec spec = {.hops = 2, .fanouts = all_fanouts, .edges = &of_ids};
		for (uint32_t c = 0; c < ways.count; c++) {
			struct gw_minibatch *by_ids, *by_pairs;
			spec.edges = &of_ids;
			assert_int_equal(gw_sample(ways.clients[c], &spec, seed, 1, ids, SEEDS, &by_ids), GW_OK);
			spec.edges = &of_pairs;
			assert_int_equal(gw_sample(ways.clients[c], &spec, seed, 1, places, SEEDS, &by_pairs), GW_OK);
			assert_true(by_pairs->edge_count > 0);
			check_equal(by_ids, by_pairs);
			assert_memory_equal(by_pairs->edges->ids, places, sizeof(places));
			gw_minibatch_release(by_ids);
			gw_minibatch_release(by_pairs);
		}
		paths_end(&ways);
	}
}

/* An epoch without ids has every pair once. Other pairs of the same number are another plan. */
static void a_loader_goes_over_all_pairs(void **state)
{
	(void)state;
	struct ways ways;
	int64_t src[PAIRS], dst[PAIRS];
	bool seen[PAIRS] = {0};
	struct gw_loader_state before, after;
	paths_begin(&ways, 3, 2, NULL, NULL);
	for (int64_t i = 0; i < PAIRS; i++) {
		src[i] = i % 10;
		dst[i] = i % 7;
	}
	struct gw_edge_seeds pairs = {.etype = FIXTURE_CITES, .src = src, .dst = dst, .pair_count = PAIRS};
	struct gw_loader_options options = {.spec = {.hops = 2, .fanouts = all_fanouts, .edges = &pairs},
					    .shuffle = true,
					    .batch_size = 7,
					    .last = GW_LAST_SHORT};
	struct gw_loader *loader = paths_loader(ways.clients[0], &options);
	struct gw_minibatch *batch;
	gw_loader_get_state(loader, &before);
	while (gw_loader_next(loader, &batch, -1) == GW_OK) {
		for (uint64_t i = 0; i < batch->seed_count; i++) {
			int64_t at = batch->seeds[i];
			assert_in_range(at, 0, PAIRS - 1);
			assert_false(seen[at]);
			seen[at] = true;
			assert_int_equal(batch->nodes[0][batch->edges->src_rows[i]], src[at]);
			assert_int_equal(batch->nodes[0][batch->edges->dst_rows[i]], dst[at]);
		}
		gw_minibatch_release(batch);
	}
	for (int i = 0; i < PAIRS; i++)
		assert_true(seen[i]);
	gw_loader_close(loader);
	dst[5]++;
	loader = paths_loader(ways.clients[0], &options);
	gw_loader_get_state(loader, &after);
	assert_true(before.plan != after.plan);
	gw_loader_close(loader);
	paths_end(&ways);
}

/* --- Held-out edges. --- */

static bool is_held(const int64_t *list, uint64_t count, int64_t id)
{
	for (uint64_t i = 0; i < count; i++) {
		if (list[i] == id)
			return true;
	}
	return false;
}

/* A batch of one hop has the edges of the batch without held-out edges, except these. by_ends: all edges between the
 * ends of a held-out edge. */
static void check_hop(struct gw_client *client, struct gw_held_out *held_out, const int64_t *held, bool by_ends)
{
	int64_t seeds[] = {0, 1, 2, 3, 4, 5, 6, 7}, src[PAIRS], dst[PAIRS];
	struct gw_sample_spec spec = {.hops = 1, .fanouts = all_fanouts};
	struct gw_minibatch *without, *with;
	assert_int_equal(gw_find_edges(client, FIXTURE_CITES, held, PAIRS, src, dst), GW_OK);
	for (uint64_t stream = 0; stream < 10; stream++) {
		spec.held_out = NULL;
		assert_int_equal(gw_sample(client, &spec, 1, stream, seeds, 8, &without), GW_OK);
		spec.held_out = held_out;
		assert_int_equal(gw_sample(client, &spec, 1, stream, seeds, 8, &with), GW_OK);
		uint64_t got = 0;
		for (uint32_t t = 0; t < without->blocks[0]->edges_count; t++) {
			const struct gw_block_edges *x = &without->blocks[0]->edges[t], *y = &with->blocks[0]->edges[t];
			uint64_t at = 0;
			for (uint64_t i = 0; i < x->edge_count; i++) {
				bool gone = x->etype == FIXTURE_CITES && is_held(held, PAIRS, x->edge_ids[i]);
				int64_t from = 0, to = 0;
				if (x->etype == FIXTURE_CITES)
					assert_int_equal(
						gw_find_edges(client, x->etype, &x->edge_ids[i], 1, &from, &to), GW_OK);
				for (uint64_t k = 0; x->etype == FIXTURE_CITES && by_ends && k < PAIRS; k++)
					gone |= src[k] == from && dst[k] == to;
				got += gone;
				if (!gone) {
					assert_true(at < y->edge_count);
					assert_int_equal(y->edge_ids[at++], x->edge_ids[i]);
				}
			}
			assert_int_equal(at, y->edge_count);
		}
		assert_true(stream > 0 || got > 0);
		gw_minibatch_release(without);
		gw_minibatch_release(with);
	}
}

static void held_out_edges_are_not_sampled(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct ways ways;
		int64_t held[PAIRS], src[PAIRS], dst[PAIRS];
		paths_begin(&ways, seed, seed % 2 ? 2 : 1, NULL, NULL);
		int64_t ends_at = 8; /* the seeds of check_hop */
		uint64_t count = 0;
		for (int64_t e = 0; count < PAIRS; e++) { /* edges that end at the seeds, then any */
			int64_t from, to;
			bool exists = (uint64_t)e < ways.setup.fixture.edges[FIXTURE_CITES].count;
			held[count] = exists ? e : 0;
			if (exists && gw_find_edges(ways.clients[0], FIXTURE_CITES, &e, 1, &from, &to) == GW_OK)
				count += to < ends_at && e % 2 == 0;
			else
				count++;
		}
		assert_int_equal(gw_find_edges(ways.clients[0], FIXTURE_CITES, held, PAIRS, src, dst), GW_OK);
		for (int by_ends = 0; by_ends < 2; by_ends++) {
			struct gw_held_out *held_out;
			struct gw_held_out_list list = {.etype = FIXTURE_CITES, .count = PAIRS, .ids = held};
			if (by_ends)
				list = (struct gw_held_out_list){FIXTURE_CITES, PAIRS, NULL, src, dst};
			assert_int_equal(gw_held_out_open(ways.clients[0], &list, 1, &held_out), GW_OK);
			for (uint32_t c = 0; c < ways.count; c++)
				check_hop(ways.clients[c], held_out, held, by_ends);
			gw_held_out_close(held_out);
		}
		paths_end(&ways);
	}
}

/* Whether one of the lists names an edge of the fixture, by its id or by its ends. */
static bool lists_name(const struct gw_held_out_list *lists, uint32_t count, uint32_t etype,
		       const struct gw_fixture_edges *edges, int64_t id)
{
	for (uint32_t l = 0; l < count; l++) {
		for (uint64_t i = 0; lists[l].etype == etype && i < lists[l].count; i++) {
			if (lists[l].ids ? lists[l].ids[i] == id
					 : (uint64_t)lists[l].src[i] == edges->src[id] &&
						   (uint64_t)lists[l].dst[i] == edges->dst[id])
				return true;
		}
	}
	return false;
}

/* All edges of a type that end at the seeds, except those of the lists. */
static void check_type(struct gw_client *client, const struct setup *setup, uint32_t etype,
		       const struct gw_held_out_list *lists, uint32_t count, struct gw_held_out *held_out)
{
	const struct gw_fixture_edges *edges = &setup->fixture.edges[etype];
	int64_t seeds[40], left = 0, held = 0;
	int32_t fanouts[GW_FIXTURE_ETYPES] = {0};
	fanouts[etype] = GW_ALL_NEIGHBOURS;
	for (int64_t i = 0; i < 40; i++)
		seeds[i] = i;
	const struct gw_sample_spec spec = {
		.ntype = setup->fixture.schema->etypes[etype].dst, .hops = 1, .fanouts = fanouts, .held_out = held_out};
	struct gw_minibatch *batch;
	assert_int_equal(gw_sample(client, &spec, 1, 1, seeds, 40, &batch), GW_OK);
	for (uint32_t t = 0; t < batch->blocks[0]->edges_count; t++) {
		const struct gw_block_edges *block = &batch->blocks[0]->edges[t];
		left += (int64_t)block->edge_count;
		for (uint64_t i = 0; i < block->edge_count; i++)
			assert_false(lists_name(lists, count, etype, edges, block->edge_ids[i]));
	}
	for (int64_t e = 0; e < (int64_t)edges->indptr[40]; e++)
		held += lists_name(lists, count, etype, edges, e);
	assert_int_equal(left + held, edges->indptr[40]);
	gw_minibatch_release(batch);
}

static void lists_of_any_length_and_order_are_held_out_together(void **state)
{
	(void)state;
	static const uint32_t etypes[] = {FIXTURE_CITES, FIXTURE_WRITES, FIXTURE_CITES};
	static const uint64_t lengths[][3] = {{30, 3, 20}, {200, 3, 0}, {0, 3, 200},
					      {3, 200, 1}, {1, 0, 0},   {70, 150, 90}};
	struct ways ways;
	paths_begin(&ways, 6, 2, NULL, NULL);
	for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
		int64_t ids[3][200], src[3][200], dst[3][200];
		struct gw_held_out_list lists[3];
		struct gw_held_out *held_out;
		for (uint32_t l = 0; l < 3; l++) {
			const struct gw_fixture_edges *edges = &ways.setup.fixture.edges[etypes[l]];
			for (uint64_t i = 0; i < lengths[k][l]; i++) {
				uint64_t id = gw_mix64(1000 * k + 300 * l + i) % edges->indptr[40];
				ids[l][i] = (int64_t)id;
				src[l][i] = (int64_t)edges->src[id];
				dst[l][i] = (int64_t)edges->dst[id];
			}
			lists[l] = (k + l) % 2
					   ? (struct gw_held_out_list){etypes[l], lengths[k][l], ids[l], NULL, NULL}
					   : (struct gw_held_out_list){etypes[l], lengths[k][l], NULL, src[l], dst[l]};
		}
		assert_int_equal(gw_held_out_open(ways.clients[0], lists, 3, &held_out), GW_OK);
		assert_true(held_out->edges.slot_count >= 2 * (lengths[k][0] + lengths[k][1] + lengths[k][2]));
		for (uint32_t c = 0; c < ways.count; c++) {
			check_type(ways.clients[c], &ways.setup, FIXTURE_CITES, lists, 3, held_out);
			check_type(ways.clients[c], &ways.setup, FIXTURE_WRITES, lists, 3, held_out);
		}
		gw_held_out_close(held_out);
	}
	paths_end(&ways);
}

static void users_keep_the_object(void **state)
{
	(void)state;
	struct ways ways;
	int64_t held[] = {0, 1, 2, 3}, seeds[] = {0, 1, 2, 3};
	struct gw_held_out *held_out;
	struct gw_minibatch *batch;
	struct gw_ticket *ticket;
	paths_begin(&ways, 5, 2, NULL, NULL);
	const struct gw_held_out_list list = {.etype = FIXTURE_CITES, .count = 4, .ids = held};
	assert_int_equal(gw_held_out_open(ways.clients[0], &list, 1, &held_out), GW_OK);
	struct gw_loader_options options = {.spec = {.hops = 2, .fanouts = all_fanouts, .held_out = held_out},
					    .batch_size = 3};
	struct gw_loader *loader = paths_loader(ways.clients[0], &options);
	assert_int_equal(gw_sample_start(ways.clients[1], &options.spec, 1, 1, seeds, 4, &batch, &ticket), GW_OK);
	gw_held_out_close(held_out);
	gw_held_out_close(NULL);
	assert_int_equal(gw_wait(ticket, -1), GW_OK);
	gw_minibatch_release(batch);
	for (uint32_t n = 0; gw_loader_next(loader, &batch, -1) == GW_OK; n++) {
		for (uint32_t h = 0; h < batch->hops; h++) {
			for (uint32_t t = 0; t < batch->blocks[h]->edges_count; t++) {
				const struct gw_block_edges *edges = &batch->blocks[h]->edges[t];
				for (uint64_t i = 0; edges->etype == FIXTURE_CITES && i < edges->edge_count; i++)
					assert_true(edges->edge_ids[i] > 3);
			}
		}
		gw_minibatch_release(batch);
	}
	gw_loader_close(loader);
	paths_end(&ways);
}

/* --- Errors. --- */

static void wrong_arguments(void **state)
{
	(void)state;
	struct ways ways;
	int64_t few[] = {0, 1, -1}, *none = NULL;
	struct gw_held_out *held_out;
	struct gw_loader *loader;
	paths_begin(&ways, 4, 2, NULL, NULL);
	struct gw_client *client = ways.clients[0];
	const struct {
		struct gw_held_out_list list;
		gw_status status;
		const char *text;
	} lists[] = {
		{{77, 1, few, none, none}, GW_RANGE, "edge type 77"},
		{{FIXTURE_CITES, 3, few, none, none}, GW_RANGE, "held-out edge -1 at position 2"},
		{{FIXTURE_CITES, 3, none, few, few}, GW_RANGE, "held-out source -1 at position 2"},
		{{FIXTURE_CITES, 1, few, few, few}, GW_INVALID, "give ids of edges, or sources"},
		{{FIXTURE_CITES, 1, none, few, none}, GW_INVALID, "give ids of edges, or sources"},
	};
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		expect(gw_held_out_open(client, &lists[i].list, 1, &held_out), lists[i].status, lists[i].text);
		assert_null(held_out);
	}
	const struct {
		struct gw_edge_seeds seeds;
		gw_status status;
		const char *text;
	} wrong[] = {
		{{.src = few, .pair_count = 2}, GW_INVALID, "one list is missing"},
		{{.src = few, .dst = few, .pair_count = 3}, GW_RANGE, "source -1 of the seed at place 2"},
		{{.src = few, .dst = few, .pair_count = 2, .exclude = GW_EXCLUDE_EDGES}, GW_INVALID, "exclude by ends"},
		{{.src = few, .dst = few, .pair_count = 1}, GW_RANGE, "seed 1 at position 1"},
	};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct gw_edge_seeds seeds = wrong[i].seeds;
		seeds.etype = FIXTURE_CITES;
		struct gw_loader_options options = {.spec = {.hops = 2, .fanouts = all_fanouts, .edges = &seeds},
						    .ids = few,
						    .id_count = 2,
						    .batch_size = 1};
		expect(gw_loader_open(client, &options, &loader), wrong[i].status, wrong[i].text);
	}
	paths_end(&ways);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pairs_are_seeds_as_their_edges_are),
		cmocka_unit_test(a_loader_goes_over_all_pairs),
		cmocka_unit_test(held_out_edges_are_not_sampled),
		cmocka_unit_test(lists_of_any_length_and_order_are_held_out_together),
		cmocka_unit_test(users_keep_the_object),
		cmocka_unit_test(wrong_arguments),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
