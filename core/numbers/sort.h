/* Sorts numbers, alone or together with rows. */
#ifndef GW_NUMBERS_SORT_H
#define GW_NUMBERS_SORT_H

#include <stdint.h>

#include "core/memory/vec.h"

/* Sorts keys ascending, and rows (or NULL) with them; equal keys keep their order. Radix sort by the 11-bit digits in
 * which keys differ: O(n) per digit. scratch grows as needed: GW_NO_MEMORY leaves the arrays unchanged. */
gw_status gw_sort_rows(uint64_t *keys, uint32_t *rows, uint64_t n, struct gw_vec *scratch);

#endif
