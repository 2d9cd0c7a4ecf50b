/* Growing buffers: contents survive, alignment stays, and a shortage of memory changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/memory/vec.h"
#include "test/support/alloc_fault.h"

static void contents_survive_growth(void **state)
{
	(void)state;
	struct gw_vec vec = {0};
	size_t filled = 0;
	for (size_t bytes = 1; bytes <= (size_t)16 << 20; bytes = bytes * 3 + 1) {
		assert_int_equal(gw_vec_reserve(&vec, bytes), GW_OK);
		assert_true(vec.capacity >= bytes && (uintptr_t)vec.data % 64 == 0);
		uint8_t *data = vec.data;
		for (size_t i = 0; i < filled; i++) {
			if (data[i] != (uint8_t)(i * 7))
				fail_msg("byte %zu changed when growing to %zu", i, bytes);
		}
		for (filled = 0; filled < vec.capacity; filled++) /* all of it is ours */
			data[filled] = (uint8_t)(filled * 7);
	}
	void *before = vec.data;
	assert_int_equal(gw_vec_reserve(&vec, 5), GW_OK); /* never shrinks, never moves without need */
	assert_ptr_equal(vec.data, before);
	gw_vec_free(&vec);
	assert_null(vec.data);
	assert_int_equal(vec.capacity, 0);
	gw_vec_free(&vec);
}

static void nothing_is_taken_for_nothing(void **state)
{
	(void)state;
	struct gw_vec vec = {0};
	assert_int_equal(gw_vec_reserve(&vec, 0), GW_OK);
	assert_null(vec.data);
	gw_vec_free(&vec);
}

static void a_shortage_changes_nothing(void **state)
{
	(void)state;
	struct gw_vec vec = {0};
	assert_int_equal(gw_vec_reserve(&vec, 100), GW_OK);
	memset(vec.data, 9, vec.capacity);
	struct gw_vec before = vec;
	static const size_t sizes[] = {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 4, (size_t)1 << 61};
	for (int i = 0; i < 4; i++) {
		assert_int_equal(gw_vec_reserve(&vec, sizes[i]), GW_NO_MEMORY);
		assert_memory_equal(&vec, &before, sizeof(vec));
		assert_true(gw_last_error()[0] != 0);
	}
	gw_fault_begin(1);
	gw_status status = gw_vec_reserve(&vec, before.capacity + 1);
	gw_fault_end();
	assert_int_equal(status, GW_NO_MEMORY);
	assert_memory_equal(&vec, &before, sizeof(vec));
	for (size_t i = 0; i < vec.capacity; i++)
		assert_int_equal(((uint8_t *)vec.data)[i], 9);
	gw_vec_free(&vec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(contents_survive_growth),
		cmocka_unit_test(nothing_is_taken_for_nothing),
		cmocka_unit_test(a_shortage_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
