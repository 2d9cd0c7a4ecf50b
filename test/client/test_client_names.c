/* Names of the greatest length have room everywhere: a graph whose types, relations and features have them gives what
 * the same graph with short names gives, standalone, over TCP and from mapped memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <graphwire/edges.h>

#include "core/files/staging.h"
#include "core/numbers/rng.h"
#include "test/support/client_setup.h"
#include "test/support/must.h"
#include "tools/builder/builder.h"

#define NODES 30
#define EDGES 200
#define WAYS  3

/* "a", or 64 of it. The format adds ".alias" to the name of a weight. */
static const char *name_of(char letter, bool longest)
{
	static char names[256][GW_NAME_MAX + 1];
	char *name = names[(unsigned char)letter];
	memset(name, 0, GW_NAME_MAX + 1);
	memset(name, letter, !longest ? 1 : letter == 'w' ? GW_NAME_MAX - strlen(".alias") : GW_NAME_MAX);
	return name;
}

static const char *names_of(char letter, bool longest, char names[GW_NAME_MAX + 1])
{
	static const char tail[] = ".names"; /* to which the format adds ".offsets" */
	snprintf(names, GW_NAME_MAX + 1, "%.*s%s", longest ? (int)(GW_NAME_MAX - strlen(".names.offsets")) : 1,
		 name_of(letter, true), tail);
	return names;
}

/* Type a with original ids that are texts, type b whose ids are numbers, and a -> b with out-edges, a weight with its
 * table, and a table of names. */
static void write_graph(const char *folder, bool longest)
{
	static uint64_t src[EDGES], dst[EDGES], offsets[NODES + 1];
	static float values[EDGES];
	static int64_t numbers[NODES];
	static char bytes[NODES * 3 + 1], names[GW_NAME_MAX + 1];
	struct gw_builder *builder;
	uint32_t a, b, etype;
	struct gw_builder_stats stats;
	const struct gw_builder_options options = {.threads = 1, .quiet = true};
	struct gw_builder_edges edges = {
		.count = EDGES, .src = src, .dst = dst, .transpose = true, .keep_orig_id = true};
	for (uint64_t i = 0; i < EDGES; i++) {
		src[i] = gw_mix64(i) % NODES;
		dst[i] = gw_mix64(i + EDGES) % NODES;
		values[i] = (float)(i % 7);
	}
	for (uint64_t i = 0; i < NODES; i++) {
		offsets[i + 1] = offsets[i] + (uint64_t)snprintf(bytes + 3 * i, 4, "%03d", (int)(i * 7 % NODES));
		numbers[i] = (int64_t)(i * i);
	}
	const struct gw_builder_array feature = {
		.name = name_of('f', longest), .dtype = GW_FLOAT32, .ndim = 1, .shape = {NODES}, .data = values};
	const struct gw_builder_array weight = {.name = name_of('w', longest),
						.dtype = GW_FLOAT32,
						.ndim = 1,
						.shape = {EDGES},
						.data = values,
						.weight = true};
	const struct gw_builder_array ids = {
		.name = "orig_id", .dtype = GW_INT64, .ndim = 1, .shape = {NODES}, .data = numbers};
	must(gw_builder_create("g", &builder));
	must(gw_builder_ntype(builder, name_of('a', longest), &a));
	must(gw_builder_ntype(builder, name_of('b', longest), &b));
	gw_builder_ntype_count(builder, a, NODES);
	gw_builder_ntype_count(builder, b, NODES);
	must(gw_builder_etype(builder, a, name_of('r', longest), b, &edges, &etype));
	must(gw_builder_node_array(builder, a, &feature));
	must(gw_builder_edge_array(builder, etype, &weight));
	must(gw_builder_node_array(builder, b, &ids));
	must(gw_builder_node_strings(builder, a, "orig_id", NODES, offsets, bytes));
	must(gw_builder_edge_strings(builder, etype, names_of('k', longest, names), 2, (const uint64_t[]){0, 1, 3},
				     "xyz"));
	must(gw_builder_write(builder, folder, &options, &stats));
	gw_builder_destroy(builder);
}

/* What the calls give, one after another. */
struct results {
	uint8_t bytes[1 << 16];
	size_t used;
};

static void keep(struct results *results, const void *bytes, size_t count)
{
	assert_true(results->used + count <= sizeof(results->bytes));
	memcpy(results->bytes + results->used, bytes, count);
	results->used += count;
}

static void keep_texts(struct results *results, struct gw_texts *texts)
{
	keep(results, texts->offsets, (texts->count + 1) * sizeof(*texts->offsets));
	keep(results, texts->bytes, texts->offsets[texts->count]);
	gw_texts_free(texts);
}

static void ask_texts(struct gw_client *client, bool longest, struct results *results)
{
	int64_t ids[] = {5, 0, NODES - 1, 5}, values[] = {1, 0}, numbers[] = {25, 0, 841, 26}, nodes[4];
	char names[GW_NAME_MAX + 1];
	struct gw_texts *texts;
	must(gw_node_texts(client, 0, "orig_id", ids, 4, &texts));
	const struct gw_orig_ids of_texts = {.count = 4, .offsets = texts->offsets, .bytes = texts->bytes};
	must(gw_node_ids(client, 0, &of_texts, nodes, NULL));
	assert_memory_equal(nodes, ids, sizeof(ids));
	keep_texts(results, texts);
	must(gw_edge_texts(client, 0, names_of('k', longest, names), values, 2, &texts));
	keep_texts(results, texts);
	const struct gw_orig_ids of_numbers = {.count = 4, .dtype = GW_INT64, .numbers = numbers};
	uint64_t missing;
	must(gw_node_ids(client, 1, &of_numbers, nodes, &missing));
	assert_int_equal(missing, 1);
	keep(results, nodes, sizeof(nodes));
}

static void ask_edges(struct gw_client *client, bool longest, struct results *results)
{
	int64_t ids[NODES], degrees[NODES];
	struct gw_edge_list *list;
	for (int64_t i = 0; i < NODES; i++)
		ids[i] = i;
	must(gw_degrees(client, 0, ids, NODES, degrees));
	keep(results, degrees, sizeof(degrees));
	must(gw_out_degrees(client, 0, ids, NODES, degrees));
	keep(results, degrees, sizeof(degrees));
	const struct gw_neighbours_spec specs[] = {{.fanout = GW_ALL_NEIGHBOURS},
						   {.fanout = GW_ALL_NEIGHBOURS, .direction = GW_OUT},
						   {.fanout = 2, .rule = {.weight = name_of('w', longest)}}};
	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
		must(gw_neighbours(client, &specs[i], 1, 2, ids, NODES, &list));
		keep(results, list->edge_ids, list->edge_count * sizeof(*list->edge_ids));
		gw_edge_list_free(list);
	}
}

static void ask_batch(struct gw_client *client, bool longest, struct results *results)
{
	static const int32_t fanouts[] = {3};
	int64_t seeds[] = {3, 9, 27};
	struct gw_fetch fetches[3] = {{.at = GW_AT_INPUTS}, {.at = GW_AT_EDGES}, {.at = GW_AT_EDGES}};
	const struct gw_edge_rule rule = {.weight = name_of('w', longest)};
	must(gw_node_tensor(client, 0, name_of('f', longest), &fetches[0].tensor));
	must(gw_edge_tensor(client, 0, name_of('w', longest), &fetches[1].tensor));
	must(gw_edge_tensor(client, 0, "orig_id", &fetches[2].tensor));
	const struct gw_sample_spec spec = {
		.ntype = 1, .hops = 1, .fanouts = fanouts, .fetches = fetches, .fetch_count = 3, .rules = &rule};
	struct gw_minibatch *batch;
	must(gw_sample(client, &spec, 1, 2, seeds, 3, &batch));
	uint64_t digest = gw_minibatch_digest(batch);
	keep(results, &digest, sizeof(digest));
	for (uint32_t f = 0; f < 3; f++)
		keep(results, batch->rows[f], batch->row_counts[f] * fetches[f].tensor->row_bytes);
	gw_minibatch_release(batch);
}

/* Tensors that begin as copies of features. The longest names of all four together are too long for that. */
static void ask_copies(struct gw_client *client, bool longest, struct results *results)
{
	int64_t ids[] = {7, 0, NODES - 1};
	struct gw_tensor_spec spec = {.name = "copy",
				      .dtype = GW_FLOAT32,
				      .placement = GW_PLACE_NODES,
				      .ndim = 1,
				      .shape = {0},
				      .initial = GW_INITIAL_COPY};
	const struct gw_tensor *tensor;
	float rows[3];
	must(gw_node_tensor(client, 0, name_of('f', longest), &spec.from));
	must(gw_tensor_create(client, &spec, &tensor));
	must(gw_gather(client, tensor, ids, 3, rows));
	keep(results, rows, sizeof(rows));
	must(gw_tensor_delete(client, "copy", GW_OF_JOB));
	spec.placement = GW_PLACE_EDGES;
	must(gw_edge_tensor(client, 0, name_of('w', longest), &spec.from));
	gw_status status = gw_tensor_create(client, &spec, &tensor);
	if (longest) {
		expect(status, GW_LIMIT, "rows of names with at most 255 can be copied");
	} else {
		must(status);
		must(gw_tensor_delete(client, "copy", GW_OF_JOB));
	}
}

static void ask_checkpoint(struct gw_client *client, bool longest, struct results *results, const char *folder)
{
	char name[GW_TENSOR_NAME_MAX + 1] = {0};
	const struct gw_tensor *tensor;
	float rows[NODES], values[NODES];
	int64_t ids[NODES];
	memset(name, 't', longest ? GW_TENSOR_NAME_MAX : 1);
	const struct gw_tensor_spec spec = {
		.name = name, .dtype = GW_FLOAT32, .placement = GW_PLACE_NODES, .type = 0, .ndim = 1, .shape = {0}};
	for (int64_t i = 0; i < NODES; i++) {
		ids[i] = i;
		values[i] = (float)(i * 3);
	}
	must(gw_tensor_create(client, &spec, &tensor));
	must(gw_update(client, tensor, ids, NODES, values));
	must(gw_checkpoint(client, folder, NULL));
	must(gw_tensor_delete(client, name, GW_OF_JOB));
	must(gw_restore(client, folder, NULL, 0));
	must(gw_tensor_open(client, name, GW_OF_JOB, &tensor));
	must(gw_gather(client, tensor, ids, NODES, rows));
	keep(results, rows, sizeof(rows));
	must(gw_tensor_delete(client, name, GW_OF_JOB));
	must(gw_remove_tree(folder));
}

static void ask_each_way(bool longest, struct results results[WAYS])
{
	char root[64], folder[96], saved[96], job[GW_JOB_NAME_MAX + 1] = {0};
	struct cluster cluster;
	gw_test_folder(root);
	snprintf(folder, sizeof(folder), "%s/graph", root);
	snprintf(saved, sizeof(saved), "%s/saved", root);
	memset(job, 'j', longest ? GW_JOB_NAME_MAX : 1);
	write_graph(folder, longest);
	cluster_offer(cluster_is_rdma() ? "verbs" : "shm");
	cluster_begin(&cluster, folder, 1, NULL);
	const struct gw_client_options ways[WAYS] = {
		{.part_config = folder, .threads = 1, .job = job},
		{.servers = cluster.list, .server_count = 1, .threads = 1, .job = job},
		{.servers = cluster.list,
		 .server_count = 1,
		 .threads = 1,
		 .job = job,
		 .transport = cluster_is_rdma() ? "verbs" : "tcp"}};
	for (int w = 0; w < WAYS; w++) {
		struct gw_client *client = open_client(&ways[w]);
		results[w].used = 0;
		ask_texts(client, longest, &results[w]);
		ask_edges(client, longest, &results[w]);
		ask_batch(client, longest, &results[w]);
		ask_copies(client, longest, &results[w]);
		ask_checkpoint(client, longest, &results[w], saved);
		gw_client_close(client);
	}
	cluster_end(&cluster);
	cluster_offer(NULL);
	must(gw_remove_tree(root));
}

static void the_longest_names_change_nothing(void **state)
{
	static struct results of_short[WAYS], of_longest[WAYS];
	(void)state;
	ask_each_way(false, of_short);
	ask_each_way(true, of_longest);
	for (int w = 0; w < WAYS; w++) {
		assert_int_equal(of_longest[w].used, of_short[0].used);
		assert_memory_equal(of_longest[w].bytes, of_short[0].bytes, of_short[0].used);
		assert_memory_equal(of_short[w].bytes, of_short[0].bytes, of_short[0].used);
	}
	assert_true(of_short[0].used > 4000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(the_longest_names_change_nothing)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
