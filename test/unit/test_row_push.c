/* Training rows of a store: every optimizer and combination compared with the formulas in double; threads that push,
 * read, overwrite and save the same rows; and every allocation failing once. */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/half.h"
#include "core/numbers/rng.h"
#include "core/rows/store.h"
#include "test/support/alloc_fault.h"

#define ROWS        20u
#define CALL_MAX    60u
#define COLUMNS_MAX 67u

static struct gw_row_store *store_of(gw_dtype dtype, uint64_t rows, uint64_t columns)
{
	struct gw_row_store_options options = {
		.name = "test",
		.dtype = dtype,
		.rows = rows,
		.columns = columns,
		.huge = GW_HUGE_OFF,
		.numa = GW_NUMA_LOCAL,
		.threads = 1,
		.initial = {.how = GW_INITIAL_CONSTANT, .low = dtype == GW_INT32 ? 0 : 0.5}};
	struct gw_row_store *store;
	assert_int_equal(gw_row_store_create(&options, &store), GW_OK);
	return store;
}

/* A row and its state, in double. */
struct oracle_row {
	double w[COLUMNS_MAX], s[COLUMNS_MAX], m[COLUMNS_MAX], v[COLUMNS_MAX], row_sum;
	uint32_t steps;
};

static double oracle_mean_square(const double *g, uint32_t columns)
{
	double sum = 0;
	for (uint32_t i = 0; i < columns; i++)
		sum += g[i] * g[i];
	return sum / columns;
}

/* The formulas of <graphwire/rows.h>. */
static void oracle_apply(const struct gw_optimizer *o, struct oracle_row *row, const double *g, uint32_t columns)
{
	double rate = (double)o->rate, eps = (double)o->eps, b1 = (double)o->beta1, b2 = (double)o->beta2;
	row->steps++;
	for (uint32_t i = 0; i < columns; i++) {
		row->s[i] += g[i] * g[i];
		row->m[i] = b1 * row->m[i] + (1 - b1) * g[i];
		row->v[i] = b2 * row->v[i] + (1 - b2) * g[i] * g[i];
		double t = (double)(o->step ? o->step : row->steps);
		double c1 = 1 - pow(b1, t), c2 = 1 - pow(b2, t);
		if (o->kind == GW_SGD)
			row->w[i] -= rate * g[i];
		else if (o->kind == GW_ADAGRAD)
			row->w[i] -= rate * g[i] / (sqrt(row->s[i]) + eps);
		else if (o->kind == GW_ADAGRAD_ROWS)
			row->w[i] -= rate * g[i] / (sqrt(row->row_sum) + eps);
		else if (o->kind == GW_ADAM && o->step)
			row->w[i] -= rate * sqrt(c2) / c1 * row->m[i] / (sqrt(row->v[i]) + eps);
		else if (o->kind == GW_ADAM)
			row->w[i] -= rate * (row->m[i] / c1) / (sqrt(row->v[i] / c2) + eps);
		else
			fail_msg("no formula for %s", gw_optimizer_name(o->kind));
	}
}

static void oracle_push(const struct gw_optimizer *o, struct oracle_row *all, const uint64_t *rows, uint32_t n,
			const float *gradients, uint32_t columns)
{
	for (uint64_t number = 0; number < ROWS; number++) {
		double sum[COLUMNS_MAX] = {0}, one[CALL_MAX][COLUMNS_MAX], squares = 0;
		uint32_t count = 0;
		for (uint32_t i = 0; i < n; i++) {
			if (rows[i] != number)
				continue;
			for (uint32_t c = 0; c < columns; c++) {
				one[count][c] = (double)gradients[i * columns + c];
				sum[c] += one[count][c];
			}
			squares += oracle_mean_square(one[count++], columns);
		}
		if (count == 0)
			continue;
		for (uint32_t c = 0; c < columns && o->combine == GW_COMBINE_MEAN; c++)
			sum[c] /= count;
		if (o->combine == GW_COMBINE_EACH) {
			all[number].row_sum += squares;
			for (uint32_t i = 0; i < count; i++)
				oracle_apply(o, &all[number], one[i], columns);
			continue;
		}
		all[number].row_sum += oracle_mean_square(sum, columns);
		oracle_apply(o, &all[number], sum, columns);
	}
}

static float row_element(gw_dtype dtype, const void *rows, uint64_t i)
{
	if (dtype == GW_FLOAT16)
		return gw_float_of_float16(((const uint16_t *)rows)[i]);
	if (dtype == GW_BFLOAT16)
		return gw_float_of_bfloat16(((const uint16_t *)rows)[i]);
	return ((const float *)rows)[i];
}

/* A dozen calls with many equal rows. Half precision is rounded once per call: the oracle continues from the store's
 * values, and must be within half a step of them. */
static void check_optimizer(struct gw_optimizer optimizer, gw_dtype dtype, uint32_t columns)
{
	struct gw_row_store *store = store_of(dtype, ROWS, columns);
	struct gw_row_push_scratch scratch = {0};
	static struct oracle_row all[ROWS];
	memset(all, 0, sizeof(all));
	for (uint32_t i = 0; i < ROWS * columns; i++)
		all[i / columns].w[i % columns] = 0.5;
	double tolerance = dtype == GW_FLOAT32 ? 3e-6 : dtype == GW_FLOAT16 ? 0x1p-11 + 3e-6 : 0x1p-8 + 3e-6;
	bool step_given = optimizer.step > 0;
	for (uint32_t call = 0; call < 12; call++) {
		struct gw_draws draws = gw_draws_begin(columns, call);
		uint64_t rows[CALL_MAX];
		static float gradients[CALL_MAX * COLUMNS_MAX];
		uint32_t n = call == 5 ? 0 : 1 + gw_draw_below(&draws, CALL_MAX);
		for (uint32_t i = 0; i < n; i++)
			rows[i] = gw_draw_below(&draws, ROWS);
		for (uint32_t i = 0; i < n * columns; i++)
			gradients[i] = (float)gw_draw32(&draws) * 0x1p-31f - 0.9f;
		optimizer.step = step_given ? call + 1 : 0;
		assert_int_equal(gw_row_store_push(store, &optimizer, rows, n, gradients, NULL, &scratch), GW_OK);
		oracle_push(&optimizer, all, rows, n, gradients, columns);
		static float values[ROWS * COLUMNS_MAX];
		assert_int_equal(gw_row_store_read_range(store, 0, ROWS, values), GW_OK);
		for (uint32_t i = 0; i < ROWS * columns; i++) {
			double value = (double)row_element(dtype, values, i), *w = &all[i / columns].w[i % columns];
			if (!(fabs(value - *w) <= tolerance * fmax(1, fabs(*w))))
				fail_msg("%s, combine %d, %u columns, call %u: %.9g is not %.9g",
					 gw_optimizer_name(optimizer.kind), (int)optimizer.combine, columns, call,
					 value, *w);
			if (dtype != GW_FLOAT32)
				*w = value;
		}
	}
	gw_row_push_scratch_free(&scratch);
	gw_row_store_destroy(store);
}

static void optimizers_by_their_formulas(void **state)
{
	(void)state;
	static const uint32_t columns[] = {1, 2, 3, 16, COLUMNS_MAX};
	static const gw_dtype dtypes[] = {GW_FLOAT32, GW_FLOAT16, GW_BFLOAT16};
	for (uint32_t kind = 0; gw_optimizer_rule_of(kind); kind++)
		for (int combine = GW_COMBINE_SUM; combine <= GW_COMBINE_EACH; combine++)
			for (uint32_t way = 0; way < 4; way++)
				for (size_t c = 0; c < 5; c++)
					for (size_t d = 0; d < 3; d++) {
						/* A large eps shows its position in the formula. */
						struct gw_optimizer optimizer = {.kind = (enum gw_optimizer_kind)kind,
										 .combine = (enum gw_combine)combine,
										 .rate = 0.125f,
										 .eps = way % 2 ? 0.5f : 1e-8f,
										 .beta1 = 0.9f,
										 .beta2 = 0.99f,
										 .step = way / 2};
						check_optimizer(optimizer, dtypes[d], columns[c]);
					}
}

static bool is_whole(const struct gw_row_store *store, uint64_t row)
{
	const struct gw_row_format *format = gw_row_store_format(store);
	const uint8_t *at = (const uint8_t *)gw_arena_base(gw_row_store_arena(store)) + row * format->stride;
	struct gw_row_trailer trailer;
	if (!format->versioned)
		return true;
	memcpy(&trailer, at + gw_row_trailer_at(format), sizeof(trailer));
	return gw_row_verify(format, gw_row_store_seed(store), row, at, &trailer);
}

static bool same_number(double value, double expected)
{
	if (isnan(expected) || isinf(expected))
		return isnan(expected) ? isnan(value) : value == expected;
	return fabs(value - expected) <= 0x1p-8 * fmax(1, fabs(expected));
}

/* A gradient that is not finite, in one element of one of a row's two gradients; then ones. NaN and infinities are in
 * the same elements as the oracle's, and in no others; readers see a complete row. */
static void check_not_finite(const struct gw_optimizer *optimizer, gw_dtype dtype, uint32_t columns, float bad,
			     uint32_t place)
{
	static const uint64_t rows[] = {1, 2, 1};
	static struct oracle_row all[ROWS];
	static float gradients[3 * COLUMNS_MAX], values[ROWS * COLUMNS_MAX];
	struct gw_row_store *store = store_of(dtype, ROWS, columns);
	struct gw_row_push_scratch scratch = {0};
	uint64_t nonzero;
	memset(all, 0, sizeof(all));
	for (uint32_t i = 0; i < ROWS * columns; i++)
		all[i / columns].w[i % columns] = 0.5;
	for (uint32_t call = 0; call < 3; call++) {
		for (uint32_t i = 0; i < 3 * columns; i++)
			gradients[i] = i == columns * 2 + place && call == 0 ? bad : 1;
		assert_int_equal(gw_row_store_push(store, optimizer, rows, 3, gradients, NULL, &scratch), GW_OK);
		oracle_push(optimizer, all, rows, 3, gradients, columns);
		assert_int_equal(gw_row_store_read_range(store, 0, ROWS, values), GW_OK);
		for (uint32_t i = 0; i < ROWS * columns; i++) {
			double value = (double)row_element(dtype, values, i), w = all[i / columns].w[i % columns];
			if (!same_number(value, w))
				fail_msg("%s, combine %d, %u columns, %g at %u, call %u: %.9g at %u is not %.9g",
					 gw_optimizer_name(optimizer->kind), (int)optimizer->combine, columns,
					 (double)bad, place, call, value, i, w);
		}
	}
	assert_true(!isfinite(row_element(dtype, values, columns + place)));
	assert_int_equal(gw_row_store_count_slice(store, NULL, 1, 1, &nonzero), GW_OK);
	assert_int_equal(nonzero, columns);
	assert_true(is_whole(store, 1) && is_whole(store, 2));
	gw_row_push_scratch_free(&scratch);
	gw_row_store_destroy(store);
}

static void what_is_not_finite_is_seen(void **state)
{
	(void)state;
	static const uint32_t columns[] = {1, 2, 3, 16, COLUMNS_MAX};
	static const gw_dtype dtypes[] = {GW_FLOAT32, GW_FLOAT16, GW_BFLOAT16};
	static const float bad[] = {NAN, INFINITY, -INFINITY};
	for (uint32_t kind = 0; gw_optimizer_rule_of(kind); kind++)
		for (int way = 0; way < 2 * 3; way++)
			for (size_t c = 0; c < 5; c++)
				for (size_t d = 0; d < 3; d++)
					for (size_t b = 0; b < 3; b++) {
						struct gw_optimizer optimizer = {.kind = (enum gw_optimizer_kind)kind,
										 .combine = (enum gw_combine)(way / 2),
										 .rate = 0.125f,
										 .eps = way % 2 ? 0 : 1e-8f,
										 .beta1 = 0.9f,
										 .beta2 = 0.99f};
						uint32_t place = (uint32_t)(b * 2 + d) % columns[c];
						check_not_finite(&optimizer, dtypes[d], columns[c], bad[b], place);
					}
}

/* Squares beyond a float's range, huge rates, and an eps of 0: <graphwire/rows.h> defines each result. */
static void what_is_too_large_or_nothing(void **state)
{
	(void)state;
	static const float gradients[4][4] = {{0x1p70f, 1, 0, -0.0f}, {1, 1, 0, 1}, {1, 1, 0, 0}, {1, 1, 0, 0}};
	static const uint64_t row = 1;
	struct gw_row_push_scratch scratch = {0};
	for (int kind = GW_ADAGRAD; kind <= GW_ADAM; kind++) {
		struct gw_row_store *store = store_of(GW_FLOAT32, 3, 4);
		struct gw_optimizer optimizer = {
			.kind = (enum gw_optimizer_kind)kind, .rate = 0x1p100f, .beta1 = 0.5f, .beta2 = 0.5f};
		float w[4];
		for (int i = 0; i < 4; i++) {
			assert_int_equal(gw_row_store_push(store, &optimizer, &row, 1, gradients[i], NULL, &scratch),
					 GW_OK);
			assert_int_equal(gw_row_store_read(store, &row, 1, w), GW_OK);
			/* The element stops changing, or the whole row if it has one sum. With Adam this shows from
			 * the next step on. */
			assert_true(kind == GW_ADAM && i > 0 ? isnan(w[0]) : w[0] == 0.5f);
			assert_true(kind == GW_ADAGRAD_ROWS ? w[1] == 0.5f : isfinite(w[1]) && w[1] < -0x1p98f);
			assert_true(w[2] == 0.5f); /* had no gradient */
			assert_true(kind == GW_ADAGRAD_ROWS || i == 0 ? w[3] == 0.5f : w[3] < -0x1p98f);
		}
		gw_row_store_destroy(store);
	}
	gw_row_push_scratch_free(&scratch);
}

/* A caller may add the gradients of equal rows itself, if it passes the sum of their squares. */
static void squares_stand_for_equal_rows(void **state)
{
	(void)state;
	struct gw_optimizer optimizer = {
		.kind = GW_ADAGRAD_ROWS, .combine = GW_COMBINE_EACH, .rate = 0.5f, .eps = 1e-10f};
	static const float gradients[] = {1, 2, 3, -4, 0.5f, 8}, sums[] = {1.5f, 10, 3, -4},
			   squares[] = {(1 + 4 + 0.25f + 64) / 2, (9 + 16) / 2.0f};
	static const uint64_t rows[] = {3, 1, 3};
	struct gw_row_store *one = store_of(GW_FLOAT32, 4, 2), *other = store_of(GW_FLOAT32, 4, 2);
	struct gw_row_push_scratch scratch = {0};
	assert_int_equal(gw_row_store_push(one, &optimizer, rows, 3, gradients, NULL, &scratch), GW_OK);
	assert_int_equal(gw_row_store_push(other, &optimizer, rows, 2, sums, squares, &scratch), GW_OK);
	float a[8], b[8], s[4], t[4];
	assert_int_equal(gw_row_store_save_slice(one, NULL, 0, 4, a, s), GW_OK);
	assert_int_equal(gw_row_store_save_slice(other, NULL, 0, 4, b, t), GW_OK);
	for (int i = 0; i < 8; i++)
		assert_true(fabsf(a[i] - b[i]) < 1e-6f);
	assert_memory_equal(s, t, sizeof(s));
	assert_true(s[0] == 0 && s[1] == 12.5f && s[2] == 0 && s[3] == 34.625f);
	optimizer.combine = GW_COMBINE_SUM;
	assert_int_equal(gw_row_store_push(one, &optimizer, rows, 2, sums, squares, &scratch), GW_INVALID);
	gw_row_push_scratch_free(&scratch);
	gw_row_store_destroy(one);
	gw_row_store_destroy(other);
}

static void what_cannot_be_pushed(void **state)
{
	(void)state;
	static const struct gw_optimizer good = {
		.kind = GW_ADAM, .rate = 1, .eps = 1e-8f, .beta1 = 0.9f, .beta2 = 0.999f};
	struct gw_row_store *store = store_of(GW_FLOAT32, 4, 1), *integers = store_of(GW_INT32, 4, 1);
	struct gw_row_push_scratch scratch = {0};
	uint64_t row = 1, bad_row = 4;
	float gradient = 1, values[4];
	enum gw_optimizer_kind kind;
	struct gw_optimizer bad[9];
	for (int i = 0; i < 9; i++)
		bad[i] = good;
	bad[0].kind = (enum gw_optimizer_kind)1000;
	bad[1].combine = (enum gw_combine)3;
	bad[2].rate = NAN;
	bad[3].eps = -1;
	bad[4].eps = INFINITY;
	bad[5].beta1 = 1;
	bad[6].beta2 = -0.1f;
	bad[7].beta2 = NAN;
	bad[8].rate = INFINITY;
	for (int i = 0; i < 9; i++)
		assert_int_equal(gw_row_store_push(store, &bad[i], &row, 1, &gradient, NULL, &scratch), GW_INVALID);
	assert_int_equal(gw_row_store_push(store, &good, &bad_row, 1, &gradient, NULL, &scratch), GW_RANGE);
	assert_false(gw_row_store_trained(store, &kind));
	assert_int_equal(gw_row_store_save_slice(store, NULL, 0, 4, values, values), GW_INVALID);
	assert_int_equal(gw_row_store_push(integers, &good, &row, 1, &gradient, NULL, &scratch), GW_UNSUPPORTED);

	assert_int_equal(gw_row_store_push(store, &good, &row, 1, &gradient, NULL, &scratch), GW_OK);
	assert_true(gw_row_store_trained(store, &kind));
	assert_int_equal(kind, GW_ADAM);
	assert_int_equal(gw_row_store_state_bytes(GW_ADAM, 4, 1), 48); /* step, mean and power */
	struct gw_optimizer other = good;
	other.kind = GW_ADAGRAD;
	assert_int_equal(gw_row_store_push(store, &other, &row, 1, &gradient, NULL, &scratch), GW_EXISTS);
	other.kind = GW_SGD; /* has no state, so it does not conflict */
	assert_int_equal(gw_row_store_push(store, &other, &row, 1, &gradient, NULL, &scratch), GW_OK);
	assert_int_equal(gw_row_store_read_range(store, 0, 4, values), GW_OK);
	assert_true(fabsf(values[1] + 1.5f) < 1e-6f); /* 0.5, less 1 by Adam's first step, less 1 */
	assert_true(values[0] == 0.5f && values[2] == 0.5f && values[3] == 0.5f);
	gw_row_push_scratch_free(&scratch);
	gw_row_store_destroy(store);
	gw_row_store_destroy(integers);
}

/* Threads push integers to a few rows, so that sums are exact, while others read. Every reader sees the same number in
 * all columns of a row. */
#define PUSHERS 2u
#define PUSHES  400u

struct crowd {
	struct gw_row_store *store;
	uint64_t rows, columns;
	atomic_uint started, left, bad;
};

static void crowd_begin(struct crowd *crowd)
{
	atomic_fetch_add(&crowd->started, 1);
	while (atomic_load(&crowd->started) < 2 * PUSHERS)
		sched_yield();
}

static void *push_numbers(void *context)
{
	struct crowd *crowd = context;
	struct gw_row_push_scratch scratch = {0};
	struct gw_optimizer optimizer = {.kind = GW_SGD, .combine = GW_COMBINE_SUM, .rate = -1};
	float gradients[8 * 32];
	uint64_t rows[8];
	crowd_begin(crowd);
	for (uint64_t i = 0; i < PUSHES; i++) {
		for (uint64_t k = 0; k < 8; k++) { /* some rows are equal */
			rows[k] = (i + k * k) % crowd->rows;
			for (uint64_t c = 0; c < crowd->columns; c++)
				gradients[k * crowd->columns + c] = (float)(k + 1);
		}
		if (gw_row_store_push(crowd->store, &optimizer, rows, 8, gradients, NULL, &scratch))
			atomic_fetch_add(&crowd->bad, 1);
	}
	gw_row_push_scratch_free(&scratch);
	atomic_fetch_sub(&crowd->left, 1);
	return NULL;
}

static void *look_at_numbers(void *context)
{
	struct crowd *crowd = context;
	const struct gw_row_format *format = gw_row_store_format(crowd->store);
	const uint8_t *base = gw_arena_base(gw_row_store_arena(crowd->store));
	float values[32], last[8] = {0};
	crowd_begin(crowd);
	for (uint64_t turn = 0; atomic_load(&crowd->left) > 0; turn++) {
		uint64_t row = turn % crowd->rows;
		if (turn % 2 ? gw_row_store_read(crowd->store, &row, 1, values) != GW_OK
			     : !gw_row_copy(format, base + row * format->stride, values))
			continue;
		bool bad = values[0] < last[row];
		for (uint64_t c = 1; c < crowd->columns; c++)
			bad |= values[c] != values[0];
		last[row] = values[0];
		if (bad)
			atomic_fetch_add(&crowd->bad, 1);
	}
	return NULL;
}

static void many_push_at_once(void **state)
{
	(void)state;
	static const uint64_t columns[] = {1, 2, 3, 32}; /* one word of 4 and 8 bytes, and versioned rows */
	for (size_t i = 0; i < 4; i++) {
		struct crowd crowd = {.rows = 5, .columns = columns[i], .left = PUSHERS};
		crowd.store = store_of(GW_FLOAT32, crowd.rows, crowd.columns);
		pthread_t threads[2 * PUSHERS];
		for (uint32_t t = 0; t < 2 * PUSHERS; t++)
			assert_int_equal(
				pthread_create(&threads[t], NULL, t % 2 ? look_at_numbers : push_numbers, &crowd), 0);
		for (uint32_t t = 0; t < 2 * PUSHERS; t++)
			pthread_join(threads[t], NULL);
		assert_int_equal(crowd.bad, 0);
		float values[5 * 32], sum = 0;
		assert_int_equal(gw_row_store_read_range(crowd.store, 0, crowd.rows, values), GW_OK);
		for (uint64_t row = 0; row < crowd.rows; row++)
			sum += values[row * crowd.columns] - 0.5f;
		assert_true(sum == (float)(PUSHERS * PUSHES * 36)); /* 1 + 2 + ... + 8 per push */
		gw_row_store_destroy(crowd.store);
	}
}

/* A row and its state are saved during training: both have the same number of steps. */
static void *push_ones(void *context)
{
	struct crowd *crowd = context;
	struct gw_row_push_scratch scratch = {0};
	struct gw_optimizer optimizer = {.kind = GW_ADAGRAD, .combine = GW_COMBINE_SUM, .rate = -1};
	float ones[32];
	for (int i = 0; i < 32; i++)
		ones[i] = 1;
	for (uint64_t i = 0; i < PUSHES; i++) {
		uint64_t row = i % crowd->rows;
		if (gw_row_store_push(crowd->store, &optimizer, &row, 1, ones, NULL, &scratch))
			atomic_fetch_add(&crowd->bad, 1);
	}
	gw_row_push_scratch_free(&scratch);
	atomic_fetch_sub(&crowd->left, 1);
	return NULL;
}

static void rows_and_state_of_one_moment(void **state)
{
	(void)state;
	static const uint64_t columns[] = {1, 32};
	double expected[PUSHES + 1] = {0.5}; /* after s pushes of ones; each added 1 / sqrt(s) to w */
	for (uint32_t n = 1; n <= PUSHES; n++)
		expected[n] = expected[n - 1] + 1 / sqrt(n);
	for (size_t i = 0; i < 2; i++) {
		struct crowd crowd = {.rows = 3, .columns = columns[i], .left = 1};
		uint64_t elements = 3 * columns[i];
		crowd.store = store_of(GW_FLOAT32, crowd.rows, crowd.columns);
		assert_int_equal(gw_row_store_prepare(crowd.store, GW_ADAGRAD), GW_OK);
		float rows[3 * 32], states[3 * 32];
		pthread_t thread;
		assert_int_equal(pthread_create(&thread, NULL, push_ones, &crowd), 0);
		bool last;
		do {
			last = atomic_load(&crowd.left) == 0;
			assert_int_equal(gw_row_store_save_slice(crowd.store, NULL, 0, 3, rows, states), GW_OK);
			for (uint64_t e = 0; e < elements; e++)
				assert_true(fabs((double)rows[e] - expected[(uint32_t)states[e]]) < 1e-3);
		} while (!last);
		pthread_join(thread, NULL);
		assert_int_equal(crowd.bad, 0);
		float pushes = 0;
		for (uint64_t row = 0; row < 3; row++)
			pushes += states[row * columns[i]];
		assert_true(pushes == (float)PUSHES);
		gw_row_store_destroy(crowd.store);
	}
}

static void state_can_be_set(void **state)
{
	(void)state;
	struct gw_row_store *store = store_of(GW_FLOAT32, 3, 2);
	static const float steps[] = {0, 0}, means[] = {1, 2, 3, 4};
	static const uint64_t rows[] = {2, 0}, bad[] = {1, 3};
	float w[6], s[15];
	assert_int_equal(gw_row_store_set_state_slice(store, NULL, rows, 2, 0, 1, steps), GW_INVALID);
	assert_int_equal(gw_row_store_prepare(store, GW_ADAM), GW_OK);
	assert_int_equal(gw_row_store_set_state_slice(store, NULL, rows, 2, 1, 2, means), GW_OK);
	assert_int_equal(gw_row_store_set_state_slice(store, NULL, bad, 2, 1, 2, means), GW_RANGE);
	assert_int_equal(gw_row_store_set_state_slice(store, NULL, rows, 2, 4, 2, means), GW_RANGE);
	assert_int_equal(gw_row_store_set_state_slice(store, NULL, rows, 2, 6, 0, means), GW_RANGE);
	assert_int_equal(gw_row_store_save_slice(store, NULL, 0, 3, w, s), GW_OK);
	static const float expected[15] = {0, 3, 4, 0, 0, /* */ 0, 0, 0, 0, 0, /* */ 0, 1, 2, 0, 0};
	assert_memory_equal(s, expected, sizeof(s));
	assert_int_equal(gw_row_store_save_slice(store, NULL, 1, 3, w, s), GW_RANGE);
	gw_row_store_destroy(store);
}

/* Creation, a first push, one that needs more room, a count: when memory is short, each fails and changes nothing, or
 * succeeds without the memory. */
static gw_status short_of_memory(void *context)
{
	const uint64_t *columns = context;
	struct gw_row_store_options options = {.name = "short",
					       .rows = 4,
					       .columns = *columns,
					       .dtype = GW_FLOAT32,
					       .huge = GW_HUGE_OFF,
					       .numa = GW_NUMA_LOCAL,
					       .threads = 2};
	struct gw_optimizer optimizer = {.kind = GW_ADAGRAD, .rate = 1, .eps = 1};
	static float gradients[300 * 3], seen[4 * 3];
	uint64_t rows[300], count;
	struct gw_row_push_scratch scratch = {0};
	struct gw_row_store *store;
	gw_status status = gw_row_store_create(&options, &store);
	if (status != GW_OK)
		return status;
	for (uint64_t i = 0; i < 300; i++) {
		rows[i] = i % 4;
		gradients[i * *columns] = 1;
	}
	for (uint64_t n = 3; n <= 300 && status == GW_OK; n *= 100) {
		assert_int_equal(gw_row_store_read_range(store, 0, 4, seen), GW_OK);
		float before = seen[0];
		status = gw_row_store_push(store, &optimizer, rows, n, gradients, NULL, &scratch);
		assert_int_equal(gw_row_store_read_range(store, 0, 4, seen), GW_OK);
		assert_int_equal(status == GW_OK, seen[0] != before);
	}
	if (status == GW_OK)
		status = gw_row_store_count_slice(store, NULL, 0, 4, &count);
	gw_row_push_scratch_free(&scratch);
	gw_row_store_destroy(store);
	return status;
}

static void allocations_fail_in_turn(void **state)
{
	(void)state;
	for (uint64_t columns = 1; columns <= 3; columns += 2) {
		assert_true(gw_fault_each(short_of_memory, &columns) > 0);
		assert_true(gw_fault_each_from(short_of_memory, &columns) > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(optimizers_by_their_formulas), cmocka_unit_test(what_is_not_finite_is_seen),
		cmocka_unit_test(what_is_too_large_or_nothing), cmocka_unit_test(squares_stand_for_equal_rows),
		cmocka_unit_test(what_cannot_be_pushed),        cmocka_unit_test(many_push_at_once),
		cmocka_unit_test(rows_and_state_of_one_moment), cmocka_unit_test(state_can_be_set),
		cmocka_unit_test(allocations_fail_in_turn),
	};
	return cmocka_run_group_tests_name("row push", tests, NULL, NULL);
}
