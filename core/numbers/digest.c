/* XXH3-64 of complete chunks, and of payloads that arrive in pieces.
 *
 *   add: a complete chunk at hand -> one shot; else -> the running state -> a chunk is full -> its digest is appended
 *
 * Fails only if memory runs out.
 */
#include "core/numbers/digest.h"

#include <string.h>

#define XXH_STATIC_LINKING_ONLY /* declares the state's size, so that the allocation hook can provide it */
#include <xxhash.h>

#include "core/memory/alloc.h"

struct gw_digester {
	XXH3_state_t *state;  /* aligned, inside `memory` */
	uint64_t chunk_bytes; /* bytes of the current chunk so far */
	uint64_t *digests;
	uint64_t count, capacity;
	uint8_t memory[sizeof(XXH3_state_t) + 64];
};

uint64_t gw_digest(const void *data, size_t bytes)
{
	return XXH3_64bits(data, bytes);
}

void gw_digest_wide(const void *data, size_t bytes, uint64_t digest[2])
{
	XXH128_hash_t hash = XXH3_128bits(data, bytes);
	digest[0] = hash.high64;
	digest[1] = hash.low64;
}

uint64_t gw_digest_pieces(const struct gw_digest_piece *pieces, size_t count)
{
	XXH3_state_t state; /* its type aligns it */
	XXH3_64bits_reset(&state);
	for (size_t i = 0; i < count; i++)
		XXH3_64bits_update(&state, pieces[i].data, pieces[i].bytes);
	return XXH3_64bits_digest(&state);
}

uint64_t gw_digest_add(uint64_t before, const void *data, size_t bytes)
{
	/* The seed depends on the digest so far and on the length of the new bytes. */
	return XXH3_64bits_withSeed(data, bytes, before ^ (bytes * 0x9e3779b97f4a7c15ull));
}

uint64_t gw_array_digest(const void *data, uint64_t bytes)
{
	XXH3_state_t state;
	XXH3_64bits_reset(&state);
	const uint8_t *next = data;
	for (uint64_t left = bytes; left > 0;) {
		uint64_t piece = left < GW_DIGEST_CHUNK ? left : GW_DIGEST_CHUNK;
		uint64_t digest = XXH3_64bits(next, piece);
		XXH3_64bits_update(&state, &digest, sizeof(digest));
		next += piece;
		left -= piece;
	}
	return XXH3_64bits_digest(&state);
}

gw_status gw_digester_create(struct gw_digester **out)
{
	*out = NULL;
	struct gw_digester *digester = gw_calloc(1, sizeof(*digester));
	if (!digester)
		return GW_NO_MEMORY;
	uintptr_t address = ((uintptr_t)digester->memory + 63) & ~(uintptr_t)63; /* XXH3_state_t's alignment */
	digester->state = (XXH3_state_t *)address;
	XXH3_64bits_reset(digester->state);
	*out = digester;
	return GW_OK;
}

static gw_status append_digest(struct gw_digester *digester, uint64_t value)
{
	if (digester->count == digester->capacity) {
		uint64_t capacity = digester->capacity ? 2 * digester->capacity : 16;
		uint64_t *digests = gw_realloc(digester->digests, capacity, sizeof(*digests));
		if (!digests)
			return GW_NO_MEMORY;
		digester->digests = digests;
		digester->capacity = capacity;
	}
	digester->digests[digester->count++] = value;
	return GW_OK;
}

static gw_status end_chunk(struct gw_digester *digester)
{
	gw_status status = append_digest(digester, XXH3_64bits_digest(digester->state));
	if (status != GW_OK)
		return status;
	XXH3_64bits_reset(digester->state);
	digester->chunk_bytes = 0;
	return GW_OK;
}

gw_status gw_digester_add(struct gw_digester *digester, const void *data, size_t bytes)
{
	const uint8_t *next = data;
	while (bytes > 0) {
		gw_status status = GW_OK;
		size_t piece = GW_DIGEST_CHUNK - digester->chunk_bytes;
		if (piece > bytes)
			piece = bytes;
		if (piece == GW_DIGEST_CHUNK) {
			status = append_digest(digester, XXH3_64bits(next, piece));
		} else {
			XXH3_64bits_update(digester->state, next, piece);
			digester->chunk_bytes += piece;
			if (digester->chunk_bytes == GW_DIGEST_CHUNK)
				status = end_chunk(digester);
		}
		if (status != GW_OK)
			return status;
		next += piece;
		bytes -= piece;
	}
	return GW_OK;
}

gw_status gw_digester_finish(struct gw_digester *digester, const uint64_t **digests, uint64_t *count)
{
	if (digester->chunk_bytes > 0) {
		gw_status status = end_chunk(digester);
		if (status != GW_OK)
			return status;
	}
	*digests = digester->digests;
	*count = digester->count;
	return GW_OK;
}

void gw_digester_destroy(struct gw_digester *digester)
{
	if (!digester)
		return;
	gw_free(digester->digests);
	gw_free(digester);
}
