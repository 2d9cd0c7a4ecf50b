/* Alias tables: an edge drawn from a list in proportion to its weight, in O(1) and in integers only.
 *
 * A list of n edges has n entries {threshold, alias}, both uint32. Draw a column c in [0, n) and a 32-bit word u:
 * the edge is c if u < threshold[c], else alias[c], a position within the list. Walker, "An efficient method for
 * generating discrete random variables with general distributions", ACM TOMS 3(3), 1977; construction by Vose, "A
 * linear algorithm for generating random numbers with a given distribution", IEEE TSE 17(9), 1991, on exact integers.
 */
#ifndef GW_GRAPH_ALIAS_H
#define GW_GRAPH_ALIAS_H

#include <stdbool.h>

#include "core/errors/status.h"
#include "core/numbers/dtype.h"

/* The alias of every entry of a list whose weights are all zero: none of its edges can be drawn. */
#define GW_ALIAS_NONE UINT32_MAX

/* Builds the tables of all lists. indptr: [rows + 1], from 0; weights: [indptr[rows]] of a number type (not bool,
 * int8_row), in CSC order; table: [indptr[rows], 2].
 *
 * Weights become integers exactly where a list's weights span less than 2^62, else those below 2^-62 of its largest
 * are cut. The chance of every edge is its weight's share to within 2^-32, an edge of weight 0 is never drawn, and the
 * bytes depend on nothing but the weights. GW_RANGE (a negative weight, NaN or infinity; names the edge), GW_LIMIT (a
 * list of 2^32 - 1 edges or more), GW_UNSUPPORTED, GW_NO_MEMORY. Memory on the way: 24 bytes * the longest list and
 * thread. */
gw_status gw_alias_build(const uint64_t *indptr, uint64_t rows, gw_dtype dtype, const void *weights, unsigned threads,
			 uint32_t *table);

#endif
