/* Looks up original ids in the index of a part. See id_index.h.
 *
 *   keys, BLOCK at a time -> bucket of each, fetched ahead -> its first entries, fetched ahead -> search in the bucket
 *
 * Fails if the offsets of a bucket are impossible, as they may be in a peer's memory.
 */
#include "core/graph/id_index.h"

#include <stdio.h>
#include <string.h>

#include "core/numbers/digest.h"

#define BLOCK  32u /* keys whose memory is fetched together */
#define LINEAR 16u /* entries that are searched one by one; a longer bucket is bisected first */

static const char *id_array_key(const struct gw_graph_meta *meta, uint32_t ntype, const char *name, char *key)
{
	snprintf(key, 2 * GW_NAME_MAX + 16, "node/%s/%s", meta->ntypes[ntype].name, name);
	return key;
}

enum gw_id_form gw_id_form(const struct gw_graph_meta *meta, uint32_t ntype)
{
	char key[2 * GW_NAME_MAX + 16];
	if (meta->minor < GW_FORMAT_MINOR_IDS)
		return GW_IDS_NONE; /* an older graph may have features of these names */
	if (gw_meta_array(meta, 0, id_array_key(meta, ntype, GW_INVERSE_NAME, key)))
		return GW_IDS_DENSE;
	const struct gw_array_meta *index = gw_meta_array(meta, 0, id_array_key(meta, ntype, GW_ID_INDEX_NAME, key));
	if (!index)
		return GW_IDS_NONE;
	return index->shape[1] == 3 ? GW_IDS_TEXTS : GW_IDS_NUMBERS;
}

void gw_id_text_key(const void *text, size_t bytes, uint64_t key[GW_ID_KEY_WORDS])
{
	gw_digest_wide(text, bytes, key);
}

bool gw_id_index_of(const struct gw_part *part, uint32_t ntype, struct gw_id_index *out)
{
	const struct gw_graph_meta *meta = gw_part_meta(part);
	char key[2 * GW_NAME_MAX + 16];
	*out = (struct gw_id_index){.form = gw_id_form(meta, ntype), .parts = meta->num_parts};
	out->words = gw_id_key_words(out->form);
	if (out->form == GW_IDS_DENSE) {
		const struct gw_array *nodes = gw_part_array(part, id_array_key(meta, ntype, GW_INVERSE_NAME, key));
		out->nodes = nodes->data;
		out->rows = nodes->rows;
		out->node_bytes = (uint8_t)nodes->row_bytes;
		return !nodes->apart;
	}
	if (out->form != GW_IDS_NONE) {
		const struct gw_array *entries = gw_part_array(part, id_array_key(meta, ntype, GW_ID_INDEX_NAME, key));
		const struct gw_array *buckets =
			gw_part_array(part, id_array_key(meta, ntype, GW_ID_BUCKETS_NAME, key));
		out->entries = (const uint64_t *)entries->data;
		out->rows = entries->rows;
		out->buckets = buckets->data;
		out->bucket_bytes = (uint8_t)buckets->row_bytes;
		out->bucket_count = buckets->rows - 1;
		return !entries->apart && !buckets->apart;
	}
	return false;
}

static void look_up_dense(const struct gw_id_index *index, const uint64_t *keys, uint64_t n, uint64_t *nodes)
{
	for (uint64_t i = 0; i < n; i++)
		nodes[i] = keys[i] < index->rows ? gw_load_id(index->nodes, index->node_bytes, keys[i]) : GW_ID_MISSING;
}

static inline bool entry_is_below(const uint64_t *entry, const uint64_t *key, uint32_t words)
{
	return entry[0] < key[0] || (words == 2 && entry[0] == key[0] && entry[1] < key[1]);
}

static inline bool entry_has(const uint64_t *entry, const uint64_t *key, uint32_t words)
{
	return entry[0] == key[0] && (words == 1 || entry[1] == key[1]);
}

/* The node of a key among sorted entries; *out: where it is, or would be. */
static inline uint64_t search_entries(const uint64_t *entries, uint64_t count, const uint64_t *key, uint32_t words,
				      uint64_t *out)
{
	const uint64_t width = words + 1;
	uint64_t at = 0, end = count;
	while (end - at > LINEAR) {
		uint64_t middle = at + (end - at) / 2;
		if (entry_is_below(entries + middle * width, key, words))
			at = middle + 1;
		else
			end = middle;
	}
	while (at < count && entry_is_below(entries + at * width, key, words))
		at++;
	*out = at;
	if (at == count || !entry_has(entries + at * width, key, words))
		return GW_ID_MISSING;
	bool shared = at + 1 < count && entry_has(entries + (at + 1) * width, key, words);
	return entries[at * width + words] | (shared ? GW_ID_SHARED : 0);
}

uint64_t gw_id_entries_find(const uint64_t *entries, uint64_t count, const uint64_t *key, uint32_t words, uint64_t *at)
{
	return search_entries(entries, count, key, words, at);
}

static inline gw_status look_up_block(const struct gw_id_index *index, const uint64_t *keys, uint32_t n,
				      uint64_t *nodes, uint32_t words)
{
	uint64_t bucket[BLOCK], begin[BLOCK], end[BLOCK], at;
	for (uint32_t i = 0; i < n; i++) {
		bucket[i] = gw_id_key_bucket(keys[(size_t)i * words], index->parts, index->bucket_count);
		__builtin_prefetch((const uint8_t *)index->buckets + bucket[i] * index->bucket_bytes);
	}
	for (uint32_t i = 0; i < n; i++) {
		begin[i] = gw_load_id(index->buckets, index->bucket_bytes, bucket[i]);
		end[i] = gw_load_id(index->buckets, index->bucket_bytes, bucket[i] + 1);
		if (begin[i] > end[i] || end[i] > index->rows)
			return gw_fail(GW_FORMAT, "bucket %llu of the id index is impossible: [%llu, %llu) of %llu",
				       (unsigned long long)bucket[i], (unsigned long long)begin[i],
				       (unsigned long long)end[i], (unsigned long long)index->rows);
		const uint64_t *entry = index->entries + begin[i] * (words + 1);
		__builtin_prefetch(entry);
		__builtin_prefetch(entry + 8); /* the next cache line */
	}
	for (uint32_t i = 0; i < n; i++)
		nodes[i] = search_entries(index->entries + begin[i] * (words + 1), end[i] - begin[i],
					  keys + (size_t)i * words, words, &at);
	return GW_OK;
}

gw_status gw_id_index_look_up(const struct gw_id_index *index, const uint64_t *keys, uint64_t n, uint64_t *nodes)
{
	gw_status status = GW_OK;
	if (index->form == GW_IDS_DENSE) {
		look_up_dense(index, keys, n, nodes);
		return GW_OK;
	}
	for (uint64_t i = 0; i < n && status == GW_OK; i += BLOCK) {
		uint32_t block = n - i < BLOCK ? (uint32_t)(n - i) : BLOCK;
		if (index->words == 2)
			status = look_up_block(index, keys + i * 2, block, nodes + i, 2);
		else
			status = look_up_block(index, keys + i, block, nodes + i, 1);
	}
	return status;
}
