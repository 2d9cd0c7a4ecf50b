/* What a backend owes the caller of poll: read sets that have ended, in the order they did, and connects and requests
 * likewise; the two take turns, so that neither waits for the other's end. Also the life of a read set, the same for
 * every backend. One thread's; never locked. */
#ifndef GW_TRANSPORT_COMPLETIONS_H
#define GW_TRANSPORT_COMPLETIONS_H

#include "transport/transport.h"

/* The end of a connect or request. Made when it is accepted, so that its end cannot fail for want of memory. */
struct gw_note {
	struct gw_note *next;
	void *cookie;
	gw_status status;
	uint8_t *memory; /* the block that holds the reply or the text: freed after delivery, unless it was taken */
	const uint8_t *reply;
	uint32_t reply_bytes;
	bool has_text;
};

struct gw_completions {
	struct gw_read_set *sets, **sets_end;
	struct gw_note *notes, **notes_end;
	uint32_t note_count;       /* posted, not yet taken */
	bool notes_next;           /* whose turn it is */
	struct gw_note *delivered; /* freed by the next take */
	void **kept;               /* read sets' error texts and torn rows delivered, likewise */
	size_t kept_count, kept_capacity;
};

void gw_completions_begin(struct gw_completions *completions);
void gw_completions_end(struct gw_completions *completions); /* frees what was not delivered */

static inline bool gw_completions_empty(const struct gw_completions *completions)
{
	return !completions->sets && !completions->notes;
}

/* Frees what the last take handed out, then hands out up to max. */
size_t gw_completions_take(struct gw_completions *completions, struct gw_completion *taken, size_t max);

/* A note with its cookie; GW_NO_MEMORY. It is the caller's until posted. */
gw_status gw_note_create(void *cookie, struct gw_note **out);
void gw_note_destroy(struct gw_note *note); /* NULL is allowed */
/* Posts the note: GW_OK, or a status with the text of gw_last_error(). The note is the completions's from then on. */
void gw_completions_post(struct gw_completions *completions, struct gw_note *note, gw_status status);

/* --- Read sets. --- */

/* Rows that stayed torn. */
struct gw_torn_rows {
	uint32_t count, capacity;
	struct gw_torn_row rows[];
};

/* The backend's words of a read set. */
struct gw_read_set_private {
	struct gw_read_set **link; /* what points to this set in its list; NULL: not started */
	char *text;                /* of the first failure */
	struct gw_torn_rows *torn; /* NULL: none */
	bool accepted;             /* of at least one call something was */
};
static_assert(sizeof(struct gw_read_set_private) == sizeof(((struct gw_read_set *)0)->private_words), "fits");

static inline struct gw_read_set_private *gw_read_set_private(struct gw_read_set *set)
{
	return (struct gw_read_set_private *)(void *)set->private_words;
}

/* Puts a fresh set on the list of open ones; a started set stays as it is. */
static inline void gw_read_set_start(struct gw_read_set **list, struct gw_read_set *set)
{
	struct gw_read_set_private *private = gw_read_set_private(set);
	if (private->link)
		return;
	set->next = *list;
	if (set->next)
		gw_read_set_private(set->next)->link = &set->next;
	private->link = list;
	*list = set;
}

/* Takes a set of which nothing was accepted off the list: it is the caller's again. */
static inline void gw_read_set_forget(struct gw_read_set *set)
{
	struct gw_read_set_private *private = gw_read_set_private(set);
	*private->link = set->next;
	if (set->next)
		gw_read_set_private(set->next)->link = private->link;
	private->link = NULL;
	set->next = NULL;
}

/* The set fails with the status and the text of gw_last_error(), unless it has failed before. */
void gw_read_set_fail(struct gw_read_set *set, gw_status status);

/* Lists a row that stayed torn; the set fails where there is no memory for that. */
void gw_read_set_torn(struct gw_read_set *set, uint64_t remote, uint64_t local);

/* Completes the set if its last read was accepted and nothing can write to it any more. */
static inline void gw_read_set_settle(struct gw_completions *completions, struct gw_read_set *set)
{
	if (set->done || set->frames_open || !set->last_accepted)
		return;
	struct gw_read_set_private *private = gw_read_set_private(set);
	*private->link = set->next;
	if (set->next)
		gw_read_set_private(set->next)->link = private->link;
	set->done = true;
	set->next = NULL;
	*completions->sets_end = set;
	completions->sets_end = &set->next;
}

/* --- Checks that every backend makes before it sends anything. --- */

/* GW_STALE, GW_RANGE or GW_INVALID with text, naming the first read that does not fit region or buffer; or that is no
 * whole row of a versioned one. */
gw_status gw_check_region(const struct gw_endpoint *endpoint, const struct gw_region *region);
/* The same for a region that came after the hello: GW_NOT_FOUND. */
gw_status gw_check_dynamic(const struct gw_endpoint *endpoint, const struct gw_region *region,
			   struct gw_dynamic_region_entry **entry);
gw_status gw_check_gather(const struct gw_region *region, const struct gw_buffer *buffer,
			  const struct gw_gather *gather, size_t n);
gw_status gw_check_spans(const struct gw_region *region, const struct gw_buffer *buffer, const struct gw_span *spans,
			 size_t n);

#endif
