/* From an edge list to CSC: two levels of counting sort by destination, then each list by its keys.
 *
 *   histogram of buckets (upper bits of dst) by slices of the input -> scatter (dst in bucket, edge number), packed in
 *   8 bytes -> each bucket by itself: count, place, sort its lists
 *
 * The first level keeps writes to a few hundred streams, the second works in cache. Slices scatter in input order and
 * list sorts break ties by position, so the result does not depend on the number of threads. A list is sorted by
 * packing (key - smallest key, position) into 64-bit words, several rounds from the low bits up where they do not fit.
 * Fails for ids out of range, naming the edge, and for want of memory.
 */
#include "core/graph/csc.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "core/base/alloc.h"
#include "core/base/parallel.h"

#define BUCKETS_MAX 512u /* write streams of the scatter: within the reach of a second-level TLB */
#define SLICES_MAX  64u

struct build {
	const struct gw_coo *coo;
	struct gw_csc *csc;
	uint64_t *packed;      /* [num_edges]: dst in bucket above edge_bits, edge number below */
	uint64_t *cursors;     /* [slices][buckets]: counts, then where a slice's next edge of a bucket goes */
	uint64_t *bucket_from; /* [buckets + 1] */
	uint32_t buckets, slices;
	uint32_t shift;     /* dst >> shift is the bucket */
	uint32_t edge_bits; /* of an edge number */
};

static uint32_t bit_length(uint64_t value)
{
	return value ? 64 - (uint32_t)__builtin_clzll(value) : 0;
}

/* Large tables are walked at random: huge pages halve the cost where the system gives them. Advice only. */
static uint64_t *big_alloc(uint64_t count)
{
	uint64_t *memory = count <= SIZE_MAX / sizeof(uint64_t) ? gw_malloc((size_t)count * sizeof(uint64_t)) : NULL;
	if (!memory && count > SIZE_MAX / sizeof(uint64_t))
		gw_fail(GW_NO_MEMORY, "no memory for %llu numbers", (unsigned long long)count);
	if (memory && count >= 1u << 20) {
		uintptr_t from = ((uintptr_t)memory + 4095) & ~(uintptr_t)4095;
		uintptr_t to = ((uintptr_t)memory + (uintptr_t)count * 8) & ~(uintptr_t)4095;
		madvise((void *)from, to - from, MADV_HUGEPAGE);
	}
	return memory;
}

static uint64_t slice_begin(const struct build *build, uint64_t slice)
{
	return (uint64_t)((unsigned __int128)build->coo->num_edges * slice / build->slices);
}

static gw_status count_slice(struct build *build, uint64_t slice)
{
	const struct gw_coo *coo = build->coo;
	uint64_t *counts = build->cursors + slice * build->buckets;
	uint64_t end = slice_begin(build, slice + 1);
	for (uint64_t e = slice_begin(build, slice); e < end; e++) {
		if (coo->src[e] >= coo->num_src || coo->dst[e] >= coo->num_dst)
			return gw_fail(
				GW_RANGE, "edge %llu: %llu -> %llu, but there are %llu sources and %llu destinations",
				(unsigned long long)e, (unsigned long long)coo->src[e], (unsigned long long)coo->dst[e],
				(unsigned long long)coo->num_src, (unsigned long long)coo->num_dst);
		counts[coo->dst[e] >> build->shift]++;
	}
	return GW_OK;
}

static gw_status count_body(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	gw_status status = GW_OK;
	for (uint64_t slice = begin; status == GW_OK && slice < end; slice++)
		status = count_slice(context, slice);
	return status;
}

/* Counts to cursors: buckets in order and, within each, slices in order. */
static void place_buckets(struct build *build)
{
	uint64_t at = 0;
	for (uint32_t b = 0; b < build->buckets; b++) {
		build->bucket_from[b] = at;
		for (uint32_t s = 0; s < build->slices; s++) {
			uint64_t *cursor = &build->cursors[(uint64_t)s * build->buckets + b];
			uint64_t count = *cursor;
			*cursor = at;
			at += count;
		}
	}
	build->bucket_from[build->buckets] = at;
}

static gw_status scatter_body(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	struct build *build = context;
	(void)thread;
	const uint64_t *dst = build->coo->dst;
	uint64_t mask = (1ull << build->shift) - 1;
	for (uint64_t slice = begin; slice < end; slice++) {
		uint64_t *cursors = build->cursors + slice * build->buckets;
		uint64_t stop = slice_begin(build, slice + 1);
		for (uint64_t e = slice_begin(build, slice); e < stop; e++)
			build->packed[cursors[dst[e] >> build->shift]++] = (dst[e] & mask) << build->edge_bits | e;
	}
	return GW_OK;
}

/* --- sorting one list --------------------------------------------------------------------------------------------- */

static void sort_small(uint64_t *keys, uint64_t n)
{
	for (uint64_t i = 1; i < n; i++) {
		uint64_t key = keys[i], j = i;
		for (; j > 0 && keys[j - 1] > key; j--)
			keys[j] = keys[j - 1];
		keys[j] = key;
	}
}

static void sift_down(uint64_t *keys, uint64_t root, uint64_t n)
{
	uint64_t key = keys[root];
	for (uint64_t child; (child = 2 * root + 1) < n; root = child) {
		child += child + 1 < n && keys[child + 1] > keys[child];
		if (keys[child] <= key)
			break;
		keys[root] = keys[child];
	}
	keys[root] = key;
}

static void heap_sort(uint64_t *keys, uint64_t n)
{
	for (uint64_t i = n / 2; i-- > 0;)
		sift_down(keys, i, n);
	for (uint64_t last = n; last-- > 1;) {
		uint64_t top = keys[0];
		keys[0] = keys[last];
		keys[last] = top;
		sift_down(keys, 0, last);
	}
}

static uint64_t median(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t low = a < b ? a : b, high = a < b ? b : a;
	return c < low ? low : c > high ? high : c;
}

/* Hoare's quicksort with Musser's limit on its depth (introsort, 1997). Keys are distinct. */
static void sort_words(uint64_t *keys, uint64_t n, uint32_t depth)
{
	while (n > 24) {
		if (depth-- == 0) {
			heap_sort(keys, n);
			return;
		}
		uint64_t pivot = median(keys[0], keys[n / 2], keys[n - 1]);
		uint64_t i = 0, j = n - 1;
		for (;; i++, j--) {
			while (keys[i] < pivot)
				i++;
			while (keys[j] > pivot)
				j--;
			if (i >= j)
				break;
			uint64_t key = keys[i];
			keys[i] = keys[j];
			keys[j] = key;
		}
		/* [0, i) is below the pivot or equal, [i, n) above or equal; the shorter side by recursion */
		if (i <= n - i) {
			sort_words(keys, i, depth);
			keys += i;
			n -= i;
		} else {
			sort_words(keys + i, n - i, depth);
			n = i;
		}
	}
	sort_small(keys, n);
}

enum list_key { KEY_SRC, KEY_REL, KEY_TIME };

static inline uint64_t key_of(const struct gw_coo *coo, enum list_key which, uint64_t edge)
{
	if (which == KEY_SRC)
		return coo->src[edge];
	if (which == KEY_REL)
		return coo->rel[edge];
	return (uint64_t)coo->time[edge] ^ 1ull << 63; /* order of signed numbers, kept */
}

/* Sorts a list of edge numbers by one key, stable. scratch: n words. */
static inline void sort_by(const struct gw_coo *coo, enum list_key which, uint64_t *list, uint64_t *scratch, uint64_t n)
{
	uint64_t low = UINT64_MAX, high = 0, before = 0;
	bool sorted = true;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t key = key_of(coo, which, list[i]);
		low = key < low ? key : low;
		high = key > high ? key : high;
		sorted &= key >= before;
		before = key;
	}
	if (sorted)
		return;
	uint32_t position_bits = bit_length(n - 1), key_bits = bit_length(high - low), room = 64 - position_bits;
	uint64_t position_mask = (1ull << position_bits) - 1;
	for (uint32_t done = 0; done < key_bits; done += room) {
		for (uint64_t i = 0; i < n; i++)
			scratch[i] = (key_of(coo, which, list[i]) - low) >> done << position_bits | i;
		sort_words(scratch, n, 2 * bit_length(n));
		for (uint64_t i = 0; i < n; i++)
			scratch[i] = list[scratch[i] & position_mask];
		memcpy(list, scratch, n * sizeof(*list));
	}
}

static void sort_list(const struct gw_coo *coo, uint64_t *list, uint64_t *scratch, uint64_t n)
{
	sort_by(coo, KEY_SRC, list, scratch, n);
	if (coo->time)
		sort_by(coo, KEY_TIME, list, scratch, n);
	if (coo->rel)
		sort_by(coo, KEY_REL, list, scratch, n);
}

/* One bucket: its cells of indptr are counts, then cursors, which end where the next list starts, then starts. */
static void build_bucket(struct build *build, uint64_t bucket)
{
	const struct gw_coo *coo = build->coo;
	uint64_t low = bucket << build->shift, high = (bucket + 1) << build->shift;
	uint64_t rows = (high < coo->num_dst ? high : coo->num_dst) - low;
	uint64_t *starts = build->csc->indptr + low, *order = build->csc->order;
	uint64_t from = build->bucket_from[bucket], to = build->bucket_from[bucket + 1];
	uint64_t edge_mask = (1ull << build->edge_bits) - 1;

	memset(starts, 0, rows * sizeof(*starts));
	for (uint64_t i = from; i < to; i++)
		starts[build->packed[i] >> build->edge_bits]++;
	uint64_t at = from;
	for (uint64_t row = 0; row < rows; row++) {
		uint64_t count = starts[row];
		starts[row] = at;
		at += count;
	}
	for (uint64_t i = from; i < to; i++)
		order[starts[build->packed[i] >> build->edge_bits]++] = build->packed[i] & edge_mask;
	uint64_t begin = from;
	for (uint64_t row = 0; row < rows; row++) {
		uint64_t end = starts[row];
		starts[row] = begin;
		if (end - begin > 1)
			sort_list(coo, order + begin, build->packed + begin, end - begin);
		begin = end;
	}
}

static gw_status bucket_body(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	for (uint64_t bucket = begin; bucket < end; bucket++)
		build_bucket(context, bucket);
	return GW_OK;
}

/* Buckets of a power of two of destinations, enough of them, and edge numbers that fit beside them in a word. */
static void choose_sizes(struct build *build, unsigned threads)
{
	const struct gw_coo *coo = build->coo;
	build->edge_bits = coo->num_edges > 1 ? bit_length(coo->num_edges - 1) : 1;
	while (coo->num_dst >> build->shift >= BUCKETS_MAX)
		build->shift++;
	assert(build->edge_bits + build->shift <= 64);
	build->buckets = coo->num_dst ? (uint32_t)((coo->num_dst - 1) >> build->shift) + 1 : 0;
	build->slices = threads < SLICES_MAX ? threads : SLICES_MAX;
}

static gw_status run(struct build *build, unsigned threads)
{
	gw_status status = gw_parallel_for(threads, build->slices, 1, count_body, build);
	if (status != GW_OK)
		return status;
	place_buckets(build);
	status = gw_parallel_for(threads, build->slices, 1, scatter_body, build);
	if (status == GW_OK)
		status = gw_parallel_for(threads, build->buckets, 1, bucket_body, build);
	build->csc->indptr[build->coo->num_dst] = build->coo->num_edges;
	return status;
}

gw_status gw_csc_build(const struct gw_coo *coo, unsigned threads, struct gw_csc *out)
{
	struct build build = {.coo = coo, .csc = out};
	memset(out, 0, sizeof(*out));
	if (coo->num_src >= GW_NONE || coo->num_dst >= 1ull << 40 || coo->num_edges >= 1ull << 33)
		return gw_fail(GW_LIMIT, "%llu destinations and %llu edges: more than one process can sort",
			       (unsigned long long)coo->num_dst, (unsigned long long)coo->num_edges);
	threads = threads ? threads : gw_processors();
	choose_sizes(&build, threads);
	out->indptr = big_alloc(coo->num_dst + 1);
	out->order = big_alloc(coo->num_edges);
	build.packed = big_alloc(coo->num_edges);
	build.cursors = gw_calloc((size_t)build.slices * build.buckets, sizeof(uint64_t));
	build.bucket_from = gw_calloc((size_t)build.buckets + 1, sizeof(uint64_t));
	gw_status status = GW_NO_MEMORY;
	if (out->indptr && out->order && build.packed && build.cursors && build.bucket_from)
		status = run(&build, threads);
	gw_free(build.packed);
	gw_free(build.cursors);
	gw_free(build.bucket_from);
	if (status != GW_OK)
		gw_csc_free(out);
	return status;
}

void gw_csc_free(struct gw_csc *csc)
{
	gw_free(csc->indptr);
	gw_free(csc->order);
	memset(csc, 0, sizeof(*csc));
}
