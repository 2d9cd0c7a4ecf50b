/* The owner of an id compared with linear search: at every boundary, with empty ranges, for 1 to 257 parts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/graph/book.h"
#include "core/numbers/rng.h"

static uint32_t linear_owner(const uint64_t *starts, uint32_t parts, uint64_t id)
{
	uint32_t p = 0;
	while (!(starts[p] <= id && id < starts[p + 1]))
		p++;
	assert_true(p < parts);
	return p;
}

enum fill { EVEN, MIXED, MOSTLY_EMPTY, ONE_OWNER, HUGE_RANGES, FILLS };

static void make_starts(enum fill fill, uint32_t parts, uint64_t *starts)
{
	starts[0] = 0;
	for (uint32_t p = 0; p < parts; p++) {
		uint64_t random = gw_mix64((uint64_t)parts << 20 | (uint64_t)fill << 16 | p);
		uint64_t width = fill == EVEN           ? 5
				 : fill == MIXED        ? random % 7 /* some ranges are empty */
				 : fill == MOSTLY_EMPTY ? (random % 9 == 0 ? random >> 32 : 0)
				 : fill == ONE_OWNER    ? (p == parts / 2 ? 100 : 0)
							: random >> 10;
		starts[p + 1] = starts[p] + width;
	}
}

static void test_every_boundary(void **state)
{
	static uint64_t starts[258];
	(void)state;
	for (uint32_t parts = 1; parts <= 257; parts++) {
		for (enum fill fill = EVEN; fill < FILLS; fill++) {
			make_starts(fill, parts, starts);
			for (uint32_t p = 0; p <= parts; p++) {
				for (int64_t step = -2; step <= 2; step++) {
					uint64_t id = starts[p] + (uint64_t)step;
					if (id < starts[parts]) /* also drops ids that wrapped below 0 */
						assert_int_equal(gw_book_owner(starts, parts, id),
								 linear_owner(starts, parts, id));
				}
			}
			for (uint64_t i = 0; starts[parts] && i < 20; i++) {
				uint64_t id = gw_mix64(i + parts) % starts[parts];
				assert_int_equal(gw_book_owner(starts, parts, id), linear_owner(starts, parts, id));
			}
		}
	}
}

static void test_all_ids_of_small_books(void **state)
{
	(void)state;
	for (uint32_t parts = 1; parts <= 6; parts++) {
		for (uint32_t widths = 0; widths < 4096u; widths++) { /* each range has 0 to 3 ids: all such books */
			uint64_t starts[7] = {0};
			for (uint32_t p = 0; p < parts; p++)
				starts[p + 1] = starts[p] + (widths >> (2 * p) & 3);
			for (uint64_t id = 0; id < starts[parts]; id++)
				assert_int_equal(gw_book_owner(starts, parts, id), linear_owner(starts, parts, id));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_boundary),
		cmocka_unit_test(test_all_ids_of_small_books),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
