/* Measures an assignment on the input: edges whose ends are in two parts, and each part's share of nodes, edges and
 * training nodes.
 *
 *   nodes of each type by part -> edges by destination's part, compared with the source's -> ratios of largest to mean
 *
 * Runs in parallel over destinations; each thread has its own counters. The only failure is GW_NO_MEMORY.
 */
#include <string.h>

#include "core/memory/alloc.h"
#include "core/system/parallel.h"
#include "tools/partition/plan.h"

#define ROWS_GRAIN 8192u

struct measure {
	const struct gw_adjacency *adjacency;
	const uint16_t *src_piece, *dst_piece;
	uint32_t trainers, parts;
	uint64_t *cut;   /* [threads], one cache line each */
	uint64_t *owned; /* [threads][parts] */
};

#define CUT_STRIDE 8u

double gw_plan_balance(const uint64_t *counts, uint32_t parts)
{
	uint64_t sum = 0, most = 0;
	for (uint32_t p = 0; p < parts; p++) {
		sum += counts[p];
		most = counts[p] > most ? counts[p] : most;
	}
	return sum ? (double)most * parts / (double)sum : 0;
}

static gw_status count_rows(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct measure *m = context;
	const struct gw_adjacency *a = m->adjacency;
	uint64_t cut = 0, *owned = m->owned + (uint64_t)thread * m->parts;
	for (uint64_t row = begin; row < end; row++) {
		uint64_t from, to;
		uint32_t part = m->dst_piece[row] / m->trainers;
		uint16_t first = (uint16_t)(part * m->trainers);
		gw_adjacency_list(a, row, &from, &to);
		owned[part] += to - from;
		for (uint64_t i = from; i < to; i++) {
			uint16_t piece = m->src_piece[gw_load_id(a->indices, a->index_bytes, i)];
			cut += (uint16_t)(piece - first) >= m->trainers;
		}
	}
	m->cut[(size_t)thread * CUT_STRIDE] += cut;
	return GW_OK;
}

static gw_status quality_count_edges(const struct gw_plan *plan, const struct gw_part *part,
				     const struct gw_assignment *assignment, struct gw_plan_quality *out)
{
	const struct gw_graph_meta *meta = gw_part_meta(part);
	unsigned threads = plan->threads ? plan->threads : gw_processors();
	struct measure m = {.trainers = plan->trainers, .parts = plan->parts};
	m.cut = gw_calloc((uint64_t)threads * CUT_STRIDE, sizeof(*m.cut));
	m.owned = gw_calloc((uint64_t)threads * plan->parts, sizeof(*m.owned));
	gw_status status = m.cut && m.owned ? GW_OK : GW_NO_MEMORY;
	for (uint32_t e = 0; status == GW_OK && e < meta->num_etypes; e++) {
		m.adjacency = gw_part_adjacency(part, e);
		m.src_piece = assignment->piece[meta->etypes[e].src];
		m.dst_piece = assignment->piece[meta->etypes[e].dst];
		out->edges += m.adjacency->edges;
		status = gw_parallel_for(threads, m.adjacency->rows, ROWS_GRAIN, count_rows, &m);
	}
	for (unsigned t = 0; status == GW_OK && t < threads; t++) {
		out->edges_cut += m.cut[(size_t)t * CUT_STRIDE];
		for (uint32_t p = 0; p < plan->parts; p++)
			out->part_edges[p] += m.owned[(uint64_t)t * plan->parts + p];
	}
	gw_free(m.cut);
	gw_free(m.owned);
	return status;
}

static void count_nodes(const struct gw_plan *plan, const struct gw_part *part, const struct gw_assignment *assignment,
			const struct gw_plan_classes *train, struct gw_plan_quality *out)
{
	const struct gw_graph_meta *meta = gw_part_meta(part);
	uint64_t *all = out->nodes + (uint64_t)meta->num_ntypes * plan->parts;
	for (uint32_t t = 0; t < meta->num_ntypes; t++) {
		uint64_t *nodes = out->nodes + (uint64_t)t * plan->parts;
		for (uint64_t v = 0; v < meta->ntypes[t].count; v++) {
			uint32_t p = assignment->piece[t][v] / plan->trainers;
			nodes[p]++;
			if (out->train)
				out->train[p] += gw_plan_number(&train->numbers[t], v);
		}
		for (uint32_t p = 0; p < plan->parts; p++)
			all[p] += nodes[p];
	}
}

gw_status gw_plan_quality_measure(const struct gw_plan *plan, const struct gw_part *part,
				  const struct gw_assignment *assignment, struct gw_plan_quality *out)
{
	struct gw_plan asks = *plan;
	struct gw_plan_classes train = {0};
	asks.numbers = NULL;
	asks.balance_train = true; /* training nodes are counted whenever a mask exists, also without the option */
	*out = (struct gw_plan_quality){.parts = plan->parts, .num_ntypes = gw_part_meta(part)->num_ntypes};
	gw_status status = gw_plan_classes_make(&asks, part, &train);
	if (status != GW_OK && status != GW_NOT_FOUND)
		return status;
	out->nodes = gw_calloc((out->num_ntypes + 1ull) * plan->parts, sizeof(*out->nodes));
	out->part_edges = gw_calloc(plan->parts, sizeof(*out->part_edges));
	out->train = status == GW_OK ? gw_calloc(plan->parts, sizeof(*out->train)) : NULL;
	if (!out->nodes || !out->part_edges || (status == GW_OK && !out->train)) {
		status = GW_NO_MEMORY;
	} else {
		count_nodes(plan, part, assignment, &train, out);
		status = quality_count_edges(plan, part, assignment, out);
	}
	gw_plan_classes_free(&train);
	if (status != GW_OK)
		gw_plan_quality_free(out);
	return status;
}

void gw_plan_quality_free(struct gw_plan_quality *quality)
{
	gw_free(quality->nodes);
	gw_free(quality->part_edges);
	gw_free(quality->train);
	*quality = (struct gw_plan_quality){0};
}
