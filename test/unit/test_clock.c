/* Deadlines and waiting for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/base/futex.h"

/* Deadlines: never is never reached, whatever the arithmetic. */
static void deadlines(void **state)
{
	(void)state;
	uint64_t before = gw_now_ns();
	assert_true(gw_deadline_ns(-1) == GW_NO_DEADLINE);
	assert_true(gw_deadline_ns(INT64_MIN) == GW_NO_DEADLINE);
	assert_true(gw_deadline_ns(INT64_MAX) == GW_NO_DEADLINE);
	uint64_t now = gw_deadline_ns(0), later = gw_deadline_ns(3600000);
	assert_true(now >= before && now <= gw_now_ns());
	assert_true(later >= before + 3600000 * GW_NS_PER_MS && later < GW_NO_DEADLINE);
	int64_t most_ms = (int64_t)(UINT64_MAX / GW_NS_PER_MS);
	assert_true(gw_deadline_ns(most_ms) == GW_NO_DEADLINE);
}

/* A wait ends at its deadline, and at once if the word is another already. */
static void waits_end(void **state)
{
	(void)state;
	_Atomic uint32_t word = 5;
	uint64_t deadline = gw_deadline_ns(20);
	while (gw_now_ns() < deadline)
		gw_futex_wait(&word, 5, deadline);
	gw_futex_wait(&word, 4, GW_NO_DEADLINE);
	assert_int_equal(word, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deadlines),
		cmocka_unit_test(waits_end),
	};
	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
