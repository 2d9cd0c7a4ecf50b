/* Quantiles of the histogram compared with the sorted values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/numbers/histogram.h"
#include "core/numbers/rng.h"

static struct gw_histogram histogram, other;

static int ascending(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
	return (a > b) - (a < b);
}

/* The histogram's quantile is between the exact one and 1/64 more. */
static void check_against_sorted(uint64_t *values, size_t count)
{
	static const double shares[] = {0, 0.001, 0.01, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1};
	qsort(values, count, sizeof(*values), ascending);
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		size_t rank = (size_t)(shares[i] * (double)count);
		if ((double)rank < shares[i] * (double)count)
			rank++;
		uint64_t exact = values[rank ? rank - 1 : 0], got = gw_histogram_quantile(&histogram, shares[i]);
		assert_true(got >= exact);
		assert_true(got - exact <= exact / 64);
	}
	assert_int_equal(histogram.count, count);
	assert_int_equal(gw_histogram_quantile(&histogram, 0), values[0]);
	assert_int_equal(gw_histogram_quantile(&histogram, 1), values[count - 1]);
}

/* Draws with magnitudes from 2^0 to 2^bits. */
static uint64_t spread_value(uint64_t i, uint32_t bits)
{
	struct gw_words words = gw_philox(11, i, 0);
	uint64_t value = words.word[0] | (uint64_t)words.word[1] << 32;
	return value >> (64 - 1 - words.word[2] % bits);
}

static void quantiles_of_spread_values(void **state)
{
	(void)state;
	static uint64_t values[20000];
	static const uint32_t widths[] = {3, 7, 20, 40, 63};
	for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); w++) {
		gw_histogram_clear(&histogram);
		for (size_t i = 0; i < 20000; i++) {
			values[i] = spread_value(i, widths[w]);
			gw_histogram_add(&histogram, values[i]);
		}
		check_against_sorted(values, 20000);
	}
}

static void edges_of_buckets(void **state)
{
	(void)state;
	for (uint32_t bit = 0; bit < 64; bit++) {
		for (int delta = -1; delta <= 1; delta++) {
			uint64_t value = (uint64_t)((__int128)(1ull << bit) + delta);
			gw_histogram_clear(&histogram);
			gw_histogram_add(&histogram, value);
			gw_histogram_add(&histogram, UINT64_MAX);
			uint64_t got = gw_histogram_quantile(&histogram, 0.5);
			assert_true(got >= value && got - value <= value / 64);
		}
	}
	for (uint64_t value = 0; value < 128; value++) { /* small values are exact */
		gw_histogram_clear(&histogram);
		gw_histogram_add(&histogram, value);
		gw_histogram_add(&histogram, 1000);
		assert_int_equal(gw_histogram_quantile(&histogram, 0.5), value);
	}
}

static void empty_is_zero(void **state)
{
	(void)state;
	gw_histogram_clear(&histogram);
	assert_int_equal(gw_histogram_quantile(&histogram, 0.5), 0);
}

static void merge_equals_adding_all(void **state)
{
	(void)state;
	static struct gw_histogram whole;
	gw_histogram_clear(&histogram);
	gw_histogram_clear(&other);
	gw_histogram_clear(&whole);
	for (uint64_t i = 0; i < 5000; i++) {
		uint64_t value = spread_value(i, 30);
		gw_histogram_add(i % 3 ? &histogram : &other, value);
		gw_histogram_add(&whole, value);
	}
	gw_histogram_merge(&histogram, &other);
	assert_memory_equal(&histogram, &whole, sizeof(whole));

	gw_histogram_clear(&other); /* an empty histogram merged in changes nothing; merging into an empty one copies */
	gw_histogram_merge(&histogram, &other);
	assert_memory_equal(&histogram, &whole, sizeof(whole));
	gw_histogram_merge(&other, &whole);
	assert_memory_equal(&other, &whole, sizeof(whole));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles_of_spread_values),
		cmocka_unit_test(edges_of_buckets),
		cmocka_unit_test(empty_is_zero),
		cmocka_unit_test(merge_equals_adding_all),
	};
	return cmocka_run_group_tests_name("histogram", tests, NULL, NULL);
}
