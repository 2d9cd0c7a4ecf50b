/* A graph of one node type and one edge type, with every column that a kind of sampling may draw with. */
#ifndef GW_TEST_COLUMNED_H
#define GW_TEST_COLUMNED_H

#include "test/support/slow_sample.h"

#define COLUMNED_NODES 900
#define COLUMNED_HUB   700 /* degree of one list in fifty */
#define COLUMNED_TIMES 1000

struct columned {
	struct slow_graph graph;
	void *columns[GW_COLUMN_COUNT]; /* of the whole graph; NULL: no such column */
	struct gw_columns parts[SLOW_PARTS_MAX];
	const struct gw_columns *of_types[1];
};

/* Parallel edges, empty lists and hubs. Zeros, and weights that differ much, with alias tables; the lists of every
 * seventh node have no weight at all. Masks that are set for half of the edges. Times from 0 to COLUMNED_TIMES - 1,
 * which ascend in each list, with a fence for each part; ends from 0 to twice that. */
void columned_begin(struct columned *columned, uint32_t parts, uint8_t offset_bytes, uint8_t index_bytes);
void columned_end(struct columned *columned);

/* The forms of the columns in `bits`. */
void columned_forms(uint32_t bits, struct gw_column_form forms[GW_COLUMN_COUNT]);

/* Groups 0 to COLUMNED_NODES - 1, each with the last time that it may draw, and every third with the first one. */
struct gw_groups columned_groups(void);

#endif
