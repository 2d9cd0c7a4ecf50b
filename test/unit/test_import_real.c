/* Real graphs: their published counts, and the graph on disk against a plain second reading of the input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "test/support/import_bed.h"
#include "tools/import/npz.h"

static const char *data;

static int begin(void **state)
{
	data = import_bed_real_data();
	import_bed_set_up(state);
	return 0;
}

#define NEED_DATA()                                                                                                    \
	do {                                                                                                           \
		if (!data)                                                                                             \
			skip();                                                                                        \
	} while (0)

static void open_graph(uint64_t nodes, uint64_t edges)
{
	import_bed_open(&import_bed);
	assert_int_equal(import_bed.meta->ntypes[0].count, nodes);
	assert_int_equal(import_bed.meta->etypes[0].count, edges);
}

/* Both columns of an archive, widened. */
static uint64_t *column(const struct gw_npz *npz, const char *name, uint64_t *count)
{
	struct gw_npy_file array;
	assert_int_equal(gw_npz_read(npz, name, &array), GW_OK);
	*count = array.npy.shape[0];
	uint64_t *values = malloc(*count * sizeof(*values));
	for (uint64_t i = 0; i < *count; i++)
		values[i] = array.npy.dtype == GW_INT32 ? (uint64_t)((const int32_t *)array.data)[i]
							: (uint64_t)((const int64_t *)array.data)[i];
	gw_npy_close(&array);
	return values;
}

static void check_archive(const char *file, uint64_t nodes, uint64_t edges)
{
	char path[4200];
	struct gw_npz *npz;
	uint64_t count;
	snprintf(path, sizeof(path), "%s/%s", data, file);
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "%s", path);
	open_graph(nodes, edges);
	assert_int_equal(gw_npz_open(path, &npz), GW_OK);
	uint64_t *src = column(npz, "src", &count), *dst = column(npz, "dst", &count);
	import_bed_check_edges(&import_bed, "_N:_E:_N", count, src, dst, NULL, false);
	free(src);
	free(dst);
	gw_npz_close(npz);
}

static void cnr_2000(void **state)
{
	(void)state;
	NEED_DATA();
	check_archive("cnr-2000/edges.npz", 325557, 3216152);
	const struct gw_adjacency *lists = gw_part_adjacency(import_bed.part, 0);
	uint64_t loops = 0, degree_max = 0;
	for (uint64_t v = 0; v < lists->rows; v++) {
		uint64_t from, to;
		gw_adjacency_list(lists, v, &from, &to);
		degree_max = to - from > degree_max ? to - from : degree_max;
		for (; from < to; from++)
			loops += gw_load_id(lists->indices, lists->index_bytes, from) == v;
	}
	assert_int_equal(loops, 87442);
	assert_int_equal(degree_max, 18235);
	import_bed_reset(&import_bed);
}

static void ego_twitter(void **state)
{
	(void)state;
	NEED_DATA();
	check_archive("ego-twitter/edges.npz", 81306, 1342310);
	import_bed_reset(&import_bed);
}

static void facebook(void **state)
{
	(void)state;
	NEED_DATA();
	check_archive("facebook/facebook.npz", 22470, 170823);
	const struct gw_array *feat = gw_part_array(import_bed.part, "node/_N/feat");
	assert_non_null(feat);
	assert_int_equal(feat->rows, 22470);
	assert_int_equal(feat->row_bytes, 4714);
	uint64_t ones = 0;
	for (uint64_t i = 0; i < feat->rows * feat->row_bytes; i++)
		ones += feat->data[i];
	assert_int_equal(ones, 314583); /* no feature twice in a row */
	const int64_t *label = import_bed_array(&import_bed, "node/_N/label");
	for (uint64_t i = 0; i < 22470; i++)
		assert_in_range(label[i], 0, 3);
	import_bed_reset(&import_bed);
}

static void cora(void **state)
{
	(void)state;
	NEED_DATA();
	check_archive("cora/cora.npz", 2708, 10556);
	assert_int_equal(gw_part_array(import_bed.part, "node/_N/feat")->row_bytes, 1433);
	static const char *const masks[] = {"node/_N/train_mask", "node/_N/val_mask", "node/_N/test_mask"};
	static const uint64_t sizes[] = {140, 500, 1000};
	for (int m = 0; m < 3; m++) {
		const uint8_t *mask = import_bed_array(&import_bed, masks[m]);
		uint64_t ones = 0;
		for (uint64_t i = 0; i < 2708; i++)
			ones += mask[i];
		assert_int_equal(ones, sizes[m]);
	}
	import_bed_reset(&import_bed);
}

static void check_knowledge_graph(const char *name, uint64_t entities, uint32_t relations, const uint64_t sizes[3])
{
	static const char *const files[] = {"train", "valid", "test"};
	static const char *const masks[] = {"train_mask", "val_mask", "test_mask"};
	import_bed.options.text.comments[0] = '\0';
	for (int f = 0; f < 3; f++)
		import_bed_word(&import_bed, GW_IMPORT_TRIPLES, "%s=%s/%s/%s.tsv.gz", files[f], data, name, files[f]);
	open_graph(entities, sizes[0] + sizes[1] + sizes[2]);
	assert_int_equal(import_bed.meta->etypes[0].relations, relations);
	char key[64];
	for (int m = 0; m < 3; m++) {
		snprintf(key, sizeof(key), "edge/_N___E___N/%s", masks[m]);
		const uint8_t *mask = import_bed_array(&import_bed, key);
		uint64_t ones = 0;
		for (uint64_t i = 0; i < import_bed.meta->etypes[0].count; i++)
			ones += mask[i];
		assert_int_equal(ones, sizes[m]);
	}
}

/* Every stored triple, by its names, is the line that its orig_id says. */
static void check_names(const char *name)
{
	static const char *const files[] = {"train", "valid", "test"};
	const struct gw_adjacency *lists = gw_part_adjacency(import_bed.part, 0);
	const uint32_t *rows = import_bed_array(&import_bed, "edge/_N___E___N/orig_id");
	const uint8_t *rel = import_bed_array(&import_bed, "edge/_N___E___N/rel");
	uint64_t *place = calloc(lists->edges, sizeof(*place)), *tail = calloc(lists->edges, sizeof(*tail));
	for (uint64_t v = 0; v < lists->rows; v++) {
		uint64_t from, to;
		gw_adjacency_list(lists, v, &from, &to);
		for (; from < to; from++) {
			place[rows[from]] = from;
			tail[from] = v;
		}
	}
	uint64_t row = 0;
	for (int f = 0; f < 3; f++) {
		char path[4200], line[1024];
		snprintf(path, sizeof(path), "%s/%s/%s.tsv.gz", data, name, files[f]);
		gzFile file = gzopen(path, "rb");
		assert_non_null(file);
		while (gzgets(file, line, sizeof(line))) {
			char *h = strtok(line, "\t\r\n"), *r = strtok(NULL, "\t\r\n"), *t = strtok(NULL, "\t\r\n");
			uint64_t at = place[row++];
			assert_true(import_bed_string_is(&import_bed, "node/_N/orig_id",
							 gw_load_id(lists->indices, lists->index_bytes, at), h));
			assert_true(import_bed_string_is(&import_bed, "edge/_N___E___N/rel.names", rel[at], r));
			assert_true(import_bed_string_is(&import_bed, "node/_N/orig_id", tail[at], t));
		}
		gzclose(file);
	}
	assert_int_equal(row, lists->edges);
	free(place);
	free(tail);
}

static void fb15k_237(void **state)
{
	(void)state;
	NEED_DATA();
	check_knowledge_graph("fb15k-237", 14541, 237, (const uint64_t[]){272115, 17535, 20466});
	check_names("fb15k-237");
	import_bed_reset(&import_bed);
}

static void wn18rr(void **state)
{
	(void)state;
	NEED_DATA();
	check_knowledge_graph("wn18rr", 40943, 11, (const uint64_t[]){86835, 3034, 3134});
	check_names("wn18rr");
	import_bed_reset(&import_bed);
}

static void bitcoin_otc(void **state)
{
	(void)state;
	NEED_DATA();
	import_bed_word(&import_bed, GW_IMPORT_EDGES, "%s/bitcoin-otc/soc-sign-bitcoinotc.csv.gz", data);
	import_bed_word(&import_bed, GW_IMPORT_EDGE_COLUMN, "rating=TRUST_INDEX");
	import_bed_word(&import_bed, GW_IMPORT_TIME, "TIME_SINCE_EPOCH");
	import_bed.options.time_digits = 5;
	import_bed.options.time_digits_given = true;
	import_bed.options.ids = GW_IDS_COMPACT;
	open_graph(5881, 35592);
	const struct gw_adjacency *lists = gw_part_adjacency(import_bed.part, 0);
	const int64_t *time = import_bed_array(&import_bed, "edge/_N___E___N/time");
	const float *rating = import_bed_array(&import_bed, "edge/_N___E___N/rating");
	for (uint64_t v = 0; v < lists->rows; v++) {
		uint64_t from, to;
		gw_adjacency_list(lists, v, &from, &to);
		for (; from < to; from++) {
			assert_true(rating[from] >= -10 && rating[from] <= 10 && rating[from] != 0);
			assert_true(from + 1 == to || time[from] <= time[from + 1]);
			assert_true(time[from] > 128900000000000 && time[from] < 145400000000000); /* 2010 to 2016 */
		}
	}
	import_bed_reset(&import_bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cnr_2000),    cmocka_unit_test(ego_twitter), cmocka_unit_test(facebook),
		cmocka_unit_test(cora),        cmocka_unit_test(fb15k_237),   cmocka_unit_test(wn18rr),
		cmocka_unit_test(bitcoin_otc),
	};
	return cmocka_run_group_tests_name("import_real", tests, begin, import_bed_tear_down);
}
