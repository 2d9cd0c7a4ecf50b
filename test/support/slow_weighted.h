/* Weighted draws done slowly and plainly, from the law at the top of sampler/kinds/weighted.c alone: what the kind is
 * compared with. No code of the sampler or of core/graph is used here; words come from core/numbers/rng.h, which has
 * known answers. */
#ifndef GW_TEST_SLOW_WEIGHTED_H
#define GW_TEST_SLOW_WEIGHTED_H

#include <graphwire/types.h>

#include "sampler/rule.h"

/* A list: n weights of a dtype, and its alias table [n, 2] or NULL. */
struct slow_list {
	uint64_t n;
	gw_dtype dtype;
	const void *weights;
	const uint32_t *table;
};

/* Weight i of an array as a number. */
long double slow_weight(gw_dtype dtype, const void *weights, uint64_t i);
/* Stores a number, rounded to the dtype, as weight i. */
void slow_weight_set(gw_dtype dtype, void *weights, uint64_t i, double value);

/* The integers of n weights, by the rule in core/graph/weights.h. */
void slow_weights(gw_dtype dtype, const void *weights, uint64_t n, uint64_t *out);

/* The picks of one list, ascending; out has room for them. Returns how many. */
uint64_t slow_weighted(const struct gw_pick_rule *rule, uint64_t vertex, uint32_t group, const struct slow_list *list,
		       uint64_t *out);

#endif
