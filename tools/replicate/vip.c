/* How likely a mini-batch has a node: the vertex inclusion probability of SALIENT++ (Kaler et al., MLSys 2023), for the
 * trainers of one part.
 *
 *   a seed is in a batch with p = batch size / seeds of the part, at most 1
 *   a hop with fanout f takes each edge of a list of d edges with t = min(1, f / d); fanout -1: t = 1
 *   after a hop, a node is in the batch unless it was not, and no list of a node in the batch took an edge from it:
 *     p(u) <- 1 - (1 - p(u)) * product over edges u -> v of (1 - t(v) p(v))
 *
 * Each hop draws for all nodes of the batch so far, as loaders do. The draws are taken as independent, which they are
 * not: a list gives at most f edges. Only the order of the nodes counts.
 *
 * The product is a sum of logarithms in fixed point, so that it does not depend on the order of the edges, nor on the
 * number of threads. A sum beyond MOST is a probability of 1.
 */
#include <math.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/system/parallel.h"
#include "tools/replicate/replicate.h"

#define UNIT  (1ull << 44)
#define MOST  (40 * UNIT) /* exp(-40) is less than a double's last bit of 1 */
#define GRAIN 8192u       /* lists of a chunk */

struct vip {
	const struct gw_hot_graph *graph;
	const struct gw_adjacency *lists;
	const double *dst; /* the probabilities of the part's destinations */
	uint64_t *sums;    /* of the sources, by id */
	int32_t fanout;
};

static uint64_t term_of(double taken)
{
	double log = -log1p(-taken);
	return log < (double)MOST / (double)UNIT ? (uint64_t)llround(log * (double)UNIT) : MOST;
}

static gw_status add_lists(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct vip *vip = context;
	const bool alone = vip->graph->threads == 1;
	(void)thread;
	for (uint64_t row = begin; row < end; row++) {
		uint64_t from, to;
		if (!(vip->dst[row] > 0))
			continue;
		gw_adjacency_list(vip->lists, row, &from, &to);
		const double degree = (double)(to - from);
		const bool all = vip->fanout < 0 || vip->fanout >= degree;
		const uint64_t term = term_of(all ? vip->dst[row] : vip->dst[row] * vip->fanout / degree);
		for (uint64_t i = from; i < to; i++) {
			uint64_t *sum = &vip->sums[gw_load_id(vip->lists->indices, vip->lists->index_bytes, i)];
			if (__atomic_load_n(sum, __ATOMIC_RELAXED) >= MOST)
				continue;
			if (alone)
				*sum += term;
			else
				__atomic_fetch_add(sum, term, __ATOMIC_RELAXED);
		}
	}
	return GW_OK;
}

static gw_status hop(const struct gw_hot_graph *graph, uint32_t number, const double *hot, uint64_t *sums)
{
	const struct gw_graph_meta *meta = graph->meta;
	gw_status status = GW_OK;
	for (uint32_t e = 0; e < meta->num_etypes && status == GW_OK; e++) {
		const struct gw_edge_type *type = &meta->etypes[e];
		struct vip vip = {.graph = graph,
				  .sums = sums + graph->first[type->src],
				  .fanout = graph->fanouts[number * meta->num_etypes + e]};
		for (uint32_t p = 0; p < meta->num_parts && vip.fanout != 0 && status == GW_OK; p++) {
			vip.lists = gw_part_adjacency(graph->parts[p], e);
			vip.dst = hot + graph->first[type->dst] + vip.lists->dst_start;
			status = gw_parallel_for(graph->threads, vip.lists->rows, GRAIN, add_lists, &vip);
		}
	}
	return status;
}

gw_status gw_hot_vip(const struct gw_hot_graph *graph, uint32_t part, double *hot)
{
	const uint64_t nodes = gw_hot_nodes(graph);
	const uint64_t *starts = graph->meta->ntypes[graph->ntype].starts;
	uint64_t *sums = gw_malloc(nodes * sizeof(*sums) + 1);
	gw_status status = sums ? GW_OK : GW_NO_MEMORY;
	memset(hot, 0, nodes * sizeof(*hot));
	const double p =
		graph->batch_size < graph->seeds[part] ? (double)graph->batch_size / (double)graph->seeds[part] : 1;
	for (uint64_t row = 0; row < starts[part + 1] - starts[part]; row++)
		hot[graph->first[graph->ntype] + starts[part] + row] = gw_hot_is_seed(graph, part, row) ? p : 0;
	for (uint32_t h = 0; h < graph->hops && status == GW_OK; h++) {
		memset(sums, 0, nodes * sizeof(*sums));
		status = hop(graph, h, hot, sums);
		for (uint64_t i = 0; i < nodes && status == GW_OK; i++) {
			const uint64_t sum = sums[i] < MOST ? sums[i] : MOST;
			if (sum > 0)
				hot[i] = 1 - (1 - hot[i]) * exp(-(double)sum / (double)UNIT);
		}
	}
	gw_free(sums);
	return status;
}
