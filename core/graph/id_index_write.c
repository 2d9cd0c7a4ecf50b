/* Writes the index of original ids for every node type, and for edge types in several parts. See id_index.h.
 *
 *   are they 0 ... nodes - 1, and edges -> inverse_parts.c
 *   else: orig_id of all parts, mapped -> entries of each part counted -> a range of buckets at a time: entries counted
 *   by bucket, placed, sorted within their bucket -> appended to the parts' arrays
 *
 * Buckets are numbered over all parts, part after part, and every part has the same number of them. A range may cover
 * several parts, or a piece of one. Each range takes one or two loops over all original ids. Threads place entries in
 * any order; the sort makes the files the same for any number of threads. Fails with the writer's errors, and if memory
 * runs out.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/book.h"
#include "core/graph/id_index.h"
#include "core/graph/inverse.h"
#include "core/graph/npy.h"
#include "core/graph/width.h"
#include "core/memory/alloc.h"
#include "core/memory/vec.h"
#include "core/system/parallel.h"

#define GRAIN          65536u         /* nodes or buckets of a chunk */
#define RANGE_BYTES    (256ull << 20) /* memory of a range by default, unless the index is large */
#define RANGES_MAX     16u            /* of a large index */
#define BUCKET_ENTRIES 4u             /* on average */
#define BATCH          32u            /* nodes whose places are fetched together */
#define INSERTION_MAX  64u            /* entries of a bucket that are sorted by insertion */

/* The original ids of one part. */
struct id_source {
	struct gw_npy_file numbers, offsets, bytes; /* numbers, or the other two */
};

struct id_writing {
	struct gw_writer *writer;
	const struct gw_graph_meta *meta;
	const struct gw_node_type *type;
	uint32_t ntype;
	unsigned threads;
	uint64_t range_bytes;
	enum gw_id_form form;      /* numbers or texts */
	struct id_source *sources; /* [num_parts] */
	uint32_t part;             /* of the current loop */
	uint64_t first, last;      /* the current range of buckets */
	bool wide;
	uint32_t words;
	uint64_t bucket_count;  /* of each part */
	uint64_t *part_entries; /* [num_parts] */
	uint64_t *next;         /* [buckets of the range + 1]: where the next entry of the bucket goes */
	uint64_t *entries;      /* of the range */
	struct gw_vec next_memory, entry_memory; /* huge pages, for writes without order */
	struct gw_array_stream *index, *buckets; /* of the part being written; or NULL */
	uint64_t written;                        /* entries of that part */
};

static gw_status id_array_open(struct id_writing *w, uint32_t part, const char *name, struct gw_npy_file *out)
{
	char key[2 * GW_NAME_MAX + 16];
	snprintf(key, sizeof(key), "node/%s/%s", w->type->name, name);
	return gw_writer_map(w->writer, part, key, out);
}

static gw_status id_sources_open(struct id_writing *w)
{
	gw_status status = GW_OK;
	for (uint32_t p = 0; p < w->meta->num_parts && status == GW_OK; p++) {
		struct id_source *source = &w->sources[p];
		if (w->form == GW_IDS_NUMBERS) {
			status = id_array_open(w, p, "orig_id", &source->numbers);
			continue;
		}
		status = id_array_open(w, p, "orig_id.offsets", &source->offsets);
		if (status == GW_OK)
			status = id_array_open(w, p, "orig_id.bytes", &source->bytes);
	}
	return status;
}

static void id_sources_close(struct id_writing *w)
{
	for (uint32_t p = 0; w->sources && p < w->meta->num_parts; p++) {
		gw_npy_close(&w->sources[p].numbers);
		gw_npy_close(&w->sources[p].offsets);
		gw_npy_close(&w->sources[p].bytes);
	}
}

/* Runs a loop over the nodes of all parts; the body gets rows of the part w->part. */
static gw_status each_node(struct id_writing *w,
			   gw_status (*body)(void *context, uint64_t begin, uint64_t end, unsigned thread))
{
	gw_status status = GW_OK;
	for (w->part = 0; w->part < w->meta->num_parts && status == GW_OK; w->part++)
		status = gw_parallel_for(w->threads, w->type->starts[w->part + 1] - w->type->starts[w->part], GRAIN,
					 body, w);
	return status;
}

static const char *id_array_name(const struct id_writing *w, const char *name, char *key, size_t bytes)
{
	snprintf(key, bytes, "node/%s/%s", w->type->name, name);
	return key;
}

/* --- Entries. --- */

static inline void id_key_of(const struct id_writing *w, uint64_t row, uint64_t key[GW_ID_KEY_WORDS])
{
	const struct id_source *source = &w->sources[w->part];
	if (w->form == GW_IDS_NUMBERS) {
		key[0] = gw_id_number_key(((const int64_t *)source->numbers.data)[row]);
		return;
	}
	const uint64_t *offsets = source->offsets.data;
	gw_id_text_key((const uint8_t *)source->bytes.data + offsets[row], offsets[row + 1] - offsets[row], key);
}

/* The bucket of a key, counted over all parts. */
static inline uint64_t id_bucket_of(const struct id_writing *w, const uint64_t *key)
{
	uint32_t parts = w->meta->num_parts;
	return gw_id_key_owner(key[0], parts) * w->bucket_count + gw_id_key_bucket(key[0], parts, w->bucket_count);
}

static gw_status count_entries(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct id_writing *w = context;
	uint32_t parts = w->meta->num_parts;
	uint64_t key[GW_ID_KEY_WORDS], *counts = gw_calloc(parts, sizeof(*counts));
	(void)thread;
	if (!counts)
		return GW_NO_MEMORY;
	for (uint64_t i = begin; i < end; i++) {
		id_key_of(w, i, key);
		counts[gw_id_key_owner(key[0], parts)]++;
	}
	for (uint32_t p = 0; p < parts; p++)
		__atomic_fetch_add(&w->part_entries[p], counts[p], __ATOMIC_RELAXED);
	gw_free(counts);
	return GW_OK;
}

/* Nodes whose places in memory are fetched together. */
struct id_batch {
	uint32_t n;
	uint64_t keys[BATCH][GW_ID_KEY_WORDS];
	uint64_t buckets[BATCH]; /* of the range; a larger number: of another range */
};

/* Fills a batch with the nodes of the range among up to BATCH rows from `row` on, and fetches their buckets. nodes: may
 * be NULL. Returns the next row. */
static uint64_t take_batch(const struct id_writing *w, uint64_t row, uint64_t end, struct id_batch *batch,
			   uint64_t *nodes)
{
	end = end - row < BATCH ? end : row + BATCH;
	batch->n = 0;
	for (; row < end; row++) {
		uint64_t *key = batch->keys[batch->n];
		id_key_of(w, row, key);
		uint64_t bucket = id_bucket_of(w, key) - w->first;
		if (bucket >= w->last - w->first)
			continue;
		__builtin_prefetch(&w->next[bucket], 1);
		batch->buckets[batch->n] = bucket;
		if (nodes)
			nodes[batch->n] = w->type->starts[w->part] + row;
		batch->n++;
	}
	return end;
}

static gw_status count_buckets(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct id_writing *w = context;
	struct id_batch batch;
	(void)thread;
	while (begin < end) {
		begin = take_batch(w, begin, end, &batch, NULL);
		for (uint32_t i = 0; i < batch.n; i++)
			__atomic_fetch_add(&w->next[batch.buckets[i] + 1], 1, __ATOMIC_RELAXED);
	}
	return GW_OK;
}

static gw_status place_entries(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct id_writing *w = context;
	struct id_batch batch;
	uint64_t nodes[BATCH], *entries[BATCH];
	(void)thread;
	while (begin < end) {
		begin = take_batch(w, begin, end, &batch, nodes);
		for (uint32_t i = 0; i < batch.n; i++) {
			uint64_t at = __atomic_fetch_add(&w->next[batch.buckets[i]], 1, __ATOMIC_RELAXED);
			entries[i] = w->entries + at * (w->words + 1);
			__builtin_prefetch(entries[i], 1);
		}
		for (uint32_t i = 0; i < batch.n; i++) {
			for (uint32_t k = 0; k < w->words; k++)
				entries[i][k] = batch.keys[i][k];
			entries[i][w->words] = nodes[i];
		}
	}
	return GW_OK;
}

static int entry_compare(const uint64_t *a, const uint64_t *b, uint32_t width)
{
	for (uint32_t i = 0; i < width; i++) {
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	}
	return 0;
}

static int compare_number_entries(const void *a, const void *b)
{
	return entry_compare(a, b, 2);
}

static int compare_text_entries(const void *a, const void *b)
{
	return entry_compare(a, b, 3);
}

static void sort_bucket(uint64_t *entries, uint64_t n, uint32_t width)
{
	size_t bytes = width * sizeof(*entries);
	if (n > INSERTION_MAX) {
		qsort(entries, n, bytes, width == 2 ? compare_number_entries : compare_text_entries);
		return;
	}
	for (uint64_t i = 1; i < n; i++) {
		uint64_t entry[GW_ID_KEY_WORDS + 1], at = i;
		memcpy(entry, entries + i * width, bytes);
		for (; at > 0 && entry_compare(entry, entries + (at - 1) * width, width) < 0; at--)
			memcpy(entries + at * width, entries + (at - 1) * width, bytes);
		memcpy(entries + at * width, entry, bytes);
	}
}

/* After the placing, next[i] is the end of bucket i. */
static gw_status sort_buckets(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct id_writing *w = context;
	(void)thread;
	for (uint64_t b = begin; b < end; b++) {
		uint64_t from = b ? w->next[b - 1] : 0;
		sort_bucket(w->entries + from * (w->words + 1), w->next[b] - from, w->words + 1);
	}
	return GW_OK;
}

static gw_status fill_range(struct id_writing *w)
{
	uint64_t buckets = w->last - w->first;
	memset(w->next, 0, (buckets + 1) * sizeof(*w->next));
	gw_status status = each_node(w, count_buckets);
	for (uint64_t b = 0; b < buckets; b++)
		w->next[b + 1] += w->next[b];
	if (status == GW_OK) {
		status = gw_vec_reserve(&w->entry_memory, w->next[buckets] * (w->words + 1) * sizeof(*w->entries));
		w->entries = w->entry_memory.data;
		if (status == GW_OK)
			status = each_node(w, place_entries);
	}
	return status == GW_OK ? gw_parallel_for(w->threads, buckets, GRAIN, sort_buckets, w) : status;
}

static gw_status begin_part(struct id_writing *w, uint32_t part)
{
	char key[2 * GW_NAME_MAX + 16];
	uint64_t shape[2] = {w->part_entries[part], w->words + 1}, rows = w->bucket_count + 1;
	gw_dtype dtype = w->wide ? GW_UINT64 : GW_UINT32;
	gw_status status = gw_writer_begin(w->writer, part, id_array_name(w, GW_ID_INDEX_NAME, key, sizeof(key)),
					   GW_UINT64, 2, shape, &w->index);
	if (status == GW_OK)
		status = gw_writer_begin(w->writer, part, id_array_name(w, GW_ID_BUCKETS_NAME, key, sizeof(key)), dtype,
					 1, &rows, &w->buckets);
	w->written = 0;
	return status;
}

static gw_status append_bucket(struct id_writing *w, uint64_t first_entry)
{
	uint32_t narrow = (uint32_t)first_entry;
	return w->wide ? gw_writer_append(w->buckets, &first_entry, 8) : gw_writer_append(w->buckets, &narrow, 4);
}

static gw_status end_part(struct id_writing *w)
{
	gw_status status = append_bucket(w, w->written);
	struct gw_array_stream *index = w->index, *buckets = w->buckets;
	if (status != GW_OK)
		return status;
	w->index = NULL;
	status = gw_writer_end(index);
	if (status != GW_OK)
		return status;
	w->buckets = NULL;
	return gw_writer_end(buckets);
}

static gw_status append_range(struct id_writing *w)
{
	gw_status status = GW_OK;
	uint64_t at = 0; /* entries of the range that are appended */
	for (uint64_t b = w->first; b < w->last && status == GW_OK;) {
		uint32_t part = (uint32_t)(b / w->bucket_count);
		uint64_t part_end = (part + 1) * w->bucket_count, upto = part_end < w->last ? part_end : w->last;
		if (!w->index)
			status = begin_part(w, part);
		uint64_t from = at, before = w->written;
		for (; b < upto && status == GW_OK; b++) {
			status = append_bucket(w, before + (at - from));
			at = w->next[b - w->first];
		}
		if (status == GW_OK)
			status = gw_writer_append(w->index, w->entries + from * (w->words + 1),
						  (at - from) * (w->words + 1) * sizeof(*w->entries));
		w->written = before + (at - from);
		if (status == GW_OK && upto == part_end)
			status = end_part(w);
	}
	return status;
}

static gw_status write_entries(struct id_writing *w)
{
	uint64_t count = w->type->count, parts = w->meta->num_parts;
	w->words = gw_id_key_words(w->form);
	w->bucket_count = count / parts / BUCKET_ENTRIES + 1;
	uint64_t buckets = w->bucket_count * parts;
	uint64_t bytes = count * (w->words + 1) * sizeof(*w->entries) + buckets * sizeof(*w->next);
	uint64_t ranges = bytes / w->range_bytes + 1 < RANGES_MAX ? bytes / w->range_bytes + 1 : RANGES_MAX;
	uint64_t most = (buckets + ranges - 1) / ranges;
	w->part_entries = gw_calloc(parts, sizeof(*w->part_entries));
	gw_status status = gw_vec_reserve(&w->next_memory, (most + 1) * sizeof(*w->next));
	w->next = w->next_memory.data;
	if (status == GW_OK)
		status = w->part_entries ? GW_OK : GW_NO_MEMORY;
	if (status == GW_OK && parts > 1)
		status = each_node(w, count_entries);
	else if (status == GW_OK)
		w->part_entries[0] = count;
	for (w->first = 0; w->first < buckets && status == GW_OK; w->first = w->last) {
		w->last = buckets - w->first < most ? buckets : w->first + most;
		status = fill_range(w);
		if (status == GW_OK)
			status = append_range(w);
		gw_vec_free(&w->entry_memory);
	}
	gw_free(w->part_entries);
	gw_vec_free(&w->next_memory);
	return status;
}

/* --- All types. --- */

static gw_status write_type_ids(struct gw_writer *writer, uint32_t ntype, unsigned threads, uint64_t range_bytes)
{
	const struct gw_graph_meta *meta = gw_writer_meta(writer);
	char key[2 * GW_NAME_MAX + 16];
	struct id_writing w = {.writer = writer,
			       .meta = meta,
			       .type = &meta->ntypes[ntype],
			       .ntype = ntype,
			       .threads = threads,
			       .range_bytes = range_bytes ? range_bytes : RANGE_BYTES,
			       .wide = gw_is_wide(meta->ntypes[ntype].count)};
	if (gw_meta_array(meta, 0, id_array_name(&w, "orig_id.offsets", key, sizeof(key))))
		w.form = GW_IDS_TEXTS;
	else if (gw_meta_array(meta, 0, id_array_name(&w, "orig_id", key, sizeof(key))))
		w.form = GW_IDS_NUMBERS; /* key stays that of orig_id */
	else
		return GW_OK;
	const struct gw_inverse_of dense = {
		.key = key, .starts = w.type->starts, .unique = true, .threads = threads, .range_bytes = range_bytes};
	bool written = false;
	gw_status status = w.form == GW_IDS_NUMBERS ? gw_inverse_write_parts(writer, &dense, &written) : GW_OK;
	if (status != GW_OK || written)
		return status;
	w.sources = gw_calloc(meta->num_parts, sizeof(*w.sources));
	status = w.sources ? id_sources_open(&w) : GW_NO_MEMORY;
	if (status == GW_OK)
		status = write_entries(&w);
	if (w.index)
		gw_writer_drop(w.index);
	if (w.buckets)
		gw_writer_drop(w.buckets);
	id_sources_close(&w);
	gw_free(w.sources);
	return status == GW_OK ? GW_OK
			       : gw_context(status, "node type %s: the index of its original ids", w.type->name);
}

/* A graph in one part has the inverse already: see gw_inverse_write. */
static gw_status write_edge_ids(struct gw_writer *writer, uint32_t etype, unsigned threads, uint64_t range_bytes)
{
	const struct gw_graph_meta *meta = gw_writer_meta(writer);
	char key[GW_EDGE_FOLDER_MAX + 32];
	snprintf(key, sizeof(key), "edge/%s/orig_id", meta->etypes[etype].folder);
	const struct gw_inverse_of of = {
		.key = key, .starts = meta->etypes[etype].starts, .threads = threads, .range_bytes = range_bytes};
	bool written;
	if (meta->num_parts == 1 || !gw_meta_array(meta, 0, key))
		return GW_OK;
	return gw_inverse_write_parts(writer, &of, &written);
}

/* Whether a feature of the graph has a name that the index needs, as older versions allowed. */
static bool names_are_used(const struct gw_graph_meta *meta)
{
	for (uint32_t i = 0; i < meta->parts[0].count; i++) {
		struct gw_array_key key;
		if (gw_array_key_parse(meta, meta->parts[0].arrays[i].key, &key) == GW_OK && !key.edge &&
		    gw_name_is_node_ids(key.name))
			return true;
	}
	return false;
}

gw_status gw_id_index_write(struct gw_writer *writer, unsigned threads, uint64_t range_bytes)
{
	gw_status status = GW_OK;
	if (names_are_used(gw_writer_meta(writer)))
		return GW_OK;
	gw_writer_set_minor(writer, GW_FORMAT_MINOR_IDS);
	for (uint32_t t = 0; t < gw_writer_meta(writer)->num_ntypes && status == GW_OK; t++)
		status = write_type_ids(writer, t, threads, range_bytes);
	for (uint32_t t = 0; t < gw_writer_meta(writer)->num_etypes && status == GW_OK; t++)
		status = write_edge_ids(writer, t, threads, range_bytes);
	return status;
}
