/* The width of a graph's numbers: offsets, ids and positions have 4 bytes if all of them, and the value that is
 * reserved for "none", fit; else 8. One rule for all that write them. Readers take the width from the array.
 *
 * The program wide_limit of the tests has a lower limit, so that small graphs take the ways of large ones. */
#ifndef GW_GRAPH_WIDTH_H
#define GW_GRAPH_WIDTH_H

#include <stdbool.h>
#include <stdint.h>

#ifndef GW_NARROW_LIMIT
#define GW_NARROW_LIMIT UINT32_MAX
#endif

/* Whether numbers below this one need 8 bytes. */
static inline bool gw_is_wide(uint64_t limit)
{
	return limit >= GW_NARROW_LIMIT;
}

static inline uint32_t gw_number_bytes(uint64_t limit)
{
	return gw_is_wide(limit) ? 8 : 4;
}

#endif
