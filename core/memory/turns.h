/* A queue of items that wait for their turn. The items contain the links: adding an item, and removing it from
 * anywhere, takes one step and cannot fail. The queue takes no lock. */
#ifndef GW_MEMORY_TURNS_H
#define GW_MEMORY_TURNS_H

#include <stdbool.h>
#include <stddef.h>

/* A part of an item. Zero-initialized: the item does not wait. */
struct gw_turn {
	struct gw_turn *next, *previous;
	bool waits;
};

struct gw_turns {
	struct gw_turn *first, *last;
};

/* Adds the item at the end. An item that waits already keeps its place. */
static inline void gw_turns_add(struct gw_turns *turns, struct gw_turn *turn)
{
	if (turn->waits)
		return;
	*turn = (struct gw_turn){.previous = turns->last, .waits = true};
	if (turns->last)
		turns->last->next = turn;
	else
		turns->first = turn;
	turns->last = turn;
}

/* Removes the item, if it waits. */
static inline void gw_turns_drop(struct gw_turns *turns, struct gw_turn *turn)
{
	if (!turn->waits)
		return;
	if (turn->previous)
		turn->previous->next = turn->next;
	else
		turns->first = turn->next;
	if (turn->next)
		turn->next->previous = turn->previous;
	else
		turns->last = turn->previous;
	*turn = (struct gw_turn){0};
}

#endif
