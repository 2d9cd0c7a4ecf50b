/* Rows with a sequence and a hash. Only this file knows the order in which their bytes are written and read.
 *
 *   write   sequence: s -> s + 1 (compare-and-swap, acquire) | fence | payload, hash | sequence := s + 2 (release)
 *   read    sequence (acquire), even? | copy | fence | sequence again: the same? -> intact
 *
 * A reader that sees one byte of a write sees, after its fence, that write's odd sequence or a later one. The writer's
 * fence orders the odd sequence before the payload, and the reader's fence orders the payload before the second read of
 * the sequence. A reader whose first read finds s + 2 sees the complete payload, by release and acquire.
 *
 * On aarch64 the writer's fence is a dmb ish. The compare-and-swap alone would let the payload overtake the store of s
 * + 1, because acquire orders only its load. The reader's fence is a dmb ishld, and the other orders are stlr and ldar.
 * On x86-64 all of these constrain only the compiler.
 *
 * The copies between the fences are plain memcpy. In C this is a data race, although the reader discards the bytes
 * unless the sequences agree. In practice the memcpy is a library call, or moves that the compiler keeps between the
 * two fences.
 *
 * The thread sanitizer does not know fences, and GCC refuses them under it. There the payload is copied by atomic
 * words, loaded with acquire and stored with release, which gives the same two orders word by word. Rows are padded to
 * full words, so that no word belongs to two rows.
 *
 * Fails only for an invalid row size.
 */
#include "core/numbers/row.h"

#include <string.h>

#define XXH_INLINE_ALL /* twice as fast on short rows as the library's call, which is built for older processors */
#include <xxhash.h>

#include "core/numbers/rng.h"

#if defined(__SANITIZE_THREAD__)
#define ROW_ATOMIC_WORDS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ROW_ATOMIC_WORDS 1
#endif
#endif

#ifdef ROW_ATOMIC_WORDS
#define row_fence(order) ((void)(order))

static void row_copy_out(void *to, const uint8_t *row, uint32_t bytes)
{
	const uint64_t *words = (const void *)row;
	for (uint32_t at = 0; at < bytes; at += 8) {
		uint64_t word = __atomic_load_n(&words[at / 8], __ATOMIC_ACQUIRE);
		memcpy((uint8_t *)to + at, &word, bytes - at < 8 ? bytes - at : 8);
	}
}

static void row_copy_in(uint8_t *row, const void *from, uint32_t bytes)
{
	uint64_t *words = (void *)row;
	for (uint32_t at = 0; at < bytes; at += 8) {
		uint64_t word = 0;
		memcpy(&word, (const uint8_t *)from + at, bytes - at < 8 ? bytes - at : 8);
		__atomic_store_n(&words[at / 8], word, __ATOMIC_RELEASE);
	}
}
#else
#define row_fence(order) __atomic_thread_fence(order)

static void row_copy_out(void *to, const uint8_t *row, uint32_t bytes)
{
	memcpy(to, row, bytes);
}

static void row_copy_in(uint8_t *row, const void *from, uint32_t bytes)
{
	memcpy(row, from, bytes);
}
#endif

static uint64_t *row_sequence(const struct gw_row_format *format, const uint8_t *row)
{
	return (uint64_t *)(void *)((uintptr_t)row + gw_row_trailer_at(format));
}

static uint64_t row_hash(const struct gw_row_format *format, uint64_t seed, uint64_t number, uint64_t sequence,
			 const void *payload)
{
	uint64_t mixed = gw_mix64(gw_mix64(seed + number) + sequence);
	return XXH3_64bits_withSeed(payload, format->payload_bytes, mixed);
}

gw_status gw_row_format_init(uint64_t payload_bytes, struct gw_row_format *out)
{
	memset(out, 0, sizeof(*out));
	if (payload_bytes == 0)
		return gw_fail(GW_INVALID, "rows of no bytes");
	if (payload_bytes > GW_ROW_PAYLOAD_MAX)
		return gw_fail(GW_LIMIT, "rows of %llu bytes: at most %u, use more rows of fewer columns",
			       (unsigned long long)payload_bytes, GW_ROW_PAYLOAD_MAX);
	uint32_t bytes = (uint32_t)payload_bytes;
	bool word = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
	*out = (struct gw_row_format){.payload_bytes = bytes, .stride = bytes, .versioned = !word};
	if (out->versioned)
		out->stride = ((bytes + GW_ROW_ALIGN - 1) & ~(GW_ROW_ALIGN - 1)) + GW_ROW_TRAILER_BYTES;
	return GW_OK;
}

static void row_load_word(const struct gw_row_format *format, const uint8_t *row, void *payload)
{
	switch (format->payload_bytes) {
	case 1:
		__atomic_load(row, (uint8_t *)payload, __ATOMIC_RELAXED);
		return;
	case 2: {
		uint16_t word = __atomic_load_n((const uint16_t *)(const void *)row, __ATOMIC_RELAXED);
		memcpy(payload, &word, sizeof(word));
		return;
	}
	case 4: {
		uint32_t word = __atomic_load_n((const uint32_t *)(const void *)row, __ATOMIC_RELAXED);
		memcpy(payload, &word, sizeof(word));
		return;
	}
	default: {
		uint64_t word = __atomic_load_n((const uint64_t *)(const void *)row, __ATOMIC_RELAXED);
		memcpy(payload, &word, sizeof(word));
	}
	}
}

void gw_row_store(const struct gw_row_format *format, uint8_t *row, const void *payload)
{
	switch (format->payload_bytes) {
	case 1:
		__atomic_store_n(row, *(const uint8_t *)payload, __ATOMIC_RELAXED);
		return;
	case 2: {
		uint16_t word;
		memcpy(&word, payload, sizeof(word));
		__atomic_store_n((uint16_t *)(void *)row, word, __ATOMIC_RELAXED);
		return;
	}
	case 4: {
		uint32_t word;
		memcpy(&word, payload, sizeof(word));
		__atomic_store_n((uint32_t *)(void *)row, word, __ATOMIC_RELAXED);
		return;
	}
	default: {
		uint64_t word;
		memcpy(&word, payload, sizeof(word));
		__atomic_store_n((uint64_t *)(void *)row, word, __ATOMIC_RELAXED);
	}
	}
}

bool gw_row_copy_with_trailer(const struct gw_row_format *format, const uint8_t *row, void *payload,
			      struct gw_row_trailer *trailer)
{
	const uint64_t *sequence = row_sequence(format, row);
	trailer->sequence = __atomic_load_n(sequence, __ATOMIC_ACQUIRE);
	if (trailer->sequence & 1)
		return false;
	row_copy_out(payload, row, format->payload_bytes);
	trailer->hash = __atomic_load_n(sequence + 1, __ATOMIC_ACQUIRE);
	row_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(sequence, __ATOMIC_RELAXED) == trailer->sequence;
}

bool gw_row_copy(const struct gw_row_format *format, const uint8_t *row, void *payload)
{
	if (!format->versioned) {
		row_load_word(format, row, payload);
		return true;
	}
	const uint64_t *sequence = row_sequence(format, row);
	uint64_t before = __atomic_load_n(sequence, __ATOMIC_ACQUIRE);
	if (before & 1)
		return false;
	row_copy_out(payload, row, format->payload_bytes);
	row_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(sequence, __ATOMIC_RELAXED) == before;
}

bool gw_row_verify(const struct gw_row_format *format, uint64_t seed, uint64_t number, const void *payload,
		   const struct gw_row_trailer *trailer)
{
	return !(trailer->sequence & 1) && trailer->hash == row_hash(format, seed, number, trailer->sequence, payload);
}

void gw_row_make(const struct gw_row_format *format, uint64_t seed, uint64_t number, uint8_t *row, const void *payload)
{
	if (!payload)
		memset(row, 0, format->payload_bytes);
	else if (payload != row)
		memcpy(row, payload, format->payload_bytes);
	if (!format->versioned)
		return;
	uint32_t at = gw_row_trailer_at(format);
	memset(row + format->payload_bytes, 0, at - format->payload_bytes);
	struct gw_row_trailer trailer = {GW_ROW_FIRST, row_hash(format, seed, number, GW_ROW_FIRST, row)};
	memcpy(row + at, &trailer, sizeof(trailer));
}

bool gw_row_try_lock(const struct gw_row_format *format, uint8_t *row, uint64_t *sequence)
{
	uint64_t *word = row_sequence(format, row);
	*sequence = __atomic_load_n(word, __ATOMIC_RELAXED);
	if (*sequence & 1)
		return false;
	if (!__atomic_compare_exchange_n(word, sequence, *sequence + 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return false;
	row_fence(__ATOMIC_RELEASE);
	return true;
}

void gw_row_unlock(const struct gw_row_format *format, uint8_t *row, uint64_t sequence)
{
	__atomic_store_n(row_sequence(format, row), sequence, __ATOMIC_RELEASE);
}

void gw_row_publish(const struct gw_row_format *format, uint64_t seed, uint64_t number, uint8_t *row, uint64_t sequence,
		    const void *payload)
{
	uint64_t *word = row_sequence(format, row);
	row_copy_in(row, payload, format->payload_bytes);
	__atomic_store_n(word + 1, row_hash(format, seed, number, sequence + 2, payload), __ATOMIC_RELEASE);
	__atomic_store_n(word, sequence + 2, __ATOMIC_RELEASE);
}
