/* The real graphs of the test data from end to end: imported, partitioned into 2, 3 and 8 parts, sampled by the
 * client, and every edge of every block compared with the file's edge list.
 *
 * By original ids: each edge of a block is an edge of the file, and occurs once in a block. A destination gets
 * min(fanout, in-degree) edges, or all of them. Node numbers are those of the node lists. Edges are found by id and by
 * their ends. In a batch of links, positives are edges of the file, negatives are not, and no block has an edge of a
 * positive. The three paths to the neighbours give equal digests, from mapped memory (3 parts) as over sockets. A
 * knowledge graph's nodes have names instead of numbers, so only the three paths are compared there
 * (test_partition_real compares its parts with the file). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <graphwire/graphwire.h>

#include "core/files/staging.h"
#include "core/graph/meta.h"
#include "core/numbers/rng.h"
#include "test/support/cluster.h"
#include "test/support/real_graphs.h"
#include "test/support/scratch.h"
#include "tools/tools.h"

#define SEEDS   300
#define BATCHES 4
#define HOPS    3

static const int32_t fanouts[HOPS] = {15, GW_ALL_NEIGHBOURS, 5};

/* --- The graph of the file, by destination. --- */

struct lists {
	uint64_t nodes, *indptr, *src; /* src is ascending in each list */
};

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static void lists_build(struct lists *lists, const struct real_graph *graph)
{
	lists->nodes = graph->nodes;
	lists->indptr = calloc(graph->nodes + 2, sizeof(uint64_t));
	lists->src = malloc((graph->edges + 1) * sizeof(uint64_t));
	for (uint64_t i = 0; i < graph->edges; i++)
		lists->indptr[graph->dst[i] + 2]++;
	for (uint64_t v = 1; v <= graph->nodes; v++)
		lists->indptr[v + 1] += lists->indptr[v];
	for (uint64_t i = 0; i < graph->edges; i++)
		lists->src[lists->indptr[graph->dst[i] + 1]++] = graph->src[i];
	for (uint64_t v = 0; v < graph->nodes; v++)
		qsort(lists->src + lists->indptr[v], lists->indptr[v + 1] - lists->indptr[v], sizeof(uint64_t),
		      by_value);
}

static uint64_t degree_of(const struct lists *lists, uint64_t node)
{
	return lists->indptr[node + 1] - lists->indptr[node];
}

/* How often src occurs in the list of dst. */
static uint64_t count_edge(const struct lists *lists, uint64_t dst, uint64_t src)
{
	uint64_t count = 0, low = lists->indptr[dst], high = lists->indptr[dst + 1];
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (lists->src[middle] < src)
			low = middle + 1;
		else
			high = middle;
	}
	while (low < lists->indptr[dst + 1] && lists->src[low] == src) {
		low++;
		count++;
	}
	return count;
}

/* --- Blocks against the file. --- */

static void check_block(const struct lists *lists, const struct gw_minibatch *batch, uint32_t hop,
			const int64_t *origin)
{
	assert_int_equal(batch->blocks[hop]->edges_count, 1);
	const struct gw_block_edges *edges = &batch->blocks[hop]->edges[0];
	const int32_t *indices = edges->indices;
	const int64_t *nodes = batch->nodes[0];
	uint64_t *picked = malloc((edges->edge_count + 1) * sizeof(*picked));
	for (uint64_t row = 0; row < edges->dst_count; row++) {
		uint64_t dst = (uint64_t)origin[nodes[row]], degree = degree_of(lists, dst);
		uint64_t n = (uint64_t)(edges->indptr[row + 1] - edges->indptr[row]);
		uint64_t fanout = fanouts[hop] == GW_ALL_NEIGHBOURS ? degree : (uint64_t)fanouts[hop];
		assert_int_equal(n, degree < fanout ? degree : fanout);
		for (uint64_t j = 0; j < n; j++) {
			uint64_t at = (uint64_t)edges->indptr[row] + j;
			assert_true((uint64_t)indices[at] < batch->blocks[hop]->src_counts[0]);
			picked[j] = (uint64_t)origin[nodes[indices[at]]];
		}
		qsort(picked, n, sizeof(*picked), by_value);
		for (uint64_t j = 0, run = 1; j < n; j++, run++) {
			if (j > 0 && picked[j] != picked[j - 1])
				run = 1;
			/* Parallel edges may occur once each. */
			assert_true(run <= count_edge(lists, dst, picked[j]));
		}
	}
	/* No edge twice. */
	for (uint64_t i = 0; i < edges->edge_count; i++)
		picked[i] = (uint64_t)edges->edge_ids[i];
	qsort(picked, edges->edge_count, sizeof(*picked), by_value);
	for (uint64_t i = 1; i < edges->edge_count; i++)
		assert_true(picked[i] != picked[i - 1]);
	free(picked);
}

static struct gw_client *open_client(const struct gw_client_options *options)
{
	struct gw_client *client;
	if (gw_client_open(options, &client) != GW_OK)
		fail_msg("%s", gw_last_error());
	return client;
}

static void make_seeds(uint64_t nodes, uint32_t batch, int64_t seeds[SEEDS])
{
	for (uint64_t i = 0; i < SEEDS; i++)
		seeds[i] = (int64_t)(gw_mix64(batch * 1000 + i) % nodes);
}

static const struct gw_sample_spec spec = {.hops = HOPS, .fanouts = fanouts};

static struct gw_minibatch *sample(struct gw_client *client, uint64_t nodes, uint32_t number)
{
	int64_t seeds[SEEDS];
	struct gw_minibatch *batch;
	make_seeds(nodes, number, seeds);
	if (gw_sample(client, &spec, 9, number, seeds, SEEDS, &batch) != GW_OK)
		fail_msg("%s", gw_last_error());
	return batch;
}

/* The number in the file of each node: its original id. Names ("e7") are numbered in the order of the test data's
 * list. */
static int64_t *read_origins(struct gw_client *client, uint64_t nodes)
{
	const struct gw_tensor *tensor;
	int64_t *origin = malloc(nodes * sizeof(*origin)), *ids = malloc(nodes * sizeof(*ids));
	for (uint64_t i = 0; i < nodes; i++)
		ids[i] = (int64_t)i;
	if (gw_node_tensor(client, 0, "orig_id", &tensor) != GW_OK)
		fail_msg("%s", gw_last_error());
	assert_int_equal(tensor->dtype, GW_INT64);
	assert_int_equal(gw_gather(client, tensor, ids, nodes, origin), GW_OK);
	free(ids);
	return origin;
}

/* --- Edges and links against the file. --- */

/* Ends, pairs and one hop of edges, by the numbers in the file. */
static void check_edges(const struct lists *lists, struct gw_client *client, const int64_t *origin)
{
	uint64_t edges = gw_client_graph(client)->etypes[0].count;
	int64_t ids[SEEDS], src[SEEDS], dst[SEEDS], degrees[SEEDS];
	struct gw_neighbours_spec hop = {.fanout = GW_ALL_NEIGHBOURS};
	struct gw_edge_list *found, *around;
	for (uint64_t i = 0; i < SEEDS; i++)
		ids[i] = (int64_t)(gw_mix64(i + 5) % edges);
	assert_int_equal(gw_find_edges(client, 0, ids, SEEDS, src, dst), GW_OK);
	assert_int_equal(gw_edge_ids(client, 0, src, dst, SEEDS, &found), GW_OK);
	assert_int_equal(gw_degrees(client, 0, dst, SEEDS, degrees), GW_OK);
	assert_int_equal(gw_neighbours(client, &hop, 0, 0, dst, SEEDS, &around), GW_OK);
	for (uint64_t i = 0; i < SEEDS; i++) {
		uint64_t from = (uint64_t)origin[src[i]], to = (uint64_t)origin[dst[i]], itself = 0, parallel = 0;
		assert_int_equal(found->offsets[i + 1] - found->offsets[i], count_edge(lists, to, from));
		for (uint64_t j = found->offsets[i]; j < found->offsets[i + 1]; j++)
			itself += found->edge_ids[j] == ids[i];
		assert_int_equal(itself, 1);
		assert_int_equal(degrees[i], degree_of(lists, to));
		assert_int_equal(around->offsets[i + 1] - around->offsets[i], degrees[i]);
		for (uint64_t j = around->offsets[i]; j < around->offsets[i + 1]; j++) {
			assert_true(count_edge(lists, to, (uint64_t)origin[around->src[j]]) > 0);
			parallel += around->src[j] == src[i];
		}
		assert_int_equal(parallel, count_edge(lists, to, from));
	}
	gw_edge_list_free(found);
	gw_edge_list_free(around);
}

/* A batch of links: positives are edges of the file, negatives are not, and no block has an edge between the ends of a
 * positive, in either direction. */
static void check_batch(const struct lists *lists, const struct gw_minibatch *batch, const int64_t *origin)
{
	const struct gw_edge_batch *links = batch->edges;
	const int64_t *nodes = batch->nodes[0];
	assert_int_equal(links->true_edges, 0);
	for (uint64_t i = 0; i < links->count; i++) {
		uint64_t src = (uint64_t)origin[nodes[links->src_rows[i]]];
		assert_true(count_edge(lists, (uint64_t)origin[nodes[links->dst_rows[i]]], src) > 0);
		for (uint32_t j = 0; j < links->negatives_each; j++) {
			uint32_t row = links->negative_rows[i * links->negatives_each + j];
			assert_int_equal(count_edge(lists, (uint64_t)origin[nodes[row]], src), 0);
		}
	}
	for (uint32_t h = 0; h < batch->hops; h++) {
		const struct gw_block_edges *edges = &batch->blocks[h]->edges[0];
		const uint32_t *indices = edges->indices;
		for (uint64_t row = 0, at = 0; row < edges->dst_count; row++) {
			for (; at < (uint64_t)edges->indptr[row + 1]; at++) {
				for (uint64_t i = 0; i < links->count; i++) {
					uint32_t src = links->src_rows[i], dst = links->dst_rows[i];
					assert_false((indices[at] == src && row == dst) ||
						     (indices[at] == dst && row == src));
				}
			}
		}
	}
}

static void check_links(const struct lists *lists, struct gw_client *const clients[3], const int64_t *origin)
{
	enum { LINKS = 50 };
	static const int32_t few[2] = {10, 5};
	struct gw_edge_seeds seeds = {.negatives = GW_NEGATIVES_DST,
				      .negatives_each = 2,
				      .no_true_edges = true,
				      .exclude = GW_EXCLUDE_ENDS | GW_EXCLUDE_REVERSE_TYPE};
	struct gw_sample_spec links = {.hops = 2, .fanouts = few, .edges = &seeds};
	uint64_t edges = gw_client_graph(clients[0])->etypes[0].count, digest = 0;
	int64_t ids[LINKS];
	for (uint64_t i = 0; i < LINKS; i++)
		ids[i] = (int64_t)(gw_mix64(i + 99) % edges);
	for (int c = 0; c < 3; c++) {
		struct gw_minibatch *batch;
		if (gw_sample(clients[c], &links, 9, 4, ids, LINKS, &batch) != GW_OK)
			fail_msg("%s", gw_last_error());
		if (lists && c == 0)
			check_batch(lists, batch, origin);
		digest = c ? digest : gw_minibatch_digest(batch);
		assert_true(gw_minibatch_digest(batch) == digest);
		gw_minibatch_release(batch);
	}
}

/* lists: NULL if nodes have no numbers in the file. */
static void check_parts(const struct lists *lists, uint64_t nodes, const char *folder, uint32_t parts,
			const char *driver)
{
	struct cluster cluster;
	cluster_offer(parts == 3 ? "shm" : NULL);
	cluster_begin(&cluster, folder, parts, driver);
	struct gw_client_options alone = {.part_config = folder, .threads = 1};
	struct gw_client_options asked = {
		.servers = cluster.list, .server_count = parts, .threads = 2, .neighbours = "requests"};
	struct gw_client_options read = {
		.servers = cluster.list, .server_count = parts, .threads = 1, .neighbours = "reads"};
	struct gw_client *clients[] = {open_client(&alone), open_client(&asked), open_client(&read)};
	for (uint32_t p = 0; p < parts; p++) {
		assert_int_equal(strcmp(gw_part_transport(clients[1], p), "shm") == 0, parts == 3);
		assert_int_equal(strcmp(gw_part_transport(clients[2], p), "shm") == 0, parts == 3);
	}
	assert_int_equal(gw_client_graph(clients[0])->ntypes[0].count, nodes);
	int64_t *origin = lists ? read_origins(clients[1], nodes) : NULL;
	for (uint32_t b = 0; b < BATCHES; b++) {
		uint64_t digests[3];
		for (int c = 0; c < 3; c++) {
			struct gw_minibatch *batch = sample(clients[c], nodes, b);
			digests[c] = gw_minibatch_digest(batch);
			for (uint32_t h = 0; lists && c == 0 && h < HOPS; h++)
				check_block(lists, batch, h, origin);
			gw_minibatch_release(batch);
		}
		assert_true(digests[0] == digests[1]);
		assert_true(digests[0] == digests[2]);
	}
	for (int c = 0; lists && c < 2; c++)
		check_edges(lists, clients[c], origin);
	check_links(lists, clients, origin);
	free(origin);
	for (int c = 0; c < 3; c++)
		gw_client_close(clients[c]);
	cluster_end(&cluster);
}

static void run_tool(int (*tool)(int, char **), const char *const *arguments)
{
	char *argv[16];
	int argc = 0;
	for (; arguments[argc]; argc++)
		argv[argc] = (char *)(uintptr_t)arguments[argc];
	argv[argc] = NULL;
	if (tool(argc, argv) != 0)
		fail_msg("%s failed", arguments[0]);
}

static void check_graph(void **state)
{
	const char *file = *state, *slash = strchr(file, '/');
	char name[32], path[4096], root[64], graph[64], folder[64], number[8];
	snprintf(name, sizeof(name), "%.*s", (int)(slash - file), file);
	struct real_graph real;
	if (!real_graph_load(name, &real) || !real_graph_file(file, path, sizeof(path)))
		skip();
	struct lists lists;
	lists_build(&lists, &real);
	bool named = real.relations > 0;
	gw_scratch_make_in_memory("client-real", root);
	snprintf(graph, sizeof(graph), "%s/graph", root);
	const char *import[] = {"import", named ? "--triples" : "--from", path, "--quiet", "--out", graph, NULL};
	run_tool(gw_tool_import, import);
	for (uint32_t parts = 2; parts <= 8; parts += parts == 2 ? 1 : 5) {
		snprintf(folder, sizeof(folder), "%s/parts%u", root, parts);
		snprintf(number, sizeof(number), "%u", parts);
		const char *partition[] = {"partition", graph,      "--num-parts",
					   number,      "--method", parts == 3 ? "random" : "metis",
					   "--out",     folder,     NULL};
		run_tool(gw_tool_partition, partition);
		check_parts(named ? NULL : &lists, real.nodes, folder, parts, parts == 8 ? "epoll" : NULL);
	}
	assert_int_equal(gw_remove_tree(root), GW_OK);
	free(lists.indptr);
	free(lists.src);
	real_graph_free(&real);
}

#define CASE(file)                                                                                                     \
	{                                                                                                              \
		file, check_graph, NULL, NULL, (void *)(uintptr_t)file                                                 \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE("cora/cora.npz"),
		CASE("facebook/facebook.npz"),
#if REAL_GRAPHS_ALL
		CASE("ego-twitter/edges.npz"),
		CASE("cnr-2000/edges.npz"),
		CASE("fb15k-237/train.tsv.gz"),
#endif
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
