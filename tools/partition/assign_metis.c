/* Assigns parts with METIS: few edges between parts, with each part's share balanced.
 *
 *   counts checked -> memory checked -> symmetric graph of all types -> constraints as vertex weights -> memory checked
 *   -> METIS in a child process -> nodes without neighbours even out the parts
 *
 * As in DGL, METIS gets one graph of all types, with both directions of every edge and without loops. Each class of
 * nodes (type, training set) is one constraint; --balance-edges adds one for the in-degrees of each class.
 *
 * Two things differ from DGL:
 *   - An edge weighs its number of repetitions in the input, so METIS minimises the edges cut.
 *   - METIS does not get nodes without neighbours, since it takes quadratic time over them.
 */
#include <inttypes.h>
#include <stdio.h>

#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "core/system/parallel.h"
#include "tools/partition/balance.h"

/* METIS's own memory, measured on graphs of heavy-tailed degrees, where coarsening helps least. */
#define METIS_BYTES_ENTRY 76u
#define METIS_BYTES_NODE  120u

struct metis_plan {
	const struct gw_plan *plan;
	struct gw_balance balance;
	struct gw_symmetric graph;
	uint32_t constraints;
	int32_t *weights; /* [graph.nodes][constraints], or NULL: all weights are 1 */
	struct gw_assignment *assignment;
};

gw_status gw_metis_check_counts(uint64_t nodes, uint64_t edges, uint64_t loops, uint32_t constraints)
{
	if (nodes >= INT32_MAX || edges >= INT32_MAX / 2 || edges + loops >= INT32_MAX)
		return gw_fail(GW_LIMIT,
			       "%" PRIu64 " nodes and %" PRIu64
			       " edges are too many for METIS with 32-bit ids (up to %d nodes, "
			       "and as many edges counted both ways); use --method lp or --method random",
			       nodes, edges + loops, INT32_MAX - 1);
	if (constraints > GW_PLAN_CONSTRAINTS_MAX)
		return gw_fail(GW_LIMIT,
			       "%u constraints to balance, but METIS gets at most %u; "
			       "leave out --balance-ntypes, or use --method random, which balances every type",
			       constraints, GW_PLAN_CONSTRAINTS_MAX);
	return GW_OK;
}

uint64_t gw_metis_bytes(uint64_t nodes, uint64_t entries, uint32_t constraints, uint32_t pieces)
{
	return entries * METIS_BYTES_ENTRY + nodes * (METIS_BYTES_NODE + 16u * constraints) + pieces * 1024ull;
}

/* Refuses a graph that is too large for METIS. */
static gw_status survey(const struct metis_plan *m)
{
	const struct gw_balance *balance = &m->balance;
	uint64_t nodes = balance->base[balance->meta->num_ntypes], edges = balance->edges, loops = 0;
	if (edges >=
	    INT32_MAX / 2) /* loops are counted only if the graph may be too large, because counting takes time */
		loops = gw_symmetric_loops(balance->sources, balance->meta->num_etypes, m->plan->threads);
	gw_status status = gw_metis_check_counts(nodes, edges - loops, loops, balance->quantities);
	if (status == GW_OK)
		status = gw_plan_memory_check(m->plan, gw_symmetric_bytes_max(nodes, edges - loops),
					      "the symmetric graph for METIS", GW_PLAN_LESS_THAN_METIS);
	return status;
}

gw_status gw_metis_check(const struct gw_plan *plan, const struct gw_part *part)
{
	struct metis_plan m = {.plan = plan};
	gw_status status = gw_metis_check_built();
	if (status == GW_OK)
		status = gw_balance_open(plan, part, &m.balance);
	if (status == GW_OK)
		status = survey(&m);
	uint64_t nodes = m.balance.base ? m.balance.base[m.balance.meta->num_ntypes] : 0, entries = 2 * m.balance.edges;
	if (status == GW_OK) /* repeats are counted as if they were not */
		status = gw_plan_memory_check(
			plan,
			gw_symmetric_bytes_max(nodes, entries / 2) +
				gw_metis_bytes(nodes, entries, m.balance.quantities, plan->parts * plan->trainers),
			"METIS", GW_PLAN_LESS_THAN_METIS);
	gw_balance_free(&m.balance);
	return status;
}

static gw_status weigh(struct metis_plan *m)
{
	m->constraints = m->balance.quantities;
	if (m->constraints == 1)
		return GW_OK;
	m->weights = gw_calloc(m->graph.nodes * m->constraints, sizeof(*m->weights));
	if (!m->weights)
		return GW_NO_MEMORY;
	uint64_t quantity[GW_BALANCE_QUANTITIES_MAX];
	uint32_t ntype = 0;
	for (uint64_t v = 0; v < m->graph.nodes; v++) {
		gw_balance_of_node(&m->balance, (uint64_t)m->graph.origin[v], &ntype, quantity);
		for (uint32_t c = 0; c < m->constraints; c++) /* cannot overflow, because all edges together fit */
			m->weights[v * m->constraints + c] = (int32_t)quantity[c];
	}
	return GW_OK;
}

static gw_status cut(struct metis_plan *m, int32_t *piece)
{
	uint32_t pieces = m->assignment->pieces;
	struct gw_metis_job job = {.nodes = (int32_t)m->graph.nodes,
				   .constraints = (int32_t)m->constraints,
				   .pieces = (int32_t)pieces,
				   .xadj = m->graph.xadj,
				   .adjncy = m->graph.adjncy,
				   .adjwgt = m->graph.adjwgt,
				   .vwgt = m->weights,
				   .objective = m->plan->objective,
				   .seed = m->plan->seed,
				   .piece = piece};
	if (m->graph.nodes <= pieces) {
		for (uint64_t v = 0; v < m->graph.nodes; v++)
			piece[v] = (int32_t)v;
		m->assignment->note = "fewer nodes with neighbours than parts: each of these nodes got its own part";
		return GW_OK;
	}
	uint64_t bytes = gw_metis_bytes(m->graph.nodes, m->graph.entries, m->constraints, pieces);
	gw_status status = gw_plan_memory_check(m->plan, bytes, "METIS", GW_PLAN_LESS_THAN_METIS);
	if (status == GW_OK)
		status = gw_metis_run(&job);
	if (status != GW_OK)
		return status;
	m->assignment->objective = (uint64_t)job.measure;
	m->assignment->has_objective = true;
	m->assignment->process = "METIS";
	return GW_OK;
}

static gw_status assign(struct metis_plan *m)
{
	const struct gw_balance *balance = &m->balance;
	uint64_t start_ns = gw_now_ns();
	gw_status status = gw_symmetric_build(balance->sources, balance->meta->num_etypes,
					      balance->base[balance->meta->num_ntypes], m->plan->threads, &m->graph);
	if (status == GW_OK)
		status = weigh(m);
	if (status != GW_OK)
		return status;
	m->assignment->symmetric_s = (double)(gw_now_ns() - start_ns) * 1e-9;

	start_ns = gw_now_ns();
	int32_t *piece = gw_malloc(m->graph.nodes * sizeof(*piece));
	if (!piece)
		return GW_NO_MEMORY;
	status = cut(m, piece);
	if (status == GW_OK)
		status = gw_balance_fill_up(balance, (const uint32_t *)m->graph.origin, m->graph.nodes, piece,
					    m->assignment);
	gw_free(piece);
	m->assignment->method_s = (double)(gw_now_ns() - start_ns) * 1e-9;
	return status;
}

gw_status gw_assign_metis(const struct gw_plan *plan, const struct gw_part *part, struct gw_assignment *assignment)
{
	struct metis_plan m = {.plan = plan, .assignment = assignment, .constraints = 1};
	gw_status status = gw_balance_open(plan, part, &m.balance);
	if (status == GW_OK && assignment->pieces > 1) {
		status = survey(&m);
		if (status == GW_OK)
			status = assign(&m);
	}
	gw_symmetric_free(&m.graph);
	gw_free(m.weights);
	gw_balance_free(&m.balance);
	return status;
}
