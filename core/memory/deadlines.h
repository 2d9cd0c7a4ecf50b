/* Deadlines of many items, the earliest first: a binary heap. The items contain their place in the heap, so that a
 * deadline is moved or dropped without a search. A change, and taking the earliest item, reads O(log n) places of the
 * heap and no other item. The heap takes no lock. */
#ifndef GW_MEMORY_DEADLINES_H
#define GW_MEMORY_DEADLINES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/errors/status.h"

/* A part of an item. Zero-initialized: it has joined no heap. */
struct gw_deadline {
	uint32_t at; /* 1 + the place in the heap; 0: no deadline is set */
	bool joined;
};

struct gw_deadlines {
	struct gw_deadlines_place {
		uint64_t due_ns;
		struct gw_deadline *of;
	} * places; /* [capacity]; the first `count` are set */
	uint32_t count, capacity, members;
};

/* Reserves a place for an item, so that its deadline can be set at any time. GW_NO_MEMORY. */
gw_status gw_deadlines_join(struct gw_deadlines *deadlines, struct gw_deadline *of);
/* Drops the item's deadline and its place. A second call does nothing. */
void gw_deadlines_leave(struct gw_deadlines *deadlines, struct gw_deadline *of);
/* Frees the heap, which has no members. */
void gw_deadlines_end(struct gw_deadlines *deadlines);

/* Sets a deadline, unless an earlier one is set. The item has joined. */
void gw_deadlines_set(struct gw_deadlines *deadlines, struct gw_deadline *of, uint64_t due_ns);
/* Removes the earliest deadline if it is not after now_ns; NULL: no deadline is due. */
struct gw_deadline *gw_deadlines_take(struct gw_deadlines *deadlines, uint64_t now_ns);

/* The earliest deadline; UINT64_MAX: none is set. */
static inline uint64_t gw_deadlines_first(const struct gw_deadlines *deadlines)
{
	return deadlines->count ? deadlines->places[0].due_ns : UINT64_MAX;
}

#endif
