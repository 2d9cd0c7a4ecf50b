/* The groups of a disjoint batch: each seed is a group of its own, which sees a range of times.
 *
 *   seeds [, their times] -> group 0, 1, 2, ... -> ranges of keys, for columns of whole and of real times
 *                         -> the groups of the blocks (sampler/blocks/blocks.h) and of draws (sampler/draw.h)
 */
#ifndef GW_CLIENT_BATCH_SEED_GROUPS_H
#define GW_CLIENT_BATCH_SEED_GROUPS_H

#include <graphwire/graphwire.h>

#include "core/memory/vec.h"
#include "sampler/blocks/blocks.h"

/* How the times of seeds are given, and what is drawn with them. */
struct gw_seed_times {
	bool real;   /* they are double; else int64_t */
	bool strict; /* a seed sees the edges before its time */
	/* Bits gw_time_is_real() of the columns that draws use: of times, and of ends. 0: no draw has times. */
	uint32_t uses, ends;
	bool negatives; /* negatives are drawn from the nodes that exist at the times */
};

/* Reused from batch to batch. */
struct gw_seed_groups {
	struct gw_vec numbers; /* uint32_t [count] */
	struct gw_vec ranges;  /* int64_t [2][2][count]: of whole and of real columns: from, until */
	uint64_t count;
	struct gw_groups tables[2]; /* by gw_time_is_real() of the column; without times both are empty */
};

/* Sets the uses of times by the rules of `count` edge types, from type `first` on. */
gw_status gw_seed_times_of(struct gw_client *client, const struct gw_edge_rule *rules, uint32_t first, uint32_t count,
			   struct gw_seed_times *out);

/* Checks lists of seeds: all of them have times if a draw or negatives need them, and none has any else. most: seeds of
 * a batch. what: the name of the lists' ids, for error texts. GW_INVALID: also if a time is not a number; GW_LIMIT:
 * more groups than a request can carry. */
gw_status gw_seed_times_check(const struct gw_seed_times *times, const struct gw_seeds *lists, uint32_t list_count,
			      uint64_t most);

/* Sets the groups of all seeds, list after list. */
gw_status gw_seed_groups_set(struct gw_seed_groups *groups, const struct gw_seed_times *times,
			     const struct gw_seeds *lists, uint32_t list_count);
void gw_seed_groups_free(struct gw_seed_groups *groups);

#endif
