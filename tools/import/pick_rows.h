/* Rows of an array in the order of nodes, within the import's memory. */
#ifndef GW_TOOLS_IMPORT_PICK_ROWS_H
#define GW_TOOLS_IMPORT_PICK_ROWS_H

#include "tools/import/import.h"

/* Which rows of an input the nodes take. */
struct gw_import_pick {
	const void *from; /* [input_rows] of row_bytes each */
	uint64_t row_bytes;
	uint64_t input_rows;
	const uint64_t *rows; /* [count] row rows[i] - base belongs to node i; all exist */
	uint64_t base, count;
};

/* *out: [count] of row_bytes each; the builder owns it. GW_NO_MEMORY, GW_IO, GW_NO_SPACE. */
gw_status gw_import_pick_rows(struct gw_import *im, const struct gw_import_pick *pick, const void **out);

#endif
