/* Looks up keys in a part's index of original ids (core/graph/id_index.h) that its server leaves on disk: by rounds of
 * entries, for all keys at once.
 *
 *   dense   ids -> their entries of orig_id.inverse
 *   others  keys -> records of orig_id.buckets -> a window of each bucket, and the next one where it does not suffice
 *
 * A round reads a bounded number of entries for each key. Buckets come from a peer and are checked; nodes are as the
 * peer sent them.
 */
#ifndef GW_CLIENT_QUERIES_ID_SEARCH_H
#define GW_CLIENT_QUERIES_ID_SEARCH_H

#include "client/batch/entries.h"
#include "client/state/client.h"

/* Zero-initialized is empty. The caller sets these fields: */
struct gw_id_search {
	struct gw_fan_in *answers; /* the search is a piece of it */
	uint32_t part, ntype;
	const uint64_t *keys; /* [n][words of the form] */
	uint64_t n;
	uint64_t *nodes;                             /* [n]: as gw_id_index_look_up gives them */
	void (*done)(void *owner, gw_status status); /* once, in the engine, perhaps before the start returns */
	void *owner;
	/* Private: */
	struct gw_entry_rounds rounds;
	struct gw_vec buckets; /* struct id_bucket [n] */
	struct gw_vec wanted;  /* uint64_t, or struct gw_column_read, of the round */
	struct gw_vec asked;   /* uint64_t: the keys of the round, if these are not all */
	uint64_t asked_count;
	bool located; /* the buckets are known */
};

/* Whether the index of a part stays on disk. */
bool gw_id_index_is_on_disk(const struct gw_client *client, uint32_t part, uint32_t ntype);

void gw_id_search_start(struct gw_id_search *search);
void gw_id_search_cancel(struct gw_id_search *search); /* makes it end soon; `done` is still called */
void gw_id_search_free(struct gw_id_search *search);   /* in the engine */

#endif
