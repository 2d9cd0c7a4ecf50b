/* gw_sort_rows compared with insertion into a sorted list: random, equal, descending and wide keys; and a shortage of
 * memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "core/numbers/sort.h"
#include "test/support/alloc_fault.h"

#define MOST 700

static void check(uint64_t n, uint64_t mask, uint64_t seed)
{
	uint64_t keys[MOST], alone[MOST], sorted[MOST];
	uint32_t rows[MOST], order[MOST];
	struct gw_vec scratch = {0};
	for (uint64_t i = 0; i < n; i++) {
		keys[i] = alone[i] = gw_mix64(seed * 1000 + i) & mask;
		rows[i] = (uint32_t)i;
		/* Stable insertion. */
		uint64_t at = i;
		for (; at > 0 && sorted[at - 1] > keys[i]; at--) {
			sorted[at] = sorted[at - 1];
			order[at] = order[at - 1];
		}
		sorted[at] = keys[i];
		order[at] = (uint32_t)i;
	}
	assert_int_equal(gw_sort_rows(keys, rows, n, &scratch), GW_OK);
	assert_memory_equal(keys, sorted, n * sizeof(keys[0]));
	assert_memory_equal(rows, order, n * sizeof(rows[0]));
	assert_int_equal(gw_sort_rows(alone, NULL, n, &scratch), GW_OK);
	assert_memory_equal(alone, sorted, n * sizeof(alone[0]));
	gw_vec_free(&scratch);
}

static void sorts_stably(void **state)
{
	(void)state;
	static const uint64_t masks[] = {0, 1, 0xff, 0xfffff, 0xff00000000000ull, UINT64_MAX, 1ull << 63};
	for (size_t m = 0; m < sizeof(masks) / sizeof(masks[0]); m++) {
		for (uint64_t n = 0; n <= MOST; n = n < 5 ? n + 1 : n * 3)
			check(n, masks[m], n + m);
	}
}

static gw_status sort_in_short_memory(void *context)
{
	(void)context;
	uint64_t keys[3] = {3, 1, 2};
	uint32_t rows[3] = {0, 1, 2};
	struct gw_vec scratch = {0};
	gw_status status = gw_sort_rows(keys, rows, 3, &scratch);
	if (status != GW_OK)
		assert_true(keys[0] == 3 && keys[1] == 1 && keys[2] == 2);
	gw_vec_free(&scratch);
	return status;
}

static void survives_a_shortage(void **state)
{
	(void)state;
	assert_true(gw_fault_each(sort_in_short_memory, NULL) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sorts_stably),
		cmocka_unit_test(survives_a_shortage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
