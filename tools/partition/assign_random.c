/* Assigns parts at random and evenly: the r-th node of a group goes to piece (permutation(r) + offset) mod pieces.
 *
 *   group (a node type; its training nodes and the rest separately, if asked) -> rank of each node in its group
 *   -> keyed permutation of the ranks -> piece
 *
 * The offset advances by each group's size, so that the remainders of the groups even out. Needs no memory except the
 * result. The result is the same for any number of threads. The only failure is GW_NO_MEMORY.
 */
#include "core/memory/alloc.h"
#include "core/numbers/rng.h"
#include "core/system/clock.h"
#include "core/system/parallel.h"
#include "tools/partition/plan.h"

#define GRAIN 65536u

struct deal {
	const uint8_t *mask; /* or NULL */
	uint64_t *marked;    /* [chunks]: nodes of the mask before each chunk */
	struct gw_permutation order[2];
	uint64_t offset[2];
	uint32_t pieces;
	uint16_t *piece;
};

static gw_status deal_chunk(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct deal *deal = context;
	uint64_t rank[2] = {begin, 0};
	if (deal->mask) {
		rank[1] = deal->marked[begin / GRAIN];
		rank[0] = begin - rank[1];
	}
	for (uint64_t v = begin; v < end; v++) {
		int group = deal->mask && deal->mask[v];
		uint64_t at = gw_permutation_at(&deal->order[group], rank[group]++);
		deal->piece[v] = (uint16_t)((at + deal->offset[group]) % deal->pieces);
	}
	(void)thread;
	return GW_OK;
}

/* Counts the nodes of the mask before each chunk, and in total. */
static uint64_t count_marked(const uint8_t *mask, uint64_t nodes, uint64_t *marked)
{
	uint64_t sum = 0;
	for (uint64_t v = 0; v < nodes; v++) {
		if (v % GRAIN == 0)
			marked[v / GRAIN] = sum;
		sum += mask[v] != 0;
	}
	return sum;
}

gw_status gw_assign_random(const struct gw_plan *plan, const struct gw_part *part, struct gw_assignment *assignment)
{
	const struct gw_graph_meta *meta = gw_part_meta(part);
	struct gw_plan_classes classes;
	uint64_t start_ns = gw_now_ns(), offset = 0;
	gw_status status = gw_plan_classes_make(plan, part, &classes);
	for (uint32_t t = 0; status == GW_OK && t < meta->num_ntypes; t++) {
		struct deal deal = {
			.mask = classes.mask[t], .pieces = assignment->pieces, .piece = assignment->piece[t]};
		uint64_t nodes = meta->ntypes[t].count, group[2] = {nodes, 0};
		if (deal.mask) {
			deal.marked = gw_calloc(nodes / GRAIN + 1, sizeof(*deal.marked));
			if (!deal.marked) {
				status = GW_NO_MEMORY;
				break;
			}
			group[1] = count_marked(deal.mask, nodes, deal.marked);
			group[0] = nodes - group[1];
		}
		for (uint32_t g = 0; g < 2; g++) {
			uint64_t key = gw_draw_key(plan->seed, t, GW_DRAW_SHUFFLE, g, 0);
			deal.order[g] = gw_permutation_begin(key, group[g]);
			deal.offset[g] = offset;
			offset += group[g];
		}
		status = gw_parallel_for(plan->threads, nodes, GRAIN, deal_chunk, &deal);
		gw_free(deal.marked);
	}
	gw_plan_classes_free(&classes);
	assignment->method_s = (double)(gw_now_ns() - start_ns) * 1e-9;
	return status;
}
