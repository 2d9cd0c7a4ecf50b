/* Lookups of edges in lists: every position and every pair of a random graph compared with a walk over all of it;
 * budgets of every size; and damaged lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "sampler/lookup.h"

#define ROWS    50
#define SOURCES 7 /* few, so that parallel edges exist */
#define COLUMNS 3
#define LONG    300 /* at most so many edges in a list; several blocks */
#define COLUMN  1

struct lists {
	uint32_t indptr[(ROWS + 1) * COLUMNS];
	uint64_t wide_indptr[(ROWS + 1) * COLUMNS];
	uint32_t indices[ROWS * LONG];
	uint64_t wide_indices[ROWS * LONG];
	struct gw_adjacency adjacency;
};

static void lists_make(struct lists *lists, bool sorted, bool wide)
{
	uint64_t at = 0;
	memset(lists, 0, sizeof(*lists));
	for (uint32_t row = 0; row < ROWS; row++) {
		bool is_long = row % 5 == 4; /* with sources that few blocks have */
		uint64_t degree = row % 3 ? gw_mix64(row) % (is_long ? LONG : 20) : 0;
		for (uint64_t j = 0; j < degree; j++, at++) {
			uint64_t src =
				sorted ? j * SOURCES / degree : gw_mix64(at) % (is_long ? 20ull * SOURCES : SOURCES);
			lists->indices[at] = (uint32_t)src;
			lists->wide_indices[at] = src;
		}
		lists->indptr[(row + 1) * COLUMNS + COLUMN] = (uint32_t)at;
		lists->wide_indptr[(row + 1) * COLUMNS + COLUMN] = at;
	}
	lists->adjacency = (struct gw_adjacency){.indptr = wide ? (void *)lists->wide_indptr : lists->indptr,
						 .indices = wide ? (void *)lists->wide_indices : lists->indices,
						 .rows = ROWS,
						 .edges = at,
						 .columns = COLUMNS,
						 .column = COLUMN,
						 .indptr_bytes = wide ? 8 : 4,
						 .index_bytes = wide ? 8 : 4};
}

static void positions_have_their_rows(void **state)
{
	(void)state;
	struct lists lists;
	for (int wide = 0; wide < 2; wide++) {
		lists_make(&lists, true, wide);
		uint64_t row, edges = lists.adjacency.edges;
		assert_true(edges > 100);
		for (uint64_t position = 0; position < edges; position++) {
			assert_int_equal(gw_lookup_row(&lists.adjacency, position, &row), GW_OK);
			assert_true(lists.wide_indptr[row * COLUMNS + COLUMN] <= position);
			assert_true(lists.wide_indptr[(row + 1) * COLUMNS + COLUMN] > position);
		}
		assert_int_equal(gw_lookup_row(&lists.adjacency, edges, &row), GW_RANGE);
		assert_int_equal(gw_lookup_row(&lists.adjacency, UINT64_MAX, &row), GW_RANGE);
		lists.adjacency.rows = 0;
		assert_int_equal(gw_lookup_row(&lists.adjacency, 0, &row), GW_RANGE);
	}
}

static void check_pair(const struct lists *lists, bool sorted, uint64_t row, uint64_t src, uint64_t from,
		       uint64_t slice)
{
	struct gw_lookup lookup;
	uint64_t position, budget = 0;
	assert_int_equal(
		gw_lookup_begin(&lookup, &lists->adjacency, sorted ? GW_ORDER_SRC : GW_ORDER_TIME_SRC, row, src, from),
		GW_OK);
	for (uint64_t i = lists->wide_indptr[row * COLUMNS + COLUMN];
	     i < lists->wide_indptr[(row + 1) * COLUMNS + COLUMN]; i++) {
		if (i < from || lists->wide_indices[i] != src)
			continue;
		while (!gw_lookup_next(&lookup, &budget, &position)) {
			assert_true(lookup.at < lookup.end && budget == 0);
			budget = slice;
		}
		assert_int_equal(position, i);
	}
	while (lookup.at < lookup.end) {
		assert_false(gw_lookup_next(&lookup, &budget, &position));
		budget = slice;
	}
}

static void pairs_have_their_edges(void **state)
{
	(void)state;
	struct lists lists;
	for (int kind = 0; kind < 4; kind++) {
		bool sorted = kind & 1;
		lists_make(&lists, sorted, kind & 2);
		for (uint64_t row = 0; row < ROWS; row++) {
			for (uint64_t src = 0; src <= SOURCES; src++) {
				uint64_t begin = lists.wide_indptr[row * COLUMNS + COLUMN];
				check_pair(&lists, sorted, row, src, 0, UINT64_MAX);
				for (uint64_t slice = 1; slice < 4; slice++)
					check_pair(&lists, sorted, row, src, begin + 3 * slice, slice);
				check_pair(&lists, sorted, row, src, begin + 1, 90);
				check_pair(&lists, sorted, row, src + (1ull << 32), 0, 90);
				check_pair(&lists, sorted, row, src, UINT64_MAX, 1);
			}
		}
	}
}

static void damaged_lists_are_refused(void **state)
{
	(void)state;
	struct lists lists;
	struct gw_lookup lookup;
	uint64_t row;
	lists_make(&lists, true, false);
	assert_int_equal(gw_lookup_begin(&lookup, &lists.adjacency, GW_ORDER_SRC, ROWS, 0, 0), GW_RANGE);
	for (uint32_t i = 0; i <= ROWS; i++) {
		uint32_t *offset = &lists.indptr[i * COLUMNS + COLUMN], before = *offset;
		*offset = UINT32_MAX;
		if (i < ROWS)
			assert_int_equal(gw_lookup_begin(&lookup, &lists.adjacency, GW_ORDER_SRC, i, 0, 0), GW_RANGE);
		if (i > 0)
			assert_int_equal(gw_lookup_begin(&lookup, &lists.adjacency, GW_ORDER_SRC, i - 1, 0, 0),
					 GW_RANGE);
		/* The lookup gives some row or an error, and reads only existing memory. */
		for (uint64_t position = 0; position < lists.adjacency.edges; position++) {
			if (gw_lookup_row(&lists.adjacency, position, &row) == GW_OK)
				assert_true(row < ROWS);
		}
		*offset = before;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(positions_have_their_rows),
		cmocka_unit_test(pairs_have_their_edges),
		cmocka_unit_test(damaged_lists_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
