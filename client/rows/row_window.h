/* The window of a loader's look-ahead: rows that one batch has fetched, and the next batches copy. One window for each
 * fetch of the loader's spec whose rows do not change.
 *
 *   batch k, in its turn: the ids that are elsewhere -> plan -> F(k): fetched into the batch -> kept in the entry of k
 *                                                            -> rows of entries: copied, once these have landed
 *                                                            -> kept rows: copied
 *
 * Definition. N(k) is the set of rows of batch k that this process cannot address, and K the set of rows that the
 * loader keeps for the epoch of batch k. With a look-ahead of W batches,
 *
 *   F(k) = N(k) - K - (F(j) for all k - W < j < k)
 *
 * is what batch k fetches. A row that was fetched thus serves its batch and the next W - 1 batches. F(k) does not
 * depend on threads or times: batches plan in the order of their numbers, whichever engines run them. With W = 1 there
 * are no entries, and a row that the batch's list has twice may be fetched twice.
 *
 * An entry has copies of the rows of F(k) in memory of the window. A batch's own memory is the caller's, who may write
 * to it. An entry's memory is used again when batch k + W - 1 has planned and all batches that planned with the entry
 * have copied: at most depth + W - 1 entries are in use.
 *
 * If the rows of an entry did not land, batches that planned with it fetch these rows themselves. A batch that fails
 * after its turn and is sampled again plans at once, with the entries of that moment. Batches that fail otherwise pass
 * their turn. A batch waits only for entries of batches that planned before it, so none wait for each other.
 */
#ifndef GW_CLIENT_ROWS_ROW_WINDOW_H
#define GW_CLIENT_ROWS_ROW_WINDOW_H

#include <stdbool.h>

#include "client/engine/parked.h"
#include "core/graph/replicas.h"
#include "core/memory/queue.h"
#include "core/memory/vec.h"

#define GW_WINDOW_BATCHES_MAX 256u

struct gw_row_window;
struct gw_window_entry;

/* Rows that a loader keeps: row number r of the set of ids is at rows + slots[r] * row bytes. */
struct gw_kept_rows {
	const struct gw_replica_block *ids; /* of all ids of the tensor */
	const uint32_t *slots;
	const uint8_t *rows;
};

/* The part of one batch. Its owner zero-initializes it, and sets window, number, parked.engine and parked.run. It is
 * reused from batch to batch, and belongs to the batch's engine. */
struct gw_window_share {
	struct gw_row_window *window;
	uint64_t number; /* of the batch, as the loader counts */
	/* Called in the engine when the share may go on, after a function below has returned false. */
	struct gw_parked parked;
	/* Private: */
	struct gw_queued queued;
	bool in_plan, uses_kept; /* has planned and not left */
	const struct gw_kept_rows *kept;
	struct gw_window_entry *own;
	struct gw_vec sources; /* struct gw_window_entry *, [W] by their planning; NULL: not used */
	struct gw_vec copies;
	uint64_t copy_count;
};

/* batches: W, from 1 to GW_WINDOW_BATCHES_MAX. first: the number of the first batch. W = 1 serves kept rows alone. */
gw_status gw_row_window_create(uint32_t batches, uint64_t row_bytes, uint64_t first, struct gw_row_window **out);
/* All shares have left. */
void gw_row_window_destroy(struct gw_row_window *window);
void gw_window_share_free(struct gw_window_share *share);
/* Whether W > 1. If so, the rows of F(k) have no duplicates. */
bool gw_row_window_has_entries(const struct gw_row_window *window);

/* An epoch begins, whose batches are 0, 1, ... No share uses the window: the rows of earlier batches are forgotten.
 * Batches from the gate on do not plan until gw_row_window_set_kept. */
void gw_row_window_restart(struct gw_row_window *window, uint64_t gate);

/* Whether batches with this number and all between may be under way: at most GW_WINDOW_BATCHES_MAX from the one whose
 * turn it is. Any thread may call it. */
bool gw_row_window_takes(struct gw_row_window *window, uint64_t number);

/* A batch needs no plan, or failed for good before it had one. Repeating it changes nothing. Any thread may call it. */
void gw_row_window_pass(struct gw_row_window *window, uint64_t number);

/* Whether the batch may plan. False: parked.run is called when it may. */
bool gw_row_window_turn(struct gw_window_share *share);

/* Plans. positions: of the rows elsewhere, in the list of ids; *count of them, which become those of F(k). The turn
 * passes, also on failure, which is GW_NO_MEMORY. */
gw_status gw_row_window_plan(struct gw_window_share *share, const int64_t *ids, uint32_t *positions, uint64_t *count);

/* Keeps rows first to end - 1 of F(k), which have landed at rows + positions[i] * row bytes. The last rows settle the
 * entry: batches that wait for it continue. */
void gw_row_window_keep(struct gw_window_share *share, const uint8_t *rows, const uint32_t *positions, uint64_t first,
			uint64_t end);

/* Whether all entries that the batch copies from have settled. False: parked.run is called when one more has. */
bool gw_row_window_settled(struct gw_window_share *share);

/* What copies have done. */
struct gw_window_copied {
	uint64_t ahead, kept; /* rows: of entries, of kept rows */
	uint64_t missing;     /* rows of entries that did not land: their positions are in `positions` */
};

/* The number of rows that the plan copies. */
static inline uint64_t gw_row_window_copies(const struct gw_window_share *share)
{
	return share->copy_count;
}

/* Copies rows first to end - 1 of these to their places in out. positions: room for end - first. */
void gw_row_window_copy(struct gw_window_share *share, uint64_t first, uint64_t end, uint8_t *out, uint32_t *positions,
			struct gw_window_copied *copied);

/* Ends the wait of a share that a function above has parked. False: it is not parked, or parked.run will be called in
 * any case. */
bool gw_row_window_unpark(struct gw_window_share *share);

/* The batch needs the window no longer. If its entry has not settled, the rows did not land. Repeating it changes
 * nothing. */
void gw_row_window_leave(struct gw_window_share *share);

/* --- Kept rows: set from one thread, which is no engine's. --- */

/* Batches from this number on do not plan until gw_row_window_set_kept. Call it before the first batch is submitted. */
void gw_row_window_hold(struct gw_row_window *window, uint64_t gate);
/* Waits until all batches before the gate have planned and left, and takes the kept rows away, if there are any: their
 * memory may change. False: gw_row_window_give_up was called. */
bool gw_row_window_take_kept(struct gw_row_window *window);
/* Sets the kept rows, which must not change until they are taken away; or NULL. Batches before the new gate may plan.
 */
void gw_row_window_set_kept(struct gw_row_window *window, const struct gw_kept_rows *kept, uint64_t gate);
/* gw_row_window_take_kept returns. Any thread may call it. */
void gw_row_window_give_up(struct gw_row_window *window);

#endif
