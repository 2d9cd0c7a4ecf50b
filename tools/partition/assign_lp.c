/* Assigns parts by label propagation: few edges between parts, in little memory.
 *
 *   symmetric graph as a file (lists.h) -> a stream, nodes of high degree first ──────────────┐ the one that cuts
 *                                       -> clusters, METIS on the graph of clusters ──────────┤ fewer edges
 *   -> moves of nodes that cut fewer edges, below the limits of all shares (refine.h) ◄───────┘
 *   -> nodes without neighbours even out the parts
 *
 * On graphs with communities the clusters cut fewer edges. Where hubs hold most edges, clusters do not shrink the
 * graph, and the stream cuts fewer. The file is read in the order of nodes. Besides it, 24 bytes a node and METIS's
 * memory for the clusters suffice. Clusters whose memory is not allowed are not cut, so that the result depends on a
 * limit below it. All steps but the file's and METIS's run in one thread, so that it depends on nothing else than the
 * graph, the plan and, through METIS, the seed.
 */
#include <string.h>

#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "tools/partition/lp.h"

#define REFINE_PASSES 3u

struct lp_plan {
	const struct gw_plan *plan;
	struct gw_balance balance;
	struct gw_spill spill;
	struct gw_list_file lists;
	struct gw_assignment *assignment;
};

static uint64_t count_cut(const struct gw_list_file *lists, const int32_t *piece)
{
	uint64_t cut = 0;
	for (uint64_t v = 0; v < lists->nodes; v++) {
		uint64_t n;
		const uint32_t *ids = gw_list_file_of(lists, v, &n);
		for (uint64_t i = 0; i < n; i++)
			cut += piece[ids[i]] != piece[v];
	}
	return cut;
}

static gw_status lp_find(struct lp_plan *lp, int32_t *piece, int32_t *other)
{
	uint32_t pieces = lp->assignment->pieces;
	bool contracted = false;
	gw_status status = gw_lp_contract(&lp->balance, &lp->lists, pieces, other, &contracted);
	if (status == GW_OK)
		status = gw_lp_stream(&lp->balance, &lp->lists, pieces, piece);
	if (status == GW_OK && contracted && count_cut(&lp->lists, other) <= count_cut(&lp->lists, piece))
		memcpy(piece, other, lp->lists.nodes * sizeof(*piece));
	if (contracted)
		lp->assignment->process = "METIS";
	return status;
}

static gw_status lp_assign(struct lp_plan *lp)
{
	const struct gw_balance *balance = &lp->balance;
	struct gw_assignment *assignment = lp->assignment;
	uint64_t start_ns = gw_now_ns();
	gw_status status = gw_spill_open(&lp->spill, lp->plan->out, 0);
	if (status == GW_OK)
		status = gw_list_file_make(balance, &lp->spill, gw_plan_lists_bytes(lp->plan), false, &lp->lists);
	if (status != GW_OK)
		return status;
	assignment->symmetric_s = (double)(gw_now_ns() - start_ns) * 1e-9;

	start_ns = gw_now_ns();
	uint64_t nodes = lp->lists.nodes;
	int32_t *piece = gw_calloc(nodes + 1, sizeof(*piece)), *other = gw_malloc((nodes + 1) * sizeof(*other));
	status = piece && other ? GW_OK : GW_NO_MEMORY;
	if (status == GW_OK && nodes > 0)
		status = lp_find(lp, piece, other);
	gw_free(other);
	if (status == GW_OK)
		status = gw_refine(balance, &lp->lists, assignment->pieces, REFINE_PASSES, piece);
	if (status == GW_OK)
		status = gw_balance_fill_up(balance, lp->lists.origin, nodes, piece, assignment);
	gw_free(piece);
	assignment->file_bytes = lp->spill.file_bytes;
	assignment->method_s = (double)(gw_now_ns() - start_ns) * 1e-9;
	return status;
}

gw_status gw_assign_lp(const struct gw_plan *plan, const struct gw_part *part, struct gw_assignment *assignment)
{
	struct lp_plan lp = {.plan = plan, .assignment = assignment, .lists = {.fd = -1}};
	gw_status status = gw_balance_open(plan, part, &lp.balance);
	if (status == GW_OK && assignment->pieces > 1)
		status = lp_assign(&lp);
	gw_list_file_close(&lp.lists);
	gw_spill_close(&lp.spill);
	gw_balance_free(&lp.balance);
	return status;
}
