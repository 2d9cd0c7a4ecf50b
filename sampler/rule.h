/* The rule for drawing from a list. */
#ifndef GW_SAMPLER_RULE_H
#define GW_SAMPLER_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/graph/picks.h"

/* How one edge type is sampled in one hop. */
struct gw_pick_rule {
	uint64_t key;   /* gw_draw_key(seed, stream, GW_DRAW_NEIGHBOURS, hop, edge type) */
	int32_t fanout; /* GW_FANOUT_ALL or 0 to GW_FANOUT_MAX */
	bool replace;
};

/* How many positions the rule picks from a list of this degree. */
static inline uint64_t gw_pick_count(const struct gw_pick_rule *rule, uint64_t degree)
{
	if (rule->fanout == GW_FANOUT_ALL)
		return degree;
	uint64_t fanout = (uint64_t)rule->fanout;
	if (rule->replace)
		return degree ? fanout : 0;
	return degree < fanout ? degree : fanout;
}

#endif
