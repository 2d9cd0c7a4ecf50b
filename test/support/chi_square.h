/* Chi-square: whether counts follow a law. Seeds of tests are fixed, so a pass stays a pass. */
#ifndef GW_TEST_CHI_SQUARE_H
#define GW_TEST_CHI_SQUARE_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define ONCE_IN_10_000  3.719 /* in standard deviations of a normal number */
#define ONCE_IN_MILLION 4.753

/* The value that chi-square exceeds so rarely (Wilson and Hilferty). */
static inline double chi_square_limit(double freedom, double deviations)
{
	double a = 2 / (9 * freedom), root = 1 - a + deviations * sqrt(a);
	return freedom * root * root * root;
}

/* Chi-square of counts that are all expected to be the same. */
static inline double chi_square(const uint32_t *counts, uint64_t cells, double expected)
{
	double sum = 0;
	for (uint64_t i = 0; i < cells; i++)
		sum += ((double)counts[i] - expected) * ((double)counts[i] - expected) / expected;
	return sum;
}

/* Fails if chi-square is larger than once in a million tests. */
static inline void assert_chi_square(double sum, double freedom, const char *what, uint64_t n)
{
	double limit = chi_square_limit(freedom, ONCE_IN_MILLION);
	if (sum > limit)
		fail_msg("%s of %llu: chi-square %.1f with %.0f degrees of freedom: the limit is %.1f", what,
			 (unsigned long long)n, sum, freedom, limit);
}

/* All cells are equally likely. */
static inline void assert_equally_likely(const uint32_t *counts, uint64_t cells, const char *what, uint64_t n)
{
	uint64_t total = 0;
	for (uint64_t i = 0; i < cells; i++)
		total += counts[i];
	assert_chi_square(chi_square(counts, cells, (double)total / (double)cells), (double)cells - 1, what, n);
}

/* Each cell has its chance, above 0; the chances' sum is 1. */
static inline void assert_chances(const uint32_t *counts, const double *chances, uint64_t cells, const char *what,
				  uint64_t n)
{
	double total = 0, sum = 0;
	for (uint64_t i = 0; i < cells; i++)
		total += counts[i];
	for (uint64_t i = 0; i < cells; i++)
		sum += (counts[i] - total * chances[i]) * (counts[i] - total * chances[i]) / (total * chances[i]);
	assert_chi_square(sum, (double)cells - 1, what, n);
}

/* counts: [n][n], of two different numbers below n: all n (n - 1) pairs are equally likely. */
static inline void assert_pairs_equally_likely(const uint32_t *counts, uint64_t n, const char *what)
{
	uint64_t total = 0;
	for (uint64_t i = 0; i < n * n; i++) {
		total += counts[i];
		if (i % (n + 1) == 0)
			assert_int_equal(counts[i], 0);
	}
	double cells = (double)n * ((double)n - 1), expected = (double)total / cells;
	/* The n empty cells of the diagonal add `expected` each. */
	assert_chi_square(chi_square(counts, n * n, expected) - (double)n * expected, cells - 1, what, n);
}

#endif
