/* The nodes that exist at a time: counts them, and finds them by number. A node exists from its time on.
 *
 *   times -> sorted, each once -> segments of each part's index (sampler/time_search.h)
 *         -> a gather of keys -> shorter segments ... -> counts: the nodes of each part that exist at each time
 *   time, number -> entry of the index of a part -> a gather of entries -> nodes [-> a gather of their ends]
 *
 * The nodes of a time are numbered part by part, in a part by their times, equal times by row. Each gather is one round
 * of reads from all parts; where this process can address an index, a gather copies from it (client/rows/gather.h).
 */
#ifndef GW_CLIENT_BATCH_TIME_COUNTS_H
#define GW_CLIENT_BATCH_TIME_COUNTS_H

#include "client/batch/node_times.h"
#include "client/rows/gather.h"
#include "core/numbers/time_key.h"
#include "sampler/time_search.h"

/* Reused from call to call; allocates only to grow. Belongs to the jobs of one engine. */
struct gw_time_counts {
	/* Called once for each start, in the engine, perhaps before it returns. The error text is set on failure. */
	void (*done)(struct gw_time_counts *op, gw_status status);
	void *owner;
	/* Results of gw_time_counts_find: int64_t [n]; if nodes have ends, the keys of these too. */
	struct gw_vec nodes, ends;
	/* Private: */
	struct gw_engine *engine;
	struct gw_job *job;
	const struct gw_node_times *times;
	struct gw_vec of;     /* uint32_t: for each question, the number of its time among the times */
	struct gw_vec keys;   /* int64_t [times]: ascending; the times of the column that are not later */
	struct gw_vec limits; /* struct gw_time_range [times]: the ends that are not later; only if nodes have ends */
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

gw_status gw_time_counts_init(struct gw_time_counts *op, struct gw_engine *engine);
void gw_time_counts_free(struct gw_time_counts *op);

/* Counts the nodes that exist at each of n times, which are int64_t or double (real). GW_PROTOCOL: a part's index is
 * not in order. */
void gw_time_counts_start(struct gw_time_counts *op, struct gw_job *job, const struct gw_node_times *times, bool real,
			  const void *at, uint64_t n);

/* What follows needs the counts. */

#define GW_TIME_NEVER UINT32_MAX
/* The number of question i's time: later times have larger numbers. GW_TIME_NEVER: no node can exist at it. */
static inline uint32_t gw_time_counts_time(const struct gw_time_counts *op, uint64_t i)
{
	return ((const uint32_t *)op->of.data)[i];
}

/* How many nodes exist at a time: of part p, those from [p] on up to [p + 1]. */
const uint64_t *gw_time_counts_before(const struct gw_time_counts *op, uint32_t time);

/* Whether a node with this end lives at a time, from which on it exists. */
static inline bool gw_time_counts_lives(const struct gw_time_counts *op, uint32_t time, int64_t end)
{
	const struct gw_time_range *limit = (const struct gw_time_range *)op->limits.data + time;
	return limit->from > limit->until || end > limit->until;
}

/* Makes room for the questions of gw_time_counts_find, [n], n > 0; NULL: no memory. A question is the node of an entry
 * of a part's index: row starts[part] + entry. */
int64_t *gw_time_counts_ask(struct gw_time_counts *op, uint64_t n);
/* The question for node `number` of those that exist at a time. */
int64_t gw_time_counts_entry(const struct gw_time_counts *op, uint32_t time, uint64_t number);
/* Finds the nodes of the questions, and their ends. GW_PROTOCOL: an index names a row that the part does not have. */
void gw_time_counts_find(struct gw_time_counts *op);

/* Makes what was started end soon, if it is open; `done` is still called. */
void gw_time_counts_cancel(struct gw_time_counts *op);

#endif
