/* The nodes that exist at a time: counts them, and finds them by number. A node exists from its time on.
 *
 *   times -> sorted, each once -> segments of each part's index (sampler/time_search.h)
 *         -> a gather of keys -> shorter segments ... -> counts: the nodes of each part that exist at each time
 *   time, number -> entry of the index of a part -> a gather of entries -> nodes
 *
 * The nodes of a time are numbered part by part, in a part by their times, equal times by row. Each gather is one round
 * of reads from all parts; where this process can address an index, a gather copies from it (client/rows/gather.h).
 */
#ifndef GW_CLIENT_BATCH_EXISTING_H
#define GW_CLIENT_BATCH_EXISTING_H

#include "client/batch/node_times.h"
#include "client/rows/gather.h"
#include "sampler/time_search.h"

/* Reused from call to call; allocates only to grow. Belongs to the jobs of one engine. */
struct gw_existing {
	/* Called once for each start, in the engine, perhaps before it returns. The error text is set on failure. */
	void (*done)(struct gw_existing *op, gw_status status);
	void *owner;
	/* Results of gw_existing_find: int64_t [n]. */
	struct gw_vec nodes;
	/* Private: */
	struct gw_engine *engine;
	struct gw_job *job;
	const struct gw_node_times *times;
	struct gw_vec of;     /* uint32_t: for each question, the number of its time among the times */
	struct gw_vec keys;   /* int64_t: of the times, ascending */
	struct gw_vec before; /* uint64_t [times][num_parts + 1]: nodes in the parts before this one */
	uint32_t time_count;
	struct gw_vec segments[2], sorting; /* struct gw_time_segment: of this round, of the next */
	uint64_t segment_count;
	uint32_t most;         /* entries of a long segment in this round */
	struct gw_vec entries; /* int64_t: rows of the index */
	uint64_t n;
	struct gw_recv_buffer received;
	struct gw_gather_op gather;
};

gw_status gw_existing_init(struct gw_existing *op, struct gw_engine *engine);
void gw_existing_free(struct gw_existing *op);

/* Counts the nodes that exist at each of n times, which are int64_t or double (real). GW_PROTOCOL: a part's index is
 * not in order. */
void gw_existing_count(struct gw_existing *op, struct gw_job *job, const struct gw_node_times *times, bool real,
		       const void *at, uint64_t n);

/* After a count: how many nodes exist at time i. */
uint64_t gw_existing_total(const struct gw_existing *op, uint64_t i);

/* After a count: makes room for the questions of gw_existing_find, [n]; NULL: no memory. */
int64_t *gw_existing_ask(struct gw_existing *op, uint64_t n);
/* The question for node `number` of those that exist at time i. */
int64_t gw_existing_entry(const struct gw_existing *op, uint64_t i, uint64_t number);
/* Finds the nodes of the questions. GW_PROTOCOL: an index names a row that the part does not have. */
void gw_existing_find(struct gw_existing *op);

/* Makes the count or the find end soon, if one is open; `done` is still called. */
void gw_existing_cancel(struct gw_existing *op);

#endif
