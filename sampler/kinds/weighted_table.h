/* Draws from alias tables. Internal to weighted.c, which states the law.
 *
 *   tables at hand:  pick_at_hand
 *   entries asked:   groups_begin ─▶ groups_add, list by list ─▶ groups_end
 */
#ifndef GW_SAMPLER_KINDS_WEIGHTED_TABLE_H
#define GW_SAMPLER_KINDS_WEIGHTED_TABLE_H

#include "sampler/kinds/weighted_run.h"

#define GW_WEIGHTED_ROWS (GW_WIDE_PICKS + GW_WIDE_PICKS / 4 + 4) /* gw_weighted_draws_first() of GW_WIDE_PICKS */

/* Sixteen lists whose first k draws are resolved together. */
struct gw_weighted_group {
	struct gw_table_lanes lanes;
	gw_table_row columns[GW_WEIGHTED_ROWS], words[GW_WEIGHTED_ROWS]; /* a row for each draw */
	gw_table_row picks[GW_WIDE_PICKS];
	uint32_t list[GW_WIDE_LANES], used;
	uint32_t repeats;                     /* a bit for each lane that must draw more */
	uint64_t need[GW_WIDE_LANES];         /* the list's first need */
	const uint8_t *tables[GW_WIDE_LANES]; /* its complete table, or NULL */
} __attribute__((aligned(64)));

struct gw_weighted_groups {
	struct gw_weighted_group groups[2];
	struct gw_network network;
};

/* Whether round 0 asks for the complete table of a list of this degree: without replacement, if the list has at most as
 * many edges as the draws. One span is less than an entry for each draw. */
static inline bool gw_weighted_whole_table(const struct gw_weighted *w, uint64_t degree)
{
	return !w->replace && degree <= gw_weighted_draws_max(w);
}

/* Draws for the lists whose numbers are in `drawn`, whose tables are at hand. GW_NO_MEMORY; GW_RANGE: a table has an
 * edge past its list. */
gw_status gw_weighted_pick_at_hand(struct gw_weighted *w, const uint16_t *drawn, uint32_t count);

/* The same for lists whose entries the previous round asked for. need: the list's first need. */
void gw_weighted_groups_begin(const struct gw_weighted *w, struct gw_weighted_groups *groups);
gw_status gw_weighted_groups_add(struct gw_weighted *w, struct gw_weighted_groups *groups, uint32_t list,
				 uint64_t need);
gw_status gw_weighted_groups_end(struct gw_weighted *w, struct gw_weighted_groups *groups);

#endif
