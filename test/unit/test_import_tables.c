/* Tables of nodes, and times of edges in files: the columns come in as rows of the nodes, and what does not fit is
 * refused with the line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/support/alloc_fault.h"
#include "test/support/import_bed.h"

#define NODE(x) "node/p/" x

static const char papers[] = "title,id,year,pages,topic,split,good\n"
			     "A,p7,1999,3,ml,train,1\n"
			     "\"B, or \"\"b\"\"\",p8,2001,4,db,val,0\n"
			     "C,p9,2000.5,5,ml,none,true\n";

/* Edges p7 -> p8 and p9 -> p7 at the times 5 and -5, and the table. */
static void begin(const char *table)
{
	static const int64_t times[] = {5, -5};
	import_bed_text(&import_bed, "e.csv", "src,dst\np7,p8\np9,p7\n");
	import_bed_text(&import_bed, "p.csv", table);
	import_bed_npy(&import_bed, "t.npy", GW_INT64, 1, (const uint64_t[]){2}, times);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "p:cites:p=@e.csv");
	import_bed_word(&import_bed, GW_IMPORT_NODE_TABLE, "p=@p.csv");
}

static void columns(void **state)
{
	(void)state;
	static const float feat[] = {1999, 3, 2001, 4, 2000.5, 5}, year[] = {1999, 2001, 2000.5};
	static const int64_t label[] = {1, 0, 1}, when[] = {-5, 5};
	static const uint8_t train[] = {1, 0, 0}, val[] = {0, 1, 0}, test[] = {0, 0, 0}, good[] = {1, 0, 1};
	for (int typed = 0; typed < 2; typed++) { /* the only table needs no type */
		const char *type = typed ? "p=" : "", *name = typed ? "p:" : "";
		begin(papers);
		import_bed_word(&import_bed, GW_IMPORT_ID_COLUMN, "%sid", type);
		import_bed_word(&import_bed, GW_IMPORT_NODE_COLUMN, "%sfeat=year,pages", name);
		import_bed_word(&import_bed, GW_IMPORT_NODE_COLUMN, "%syear=3", name);
		import_bed_word(&import_bed, GW_IMPORT_LABEL_COLUMN, "%stopic", type);
		import_bed_word(&import_bed, GW_IMPORT_MASK_COLUMN, "%ssplit", type);
		import_bed_word(&import_bed, GW_IMPORT_MASK_COLUMN, "%sgood", type);
		import_bed_word(&import_bed, GW_IMPORT_EDGE_TIME, "p:cites:p=@t.npy");
		import_bed_open(&import_bed);
		assert_int_equal(import_bed.meta->ntypes[0].count, 3);
		assert_true(import_bed_string_is(&import_bed, NODE("orig_id"), 0, "p7"));
		assert_true(import_bed_string_is(&import_bed, NODE("orig_id"), 2, "p9"));
		assert_memory_equal(import_bed_array(&import_bed, NODE("feat")), feat, sizeof(feat));
		assert_memory_equal(import_bed_array(&import_bed, NODE("year")), year, sizeof(year));
		assert_memory_equal(import_bed_array(&import_bed, NODE("label")), label, sizeof(label));
		assert_true(import_bed_string_is(&import_bed, NODE("label.names"), 0, "db"));
		assert_true(import_bed_string_is(&import_bed, NODE("label.names"), 1, "ml"));
		assert_memory_equal(import_bed_array(&import_bed, NODE("train_mask")), train, sizeof(train));
		assert_memory_equal(import_bed_array(&import_bed, NODE("val_mask")), val, sizeof(val));
		assert_memory_equal(import_bed_array(&import_bed, NODE("test_mask")), test, sizeof(test));
		assert_memory_equal(import_bed_array(&import_bed, NODE("good")), good, sizeof(good));
		assert_memory_equal(import_bed_array(&import_bed, "edge/p__cites__p/time"), when, sizeof(when));
		import_bed_reset(&import_bed);
	}
	begin("id,title\np7,A\np8,b\np9,c\n");
	import_bed_word(&import_bed, GW_IMPORT_LABEL_COLUMN, "title");
	import_bed_open(&import_bed); /* words in the order of their bytes */
	assert_true(import_bed_string_is(&import_bed, NODE("label.names"), 0, "A"));
	import_bed_reset(&import_bed);
}

/* Ids of a table are numbers if all are; edges never mean places of a table. */
static void ids(void **state)
{
	(void)state;
	static const int64_t orig[] = {30, 10}, label[] = {-1, 4};
	import_bed_text(&import_bed, "e.csv", "10,30\n");
	import_bed_text(&import_bed, "n.csv", "node_id;y\n30;-1\n10;4\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e.csv");
	import_bed_word(&import_bed, GW_IMPORT_NODE_TABLE, "@n.csv");
	import_bed_word(&import_bed, GW_IMPORT_LABEL_COLUMN, "y");
	import_bed_open(&import_bed);
	assert_memory_equal(import_bed_array(&import_bed, "node/_N/orig_id"), orig, sizeof(orig));
	assert_memory_equal(import_bed_array(&import_bed, "node/_N/label"), label, sizeof(label));
	import_bed_reset(&import_bed);

	import_bed_text(&import_bed, "e.csv", "0,1\n");
	import_bed_text(&import_bed, "n.csv", "id\nAnn\nBob\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e.csv");
	import_bed_word(&import_bed, GW_IMPORT_NODE_TABLE, "@n.csv");
	import_bed_fails(&import_bed, GW_RANGE, "e.csv, line 1", "\"0\" is not in the list", "n.csv");

	import_bed_text(&import_bed, "e.csv", "src,dst\n7,07\n");
	import_bed_text(&import_bed, "n.csv", "id\n07\n7\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e.csv");
	import_bed_word(&import_bed, GW_IMPORT_NODE_TABLE, "@n.csv");
	import_bed_open(&import_bed);
	assert_true(import_bed_string_is(&import_bed, "node/_N/orig_id", 1, "7"));
	import_bed_reset(&import_bed);
}

static void faults(void **state)
{
	(void)state;
	static const struct {
		enum gw_import_kind kind;
		const char *word;
		gw_status status;
		const char *texts[3];
	} wrong[] = {
		{GW_IMPORT_ID_COLUMN, "p=idd", GW_NOT_FOUND, {"--id-column", "no column \"idd\"", NULL}},
		{GW_IMPORT_ID_COLUMN, "q=id", GW_NOT_FOUND, {"--id-column", "node type \"q\"", NULL}},
		{GW_IMPORT_ID_COLUMN, "year", GW_RANGE, {"e.csv, line 2", "\"p7\" is not in the list", NULL}},
		{GW_IMPORT_ID_COLUMN, "topic", GW_FORMAT, {"p.csv, line 4", "an id that the list has before", NULL}},
		{GW_IMPORT_NODE_COLUMN, "x=topic", GW_FORMAT, {"p.csv, line 2, column 5", "not a number", NULL}},
		{GW_IMPORT_NODE_COLUMN, "x=years", GW_NOT_FOUND, {"--node-column", "no column \"years\"", NULL}},
		{GW_IMPORT_NODE_COLUMN, "x=year,year", GW_INVALID, {"column year occurs twice", NULL, NULL}},
		{GW_IMPORT_NODE_COLUMN, "x=year,", GW_INVALID, {"1 to", NULL, NULL}},
		{GW_IMPORT_LABEL_COLUMN, "q=topic", GW_NOT_FOUND, {"\"q\" has no --node-table", NULL, NULL}},
		{GW_IMPORT_MASK_COLUMN, "topic", GW_FORMAT, {"p.csv, line 2", "column topic is \"ml\"", NULL}},
		{GW_IMPORT_NODES, "p=@p.csv", GW_INVALID, {"--nodes", "a list or a table already", NULL}},
		{GW_IMPORT_EDGE_TIME, "p:cited:p=@t.npy", GW_NOT_FOUND, {"--edge-time", "p:cited:p", NULL}},
		{GW_IMPORT_EDGE_TIME, "p:cites:p=@f.npy", GW_FORMAT, {"f.npy", "int64", NULL}},
		{GW_IMPORT_EDGE_TIME, "p:cites:p=@3.npy", GW_FORMAT, {"3 times", "2 input edges", NULL}},
	};
	static const float floats[] = {1, 2};
	static const int64_t three[] = {1, 2, 3};
	import_bed_npy(&import_bed, "f.npy", GW_FLOAT32, 1, (const uint64_t[]){2}, floats);
	import_bed_npy(&import_bed, "3.npy", GW_INT64, 1, (const uint64_t[]){3}, three);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		begin(papers);
		import_bed_word(&import_bed, wrong[i].kind, "%s", wrong[i].word);
		import_bed_fails(&import_bed, wrong[i].status, wrong[i].texts[0], wrong[i].texts[1], wrong[i].texts[2]);
	}
	begin("id,title\np7,\np8,b\np9,c\n"); /* a cell that is missing */
	import_bed_word(&import_bed, GW_IMPORT_LABEL_COLUMN, "title");
	import_bed_fails(&import_bed, GW_FORMAT, "p.csv, line 2", "empty", NULL);
	begin("id,split\np7,train\np8,1\np9,0\n"); /* words and flags */
	import_bed_word(&import_bed, GW_IMPORT_MASK_COLUMN, "split");
	import_bed_fails(&import_bed, GW_FORMAT, "p.csv, line 3", "\"1\"", NULL);
	begin(papers);
	import_bed_word(&import_bed, GW_IMPORT_EDGE_TIME, "p:cites:p=@t.npy");
	import_bed_word(&import_bed, GW_IMPORT_EDGE_TIME, "p:cites:p=@t.npy");
	import_bed_fails(&import_bed, GW_INVALID, "two times", NULL, NULL);
	begin("name,topic\np7,a\n");
	import_bed_fails(&import_bed, GW_INVALID, "no column is named id, node_id or p", "--id-column", NULL);
}

static gw_status import_it(void *context)
{
	(void)context;
	return gw_import_run(&import_bed.options, &import_bed.stats, import_bed.name);
}

static void shortage(void **state)
{
	(void)state;
	begin(papers);
	import_bed_word(&import_bed, GW_IMPORT_NODE_COLUMN, "feat=year,pages");
	import_bed_word(&import_bed, GW_IMPORT_LABEL_COLUMN, "topic");
	import_bed_word(&import_bed, GW_IMPORT_MASK_COLUMN, "split");
	import_bed_word(&import_bed, GW_IMPORT_EDGE_TIME, "p:cites:p=@t.npy");
	import_bed.options.build.threads = 1;
	import_bed.options.build.replace = true;
	assert_true(gw_fault_each(import_it, NULL) > 20);
	import_bed_reset(&import_bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns),
		cmocka_unit_test(ids),
		cmocka_unit_test(faults),
		cmocka_unit_test(shortage),
	};
	return cmocka_run_group_tests_name("import_tables", tests, import_bed_set_up, import_bed_tear_down);
}
