/* Negatives among the nodes that exist at the times of their edges, and have not ended at them.
 *
 *   times of the edges -> how many nodes exist at each (time_counts.h)
 *   negatives of an attempt -> a draw for each below that number -> nodes -> done
 *     [nodes have ends] -> 1, 3, then 16 draws for each -> the first node that lives
 *                       -> [none does] how many live at its time -> a draw below that number -> nodes (living.h) ->
 * done
 *
 * A negative depends on its key, the edge's slot, its number j, the attempt, and the graph with its parts: all nodes
 * that exist are equally likely, and nodes are numbered part by part.
 */
#ifndef GW_CLIENT_BATCH_EXISTING_H
#define GW_CLIENT_BATCH_EXISTING_H

#include "client/batch/living.h"

#define GW_EXISTING_TRIES 20u /* draws for a node that lives; the next draw is for the exact pass */

/* Reused from batch to batch. */
struct gw_existing {
	/* Called once for each start, in the engine, perhaps before it returns. The error text is set on failure. */
	void (*done)(struct gw_existing *op, gw_status status);
	void *owner;
	/* What is drawn, [count] of it: numbers of negatives, slot * each + j; by the negatives' numbers: nodes. */
	const uint32_t *numbers;
	uint64_t count;
	int64_t *negatives;
	uint64_t key;
	uint32_t each, attempt;
	uint64_t slot; /* at whose time no node exists: GW_NOT_FOUND; UINT64_MAX: of another failure */
	/* Private: */
	struct gw_time_counts counts;
	struct gw_living living;
	struct gw_vec waiting; /* uint32_t: the numbers without a node */
	uint64_t waiting_count;
	uint32_t tries, width; /* draws so far, and of this round */
};

gw_status gw_existing_init(struct gw_existing *op, struct gw_engine *engine);
void gw_existing_free(struct gw_existing *op);

/* Counts the nodes that exist at the time of each of n slots. */
void gw_existing_count(struct gw_existing *op, struct gw_job *job, const struct gw_node_times *times, bool real,
		       const void *at, uint64_t n);
/* After a count: draws negatives. */
void gw_existing_draw(struct gw_existing *op);
/* Makes what was started end soon, if it is open; `done` is still called. */
void gw_existing_cancel(struct gw_existing *op);

#endif
