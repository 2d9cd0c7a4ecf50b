/* The weights of a list as integers, for draws in proportion to them.
 *
 * All weights of a list get one common exponent, a power of two, such that the largest is below 2^63 and at least 2^62.
 * A weight whose bits do not all fit is rounded down, but a positive weight becomes at least 1. So the conversion is
 * exact if no weight has a bit below 2^-62 of the largest weight. Only integer operations decide, so every machine
 * computes the same integers.
 */
#ifndef GW_GRAPH_WEIGHTS_H
#define GW_GRAPH_WEIGHTS_H

#include "core/errors/status.h"
#include "core/numbers/dtype.h"

/* GW_UNSUPPORTED unless the dtype is a number type; bool counts as one, with 0 and 1, int8_row does not. */
gw_status gw_weights_check(gw_dtype dtype);

/* Writes the integers of the n weights of one list to out. weights: at any alignment, of a dtype that passes
 * gw_weights_check(). first: the number of the list's first edge. GW_RANGE: a weight is negative (-0 is not), NaN or
 * infinite; names the edge. */
gw_status gw_weights_scale(gw_dtype dtype, const void *weights, uint64_t n, uint64_t first, uint64_t *out);

/* Writes the positions of the positive weights to positions, ascending, and their number to *count. Arguments and
 * errors as gw_weights_scale. */
gw_status gw_weights_positive(gw_dtype dtype, const void *weights, uint64_t n, uint64_t first, uint64_t *positions,
			      uint64_t *count);

#endif
