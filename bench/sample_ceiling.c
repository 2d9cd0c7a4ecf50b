/* Uniform sampling without replacement, or by weight with replacement, and blocks relabelled through a dense map, with
 * as little code as possible.
 *
 *   uniform hop: offsets prefetched 16 ahead -> Floyd, neighbours prefetched as they are picked -> all neighbours read,
 *   map entries prefetched 16 ahead -> numbers
 *   hop by weight: offsets prefetched 16 ahead -> Philox draws a column and a word for every pick -> alias entries
 *   prefetched 16 ahead -> neighbours prefetched 16 ahead -> map entries prefetched 16 ahead -> numbers
 *
 * They do only what every sampler must do: no checks, one node type and one edge type, offsets and ids of 4 bytes,
 * unordered picks. The uniform loop has a cheap mixer for random numbers. The loop by weight has Graphwire's Philox,
 * two draws a block, and takes a column from 32 bits. Graphwire's figure pays for the rest.
 */
#include "bench/sample_ceiling.h"

#include <string.h>
#include <sys/mman.h>

#include "core/numbers/rng.h"

#define AHEAD 16ull
#define HUGE  (2ull << 20)

/* MurmurHash3's 64-bit finalizer. */
static inline uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ull;
	return x ^ x >> 33;
}

/* The most edges of one hop, or the most nodes of a batch, whichever is more. */
static uint64_t edges_max(const struct ceiling *ceiling, uint64_t seeds)
{
	uint64_t nodes = seeds, most = seeds;
	for (uint32_t hop = 0; hop < ceiling->hops; hop++) {
		uint64_t frontier = nodes < ceiling->graph.nodes ? nodes : ceiling->graph.nodes;
		nodes = frontier + frontier * ceiling->fanouts[hop];
		most = nodes > most ? nodes : most;
	}
	return most;
}

int ceiling_begin(struct ceiling *ceiling, const struct ceiling_graph *graph, const uint32_t *fanouts, uint32_t hops,
		  uint64_t seeds_max)
{
	memset(ceiling, 0, sizeof(*ceiling));
	ceiling->graph = *graph;
	ceiling->hops = hops;
	memcpy(ceiling->fanouts, fanouts, hops * sizeof(*fanouts));
	ceiling->capacity = edges_max(ceiling, seeds_max) + AHEAD;
	uint64_t bytes = graph->nodes * 8 + ceiling->capacity * (4 + 8 + 4 + 4);
	ceiling->mapped_bytes = (bytes + 2 * HUGE - 1) / HUGE * HUGE;
	ceiling->mapping =
		mmap(NULL, ceiling->mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ceiling->mapping == MAP_FAILED)
		return -1;
	madvise(ceiling->mapping, ceiling->mapped_bytes, MADV_HUGEPAGE);
	ceiling->map = ceiling->mapping;
	ceiling->edge_id = ceiling->map + graph->nodes;
	ceiling->nodes = (uint32_t *)(void *)(ceiling->edge_id + ceiling->capacity);
	ceiling->source = ceiling->nodes + ceiling->capacity;
	ceiling->pending = ceiling->source + ceiling->capacity;
	return 0;
}

void ceiling_end(struct ceiling *ceiling)
{
	if (ceiling->mapping && ceiling->mapping != MAP_FAILED)
		munmap(ceiling->mapping, ceiling->mapped_bytes);
	memset(ceiling, 0, sizeof(*ceiling));
}

/* The inner loops' state. They keep it in local variables: through a pointer to the struct, the compiler would reload
 * all of it after every store. */
struct numbering {
	uint64_t *restrict map, tag;
	uint32_t *restrict nodes;
	uint64_t count;
};

static inline uint32_t ceiling_number_of(struct numbering *n, uint32_t id)
{
	uint64_t entry = n->map[id];
	if ((entry ^ n->tag) >> 32) {
		entry = n->tag | n->count;
		n->map[id] = entry;
		n->nodes[n->count++] = id;
	}
	return (uint32_t)entry;
}

static struct numbering begin_numbering(const struct ceiling *ceiling)
{
	return (struct numbering){.map = ceiling->map,
				  .tag = (uint64_t)ceiling->batch << 32,
				  .nodes = ceiling->nodes,
				  .count = ceiling->node_count};
}

static uint64_t pick(const struct ceiling *ceiling, uint64_t key, uint32_t fanout, uint64_t frontier)
{
	const uint32_t *restrict indptr = ceiling->graph.indptr, *restrict indices = ceiling->graph.indices;
	const uint32_t *restrict nodes = ceiling->nodes;
	uint64_t *restrict edge_id = ceiling->edge_id, edges = 0;
	for (uint64_t i = 0; i < frontier; i++) {
		if (i + AHEAD < frontier)
			__builtin_prefetch(&indptr[nodes[i + AHEAD]]);
		uint64_t begin = indptr[nodes[i]];
		uint32_t degree = (uint32_t)(indptr[nodes[i] + 1] - begin);
		if (degree <= fanout) {
			for (uint32_t j = 0; j < degree; j++)
				edge_id[edges++] = begin + j;
			__builtin_prefetch(&indices[begin]);
			continue;
		}
		uint64_t random = key ^ nodes[i] * 0x9e3779b97f4a7c15ull;
		uint32_t picked[SAMPLE_FANOUT_MAX];
		for (uint32_t j = 0; j < fanout; j++) {
			random = mix(random + j);
			uint32_t position = (uint32_t)((random >> 32) * (degree - fanout + j + 1) >> 32);
			for (uint32_t q = 0; q < j; q++) {
				if (picked[q] == position) {
					position = degree - fanout + j;
					break;
				}
			}
			picked[j] = position;
			edge_id[edges++] = begin + position;
			__builtin_prefetch(&indices[begin + position]);
		}
	}
	return edges;
}

static void relabel(struct ceiling *ceiling, uint64_t edges)
{
	struct numbering n = begin_numbering(ceiling);
	const uint32_t *restrict indices = ceiling->graph.indices;
	const uint64_t *restrict edge_id = ceiling->edge_id;
	uint32_t *restrict pending = ceiling->pending, *restrict source = ceiling->source;
	for (uint64_t e = 0; e < edges; e++) {
		pending[e] = indices[edge_id[e]];
		__builtin_prefetch(&n.map[pending[e]], 1);
		if (e >= AHEAD)
			source[e - AHEAD] = ceiling_number_of(&n, pending[e - AHEAD]);
	}
	for (uint64_t e = edges > AHEAD ? edges - AHEAD : 0; e < edges; e++)
		source[e] = ceiling_number_of(&n, pending[e]);
	ceiling->node_count = n.count;
}

/* Writes a draw for every pick: the column's element, the list's first element, and the word. Returns the picks. */
static uint64_t draw_by_weight(struct ceiling *ceiling, uint64_t key, uint32_t fanout, uint64_t frontier)
{
	const uint32_t *restrict indptr = ceiling->graph.indptr, *restrict nodes = ceiling->nodes;
	uint64_t *restrict column = ceiling->edge_id, edges = 0;
	uint32_t *restrict first = ceiling->pending, *restrict word = ceiling->source;
	for (uint64_t i = 0; i < frontier; i++) {
		if (i + AHEAD < frontier)
			__builtin_prefetch(&indptr[nodes[i + AHEAD]]);
		uint32_t begin = indptr[nodes[i]];
		uint64_t degree = indptr[nodes[i] + 1] - begin;
		for (uint32_t j = 0; degree && j < fanout; j += 2) {
			struct gw_words random = gw_philox(key, nodes[i], j / 2);
			for (uint32_t half = 0; half < 2 && j + half < fanout; half++) {
				column[edges] = begin + (random.word[half ? 2 : 0] * degree >> 32);
				first[edges] = begin;
				word[edges++] = random.word[2 * half + 1];
			}
		}
	}
	return edges;
}

/* Three stages in one loop, each AHEAD picks behind the stage before: alias entry, neighbour, map entry. */
static void relabel_by_weight(struct ceiling *ceiling, uint64_t edges)
{
	struct numbering n = begin_numbering(ceiling);
	const uint32_t *restrict indices = ceiling->graph.indices, *restrict table = ceiling->graph.table;
	uint64_t *restrict edge_id = ceiling->edge_id;
	uint32_t *restrict pending = ceiling->pending, *restrict source = ceiling->source;
	for (uint64_t e = 0; e < edges + 3 * AHEAD; e++) {
		if (e < edges)
			__builtin_prefetch(&table[2 * edge_id[e]]);
		if (e >= AHEAD && e - AHEAD < edges) {
			uint64_t draw = e - AHEAD, column = edge_id[draw];
			bool own = source[draw] < table[2 * column];
			edge_id[draw] = own ? column : pending[draw] + table[2 * column + 1];
			__builtin_prefetch(&indices[edge_id[draw]]);
		}
		if (e >= 2 * AHEAD && e - 2 * AHEAD < edges) {
			uint64_t draw = e - 2 * AHEAD;
			pending[draw] = indices[edge_id[draw]];
			__builtin_prefetch(&n.map[pending[draw]], 1);
		}
		if (e >= 3 * AHEAD)
			source[e - 3 * AHEAD] = ceiling_number_of(&n, pending[e - 3 * AHEAD]);
	}
	ceiling->node_count = n.count;
}

static uint64_t ceiling_hop(struct ceiling *ceiling, uint64_t key, uint32_t fanout, bool weighted)
{
	uint64_t edges;
	if (weighted) {
		edges = draw_by_weight(ceiling, key, fanout, ceiling->node_count);
		relabel_by_weight(ceiling, edges);
	} else {
		edges = pick(ceiling, key, fanout, ceiling->node_count);
		relabel(ceiling, edges);
	}
	return edges;
}

uint64_t ceiling_batch(struct ceiling *ceiling, uint64_t key, const int64_t *seeds, uint32_t n, bool weighted)
{
	uint64_t edges = 0;
	ceiling->batch++;
	ceiling->node_count = 0;
	struct numbering numbering = begin_numbering(ceiling);
	for (uint32_t i = 0; i < n; i++)
		ceiling_number_of(&numbering, (uint32_t)seeds[i]);
	ceiling->node_count = numbering.count;
	for (uint32_t hop = 0; hop < ceiling->hops; hop++) {
		ceiling->last_edges = ceiling_hop(ceiling, mix(key + hop), ceiling->fanouts[hop], weighted);
		edges += ceiling->last_edges;
	}
	return edges;
}
