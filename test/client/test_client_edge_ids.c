/* Original ids of edges in both directions through the client: standalone, over each transport, in any order, with
 * duplicates; types whose directions share ids, and types without ids. The inverse is found only by its name, and is
 * no feature of edges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "core/numbers/rng.h"
#include "test/support/alloc_fault.h"
#include "test/support/client_setup.h"
#include "tools/builder/builder.h"

#define NODES 40u
#define EDGES 500u

enum { OWN, SHARED, NONE, TYPES };

static char root[64], folder[96];
static uint64_t src[EDGES], dst[EDGES];

/* Many edges are parallel, and some are loops. */
static void write_graph(void)
{
	static const char *const names[TYPES] = {"own", "shared", "none"};
	const struct gw_builder_options options = {.threads = 1, .quiet = true};
	struct gw_builder *builder;
	uint32_t ntype, etype;
	for (uint32_t i = 0; i < EDGES; i++) {
		src[i] = gw_mix64(2ull * i) % (NODES / 2);
		dst[i] = gw_mix64(2ull * i + 1) % (NODES / 2);
	}
	gw_test_folder(root);
	snprintf(folder, sizeof(folder), "%s/graph", root);
	assert_int_equal(gw_builder_create("edges", &builder), GW_OK);
	assert_int_equal(gw_builder_ntype(builder, "n", &ntype), GW_OK);
	gw_builder_ntype_count(builder, ntype, NODES);
	for (int t = 0; t < TYPES; t++) {
		struct gw_builder_edges edges = {.count = EDGES, .src = src, .dst = dst, .keep_orig_id = t != NONE};
		if (t == SHARED)
			assert_int_equal(gw_builder_mirror(builder, &edges), GW_OK);
		assert_int_equal(gw_builder_etype(builder, ntype, names[t], ntype, &edges, &etype), GW_OK);
		assert_int_equal(etype, t);
	}
	if (gw_builder_write(builder, folder, &options, NULL) != GW_OK)
		fail_msg("%s", gw_last_error());
	gw_builder_destroy(builder);
}

/* In random order, some twice. */
static uint32_t *fetch_all(struct gw_client *client, const struct gw_tensor *tensor)
{
	uint64_t rows = tensor->shape[0];
	int64_t *ids = malloc(2 * rows * sizeof(*ids));
	uint32_t *found = malloc(2 * rows * sizeof(*found)), *out = malloc(rows * sizeof(*out));
	assert_int_equal(tensor->dtype, GW_UINT32);
	for (uint64_t i = 0; i < 2 * rows; i++)
		ids[i] = (int64_t)(i < rows ? rows - 1 - i : gw_mix64(i) % (rows ? rows : 1));
	assert_int_equal(gw_gather(client, tensor, ids, 2 * rows, found), GW_OK);
	for (uint64_t i = 0; i < 2 * rows; i++)
		out[ids[i]] = found[i];
	for (uint64_t i = 0; i < 2 * rows; i++)
		assert_int_equal(out[ids[i]], found[i]);
	free(ids);
	free(found);
	return out;
}

static void check_there_and_back(struct gw_client *client, uint32_t etype)
{
	const struct gw_tensor *there, *back;
	assert_int_equal(gw_edge_tensor(client, etype, "orig_id", &there), GW_OK);
	assert_int_equal(gw_edge_tensor(client, etype, "orig_id.inverse", &back), GW_OK);
	uint64_t edges = there->shape[0];
	assert_int_equal(back->shape[0], EDGES);
	assert_true(etype == OWN ? edges == EDGES : edges > EDGES);
	uint32_t *original = fetch_all(client, there), *first = fetch_all(client, back);
	int64_t *ids = malloc(edges * sizeof(*ids)), *from = malloc(edges * 8), *to = malloc(edges * 8);
	for (uint64_t i = 0; i < edges; i++)
		ids[i] = (int64_t)i;
	assert_int_equal(gw_find_edges(client, etype, ids, edges, from, to), GW_OK);
	for (uint64_t i = 0; i < edges; i++) {
		uint32_t row = original[i];
		bool as_it_was = (uint64_t)from[i] == src[row] && (uint64_t)to[i] == dst[row];
		bool turned = (uint64_t)from[i] == dst[row] && (uint64_t)to[i] == src[row];
		assert_true(as_it_was || (etype == SHARED && turned));
		assert_true(first[row] <= i && original[first[row]] == row);
	}
	int64_t beyond = EDGES, below = -1;
	expect(gw_gather(client, back, &beyond, 1, ids), GW_RANGE, "id 500");
	expect(gw_gather(client, back, &below, 1, ids), GW_RANGE, "id -1");
	assert_int_equal(gw_gather(client, back, NULL, 0, NULL), GW_OK);
	free(original);
	free(first);
	free(ids);
	free(from);
	free(to);
}

/* It is not listed, and no call accepts it as rows of edges. */
static void check_hidden(struct gw_client *client)
{
	const struct gw_tensor *tensor, *back;
	for (uint32_t i = 0; (tensor = gw_tensor_at(client, i)); i++)
		assert_string_not_equal(tensor->name, "orig_id.inverse");
	expect(gw_edge_tensor(client, NONE, "orig_id.inverse", &tensor), GW_NOT_FOUND, "it has: none");
	expect(gw_edge_tensor(client, OWN, "no_such", &tensor), GW_NOT_FOUND, "it has: orig_id");
	assert_null(strstr(gw_last_error(), "inverse"));
	assert_int_equal(gw_edge_tensor(client, OWN, "orig_id.inverse", &back), GW_OK);
	int32_t fanouts[TYPES] = {2, 2, 2};
	struct gw_fetch fetch = {.tensor = back, .at = GW_AT_EDGES};
	const struct gw_sample_spec spec = {.hops = 1, .fanouts = fanouts, .fetch_count = 1, .fetches = &fetch};
	const int64_t seed = 1;
	struct gw_minibatch *batch;
	expect(gw_sample(client, &spec, 1, 1, &seed, 1, &batch), GW_INVALID, "belong to no nodes or edges");
}

/* The lists of a batch are its blocks' edges, hop after hop. */
static void check_lists(const struct gw_minibatch *batch, bool wide)
{
	uint64_t at[TYPES] = {0};
	for (uint32_t h = 0; h < batch->hops; h++) {
		for (uint32_t i = 0; i < batch->blocks[h]->edges_count; i++) {
			const struct gw_block_edges *edges = &batch->blocks[h]->edges[i];
			const struct gw_sampled_edges *list = &batch->sampled[edges->etype];
			for (uint64_t row = 0; row < edges->dst_count; row++) {
				for (int64_t e = edges->indptr[row]; e < edges->indptr[row + 1]; e++) {
					uint64_t to = at[edges->etype]++;
					assert_true(to < list->count);
					assert_int_equal(list->ids[to], edges->edge_ids[e]);
					assert_int_equal(list->dst[to], edges->dst_first + row);
					assert_int_equal(list->src[to], wide ? ((const int64_t *)edges->indices)[e]
									     : ((const int32_t *)edges->indices)[e]);
				}
			}
		}
	}
	for (uint32_t e = 0; e < TYPES; e++) {
		assert_int_equal(at[e], batch->sampled[e].count);
		assert_ptr_equal(batch->sampled[e].dst, batch->sampled[e].src + at[e]);
	}
	assert_int_equal(at[SHARED], 0); /* no hop samples it */
	assert_true(at[OWN] > 20);       /* more than one step of the loops, and a rest */
}

/* Rows of uint32 as int64, and other rows as they are. */
static void check_sampled(struct gw_client *client, bool wide, enum gw_frontier_mode frontier)
{
	int32_t fanouts[2 * TYPES] = {[OWN] = 3, [NONE] = 1, [TYPES + OWN] = -1};
	struct gw_fetch fetches[2] = {{.at = GW_AT_EDGES}, {.at = GW_AT_INPUTS}};
	struct gw_sample_spec spec = {.hops = 2,
				      .fanouts = fanouts,
				      .fetch_count = 2,
				      .fetches = fetches,
				      .wide_indices = wide,
				      .frontier = frontier};
	struct gw_minibatch *plain, *batch;
	int64_t seeds[5] = {1, 2, 3, 4, NODES - 1};
	assert_int_equal(gw_edge_tensor(client, OWN, "orig_id", &fetches[0].tensor), GW_OK);
	assert_int_equal(gw_node_tensor(client, 0, "orig_id", &fetches[1].tensor), GW_OK);
	assert_int_equal(gw_sample(client, &spec, 1, 1, seeds, 5, &plain), GW_OK);
	spec.sampled_edges = spec.wide_rows = true;
	assert_int_equal(gw_sample(client, &spec, 1, 1, seeds, 5, &batch), GW_OK);
	assert_null(plain->sampled);
	check_lists(batch, wide);
	for (uint32_t f = 0; f < 2; f++)
		assert_int_equal(batch->row_counts[f], plain->row_counts[f]);
	for (uint64_t i = 0; i < plain->row_counts[0]; i++)
		assert_int_equal(((const int64_t *)batch->rows[0])[i], ((const uint32_t *)plain->rows[0])[i]);
	assert_memory_equal(batch->rows[1], plain->rows[1], plain->row_counts[1] * 8);
	assert_true(gw_minibatch_digest(batch) != gw_minibatch_digest(plain));
	gw_minibatch_release(plain);
	gw_minibatch_release(batch);
	assert_int_equal(gw_sample(client, &spec, 1, 1, seeds, 0, &batch), GW_OK);
	assert_int_equal(batch->sampled[OWN].count, 0);
	gw_minibatch_release(batch);
}

static void every_transport(void **state)
{
	(void)state;
	struct cluster cluster;
	const char *const offers[] = {NULL, "shm"};
	write_graph();
	for (int offer = 0; offer < (cluster_is_rdma() ? 1 : 2); offer++) {
		cluster_offer(offers[offer]);
		cluster_begin(&cluster, folder, 1, NULL);
		const struct gw_client_options ways[] = {{.part_config = folder, .threads = 1},
							 {.servers = cluster.list, .server_count = 1, .threads = 1}};
		for (int w = offer; w < 2; w++) {
			struct gw_client *client = open_client(&ways[w]);
			check_there_and_back(client, OWN);
			check_there_and_back(client, SHARED);
			check_hidden(client);
			for (int way = 0; way < 4; way++)
				check_sampled(client, way & 1, way & 2 ? GW_FRONTIER_NEW : GW_FRONTIER_ALL);
			gw_client_close(client);
		}
		cluster_end(&cluster);
	}
	cluster_offer(NULL);
	assert_int_equal(gw_remove_tree(root), GW_OK);
}

static gw_status open_and_ask(void *context)
{
	struct gw_client *client;
	const struct gw_tensor *back;
	const int64_t id = 3;
	uint32_t edge;
	gw_status status = gw_client_open(context, &client);
	if (status != GW_OK)
		return status;
	status = gw_edge_tensor(client, OWN, "orig_id.inverse", &back);
	if (status == GW_OK)
		status = gw_gather(client, back, &id, 1, &edge);
	gw_client_close(client);
	return status;
}

static void shortage(void **state)
{
	(void)state;
	write_graph();
	struct gw_client_options options = {.part_config = folder, .threads = 1};
	assert_true(gw_fault_each(open_and_ask, &options) > 50);
	assert_int_equal(gw_remove_tree(root), GW_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(every_transport), cmocka_unit_test(shortage)};
	return cmocka_run_group_tests_name("client_edge_ids", tests, NULL, NULL);
}
