/* Edges of lists whose sources are in a set: every row of a random graph and many sets, compared with a walk over all
 * of it; ids that share a bucket; budgets of every size; every place to begin; and damaged lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "sampler/induced.h"

#define ROWS    30
#define COLUMNS 2
#define COLUMN  1
#define LONG    900 /* at most so many edges in a list: far more than a small set has sources */
#define SET_MAX 300

struct lists {
	uint32_t indptr[(ROWS + 1) * COLUMNS];
	uint32_t indices[ROWS * LONG];
	uint64_t wide_indices[ROWS * LONG];
	struct gw_adjacency adjacency;
};

/* Sources of which many are equal, and a few are far from all others. */
static uint64_t source_at(uint64_t number)
{
	uint64_t random = gw_mix64(number);
	return random % 50 ? random / 50 % 400 : 1u << 31 | random / 50 % 1000;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static void lists_make(struct lists *lists, bool sorted, bool wide)
{
	uint64_t at = 0;
	memset(lists, 0, sizeof(*lists));
	for (uint32_t row = 0; row < ROWS; row++) {
		uint64_t begin = at, degree = row % 3 ? gw_mix64(row) % (row % 5 ? 40 : LONG) : 0;
		for (uint64_t j = 0; j < degree; j++, at++)
			lists->wide_indices[at] = source_at(at);
		if (sorted)
			qsort(lists->wide_indices + begin, at - begin, sizeof(uint64_t), by_number);
		lists->indptr[(row + 1) * COLUMNS + COLUMN] = (uint32_t)at;
	}
	for (uint64_t i = 0; i < at; i++)
		lists->indices[i] = (uint32_t)lists->wide_indices[i];
	lists->adjacency = (struct gw_adjacency){.indptr = lists->indptr,
						 .indices = wide ? (void *)lists->wide_indices : lists->indices,
						 .rows = ROWS,
						 .edges = at,
						 .columns = COLUMNS,
						 .column = COLUMN,
						 .indptr_bytes = 4,
						 .index_bytes = wide ? 8 : 4};
}

/* Ascending, without repeats. Returns how many. */
static uint32_t set_make(uint64_t seed, uint32_t wanted, uint64_t *ids)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < wanted; i++)
		ids[i] = source_at(gw_mix64(seed) + i);
	qsort(ids, wanted, sizeof(*ids), by_number);
	for (uint32_t i = 0; i < wanted; i++) {
		if (!n || ids[n - 1] != ids[i])
			ids[n++] = ids[i];
	}
	return n;
}

static bool next_edge(const struct lists *lists, const uint64_t *ids, uint32_t n, uint64_t *at, uint64_t end,
		      uint32_t *place)
{
	for (; *at < end; ++*at) {
		const uint64_t *found = bsearch(&lists->wide_indices[*at], ids, n, sizeof(*ids), by_number);
		if (found) {
			*place = (uint32_t)(found - ids);
			return true;
		}
	}
	return false;
}

/* Returns the number of slices. */
static uint64_t check_row(const struct lists *lists, bool sorted, uint32_t row, const struct gw_source_set *set,
			  uint64_t from, uint64_t slice)
{
	struct gw_induced induced;
	uint64_t position, budget = slice, slices = 1, at = lists->indptr[row * COLUMNS + COLUMN];
	uint64_t end = lists->indptr[(row + 1) * COLUMNS + COLUMN];
	uint32_t place, wanted;
	assert_int_equal(gw_induced_begin(&induced, &lists->adjacency, sorted ? GW_ORDER_SRC : GW_ORDER_TIME_SRC, row,
					  set, from),
			 GW_OK);
	for (at = from > at ? from : at; next_edge(lists, set->ids, set->count, &at, end, &wanted); at++) {
		while (!gw_induced_next(&induced, set, &budget, &position, &place)) {
			assert_int_equal(budget, 0);
			assert_true(induced.at < induced.end);
			budget = slice;
			slices++;
		}
		assert_int_equal(position, at);
		assert_int_equal(place, wanted);
	}
	while (induced.at < induced.end) {
		budget = slice;
		assert_false(gw_induced_next(&induced, set, &budget, &position, &place));
	}
	return slices;
}

static void rows_have_their_edges(void **state)
{
	(void)state;
	static struct lists lists;
	static const uint32_t sizes[] = {1, 2, 7, 30, SET_MAX};
	struct gw_source_set set = {0};
	uint64_t ids[SET_MAX], slices = 0;
	for (uint32_t i = 0; i < 4 * sizeof(sizes) / sizeof(sizes[0]); i++) {
		bool sorted = i & 1, wide = i & 2;
		lists_make(&lists, sorted, wide);
		uint32_t n = set_make(i, sizes[i / 4], ids);
		assert_int_equal(gw_source_set_fill(&set, ids, n), GW_OK);
		for (uint32_t row = 0; row < ROWS; row++) {
			uint64_t begin = lists.indptr[row * COLUMNS + COLUMN];
			uint64_t degree = lists.indptr[(row + 1) * COLUMNS + COLUMN] - begin;
			for (uint64_t slice = 1; slice < 2000; slice = slice * 3 + 1)
				slices += check_row(&lists, sorted, row, &set, 0, slice);
			for (uint64_t from = begin; from <= begin + degree; from += 1 + degree / 20)
				check_row(&lists, sorted, row, &set, from, UINT64_MAX);
		}
	}
	assert_true(slices > 1000);
	gw_source_set_free(&set);
}

/* A hub whose sources are sorted is not walked: each source of a small set is looked up in it. */
static void hubs_are_searched(void **state)
{
	(void)state;
	enum { DEGREE = 100000 };
	uint32_t indptr[2] = {0, DEGREE}, *indices = malloc(DEGREE * sizeof(*indices)), place, found = 0;
	const uint64_t ids[] = {5, 777, 1ull << 40};
	struct gw_source_set set = {0};
	struct gw_induced induced;
	uint64_t position, budget = 1000;
	for (uint32_t i = 0; i < DEGREE; i++)
		indices[i] = i / 2;
	const struct gw_adjacency lists = {.indptr = indptr,
					   .indices = indices,
					   .rows = 1,
					   .edges = DEGREE,
					   .columns = 1,
					   .indptr_bytes = 4,
					   .index_bytes = 4};
	assert_int_equal(gw_source_set_fill(&set, ids, 3), GW_OK);
	assert_int_equal(gw_induced_begin(&induced, &lists, GW_ORDER_SRC, 0, &set, 0), GW_OK);
	while (gw_induced_next(&induced, &set, &budget, &position, &place)) {
		assert_int_equal(position, 2 * ids[found / 2] + found % 2);
		found++;
	}
	assert_int_equal(found, 4);
	assert_int_equal(induced.at, induced.end);
	assert_int_equal(gw_induced_begin(&induced, &lists, GW_ORDER_TIME_SRC, 0, &set, 0), GW_OK);
	budget = 1000;
	while (gw_induced_next(&induced, &set, &budget, &position, &place))
		continue;
	assert_int_equal(budget, 0);
	assert_int_equal(induced.at, 1000); /* no slice takes longer than its budget */
	gw_source_set_free(&set);
	free(indices);
}

/* Offsets and rows of a peer. */
static void damaged_lists_are_refused(void **state)
{
	(void)state;
	uint32_t indptr[3] = {0, 9, 4}, indices[8] = {0};
	const uint64_t ids[] = {0};
	struct gw_source_set set = {0};
	struct gw_induced induced;
	const struct gw_adjacency lists = {.indptr = indptr,
					   .indices = indices,
					   .rows = 2,
					   .edges = 8,
					   .columns = 1,
					   .indptr_bytes = 4,
					   .index_bytes = 4};
	assert_int_equal(gw_source_set_fill(&set, ids, 1), GW_OK);
	for (uint64_t row = 0; row < 3;
	     row++) /* its end is past the edges, or before its begin, or it does not exist */
		assert_int_equal(gw_induced_begin(&induced, &lists, GW_ORDER_SRC, row, &set, 0), GW_RANGE);
	assert_int_equal(gw_induced_begin(&induced, &lists, GW_ORDER_SRC, UINT64_MAX, &set, 0), GW_RANGE);
	gw_source_set_free(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_have_their_edges),
		cmocka_unit_test(hubs_are_searched),
		cmocka_unit_test(damaged_lists_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
