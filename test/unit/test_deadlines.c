/* core/memory/deadlines.h against a plain array: the same item is the earliest after any sequence of changes, and a
 * change visits few places. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/memory/deadlines.h"
#include "core/numbers/rng.h"
#include "test/support/alloc_fault.h"

#define ITEMS 300

struct item {
	struct gw_deadline deadline; /* must be first */
	uint64_t due_ns;             /* UINT64_MAX: not set */
};

static uint64_t earliest(const struct item *items)
{
	uint64_t first = UINT64_MAX;
	for (uint32_t i = 0; i < ITEMS; i++)
		first = items[i].due_ns < first ? items[i].due_ns : first;
	return first;
}

static void the_earliest_is_taken(void **state)
{
	(void)state;
	struct gw_deadlines deadlines = {0};
	struct item *items = calloc(ITEMS, sizeof(*items));
	assert_non_null(items);
	for (uint32_t i = 0; i < ITEMS; i++)
		items[i].due_ns = UINT64_MAX;
	for (uint64_t step = 0; step < 200000; step++) {
		uint64_t random = gw_mix64(step), due = gw_mix64(step + 1) % 1000;
		struct item *item = &items[random % ITEMS];
		struct gw_deadline *taken;
		switch (random >> 32 & 3) {
		case 0:
			if (!item->deadline.joined)
				assert_int_equal(gw_deadlines_join(&deadlines, &item->deadline), GW_OK);
			break;
		case 1:
			if (random >> 40 & 1)
				break;
			gw_deadlines_leave(&deadlines, &item->deadline);
			item->due_ns = UINT64_MAX;
			break;
		case 2:
			if (!item->deadline.joined)
				break;
			gw_deadlines_set(&deadlines, &item->deadline, due);
			item->due_ns = due < item->due_ns ? due : item->due_ns;
			break;
		default:
			taken = gw_deadlines_take(&deadlines, due / 8);
			assert_true((earliest(items) > due / 8) == (taken == NULL));
			if (taken) {
				assert_int_equal(((struct item *)taken)->due_ns, earliest(items));
				((struct item *)taken)->due_ns = UINT64_MAX;
			}
		}
		assert_true(gw_deadlines_first(&deadlines) == earliest(items));
	}
	for (uint32_t i = 0; i < ITEMS; i++)
		gw_deadlines_leave(&deadlines, &items[i].deadline);
	assert_null(gw_deadlines_take(&deadlines, UINT64_MAX));
	gw_deadlines_end(&deadlines);
	free(items);
}

static uint32_t count_moved(const struct item *items, const uint32_t *before, uint32_t n)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < n; i++)
		count += items[i].deadline.at != before[i];
	return count;
}

static void a_change_moves_few_items(void **state)
{
	(void)state;
	enum { MANY = 1 << 16, LEVELS = 17 };
	struct gw_deadlines deadlines = {0};
	struct item *items = calloc(MANY, sizeof(*items));
	uint32_t *before = calloc(MANY, sizeof(*before));
	assert_true(items && before);
	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(gw_deadlines_join(&deadlines, &items[i].deadline), GW_OK);
		gw_deadlines_set(&deadlines, &items[i].deadline, i);
	}
	for (uint32_t turn = 0; turn < 20; turn++) {
		for (uint32_t i = 0; i < MANY; i++)
			before[i] = items[i].deadline.at;
		struct gw_deadline *taken = gw_deadlines_take(&deadlines, UINT64_MAX);
		assert_ptr_equal(taken, &items[turn].deadline);
		assert_in_range(count_moved(items, before, MANY), 1, LEVELS + 1);
		for (uint32_t i = 0; i < MANY; i++)
			before[i] = items[i].deadline.at;
		gw_deadlines_set(&deadlines, &items[MANY - 1 - turn].deadline, 0);
		gw_deadlines_leave(&deadlines, &items[MANY - 1 - turn].deadline);
		assert_in_range(count_moved(items, before, MANY), 1, 2 * LEVELS + 1);
	}
	for (uint32_t i = 0; i < MANY; i++)
		gw_deadlines_leave(&deadlines, &items[i].deadline);
	gw_deadlines_end(&deadlines);
	free(before);
	free(items);
}

static void joining_fails_without_memory(void **state)
{
	(void)state;
	struct gw_deadlines deadlines = {0};
	struct gw_deadline first = {0}, more[40] = {{0}};
	gw_fault_begin(1);
	assert_int_equal(gw_deadlines_join(&deadlines, &first), GW_NO_MEMORY);
	gw_fault_end();
	assert_false(first.joined);
	gw_deadlines_leave(&deadlines, &first);
	for (uint32_t i = 0; i < 16; i++) {
		assert_int_equal(gw_deadlines_join(&deadlines, &more[i]), GW_OK);
		gw_deadlines_set(&deadlines, &more[i], i);
	}
	gw_fault_begin(1);
	assert_int_equal(gw_deadlines_join(&deadlines, &more[16]), GW_NO_MEMORY);
	gw_fault_end();
	assert_ptr_equal(gw_deadlines_take(&deadlines, 0), &more[0]);
	for (uint32_t i = 0; i < 16; i++)
		gw_deadlines_leave(&deadlines, &more[i]);
	gw_deadlines_end(&deadlines);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_earliest_is_taken),
		cmocka_unit_test(a_change_moves_few_items),
		cmocka_unit_test(joining_fails_without_memory),
	};
	return cmocka_run_group_tests_name("deadlines", tests, NULL, NULL);
}
