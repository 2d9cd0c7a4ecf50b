/* Sorting numbers that carry a row along. */
#ifndef GW_NUMBERS_SORT_H
#define GW_NUMBERS_SORT_H

#include <stdint.h>

#include "core/memory/vec.h"

/* Sorts keys ascending, rows with them; equal keys keep their order. Radix sort by the 11-bit digits in which keys
 * differ: O(n) a digit. scratch is grown as needed: GW_NO_MEMORY leaves the arrays as they were. */
gw_status gw_sort_rows(uint64_t *keys, uint32_t *rows, uint64_t n, struct gw_vec *scratch);

#endif
