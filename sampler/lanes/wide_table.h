/* Draws from alias tables, sixteen lanes at once. Internal to the weighted kind (weighted.c), which defines the draws:
 * every width of vectors gives the same columns and words.
 */
#ifndef GW_SAMPLER_LANES_WIDE_TABLE_H
#define GW_SAMPLER_LANES_WIDE_TABLE_H

#include "sampler/lanes/wide.h"

struct gw_table_lanes {
	/* A list's first Philox block of two draws each, its instance's halves, its group, and a degree of at least
	 * 1. */
	uint32_t block[GW_WIDE_LANES], instance_low[GW_WIDE_LANES], instance_high[GW_WIDE_LANES], group[GW_WIDE_LANES],
		degree[GW_WIDE_LANES];
} __attribute__((aligned(64)));

typedef uint32_t gw_table_row[GW_WIDE_LANES];

/* Rows are aligned to 64 bytes. */
struct gw_table_functions {
	/* Writes the columns and the words of 2 * blocks draws, a row for each. */
	void (*draw)(const struct gw_table_lanes *lanes, uint64_t key, uint32_t blocks, gw_table_row *columns,
		     gw_table_row *words);
	/* Sorts picks[0 .. network->n) of each lane. Returns a bit for each lane in which two picks are equal. */
	uint32_t (*sort)(gw_table_row *picks, const struct gw_network *network);
};

/* For the vectors in use (gw_vectors_used); without vectors, portable code. */
const struct gw_table_functions *gw_table_functions(void);

void gw_table_draw_four(const struct gw_table_lanes *lanes, uint64_t key, uint32_t blocks, gw_table_row *columns,
			gw_table_row *words);
void gw_table_draw_avx2(const struct gw_table_lanes *lanes, uint64_t key, uint32_t blocks, gw_table_row *columns,
			gw_table_row *words);
void gw_table_draw_avx512(const struct gw_table_lanes *lanes, uint64_t key, uint32_t blocks, gw_table_row *columns,
			  gw_table_row *words);
uint32_t gw_table_sort_four(gw_table_row *picks, const struct gw_network *network);
uint32_t gw_table_sort_avx2(gw_table_row *picks, const struct gw_network *network);
uint32_t gw_table_sort_avx512(gw_table_row *picks, const struct gw_network *network);

#endif
