/* Imports of small inputs of every form, read back through an opened part; and of malformed ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "test/support/alloc_fault.h"
#include "test/support/import_bed.h"

#define EDGES     "_N:_E:_N"
#define NODE(x)   "node/_N/" x
#define EDGE(x)   "edge/_N___E___N/" x
#define COUNT(of) (sizeof(of) / sizeof((of)[0]))

static void dense_ids_stay(void **state)
{
	(void)state;
	static const uint64_t src[] = {5, 0, 5, 2, 2}, dst[] = {0, 5, 0, 2, 1};
	import_bed_text(&import_bed, "edges.tsv", "5\t0\n0\t5\n5\t0\n2\t2\n2\t1\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@edges.tsv");
	import_bed_open(&import_bed);
	assert_int_equal(import_bed.meta->ntypes[0].count, 6);
	import_bed_check_edges(&import_bed, EDGES, 5, src, dst, NULL, false);
	const int64_t *orig = import_bed_array(&import_bed, NODE("orig_id"));
	for (int64_t i = 0; i < 6; i++)
		assert_int_equal(orig[i], i);
	import_bed_reset(&import_bed);

	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@edges.tsv");
	import_bed_word(&import_bed, GW_IMPORT_NUM_NODES, "9");
	import_bed_open(&import_bed);
	assert_int_equal(import_bed.meta->ntypes[0].count, 9);
	import_bed_reset(&import_bed);
}

/* Edges without data keep the row that they were where that is asked for; both directions of one have one row. */
static void edges_keep_their_rows(void **state)
{
	(void)state;
	static const uint64_t src[] = {5, 0, 5, 2, 2}, dst[] = {0, 5, 0, 2, 1};
	import_bed_text(&import_bed, "edges.tsv", "5\t0\n0\t5\n5\t0\n2\t2\n2\t1\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@edges.tsv");
	import_bed.options.edge_ids = true;
	import_bed_open(&import_bed);
	import_bed_check_edges(&import_bed, EDGES, 5, src, dst, NULL, true);
	import_bed_reset(&import_bed);

	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@edges.tsv");
	import_bed.options.edge_ids = import_bed.options.undirected = true;
	import_bed_open(&import_bed);
	/* 5-0 twice and the turn of 0-5; 2-1; its turn and the loop; 0-5 and the turns of 5-0 */
	static const uint32_t rows[] = {0, 2, 1, 4, 4, 3, 1, 0, 2}, inverse[] = {0, 2, 1, 5, 3};
	assert_memory_equal(import_bed_array(&import_bed, EDGE("orig_id")), rows, sizeof(rows));
	assert_memory_equal(import_bed_array(&import_bed, EDGE("orig_id.inverse")), inverse, sizeof(inverse));
	assert_int_equal(import_bed_rows(&import_bed, EDGE("orig_id.inverse")), COUNT(inverse));
	import_bed_reset(&import_bed);
}

static void sparse_ids_are_compacted(void **state)
{
	(void)state;
	static const uint64_t src[] = {0, 2, 0}, dst[] = {1, 0, 3};
	static const int64_t expected[] = {1000000007, 12, 9000000000000000000, 3};
	import_bed_text(&import_bed, "edges.csv",
			"from,to\n1000000007,12\n9000000000000000000,1000000007\n1000000007,3\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@edges.csv");
	import_bed_open(&import_bed);
	import_bed_check_edges(&import_bed, EDGES, 3, src, dst, NULL, false);
	assert_memory_equal(import_bed_array(&import_bed, NODE("orig_id")), expected, sizeof(expected));
	import_bed_reset(&import_bed);
}

static void text_ids_keep_their_names(void **state)
{
	(void)state;
	static const uint64_t src[] = {0, 1, 3}, dst[] = {1, 2, 0};
	import_bed_text(&import_bed, "edges.csv", "ann,\"b, ob\"\n\"b, ob\",\"c \"\"q\"\"\"\n7,ann\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@edges.csv");
	import_bed_open(&import_bed);
	import_bed_check_edges(&import_bed, EDGES, 3, src, dst, NULL, false);
	static const char *const names[] = {"ann", "b, ob", "c \"q\"", "7"};
	for (uint64_t i = 0; i < 4; i++)
		assert_true(import_bed_string_is(&import_bed, NODE("orig_id"), i, names[i]));
	import_bed_reset(&import_bed);
}

static void columns_by_name(void **state)
{
	(void)state;
	static const uint64_t src[] = {1, 2, 1, 3}, dst[] = {0, 0, 0, 0};
	static const int64_t time[] = {30500, 10000, 10250, 10000};
	import_bed_text(&import_bed, "e.csv",
			"w,when,to,from,r\n0.5,30.5,0,1,-3\n2,10,0,2,1e2\n0,10.25,0,1,0.1\n1,10.0009,0,3,7\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e.csv");
	import_bed_word(&import_bed, GW_IMPORT_EDGE_COLUMN, "rating=r");
	import_bed.options.src_column = "from";
	import_bed.options.dst_column = "to";
	import_bed_word(&import_bed, GW_IMPORT_TIME, "when");
	import_bed.options.time_digits = 3;
	import_bed.options.time_digits_given = true;
	import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "w");
	import_bed_open(&import_bed);
	import_bed_check_edges(&import_bed, EDGES, 4, src, dst, time, true);
	const int64_t *stored = import_bed_array(&import_bed, EDGE("time"));
	const float *weight = import_bed_array(&import_bed, EDGE("weight")),
		    *rating = import_bed_array(&import_bed, EDGE("rating"));
	static const float weights[] = {2, 1, 0, 0.5f}, ratings[] = {100, 7, 0.1f, -3};
	static const int64_t times[] = {10000, 10000, 10250, 30500};
	for (int i = 0; i < 4; i++) {
		assert_true(weight[i] == weights[i] && rating[i] == ratings[i]);
		assert_int_equal(stored[i], times[i]);
	}
	assert_true(import_bed_has(&import_bed, EDGE("weight.alias")));
	assert_int_equal(import_bed.meta->etypes[0].order, GW_ORDER_TIME_SRC);
	import_bed_reset(&import_bed);
}

static void several_types(void **state)
{
	(void)state;
	static const uint64_t w_src[] = {0, 1, 0, 2}, w_dst[] = {0, 0, 1, 2}, c_src[] = {2, 0}, c_dst[] = {1, 1};
	import_bed_text(&import_bed, "w1.tsv", "ann\t10\nbob\t10\n");
	import_bed_text(&import_bed, "w2.tsv", "ann\t11\ncid\t12\n");
	import_bed_text(&import_bed, "c.csv", "citing,cited\n2,1\n0,1\n");
	import_bed_gzip(&import_bed, "w2.tsv.gz", "ann\t1\ncid\t2\n", 12);
	import_bed_text(&import_bed, "w1.tsv", "ann\t0\nbob\t0\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "author:writes:paper=@w1.tsv");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "author:writes:paper=@w2.tsv.gz");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "paper:cites:paper=@c.csv");
	import_bed_word(&import_bed, GW_IMPORT_NUM_NODES, "paper=5");
	import_bed.options.reverse = true;
	import_bed.options.transpose = true;
	import_bed_open(&import_bed);
	assert_int_equal(import_bed.meta->num_ntypes, 2);
	assert_int_equal(import_bed.meta->num_etypes, 4);
	import_bed_check_edges(&import_bed, "author:writes:paper", 4, w_src, w_dst, NULL, false);
	import_bed_check_edges(&import_bed, "paper:rev_writes:author", 4, w_dst, w_src, NULL, false);
	import_bed_check_edges(&import_bed, "paper:cites:paper", 2, c_src, c_dst, NULL, false);
	import_bed_check_edges(&import_bed, "paper:rev_cites:paper", 2, c_dst, c_src, NULL, false);
	uint32_t writes, rev;
	assert_int_equal(gw_meta_etype(import_bed.meta, "writes", &writes), GW_OK);
	assert_int_equal(gw_meta_etype(import_bed.meta, "rev_writes", &rev), GW_OK);
	assert_int_equal(import_bed.meta->etypes[writes].reverse, rev);
	assert_int_equal(import_bed.meta->etypes[rev].reverse, writes);
	assert_true(import_bed_string_is(&import_bed, "node/author/orig_id", 2, "cid"));
	assert_true(import_bed_has(&import_bed, "edge/author__writes__paper/out/eid"));
	import_bed_reset(&import_bed);
}

static void undirected(void **state)
{
	(void)state;
	static const uint64_t src[] = {0, 1, 2, 0, 1, 0}, dst[] = {1, 1, 0, 1, 0, 2};
	import_bed_text(&import_bed, "e", "0 1 5\n1 1 6\n2 0 7\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	import_bed.options.undirected = true;
	import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "3");
	import_bed_open(&import_bed);
	/* 0-1 and its turn, the loop once, 2-0 and its turn */
	static const uint64_t all_src[] = {0, 1, 2, 1, 0}, all_dst[] = {1, 1, 0, 0, 2};
	import_bed_check_edges(&import_bed, EDGES, 5, all_src, all_dst, NULL, false);
	const uint32_t *rows = import_bed_array(&import_bed, EDGE("orig_id"));
	const float *weight = import_bed_array(&import_bed, EDGE("weight"));
	for (int i = 0; i < 5; i++)
		assert_true(weight[i] == (float)(5 + rows[i]));
	assert_int_equal(import_bed.meta->etypes[0].reverse, 0);
	import_bed_reset(&import_bed);
	(void)src, (void)dst;
}

static void triples(void **state)
{
	(void)state;
	static const uint64_t head[] = {0, 2, 0, 3}, tail[] = {1, 1, 1, 0};
	static const int64_t rel[] = {0, 1, 1, 0};
	import_bed_text(&import_bed, "train", "/m/a\tlikes\t/m/b\n#c\tknows it\t/m/b\n");
	import_bed_text(&import_bed, "valid", "/m/a\tknows it\t/m/b\n");
	import_bed_text(&import_bed, "test", "\"d\"@en\tlikes\t/m/a\n");
	import_bed_word(&import_bed, GW_IMPORT_TRIPLES, "train=@train");
	import_bed_word(&import_bed, GW_IMPORT_TRIPLES, "val=@valid");
	import_bed_word(&import_bed, GW_IMPORT_TRIPLES, "test=@test");
	import_bed.options.text.comments[0] = '\0';
	import_bed_open(&import_bed);
	import_bed_check_edges(&import_bed, EDGES, 4, head, tail, rel, true);
	assert_int_equal(import_bed.meta->etypes[0].relations, 2);
	assert_true(import_bed_string_is(&import_bed, EDGE("rel.names"), 0, "likes"));
	assert_true(import_bed_string_is(&import_bed, EDGE("rel.names"), 1, "knows it"));
	assert_true(import_bed_string_is(&import_bed, NODE("orig_id"), 3, "\"d\"@en"));
	const uint32_t *rows = import_bed_array(&import_bed, EDGE("orig_id"));
	const uint8_t *rels = import_bed_array(&import_bed, EDGE("rel"));
	const uint8_t *train = import_bed_array(&import_bed, EDGE("train_mask")),
		      *val = import_bed_array(&import_bed, EDGE("val_mask")),
		      *test = import_bed_array(&import_bed, EDGE("test_mask"));
	for (int i = 0; i < 4; i++) {
		assert_int_equal(rels[i], rel[rows[i]]);
		assert_int_equal(train[i], rows[i] < 2);
		assert_int_equal(val[i], rows[i] == 2);
		assert_int_equal(test[i], rows[i] == 3);
	}
	import_bed_reset(&import_bed);
}

static void triples_with_dictionaries(void **state)
{
	(void)state;
	static const uint64_t head[] = {2, 0}, tail[] = {0, 2};
	static const int64_t rel[] = {1, 0};
	import_bed_text(&import_bed, "entities.dict", "1\tunused\n0\tb\n2\ta\n");
	import_bed_text(&import_bed, "relations.dict", "0\tr0\n1\tr1\n");
	import_bed_text(&import_bed, "names", "a\tr1\tb\nb\tr0\ta\n");
	import_bed_text(&import_bed, "numbers", "2\t1\t0\n0\t0\t2\n");
	static const char *const inputs[] = {"names", "numbers"};
	for (int i = 0; i < 2; i++) {
		char relations[256];
		snprintf(relations, sizeof(relations), "%s/relations.dict", import_bed.root);
		import_bed_word(&import_bed, GW_IMPORT_TRIPLES, "@%s", inputs[i]);
		import_bed_word(&import_bed, GW_IMPORT_NODES, "@entities.dict");
		import_bed.options.relations = relations;
		import_bed_open(&import_bed);
		import_bed_check_edges(&import_bed, EDGES, 2, head, tail, rel, true);
		assert_int_equal(import_bed.meta->ntypes[0].count, 3);
		assert_true(import_bed_string_is(&import_bed, NODE("orig_id"), 1, "unused"));
		assert_true(import_bed_string_is(&import_bed, EDGE("rel.names"), 1, "r1"));
		import_bed_reset(&import_bed);
	}
	import_bed_text(&import_bed, "names", "a\tr1\tb\nb\tr0\tzz\n");
	import_bed_word(&import_bed, GW_IMPORT_TRIPLES, "@names");
	import_bed_word(&import_bed, GW_IMPORT_NODES, "@entities.dict");
	import_bed_fails(&import_bed, GW_RANGE, "names, line 2", "not in the list", NULL);
	import_bed_text(&import_bed, "entities.dict", "1\tunused\n0\tb\n1\ta\n");
	import_bed_word(&import_bed, GW_IMPORT_TRIPLES, "@names");
	import_bed_word(&import_bed, GW_IMPORT_NODES, "@entities.dict");
	import_bed_fails(&import_bed, GW_FORMAT, "entities.dict", "each once", NULL);
	import_bed_text(&import_bed, "list", "a\nb\na\n");
	import_bed_text(&import_bed, "e", "a b\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	import_bed_word(&import_bed, GW_IMPORT_NODES, "@list");
	import_bed_fails(&import_bed, GW_FORMAT, "list, line 3", "before", NULL);
}

static void numpy_edges(void **state)
{
	(void)state;
	static const int32_t by_row[] = {3, 0, 1, 2, 3, 1}, by_column[] = {3, 1, 3, 0, 2, 1};
	static const int16_t narrow[] = {3, 0, 1, 2, 3, 1};
	static const uint64_t src[] = {3, 1, 3}, dst[] = {0, 2, 1};
	const uint64_t rows[] = {3, 2}, columns[] = {2, 3};
	import_bed_npy(&import_bed, "narrow.npy", GW_INT16, 2, rows, narrow);
	import_bed_npy(&import_bed, "rows.npy", GW_INT32, 2, rows, by_row);
	import_bed_npy(&import_bed, "columns.npy", GW_INT32, 2, columns, by_column);
	static const char *const files[] = {"rows.npy", "columns.npy", "narrow.npy"};
	for (int i = 0; i < 3; i++) {
		import_bed_word(&import_bed, GW_IMPORT_EDGES, "@%s", files[i]);
		import_bed_open(&import_bed);
		import_bed_check_edges(&import_bed, EDGES, 3, src, dst, NULL, false);
		import_bed_reset(&import_bed);
	}
	static const int32_t negative[] = {3, 0, 1, -2, 3, 1};
	import_bed_npy(&import_bed, "bad.npy", GW_INT32, 2, rows, negative);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@bad.npy");
	import_bed_fails(&import_bed, GW_RANGE, "bad.npy", "-2", NULL);
	static const float real[6] = {0};
	import_bed_npy(&import_bed, "bad.npy", GW_FLOAT32, 2, rows, real);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@bad.npy");
	import_bed_fails(&import_bed, GW_FORMAT, "bad.npy", "float32", NULL);
	const uint64_t three[] = {2, 3};
	import_bed_npy(&import_bed, "bad.npy", GW_INT32, 1, three, by_row);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@bad.npy");
	import_bed_fails(&import_bed, GW_FORMAT, "bad.npy", "[E, 2]", NULL);
}

static void features_and_masks(void **state)
{
	(void)state;
	static const float feat[] = {0, 1, 10, 11, 20, 21, 30, 31};
	static const int64_t train[] = {2, 0}, labels[] = {7, 8, 9, 10};
	static const uint8_t val[] = {0, 1, 0, 1};
	static const double edge[] = {0.5, 1.5, 2.5};
	const uint64_t feat_shape[] = {4, 2}, four[] = {4}, two[] = {2}, three[] = {3};
	import_bed_npy(&import_bed, "feat.npy", GW_FLOAT32, 2, feat_shape, feat);
	import_bed_npy(&import_bed, "label.npy", GW_INT64, 1, four, labels);
	import_bed_npy(&import_bed, "train.npy", GW_INT64, 1, two, train);
	import_bed_npy(&import_bed, "val.npy", GW_BOOL, 1, four, val);
	import_bed_npy(&import_bed, "edge.npy", GW_FLOAT64, 1, three, edge);
	import_bed_text(&import_bed, "e", "2 1\n1 0\n0 1\n");
	for (int list = 0; list < 2; list++) {
		import_bed_text(&import_bed, "names", "x\ny\nz\nlonely\n");
		import_bed_text(&import_bed, "e", list ? "z y\ny x\nx y\n" : "2 1\n1 0\n0 1\n");
		import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
		import_bed_word(&import_bed, GW_IMPORT_NODE_FEATURE, "feat=@feat.npy");
		import_bed_word(&import_bed, GW_IMPORT_NODE_FEATURE, "_N:label=@label.npy");
		import_bed_word(&import_bed, GW_IMPORT_NODE_MASK, "train_mask=@train.npy");
		import_bed_word(&import_bed, GW_IMPORT_NODE_MASK, "val_mask=@val.npy");
		import_bed_word(&import_bed, GW_IMPORT_EDGE_FEATURE, "_N:_E:_N:w=@edge.npy");
		if (list)
			import_bed_word(&import_bed, GW_IMPORT_NODES, "@names");
		else
			import_bed_word(&import_bed, GW_IMPORT_NUM_NODES, "4");
		import_bed_open(&import_bed);
		assert_int_equal(import_bed.meta->ntypes[0].count, 4); /* node 3 has features, but no edges */
		assert_memory_equal(import_bed_array(&import_bed, NODE("feat")), feat, sizeof(feat));
		assert_memory_equal(import_bed_array(&import_bed, NODE("label")), labels, sizeof(labels));
		static const uint8_t mask[] = {1, 0, 1, 0};
		assert_memory_equal(import_bed_array(&import_bed, NODE("train_mask")), mask, 4);
		assert_memory_equal(import_bed_array(&import_bed, NODE("val_mask")), val, 4);
		static const double permuted[] = {1.5, 2.5, 0.5};
		assert_memory_equal(import_bed_array(&import_bed, EDGE("w")), permuted, sizeof(permuted));
		import_bed_reset(&import_bed);
	}
	import_bed_text(&import_bed, "e", "2 1\n1 0\n0 3\n"); /* compact: 2, 1, 0, 3 */
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	import_bed_word(&import_bed, GW_IMPORT_NODE_FEATURE, "feat=@feat.npy");
	import_bed.options.ids = GW_IDS_COMPACT;
	import_bed_open(&import_bed);
	static const float picked[] = {20, 21, 10, 11, 0, 1, 30, 31};
	assert_memory_equal(import_bed_array(&import_bed, NODE("feat")), picked, sizeof(picked));
	import_bed_reset(&import_bed);

	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	import_bed_word(&import_bed, GW_IMPORT_NODE_FEATURE, "feat=@train.npy");
	import_bed_fails(&import_bed, GW_INVALID, "train.npy", "2 rows", "4 nodes");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	import_bed_word(&import_bed, GW_IMPORT_NODE_MASK, "m=@label.npy");
	import_bed_fails(&import_bed, GW_RANGE, "label.npy", "node 7", NULL);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	import_bed_word(&import_bed, GW_IMPORT_EDGE_FEATURE, "w=@label.npy");
	import_bed_fails(&import_bed, GW_INVALID, "label.npy", "4 rows", "3 input edges");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	import_bed_word(&import_bed, GW_IMPORT_NODE_FEATURE, "paper:f=@label.npy");
	import_bed_fails(&import_bed, GW_NOT_FOUND, "paper", NULL, NULL);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	import_bed_word(&import_bed, GW_IMPORT_NODE_FEATURE, "../f=@label.npy");
	import_bed_fails(&import_bed, GW_INVALID, "../f", NULL, NULL);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	import_bed_word(&import_bed, GW_IMPORT_NODE_FEATURE, "f=@feat.npy");
	import_bed_word(&import_bed, GW_IMPORT_NODE_FEATURE, "f=@label.npy");
	import_bed_fails(&import_bed, GW_EXISTS, "\"f\"", NULL, NULL);
}

static void faults(void **state)
{
	(void)state;
	import_bed_fails(&import_bed, GW_INVALID, "--from", NULL, NULL);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@missing.tsv");
	import_bed_fails(&import_bed, GW_NOT_FOUND, "missing.tsv", NULL, NULL);
	import_bed_text(&import_bed, "e", "1 2\n2 7\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	import_bed_word(&import_bed, GW_IMPORT_NUM_NODES, "7");
	import_bed_fails(&import_bed, GW_RANGE, "e, line 2", "7 nodes", NULL);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "a/b:x:c=@e");
	import_bed_fails(&import_bed, GW_INVALID, "a/b", NULL, NULL);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "9");
	import_bed_fails(&import_bed, GW_FORMAT, "e, line 1", "weight", "column 9");
	import_bed_text(&import_bed, "w", "1 2 1\n# c\n2 7 -0.5\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@w");
	import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "3");
	import_bed_fails(&import_bed, GW_RANGE, "w, line 3", "-0.5", NULL);
	import_bed_text(&import_bed, "w", "1 2 1\n2 7 nan\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@w");
	import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "3");
	import_bed_fails(&import_bed, GW_RANGE, "w, line 2", "nan", NULL);
	import_bed_text(&import_bed, "late", "1 2\n3 4\nx 5\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@late");
	import_bed.options.ids = GW_IDS_DENSE;
	import_bed_fails(&import_bed, GW_FORMAT, "late, line 3", "\"x\"", "--ids text");
	import_bed_text(&import_bed, "bin", "1 2\n\xff\xfe 3\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@bin");
	import_bed.options.ids = GW_IDS_DENSE;
	import_bed_fails(&import_bed, GW_FORMAT, "bin, line 2", NULL, NULL);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	import_bed.options.src_column = "user";
	import_bed_fails(&import_bed, GW_NOT_FOUND, "\"user\"", "1, 2", NULL);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "a:r:b=@e");
	import_bed.options.undirected = true;
	import_bed_fails(&import_bed, GW_INVALID, "--undirected", "--reverse", NULL);
}

static void empty_input_needs_a_count(void **state)
{
	(void)state;
	const uint64_t shape[] = {0, 2};
	import_bed_text(&import_bed, "none", "");
	import_bed_text(&import_bed, "header", "src,dst\n");
	import_bed_text(&import_bed, "list", "a\nb\n");
	import_bed_text(&import_bed, "some", "0 1\n");
	import_bed_gzip(&import_bed, "none.gz", "# nothing\n", 10);
	import_bed_npy(&import_bed, "none.npy", GW_INT64, 2, shape, NULL);
	static const char *const inputs[] = {"none", "header", "none.gz", "none.npy"};
	for (size_t i = 0; i < COUNT(inputs); i++) {
		import_bed_word(&import_bed, GW_IMPORT_EDGES, "@%s", inputs[i]);
		import_bed_fails(&import_bed, GW_FORMAT, inputs[i], "no edges", "--num-nodes");
		import_bed_word(&import_bed, GW_IMPORT_EDGES, "@%s", inputs[i]);
		import_bed_word(&import_bed, GW_IMPORT_NUM_NODES, "3");
		import_bed.options.transpose = true;
		import_bed_open(&import_bed);
		assert_int_equal(import_bed.meta->ntypes[0].count, 3);
		import_bed_check_edges(&import_bed, EDGES, 0, NULL, NULL, NULL, false);
		import_bed_reset(&import_bed);
	}
	import_bed_word(&import_bed, GW_IMPORT_TRIPLES, "@none");
	import_bed_fails(&import_bed, GW_FORMAT, "none", "no edges", NULL);
	import_bed_word(&import_bed, GW_IMPORT_TRIPLES, "@none");
	import_bed_word(&import_bed, GW_IMPORT_NODES, "@list");
	import_bed_open(&import_bed);
	assert_int_equal(import_bed.meta->ntypes[0].count, 2);
	import_bed_reset(&import_bed);
	/* One end counted, the other not; a shard without edges among others. */
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "a:r:b=@none");
	import_bed_word(&import_bed, GW_IMPORT_NUM_NODES, "a=3");
	import_bed_fails(&import_bed, GW_FORMAT, "none", "no edges", NULL);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@none");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@some");
	import_bed_open(&import_bed);
	import_bed_check_edges(&import_bed, EDGES, 1, (const uint64_t[]){0}, (const uint64_t[]){1}, NULL, false);
	import_bed_reset(&import_bed);
}

/* Named node types are an input of their own. Without a name, a count of nodes is none. */
static void types_without_edges(void **state)
{
	(void)state;
	static const int64_t rows[] = {7, 8, 9};
	import_bed_npy(&import_bed, "x.npy", GW_INT64, 1, (const uint64_t[]){3}, rows);
	import_bed_word(&import_bed, GW_IMPORT_NUM_NODES, "a=3");
	import_bed_fails(&import_bed, GW_INVALID, "nothing to import", NULL, NULL);
	import_bed_word(&import_bed, GW_IMPORT_NODE_TYPE, "b");
	import_bed_word(&import_bed, GW_IMPORT_NUM_NODES, "b=0");
	import_bed_word(&import_bed, GW_IMPORT_NODE_TYPE, "a");
	import_bed_word(&import_bed, GW_IMPORT_NUM_NODES, "a=3");
	import_bed_word(&import_bed, GW_IMPORT_NODE_FEATURE, "a:x=@x.npy");
	import_bed_word(&import_bed, GW_IMPORT_NODE_FEATURE, "a:t=@x.npy");
	import_bed.options.edge_ids = import_bed.options.transpose = true;
	import_bed_open(&import_bed);
	assert_int_equal(import_bed.meta->num_etypes, 0);
	assert_int_equal(import_bed.meta->num_ntypes, 2);
	assert_int_equal(import_bed.meta->ntypes[1].count, 3);
	assert_memory_equal(import_bed_array(&import_bed, "node/a/x"), rows, sizeof(rows));
	import_bed_reset(&import_bed);
}

static void existing_output_needs_replace(void **state)
{
	(void)state;
	import_bed_text(&import_bed, "e", "0 1\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	assert_int_equal(import_bed_import(&import_bed), GW_OK);
	assert_int_equal(gw_import_run(&import_bed.options, &import_bed.stats, import_bed.name), GW_EXISTS);
	assert_non_null(strstr(gw_last_error(), "--replace"));
	import_bed.options.build.replace = true;
	import_bed_open(&import_bed);
	import_bed_reset(&import_bed);
}

#if defined(__SANITIZE_THREAD__) /* two chunks and five threads are as many as show how they meet */
enum { LINES = 80000, RUNS = 2 };
#else
enum { LINES = 150000, RUNS = 3 };
#endif

/* On an input of several chunks. The graph id digests every array. */
static void threads_do_not_matter(void **state)
{
	(void)state;
	char *text = malloc(4 << 20);
	size_t used = 0;
	for (uint64_t i = 0; i < LINES; i++) {
		struct gw_words words = gw_philox(7, i, 0);
		used += (size_t)sprintf(text + used, "n%u,%u,%u.%02u,%u\n", words.word[0] % 5000, words.word[1] % 3000,
					words.word[2] % 50, words.word[3] % 100, words.word[3] % 1000);
	}
	import_bed_gzip(&import_bed, "big.csv.gz", text, used);
	free(text);
	static const uint32_t threads[] = {1, 5, 2};
	uint64_t ids[3];
	for (unsigned i = 0; i < RUNS; i++) {
		import_bed_word(&import_bed, GW_IMPORT_EDGES, "user:rates:item=@big.csv.gz");
		import_bed.options.build.threads = threads[i];
		import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "3");
		import_bed_word(&import_bed, GW_IMPORT_TIME, "4");
		import_bed.options.reverse = import_bed.options.transpose = true;
		import_bed_open(&import_bed);
		ids[i] = import_bed.stats.graph_id;
		assert_true(ids[i] != 0 && ids[i] == ids[0]);
		import_bed_reset(&import_bed);
	}
}

static gw_status import_everything(void *context)
{
	(void)context;
	gw_status status = gw_import_run(&import_bed.options, &import_bed.stats, import_bed.name);
	/* The folder is libc's business; leave none for the next round. */
	return status;
}

static void shortage(void **state)
{
	(void)state;
	static const float feat[8] = {0};
	const uint64_t shape[] = {4, 2};
	import_bed_text(&import_bed, "short", "a b 1 5\nb c 2 4\nd a 3 3\n");
	import_bed_text(&import_bed, "short.list", "a\nb\nc\nd\n");
	import_bed_npy(&import_bed, "short.npy", GW_FLOAT32, 2, shape, feat);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@short");
	import_bed_word(&import_bed, GW_IMPORT_NODES, "@short.list");
	import_bed_word(&import_bed, GW_IMPORT_NODE_FEATURE, "feat=@short.npy");
	import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "3");
	import_bed_word(&import_bed, GW_IMPORT_TIME, "4");
	import_bed.options.undirected = import_bed.options.transpose = true;
	import_bed.options.build.threads = 1;
	import_bed.options.build.replace = true;
	assert_true(gw_fault_each(import_everything, NULL) > 40);
	import_bed_reset(&import_bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dense_ids_stay),
		cmocka_unit_test(edges_keep_their_rows),
		cmocka_unit_test(sparse_ids_are_compacted),
		cmocka_unit_test(text_ids_keep_their_names),
		cmocka_unit_test(columns_by_name),
		cmocka_unit_test(several_types),
		cmocka_unit_test(undirected),
		cmocka_unit_test(triples),
		cmocka_unit_test(triples_with_dictionaries),
		cmocka_unit_test(numpy_edges),
		cmocka_unit_test(features_and_masks),
		cmocka_unit_test(faults),
		cmocka_unit_test(empty_input_needs_a_count),
		cmocka_unit_test(types_without_edges),
		cmocka_unit_test(existing_output_needs_replace),
		cmocka_unit_test(threads_do_not_matter),
		cmocka_unit_test(shortage),
	};
	return cmocka_run_group_tests_name("import", tests, import_bed_set_up, import_bed_tear_down);
}
