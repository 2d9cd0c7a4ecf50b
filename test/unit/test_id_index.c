/* From original ids to nodes: against a plain search, for numbers that are dense, sparse and repeated, and for texts;
 * in 1, 2, 3 and 8 parts, some of them empty; in buckets of any length; written by any number of threads in any number
 * of ranges; with memory short. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "core/graph/book.h"
#include "core/graph/id_index.h"
#include "test/support/alloc_fault.h"
#include "test/support/graph_fixture.h"

enum ids { DENSE, SPARSE, REPEATED, HOLE, UUIDS, TEXTS_REPEATED, KINDS };

#define UUID_BYTES 36u
#define PARTS_MAX  8u

/* A graph of nodes alone. */
struct bed {
	char root[64], folder[96];
	uint32_t parts;
	uint64_t nodes;
	enum ids kind;
	int64_t *numbers;  /* [nodes] */
	uint64_t *offsets; /* [nodes + 1] */
	char *bytes;
	struct gw_writer *writer;
	struct gw_graph_meta *meta;
	struct gw_part *part[PARTS_MAX];
};

static bool is_text(const struct bed *bed)
{
	return bed->kind >= UUIDS;
}

static void make_ids(struct bed *bed)
{
	uint64_t n = bed->nodes;
	bed->numbers = calloc(n + 1, sizeof(*bed->numbers));
	bed->offsets = calloc(n + 1, sizeof(*bed->offsets));
	bed->bytes = calloc(n + 1, UUID_BYTES + 1);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t mix = gw_mix64(i + 77), same = bed->kind == TEXTS_REPEATED ? i / 3 : i;
		bed->numbers[i] = bed->kind == SPARSE     ? (int64_t)mix
				  : bed->kind == REPEATED ? (int64_t)(i / 4) - 7
							  : (int64_t)i;
		/* the first text is empty */
		int length = same == 0 ? 0
				       : sprintf(bed->bytes + bed->offsets[i], "%08x-0000-4000-8000-%012llx",
						 (unsigned)gw_mix64(same), (unsigned long long)same);
		bed->offsets[i + 1] = bed->offsets[i] + (uint64_t)length;
	}
	if (bed->kind == HOLE && n)
		bed->numbers[n / 2] = (int64_t)n;
	for (uint64_t i = n; i > 1; i--) { /* in no order */
		uint64_t other = gw_mix64(i) % i;
		int64_t kept = bed->numbers[i - 1];
		bed->numbers[i - 1] = bed->numbers[other];
		bed->numbers[other] = kept;
	}
}

static gw_status write_ids(struct bed *bed)
{
	gw_status status = GW_OK;
	for (uint32_t p = 0; p < bed->parts && status == GW_OK; p++) {
		const uint64_t *starts = gw_writer_meta(bed->writer)->ntypes[0].starts;
		uint64_t first = starts[p], rows = starts[p + 1] - first;
		if (is_text(bed)) {
			uint64_t *offsets = calloc(rows + 1, sizeof(*offsets));
			for (uint64_t i = 0; i <= rows; i++)
				offsets[i] = bed->offsets[first + i] - bed->offsets[first];
			status = gw_writer_strings(bed->writer, p, "node/n/orig_id", offsets, rows,
						   bed->bytes + bed->offsets[first]);
			free(offsets);
		} else {
			status = gw_writer_array(bed->writer, p, "node/n/orig_id", GW_INT64, 1, &rows,
						 bed->numbers + first);
		}
	}
	return status;
}

/* Part 1 is empty where there are three parts or more. */
static void bed_begin(struct bed *bed, enum ids kind, uint64_t nodes, uint32_t parts)
{
	struct gw_graph_meta *schema;
	memset(bed, 0, sizeof(*bed));
	gw_test_folder(bed->root);
	snprintf(bed->folder, sizeof(bed->folder), "%s/g", bed->root);
	bed->parts = parts;
	bed->nodes = nodes;
	bed->kind = kind;
	make_ids(bed);
	assert_int_equal(gw_meta_create("g", parts, 1, 0, &schema), GW_OK);
	strcpy(schema->ntypes[0].name, "n");
	schema->ntypes[0].count = nodes;
	for (uint32_t p = 1; p <= parts; p++)
		schema->ntypes[0].starts[p] = p == 2 && parts > 2 ? schema->ntypes[0].starts[1] : nodes * p / parts;
	assert_int_equal(gw_meta_finish(schema), GW_OK);
	assert_int_equal(gw_writer_open(bed->folder, schema, true, &bed->writer), GW_OK);
	gw_meta_destroy(schema);
}

static void bed_open(struct bed *bed)
{
	const struct gw_part_options options = {.mapped = true};
	if (gw_writer_commit(bed->writer, NULL) != GW_OK || gw_meta_read(bed->folder, &bed->meta) != GW_OK)
		fail_msg("%s", gw_last_error());
	for (uint32_t p = 0; p < bed->parts; p++) {
		if (gw_part_open(bed->meta, p, &options, &bed->part[p]) != GW_OK)
			fail_msg("%s", gw_last_error());
	}
}

static void bed_end(struct bed *bed)
{
	for (uint32_t p = 0; p < bed->parts; p++)
		gw_part_close(bed->part[p]);
	gw_meta_destroy(bed->meta);
	free(bed->numbers);
	free(bed->offsets);
	free(bed->bytes);
	assert_int_equal(gw_remove_tree(bed->root), GW_OK);
}

static uint64_t look_up(const struct bed *bed, int64_t number, const char *text, size_t bytes)
{
	struct gw_id_index index;
	uint64_t key[GW_ID_KEY_WORDS], node;
	uint32_t part;
	switch (gw_id_form(bed->meta, 0)) {
	case GW_IDS_DENSE:
		if ((uint64_t)number >= bed->nodes)
			return GW_ID_MISSING;
		part = gw_dense_owner((uint64_t)number, bed->nodes, bed->parts);
		key[0] = (uint64_t)number - gw_dense_start(bed->nodes, part, bed->parts);
		break;
	case GW_IDS_NUMBERS:
		key[0] = gw_id_number_key(number);
		part = gw_id_key_owner(key[0], bed->parts);
		break;
	default:
		gw_id_text_key(text, bytes, key);
		part = gw_id_key_owner(key[0], bed->parts);
	}
	assert_true(gw_id_index_of(bed->part[part], 0, &index));
	assert_int_equal(gw_id_index_look_up(&index, key, 1, &node), GW_OK);
	return node;
}

static uint64_t search_input(const struct bed *bed, uint64_t of)
{
	uint64_t found = GW_ID_MISSING;
	size_t bytes = bed->offsets[of + 1] - bed->offsets[of];
	for (uint64_t i = 0; i < bed->nodes; i++) {
		bool same = is_text(bed) ? bed->offsets[i + 1] - bed->offsets[i] == bytes &&
						   memcmp(bed->bytes + bed->offsets[i], bed->bytes + bed->offsets[of],
							  bytes) == 0
					 : bed->numbers[i] == bed->numbers[of];
		if (same && found != GW_ID_MISSING)
			return found | GW_ID_SHARED;
		if (same)
			found = i;
	}
	return found;
}

static void check_ids(const struct bed *bed)
{
	struct gw_id_scan scan = {0};
	static const enum gw_id_form forms[KINDS] = {GW_IDS_DENSE,   GW_IDS_NUMBERS, GW_IDS_NUMBERS,
						     GW_IDS_NUMBERS, GW_IDS_TEXTS,   GW_IDS_TEXTS};
	assert_int_equal(gw_id_form(bed->meta, 0), bed->nodes || is_text(bed) ? forms[bed->kind] : GW_IDS_DENSE);
	for (uint64_t i = 0; i < bed->nodes; i++) {
		const char *text = bed->bytes + bed->offsets[i];
		uint64_t node = look_up(bed, bed->numbers[i], text, bed->offsets[i + 1] - bed->offsets[i]);
		assert_true(node == search_input(bed, i));
	}
	assert_true(look_up(bed, -8, "x", 1) == GW_ID_MISSING);
	assert_true(look_up(bed, INT64_MAX, "\0", 1) == GW_ID_MISSING);
	assert_true(look_up(bed, INT64_MIN, "00000000-0000-4000-8000-000000000000", UUID_BYTES) == GW_ID_MISSING);
	for (uint32_t p = 0; p < bed->parts; p++)
		assert_int_equal(gw_id_index_scan(bed->part[p], 0, 2, &scan), GW_OK);
	assert_true(scan.nodes == scan.entries);
}

static void ids_in_are_ids_out(void **state)
{
	(void)state;
	static const uint64_t sizes[] = {0, 1, 2, 700};
	static const uint32_t parts[] = {1, 2, 3, 8};
	for (enum ids kind = 0; kind < KINDS; kind++) {
		for (uint32_t i = 0; i < 16; i++) {
			struct bed bed;
			if (sizes[i / 4] < 4 && kind != DENSE && kind != SPARSE && kind != UUIDS)
				continue;
			bed_begin(&bed, kind, sizes[i / 4], parts[i % 4]);
			assert_int_equal(write_ids(&bed), GW_OK);
			assert_int_equal(gw_id_index_write(bed.writer, 1 + i % 3, i % 2 ? 100 : 0), GW_OK);
			bed_open(&bed);
			assert_int_equal(bed.meta->minor, GW_FORMAT_MINOR_IDS);
			check_ids(&bed);
			bed_end(&bed);
		}
	}
}

/* An index in memory: entries of any number in each bucket, sorted, most keys repeated. */
struct lists {
	struct gw_id_index index;
	uint64_t *entries; /* [index.rows][words + 1] */
	uint32_t *buckets; /* [index.bucket_count + 1] */
};

static int compare_keys(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	for (int w = 0; w < 3; w++) { /* a number's entry is {key, node} and a zero */
		if (x[w] != y[w])
			return x[w] < y[w] ? -1 : 1;
	}
	return 0;
}

/* Keys of a graph of one part, from few values, so that a bucket has long runs of one key. */
static void lists_begin(struct lists *lists, uint32_t words, uint64_t rows, uint64_t buckets, uint64_t seed)
{
	uint64_t(*sorted)[3] = calloc(rows + 1, sizeof(*sorted));
	*lists = (struct lists){.entries = calloc(rows + 1, (words + 1) * sizeof(uint64_t)),
				.buckets = calloc(buckets + 1, sizeof(uint32_t))};
	for (uint64_t i = 0; i < rows; i++) {
		uint64_t value = gw_mix64(seed + i) % (rows * 2 / 3 + 1);
		sorted[i][0] = gw_mix64(words == 2 ? value / 2 : value); /* two keys have one first word */
		sorted[i][1] = words == 2 ? gw_mix64(value + 1) : i;
		sorted[i][2] = words == 2 ? i : 0;
	}
	qsort(sorted, rows, sizeof(*sorted), compare_keys);
	for (uint64_t i = 0; i < rows; i++) {
		memcpy(lists->entries + i * (words + 1), sorted[i], (words + 1) * sizeof(uint64_t));
		for (uint64_t b = gw_id_key_bucket(sorted[i][0], 1, buckets) + 1; b <= buckets; b++)
			lists->buckets[b]++;
	}
	lists->index = (struct gw_id_index){.form = words == 2 ? GW_IDS_TEXTS : GW_IDS_NUMBERS,
					    .entries = lists->entries,
					    .rows = rows,
					    .buckets = lists->buckets,
					    .bucket_bytes = 4,
					    .bucket_count = buckets,
					    .words = words,
					    .parts = 1};
	free(sorted);
}

static uint64_t search_entries(const struct lists *lists, const uint64_t *key)
{
	uint32_t words = lists->index.words;
	uint64_t found = GW_ID_MISSING;
	for (uint64_t i = 0; i < lists->index.rows; i++) {
		const uint64_t *entry = lists->entries + i * (words + 1);
		if (memcmp(entry, key, words * sizeof(*key)) != 0)
			continue;
		if (found != GW_ID_MISSING)
			return found | GW_ID_SHARED;
		found = entry[words];
	}
	return found;
}

static void every_place_of_a_bucket_is_found(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 240; i++) {
		struct lists lists;
		uint32_t words = 1 + i % 2;
		uint64_t rows = i / 2, nodes[130], keys[260], expected[130];
		lists_begin(&lists, words, rows, 1 + gw_mix64(i) % 4, i);
		for (uint64_t k = 0; k < rows + 10; k++) {
			uint64_t *key = keys + k * words, near = k < rows ? 0 : 1 + k % 2 * (UINT64_MAX - 1);
			const uint64_t *entry = lists.entries + k % (rows ? rows : 1) * (words + 1);
			memcpy(key, entry, words * sizeof(*key));
			key[words - 1] += near; /* the next number, or the one before */
			expected[k] = search_entries(&lists, key);
		}
		assert_int_equal(gw_id_index_look_up(&lists.index, keys, rows + 10, nodes), GW_OK);
		assert_memory_equal(nodes, expected, (rows + 10) * sizeof(*nodes));
		free(lists.entries);
		free(lists.buckets);
	}
}

/* More nodes than one chunk, so that threads meet. */
static void any_way_of_writing_gives_the_same_files(void **state)
{
	(void)state;
	static const struct {
		unsigned threads;
		uint64_t range_bytes;
	} ways[] = {{1, 0}, {3, 0}, {1, 1}, {2, 70000}, {0, 1 << 20}};
#ifdef __SANITIZE_THREAD__
	static const uint64_t nodes = 30000;
#else
	static const uint64_t nodes = 150000;
#endif
	for (enum ids kind = DENSE; kind < KINDS; kind++) {
		uint64_t ids[sizeof(ways) / sizeof(ways[0])];
		for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
			struct bed bed;
			bed_begin(&bed, kind, nodes, 3);
			assert_int_equal(write_ids(&bed), GW_OK);
			assert_int_equal(gw_id_index_write(bed.writer, ways[w].threads, ways[w].range_bytes), GW_OK);
			bed_open(&bed);
			ids[w] = bed.meta->graph_id;
			assert_true(ids[w] == ids[0]);
			bed_end(&bed);
		}
	}
}

static void older_names_stay_features(void **state)
{
	(void)state;
	struct bed bed;
	bed_begin(&bed, SPARSE, 10, 1);
	assert_int_equal(write_ids(&bed), GW_OK);
	assert_int_equal(gw_writer_array(bed.writer, 0, "node/n/orig_id.index", GW_INT64, 1, &bed.nodes, bed.numbers),
			 GW_OK);
	assert_int_equal(gw_id_index_write(bed.writer, 1, 0), GW_OK);
	bed_open(&bed);
	assert_int_equal(bed.meta->minor, 1);
	assert_int_equal(gw_id_form(bed.meta, 0), GW_IDS_NONE);
	bed_end(&bed);
}

static void wrong_shapes_are_refused(void **state)
{
	(void)state;
	static const struct {
		uint64_t rows, columns, buckets;
		bool dense;
		const char *says;
	} cases[] = {
		{10, 2, 2, true, "both"},       {9, 2, 2, false, "as many as the nodes"}, {11, 2, 2, false, "as many"},
		{10, 3, 2, false, "3 columns"}, {10, 2, 1, false, "no bucket"},           {10, 2, 0, false, "neither"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bed bed;
		uint64_t shape[2] = {cases[i].rows, cases[i].columns};
		const uint64_t zeros[64] = {0};
		bed_begin(&bed, SPARSE, 10, 1);
		assert_int_equal(write_ids(&bed), GW_OK);
		gw_writer_set_minor(bed.writer, GW_FORMAT_MINOR_IDS);
		if (cases[i].dense)
			assert_int_equal(gw_writer_array(bed.writer, 0, "node/n/orig_id.inverse", GW_UINT32, 1,
							 &bed.nodes, zeros),
					 GW_OK);
		assert_int_equal(gw_writer_array(bed.writer, 0, "node/n/orig_id.index", GW_UINT64, 2, shape, zeros),
				 GW_OK);
		if (cases[i].buckets)
			assert_int_equal(gw_writer_array(bed.writer, 0, "node/n/orig_id.buckets", GW_UINT32, 1,
							 &cases[i].buckets, zeros),
					 GW_OK);
		assert_int_equal(gw_writer_commit(bed.writer, NULL), GW_INVALID);
		if (!strstr(gw_last_error(), cases[i].says))
			fail_msg("%s", gw_last_error());
		free(bed.numbers);
		free(bed.offsets);
		free(bed.bytes);
		assert_int_equal(gw_remove_tree(bed.root), GW_OK);
	}
}

/* Every allocation fails once: that is an error, and what was allocated is freed (a sanitizer looks). */
static void memory_short(void **state)
{
	(void)state;
	for (enum ids kind = DENSE; kind < KINDS; kind += 2) {
		bool hit = true;
		for (unsigned long n = 1; hit; n++) {
			struct bed bed;
			bed_begin(&bed, kind, 40, 2);
			assert_int_equal(write_ids(&bed), GW_OK);
			gw_fault_begin(n);
			gw_status status = gw_id_index_write(bed.writer, 1, 100);
			hit = gw_fault_hit();
			(void)gw_fault_end(); /* the writer's lists have grown, too */
			assert_int_equal(status, hit ? GW_NO_MEMORY : GW_OK);
			assert_true(hit || n > 10);
			gw_writer_abort(bed.writer);
			free(bed.numbers);
			free(bed.offsets);
			free(bed.bytes);
			assert_int_equal(gw_remove_tree(bed.root), GW_OK);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_in_are_ids_out),
		cmocka_unit_test(every_place_of_a_bucket_is_found),
		cmocka_unit_test(any_way_of_writing_gives_the_same_files),
		cmocka_unit_test(older_names_stay_features),
		cmocka_unit_test(wrong_shapes_are_refused),
		cmocka_unit_test(memory_short),
	};
	return cmocka_run_group_tests_name("id_index", tests, NULL, NULL);
}
