/* Checks batches of bench sample, and records what they touch.
 *
 *   batch -> rows: edges of the list, counted, in order -> draws by weight repeated -> trace -> replayed: the same ids
 *
 * Fails if a batch is not a sample of the graph, if the draws differ from the law, and when out of memory.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/sample_bed.h"
#include "core/memory/alloc.h"
#include "core/numbers/rng.h"

static gw_status no_sample(const char *of, uint64_t batch)
{
	return gw_fail(GW_FORMAT, "%s batch %llu is not a sample of the graph", of, (unsigned long long)batch);
}

/* How many picks a list has. All weights are positive. */
static uint64_t legal_count(const struct sample_bed *bed, uint64_t degree, uint64_t fanout)
{
	if (bed->kind == SAMPLE_BY_WEIGHT_REPLACE)
		return degree ? fanout : 0;
	return degree < fanout ? degree : fanout;
}

/* Whether every edge of a hop belongs to its destination, has the right source number, and occurs once unless it may be
 * drawn again; and whether each destination has as many edges as it must have. */
static bool edges_are_legal(const struct sample_bed *bed, const struct gw_block_edges *edges, const int64_t *nodes,
			    uint64_t fanout)
{
	const struct sample_graph *graph = &bed->graph;
	const int32_t *sources = edges->indices;
	uint64_t apart = bed->kind == SAMPLE_BY_WEIGHT_REPLACE ? 0 : 1;
	for (uint64_t row = 0; row < edges->dst_count; row++) {
		uint64_t begin = graph->indptr[nodes[row]], end = graph->indptr[nodes[row] + 1];
		uint64_t first = (uint64_t)edges->indptr[row], last = (uint64_t)edges->indptr[row + 1];
		if (last - first != legal_count(bed, end - begin, fanout))
			return false;
		for (uint64_t e = first; e < last; e++) {
			uint64_t edge = (uint64_t)edges->edge_ids[e];
			if (edge < begin || edge >= end ||
			    (e > first && edge < (uint64_t)edges->edge_ids[e - 1] + apart) ||
			    nodes[sources[e]] != graph->indices[edge])
				return false;
		}
	}
	return true;
}

static gw_status check_batch(struct sample_worker *worker, uint64_t batch, uint8_t *seen)
{
	const struct sample_bed *bed = worker->bed;
	gw_status status = sample_one_batch(worker, batch, false);
	if (status != GW_OK)
		return status;
	uint64_t count, rows_count, dst_count = 0;
	const int64_t *nodes = gw_blocks_nodes(worker->blocks, 0, &count), *seeds = sample_seeds_of(worker, batch);
	const uint32_t *rows = gw_blocks_seed_rows(worker->blocks, &rows_count);
	bool legal = rows_count == bed->seeds;
	for (uint64_t i = 0; i < rows_count && legal; i++)
		legal = nodes[rows[i]] == seeds[i];
	for (uint32_t hop = 0; hop < bed->hops && legal; hop++) {
		const struct gw_block *block = gw_blocks_hop(worker->blocks, hop);
		legal = block->edges[0].dst_count >= dst_count && block->src_counts[0] <= count &&
			edges_are_legal(bed, &block->edges[0], nodes, (uint64_t)bed->fanouts[hop]);
		dst_count = block->src_counts[0];
	}
	legal = legal && dst_count == count;
	memset(seen, 0, bed->graph.nodes);
	for (uint64_t i = 0; i < count && legal; i++)
		legal = seen[nodes[i]]++ == 0;
	return legal ? GW_OK : no_sample("", batch);
}

static gw_status check_bare_loop(struct sample_worker *worker, uint64_t batch)
{
	const struct sample_bed *bed = worker->bed;
	struct ceiling *c = &worker->ceiling;
	ceiling_batch(c, sample_key_of(worker, batch), sample_seeds_of(worker, batch), (uint32_t)bed->seeds,
		      bed->kind == SAMPLE_BY_WEIGHT_REPLACE);
	for (uint64_t e = 0; e < c->last_edges; e++) {
		if (c->source[e] >= c->node_count || c->nodes[c->source[e]] != bed->graph.indices[c->edge_id[e]])
			return no_sample("the bare loop's", batch);
	}
	return GW_OK;
}

/* ---- draws by weight, from their law ---- */

/* The draws of one list, and the positions that they give. */
struct law_row {
	uint32_t columns[REPLAY_DRAWS_MAX], draws;
	uint32_t picks[SAMPLE_FANOUT_MAX], count; /* ascending */
};

static void law_add(struct law_row *row, uint32_t position, bool replace)
{
	uint32_t at = row->count;
	while (at && row->picks[at - 1] > position)
		at--;
	if (!replace && at && row->picks[at - 1] == position)
		return;
	memmove(&row->picks[at + 1], &row->picks[at], (row->count - at) * sizeof(row->picks[0]));
	row->picks[at] = position;
	row->count++;
}

/* Draw d: words 2d and 2d + 1 of (key, node), times the degree. */
static void law_draw(const struct sample_graph *graph, uint64_t key, uint64_t node, uint32_t fanout, bool replace,
		     struct law_row *row)
{
	uint64_t begin = graph->indptr[node], degree = graph->indptr[node + 1] - begin;
	uint32_t draws_max = replace ? fanout : 4 * fanout + 16;
	row->draws = row->count = 0;
	while (row->count < fanout && row->draws < draws_max) {
		struct gw_words words = gw_philox(key, node, row->draws / 2);
		const uint32_t *word = &words.word[row->draws % 2 ? 2 : 0];
		unsigned __int128 product = (unsigned __int128)((uint64_t)word[0] << 32 | word[1]) * degree;
		uint32_t column = (uint32_t)(product >> 64), u = (uint32_t)((uint64_t)product >> 32);
		const uint32_t *entry = graph->table + 2 * (begin + column);
		row->columns[row->draws++] = column;
		law_add(row, u < entry[0] ? column : entry[1], replace);
	}
}

/* ---- the trace ---- */

static gw_status record_row(struct sample_worker *worker, uint64_t key, const int64_t *edge_ids, uint32_t count,
			    uint64_t node, uint32_t fanout)
{
	const struct sample_graph *graph = &worker->bed->graph;
	bool replace = worker->bed->kind == SAMPLE_BY_WEIGHT_REPLACE;
	uint64_t begin = graph->indptr[node], degree = graph->indptr[node + 1] - begin;
	uint32_t picks[SAMPLE_FANOUT_MAX];
	struct law_row law = {.draws = 0};
	for (uint32_t j = 0; j < count; j++)
		picks[j] = (uint32_t)((uint64_t)edge_ids[j] - begin);
	struct replay_row row = {.picks = picks, .count = count, .columns = law.columns};
	if (worker->bed->kind != SAMPLE_UNIFORM && !replace && degree <= fanout && degree) {
		row.draws = REPLAY_WEIGHTS;
	} else if (worker->bed->kind != SAMPLE_UNIFORM && degree) {
		law_draw(graph, key, node, fanout, replace, &law);
		row.draws = law.draws;
		/* Fewer picks than the fanout: the rest are exact draws. */
		if (law.count == fanout && (count != fanout || memcmp(law.picks, picks, count * sizeof(picks[0])) != 0))
			return gw_fail(GW_FORMAT, "the draws of node %llu differ from their law",
				       (unsigned long long)node);
	}
	return replay_add_row(&worker->replay, &row);
}

static gw_status record_batch(struct sample_worker *worker, uint64_t batch, uint64_t *sum)
{
	const struct sample_bed *bed = worker->bed;
	gw_status status = sample_one_batch(worker, batch, false);
	uint64_t count;
	const int64_t *nodes = status == GW_OK ? gw_blocks_nodes(worker->blocks, 0, &count) : NULL;
	for (uint32_t hop = 0; hop < bed->hops && status == GW_OK; hop++) {
		const struct gw_block_edges *edges = &gw_blocks_hop(worker->blocks, hop)->edges[0];
		uint64_t key = gw_draw_key(1, sample_key_of(worker, batch), GW_DRAW_NEIGHBOURS, hop, 0);
		status = replay_add_hop(&worker->replay, nodes, edges->dst_count, hop == 0);
		for (uint64_t row = 0; row < edges->dst_count && status == GW_OK; row++)
			status = record_row(worker, key, edges->edge_ids + edges->indptr[row],
					    (uint32_t)(edges->indptr[row + 1] - edges->indptr[row]),
					    (uint64_t)nodes[row], (uint32_t)bed->fanouts[hop]);
		for (uint64_t e = 0; e < edges->edge_count && status == GW_OK; e++)
			*sum += (uint64_t)nodes[((const int32_t *)edges->indices)[e]];
	}
	return status;
}

/* Records all batches, and replays each: it must meet the ids that the sampler met, as often. */
static gw_status record_batches(struct sample_worker *worker)
{
	const struct sample_bed *bed = worker->bed;
	replay_clear(&worker->replay, bed->kind != SAMPLE_UNIFORM);
	for (uint64_t b = bed->first; b < bed->first + bed->count; b++) {
		uint64_t sampled = 0, replayed = 0;
		gw_status status = record_batch(worker, b, &sampled);
		if (status != GW_OK)
			return status;
		uint64_t edges = replay_batch(&worker->replay, b, &bed->pace, &replayed);
		if (edges != gw_blocks_edge_count(worker->blocks) || replayed != sampled)
			return gw_fail(GW_FORMAT, "the replay of batch %llu differs from the batch",
				       (unsigned long long)b);
		worker->edges += edges;
	}
	return GW_OK;
}

static gw_status bench_check_batches(struct sample_worker *worker)
{
	const struct sample_bed *bed = worker->bed;
	uint8_t *seen = gw_malloc(bed->graph.nodes);
	gw_status status = seen ? GW_OK : GW_NO_MEMORY;
	for (uint64_t b = 0; b < SAMPLE_CHECKED && status == GW_OK; b++) {
		status = check_batch(worker, b, seen);
		if (status == GW_OK && bed->kind != SAMPLE_BY_WEIGHT)
			status = check_bare_loop(worker, b);
	}
	gw_free(seen);
	return status;
}

gw_status sample_check_and_record(struct sample_bed *bed, uint32_t threads)
{
	double figure;
	gw_status status = sample_bed_run(bed, threads, bench_check_batches, &figure);
	return status != GW_OK ? status : sample_bed_run(bed, threads, record_batches, &figure);
}
