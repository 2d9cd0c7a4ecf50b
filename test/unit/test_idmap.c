/* Both id maps compared with a plain table; growth, clearing, a base that wraps, and a shortage of memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/memory/alloc.h"
#include "core/memory/idmap.h"
#include "core/numbers/rng.h"

#define IDS 5000u

/* Returns how many numbers were given. */
static uint32_t check_dense(struct gw_dense_map *map, uint64_t seed)
{
	static int64_t table[IDS];
	for (size_t i = 0; i < IDS; i++)
		table[i] = -1;
	uint32_t next = 0;
	for (uint64_t i = 0; i < 3ull * IDS; i++) {
		uint64_t id = gw_philox(seed, i, 0).word[0] % IDS;
		bool is_new, expect_new = table[id] < 0;
		uint32_t number = gw_dense_map_put(map, id, next, &is_new);
		if (expect_new)
			table[id] = next++;
		assert_int_equal(is_new, expect_new);
		assert_int_equal(number, table[id]);
	}
	return next;
}

static void dense_numbers_ids(void **state)
{
	(void)state;
	struct gw_dense_map map;
	assert_int_equal(gw_dense_map_create(IDS, &map), GW_OK);
	for (uint64_t round = 0; round < 4; round++) {
		uint32_t numbers = check_dense(&map, round);
		gw_dense_map_clear(&map, numbers);
	}
	gw_dense_map_destroy(&map);
	assert_null(map.entries);
}

/* Bases repeat after 2^32 numbers: an entry of an earlier use must not look like one of this use. */
static void dense_base_wraps(void **state)
{
	(void)state;
	struct gw_dense_map map;
	const uint32_t last = UINT32_MAX - IDS; /* the highest base that leaves room for all ids */
	assert_int_equal(gw_dense_map_create(IDS, &map), GW_OK);
	for (uint32_t base = last - 2 * IDS; base < last; base += IDS / 2) {
		map.base = base;
		for (uint64_t round = 0; round < 6; round++) {
			uint32_t numbers = check_dense(&map, round);
			uint32_t before = map.base;
			gw_dense_map_clear(&map, numbers);
			assert_int_equal(map.base, before + numbers <= last ? before + numbers : 1);
		}
	}
	gw_dense_map_destroy(&map);
}

static void dense_of_nothing_and_of_too_much(void **state)
{
	(void)state;
	struct gw_dense_map map;
	assert_int_equal(gw_dense_map_create(0, &map), GW_OK);
	gw_dense_map_clear(&map, 0);
	gw_dense_map_destroy(&map);
	assert_int_equal(gw_dense_map_create(GW_DENSE_IDS_MAX + 1, &map), GW_LIMIT);
	assert_null(map.entries);
}

static uint64_t id_of(uint64_t i)
{
	/* Ids that differ only in their upper half, small ids and random ids, with repeats. */
	switch (i % 3) {
	case 0:
		return (i % 1000) << 40;
	case 1:
		return i % 777;
	default:
		return gw_mix64(i % 2000);
	}
}

static void hash_numbers_ids(void **state)
{
	(void)state;
	static uint64_t ids[4000];
	struct gw_hash_map map;
	assert_int_equal(gw_hash_map_create(4, &map), GW_OK);
	for (int round = 0; round < 2; round++) {
		uint32_t next = 0;
		for (uint64_t i = 0; i < 6000; i++) {
			uint64_t id = id_of(i);
			uint32_t expected = 0;
			while (expected < next && ids[expected] != id)
				expected++;
			bool is_new;
			assert_int_equal(gw_hash_map_reserve(&map, 1), GW_OK);
			gw_hash_map_prefetch(&map, id);
			assert_int_equal(gw_hash_map_put(&map, id, next, &is_new), expected);
			assert_int_equal(is_new, expected == next);
			if (is_new)
				ids[next++] = id;
			assert_int_equal(map.used, next);
			assert_true(map.used <= map.limit && map.limit <= (map.mask + 1) / 2);
		}
		gw_hash_map_clear(&map);
		assert_int_equal(map.used, 0);
	}
	gw_hash_map_destroy(&map);
}

static void hash_reserve_holds(void **state)
{
	(void)state;
	struct gw_hash_map map;
	bool is_new;
	assert_int_equal(gw_hash_map_create(0, &map), GW_OK);
	assert_int_equal(gw_hash_map_reserve(&map, 1000), GW_OK);
	uint64_t slots = map.mask;
	for (uint32_t i = 0; i < 1000; i++)
		gw_hash_map_put(&map, i * 8191ull, i, &is_new);
	assert_int_equal(map.mask, slots);
	assert_int_equal(gw_hash_map_reserve(&map, UINT64_MAX), GW_LIMIT);
	assert_int_equal(gw_hash_map_reserve(&map, 1ull << 39), GW_LIMIT);
	assert_int_equal(map.used, 1000);
	gw_hash_map_destroy(&map);
	assert_int_equal(gw_hash_map_create(UINT64_MAX, &map), GW_LIMIT);
}

/* The longest run of occupied slots, around the end of the table: the longest possible lookup. */
static uint64_t longest_run(const struct gw_hash_map *map)
{
	uint64_t longest = 0, run = 0;
	for (uint64_t i = 0; i < 2 * (map->mask + 1) && run <= map->mask; i++) {
		run = map->slots[i & map->mask].key == GW_HASH_EMPTY ? 0 : run + 1;
		longest = run > longest ? run : longest;
	}
	return longest;
}

/* Ids with a pattern, and ids chosen against a multiplication by the golden ratio folded once, where both halves of
 * the product are equal. At random, 4096 ids in 8192 slots have runs of 50. */
static void hash_spreads_patterns(void **state)
{
	(void)state;
	const uint64_t golden = 0x9e3779b97f4a7c15ull;
	uint64_t inverse = golden;
	for (int i = 0; i < 6; i++)
		inverse *= 2 - golden * inverse; /* Newton's iteration modulo 2^64 */
	assert_true(golden * inverse == 1);
	for (int pattern = 0; pattern < 66; pattern++) {
		struct gw_hash_map map;
		bool is_new;
		assert_int_equal(gw_hash_map_create(4096, &map), GW_OK);
		for (uint64_t i = 0; i < 4096; i++) {
			uint64_t id = pattern < 52   ? i << pattern
				      : pattern < 65 ? i * golden << (pattern - 52)
						     : (i << 32 | i) * inverse;
			gw_hash_map_put(&map, id, (uint32_t)i, &is_new);
			assert_true(is_new);
		}
		assert_int_equal(map.mask, 8191);
		assert_in_range(longest_run(&map), 1, 512);
		gw_hash_map_destroy(&map);
	}
}

static int allocations_left;

static void *failing_malloc(size_t bytes)
{
	return allocations_left-- > 0 ? malloc(bytes) : NULL;
}

static void *failing_realloc(void *old, size_t bytes)
{
	return allocations_left-- > 0 ? realloc(old, bytes) : NULL;
}

static void hash_survives_shortage(void **state)
{
	(void)state;
	static const struct gw_allocator failing = {failing_malloc, failing_realloc, free};
	struct gw_hash_map map, none;
	bool is_new;
	assert_int_equal(gw_hash_map_create(8, &map), GW_OK);
	for (uint32_t i = 0; i < 8; i++)
		gw_hash_map_put(&map, i, i + 100, &is_new);
	gw_allocator_set(&failing);
	allocations_left = 0;
	assert_int_equal(gw_hash_map_reserve(&map, 100), GW_NO_MEMORY);
	assert_int_equal(gw_hash_map_create(100, &none), GW_NO_MEMORY);
	assert_null(none.slots);
	gw_allocator_set(NULL);
	for (uint32_t i = 0; i < 8; i++) { /* unchanged */
		assert_int_equal(gw_hash_map_put(&map, i, 0, &is_new), i + 100);
		assert_false(is_new);
	}
	gw_hash_map_destroy(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dense_numbers_ids),
		cmocka_unit_test(dense_base_wraps),
		cmocka_unit_test(dense_of_nothing_and_of_too_much),
		cmocka_unit_test(hash_numbers_ids),
		cmocka_unit_test(hash_reserve_holds),
		cmocka_unit_test(hash_spreads_patterns),
		cmocka_unit_test(hash_survives_shortage),
	};
	return cmocka_run_group_tests_name("idmap", tests, NULL, NULL);
}
