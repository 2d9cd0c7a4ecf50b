/* Converts an edge list to CSC: two levels of counting sort by destination, then a sort of each list by its keys.
 *
 *   histogram of buckets (upper bits of dst) by slices of the input -> scatter (dst in bucket, edge number), packed in
 *   8 bytes, and src -> each bucket by itself, in cache: count, place (src, edge number), sort its lists by radix
 *
 * The first level writes to a few hundred streams and reads in order. A gather by edge number would miss the TLB at
 * every edge. Slices scatter in input order, and list sorts break ties by position. So the result does not depend on
 * the number of threads. Fails for ids out of range (names the edge), and if memory runs out.
 */
#include "core/graph/csc.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/memory/memory.h"
#include "core/system/parallel.h"

#define BUCKETS_MAX 512u /* write streams of the scatter; a second-level TLB covers this many */
#define SLICES_MAX  64u

#define SMALL_LIST     32u   /* up to this many edges, insertion sort is faster than counting */
#define WIDE_LIST      4096u /* from this many edges on, a radix pass takes RADIX_BITS_MAX bits instead of 8 */
#define RADIX_BITS_MAX 11u

struct csc_scratch {
	uint64_t *words;
	uint64_t room;
};

struct csc_build {
	const struct gw_coo *coo;
	struct gw_csc *csc;
	uint64_t *packed;      /* [num_edges]: dst in bucket above edge_bits, edge number below */
	uint64_t *cursors;     /* [slices][buckets]: counts; then the position of a slice's next edge in a bucket */
	uint64_t *bucket_from; /* [buckets + 1] */
	uint32_t buckets, slices;
	uint32_t shift;              /* dst >> shift is the bucket */
	uint32_t edge_bits;          /* bits of an edge number */
	bool src_fits;               /* a source fits in a word together with an edge number */
	struct csc_scratch *scratch; /* one for each thread, with room for the largest bucket */
};

static uint32_t bit_length(uint64_t value)
{
	return value ? 64 - (uint32_t)__builtin_clzll(value) : 0;
}

/* Access to large tables is random, and huge pages halve its cost where the system provides them. */
static uint64_t *big_alloc(uint64_t count)
{
	uint64_t *memory = count <= SIZE_MAX / sizeof(uint64_t) ? gw_malloc((size_t)count * sizeof(uint64_t)) : NULL;
	if (!memory && count > SIZE_MAX / sizeof(uint64_t))
		gw_fail(GW_NO_MEMORY, "no memory for %llu numbers", (unsigned long long)count);
	if (memory)
		gw_memory_huge(memory, count * sizeof(uint64_t));
	return memory;
}

static uint64_t slice_begin(const struct csc_build *build, uint64_t slice)
{
	return (uint64_t)((unsigned __int128)build->coo->num_edges * slice / build->slices);
}

gw_status gw_coo_check(const struct gw_coo *coo, uint64_t edge)
{
	if (coo->src[edge] < coo->num_src && coo->dst[edge] < coo->num_dst)
		return GW_OK;
	return gw_fail(GW_RANGE, "edge %llu: %llu -> %llu, but there are %llu sources and %llu destinations",
		       (unsigned long long)edge, (unsigned long long)coo->src[edge], (unsigned long long)coo->dst[edge],
		       (unsigned long long)coo->num_src, (unsigned long long)coo->num_dst);
}

static gw_status count_slice(struct csc_build *build, uint64_t slice)
{
	const struct gw_coo *coo = build->coo;
	uint64_t *counts = build->cursors + slice * build->buckets;
	uint64_t end = slice_begin(build, slice + 1);
	for (uint64_t e = slice_begin(build, slice); e < end; e++) {
		if (coo->src[e] >= coo->num_src || coo->dst[e] >= coo->num_dst)
			return gw_coo_check(coo, e);
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

/* Turns counts into cursors: buckets in order, and slices in order within each bucket. */
static void place_buckets(struct csc_build *build)
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

/* `order` is not needed before the buckets are sorted. Until then it holds the sources in scattered order, which avoids
 * random reads later. */
static gw_status scatter_body(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	struct csc_build *build = context;
	(void)thread;
	const uint64_t *src = build->coo->src, *dst = build->coo->dst;
	uint64_t mask = (1ull << build->shift) - 1;
	for (uint64_t slice = begin; slice < end; slice++) {
		uint64_t *cursors = build->cursors + slice * build->buckets;
		uint64_t stop = slice_begin(build, slice + 1);
		for (uint64_t e = slice_begin(build, slice); e < stop; e++) {
			uint64_t at = cursors[dst[e] >> build->shift]++;
			build->packed[at] = (dst[e] & mask) << build->edge_bits | e;
			build->csc->order[at] = src[e];
		}
	}
	return GW_OK;
}

/* --- sorting one list --------------------------------------------------------------------------------------------- */

static void sort_small(uint64_t *words, uint64_t n)
{
	for (uint64_t i = 1; i < n; i++) {
		uint64_t word = words[i], j = i;
		for (; j > 0 && words[j - 1] > word; j--)
			words[j] = words[j - 1];
		words[j] = word;
	}
}

/* Stable. */
static void radix_pass(const uint64_t *from, uint64_t *to, uint64_t n, uint32_t shift, uint32_t bits)
{
	uint64_t places[1u << RADIX_BITS_MAX];
	uint64_t mask = (1ull << bits) - 1, at = 0;
	memset(places, 0, sizeof(*places) << bits);
	for (uint64_t i = 0; i < n; i++)
		places[from[i] >> shift & mask]++;
	for (uint64_t digit = 0; digit <= mask; digit++) {
		uint64_t count = places[digit];
		places[digit] = at;
		at += count;
	}
	for (uint64_t i = 0; i < n; i++)
		to[places[from[i] >> shift & mask]++] = from[i];
}

/* Sorts words by their bits from low_bit up. The bits below low_bit hold positions, ascending on entry, so that ties
 * keep their order. spare: n words. */
static void sort_words(uint64_t *words, uint64_t *spare, uint64_t n, uint32_t low_bit)
{
	uint64_t differ = 0, before = 0;
	bool sorted = true;
	for (uint64_t i = 0; i < n; i++) {
		differ |= words[i] ^ words[0];
		sorted &= words[i] >= before;
		before = words[i];
	}
	if (sorted)
		return;
	if (n <= SMALL_LIST) {
		sort_small(words, n);
		return;
	}
	uint32_t bits = n < WIDE_LIST ? 8 : RADIX_BITS_MAX, top = bit_length(differ);
	uint64_t *from = words, *to = spare;
	for (uint32_t shift = low_bit; shift < top; shift += bits) {
		radix_pass(from, to, n, shift, bits);
		uint64_t *swap = from;
		from = to;
		to = swap;
	}
	if (from != words)
		memcpy(words, from, n * sizeof(*words));
}

enum list_key { KEY_SRC, KEY_REL, KEY_TIME };

static uint64_t key_of(const struct gw_coo *coo, enum list_key which, uint64_t edge)
{
	if (which == KEY_SRC)
		return coo->src[edge];
	if (which == KEY_REL)
		return coo->rel[edge];
	return (uint64_t)coo->time[edge] ^ (uint64_t)1 << 63; /* keeps the order of signed numbers */
}

/* Sorts a list of edge numbers by one key, stably, as words of (key - smallest key, position). If a word is too small,
 * it sorts in several rounds from the low bits up. words, spare: n each. */
static void sort_by(const struct gw_coo *coo, enum list_key which, uint64_t *list, uint64_t *words, uint64_t *spare,
		    uint64_t n)
{
	uint64_t low = UINT64_MAX, high = 0;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t key = key_of(coo, which, list[i]);
		low = key < low ? key : low;
		high = key > high ? key : high;
	}
	uint32_t position_bits = bit_length(n - 1), key_bits = bit_length(high - low), room = 64 - position_bits;
	uint64_t position_mask = (1ull << position_bits) - 1;
	for (uint32_t done = 0; done < key_bits; done += room) {
		for (uint64_t i = 0; i < n; i++)
			words[i] = (key_of(coo, which, list[i]) - low) >> done << position_bits | i;
		sort_words(words, spare, n, position_bits);
		for (uint64_t i = 0; i < n; i++)
			words[i] = list[words[i] & position_mask];
		memcpy(list, words, n * sizeof(*list));
	}
}

/* words[0, n) are the list, as place_edges placed it; order receives its edge numbers. */
static void sort_list(const struct csc_build *build, uint64_t *order, uint64_t *words, uint64_t *spare, uint64_t n)
{
	const struct gw_coo *coo = build->coo;
	uint64_t edge_mask = (1ull << build->edge_bits) - 1;
	if (build->src_fits)
		sort_words(words, spare, n, build->edge_bits);
	for (uint64_t i = 0; i < n; i++)
		order[i] = words[i] & edge_mask;
	if (!build->src_fits && n > 1)
		sort_by(coo, KEY_SRC, order, words, spare, n);
	if (coo->time && n > 1)
		sort_by(coo, KEY_TIME, order, words, spare, n);
	if (coo->rel && n > 1)
		sort_by(coo, KEY_REL, order, words, spare, n);
}

/* Counting sort of a bucket by destination into words: (source, edge number) if both fit, else the edge number. starts:
 * the bucket's cells of indptr, which contain first counts, then cursors, and finally the ends of the lists. */
static void place_edges(const struct csc_build *build, uint64_t bucket, uint64_t *starts, uint64_t rows,
			uint64_t *words)
{
	uint64_t from = build->bucket_from[bucket], to = build->bucket_from[bucket + 1], at = 0;
	uint64_t edge_mask = (1ull << build->edge_bits) - 1;
	const uint64_t *packed = build->packed, *src = build->csc->order;
	memset(starts, 0, rows * sizeof(*starts));
	for (uint64_t i = from; i < to; i++)
		starts[packed[i] >> build->edge_bits]++;
	for (uint64_t row = 0; row < rows; row++) {
		uint64_t count = starts[row];
		starts[row] = at;
		at += count;
	}
	uint32_t src_shift = build->src_fits ? build->edge_bits : 0;
	uint64_t src_mask = build->src_fits ? UINT64_MAX : 0;
	for (uint64_t i = from; i < to; i++)
		words[starts[packed[i] >> build->edge_bits]++] =
			(src[i] & src_mask) << src_shift | (packed[i] & edge_mask);
}

static gw_status build_bucket(struct csc_build *build, uint64_t bucket, struct csc_scratch *scratch)
{
	uint64_t low = bucket << build->shift, high = (bucket + 1) << build->shift;
	uint64_t rows = (high < build->coo->num_dst ? high : build->coo->num_dst) - low;
	uint64_t *starts = build->csc->indptr + low;
	uint64_t from = build->bucket_from[bucket], edges = build->bucket_from[bucket + 1] - from;
	if (!scratch->words || edges > scratch->room) {
		gw_free(scratch->words);
		scratch->words = big_alloc(edges + edges / 4);
		scratch->room = scratch->words ? edges + edges / 4 : 0;
		if (!scratch->words)
			return GW_NO_MEMORY;
	}
	place_edges(build, bucket, starts, rows, scratch->words);
	uint64_t begin = 0;
	for (uint64_t row = 0; row < rows; row++) {
		uint64_t end = starts[row];
		starts[row] = from + begin;
		sort_list(build, build->csc->order + from + begin, scratch->words + begin, build->packed + from + begin,
			  end - begin);
		begin = end;
	}
	return GW_OK;
}

static gw_status bucket_body(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	struct csc_build *build = context;
	gw_status status = GW_OK;
	for (uint64_t bucket = begin; status == GW_OK && bucket < end; bucket++)
		status = build_bucket(build, bucket, &build->scratch[thread]);
	return status;
}

/* Chooses how many destinations a bucket has: a power of two that gives at most BUCKETS_MAX buckets. A destination in
 * its bucket then fits in one word together with an edge number. */
static void choose_sizes(struct csc_build *build, unsigned threads)
{
	const struct gw_coo *coo = build->coo;
	build->edge_bits = coo->num_edges > 1 ? bit_length(coo->num_edges - 1) : 1;
	while (coo->num_dst >> build->shift >= BUCKETS_MAX)
		build->shift++;
	assert(build->edge_bits + build->shift <= 64);
	build->src_fits = bit_length(coo->num_src) + build->edge_bits <= 64;
	build->buckets = coo->num_dst ? (uint32_t)((coo->num_dst - 1) >> build->shift) + 1 : 0;
	build->slices = threads < SLICES_MAX ? threads : SLICES_MAX;
}

static gw_status csc_run(struct csc_build *build, unsigned threads)
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
	struct csc_build build = {.coo = coo, .csc = out};
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
	build.scratch = gw_calloc(threads, sizeof(*build.scratch));
	gw_status status = GW_NO_MEMORY;
	if (out->indptr && out->order && build.packed && build.cursors && build.bucket_from && build.scratch)
		status = csc_run(&build, threads);
	for (unsigned t = 0; build.scratch && t < threads; t++)
		gw_free(build.scratch[t].words);
	gw_free(build.scratch);
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
