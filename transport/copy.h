/* Gathers and scatters of many small ranges: what bounds them is the time to the memory they come from, so each is
 * prefetched GW_COPY_AHEAD ranges before it is copied. Inline, since every backend's innermost loop is one of these.
 */
#ifndef GW_TRANSPORT_COPY_H
#define GW_TRANSPORT_COPY_H

#include <stdint.h>
#include <string.h>

#define GW_COPY_AHEAD        12 /* 12 ranges of 400 bytes: as many cache lines as one core keeps in flight, several times */
#define GW_COPY_PREFETCH_MAX 2048 /* of a range; behind that the processor's own prefetcher has caught on */

/* A function that only prefetches has no effect in gcc's eyes, and a call of it is dropped: these are always inlined
 * (gcc 12 did drop it from the TCP server's loop, which cost a third of its gather). */
#define GW_PREFETCHES static inline __attribute__((always_inline))

GW_PREFETCHES void gw_prefetch_range(const uint8_t *from, uint32_t bytes)
{
	uint32_t end = bytes < GW_COPY_PREFETCH_MAX ? bytes : GW_COPY_PREFETCH_MAX;
	for (uint32_t at = 0; at < end; at += 64)
		__builtin_prefetch(from + at);
	/* A range that starts inside a cache line ends in one more. */
	if (end)
		__builtin_prefetch(from + end - 1);
}

/* Copies one range: sizes that offsets, degrees and ids have by a plain
 * move or two, everything else by memcpy. */
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

#endif
