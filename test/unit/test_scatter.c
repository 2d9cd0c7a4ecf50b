/* The bijection that numbers R-MAT's vertices: a bijection, over more than 2^32 numbers too, and of bytes that never
 * change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/digest.h"
#include "core/numbers/scatter.h"

static void numbers_stay_different(void **state)
{
	(void)state;
	static const uint64_t sizes[] = {1, 2, 3, 4, 5, 16, 17, 1000, 1024, 4097, 1 << 16};
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		struct gw_scatter scatter = gw_scatter_begin(s, sizes[s]);
		bool *seen = calloc(sizes[s], sizeof(*seen));
		assert_non_null(seen);
		for (uint64_t i = 0; i < sizes[s]; i++) {
			uint64_t at = gw_scatter_at(&scatter, i);
			assert_true(at < sizes[s]);
			assert_false(seen[at]);
			seen[at] = true;
		}
		free(seen);
	}
}

/* Published figures name graphs that these numbers made. */
static void bytes_never_change(void **state)
{
	(void)state;
	static const struct {
		uint64_t key, n, digest;
	} known[] = {{1, 1 << 10, 0xd4003188e97e3f8bull},
		     {0x84b6523f0a446b8aull, 1 << 15, 0xd995bb64366f6af7ull},
		     {77, 1000, 0x88d5cce745a6127full},
		     {3, 1ull << 62, 0x5b711c0e230acd2full}};
	for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
		uint64_t ids[1000];
		struct gw_scatter scatter = gw_scatter_begin(known[k].key, known[k].n);
		for (uint64_t i = 0; i < 1000; i++)
			ids[i] = gw_scatter_at(&scatter, i);
		assert_int_equal(gw_digest(ids, sizeof(ids)), known[k].digest);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_stay_different),
		cmocka_unit_test(bytes_never_change),
	};
	return cmocka_run_group_tests_name("scatter", tests, NULL, NULL);
}
