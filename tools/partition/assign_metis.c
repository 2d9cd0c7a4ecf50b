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

#include "core/errors/options.h"
#include "core/memory/alloc.h"
#include "core/memory/memory.h"
#include "core/system/clock.h"
#include "core/system/parallel.h"
#include "tools/partition/plan.h"
#include "tools/partition/symmetric.h"

/* METIS's own memory, measured on graphs of heavy-tailed degrees, where coarsening helps least. */
#define METIS_BYTES_ENTRY 76u
#define METIS_BYTES_NODE  120u

struct metis_plan {
	const struct gw_plan *plan;
	const struct gw_part *part;
	const struct gw_graph_meta *meta;
	uint64_t *base; /* [ntypes + 1]: the first node of each type in the common numbering */
	struct gw_symmetric_source *sources;
	struct gw_plan_classes classes;
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
			       "and as many edges counted both ways); use --method random",
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

static gw_status metis_check_memory(const struct gw_plan *plan, uint64_t bytes, const char *what)
{
	char want[GW_UNIT_TEXT_MAX], have[GW_UNIT_TEXT_MAX];
	gw_status status;
	if (plan->memory_max == 0)
		status = gw_memory_check(bytes, -1, what);
	else
		status = bytes <= plan->memory_max ? GW_OK
						   : gw_fail(GW_NO_MEMORY, "%s: needs about %s, --memory allows %s",
							     what, gw_text_bytes(want, (double)bytes),
							     gw_text_bytes(have, (double)plan->memory_max));
	if (status == GW_OK)
		return GW_OK;
	char why[GW_ERROR_TEXT_MAX];
	snprintf(why, sizeof(why), "%s", gw_last_error());
	return gw_fail(status, "%s; use --method random, which needs little memory, or set --memory", why);
}

/* Refuses a graph that is too large for METIS. */
static gw_status survey(struct metis_plan *m)
{
	uint64_t edges = 0, loops = 0;
	m->base = gw_calloc(m->meta->num_ntypes + 1ull, sizeof(*m->base));
	m->sources = gw_calloc(m->meta->num_etypes, sizeof(*m->sources));
	if (!m->base || !m->sources)
		return GW_NO_MEMORY;
	for (uint32_t t = 0; t < m->meta->num_ntypes; t++)
		m->base[t + 1] = m->base[t] + m->meta->ntypes[t].count;
	for (uint32_t e = 0; e < m->meta->num_etypes; e++) {
		m->sources[e].adjacency = gw_part_adjacency(m->part, e);
		m->sources[e].src_base = m->base[m->meta->etypes[e].src];
		m->sources[e].dst_base = m->base[m->meta->etypes[e].dst];
		edges += m->sources[e].adjacency->edges;
	}
	uint64_t nodes = m->base[m->meta->num_ntypes];
	if (edges >=
	    INT32_MAX / 2) /* loops are counted only if the graph may be too large, because counting takes time */
		loops = gw_symmetric_loops(m->sources, m->meta->num_etypes, m->plan->threads);
	uint32_t constraints = m->classes.count * (m->plan->balance_edges ? 2 : 1);
	gw_status status = gw_metis_check_counts(nodes, edges - loops, loops, constraints);
	if (status == GW_OK)
		status = metis_check_memory(m->plan, gw_symmetric_bytes_max(nodes, edges - loops),
					    "the symmetric graph for METIS");
	return status;
}

static int32_t in_degree(const struct metis_plan *m, uint32_t ntype, uint64_t node)
{
	const struct gw_node_type *type = &m->meta->ntypes[ntype];
	uint64_t degree = 0, from, to;
	for (uint32_t c = 0; c < type->columns; c++) {
		gw_adjacency_list(gw_part_adjacency(m->part, type->column_edge_types[c]), node, &from, &to);
		degree += to - from;
	}
	return (int32_t)degree; /* cannot overflow, because all edges together fit */
}

/* METIS would divide by the sum. */
static void drop_empty(struct metis_plan *m)
{
	uint64_t sum[2 * GW_PLAN_CONSTRAINTS_MAX] = {0};
	uint32_t kept = 0, place[2 * GW_PLAN_CONSTRAINTS_MAX] = {0};
	for (uint64_t v = 0; v < m->graph.nodes; v++) {
		for (uint32_t c = 0; c < m->constraints; c++)
			sum[c] += (uint64_t)m->weights[v * m->constraints + c];
	}
	for (uint32_t c = 0; c < m->constraints; c++) {
		if (sum[c] > 0)
			place[kept++] = c;
	}
	for (uint64_t v = 0; v < m->graph.nodes; v++) {
		for (uint32_t k = 0; k < kept; k++)
			m->weights[v * kept + k] = m->weights[v * m->constraints + place[k]];
	}
	m->constraints = kept;
}

/* 1 in the node's class, and with --balance-edges the in-degree in the class's second column. */
static gw_status weigh(struct metis_plan *m)
{
	m->constraints = m->classes.count * (m->plan->balance_edges ? 2 : 1);
	if (m->constraints == 1)
		return GW_OK;
	m->weights = gw_calloc(m->graph.nodes * m->constraints, sizeof(*m->weights));
	if (!m->weights)
		return GW_NO_MEMORY;
	uint32_t ntype = 0;
	for (uint64_t v = 0; v < m->graph.nodes; v++) {
		uint64_t origin = (uint64_t)m->graph.origin[v];
		while (origin >= m->base[ntype + 1])
			ntype++;
		uint64_t node = origin - m->base[ntype];
		uint32_t class = gw_plan_class(&m->classes, ntype, node);
		int32_t *row = m->weights + v * m->constraints;
		row[class] = 1;
		if (m->plan->balance_edges)
			row[m->classes.count + class] = in_degree(m, ntype, node);
	}
	drop_empty(m);
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
	gw_status status = metis_check_memory(m->plan, bytes, "METIS");
	if (status == GW_OK)
		status = gw_metis_run(&job);
	if (status != GW_OK)
		return status;
	m->assignment->objective = (uint64_t)job.measure;
	m->assignment->has_objective = true;
	return GW_OK;
}

/* As evenly as possible: fills all pieces below one level up to that level. Updates counts; share, [pieces]: the
 * number of nodes added to each piece. */
static void level(uint64_t *counts, uint32_t pieces, uint64_t more, uint64_t *share)
{
	uint64_t low = 0, high = more;
	for (uint32_t p = 0; p < pieces; p++)
		high = counts[p] + more > high ? counts[p] + more : high;
	while (low < high) { /* finds the highest level that `more` nodes can fill */
		uint64_t middle = low + (high - low + 1) / 2, need = 0;
		for (uint32_t p = 0; p < pieces && need <= more; p++)
			need += counts[p] < middle ? middle - counts[p] : 0;
		if (need <= more)
			low = middle;
		else
			high = middle - 1;
	}
	for (uint32_t p = 0; p < pieces; p++) {
		share[p] = counts[p] < low ? low - counts[p] : 0;
		more -= share[p];
	}
	for (uint32_t p = 0; p < pieces && more > 0; p++) {
		if (counts[p] <= low) {
			share[p]++;
			more--;
		}
	}
	for (uint32_t p = 0; p < pieces; p++)
		counts[p] += share[p];
}

/* Assigns the nodes without neighbours to the smallest pieces, class by class, in runs of ascending ids. */
static gw_status fill_up(struct metis_plan *m, const int32_t *piece)
{
	uint32_t pieces = m->assignment->pieces, classes = m->classes.count, next = 0;
	uint64_t *counts = gw_calloc((uint64_t)classes * pieces, sizeof(*counts));
	uint64_t *shares = gw_calloc((uint64_t)classes * pieces, sizeof(*shares));
	uint64_t *loose = gw_calloc(classes, sizeof(*loose));
	uint32_t *filling = gw_calloc(classes, sizeof(*filling)); /* the piece that each class fills now */
	gw_status status = counts && shares && loose && filling ? GW_OK : GW_NO_MEMORY;
	for (int pass = 0; status == GW_OK && pass < 2; pass++, next = 0) {
		for (uint32_t t = 0; t < m->meta->num_ntypes; t++) {
			for (uint64_t node = 0; node < m->meta->ntypes[t].count; node++) {
				uint32_t class = gw_plan_class(&m->classes, t, node);
				uint64_t *share = shares + (uint64_t) class * pieces;
				bool has =
					next < m->graph.nodes && (uint64_t)m->graph.origin[next] == m->base[t] + node;
				if (pass == 0 && has)
					counts[(uint64_t) class * pieces + (uint32_t)piece[next]]++;
				if (pass == 0 && !has)
					loose[class]++;
				if (pass == 1 && !has) {
					while (share[filling[class]] == 0)
						filling[class]++;
					share[filling[class]]--;
				}
				if (pass == 1)
					m->assignment->piece[t][node] =
						(uint16_t)(has ? (uint32_t)piece[next] : filling[class]);
				next += has;
			}
		}
		for (uint32_t c = 0; pass == 0 && c < classes; c++)
			level(counts + (uint64_t)c * pieces, pieces, loose[c], shares + (uint64_t)c * pieces);
	}
	gw_free(counts);
	gw_free(shares);
	gw_free(loose);
	gw_free(filling);
	return status;
}

static gw_status assign(struct metis_plan *m)
{
	uint64_t start_ns = gw_now_ns();
	gw_status status = gw_symmetric_build(m->sources, m->meta->num_etypes, m->base[m->meta->num_ntypes],
					      m->plan->threads, &m->graph);
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
		status = fill_up(m, piece);
	gw_free(piece);
	m->assignment->method_s = (double)(gw_now_ns() - start_ns) * 1e-9;
	return status;
}

gw_status gw_assign_metis(const struct gw_plan *plan, const struct gw_part *part, struct gw_assignment *assignment)
{
	struct metis_plan m = {
		.plan = plan, .part = part, .meta = gw_part_meta(part), .assignment = assignment, .constraints = 1};
	gw_status status = gw_plan_classes_make(plan, part, &m.classes);
	if (status == GW_OK && assignment->pieces > 1) {
		status = survey(&m);
		if (status == GW_OK)
			status = assign(&m);
	}
	gw_symmetric_free(&m.graph);
	gw_free(m.weights);
	gw_free(m.sources);
	gw_free(m.base);
	gw_plan_classes_free(&m.classes);
	return status;
}
