/* The client at the limits of graphs and batches: one node, no edges, no edge types, a type without nodes; no seeds,
 * the same seed many times, fanouts of zero, of all and of more than exist; invalid seeds and names. The standalone
 * client, requests and reads give the same bytes, or the same error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "sampler/pick.h"
#include "test/support/client_setup.h"

enum { ALONE, BY_REQUESTS, BY_READS, WAYS };

/* One graph, three clients. */
struct three {
	struct cluster cluster;
	struct gw_client *clients[WAYS];
};

static void three_begin(struct three *three, const char *folder, uint32_t parts)
{
	cluster_begin(&three->cluster, folder, parts, NULL);
	const char *const *list = three->cluster.list;
	const struct gw_client_options ways[WAYS] = {
		[ALONE] = {.part_config = folder, .threads = 1},
		[BY_REQUESTS] = {.servers = list, .server_count = parts, .threads = 2, .neighbours = "requests"},
		[BY_READS] = {.servers = list, .server_count = parts, .threads = 1, .neighbours = "reads"},
	};
	for (int w = 0; w < WAYS; w++)
		three->clients[w] = open_client(&ways[w]);
}

static void three_end(struct three *three)
{
	for (int w = 0; w < WAYS; w++)
		gw_client_close(three->clients[w]);
	cluster_end(&three->cluster);
}

/* The batch of the first client; all three must agree. fetch: a tensor of nodes at the inputs, or NULL. */
static struct gw_minibatch *sample(struct three *three, struct gw_sample_spec spec, const char *type,
				   const char *feature, const int64_t *seeds, uint64_t n)
{
	struct gw_minibatch *batches[WAYS];
	for (int w = 0; w < WAYS; w++) {
		struct gw_fetch fetch = {.at = GW_AT_INPUTS};
		if (feature) {
			fetch.tensor = node_tensor(three->clients[w], type, feature);
			spec.fetch_count = 1;
			spec.fetches = &fetch;
		}
		if (gw_sample(three->clients[w], &spec, 3, 4, seeds, n, &batches[w]) != GW_OK)
			fail_msg("way %d: %s", w, gw_last_error());
	}
	for (int w = 1; w < WAYS; w++) {
		assert_true(gw_minibatch_digest(batches[w]) == gw_minibatch_digest(batches[ALONE]));
		gw_minibatch_release(batches[w]);
	}
	return batches[ALONE];
}

static void expect_of_all(struct three *three, const struct gw_sample_spec *spec, const int64_t *seeds, uint64_t n,
			  gw_status wanted, const char *text)
{
	for (int w = 0; w < WAYS; w++) {
		struct gw_minibatch *batch;
		expect(gw_sample(three->clients[w], spec, 3, 4, seeds, n, &batch), wanted, text);
		assert_null(batch);
	}
}

/* --- A graph of one node of most types. --- */

static void one_node_is_a_graph(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	struct three three;
	gw_fixture_begin(&fixture, 7, 1, 1);
	gw_fixture_write(&fixture);
	three_begin(&three, fixture.folder, 1);
	const int64_t seeds[] = {0, 0, 0};
	int32_t fanouts[2 * GW_FIXTURE_ETYPES] = {0};
	fanouts[FIXTURE_CITES] = 4; /* six parallel loops */
	fanouts[GW_FIXTURE_ETYPES + FIXTURE_CITES] = GW_ALL_NEIGHBOURS;
	for (int replace = 0; replace < 2; replace++) {
		struct gw_sample_spec spec = {.hops = 2, .fanouts = fanouts, .replace = replace};
		struct gw_minibatch *batch = sample(&three, spec, "paper", "feat", seeds, 3);
		assert_int_equal(batch->seed_count, 3);
		assert_int_equal(batch->node_counts[0], 1);
		assert_int_equal(batch->row_counts[0], 1);
		assert_int_equal(batch->edge_count, 4 + 6);
		for (int i = 0; i < 3; i++)
			assert_int_equal(batch->seed_rows[i], 0);
		for (uint32_t h = 0; h < 2; h++) {
			const struct gw_block_edges *edges = &batch->blocks[h]->edges[0];
			assert_int_equal(batch->blocks[h]->edges_count, 1);
			assert_int_equal(edges->dst_count, 1);
			assert_int_equal(edges->edge_count, h ? 6 : 4);
			for (uint64_t e = 0; e < edges->edge_count; e++) {
				assert_int_equal(((const int32_t *)edges->indices)[e], 0);
				assert_in_range(edges->edge_ids[e], 0, 5);
				if (e > 0 && !(replace && h == 0))
					assert_true(edges->edge_ids[e - 1] < edges->edge_ids[e]);
			}
		}
		gw_minibatch_release(batch);
	}
	three_end(&three);
	gw_fixture_end(&fixture);
}

/* --- Seeds and fanouts of every kind. --- */

static void no_seeds_make_an_empty_batch(struct three *three, const int32_t *fanouts)
{
	struct gw_sample_spec spec = {.hops = 2, .fanouts = fanouts};
	struct gw_minibatch *batch = sample(three, spec, "paper", "feat", NULL, 0);
	assert_int_equal(batch->seed_count, 0);
	assert_int_equal(batch->edge_count, 0);
	assert_int_equal(batch->row_counts[0], 0);
	for (uint32_t t = 0; t < batch->num_ntypes; t++)
		assert_int_equal(batch->node_counts[t], 0);
	for (uint32_t h = 0; h < 2; h++) {
		for (uint32_t e = 0; e < batch->blocks[h]->edges_count; e++) {
			assert_int_equal(batch->blocks[h]->edges[e].dst_count, 0);
			assert_int_equal(batch->blocks[h]->edges[e].indptr[0], 0);
		}
	}
	gw_minibatch_release(batch);
}

static void fanouts_of_nothing_leave_the_seeds(struct three *three)
{
	static const int32_t nothing[2 * GW_FIXTURE_ETYPES];
	static const int64_t seeds[] = {9, 2, 9, 9, 0};
	struct gw_sample_spec spec = {.hops = 2, .fanouts = nothing};
	struct gw_minibatch *batch = sample(three, spec, "paper", "feat", seeds, 5);
	static const uint32_t rows[] = {0, 1, 0, 0, 2};
	static const int64_t nodes[] = {9, 2, 0};
	assert_memory_equal(batch->seeds, seeds, sizeof(seeds));
	assert_memory_equal(batch->seed_rows, rows, sizeof(rows));
	assert_int_equal(batch->node_counts[0], 3);
	assert_memory_equal(batch->nodes[0], nodes, sizeof(nodes));
	assert_int_equal(batch->row_counts[0], 3);
	assert_int_equal(batch->edge_count, 0);
	assert_int_equal(batch->blocks[0]->edges_count, 0);
	gw_minibatch_release(batch);
}

static void a_fanout_above_every_degree_is_all(struct three *three)
{
	int32_t most[2 * GW_FIXTURE_ETYPES], all[2 * GW_FIXTURE_ETYPES];
	static const int64_t seeds[] = {1, 0, 3, 299, 17};
	for (int i = 0; i < 2 * GW_FIXTURE_ETYPES; i++) {
		most[i] = GW_FANOUT_MAX;
		all[i] = GW_ALL_NEIGHBOURS;
	}
	struct gw_sample_spec spec = {.hops = 2, .fanouts = most};
	struct gw_minibatch *batch = sample(three, spec, "author", "q", seeds, 5);
	uint64_t digest = gw_minibatch_digest(batch);
	assert_true(batch->edge_count > 100);
	gw_minibatch_release(batch);
	spec.fanouts = all;
	batch = sample(three, spec, "author", "q", seeds, 5);
	assert_true(gw_minibatch_digest(batch) == digest);
	gw_minibatch_release(batch);
	most[3] = GW_FANOUT_MAX + 1;
	spec.fanouts = most;
	expect_of_all(three, &spec, seeds, 5, GW_INVALID, "hop 0, edge type author:knows:author: fanout 1048577");
}

/* As many hops as a spec may have, on all transports; one more is refused by its number. */
static void the_most_hops_are_sampled(struct three *three)
{
	int32_t ones[(GW_HOPS_MAX + 1) * GW_FIXTURE_ETYPES];
	static const int64_t seeds[] = {1, 0, 3, 299, 17};
	for (int i = 0; i < (GW_HOPS_MAX + 1) * GW_FIXTURE_ETYPES; i++)
		ones[i] = 1;
	struct gw_sample_spec spec = {.hops = GW_HOPS_MAX, .fanouts = ones, .frontier = GW_FRONTIER_NEW};
	struct gw_minibatch *batch = sample(three, spec, "author", "q", seeds, 5);
	assert_int_equal(batch->hops, GW_HOPS_MAX);
	gw_minibatch_release(batch);
	spec.hops = GW_HOPS_MAX + 1;
	expect_of_all(three, &spec, seeds, 5, GW_RANGE, "65 hops: 1 to 64");
}

static void a_type_without_edges_has_seeds(struct three *three, const int32_t *fanouts)
{
	static const int64_t seeds[] = {2, 0};
	uint32_t venue;
	assert_int_equal(gw_node_type(three->clients[ALONE], "venue", &venue), GW_OK);
	struct gw_sample_spec spec = {.ntype = venue, .hops = 2, .fanouts = fanouts};
	struct gw_minibatch *batch = sample(three, spec, "venue", "x", seeds, 2);
	assert_int_equal(batch->edge_count, 0);
	assert_int_equal(batch->node_counts[venue], 2);
	assert_int_equal(batch->row_counts[0], 2);
	gw_minibatch_release(batch);
}

static void what_is_no_seed_is_named(struct three *three, const int32_t *fanouts)
{
	struct gw_sample_spec spec = {.hops = 2, .fanouts = fanouts};
	const int64_t past[] = {3, 300}, before[] = {3, -1}, none[] = {GW_NONE};
	expect_of_all(three, &spec, past, 2, GW_RANGE, "seeds of node type paper: node 300 ");
	expect_of_all(three, &spec, before, 2, GW_RANGE, "node -1 ");
	expect_of_all(three, &spec, none, 1, GW_RANGE, "seeds");
	for (int w = 0; w < WAYS; w++) {
		struct gw_loader_options options = {.spec = spec, .ids = past, .id_count = 2, .batch_size = 1};
		struct gw_loader *loader;
		expect(gw_loader_open(three->clients[w], &options, &loader), GW_RANGE, "seed 300 at position 1");
		options = (struct gw_loader_options){
			.spec = spec, .ids = past, .id_count = 1, .batch_size = 2, .last = GW_LAST_DROP};
		expect(gw_loader_open(three->clients[w], &options, &loader), GW_INVALID, "no batch would be returned");
	}
}

/* Epochs of a loader without seeds end at once; its state is the start of the next epoch. */
static void expect_no_steps(struct gw_client *client, struct gw_loader_options options)
{
	struct gw_loader *loader;
	struct gw_loader_state state;
	struct gw_minibatch *batch;
	assert_int_equal(gw_loader_open(client, &options, &loader), GW_OK);
	assert_int_equal(gw_loader_steps(loader), 0);
	for (uint64_t epoch = 0; epoch < 3; epoch++) {
		gw_loader_get_state(loader, &state);
		assert_int_equal(state.epoch, epoch);
		assert_int_equal(state.step, 0);
		assert_int_equal(gw_loader_next(loader, &batch, -1), GW_END);
		assert_null(batch);
	}
	gw_loader_close(loader);
	options.start = state;
	assert_int_equal(gw_loader_open(client, &options, &loader), GW_OK);
	assert_int_equal(gw_loader_next(loader, &batch, -1), GW_END);
	gw_loader_get_state(loader, &state);
	assert_int_equal(state.epoch, 3);
	gw_loader_close(loader);
	options.start.step = 1;
	expect(gw_loader_open(client, &options, &loader), GW_RANGE, "start at step 1 of 0");
}

/* An empty list means no seeds, not all: of nodes, of edges, of several types, of each rank, with every kind of last
 * batch. */
static void no_seeds_are_no_steps(struct three *three, const int32_t *fanouts)
{
	static const int64_t nothing[1];
	static const uint32_t worlds[][2] = {{0, 0}, {3, 0}, {3, 2}};
	struct gw_edge_seeds edges = {.etype = FIXTURE_CITES};
	const struct gw_seeds lists[] = {{.type = 0, .ids = nothing}, {.type = 1, .ids = nothing}};
	const struct gw_sample_spec nodes = {.hops = 2, .fanouts = fanouts};
	const struct gw_sample_spec of_edges = {.hops = 2, .fanouts = fanouts, .edges = &edges};
	for (int w = 0; w < WAYS; w++) {
		for (int i = 0; i < 9; i++) {
			struct gw_loader_options options = {.batch_size = 4,
							    .shuffle = i % 2,
							    .world = worlds[i / 3][0],
							    .rank = worlds[i / 3][1],
							    .last = (enum gw_last_batch)(i % 3)};
			options.spec = nodes;
			options.ids = nothing;
			expect_no_steps(three->clients[w], options);
			options.spec = of_edges;
			expect_no_steps(three->clients[w], options);
			options.spec = nodes;
			options.ids = NULL;
			options.lists = lists;
			options.list_count = 2;
			expect_no_steps(three->clients[w], options);
		}
	}
}

static void what_is_no_name_is_named(struct three *three)
{
	for (int w = 0; w < WAYS; w++) {
		struct gw_client *client = three->clients[w];
		const struct gw_tensor *tensor;
		uint32_t type;
		int64_t begin, end, id = 0, degree;
		expect(gw_node_type(client, "book", &type), GW_NOT_FOUND, "book");
		expect(gw_edge_type(client, "paper:reads:author", &type), GW_NOT_FOUND, "reads");
		expect(gw_node_tensor(client, 0, "fear", &tensor), GW_NOT_FOUND, "feat");
		expect(gw_node_tensor(client, 9, "feat", &tensor), GW_RANGE, "node type 9");
		expect(gw_edge_tensor(client, FIXTURE_CITES, "wait", &tensor), GW_NOT_FOUND, "weight");
		expect(gw_edge_tensor(client, 9, "weight", &tensor), GW_RANGE, "edge type 9");
		assert_null(tensor);
		expect(gw_part_range(client, 0, 3, &begin, &end), GW_RANGE, "part 3");
		expect(gw_part_edge_range(client, 0, 3, &begin, &end), GW_RANGE, "part 3");
		expect(gw_part_edge_range(client, 9, 0, &begin, &end), GW_RANGE, "edge type 9");
		expect(gw_degrees(client, 9, &id, 1, &degree), GW_RANGE, "edge type 9");
		id = 300;
		expect(gw_degrees(client, FIXTURE_CITES, &id, 1, &degree), GW_RANGE, "300");
		assert_int_equal(gw_degrees(client, FIXTURE_CITES, NULL, 0, NULL), GW_OK);
	}
}

/* Batches with one seed, and most with one edge. */
static void one_row_is_fetched(struct three *three)
{
	static const int32_t fanouts[GW_FIXTURE_ETYPES] = {[FIXTURE_CITES] = 1};
	for (int w = 0; w < WAYS; w++) {
		struct gw_client *client = three->clients[w];
		struct gw_fetch fetches[3] = {{.at = GW_AT_SEEDS}, {.at = GW_AT_EDGES}, {.at = GW_AT_INPUTS}};
		uint64_t of_one = 0;
		assert_int_equal(gw_node_tensor(client, 0, "label", &fetches[0].tensor), GW_OK);
		assert_int_equal(gw_edge_tensor(client, FIXTURE_CITES, "weight", &fetches[1].tensor), GW_OK);
		assert_int_equal(gw_node_tensor(client, 0, "feat", &fetches[2].tensor), GW_OK);
		const struct gw_sample_spec spec = {
			.hops = 1, .fanouts = fanouts, .fetches = fetches, .fetch_count = 3};
		for (int64_t seed = 0; seed < 300; seed += 30) {
			struct gw_minibatch *batch;
			assert_int_equal(gw_sample(client, &spec, 1, 1, &seed, 1, &batch), GW_OK);
			const struct gw_block *block = batch->blocks[0];
			const int64_t *edges = block->edges_count ? block->edges[0].edge_ids : NULL;
			const int64_t *const ids[] = {&seed, edges, batch->nodes[0]};
			const uint64_t counts[] = {1, batch->edge_count, batch->node_counts[0]};
			for (int f = 0; f < 3; f++) {
				uint64_t bytes = counts[f] * fetches[f].tensor->row_bytes;
				uint8_t *rows = malloc(bytes + 1);
				assert_int_equal(batch->row_counts[f], counts[f]);
				assert_int_equal(gw_gather(client, fetches[f].tensor, ids[f], counts[f], rows), GW_OK);
				assert_memory_equal(batch->rows[f], rows, bytes);
				free(rows);
			}
			of_one += batch->edge_count == 1;
			gw_minibatch_release(batch);
		}
		assert_true(of_one > 0);
	}
}

/* From the first id to the last, part after part. */
static void ranges_of_parts_cover_each_type(struct three *three)
{
	for (int w = 0; w < WAYS; w++) {
		struct gw_client *client = three->clients[w];
		const struct gw_graph_info *info = gw_client_graph(client);
		for (uint32_t t = 0; t < info->num_ntypes + info->num_etypes; t++) {
			uint32_t type = t < info->num_ntypes ? t : t - info->num_ntypes;
			uint64_t count = t < info->num_ntypes ? info->ntypes[type].count : info->etypes[type].count;
			int64_t begin, end, at = 0;
			for (uint32_t p = 0; p < 3; p++, at = end) {
				gw_status status = t < info->num_ntypes
							   ? gw_part_range(client, type, p, &begin, &end)
							   : gw_part_edge_range(client, type, p, &begin, &end);
				assert_int_equal(status, GW_OK);
				assert_int_equal(begin, at);
				assert_true(end >= begin);
			}
			assert_int_equal(at, count);
		}
	}
}

static void ends_of_what_a_batch_may_be(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	struct three three;
	static const int32_t fanouts[2 * GW_FIXTURE_ETYPES] = {3, 2, 2, 2, 1, GW_ALL_NEIGHBOURS, 2, 2};
	gw_fixture_begin(&fixture, 8, 300, 3);
	gw_fixture_write(&fixture);
	three_begin(&three, fixture.folder, 3);
	no_seeds_make_an_empty_batch(&three, fanouts);
	fanouts_of_nothing_leave_the_seeds(&three);
	the_most_hops_are_sampled(&three);
	a_fanout_above_every_degree_is_all(&three);
	a_type_without_edges_has_seeds(&three, fanouts);
	what_is_no_seed_is_named(&three, fanouts);
	no_seeds_are_no_steps(&three, fanouts);
	what_is_no_name_is_named(&three);
	ranges_of_parts_cover_each_type(&three);
	one_row_is_fetched(&three);
	three_end(&three);
	gw_fixture_end(&fixture);
}

/* --- Graphs without edges. --- */

#define THINGS 5

static void write_ids(struct gw_writer *writer, uint32_t part, const struct gw_node_type *type)
{
	uint64_t rows = type->starts[part + 1] - type->starts[part];
	float values[THINGS + 1];
	for (uint64_t i = 0; i < rows; i++)
		values[i] = (float)(type->starts[part] + i);
	assert_int_equal(gw_writer_array(writer, part, "node/thing/feat", GW_FLOAT32, 1, &rows, values), GW_OK);
}

static void write_bare(const char *folder, uint32_t parts, uint32_t etypes)
{
	struct gw_graph_meta *meta;
	assert_int_equal(gw_meta_create("bare", parts, 2, etypes, &meta), GW_OK);
	strcpy(meta->ntypes[0].name, "thing");
	strcpy(meta->ntypes[1].name, "nothing");
	meta->ntypes[0].count = THINGS;
	for (uint32_t p = 0; p < parts; p++)
		meta->ntypes[0].starts[p + 1] = THINGS * (p + 1) / parts;
	if (etypes)
		strcpy(meta->etypes[0].name, "near");
	if (gw_meta_finish(meta) != GW_OK)
		fail_msg("%s", gw_last_error());
	struct gw_writer *writer;
	assert_int_equal(gw_writer_open(folder, meta, false, &writer), GW_OK);
	const uint64_t zeros[THINGS + 1] = {0}, *columns[] = {zeros};
	for (uint32_t p = 0; p < parts; p++) {
		const struct gw_node_type *thing = &meta->ntypes[0];
		write_ids(writer, p, thing);
		if (!etypes)
			continue;
		uint64_t rows = thing->starts[p + 1] - thing->starts[p];
		assert_int_equal(gw_writer_indptr(writer, p, "node/thing/indptr", rows, 1, columns), GW_OK);
		assert_int_equal(gw_writer_ids(writer, p, "edge/thing__near__thing/indices", zeros, 0, THINGS), GW_OK);
	}
	if (gw_writer_commit(writer, NULL) != GW_OK)
		fail_msg("%s", gw_last_error());
	gw_meta_destroy(meta);
}

static void check_bare(struct three *three, uint32_t etypes)
{
	static const int64_t seeds[] = {4, 0, 4, 2};
	const int32_t fanouts[2] = {7, GW_ALL_NEIGHBOURS};
	struct gw_sample_spec spec = {.hops = 2, .fanouts = etypes ? fanouts : NULL};
	struct gw_minibatch *batch = sample(three, spec, "thing", "feat", seeds, 4);
	static const float rows[] = {4, 0, 2};
	assert_int_equal(batch->edge_count, 0);
	assert_int_equal(batch->node_counts[0], 3);
	assert_memory_equal(batch->rows[0], rows, sizeof(rows));
	for (uint32_t h = 0; h < 2; h++)
		assert_int_equal(batch->blocks[h]->edges_count, etypes);
	gw_minibatch_release(batch);
	spec.ntype = 1; /* this type has no nodes */
	gw_minibatch_release(sample(three, spec, NULL, NULL, NULL, 0));
	expect_of_all(three, &spec, seeds + 1, 1, GW_RANGE, "node 0 ");
	for (int w = 0; w < WAYS; w++) {
		expect_no_steps(three->clients[w], (struct gw_loader_options){.spec = spec});
		int64_t degrees[4] = {1, 1, 1, 1};
		if (etypes) {
			assert_int_equal(gw_degrees(three->clients[w], 0, seeds, 4, degrees), GW_OK);
			for (int i = 0; i < 4; i++)
				assert_int_equal(degrees[i], 0);
		}
	}
}

static void a_graph_needs_no_edges(void **state)
{
	(void)state;
	for (uint32_t etypes = 0; etypes < 2; etypes++) {
		for (uint32_t parts = 1; parts <= 2; parts++) {
			char root[64], folder[96];
			struct three three;
			gw_test_folder(root);
			snprintf(folder, sizeof(folder), "%s/graph", root);
			write_bare(folder, parts, etypes);
			three_begin(&three, folder, parts);
			check_bare(&three, etypes);
			three_end(&three);
			assert_int_equal(gw_remove_tree(root), GW_OK);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_node_is_a_graph),
		cmocka_unit_test(ends_of_what_a_batch_may_be),
		cmocka_unit_test(a_graph_needs_no_edges),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
