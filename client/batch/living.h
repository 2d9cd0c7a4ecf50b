/* Nodes that exist at a time and have not ended: counts them, and finds them by number. Where few of the nodes that
 * began still live, draws that are repeated until one lives would not end.
 *
 *   times -> entries of the index up to the last time, piece by piece -> nodes, ends (time_counts.h)
 *         -> for each time, how many live
 *   time, number -> the same pieces -> nodes
 *
 * Nodes are numbered as in time_counts.h, without those that have ended. Two passes read all nodes that began; what is
 * kept of a piece is of bounded size. After each piece the engine looks at its other work.
 */
#ifndef GW_CLIENT_BATCH_LIVING_H
#define GW_CLIENT_BATCH_LIVING_H

#include "client/batch/time_counts.h"

/* The first two fields are the caller's. */
struct gw_living_question {
	uint32_t time;   /* gw_time_counts_time() */
	uint64_t number; /* set it for the second pass: below the number of nodes that live at the time */
	uint32_t place;  /* of the time among those that questions have */
	int64_t node;    /* the answer; -1 until it is known */
};

/* Reused from call to call; allocates only to grow. */
struct gw_living {
	/* Called once for each start, in the engine, perhaps before it returns. The error text is set on failure. */
	void (*done)(struct gw_living *op, gw_status status);
	void *owner;
	struct gw_vec questions; /* struct gw_living_question [n]: by the caller */
	uint64_t n;
	/* Private: */
	struct gw_time_counts *counts; /* reads the pieces */
	struct gw_vec times, totals;   /* uint32_t, uint64_t [time_count]: those of the questions, and who lives */
	struct gw_vec keys, rows, sorting;
	uint32_t time_count;
	struct gw_vec changes;       /* int64_t [time_count + 1] */
	bool open, cancelled, finds; /* finds: the second pass */
	uint64_t left;               /* questions without an answer */
	uint32_t part;
	uint64_t at; /* entries of the part before this one are done */
	struct gw_job_slice slice;
};

void gw_living_free(struct gw_living *op);

/* Counts the nodes that live at the times of the questions, n > 0. counts: it has counted, its times have ends, and it
 * does nothing else meanwhile. */
void gw_living_count(struct gw_living *op, struct gw_time_counts *counts);
/* After a count: how many nodes live at the time of question i. */
uint64_t gw_living_total(const struct gw_living *op, uint64_t i);
/* After a count: finds the nodes of the questions. GW_PROTOCOL: a server's ends have changed. */
void gw_living_find(struct gw_living *op);
/* Makes what was started end soon, if it is open; `done` is still called. */
void gw_living_cancel(struct gw_living *op);

#endif
