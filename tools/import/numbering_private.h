/* The state of a numbering, shared by numbering.c and numbering_table.c. */
#ifndef GW_TOOLS_IMPORT_NUMBERING_PRIVATE_H
#define GW_TOOLS_IMPORT_NUMBERING_PRIVATE_H

#include <stdatomic.h>

#include "core/numbers/digest.h"
#include "core/numbers/rng.h"
#include "tools/import/numbering.h"
#include "tools/import/span.h"

#define GW_NUMBERING_FIRST (1u << 31) /* of a place: the value that it belongs to is the first */

/* A range of one column. */
struct numbering_piece {
	uint32_t column;
	uint64_t begin, end; /* rows */
	uint64_t position;   /* of its first value, over all columns */
};

struct gw_numbering_work {
	struct gw_numbering_column *columns;
	struct numbering_piece *pieces;
	struct gw_numbering *out;
	uint32_t num_columns, count; /* count: of runs */
	bool text, spills; /* spills: to files. The disk is the limit, so a pass less is faster than two in parallel */
	uint64_t num_pieces, positions;
	uint64_t *values, *bytes; /* [pieces][count] of a piece in a run: how many; then the first one's place */
	uint64_t *value_starts, *byte_starts, *number_starts; /* [count + 1]; number: of different values */
	_Atomic uint64_t *firsts; /* [pieces] values that first appear there; then the first number */
	uint16_t *run_of;         /* [positions] */
	uint8_t *copies;          /* the values: 8 bytes, or the text's length, 2 bytes, and the text */
	uint32_t *places;         /* [positions] by run */
	uint64_t *numbers;        /* [different values] of each place, by run */
};

/* The hash of whole numbers is bijective: equal hashes mean equal values. */
static inline uint64_t gw_numbering_hash(const struct gw_numbering_column *column, uint64_t value)
{
	if (!column->text)
		return gw_mix64(value + 0x9e3779b97f4a7c15ull);
	struct gw_text_span span = gw_text_span(column->text, value);
	return gw_digest(span.at, span.bytes);
}

/* Finds the places of all values of a run, and counts the first ones of each piece. GW_NO_MEMORY, GW_LIMIT. */
gw_status gw_numbering_place_run(struct gw_numbering_work *work, uint32_t run);

#endif
