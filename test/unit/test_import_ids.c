/* What ids may look like, how headers are told from edges, lists of names, and masks: taken as their writers meant
 * them, or refused with the line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/errors/log.h"
#include "test/support/import_bed.h"

#define COUNT(of) (sizeof(of) / sizeof((of)[0]))

#define EDGES   "_N:_E:_N"
#define EDGE(x) "edge/_N___E___N/" x
#define NODE(x) "node/_N/" x

static void expect_names(const char *const *names, uint64_t count)
{
	assert_int_equal(import_bed.meta->ntypes[0].count, count);
	for (uint64_t i = 0; i < count; i++) {
		if (!import_bed_string_is(&import_bed, NODE("orig_id"), i, names[i]))
			fail_msg("node %llu is not \"%s\"", (unsigned long long)i, names[i]);
	}
	import_bed_reset(&import_bed);
}

static void import_text(const char *text)
{
	import_bed_text(&import_bed, "e", text);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	import_bed_open(&import_bed);
}

/* -1 and 2.0 are numbers, but no ids: names only if someone says so. Digits beyond 63 bits and with leading zeros are
 * names. */
static void odd_ids(void **state)
{
	(void)state;
	static const char *const bad[] = {"1,2\n-1,4\n", "1,2\n+1,4\n", "1.0,2.0\n3.0,4.0\n", "1,2\n3,4.5\n"};
	for (size_t i = 0; i < COUNT(bad); i++) {
		import_bed_text(&import_bed, "e", bad[i]);
		import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
		import_bed_fails(&import_bed, GW_FORMAT, i == 2 ? "e, line 1" : "e, line 2", "whole number",
				 "--ids text");
	}
	import_bed_text(&import_bed, "e", bad[0]);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	import_bed.options.ids = GW_IDS_TEXT;
	import_bed_open(&import_bed);
	expect_names((const char *const[]){"1", "2", "-1", "4"}, 4);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	import_bed_word(&import_bed, GW_IMPORT_NUM_NODES, "9");
	import_bed.options.ids = GW_IDS_TEXT;
	import_bed_fails(&import_bed, GW_INVALID, "--num-nodes", "--nodes", NULL);
	import_text("12345678901234567890,18446744073709551615\n99999999999999999999,12345678901234567890\n");
	expect_names((const char *const[]){"12345678901234567890", "18446744073709551615", "99999999999999999999"}, 3);
	import_text("007\t7\n7\t0\n");
	expect_names((const char *const[]){"007", "7", "0"}, 3);
	import_text("10.0.0.1 10.0.0.2\n10.0.0.2 10.0.0.1\n");
	expect_names((const char *const[]){"10.0.0.1", "10.0.0.2"}, 2);
	import_text("Z\xc3\xbcrich;\xe6\x9d\xb1\xe4\xba\xac\n\xf0\x9f\x9a\x82;Z\xc3\xbcrich\n");
	expect_names((const char *const[]){"Z\xc3\xbcrich", "\xe6\x9d\xb1\xe4\xba\xac", "\xf0\x9f\x9a\x82"}, 3);
	import_bed_file(&import_bed, "e", "a\0b c\n", 6);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	import_bed_fails(&import_bed, GW_FORMAT, "e", "NUL", "offset 1");
	import_bed_file(&import_bed, "e",
			"\xff\xfe"
			"1\0,\0"
			"2\0\n\0",
			10);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	import_bed_fails(&import_bed, GW_UNSUPPORTED, "e", "UTF-16", "UTF-8");
}

static void repeats_and_loops_are_kept_in_order(void **state)
{
	(void)state;
	static const uint64_t src[] = {1, 1, 2, 1, 2}, dst[] = {2, 2, 2, 2, 2};
	import_bed_text(&import_bed, "e", "1 2 10\n1 2 11\n2 2 12\n1 2 13\n2 2 14\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	import_bed_word(&import_bed, GW_IMPORT_EDGE_COLUMN, "w=3");
	import_bed_open(&import_bed);
	import_bed_check_edges(&import_bed, EDGES, 5, src, dst, NULL, true);
	static const float weights[] = {10, 11, 13, 12, 14};
	assert_memory_equal(import_bed_array(&import_bed, "edge/_N___E___N/w"), weights, sizeof(weights));
	import_bed_reset(&import_bed);
}

static void headers(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t edges;
	} cases[] = {
		{"Source,Target\nann,bob\n", 1},
		{"FromNodeId\tToNodeId\n1\t2\n", 1},
		{"\xef\xbb\xbf\"src\",\"dst\"\r\n\"ann\",\"bob\"\r\n", 1},
		{"user,place\n1,Rome\n2,Oslo\n", 2},
		{"person,town\n1,Rome\n", 0}, /* one row is not enough to say */
		{"user,place\n1,Rome\n", 1},  /* the names of the types */
		{"place,user_id\nRome,ann\nOslo,bob\n", 2},
		{"ann,bob\nann,7\nbob,ann\n", 3},
		{"ann,bob\ncid,dan\n", 0},
		{"a@b.org,/x\nc@d.org,/y\n", 2},
		{"a,b\n1,2\n", 1},
		{"1,2\n3,4\n", 2},
		{"source,target\n", 0},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		import_bed_text(&import_bed, "e", cases[i].text);
		import_bed_word(&import_bed, GW_IMPORT_EDGES, "user:in:place=@e");
		if (cases[i].edges == 0) {
			bool empty = strcmp(cases[i].text, "source,target\n") == 0;
			import_bed_fails(&import_bed, GW_FORMAT, empty ? "no edges" : "--no-header", NULL, NULL);
			continue;
		}
		import_bed_open(&import_bed);
		if (import_bed.meta->etypes[0].count != cases[i].edges)
			fail_msg("\"%s\": %llu edges", cases[i].text,
				 (unsigned long long)import_bed.meta->etypes[0].count);
		import_bed_reset(&import_bed);
		import_bed_text(&import_bed, "e", cases[i].text);
		import_bed_word(&import_bed, GW_IMPORT_EDGES, "user:in:place=@e");
		import_bed.options.text.header = GW_HEADER_NONE;
		import_bed.options.ids = GW_IDS_TEXT;
		uint64_t lines = 0;
		for (const char *at = cases[i].text; *at; at++)
			lines += *at == '\n';
		import_bed_open(&import_bed);
		assert_int_equal(import_bed.meta->etypes[0].count, lines);
		import_bed_reset(&import_bed);
	}
	import_bed_text(&import_bed, "t", "head,relation,tail\na,r,b\n");
	import_bed_word(&import_bed, GW_IMPORT_TRIPLES, "@t");
	import_bed_open(&import_bed);
	assert_int_equal(import_bed.meta->etypes[0].count, 1);
	import_bed_reset(&import_bed);
}

/* A line of a list is a name, whatever it is made of; "number name" only where it is both. */
static void lists_of_names(void **state)
{
	(void)state;
	static const struct {
		const char *list, *edges;
	} cases[] = {
		{"Paris\nNew York\nNew Delhi\n", "Paris\tNew York\nNew Delhi\tParis\n"},
		{"New York\nParis\nNew Delhi\n", "New York\tParis\n"},
		{"Smith, J\nDoe\nRoe, K, Jr\n", "\"Smith, J\",Doe\n\"Roe, K, Jr\",Doe\n"},
		{"\"Smith, J\"\n\"Doe\"\n\"Roe, K, Jr\"\n", "\"Smith, J\",Doe\n\"Roe, K, Jr\",Doe\n"},
		{"0\tNew York\n2\tParis\n1\tOslo\n", "New York\tOslo\nParis\tOslo\n"},
		{"Oslo 1\nParis 2\nRome 0\n", "Rome Paris\n"},
	};
	static const char *const names[][3] = {
		{"Paris", "New York", "New Delhi"}, {"New York", "Paris", "New Delhi"},
		{"Smith, J", "Doe", "Roe, K, Jr"},  {"Smith, J", "Doe", "Roe, K, Jr"},
		{"New York", "Oslo", "Paris"},      {"Rome", "Oslo", "Paris"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		import_bed_text(&import_bed, "list", cases[i].list);
		import_bed_text(&import_bed, "e", cases[i].edges);
		import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
		import_bed_word(&import_bed, GW_IMPORT_NODES, "@list");
		import_bed_open(&import_bed);
		expect_names(names[i], 3);
	}
	static const struct {
		const char *list, *why;
	} bad[] = {{"0 Oslo\n1 New York\n", "list, line 2"},
		   {"0,Oslo\n1,Smith, J\n", "list, line 2"},
		   {"Oslo\tNorway\n", "must be a number"},
		   {"0\tOslo\tNorway\n", "one column, or two"}};
	import_bed_text(&import_bed, "e", "Oslo\tRome\n");
	for (size_t i = 0; i < COUNT(bad); i++) {
		import_bed_text(&import_bed, "list", bad[i].list);
		import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
		import_bed_word(&import_bed, GW_IMPORT_NODES, "@list");
		import_bed_fails(&import_bed, GW_FORMAT, bad[i].why, NULL, NULL);
	}
}

/* OpenKE's dictionaries begin with how many lines follow; so do lists of ids that are numbers, for all they know. */
static void counted_lists(void **state)
{
	(void)state;
	static const char *const entities[] = {"/m/a", "/m/b", "/m/c"};
	import_bed_text(&import_bed, "entity2id.txt", "3\n/m/a\t0\n/m/c\t2\n/m/b\t1\n");
	import_bed_text(&import_bed, "relation2id.txt", "2 \r\n/r/x 0\r\n/r/y 1\r\n");
	import_bed_text(&import_bed, "e", "/m/a\t/r/y\t/m/b\n/m/b\t/r/x\t/m/a\n");
	import_bed_text(&import_bed, "ids", "0\t1\t1\n1\t0\t0\n");
	static const char *const triples[] = {"e", "ids"};
	for (size_t i = 0; i < COUNT(triples); i++) {
		import_bed_word(&import_bed, GW_IMPORT_TRIPLES, "@%s", triples[i]);
		import_bed_word(&import_bed, GW_IMPORT_NODES, "@entity2id.txt");
		static char relations[160];
		snprintf(relations, sizeof(relations), "%s/relation2id.txt", import_bed.root);
		import_bed.options.relations = relations;
		import_bed_open(&import_bed);
		assert_int_equal(import_bed.meta->etypes[0].relations, 2);
		assert_true(import_bed_string_is(&import_bed, EDGE("rel.names"), 1, "/r/y"));
		expect_names(entities, 3);
	}
	import_bed_text(&import_bed, "entity2id.txt", "4\n/m/a\t0\n/m/c\t2\n/m/b\t1\n");
	import_bed_word(&import_bed, GW_IMPORT_TRIPLES, "@e");
	import_bed_word(&import_bed, GW_IMPORT_NODES, "@entity2id.txt");
	import_bed_fails(&import_bed, GW_FORMAT, "entity2id.txt", "promises 4 lines", "3 lines follow");
	/* No count: a list of numbers, the first of which is as large as the list is long. */
	import_bed_text(&import_bed, "list", "2\n0\n1\n");
	import_bed_text(&import_bed, "e", "0 2\n1 0\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	import_bed_word(&import_bed, GW_IMPORT_NODES, "@list");
	import_bed_open(&import_bed);
	assert_memory_equal(import_bed_array(&import_bed, NODE("orig_id")), ((const int64_t[]){2, 0, 1}), 24);
	import_bed_reset(&import_bed);
}

static void first_lines_of_another_width(void **state)
{
	(void)state;
	static const char *const odd[] = {"5 7\n0 1 0.5\n1 2 0.5\n", "3\n0 1\n1 2\n0 2\n", "4,3,2\n0,1\n",
					  "7,x\n0,1,2\n1,2,3\n"};
	for (size_t i = 0; i < COUNT(odd); i++) {
		import_bed_text(&import_bed, "e", odd[i]);
		import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
		import_bed_fails(&import_bed, GW_FORMAT, "e, line 1", "--header", "--no-header");
		import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
		import_bed.options.text.header = GW_HEADER_YES;
		import_bed_open(&import_bed);
		assert_in_range(import_bed.meta->etypes[0].count, 1, 3);
		import_bed_reset(&import_bed);
	}
	import_bed_text(&import_bed, "e", "4,3,2\n0,1\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	import_bed.options.text.header = GW_HEADER_NONE;
	import_bed_open(&import_bed);
	assert_int_equal(import_bed.meta->etypes[0].count, 2);
	import_bed_reset(&import_bed);
	/* Rows that differ among each other anyhow are a table of that kind. */
	import_bed_text(&import_bed, "e", "0 1 7\n1 2\n2 0 8\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	import_bed_open(&import_bed);
	assert_int_equal(import_bed.meta->etypes[0].count, 3);
	import_bed_reset(&import_bed);
}

static char logged[512];

static void keep_line(void *context, enum gw_log_level level, const char *line)
{
	(void)context;
	if (level <= GW_LOG_WARN)
		snprintf(logged, sizeof(logged), "%s", line);
}

/* One word among numbers makes text of all ids, which is said; a column of names is what it looks like. */
static void words_among_numbers(void **state)
{
	(void)state;
	static const char *const names[] = {"0", "1", "unknown", "2"};
	gw_log_set_sink(keep_line, NULL);
	import_bed_text(&import_bed, "e", "# users\n0 1\n1 unknown\n2 0\n");
	for (int told = 0; told < 2; told++) {
		import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
		import_bed.options.ids = told ? GW_IDS_TEXT : GW_IDS_AUTO;
		logged[0] = '\0';
		import_bed_open(&import_bed);
		if (told)
			assert_string_equal(logged, "");
		else if (!strstr(logged, "e, line 3: \"unknown\"") || !strstr(logged, "node type _N"))
			fail_msg("\"%s\"", logged);
		expect_names(names, 4);
	}
	import_bed_text(&import_bed, "e", "ann bob\nbob 7\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	logged[0] = '\0';
	import_bed_open(&import_bed);
	assert_string_equal(logged, "");
	import_bed_reset(&import_bed);
	gw_log_set_sink(NULL, NULL);
}

static void names_of_another_encoding_are_kept_and_told(void **state)
{
	(void)state;
	static const char *const names[] = {"Jos\xe9", "\xc3\xa9", "M\xfcller", "ann"};
	gw_log_set_sink(keep_line, NULL);
	import_bed_text(&import_bed, "e", "Jos\xe9\t\xc3\xa9\nM\xfcller\tann\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	import_bed.options.text.header = GW_HEADER_NONE;
	logged[0] = '\0';
	import_bed_open(&import_bed);
	if (!strstr(logged, "_N") || !strstr(logged, "\"Jos\" is not UTF-8"))
		fail_msg("\"%s\"", logged);
	expect_names(names, 4);
	import_bed_text(&import_bed, "e", "\xc3\xa9\t\xf0\x9f\x98\x80\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	import_bed.options.text.header = GW_HEADER_NONE;
	logged[0] = '\0';
	import_bed_open(&import_bed);
	assert_string_equal(logged, "");
	import_bed_reset(&import_bed);
	gw_log_set_sink(NULL, NULL);
}

/* Numbers stay where most of them are nodes, and are renumbered where most would be nodes without an edge, as in a
 * list of ratings with some films of a big catalog. */
static void density(void **state)
{
	(void)state;
	for (uint64_t step = 1; step <= 20; step++) {
		char *text = malloc(400000);
		size_t used = 0;
		for (uint64_t i = 0; i < 3000; i++)
			for (uint64_t user = 0; user < 4; user++)
				used += (size_t)sprintf(text + used, "%llu,%llu\n",
							(unsigned long long)(i + user) % 2500,
							(unsigned long long)(i * step));
		import_bed_file(&import_bed, "ratings", text, used);
		free(text);
		import_bed_word(&import_bed, GW_IMPORT_EDGES, "user:rates:film=@ratings");
		import_bed_open(&import_bed);
		assert_int_equal(import_bed.meta->ntypes[0].count, 2500);
		assert_int_equal(import_bed.meta->ntypes[1].count, step <= 2 ? 2999 * step + 1 : 3000);
		import_bed_reset(&import_bed);
	}
}

static void numbers_beyond_ids(void **state)
{
	(void)state;
	static const uint64_t large[] = {0, (1ull << 63) + 5};
	static const int64_t negative[] = {0, -5}, largest[] = {0, INT64_MAX};
	static const uint64_t one[] = {1, 2};
	import_bed_npy(&import_bed, "large.npy", GW_UINT64, 2, one, large);
	import_bed_npy(&import_bed, "negative.npy", GW_INT64, 2, one, negative);
	import_bed_npy(&import_bed, "largest.npy", GW_INT64, 2, one, largest);
	static const struct {
		const char *name, *value, *why;
	} bad[] = {{"large.npy", "is 9223372036854775813", "too large"},
		   {"negative.npy", "is -5", "negative"},
		   {"largest.npy", "is 9223372036854775807", "too large"}};
	for (size_t i = 0; i < COUNT(bad); i++) {
		import_bed_word(&import_bed, GW_IMPORT_EDGES, "@%s", bad[i].name);
		import_bed_fails(&import_bed, GW_RANGE, bad[i].name, bad[i].value, bad[i].why);
	}
}

/* Types are those of the edges: another one is a slip. */
static void types_that_are_none(void **state)
{
	(void)state;
	import_bed_text(&import_bed, "e", "0 1\n");
	import_bed_word(&import_bed, GW_IMPORT_NUM_NODES, "papers=50");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "author:writes:paper=@e");
	import_bed_fails(&import_bed, GW_NOT_FOUND, "--num-nodes: ", "\"papers\"", "author, paper");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "author:writes:paper=@e");
	import_bed_word(&import_bed, GW_IMPORT_NODES, "papers=@e");
	import_bed_fails(&import_bed, GW_NOT_FOUND, "--nodes: ", "\"papers\"", "--node-type");
	import_bed_word(&import_bed, GW_IMPORT_NUM_NODES, "paper=50");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "author:writes:paper=@e");
	import_bed_open(&import_bed);
	assert_int_equal(import_bed.meta->ntypes[1].count, 50);
	import_bed_reset(&import_bed);
	char name[67];
	memset(name, 'a', 65);
	name[65] = '\0';
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "%s:writes:paper=@e", name);
	import_bed_fails(&import_bed, GW_INVALID, "a:writes:paper", "at most 64 bytes", NULL);
}

/* Few edges among many nodes: no row of a feature is dropped, and no node comes of one that nobody asked for. */
static void features_count_nodes(void **state)
{
	(void)state;
	const uint64_t shape[] = {20000};
	float *feat = calloc(shape[0], sizeof(*feat));
	for (uint64_t i = 0; i < shape[0]; i++)
		feat[i] = (float)i;
	import_bed_npy(&import_bed, "feat.npy", GW_FLOAT32, 1, shape, feat);
	import_bed_text(&import_bed, "e", "19000 3\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	import_bed_word(&import_bed, GW_IMPORT_NODE_FEATURE, "feat=@feat.npy");
	import_bed_fails(&import_bed, GW_INVALID, "feat.npy", "node type _N has 19001 nodes", "--num-nodes _N=20000");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	import_bed_word(&import_bed, GW_IMPORT_NODE_FEATURE, "feat=@feat.npy");
	import_bed_word(&import_bed, GW_IMPORT_NUM_NODES, "_N=20000");
	import_bed_open(&import_bed);
	assert_int_equal(import_bed.meta->ntypes[0].count, shape[0]);
	assert_memory_equal(import_bed_array(&import_bed, NODE("feat")), feat, shape[0] * sizeof(*feat));
	import_bed_reset(&import_bed);
	free(feat);
}

static void masks(void **state)
{
	(void)state;
	static const int64_t flags[] = {0, 1, 1, 0, 1}, list[] = {4, 1, 2}, twice[] = {0, 1, 1};
	static const uint8_t bytes[] = {0, 1, 1, 0, 1};
	const uint64_t five[] = {5}, column[] = {5, 1}, three[] = {3}, square[] = {2, 2};
	import_bed_text(&import_bed, "e", "0 1\n2 3\n4 0\n");
	import_bed_npy(&import_bed, "int64.npy", GW_INT64, 1, five, flags);
	import_bed_npy(&import_bed, "column.npy", GW_INT64, 2, column, flags);
	import_bed_npy(&import_bed, "uint8.npy", GW_UINT8, 1, five, bytes);
	import_bed_npy(&import_bed, "bool.npy", GW_BOOL, 1, five, bytes);
	import_bed_npy(&import_bed, "list.npy", GW_INT64, 1, three, list);
	static const char *const files[] = {"int64", "column", "uint8", "bool", "list"};
	for (size_t i = 0; i < COUNT(files); i++) {
		import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
		import_bed_word(&import_bed, GW_IMPORT_NODE_MASK, "m=@%s.npy", files[i]);
		import_bed_open(&import_bed);
		assert_int_equal(gw_part_array(import_bed.part, NODE("m"))->meta->dtype, GW_BOOL);
		assert_int_equal(import_bed_rows(&import_bed, NODE("m")), 5);
		assert_memory_equal(import_bed_array(&import_bed, NODE("m")), bytes, 5);
		import_bed_reset(&import_bed);
	}
	import_bed_npy(&import_bed, "twice.npy", GW_INT64, 1, three, twice);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	import_bed_word(&import_bed, GW_IMPORT_NODE_MASK, "m=@twice.npy");
	import_bed_fails(&import_bed, GW_FORMAT, "twice.npy", "repeats node 1", "5 nodes");
	import_bed_npy(&import_bed, "square.npy", GW_INT64, 2, square, flags);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	import_bed_word(&import_bed, GW_IMPORT_NODE_MASK, "m=@square.npy");
	import_bed_fails(&import_bed, GW_FORMAT, "square.npy", "\"m\"", "int64 [2, 2]");
	/* By any way: what is called a mask is one, or refused where it is read. */
	const uint64_t wide[] = {5, 2};
	static const uint8_t pairs[10] = {1};
	static const float real[5] = {1};
	import_bed_npy(&import_bed, "wide.npy", GW_BOOL, 2, wide, pairs);
	import_bed_npy(&import_bed, "real.npy", GW_FLOAT32, 1, five, real);
	import_bed_npy(&import_bed, "boolcolumn.npy", GW_BOOL, 2, column, bytes);
	static const struct {
		const char *name, *what;
	} bad[] = {{"wide.npy", "bool [5, 2]"}, {"real.npy", "float32 [5]"}};
	for (size_t i = 0; i < COUNT(bad); i++) {
		import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
		import_bed_word(&import_bed, GW_IMPORT_NODE_MASK, "m=@%s", bad[i].name);
		import_bed_fails(&import_bed, GW_FORMAT, bad[i].name, "mask \"m\"", bad[i].what);
		if (i == 0)
			continue; /* as a feature it is a mask of two splits */
		import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
		import_bed_word(&import_bed, GW_IMPORT_NODE_FEATURE, "train_mask=@%s", bad[i].name);
		import_bed_fails(&import_bed, GW_FORMAT, bad[i].name, "mask \"train_mask\"", bad[i].what);
	}
	static const char *const good[] = {"boolcolumn", "uint8", "column"};
	for (size_t i = 0; i < COUNT(good); i++) {
		import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
		import_bed_word(&import_bed, GW_IMPORT_NODE_FEATURE, "train_mask=@%s.npy", good[i]);
		import_bed_open(&import_bed);
		assert_int_equal(gw_part_array(import_bed.part, NODE("train_mask"))->meta->ndim, 1);
		assert_int_equal(gw_part_array(import_bed.part, NODE("train_mask"))->meta->dtype, GW_BOOL);
		assert_memory_equal(import_bed_array(&import_bed, NODE("train_mask")), bytes, 5);
		import_bed_reset(&import_bed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(odd_ids),
		cmocka_unit_test(repeats_and_loops_are_kept_in_order),
		cmocka_unit_test(headers),
		cmocka_unit_test(lists_of_names),
		cmocka_unit_test(features_count_nodes),
		cmocka_unit_test(masks),
		cmocka_unit_test(counted_lists),
		cmocka_unit_test(first_lines_of_another_width),
		cmocka_unit_test(words_among_numbers),
		cmocka_unit_test(density),
		cmocka_unit_test(types_that_are_none),
		cmocka_unit_test(names_of_another_encoding_are_kept_and_told),
		cmocka_unit_test(numbers_beyond_ids),
	};
	return cmocka_run_group_tests_name("import_ids", tests, import_bed_set_up, import_bed_tear_down);
}
