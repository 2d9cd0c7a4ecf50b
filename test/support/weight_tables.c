/* See the header. Shares are long doubles, whose own error is far below 2^-32. */
#include "test/support/weight_tables.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static long double value_at(const struct gw_array *array, uint64_t i)
{
	const void *data = array->data;
	uint32_t bits;
	float single;
	switch (array->meta->dtype) {
	case GW_UINT8:
		return ((const uint8_t *)data)[i];
	case GW_UINT16:
		return ((const uint16_t *)data)[i];
	case GW_UINT32:
		return ((const uint32_t *)data)[i];
	case GW_UINT64:
		return ((const uint64_t *)data)[i];
	case GW_INT8:
		return ((const int8_t *)data)[i];
	case GW_INT16:
		return ((const int16_t *)data)[i];
	case GW_INT32:
		return ((const int32_t *)data)[i];
	case GW_INT64:
		return ((const int64_t *)data)[i];
	case GW_FLOAT16:
		bits = ((const uint16_t *)data)[i];
		return ldexpl(bits >> 10 ? (bits & 1023) | 1024 : bits, bits >> 10 ? (int)(bits >> 10) - 25 : -24);
	case GW_BFLOAT16:
		bits = (uint32_t)((const uint16_t *)data)[i] << 16;
		memcpy(&single, &bits, sizeof(single));
		return (long double)single;
	case GW_FLOAT32:
		return (long double)((const float *)data)[i];
	case GW_FLOAT64:
		return (long double)((const double *)data)[i];
	default:
		fail_msg("dtype %s is no weight", gw_dtype_name(array->meta->dtype));
		return 0;
	}
}

static void check_list(const struct gw_array *weights, const uint32_t *table, uint64_t from, uint64_t n)
{
	long double sum = 0;
	uint64_t *chance = calloc(n + 1, sizeof(*chance)); /* in units of 1 / (n * 2^32) */
	for (uint64_t i = 0; i < n; i++)
		sum += value_at(weights, from + i);
	for (uint64_t c = 0; c < n; c++) {
		uint32_t threshold = table[2 * (from + c)], alias = table[2 * (from + c) + 1];
		if (sum == 0) {
			assert_int_equal(threshold, 0);
			assert_int_equal(alias, UINT32_MAX);
			continue;
		}
		assert_true(alias < n);
		chance[c] += threshold;
		chance[alias] += (1ull << 32) - threshold;
	}
	for (uint64_t i = 0; i < n && sum > 0; i++) {
		long double share = value_at(weights, from + i) / sum;
		long double got = (long double)chance[i] / (long double)n / 4294967296.0L;
		assert_true(fabsl(got - share) < 1.0000001L / 4294967296.0L);
		assert_true(share > 0 || chance[i] == 0);
	}
	free(chance);
}

void weight_table_holds(const struct gw_part *part, const char *etype, const char *name)
{
	char key[GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 32];
	const struct gw_graph_meta *meta = gw_part_meta(part);
	uint32_t number;
	uint64_t from, to;
	assert_int_equal(gw_meta_etype(meta, etype, &number), GW_OK);
	snprintf(key, sizeof(key), "edge/%s/%s", meta->etypes[number].folder, name);
	const struct gw_array *weights = gw_part_array(part, key);
	snprintf(key, sizeof(key), "edge/%s/%s.alias", meta->etypes[number].folder, name);
	const struct gw_array *table = gw_part_array(part, key);
	if (!weights || !table) {
		fail_msg("part %u has no weight or no table %s", gw_part_number(part), key);
		return;
	}
	assert_int_equal(table->meta->dtype, GW_UINT32);
	assert_int_equal(table->rows, weights->rows);
	const struct gw_adjacency *lists = gw_part_adjacency(part, number);
	for (uint64_t row = 0; row < lists->rows; row++) {
		gw_adjacency_list(lists, row, &from, &to);
		check_list(weights, (const uint32_t *)table->data, from, to - from);
	}
}

void weight_tables_hold(const char *folder, const char *etype, const char *name)
{
	struct gw_part_options options = {.mapped = true};
	struct gw_graph_meta *meta = NULL;
	if (gw_meta_read(folder, &meta) != GW_OK)
		fail_msg("%s", gw_last_error());
	for (uint32_t p = 0; p < meta->num_parts; p++) {
		struct gw_part *part = NULL;
		if (gw_part_open(meta, p, &options, &part) != GW_OK || gw_part_check(part, 1) != GW_OK)
			fail_msg("%s", gw_last_error());
		weight_table_holds(part, etype, name);
		gw_part_close(part);
	}
	gw_meta_destroy(meta);
}
