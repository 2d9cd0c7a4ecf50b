/* The columns of columned.h: a new column is a row of the table, and its values. */
#include "test/support/columned.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/graph/alias.h"
#include "core/numbers/rng.h"

static const struct gw_column_form column_forms[GW_COLUMN_COUNT] = {
	[GW_COLUMN_ALIAS] = {8, GW_UINT32},
	[GW_COLUMN_WEIGHT] = {sizeof(float), GW_FLOAT32},
	[GW_COLUMN_MASK] = {1, GW_BOOL},
	[GW_COLUMN_TIME] = {sizeof(int64_t), GW_INT64},
	[GW_COLUMN_FENCE] = {sizeof(int64_t), GW_INT64},
	[GW_COLUMN_END] = {sizeof(int32_t), GW_INT32},
};

static int time_order(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static void fill_columns(struct columned *columned)
{
	const struct slow_graph *graph = &columned->graph;
	float *weights = columned->columns[GW_COLUMN_WEIGHT];
	uint8_t *masks = columned->columns[GW_COLUMN_MASK];
	int64_t *times = columned->columns[GW_COLUMN_TIME];
	int32_t *ends = columned->columns[GW_COLUMN_END];
	for (uint64_t row = 0; row < COLUMNED_NODES; row++) {
		for (uint64_t e = graph->indptr[0][row]; e < graph->indptr[0][row + 1]; e++) {
			uint64_t random = gw_mix64(e + 17);
			weights[e] = row % 7 == 3 || random % 4 == 0 ? 0 : (float)(random % 1000) / 8 + 1;
			masks[e] = random / 4 % 2;
			times[e] = (int64_t)(random / 8 % COLUMNED_TIMES);
			ends[e] = (int32_t)(random / 8 / COLUMNED_TIMES % (2 * COLUMNED_TIMES));
		}
		qsort(times + graph->indptr[0][row], graph->indptr[0][row + 1] - graph->indptr[0][row], sizeof(*times),
		      time_order);
	}
	assert_int_equal(gw_alias_build(graph->indptr[0], COLUMNED_NODES, GW_FLOAT32, weights, 1,
					columned->columns[GW_COLUMN_ALIAS]),
			 GW_OK);
}

/* A fence has the times of one part. */
static void fill_fences(struct columned *columned, uint32_t parts)
{
	const int64_t *times = columned->columns[GW_COLUMN_TIME];
	int64_t *fence = columned->columns[GW_COLUMN_FENCE];
	for (uint32_t p = 0; p < parts; p++) {
		const struct gw_adjacency *adjacency = &columned->graph.adjacencies[p][0];
		columned->parts[p].at[GW_COLUMN_FENCE] = fence;
		for (uint64_t e = 0; e < adjacency->edges; e += 64)
			*fence++ = times[adjacency->edge_start + e];
	}
}

void columned_begin(struct columned *columned, uint32_t parts, uint8_t offset_bytes, uint8_t index_bytes)
{
	uint64_t nodes = COLUMNED_NODES;
	memset(columned, 0, sizeof(*columned));
	struct slow_graph *graph = &columned->graph;
	slow_graph_init(graph, 1, &nodes);
	slow_graph_random(graph, 0, 0, COLUMNED_HUB, 71);
	slow_graph_cut(graph, parts, offset_bytes, index_bytes, parts);
	columned->of_types[0] = columned->parts;
	for (uint32_t c = 0; c < GW_COLUMN_COUNT; c++) {
		uint32_t width = column_forms[c].entry_bytes;
		if (!width)
			continue;
		columned->columns[c] = malloc((graph->etypes[0].count + parts) * width);
		assert_non_null(columned->columns[c]);
		for (uint32_t p = 0; p < parts; p++)
			columned->parts[p].at[c] =
				(const uint8_t *)columned->columns[c] + graph->adjacencies[p][0].edge_start * width;
	}
	fill_columns(columned);
	fill_fences(columned, parts);
}

void columned_end(struct columned *columned)
{
	slow_graph_free(&columned->graph);
	for (uint32_t c = 0; c < GW_COLUMN_COUNT; c++)
		free(columned->columns[c]);
}

void columned_forms(uint32_t bits, struct gw_column_form forms[GW_COLUMN_COUNT])
{
	for (uint32_t c = 0; c < GW_COLUMN_COUNT; c++) {
		if (bits & GW_COLUMN_BIT(c))
			forms[c] = column_forms[c];
	}
}

struct gw_groups columned_groups(void)
{
	static int64_t from[COLUMNED_NODES], until[COLUMNED_NODES];
	for (int64_t g = 0; g < COLUMNED_NODES; g++) {
		until[g] = (g * 7 + COLUMNED_TIMES / 2) % COLUMNED_TIMES;
		from[g] = g % 3 ? INT64_MIN : until[g] - g % 400;
	}
	return (struct gw_groups){.count = COLUMNED_NODES, .from = from, .until = until, .strict_ends = true};
}
