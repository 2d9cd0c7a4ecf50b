/* Replicas of rows: the index as a set with ranks; which nodes a budget buys, against a plain sort; and files and JSONs
 * that are damaged, of other rows, or written without memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/graph/json.h"
#include "core/graph/replicas.h"
#include "core/memory/alloc.h"
#include "core/numbers/rng.h"
#include "server/server.h"
#include "test/support/alloc_fault.h"
#include "test/support/graph_fixture.h"
#include "test/support/many.h"
#include "test/support/part_files.h"
#include "tools/replicate/replicate.h"
#include "tools/verify_replicas.h"

#define SCALE 500 /* nodes of paper */
#define INDEX "node/paper/replica.index"
#define ROWS  "node/paper/feat.replica"

/* --- The index. --- */

static void the_index_is_a_set_with_ranks(void **state)
{
	(void)state;
	static const uint64_t sizes[] = {1, 63, 64, 65, 383, 384, 385, 768, 5000};
	for (uint64_t seed = 1; seed <= 60; seed++) {
		const uint64_t n = sizes[seed % 9], share = gw_mix64(seed) % 100;
		struct gw_replica_block *blocks = gw_calloc(gw_replica_blocks(n), sizeof(*blocks));
		uint64_t count = 0, row;
		for (uint64_t id = 0; id < n; id++) {
			if (gw_mix64(seed * n + id) % 100 < share)
				gw_replica_add(blocks, id);
		}
		const uint64_t all = gw_replica_count(blocks, n);
		for (uint64_t id = 0; id < n; id++) {
			const bool in = gw_mix64(seed * n + id) % 100 < share;
			assert_int_equal(gw_replica_find(blocks, id, &row), in);
			assert_true(row == count);
			count += in;
		}
		assert_true(all == count);
		gw_free(blocks);
	}
}

/* --- What a budget buys. --- */

struct node {
	double hot;
	uint32_t type;
	uint64_t id;
};

static int hotter(const void *a, const void *b)
{
	const struct node *x = a, *y = b;
	if (x->hot != y->hot)
		return x->hot < y->hot ? 1 : -1;
	if (x->type != y->type)
		return x->type < y->type ? -1 : 1;
	return x->id < y->id ? -1 : 1;
}

/* Of equal nodes those that fit are taken; no colder node is taken then. */
static void take_hottest(struct node *nodes, uint64_t n, const uint64_t *cost, uint64_t budget, bool *taken,
			 const uint64_t *first)
{
	double least = 0;
	qsort(nodes, n, sizeof(*nodes), hotter);
	for (uint64_t i = 0; i < n; i++) {
		if (nodes[i].hot <= 0 || (nodes[i].hot < least && least > 0))
			break;
		if (cost[nodes[i].type] == 0)
			continue;
		if (cost[nodes[i].type] > budget) {
			least = nodes[i].hot;
			continue;
		}
		budget -= cost[nodes[i].type];
		taken[first[nodes[i].type] + nodes[i].id] = true;
	}
}

static void the_hottest_nodes_are_chosen(void **state)
{
	(void)state;
	enum { TYPES = 3, MOST = 900 };
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct gw_node_type types[TYPES] = {
			{.count = 1 + gw_mix64(seed) % 400}, {.count = gw_mix64(seed + 1) % 300}, {.count = 100}};
		uint64_t first[TYPES + 1] = {0}, cost[TYPES] = {8, seed % 3 ? 24 : 0, 40}, ones[TYPES] = {1, 1, 1};
		struct gw_graph_meta meta = {.num_ntypes = TYPES, .ntypes = types};
		struct gw_hot_graph graph = {.meta = &meta, .first = first};
		struct gw_replica_block *blocks[TYPES];
		struct node nodes[MOST];
		bool wanted[MOST] = {false};
		double hot[MOST];
		uint64_t n = 0;
		for (uint32_t t = 0; t < TYPES; t++) {
			first[t + 1] = first[t] + types[t].count;
			blocks[t] = gw_calloc(gw_replica_blocks(types[t].count) + 1, sizeof(**blocks));
			for (uint64_t id = 0; id < types[t].count; id++, n++) {
				const uint64_t draw = gw_mix64(seed * 1000 + n);
				/* many ties, some zeros, all magnitudes */
				hot[n] = seed % 2 ? (double)(draw % 7)
						  : (double)(draw % 1000) * 1e-9 / (double)(1 + draw % 97);
				nodes[n] = (struct node){hot[n], t, id};
			}
		}
		const bool by_share = seed % 4 == 0;
		const uint64_t budget = gw_mix64(seed + 7) % 9000;
		if (!by_share)
			take_hottest(nodes, n, cost, budget, wanted, first);
		for (uint32_t t = 0; t < TYPES && by_share; t++) {
			for (uint64_t id = 0; id < types[t].count; id++)
				nodes[id] = (struct node){hot[first[t] + id], t, id};
			if (cost[t])
				take_hottest(nodes, types[t].count, ones, types[t].count / 8, wanted, first);
		}
		assert_int_equal(gw_hot_choose(&graph, hot, cost, by_share ? 0.125 : 0, budget, blocks), GW_OK);
		for (uint32_t t = 0; t < TYPES; t++) {
			for (uint64_t id = 0, row; id < types[t].count; id++) {
				if (gw_replica_find(blocks[t], id, &row) != wanted[first[t] + id])
					fail_msg("seed %d, type %u, node %d: another choice", (int)seed, t, (int)id);
			}
			gw_free(blocks[t]);
		}
	}
}

/* --- Graphs on disk. --- */

static struct gw_replicate_plan plan_of(const char *rows, const char *by)
{
	struct gw_replicate_plan plan = {.batch_size = 50, .seed = 1, .threads = 2, .ntype = "paper"};
	assert_int_equal(gw_replicate_rows_parse(rows, &plan), GW_OK);
	assert_int_equal(gw_replicate_by_parse(by, &plan), GW_OK);
	assert_int_equal(gw_replicate_fanouts_parse("4,3", &plan), GW_OK);
	return plan;
}

static gw_status replicate(const char *folder, const char *rows)
{
	struct gw_replicate_plan plan = plan_of(rows, "vip");
	struct gw_replicate_report report;
	gw_status status = gw_replicate(&plan, folder, true, &report);
	gw_replicate_report_free(&report);
	return status;
}

static void graph_begin(struct gw_fixture *fixture, uint64_t scale)
{
	gw_fixture_begin(fixture, 31, scale, 2);
	gw_fixture_write(fixture);
	assert_int_equal(replicate(fixture->folder, "20%"), GW_OK);
}

static gw_status open_part_0(const char *folder)
{
	struct gw_part_options options = {.mapped = true};
	struct gw_graph_meta *meta;
	struct gw_part *part = NULL;
	gw_status status = gw_meta_read(folder, &meta);
	if (status == GW_OK)
		status = gw_part_open(meta, 0, &options, &part);
	gw_part_close(part);
	gw_meta_destroy(meta);
	return status;
}

static void expect_one_line(gw_status got, gw_status wanted, const char *says)
{
	if (got != wanted || !strstr(gw_last_error(), says) || strchr(gw_last_error(), '\n'))
		fail_msg("wanted %s with \"%s\", got %s: %s", gw_status_text(wanted), says, gw_status_text(got),
			 gw_last_error());
}

/* The first block's words are forged, with correct digests. */
static void a_false_index_is_refused(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	struct gw_graph_meta *meta;
	graph_begin(&fixture, SCALE);
	assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
	const struct gw_array_meta *array = gw_meta_array(meta, 0, INDEX);
	const uint64_t last = array->shape[0] - 1;
	struct part_file file = {0};
	part_file_take(&file, fixture.folder, array->file);
	struct gw_replica_block block;
	memcpy(&block, file.data + 4096 + last * sizeof(block), sizeof(block));
	const struct {
		uint64_t word, value;
		const char *says;
	} faults[] = {
		{0, block.before + 1, "its counts are not those of its bits"},
		{1, block.counts ^ 1ull << 20, "its counts are not those of its bits"},
		{2, ~block.bits[0], "its counts are not those of its bits"},
		{7, block.bits[5] | 1ull << 63, "the type has fewer nodes"},
	};
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		part_forge(fixture.folder, "fixture.json", 0, INDEX, last * sizeof(block) + 8 * faults[i].word,
			   &faults[i].value, 8);
		expect_one_line(open_part_0(fixture.folder), i < 3 ? GW_FORMAT : GW_RANGE, faults[i].says);
		part_forge(fixture.folder, "fixture.json", 0, INDEX, last * sizeof(block), &block, sizeof(block));
	}
	/* a node of the part itself, with counts that fit: part 0 owns node 0 */
	struct gw_replica_block *all = gw_calloc(last + 1, sizeof(*all));
	memcpy(all, file.data + 4096, (last + 1) * sizeof(*all));
	gw_replica_add(all, 0);
	gw_replica_count(all, (last + 1) * GW_REPLICA_BLOCK_IDS);
	part_forge(fixture.folder, "fixture.json", 0, INDEX, 0, all, (last + 1) * sizeof(*all));
	expect_one_line(open_part_0(fixture.folder), GW_RANGE, "node 0: the part owns it");
	memcpy(all, file.data + 4096, (last + 1) * sizeof(*all));
	gw_replica_add(all, SCALE - 1);
	gw_replica_add(all, SCALE - 2);
	gw_replica_add(all, SCALE - 3);
	const uint64_t more = gw_replica_count(all, (last + 1) * GW_REPLICA_BLOCK_IDS);
	if (more != gw_meta_array(meta, 0, ROWS)->shape[0]) {
		part_forge(fixture.folder, "fixture.json", 0, INDEX, 0, all, (last + 1) * sizeof(*all));
		expect_one_line(open_part_0(fixture.folder), GW_FORMAT, "rows, but its index has");
	}
	gw_free(all);
	free(file.data);
	gw_meta_destroy(meta);
	gw_fixture_end(&fixture);
}

static void damaged_files_are_refused(void **state)
{
	(void)state;
	static const char *const keys[] = {INDEX, ROWS};
	struct gw_fixture fixture;
	struct gw_graph_meta *meta;
	graph_begin(&fixture, SCALE);
	assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
	for (int i = 0; i < 2; i++) {
		struct part_file file = {0};
		char name[128];
		snprintf(name, sizeof(name), "part0/%s.npy", keys[i]);
		part_file_take(&file, fixture.folder, name);
		part_file_put(&file, file.bytes - 1);
		expect_one_line(open_part_0(fixture.folder), GW_FORMAT, "truncated");
		part_file_put(&file, 4096);
		expect_one_line(open_part_0(fixture.folder), GW_FORMAT, "truncated");
		file.data[file.bytes - 3] ^= 4;
		part_file_put(&file, file.bytes);
		expect_one_line(open_part_0(fixture.folder), GW_DIGEST, "does not have its digest");
		remove(file.path);
		expect_one_line(open_part_0(fixture.folder), GW_NOT_FOUND, keys[i]);
		file.data[file.bytes - 3] ^= 4;
		part_file_put(&file, file.bytes);
		assert_int_equal(open_part_0(fixture.folder), GW_OK);
		free(file.data);
	}
	gw_meta_destroy(meta);
	gw_fixture_end(&fixture);
}

static void expect_json(const char *text, const char *from, const char *to, gw_status wanted, const char *says)
{
	struct gw_graph_meta *meta;
	const char *at = strstr(text, from);
	assert_non_null(at);
	char *changed = gw_calloc(strlen(text) + strlen(to) + 1, 1);
	memcpy(changed, text, (size_t)(at - text));
	strcat(strcat(changed, to), at + strlen(from));
	gw_json_digest_set(changed, strlen(changed));
	gw_status status = gw_meta_parse(changed, strlen(changed), "graph.json", &meta);
	if (wanted == GW_OK)
		assert_int_equal(status, GW_OK);
	else
		expect_one_line(status, wanted, says);
	gw_meta_destroy(meta);
	gw_free(changed);
}

static void the_record_is_checked(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	struct gw_graph_meta *meta, *book;
	char *text, *printed;
	graph_begin(&fixture, SCALE);
	assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
	assert_int_equal(meta->minor, GW_FORMAT_MINOR_REPLICAS);
	assert_int_equal(gw_meta_print(meta, &text), GW_OK);
	expect_json(text, "\"by\":\"vip\"", "\"by\":\"luck\"", GW_OK, "");
	expect_json(text, "\"by\":\"vip\"", "\"by\":7", GW_FORMAT, "by");
	expect_json(text, "\"by\":\"vip\"", "\"by\":\"vip\",\"x\":1", GW_FORMAT, "besides by and of");
	expect_json(text, "\"of\":\"", "\"of\":\"x", GW_FORMAT, "of");
	expect_json(text, "\"replicas\": {",
		    "\"replicas\": {\"node/venue/x\":{\"by\":\"vip\",\"of\":\"0123456789abcdef\"},", GW_FORMAT,
		    "replicas");
	expect_json(text, "\"node/paper/feat\": {\"by\"", "\"node/paper/label\": {\"by\"", GW_FORMAT, "replicas");
	expect_json(text, "\"minor\": 5", "\"minor\": 4", GW_FORMAT, "");
	expect_json(text, "\"minor\": 5", "\"minor\": 6", GW_OK, "");
	/* graph_id does not depend on replicas, and the book has the record */
	uint64_t id = meta->graph_id;
	assert_int_equal(gw_meta_print_book(meta, &printed), GW_OK);
	assert_int_equal(gw_meta_parse_book(printed, strlen(printed), "book", &book), GW_OK);
	assert_true(book->num_replicas == meta->num_replicas && meta->num_replicas > 1);
	gw_meta_destroy(book);
	gw_free(printed);
	gw_meta_destroy(meta);
	assert_int_equal(replicate(fixture.folder, "0"), GW_OK);
	assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
	assert_true(meta->graph_id == id && meta->num_replicas == 0);
	gw_meta_destroy(meta);
	gw_free(text);
	gw_fixture_end(&fixture);
}

/* A feature is written anew: its replicas are of other rows. */
static void replicas_of_other_rows_are_refused(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	struct gw_graph_meta *meta;
	struct gw_server *server;
	const float value = 4711, other = -4711;
	struct gw_server_options options = {
		.threads = 1, .numa = GW_NUMA_LOCAL, .huge = GW_HUGE_OFF, .insecure = true, .transport = "tcp"};
	graph_begin(&fixture, SCALE);
	options.part_config = fixture.folder;
	assert_int_equal(gw_address_parse("127.0.0.1:0", &options.listen), GW_OK);
	assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
	assert_int_equal(gw_verify_replicas(meta, 1), GW_OK);
	gw_meta_destroy(meta);
	part_forge(fixture.folder, "fixture.json", 1, "node/paper/feat", 0, &value, sizeof(value));
	expect_one_line(gw_server_start(&options, &server), GW_DIGEST, "graphwire replicate");
	assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
	expect_one_line(gw_verify_replicas(meta, 1), GW_DIGEST, "node/paper/feat");
	gw_meta_destroy(meta);
	assert_int_equal(replicate(fixture.folder, "20%"), GW_OK);
	/* a row that is none of its owner's, with correct digests: only verify can know */
	part_forge(fixture.folder, "fixture.json", 0, ROWS, 0, &other, sizeof(other));
	assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
	expect_one_line(gw_verify_replicas(meta, 1), GW_FORMAT, "row 0: not the row of node");
	gw_meta_destroy(meta);
	gw_fixture_end(&fixture);
}

/* --- Memory. --- */

static gw_status replicate_once(void *context)
{
	return replicate(context, "20%");
}

/* A failed run leaves the graph as it was. */
static void memory_short(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	struct gw_graph_meta *before, *after;
	graph_begin(&fixture, 30);
	assert_int_equal(gw_meta_read(fixture.folder, &before), GW_OK);
	assert_true(gw_fault_each(replicate_once, fixture.folder) > 100);
	assert_int_equal(gw_meta_read(fixture.folder, &after), GW_OK);
	assert_int_equal(after->parts[0].count, before->parts[0].count);
	assert_int_equal(gw_verify_replicas(after, 1), GW_OK);
	gw_meta_destroy(before);
	gw_meta_destroy(after);
	gw_fixture_end(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_index_is_a_set_with_ranks),
		cmocka_unit_test(the_hottest_nodes_are_chosen),
		cmocka_unit_test(a_false_index_is_refused),
		cmocka_unit_test(damaged_files_are_refused),
		cmocka_unit_test(the_record_is_checked),
		cmocka_unit_test(replicas_of_other_rows_are_refused),
		cmocka_unit_test(memory_short),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
