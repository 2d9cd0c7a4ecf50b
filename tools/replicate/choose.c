/* The hottest nodes that fit a budget, in four passes over the nodes: each finds 16 more bits of the least hotness that
 * is chosen. A hotness is not negative, so its bits are in the order of its value. */
#include <math.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "tools/replicate/replicate.h"

#define DIGITS 65536u

/* The types from `begin` to `end` - 1 share a budget. */
struct choice {
	const struct gw_hot_graph *graph;
	const double *hot;
	const uint64_t *cost; /* [ntypes]: of the budget, for each node; 0: the type takes no part */
	uint32_t begin, end;
	uint64_t left;  /* of the budget */
	uint64_t least; /* nodes above this are chosen; of those that are equal, the first that fit `left` */
};

static uint64_t hot_bits(double hot)
{
	uint64_t bits;
	memcpy(&bits, &hot, sizeof(bits));
	return bits;
}

/* Adds up the costs of the nodes whose higher bits are those of `least`, by their next 16 bits. */
static void add_costs(const struct choice *choice, int shift, uint64_t *costs)
{
	memset(costs, 0, DIGITS * sizeof(*costs));
	for (uint32_t t = choice->begin; t < choice->end; t++) {
		const double *hot = choice->hot + choice->graph->first[t];
		for (uint64_t i = 0; choice->cost[t] && i < choice->graph->meta->ntypes[t].count; i++) {
			uint64_t bits = hot_bits(hot[i]);
			if (hot[i] > 0 && (shift == 48 || bits >> (shift + 16) == choice->least >> (shift + 16)))
				costs[bits >> shift & (DIGITS - 1)] += choice->cost[t];
		}
	}
}

static void find_least(struct choice *choice, uint64_t *costs)
{
	choice->least = 0;
	for (int shift = 48; shift >= 0; shift -= 16) {
		uint64_t digit = DIGITS - 1;
		add_costs(choice, shift, costs);
		for (; digit > 0 && costs[digit] <= choice->left; digit--)
			choice->left -= costs[digit];
		choice->least |= digit << shift;
	}
}

static void mark_chosen(struct choice *choice, struct gw_replica_block *const *blocks)
{
	for (uint32_t t = choice->begin; t < choice->end; t++) {
		const double *hot = choice->hot + choice->graph->first[t];
		for (uint64_t i = 0; choice->cost[t] && i < choice->graph->meta->ntypes[t].count; i++) {
			uint64_t bits = hot_bits(hot[i]);
			bool equal = bits == choice->least && choice->cost[t] <= choice->left;
			if (!(hot[i] > 0) || (bits <= choice->least && !equal))
				continue;
			choice->left -= equal ? choice->cost[t] : 0;
			gw_replica_add(blocks[t], i);
		}
	}
}

gw_status gw_hot_choose(const struct gw_hot_graph *graph, const double *hot, const uint64_t *cost, double share,
			uint64_t bytes, struct gw_replica_block *const *blocks)
{
	const uint32_t types = graph->meta->num_ntypes;
	uint64_t *costs = gw_malloc(DIGITS * sizeof(*costs)), *ones = gw_calloc(types, sizeof(*ones));
	struct choice choice = {.graph = graph, .hot = hot, .cost = cost, .end = types, .left = bytes};
	gw_status status = costs && ones ? GW_OK : GW_NO_MEMORY;
	for (uint32_t t = 0; t < types && status == GW_OK; t++)
		ones[t] = cost[t] > 0;
	if (status == GW_OK && !(share > 0)) {
		find_least(&choice, costs);
		mark_chosen(&choice, blocks);
	}
	for (uint32_t t = 0; t < types && status == GW_OK && share > 0; t++) {
		choice = (struct choice){.graph = graph, .hot = hot, .cost = ones, .begin = t, .end = t + 1};
		choice.left = (uint64_t)floor(share * (double)graph->meta->ntypes[t].count);
		find_least(&choice, costs);
		mark_chosen(&choice, blocks);
	}
	gw_free(costs);
	gw_free(ones);
	return status;
}
