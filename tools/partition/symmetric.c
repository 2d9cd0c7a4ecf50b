/* Builds the symmetric, loop-free, simple graph with weights from CSC, in parallel and in little memory.
 *
 *   count both ends of every edge -> offsets -> for each range of nodes: scatter both ends -> sort each list -> count
 * its distinct ids the whole graph: one range -> drop nodes without neighbours, offsets again -> write ids and their
 * multiplicities
 *
 * The scatter runs in any order (atomic cursors). The sort makes the result the same for any number of threads. Ids
 * have 32 bits. Each list is sorted by insertion, by quicksort, or (hubs) by radix. Fails with GW_LIMIT (too big for 32
 * bits) and GW_NO_MEMORY.
 */
#include "tools/partition/symmetric.h"

#include <string.h>

#include "core/files/filemap.h"
#include "core/memory/alloc.h"
#include "core/system/parallel.h"

#define ROWS_GRAIN     8192u /* destinations of a chunk: hubs make chunks uneven */
#define PREFETCH_AHEAD 16u
#define INSERTION_MAX  24u
#define RADIX_MIN      512u /* shorter lists use quicksort, which bounds its worst case */
#define RADIX_BITS     11u

struct gw_symmetric_build {
	const struct gw_symmetric_source *sources;
	size_t count;
	unsigned threads;
	const struct gw_symmetric_source *source; /* the one that is read now */
	struct gw_symmetric_range *range;
	uint64_t *counts;      /* [all + 1]: range->ends while they are counts */
	uint32_t *cursor;      /* of the range: write positions, then distinct ids */
	uint32_t **scratch;    /* [threads] */
	uint64_t *loops;       /* one sum for all threads */
	uint64_t longest;      /* length of the longest list */
	uint32_t id_bits;      /* bits of the largest id */
	struct gw_arena *room; /* of list and cursor */
	struct gw_symmetric *out;
};

static uint64_t list_bytes(uint64_t nodes, uint64_t ends)
{
	return (ends + nodes) * sizeof(uint32_t);
}

uint64_t gw_symmetric_bytes_max(uint64_t nodes, uint64_t edges)
{
	return list_bytes(nodes, 2 * edges) + nodes * (sizeof(uint64_t) + sizeof(uint32_t)) +
	       4 * edges * sizeof(int32_t) + (2 * nodes + 1) * sizeof(int32_t);
}

void gw_symmetric_leave(const struct gw_adjacency *a, uint64_t first, uint64_t last)
{
	const char *ids = a->indices;
	uint64_t begin, end, unused;
	gw_adjacency_list(a, first, &begin, &unused);
	gw_adjacency_list(a, last, &unused, &end);
	gw_filemap_drop(ids + begin * a->index_bytes, ids + end * a->index_bytes);
}

static void leave_rows(const struct gw_symmetric_source *source, uint64_t begin, uint64_t end)
{
	if (source->mapped && begin < end)
		gw_symmetric_leave(source->adjacency, begin, end - 1);
}

static gw_status count_loops(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	struct gw_symmetric_build *build = context;
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
	leave_rows(source, begin, end);
	(void)thread;
	return GW_OK;
}

uint64_t gw_symmetric_loops(const struct gw_symmetric_source *sources, size_t count, unsigned threads)
{
	uint64_t loops = 0;
	for (size_t i = 0; i < count; i++) {
		struct gw_symmetric_build build = {.source = &sources[i], .loops = &loops};
		if (sources[i].src_base ==
		    sources[i].dst_base) /* only a type whose ends have the same type has loops */
			gw_parallel_for(threads, sources[i].adjacency->rows, ROWS_GRAIN, count_loops, &build);
	}
	return loops;
}

static gw_status count_ends(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	struct gw_symmetric_build *build = context;
	const struct gw_symmetric_source *source = build->source;
	const struct gw_adjacency *a = source->adjacency;
	for (uint64_t row = begin; row < end; row++) {
		uint64_t from, to, self = source->dst_base + row, own = 0;
		gw_adjacency_list(a, row, &from, &to);
		for (uint64_t i = from; i < to; i++) {
			uint64_t other = source->src_base + gw_load_id(a->indices, a->index_bytes, i);
			if (i + PREFETCH_AHEAD < a->edges) {
				uint64_t next = gw_load_id(a->indices, a->index_bytes, i + PREFETCH_AHEAD);
				__builtin_prefetch(&build->counts[source->src_base + next], 1);
			}
			if (other == self)
				continue;
			__atomic_fetch_add(&build->counts[other], 1u, __ATOMIC_RELAXED);
			own++;
		}
		__atomic_fetch_add(&build->counts[self], own, __ATOMIC_RELAXED);
	}
	leave_rows(source, begin, end);
	(void)thread;
	return GW_OK;
}

/* The ends in the range only. `whole` is a constant, so that the loop over the whole graph has no comparisons. */
static inline __attribute__((always_inline)) void scatter(const struct gw_symmetric_build *build, uint64_t begin,
							  uint64_t end, bool whole)
{
	const uint64_t first = whole ? 0 : build->range->first, nodes = build->range->end - first;
	const struct gw_symmetric_source *source = build->source;
	const struct gw_adjacency *a = source->adjacency;
	uint32_t *cursor = build->cursor, *list = build->range->list;
	for (uint64_t row = begin; row < end; row++) {
		uint64_t from, to, self = source->dst_base + row;
		uint32_t own = 0, *mine = NULL;
		gw_adjacency_list(a, row, &from, &to);
		for (uint64_t i = from; i < to && (whole || self - first < nodes); i++)
			own += source->src_base + gw_load_id(a->indices, a->index_bytes, i) != self;
		if (whole || self - first < nodes)
			mine = list + __atomic_fetch_add(&cursor[self - first], own, __ATOMIC_RELAXED);
		for (uint64_t i = from; i < to; i++) {
			uint64_t other = source->src_base + gw_load_id(a->indices, a->index_bytes, i);
			if (i + PREFETCH_AHEAD < a->edges) {
				uint64_t next =
					source->src_base + gw_load_id(a->indices, a->index_bytes, i + PREFETCH_AHEAD);
				__builtin_prefetch(&cursor[whole || next - first < nodes ? next - first : 0], 1);
			}
			if (other == self)
				continue;
			if (whole || mine)
				*mine++ = (uint32_t)other;
			if (whole || other - first < nodes)
				list[__atomic_fetch_add(&cursor[other - first], 1u, __ATOMIC_RELAXED)] = (uint32_t)self;
		}
	}
}

static gw_status scatter_ends(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct gw_symmetric_build *build = context;
	const struct gw_symmetric_range *range = build->range;
	if (range->end - range->first == range->all)
		scatter(build, begin, end, true);
	else
		scatter(build, begin, end, false);
	leave_rows(build->source, begin, end);
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

static const uint32_t *symmetric_list(const struct gw_symmetric_range *range, uint64_t node, size_t *n)
{
	*n = range->ends[node + 1] - range->ends[node];
	return range->list + (range->ends[node] - range->ends[range->first]);
}

/* Stores each number of distinct ids in cursor. */
static gw_status sort_lists(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	struct gw_symmetric_build *build = context;
	for (uint64_t v = begin; v < end; v++) {
		size_t n;
		uint32_t *ids = (uint32_t *)symmetric_list(build->range, build->range->first + v, &n);
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

static gw_status for_sources(struct gw_symmetric_build *build, gw_status (*body)(void *, uint64_t, uint64_t, unsigned))
{
	gw_status status = GW_OK;
	for (size_t i = 0; i < build->count && status == GW_OK; i++) {
		build->source = &build->sources[i];
		status = gw_parallel_for(build->threads, build->source->adjacency->rows, ROWS_GRAIN, body, build);
	}
	return status;
}

/* The counts become the ends before each node. */
static void number_nodes(struct gw_symmetric_build *build)
{
	struct gw_symmetric_range *range = build->range;
	uint64_t sum = 0;
	for (uint64_t v = 0; v < range->all; v++) {
		uint64_t count = range->ends[v];
		range->ends[v] = sum;
		range->number[v] = (uint32_t)range->nodes;
		range->nodes += count > 0;
		sum += count;
		if (count > build->longest)
			build->longest = count;
	}
	range->ends[range->all] = sum;
	range->edges = sum / 2;
	while (build->id_bits < 32 && range->all > 1ull << build->id_bits)
		build->id_bits++;
}

gw_status gw_symmetric_range_open(const struct gw_symmetric_source *sources, size_t count, uint64_t nodes,
				  unsigned threads, struct gw_symmetric_range *out)
{
	*out = (struct gw_symmetric_range){.all = nodes};
	if (nodes >= GW_SYMMETRIC_NODES_END)
		return gw_fail(GW_LIMIT, "%llu nodes do not fit in 32-bit ids", (unsigned long long)nodes);
	struct gw_symmetric_build *build = gw_calloc(1, sizeof(*build));
	if (!build)
		return GW_NO_MEMORY;
	*build = (struct gw_symmetric_build){
		.sources = sources, .count = count, .threads = threads ? threads : gw_processors(), .range = out};
	out->build = build;
	out->ends = build->counts = gw_calloc(nodes + 1, sizeof(*out->ends));
	out->number = gw_malloc((nodes + 1) * sizeof(*out->number));
	build->scratch = gw_calloc(build->threads, sizeof(*build->scratch));
	if (!out->ends || !out->number || !build->scratch)
		return GW_NO_MEMORY;
	gw_status status = for_sources(build, count_ends);
	if (status == GW_OK)
		number_nodes(build);
	if (status == GW_OK && build->longest >= UINT32_MAX)
		status = gw_fail(GW_LIMIT, "a node has %llu ends of edges, and at most %u are supported",
				 (unsigned long long)build->longest, UINT32_MAX - 1);
	return status;
}

static void close_range(struct gw_symmetric_range *range)
{
	gw_arena_destroy(range->build->room);
	range->build->room = NULL;
	range->list = range->distinct = NULL;
}

static gw_status take_room(struct gw_arena *arena, uint64_t bytes, void *out)
{
	uint64_t offset;
	gw_status status = gw_arena_take(arena, bytes, GW_ARENA_ALIGN, &offset);
	if (status == GW_OK)
		*(void **)out = gw_arena_base(arena) + offset;
	return status;
}

gw_status gw_symmetric_range_next(struct gw_symmetric_range *range, uint64_t bytes)
{
	struct gw_symmetric_build *build = range->build;
	const struct gw_arena_options options = {.name = "edges, both ways", .numa = GW_NUMA_LOCAL};
	uint64_t first = range->end, end = first;
	close_range(range);
	range->first = first;
	while (end < range->all &&
	       (end == first || (list_bytes(end + 1 - first, range->ends[end + 1] - range->ends[first]) <= bytes &&
				 range->ends[end + 1] - range->ends[first] < UINT32_MAX)))
		end++;
	range->end = end;
	if (first == end)
		return GW_OK;
	uint64_t ends = range->ends[end] - range->ends[first];
	gw_status status = gw_arena_create(list_bytes(end - first, ends) + 2 * GW_ARENA_ALIGN, &options, &build->room);
	if (status == GW_OK)
		status = take_room(build->room, (end - first) * sizeof(uint32_t), &build->cursor);
	if (status == GW_OK)
		status = take_room(build->room, ends * sizeof(uint32_t), &range->list);
	if (status != GW_OK)
		return status;
	for (uint64_t v = first; v < end; v++)
		build->cursor[v - first] = (uint32_t)(range->ends[v] - range->ends[first]);
	range->distinct = build->cursor;
	status = for_sources(build, scatter_ends);
	if (status == GW_OK)
		status = gw_parallel_for(build->threads, end - first, ROWS_GRAIN, sort_lists, build);
	return status;
}

void gw_symmetric_range_close(struct gw_symmetric_range *range)
{
	struct gw_symmetric_build *build = range->build;
	if (build)
		close_range(range);
	for (unsigned i = 0; build && build->scratch && i < build->threads; i++)
		gw_free(build->scratch[i]);
	if (build)
		gw_free(build->scratch);
	gw_free(build);
	gw_free(range->ends);
	gw_free(range->number);
	*range = (struct gw_symmetric_range){0};
}

/* --- The whole graph. --- */

static gw_status symmetric_write_lists(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	struct gw_symmetric_build *build = context;
	struct gw_symmetric *out = build->out;
	for (uint64_t v = begin; v < end; v++) {
		size_t n;
		const uint32_t *ids = symmetric_list(build->range, v, &n), *number = build->range->number;
		if (n == 0)
			continue;
		uint64_t at = (uint64_t)out->xadj[number[v]];
		int32_t *to = out->adjncy + at, *weight = out->adjwgt + at;
		for (size_t i = 0, next; i < n; i = next) {
			for (next = i + 1; next < n && ids[next] == ids[i]; next++)
				;
			*to++ = (int32_t)number[ids[i]];
			*weight++ = (int32_t)(next - i);
		}
	}
	(void)thread;
	return GW_OK;
}

/* The offsets come from the distinct ids. */
static gw_status place_result(const struct gw_symmetric_range *range, struct gw_symmetric *out)
{
	out->nodes = range->nodes;
	out->edges = range->edges;
	for (uint64_t v = 0; v < range->all; v++)
		out->entries += range->distinct[v];
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
	int32_t sum = 0;
	for (uint64_t v = 0; v < range->all; v++) {
		if (range->distinct[v] == 0)
			continue;
		out->origin[range->number[v]] = (int32_t)v;
		out->xadj[range->number[v]] = sum;
		sum += (int32_t)range->distinct[v];
	}
	out->xadj[out->nodes] = sum;
	return GW_OK;
}

gw_status gw_symmetric_build(const struct gw_symmetric_source *sources, size_t count, uint64_t nodes, unsigned threads,
			     struct gw_symmetric *out)
{
	struct gw_symmetric_range range = {0};
	uint64_t edges = 0;
	*out = (struct gw_symmetric){0};
	for (size_t i = 0; i < count; i++)
		edges += sources[i].adjacency->edges;
	if (edges >= INT32_MAX / 2)
		edges -= gw_symmetric_loops(sources, count, threads);
	if (nodes >= INT32_MAX || edges >= INT32_MAX / 2)
		return gw_fail(GW_LIMIT, "%llu nodes and %llu edges do not fit in 32-bit ids",
			       (unsigned long long)nodes, (unsigned long long)edges);
	gw_status status = gw_symmetric_range_open(sources, count, nodes, threads, &range);
	if (status == GW_OK)
		status = gw_symmetric_range_next(&range, UINT64_MAX);
	if (status == GW_OK)
		status = place_result(&range, out);
	if (status == GW_OK) {
		range.build->out = out;
		status = gw_parallel_for(threads, nodes, ROWS_GRAIN, symmetric_write_lists, range.build);
	}
	gw_symmetric_range_close(&range);
	if (status != GW_OK)
		gw_symmetric_free(out);
	return status;
}

void gw_symmetric_free(struct gw_symmetric *graph)
{
	gw_arena_destroy(graph->arena);
	*graph = (struct gw_symmetric){0};
}
