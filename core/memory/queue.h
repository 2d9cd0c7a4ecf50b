/* A queue of items that wait for their turn. The items contain the links: adding an item, and removing it from
 * anywhere, takes one step and cannot fail. The queue takes no lock. */
#ifndef GW_MEMORY_QUEUE_H
#define GW_MEMORY_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

/* A part of an item. Zero-initialized: the item does not wait. */
struct gw_queued {
	struct gw_queued *next, *previous;
	bool waits;
};

struct gw_queue {
	struct gw_queued *first, *last;
};

/* Adds the item at the end. An item that waits already keeps its place. */
static inline void gw_queue_add(struct gw_queue *queue, struct gw_queued *item)
{
	if (item->waits)
		return;
	*item = (struct gw_queued){.previous = queue->last, .waits = true};
	if (queue->last)
		queue->last->next = item;
	else
		queue->first = item;
	queue->last = item;
}

/* Removes the item, if it waits. */
static inline void gw_queue_drop(struct gw_queue *queue, struct gw_queued *item)
{
	if (!item->waits)
		return;
	if (item->previous)
		item->previous->next = item->next;
	else
		queue->first = item->next;
	if (item->next)
		item->next->previous = item->previous;
	else
		queue->last = item->previous;
	*item = (struct gw_queued){0};
}

#endif
