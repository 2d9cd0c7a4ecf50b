/* --weight of import and partition: every named feature gets a table in every part, which gives each edge its share;
 * and what cannot be a weight is refused, with the edge. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "core/numbers/rng.h"
#include "test/support/alloc_fault.h"
#include "test/support/import_bed.h"
#include "test/support/partition_oracle.h"
#include "test/support/partition_run.h"
#include "test/support/weight_tables.h"

#define EDGE(x) "edge/_N___E___N/" x
enum { ROWS = 600, NODES = 40 };

static const char *const parts_options[] = {"--num-parts=1", "--num-parts=2", "--num-parts=3"};

static void write_edges(const char *name, uint64_t salt)
{
	char *text = malloc(ROWS * 48ull);
	size_t used = (size_t)sprintf(text, "from,to,price,stars\n");
	for (uint64_t i = 0; i < ROWS; i++) {
		uint64_t random = gw_mix64(salt * 1000 + i);
		uint64_t dst = random % 3 ? random >> 8 & 3 : (random >> 8) % NODES; /* in-lists of 0 to 100 edges */
		used += (size_t)sprintf(
			text + used, "%llu,%llu,%llu.%02llu,%llu\n", (unsigned long long)(random >> 16) % NODES,
			(unsigned long long)dst, (unsigned long long)(random >> 24) % 50,
			(unsigned long long)(random >> 32) % 100, (unsigned long long)(random >> 40) % 6);
	}
	import_bed_text(&import_bed, name, text);
	free(text);
}

/* words: more options, at most 4. */
static void check_parts(const char *const *words, const char *const (*weights)[2], size_t count, bool is_union)
{
	char out[160];
	snprintf(out, sizeof(out), "%s/parts", import_bed.root);
	for (size_t p = 0; p < 3; p++) {
		const char *all[8] = {parts_options[p], "--method=random", "--replace"};
		size_t used = 3;
		while (*words && used < 7)
			all[used++] = *words++;
		words -= used - 3;
		partition_run_ok(import_bed.root, import_bed.out, out, all);
		for (size_t i = 0; i < count; i++)
			weight_tables_hold(out, weights[i][0], weights[i][1]);
		struct gw_oracle_result result;
		if (is_union)
			gw_oracle_check(import_bed.out, out, &result);
	}
	assert_int_equal(gw_remove_tree(out), GW_OK);
}

static void columns_and_types(void **state)
{
	(void)state;
	static const char *const none[] = {NULL};
	static const char *const weights[][2] = {{"a:buys:b", "price"},     {"a:buys:b", "stars"},
						 {"b:rev_buys:a", "price"}, {"b:rev_buys:a", "stars"},
						 {"a:sees:a", "price"},     {"a:rev_sees:a", "price"}};
	write_edges("buys.csv", 1);
	write_edges("sees.csv", 2);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "a:buys:b=@buys.csv");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "a:sees:a=@sees.csv");
	import_bed_word(&import_bed, GW_IMPORT_EDGE_COLUMN, "price=price");
	import_bed_word(&import_bed, GW_IMPORT_EDGE_COLUMN, "stars=4");
	import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "price");
	import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "a:buys:b:stars");
	import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "price"); /* once more changes nothing */
	import_bed.options.reverse = true;
	import_bed_open(&import_bed);
	for (size_t i = 0; i < 6; i++)
		weight_table_holds(import_bed.part, weights[i][0], weights[i][1]);
	assert_false(import_bed_has(&import_bed, "edge/a__sees__a/stars.alias"));
	assert_false(import_bed_has(&import_bed, "edge/a__sees__a/weight"));
	check_parts(none, weights, 6, true); /* the tables move with their edges */
	import_bed_reset(&import_bed);
}

static void a_column_is_the_feature_weight(void **state)
{
	(void)state;
	write_edges("buys.csv", 3);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "a:buys:b=@buys.csv");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "a:sees:a=@buys.csv");
	import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "a:buys:b:price");
	import_bed_open(&import_bed);
	weight_table_holds(import_bed.part, "buys", "weight");
	assert_false(import_bed_has(&import_bed, "edge/a__sees__a/weight"));
	import_bed_reset(&import_bed);
}

/* Features of any number type, [edges] or [edges, 1]; and tables that partition makes or makes anew. */
static void every_dtype(void **state)
{
	(void)state;
	static const gw_dtype dtypes[] = {GW_UINT8, GW_UINT16, GW_UINT32,  GW_UINT64,  GW_INT8,   GW_INT16,
					  GW_INT32, GW_INT64,  GW_FLOAT16, GW_FLOAT32, GW_FLOAT64};
	static uint64_t data[ROWS];
	const uint64_t shape[] = {ROWS, 1};
	write_edges("e.csv", 4);
	for (size_t d = 0; d < sizeof(dtypes) / sizeof(dtypes[0]); d++) {
		for (uint64_t i = 0; i < ROWS; i++) {
			uint64_t small = gw_mix64(i * 16 + d) % 120;
			float single = (float)small / 7;
			double wide = (double)small * 1e-300;
			if (dtypes[d] == GW_FLOAT16)
				((uint16_t *)data)[i] = (uint16_t)(small * 200); /* from subnormal to large */
			else if (dtypes[d] == GW_FLOAT32)
				memcpy((uint8_t *)data + i * sizeof(single), &single, sizeof(single));
			else if (dtypes[d] == GW_FLOAT64)
				memcpy((uint8_t *)data + i * sizeof(wide), &wide, sizeof(wide));
			else
				memcpy((uint8_t *)data + i * gw_dtype_bytes(dtypes[d]), &small,
				       gw_dtype_bytes(dtypes[d]));
		}
		import_bed_npy(&import_bed, "w.npy", dtypes[d], d % 2 ? 2 : 1, shape, data);
		for (int named = 0; named < 2; named++) {
			static const char *const words[] = {"--weight=w", "--weight=_N:_E:_N:w", NULL};
			static const char *const weights[][2] = {{"_E", "w"}};
			import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e.csv");
			import_bed_word(&import_bed, GW_IMPORT_EDGE_FEATURE, "w=@w.npy");
			if (named)
				import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "w");
			import_bed_open(&import_bed);
			assert_int_equal(import_bed_has(&import_bed, EDGE("w.alias")), named);
			if (named)
				weight_table_holds(import_bed.part, "_E", "w");
			if (d >= 8) /* partition copies bytes; one width of each kind is enough */
				check_parts(words, weights, 1, false);
			import_bed_reset(&import_bed);
		}
	}
}

static void partition_makes_the_table_of_import(void **state)
{
	(void)state;
	uint64_t ids[2];
	char out[160];
	snprintf(out, sizeof(out), "%s/parts", import_bed.root);
	write_edges("e.csv", 5);
	for (int by_import = 0; by_import < 2; by_import++) {
		const char *all[] = {"--num-parts=3", "--method=random", "--replace", "--weight=price", NULL};
		struct gw_graph_meta *meta = NULL;
		import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e.csv");
		import_bed_word(&import_bed, GW_IMPORT_EDGE_COLUMN, "price=price");
		if (by_import)
			import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "price");
		import_bed_open(&import_bed);
		partition_run_ok(import_bed.root, import_bed.out, out, all);
		assert_int_equal(gw_meta_read(out, &meta), GW_OK);
		ids[by_import] = meta->graph_id;
		gw_meta_destroy(meta);
		import_bed_reset(&import_bed);
	}
	assert_true(ids[0] == ids[1]);
	assert_int_equal(gw_remove_tree(out), GW_OK);
}

static const char chunked[] =
	"{\"node_type\": [\"n\"], \"num_nodes_per_type\": [4], \"edge_type\": [\"n:r:n\", \"n:s:n\"],\n"
	" \"edges\": {\"n:r:n\": {\"format\": {\"name\": \"csv\", \"delimiter\": \" \"}, \"data\": [\"r\"]},\n"
	"  \"n:s:n\": {\"format\": {\"name\": \"csv\", \"delimiter\": \" \"}, \"data\": [\"r\"]}},\n"
	" \"edge_data\": {\"n:r:n\": {\n"
	"  \"w\": {\"format\": {\"name\": \"numpy\"}, \"data\": [\"w0.npy\", \"w1.npy\"]},\n"
	"  \"c\": {\"format\": {\"name\": \"csv\"}, \"data\": [\"c0\", \"c1\"]}}}}\n";

static void write_chunks(float last)
{
	const uint64_t two[] = {2}, three[] = {3};
	const float w[] = {1, 0.5f, 0, 3, last};
	import_bed_text(&import_bed, "metadata.json", chunked);
	import_bed_text(&import_bed, "r", "0 1\n2 1\n3 1\n0 2\n1 2\n");
	import_bed_npy(&import_bed, "w0.npy", GW_FLOAT32, 1, two, w);
	import_bed_npy(&import_bed, "w1.npy", GW_FLOAT32, 1, three, w + 2);
	import_bed_text(&import_bed, "c0", "3\n1\n7\n");
	import_bed_text(&import_bed, "c1", last < 0 ? "4\n-6\n" : "4\n6\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@metadata.json");
}

static void chunks(void **state)
{
	(void)state;
	static const char *const none[] = {NULL};
	static const char *const weights[][2] = {{"n:r:n", "w"}, {"n:r:n", "c"}};
	write_chunks(2);
	import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "w");
	import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "n:r:n:c");
	import_bed_open(&import_bed);
	assert_false(import_bed_has(&import_bed, "edge/n__s__n/w.alias"));
	check_parts(none, weights, 2, true);
	import_bed_reset(&import_bed);
	write_chunks(-2);
	import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "w");
	import_bed_fails(&import_bed, GW_RANGE, "w1.npy, row 2", "weight \"w\" is -2", "0 or more");
	write_chunks(-2);
	import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "c");
	import_bed_fails(&import_bed, GW_RANGE, "c1, row 1", "weight \"c\" is -6", NULL);
	write_chunks(2);
	import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "v");
	import_bed_fails(&import_bed, GW_NOT_FOUND, "--weight v", "not an edge feature", NULL);
}

static void columns_of_other_texts(void **state)
{
	(void)state;
	import_bed_text(&import_bed, "m.mtx",
			"%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n2 1 0.5\n3 1 2\n3 3 4\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@m.mtx");
	import_bed_word(&import_bed, GW_IMPORT_EDGE_COLUMN, "w=3");
	import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "w");
	import_bed_open(&import_bed);
	weight_table_holds(import_bed.part, "_E", "w");
	import_bed_reset(&import_bed);
	import_bed_text(&import_bed, "train.tsv", "a\tlikes\tb\t3\nb\tlikes\tb\t0\nc\tknows\tb\t1\n");
	import_bed_word(&import_bed, GW_IMPORT_TRIPLES, "train=@train.tsv");
	import_bed_word(&import_bed, GW_IMPORT_EDGE_COLUMN, "w=4");
	import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "w");
	import_bed_open(&import_bed);
	weight_table_holds(import_bed.part, "_E", "w");
	import_bed_reset(&import_bed);
}

static void feature_fails(gw_dtype dtype, uint32_t ndim, const void *data, gw_status status, const char *a,
			  const char *b)
{
	const uint64_t shape[] = {4, ndim > 1 ? 2 : 0};
	import_bed_text(&import_bed, "e", "0 1\n1 1\n2 0\n0 2\n");
	import_bed_npy(&import_bed, "w.npy", dtype, ndim, shape, data);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	import_bed_word(&import_bed, GW_IMPORT_EDGE_FEATURE, "w=@w.npy");
	import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "w");
	import_bed_fails(&import_bed, status, "w.npy", a, b);
}

static void refusals(void **state)
{
	(void)state;
	static const float two_columns[8] = {0}, faulty[][4] = {{1, 2, -0.5f, -1}, {1, 2, 0, -1e-45f}};
	static const double infinite[] = {0, 1e308, -0.0, HUGE_VAL};
	static const int16_t negative[] = {5, -7, 5, -7};
	static const uint16_t half[] = {0x3c00, 0x8000, 0x7e00, 0}; /* 1, -0, NaN, 0 */
	feature_fails(GW_FLOAT32, 2, two_columns, GW_UNSUPPORTED, "float32 [4, 2]", "one number for each edge");
	feature_fails(GW_FLOAT32, 1, faulty[0], GW_RANGE, "row 2", "is -0.5");
	feature_fails(GW_FLOAT32, 1, faulty[1], GW_RANGE, "row 3", "is -1.4013e-45");
	feature_fails(GW_FLOAT64, 1, infinite, GW_RANGE, "row 3", "is inf");
	feature_fails(GW_INT16, 1, negative, GW_RANGE, "row 1", "is -7");
	feature_fails(GW_FLOAT16, 1, half, GW_RANGE, "row 2", "is nan");

	import_bed_text(&import_bed, "c.csv", "src,dst,w,v\n0,1,1,1\n1,1,2,1e39\n2,0,-3,1\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@c.csv");
	import_bed_word(&import_bed, GW_IMPORT_EDGE_COLUMN, "w=w");
	import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "w");
	import_bed_fails(&import_bed, GW_RANGE, "c.csv, line 4", "weight \"w\" is -3", NULL);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@c.csv");
	import_bed_word(&import_bed, GW_IMPORT_EDGE_COLUMN, "v=v");
	import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "_N:_E:_N:v");
	import_bed_fails(&import_bed, GW_RANGE, "c.csv, line 3", "\"1e39\" as v is too large", "float32");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@c.csv");
	import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "absent");
	import_bed_fails(&import_bed, GW_NOT_FOUND, "--weight absent", "not an edge feature", "src, dst, w, v");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@c.csv");
	import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "a:r:b:w"); /* a type that does not exist */
	import_bed_fails(&import_bed, GW_NOT_FOUND, "--weight a:r:b:w", NULL, NULL);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@c.csv");
	import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "w");
	import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "v");
	import_bed_fails(&import_bed, GW_INVALID, "columns w and v", "--edge-column NAME=COLUMN", NULL);

	import_bed_npy(&import_bed, "p.npy", GW_INT64, 2, (const uint64_t[]){2, 2}, (const int64_t[]){0, 1, 1, 0});
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@p.npy");
	import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "w");
	import_bed_fails(&import_bed, GW_INVALID, "p.npy", "only text has columns", "--edge-feature");
}

static void partition_refuses(const char *word, int status, const char *told)
{
	char out[160], text[1024];
	const char *all[] = {"--num-parts=2", "--method=random", word, NULL};
	snprintf(out, sizeof(out), "%s/refused", import_bed.root);
	assert_int_equal(partition_run(import_bed.root, import_bed.out, out, all), status);
	partition_text(import_bed.root, "stderr", text, sizeof(text));
	if (!strstr(text, told) || strchr(text, '\n') != strrchr(text, '\n'))
		fail_msg("no \"%s\" in one line: %s", told, text);
}

static void refusals_of_partition(void **state)
{
	(void)state;
	static const float pairs[8] = {0}, bad[] = {1, 2, 3, -4};
	const uint64_t shape[] = {4, 2};
	import_bed_text(&import_bed, "e", "0 1\n1 1\n2 0\n0 2\n");
	import_bed_npy(&import_bed, "pairs.npy", GW_FLOAT32, 2, shape, pairs);
	import_bed_npy(&import_bed, "bad.npy", GW_FLOAT32, 1, shape, bad);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	import_bed_word(&import_bed, GW_IMPORT_EDGE_FEATURE, "pairs=@pairs.npy");
	import_bed_word(&import_bed, GW_IMPORT_EDGE_FEATURE, "bad=@bad.npy");
	import_bed_open(&import_bed);
	partition_refuses("--weight=pairs", 1, "float32 [4, 2] cannot be a weight");
	partition_refuses("--weight=bad", 1, "edge 3 (input row 3) of _N:_E:_N: weight \"bad\" is -4");
	partition_refuses("--weight=absent", 1, "for each edge: _N:_E:_N:bad");
	partition_refuses("--weight=orig_id", 1, "\"orig_id\" is not an edge feature");
	partition_refuses("--weight=a:b:c:bad", 1, "\"a:b:c:bad\" is not an edge feature");
	import_bed_reset(&import_bed);
}

static gw_status import_weights(void *context)
{
	(void)context;
	return gw_import_run(&import_bed.options, &import_bed.stats, import_bed.name);
}

static void shortage(void **state)
{
	(void)state;
	write_chunks(2);
	import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "w");
	import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "c");
	import_bed.options.build.threads = 1;
	import_bed.options.build.replace = true;
	assert_true(gw_fault_each(import_weights, NULL) > 20);
	import_bed_reset(&import_bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_and_types),
		cmocka_unit_test(a_column_is_the_feature_weight),
		cmocka_unit_test(every_dtype),
		cmocka_unit_test(partition_makes_the_table_of_import),
		cmocka_unit_test(chunks),
		cmocka_unit_test(columns_of_other_texts),
		cmocka_unit_test(refusals),
		cmocka_unit_test(refusals_of_partition),
		cmocka_unit_test(shortage),
	};
	return cmocka_run_group_tests_name("weight_tables", tests, import_bed_set_up, import_bed_tear_down);
}
