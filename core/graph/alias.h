/* Alias tables: draw an edge from a list in proportion to its weight, in O(1), with integers only.
 *
 * A list of n edges has n entries {threshold, alias}, both uint32. Draw a column c in [0, n) and a 32-bit word u. The
 * edge is c if u < threshold[c], else alias[c], a position within the list. Walker, "An efficient method for generating
 * discrete random variables with general distributions", ACM TOMS 3(3), 1977; construction by Vose, "A linear algorithm
 * for generating random numbers with a given distribution", IEEE TSE 17(9), 1991, on exact integers.
 */
#ifndef GW_GRAPH_ALIAS_H
#define GW_GRAPH_ALIAS_H

#include <stdbool.h>

#include "core/errors/status.h"
#include "core/numbers/dtype.h"

/* The alias of every entry of a list whose weights are all zero: no edge of the list can be drawn. */
#define GW_ALIAS_NONE UINT32_MAX

/* Builds the tables of all lists. indptr: [rows + 1], from 0. weights: [indptr[rows]] of a number type (not bool or
 * int8_row), in CSC order. table: [indptr[rows], 2].
 *
 * Weights become integers (weights.h). The probability of each edge is its share of the weight to within 2^-32, and an
 * edge of weight 0 is never drawn. The bytes depend only on the weights. While it runs, the call needs 24 bytes *
 * (length of the longest list) for each thread. GW_RANGE: a weight is negative, NaN or infinite (names the edge);
 * GW_LIMIT: a list of 2^32 - 1 edges or more; GW_UNSUPPORTED; GW_NO_MEMORY. */
gw_status gw_alias_build(const uint64_t *indptr, uint64_t rows, gw_dtype dtype, const void *weights, unsigned threads,
			 uint32_t *table);

#endif
