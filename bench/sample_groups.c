/* Measures disjoint batches in bench sample.
 *
 *   batches checked: trees that share no node -> their edges and groups recorded
 *   -> a bare hash table of the same pairs, plain batches, disjoint ones and those by time in turn -> report
 *
 * The ceiling is the hash table: it reads the neighbour of each edge, and numbers the pair (group, node), as every
 * sampler of disjoint batches must. The second figure is a batch of the same seeds whose trees share their nodes. The
 * lists get ascending random times, and seeds times in the later half. The ceiling of uniform draws by time is disjoint
 * batches; that of the last edges is uniform draws by time. Fails if a batch is not a sample of the graph, if an edge
 * is later than its seed, and when out of memory.
 */
#include "bench/sample_groups.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/memory/vec.h"
#include "core/numbers/rng.h"
#include "core/system/clock.h"

#define BATCHES 16
#define CHECKED 3
#define AHEAD   16ull
#define EMPTY   UINT64_MAX
#define TIMES   (1ull << 40)

#define FENCE_STEP (1ull << GW_FENCE_SHIFT)

enum groups_way { BY_TABLE, PLAIN, DISJOINT, BY_TIME, LAST, WAYS };

struct sample_groups {
	const struct sample_graph *graph;
	struct gw_blocks *blocks;
	struct gw_relabel *relabel;
	struct gw_blocks_spec spec;
	uint64_t seed_count;
	int64_t *seeds;   /* [BATCHES][seed_count] */
	uint32_t *groups; /* [seed_count] */
	/* Times of the edges, their fence, and what the groups see. */
	int64_t *times, *fence, *from, *until;
	struct gw_columns columns;
	/* The edges of the batches, and the bare table. */
	struct gw_vec picks[BATCHES]; /* struct pick */
	uint64_t pick_counts[BATCHES], node_counts[BATCHES];
	struct gw_vec table; /* struct slot */
	uint64_t slots, sum;
};

struct pick {
	uint32_t edge, group;
};

struct slot {
	uint64_t pair;
	uint32_t number;
};

/* Each list's times ascend: as many random steps as it has edges, over all of time. */
static void make_times(struct sample_groups *g)
{
	const uint32_t *indptr = g->graph->indptr;
	for (uint64_t node = 0; node < g->graph->nodes; node++) {
		uint64_t n = indptr[node + 1] - indptr[node];
		for (uint64_t i = 0; i < n; i++)
			g->times[indptr[node] + i] =
				(int64_t)(TIMES / n * i + gw_mix64(indptr[node] + i) % (TIMES / n));
	}
	for (uint64_t e = 0; e < g->graph->edges; e += FENCE_STEP)
		g->fence[e / FENCE_STEP] = g->times[e];
	g->columns.at[GW_COLUMN_TIME] = g->times;
	g->columns.at[GW_COLUMN_FENCE] = g->fence;
}

static gw_status groups_begin(struct sample_groups *g)
{
	g->seeds = gw_malloc(BATCHES * g->seed_count * sizeof(*g->seeds));
	g->groups = gw_malloc(g->seed_count * sizeof(*g->groups));
	g->from = gw_malloc(g->seed_count * sizeof(*g->from));
	g->until = gw_malloc(g->seed_count * sizeof(*g->until));
	g->times = gw_malloc((g->graph->edges + 1) * sizeof(*g->times));
	g->fence = gw_malloc((g->graph->edges / FENCE_STEP + 1) * sizeof(*g->fence));
	if (!g->seeds || !g->groups || !g->from || !g->until || !g->times || !g->fence)
		return GW_NO_MEMORY;
	for (uint64_t i = 0; i < BATCHES * g->seed_count; i++)
		g->seeds[i] = (int64_t)(gw_mix64(i) % g->graph->nodes);
	for (uint64_t i = 0; i < g->seed_count; i++) {
		g->groups[i] = (uint32_t)i;
		g->from[i] = INT64_MIN;
		g->until[i] = (int64_t)(TIMES / 2 + gw_mix64(i) % (TIMES / 2));
	}
	make_times(g);
	gw_status status = gw_blocks_create(&g->graph->meta, &g->blocks);
	return status != GW_OK ? status : gw_relabel_create(&g->graph->meta, UINT64_MAX, &g->relabel);
}

static void groups_end(struct sample_groups *g)
{
	gw_blocks_destroy(g->blocks);
	gw_relabel_destroy(g->relabel);
	gw_free(g->seeds);
	gw_free(g->groups);
	gw_free(g->from);
	gw_free(g->until);
	gw_free(g->times);
	gw_free(g->fence);
	gw_vec_free(&g->table);
	for (uint32_t i = 0; i < BATCHES; i++)
		gw_vec_free(&g->picks[i]);
}

static gw_status sample_batch(struct sample_groups *g, uint64_t batch, enum groups_way way)
{
	const struct gw_adjacency *parts[1] = {&g->graph->adjacency};
	const struct gw_columns *columns[1] = {&g->columns};
	const struct gw_edge_sampling by_time = {
		.kind = way == LAST ? &gw_sample_last : &gw_sample_temporal,
		.forms = {[GW_COLUMN_TIME] = {8, GW_INT64}, [GW_COLUMN_FENCE] = {8, GW_INT64}},
	};
	struct gw_blocks_spec spec = g->spec;
	if (way >= BY_TIME) {
		spec.sampling = &by_time;
		spec.groups[0] =
			(struct gw_groups){.count = (uint32_t)g->seed_count, .from = g->from, .until = g->until};
	}
	const struct gw_seeds list = {.ids = g->seeds + batch * g->seed_count, .count = g->seed_count};
	gw_status status = gw_blocks_begin_lists(g->blocks, g->relabel, &spec, 1, batch, &list, 1,
						 way == PLAIN ? NULL : g->groups);
	return status != GW_OK ? status : gw_blocks_run_memory(g->blocks, parts, columns);
}

/* Whether each edge of the hop is in its destination's list, and in its group. */
static bool hop_is_legal(const struct sample_groups *g, const struct gw_block_edges *edges, int32_t fanout)
{
	uint64_t count;
	const int64_t *nodes = gw_blocks_nodes(g->blocks, 0, &count);
	const uint32_t *groups = gw_blocks_node_groups(g->blocks, 0);
	for (uint64_t row = 0; row < edges->dst_count; row++) {
		uint64_t begin = g->graph->indptr[nodes[row]], end = g->graph->indptr[nodes[row] + 1];
		uint64_t most = end - begin < (uint64_t)fanout ? end - begin : (uint64_t)fanout;
		if ((uint64_t)(edges->indptr[row + 1] - edges->indptr[row]) != most)
			return false;
		for (int64_t e = edges->indptr[row]; e < edges->indptr[row + 1]; e++) {
			int32_t src = ((const int32_t *)edges->indices)[e];
			uint64_t edge = (uint64_t)edges->edge_ids[e];
			if (edge < begin || edge >= end || nodes[src] != g->graph->indices[edge] ||
			    groups[src] != groups[row])
				return false;
		}
	}
	return true;
}

static gw_status record_picks(struct sample_groups *g, uint32_t batch)
{
	uint64_t at = 0;
	const uint32_t *groups = gw_blocks_node_groups(g->blocks, 0);
	if (gw_vec_reserve(&g->picks[batch], (gw_blocks_edge_count(g->blocks) + 2 * AHEAD) * sizeof(struct pick)) !=
	    GW_OK)
		return GW_NO_MEMORY;
	struct pick *picks = g->picks[batch].data;
	for (uint32_t h = 0; h < g->spec.hops; h++) {
		const struct gw_block_edges *edges = gw_blocks_hop(g->blocks, h)->edges;
		for (uint64_t e = 0; e < edges->edge_count; e++)
			picks[at++] = (struct pick){.edge = (uint32_t)edges->edge_ids[e],
						    .group = groups[((const int32_t *)edges->indices)[e]]};
	}
	memset(picks + at, 0, 2 * AHEAD * sizeof(*picks));
	g->pick_counts[batch] = at;
	(void)gw_blocks_nodes(g->blocks, 0, &g->node_counts[batch]);
	while (g->slots < 2 * g->node_counts[batch])
		g->slots = g->slots ? 2 * g->slots : 1024;
	return GW_OK;
}

/* No edge is later than its seed; every destination has as many edges as its group may see. */
static bool hop_is_timely(const struct sample_groups *g, const struct gw_block_edges *edges, int32_t fanout, bool last)
{
	uint64_t count;
	const int64_t *nodes = gw_blocks_nodes(g->blocks, 0, &count);
	const uint32_t *groups = gw_blocks_node_groups(g->blocks, 0);
	for (uint64_t row = 0; row < edges->dst_count; row++) {
		uint64_t begin = g->graph->indptr[nodes[row]], end = begin;
		while (end < g->graph->indptr[nodes[row] + 1] && g->times[end] <= g->until[groups[row]])
			end++;
		uint64_t n = end - begin < (uint64_t)fanout ? end - begin : (uint64_t)fanout;
		const int64_t *picks = edges->edge_ids + edges->indptr[row];
		if ((uint64_t)(edges->indptr[row + 1] - edges->indptr[row]) != n)
			return false;
		for (uint64_t i = 0; i < n; i++) {
			if ((uint64_t)picks[i] < begin || (uint64_t)picks[i] >= end ||
			    (last && (uint64_t)picks[i] != end - n + i))
				return false;
		}
	}
	return true;
}

static gw_status check_times(struct sample_groups *g)
{
	for (uint32_t batch = 0; batch < CHECKED; batch++) {
		for (enum groups_way way = BY_TIME; way <= LAST; way++) {
			gw_status status = sample_batch(g, batch, way);
			for (uint32_t h = 0; h < g->spec.hops && status == GW_OK; h++) {
				if (!hop_is_timely(g, gw_blocks_hop(g->blocks, h)->edges, g->spec.fanouts[h],
						   way == LAST))
					status = gw_fail(GW_FORMAT, "batch %u by time is not a sample of the graph",
							 batch);
			}
			if (status != GW_OK)
				return status;
		}
	}
	return GW_OK;
}

static gw_status check_and_record(struct sample_groups *g)
{
	for (uint32_t batch = 0; batch < BATCHES; batch++) {
		gw_status status = sample_batch(g, batch, DISJOINT);
		if (status != GW_OK)
			return status;
		for (uint32_t h = 0; h < g->spec.hops; h++) {
			if (!hop_is_legal(g, gw_blocks_hop(g->blocks, h)->edges, g->spec.fanouts[h]))
				return gw_fail(GW_FORMAT, "disjoint batch %u is not a sample of the graph", batch);
		}
		status = record_picks(g, batch);
		if (status != GW_OK)
			return status;
	}
	return gw_vec_reserve(&g->table, g->slots * sizeof(struct slot));
}

static uint64_t slot_of(uint64_t pair, uint64_t mask)
{
	unsigned __int128 product = (unsigned __int128)pair * 0x9e3779b97f4a7c15ull;
	return ((uint64_t)product ^ (uint64_t)(product >> 64)) & mask;
}

static uint32_t number_pair(struct slot *table, uint64_t mask, uint64_t pair, uint64_t *count)
{
	uint64_t at = slot_of(pair, mask);
	while (table[at].pair != EMPTY && table[at].pair != pair)
		at = (at + 1) & mask;
	if (table[at].pair == EMPTY)
		table[at] = (struct slot){.pair = pair, .number = (uint32_t)(*count)++};
	return table[at].number;
}

/* Numbers the seeds and the neighbours of a batch, and returns how many differ. */
static uint64_t number_batch(struct sample_groups *g, uint32_t batch)
{
	struct slot *table = g->table.data;
	const struct pick *picks = g->picks[batch].data;
	const uint32_t *indices = g->graph->indices;
	const uint64_t mask = g->slots - 1, nodes = g->graph->nodes, n = g->pick_counts[batch];
	uint64_t ring[AHEAD] = {0}, count = 0, sum = 0;
	memset(table, 0xff, g->slots * sizeof(*table));
	for (uint64_t i = 0; i < g->seed_count; i++)
		number_pair(table, mask, i * nodes + (uint64_t)g->seeds[batch * g->seed_count + i], &count);
	for (uint64_t i = 0; i < n + AHEAD; i++) {
		if (i >= AHEAD)
			sum += number_pair(table, mask, ring[i % AHEAD], &count);
		__builtin_prefetch(&indices[picks[i + AHEAD].edge]);
		ring[i % AHEAD] = picks[i].group * nodes + indices[picks[i].edge];
		__builtin_prefetch(&table[slot_of(ring[i % AHEAD], mask)], 1);
	}
	g->sum += sum;
	return count;
}

static gw_status run_way(struct sample_groups *g, enum groups_way way, double *figure, double *each)
{
	uint64_t started = gw_now_ns(), edges = 0;
	for (uint32_t batch = 0; batch < BATCHES; batch++) {
		if (way == BY_TABLE) {
			edges += g->pick_counts[batch];
			if (number_batch(g, batch) != g->node_counts[batch])
				return gw_fail(GW_FORMAT, "disjoint batch %u has a node twice", batch);
			continue;
		}
		gw_status status = sample_batch(g, batch, way);
		if (status != GW_OK)
			return status;
		edges += gw_blocks_edge_count(g->blocks);
	}
	*figure = (double)edges / (double)(gw_now_ns() - started) * 1e3;
	*each = (double)edges / BATCHES;
	return GW_OK;
}

static void report_groups(struct gw_bench *bench, const struct sample_groups *g, const struct gw_bench_series *series)
{
	double plain = gw_bench_series_median(&series[PLAIN]), value = gw_bench_series_median(&series[DISJOINT]);
	uint64_t picks = 0, nodes = 0;
	char title[120], note[250];
	for (uint32_t i = 0; i < BATCHES; i++) {
		picks += g->pick_counts[i];
		nodes += g->node_counts[i];
	}
	snprintf(title, sizeof(title), "%s, disjoint, 1 thread", g->graph->title);
	snprintf(
		note, sizeof(note),
		"%llu seeds, %.0f edges and %.0f nodes a batch; trees that share nodes: %.4g M edges/s, ratio %.3f; the "
		"ceiling is a bare hash table of groups and nodes, neighbours read",
		(unsigned long long)g->seed_count, (double)picks / BATCHES, (double)nodes / BATCHES, plain,
		value / plain);
	const struct gw_bench_result result = {
		.title = title,
		.unit = "M edges/s",
		.values = &series[DISJOINT],
		.ceilings = &series[BY_TABLE],
		.verified = true,
		.note = note,
		.fields = {{"threads", .number = 1},
			   {"kind", .text = "disjoint"},
			   {"seeds", .number = (double)g->seed_count},
			   {"plain", .number = plain},
			   {"plain_ratio", .number = value / plain}},
	};
	gw_bench_report(bench, &result);
}

static void report_times(struct gw_bench *bench, const struct sample_groups *g, const struct gw_bench_series *series,
			 enum groups_way way, double each)
{
	const char *what = way == LAST ? "last by time" : "uniform by time";
	char title[120], note[120];
	snprintf(title, sizeof(title), "%s, %s, 1 thread", g->graph->title, what);
	snprintf(note, sizeof(note), "%.0f edges a batch; the ceiling is %s", each,
		 way == LAST ? "uniform draws by time" : "disjoint batches");
	const struct gw_bench_result result = {
		.title = title,
		.unit = "M edges/s",
		.values = &series[way],
		.ceilings = &series[way - 1],
		.verified = true,
		.note = note,
		.fields = {{"threads", .number = 1},
			   {"kind", .text = what},
			   {"seeds", .number = (double)g->seed_count}},
	};
	gw_bench_report(bench, &result);
}

gw_status sample_groups_measure(struct gw_bench *bench, const struct sample_graph *graph, uint64_t seeds,
				const int32_t *fanouts, uint32_t hops)
{
	static struct gw_bench_series series[WAYS]; /* 8 KB each */
	double each[WAYS] = {0};                    /* edges of a batch */
	struct sample_groups g = {.graph = graph, .seed_count = seeds, .spec = {.hops = hops, .fanouts = fanouts}};
	memset(series, 0, sizeof(series));
	gw_status status = groups_begin(&g);
	if (status == GW_OK)
		status = check_and_record(&g);
	if (status == GW_OK)
		status = check_times(&g);
	for (unsigned i = 0; i < bench->repeats && status == GW_OK; i++) {
		for (unsigned w = 0; w < WAYS && status == GW_OK; w++) {
			double figure;
			status = run_way(&g, (enum groups_way)((i + w) % WAYS), &figure, &each[(i + w) % WAYS]);
			if (status == GW_OK)
				gw_bench_series_add(&series[(i + w) % WAYS], figure);
		}
	}
	if (status == GW_OK) {
		report_groups(bench, &g, series);
		report_times(bench, &g, series, BY_TIME, each[BY_TIME]);
		report_times(bench, &g, series, LAST, each[LAST]);
	}
	groups_end(&g);
	return status;
}
