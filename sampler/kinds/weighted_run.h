/* A round of the weighted kind: what it asks for, and where its picks go. Internal to weighted.c, which states the law.
 *
 *   draws ─▶ ask_draws, sixteen Philox blocks at a time ─▶ needs of the next round
 *   positions of a list ─▶ sort ─▶ finish
 */
#ifndef GW_SAMPLER_KINDS_WEIGHTED_RUN_H
#define GW_SAMPLER_KINDS_WEIGHTED_RUN_H

#include "sampler/draw.h"
#include "sampler/lanes/wide_table.h"

/* Blocks of draws whose columns are not known yet. */
struct gw_weighted_ask {
	struct gw_table_lanes lanes;
	gw_table_row columns[2], words[2];
	uint32_t list[GW_WIDE_LANES], used;
	uint64_t end[GW_WIDE_LANES]; /* of the list's draws */
	bool entry[GW_WIDE_LANES];   /* asks for the entry of each draw */
};

/* The round. */
struct gw_weighted {
	const struct gw_draw *draw;
	struct gw_draw_run *run;
	uint64_t *positions;
	const struct gw_table_functions *functions;
	uint64_t key, fanout;         /* fanout: UINT64_MAX for all */
	uint32_t number;              /* of the round */
	bool replace, table, at_hand; /* table: lists have tables; at_hand: in memory */
	struct gw_weighted_ask ask;
};

/* The most draws from a table without replacement. It is part of the law. */
static inline uint64_t gw_weighted_draws_max(const struct gw_weighted *w)
{
	return 4 * w->fanout + 16;
}

/* How many of them round 0 asks for: even, so that round 1 begins with a block. */
static inline uint64_t gw_weighted_draws_first(const struct gw_weighted *w)
{
	return (w->fanout + w->fanout / 4 + 5) & ~1ull;
}

/* Where the picks of a list go. */
static inline uint64_t *gw_weighted_slots(const struct gw_weighted *w, uint32_t list)
{
	return w->positions + w->run->lists.starts[list];
}

static inline uint32_t gw_weighted_group(const struct gw_weighted *w, uint32_t list)
{
	return w->run->lists.groups ? w->run->lists.groups[list] : 0;
}

/* All positive edges of the list, without a draw. */
static inline bool gw_weighted_takes_all(const struct gw_weighted *w, uint64_t degree)
{
	return w->fanout == UINT64_MAX || (!w->replace && degree <= w->fanout);
}

/* Lane `lane` draws from a list, from a Philox block on. */
static inline void gw_weighted_set_lane(const struct gw_weighted *w, struct gw_table_lanes *lanes, uint32_t lane,
					uint32_t list, uint32_t block)
{
	uint64_t vertex = w->run->lists.vertices[list];
	lanes->block[lane] = block;
	lanes->instance_low[lane] = (uint32_t)vertex;
	lanes->instance_high[lane] = (uint32_t)(vertex >> 32);
	lanes->group[lane] = gw_weighted_group(w, list);
	lanes->degree[lane] = (uint32_t)w->run->lists.degrees[list];
}

/* Prefetches the neighbour at a position of the part. */
static inline void gw_weighted_prefetch(const struct gw_draw_run *run, uint64_t position)
{
	gw_lists_prefetch(run->memory, position, run->element_bytes);
}

/* Asks for draws [from, end) of a list; from is even. The first k draws go to the list's slots. entry: asks for the
 * entry of each draw, too. GW_NO_MEMORY. */
gw_status gw_weighted_ask_draws(struct gw_weighted *w, uint32_t list, uint64_t from, uint64_t end, bool entry);
/* Asks for a column of the complete list. GW_NO_MEMORY. */
gw_status gw_weighted_ask_whole(struct gw_weighted *w, uint32_t list, enum gw_column column);
/* Lists what was asked for: call it at the end of a round. GW_NO_MEMORY. */
gw_status gw_weighted_ask_flush(struct gw_weighted *w);

/* The first `count` slots of a list, positions within it, are its picks: they ascend. */
void gw_weighted_finish(struct gw_weighted *w, uint32_t list, uint64_t count);

#endif
