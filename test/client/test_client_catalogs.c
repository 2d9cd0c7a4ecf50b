/* What the catalogs of many servers cost a client: made-up answers of S servers with 40 arrays each are checked, stored
 * and put together, as when a client opens. Text, allocations and memory grow with S, not with its square. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "client/link/catalog.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "test/support/held.h"
#include "test/support/meta_same.h"

#define ARRAYS     40
#define FEATURES   (ARRAYS - 2)
#define PART_NODES 1000u
#define PART_EDGES 9000u
#define HELD_MAX   (10u << 20) /* for 512 servers */

/* --- The made-up graph, and its servers' answers. --- */

static void made_add(struct gw_graph_meta *meta, uint32_t part, const char *key, gw_dtype dtype, uint64_t rows,
		     uint64_t columns)
{
	struct gw_array_meta array = {.key = (char *)(uintptr_t)key,
				      .file = (char *)(uintptr_t) "",
				      .dtype = dtype,
				      .ndim = columns ? 2 : 1,
				      .shape = {rows, columns},
				      .digest = 0x9e3779b97f4a7c15ull * (part + 1) + rows};
	assert_int_equal(gw_meta_add_array(meta, part, &array), GW_OK);
}

static struct gw_graph_meta *made_graph(uint32_t parts)
{
	struct gw_graph_meta *meta;
	assert_int_equal(gw_meta_create("made", parts, 1, 1, &meta), GW_OK);
	snprintf(meta->ntypes[0].name, sizeof(meta->ntypes[0].name), "_N");
	snprintf(meta->etypes[0].name, sizeof(meta->etypes[0].name), "_E");
	for (uint32_t p = 0; p <= parts; p++) {
		meta->ntypes[0].starts[p] = (uint64_t)p * PART_NODES;
		meta->etypes[0].starts[p] = (uint64_t)p * PART_EDGES;
	}
	meta->ntypes[0].count = meta->ntypes[0].starts[parts];
	meta->etypes[0].count = meta->etypes[0].starts[parts];
	assert_int_equal(gw_meta_finish(meta), GW_OK);
	for (uint32_t p = 0; p < parts; p++) {
		made_add(meta, p, "node/_N/indptr", GW_UINT32, PART_NODES + 1, 1);
		made_add(meta, p, "edge/_N___E___N/indices", GW_UINT32, PART_EDGES, 0);
		for (uint32_t f = 0; f < FEATURES; f++) {
			char key[64];
			snprintf(key, sizeof(key), "node/_N/feature_%u", f);
			made_add(meta, p, key, GW_FLOAT32, PART_NODES, 16);
		}
	}
	assert_int_equal(gw_meta_digest(meta, &meta->graph_id), GW_OK);
	return meta;
}

static json_t *hex_text(uint64_t value)
{
	return json_sprintf("%016llx", (unsigned long long)value);
}

/* Written here, and not by gw_catalog_print: the protocol's text. Free with free. */
static char *made_answer(const struct gw_graph_meta *meta, uint32_t part, bool with_book, uint64_t *region_bytes)
{
	uint64_t book_digest;
	json_t *arrays = json_array();
	*region_bytes = 0;
	for (uint32_t i = 0; i < meta->parts[part].count; i++) {
		const struct gw_array_meta *array = &meta->parts[part].arrays[i];
		json_t *shape = json_array();
		for (uint32_t d = 0; d < array->ndim; d++)
			json_array_append_new(shape, json_integer((json_int_t)array->shape[d]));
		json_array_append_new(arrays, json_pack("[s, I, I, s, o, o]", array->key, (json_int_t)0,
							(json_int_t)*region_bytes, gw_dtype_name(array->dtype), shape,
							hex_text(array->digest)));
		*region_bytes += gw_array_meta_bytes(array);
	}
	assert_int_equal(gw_meta_book_digest(meta, &book_digest), GW_OK);
	json_t *root =
		json_pack("{s: I, s: s, s: o, s: o, s: o}", "part", (json_int_t)part, "graph_name", meta->graph_name,
			  "graph_id", hex_text(meta->graph_id), "book_digest", hex_text(book_digest), "arrays", arrays);
	if (with_book) {
		char *book;
		assert_int_equal(gw_meta_print_book(meta, &book), GW_OK);
		json_object_set_new(root, "book", json_string(book));
		gw_free(book);
	}
	char *text = json_dumps(root, JSON_COMPACT);
	json_decref(root);
	assert_non_null(text);
	return text;
}

struct cost {
	uint64_t text_bytes, ns;
	unsigned long allocations;
	long held, peak;
};

/* A client takes all answers, as it does when it opens. */
static struct cost take_answers(uint32_t servers, uint32_t first)
{
	struct cost cost = {0};
	struct gw_graph_meta *meta = made_graph(servers);
	char **answers = calloc(servers, sizeof(*answers));
	struct gw_region *regions = calloc(servers, sizeof(*regions));
	struct gw_remote *remotes = calloc(servers, sizeof(*remotes));
	struct gw_client client = {.servers = remotes, .server_count = servers};
	for (uint32_t p = 0; p < servers; p++) {
		answers[p] = made_answer(meta, p, p == 0, &regions[p].bytes);
		cost.text_bytes += strlen(answers[p]);
		remotes[p].client = &client;
		snprintf(remotes[p].address.host, sizeof(remotes[p].address.host), "10.0.%u.%u", p / 256, p % 256);
	}
	gw_held_begin();
	uint64_t begun = gw_now_ns();
	for (uint32_t i = 0; i < servers; i++) {
		uint32_t p = (i + first) % servers; /* the server with the book need not answer first */
		struct gw_endpoint endpoint = {.peer = {.graph_id = meta->graph_id,
							.part = p,
							.parts = servers,
							.regions = &regions[p],
							.region_count = 1}};
		bool holds_lists;
		if (gw_remote_check(&remotes[p], &endpoint, answers[p], (uint32_t)strlen(answers[p]), &holds_lists) !=
		    GW_OK)
			fail_msg("server %u: %s", p, gw_last_error());
	}
	if (gw_remotes_check(&client) != GW_OK)
		fail_msg("%s", gw_last_error());
	cost.ns = gw_now_ns() - begun;
	cost.allocations = gw_held_allocations();
	cost.held = gw_held_bytes();
	cost.peak = gw_held_peak();
	assert_true(meta_same(client.meta, meta));
	for (uint32_t p = 0; p < servers; p++)
		gw_catalog_free(&remotes[p].catalog);
	gw_free(client.parts);
	gw_meta_destroy(client.own_meta);
	assert_int_equal(gw_held_end(), 0);
	for (uint32_t p = 0; p < servers; p++)
		free(answers[p]);
	free(answers);
	free(regions);
	free(remotes);
	gw_meta_destroy(meta);
	return cost;
}

static void catalogs_cost_in_proportion_to_the_servers(void **state)
{
	(void)state;
	struct cost before = {0};
	for (uint32_t servers = 32; servers <= 512; servers *= 2) {
		struct cost cost = take_answers(servers, servers / 3);
		print_message("%u servers of %d arrays: %.1f MB of text, %.1f ms, %lu allocations, %.1f MB held\n",
			      servers, ARRAYS, (double)cost.text_bytes / 1e6, (double)cost.ns / 1e6, cost.allocations,
			      (double)cost.held / 1e6);
		if (before.held) { /* twice the servers: at most twice the cost, and a tenth for longer numbers */
			assert_true(cost.text_bytes * 10 <= before.text_bytes * 22);
			assert_true(cost.allocations * 10 <= before.allocations * 22);
			assert_true(cost.held * 10 <= before.held * 22);
			assert_true(cost.peak * 10 <= before.peak * 22);
		}
		before = cost;
	}
	assert_true(before.peak <= (long)HELD_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(catalogs_cost_in_proportion_to_the_servers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
