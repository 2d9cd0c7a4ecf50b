/* The queue of completions that poll returns. It has two lists, each in the order of completion: read sets, and notes
 * (connects and requests). The queue alternates between the lists, so that neither starves the other. This file also
 * has the life cycle of a read set, which all backends share. For one thread; takes no lock. */
#ifndef GW_TRANSPORT_COMPLETIONS_H
#define GW_TRANSPORT_COMPLETIONS_H

#include "transport/transport.h"

/* Small questions to one server leave together, with the next poll. Once as many bytes are unsent, they leave at once,
 * so that the server begins while the next questions are encoded. */
#define GW_TOGETHER_BYTES (4u << 10)

/* The completion of a connect or request. It is created when the work is accepted, so that the completion needs no
 * memory. */
struct gw_note {
	struct gw_note *next;
	void *cookie;
	gw_status status;
	uint8_t *memory; /* the block with the reply or the text; freed after delivery, unless the caller kept it */
	const uint8_t *reply;
	uint32_t reply_bytes;
	bool has_text;
};

struct gw_completions {
	struct gw_read_set *sets, **sets_end;
	struct gw_note *notes, **notes_end;
	uint32_t note_count;       /* posted and not yet delivered */
	bool notes_next;           /* whether a note is delivered next */
	struct gw_note *delivered; /* freed by the next take */
	void **kept;               /* error texts and torn rows of delivered read sets; freed by the next take */
	size_t kept_count, kept_capacity;
};

void gw_completions_begin(struct gw_completions *completions);
void gw_completions_end(struct gw_completions *completions); /* frees undelivered completions */

static inline bool gw_completions_empty(const struct gw_completions *completions)
{
	return !completions->sets && !completions->notes;
}

/* Frees what the last call delivered, then delivers up to max completions. */
size_t gw_completions_take(struct gw_completions *completions, struct gw_completion *taken, size_t max);

/* Creates a note; GW_NO_MEMORY. The note is the caller's until posted. */
gw_status gw_note_create(void *cookie, struct gw_note **out);
void gw_note_destroy(struct gw_note *note); /* NULL is allowed */
/* Posts the note with GW_OK, or with a status and the text of gw_last_error(). The queue owns the note from then on. */
void gw_completions_post(struct gw_completions *completions, struct gw_note *note, gw_status status);

/* --- Read sets. --- */

/* Rows that stayed torn. */
struct gw_torn_rows {
	uint32_t count, capacity;
	struct gw_torn_row rows[];
};

/* How backends use private_words of a read set. */
struct gw_read_set_private {
	struct gw_read_set **link; /* the pointer to this set in its list; NULL: not started */
	char *text;                /* of the first failure */
	struct gw_torn_rows *torn; /* NULL: none */
	bool accepted;             /* at least one read was accepted */
};
static_assert(sizeof(struct gw_read_set_private) == sizeof(((struct gw_read_set *)0)->private_words), "fits");

static inline struct gw_read_set_private *gw_read_set_private(struct gw_read_set *set)
{
	return (struct gw_read_set_private *)(void *)set->private_words;
}

/* Puts a new set on the list of open sets; does nothing to a started set. */
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

/* Removes a set without an accepted read from the list: it is the caller's again. */
static inline void gw_read_set_forget(struct gw_read_set *set)
{
	struct gw_read_set_private *private = gw_read_set_private(set);
	*private->link = set->next;
	if (set->next)
		gw_read_set_private(set->next)->link = private->link;
	private->link = NULL;
	set->next = NULL;
}

/* Fails the set with the status and the text of gw_last_error(), unless it has failed before. */
void gw_read_set_fail(struct gw_read_set *set, gw_status status);

/* Lists a row that stayed torn. Fails the set if memory for the list runs out. */
void gw_read_set_torn(struct gw_read_set *set, uint64_t remote, uint64_t local);

/* Completes the set if its last read was accepted and no write to its destination is open. */
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

/* Ends a read call that took `taken` of n reads. If the set has failed, all n count as accepted, and an endpoint that
 * has frames of the set open drops them first. Returns the number of accepted reads; if it is less than n, the caller
 * waits for room. */
size_t gw_read_set_end(struct gw_completions *completions, struct gw_read_set *set, size_t n, size_t taken, bool last);

/* Completes a request of this cookie that is over before it was sent. GW_NO_MEMORY: it does not complete. */
gw_status gw_completions_answer(struct gw_completions *completions, void *cookie, gw_status status);

/* --- Checks that every backend makes before it sends anything. --- */

/* Check a region, or the reads of a call. GW_STALE, GW_RANGE, GW_INVALID. The text names the first read that does not
 * fit the region or the buffer, or is not one row of a versioned region. */
gw_status gw_check_region(const struct gw_endpoint *endpoint, const struct gw_region *region);
gw_status gw_check_gather(const struct gw_region *region, const struct gw_buffer *buffer,
			  const struct gw_gather *gather, size_t n);
gw_status gw_check_spans(const struct gw_region *region, const struct gw_buffer *buffer, const struct gw_span *spans,
			 size_t n);

#endif
