/* What a backend owes the caller of poll: groups that have ended, in the order they did, and connects and requests
 * likewise; the two take turns, so that neither waits for the other's end. Also the life of a group, the same for every
 * backend. One thread's; never locked. */
#ifndef GW_TRANSPORT_OUTBOX_H
#define GW_TRANSPORT_OUTBOX_H

#include "transport/transport.h"

/* The end of a connect or request. Made when it is accepted, so that its end cannot fail for want of memory. */
struct gw_note {
	struct gw_note *next;
	void *cookie;
	gw_status status;
	uint8_t *memory; /* freed after delivery: the block that holds the reply or the text */
	const uint8_t *reply;
	uint32_t reply_bytes;
	bool has_text;
};

struct gw_outbox {
	struct gw_group *groups, **groups_end;
	struct gw_note *notes, **notes_end;
	uint32_t note_count;       /* posted, not yet taken */
	bool notes_next;           /* whose turn it is */
	struct gw_note *delivered; /* freed by the next take */
	char **texts;              /* group error texts delivered, likewise */
	size_t text_count, text_capacity;
};

void gw_outbox_begin(struct gw_outbox *outbox);
void gw_outbox_end(struct gw_outbox *outbox); /* frees what was not delivered */

static inline bool gw_outbox_empty(const struct gw_outbox *outbox)
{
	return !outbox->groups && !outbox->notes;
}

/* Frees what the last take handed out, then hands out up to max. */
size_t gw_outbox_take(struct gw_outbox *outbox, struct gw_completion *completions, size_t max);

/* A note with its cookie; GW_NO_MEMORY. It is the caller's until posted. */
gw_status gw_note_create(void *cookie, struct gw_note **out);
void gw_note_destroy(struct gw_note *note); /* NULL is allowed */
/* Posts the note: GW_OK, or a status with the text of gw_last_error(). The note is the outbox's from then on. */
void gw_outbox_post(struct gw_outbox *outbox, struct gw_note *note, gw_status status);

/* --- Groups. --- */

/* The backend's words of a group. */
struct gw_group_private {
	struct gw_group **link; /* what points to this group in its list; NULL: not started */
	char *text;             /* of the first failure */
	bool accepted;          /* of at least one call something was */
	uint64_t spare[1];
};
static_assert(sizeof(struct gw_group_private) == sizeof(((struct gw_group *)0)->private_words), "fits");

static inline struct gw_group_private *gw_group_private(struct gw_group *group)
{
	return (struct gw_group_private *)(void *)group->private_words;
}

/* Puts a fresh group on the list of open ones; a started group stays as it is. */
static inline void gw_group_start(struct gw_group **list, struct gw_group *group)
{
	struct gw_group_private *private = gw_group_private(group);
	if (private->link)
		return;
	group->next = *list;
	if (group->next)
		gw_group_private(group->next)->link = &group->next;
	private->link = list;
	*list = group;
}

/* Takes a group of which nothing was accepted off the list: it is the caller's again. */
static inline void gw_group_forget(struct gw_group *group)
{
	struct gw_group_private *private = gw_group_private(group);
	*private->link = group->next;
	if (group->next)
		gw_group_private(group->next)->link = private->link;
	private->link = NULL;
	group->next = NULL;
}

/* The group fails with the status and the text of gw_last_error(), unless it has failed before. */
void gw_group_fail(struct gw_group *group, gw_status status);

/* Completes the group if its last read was accepted and nothing can write to it any more. */
static inline void gw_group_settle(struct gw_outbox *outbox, struct gw_group *group)
{
	if (group->done || group->frames_open || !group->last_accepted)
		return;
	struct gw_group_private *private = gw_group_private(group);
	*private->link = group->next;
	if (group->next)
		gw_group_private(group->next)->link = private->link;
	group->done = true;
	group->next = NULL;
	*outbox->groups_end = group;
	outbox->groups_end = &group->next;
}

/* --- Checks that every backend makes before it sends anything. --- */

/* GW_STALE, GW_RANGE or GW_INVALID with text, naming the first read that does not fit region or buffer. */
gw_status gw_check_region(const struct gw_endpoint *endpoint, const struct gw_region *region);
gw_status gw_check_gather(const struct gw_region *region, const struct gw_buffer *buffer,
			  const struct gw_gather *gather, size_t n);
gw_status gw_check_spans(const struct gw_region *region, const struct gw_buffer *buffer, const struct gw_span *spans,
			 size_t n);

#endif
