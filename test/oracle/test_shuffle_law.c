/* The keyed permutation is a uniform order: chi-squares of whole orders of up to 8, and for longer ones of places, of
 * pairs of places, of differences of neighbours, of the parity, and of two epochs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "test/support/chi_square.h"

enum { KEYS = 20000, FEW = 8, LIST_MAX = 4096 };

static void epoch_order(uint64_t epoch, uint64_t n, uint32_t *order)
{
	struct gw_permutation permutation = gw_permutation_begin(gw_draw_key(7, epoch, GW_DRAW_SHUFFLE, 0, 0), n);
	for (uint64_t i = 0; i < n; i++)
		order[i] = (uint32_t)gw_permutation_at(&permutation, i);
}

static uint32_t *counters(uint64_t cells)
{
	uint32_t *counts = calloc(cells, sizeof(*counts));
	assert_non_null(counts);
	return counts;
}

/* The rank of an order among all n! orders. */
static uint32_t rank_of(const uint32_t *order, uint32_t n)
{
	uint32_t rank = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t less = 0;
		for (uint32_t j = 0; j < i; j++)
			less += order[j] < order[i];
		rank = rank * (i + 1) + less;
	}
	return rank;
}

static void every_order_of_few(void **state)
{
	(void)state;
	uint32_t orders = 1, order[FEW];
	for (uint32_t n = 1; n <= FEW; n++) {
		orders *= n;
		uint32_t *counts = counters(orders), keys = n < FEW ? KEYS : 3 * KEYS;
		for (uint64_t key = 0; key < keys; key++) {
			epoch_order(key, n, order);
			counts[rank_of(order, n)]++;
		}
		if (n == 1)
			assert_int_equal(counts[0], keys);
		else
			assert_equally_likely(counts, orders, "orders", n);
		free(counts);
	}
}

static void places_and_pairs(void **state)
{
	(void)state;
	static const uint32_t sizes[] = {5, 8, 16, 33, 64, 128};
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		const uint32_t n = sizes[s], keys = n <= 64 ? KEYS : KEYS / 2, cells = n * n;
		const uint32_t places[][2] = {{0, 1}, {0, n / 2}, {1, n - 1}, {n - 2, n - 1}};
		uint32_t *place = counters(cells), *pairs = counters(4ull * cells), *epochs = counters(cells);
		uint32_t order[128], last = 0;
		for (uint64_t key = 0; key < keys; key++) {
			epoch_order(key, n, order);
			for (uint32_t i = 0; i < n; i++)
				place[i * n + order[i]]++;
			for (uint32_t p = 0; p < 4; p++)
				pairs[p * cells + order[places[p][0]] * n + order[places[p][1]]]++;
			if (key > 0)
				epochs[last * n + order[0]]++;
			last = order[0];
		}
		/* Rows and columns have the same sum. */
		assert_chi_square(chi_square(place, cells, (double)keys / n), (n - 1.0) * (n - 1.0), "places", n);
		for (uint64_t p = 0; p < 4; p++)
			assert_pairs_equally_likely(pairs + p * cells, n, "pairs");
		assert_equally_likely(epochs, cells, "epochs that follow each other", n);
		free(place);
		free(pairs);
		free(epochs);
	}
}

/* What follows an id, as the difference modulo n, over all positions: each of 1 to n - 1 is equally likely. */
static void differences_of_neighbours(void **state)
{
	(void)state;
	static const uint32_t sizes[] = {5, 8, 16, 60, 64, 256, 1000, 1024, 4096};
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		const uint32_t n = sizes[s], keys = n < 256 ? KEYS / 2 : 1000000 / n;
		uint32_t order[LIST_MAX], *counts = counters(n);
		for (uint64_t key = 0; key < keys; key++) {
			epoch_order(key, n, order);
			for (uint32_t i = 1; i < n; i++)
				counts[(order[i] + n - order[i - 1]) % n]++;
		}
		assert_int_equal(counts[0], 0);
		assert_equally_likely(counts + 1, n - 1, "differences of neighbours", n);
		free(counts);
	}
}

static bool is_odd(const uint32_t *order, uint32_t n)
{
	bool seen[256] = {false}, odd = false;
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t at = i; !seen[at]; at = order[at]) {
			seen[at] = true;
			odd ^= order[at] != i; /* a cycle of k is k - 1 exchanges */
		}
	}
	return odd;
}

/* Feistel networks are even; of 4^k ids the walk adds nothing to them. */
static void odd_orders_as_often_as_even_ones(void **state)
{
	(void)state;
	static const uint32_t sizes[] = {2, 4, 16, 31, 63, 64, 100, 128, 255, 256};
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		uint32_t order[256], counts[2] = {0};
		for (uint64_t key = 0; key < KEYS / 4; key++) {
			epoch_order(key, sizes[s], order);
			counts[is_odd(order, sizes[s])]++;
		}
		assert_equally_likely(counts, 2, "parity of the order", sizes[s]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_order_of_few),
		cmocka_unit_test(places_and_pairs),
		cmocka_unit_test(differences_of_neighbours),
		cmocka_unit_test(odd_orders_as_often_as_even_ones),
	};
	return cmocka_run_group_tests_name("shuffle law", tests, NULL, NULL);
}
