/* Intrusive lists: the items contain the links, so that inserting and removing allocate nothing and cannot fail. Lists
 * are typed; walk them by an ordinary loop: for (item = head; item; item = item->next). The macros take no lock.
 *
 *   GW_LIST   removes in one step; the items have "struct x *next, **previous"
 *   GW_SLIST  one link, whose name is passed; removing walks to the item, so use it for few items or rare removals
 *   GW_QUEUE  a GW_SLIST with an end: the address of the last link (of the head, when the queue is empty)
 *
 * An item to remove must be in the list. The macros evaluate each argument once; a head must be a variable or a
 * member. */
#ifndef GW_MEMORY_LIST_H
#define GW_MEMORY_LIST_H

/* Inserts at the front. */
#define GW_LIST_INSERT(head, item)                                                                                     \
	do {                                                                                                           \
		__typeof__(&(head)) gw_head = &(head);                                                                 \
		__typeof__(*gw_head) gw_item = (item);                                                                 \
		gw_item->next = *gw_head;                                                                              \
		gw_item->previous = gw_head;                                                                           \
		if (gw_item->next)                                                                                     \
			gw_item->next->previous = &gw_item->next;                                                      \
		*gw_head = gw_item;                                                                                    \
	} while (0)

#define GW_LIST_REMOVE(item)                                                                                           \
	do {                                                                                                           \
		__typeof__((item)->next) gw_item = (item);                                                             \
		*gw_item->previous = gw_item->next;                                                                    \
		if (gw_item->next)                                                                                     \
			gw_item->next->previous = gw_item->previous;                                                   \
	} while (0)

#define GW_SLIST_REMOVE(head, item, link)                                                                              \
	do {                                                                                                           \
		__typeof__(&(head)) gw_at = &(head);                                                                   \
		__typeof__(*gw_at) gw_item = (item);                                                                   \
		while (*gw_at != gw_item)                                                                              \
			gw_at = &(*gw_at)->link;                                                                       \
		*gw_at = gw_item->link;                                                                                \
	} while (0)

#define GW_QUEUE_REMOVE(head, end, item, link)                                                                         \
	do {                                                                                                           \
		__typeof__(&(head)) gw_at = &(head);                                                                   \
		__typeof__(*gw_at) gw_item = (item);                                                                   \
		while (*gw_at != gw_item)                                                                              \
			gw_at = &(*gw_at)->link;                                                                       \
		*gw_at = gw_item->link;                                                                                \
		if (!*gw_at)                                                                                           \
			(end) = gw_at;                                                                                 \
	} while (0)

#endif
