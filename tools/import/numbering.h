/* Numbers for ids: text or sparse whole numbers become 0, 1, 2 ... in the order of their first appearance.
 *
 *   hash all values -> sort positions by hash prefix, stably -> in each shard, find the first position of each value
 *                   -> number the first positions in order -> every position takes the number of its first
 *
 * The order is that of the given columns, row by row (in a pair of columns: first, then second). The numbers are thus
 * the same for any number of threads.
 */
#ifndef GW_TOOLS_IMPORT_NUMBERING_H
#define GW_TOOLS_IMPORT_NUMBERING_H

#include "core/errors/status.h"

/* The values of one input; numbers replace them. */
struct gw_numbering_column {
	uint64_t *first, *second; /* [rows]; second may be NULL */
	uint64_t rows;
	const char *text; /* the values are gw_text_ref into this text; NULL: whole numbers */
};

struct gw_numbering {
	uint64_t count;
	uint64_t *values;  /* [count] the value each number stands for */
	uint32_t *columns; /* [count] the column where the value appeared first */
};

/* Replaces all values by their numbers. Uses 24 bytes of memory for each value while it works. GW_NO_MEMORY leaves
 * the columns undefined. */
gw_status gw_numbering_create(struct gw_numbering_column *columns, uint32_t count, unsigned threads,
			      struct gw_numbering *out);
void gw_numbering_free(struct gw_numbering *numbering);

/* The values of a numbering of text, as strings: offsets [count + 1] and bytes. The caller frees both with gw_free.
 * */
gw_status gw_numbering_strings(const struct gw_numbering *numbering, const struct gw_numbering_column *columns,
			       unsigned threads, uint64_t **offsets, char **bytes);

#endif
