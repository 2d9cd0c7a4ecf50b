/* Any bytes as the RDMA hello of either side, or as a request or answer about a dynamic region: refused as the peer's
 * fault, or an answer in which every slice of every region has a key, of the hello on every rail. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "transport/transport.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifndef GRAPHWIRE_VERBS
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	(void)data;
	(void)size;
	return 0;
}
#else
#include "transport/verbs/handshake.h"
#include "transport/verbs/verbs.h"

static void use_answer(const uint8_t *data, uint32_t n, const struct gw_region *regions, uint32_t count)
{
	struct handshake_view view;
	if (gw_handshake_answer(data, n, regions, count, &view))
		return;
	volatile uint32_t key = 0;
	for (uint32_t i = 0; i < view.answer.address_count; i++) {
		struct handshake_address address;
		memcpy(&address, view.addresses + i * sizeof(address), sizeof(address));
		const uint8_t *keys = view.keys + 4ull * address.rail * view.keys_per_rail;
		for (uint32_t r = 0; r < count; r++) {
			struct handshake_region place;
			memcpy(&place, view.places + r * sizeof(place), sizeof(place));
			if (!regions[r].bytes)
				continue;
			/* The keys that a read of the first and of the last byte would take. */
			uint64_t last = (regions[r].bytes - 1) >> place.slice_shift;
			assert(last < place.slice_count);
			uint32_t first_key, last_key;
			memcpy(&first_key, keys, 4);
			memcpy(&last_key, keys + 4 * last, 4);
			key = key ^ first_key ^ last_key;
			keys += 4ull * place.slice_count;
		}
	}
}

static void use_keys(const uint8_t *data, uint32_t n, const struct gw_region *region)
{
	struct handshake_region place;
	const uint8_t *keys;
	if (gw_handshake_keys(data, n, region, &place, &keys))
		return;
	assert((region->bytes > 0) == (place.slice_count > 0));
	if (!region->bytes)
		return;
	uint64_t last = (region->bytes - 1) >> place.slice_shift;
	volatile uint32_t key;
	uint32_t first_key, last_key;
	assert(last < place.slice_count);
	memcpy(&first_key, keys, 4);
	memcpy(&last_key, keys + 4 * last, 4);
	key = first_key ^ last_key;
	(void)key;
}

/* The first byte says how many regions there are, the 8 behind it how long they are; the hello follows. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gw_region regions[4] = {0};
	struct handshake_question question;
	struct handshake_keys_question keys_question;
	struct handshake_token token;
	if (size < 9 || size > 1 << 20)
		return 0;
	uint32_t count = data[0] % 5;
	uint64_t bytes;
	memcpy(&bytes, data + 1, 8);
	for (uint32_t i = 0; i < count; i++)
		regions[i] = (struct gw_region){.id = i, .bytes = i == 1 ? 0 : (bytes >> (8 * i)) & 0xffffffffff};
	data += 9;
	uint32_t n = (uint32_t)size - 9;
	if (gw_handshake_question(data, n, &question) == GW_OK)
		assert(question.qps > 0 && question.version >= HANDSHAKE_OLDEST &&
		       question.version <= HANDSHAKE_VERSION);
	if (gw_handshake_token(data, n, &token) == GW_OK)
		assert(token.magic == HANDSHAKE_MAGIC);
	if (gw_handshake_keys_question(data, n, &keys_question) == GW_OK)
		assert(keys_question.version >= HANDSHAKE_OLDEST && keys_question.version <= HANDSHAKE_VERSION);
	use_answer(data, n, regions, count);
	for (uint32_t i = 0; i < count; i++)
		use_keys(data, n, &regions[i]);
	return 0;
}
#endif
