/* Copies of rows by id: each look-up beside a plain array of what was set; a set that is set again; memory that runs
 * out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/rows/near_rows.h"
#include "core/numbers/rng.h"
#include "test/support/alloc_fault.h"

/* Ids below `ids`, each with a chance of `share` in 256. */
static void compare(struct gw_near_rows *near, uint64_t ids, uint32_t share, uint64_t seed)
{
	uint64_t *list = malloc((ids + 1) * sizeof(*list)), count = 0;
	uint64_t *numbers = malloc((ids + 1) * sizeof(*numbers));
	assert_true(list && numbers);
	for (uint64_t id = 0; id < ids; id++) {
		bool in = gw_mix64(seed ^ gw_mix64(id)) % 256 < share;
		numbers[id] = in ? count : GW_NEAR_NONE;
		if (in)
			list[count++] = id;
	}
	assert_int_equal(gw_near_rows_set(near, ids, list, count), GW_OK);
	assert_int_equal(near->count, count);
	for (uint64_t id = 0; id < ids; id++)
		assert_int_equal(gw_near_rows_find(near, id), numbers[id]);
	free(list);
	free(numbers);
}

static void finds_what_was_set(void **state)
{
	(void)state;
	static const uint64_t sizes[] = {0, 1, 63, 64, 65, 255, 256, 257, 1000, 70000};
	static const uint32_t shares[] = {0, 1, 13, 128, 255, 256};
	struct gw_near_rows near = {0};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (size_t s = 0; s < sizeof(shares) / sizeof(shares[0]); s++)
			compare(&near, sizes[i], shares[s], i * 100 + s);
	gw_near_rows_free(&near);
}

static void addresses(void **state)
{
	(void)state;
	const uint64_t list[] = {3, 300, 301};
	const uint8_t rows[4 * 8] = {0};
	const uint32_t slots[] = {2, 0, 3};
	struct gw_near_rows near = {0};
	assert_int_equal(gw_near_rows_set(&near, 400, list, 3), GW_OK);
	near.rows = rows;
	near.step = 8;
	assert_ptr_equal(gw_near_rows_at(&near, gw_near_rows_find(&near, 301)), rows + 16);
	near.slots = slots;
	assert_ptr_equal(gw_near_rows_at(&near, gw_near_rows_find(&near, 301)), rows + 24);
	assert_ptr_equal(gw_near_rows_at(&near, gw_near_rows_find(&near, 3)), rows + 16);
	assert_int_equal(gw_near_rows_set(&near, 1ull << 40, list, 1ull << 32), GW_LIMIT);
	gw_near_rows_free(&near);
}

static gw_status set_once(void *context)
{
	(void)context;
	const uint64_t list[] = {3, 300, 301};
	struct gw_near_rows near = {0};
	gw_status status = gw_near_rows_set(&near, 400, list, 3);
	assert_int_equal(near.count, status == GW_OK ? 3 : 0);
	gw_near_rows_free(&near);
	return status;
}

static void memory_runs_out(void **state)
{
	(void)state;
	assert_true(gw_fault_each(set_once, NULL) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_was_set),
		cmocka_unit_test(addresses),
		cmocka_unit_test(memory_runs_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
