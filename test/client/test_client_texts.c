/* Original ids that are texts, through the client: standalone, over each transport, in any order, with duplicates,
 * from empty parts; strings that take several reads. Results equal the contents of the files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "core/graph/part.h"
#include "core/numbers/rng.h"
#include "test/support/client_setup.h"
#include "tools/builder/builder.h"

#define LONG_NODES 5u

/* All strings of a node type, read from the parts' files. */
struct strings {
	uint64_t count;
	char **text;
	uint64_t *bytes;
};

static void read_files(const char *folder, const char *type, struct strings *out)
{
	struct gw_graph_meta *meta;
	char key[160];
	uint32_t ntype;
	assert_int_equal(gw_meta_read(folder, &meta), GW_OK);
	assert_int_equal(gw_meta_ntype(meta, type, &ntype), GW_OK);
	*out = (struct strings){.count = meta->ntypes[ntype].count};
	out->text = calloc(out->count + 1, sizeof(*out->text));
	out->bytes = calloc(out->count + 1, sizeof(*out->bytes));
	for (uint32_t p = 0; p < meta->num_parts; p++) {
		struct gw_part_options options = {.mapped = true};
		struct gw_part *part;
		assert_int_equal(gw_part_open(meta, p, &options, &part), GW_OK);
		snprintf(key, sizeof(key), "node/%s/orig_id.offsets", type);
		const uint64_t *offsets = (const uint64_t *)(const void *)gw_part_array(part, key)->data;
		snprintf(key, sizeof(key), "node/%s/orig_id.bytes", type);
		const uint8_t *bytes = gw_part_array(part, key)->data;
		uint64_t first = meta->ntypes[ntype].starts[p], end = meta->ntypes[ntype].starts[p + 1];
		for (uint64_t i = first; i < end; i++) {
			out->bytes[i] = offsets[i - first + 1] - offsets[i - first];
			out->text[i] = malloc(out->bytes[i] + 1);
			memcpy(out->text[i], bytes + offsets[i - first], out->bytes[i]);
		}
		gw_part_close(part);
	}
	gw_meta_destroy(meta);
}

static void free_strings(struct strings *strings)
{
	for (uint64_t i = 0; i < strings->count; i++)
		free(strings->text[i]);
	free(strings->text);
	free(strings->bytes);
}

static void expect_texts(struct gw_client *client, const char *type, const struct strings *strings, const int64_t *ids,
			 uint64_t n)
{
	struct gw_texts *texts;
	uint32_t ntype;
	assert_int_equal(gw_node_type(client, type, &ntype), GW_OK);
	if (gw_node_texts(client, ntype, "orig_id", ids, n, &texts) != GW_OK)
		fail_msg("%s", gw_last_error());
	assert_int_equal(texts->count, n);
	assert_int_equal(texts->offsets[0], 0);
	for (uint64_t i = 0; i < n; i++) {
		assert_int_equal(texts->offsets[i + 1] - texts->offsets[i], strings->bytes[ids[i]]);
		assert_memory_equal(texts->bytes + texts->offsets[i], strings->text[ids[i]], strings->bytes[ids[i]]);
	}
	gw_texts_free(texts);
}

/* All of them, no string, random ones, and one string many times. */
static void check_client(struct gw_client *client, const char *type, const struct strings *strings)
{
	uint64_t count = strings->count;
	int64_t *ids = calloc(2 * count + 1, sizeof(*ids));
	for (uint64_t i = 0; i < count; i++)
		ids[i] = (int64_t)i;
	expect_texts(client, type, strings, ids, count);
	expect_texts(client, type, strings, ids, 0);
	for (uint64_t i = 0; i < 2 * count; i++)
		ids[i] = (int64_t)(gw_philox(5, i, 0).word[0] % count);
	expect_texts(client, type, strings, ids, 2 * count);
	for (uint64_t i = 0; i < 100 && i < 2 * count; i++)
		ids[i] = (int64_t)count - 1;
	expect_texts(client, type, strings, ids, 100 < 2 * count ? 100 : 2 * count);
	free(ids);
}

static void every_transport(void **state)
{
	(void)state;
	for (uint32_t parts = 1; parts <= 3; parts += 2) { /* with three parts, the middle one is empty */
		struct setup setup;
		struct strings strings;
		setup_begin(&setup, 71, parts, NULL);
		const char *const *list = setup.cluster.list;
		const struct gw_client_options ways[] = {
			{.part_config = setup.fixture.folder, .threads = 1},
			{.servers = list, .server_count = parts, .threads = 2},
			{.servers = list, .server_count = parts, .threads = 1, .transport = "tcp", .order = "always"},
			{.servers = list,
			 .server_count = parts,
			 .threads = 1,
			 .transport = "tcp",
			 .tcp_driver = "epoll"},
		};
		read_files(setup.fixture.folder, "paper", &strings);
		for (size_t i = 0; i < (cluster_is_rdma() ? 2 : sizeof(ways) / sizeof(ways[0])); i++) {
			struct gw_client *client = open_client(&ways[i]);
			check_client(client, "paper", &strings);
			gw_client_close(client);
		}
		free_strings(&strings);
		setup_end(&setup);
	}
}

static void mapped(void **state)
{
	(void)state;
	if (cluster_is_rdma())
		skip();
	struct setup setup;
	struct strings strings;
	cluster_offer("shm");
	setup_begin(&setup, 73, 2, NULL);
	read_files(setup.fixture.folder, "paper", &strings);
	const struct gw_client_options options = {.servers = setup.cluster.list, .server_count = 2, .threads = 1};
	struct gw_client *client = open_client(&options);
	expect_transport(client, "shm");
	check_client(client, "paper", &strings);
	gw_client_close(client);
	cluster_kill(&setup.cluster, 1);
	setup.cluster.transport = NULL;
	cluster_revive(&setup.cluster, 1);
	client = open_client(&options);
	assert_string_equal(gw_part_transport(client, 0), "shm");
	assert_string_equal(gw_part_transport(client, 1), "tcp");
	check_client(client, "paper", &strings);
	gw_client_close(client);
	free_strings(&strings);
	setup_end(&setup);
	cluster_offer(NULL);
}

static void faults(void **state)
{
	(void)state;
	struct setup setup;
	setup_begin(&setup, 72, 2, NULL);
	const struct gw_client_options options = {
		.servers = setup.cluster.list, .server_count = 2, .timeout_ms = 5000, .reconnect_ms = 1};
	struct gw_client *client = open_client(&options);
	struct gw_texts *texts;
	uint32_t paper, author;
	const int64_t none = SETUP_SCALE, below = -1, last = SETUP_SCALE - 1;
	assert_int_equal(gw_node_type(client, "paper", &paper), GW_OK);
	assert_int_equal(gw_node_type(client, "author", &author), GW_OK);
	expect(gw_node_texts(client, paper, "orig_id", &none, 1, &texts), GW_RANGE, "id 600");
	assert_null(texts);
	expect(gw_node_texts(client, paper, "orig_id", &below, 1, &texts), GW_RANGE, "id -1");
	expect(gw_node_texts(client, 99, "orig_id", &last, 1, &texts), GW_RANGE, "node type 99");
	expect(gw_node_texts(client, author, "orig_id", &last, 1, &texts), GW_NOT_FOUND, "author has no strings");
	expect(gw_node_texts(client, paper, "title", &last, 1, &texts), GW_NOT_FOUND, "\"title\"");
	expect(gw_node_texts(client, paper, "../x", &last, 1, &texts), GW_INVALID, "../x");
	assert_null(texts);
	gw_texts_free(NULL);
	cluster_kill(&setup.cluster, 1);
	assert_true(gw_node_texts(client, paper, "orig_id", &last, 1, &texts) != GW_OK);
	assert_null(texts);
	cluster_revive(&setup.cluster, 1);
	gw_client_close(client);
	setup_end(&setup);
}

/* A graph of one type with strings of up to some megabytes, longer than one read. */
static void write_long(char folder[128])
{
	static uint64_t offsets[LONG_NODES + 1];
	static const uint64_t lengths[LONG_NODES] = {3 << 20, 0, (1 << 20) + 1, 7, 1 << 20};
	struct gw_builder *builder;
	uint32_t ntype, etype;
	const struct gw_builder_options options = {.threads = 1, .quiet = true};
	struct gw_builder_stats stats;
	const uint64_t src[] = {0}, dst[] = {1};
	const struct gw_builder_edges edges = {.count = 1, .src = src, .dst = dst};
	for (uint32_t i = 0; i < LONG_NODES; i++)
		offsets[i + 1] = offsets[i] + lengths[i];
	char *bytes = malloc(offsets[LONG_NODES]);
	for (uint64_t i = 0; i < offsets[LONG_NODES]; i++)
		bytes[i] = (char)gw_mix64(i);
	assert_int_equal(gw_builder_create("long", &builder), GW_OK);
	assert_int_equal(gw_builder_ntype(builder, "n", &ntype), GW_OK);
	gw_builder_ntype_count(builder, ntype, LONG_NODES);
	assert_int_equal(gw_builder_etype(builder, ntype, "r", ntype, &edges, &etype), GW_OK);
	assert_int_equal(gw_builder_node_strings(builder, ntype, "orig_id", LONG_NODES, offsets, bytes), GW_OK);
	assert_int_equal(
		gw_builder_edge_strings(builder, etype, "kind.names", 3, (const uint64_t[]){0, 1, 1, 3}, "abc"), GW_OK);
	if (gw_builder_write(builder, folder, &options, &stats) != GW_OK)
		fail_msg("%s", gw_last_error());
	gw_builder_destroy(builder);
	free(bytes);
}

/* The names of values of an edge feature. Their number is not that of the edges. */
static void check_names(struct gw_client *client)
{
	static const int64_t values[] = {2, 1, 0, 2}, none = 3;
	struct gw_texts *texts;
	if (gw_edge_texts(client, 0, "kind.names", values, 4, &texts) != GW_OK)
		fail_msg("%s", gw_last_error());
	assert_memory_equal(texts->offsets, ((const uint64_t[]){0, 2, 2, 3, 5}), sizeof(uint64_t[5]));
	assert_memory_equal(texts->bytes, "bcabc", 5);
	gw_texts_free(texts);
	expect(gw_edge_texts(client, 0, "kind.names", &none, 1, &texts), GW_RANGE, "id 3");
	expect(gw_edge_texts(client, 1, "kind.names", values, 4, &texts), GW_RANGE, "edge type 1 of 1");
	expect(gw_edge_texts(client, 0, "orig_id", values, 4, &texts), GW_NOT_FOUND,
	       "edge type n__r__n has no strings");
	expect(gw_node_texts(client, 0, "kind.names", values, 4, &texts), GW_NOT_FOUND, "node type n has no strings");
	assert_null(texts);
}

static void long_strings(void **state)
{
	(void)state;
	char root[64], folder[128];
	struct cluster cluster;
	struct strings strings;
	gw_test_folder(root);
	snprintf(folder, sizeof(folder), "%s/graph", root);
	write_long(folder);
	read_files(folder, "n", &strings);
	cluster_begin(&cluster, folder, 1, NULL);
	const struct gw_client_options ways[] = {{.part_config = folder, .threads = 1},
						 {.servers = cluster.list, .server_count = 1, .threads = 1}};
	for (int w = 0; w < 2; w++) {
		struct gw_client *client = open_client(&ways[w]);
		check_client(client, "n", &strings);
		check_names(client);
		gw_client_close(client);
	}
	free_strings(&strings);
	cluster_end(&cluster);
	assert_int_equal(gw_remove_tree(root), GW_OK);
}

static gw_status fetch_some(struct gw_client *client)
{
	static const int64_t ids[] = {4, 1, 1, 9, 0};
	struct gw_texts *texts;
	gw_status status = gw_node_texts(client, 0, "orig_id", ids, sizeof(ids) / sizeof(ids[0]), &texts);
	if (status == GW_OK)
		assert_memory_equal(texts->bytes, "paper-4paper-1paper-1paper-9", texts->offsets[5]);
	gw_texts_free(texts);
	return status;
}

static void shortage(void **state)
{
	(void)state;
	assert_true(in_short_memory(74, 20, 1, fetch_some) > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_transport), cmocka_unit_test(mapped),   cmocka_unit_test(faults),
		cmocka_unit_test(long_strings),    cmocka_unit_test(shortage),
	};
	return cmocka_run_group_tests_name("client_texts", tests, NULL, NULL);
}
