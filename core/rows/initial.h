/* Initial values of rows: a pure function of the seed, the row's original id and the column.
 *
 *   word = Philox block (column / 4) of instance (original id), word column % 4, under a key of the seed
 *
 *   uniform   low + (high - low) * word / 2^32, rounded to the dtype, below high
 *   normal    low + high * z, two columns from two words by Box and Muller's method:
 *             r = sqrt(-2 ln((first + 1) / 2^32)), z = r cos(2 pi second / 2^32) and r sin(2 pi second / 2^32)
 *
 * This file computes logarithm, sine and cosine itself, by additions and multiplications of doubles in a fixed order.
 * So every machine has the same bytes, whatever its mathematical library. |z| < 6.7.
 */
#ifndef GW_ROWS_INITIAL_H
#define GW_ROWS_INITIAL_H

#include <graphwire/rows.h>

#include "core/errors/status.h"

struct gw_row_initial {
	enum gw_initial how;
	double low, high;
	uint64_t seed;

	/* For random values: the original id of a row; NULL: use the row's number. Several threads call it. */
	uint64_t (*original)(const void *context, uint64_t row);
	/* GW_INITIAL_COPY: writes the payload of a row. Several threads call it, once for each row. */
	gw_status (*copy)(const void *context, uint64_t row, void *payload);
	const void *context; /* passed to both */
};

/* GW_INVALID, GW_UNSUPPORTED: rows of this dtype cannot have such initial values. */
gw_status gw_row_initial_check(const struct gw_row_initial *initial, gw_dtype dtype);

/* Writes one row's payload. The initial values must have been checked; only `copy` can fail. */
gw_status gw_row_initial_write(const struct gw_row_initial *initial, gw_dtype dtype, uint64_t columns, uint64_t row,
			       void *payload);

#endif
