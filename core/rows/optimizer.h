/* What a gradient does to a row and to its state: the formulas of <graphwire/rows.h>, on float32.
 *
 * Sums over a row's elements are taken in sixteen lanes (element i in lane i % 16) that are added in pairs: in an order
 * that vectors of any width can keep, so that the result is the same on every machine. Powers of beta are products in
 * double, for the same reason.
 */
#ifndef GW_ROWS_OPTIMIZER_H
#define GW_ROWS_OPTIMIZER_H

#include <graphwire/rows.h>

#include "core/errors/status.h"

/* GW_INVALID names the parameter that makes no sense. */
gw_status gw_optimizer_check(const struct gw_optimizer *optimizer);

/* "adagrad" and so on; "?" for a value out of range. */
const char *gw_optimizer_name(enum gw_optimizer_kind kind);

/* The arrays that a kind's state consists of, in the order in which a row's state holds them. */
#define GW_OPTIMIZER_ARRAYS_MAX 3u
struct gw_optimizer_array {
	const char *name;
	gw_dtype dtype;   /* 4 bytes */
	uint64_t columns; /* of a row */
};
uint32_t gw_optimizer_arrays(enum gw_optimizer_kind kind, uint64_t columns,
			     struct gw_optimizer_array out[GW_OPTIMIZER_ARRAYS_MAX]);

/* Floats of state that a row has; 0: none. */
uint64_t gw_optimizer_state_floats(enum gw_optimizer_kind kind, uint64_t columns);

/* mean(g^2) of one gradient. */
float gw_optimizer_mean_square(const float *gradient, uint64_t columns);

/* One gradient: after[] from before[] (they may be the same) and the state. squares: GW_ADAGRAD_ROWS: what is added to
 * s. */
void gw_optimizer_apply(const struct gw_optimizer *optimizer, const float *gradient, float squares, const float *before,
			float *after, float *state, uint64_t columns);

#endif
