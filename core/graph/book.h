/* The partition book: finds a global id's owner and local row by the range table alone. */
#ifndef GW_GRAPH_BOOK_H
#define GW_GRAPH_BOOK_H

#include <stdint.h>

/* The part that owns id: the largest p with starts[p] <= id. Exact at every boundary; skips empty ranges. starts has
 * parts + 1 entries, and starts[0] = 0. The caller ensures that id < starts[parts]. Branch-free binary search. */
static inline uint32_t gw_book_owner(const uint64_t *starts, uint32_t parts, uint64_t id)
{
	const uint64_t *base = starts;
	uint32_t n = parts;
	while (n > 1) {
		uint32_t half = n / 2;
		base += base[half] <= id ? half : 0;
		n -= half;
	}
	return (uint32_t)(base - starts);
}

#endif
