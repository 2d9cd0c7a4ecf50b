/* The row store: initial values, reads, overwrites and training of rows compared with plain code; by several threads
 * at once; and with every allocation failing once. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/numbers/dtype.h"
#include "core/numbers/rng.h"
#include "core/rows/store.h"

#define SEED         0xfeedbeefull
#define FUTURE_WRITE 0x0010 /* F_SEAL_FUTURE_WRITE */

static struct gw_row_store_options options_of(gw_dtype dtype, uint64_t rows, uint64_t columns)
{
	return (struct gw_row_store_options){.name = "test",
					     .dtype = dtype,
					     .rows = rows,
					     .columns = columns,
					     .seed = SEED,
					     .huge = GW_HUGE_OFF,
					     .numa = GW_NUMA_LOCAL,
					     .threads = 2};
}

static struct gw_row_store *store_of(gw_dtype dtype, uint64_t rows, uint64_t columns)
{
	struct gw_row_store_options options = options_of(dtype, rows, columns);
	struct gw_row_store *store;
	assert_int_equal(gw_row_store_create(&options, &store), GW_OK);
	return store;
}

/* Like a reader over the network: payload and trailer come from the arena. */
static void check_hashes(const struct gw_row_store *store)
{
	const struct gw_row_format *format = gw_row_store_format(store);
	const uint8_t *base = gw_arena_base(gw_row_store_arena(store));
	for (uint64_t row = 0; format->versioned && row < gw_row_store_rows(store); row++) {
		struct gw_row_trailer trailer;
		const uint8_t *at = base + row * format->stride;
		memcpy(&trailer, at + gw_row_trailer_at(format), sizeof(trailer));
		assert_true(gw_row_verify(format, SEED, row, at, &trailer));
	}
}

static void measures(void **state)
{
	(void)state;
	struct gw_row_format format;
	uint64_t bytes;
	assert_int_equal(gw_row_store_measure(GW_FLOAT32, 1000, 400, &format, &bytes), GW_OK);
	assert_int_equal(format.stride, 1616);
	assert_int_equal(bytes, 1616000);
	assert_int_equal(gw_row_store_measure(GW_BOOL, 7, 1, &format, &bytes), GW_OK);
	assert_int_equal(bytes, 7);
	assert_int_equal(gw_row_store_measure(GW_FLOAT32, 1, 0, &format, &bytes), GW_INVALID);
	assert_int_equal(gw_row_store_measure(GW_FLOAT32, 1, (1u << 20) + 1, &format, &bytes), GW_LIMIT);
	assert_int_equal(gw_row_store_measure(GW_FLOAT32, 1, UINT64_MAX / 4 + 2, &format, &bytes), GW_LIMIT);
	assert_int_equal(gw_row_store_measure(GW_FLOAT32, UINT64_MAX, 1, &format, &bytes), GW_LIMIT);
	assert_int_equal(gw_row_store_measure(GW_INT8_ROW, 1, 1, &format, &bytes), GW_UNSUPPORTED);
	assert_int_equal(gw_row_store_measure((gw_dtype)99, 1, 1, &format, &bytes), GW_UNSUPPORTED);
}

static void constants_of_every_dtype(void **state)
{
	(void)state;
	for (int dtype = 0; dtype < GW_DTYPE_COUNT; dtype++) {
		if (dtype == GW_INT8_ROW)
			continue;
		struct gw_row_store_options options = options_of((gw_dtype)dtype, 5, 3);
		options.initial = (struct gw_row_initial){.how = GW_INITIAL_CONSTANT, .low = 1};
		struct gw_row_store *store;
		assert_int_equal(gw_row_store_create(&options, &store), GW_OK);
		check_hashes(store);
		/* 1 in every dtype, written out. */
		uint64_t one = dtype == GW_FLOAT16    ? 0x3c00
			       : dtype == GW_BFLOAT16 ? 0x3f80
			       : dtype == GW_FLOAT32  ? 0x3f800000
			       : dtype == GW_FLOAT64  ? 0x3ff0000000000000ull
						      : 1;
		uint32_t bytes = gw_dtype_bytes((gw_dtype)dtype);
		uint8_t rows[5 * 3 * 8];
		assert_int_equal(gw_row_store_read_range(store, 0, 5, rows), GW_OK);
		for (uint32_t i = 0; i < 15; i++)
			assert_memory_equal(rows + i * bytes, &one, bytes);
		uint64_t count;
		assert_int_equal(gw_row_store_count_slice(store, NULL, 1, 3, &count), GW_OK);
		assert_int_equal(count, 9);
		gw_row_store_destroy(store);
	}
}

static gw_status copy_row(const void *context, uint64_t row, void *payload)
{
	const uint64_t *bad_row = context;
	if (row == *bad_row)
		return gw_fail(GW_IO, "row %d", (int)row);
	for (uint32_t i = 0; i < 5; i++)
		((uint16_t *)payload)[i] = (uint16_t)(row * 5 + i);
	return GW_OK;
}

static void rows_begin_as_copies(void **state)
{
	(void)state;
	uint64_t bad_row = UINT64_MAX;
	struct gw_row_store_options options = options_of(GW_UINT16, 300, 5);
	options.initial = (struct gw_row_initial){.how = GW_INITIAL_COPY, .copy = copy_row, .context = &bad_row};
	struct gw_row_store *store;
	assert_int_equal(gw_row_store_create(&options, &store), GW_OK);
	check_hashes(store);
	uint16_t rows[1500];
	assert_int_equal(gw_row_store_read_range(store, 0, 300, rows), GW_OK);
	for (uint32_t i = 0; i < 1500; i++)
		assert_int_equal(rows[i], i);
	gw_row_store_destroy(store);
	bad_row = 77;
	assert_int_equal(gw_row_store_create(&options, &store), GW_IO);
	assert_null(store);
	assert_string_equal(gw_last_error(), "rows of test: row 77");
}

/* Of equal rows the last one counts, and one invalid row fails the call. */
static void check_overwriting(uint64_t columns)
{
	enum { ROWS = 200, CALLS = 50, MOST = 300 };
	struct gw_row_store *store = store_of(GW_UINT8, ROWS, columns);
	uint8_t *expected = calloc(ROWS, columns), *values = malloc(MOST * columns), *seen = malloc(MOST * columns);
	uint64_t rows[MOST];
	for (uint64_t call = 0; call < CALLS; call++) {
		struct gw_draws draws = gw_draws_begin(call, columns);
		uint64_t n = gw_draw_below(&draws, MOST + 1);
		for (uint64_t i = 0; i < n; i++)
			rows[i] = gw_draw_below(&draws, ROWS);
		for (uint64_t i = 0; i < n * columns; i++)
			values[i] = (uint8_t)gw_draw32(&draws);
		assert_int_equal(gw_row_store_write_slice(store, NULL, rows, n, values), GW_OK);
		for (uint64_t i = 0; i < n; i++)
			memcpy(expected + rows[i] * columns, values + i * columns, columns);
		assert_int_equal(gw_row_store_read(store, rows, n, seen), GW_OK);
		for (uint64_t i = 0; i < n; i++)
			assert_memory_equal(seen + i * columns, expected + rows[i] * columns, columns);
		if (n < 2)
			continue;
		rows[n / 2] = ROWS;
		memset(values, 0, n * columns);
		assert_int_equal(gw_row_store_write_slice(store, NULL, rows, n, values), GW_RANGE);
		assert_string_equal(gw_last_error(), "row 200 of 200");
		assert_int_equal(gw_row_store_read(store, rows, n, seen), GW_RANGE);
	}
	uint64_t numbers[100];
	for (uint64_t i = 0; i < 100; i++)
		numbers[i] = 17 + i;
	assert_int_equal(gw_row_store_write_slice(store, NULL, numbers, 100, expected), GW_OK);
	memmove(expected + 17 * columns, expected, 100 * columns);
	uint8_t *all = malloc(ROWS * columns);
	assert_int_equal(gw_row_store_read_range(store, 0, ROWS, all), GW_OK);
	assert_memory_equal(all, expected, ROWS * columns);
	assert_int_equal(gw_row_store_read_range(store, ROWS, 0, all), GW_OK);
	assert_int_equal(gw_row_store_read_range(store, 1, ROWS, all), GW_RANGE);
	check_hashes(store);
	gw_row_store_destroy(store);
	free(all);
	free(expected);
	free(values);
	free(seen);
}

static void overwriting(void **state)
{
	(void)state;
	static const uint64_t columns[] = {1, 2, 3, 4, 8, 9, 100, 3000};
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		check_overwriting(columns[i]);
}

static void counting(void **state)
{
	(void)state;
	struct gw_row_store *store = store_of(GW_FLOAT32, 4, 3);
	float values[12] = {0, 1, -0.0f, NAN, 0, 0, INFINITY, -3, 0x1p-149f, 0, 0, 0};
	uint64_t count;
	static const uint64_t rows[] = {0, 1, 2, 3};
	assert_int_equal(gw_row_store_write_slice(store, NULL, rows, 4, values), GW_OK);
	assert_int_equal(gw_row_store_count_slice(store, NULL, 0, 4, &count), GW_OK);
	assert_int_equal(count, 5);
	assert_int_equal(gw_row_store_count_slice(store, NULL, 2, 1, &count), GW_OK);
	assert_int_equal(count, 3);
	assert_int_equal(gw_row_store_count_slice(store, NULL, 3, 2, &count), GW_RANGE);
	gw_row_store_destroy(store);
}

/* What another process receives: descriptors of its own. */
static struct gw_row_memory memory_of(const struct gw_row_store *store)
{
	struct gw_row_memory memory;
	gw_row_store_memory(store, &memory);
	memory.rows_fd = fcntl(memory.rows_fd, F_DUPFD_CLOEXEC, 0);
	if (memory.state_fd >= 0)
		memory.state_fd = fcntl(memory.state_fd, F_DUPFD_CLOEXEC, 0);
	return memory;
}

/* Whether readers of mapped memory take any copy of a row for intact. */
static bool is_readable(const struct gw_row_store *store, uint64_t row)
{
	const struct gw_row_format *format = gw_row_store_format(store);
	float payload[64];
	return gw_row_copy(format, gw_arena_base(gw_row_store_arena(store)) + row * format->stride, payload);
}

#define MOVED_ROWS 100u

/* Rows that move, with the state of their optimizer: sealed memory is copied, other memory is shared. */
static void check_moving(uint64_t columns, bool sealed, bool late_state)
{
	static const struct gw_optimizer optimizer = {.kind = GW_ADAGRAD, .rate = 1, .eps = 1e-8f};
	struct gw_row_store_options options = options_of(GW_FLOAT32, MOVED_ROWS, columns);
	struct gw_row_store *store = store_of(GW_FLOAT32, MOVED_ROWS, columns), *moved;
	struct gw_row_push_scratch scratch = {0};
	float values[2][MOVED_ROWS * 9];
	uint64_t rows[MOVED_ROWS];
	enum gw_optimizer_kind kind;
	for (uint64_t i = 0; i < MOVED_ROWS; i++)
		rows[i] = i;
	for (uint64_t i = 0; i < MOVED_ROWS * columns; i++)
		values[0][i] = (float)i;
	if (!late_state)
		assert_int_equal(gw_row_store_prepare(store, GW_ADAGRAD), GW_OK);
	if (sealed)
		assert_int_equal(fcntl(gw_arena_fd(gw_row_store_arena(store)), F_ADD_SEALS, FUTURE_WRITE), 0);
	struct gw_row_memory memory = memory_of(store);
	assert_int_equal(gw_row_store_adopt(&options, &memory, &moved), GW_OK);
	/* After the successor has prepared, the server goes on. */
	assert_int_equal(gw_row_store_push(store, &optimizer, rows, MOVED_ROWS, values[0], NULL, &scratch), GW_OK);
	if (late_state) {
		memory = memory_of(store);
		close(memory.rows_fd);
		assert_int_equal(gw_row_store_adopt_state(moved, &memory), GW_OK);
	}
	assert_int_equal(gw_row_store_take_rows(moved), sealed);
	check_hashes(moved);
	for (int again = 0; again < 2; again++) { /* a push at the successor continues from the state */
		assert_int_equal(gw_row_store_read(store, rows, MOVED_ROWS, values[0]), GW_OK);
		assert_int_equal(gw_row_store_read(moved, rows, MOVED_ROWS, values[1]), GW_OK);
		assert_memory_equal(values[0], values[1], MOVED_ROWS * columns * sizeof(float));
	}
	assert_true(gw_row_store_trained(moved, &kind) && kind == GW_ADAGRAD);
	assert_int_equal(gw_row_store_save_slice(store, NULL, 0, MOVED_ROWS, values[0], values[0]), GW_OK);
	assert_int_equal(gw_row_store_save_slice(moved, NULL, 0, MOVED_ROWS, values[1], values[1]), GW_OK);
	assert_memory_equal(values[0], values[1], MOVED_ROWS * columns * sizeof(float));
	bool versioned = gw_row_store_format(store)->versioned;
	gw_row_store_retire(store, true);
	for (uint64_t i = 0; i < MOVED_ROWS; i++) {
		assert_int_equal(is_readable(store, i), !versioned);
		assert_int_equal(is_readable(moved, i), !versioned || sealed);
	}
	gw_row_store_retire(store, false);
	check_hashes(store);
	for (uint64_t i = 0; i < MOVED_ROWS; i++)
		assert_true(is_readable(store, i) && is_readable(moved, i));
	gw_row_store_destroy(store);
	check_hashes(moved);
	gw_row_store_destroy(moved);
	gw_row_push_scratch_free(&scratch);
}

static void moving(void **state)
{
	(void)state;
	static const uint64_t columns[] = {1, 3, 9};
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		for (int ways = 0; ways < 4; ways++)
			check_moving(columns[i], ways & 1, ways & 2);
}

/* Memory that does not have the announced shape, or is too short for the rows. */
static void memory_that_does_not_fit(void **state)
{
	(void)state;
	struct gw_row_store *store = store_of(GW_FLOAT32, MOVED_ROWS, 9), *moved;
	struct gw_row_store_options options = options_of(GW_FLOAT32, MOVED_ROWS * 100, 9);
	struct gw_row_memory memory = memory_of(store);
	assert_int_equal(gw_row_store_adopt(&options, &memory, &moved), GW_INVALID);
	options.rows = MOVED_ROWS;
	memory = memory_of(store);
	memory.rows.bytes += 4096;
	assert_int_equal(gw_row_store_adopt(&options, &memory, &moved), GW_INVALID);
	memory = memory_of(store);
	memory.rows.slice_bytes = 3 * 4096;
	assert_int_equal(gw_row_store_adopt(&options, &memory, &moved), GW_INVALID);
	assert_null(moved);
	gw_row_store_destroy(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(measures),
		cmocka_unit_test(constants_of_every_dtype),
		cmocka_unit_test(rows_begin_as_copies),
		cmocka_unit_test(overwriting),
		cmocka_unit_test(counting),
		cmocka_unit_test(moving),
		cmocka_unit_test(memory_that_does_not_fit),
	};
	return cmocka_run_group_tests_name("row store", tests, NULL, NULL);
}
