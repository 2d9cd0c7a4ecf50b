/* Searches in the in-lists of a part whose server leaves them on disk: by rounds of entries, for many questions at
 * once.
 *
 *   positions -> the offsets are bisected, one of each question's in a round -> rows; their entries -> sources
 *   (row, source) -> the row's offsets -> lists that are sorted by source are bisected down to a window -> windows of
 *                    the list, until it has passed the source
 *   rows -> all of their lists, window after window
 *
 * A round asks for a bounded number of entries (entries.h), so memory is bounded too. sampler/lookup.h does the same in
 * memory. Offsets and sources come from a peer: offsets are checked, sources are as the peer sent them.
 */
#ifndef GW_CLIENT_BATCH_LIST_SEARCH_H
#define GW_CLIENT_BATCH_LIST_SEARCH_H

#include "client/batch/entries.h"
#include "client/state/client.h"

/* Reused from search to search. Zero-initialized is empty. The caller sets these fields: */
struct gw_list_search {
	struct gw_fan_in *answers; /* the search is a piece of it */
	uint32_t part, etype;
	/* Called in the engine for each entry that was found: entries of one question in the order of its list. A
	 * failure ends the search. */
	gw_status (*found)(void *owner, uint64_t question, uint64_t row, uint64_t position, uint64_t src);
	void (*done)(void *owner, gw_status status); /* once, in the engine, perhaps before the start returns */
	void *owner;
	/* Private: */
	gw_status (*ask)(struct gw_list_search *search);  /* the next round. GW_END: no round is left */
	gw_status (*take)(struct gw_list_search *search); /* what it read */
	uint64_t n, first;                                /* questions; those before `first` are answered */
	bool sorted, every;
	struct gw_vec questions; /* struct list_question */
	struct gw_vec asked;     /* uint64_t: of the round */
	struct gw_vec wanted;    /* uint64_t or struct gw_column_read, likewise */
	uint64_t asked_count;
	struct gw_entry_rounds rounds;
};

/* positions [n]: of edges in the part. found is called once for each of them. */
void gw_list_search_ends(struct gw_list_search *search, const uint64_t *positions, uint64_t n);
/* rows [n] of the part; srcs [n]: found is called for the edges from there; NULL: for all edges. The arrays are
 * copied. */
void gw_list_search_edges(struct gw_list_search *search, const uint64_t *rows, const uint64_t *srcs, uint64_t n);

/* Makes the search end soon if it is open; `done` is still called. */
void gw_list_search_cancel(struct gw_list_search *search);
void gw_list_search_free(struct gw_list_search *search);

#endif
