/* Builds the symmetric, loop-free, simple graph with weights from CSC, in parallel and in little memory.
 *
 *   count both ends of every edge -> offsets -> scatter both ends -> sort each list -> count its distinct ids
 *   -> drop nodes without neighbours, offsets again -> write ids and their multiplicities
 *
 * The scatter runs in any order (atomic cursors). The sort makes the result the same for any number of threads. Ids
 * have 32 bits, as in Debian's METIS. Each list is sorted by insertion, by quicksort, or (hubs) by radix. Fails with
 * GW_LIMIT (too big for 32 bits) and GW_NO_MEMORY.
 */
#include "tools/partition/symmetric.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "core/system/parallel.h"

#define ROWS_GRAIN     8192u /* destinations of a chunk: hubs make chunks uneven */
#define PREFETCH_AHEAD 16u
#define INSERTION_MAX  24u
#define RADIX_MIN      512u /* shorter lists use quicksort, which bounds its worst case */
#define RADIX_BITS     11u

struct symmetric_build {
	const struct gw_symmetric_source *source;
	uint64_t nodes;
	uint32_t *start;  /* [nodes + 1]: the begin of each node's list */
	uint32_t *cursor; /* [nodes]: counts, then write positions, then distinct ids, then the node's new number */
	uint32_t *list;   /* both ends of all edges */
	uint32_t **scratch;
	uint64_t *loops;  /* one sum for all threads */
	uint64_t longest; /* length of the longest list */
	uint32_t id_bits; /* bits of the largest id */
	struct gw_symmetric *out;
};

static uint64_t list_bytes(uint64_t nodes, uint64_t edges)
{
	return 2 * edges * sizeof(uint32_t) + (2 * nodes + 1) * sizeof(uint32_t);
}

uint64_t gw_symmetric_bytes_max(uint64_t nodes, uint64_t edges)
{
	return list_bytes(nodes, edges) + 4 * edges * sizeof(int32_t) + (2 * nodes + 1) * sizeof(int32_t);
}

static gw_status count_loops(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	struct symmetric_build *build = context;
	const struct gw_symmetric_source *source = build->source;
	const struct gw_adjacency *a = source->adjacency;
	uint64_t loops = 0;
	for (uint64_t row = begin; row < end; row++) {
		uint64_t from, to, self = source->dst_base + row;
		gw_adjacency_list(a, row, &from, &to);
		for (uint64_t i = from; i < to; i++)
			loops += source->src_base + gw_load_id(a->indices, a->index_bytes, i) == self;
	}
	__atomic_fetch_add(build->loops, loops, __ATOMIC_RELAXED);
	(void)thread;
	return GW_OK;
}

uint64_t gw_symmetric_loops(const struct gw_symmetric_source *sources, size_t count, unsigned threads)
{
	uint64_t loops = 0;
	for (size_t i = 0; i < count; i++) {
		struct symmetric_build build = {.source = &sources[i], .loops = &loops};
		if (sources[i].src_base ==
		    sources[i].dst_base) /* only a type whose ends have the same type has loops */
			gw_parallel_for(threads, sources[i].adjacency->rows, ROWS_GRAIN, count_loops, &build);
	}
	return loops;
}

/* Prefetches its cursor before it is needed. */
static inline uint64_t symmetric_source(const struct symmetric_build *build, uint64_t i)
{
	const struct gw_symmetric_source *source = build->source;
	const struct gw_adjacency *a = source->adjacency;
	if (i + PREFETCH_AHEAD < a->edges) {
		uint64_t next = gw_load_id(a->indices, a->index_bytes, i + PREFETCH_AHEAD);
		__builtin_prefetch(&build->cursor[source->src_base + next], 1);
	}
	return source->src_base + gw_load_id(a->indices, a->index_bytes, i);
}

static gw_status count_ends(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	struct symmetric_build *build = context;
	const struct gw_symmetric_source *source = build->source;
	const struct gw_adjacency *a = source->adjacency;
	for (uint64_t row = begin; row < end; row++) {
		uint64_t from, to, self = source->dst_base + row;
		uint32_t own = 0;
		gw_adjacency_list(a, row, &from, &to);
		for (uint64_t i = from; i < to; i++) {
			uint64_t other = symmetric_source(build, i);
			if (other == self)
				continue;
			__atomic_fetch_add(&build->cursor[other], 1u, __ATOMIC_RELAXED);
			own++;
		}
		__atomic_fetch_add(&build->cursor[self], own, __ATOMIC_RELAXED);
	}
	(void)thread;
	return GW_OK;
}

static gw_status scatter_ends(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	struct symmetric_build *build = context;
	const struct gw_symmetric_source *source = build->source;
	const struct gw_adjacency *a = source->adjacency;
	for (uint64_t row = begin; row < end; row++) {
		uint64_t from, to, self = source->dst_base + row;
		uint32_t own = 0;
		gw_adjacency_list(a, row, &from, &to);
		for (uint64_t i = from; i < to; i++)
			own += source->src_base + gw_load_id(a->indices, a->index_bytes, i) != self;
		uint32_t *mine = build->list + __atomic_fetch_add(&build->cursor[self], own, __ATOMIC_RELAXED);
		for (uint64_t i = from; i < to; i++) {
			uint64_t other = symmetric_source(build, i);
			if (other == self)
				continue;
			*mine++ = (uint32_t)other;
			build->list[__atomic_fetch_add(&build->cursor[other], 1u, __ATOMIC_RELAXED)] = (uint32_t)self;
		}
	}
	(void)thread;
	return GW_OK;
}

static void symmetric_sort_insertion(uint32_t *ids, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		uint32_t id = ids[i];
		size_t at = i;
		for (; at > 0 && ids[at - 1] > id; at--)
			ids[at] = ids[at - 1];
		ids[at] = id;
	}
}

/* Quicksort with the median of three. n stays below RADIX_MIN, which bounds the worst case and the depth. */
static void sort_quick(uint32_t *ids, size_t n)
{
	while (n > INSERTION_MAX) {
		uint32_t a = ids[0], b = ids[n / 2], c = ids[n - 1];
		uint32_t pivot = a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b);
		size_t low = 0, high = n - 1;
		for (;;) {
			while (ids[low] < pivot)
				low++;
			while (ids[high] > pivot)
				high--;
			if (low >= high)
				break;
			uint32_t swap = ids[low];
			ids[low++] = ids[high];
			ids[high--] = swap;
		}
		size_t left = high + 1; /* [0, left) <= pivot <= [left, n) */
		if (left == n)
			left = n - 1;
		sort_quick(ids + left, n - left);
		n = left;
	}
	symmetric_sort_insertion(ids, n);
}

/* room holds n ids. */
static void sort_radix(uint32_t *ids, size_t n, uint32_t *room, uint32_t id_bits)
{
	uint32_t *from = ids, *to = room;
	for (uint32_t shift = 0; shift < id_bits; shift += RADIX_BITS) {
		uint32_t counts[1u << RADIX_BITS] = {0}, sum = 0;
		for (size_t i = 0; i < n; i++)
			counts[from[i] >> shift & ((1u << RADIX_BITS) - 1)]++;
		for (size_t i = 0; i < 1u << RADIX_BITS; i++) {
			uint32_t here = counts[i];
			counts[i] = sum;
			sum += here;
		}
		for (size_t i = 0; i < n; i++)
			to[counts[from[i] >> shift & ((1u << RADIX_BITS) - 1)]++] = from[i];
		uint32_t *swap = from;
		from = to;
		to = swap;
	}
	if (from != ids)
		memcpy(ids, from, n * sizeof(*ids));
}

/* Stores each number of distinct ids in cursor. */
static gw_status sort_lists(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	struct symmetric_build *build = context;
	for (uint64_t v = begin; v < end; v++) {
		uint32_t *ids = build->list + build->start[v];
		size_t n = build->start[v + 1] - build->start[v];
		if (n >= RADIX_MIN) {
			if (!build->scratch[thread])
				build->scratch[thread] = gw_malloc(build->longest * sizeof(uint32_t));
			if (!build->scratch[thread])
				return GW_NO_MEMORY;
			sort_radix(ids, n, build->scratch[thread], build->id_bits);
		} else {
			sort_quick(ids, n);
		}
		uint32_t distinct = n > 0;
		for (size_t i = 1; i < n; i++)
			distinct += ids[i] != ids[i - 1];
		build->cursor[v] = distinct;
	}
	return GW_OK;
}

static gw_status symmetric_write_lists(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	struct symmetric_build *build = context;
	struct gw_symmetric *out = build->out;
	for (uint64_t v = begin; v < end; v++) {
		const uint32_t *ids = build->list + build->start[v];
		size_t n = build->start[v + 1] - build->start[v];
		if (n == 0)
			continue;
		uint64_t at = (uint64_t)out->xadj[build->cursor[v]];
		int32_t *to = out->adjncy + at, *weight = out->adjwgt + at;
		for (size_t i = 0, next; i < n; i = next) {
			for (next = i + 1; next < n && ids[next] == ids[i]; next++)
				;
			*to++ = (int32_t)build->cursor[ids[i]];
			*weight++ = (int32_t)(next - i);
		}
	}
	(void)thread;
	return GW_OK;
}

static gw_status for_sources(struct symmetric_build *build, const struct gw_symmetric_source *sources, size_t count,
			     unsigned threads, gw_status (*body)(void *, uint64_t, uint64_t, unsigned))
{
	gw_status status = GW_OK;
	for (size_t i = 0; i < count && status == GW_OK; i++) {
		build->source = &sources[i];
		status = gw_parallel_for(threads, sources[i].adjacency->rows, ROWS_GRAIN, body, build);
	}
	return status;
}

/* The counts in cursor become start, and cursor the first write positions. */
static void symmetric_place_lists(struct symmetric_build *build)
{
	uint32_t sum = 0;
	for (uint64_t v = 0; v < build->nodes; v++) {
		uint32_t count = build->cursor[v];
		build->start[v] = build->cursor[v] = sum;
		sum += count;
		if (count > build->longest)
			build->longest = count;
	}
	build->start[build->nodes] = sum;
	while (build->id_bits < 32 && build->nodes > 1ull << build->id_bits)
		build->id_bits++;
}

static gw_status take_room(struct gw_arena *arena, uint64_t bytes, void *out)
{
	uint64_t offset;
	gw_status status = gw_arena_take(arena, bytes, GW_ARENA_ALIGN, &offset);
	if (status == GW_OK)
		*(void **)out = gw_arena_base(arena) + offset;
	return status;
}

/* The offsets come from the distinct ids in cursor. cursor becomes the new numbers of the nodes that stay. */
static gw_status place_result(struct symmetric_build *build)
{
	struct gw_symmetric *out = build->out;
	for (uint64_t v = 0; v < build->nodes; v++) {
		out->entries += build->cursor[v];
		out->nodes += build->cursor[v] > 0;
	}
	struct gw_arena_options options = {.name = "symmetric graph", .numa = GW_NUMA_LOCAL};
	uint64_t bytes = (2 * out->nodes + 1 + 2 * out->entries) * sizeof(int32_t) + 4 * GW_ARENA_ALIGN;
	gw_status status = gw_arena_create(bytes, &options, &out->arena);
	if (status == GW_OK)
		status = take_room(out->arena, (out->nodes + 1) * sizeof(int32_t), &out->xadj);
	if (status == GW_OK)
		status = take_room(out->arena, out->nodes * sizeof(int32_t), &out->origin);
	if (status == GW_OK)
		status = take_room(out->arena, out->entries * sizeof(int32_t), &out->adjncy);
	if (status == GW_OK)
		status = take_room(out->arena, out->entries * sizeof(int32_t), &out->adjwgt);
	if (status != GW_OK)
		return status;
	int32_t sum = 0, next = 0;
	for (uint64_t v = 0; v < build->nodes; v++) {
		int32_t distinct = (int32_t)build->cursor[v];
		if (distinct == 0)
			continue;
		build->cursor[v] = (uint32_t)next;
		out->origin[next] = (int32_t)v;
		out->xadj[next++] = sum;
		sum += distinct;
	}
	out->xadj[next] = sum;
	return GW_OK;
}

static gw_status symmetric_run(struct symmetric_build *build, const struct gw_symmetric_source *sources, size_t count,
			       unsigned threads)
{
	gw_status status = for_sources(build, sources, count, threads, count_ends);
	if (status != GW_OK)
		return status;
	symmetric_place_lists(build);
	status = for_sources(build, sources, count, threads, scatter_ends);
	if (status == GW_OK)
		status = gw_parallel_for(threads, build->nodes, ROWS_GRAIN, sort_lists, build);
	if (status == GW_OK)
		status = place_result(build);
	if (status == GW_OK)
		status = gw_parallel_for(threads, build->nodes, ROWS_GRAIN, symmetric_write_lists, build);
	return status;
}

gw_status gw_symmetric_build(const struct gw_symmetric_source *sources, size_t count, uint64_t nodes, unsigned threads,
			     struct gw_symmetric *out)
{
	*out = (struct gw_symmetric){0};
	for (size_t i = 0; i < count; i++)
		out->edges += sources[i].adjacency->edges;
	out->edges -= gw_symmetric_loops(sources, count, threads);
	if (nodes >= INT32_MAX || out->edges >= INT32_MAX / 2)
		return gw_fail(GW_LIMIT, "%llu nodes and %llu edges do not fit in 32-bit ids",
			       (unsigned long long)nodes, (unsigned long long)out->edges);

	struct symmetric_build build = {.nodes = nodes, .out = out};
	struct gw_arena_options options = {.name = "edges, both ways", .numa = GW_NUMA_LOCAL};
	struct gw_arena *room = NULL;
	unsigned scratches = threads ? threads : gw_processors();
	gw_status status = gw_arena_create(list_bytes(nodes, out->edges) + 3 * GW_ARENA_ALIGN, &options, &room);
	if (status == GW_OK)
		status = take_room(room, (nodes + 1) * sizeof(uint32_t), &build.start);
	if (status == GW_OK)
		status = take_room(room, nodes * sizeof(uint32_t), &build.cursor);
	if (status == GW_OK)
		status = take_room(room, 2 * out->edges * sizeof(uint32_t), &build.list);
	if (status != GW_OK)
		goto free_room;
	build.scratch = gw_calloc(scratches, sizeof(*build.scratch));
	if (!build.scratch) {
		status = GW_NO_MEMORY;
		goto free_room;
	}
	status = symmetric_run(&build, sources, count, threads);
	for (unsigned i = 0; i < scratches; i++)
		gw_free(build.scratch[i]);
	gw_free(build.scratch);
free_room:
	gw_arena_destroy(room);
	if (status != GW_OK)
		gw_symmetric_free(out);
	return status;
}

void gw_symmetric_free(struct gw_symmetric *graph)
{
	gw_arena_destroy(graph->arena);
	*graph = (struct gw_symmetric){0};
}
