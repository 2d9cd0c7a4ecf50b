/* Graphs that are published as matrices: Matrix Market, LightGraphs' text, SciPy's sparse archives. Each file is made
 * here as its publisher writes it; edges are compared with a plain reading of what was put in, nodes with the shape.
 */
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
#include "test/support/npz_file.h"

#define EDGES     "_N:_E:_N"
#define NODE(x)   "node/_N/" x
#define EDGE(x)   "edge/_N___E___N/" x
#define COUNT(of) (sizeof(of) / sizeof((of)[0]))
#define ENTRIES   4000u

/* Random edges; in both directions after mirroring. */
struct edges {
	uint64_t src[2 * ENTRIES], dst[2 * ENTRIES];
	uint64_t count;
};

static void add_edge(struct edges *edges, uint64_t src, uint64_t dst)
{
	edges->src[edges->count] = src;
	edges->dst[edges->count++] = dst;
}

static void make_edges(struct edges *out, uint64_t key, uint64_t rows, uint64_t columns)
{
	out->count = 0;
	for (uint64_t i = 0; i < ENTRIES; i++) {
		struct gw_words words = gw_philox(key, i, 0);
		add_edge(out, words.word[0] % rows, words.word[1] % columns);
	}
}

/* Entries off the diagonal turned round as well, behind all others. */
static void mirror(struct edges *edges)
{
	for (uint64_t i = 0, count = edges->count; i < count; i++) {
		if (edges->src[i] != edges->dst[i])
			add_edge(edges, edges->dst[i], edges->src[i]);
	}
}

static void check(const char *etype, const struct edges *edges)
{
	import_bed_check_edges(&import_bed, etype, edges->count, edges->src, edges->dst, NULL, false);
}

/* ids of the input count from 1. */
static void check_orig(const char *key, uint64_t count)
{
	const int64_t *orig = import_bed_array(&import_bed, key);
	assert_int_equal(import_bed_rows(&import_bed, key), count);
	for (uint64_t i = 0; i < count; i++)
		assert_int_equal(orig[i], i + 1);
}

static void write_market(const char *banner, uint64_t rows, uint64_t columns, const struct edges *edges, bool value)
{
	char *text = malloc(edges->count * 64 + 1024);
	size_t used = (size_t)sprintf(text,
				      "%%%%MatrixMarket matrix coordinate %s\n%%----\n%% UF Sparse Matrix, ID 7\n"
				      "%%----\n\n%llu %llu %llu\n",
				      banner, (unsigned long long)rows, (unsigned long long)columns,
				      (unsigned long long)edges->count);
	for (uint64_t i = 0; i < edges->count; i++) {
		used += (size_t)sprintf(text + used, "%llu %llu", (unsigned long long)edges->src[i] + 1,
					(unsigned long long)edges->dst[i] + 1);
		used += (size_t)sprintf(text + used, value ? " %llu.5e0\n" : "\n", (unsigned long long)i);
	}
	import_bed_file(&import_bed, "a.mtx", text, used);
	free(text);
}

static void market(void **state)
{
	(void)state;
	static struct edges edges;
	static const char *const general[] = {"pattern general", "real general", "integer general", "REAL General"};
	for (size_t i = 0; i < COUNT(general); i++) {
		make_edges(&edges, i, 900, 900); /* of 1000: the last hundred have no edge */
		write_market(general[i], 1000, 1000, &edges, i > 0);
		import_bed_word(&import_bed, GW_IMPORT_EDGES, "@a.mtx");
		import_bed_open(&import_bed);
		assert_int_equal(import_bed.meta->ntypes[0].count, 1000);
		check(EDGES, &edges);
		check_orig(NODE("orig_id"), 1000);
		import_bed_reset(&import_bed);
	}
	/* A value is a column like any other; the sources are the columns where that is said. */
	make_edges(&edges, 9, 50, 50);
	write_market("real general", 50, 50, &edges, true);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@a.mtx");
	import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "3");
	import_bed_open(&import_bed);
	import_bed_check_edges(&import_bed, EDGES, edges.count, edges.src, edges.dst, NULL, true);
	const uint32_t *rows = import_bed_array(&import_bed, EDGE("orig_id"));
	const float *weights = import_bed_array(&import_bed, EDGE("weight"));
	for (uint64_t i = 0; i < edges.count; i++)
		assert_true(weights[i] == (float)rows[i] + 0.5f);
	import_bed_reset(&import_bed);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@a.mtx");
	import_bed.options.src_column = "2";
	import_bed.options.dst_column = "1";
	import_bed_open(&import_bed);
	import_bed_check_edges(&import_bed, EDGES, edges.count, edges.dst, edges.src, NULL, false);
	import_bed_reset(&import_bed);
}

static void market_symmetric(void **state)
{
	(void)state;
	static struct edges edges;
	static const char *const symmetric[] = {"pattern symmetric", "real skew-symmetric"};
	for (size_t i = 0; i < COUNT(symmetric); i++) {
		make_edges(&edges, 20 + i, 300, 300);
		write_market(symmetric[i], 300, 300, &edges, i > 0);
		mirror(&edges);
		import_bed_word(&import_bed, GW_IMPORT_EDGES, "@a.mtx");
		import_bed.options.reverse = i > 0; /* it is its own: nothing more to add */
		import_bed_open(&import_bed);
		assert_int_equal(import_bed.meta->num_etypes, 1);
		assert_int_equal(import_bed.meta->etypes[0].reverse, 0);
		check(EDGES, &edges);
		import_bed_reset(&import_bed);
	}
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@a.mtx");
	import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "3");
	import_bed_fails(&import_bed, GW_UNSUPPORTED, "a.mtx", "skew-symmetric", "general");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "a:r:b=@a.mtx");
	import_bed_fails(&import_bed, GW_INVALID, "a.mtx", "symmetric", "one type");
	import_bed_text(&import_bed, "g.mtx", "%%MatrixMarket matrix coordinate pattern general\n300 300 1\n1 2\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@a.mtx");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@g.mtx");
	import_bed_fails(&import_bed, GW_INVALID, "a.mtx is symmetric", "g.mtx", "--undirected");
}

static void market_rectangular(void **state)
{
	(void)state;
	static struct edges edges;
	static float feat[70];
	const uint64_t shape[] = {70};
	make_edges(&edges, 30, 400, 60);
	write_market("pattern general", 500, 70, &edges, false);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@a.mtx");
	import_bed_fails(&import_bed, GW_INVALID, "a.mtx", "500 rows and 70 columns", "--edges ROW:REL:COLUMN=");
	for (uint64_t i = 0; i < 70; i++)
		feat[i] = (float)i;
	import_bed_npy(&import_bed, "feat.npy", GW_FLOAT32, 1, shape, feat);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "user:rates:film=@a.mtx");
	import_bed_word(&import_bed, GW_IMPORT_NODE_FEATURE, "film:feat=@feat.npy");
	import_bed_open(&import_bed);
	assert_int_equal(import_bed.meta->ntypes[0].count, 500);
	assert_int_equal(import_bed.meta->ntypes[1].count, 70);
	check("user:rates:film", &edges);
	check_orig("node/user/orig_id", 500);
	check_orig("node/film/orig_id", 70);
	assert_memory_equal(import_bed_array(&import_bed, "node/film/feat"), feat, sizeof(feat));
	import_bed_reset(&import_bed);
}

static void market_faults(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		gw_status status;
		const char *a, *b;
	} bad[] = {
		{"%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n", GW_UNSUPPORTED, "coordinate matrices",
		 NULL},
		{"%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 0 0\n", GW_UNSUPPORTED, "complex", NULL},
		{"%%MatrixMarket matrix coordinate real hermitian\n1 1 0\n", GW_UNSUPPORTED, "hermitian", NULL},
		{"%%MatrixMarket matrix coordinate real\n1 1 0\n", GW_FORMAT, "line 1", "symmetry"},
		{"%%MatrixMarket matrix coordinate real general\n", GW_FORMAT, "rows, columns and entries", NULL},
		{"%%MatrixMarket matrix coordinate real general\n5 5\n1 1 1\n", GW_FORMAT, "rows, columns", NULL},
		{"%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n", GW_FORMAT, "2 entries", "are 1"},
		{"%%MatrixMarket matrix coordinate pattern general\n3 3 1\n0 2\n", GW_RANGE, "line 3: (0, 2)",
		 "3 by 3"},
		{"%%MatrixMarket matrix coordinate pattern general\n3 3 1\n1 4\n", GW_RANGE, "line 3: (1, 4)",
		 "from 1"},
		{"%%MatrixMarket matrix coordinate pattern symmetric\n3 4 1\n1 3\n", GW_FORMAT, "symmetric",
		 "4 columns"},
	};
	for (size_t i = 0; i < COUNT(bad); i++) {
		import_bed_text(&import_bed, "a.mtx", bad[i].text);
		import_bed_word(&import_bed, GW_IMPORT_EDGES, "@a.mtx");
		import_bed_fails(&import_bed, bad[i].status, "a.mtx", bad[i].a, bad[i].b);
	}
	import_bed_text(&import_bed, "a.mtx", "%%MatrixMarket matrix coordinate pattern general\n3 3 1\n1 2\n");
	import_bed_text(&import_bed, "b.mtx", "%%MatrixMarket matrix coordinate pattern general\n4 4 1\n1 2\n");
	import_bed_text(&import_bed, "e", "0 1\n");
	import_bed_text(&import_bed, "t", "x y\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@a.mtx");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	import_bed_fails(&import_bed, GW_INVALID, "_N", "from 1", "from 0");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@a.mtx");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@b.mtx");
	import_bed_fails(&import_bed, GW_INVALID, "has 3 of them", "has 4", "--num-nodes _N=N");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@a.mtx");
	import_bed_word(&import_bed, GW_IMPORT_NUM_NODES, "2");
	import_bed_fails(&import_bed, GW_INVALID, "3 nodes of type _N", "--num-nodes says 2", NULL);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@a.mtx");
	import_bed.options.ids = GW_IDS_TEXT;
	import_bed_fails(&import_bed, GW_INVALID, "a.mtx", "text ids", NULL);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@a.mtx");
	import_bed.options.src_column = "3";
	import_bed_fails(&import_bed, GW_INVALID, "a.mtx", "1 is the row, 2 the column", NULL);
}

/* "82168,948464,d,graph", then pairs: how LightGraphs and the collections made with it write. */
static void light_graphs(void **state)
{
	(void)state;
	static struct edges edges;
	for (int directed = 0; directed < 2; directed++) {
		char *text = malloc(ENTRIES * 32);
		make_edges(&edges, 40, 820, 820);
		size_t used =
			(size_t)sprintf(text, "1000,%u,%s,graph,1,Int64,simplegraph\n", ENTRIES, directed ? "d" : "u");
		for (uint64_t i = 0; i < edges.count; i++)
			used += (size_t)sprintf(text + used, "%llu,%llu\n", (unsigned long long)edges.src[i] + 1,
						(unsigned long long)edges.dst[i] + 1);
		import_bed_gzip(&import_bed, "soc.csv", text, used);
		free(text);
		if (!directed)
			mirror(&edges);
		import_bed_word(&import_bed, GW_IMPORT_EDGES, "@soc.csv");
		import_bed_open(&import_bed);
		assert_int_equal(import_bed.meta->ntypes[0].count, 1000);
		check(EDGES, &edges);
		check_orig(NODE("orig_id"), 1000);
		import_bed_reset(&import_bed);
	}
	import_bed_text(&import_bed, "two.lg", "3,1,d,a\n1,2\n3,2,d,b\n1,2\n2,3\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@two.lg");
	import_bed_fails(&import_bed, GW_FORMAT, "two.lg", "1 entries", "there are 4");
}

/* ---- SciPy ---- */

static void shape_text(char text[64], uint64_t count)
{
	snprintf(text, 64, "(%llu,)", (unsigned long long)count);
}

static void write_archive(const char *format, const int64_t shape[2], const struct npz_member *a,
			  const struct npz_member *b, uint64_t entries)
{
	static double data[ENTRIES];
	char path[160], count[64];
	shape_text(count, entries);
	snprintf(path, sizeof(path), "%s/a.npz", import_bed.root);
	const struct npz_member members[] = {{"format", "|S3", "()", format, 3},
					     {"shape", "<i8", "(2,)", shape, 16},
					     {"data", "<f8", count, data, entries * 8},
					     *a,
					     *b};
	npz_file_write(path, members, COUNT(members));
}

/* Sorted by the lists' end, which makes lists of them; ties in their order, as SciPy leaves them. */
static void sort_edges(struct edges *edges, bool by_dst, uint64_t lists, int32_t *offsets)
{
	static struct edges sorted;
	const uint64_t *key = by_dst ? edges->dst : edges->src;
	sorted.count = 0;
	for (uint64_t list = 0; list < lists; list++) {
		offsets[list] = (int32_t)sorted.count;
		for (uint64_t i = 0; i < edges->count; i++) {
			if (key[i] == list)
				add_edge(&sorted, edges->src[i], edges->dst[i]);
		}
	}
	offsets[lists] = (int32_t)sorted.count;
	*edges = sorted;
}

/* layout: "coo", "csr" or "csc". */
static void write_scipy(const char *layout, uint64_t rows, uint64_t columns, struct edges *edges)
{
	static int32_t a[2 * ENTRIES], b[2 * ENTRIES];
	const int64_t shape[2] = {(int64_t)rows, (int64_t)columns};
	bool coo = strcmp(layout, "coo") == 0, csc = strcmp(layout, "csc") == 0;
	uint64_t lists = csc ? columns : rows;
	char first[64], second[64];
	if (!coo)
		sort_edges(edges, csc, lists, a);
	for (uint64_t i = 0; i < edges->count; i++) {
		if (coo)
			a[i] = (int32_t)edges->src[i];
		b[i] = (int32_t)(csc ? edges->src[i] : edges->dst[i]);
	}
	shape_text(first, coo ? edges->count : lists + 1);
	shape_text(second, edges->count);
	const struct npz_member one = {coo ? "row" : "indptr", "<i4", first, a, 4 * (coo ? edges->count : lists + 1)},
				two = {coo ? "col" : "indices", "<i4", second, b, 4 * edges->count};
	write_archive(layout, shape, &one, &two, edges->count);
}

static void scipy(void **state)
{
	(void)state;
	static struct edges edges;
	static const char *const layouts[] = {"coo", "csr", "csc"};
	for (size_t i = 0; i < COUNT(layouts); i++) {
		make_edges(&edges, 50 + i, 180, 190); /* of 200: ends without edges */
		write_scipy(layouts[i], 200, 200, &edges);
		import_bed_word(&import_bed, GW_IMPORT_EDGES, "@a.npz");
		import_bed_word(&import_bed, GW_IMPORT_EDGE_FEATURE, "value=@a.npz:data");
		import_bed_open(&import_bed);
		assert_int_equal(import_bed.meta->ntypes[0].count, 200);
		import_bed_check_edges(&import_bed, EDGES, edges.count, edges.src, edges.dst, NULL, true);
		import_bed_reset(&import_bed);

		make_edges(&edges, 60 + i, 300, 33);
		write_scipy(layouts[i], 310, 40, &edges);
		import_bed_word(&import_bed, GW_IMPORT_EDGES, "@a.npz");
		import_bed_fails(&import_bed, GW_INVALID, "a.npz", "310 rows and 40 columns",
				 "--edges ROW:REL:COLUMN=");
		import_bed_word(&import_bed, GW_IMPORT_EDGES, "user:likes:film=@a.npz");
		import_bed.options.transpose = true;
		import_bed_open(&import_bed);
		assert_int_equal(import_bed.meta->ntypes[0].count, 310);
		assert_int_equal(import_bed.meta->ntypes[1].count, 40);
		check("user:likes:film", &edges);
		import_bed_reset(&import_bed);
	}
	edges.count = 0;
	write_scipy("csr", 7, 7, &edges); /* no edges at all, but seven nodes */
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@a.npz");
	import_bed_open(&import_bed);
	assert_int_equal(import_bed.meta->ntypes[0].count, 7);
	assert_int_equal(import_bed.meta->etypes[0].count, 0);
	import_bed_reset(&import_bed);
}

static void scipy_faults(void **state)
{
	(void)state;
	static const int64_t shape[2] = {3, 3};
	static const int32_t good[] = {0, 1, 2, 2}, falls[] = {0, 2, 1, 2}, late[] = {1, 1, 2, 2},
			     more[] = {0, 1, 2, 3};
	static const int32_t indices[] = {1, 2}, outside[] = {1, 3}, negative[] = {1, -1};
	static const struct {
		const int32_t *indptr, *indices;
		const char *format, *count;
		gw_status status;
		const char *why;
	} bad[] = {
		{falls, indices, "csr", "(4,)", GW_FORMAT, "offset 1 of indptr"},
		{late, indices, "csr", "(4,)", GW_FORMAT, "from 1 to 2"},
		{more, indices, "csc", "(4,)", GW_FORMAT, "from 0 to 3"},
		{good, outside, "csr", "(4,)", GW_RANGE, "entry 1: (1, 3)"},
		{good, outside, "csc", "(4,)", GW_RANGE, "entry 1: (3, 1)"},
		{good, negative, "csr", "(4,)", GW_RANGE, "element 1 is -1: it is negative"},
		{good, indices, "csr", "(3,)", GW_FORMAT, "3 offsets for 3 rows"},
		{good, indices, "bsr", "(4,)", GW_UNSUPPORTED, "\"bsr\""},
		{good, indices, "coo", "(4,)", GW_NOT_FOUND, "no member \"row\""},
	};
	for (size_t i = 0; i < COUNT(bad); i++) {
		const struct npz_member a = {"indptr", "<i4", bad[i].count, bad[i].indptr,
					     bad[i].count[1] == '4' ? 16 : 12},
					b = {"indices", "<i4", "(2,)", bad[i].indices, 8};
		write_archive(bad[i].format, shape, &a, &b, 2);
		import_bed_word(&import_bed, GW_IMPORT_EDGES, "@a.npz");
		import_bed_fails(&import_bed, bad[i].status, "a.npz", bad[i].why, NULL);
	}
	/* A word that is none, one that is too long, one in UTF-32. */
	static const struct {
		const char *descr, *shape, *data;
		size_t bytes;
		gw_status status;
	} words[] = {{"|S9", "()", "csr......", 9, GW_FORMAT},
		     {"|S3", "(1,)", "csr", 3, GW_FORMAT},
		     {"<i8", "()", "12345678", 8, GW_FORMAT},
		     {"<U3", "()", "c\0\0\0s\0\0\0r\0\0\0", 12, GW_OK}};
	for (size_t i = 0; i < COUNT(words); i++) {
		char path[160];
		snprintf(path, sizeof(path), "%s/a.npz", import_bed.root);
		const struct npz_member members[] = {
			{"format", words[i].descr, words[i].shape, words[i].data, words[i].bytes},
			{"shape", "<i8", "(2,)", shape, 16},
			{"indptr", "<i4", "(4,)", good, 16},
			{"indices", "<i4", "(2,)", indices, 8}};
		npz_file_write(path, members, COUNT(members));
		import_bed_word(&import_bed, GW_IMPORT_EDGES, "@a.npz");
		if (words[i].status)
			import_bed_fails(&import_bed, words[i].status, "a.npz", "format", "short string");
		else
			import_bed_open(&import_bed);
	}
	import_bed_reset(&import_bed);
}

static void several_archives(void **state)
{
	(void)state;
	static const float values[3][2] = {{1, 2}, {3, 4}, {5, 6}};
	import_bed_text(&import_bed, "e", "0 1\n");
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@e");
	for (int i = 0; i < 3; i++) {
		char path[160];
		const struct npz_member member = {"v", "<f4", "(2,)", values[i], sizeof(values[i])};
		snprintf(path, sizeof(path), "%s/%c.npz", import_bed.root, 'a' + i);
		npz_file_write(path, &member, 1);
	}
	for (int i = 0; i < 6; i++) /* each archive twice */
		import_bed_word(&import_bed, GW_IMPORT_NODE_FEATURE, "f%d=@%c.npz:v", i, 'a' + i % 3);
	import_bed_open(&import_bed);
	for (int i = 0; i < 6; i++) {
		char key[16];
		snprintf(key, sizeof(key), "node/_N/f%d", i);
		assert_memory_equal(import_bed_array(&import_bed, key), values[i % 3], sizeof(values[0]));
	}
	import_bed_reset(&import_bed);
}

static gw_status import_it(void *context)
{
	(void)context;
	return gw_import_run(&import_bed.options, &import_bed.stats, import_bed.name);
}

static void shortage(void **state)
{
	(void)state;
	static struct edges edges;
	make_edges(&edges, 80, 30, 30);
	edges.count = 20;
	write_market("real symmetric", 30, 30, &edges, true);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@a.mtx");
	import_bed_word(&import_bed, GW_IMPORT_WEIGHT, "3");
	import_bed.options.build.threads = 1;
	import_bed.options.build.replace = true;
	assert_true(gw_fault_each(import_it, NULL) > 20);
	import_bed_reset(&import_bed);
	write_scipy("csc", 30, 30, &edges);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "@a.npz");
	import_bed.options.build.threads = 1;
	import_bed.options.build.replace = true;
	assert_true(gw_fault_each(import_it, NULL) > 20);
	import_bed_reset(&import_bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(market),
		cmocka_unit_test(market_symmetric),
		cmocka_unit_test(market_rectangular),
		cmocka_unit_test(market_faults),
		cmocka_unit_test(light_graphs),
		cmocka_unit_test(scipy),
		cmocka_unit_test(scipy_faults),
		cmocka_unit_test(several_archives),
		cmocka_unit_test(shortage),
	};
	return cmocka_run_group_tests_name("import_matrix", tests, import_bed_set_up, import_bed_tear_down);
}
