/* Checks the index of original ids.
 *
 *   a part alone: buckets from 0, ascending, to the number of entries -> entries sorted, in their part and their bucket
 *   -> nodes that exist
 *   parts together: marks of {key, node} added up, once over the nodes and once over the entries
 *
 * Fails with the first fault of the chunk that failed first.
 */
#include <inttypes.h>
#include <stdio.h>

#include "core/graph/book.h"
#include "core/graph/id_index.h"
#include "core/system/parallel.h"

#define GRAIN 65536u /* buckets, ids or nodes of a chunk */

struct id_check {
	const struct gw_graph_meta *meta;
	const struct gw_part *part;
	uint32_t ntype;
	struct gw_id_index index;
	const struct gw_array *nodes, *entries, *buckets; /* for error texts */
	const struct gw_array *numbers, *offsets, *bytes; /* the original ids */
	struct gw_id_scan *scan;
};

static const struct gw_array *id_check_array(const struct id_check *check, const char *name)
{
	char key[2 * GW_NAME_MAX + 16];
	snprintf(key, sizeof(key), "node/%s/%s", check->meta->ntypes[check->ntype].name, name);
	return gw_part_array(check->part, key);
}

/* False: the type has no index. */
static bool id_check_begin(struct id_check *check, const struct gw_part *part, uint32_t ntype)
{
	*check = (struct id_check){.meta = gw_part_meta(part), .part = part, .ntype = ntype};
	check->nodes = id_check_array(check, GW_INVERSE_NAME);
	check->entries = id_check_array(check, GW_ID_INDEX_NAME);
	check->buckets = id_check_array(check, GW_ID_BUCKETS_NAME);
	check->numbers = id_check_array(check, "orig_id");
	check->offsets = id_check_array(check, "orig_id.offsets");
	check->bytes = id_check_array(check, "orig_id.bytes");
	return gw_id_index_of(part, ntype, &check->index);
}

/* --- One part. --- */

static gw_status dense_nodes(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct id_check *check = context;
	uint64_t count = check->meta->ntypes[check->ntype].count;
	(void)thread;
	for (uint64_t i = begin; i < end; i++) {
		uint64_t node = gw_load_id(check->index.nodes, check->index.node_bytes, i);
		if (node >= count)
			return gw_part_bad(check->meta, GW_RANGE, check->nodes,
					   "row %" PRIu64 ": node %" PRIu64 " of %" PRIu64, i, node, count);
	}
	return GW_OK;
}

static bool is_after(const uint64_t *entry, const uint64_t *before, uint32_t width)
{
	for (uint32_t i = 0; i < width; i++) {
		if (entry[i] != before[i])
			return entry[i] > before[i];
	}
	return false;
}

static gw_status bucket_entries(const struct id_check *check, uint64_t bucket, uint64_t from, uint64_t to)
{
	const struct gw_id_index *index = &check->index;
	uint32_t width = index->words + 1, number = gw_part_number(check->part);
	uint64_t count = check->meta->ntypes[check->ntype].count;
	for (uint64_t i = from; i < to; i++) {
		const uint64_t *entry = index->entries + i * width;
		if (gw_id_key_owner(entry[0], index->parts) != number ||
		    gw_id_key_bucket(entry[0], index->parts, index->bucket_count) != bucket)
			return gw_part_bad(check->meta, GW_FORMAT, check->entries,
					   "row %" PRIu64 ": its key belongs to another part or bucket", i);
		if (i > from && !is_after(entry, entry - width, width))
			return gw_part_bad(check->meta, GW_FORMAT, check->entries, "row %" PRIu64 ": out of order", i);
		if (entry[width - 1] >= count)
			return gw_part_bad(check->meta, GW_RANGE, check->entries,
					   "row %" PRIu64 ": node %" PRIu64 " of %" PRIu64, i, entry[width - 1], count);
	}
	return GW_OK;
}

static gw_status each_bucket(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct id_check *check = context;
	const struct gw_id_index *index = &check->index;
	gw_status status = GW_OK;
	(void)thread;
	for (uint64_t b = begin; b < end && status == GW_OK; b++) {
		uint64_t from = gw_load_id(index->buckets, index->bucket_bytes, b);
		uint64_t to = gw_load_id(index->buckets, index->bucket_bytes, b + 1);
		if (from > to || to > index->rows)
			return gw_part_bad(check->meta, GW_FORMAT, check->buckets,
					   "row %" PRIu64 ": the bucket is [%" PRIu64 ", %" PRIu64 ") of %" PRIu64
					   " entries",
					   b, from, to, index->rows);
		status = bucket_entries(check, b, from, to);
	}
	return status;
}

gw_status gw_id_index_check(const struct gw_part *part, uint32_t ntype, unsigned threads)
{
	struct id_check check;
	if (!id_check_begin(&check, part, ntype))
		return GW_OK;
	const struct gw_id_index *index = &check.index;
	if (index->form == GW_IDS_DENSE)
		return gw_parallel_for(threads, index->rows, GRAIN, dense_nodes, &check);
	uint64_t first = gw_load_id(index->buckets, index->bucket_bytes, 0);
	uint64_t last = gw_load_id(index->buckets, index->bucket_bytes, index->bucket_count);
	if (first != 0 || last != index->rows)
		return gw_part_bad(check.meta, GW_FORMAT, check.buckets,
				   "runs from %" PRIu64 " to %" PRIu64 ", but there are %" PRIu64 " entries", first,
				   last, index->rows);
	return gw_parallel_for(threads, index->bucket_count, GRAIN, each_bucket, &check);
}

/* --- All parts. --- */

/* A number of a pair of key and node, to be added up. */
static inline uint64_t pair_mark(const uint64_t *key, uint32_t words, uint64_t node)
{
	uint64_t mark = gw_mix64(key[0] + 0x9e3779b97f4a7c15ull);
	if (words == 2)
		mark = gw_mix64(mark ^ (key[1] + 0xd1b54a32d192ed03ull));
	return gw_mix64(mark ^ (node + 0x8cb92ba72f3d8dd7ull));
}

static gw_status scan_nodes(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct id_check *check = context;
	const struct gw_id_index *index = &check->index;
	uint64_t start = check->meta->ntypes[check->ntype].starts[gw_part_number(check->part)], sum = 0;
	uint64_t key[GW_ID_KEY_WORDS] = {0};
	(void)thread;
	for (uint64_t i = begin; i < end; i++) {
		if (index->form == GW_IDS_TEXTS) {
			const uint64_t *offsets = (const uint64_t *)check->offsets->data;
			gw_id_text_key(check->bytes->data + offsets[i], offsets[i + 1] - offsets[i], key);
		} else {
			int64_t id = ((const int64_t *)check->numbers->data)[i];
			key[0] = index->form == GW_IDS_DENSE ? (uint64_t)id : gw_id_number_key(id);
		}
		sum += pair_mark(key, index->words, start + i);
	}
	__atomic_fetch_add(&check->scan->nodes, sum, __ATOMIC_RELAXED);
	return GW_OK;
}

static gw_status scan_index(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct id_check *check = context;
	const struct gw_id_index *index = &check->index;
	uint64_t sum = 0, start = gw_dense_start(check->meta->ntypes[check->ntype].count, gw_part_number(check->part),
						 check->meta->num_parts);
	(void)thread;
	for (uint64_t i = begin; i < end; i++) {
		const uint64_t *entry = index->entries + i * (index->words + 1), id = start + i;
		sum += index->form == GW_IDS_DENSE ? pair_mark(&id, 1, gw_load_id(index->nodes, index->node_bytes, i))
						   : pair_mark(entry, index->words, entry[index->words]);
	}
	__atomic_fetch_add(&check->scan->entries, sum, __ATOMIC_RELAXED);
	return GW_OK;
}

gw_status gw_id_index_scan(const struct gw_part *part, uint32_t ntype, unsigned threads, struct gw_id_scan *scan)
{
	struct id_check check;
	if (!id_check_begin(&check, part, ntype))
		return GW_OK;
	check.scan = scan;
	uint32_t number = gw_part_number(part);
	const uint64_t *starts = check.meta->ntypes[ntype].starts;
	gw_status status = gw_parallel_for(threads, starts[number + 1] - starts[number], GRAIN, scan_nodes, &check);
	return status == GW_OK ? gw_parallel_for(threads, check.index.rows, GRAIN, scan_index, &check) : status;
}
