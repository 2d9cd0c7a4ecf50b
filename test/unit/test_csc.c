/* gw_csc_build compared with an oracle: a stable sort of the whole edge list by (dst, time | rel, src). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/graph/csc.h"
#include "core/memory/alloc.h"
#include "core/numbers/rng.h"
#include "test/support/alloc_fault.h"

struct edge {
	uint64_t dst, src, number;
	int64_t time;
	uint32_t rel;
};

static int compare_edges(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;
	if (x->dst != y->dst)
		return x->dst < y->dst ? -1 : 1;
	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	if (x->rel != y->rel)
		return x->rel < y->rel ? -1 : 1;
	if (x->src != y->src)
		return x->src < y->src ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static void check_against_oracle(const struct gw_coo *coo, unsigned threads)
{
	struct gw_csc csc;
	if (gw_csc_build(coo, threads, &csc) != GW_OK)
		fail_msg("%s", gw_last_error());
	struct edge *sorted = malloc((coo->num_edges + 1) * sizeof(*sorted));
	for (uint64_t e = 0; e < coo->num_edges; e++)
		sorted[e] = (struct edge){coo->dst[e], coo->src[e], e, coo->time ? coo->time[e] : 0,
					  coo->rel ? coo->rel[e] : 0};
	qsort(sorted, coo->num_edges, sizeof(*sorted), compare_edges);
	uint64_t at = 0, wrong = 0;
	for (uint64_t v = 0; v <= coo->num_dst; v++) {
		wrong += csc.indptr[v] != at;
		while (at < coo->num_edges && sorted[at].dst == v)
			at++;
	}
	for (uint64_t e = 0; e < coo->num_edges; e++)
		wrong += csc.order[e] != sorted[e].number;
	assert_int_equal(wrong, 0);
	free(sorted);
	gw_csc_free(&csc);
}

enum shape { SPREAD, SKEWED, STAR, SORTED, FEW_SOURCES };

struct lists {
	uint64_t *src, *dst;
	int64_t *time;
	uint32_t *rel;
};

static struct lists make(enum shape shape, uint64_t src_count, uint64_t dst_count, uint64_t edges, uint64_t time_span)
{
	struct lists l = {malloc(edges * 8 + 1), malloc(edges * 8 + 1), malloc(edges * 8 + 1), malloc(edges * 4 + 1)};
	for (uint64_t e = 0; e < edges; e++) {
		uint64_t a = gw_mix64(e * 3 + 1), b = gw_mix64(e * 3 + 2), c = gw_mix64(e * 3 + 3);
		l.src[e] = shape == FEW_SOURCES ? a % (src_count < 3 ? src_count : 3) : a % src_count;
		l.dst[e] = shape == STAR     ? dst_count - 1
			   : shape == SKEWED ? b % (1 + c % dst_count)
			   : shape == SORTED ? e * dst_count / edges
					     : b % dst_count;
		if (shape == SORTED)
			l.src[e] = e % src_count;
		l.time[e] = time_span ? (int64_t)(c % time_span) - (int64_t)(time_span / 2) : (int64_t)c;
		l.rel[e] = (uint32_t)(c >> 40) % 11;
	}
	return l;
}

static void drop(struct lists *l)
{
	free(l->src);
	free(l->dst);
	free(l->time);
	free(l->rel);
}

static void test_oracle(void **state)
{
	static const struct {
		uint64_t src, dst, edges;
	} sizes[] = {{1, 1, 0},
		     {1, 1, 1},
		     {5, 3, 40},
		     {100, 1, 3000},
		     {7, 513, 5000},
		     {300, 512, 9000},
		     {1000, 511, 20000},
		     {50000, 40000, 30000},
		     {1u << 20, 3, 60000},
		     {10, 100000, 50}};
	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (enum shape shape = SPREAD; shape <= FEW_SOURCES; shape++) {
			struct lists l = make(shape, sizes[i].src, sizes[i].dst, sizes[i].edges, 50);
			struct gw_coo coo = {sizes[i].src, sizes[i].dst, sizes[i].edges, l.src, l.dst, NULL, NULL};
			check_against_oracle(&coo, 1);
			check_against_oracle(&coo, 3);
			coo.time = l.time;
			check_against_oracle(&coo, 2);
			coo.time = NULL;
			coo.rel = l.rel;
			check_against_oracle(&coo, 2);
			drop(&l);
		}
	}
}

/* Keys that do not fit into one word together with a position: sources near 2^62, times over all 64 bits. */
static void test_wide_keys(void **state)
{
	(void)state;
	uint64_t wide = (1ull << 62) - 1;
	for (enum shape shape = SPREAD; shape <= STAR; shape++) {
		struct lists l = make(shape, wide, 700, 40000, 0);
		struct gw_coo coo = {wide, 700, 40000, l.src, l.dst, NULL, NULL};
		check_against_oracle(&coo, 2);
		coo.time = l.time;
		check_against_oracle(&coo, 2);
		drop(&l);
	}
}

static void test_extreme_times(void **state)
{
	(void)state;
	const uint64_t src[] = {4, 3, 2, 1, 0}, dst[] = {0, 0, 0, 0, 0};
	const int64_t time[] = {INT64_MAX, INT64_MIN, 0, -1, INT64_MAX};
	const uint64_t expected[] = {1, 3, 2, 4, 0};
	struct gw_coo coo = {5, 1, 5, src, dst, time, NULL};
	struct gw_csc csc;
	assert_int_equal(gw_csc_build(&coo, 1, &csc), GW_OK);
	assert_memory_equal(csc.order, expected, sizeof(expected));
	gw_csc_free(&csc);
}

static void test_out_of_range(void **state)
{
	(void)state;
	for (int which = 0; which < 2; which++) {
		for (uint64_t at = 0; at < 1000; at += 333) {
			struct lists l = make(SPREAD, 50, 60, 1000, 0);
			(which ? l.src : l.dst)[at] = which ? 50 : 60;
			struct gw_coo coo = {50, 60, 1000, l.src, l.dst, NULL, NULL};
			struct gw_csc csc;
			char text[32];
			assert_int_equal(gw_csc_build(&coo, 2, &csc), GW_RANGE);
			assert_null(csc.indptr);
			assert_null(csc.order);
			snprintf(text, sizeof(text), "edge %d:", (int)at);
			assert_non_null(strstr(gw_last_error(), text));
			drop(&l);
		}
	}
	uint64_t one = 0;
	struct gw_coo none = {1, 0, 1, &one, &one, NULL, NULL}; /* one edge, and no destinations */
	struct gw_csc csc;
	assert_int_equal(gw_csc_build(&none, 2, &csc), GW_RANGE);
	struct gw_coo huge = {1, 1, 1ull << 40, &one, &one, NULL, NULL};
	assert_int_equal(gw_csc_build(&huge, 2, &csc), GW_LIMIT);
}

static gw_status build_and_free(void *context)
{
	struct gw_csc csc;
	gw_status status = gw_csc_build(context, 2, &csc);
	if (status != GW_OK) {
		assert_null(csc.indptr);
		assert_null(csc.order);
	}
	gw_csc_free(&csc);
	return status;
}

static void test_memory_short(void **state)
{
	(void)state;
	struct lists l = make(SKEWED, 90, 80, 2000, 9);
	struct gw_coo coo = {90, 80, 2000, l.src, l.dst, l.time, NULL};
	assert_true(gw_fault_each(build_and_free, &coo) > 0);
	drop(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_oracle),        cmocka_unit_test(test_wide_keys),
		cmocka_unit_test(test_extreme_times), cmocka_unit_test(test_out_of_range),
		cmocka_unit_test(test_memory_short),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
