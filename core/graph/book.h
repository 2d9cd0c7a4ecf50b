/* The partition book: finds a global id's owner and local row by the range table alone. */
#ifndef GW_GRAPH_BOOK_H
#define GW_GRAPH_BOOK_H

#include <stdint.h>

/* An even division of `count` ids over the parts: part p has the ids from this one up to that of p + 1. */
static inline uint64_t gw_dense_start(uint64_t count, uint32_t part, uint32_t parts)
{
	return (uint64_t)((unsigned __int128)count * part / parts);
}

/* The part that has an id of such a division. The id is below count. */
static inline uint32_t gw_dense_owner(uint64_t id, uint64_t count, uint32_t parts)
{
	uint64_t product;
	if (!__builtin_mul_overflow(id + 1, (uint64_t)parts, &product))
		return (uint32_t)((product - 1) / count);
	return (uint32_t)((((unsigned __int128)id + 1) * parts - 1) / count);
}

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
