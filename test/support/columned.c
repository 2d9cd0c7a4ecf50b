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
};

static void fill_columns(struct columned *columned)
{
	const struct slow_graph *graph = &columned->graph;
	float *weights = columned->columns[GW_COLUMN_WEIGHT];
	uint8_t *masks = columned->columns[GW_COLUMN_MASK];
	int64_t *times = columned->columns[GW_COLUMN_TIME];
	for (uint64_t row = 0; row < COLUMNED_NODES; row++) {
		for (uint64_t e = graph->indptr[0][row]; e < graph->indptr[0][row + 1]; e++) {
			uint64_t random = gw_mix64(e + 17);
			weights[e] = row % 7 == 3 || random % 4 == 0 ? 0 : (float)(random % 1000) / 8 + 1;
			masks[e] = random / 4 % 2;
			times[e] = (int64_t)(random / 8 % COLUMNED_TIMES);
		}
	}
	assert_int_equal(gw_alias_build(graph->indptr[0], COLUMNED_NODES, GW_FLOAT32, weights, 1,
					columned->columns[GW_COLUMN_ALIAS]),
			 GW_OK);
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
		columned->columns[c] = malloc((graph->etypes[0].count + 1) * width);
		assert_non_null(columned->columns[c]);
		for (uint32_t p = 0; p < parts; p++)
			columned->parts[p].at[c] =
				(const uint8_t *)columned->columns[c] + graph->adjacencies[p][0].edge_start * width;
	}
	fill_columns(columned);
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
	static int64_t until[COLUMNED_NODES];
	for (int64_t g = 0; g < COLUMNED_NODES; g++)
		until[g] = g * 7 % COLUMNED_TIMES;
	return (struct gw_groups){.count = COLUMNED_NODES, .until = until};
}
