/* Gradients of one row that the caller combines change the row and its state as the store changes them when it gets
 * each gradient, for every optimizer and combination, in any order of the gradients. Sums and means have the same bits;
 * gradients that the store applies one by one are rounded more often. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "core/rows/optimizer.h"
#include "core/rows/store.h"
#include "tensors/combine.h"
#include "test/support/must.h"

#define CALL_MAX    40u
#define COLUMNS_MAX 67u
#define CALLS       6u

static struct gw_row_store *store_of_one_row(uint64_t columns)
{
	struct gw_row_store_options options = {.name = "combined",
					       .dtype = GW_FLOAT32,
					       .rows = 1,
					       .columns = columns,
					       .huge = GW_HUGE_OFF,
					       .numa = GW_NUMA_LOCAL,
					       .threads = 1};
	struct gw_row_store *store;
	must(gw_row_store_create(&options, &store));
	return store;
}

/* One call's gradients, and the order in which they count. */
struct gradients {
	uint32_t n, order[CALL_MAX];
	float given[CALL_MAX * COLUMNS_MAX], ordered[CALL_MAX * COLUMNS_MAX];
};

static void draw_gradients(struct gradients *gradients, uint64_t columns, struct gw_draws *draws)
{
	gradients->n = 1 + (uint32_t)gw_draw_below(draws, CALL_MAX);
	for (uint32_t i = 0; i < gradients->n * columns; i++)
		gradients->given[i] = (float)gw_draw32(draws) * 0x1p-31f - 0.9f;
	for (uint32_t i = 0; i < gradients->n; i++) {
		uint32_t at = (uint32_t)gw_draw_below(draws, i + 1);
		gradients->order[i] = gradients->order[at];
		gradients->order[at] = i;
	}
	for (uint32_t i = 0; i < gradients->n; i++)
		memcpy(gradients->ordered + i * columns, gradients->given + gradients->order[i] * columns,
		       columns * sizeof(float));
}

static void check_combined(const struct gw_optimizer *optimizer, uint64_t columns)
{
	static struct gradients gradients;
	static const uint64_t rows[CALL_MAX]; /* all are row 0 */
	struct gw_row_store *each = store_of_one_row(columns), *once = store_of_one_row(columns);
	struct gw_row_push_scratch scratch = {0};
	struct gw_draws draws = gw_draws_begin(columns, (uint64_t)optimizer->kind * 8 + (uint64_t)optimizer->combine);
	for (uint32_t call = 0; call < CALLS; call++) {
		float combined[COLUMNS_MAX], squares = 0, expected[COLUMNS_MAX], got[COLUMNS_MAX];
		bool wanted = gw_gradients_need_squares(optimizer);
		draw_gradients(&gradients, columns, &draws);
		gw_gradients_combine(optimizer, gradients.given, gradients.order, gradients.n, columns, combined,
				     wanted ? &squares : NULL);
		must(gw_row_store_push(each, optimizer, rows, gradients.n, gradients.ordered, NULL, &scratch));
		must(gw_row_store_push(once, optimizer, rows, 1, combined, wanted ? &squares : NULL, &scratch));
		must(gw_row_store_read_range(each, 0, 1, expected));
		must(gw_row_store_read_range(once, 0, 1, got));
		if (optimizer->combine != GW_COMBINE_EACH)
			assert_memory_equal(got, expected, columns * sizeof(float));
		for (uint64_t i = 0; i < columns; i++)
			assert_true(fabsf(got[i] - expected[i]) <= 1e-5f * fmaxf(1, fabsf(expected[i])));
	}
	gw_row_push_scratch_free(&scratch);
	gw_row_store_destroy(each);
	gw_row_store_destroy(once);
}

static void combined_gradients_are_those_of_the_store(void **state)
{
	(void)state;
	static const uint64_t columns[] = {1, 2, 16, COLUMNS_MAX};
	uint32_t checked = 0;
	for (uint32_t kind = 0; gw_optimizer_rule_of(kind); kind++) {
		for (int combine = GW_COMBINE_SUM; combine <= GW_COMBINE_EACH; combine++) {
			const struct gw_optimizer optimizer = {.kind = (enum gw_optimizer_kind)kind,
							       .combine = (enum gw_combine)combine,
							       .rate = 0.125f,
							       .eps = 1e-3f,
							       .beta1 = 0.9f,
							       .beta2 = 0.99f};
			bool can = gw_gradients_can_combine(&optimizer);
			assert_true(can || combine == GW_COMBINE_EACH);
			for (size_t c = 0; can && c < sizeof(columns) / sizeof(columns[0]); c++, checked++)
				check_combined(&optimizer, columns[c]);
		}
	}
	assert_true(checked > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(combined_gradients_are_those_of_the_store)};
	return cmocka_run_group_tests_name("combine", tests, NULL, NULL);
}
