/* The allocation hook, and the failing allocator that other tests use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/errors/status.h"
#include "core/memory/alloc.h"
#include "test/support/alloc_fault.h"

static void test_calloc_zeroes_and_refuses_overflow(void **state)
{
	(void)state;
	unsigned char *memory = gw_calloc(1000, 3);
	assert_non_null(memory);
	for (int i = 0; i < 3000; i++)
		assert_int_equal(memory[i], 0);
	gw_free(memory);
	assert_null(gw_calloc(SIZE_MAX / 2, 3));
	assert_non_null(strstr(gw_last_error(), "no memory"));
	assert_null(gw_realloc(NULL, SIZE_MAX / 2, 3));
}

static void test_realloc_keeps_content(void **state)
{
	(void)state;
	uint32_t *numbers = gw_realloc(NULL, 4, sizeof(*numbers));
	assert_non_null(numbers);
	memcpy(numbers, (uint32_t[]){1, 2, 3, 4}, 16);
	gw_fault_begin(1);
	assert_null(gw_realloc(numbers, 1000, sizeof(*numbers)));
	gw_fault_end();
	assert_memory_equal(numbers, ((uint32_t[]){1, 2, 3, 4}), 16); /* the old block stays valid */
	numbers = gw_realloc(numbers, 1000, sizeof(*numbers));
	assert_memory_equal(numbers, ((uint32_t[]){1, 2, 3, 4}), 16);
	gw_free(numbers);
	gw_free(NULL);
}

static void test_zero_bytes_give_a_pointer(void **state)
{
	(void)state;
	void *first = gw_malloc(0), *second = gw_malloc(0);
	assert_non_null(first);
	assert_non_null(second);
	assert_ptr_not_equal(first, second);
	gw_free(first);
	gw_free(second);
}

static void test_strings(void **state)
{
	(void)state;
	char *copy = gw_strdup("part0");
	assert_string_equal(copy, "part0");
	char *text = gw_format("%s/%d", copy, 17);
	assert_string_equal(text, "part0/17");
	gw_free(copy);
	gw_free(text);
	gw_fault_begin(1);
	assert_null(gw_format("%d", 1));
	gw_fault_end();
}

static void test_counts_leaks(void **state)
{
	(void)state;
	gw_fault_begin(GW_FAULT_NEVER);
	void *kept = gw_malloc(10), *freed = gw_realloc(NULL, 1, 10);
	gw_free(freed);
	assert_int_equal(gw_fault_count(), 2);
	assert_false(gw_fault_hit());
	assert_int_equal(gw_fault_end(), 1);
	gw_free(kept);
}

static gw_status two_blocks(void *context)
{
	int *runs = context;
	++*runs;
	void *first = gw_malloc(1);
	if (!first)
		return GW_NO_MEMORY;
	void *second = gw_malloc(1);
	gw_free(first);
	if (!second)
		return GW_NO_MEMORY;
	gw_free(second);
	return GW_OK;
}

static void test_each_fails_every_allocation_once(void **state)
{
	(void)state;
	int runs = 0;
	assert_int_equal(gw_fault_each(two_blocks, &runs), 2);
	assert_int_equal(runs, 3);
	assert_int_equal(gw_fault_each_from(two_blocks, &runs), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calloc_zeroes_and_refuses_overflow),
		cmocka_unit_test(test_realloc_keeps_content),
		cmocka_unit_test(test_zero_bytes_give_a_pointer),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_counts_leaks),
		cmocka_unit_test(test_each_fails_every_allocation_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
