/* DGL's chunked graph: what DGL's own tools write and read comes in as they mean it; everything else is refused with
 * the file and the key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/support/alloc_fault.h"
#include "test/support/import_bed.h"

#define COUNT(of) (sizeof(of) / sizeof((of)[0]))

static void chunked_graph(void **state)
{
	(void)state;
	static const uint64_t w_src[] = {0, 1, 1}, w_dst[] = {2, 0, 1}, c_src[] = {0, 2}, c_dst[] = {1, 1};
	static const int64_t cites[] = {0, 1, 2, 1};
	static const float feat0[] = {1, 2, 3, 4}, feat1[] = {5, 6};
	const uint64_t edge_shape[] = {2, 2}, two[] = {2, 2}, one[] = {1, 2};
	static const char json[] =
		"{\"graph_name\": \"g\", \"node_type\": [\"author\", \"paper\"],\n"
		" \"num_nodes_per_chunk\": [[1, 1], [2, 1]],\n"
		" \"edge_type\": [\"author:writes:paper\", \"paper:cites:paper\"],\n"
		" \"num_edges_per_chunk\": [[2, 1], [2]],\n"
		" \"edges\": {\"author:writes:paper\": {\"format\": {\"name\": \"csv\", \"delimiter\": \" \"},\n"
		"    \"data\": [\"w0.txt\", \"w1.txt\"]},\n"
		"  \"paper:cites:paper\": {\"format\": {\"name\": \"%s\"}, \"data\": [\"c.npy\"]}},\n"
		" \"node_data\": {\"paper\": {\"feat\": {\"format\": {\"name\": \"numpy\"}, \"data\": [\"f0.npy\", "
		"\"f1.npy\"]},\n"
		"   \"year\": {\"format\": {\"name\": \"csv\", \"delimiter\": \",\"}, \"data\": [\"y.csv\"]}}},\n"
		" \"edge_data\": {\"paper:cites:paper\": {\"w\": {\"format\": {\"name\": \"numpy\"}, "
		"\"data\": [\"f1.npy\"]}}}}\n";
	char text[2048];
	snprintf(text, sizeof(text), json, "numpy");
	import_bed_text(&import_bed, "metadata.json", text);
	import_bed_text(&import_bed, "w0.txt", "0 2\n1 0\n");
	import_bed_text(&import_bed, "w1.txt", "1 1\n");
	import_bed_text(&import_bed, "y.csv", "1999,1\n2000,2\n2001.5,3\n");
	import_bed_npy(&import_bed, "c.npy", GW_INT64, 2, edge_shape, cites);
	import_bed_npy(&import_bed, "f0.npy", GW_FLOAT32, 2, two, feat0);
	import_bed_npy(&import_bed, "f1.npy", GW_FLOAT32, 2, one, feat1);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@metadata.json");
	import_bed_fails(&import_bed, GW_INVALID, "\"w\"", "1 rows", "2 input edges");

	char *edge_data = strstr(text, ",\n \"edge_data\"");
	assert_non_null(edge_data);
	snprintf(edge_data, 3, "}\n");
	import_bed_text(&import_bed, "metadata.json", text);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@metadata.json");
	import_bed_open(&import_bed);
	assert_int_equal(import_bed.meta->ntypes[0].count, 2);
	assert_int_equal(import_bed.meta->ntypes[1].count, 3);
	import_bed_check_edges(&import_bed, "writes", 3, w_src, w_dst, NULL, false);
	import_bed_check_edges(&import_bed, "cites", 2, c_src, c_dst, NULL, false);
	static const float feat[] = {1, 2, 3, 4, 5, 6}, year[] = {1999, 1, 2000, 2, 2001.5, 3};
	assert_memory_equal(import_bed_array(&import_bed, "node/paper/feat"), feat, sizeof(feat));
	assert_memory_equal(import_bed_array(&import_bed, "node/paper/year"), year, sizeof(year));
	import_bed_reset(&import_bed);

	import_bed_text(&import_bed, "w1.txt", "1 1\n0 0\n"); /* one more than promised */
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@metadata.json");
	import_bed_fails(&import_bed, GW_FORMAT, "writes", "4 edges", "3");
	import_bed_text(&import_bed, "w1.txt", "1 3\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@metadata.json");
	import_bed_fails(&import_bed, GW_RANGE, "w1.txt, line 1", "paper", NULL);
	snprintf(text, sizeof(text), json, "parquet");
	import_bed_text(&import_bed, "metadata.json", text);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@metadata.json");
	import_bed_fails(&import_bed, GW_UNSUPPORTED, "cites", "Parquet", "python -m graphwire.chunks");
	import_bed_text(&import_bed, "metadata.json", "{\"node_type\": [\"a\"],\n oops}");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@metadata.json");
	import_bed_fails(&import_bed, GW_FORMAT, "metadata.json, line 2", NULL, NULL);
	static const char *const broken[] = {
		"[]",
		"{}",
		"{\"node_type\": \"a\"}",
		"{\"node_type\": [1], \"num_nodes_per_chunk\": [[1]]}",
		"{\"node_type\": [\"a\"], \"num_nodes_per_chunk\": [[-1]], \"edges\": {}}",
		"{\"node_type\": [\"a\"], \"num_nodes_per_chunk\": [[1]]}",
		"{\"node_type\": [\"a\"], \"edge_type\": [], \"edges\": {}}",
		"{\"node_type\": [\"a\", \"a\"], \"num_nodes_per_type\": [1, 1], \"edge_type\": [], \"edges\": {}}",
		"{\"node_type\": [\"a\"], \"num_nodes_per_type\": [2.5], \"edge_type\": [], \"edges\": {}}",
		"{\"node_type\": [\"a\"], \"num_nodes_per_type\": [2], \"num_nodes_per_chunk\": [[1]],"
		" \"edge_type\": [], \"edges\": {}}",
		"{\"node_type\": [\"a\"], \"num_nodes_per_type\": [1], \"edge_type\": [\"a:b:a\"], \"edges\": {}}",
		"{\"node_type\": [\"a\"], \"num_nodes_per_type\": [1], \"edge_type\": [7], \"edges\": {}}",
		"{\"node_type\": [\"a\"], \"num_nodes_per_type\": [1], \"edge_type\": [], \"edges\": {},"
		" \"node_data\": []}",
		"{\"node_type\": [\"a\"], \"num_nodes_per_type\": [1], \"edge_type\": [], \"edges\": {},"
		" \"edge_data\": {\"a:b:a\": {}}}",
		"{\"node_type\": [\"a\"], \"num_nodes_per_type\": [1], \"edge_type\": [], \"edges\": {},"
		" \"node_data\": {\"a\": {\"x\": {\"format\": {\"name\": \"csv\", \"delimiter\": \"::\"}, "
		"\"data\": [\"y\"]}}}}",
		"{\"node_type\": [\"a\"], \"num_nodes_per_type\": [1], \"edge_type\": [], \"edges\": {},"
		" \"node_data\": {\"a\": {\"x\": {\"format\": {\"name\": \"csv\"}, \"data\": \"y\"}}}}",
		"{\"node_type\": [\"a\"], \"num_nodes_per_chunk\": [[1]], \"edges\": {\"a:b\": {}}}",
		"{\"node_type\": [\"a\"], \"num_nodes_per_chunk\": [[1]], \"edges\": {\"a:b:c\": {}}}",
		"{\"node_type\": [\"a\"], \"num_nodes_per_chunk\": [[1]], \"edges\": {\"a:b:a\": {}}}",
		"{\"node_type\": [\"a\"], \"num_nodes_per_chunk\": [[1]], \"edges\": {}, \"node_data\": {\"b\": {}}}",
	};
	for (size_t i = 0; i < COUNT(broken); i++) {
		import_bed_text(&import_bed, "metadata.json", broken[i]);
		import_bed_word(&import_bed, GW_IMPORT_EDGES, "@metadata.json");
		import_bed_fails(&import_bed, GW_FORMAT, "metadata.json", NULL, NULL);
	}
}

/* The layout of DGL's guide: counts for each type, files in any number of chunks, types of edges in another order than
 * their files, masks of any dtype, labels as CSV, a feature without files, chunks without rows. */
static const char guide[] =
	"{\"graph_name\": \"mag-lsc\", \"node_type\": [\"author\", \"paper\"], \"num_nodes_per_type\": [2, 4],\n"
	" \"edge_type\": [\"paper:cites:paper\", \"author:writes:paper\", \"paper:rev_writes:author\"],\n"
	" \"num_edges_per_type\": [3, 2, 0],\n"
	" \"edges\": {\n"
	"  \"author:writes:paper\": {\"format\": {\"name\": \"csv\", \"delimiter\": \" \"}, \"data\": [\"w0.csv\", "
	"\"w1.csv\"]},\n"
	"  \"paper:cites:paper\": {\"format\": {\"name\": \"csv\", \"delimiter\": \",\"}, \"data\": [\"%s/c.csv\"]},\n"
	"  \"paper:rev_writes:author\": {\"format\": {\"name\": \"numpy\"}, \"data\": []}},\n"
	" \"node_data\": {\"paper\": {\n"
	"  \"label\": {\"format\": {\"name\": \"csv\"}, \"data\": [\"l0.csv\", \"none.csv\", \"l1.csv\"]},\n"
	"  \"train_mask\": {\"format\": {\"name\": \"numpy\"}, \"data\": [\"t0.npy\", \"t1.npy\"]},\n"
	"  \"val_mask\": {\"format\": {\"name\": \"numpy\"}, \"data\": [\"v.npy\"]},\n"
	"  \"test_mask\": {\"format\": {\"name\": \"csv\"}, \"data\": [\"m.csv\"]},\n"
	"  \"year\": {\"format\": {\"name\": \"parquet\"}, \"data\": []},\n"
	"  \"notes\": {\"format\": {\"name\": \"numpy\"}, \"data\": []}}},\n"
	" \"edge_data\": {\"paper:cites:paper\": {\n"
	"  \"count\": {\"format\": {\"name\": \"numpy\"}, \"data\": [\"n0.npy\", \"n1.npy\", \"n2.npy\"]},\n"
	"  \"train_mask\": {\"format\": {\"name\": \"numpy\"}, \"data\": [\"e.npy\"]}}}}\n";

static void write_guide(void)
{
	char json[sizeof(guide) + 128];
	static const int64_t train[] = {1, 0, 0, 1};
	static const uint8_t val[] = {0, 1, 0, 0}, edges[] = {0, 0, 1};
	static const int32_t counts[] = {70, 80, 90};
	const uint64_t one[] = {1}, two[] = {2}, none[] = {0}, four[] = {4, 1}, three[] = {3};
	snprintf(json, sizeof(json), guide, import_bed.root);
	import_bed_text(&import_bed, "metadata.json", json);
	import_bed_text(&import_bed, "w0.csv", "1 2\n0 3\n");
	import_bed_text(&import_bed, "w1.csv", "");
	import_bed_text(&import_bed, "c.csv", "0,1\r\n2,1\r\n3,0\r\n");
	import_bed_text(&import_bed, "l0.csv", "5\n-1\n");
	import_bed_text(&import_bed, "none.csv", "");
	import_bed_text(&import_bed, "l1.csv", "1234567890123\n0\n");
	import_bed_text(&import_bed, "m.csv", "0\n0\n1\n0\n");
	import_bed_npy(&import_bed, "t0.npy", GW_INT64, 1, two, train);
	import_bed_npy(&import_bed, "t1.npy", GW_INT64, 1, two, train + 2);
	import_bed_npy(&import_bed, "v.npy", GW_UINT8, 2, four, val);
	import_bed_npy(&import_bed, "n0.npy", GW_INT32, 1, one, counts);
	import_bed_npy(&import_bed, "n1.npy", GW_INT32, 1, none, counts);
	import_bed_npy(&import_bed, "n2.npy", GW_INT32, 1, two, counts + 1);
	import_bed_npy(&import_bed, "e.npy", GW_UINT8, 1, three, edges);
}

static void check_bools(const char *key, uint64_t rows, const uint8_t *expected)
{
	const struct gw_array *array = gw_part_array(import_bed.part, key);
	assert_non_null(array);
	assert_int_equal(array->meta->dtype, GW_BOOL);
	assert_int_equal(array->meta->ndim, 1);
	assert_int_equal(array->rows, rows);
	assert_memory_equal(array->data, expected, rows);
}

static void as_the_guide_says(void **state)
{
	(void)state;
	static const uint64_t w_src[] = {1, 0}, w_dst[] = {2, 3}, c_src[] = {0, 2, 3}, c_dst[] = {1, 1, 0};
	static const int64_t labels[] = {5, -1, 1234567890123, 0};
	write_guide();
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@metadata.json");
	import_bed.options.name = NULL;
	import_bed_open(&import_bed);
	assert_string_equal(import_bed.name, "mag-lsc");
	assert_string_equal(import_bed.meta->graph_name, "mag-lsc");
	assert_string_equal(import_bed.meta->etypes[0].name, "cites");
	assert_string_equal(import_bed.meta->etypes[2].name, "rev_writes");
	import_bed_check_edges(&import_bed, "writes", 2, w_src, w_dst, NULL, false);
	import_bed_check_edges(&import_bed, "cites", 3, c_src, c_dst, NULL, true);
	import_bed_check_edges(&import_bed, "rev_writes", 0, NULL, NULL, NULL, false);
	assert_int_equal(gw_part_array(import_bed.part, "node/paper/label")->meta->dtype, GW_INT64);
	assert_memory_equal(import_bed_array(&import_bed, "node/paper/label"), labels, sizeof(labels));
	check_bools("node/paper/train_mask", 4, (const uint8_t[]){1, 0, 0, 1});
	check_bools("node/paper/val_mask", 4, (const uint8_t[]){0, 1, 0, 0});
	check_bools("node/paper/test_mask", 4, (const uint8_t[]){0, 0, 1, 0});
	check_bools("edge/paper__cites__paper/train_mask", 3, (const uint8_t[]){1, 0, 0}); /* by destination */
	static const int32_t counts[] = {90, 70, 80};
	assert_memory_equal(import_bed_array(&import_bed, "edge/paper__cites__paper/count"), counts, sizeof(counts));
	assert_false(import_bed_has(&import_bed, "node/paper/notes"));
	import_bed_reset(&import_bed);
}

static void faults_of_the_guide(void **state)
{
	(void)state;
	static const int64_t bad[] = {1, 0, 2, 1};
	const uint64_t four[] = {4}, three[] = {3};
	write_guide();
	import_bed_text(&import_bed, "w1.csv", "1 1\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@metadata.json");
	import_bed_fails(&import_bed, GW_FORMAT, "writes", "3 edges", "\"num_edges_per_type\" gives 2");
	write_guide();
	import_bed_npy(&import_bed, "v.npy", GW_INT64, 1, four, bad);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@metadata.json");
	import_bed_fails(&import_bed, GW_FORMAT, "metadata.json", "val_mask", "0 or 1");
	import_bed_npy(&import_bed, "v.npy", GW_BOOL, 1, three, "\1\0\1");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@metadata.json");
	import_bed_fails(&import_bed, GW_INVALID, "val_mask", "3 rows", "4 nodes");
	write_guide();
	import_bed_text(&import_bed, "l1.csv", "7,8\n9,9\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@metadata.json");
	import_bed_fails(&import_bed, GW_FORMAT, "l1.csv", "2 columns", "have 1");
	import_bed_text(&import_bed, "l1.csv", "7\nx\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@metadata.json");
	import_bed_fails(&import_bed, GW_FORMAT, "l1.csv, line 2", "\"x\"", NULL);
	write_guide();
	import_bed_text(&import_bed, "c.csv", "0,1\n2,4\n3,0\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@metadata.json");
	import_bed_fails(&import_bed, GW_RANGE, "c.csv, line 2", "paper", "4 nodes");
	import_bed_text(&import_bed, "metadata.json", "{\"graph_name\": \"../up\"}");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@metadata.json");
	import_bed.options.name = NULL;
	import_bed_fails(&import_bed, GW_INVALID, "metadata.json", "../up", "--name");
}

static gw_status import_guide(void *context)
{
	(void)context;
	return gw_import_run(&import_bed.options, &import_bed.stats, import_bed.name);
}

static void shortage(void **state)
{
	(void)state;
	write_guide();
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@metadata.json");
	import_bed.options.build.threads = 1;
	import_bed.options.build.replace = true;
	assert_true(gw_fault_each(import_guide, NULL) > 40);
	import_bed_reset(&import_bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chunked_graph),
		cmocka_unit_test(as_the_guide_says),
		cmocka_unit_test(faults_of_the_guide),
		cmocka_unit_test(shortage),
	};
	return cmocka_run_group_tests_name("import_dgl", tests, import_bed_set_up, import_bed_tear_down);
}
