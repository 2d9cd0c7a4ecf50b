/* What gather.c, which fetches and copies, and gather_ahead.c, which decides by a window what is fetched, know of each
 * other. */
#ifndef GW_CLIENT_ROWS_GATHER_PRIVATE_H
#define GW_CLIENT_ROWS_GATHER_PRIVATE_H

#include "client/rows/gather.h"

/* --- gather.c --- */

/* How many of `left` rows the next slice copies or converts. */
uint64_t gw_gather_slice_rows(const struct gw_gather_op *op, uint64_t left);
/* Makes room for the requests, and finds the memory where rows land. */
gw_status gw_gather_prepare(struct gw_gather_op *op);
/* Makes room for the lists of rows here and elsewhere. */
gw_status gw_gather_divide(struct gw_gather_op *op, const struct gw_local_rows *local);
/* A piece of the rows that requests fetch. If the rows are divided, these are entries of divided.elsewhere; if not, of
 * the list of ids itself. */
gw_status gw_gather_post_piece(struct gw_gather_op *op, const struct gw_row_piece *piece);
/* The same for a list, in as many pieces as are best. */
gw_status gw_gather_post_pieces(struct gw_gather_op *op, uint64_t first, uint64_t end);

/* Lists the near rows among those elsewhere, from `before` on. */
void gw_gather_divide_near(struct gw_gather_op *op, uint64_t before);

/* Only the thread that runs the engine writes the counts. */
static inline void gw_gather_count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_relaxed);
}

/* --- gather_ahead.c --- */

/* Divides the ids, and plans. local: the parts that are here; NULL: none. GW_AGAIN: the op goes on later; if it is
 * parked, by itself. */
gw_status gw_gather_divide_all(struct gw_gather_op *op, const struct gw_local_rows *local);
/* Plans if it is the batch's turn, and posts what the plan fetches. GW_AGAIN as above. */
gw_status gw_gather_plan(struct gw_gather_op *op);
/* All rows that the op fetches have landed: keeps them for other batches, and copies the rows of other batches. */
void gw_gather_follow(struct gw_job_slice *slice);
/* A parked op ends soon. */
void gw_gather_unpark(struct gw_gather_op *op);

#endif
