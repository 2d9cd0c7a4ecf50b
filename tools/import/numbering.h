/* Numbers for ids: text or sparse whole numbers become 0, 1, 2 ... in the order of their first appearance.
 *
 * The order is that of the given columns, row by row (in a pair of columns: first, then second). So the numbers are the
 * same for any number of threads and for any memory.
 */
#ifndef GW_TOOLS_IMPORT_NUMBERING_H
#define GW_TOOLS_IMPORT_NUMBERING_H

#include <stdbool.h>

#include "tools/builder/spill.h"

/* The values of one input; numbers replace them. All columns are of one kind. */
struct gw_numbering_column {
	uint64_t *first, *second; /* [rows]; second may be NULL */
	uint64_t rows;
	const char *text; /* the values are gw_text_ref into this text; NULL: whole numbers */
};

/* What a numbering may use. */
struct gw_numbering_memory {
	struct gw_spill *spill; /* has the results, and files; a zeroed one has no files */
	uint64_t bytes;         /* of memory, besides 8 bytes for each number; 0: no limit */
};

/* The arrays are blocks of the spill. */
struct gw_numbering {
	uint64_t count;
	uint32_t runs;     /* that the limit made necessary; 0: none */
	uint64_t *values;  /* [count] the value each number stands for */
	uint32_t *columns; /* [count] the column where the value appeared first */
};

/* Replaces all values by their numbers. While it works, it uses 14 bytes for each value, or 8 and the text, which are
 * blocks of the spill; a table for each thread; and 8 bytes for each number. count and threads: at least 1. Errors
 * leave the columns undefined: GW_NO_MEMORY, GW_IO, GW_NO_SPACE with the spill's folder, GW_LIMIT. */
gw_status gw_numbering_create(struct gw_numbering_column *columns, uint32_t count, unsigned threads,
			      const struct gw_numbering_memory *memory, struct gw_numbering *out);
void gw_numbering_free(struct gw_numbering *numbering);

/* The values of a numbering of text, as strings: offsets [count + 1] and bytes, which are blocks of the spill. */
gw_status gw_numbering_strings(const struct gw_numbering *numbering, const struct gw_numbering_column *columns,
			       unsigned threads, struct gw_spill *spill, uint64_t **offsets, char **bytes);

#endif
