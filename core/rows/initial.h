/* What rows are at first: a pure function of the seed, the row's original id and the column.
 *
 *   word = Philox block (column / 4) of instance (original id), word column % 4, under a key of the seed
 *
 *   uniform   low + (high - low) * word / 2^32, rounded to the dtype, below high
 *   normal    low + high * z, two columns from two words by Box and Muller's method:
 *             r = sqrt(-2 ln((first + 1) / 2^32)), z = r cos(2 pi second / 2^32) and r sin(2 pi second / 2^32)
 *
 * Logarithm, sine and cosine are computed here, by additions and multiplications of doubles in a stated order: every
 * machine has the same bytes, whatever its mathematical library. |z| < 6.7.
 */
#ifndef GW_ROWS_INITIAL_H
#define GW_ROWS_INITIAL_H

#include <graphwire/rows.h>

#include "core/errors/status.h"

struct gw_row_initial {
	enum gw_initial how;
	double low, high;
	uint64_t seed;

	/* Random values: the original id of a row; NULL: its number. Called by several threads. */
	uint64_t (*original)(const void *context, uint64_t row);
	/* GW_INITIAL_COPY: writes the payload of a row. Called by several threads, each row once. */
	gw_status (*copy)(const void *context, uint64_t row, void *payload);
	const void *context; /* of both */
};

/* GW_INVALID, GW_UNSUPPORTED: what no row of this dtype can begin with. */
gw_status gw_row_initial_check(const struct gw_row_initial *initial, gw_dtype dtype);

/* One row's payload. The initial values were checked; only `copy` can fail. */
gw_status gw_row_initial_write(const struct gw_row_initial *initial, gw_dtype dtype, uint64_t columns, uint64_t row,
			       void *payload);

#endif
