/* Gathers and scatters of many small ranges. Memory latency bounds them, so each range is prefetched GW_COPY_AHEAD
 * ranges before it is copied. The functions are inline, since they form every backend's innermost loop. */
#ifndef GW_TRANSPORT_COPY_H
#define GW_TRANSPORT_COPY_H

#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define GW_COPY_AHEAD        12 /* for ranges of 400 bytes: several times as many cache lines as a core loads at once */
#define GW_COPY_PREFETCH_MAX 2048 /* bytes of one range; the hardware prefetcher continues from there */

/* gcc regards a function that only prefetches as free of effects, and drops calls of it. So these functions are always
 * inlined. (gcc 12 dropped the call from the TCP server's loop, which cost a third of its gather.) */
#define GW_PREFETCHES static inline __attribute__((always_inline))

GW_PREFETCHES void gw_prefetch_range(const uint8_t *from, uint32_t bytes)
{
	uint32_t end = bytes < GW_COPY_PREFETCH_MAX ? bytes : GW_COPY_PREFETCH_MAX;
	for (uint32_t at = 0; at < end; at += 64)
		__builtin_prefetch(from + at);
	/* A range that starts inside a cache line may end in one more line. */
	if (end)
		__builtin_prefetch(from + end - 1);
}

/* Copies one range. The usual sizes of offsets, degrees and ids take a plain move or two; other sizes take memcpy. */
static inline void gw_copy_range(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	switch (bytes) {
	case 4:
		memcpy(to, from, 4);
		return;
	case 8:
		memcpy(to, from, 8);
		return;
	case 16:
		memcpy(to, from, 16);
		return;
	default:
		memcpy(to, from, bytes);
	}
}

#define GW_COPY_LINE 64u

/* Copies one range of at least a few cache lines around the caches: whole lines of the destination are not read before
 * they are written, and displace nothing. Other threads may read the destination after gw_copy_around_end. */
static inline void gw_copy_around(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
#ifdef __SSE2__
	uint32_t head = (uint32_t)(-(uintptr_t)to % GW_COPY_LINE), at;
	if (head > bytes)
		head = bytes;
	memcpy(to, from, head);
	for (at = head; bytes - at >= GW_COPY_LINE; at += GW_COPY_LINE) {
		const __m128i *source = (const void *)(from + at);
		__m128i *line = (void *)(to + at);
		__m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1);
		__m128i c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
		_mm_stream_si128(line, a);
		_mm_stream_si128(line + 1, b);
		_mm_stream_si128(line + 2, c);
		_mm_stream_si128(line + 3, d);
	}
	memcpy(to + at, from + at, bytes - at);
#else
	memcpy(to, from, bytes);
#endif
}

static inline void gw_copy_around_end(void)
{
#ifdef __SSE2__
	_mm_sfence();
#endif
}

#endif
