/* The look-ahead of a loader: a window for each fetch (client/rows/row_window.h), and the rows that it keeps for an
 * epoch (kept_rows.h).
 *
 *   the first batch of an epoch is submitted -> a thread samples the epoch without rows, and counts
 *                                            -> the last batches of the epoch before have all rows
 *                                            -> rows that are new are fetched -> the epoch's batches fetch the others
 *
 * The thread's batches are those of the epoch, from the same seeds and draws, so that the counts are exact. Meanwhile
 * the epoch's own batches are sampled as far as the depth allows, and wait for the rows. With cache_batches, the first
 * so many batches are counted. If these need no row from elsewhere, the epoch keeps none, and the rest is not counted.
 *
 * If the caller orders the batches (lookahead.c), there is no such thread: gw_ahead_begin does its work for one epoch.
 *
 * If a server or memory fails the count, the epoch keeps the rows of the epoch before; if it fails the fetch, it keeps
 * none. Both are logged, and neither fails a batch.
 */
#ifndef GW_CLIENT_BATCH_AHEAD_H
#define GW_CLIENT_BATCH_AHEAD_H

#include "client/batch/batch.h"
#include "client/rows/row_window.h"

struct gw_ahead;

/* Makes a batch of the loader with this number. It is submitted to its engine by the caller. */
typedef gw_status gw_ahead_make(void *loader, uint64_t number, struct gw_batch **out);

struct gw_ahead_options {
	struct gw_client *client;
	const struct gw_fetch *fetches; /* read by gw_ahead_open */
	uint32_t fetch_count;
	uint32_t lookahead; /* batches that a fetched row serves, at least 1 */
	uint64_t cache_bytes;
	/* The batches of a loader go on from epoch to epoch: */
	uint64_t cache_batches; /* 0: all */
	uint64_t steps, first;  /* of an epoch, 0: the caller orders the batches; the number of the first batch */
	gw_ahead_make *make;
	void *loader;
};

/* *out is NULL if there is nothing to look ahead for. */
gw_status gw_ahead_open(const struct gw_ahead_options *options, struct gw_ahead **out);
/* Adds a user, who calls gw_ahead_close; returns the object. NULL is allowed. */
struct gw_ahead *gw_ahead_share(struct gw_ahead *ahead);
/* Whether there is a user besides the one who opened it. */
bool gw_ahead_is_shared(const struct gw_ahead *ahead);
/* The thread ends, and no batch waits for it any more. Call it before the loader's batches are cancelled; NULL is
 * allowed. */
void gw_ahead_stop(struct gw_ahead *ahead);
/* The last user's call: all batches of the loader have ended. NULL is allowed. */
void gw_ahead_close(struct gw_ahead *ahead);

/* [fetch_count], NULL where a fetch has none; NULL without look-ahead. */
struct gw_row_window *const *gw_ahead_windows(const struct gw_ahead *ahead);

/* If the caller orders the batches: begins an epoch, whose batches are 0, 1, ... No batch uses the windows. Counts the
 * first `count` of them, which it makes, and fetches the rows to keep. Blocks. GW_CANCELLED. */
gw_status gw_ahead_begin(struct gw_ahead *ahead, uint64_t count, gw_ahead_make *make, void *loader);
/* Whether a batch with this number may be under way (gw_row_window_takes). NULL is allowed. */
bool gw_ahead_takes(struct gw_ahead *ahead, uint64_t number);

/* A batch is submitted next. */
void gw_ahead_submits(struct gw_ahead *ahead, uint64_t number);
/* A batch was returned, or has failed for good: no other batch waits for its turn. */
void gw_ahead_pass(struct gw_ahead *ahead, uint64_t number);

#endif
