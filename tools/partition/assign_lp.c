/* Assigns parts by label propagation: few edges between parts, in little memory.
 *
 *   symmetric graph as a file (lists.h) -> clusters, METIS on the graph of clusters -> moves ──┐ the one that cuts
 *                                       -> a stream, nodes of high degree first ───────────────┤ fewer edges
 *   -> of the stream, moves too: of nodes, below the limits of all shares (refine.h) ◄─────────┘
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
#define LP_BYTES_NODE 24u

struct lp_plan {
	const struct gw_plan *plan;
	struct gw_balance balance;
	struct gw_spill spill;
	struct gw_list_file lists;
	struct gw_assignment *assignment;
};

static uint64_t count_cut(const struct gw_list_file *lists, const int32_t *piece)
{
	uint64_t cut = 0, left = 0;
	for (uint64_t v = 0; v < lists->nodes; v++) {
		uint64_t n;
		gw_list_file_leave(lists, v, &left);
		const uint32_t *ids = gw_list_file_of(lists, v, &n);
		for (uint64_t i = 0; i < n; i++)
			cut += piece[ids[i]] != piece[v];
	}
	return cut;
}

static gw_status lp_find(struct lp_plan *lp, int32_t *piece)
{
	const struct gw_balance *balance = &lp->balance;
	const struct gw_list_file *lists = &lp->lists;
	uint32_t pieces = lp->assignment->pieces;
	bool contracted = false;
	gw_status status = gw_lp_contract(balance, lists, pieces, piece, &contracted);
	if (status == GW_OK && contracted)
		status = gw_refine(balance, lists, pieces, REFINE_PASSES, piece);
	if (status != GW_OK)
		return status;
	lp->assignment->process = contracted ? "METIS" : NULL;
	int32_t *other = gw_malloc(lists->nodes * sizeof(*other));
	status = other ? gw_lp_stream(balance, lists, pieces, other) : GW_NO_MEMORY;
	if (status == GW_OK && (!contracted || count_cut(lists, other) < count_cut(lists, piece))) {
		memcpy(piece, other, lists->nodes * sizeof(*piece));
		status = gw_refine(balance, lists, pieces, REFINE_PASSES, piece);
	}
	gw_free(other);
	return status;
}

static gw_status lp_assign(struct lp_plan *lp)
{
	const struct gw_balance *balance = &lp->balance;
	struct gw_assignment *assignment = lp->assignment;
	uint64_t start_ns = gw_now_ns();
	gw_status status = gw_spill_open(&lp->spill, lp->plan->out, 0);
	lp->spill.reports = true;
	if (status == GW_OK)
		status = gw_list_file_make(balance, &lp->spill, gw_plan_lists_bytes(lp->plan), false, &lp->lists);
	if (status != GW_OK)
		return status;
	assignment->symmetric_s = (double)(gw_now_ns() - start_ns) * 1e-9;

	start_ns = gw_now_ns();
	uint64_t nodes = lp->lists.nodes;
	int32_t *piece = gw_calloc(nodes + 1, sizeof(*piece));
	status = piece ? GW_OK : GW_NO_MEMORY;
	if (status == GW_OK && nodes > 0)
		status = lp_find(lp, piece);
	if (status == GW_OK)
		status = gw_balance_fill_up(balance, lp->lists.origin, nodes, piece, assignment);
	gw_free(piece);
	assignment->file_bytes = lp->spill.file_bytes;
	assignment->method_s = (double)(gw_now_ns() - start_ns) * 1e-9;
	return status;
}

uint64_t gw_lp_bytes(uint64_t nodes)
{
	return nodes * LP_BYTES_NODE;
}

static gw_status lp_check(const struct gw_balance *balance)
{
	gw_status status = gw_list_file_check(balance);
	return status != GW_OK
		       ? status
		       : gw_plan_memory_check(balance->plan, gw_lp_bytes(balance->base[balance->meta->num_ntypes]),
					      "label propagation", GW_PLAN_LESS_THAN_LP);
}

gw_status gw_lp_check(const struct gw_plan *plan, const struct gw_part *part)
{
	struct gw_balance balance;
	gw_status status = gw_balance_open(plan, part, &balance);
	if (status == GW_OK)
		status = lp_check(&balance);
	gw_balance_free(&balance);
	return status;
}

gw_status gw_assign_lp(const struct gw_plan *plan, const struct gw_part *part, struct gw_assignment *assignment)
{
	struct lp_plan lp = {.plan = plan, .assignment = assignment, .lists = {.fd = -1}};
	gw_status status = gw_balance_open(plan, part, &lp.balance);
	if (status == GW_OK && assignment->pieces > 1)
		status = lp_check(&lp.balance);
	if (status == GW_OK && assignment->pieces > 1)
		status = lp_assign(&lp);
	gw_list_file_close(&lp.lists);
	gw_spill_close(&lp.spill);
	gw_balance_free(&lp.balance);
	return status;
}
