/* Philox compared with Random123's published answers, draws compared with their definition, and the properties of the
 * permutation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/digest.h"
#include "core/numbers/rng.h"

/* Random123's kat_vectors, the lines "philox4x32 10": counter, key, result. */
static void philox_known_answers(void **state)
{
	(void)state;
	static const struct {
		uint32_t counter[4], key[2], result[4];
	} answers[] = {
		{{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
		 {0xffffffff, 0xffffffff},
		 {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
		 {0xa4093822, 0x299f31d0},
		 {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	};
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct gw_words counter;
		memcpy(counter.word, answers[i].counter, sizeof(counter.word));
		uint64_t key = answers[i].key[0] | (uint64_t)answers[i].key[1] << 32;
		struct gw_words result = gw_philox4x32(counter, key);
		assert_memory_equal(result.word, answers[i].result, sizeof(result.word));
	}
}

static void counter_holds_block_and_instance(void **state)
{
	(void)state;
	uint64_t key = 0x0123456789abcdefull, instance = 0xfedcba9876543210ull;
	struct gw_words counter = {{7, 0x76543210u, 0xfedcba98u, 0}};
	struct gw_words expected = gw_philox4x32(counter, key), got = gw_philox(key, instance, 7);
	assert_memory_equal(&got, &expected, sizeof(got));
}

static void draw_i_is_word_i(void **state)
{
	(void)state;
	struct gw_draws draws = gw_draws_begin(99, 1ull << 40);
	for (uint32_t i = 0; i < 41; i++)
		assert_int_equal(gw_draw32(&draws), gw_philox(99, 1ull << 40, i / 4).word[i % 4]);
}

static void keys_differ(void **state)
{
	(void)state;
	uint64_t keys[3 * 3 * 2 * 3 * 3];
	size_t count = 0;
	for (uint64_t seed = 0; seed < 3; seed++)
		for (uint64_t stream = 0; stream < 3; stream++)
			for (int kind = GW_DRAW_NEIGHBOURS; kind <= GW_DRAW_WALK; kind++)
				for (uint32_t hop = 0; hop < 3; hop++)
					for (uint32_t type = 0; type < 3; type++)
						keys[count++] =
							gw_draw_key(seed, stream, (enum gw_draw_kind)kind, hop, type);
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < i; j++)
			assert_true(keys[i] != keys[j]);
}

/* Files, orders and trained rows depend on these keys, so the keys must never change. */
static void keys_stay(void **state)
{
	(void)state;
	static const struct {
		enum gw_draw_kind kind;
		int number;
		uint64_t key;
	} frozen[] = {
		{GW_DRAW_NEIGHBOURS, 1, 0x2810d2fa060d0631ull}, {GW_DRAW_WALK, 2, 0xaf7538c908cb3143ull},
		{GW_DRAW_NEGATIVE, 3, 0xd9950e1cce9e57a6ull},   {GW_DRAW_SHUFFLE, 4, 0x84b6523f0a446b8aull},
		{GW_DRAW_LABOR, 5, 0xdfd058abda30103full},      {GW_DRAW_GENERATE, 6, 0x7c67ba79165b608aull},
		{GW_DRAW_INITIAL, 7, 0xbf62c9004c04cd40ull},
	};
	for (size_t i = 0; i < sizeof(frozen) / sizeof(frozen[0]); i++) {
		assert_int_equal(frozen[i].kind, frozen[i].number);
		assert_int_equal(gw_draw_key(7, 11, frozen[i].kind, 2, 3), frozen[i].key);
	}
}

static void draw_below_is_uniform(void **state)
{
	(void)state;
	static const uint32_t bounds[] = {1, 2, 3, 7, 10, 64, 100};
	for (size_t b = 0; b < sizeof(bounds) / sizeof(bounds[0]); b++) {
		uint32_t bound = bounds[b], hits[100] = {0};
		const uint32_t per_value = 2000;
		struct gw_draws draws = gw_draws_begin(gw_draw_key(1, 2, GW_DRAW_WALK, 0, 0), b);
		for (uint32_t i = 0; i < bound * per_value; i++) {
			uint32_t value = gw_draw_below(&draws, bound);
			assert_true(value < bound);
			hits[value]++;
		}
		double chi = 0;
		for (uint32_t i = 0; i < bound; i++)
			chi += ((double)hits[i] - per_value) * ((double)hits[i] - per_value) / per_value;
		/* Mean bound - 1, standard deviation sqrt(2 (bound - 1)); the seed is fixed, so the result is
		 * deterministic. */
		assert_true((chi - bound + 1) * (chi - bound + 1) <= 16.0 * 2.0 * bound);
	}
}

/* A bound just above 2^31 rejects half of the words: the result must still be uniform over its halves. */
static void draw_below_rejects(void **state)
{
	(void)state;
	struct gw_draws draws = gw_draws_begin(5, 5);
	const uint32_t bound = 0x80000001u;
	uint32_t upper = 0, count = 20000;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t value = gw_draw_below(&draws, bound);
		assert_true(value < bound);
		upper += value > bound / 2;
	}
	assert_true(draws.next > count + count / 2); /* it did reject */
	assert_in_range(upper, count / 2 - 400, count / 2 + 400);
}

static void check_bijection(uint64_t key, uint64_t n)
{
	struct gw_permutation permutation = gw_permutation_begin(key, n);
	bool *seen = calloc(n, sizeof(*seen));
	assert_non_null(seen);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t at = gw_permutation_at(&permutation, i);
		assert_true(at < n);
		assert_false(seen[at]);
		seen[at] = true;
	}
	free(seen);
}

static void permutation_is_bijective(void **state)
{
	(void)state;
	for (uint64_t n = 1; n <= 300; n++)
		check_bijection(n * 77, n);
	static const uint64_t sizes[] = {1023,  1024,  1025,  4095,    4096,         4097,
					 65535, 65537, 99991, 1 << 18, (1 << 18) + 1};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		check_bijection(i, sizes[i]);
}

static void permutation_of_huge_ranges(void **state)
{
	(void)state;
	static const uint64_t sizes[] = {1ull << 62, (1ull << 62) - 1, (1ull << 40) + 3, UINT32_MAX};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct gw_permutation permutation = gw_permutation_begin(3, sizes[i]);
		assert_true(gw_permutation_at(&permutation, sizes[i] - 1) < sizes[i]);
		assert_true(gw_permutation_at(&permutation, 0) != gw_permutation_at(&permutation, 1));
	}
}

/* It mixes: almost no fixed points or kept neighbours, and another order for another key. */
static void permutation_mixes(void **state)
{
	(void)state;
	const uint64_t n = 10007;
	struct gw_permutation a = gw_permutation_begin(1, n), b = gw_permutation_begin(2, n);
	uint32_t fixed = 0, followed = 0, same = 0;
	for (uint64_t i = 0; i + 1 < n; i++) {
		uint64_t at = gw_permutation_at(&a, i);
		fixed += at == i;
		followed += gw_permutation_at(&a, i + 1) == at + 1;
		same += gw_permutation_at(&b, i) == at;
	}
	assert_true(fixed < 12 && followed < 12 && same < 12);
}

/* States of loaders and the ranks of a job rely on it: another order is another version. */
static void orders_stay(void **state)
{
	(void)state;
	static const struct {
		uint64_t key, n, digest;
	} known[] = {{1, 1 << 10, 0x6d5f4b4e30ea9980ull},
		     {0x84b6523f0a446b8aull, 1 << 15, 0xbbcb7d1f6ecef893ull},
		     {77, 1000, 0x9f65a57135f33dbeull},
		     {3, 1ull << 62, 0x6bdbaa5924fcbc8ull}};
	assert_int_equal(GW_PERMUTATION_VERSION, 2);
	for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
		uint64_t ids[1000];
		struct gw_permutation permutation = gw_permutation_begin(known[k].key, known[k].n);
		for (uint64_t i = 0; i < 1000; i++)
			ids[i] = gw_permutation_at(&permutation, i);
		assert_int_equal(gw_digest(ids, sizeof(ids)), known[k].digest);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(philox_known_answers),
		cmocka_unit_test(counter_holds_block_and_instance),
		cmocka_unit_test(draw_i_is_word_i),
		cmocka_unit_test(keys_differ),
		cmocka_unit_test(keys_stay),
		cmocka_unit_test(draw_below_is_uniform),
		cmocka_unit_test(draw_below_rejects),
		cmocka_unit_test(permutation_is_bijective),
		cmocka_unit_test(permutation_of_huge_ranges),
		cmocka_unit_test(permutation_mixes),
		cmocka_unit_test(orders_stay),
	};
	return cmocka_run_group_tests_name("rng", tests, NULL, NULL);
}
