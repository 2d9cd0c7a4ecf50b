/* The inverse of original ids compared with a plain search over random ids, with any number of threads; refusals of
 * the format; and every error that verify finds in the array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "core/graph/inverse.h"
#include "core/numbers/rng.h"
#include "test/support/alloc_fault.h"
#include "test/support/graph_fixture.h"

#define FOLDER "n__e__n"
#define KEY    "edge/" FOLDER "/orig_id"
#define EDGES  150000u /* more than two chunks */

/* A graph of one node, whose edges are loops: only their number matters. */
struct loops {
	char root[64], folder[96];
	uint64_t edges;
	struct gw_writer *writer;
	struct gw_graph_meta *meta;
	struct gw_part *part;
};

static void loops_begin(struct loops *loops, uint64_t edges, uint32_t parts)
{
	struct gw_graph_meta *schema;
	const uint64_t none = 0;
	memset(loops, 0, sizeof(*loops));
	gw_test_folder(loops->root);
	snprintf(loops->folder, sizeof(loops->folder), "%s/g", loops->root);
	loops->edges = edges;
	assert_int_equal(gw_meta_create("g", parts, 1, 1, &schema), GW_OK);
	strcpy(schema->ntypes[0].name, "n");
	strcpy(schema->etypes[0].name, "e");
	schema->ntypes[0].count = 1;
	schema->etypes[0].count = edges;
	for (uint32_t p = 1; p <= parts; p++) {
		schema->ntypes[0].starts[p] = 1;
		schema->etypes[0].starts[p] = edges;
	}
	assert_int_equal(gw_meta_finish(schema), GW_OK);
	assert_int_equal(gw_writer_open(loops->folder, schema, false, &loops->writer), GW_OK);
	gw_meta_destroy(schema);
	uint64_t *ids = calloc(edges + 1, sizeof(*ids));
	for (uint32_t p = 0; p < parts; p++) {
		uint64_t rows = p == 0, indptr[2] = {0, edges};
		const uint64_t *column = p == 0 ? indptr : &none;
		assert_int_equal(gw_writer_indptr(loops->writer, p, "node/n/indptr", rows, 1, &column), GW_OK);
		assert_int_equal(gw_writer_ids(loops->writer, p, "edge/" FOLDER "/indices", ids, p == 0 ? edges : 0, 1),
				 GW_OK);
	}
	free(ids);
}

static void loops_open(struct loops *loops)
{
	const struct gw_part_options options = {.mapped = true};
	if (gw_writer_commit(loops->writer, NULL) || gw_meta_read(loops->folder, &loops->meta) ||
	    gw_part_open(loops->meta, 0, &options, &loops->part))
		fail_msg("%s", gw_last_error());
}

static void loops_end(struct loops *loops)
{
	gw_part_close(loops->part);
	gw_meta_destroy(loops->meta);
	assert_int_equal(gw_remove_tree(loops->root), GW_OK);
}

static uint64_t id_at(const void *context, uint64_t position)
{
	return ((const uint64_t *)context)[position];
}

enum ids { PERMUTED, SHARED, HOLE, BEYOND, NEGATIVE, KINDS };

static void make_ids(uint64_t *ids, uint64_t edges, enum ids kind, uint64_t seed)
{
	for (uint64_t i = 0; i < edges; i++) /* shared: about three edges per id */
		ids[i] = kind == SHARED ? i / 3 : i;
	for (uint64_t i = edges; i > 1; i--) {
		uint64_t other = gw_mix64(seed + i) % i, kept = ids[i - 1];
		ids[i - 1] = ids[other];
		ids[other] = kept;
	}
	uint64_t at = edges ? gw_mix64(seed) % edges : 0;
	if (edges && kind >= HOLE)
		ids[at] = kind == HOLE ? ids[(at + 1) % edges] : kind == BEYOND ? edges : UINT64_MAX;
}

/* The array gives what a search finds, and passes the check. It exists only if every id is used. */
static void check_one(uint64_t edges, enum ids kind, unsigned threads)
{
	struct loops loops;
	uint64_t *ids = malloc((edges + 1) * sizeof(*ids)), *first = malloc((edges + 1) * sizeof(*first));
	uint64_t rows, found = 0, greatest = 0;
	loops_begin(&loops, edges, 1);
	make_ids(ids, edges, kind, edges + kind);
	memset(first, 0xff, (edges + 1) * sizeof(*first));
	for (uint64_t i = 0; i < edges; i++) {
		greatest = ids[i] > greatest ? ids[i] : greatest;
		if (ids[i] < edges && first[ids[i]] == UINT64_MAX) {
			first[ids[i]] = i;
			found++;
		}
	}
	assert_int_equal(gw_writer_array(loops.writer, 0, KEY, GW_INT64, 1, &edges, ids), GW_OK);
	assert_int_equal(gw_inverse_write(loops.writer, KEY, id_at, ids, edges, threads, &rows), GW_OK);
	loops_open(&loops);
	const struct gw_array *array = gw_part_array(loops.part, KEY ".inverse");
	bool whole = edges == 0 || (greatest < edges && found == greatest + 1);
	assert_true(whole || kind >= HOLE);
	assert_int_equal(array != NULL, whole);
	assert_int_equal(rows, whole ? found : 0);
	assert_int_equal(array ? array->rows : 0, rows);
	for (uint64_t id = 0; array && id < rows; id++)
		assert_int_equal(((const uint32_t *)array->data)[id], first[id]);
	assert_int_equal(gw_inverse_check(loops.part, 0, threads), GW_OK);
	free(first);
	free(ids);
	loops_end(&loops);
}

static void test_compared_with_a_search(void **state)
{
	static const uint64_t counts[] = {0, 1, 2, 7, 1000, EDGES};
	(void)state;
	for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
		for (int kind = 0; kind < KINDS; kind++)
			check_one(counts[c], (enum ids)kind, 1 + (unsigned)(c + (size_t)kind) % 4);
	}
}

/* The writer computes the digests, so they fit the faulty array. */
static void test_each_fault_is_found(void **state)
{
	static const uint32_t right[] = {2, 0, 1};
	static const struct {
		uint32_t inverse[4];
		uint64_t rows;
		const char *says; /* NULL: it is right */
	} cases[] = {
		{{1, 2, 0}, 3, NULL},          {{1, 2, 3}, 3, "row 2 names"},   {{1, 2, UINT32_MAX}, 3, "row 2 names"},
		{{1, 0, 0}, 3, "row 1 names"}, {{1, 2}, 2, "row 2 is missing"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct loops loops;
		loops_begin(&loops, 3, 1);
		assert_int_equal(gw_writer_array(loops.writer, 0, KEY, GW_UINT32, 1, &loops.edges, right), GW_OK);
		assert_int_equal(gw_writer_array(loops.writer, 0, KEY ".inverse", GW_UINT32, 1, &cases[i].rows,
						 cases[i].inverse),
				 GW_OK);
		loops_open(&loops);
		gw_status status = gw_inverse_check(loops.part, 0, 2);
		assert_int_equal(status, cases[i].says ? GW_FORMAT : GW_OK);
		if (cases[i].says) {
			assert_non_null(strstr(gw_last_error(), "part0/" KEY ".inverse.npy: " KEY ".inverse: row"));
			assert_non_null(strstr(gw_last_error(), cases[i].says));
		}
		loops_end(&loops);
	}

	/* If edges share an id, the array has the first of them. */
	struct loops loops;
	const uint32_t shared[] = {0, 0, 0}, later = 1;
	const uint64_t one = 1;
	loops_begin(&loops, 3, 1);
	assert_int_equal(gw_writer_array(loops.writer, 0, KEY, GW_UINT32, 1, &loops.edges, shared), GW_OK);
	assert_int_equal(gw_writer_array(loops.writer, 0, KEY ".inverse", GW_UINT32, 1, &one, &later), GW_OK);
	loops_open(&loops);
	assert_int_equal(gw_inverse_check(loops.part, 0, 1), GW_FORMAT);
	assert_non_null(strstr(gw_last_error(), "row 0 does not name the first edge"));
	loops_end(&loops);
}

static void test_what_the_format_refuses(void **state)
{
	static const uint32_t ids[] = {0, 1, 2, 3};
	const uint64_t three = 3, four = 4;
	struct loops loops;
	(void)state;
	loops_begin(&loops, 3, 2);
	assert_int_equal(gw_writer_array(loops.writer, 0, KEY ".inverse", GW_UINT32, 1, &three, ids), GW_INVALID);
	assert_non_null(strstr(gw_last_error(), "only a graph in one part"));
	gw_writer_abort(loops.writer);
	loops_end(&loops);

	loops_begin(&loops, 3, 1);
	assert_int_equal(gw_writer_array(loops.writer, 0, KEY ".inverse", GW_UINT32, 1, &three, ids), GW_OK);
	assert_int_equal(gw_writer_commit(loops.writer, NULL), GW_INVALID);
	assert_non_null(strstr(gw_last_error(), "there is no \"" KEY "\""));
	loops_end(&loops);

	loops_begin(&loops, 3, 1);
	assert_int_equal(gw_writer_array(loops.writer, 0, KEY, GW_UINT32, 1, &three, ids), GW_OK);
	assert_int_equal(gw_writer_array(loops.writer, 0, KEY ".inverse", GW_UINT32, 1, &four, ids), GW_OK);
	assert_int_equal(gw_writer_commit(loops.writer, NULL), GW_INVALID);
	assert_non_null(strstr(gw_last_error(), "4 rows, but there are 3 edges"));
	loops_end(&loops);

	loops_begin(&loops, 3, 1);
	assert_int_equal(gw_writer_array(loops.writer, 0, KEY ".inverse", GW_INT64, 1, &three, ids), GW_INVALID);
	assert_non_null(strstr(gw_last_error(), "dtype cannot be int64"));
	gw_writer_abort(loops.writer);
	loops_end(&loops);
}

/* The width of original ids depends on how many may exist. */
static void test_widths(void **state)
{
	static const uint64_t ids[] = {2, 0, 1};
	static const uint64_t spaces[] = {3, UINT32_MAX - 1, UINT32_MAX, 1ull << 40};
	(void)state;
	for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
		struct loops loops;
		loops_begin(&loops, 3, 1);
		assert_int_equal(gw_writer_edge_origins(loops.writer, 0, KEY, ids, 3, spaces[i]), GW_OK);
		loops_open(&loops);
		const struct gw_array *array = gw_part_array(loops.part, KEY);
		assert_int_equal(array->meta->dtype, i < 2 ? GW_UINT32 : GW_INT64);
		for (uint64_t e = 0; e < 3; e++)
			assert_int_equal(gw_load_id(array->data, (uint8_t)array->row_bytes, e), ids[e]);
		loops_end(&loops);
	}
	struct loops loops;
	loops_begin(&loops, 3, 1);
	assert_int_equal(gw_writer_edge_origins(loops.writer, 0, KEY, ids, 3, 2), GW_RANGE);
	gw_writer_abort(loops.writer);
	loops_end(&loops);
}

static gw_status write_inverse(void *context)
{
	struct loops loops;
	static const uint64_t ids[] = {1, 0};
	(void)context;
	loops_begin(&loops, 2, 1);
	gw_fault_begin(1);
	gw_status status = gw_inverse_write(loops.writer, KEY, id_at, ids, 2, 1, NULL);
	bool hit = gw_fault_hit();
	assert_int_equal(gw_fault_end(), 0);
	gw_writer_abort(loops.writer);
	loops_end(&loops);
	return hit ? status : GW_OK;
}

static void test_no_memory(void **state)
{
	(void)state;
	assert_int_equal(write_inverse(NULL), GW_NO_MEMORY);
	assert_non_null(strstr(gw_last_error(), KEY));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_compared_with_a_search),
		cmocka_unit_test(test_each_fault_is_found),
		cmocka_unit_test(test_what_the_format_refuses),
		cmocka_unit_test(test_widths),
		cmocka_unit_test(test_no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
