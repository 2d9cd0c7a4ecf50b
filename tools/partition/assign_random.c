/* Assigns parts at random and evenly: the r-th node of a group goes to piece (permutation(r) + offset) mod pieces.
 *
 *   group (a node type; its classes separately, if asked) -> rank of each node in its group
 *   -> keyed permutation of the ranks -> piece
 *
 * The offset advances by each group's size, so that the remainders of the groups even out. Needs no memory except the
 * result. The result is the same for any number of threads. The only failure is GW_NO_MEMORY.
 */
#include <string.h>

#include "core/memory/alloc.h"
#include "core/numbers/rng.h"
#include "core/system/clock.h"
#include "core/system/parallel.h"
#include "tools/partition/plan.h"

#define GRAIN     65536u
#define FIRST_HOP 8u /* of the keys of groups: loaders and triples have 0 to 4 (client/batch/loader.c) */

struct deal_group {
	struct gw_permutation order;
	uint64_t offset;
};

struct deal {
	struct gw_plan_numbers numbers;
	uint32_t groups;
	struct deal_group *group; /* [groups] */
	uint64_t *before;         /* [chunks][groups]: nodes of each group before each chunk */
	uint32_t pieces;
	uint16_t *piece;
};

static gw_status deal_chunk(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct deal *deal = context;
	uint64_t rank[GW_PLAN_NUMBERS_MAX];
	memcpy(rank, deal->before + begin / GRAIN * deal->groups, deal->groups * sizeof(*rank));
	for (uint64_t v = begin; v < end; v++) {
		uint32_t number = gw_plan_number(&deal->numbers, v);
		const struct deal_group *group = &deal->group[number];
		uint64_t at = gw_permutation_at(&group->order, rank[number]++);
		deal->piece[v] = (uint16_t)((at + group->offset) % deal->pieces);
	}
	(void)thread;
	return GW_OK;
}

/* Before each chunk, and in total. */
static void count_groups(const struct deal *deal, uint64_t nodes, uint64_t *total)
{
	for (uint64_t v = 0; v < nodes; v++) {
		if (v % GRAIN == 0)
			memcpy(deal->before + v / GRAIN * deal->groups, total, deal->groups * sizeof(*total));
		total[gw_plan_number(&deal->numbers, v)]++;
	}
}

/* *offset advances by the sizes of its groups. */
static gw_status deal_type(const struct gw_plan *plan, uint32_t ntype, uint64_t nodes, struct deal *deal,
			   uint64_t *offset)
{
	uint64_t total[GW_PLAN_NUMBERS_MAX] = {0};
	deal->groups = deal->numbers.of ? deal->numbers.count : 1;
	deal->group = gw_calloc(deal->groups, sizeof(*deal->group));
	deal->before = gw_calloc((nodes / GRAIN + 1) * deal->groups, sizeof(*deal->before));
	if (!deal->group || !deal->before)
		return GW_NO_MEMORY;
	count_groups(deal, nodes, total);
	for (uint32_t g = 0; g < deal->groups; g++) {
		uint64_t key = gw_draw_key(plan->seed, ntype, GW_DRAW_SHUFFLE, FIRST_HOP + g, 0);
		deal->group[g] = (struct deal_group){.order = gw_permutation_begin(key, total[g]), .offset = *offset};
		*offset += total[g];
	}
	return gw_parallel_for(plan->threads, nodes, GRAIN, deal_chunk, deal);
}

gw_status gw_assign_random(const struct gw_plan *plan, const struct gw_part *part, struct gw_assignment *assignment)
{
	const struct gw_graph_meta *meta = gw_part_meta(part);
	struct gw_plan_classes classes;
	uint64_t start_ns = gw_now_ns(), offset = 0;
	gw_status status = gw_plan_classes_make(plan, part, &classes);
	for (uint32_t t = 0; status == GW_OK && t < meta->num_ntypes; t++) {
		struct deal deal = {
			.numbers = classes.numbers[t], .pieces = assignment->pieces, .piece = assignment->piece[t]};
		status = deal_type(plan, t, meta->ntypes[t].count, &deal, &offset);
		gw_free(deal.group);
		gw_free(deal.before);
	}
	gw_plan_classes_free(&classes);
	assignment->method_s = (double)(gw_now_ns() - start_ns) * 1e-9;
	return status;
}
