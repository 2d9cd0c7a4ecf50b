/* Any bytes as an id request, as a reply to one, and as the index of a part: refused with a line of text, or taken as
 * they are and no further than they go. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/id_call.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse_call(const uint8_t *data, size_t size)
{
	struct gw_id_call call;
	const uint8_t *keys;
	if (gw_id_call_parse(data, size, 4, &call, &keys) != GW_OK) {
		assert(gw_last_error()[0] != '\0');
		return;
	}
	assert(call.ntype < 4 && call.count <= GW_ID_KEYS_MAX);
	assert(keys + (size_t)call.count * gw_id_key_words((enum gw_id_form)call.form) * 8 == data + size);
}

static void parse_reply(const uint8_t *data, size_t size)
{
	uint64_t nodes[64], count = size ? data[0] % 64 : 0;
	if (!size || gw_id_reply_parse(data + 1, size - 1, (uint32_t)count, 1000, nodes) != GW_OK)
		return;
	for (uint64_t i = 0; i < count; i++)
		assert(nodes[i] == GW_ID_MISSING || (nodes[i] & ~GW_ID_SHARED) < 1000);
}

/* Memory that a peer has mapped: offsets and entries of any value. */
static void look_up(const uint8_t *data, size_t size)
{
	if (size < 8)
		return;
	struct gw_id_index index = {.form = data[0] % 2 ? GW_IDS_TEXTS : GW_IDS_NUMBERS,
				    .parts = 1 + data[1] % 4u,
				    .bucket_bytes = data[0] % 4 < 2 ? 4 : 8,
				    .bucket_count = 1 + data[2] % 8u};
	index.words = gw_id_key_words(index.form);
	size_t bucket_bytes = (index.bucket_count + 1) * index.bucket_bytes;
	if (size < 8 + bucket_bytes)
		return;
	size_t entry_bytes = size - 8 - bucket_bytes;
	index.rows = entry_bytes / ((index.words + 1) * 8);
	/* copies of exact size and alignment, so that a sanitizer sees a read past them */
	uint8_t *buckets = malloc(bucket_bytes), *entries = malloc(entry_bytes + 1);
	memcpy(buckets, data + 8, bucket_bytes);
	memcpy(entries, data + 8 + bucket_bytes, entry_bytes);
	index.buckets = buckets;
	index.entries = (const uint64_t *)(const void *)entries;
	uint64_t keys[3 * GW_ID_KEY_WORDS] = {0}, nodes[3];
	for (uint64_t i = 0; i < 3 && i < index.rows; i++) /* some that exist, perhaps */
		memcpy(keys + i * index.words, index.entries + i * (index.words + 1), index.words * 8);
	if (gw_id_index_look_up(&index, keys, 3, nodes) != GW_OK)
		assert(gw_last_error()[0] != '\0');
	free(buckets);
	free(entries);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	if (data[0] % 3 == 0)
		parse_call(data + 1, size - 1);
	else if (data[0] % 3 == 1)
		parse_reply(data + 1, size - 1);
	else
		look_up(data + 1, size - 1);
	return 0;
}
