/* Lowers the place of an id to the smallest position, in any order of threads: for inverse.c and inverse_parts.c. */
#ifndef GW_GRAPH_INVERSE_PRIVATE_H
#define GW_GRAPH_INVERSE_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

static inline void gw_inverse_lower_narrow(uint32_t *place, uint32_t position)
{
	uint32_t seen = __atomic_load_n(place, __ATOMIC_RELAXED);
	while (position < seen &&
	       !__atomic_compare_exchange_n(place, &seen, position, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static inline void gw_inverse_lower_wide(uint64_t *place, uint64_t position)
{
	uint64_t seen = __atomic_load_n(place, __ATOMIC_RELAXED);
	while (position < seen &&
	       !__atomic_compare_exchange_n(place, &seen, position, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* Raises a count to at least this number. */
static inline void gw_inverse_raise(uint64_t *count, uint64_t number)
{
	uint64_t seen = __atomic_load_n(count, __ATOMIC_RELAXED);
	while (number > seen &&
	       !__atomic_compare_exchange_n(count, &seen, number, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

#endif
