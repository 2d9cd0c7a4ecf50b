/* Records what batches touch, and touches it again.
 *
 *   runs of lists: offsets read, prefetched some lists ahead -> [alias entries prefetched -> read] -> neighbours
 *   prefetched -> read, map slots prefetched -> read and written, some neighbours later
 *
 * The reads are those that no sampler of these lists can avoid, and they depend on each other as a sampler's do:
 *   - the address of a neighbour, and of an alias entry, is its list's offset, read from memory, plus a recorded
 *     position in the list; so it is known only when the offset has arrived;
 *   - with alias entries, the neighbours' addresses also depend on the entries of their list;
 *   - the slot of a neighbour depends on its id, read from memory;
 *   - a hop begins after the last slot of the hop before.
 * What the sampler computes and writes is recorded instead: the destinations of a hop, and the positions. They are read
 * one after the other, which the processor prefetches by itself. Nothing is drawn, sorted, compared or stored, and no
 * block is built. A slot is that of the sampler's own map, in which it keeps its value: the same lines become dirty. A
 * hash map's probes beyond the first slot, and its clearing, are left out.
 */
#include "bench/sample_replay.h"

#include "core/memory/alloc.h"

#define INLINE    static inline __attribute__((always_inline))
#define RUN_PICKS ((size_t)REPLAY_RUN_MAX * SAMPLE_FANOUT_MAX)
#define LINE      64

gw_status replay_begin(struct replay *replay, const struct sample_graph *graph, const struct gw_relabel *relabel,
		       uint32_t hops)
{
	*replay = (struct replay){.graph = graph, .relabel = relabel, .hops = hops};
	replay->elements = gw_malloc(RUN_PICKS * sizeof(uint32_t));
	replay->ids = gw_malloc(RUN_PICKS * sizeof(uint32_t));
	return replay->elements && replay->ids ? GW_OK : GW_NO_MEMORY;
}

void replay_clear(struct replay *replay, bool weighted)
{
	replay->weighted = weighted;
	replay->hop_count = replay->node_count = replay->row_count = 0;
	replay->pick_count = replay->column_count = 0;
}

void replay_end(struct replay *replay)
{
	gw_vec_free(&replay->hop);
	gw_vec_free(&replay->nodes);
	gw_vec_free(&replay->counts);
	gw_vec_free(&replay->draws);
	gw_vec_free(&replay->picks);
	gw_vec_free(&replay->columns);
	gw_free(replay->elements);
	gw_free(replay->ids);
	*replay = (struct replay){0};
}

gw_status replay_add_hop(struct replay *replay, const int64_t *nodes, uint64_t rows, bool first)
{
	const struct replay_hop *before = (const struct replay_hop *)replay->hop.data + replay->hop_count - 1;
	uint64_t at = first ? replay->node_count : before->nodes;
	gw_status status = gw_vec_reserve(&replay->hop, (replay->hop_count + 1) * sizeof(struct replay_hop));
	if (status == GW_OK)
		status = gw_vec_reserve(&replay->nodes, (at + rows) * sizeof(uint32_t));
	if (status == GW_OK)
		status = gw_vec_reserve(&replay->counts, replay->row_count + rows);
	if (status == GW_OK)
		status = gw_vec_reserve(&replay->draws, replay->row_count + rows);
	if (status != GW_OK)
		return status;
	for (uint64_t i = replay->node_count - at; i < rows; i++)
		((uint32_t *)replay->nodes.data)[at + i] = (uint32_t)nodes[i];
	replay->node_count = at + rows;
	((struct replay_hop *)replay->hop.data)[replay->hop_count++] = (struct replay_hop){
		.rows = rows,
		.nodes = at,
		.row = replay->row_count,
		.pick = replay->pick_count,
		.column = replay->column_count,
	};
	return GW_OK;
}

gw_status replay_add_row(struct replay *replay, const struct replay_row *row)
{
	struct replay_hop *hop = (struct replay_hop *)replay->hop.data + replay->hop_count - 1;
	uint32_t columns = row->draws == REPLAY_WEIGHTS ? 0 : row->draws;
	gw_status status = gw_vec_reserve(&replay->picks, (replay->pick_count + row->count) * sizeof(uint32_t));
	if (status == GW_OK)
		status = gw_vec_reserve(&replay->columns, (replay->column_count + columns) * sizeof(uint32_t));
	if (status != GW_OK)
		return status;
	for (uint32_t i = 0; i < row->count; i++)
		((uint32_t *)replay->picks.data)[replay->pick_count++] = row->picks[i];
	for (uint32_t i = 0; i < columns; i++)
		((uint32_t *)replay->columns.data)[replay->column_count++] = row->columns[i];
	((uint8_t *)replay->counts.data)[replay->row_count] = (uint8_t)row->count;
	((uint8_t *)replay->draws.data)[replay->row_count++] = (uint8_t)row->draws;
	hop->edges += row->count;
	return GW_OK;
}

/* ---- the replay ---- */

/* The rest of a hop's trace, and the memory that it touches. In local variables: through a pointer to the struct, the
 * compiler would load all of it again after every store. */
struct replay_walk {
	const uint32_t *restrict indptr, *restrict indices, *restrict nodes, *restrict picks, *restrict columns;
	const uint8_t *restrict counts, *restrict draws;
	const uint64_t *restrict table;
	const float *restrict weights;
	uint32_t *restrict elements, *restrict ids;
	uint64_t rows, sum;
};

/* A place is read, and written with what was read. */
INLINE void touch(void *place, uint32_t bytes)
{
	if (bytes == 8)
		*(volatile uint64_t *)place += 0;
	else
		*(volatile uint32_t *)place += 0;
}

INLINE void touch_slot(const struct gw_relabel *relabel, uint32_t id, bool dense)
{
	if (dense) {
		touch(&relabel->dense_map.entries[id], 4);
		return;
	}
	struct gw_hash_slot *slot = &relabel->hash_map.slots[gw_hash_slot_of(&relabel->hash_map, id)];
	touch(&slot->key, 8);
	touch(&slot->number, 4);
}

INLINE void prefetch_slot(const struct gw_relabel *relabel, uint32_t id, bool dense)
{
	if (dense) {
		__builtin_prefetch(&relabel->dense_map.entries[id], 1);
		return;
	}
	gw_hash_map_prefetch(&relabel->hash_map, id);
}

INLINE void prefetch_neighbour(const uint32_t *neighbour, uint32_t level)
{
	if (level == 1)
		__builtin_prefetch(neighbour);
	else
		__builtin_prefetch(neighbour, 0, 2);
}

/* Offsets of lists [at, at + n); neighbours prefetched. Returns the number of neighbours. */
INLINE uint64_t replay_lists(struct replay_walk *w, uint64_t at, uint64_t n, uint32_t ahead, uint32_t level)
{
	uint64_t picks = 0;
	for (uint64_t i = at; i < at + n; i++) {
		if (i + ahead < w->rows)
			__builtin_prefetch(&w->indptr[w->nodes[i + ahead]]);
		uint32_t begin = w->indptr[w->nodes[i]];
		*(const volatile uint32_t *)&w->indptr[w->nodes[i] + 1];
		for (uint32_t j = 0; j < w->counts[i]; j++, picks++) {
			w->elements[picks] = begin + *w->picks++;
			prefetch_neighbour(&w->indices[w->elements[picks]], level);
		}
	}
	return picks;
}

/* The same with what a draw by weight reads before the neighbours. nothing: 0, unknown to the compiler. */
INLINE uint64_t replay_weighted_lists(struct replay_walk *w, uint64_t at, uint64_t n, uint32_t ahead, uint32_t level,
				      uint64_t nothing)
{
	const uint32_t *columns = w->columns;
	uint64_t picks = 0;
	for (uint64_t i = at; i < at + n; i++) {
		if (i + ahead < w->rows)
			__builtin_prefetch(&w->indptr[w->nodes[i + ahead]]);
		uint32_t begin = w->indptr[w->nodes[i]], end = w->indptr[w->nodes[i] + 1];
		for (uint32_t e = begin; w->draws[i] == REPLAY_WEIGHTS && e < end; e += LINE / sizeof(float))
			__builtin_prefetch(&w->weights[e]);
		for (uint32_t j = 0; w->draws[i] != REPLAY_WEIGHTS && j < w->draws[i]; j++)
			__builtin_prefetch(&w->table[begin + *columns++]);
	}
	for (uint64_t i = at; i < at + n; i++) {
		uint32_t begin = w->indptr[w->nodes[i]], end = w->indptr[w->nodes[i] + 1];
		uint64_t entries = 0;
		for (uint32_t e = begin; w->draws[i] == REPLAY_WEIGHTS && e < end; e += LINE / sizeof(float))
			entries |= w->weights[e] > 0;
		for (uint32_t j = 0; w->draws[i] != REPLAY_WEIGHTS && j < w->draws[i]; j++)
			entries |= w->table[begin + *w->columns++];
		begin += (uint32_t)(entries & nothing);
		for (uint32_t j = 0; j < w->counts[i]; j++, picks++) {
			w->elements[picks] = begin + *w->picks++;
			prefetch_neighbour(&w->indices[w->elements[picks]], level);
		}
	}
	return picks;
}

/* Neighbours, and their slots `ahead` neighbours later. */
INLINE void replay_neighbours(struct replay_walk *w, const struct gw_relabel *relabel, uint64_t n, uint64_t ahead,
			      bool dense)
{
	uint64_t slots = 0;
	for (uint64_t i = 0; i < n; i++) {
		uint32_t id = w->indices[w->elements[i]];
		w->ids[i] = id;
		w->sum += id;
		prefetch_slot(relabel, id, dense);
		if (i >= ahead)
			touch_slot(relabel, w->ids[slots++], dense);
	}
	while (slots < n)
		touch_slot(relabel, w->ids[slots++], dense);
}

INLINE void replay_hop(struct replay_walk *walk, const struct gw_relabel *relabel, const struct replay_pace *pace,
		       bool weighted, bool dense, uint32_t level)
{
	static volatile uint64_t zero;
	struct replay_walk w = *walk;
	const uint64_t nothing = weighted ? zero : 0;
	const struct replay_pace p = *pace;
	for (uint64_t at = 0; at < w.rows; at += p.run) {
		uint64_t n = w.rows - at < p.run ? w.rows - at : p.run;
		uint64_t picks = weighted ? replay_weighted_lists(&w, at, n, p.offsets, level, nothing)
					  : replay_lists(&w, at, n, p.offsets, level);
		replay_neighbours(&w, relabel, picks, p.slots, dense);
	}
	walk->sum = w.sum;
}

/* One instance of the loops for each map, draw and level. */
static void replay_one_hop(struct replay_walk *walk, const struct gw_relabel *relabel, const struct replay_pace *pace,
			   bool weighted)
{
#define WITH(of_weights, of_ids, to_level)                                                                             \
	if (weighted == (of_weights) && relabel->dense == (of_ids) && pace->level == (to_level))                       \
	replay_hop(walk, relabel, pace, of_weights, of_ids, to_level)
	WITH(false, false, 1);
	WITH(false, false, 2);
	WITH(false, true, 1);
	WITH(false, true, 2);
	WITH(true, false, 1);
	WITH(true, false, 2);
	WITH(true, true, 1);
	WITH(true, true, 2);
#undef WITH
}

uint64_t replay_batch(const struct replay *replay, uint64_t batch, const struct replay_pace *pace, uint64_t *sum)
{
	const struct replay_hop *hop = (const struct replay_hop *)replay->hop.data + batch * replay->hops;
	const uint32_t *nodes = (const uint32_t *)replay->nodes.data + hop->nodes;
	const struct sample_graph *graph = replay->graph;
	uint64_t edges = 0;
	for (uint64_t i = 0; i < hop->rows; i++) /* the seeds */
		prefetch_slot(replay->relabel, nodes[i], replay->relabel->dense);
	for (uint64_t i = 0; i < hop->rows; i++)
		touch_slot(replay->relabel, nodes[i], replay->relabel->dense);
	for (uint32_t h = 0; h < replay->hops; h++, hop++) {
		struct replay_walk walk = {
			.indptr = graph->indptr,
			.indices = graph->indices,
			.nodes = nodes,
			.picks = (const uint32_t *)replay->picks.data + hop->pick,
			.columns = (const uint32_t *)replay->columns.data + hop->column,
			.counts = (const uint8_t *)replay->counts.data + hop->row,
			.draws = (const uint8_t *)replay->draws.data + hop->row,
			.table = (const uint64_t *)(const void *)graph->table,
			.weights = graph->weights,
			.elements = replay->elements,
			.ids = replay->ids,
			.rows = hop->rows,
		};
		replay_one_hop(&walk, replay->relabel, pace, replay->weighted);
		*sum += walk.sum;
		edges += hop->edges;
	}
	return edges;
}
