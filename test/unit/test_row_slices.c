/* Calls on rows in slices. Every call gives the same bytes as without slices, whatever a slice's cost limit is. A
 * slice ends at a row that is locked. A push continues where another push with the same arguments has ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "core/rows/store.h"

#define ROWS    50u
#define CALL    120u
#define COLUMNS 9u

static const struct gw_optimizer adagrad = {
	.kind = GW_ADAGRAD_ROWS, .combine = GW_COMBINE_EACH, .rate = 0.1F, .eps = 1e-10F};

/* Two equal stores: one is written by whole calls, the other in slices. */
struct pair {
	struct gw_row_store *whole, *sliced;
	struct gw_row_push_scratch scratch;
	uint64_t rows[CALL];
	float values[CALL * COLUMNS];
};

static struct gw_row_store *store_of(uint64_t columns)
{
	const struct gw_row_store_options options = {
		.name = "test",
		.dtype = GW_FLOAT32,
		.rows = ROWS,
		.columns = columns,
		.seed = 3,
		.huge = GW_HUGE_OFF,
		.numa = GW_NUMA_LOCAL,
		.threads = 1,
		.initial = {.how = GW_INITIAL_UNIFORM, .low = -1, .high = 1, .seed = 5}};
	struct gw_row_store *store;
	assert_int_equal(gw_row_store_create(&options, &store), GW_OK);
	return store;
}

static void pair_begin(struct pair *pair, uint64_t columns)
{
	memset(pair, 0, sizeof(*pair));
	pair->whole = store_of(columns);
	pair->sliced = store_of(columns);
	for (uint32_t i = 0; i < CALL; i++)
		pair->rows[i] = gw_mix64(i) % ROWS;
	for (uint32_t i = 0; i < CALL * COLUMNS; i++)
		pair->values[i] = (float)(gw_mix64(i + 99) % 1000) / 500 - 1;
}

static void pair_end(struct pair *pair)
{
	gw_row_push_scratch_free(&pair->scratch);
	gw_row_store_destroy(pair->whole);
	gw_row_store_destroy(pair->sliced);
}

/* All bytes, including trailers, so the number of writes is the same. */
static void check_alike(const struct pair *pair)
{
	uint64_t bytes = ROWS * gw_row_store_format(pair->whole)->stride;
	assert_memory_equal(gw_arena_base(gw_row_store_arena(pair->whole)),
			    gw_arena_base(gw_row_store_arena(pair->sliced)), bytes);
}

static bool needs_another_slice(struct gw_row_slice *slice, gw_status status, uint64_t cost)
{
	assert_true(status == GW_OK || (status == GW_AGAIN && !slice->taken));
	slice->cost = cost;
	return status == GW_AGAIN;
}

static uint32_t push_in_slices(struct pair *pair, struct gw_row_slice *slice, uint64_t cost)
{
	uint32_t slices = 1;
	slice->cost = cost;
	while (needs_another_slice(slice,
				   gw_row_store_push_slice(pair->sliced, slice, &adagrad, pair->rows, CALL,
							   pair->values, NULL, &pair->scratch),
				   cost))
		slices++;
	return slices;
}

/* most: a slice per row. */
static void check_slices(uint64_t columns, uint64_t cost, bool most)
{
	struct pair pair;
	struct gw_row_slice write = {.cost = cost}, read = write, save = write, state = write, count = write,
			    push = {0};
	uint8_t one[CALL * (COLUMNS + 1) * sizeof(float)], other[sizeof(one)];
	uint32_t slices = 0;
	uint64_t found, sum = 0;
	pair_begin(&pair, columns);
	assert_int_equal(gw_row_store_write_slice(pair.whole, NULL, pair.rows, CALL, pair.values), GW_OK);
	while (needs_another_slice(&write, gw_row_store_write_slice(pair.sliced, &write, pair.rows, CALL, pair.values),
				   cost))
		slices++;
	assert_true(!most || slices == CALL - 1);
	assert_true(cost < UINT64_MAX || slices == 0);
	check_alike(&pair);
	assert_int_equal(gw_row_store_push(pair.whole, &adagrad, pair.rows, CALL, pair.values, NULL, &pair.scratch),
			 GW_OK);
	assert_true(push_in_slices(&pair, &push, cost) >= (most ? CALL : 1));
	check_alike(&pair);
	assert_int_equal(gw_row_store_read(pair.whole, pair.rows, CALL, one), GW_OK);
	while (needs_another_slice(&read, gw_row_store_read_slice(pair.sliced, &read, pair.rows, CALL, other), cost))
		;
	assert_memory_equal(one, other, CALL * columns * sizeof(float));
	assert_int_equal(gw_row_store_set_state_slice(pair.whole, NULL, pair.rows, CALL, 0, 1, pair.values), GW_OK);
	while (needs_another_slice(
		&state, gw_row_store_set_state_slice(pair.sliced, &state, pair.rows, CALL, 0, 1, pair.values), cost))
		;
	/* The state is unaligned in one of the buffers. */
	assert_int_equal(
		gw_row_store_save_slice(pair.whole, NULL, 1, ROWS - 1, one, one + ROWS * columns * sizeof(float)),
		GW_OK);
	while (needs_another_slice(&save,
				   gw_row_store_save_slice(pair.sliced, &save, 1, ROWS - 1, other,
							   other + ROWS * columns * sizeof(float) + 1),
				   cost))
		;
	assert_memory_equal(one, other, (ROWS - 1) * columns * sizeof(float));
	assert_memory_equal(one + ROWS * columns * sizeof(float), other + ROWS * columns * sizeof(float) + 1,
			    (ROWS - 1) * sizeof(float));
	for (bool more = true; more; sum += found)
		more = needs_another_slice(&count, gw_row_store_count_slice(pair.sliced, &count, 1, ROWS - 2, &found),
					   cost);
	assert_int_equal(gw_row_store_count_slice(pair.whole, NULL, 1, ROWS - 2, &found), GW_OK);
	assert_int_equal(sum, found);
	pair_end(&pair);
}

static void slices_change_nothing(void **state)
{
	(void)state;
	for (uint64_t columns = 1; columns <= COLUMNS; columns += COLUMNS - 1) { /* one word; versioned */
		check_slices(columns, 1, true);
		check_slices(columns, 1000, false);
		check_slices(columns, UINT64_MAX, false);
	}
}

/* Another thread has locked one row: the rows before it are done, and a call that continues there does the rest. */
static void a_taken_row_ends_the_slice(void **state)
{
	(void)state;
	struct pair pair;
	uint64_t sequence;
	struct gw_row_slice slice = {.cost = UINT64_MAX};
	pair_begin(&pair, COLUMNS);
	const struct gw_row_format *format = gw_row_store_format(pair.sliced);
	uint8_t *row = gw_arena_base(gw_row_store_arena(pair.sliced));
	row += pair.rows[CALL / 4] * format->stride;
	assert_true(pair.rows[CALL / 4] != pair.rows[0]);
	assert_true(gw_row_try_lock(format, row, &sequence));
	for (int times = 0; times < 2; times++) {
		assert_int_equal(gw_row_store_push_slice(pair.sliced, &slice, &adagrad, pair.rows, CALL, pair.values,
							 NULL, &pair.scratch),
				 GW_AGAIN);
		assert_true(slice.taken && slice.at > 0 && slice.at < slice.groups);
	}
	gw_row_unlock(format, row, sequence);
	struct gw_row_slice next = {.at = slice.at};
	push_in_slices(&pair, &next, 1000);
	assert_int_equal(gw_row_store_push(pair.whole, &adagrad, pair.rows, CALL, pair.values, NULL, &pair.scratch),
			 GW_OK);
	check_alike(&pair);
	/* A slice that claims more groups than exist. */
	next = (struct gw_row_slice){.at = CALL + 1};
	push_in_slices(&pair, &next, 1000);
	check_alike(&pair);
	pair_end(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slices_change_nothing),
		cmocka_unit_test(a_taken_row_ends_the_slice),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
